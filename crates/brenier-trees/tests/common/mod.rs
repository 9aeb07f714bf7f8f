//! Random ensembles, and the truth by brute force.

use brenier_trees::{Branch, Description, Ensemble, Link, Test, Tree};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Features that are numbers; those after them are categories.
pub(crate) const NUMBERS: usize = 4;
pub(crate) const FEATURES: usize = 6;

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Which kinds of questions a random ensemble asks.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    pub(crate) categories: bool,
    pub(crate) missing: bool,
    /// Thresholds on a coarse grid, so that features pass together.
    pub(crate) ties: bool,
}

/// An ensemble with `raw` outputs whose leaves vote for one or two of them.
pub(crate) fn ensemble(
    seed: u64,
    trees: usize,
    depth: u32,
    raw: usize,
    kinds: Kinds,
    link: Link,
) -> Ensemble {
    let mut rng = rng(seed);
    let trees = (0..trees)
        .map(|_| {
            let mut tree = Tree::default();
            grow(&mut tree, &mut rng, depth, raw, kinds, 1.0);
            tree
        })
        .collect();
    let base = (0..raw).map(|_| rng.random_range(-1.0..1.0)).collect();
    let single = rng.random::<bool>();
    let description =
        Description { features: FEATURES, raw, trees, base, link, single, ..Description::default() };
    Ensemble::new(description).unwrap()
}

/// The first tree of an ensemble of this seed, and its base value, as it was written down.
pub(crate) fn tree(seed: u64, depth: u32, raw: usize, kinds: Kinds) -> Tree {
    let mut tree = Tree::default();
    grow(&mut tree, &mut rng(seed), depth, raw, kinds, 1.0);
    tree
}

/// What a tree gives on average where only the features of a coalition are known and the cover decides for others.
pub(crate) fn expectation(tree: &Tree, at: usize, row: &[f64], coalition: u32) -> f64 {
    match &tree.nodes[at] {
        Branch::Leaf { votes } => votes.iter().map(|vote| vote.1).sum(),
        Branch::Split { feature, test, yes, no, missing_yes, zero_is_missing } => {
            let below = |child: usize| expectation(tree, child, row, coalition);
            if coalition & (1 << feature) == 0 {
                return (tree.cover[*yes] * below(*yes) + tree.cover[*no] * below(*no)) / tree.cover[at];
            }
            let x = row[*feature];
            let answer = match test {
                _ if x.is_nan() || (*zero_is_missing && x == 0.0) => *missing_yes,
                Test::AtMost(value) => x <= *value,
                Test::Below(value) => x < *value,
                Test::OneOf { values, .. } => values.contains(&x),
            };
            below(if answer { *yes } else { *no })
        }
    }
}

fn grow(tree: &mut Tree, rng: &mut ChaCha8Rng, depth: u32, raw: usize, kinds: Kinds, cover: f64) -> usize {
    let here = tree.nodes.len();
    tree.cover.push(cover);
    if depth == 0 || rng.random::<f64>() < 0.1 {
        let mut votes = vec![(rng.random_range(0..raw), rng.random_range(-1.0..1.0))];
        if rng.random::<bool>() {
            votes.push((rng.random_range(0..raw), rng.random_range(-1.0..1.0)));
        }
        tree.nodes.push(Branch::Leaf { votes });
        return here;
    }
    tree.nodes.push(Branch::leaf(0.0));
    let feature = rng.random_range(0..if kinds.categories { FEATURES } else { NUMBERS });
    let test = if feature >= NUMBERS {
        let values = (0..4).filter(|_| rng.random::<bool>()).map(f64::from).collect();
        Test::OneOf { values, whole: rng.random::<bool>() }
    } else {
        let value =
            if kinds.ties { f64::from(rng.random_range(-2..3)) * 0.5 } else { rng.random_range(-1.5..1.5) };
        if rng.random::<bool>() { Test::AtMost(value) } else { Test::Below(value) }
    };
    let (missing_yes, zero_is_missing) =
        (rng.random::<bool>(), kinds.missing && feature == 0 && rng.random::<bool>());
    let part = rng.random_range(0.1..0.9);
    let yes = grow(tree, rng, depth - 1, raw, kinds, cover * part);
    let no = grow(tree, rng, depth - 1, raw, kinds, cover * (1.0 - part));
    tree.nodes[here] = Branch::Split { feature, test, yes, no, missing_yes, zero_is_missing };
    here
}

/// Random rows that fit such an ensemble.
pub(crate) fn rows(seed: u64, count: usize, kinds: Kinds) -> Vec<f64> {
    let mut rng = rng(seed);
    let mut rows = Vec::with_capacity(count * FEATURES);
    for _ in 0..count {
        for feature in 0..FEATURES {
            rows.push(if feature >= NUMBERS {
                f64::from(rng.random_range(0..5))
            } else if kinds.missing && rng.random::<f64>() < 0.2 {
                if rng.random::<bool>() { f64::NAN } else { 0.0 }
            } else if kinds.ties {
                f64::from(rng.random_range(-2..3)) * 0.75
            } else {
                rng.random_range(-2.0..2.0)
            });
        }
    }
    rows
}

/// Shapley values of any game of as many players, by its definition.
pub(crate) fn shapley(players: usize, game: impl Fn(u32) -> f64) -> Vec<f64> {
    let values: Vec<f64> = (0..1_u32 << players).map(game).collect();
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    let all = factorial(players as u32);
    (0..players)
        .map(|i| {
            let without = (0..1_u32 << players).filter(|s| s & (1 << i) == 0);
            without
                .map(|s| {
                    let size = s.count_ones();
                    let weight = factorial(size) * factorial(players as u32 - size - 1) / all;
                    weight * (values[(s | 1 << i) as usize] - values[s as usize])
                })
                .sum()
        })
        .collect()
}
