//! What is ordinary for a flow, so that an input can be held against it.
//!
//! ```text
//! s = statistics of a trace;   d(s) = (s - m)^T S^-1 (s - m);   p = (1 + number of held-out rows with d_i >= d(s)) / (n + 1)
//! ```
//!
//! A flow leads every input somewhere, and where it leads one that it does not understand looks like noise to the eye
//! and to its norm. What tells them apart is how the traces of rows that it was not trained on look: the
//! [statistics](trace_statistics) of these rows are kept with the flow. An input like them has a `p` below 0.03 in three of
//! a hundred cases, whatever the statistics are (conformal prediction; Vovk, Gammerman and Shafer, 2005). For that the
//! scores `d_i` of the held-out rows are cross-fitted: each is measured by a mean and a covariance that did not see it.
//!
//! Beside that a calibration says whether the flow itself is any good ([`FlowQuality`]), and of which flow it speaks: the
//! [fingerprint](Calibration::identity) of graph, weights and scaling. A flow that was changed since is not calibrated.

mod matrix;
mod quality;
mod set;
mod statistics;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use self::matrix::Factor;
pub use self::quality::FlowQuality;
pub use self::set::{FEWEST_TOGETHER, RARE_SET, SetStanding};
pub use self::statistics::{SPEEDS, Seen, statistic_names, trace_statistics};
use crate::error::{Error, Result};

/// The fewest held-out rows that a flow is calibrated by.
pub const FEWEST_ROWS: usize = 60;
/// The share of ordinary inputs that are taken for unusual ones.
pub const RARE: f64 = 0.03;
/// Parts of the rows for cross-fitting.
const FOLDS: usize = 10;
/// How much of the covariance between different statistics is kept.
const KEPT: f64 = 0.9;
/// A deviation that every statistic has at the least.
const FLOOR: f64 = 0.01;
/// Statistics that are named in a certificate.
const NAMED: usize = 3;

/// What is ordinary for a flow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Calibration {
    /// The fingerprint of the flow that was calibrated.
    pub identity: String,
    /// The fingerprint of the rows.
    pub data: String,
    /// Number of rows.
    pub rows: usize,
    /// The flow itself.
    pub quality: FlowQuality,
    mean: Vec<f32>,
    /// The upper triangle, row by row.
    covariance: Vec<f32>,
    /// What the rows themselves have, ascending.
    scores: Vec<f32>,
    #[serde(skip)]
    factor: OnceLock<Option<Factor>>,
}

impl PartialEq for Calibration {
    fn eq(&self, other: &Self) -> bool {
        let of = |c: &Self| (c.identity.clone(), c.data.clone(), c.scores.clone());
        of(self) == of(other)
    }
}

/// How the trace of an input stands among those of held-out rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The share of held-out rows that are as unusual or more.
    pub share: f64,
    /// What is furthest from ordinary, with by how many standard deviations.
    pub furthest: Vec<(String, f64)>,
    /// The statistics themselves, by which many inputs are looked at together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statistics: Vec<f32>,
}

/// What a flow's calibration says of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ordinary {
    /// There is none, or one of another flow.
    NotCalibrated {
        /// Why, in words.
        reason: String,
    },
    /// There is one.
    Calibrated {
        /// The trace among those of held-out rows.
        standing: Standing,
        /// The flow itself.
        quality: FlowQuality,
    },
}

