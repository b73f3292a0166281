//! The arms' predictions for a real computer, next to what was measured on it.

use super::escaped;
use crate::measured::Beside;
use crate::numbers::signed;
use std::fmt::Write;

/// The text of the section's heading and of the link to it.
const HEADING: &str = "Predicted against measured";

pub(super) fn add_to_contents(html: &mut String, beside: &Beside) {
    let rows = beside.rows.len();
    let plural = if rows == 1 { "" } else { "s" };
    let _ = writeln!(html, "<li><a href=\"#measured\">{HEADING}</a>: {rows} row{plural}</li>");
}

/// The rows that the text report has, with the same digits.
pub(super) fn add(html: &mut String, beside: &Beside) {
    let _ = writeln!(html, "<section id=\"measured\">\n<h2>{HEADING}</h2>");
    let where_and_when = escaped(&beside.measured.place());
    let disturbance = beside.measured.disturbance();
    let _ = writeln!(html, "<p class=\"soft\">{where_and_when}; differences in per cent of what was measured</p>");
    let _ = writeln!(html, "<p class=\"soft\">measured while {disturbance}</p>");
    html.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th>row</th><th>n</th><th>measured</th><th>least to greatest</th>",
    );
    for prediction in beside.rows.first().iter().flat_map(|row| &row.predictions) {
        let _ = write!(html, "<th>{}</th><th>difference</th>", escaped(&prediction.arm));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &beside.rows {
        let range = format!("{:.4} to {:.4}", row.measured_low, row.measured_high);
        let (title, measured) = (escaped(&row.title()), row.measured);
        let _ = write!(html, "<tr><td>{title}</td><td>{}</td><td>{measured:.4}</td><td>{range}</td>", row.iterations);
        for prediction in &row.predictions {
            let difference = prediction.difference_percent.map_or("-".to_string(), |by| signed(by, 1) + "%");
            let _ = write!(html, "<td>{:.4}</td><td>{difference}</td>", prediction.predicted);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    for line in beside.measured.going_on(&beside.unfinished) {
        let _ = writeln!(html, "<p>{}</p>", escaped(&line));
    }
    html.push_str("</section>\n");
}
