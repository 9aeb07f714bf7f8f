//! Which coalitions KernelSHAP asks for: the sizes that weigh most in full, pairs drawn from the others.
//!
//! ```text
//! weight of all coalitions of sizes s and M - s:   W_s  ~  1 / (s (M - s)),     sum_s W_s = 1
//! ```
//!
//! Coalitions of one group, or of all but one, weigh most and are few, so they are enumerated; then those of two,
//! and so on while the budget would on average draw each of them at least once. This is the shap package's order.
//! From the sizes that are left, a coalition is drawn with its complement: what the one overestimates the other
//! underestimates. Coalitions that are drawn again are counted, not asked for again.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

/// How often the budget may be drawn in search of coalitions that are new.
const PATIENCE: usize = 4;

/// The coalitions of a run.
pub(super) struct Plan {
    groups: usize,
    /// `W_s` for sizes 1, 2, ..; together with their complements they are all sizes.
    weights: Vec<f64>,
    /// How many of those sizes are enumerated.
    full: usize,
    /// Pairs to draw from the other sizes.
    pairs: usize,
}

/// A coalition and its complement.
pub(super) struct Pair {
    pub members: Vec<bool>,
    /// How often the pair was drawn.
    pub draws: usize,
}

impl Pair {
    /// The other side of the pair.
    pub(super) fn complement(&self) -> Vec<bool> {
        self.members.iter().map(|member| !member).collect()
    }
}

impl Plan {
    /// At most `budget` coalitions of at least two groups.
    pub(super) fn new(groups: usize, budget: usize) -> Plan {
        let sizes = groups / 2;
        let m = groups as f64;
        let raw = (1..=sizes).map(|s| {
            let share = 1.0 / (s as f64 * (m - s as f64));
            if 2 * s == groups { share } else { 2.0 * share }
        });
        let raw: Vec<f64> = raw.collect();
        let total: f64 = raw.iter().sum();
        let mut plan = Plan { groups, weights: raw.iter().map(|w| w / total).collect(), full: 0, pairs: 0 };
        let mut left = budget as f64;
        while plan.full < sizes {
            let (share, count) = (plan.weights[plan.full] / plan.weight_left(), plan.count(plan.full + 1));
            if left * share < count * (1.0 - 1e-8) {
                break;
            }
            left -= count;
            plan.full += 1;
        }
        if plan.full < sizes {
            plan.pairs = (left / 2.0) as usize;
        }
        plan
    }

    /// The number of coalitions of size `s` or `M - s`.
    fn count(&self, s: usize) -> f64 {
        let one = (0..s).map(|i| (self.groups - i) as f64 / (i + 1) as f64).product::<f64>().round();
        if 2 * s == self.groups { one } else { 2.0 * one }
    }

    /// The weight of the sizes that are not enumerated.
    fn weight_left(&self) -> f64 {
        self.weights[self.full..].iter().sum()
    }

    /// How many coalitions are enumerated.
    pub(super) fn enumerated_count(&self) -> usize {
        (1..=self.full).map(|s| self.count(s) as usize).sum()
    }

    /// How many coalitions are asked for, at most.
    pub(super) fn count_all(&self) -> usize {
        self.enumerated_count() + 2 * self.pairs
    }

    /// The enumerated coalitions with their weights, one after the other.
    pub(super) fn enumerated(&self) -> impl Iterator<Item = (Vec<bool>, f64)> + '_ {
        (1..=self.full).flat_map(move |s| {
            let weight = self.weights[s - 1] / self.count(s);
            let sides: &[bool] = if 2 * s == self.groups { &[true] } else { &[true, false] };
            Subsets::new(self.groups, s).flat_map(move |subset| {
                sides.iter().map(move |&side| (subset.iter().map(|&z| z == side).collect(), weight))
            })
        })
    }

    /// Draws pairs of coalitions until as many different ones are found as the budget has room for.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<Pair> {
        let mut places: BTreeMap<Vec<bool>, usize> = BTreeMap::new();
        let mut pairs: Vec<Pair> = Vec::new();
        for _ in 0..self.pairs.saturating_mul(PATIENCE) {
            if pairs.len() == self.pairs {
                break;
            }
            let mut members = vec![false; self.groups];
            let size = self.draw_size(rng);
            sample(rng, self.groups, size).iter().for_each(|i| members[i] = true);
            // Both halves have the same size: one name for the pair.
            if 2 * size == self.groups && !members[0] {
                members.iter_mut().for_each(|member| *member = !*member);
            }
            let place = *places.entry(members.clone()).or_insert(pairs.len());
            match pairs.get_mut(place) {
                Some(pair) => pair.draws += 1,
                None => pairs.push(Pair { members, draws: 1 }),
            }
        }
        pairs
    }

    /// The weight of each side of a pair, a draw.
    pub(super) fn weight_of_a_draw(&self, pairs: &[Pair]) -> f64 {
        let draws: usize = pairs.iter().map(|pair| pair.draws).sum();
        self.weight_left() / (2 * draws.max(1)) as f64
    }

    fn draw_size(&self, rng: &mut ChaCha8Rng) -> usize {
        let mut point = rng.random::<f64>() * self.weight_left();
        for s in self.full..self.weights.len() {
            point -= self.weights[s];
            if point < 0.0 {
                return s + 1;
            }
        }
        self.weights.len()
    }
}

