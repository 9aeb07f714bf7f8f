//! Reasons: for each row of a table the few columns that speak most for its score, or against it.
//!
//! ```text
//! side      the sign of f(x) - f(x0), or the one that is asked for
//! reasons   the columns with credit on that side, largest first; zero is no reason
//! interval  credit +- 1.96 standard errors, where credit is a mean over draws
//! tied      the next column's credit is not told apart from this one's: by the intervals, or by what does not add up
//! ```
//!
//! What a lender or an auditor hands out: the value, the counterpart's value, the credit, and a sentence. It is an association of
//! the model's score with what the row has; it does not say that the score, or the world, changes with the column.

mod save;
mod sentence;

use std::io::Write;

use ndarray::Array1;
use serde::{Deserialize, Serialize};

pub use self::save::save_reasons;
pub use self::sentence::Template;
use super::by_column::{ByColumn, short};
use crate::attribute::Explanation;
use crate::data::Column;

/// What every reader must be told.
pub const REASONS_CAVEAT: &str = "Credit says how the model's score goes together with what the row has, compared with its \
     counterpart. It is an association, not a cause.";

/// Standard errors on either side of a 95 % interval.
const REACH: f64 = 1.96;
/// Differences below this part of all credit are none: scores are computed in 32 bits.
const LEAST: f64 = 1e-6;

/// Which columns are reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Those that moved the score where it went, up or down from the counterpart.
    #[default]
    Change,
    /// Those that raise the score.
    For,
    /// Those that lower it.
    Against,
}

/// One column that speaks for a score or against it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The column's name.
    pub column: String,
    /// What the row has there: a level or a number.
    pub value: String,
    /// What its counterpart has there; absent where a method compares with nothing, or with many.
    pub counterpart: Option<String>,
    /// The credit.
    pub credit: f64,
    /// The 95 % interval of the credit, where it is a mean over draws.
    pub interval: Option<(f64, f64)>,
    /// Whether the next column, listed or not, could as well stand here.
    pub tied: bool,
    /// The reason as a sentence.
    pub sentence: String,
}

/// The reasons of one explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reasons {
    /// Which row, counted from 0.
    pub example: usize,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Which output is explained, by its name where it has one.
    pub target: String,
    /// The method.
    pub method: String,
    /// The score of the row.
    pub score: f64,
    /// The score of what it is compared with.
    pub counterpart_score: Option<f64>,
    /// Which population the counterpart is from.
    pub against: Option<String>,
    /// Whether the reasons raise the score or lower it.
    pub side: Side,
    /// The reasons, the first weighs most.
    pub reasons: Vec<Reason>,
    /// The sum of all credit on the same side that is not listed.
    pub unlisted: f64,
    /// The sum of all credit on the other side.
    pub other_side: f64,
    /// What to be careful with: the verdict's reasons, ties, nothing to list.
    pub remarks: Vec<String>,
}

/// How many reasons, of which side, in which words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReasonsConfig {
    /// At most so many.
    pub count: usize,
    /// Of which side.
    pub side: Side,
    /// The sentence.
    pub template: Template,
}

