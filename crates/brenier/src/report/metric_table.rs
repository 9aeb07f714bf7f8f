//! A table of methods by metrics for people and for programs: text, CSV, JSON, LaTeX, and the report.
//!
//! Text, LaTeX and the report have a row for each method and show the mean with half of its 95 % interval; the best
//! of a column is marked where it can be told from all others ([`Lead`]). CSV and JSON have a row for each method and metric, with
//! every number in full: what a program reads must not be rounded.

use std::fmt::Write;

use serde::Serialize;

use super::ReportTable;
use crate::evaluate::{Cell, Direction, Lead, MethodRow, MetricColumn, MetricTable};
use crate::{Error, Result};

/// What a star in the text means.
const STAR: &str = "* better than every other method: the 95 % interval of each paired difference excludes 0";

/// One cell with its names: a line of the CSV and an entry of the JSON.
#[derive(Serialize)]
struct LongRow<'a> {
    method: &'a str,
    metric: &'a str,
    better: Direction,
    mean: Option<f64>,
    std: Option<f64>,
    sem: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
    undefined: usize,
    absent: Option<&'a str>,
    best: bool,
}

impl MetricTable {
    fn long(&self) -> impl Iterator<Item = LongRow<'_>> {
        self.rows.iter().flat_map(|row| {
            row.cells.iter().zip(&self.metrics).map(|(cell, metric)| {
                let summary = cell.summary();
                let interval = summary.and_then(|s| s.confidence_interval());
                LongRow {
                    method: &row.method,
                    metric: &metric.name,
                    better: metric.direction,
                    mean: summary.map(|s| s.mean),
                    std: summary.and_then(|s| s.standard_deviation),
                    sem: summary.and_then(|s| s.standard_error),
                    low: interval.map(|i| i.0),
                    high: interval.map(|i| i.1),
                    n: summary.map_or(0, |s| s.n),
                    undefined: summary.map_or(self.examples, |s| s.undefined),
                    absent: match cell {
                        Cell::Absent(reason) => Some(reason),
                        Cell::Measured(_) => None,
                    },
                    best: metric.lead.best() == Some(&row.method),
                }
            })
        })
    }

    /// JSON: `{"examples", "rows": [{"method", "metric", "better", "mean", "std", "sem", "low", "high", "n",
    /// "undefined", "absent", "best"}], "leads": [{"metric", "lead": "best" | "tie" | "none", ...}], "left_out": [{"metric",
    /// "reason"}], "costs": [{"method", "gradients", "scores"}]}`.
    pub fn json(&self) -> Result<String> {
        let cost = |row: &MethodRow| serde_json::json!({ "method": row.method, "gradients": row.gradients, "scores": row.scores });
        let costs: Vec<_> = self.rows.iter().map(cost).collect();
        let rows: Vec<LongRow> = self.long().collect();
        let lead = |column: &MetricColumn| {
            let mut told = serde_json::json!(column.lead);
            told["metric"] = column.name.clone().into();
            told
        };
        let leads: Vec<_> = self.metrics.iter().map(lead).collect();
        let reason =
            |(metric, reason): &(String, String)| serde_json::json!({ "metric": metric, "reason": reason });
        let left_out: Vec<_> = self.left_out.iter().map(reason).collect();
        let whole = serde_json::json!({
            "examples": self.examples, "rows": rows, "leads": leads, "left_out": left_out, "costs": costs,
        });
        serde_json::to_string_pretty(&whole)
            .map(|text| text + "\n")
            .map_err(|e| Error::Write { path: "the table".into(), source: e.into() })
    }

    /// CSV with a header and the columns of the JSON's rows.
    pub fn csv(&self) -> Result<String> {
        let unwritable = |e: Box<dyn std::error::Error + Send + Sync>| Error::Write {
            path: "the table".into(),
            source: e,
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in self.long() {
            writer.serialize(row).map_err(|e| unwritable(e.into()))?;
        }
        let bytes = writer.into_inner().map_err(|e| unwritable(e.to_string().into()))?;
        String::from_utf8(bytes).map_err(|e| unwritable(e.into()))
    }

    /// Aligned columns; `*` marks the best of a column, `-` what a method does not have.
    pub fn text(&self) -> String {
        let mut columns = vec![vec!["method".to_string()]];
        columns[0].extend(self.rows.iter().map(|row| row.method.clone()));
        for (k, metric) in self.metrics.iter().enumerate() {
            let best = metric.lead.best();
            let mut column = vec![format!("{}{}", metric.name, arrow(metric.direction))];
            column.extend(self.rows.iter().map(|row| match row.cells[k].summary() {
                None => "-".to_string(),
                Some(s) => {
                    let margin =
                        s.standard_error.map_or(String::new(), |e| format!(" ± {}", short(1.96 * e)));
                    format!("{}{margin}{}", short(s.mean), if best == Some(&row.method) { " *" } else { "" })
                }
            }));
            columns.push(column);
        }
        for (name, count) in
            [("gradients", (|row| row.gradients) as fn(&MethodRow) -> f64), ("scores", |row| row.scores)]
        {
            let cells = self.rows.iter().map(|row| short(count(row)));
            columns.push(std::iter::once(name.to_string()).chain(cells).collect());
        }
        let widths: Vec<usize> =
            columns.iter().map(|c| c.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
        let mut text = format!("{} examples; mean ± half of the 95 % interval\n\n", self.examples);
        for line in 0..=self.rows.len() {
            let cells = columns.iter().zip(&widths).map(|(column, width)| format!("{:width$}", column[line]));
            // Writing to a string cannot fail.
            _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        let mut notes = self.notes();
        if self.metrics.iter().any(|metric| metric.lead.best().is_some()) {
            notes.insert(0, STAR.to_string());
        }
        if !notes.is_empty() {
            _ = write!(text, "\n{}\n", notes.join("\n"));
        }
        text
    }

    /// The best method by each metric that has one.
    fn best_in_words(&self) -> impl Iterator<Item = String> {
        self.metrics.iter().filter_map(|metric| match &metric.lead {
            Lead::Best(margin) => Some(format!(
                "{}: {} is best (nearest: {}, better by {}, interval {} to {}, n = {})",
                metric.name,
                margin.method,
                margin.over,
                short(margin.difference),
                short(margin.interval.0),
                short(margin.interval.1),
                margin.n
            )),
            Lead::Tie(_) | Lead::None { .. } => None,
        })
    }

    /// Why a column has no star, and what is not in the table.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for metric in &self.metrics {
            let name = &metric.name;
            match &metric.lead {
                Lead::Tie(margin) => notes.push(format!(
                    "{name}: no star, {} is not told from {} (better by {}, interval {} to {}, n = {})",
                    margin.method,
                    margin.over,
                    short(margin.difference),
                    short(margin.interval.0),
                    short(margin.interval.1),
                    margin.n
                )),
                Lead::None { reason } if metric.direction != Direction::Neither && self.rows.len() > 1 => {
                    notes.push(format!("{name}: no star, {reason}"));
                }
                Lead::Best(_) | Lead::None { .. } => {}
            }
        }
        notes.extend(self.left_out.iter().map(|(name, reason)| format!("{name}: left out, {reason}")));
        notes
    }

    /// A `tabular` for the booktabs package, with mean and standard deviation as the paper has them; a star of the
    /// text is bold here.
    pub fn latex(&self) -> String {
        let heads: Vec<String> = self
            .metrics
            .iter()
            .map(|metric| {
                let arrow = match metric.direction {
                    Direction::Higher => " \\(\\uparrow\\)",
                    Direction::Lower => " \\(\\downarrow\\)",
                    Direction::Neither => "",
                };
                format!("{}{arrow}", escaped(&metric.name))
            })
            .collect();
        let mut text = format!("% {} examples; mean and standard deviation\n", self.examples);
        _ = writeln!(text, "\\begin{{tabular}}{{l{}}}\n\\toprule", "c".repeat(self.metrics.len()));
        _ = writeln!(text, "Method & {} \\\\\n\\midrule", heads.join(" & "));
        for row in &self.rows {
            let cells: Vec<String> = row
                .cells
                .iter()
                .zip(&self.metrics)
                .map(|(cell, metric)| match cell.summary() {
                    None => "-".to_string(),
                    Some(s) => {
                        let spread = s.standard_deviation.map(|d| format!(" \\pm {}", power(d)));
                        let cell = format!("{}{}", power(s.mean), spread.unwrap_or_default());
                        if metric.lead.best() == Some(&row.method) {
                            format!("\\(\\mathbf{{{cell}}}\\)")
                        } else {
                            format!("\\({cell}\\)")
                        }
                    }
                })
                .collect();
            _ = writeln!(text, "{} & {} \\\\", escaped(&row.method), cells.join(" & "));
        }
        text.push_str("\\bottomrule\n\\end{tabular}\n");
        text
    }
}

