//! Random subsets of the input replaced: what credit says is lost, against what the score loses.
//!
//! ```text
//! for draws S of a fraction of the units:   a = sum_{i in S} Phi_i,     d = f(x) - f(x with r on S)
//! ```
//!
//! For a method whose numbers are sensitivities, `a = sum_{i in S} (x_i - r_i) Phi_i`, which is what they say of
//! this change to first order. Infidelity and faithfulness correlation are two summaries of the pairs (a, d).

use ndarray::Array1;
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::replacement::replacements;
use super::row_stream::RowStream;
use super::{Cases, MetricSettings, Units};
use crate::attribute::{Baseline, Key, Meaning, generator};
use crate::{Error, Result};

/// The draw whose row is the input itself.
const WHOLE: usize = usize::MAX;

/// Which subsets are replaced, and by what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Subsets {
    /// The number of subsets.
    pub samples: usize,
    /// The fraction of the units that a subset holds, above 0 and at most 1; a subset has at least one unit.
    pub fraction: f64,
    /// What replaces them.
    pub replacement: Baseline,
    /// What is replaced together.
    pub units: Units,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Subsets {
    /// 100 subsets of a fifth of the pixels, replaced by zeros.
    fn default() -> Self {
        Self { samples: 100, fraction: 0.2, replacement: Baseline::Zero, units: Units::Pixels, seed: 0 }
    }
}

impl Subsets {
    /// Subsets with what is given.
    pub(super) fn of(settings: &MetricSettings) -> Subsets {
        let default = Subsets::default();
        let samples = settings.samples.unwrap_or(default.samples);
        let units = settings.units.clone().unwrap_or_default();
        Subsets { samples, units, seed: settings.seed, ..default }
    }

    /// The pairs (a, d) of each example, in the order of the draws.
    pub(super) fn pairs(&self, cases: &Cases) -> Result<Vec<Vec<(f64, f64)>>> {
        if self.samples == 0 {
            return Err(Error::Zero { what: "the number of subsets" });
        }
        if !(self.fraction > 0.0 && self.fraction <= 1.0) {
            return Err(Error::Setting {
                name: "the fraction of a subset",
                value: self.fraction.to_string(),
                needs: "it is above 0 and at most 1",
                hint: "0.2 is the default".into(),
            });
        }
        let replaced = replacements(&self.replacement, cases, self.seed)?;
        // Until the score of the input is known, the second number is the score itself.
        let mut pairs = vec![vec![(0.0, 0.0); self.samples]; cases.len()];
        let mut scores = vec![0.0; cases.len()];
        let mut stream =
            RowStream::new(cases.score, |(example, draw, credit): (usize, usize, f64), score| {
                if draw == WHOLE {
                    scores[example] = score;
                } else {
                    pairs[example][draw] = (credit, score);
                }
            });
        for example in 0..cases.len() {
            let number = cases.context.first_example + example;
            let (input, other) = (cases.inputs.row(example), replaced.row(example));
            let credit: Array1<f64> = match cases.meaning {
                Meaning::Credit => cases.values.row(example).to_owned(),
                Meaning::Sensitivity => &cases.values.row(example) * &(&input - &other),
            };
            let (key, groups) = (Key::of(input), self.units.of(cases.shape(), input)?);
            let size = ((self.fraction * groups.count() as f64).round() as usize).clamp(1, groups.count());
            stream.push(input, cases.targets[example], number, (example, WHOLE, 0.0))?;
            for draw in 0..self.samples {
                let mut state = input.to_owned();
                let mut sum = 0.0;
                for unit in sample(&mut generator(self.seed, key, draw), groups.count(), size) {
                    for &feature in groups.members(unit) {
                        state[feature] = other[feature];
                        sum += credit[feature];
                    }
                }
                stream.push(state.view(), cases.targets[example], number, (example, draw, sum))?;
            }
        }
        stream.finish()?;
        for (pairs, whole) in pairs.iter_mut().zip(scores) {
            pairs.iter_mut().for_each(|pair| pair.1 = whole - pair.1);
        }
        Ok(pairs)
    }
}
