//! Scores of many rows.
//!
//! Rows go down a tree eight at a time: the loads of one row do not wait for those of another, and nothing depends on a
//! branch that a processor could guess wrongly. A block of rows goes through all trees before the next block, so that
//! its features stay in the cache. A row's sum runs from the first tree to the last, whatever the blocks and workers.

use rayon::prelude::*;

use crate::build::Aggregate;
use crate::ensemble::{Ensemble, LEAF, MISSING_LEFT};
use crate::error::Result;

/// Rows that go down a tree side by side.
const LANES: usize = 8;
/// Rows of a block.
const BLOCK: usize = 128;
/// Levels between looks whether all rows have arrived.
const LEVELS: usize = 4;

impl Ensemble {
    /// The outputs before the final activation: `rows` is `[n, features]`, the result `[n, outputs]`.
    ///
    /// # Errors
    /// Rows of another width.
    pub fn scores(&self, rows: &[f64]) -> Result<Vec<f64>> {
        let count = self.count(rows)?;
        let mut scores = vec![0.0; count * self.outputs()];
        let blocks =
            scores.par_chunks_mut(BLOCK * self.outputs()).zip(rows.par_chunks(BLOCK * self.features));
        blocks.for_each(|(scores, rows)| {
            let raw = self.raw_scores(rows);
            for (scores, raw) in scores.chunks_mut(self.outputs()).zip(raw.chunks(self.raw)) {
                for (score, column) in scores.iter_mut().zip(&self.columns) {
                    *score = column.offset + column.sign * raw[column.raw];
                }
            }
        });
        Ok(scores)
    }

    /// The outputs as the model gives them, after its final activation: `[n, outputs]`.
    ///
    /// # Errors
    /// Rows of another width.
    pub fn predictions(&self, rows: &[f64]) -> Result<Vec<f64>> {
        let mut scores = self.scores(rows)?;
        scores.chunks_mut(self.outputs().max(1)).for_each(|row| self.link.apply(row));
        Ok(scores)
    }

    /// The raw sums of a block of rows, base values included.
    pub(crate) fn raw_scores(&self, rows: &[f64]) -> Vec<f64> {
        let count = rows.len() / self.features;
        // Whole groups of lanes: what is missing is filled with rows of zeros and left out in the end.
        let lanes = count.next_multiple_of(LANES);
        let mut x: Vec<f64> = rows.iter().map(|&v| self.rounded(v)).collect();
        x.resize(lanes * self.features, 0.0);
        let mut sums = Sums::new(self, lanes);
        let whole = self.plain && !x.iter().any(|v| v.is_nan());
        let one_sum = self.raw == 1 && self.is_additive();
        for tree in 0..self.trees() {
            for group in 0..lanes / LANES {
                let x = &x[group * LANES * self.features..][..LANES * self.features];
                let ends = match (self.plain, whole) {
                    (true, true) => self.descend::<false>(tree, x),
                    (true, false) => self.descend::<true>(tree, x),
                    _ => std::array::from_fn(|lane| self.leaf(tree, &x[lane * self.features..])),
                };
                for (lane, &end) in ends.iter().enumerate() {
                    let row = group * LANES + lane;
                    if one_sum {
                        sums.values[row] += self.values[end as usize];
                    } else {
                        sums.add(self, row, end as usize);
                    }
                }
            }
        }
        sums.finished(self, count)
    }

    /// The leaves that a group of rows reaches, where all questions are `x <= t`.
    #[inline]
    fn descend<const MISSING: bool>(&self, tree: usize, x: &[f64]) -> [u32; LANES] {
        let root = self.roots[tree];
        // Numbers within the tree, so that one look at the slice is enough.
        let nodes = &self.nodes[self.tree(tree)];
        let mut at = [0_u32; LANES];
        let mut left = self.depths[tree] as usize;
        while left > 0 {
            for _ in 0..left.min(LEVELS) {
                for lane in 0..LANES {
                    let node = &nodes[at[lane] as usize];
                    let value = x[lane * self.features + node.feature as usize];
                    let right = if MISSING && value.is_nan() {
                        node.kind & MISSING_LEFT == 0
                    } else {
                        value > node.threshold
                    };
                    at[lane] = node.children[usize::from(right)] - root;
                }
            }
            left -= left.min(LEVELS);
            if left > 0 && at.iter().all(|&node| nodes[node as usize].kind & LEAF != 0) {
                break;
            }
        }
        at.map(|node| node + root)
    }

    /// The leaf that a row of rounded features reaches, whatever the questions.
    pub(crate) fn leaf(&self, tree: usize, x: &[f64]) -> u32 {
        let mut at = self.roots[tree];
        loop {
            let node = &self.nodes[at as usize];
            if node.kind & LEAF != 0 {
                return at;
            }
            at = node.children[self.side(node, x[node.feature as usize])];
        }
    }
}

/// Raw sums of rows as they grow.
struct Sums {
    values: Vec<f64>,
    /// Whether a smallest or largest vote has been seen; empty for sums.
    seen: Vec<bool>,
}

impl Sums {
    fn new(ensemble: &Ensemble, rows: usize) -> Sums {
        let cells = rows * ensemble.raw;
        let seen = if ensemble.is_additive() { Vec::new() } else { vec![false; cells] };
        Sums { values: vec![0.0; cells], seen }
    }

    #[inline]
    fn add(&mut self, ensemble: &Ensemble, row: usize, leaf: usize) {
        for &(sum, value) in ensemble.votes_of(leaf) {
            let cell = row * ensemble.raw + sum as usize;
            let known = &mut self.values[cell];
            match ensemble.aggregate {
                Aggregate::Sum | Aggregate::Average => *known += value,
                _ if !std::mem::replace(&mut self.seen[cell], true) => *known = value,
                Aggregate::Min => *known = known.min(value),
                Aggregate::Max => *known = known.max(value),
            }
        }
    }

    /// With the base values, of as many rows as there are.
    fn finished(mut self, ensemble: &Ensemble, count: usize) -> Vec<f64> {
        self.values.truncate(count * ensemble.raw);
        for row in self.values.chunks_mut(ensemble.raw.max(1)) {
            row.iter_mut().zip(&ensemble.base).for_each(|(value, base)| *value += base);
        }
        self.values
    }
}
