//! The report as one self-contained HTML file: tables, plots, what the machine did, where time went, and how to run it
//! again.
//!
//! It is well-formed XML too, refers to nothing outside itself, and has no script. The user's texts pass through
//! [`escaped`].

mod machine;
mod measured;
pub mod overview;
mod plot;

use crate::experiment::{Experiment, Job};
use crate::json::{ArmResult, Change, Document, TableResult, level_percent};
use crate::measured::Beside;
use crate::numbers::{plain, signed};
use crate::observed::Observed;
use crate::statistics::Better;
use crate::statistics::interval::MISS;
use crate::statistics::student::two_sided_critical;
use crate::tables::Table;
use plot::{Chart, Curve, Point, mark};
use std::fmt::Write;

const STYLE: &str = include_str!("html/style.css");
/// Arms with a colour and a mark of their own.
const COLOURS: usize = 5;

/// What the page is made of.
pub struct Page<'a, 'o> {
    pub experiment: &'a Experiment,
    pub document: &'a Document,
    /// Each table of the document: its index in the experiment (`None` for shares of functions), its measurements, and
    /// its text in `report.txt`.
    pub tables: &'a [(Option<usize>, &'a Table, &'a str)],
    /// The lines at the top of the report.
    pub head: &'a str,
    /// What was measured on a real computer, and the arms' predictions of it.
    pub measured: Option<&'a Beside<'a>>,
    /// What was observed in the first iteration of a run, if it is known.
    pub observed: &'a dyn Fn(&Job) -> Option<&'o Observed>,
}

/// Escapes text for use between tags, or as an attribute between quotes.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML allows no control characters but these.
            letter if letter.is_control() && !"\n\t".contains(letter) => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The beginning of a page, up to its first heading; `more` goes into its head.
