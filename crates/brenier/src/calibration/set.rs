//! Are many inputs together ordinary for a flow?
//!
//! ```text
//! T = k (mean s - m)^T S^-1 (mean s - m)  ~  (1 + k / n) sum_i l_i z_i^2,   l the eigenvalues of S^-1 C
//! ```
//!
//! One input tells little where a change keeps it looking like data. The mean over `k` inputs tells more, for what is
//! particular to each of them averages out. By the central limit theorem `T` has the distribution above for `k` rows like
//! the `n` held-out ones, whose covariance is `C`; the share of draws from it that are at least as large is the answer.
//! It is advice and no verdict: inputs of a single class differ from all data together as well, and nothing is
//! wrong with them.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::matrix::eigenvalues_against;
use super::{Calibration, FLOOR, KEPT, NAMED};

/// The fewest inputs whose mean is looked at.
pub const FEWEST_TOGETHER: usize = 20;
/// The share of ordinary sets that are taken for unusual ones.
pub const RARE_SET: f64 = 0.01;
/// Draws from the distribution of ordinary sets.
const DRAWS: usize = 20_000;

/// How many inputs together stand among held-out rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetStanding {
    /// Inputs that were looked at.
    pub inputs: usize,
    /// The share of sets of held-out rows of this size that are as unusual or more.
    pub share: f64,
    /// What is furthest from ordinary in the mean, with by how many standard errors.
    pub furthest: Vec<(String, f64)>,
}

impl SetStanding {
    /// Whether held-out rows hardly have such a mean.
    pub fn is_rare(&self) -> bool {
        self.share <= RARE_SET
    }
}

impl Calibration {
    /// How inputs with these statistics stand together; nothing for fewer than [`FEWEST_TOGETHER`], and for statistics of
    /// another length or that are not finite: those are told one by one.
    pub fn standing_together(&self, rows: &[Vec<f32>], names: &[String]) -> Option<SetStanding> {
        let width = self.mean.len();
        let sound = |row: &Vec<f32>| row.len() == width && row.iter().all(|v| v.is_finite());
        if rows.len() < FEWEST_TOGETHER || !rows.iter().all(sound) {
            return None;
        }
        let count = rows.len() as f64;
        let gap: Vec<f64> = (0..width)
            .map(|j| rows.iter().map(|row| f64::from(row[j])).sum::<f64>() / count - f64::from(self.mean[j]))
            .collect();
        let found = count * self.factor()?.squared_length(&gap);
        let shrunk: Vec<f64> = self.covariance.iter().copied().map(f64::from).collect();
        let weights = eigenvalues_against(&self.plain_covariance(), &shrunk, width)?;
        let spread = 1.0 + count / self.rows as f64;
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut draw = || {
            let sum: f64 = weights
                .iter()
                .map(|weight| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    weight * z * z
                })
                .sum();
            spread * sum
        };
        let as_unusual = (0..DRAWS).filter(|_| draw() >= found).count();
        let error = (spread / count).sqrt();
        let mut far: Vec<(String, f64)> = gap
            .iter()
            .enumerate()
            .map(|(i, gap)| {
                let name = names.get(i).cloned().unwrap_or_else(|| format!("statistic {i}"));
                (name, gap / (self.deviation(i) * error))
            })
            .collect();
        far.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        far.truncate(NAMED);
        Some(SetStanding {
            inputs: rows.len(),
            share: (1 + as_unusual) as f64 / (DRAWS + 1) as f64,
            furthest: far,
        })
    }

    /// The covariance of the rows, without what was put in so that it has an inverse; its upper triangle.
    fn plain_covariance(&self) -> Vec<f64> {
        let mut values = self.covariance.iter().copied().map(f64::from);
        let mut plain = Vec::with_capacity(self.covariance.len());
        for i in 0..self.mean.len() {
            for j in i..self.mean.len() {
                let value = values.next().unwrap_or(0.0);
                plain.push(if i == j { (value - FLOOR * FLOOR).max(0.0) } else { value / KEPT });
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calibration, rows};

    fn narrow(rows: &[Vec<f64>]) -> Vec<Vec<f32>> {
        rows.iter().map(|row| row.iter().map(|v| *v as f32).collect()).collect()
    }

    #[test]
    fn ordinary_sets_alarm_as_often_as_promised_and_moved_ones_do() {
        let known = calibration(1000);
        let all = narrow(&rows(30 * 1000, 0.0, 4));
        let alarms =
            all.chunks(30).filter(|set| known.standing_together(set, &[]).unwrap().is_rare()).count();
        // 1 % of 1,000 sets; a statistic is a normal number cubed, so that tails are heavy.
        assert!((2..=30).contains(&alarms), "{alarms}");
        // A tenth of what one input shows.
        let moved = narrow(&rows(40, 0.3, 5));
        assert!(known.standing_together(&moved, &[]).unwrap().is_rare());
    }

    #[test]
    fn few_inputs_and_broken_ones_are_not_judged_together() {
        let known = calibration(100);
        assert!(known.standing_together(&narrow(&rows(19, 0.0, 4)), &[]).is_none());
        let mut broken = narrow(&rows(30, 0.0, 4));
        broken[3][1] = f32::NAN;
        assert!(known.standing_together(&broken, &[]).is_none());
    }
}