impl From<&MetricTable> for ReportTable {
    fn from(table: &MetricTable) -> ReportTable {
        let heads = table
            .metrics
            .iter()
            .flat_map(|metric| [format!("{}{}", metric.name, arrow(metric.direction)), "± 95 %".to_string()]);
        let columns = std::iter::once("method".to_string()).chain(heads);
        let rows = table.rows.iter().map(|row| {
            let cells = row.cells.iter().flat_map(|cell| {
                let summary = cell.summary();
                [summary.map(|s| s.mean), summary.and_then(|s| s.standard_error).map(|e| 1.96 * e)]
            });
            let costs = [Some(row.gradients), Some(row.scores)];
            (row.method.clone(), cells.chain(costs).collect())
        });
        ReportTable {
            columns: columns.chain(["gradients".to_string(), "scores".to_string()]).collect(),
            rows: rows.collect(),
            notes: table.best_in_words().chain(table.notes()).collect(),
        }
    }
}

pub(super) fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => " ↑",
        Direction::Lower => " ↓",
        Direction::Neither => "",
    }
}

/// Four significant digits; powers of ten only where they are needed.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_string();
    }
    if !(1e-3..1e5).contains(&size) {
        return format!("{value:.3e}");
    }
    let places = (3 - size.log10().floor() as i32).max(0) as usize;
    format!("{value:.places$}")
}