fn opening(title: &str, more: &str) -> String {
    let title = escaped(title);
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n");
    html.push_str("<meta charset=\"utf-8\"/>\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    let _ = write!(html, "{more}<title>{title} · Fairground</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n");
    html
}

impl Page<'_, '_> {
    pub fn render(&self) -> String {
        let name = escaped(&self.experiment.name);
        let mut html = opening(&self.experiment.name, "");
        let _ = writeln!(html, "<h1>{name}</h1>");
        if let Some(about) = &self.experiment.about {
            let _ = writeln!(html, "<p>{}</p>", escaped(about));
        }
        html.push_str(&self.setup());
        self.add_contents(&mut html);
        for (number, result) in self.document.tables.iter().enumerate() {
            self.add_table(&mut html, number, result);
        }
        if let Some(beside) = self.measured {
            measured::add(&mut html, beside);
        }
        self.add_replay(&mut html);
        let version = escaped(&self.document.fairground);
        let _ = write!(html, "<footer>Simulated by Fairground {version}.</footer>\n</body>\n</html>\n");
        html
    }

    /// The head of the text report, as a list.
    fn setup(&self) -> String {
        let mut html = String::from("<dl>\n");
        for line in self.head.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escaped(word), escaped(rest.trim()));
        }
        html.push_str("</dl>\n");
        if self.experiment.arms.len() > 1 {
            html.push_str("<p class=\"note\">Intervals say how far chance (the seeds) may be off. They do not say what the machine's guessed figures are worth: that is what <code>fairground sensitivity</code> is for.</p>\n");
        }
        html
    }

    fn add_contents(&self, html: &mut String) {
        html.push_str("<ul>\n");
        for (number, result) in self.document.tables.iter().enumerate() {
            let counts: Vec<String> = result
                .verdict
                .arms
                .iter()
                .map(|arm| {
                    let name = escaped(&arm.name);
                    format!("{name}: {} gain, {} lose, {} noise", arm.gains, arm.losses, arm.noise)
                })
                .collect();
            let said = if result.most_pairs() < 2 { "no verdict".to_string() } else { counts.join("; ") };
            let _ = writeln!(html, "<li><a href=\"#table-{number}\">{}</a>: {said}</li>", escaped(result.title()));
        }
        if let Some(beside) = self.measured {
            measured::add_to_contents(html, beside);
        }
        html.push_str("</ul>\n");
    }

    fn add_table(&self, html: &mut String, number: usize, result: &TableResult) {
        let (place, table, text) = self.tables[number];
        let better = if result.better == Better::Lower { "lower" } else { "higher" };
        let _ = writeln!(html, "<section id=\"table-{number}\">\n<h2>{}</h2>", escaped(result.title()));
        let parameters: Vec<String> = result
            .parameters
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => format!("{name}={text}"),
                None => format!("{name}={value}"),
            })
            .collect();
        let parameters = escaped(&[result.workload.clone(), parameters.join(", ")].join(": "));
        let unit = escaped(&result.unit);
        let rows = rows_by(result).map_or(String::new(), |key| format!("; rows by {}", escaped(key)));
        let _ = writeln!(html, "<p class=\"soft\">{parameters}{rows}; in {unit}, {better} is better</p>");
        let _ = writeln!(html, "<p class=\"verdict\">{}</p>", escaped(&result.verdict.text));
        self.add_legend(html, result);
        html.push_str("<div class=\"plots\">\n");
        let caption = format!("{} with the 95% interval of the mean ({unit})", mean_word(result));
        add_figure(html, &levels(result, table.decimals), &caption);
        let caption = "Change with its 95% interval from pairs (%, positive is better); hollow marks count as noise";
        add_figure(html, &changes(result), caption);
        html.push_str("</div>\n");
        add_rows(html, result, table.decimals);
        let _ = writeln!(
            html,
            "<details><summary>As text, with MMTests's table</summary>\n<pre>{}</pre></details>",
            escaped(text)
        );
        if let Some(place) = place {
            machine::add(html, self, place, result);
        }
        html.push_str("</section>\n");
    }

    fn add_legend(&self, html: &mut String, result: &TableResult) {
        html.push_str("<div class=\"legend\">");
        let mut names: Vec<(String, &str)> =
            self.document.arms.iter().enumerate().map(|(arm, of)| (class(arm), of.name.as_str())).collect();
        if result.published.is_some() {
            names.push(("published".to_string(), "published, on a real machine"));
        }
        for (class, name) in names {
            let mark = mark(&class, (12.0, 7.0), false);
            let svg = format!("<svg viewBox=\"0 0 24 14\" aria-hidden=\"true\"><g class=\"{class}\">{mark}</g></svg>");
            let _ = write!(html, "<span>{svg} {}</span>", escaped(name));
        }
        html.push_str("</div>\n");
    }

    fn add_replay(&self, html: &mut String) {
        html.push_str("<section id=\"replay\">\n<h2>Running it again</h2>\n");
        html.push_str("<p>Every run is stored beside this file with its whole setup. From that folder, this runs one again and compares\n");
        html.push_str("it byte for byte:</p>\n");
        let jobs = self.experiment.jobs();
        if let Some(job) = jobs.first() {
            let record = escaped(&self.experiment.record_name(job));
            let _ = writeln!(html, "<pre>fairground replay records/{record}.json</pre>");
        }
        html.push_str("<details><summary>Records of the first iteration</summary>\n<div class=\"scroll\"><table>\n");
        html.push_str("<thead><tr><th>run</th><th class=\"text\">record</th></tr></thead>\n<tbody>\n");
        for job in jobs.iter().filter(|job| job.iteration == 0) {
            let (title, record) = (escaped(&self.experiment.title(job)), escaped(&self.experiment.record_name(job)));
            let _ =
                writeln!(html, "<tr><td>{title}</td><td class=\"text\"><code>records/{record}.json</code></td></tr>");
        }
        html.push_str("</tbody></table></div></details>\n</section>\n");
    }
}

/// The CSS class of an arm.
fn class(arm: usize) -> String {
    format!("arm{}", arm % COLOURS)
}

fn mean_word(result: &TableResult) -> &'static str {
    match result.statistic.as_str() {
        "Hmean" => "Harmonic mean",
        "several" => "Mean over iterations",
        "value" => "Figure",
        _ => "Mean",
    }
}

fn add_figure(html: &mut String, chart: &Chart, caption: &str) {
    if let Some(svg) = chart.svg() {
        let _ = writeln!(html, "<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>");
    }
}

fn labels(result: &TableResult) -> Vec<String> {
    result.rows.iter().map(|row| row.label.clone()).collect()
}

/// The parameter whose values are the rows.
fn rows_by(result: &TableResult) -> Option<&'static str> {
    workloads::workload(&result.workload)?.key
}

/// Student's 95% interval of a mean. For a harmonic mean it is that of the arithmetic mean, shifted: good enough for a
/// plot.
fn mean_interval(arm: &ArmResult) -> Option<(f64, f64)> {
    let (mean, deviation) = (arm.mean?, arm.stddev?);
    let half = two_sided_critical(MISS, arm.n - 1) * deviation / (arm.n as f64).sqrt();
    // What is never below zero has no mean there either.
    let low = if arm.min < 0.0 { mean - half } else { (mean - half).max(0.0) };
    Some((low, mean + half))
}

