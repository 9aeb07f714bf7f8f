//! Methods ranked by metrics: a row for each method, a column for each metric, means with their 95 % intervals.
//!
//! ```text
//!                 deletion-zero ↓          deletion-blur ↓
//! kernel-shap     ├─●─┤                          ├──●──┤
//! ig                   ├──●──┤             ├──●──┤
//! ```
//!
//! Names stand beside their points, so any number of methods can be told apart, and intervals that overlap are seen to.

use std::fmt::Write;

use super::chart::{Axis, Scale, escape, picture};
use super::metric_table::arrow;
use crate::evaluate::{Direction, MetricTable, Summary};

const NAMES: f64 = 170.0;
const WIDTH: f64 = 260.0;
const GAP: f64 = 36.0;
const TOP: f64 = 76.0;
const ROW: f64 = 22.0;
const COLOUR: &str = "#0072B2";

/// The ranking of a table's methods by these of its metrics, as SVG. The best by the first one stands on top; methods
/// that it is not defined for stand below.
pub fn ranking(title: &str, table: &MetricTable, metrics: &[&str]) -> String {
    let columns: Vec<usize> = metrics
        .iter()
        .filter_map(|name| table.metrics.iter().position(|column| column.name == *name))
        .collect();
    let mut rows: Vec<_> = table.rows.iter().collect();
    if let Some(&first) = columns.first() {
        let sign = if table.metrics[first].direction == Direction::Higher { -1.0 } else { 1.0 };
        let place = |summary: Option<&Summary>| summary.map_or(f64::INFINITY, |s| sign * s.mean);
        rows.sort_by(|a, b| place(a.cells[first].summary()).total_cmp(&place(b.cells[first].summary())));
    }
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let mut text = |line: String| _ = writeln!(svg, "{line}");
    text(format!("<text x=\"16\" y=\"30\" font-size=\"18\">{}</text>", escape(title)));
    let middle = |row: usize| TOP + ROW * (row as f64 + 0.5);
    for (k, row) in rows.iter().enumerate() {
        let name = escape(&row.method);
        text(format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            NAMES - 10.0,
            middle(k) + 4.0
        ));
    }
    for (place, &column) in columns.iter().enumerate() {
        let left = NAMES + place as f64 * (WIDTH + GAP);
        let found: Vec<Option<(f64, f64, f64)>> =
            rows.iter().map(|row| row.cells[column].summary().map(interval)).collect();
        let axis = Axis::new(Scale::Linear, found.iter().flatten().flat_map(|&(low, _, high)| [low, high]));
        let across = |value: f64| left + WIDTH * axis.place(value);
        let heading = &table.metrics[column];
        text(format!(
            "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}{}</text>",
            TOP - 12.0,
            escape(&heading.name),
            arrow(heading.direction)
        ));
        for (value, label) in axis.ticks() {
            let at = across(value);
            text(format!(
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#e4e4e4\"/>"
            ));
            text(format!(
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{label}</text>",
                bottom + 18.0
            ));
        }
        text(format!(
            "<rect x=\"{left}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{}\" fill=\"none\" stroke=\"#555\"/>",
            bottom - TOP
        ));
        for (k, &(low, mean, high)) in
            found.iter().enumerate().filter_map(|(k, found)| Some((k, found.as_ref()?)))
        {
            let y = middle(k);
            text(format!(
                "<line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{COLOUR}\" stroke-width=\"1.4\"/>",
                across(low),
                across(high)
            ));
            text(format!("<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{COLOUR}\"/>", across(mean)));
        }
    }
    picture(NAMES + columns.len() as f64 * (WIDTH + GAP), bottom + 34.0, &svg)
}

/// A mean within its interval; one example has none.
fn interval(summary: &Summary) -> (f64, f64, f64) {
    let (low, high) = summary.confidence_interval().unwrap_or((summary.mean, summary.mean));
    (low, summary.mean, high)
}

#[cfg(test)]
mod tests {
    use super::super::metric_table::tests::table;
    use super::*;

    #[test]
    fn the_best_stands_on_top_and_absent_cells_are_empty() {
        let svg = ranking("Two < three", &table(), &["deletion-zero", "gps", "no such metric"]);
        assert!(svg.contains("Two &lt; three") && svg.contains("deletion-zero ↓"));
        let place = |name: &str| svg.find(&format!(">{name}<")).unwrap();
        assert!(place("gradient") < place("ig"), "a mean of 1 is before 1.5 where lower is better");
        // Two points in the first column, one in the second.
        assert_eq!(svg.matches("<circle").count(), 3);
        // By a metric that only one method has, that one is first.
        let svg = ranking("", &table(), &["fce"]);
        assert!(svg.find(">ig<").unwrap() < svg.find(">gradient<").unwrap());
    }
}