/// The same as TeX writes powers.
fn power(value: f64) -> String {
    match short(value).split_once('e') {
        Some((digits, exponent)) => format!("{digits} \\cdot 10^{{{exponent}}}"),
        None => short(value),
    }
}

fn escaped(text: &str) -> String {
    text.replace('_', "\\_").replace('%', "\\%").replace('&', "\\&")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::evaluate::{Margin, MetricColumn, Summary};

    /// Two methods, of which one has no path.
    pub(in crate::report) fn table() -> MetricTable {
        let margin = Margin {
            method: "gradient".to_string(),
            over: "ig".to_string(),
            difference: 0.5,
            interval: (0.4, 0.6),
            n: 2,
        };
        let column = |name: &str, direction, lead| MetricColumn { name: name.to_string(), direction, lead };
        let measured = |values: &[f64]| {
            Cell::Measured(Summary::of(&values.iter().map(|v| Some(*v)).collect::<Vec<_>>()).unwrap())
        };
        let absent = Cell::Absent("the method has no path".to_string());
        let row = |method: &str, cells| MethodRow {
            method: method.to_string(),
            cells,
            gradients: 1.5,
            scores: 0.0,
        };
        MetricTable {
            examples: 2,
            metrics: vec![
                column("deletion-zero", Direction::Lower, Lead::Best(margin)),
                column("gps", Direction::Neither, Lead::unknown()),
                column("fce", Direction::Lower, Lead::None { reason: "made so".to_string() }),
            ],
            left_out: vec![("satv".to_string(), "no images".to_string())],
            rows: vec![
                row("ig", vec![measured(&[1.0, 2.0]), measured(&[1.0, 1.0]), measured(&[1e4, 3e4])]),
                row("gradient", vec![measured(&[0.5, 1.5]), absent.clone(), absent]),
            ],
        }
    }

    #[test]
    fn text_is_aligned_and_marks_the_best() {
        let text = table().text();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[0], "method    deletion-zero ↓   gps        fce ↓          gradients  scores");
        assert_eq!(lines[1], "ig        1.500 ± 0.9800    1.000 ± 0  20000 ± 19600  1.500      0");
        assert_eq!(lines[2], "gradient  1.000 ± 0.9800 *  -          -              1.500      0");
        assert!(lines[4].starts_with("* better than every other method"));
        assert_eq!(lines[5..], ["fce: no star, made so", "satv: left out, no images"]);
        let mut tied = table();
        let Lead::Best(margin) = tied.metrics[0].lead.clone() else { panic!("the first column has a best") };
        tied.metrics[0].lead = Lead::Tie(Margin { interval: (-0.25, 1.25), ..margin });
        let text = tied.text();
        assert!(!text.contains('*'), "{text}");
        let said = "gradient is not told from ig (better by 0.5000, interval -0.2500 to 1.250, n = 2)";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn csv_and_json_have_every_number_in_full_and_say_why_there_is_none() {
        let csv = table().csv().unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "method,metric,better,mean,std,sem,low,high,n,undefined,absent,best");
        assert_eq!(lines[2], "ig,gps,neither,1.0,0.0,0.0,1.0,1.0,2,0,,false");
        assert_eq!(lines[5], "gradient,gps,neither,,,,,,0,2,the method has no path,false");
        let json: serde_json::Value = serde_json::from_str(&table().json().unwrap()).unwrap();
        assert_eq!(json["rows"][0]["std"].as_f64(), Some(0.5_f64.sqrt()));
        assert!(json["rows"][4]["mean"].is_null() && json["costs"][1]["gradients"] == 1.5);
        assert!(json["rows"][3]["best"] == true && json["leads"][0]["over"] == "ig");
        assert_eq!(json["left_out"][0]["metric"], "satv");
    }

    #[test]
    fn latex_is_a_booktabs_table() {
        let latex = table().latex();
        assert!(latex.contains(
            "\\begin{tabular}{lccc}\n\\toprule\nMethod & deletion-zero \\(\\downarrow\\) & gps & "
        ));
        assert!(
            latex.contains("\ngradient & \\(\\mathbf{1.000 \\pm 0.7071}\\) & - & - \\\\\n\\bottomrule\n"),
            "{latex}"
        );
        assert_eq!(power(1.25e-7), "1.250 \\cdot 10^{-7}");
    }

    #[test]
    fn the_report_gets_means_and_margins() {
        let report = ReportTable::from(&table());
        assert_eq!(report.columns.len(), 1 + 6 + 2);
        assert!(report.rows.iter().all(|(_, cells)| cells.len() == 8));
        assert_eq!(report.rows[1].1[..4], [Some(1.0), Some(1.96 * 0.5), None, None]);
    }
}
