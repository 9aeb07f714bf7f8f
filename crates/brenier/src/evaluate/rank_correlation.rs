//! Rank correlation across seeds: whether features keep their order. Higher is better, from -1 to 1.
//!
//! ```text
//! rho = corr(rank a, rank b)          Spearman's: Pearson's correlation of ranks, equal values share their mean rank
//! ```
//!
//! The mean over all pairs of seeds. It does not see the size of credit, so the many features with hardly any
//! weigh as much as the few that matter. Not defined for a map that is the same everywhere.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Channels, Comparable, Direction};
use crate::Result;

/// Rank correlation across seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RankCorrelation {
    /// How channels become one map; where not given, features are ranked as they are, each channel for itself.
    pub channels: Option<Channels>,
}

impl RankCorrelation {
    /// The metric's name.
    pub const NAME: &'static str = "rank-correlation";

    /// The mean correlation over all pairs of seeds, for each example.
    pub(super) fn scores(&self, cases: &Cases) -> Vec<Option<f64>> {
        let map = |values: ndarray::ArrayView1<f64>| match self.channels {
            Some(channels) => channels.map(values, cases.shape()).to_vec(),
            None => values.to_vec(),
        };
        let score = |example: usize| {
            let own = std::iter::once(map(cases.values.row(example)));
            let maps: Vec<_> = own.chain(cases.repeats.iter().map(|r| map(r.row(example)))).collect();
            mean_over_pairs(&maps, |a, b| spearman(a, b))
        };
        (0..cases.len()).map(score).collect()
    }
}

/// The mean over all pairs; none where it is not defined for one of them.
pub(super) fn mean_over_pairs<T>(items: &[T], measure: impl Fn(&T, &T) -> Option<f64>) -> Option<f64> {
    let pairs = (0..items.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
    let found: Option<Vec<f64>> = pairs.map(|(j, i)| measure(&items[j], &items[i])).collect();
    found.filter(|found| !found.is_empty()).map(|found| found.iter().sum::<f64>() / found.len() as f64)
}

/// Pearson's correlation of two lists of equal length; none where one of them does not vary.
pub fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.iter().all(|v| *v == a[0]) || b.iter().all(|v| *v == b[0]) {
        return None;
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let dot = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    let size = dot(a, ma, a, ma).sqrt() * dot(b, mb, b, mb).sqrt();
    (size > 0.0).then(|| (dot(a, ma, b, mb) / size).clamp(-1.0, 1.0))
}

/// Spearman's rank correlation of two lists of equal length, ties averaged; none where one of them does not vary.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    pearson(&ranks(a), &ranks(b))
}

/// The rank of each value, from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let shared = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&i| ranks[i] = shared);
        first += equal.len();
    }
    ranks
}

impl RankCorrelation {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &[],
        help: "rank correlation of features across seeds",
        needs: &[MetricNeed::Seeds],
        uses: &[MetricSetting::Channels],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| RankCorrelation { channels: settings.channels }.into(),
        page: MetricPage {
            formula: r"Spearman's $\rho$ of features, mean over pairs of seeds",
            range: "−1 to 1",
            says: "other seeds give the same map",
            does_not_say: "that the map is right: a constant answer is stable",
        },
    }];
}

impl Measure for RankCorrelation {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(self.scores(cases))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_correlations_in_closed_form() {
        assert_eq!(ranks(&[3.0, -0.0, 3.0, 0.0, 9.0]), [3.5, 1.5, 3.5, 1.5, 5.0]);
        // 1 - 6 sum d^2 / (n (n^2 - 1)), d = 0 1 1 1 1.
        let rho = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 3.0, 2.0, 60.0, 40.0]).unwrap();
        assert!((rho - (1.0 - 6.0 * 4.0 / 120.0)).abs() < 1e-15, "{rho}");
        let growing: Vec<f64> = (0..9).map(|v| f64::from(v).exp()).collect();
        let falling: Vec<f64> = growing.iter().map(|v| 1.0 / v).collect();
        assert!((spearman(&growing, &falling).unwrap() + 1.0).abs() < 1e-15);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(pearson(&[], &[]), None);
        // One on a line, zero on a circle.
        let x = [1.0, 2.0, 4.0];
        assert!((pearson(&x, &x.map(|v| 3.0 - 2.0 * v)).unwrap() + 1.0).abs() < 1e-12);
        assert!(pearson(&[1.0, 0.0, -1.0, 0.0], &[0.0, 1.0, 0.0, -1.0]).unwrap().abs() < 1e-12);
        assert_eq!(pearson(&x, &[5.0; 3]), None);
    }

    #[test]
    fn pairs_are_averaged() {
        let found = mean_over_pairs(&[1.0, 2.0, 4.0], |a, b| Some(b - a));
        assert_eq!(found, Some((1.0 + 3.0 + 2.0) / 3.0));
        assert_eq!(mean_over_pairs(&[1.0], |a, b| Some(b - a)), None);
        assert_eq!(mean_over_pairs(&[1.0, 2.0], |_, _| None), None);
    }
}