/// A chart of every arm's means, and of the published figures.
fn levels(result: &TableResult, decimals: usize) -> Chart {
    let names = result.rows.first().map(|row| row.arms.as_slice()).unwrap_or_default();
    let point = |arm: &ArmResult| Some(Point { value: arm.mean?, interval: mean_interval(arm), hollow: false });
    let mut curves: Vec<Curve> = names
        .iter()
        .enumerate()
        .map(|(arm, of)| Curve {
            name: of.name.clone(),
            class: class(arm),
            points: result.rows.iter().map(|row| point(&row.arms[arm])).collect(),
        })
        .collect();
    if let Some(published) = &result.published {
        let point = |label: &str| Some(Point { value: *published.get(label)?, interval: None, hollow: false });
        curves.push(Curve {
            name: "published".to_string(),
            class: "published".to_string(),
            points: result.rows.iter().map(|row| point(&row.label)).collect(),
        });
    }
    let title = format!("{}: figures of every row and arm", result.title());
    Chart { title, unit: result.unit.clone(), labels: labels(result), curves, zero: false, decimals }
}

/// A chart of the changes of every arm but the base.
fn changes(result: &TableResult) -> Chart {
    let point = |change: &Change| {
        let hollow = change.finding == crate::json::verdict::Finding::Noise;
        Some(Point { value: change.percent?, interval: change.low.zip(change.high), hollow })
    };
    let names = result.rows.first().map(|row| row.change.as_slice()).unwrap_or_default();
    let curves = names
        .iter()
        .enumerate()
        .map(|(arm, of)| Curve {
            name: of.arm.clone(),
            class: class(arm + 1),
            points: result.rows.iter().map(|row| point(&row.change[arm])).collect(),
        })
        .collect();
    let title = format!("{}: change of every row", result.title());
    Chart { title, unit: "%".to_string(), labels: labels(result), curves, zero: true, decimals: 2 }
}

/// The table of figures and changes.
fn add_rows(html: &mut String, result: &TableResult, decimals: usize) {
    let Some(first) = result.rows.first() else { return };
    let by = rows_by(result).map_or(String::new(), |key| format!(", by {}", escaped(key)));
    let _ = write!(html, "<div class=\"scroll\"><table>\n<thead><tr><th>row{by}</th><th>n</th>");
    for arm in &first.arms {
        let _ = write!(html, "<th>{}</th>", escaped(&arm.name));
    }
    for change in &first.change {
        let _ = write!(html, "<th>change of {}</th><th>95% interval</th><th></th>", escaped(&change.arm));
    }
    if result.published.is_some() {
        html.push_str("<th>published</th><th>simulated against it</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &result.rows {
        let fewest = row.arms.iter().map(|arm| arm.n).min().unwrap_or(0);
        let _ = write!(html, "<tr><td>{}</td><td>{fewest}</td>", escaped(&row.label));
        for arm in &row.arms {
            let mean = arm.mean.map_or("-".to_string(), |mean| format!("{mean:.decimals$}"));
            let _ = write!(html, "<td>{mean}</td>");
        }
        row.change.iter().for_each(|change| add_change(html, change));
        if let Some(published) = &result.published {
            let real = published.get(&row.label);
            let difference = real.zip(row.arms[0].mean).map(|(real, mean)| level_percent(*real, mean));
            let _ = write!(html, "<td>{}</td>", real.map_or(String::new(), |real| format!("{real:.decimals$}")));
            let _ = write!(html, "<td>{}</td>", difference.map_or(String::new(), |it| format!("{}%", signed(it, 1))));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

fn add_change(html: &mut String, change: &Change) {
    let word = change.finding.word();
    let percent = change.percent.map_or("-".to_string(), |percent| format!("{}%", signed(percent, 2)));
    let interval = change.low.zip(change.high).map(|(low, high)| format!("{} to {}", plain(low, 2), plain(high, 2)));
    let interval = interval.unwrap_or_default();
    // With a single pair there is no noise to speak of.
    let word = if interval.is_empty() { "" } else { word };
    let _ = write!(html, "<td class=\"{word}\">{percent}</td><td>{interval}</td><td class=\"text {word}\">{word}</td>");
}

#[cfg(test)]
mod tests;
