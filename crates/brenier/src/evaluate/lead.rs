//! Which method leads a column, and whether that can be told from chance.
//!
//! ```text
//! d_i = v_i(first) - v_i(other) over the examples that both have,     best if  |mean d| > t(n-1) sd / n^(1/2)  for every other
//! ```
//!
//! All methods explain the same examples, so differences are taken example by example: what makes an example easy or hard
//! for all methods alike falls out. Means that are near each other are called a tie, never a win. Some metrics rank no
//! methods at all; their specs say why ([`Comparable`]).

use serde::{Deserialize, Serialize};

use super::{Direction, Summary};
use crate::student::quantile;

/// Whether better numbers by a metric mean better methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparable {
    /// They do.
    Methods,
    /// The number grows with the size of a map: small maps win, whatever they show.
    SameScaleOnly,
    /// Some methods have the best number by the way they are made.
    NotByConstruction,
}

/// What can be said of the first of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "lead")]
pub enum Lead {
    /// It is better than every other method.
    Best(Margin),
    /// At least one other method cannot be told from it.
    Tie(Margin),
    /// The metric does not rank these methods.
    None {
        /// Why not, in words.
        reason: String,
    },
}

/// The first of a column beside the method that comes nearest to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// The method with the best mean.
    pub method: String,
    /// The other method whose paired difference is the least clear.
    pub over: String,
    /// How much better the first is, on average over examples that both have; positive is better.
    pub difference: f64,
    /// The 95 % interval of the difference, by Student's distribution.
    pub interval: (f64, f64),
    /// Examples that both have.
    pub n: usize,
}

impl Lead {
    /// Where the lead has not been looked into.
    pub fn unknown() -> Lead {
        Lead::None { reason: "methods were not compared example by example".to_string() }
    }

    /// The method that is better than all others, where there is one.
    pub fn best(&self) -> Option<&str> {
        match self {
            Lead::Best(margin) => Some(&margin.method),
            Lead::Tie(_) | Lead::None { .. } => None,
        }
    }

    /// Who leads a column: for each method its name and a number for each example.
    pub fn of(direction: Direction, comparable: Comparable, methods: &[(String, &[Option<f64>])]) -> Lead {
        let sign = match direction {
            Direction::Higher => 1.0,
            Direction::Lower => -1.0,
            Direction::Neither => return none("it describes methods, and ranks none"),
        };
        match comparable {
            Comparable::Methods => {}
            Comparable::SameScaleOnly => return none("it grows with the size of a map, so small maps win"),
            Comparable::NotByConstruction => {
                return none("some methods have the best number by construction");
            }
        }
        let mean = |scores: &[Option<f64>]| Some(sign * Summary::of(scores)?.mean);
        let measured: Vec<_> = methods.iter().filter_map(|(name, s)| Some((name, *s, mean(s)?))).collect();
        let Some(first) = measured.iter().max_by(|a, b| a.2.total_cmp(&b.2)) else {
            return none("no method has it");
        };
        let margins = measured.iter().filter(|other| other.0 != first.0).map(|other| {
            let gap = |(a, b): (&Option<f64>, &Option<f64>)| Some(sign * ((*a)? - (*b)?));
            let gaps: Vec<Option<f64>> = first.1.iter().zip(other.1).map(gap).collect();
            Margin::new(first.0, other.0, &gaps)
        });
        // A method without a common example cannot be told from the first: it makes a tie of no evidence.
        let margins: Option<Vec<Margin>> = margins.collect();
        match margins {
            None => none("two methods have no two examples in common"),
            Some(margins) => match margins.into_iter().min_by(|a, b| a.interval.0.total_cmp(&b.interval.0)) {
                None => none("only one method has it"),
                Some(nearest) if nearest.interval.0 > 0.0 => Lead::Best(nearest),
                Some(nearest) => Lead::Tie(nearest),
            },
        }
    }
}

impl Margin {
    fn new(method: &str, over: &str, gaps: &[Option<f64>]) -> Option<Margin> {
        let summary = Summary::of(gaps)?;
        let half = quantile(0.975, summary.n - 1) * summary.standard_error?;
        Some(Margin {
            method: method.to_string(),
            over: over.to_string(),
            difference: summary.mean,
            interval: (summary.mean - half, summary.mean + half),
            n: summary.n,
        })
    }
}

fn none(reason: &str) -> Lead {
    Lead::None { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(direction: Direction, methods: &[(&str, &[f64])]) -> Lead {
        let scores: Vec<(String, Vec<Option<f64>>)> = methods
            .iter()
            .map(|(name, scores)| (name.to_string(), scores.iter().copied().map(Some).collect()))
            .collect();
        let methods: Vec<_> = scores.iter().map(|(name, scores)| (name.clone(), scores.as_slice())).collect();
        Lead::of(direction, Comparable::Methods, &methods)
    }

    #[test]
    fn differences_are_paired() {
        // Examples differ by 100, methods by 1: unpaired intervals would overlap by far.
        let (a, b) = ([100.0, 200.0, 300.1, 400.0], [101.0, 201.1, 301.0, 401.0]);
        let Lead::Best(margin) = lead(Direction::Lower, &[("a", &a), ("b", &b)]) else { panic!("no lead") };
        assert_eq!((margin.method.as_str(), margin.over.as_str(), margin.n), ("a", "b", 4));
        assert!((margin.difference - 1.0).abs() < 1e-9);
        // Deviation of 1, 1.1, 0.9, 1; t(3) = 3.182446.
        let half = 3.182446305284263 * (0.02_f64 / 3.0).sqrt() / 2.0;
        assert!((margin.interval.0 - (1.0 - half)).abs() < 1e-9, "{margin:?}");
        assert_eq!(lead(Direction::Higher, &[("a", &a), ("b", &b)]).best(), Some("b"));
    }

    #[test]
    fn the_first_must_beat_every_other() {
        let (a, b, c) = ([3.0, 3.1, 2.9], [1.0, 1.1, 1.0], [2.9, 3.3, 2.7]);
        let found = lead(Direction::Higher, &[("b", &b), ("a", &a), ("c", &c)]);
        let Lead::Tie(margin) = found else { panic!("{found:?}") };
        assert_eq!((margin.method.as_str(), margin.over.as_str()), ("a", "c"));
        assert_eq!(lead(Direction::Higher, &[("b", &b), ("a", &a)]).best(), Some("a"));
        // Equal numbers never have one star between them.
        assert!(matches!(lead(Direction::Lower, &[("a", &a), ("b", &a)]), Lead::Tie(_)));
    }

    #[test]
    fn what_cannot_be_ranked_says_why() {
        let scores: &[Option<f64>] = &[Some(1.0), Some(2.0)];
        let other: &[Option<f64>] = &[None, Some(5.0)];
        let of = |comparable, methods: &[(String, &[Option<f64>])]| match Lead::of(
            Direction::Lower,
            comparable,
            methods,
        ) {
            Lead::None { reason } => reason,
            found => panic!("{found:?}"),
        };
        let (a, b) = (("a".to_string(), scores), ("b".to_string(), other));
        assert!(of(Comparable::SameScaleOnly, &[a.clone(), b.clone()]).contains("size of a map"));
        assert!(of(Comparable::NotByConstruction, &[a.clone(), b.clone()]).contains("by construction"));
        assert!(of(Comparable::Methods, &[a.clone(), b]).contains("no two examples in common"));
        assert!(of(Comparable::Methods, &[a]).contains("only one method"));
        assert!(of(Comparable::Methods, &[]).contains("no method"));
        assert!(matches!(lead(Direction::Neither, &[("a", &[1.0])]), Lead::None { .. }));
    }
}