/// All subsets of a size, in lexicographic order of their members.
struct Subsets {
    groups: usize,
    next: Option<Vec<usize>>,
}

impl Subsets {
    fn new(groups: usize, size: usize) -> Subsets {
        Subsets { groups, next: Some((0..size).collect()) }
    }
}

impl Iterator for Subsets {
    type Item = Vec<bool>;

    fn next(&mut self) -> Option<Vec<bool>> {
        let mut members = self.next.take()?;
        let mut subset = vec![false; self.groups];
        members.iter().for_each(|&i| subset[i] = true);
        // The last member that can move up; those after it follow close behind.
        let size = members.len();
        if let Some(i) = (0..size).rev().find(|&i| members[i] < self.groups - size + i) {
            let start = members[i] + 1;
            (i..size).for_each(|j| members[j] = start + j - i);
            self.next = Some(members);
        }
        Some(subset)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    #[test]
    fn enough_budget_enumerates_every_coalition_once_with_the_shapley_kernel() {
        for groups in 2..9 {
            let plan = Plan::new(groups, usize::MAX);
            let all: Vec<_> = plan.enumerated().collect();
            let distinct: BTreeSet<_> = all.iter().map(|(coalition, _)| coalition.clone()).collect();
            assert_eq!((all.len(), distinct.len()), ((1 << groups) - 2, (1 << groups) - 2));
            assert_eq!(plan.enumerated_count(), all.len());
            assert!((all.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
            // w(S) C(M, s) s (M - s) is the same for all.
            let scaled = all.iter().map(|(coalition, weight)| {
                let s = coalition.iter().filter(|z| **z).count();
                let choose: f64 = (0..s).map(|i| (groups - i) as f64 / (i + 1) as f64).product();
                weight * choose * (s * (groups - s)) as f64
            });
            let scaled: Vec<f64> = scaled.collect();
            assert!(scaled.iter().all(|w| (w - scaled[0]).abs() < 1e-12));
        }
    }

    #[test]
    fn a_small_budget_enumerates_the_ends_and_draws_the_middle() {
        // 10 groups: 20 coalitions of size 1 or 9, 90 of size 2 or 8; the kernel gives size 1 about 39 %.
        let plan = Plan::new(10, 100);
        assert_eq!((plan.full, plan.enumerated_count(), plan.pairs), (1, 20, 40));
        let pairs = plan.draw(&mut ChaCha8Rng::seed_from_u64(1));
        assert_eq!(pairs.len(), 40);
        for pair in &pairs {
            let size = pair.members.iter().filter(|z| **z).count();
            assert!((2..=5).contains(&size) && (size < 5 || pair.members[0]));
        }
        let weight = plan.weight_of_a_draw(&pairs) * 2.0 * pairs.iter().map(|p| p.draws as f64).sum::<f64>();
        let enumerated: f64 = plan.enumerated().map(|(_, weight)| weight).sum();
        assert!((weight + enumerated - 1.0).abs() < 1e-12);
    }

    #[test]
    fn sizes_are_drawn_by_their_weight() {
        let plan = Plan { full: 0, ..Plan::new(6, 4) };
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut counts = [0.0; 3];
        (0..60_000).for_each(|_| counts[plan.draw_size(&mut rng) - 1] += 1.0 / 60_000.0);
        // 2/5 : 2/8 : 1/9, four standard errors.
        let expected = [2.0 / 5.0, 2.0 / 8.0, 1.0 / 9.0].map(|w| w / (2.0 / 5.0 + 2.0 / 8.0 + 1.0 / 9.0));
        assert!(counts.iter().zip(expected).all(|(c, e): (&f64, f64)| (c - e).abs() < 0.009), "{counts:?}");
    }
}
