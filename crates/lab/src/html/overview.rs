//! The overview page of several studies: each table has a line with a link to its report. Like [`super::Page`] it is
//! one well-formed file without a script; it refers to nothing but the reports beside it.

use super::{escaped, opening};
use crate::json::verdict::ArmVerdict;
use crate::json::{Change, Document, Level, TableResult};
use crate::numbers::signed;
use crate::statistics::quantile;
use crate::studies::Study;
use std::fmt::Write;

/// Every overview page has this in its head, and no other file does.
pub const MARK: &str = "<meta name=\"generator\" content=\"fairground reproduce\"/>\n";
const INTRODUCTION: &str = "Changes of the kernel, predicted. Of each table: in how many rows the changed kernel gains and loses \
    against the kernel before, beyond what chance does; its changes, one stroke a row, to the right where it is better; and in how \
    many rows the kernel before comes near the figure that a real machine had.";
const COLUMNS: [&str; 12] = [
    "table",
    "arm",
    "rows",
    "gain",
    "lose",
    "noise",
    "changes",
    "least",
    "median",
    "most",
    "level within 10%",
    "within 25%",
];
/// The width of a drawing in a line; the style sheet gives cells the same width.
const WIDTH: f64 = 112.0;
const HEIGHT: f64 = 14.0;

/// One experiment of a study.
pub struct Part<'a> {
    pub name: &'a str,
    /// Its folder of results, as a link from this page.
    pub folder: &'a str,
    pub state: State<'a>,
}

/// How far the experiment is.
pub enum State<'a> {
    /// No run is stored.
    Missing,
    /// Some of its runs are stored: the file that reports on them.
    Partial(&'a str),
    /// All of its runs are stored: the file of its report.
    Done(&'a str, &'a Document),
}

/// The page.
pub fn overview(studies: &[(&Study, Vec<Part>)]) -> String {
    let mut html = opening("Studies", MARK);
    html.push_str("<h1>Studies</h1>\n");
    let _ = write!(html, "<p class=\"soft\">{INTRODUCTION}</p>\n<ul>\n");
    for (number, (study, parts)) in studies.iter().enumerate() {
        let (name, said) = (escaped(study.name), escaped(&summary(parts)));
        let _ = writeln!(html, "<li><a href=\"#study-{number}\">{name}</a>: {said}</li>");
    }
    html.push_str("</ul>\n");
    for (number, (study, parts)) in studies.iter().enumerate() {
        let (name, about) = (escaped(study.name), escaped(study.about));
        let _ = writeln!(html, "<section id=\"study-{number}\">\n<h2>{name}</h2>\n<p>{about}</p>");
        for part in parts {
            add_part(&mut html, study, part);
        }
        html.push_str("</section>\n");
    }
    let _ = write!(html, "<footer>Simulated by Fairground {}.</footer>\n</body>\n</html>\n", crate::VERSION);
    html
}

/// The line that sums up a study.
fn summary(parts: &[Part]) -> String {
    let documents: Vec<&Document> = parts.iter().filter_map(Part::document).collect();
    let tables: Vec<&TableResult> = documents.iter().flat_map(|document| &document.tables).collect();
    let begun = parts.iter().filter(|part| matches!(part.state, State::Partial(_))).count();
    if tables.is_empty() && begun == 0 {
        return "no results".to_string();
    }
    let mut text = format!("{} of {} experiments, {} tables", documents.len(), parts.len(), tables.len());
    if begun > 0 {
        let _ = write!(text, "; begun: {begun}");
    }
    let levels: Vec<Level> = tables.iter().filter_map(|table| table.near_published()).collect();
    let (near, rows) = levels.iter().fold((0, 0), |sum, level| (sum.0 + level.within_25, sum.1 + level.rows));
    if rows > 0 {
        let _ = write!(text, "; level within 25% of the published one in {near} of {rows} rows");
    }
    text
}

impl Part<'_> {
    fn document(&self) -> Option<&Document> {
        match self.state {
            State::Done(_, document) => Some(document),
            State::Missing | State::Partial(_) => None,
        }
    }
}

fn add_part(html: &mut String, study: &Study, part: &Part) {
    let (name, folder) = (escaped(part.name), escaped(part.folder));
    match part.state {
        State::Missing => {
            let study = escaped(study.name);
            let _ = writeln!(
                html,
                "<h3>{name}</h3>\n<p class=\"soft\">No results: <code>fairground reproduce {study}</code></p>"
            );
        }
        State::Partial(page) => {
            let link = format!("<a href=\"{folder}/{}\">{name}</a>", escaped(page));
            let _ = writeln!(
                html,
                "<h3>{link}</h3>\n<p class=\"loss\">PARTIAL: runs are missing; <code>fairground reproduce {}</code> goes on from there.</p>",
                escaped(study.name)
            );
        }
        State::Done(page, document) => {
            let page = format!("{folder}/{}", escaped(page));
            let _ = writeln!(html, "<h3><a href=\"{page}\">{name}</a></h3>");
            add_subject(html, document);
            add_tables(html, &page, document);
        }
    }
}

