//! A reason as a sentence: a template with names in braces.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Reason;
use crate::error::{Error, Result};

/// The names that a template may have.
const NAMES: [&str; 9] =
    ["rank", "column", "value", "counterpart", "credit", "low", "high", "target", "against"];
/// What a reason says where nobody says otherwise.
const WITH: &str = "{column} {value}; comparable rows of {against} {counterpart} ({credit})";
/// The same, for what was not compared with a row.
const WITHOUT: &str = "{column} {value} ({credit})";

/// A sentence with names in braces, such as `{column} {value}; comparable applicants {counterpart}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Template(Option<String>);

impl FromStr for Template {
    type Err = Error;

    /// # Errors
    /// A name that there is not, and braces that do not close.
    fn from_str(text: &str) -> Result<Template> {
        let mut rest = text;
        while let Some(start) = rest.find(['{', '}']) {
            let inside = rest[start..].strip_prefix('{').and_then(|after| after.split_once('}'));
            match inside {
                Some((name, after)) if NAMES.contains(&name) => rest = after,
                _ => {
                    let found = inside.map_or(&rest[start..], |(name, _)| name).to_string();
                    let known = NAMES.to_vec();
                    return Err(Error::UnknownChoice {
                        what: "name for the braces of a sentence",
                        found,
                        known,
                    });
                }
            }
        }
        Ok(Template(Some(text.to_string())))
    }
}

impl Template {
    /// The sentence for a reason.
    pub(super) fn fill(&self, rank: usize, reason: &Reason, target: &str, against: Option<&str>) -> String {
        let default = if reason.counterpart.is_some() { WITH } else { WITHOUT };
        let text = self.0.as_deref().unwrap_or(default);
        let number = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:+.4}"));
        let of = |name: &str| match name {
            "rank" => rank.to_string(),
            "column" => reason.column.clone(),
            "value" => reason.value.clone(),
            "counterpart" => reason.counterpart.clone().unwrap_or_else(|| "-".to_string()),
            "credit" => number(Some(reason.credit)),
            "low" => number(reason.interval.map(|(low, _)| low)),
            "high" => number(reason.interval.map(|(_, high)| high)),
            "target" => target.to_string(),
            _ => against.unwrap_or("the reference").to_string(),
        };
        // Values may hold braces themselves: what is filled in is not looked at again.
        let mut sentence = String::with_capacity(text.len() + 32);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            sentence.push_str(before);
            match after.split_once('}') {
                Some((name, after)) => {
                    sentence.push_str(&of(name));
                    rest = after;
                }
                None => rest = after,
            }
        }
        sentence + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_once_and_unknown_ones_refused() {
        let reason = Reason {
            column: "debt {value}".to_string(),
            value: "0.62".to_string(),
            counterpart: Some("0.31".to_string()),
            credit: -1.5,
            interval: None,
            tied: false,
            sentence: String::new(),
        };
        let template: Template =
            "{rank}) {column} is {value}, not {counterpart}: {credit} {low}".parse().unwrap();
        let filled = template.fill(2, &reason, "approved", None);
        assert_eq!(filled, "2) debt {value} is 0.62, not 0.31: -1.5000 -");
        for (wrong, named) in [("{colum}", "'colum'"), ("{column", "'{column'"), ("a}", "'}'"), ("{}", "''")]
        {
            let error = wrong.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("counterpart"), "{error}");
        }
    }
}