impl ReasonsConfig {
    /// The reasons of an explanation; none where the columns are not those of its row. `classes` are the names of the outputs.
    pub fn of(&self, columns: &[Column], classes: &[String], explanation: &Explanation) -> Option<Reasons> {
        let by = ByColumn::new(columns);
        if columns.is_empty() || by.features() != explanation.values.len() {
            return None;
        }
        let certificate = &explanation.certificate;
        let whole = by.explanation(explanation);
        let (credit, errors) = (&whole.values, whole.standard_errors.as_ref());
        let account = certificate.completeness;
        let change =
            account.map_or_else(|| credit.sum(), |account| certificate.score - account.reference_score);
        let side = match self.side {
            Side::Change if change < 0.0 => Side::Against,
            Side::Change => Side::For,
            side => side,
        };
        let sign = if side == Side::Against { -1.0 } else { 1.0 };
        let size: f64 = credit.iter().map(|c| c.abs()).sum();
        let least = LEAST * size;
        let on_side = |j: &usize| sign * credit[*j] > least;
        let mut order: Vec<usize> = (0..credit.len()).filter(on_side).collect();
        order.sort_by(|&i, &j| (sign * credit[j]).total_cmp(&(sign * credit[i])).then(i.cmp(&j)));
        // What the account is off by may belong to any column.
        let slack = account.map_or(0.0, |account| account.residual).max(least);
        let tied = |place: usize| match (order.get(place), order.get(place + 1)) {
            (Some(&i), Some(&j)) => {
                let reach = errors.map_or(0.0, |e: &Array1<f64>| REACH * e[i].hypot(e[j]));
                (credit[i] - credit[j]).abs() <= reach.max(slack)
            }
            _ => false,
        };
        let rows = (by.described(explanation.input.view()), explanation.reference.as_ref());
        let counterparts = rows.1.map(|reference| by.described(reference.view()));
        let target = classes.get(certificate.target).cloned().unwrap_or(certificate.target.to_string());
        let against = certificate.comparison.as_ref().map(|comparison| comparison.against.clone());
        let reasons: Vec<Reason> = order
            .iter()
            .take(self.count)
            .enumerate()
            .map(|(place, &j)| {
                let interval =
                    errors.map(|errors| (credit[j] - REACH * errors[j], credit[j] + REACH * errors[j]));
                let mut reason = Reason {
                    column: columns[j].name.clone(),
                    value: rows.0[j].clone(),
                    counterpart: counterparts.as_ref().map(|values| values[j].clone()),
                    credit: credit[j],
                    interval,
                    tied: tied(place),
                    sentence: String::new(),
                };
                reason.sentence = self.template.fill(place + 1, &reason, &target, against.as_deref());
                reason
            })
            .collect();
        let sum = |places: &mut dyn Iterator<Item = usize>| places.map(|j| credit[j]).sum::<f64>();
        let unlisted = sum(&mut order.iter().copied().skip(self.count));
        let other_side = credit.iter().filter(|&&c| sign * c < 0.0).sum();
        let mut remarks: Vec<String> =
            certificate.verdict.reasons().iter().map(ToString::to_string).collect();
        if reasons.is_empty() {
            remarks.push("no column speaks on this side".to_string());
        }
        if let (Some(last), Some(&next)) = (reasons.last().filter(|last| last.tied), order.get(reasons.len()))
        {
            let (last, next) = (&last.column, &columns[next].name);
            remarks.push(format!("{next}, which is not listed, could as well stand in the place of {last}"));
        }
        Some(Reasons {
            example: certificate.example,
            name: certificate.name.clone(),
            target,
            method: certificate.method.clone(),
            score: certificate.score,
            counterpart_score: account.map(|account| account.reference_score),
            against,
            side,
            reasons,
            unlisted,
            other_side,
            remarks,
        })
    }
}

impl Reasons {
    /// The first line of the table.
    pub const HEADER: &'static str = "example,name,target,method,score,counterpart_score,side,rank,column,value,counterpart,\
         credit,low,high,tied,sentence\n";

    /// A line of the table for each reason.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_csv(&self, to: &mut dyn Write) -> std::io::Result<()> {
        let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        let side = if self.side == Side::Against { "against" } else { "for" };
        for (place, reason) in self.reasons.iter().enumerate() {
            let cells = [
                self.example.to_string(),
                quoted(self.name.as_deref().unwrap_or("")),
                quoted(&self.target),
                quoted(&self.method),
                self.score.to_string(),
                number(self.counterpart_score),
                side.to_string(),
                (place + 1).to_string(),
                quoted(&reason.column),
                quoted(&reason.value),
                quoted(reason.counterpart.as_deref().unwrap_or("")),
                reason.credit.to_string(),
                number(reason.interval.map(|(low, _)| low)),
                number(reason.interval.map(|(_, high)| high)),
                if reason.tied { "yes" } else { "no" }.to_string(),
                quoted(&reason.sentence),
            ];
            writeln!(to, "{}", cells.join(","))?;
        }
        Ok(())
    }

    /// The reasons for people: a heading, a line for each, and what to be careful with.
    pub fn text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let short_of = self.counterpart_score.map(|score| format!(", its counterpart {score:.4}"));
        let side = if self.side == Side::Against { "against" } else { "for" };
        let mut text = format!(
            "row {}{name}: {} {:.4}{}; what speaks {side} it\n",
            self.example,
            self.target,
            self.score,
            short_of.unwrap_or_default()
        );
        for (place, reason) in self.reasons.iter().enumerate() {
            let tied = if reason.tied { " (tied with the next)" } else { "" };
            text.push_str(&format!("  {}. {}{tied}\n", place + 1, reason.sentence));
        }
        if self.unlisted != 0.0 {
            text.push_str(&format!("     columns not listed on this side: {:+.4}\n", self.unlisted));
        }
        text.push_str(&format!("     columns on the other side: {:+.4}\n", self.other_side));
        for remark in &self.remarks {
            text.push_str(&format!("     note: {remark}\n"));
        }
        text
    }
}

/// A cell of a table, in quotes where it needs them. What a spreadsheet would take for a formula is marked as text.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '@', '\t', '\r'])
        || cell.starts_with(['+', '-']) && cell.parse::<f64>().is_err();
    let cell = if formula { format!("'{cell}") } else { cell.to_string() };
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