/// What was run, in a few lines.
fn add_subject(html: &mut String, document: &Document) {
    let word = |name: &str| document.machine[name].as_str().unwrap_or_default();
    let (machine, about) = (escaped(word("name")), escaped(word("about")));
    let _ = writeln!(html, "<dl>\n<dt>machine</dt><dd>{machine}: {about}</dd>");
    for arm in &document.arms {
        let set = arm.set.iter().map(|set| format!(" {set}")).collect::<String>();
        let arm = escaped(&format!("{} = {}{set}", arm.name, arm.kernel));
        let _ = writeln!(html, "<dt>arm</dt><dd>{arm}</dd>");
    }
    let most = if document.adaptive.is_some() { "at most " } else { "" };
    let (iterations, seed) = (document.iterations, document.seed);
    let time = match document.cpu_seconds {
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    };
    let _ =
        writeln!(html, "<dt>runs</dt><dd>iterations: {most}{iterations}, seed {seed}, {time} of CPU time</dd>\n</dl>");
}

fn add_tables(html: &mut String, page: &str, document: &Document) {
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for column in COLUMNS {
        let class = if ["arm", "changes"].contains(&column) { " class=\"text\"" } else { "" };
        let _ = write!(html, "<th{class}>{column}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (number, table) in document.tables.iter().enumerate() {
        for (arm, verdict) in table.verdict.arms.iter().enumerate() {
            let title = escaped(table.title());
            // A table's title is printed only once.
            let title = if arm == 0 { format!("<a href=\"{page}#table-{number}\">{title}</a>") } else { String::new() };
            let first = if arm == 0 { " class=\"first\"" } else { "" };
            let _ = write!(html, "<tr{first}><td>{title}</td>");
            add_arm(html, table, arm, verdict);
            add_level(html, table.near_published().filter(|_| arm == 0));
            html.push_str("</tr>\n");
        }
    }
    html.push_str("</tbody></table></div>\n<details><summary>Verdicts to quote</summary>\n<pre>");
    for table in &document.tables {
        let _ = writeln!(html, "{}", escaped(&table.verdict.text));
    }
    html.push_str("</pre></details>\n");
}

/// An arm's gains and losses, and its changes.
fn add_arm(html: &mut String, table: &TableResult, arm: usize, verdict: &ArmVerdict) {
    let _ = write!(html, "<td class=\"text\">{}</td><td>{}</td>", escaped(&verdict.name), table.rows.len());
    // With a single pair there is no gain or noise to speak of.
    let counts = [("gain", verdict.gains), ("loss", verdict.losses), ("noise", verdict.noise)];
    for (class, count) in counts {
        let (class, count) = match count {
            _ if table.most_pairs() < 2 => ("noise", "-".to_string()),
            0 => ("noise", "0".to_string()),
            count => (class, count.to_string()),
        };
        let _ = write!(html, "<td class=\"{class}\">{count}</td>");
    }
    let changes: Vec<&Change> = table.rows.iter().map(|row| &row.change[arm]).collect();
    let mut percents: Vec<f64> = changes.iter().filter_map(|change| change.percent).collect();
    percents.sort_by(f64::total_cmp);
    let _ = write!(html, "<td class=\"text\">{}</td>", strokes(&changes, &percents));
    for part in [0.0, 0.5, 1.0] {
        let cell =
            if percents.is_empty() { "-".to_string() } else { format!("{}%", signed(quantile(&percents, part), 2)) };
        let _ = write!(html, "<td>{cell}</td>");
    }
}

fn add_level(html: &mut String, level: Option<Level>) {
    let Some(Level { rows, within_10, within_25 }) = level else { return html.push_str("<td></td><td></td>") };
    let _ = write!(html, "<td>{within_10} of {rows}</td><td>{within_25} of {rows}</td>");
}

/// One stroke for each change, on a line whose middle is no change.
fn strokes(changes: &[&Change], percents: &[f64]) -> String {
    let most = percents.iter().fold(0.0, |most: f64, percent| most.max(percent.abs()));
    if percents.is_empty() {
        return String::new();
    }
    let at = |percent: f64| WIDTH / 2.0 + if most > 0.0 { percent / most } else { 0.0 } * (WIDTH / 2.0 - 2.0);
    let label = format!(
        "changes of {} rows, from {}% to {}%",
        percents.len(),
        signed(percents[0], 2),
        signed(percents[percents.len() - 1], 2)
    );
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\"><title>{label}</title>");
    let middle = WIDTH / 2.0;
    let _ = write!(svg, "<line class=\"zero\" x1=\"{middle}\" x2=\"{middle}\" y1=\"0\" y2=\"{HEIGHT}\"/>");
    for change in changes {
        let Some(percent) = change.percent else { continue };
        let (x, class) = (at(percent), change.finding.word());
        let _ = write!(svg, "<line class=\"stroke {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"2\" y2=\"12\"/>");
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests;