/// By what the traces of a field are judged.
#[derive(Debug, Clone, Copy)]
pub enum Standard<'a> {
    /// It is a formula, and does what it says: references are judged by the distribution that they should have.
    Exact,
    /// It was learned, and nobody has looked at it, for this reason.
    Missing(&'a str),
    /// It was learned, and this is how it treats held-out rows.
    Calibrated(&'a Calibration),
}

impl Calibration {
    /// From the statistics of held-out rows, a list for each row.
    ///
    /// # Errors
    /// Fewer than [`FEWEST_ROWS`] rows.
    pub fn new(
        statistics: &[Vec<f64>],
        quality: FlowQuality,
        (identity, data): (String, String),
    ) -> Result<Self> {
        let sound: Vec<&[f64]> =
            statistics.iter().map(Vec::as_slice).filter(|row| row.iter().all(|v| v.is_finite())).collect();
        if sound.len() < FEWEST_ROWS {
            return Err(Error::Setting {
                name: "the number of rows to calibrate by",
                value: sound.len().to_string(),
                needs: "a calibration needs at least 60 rows with finite traces",
                hint: "give more rows that the flow was not trained on: 200 are good, 1,000 better".into(),
            });
        }
        let mut scores = Vec::with_capacity(sound.len());
        for fold in 0..FOLDS {
            let others: Vec<&[f64]> = part(&sound, |i| i % FOLDS != fold);
            let (mean, covariance) = moments(&others);
            let factor = Factor::of(&covariance, mean.len());
            for row in part(&sound, |i| i % FOLDS == fold) {
                scores.push(narrow(score(factor.as_ref(), &mean, row)));
            }
        }
        scores.sort_by(f32::total_cmp);
        let (mean, covariance) = moments(&sound);
        Ok(Self {
            identity,
            data,
            rows: sound.len(),
            quality,
            mean: mean.into_iter().map(narrow).collect(),
            covariance: covariance.into_iter().map(narrow).collect(),
            scores,
            factor: OnceLock::new(),
        })
    }

    /// How the trace with these statistics stands among those of the held-out rows. Names are those of the statistics.
    pub fn standing(&self, statistics: &[f64], names: &[String]) -> Standing {
        let mean: Vec<f64> = self.mean.iter().copied().map(f64::from).collect();
        if statistics.len() != mean.len() || statistics.iter().any(|v| !v.is_finite()) {
            return Standing {
                share: 0.0,
                furthest: Vec::new(),
                statistics: statistics.iter().copied().map(narrow).collect(),
            };
        }
        let found = narrow(score(self.factor(), &mean, statistics));
        let as_unusual = self.scores.iter().filter(|&&known| known >= found).count();
        let share = (1 + as_unusual) as f64 / (self.scores.len() + 1) as f64;
        let mut far: Vec<(String, f64)> = statistics
            .iter()
            .zip(&mean)
            .enumerate()
            .map(|(i, (value, mean))| {
                let name = names.get(i).cloned().unwrap_or_else(|| format!("statistic {i}"));
                (name, (value - mean) / self.deviation(i))
            })
            .collect();
        far.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        far.truncate(NAMED);
        Standing { share, furthest: far, statistics: statistics.iter().copied().map(narrow).collect() }
    }

    fn factor(&self) -> Option<&Factor> {
        let make = || {
            let wide: Vec<f64> = self.covariance.iter().copied().map(f64::from).collect();
            Factor::of(&wide, self.mean.len())
        };
        self.factor.get_or_init(make).as_ref()
    }

    fn deviation(&self, i: usize) -> f64 {
        let n = self.mean.len();
        let place = i * n - (i * i - i) / 2;
        self.covariance.get(place).map_or(1.0, |&variance| f64::from(variance).sqrt()).max(f64::MIN_POSITIVE)
    }
}

impl Standing {
    /// Whether the trace is one that held-out rows hardly have.
    pub fn is_rare(&self) -> bool {
        self.share <= RARE
    }

    /// What is unusual, in words.
    pub fn in_words(&self) -> String {
        let most = self.furthest.first().map_or(String::new(), |(name, z)| {
            let side = if *z < 0.0 { "below" } else { "above" };
            format!(" ({name}: {:.1} standard deviations {side} what is usual)", z.abs())
        });
        format!("{:.1} of 100 held-out inputs are as unusual as this one{most}", 100.0 * self.share)
    }
}

/// Numbers are kept in 32 bits; scores are compared as they are kept.
fn narrow(value: f64) -> f32 {
    value as f32
}

fn part<'a>(rows: &[&'a [f64]], wanted: impl Fn(usize) -> bool) -> Vec<&'a [f64]> {
    rows.iter().enumerate().filter(|(i, _)| wanted(*i)).map(|(_, row)| *row).collect()
}