impl ByColumn<'_> {
    /// What a row has in each column: its number, its level, or of which level it has most.
    pub(super) fn described(&self, row: ndarray::ArrayView1<f64>) -> Vec<String> {
        let levels = self.levels(row);
        let of = |((column, range), level): (&(&Column, std::ops::Range<usize>), Option<String>)| {
            let crate::data::ColumnKind::Categorical { values } = &column.kind else {
                return short(row[range.start]);
            };
            let most = range.clone().max_by(|&i, &j| row[i].total_cmp(&row[j]).then(j.cmp(&i)));
            match (level, most) {
                (Some(level), Some(i)) if row[i] > 0.99 => level,
                (_, Some(i)) if row[i] > 0.0 => {
                    let name = values.get(i - range.start).map(String::as_str).unwrap_or("?");
                    format!("{name} ({:.0} %)", 100.0 * row[i].min(1.0))
                }
                _ => "none of the levels".to_string(),
            }
        };
        self.entries().iter().zip(levels).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Certificate, Completeness};
    use crate::data::columns_of_features;
    use ndarray::array;

    fn declined() -> (Vec<Column>, Explanation) {
        let columns = columns_of_features(&["age", "city=Lyon", "city=Oslo", "debt", "rank", "zero"]);
        let mut certificate = Certificate::new("transport", 7, 1, -2.0);
        certificate.completeness = Some(Completeness::new(-2.5, 0.5, -2.0));
        let explanation = Explanation {
            values: array![0.5, -0.25, -0.5, -1.75, -0.5, 0.0],
            shape: vec![6],
            reference: Some(array![41.0, 0.75, 0.25, 0.31, 2.0, 0.0]),
            input: array![38.0, 0.0, 1.0, 0.62, 3.0, 0.0],
            standard_errors: None,
            certificate,
        };
        (columns, explanation)
    }

    #[test]
    fn the_columns_that_lowered_the_score_come_first_with_both_values() {
        let (columns, explanation) = declined();
        let classes = ["no".to_string(), "approved".to_string()];
        let config = ReasonsConfig { count: 2, ..ReasonsConfig::default() };
        let found = config.of(&columns, &classes, &explanation).unwrap();
        assert_eq!((found.side, found.target.as_str()), (Side::Against, "approved"));
        let listed: Vec<(&str, &str, Option<&str>, f64)> = found
            .reasons
            .iter()
            .map(|r| (r.column.as_str(), r.value.as_str(), r.counterpart.as_deref(), r.credit))
            .collect();
        let expected = [("debt", "0.62", Some("0.31"), -1.75), ("city", "Oslo", Some("Lyon (75 %)"), -0.75)];
        assert_eq!(listed, expected);
        assert_eq!((found.unlisted, found.other_side), (-0.5, 0.5));
        assert!(
            found.reasons[0].sentence.contains("debt 0.62") && found.reasons[0].sentence.contains("0.31")
        );
        assert!(!found.reasons[0].tied && found.remarks.is_empty(), "{found:?}");
        // The credit of what is listed and of what is not is that of the row.
        let all: f64 =
            found.reasons.iter().map(|r| r.credit).sum::<f64>() + found.unlisted + found.other_side;
        assert!((all - explanation.values.sum()).abs() < 1e-12);
        // The other side, where it is asked for; a column without credit is never a reason.
        let other = ReasonsConfig { count: 9, side: Side::For, ..config };
        let found = other.of(&columns, &classes, &explanation).unwrap();
        assert_eq!(found.reasons.iter().map(|r| r.column.as_str()).collect::<Vec<_>>(), ["age"]);
        assert!(config_is_refused(&columns[..2], &explanation));
    }

    fn config_is_refused(columns: &[Column], explanation: &Explanation) -> bool {
        ReasonsConfig { count: 1, ..ReasonsConfig::default() }.of(columns, &[], explanation).is_none()
    }

    #[test]
    fn what_draws_do_not_tell_apart_is_tied() {
        let (columns, mut explanation) = declined();
        explanation.standard_errors = Some(array![0.1, 0.05, 0.05, 0.1, 0.1, 0.0]);
        let config = ReasonsConfig { count: 2, ..ReasonsConfig::default() };
        let found = config.of(&columns, &[], &explanation).unwrap();
        let [first, second] = found.reasons.as_slice() else { panic!("{found:?}") };
        assert!(!first.tied && second.tied, "city -0.75 +- 0.1 and rank -0.5 +- 0.1");
        let (low, high) = first.interval.unwrap();
        assert!((low + 1.75 + 0.196).abs() < 1e-12 && (high + 1.75 - 0.196).abs() < 1e-12);
        assert!(found.remarks[0].contains("rank, which is not listed"), "{:?}", found.remarks);
        assert!(found.text().contains("tied with the next"));
    }

    #[test]
    fn a_line_of_the_table_for_each_reason_and_no_formulas() {
        let (mut columns, explanation) = declined();
        columns[2].name = "=cmd, \"x\"".to_string();
        let config = ReasonsConfig { count: 3, ..ReasonsConfig::default() };
        let mut written = Vec::new();
        config.of(&columns, &[], &explanation).unwrap().write_csv(&mut written).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.starts_with("7,,1,transport,-2,0.5,against,1,\"'=cmd, \"\"x\"\"\",0.62,0.31,-1.75,,,no,"),
            "{text}"
        );
    }
}