/// Mean, and the covariance with less between different statistics, its upper triangle.
fn moments(rows: &[&[f64]]) -> (Vec<f64>, Vec<f64>) {
    let (count, width) = (rows.len() as f64, rows.first().map_or(0, |row| row.len()));
    let mean: Vec<f64> = (0..width).map(|j| rows.iter().map(|row| row[j]).sum::<f64>() / count).collect();
    let mut covariance = Vec::with_capacity(width * (width + 1) / 2);
    for j in 0..width {
        for k in j..width {
            let sum: f64 = rows.iter().map(|row| (row[j] - mean[j]) * (row[k] - mean[k])).sum();
            let value = sum / (count - 1.0).max(1.0);
            covariance.push(if j == k { value + FLOOR * FLOOR } else { KEPT * value });
        }
    }
    (mean, covariance)
}

/// How far a row is from the mean; infinite where the covariance has no inverse.
fn score(factor: Option<&Factor>, mean: &[f64], row: &[f64]) -> f64 {
    let gap: Vec<f64> = row.iter().zip(mean).map(|(value, mean)| value - mean).collect();
    factor.map_or(f64::INFINITY, |factor| factor.squared_length(&gap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// Rows with correlated statistics of very different sizes.
    pub(super) fn rows(count: usize, shift: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
        (0..count)
            .map(|_| {
                let (a, b, c) = (draw(), draw(), draw());
                vec![a, 0.8 * a + 0.2 * b + shift, 100.0 * c, b.powi(3)]
            })
            .collect()
    }

    pub(super) fn calibration(count: usize) -> Calibration {
        let quality = FlowQuality::default();
        Calibration::new(&rows(count, 0.0, 1), quality, ("flow".into(), "rows".into())).unwrap()
    }

    fn rare(calibration: &Calibration, rows: &[Vec<f64>]) -> f64 {
        let rare = rows.iter().filter(|row| calibration.standing(row, &[]).is_rare());
        rare.count() as f64 / rows.len() as f64
    }

    #[test]
    fn ordinary_rows_warn_as_often_as_promised_and_moved_ones_do() {
        let known = calibration(1000);
        let share = rare(&known, &rows(4000, 0.0, 2));
        // Four standard errors of 1,000 calibration rows and of 4,000 fresh ones.
        assert!(
            (share - RARE).abs() < 4.0 * (0.03_f64 * 0.97 * (1.0 / 1000.0 + 1.0 / 4000.0)).sqrt(),
            "{share}"
        );
        // The second statistic alone is 1.5 of its deviations off: against the first it is impossible.
        assert!(rare(&known, &rows(200, 1.5, 3)) > 0.99);
    }

    #[test]
    fn what_is_not_a_number_or_of_another_length_is_never_ordinary() {
        let known = calibration(100);
        for row in [vec![f64::NAN, 0.0, 0.0, 0.0], vec![0.0; 3]] {
            assert!(known.standing(&row, &[]).is_rare());
        }
    }

    #[test]
    fn the_furthest_statistic_is_named_with_its_deviations() {
        let known = calibration(1000);
        let names: Vec<String> = ["a", "b", "size", "d"].map(String::from).to_vec();
        let standing = known.standing(&[0.0, 0.0, -500.0, 0.0], &names);
        assert!(standing.is_rare() && standing.furthest[0].0 == "size", "{standing:?}");
        assert!((standing.furthest[0].1 + 5.0).abs() < 0.4, "{standing:?}");
        assert!(standing.in_words().contains("size: "), "{}", standing.in_words());
    }

    #[test]
    fn few_rows_are_refused_and_a_kept_calibration_says_the_same() {
        let few = Calibration::new(&rows(59, 0.0, 1), FlowQuality::default(), Default::default());
        assert!(few.unwrap_err().to_string().contains("59"));
        let known = calibration(100);
        let kept: Calibration = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        for row in rows(20, 0.5, 9) {
            assert_eq!(kept.standing(&row, &[]), known.standing(&row, &[]));
        }
    }
}
