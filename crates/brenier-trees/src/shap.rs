//! Exact Shapley values of tree ensembles.
//!
//! Interventional, against rows of a background: absent features take the values of a background row, and the game is
//! averaged over the rows. Conditional, where no background is given: at a question about an absent feature the walk goes
//! both ways, weighted by the training data that went there (TreeSHAP's "path-dependent" values; they are Shapley values
//! of that game, and not of the model on any data).
//!
//! Both are sums over leaves of something that depends on a row through its pattern on the leaf's way alone
//! ([`Ways`]). So each leaf has a table, filled as patterns occur, and a row costs one look for each leaf, however many rows the
//! background has. Trees whose tables would be too large go row by row against each background row ([`Walk`]).

use std::num::NonZeroUsize;

use gauss_quad::GaussLegendre;
use rayon::prelude::*;

use crate::ensemble::Ensemble;
use crate::error::{Error, Result, expect};
use crate::link::Column;
use crate::walk::{Share, Walk, weights};
use crate::ways::{Ways, full};

/// Numbers in the tables of one tree.
const CELLS: usize = 1 << 20;
/// Rows that a worker takes at the least: tables are made for each part.
const ROWS: usize = 32;

impl Ensemble {
    /// Shapley values `[n, features]` of the outputs before their final activation, one output for each row, against the
    /// rows of a background. They sum to `f(x) - mean f(background)`.
    ///
    /// # Errors
    /// Rows of another width, no background, outputs that do not exist, ensembles that are not sums.
    pub fn shapley_values(&self, rows: &[f64], background: &[f64], outputs: &[usize]) -> Result<Vec<f64>> {
        if self.count(background)? == 0 {
            let reason = "a background without rows: give at least one";
            return Err(Error::Undefined { question: "an interventional Shapley value", reason });
        }
        let background: Vec<f64> = background.iter().map(|&v| self.rounded(v)).collect();
        let part = |rows: &[f64], columns: &[Column], credit: &mut [f64]| {
            for tree in 0..self.trees() {
                match Tables::of(self, tree) {
                    Some(mut tables) => {
                        let counts = tables.counts(self, &background);
                        let scale = self.features as f64 / background.len() as f64;
                        let fill = |leaf: &Leaf, pattern: u64, row: &mut [f64]| {
                            interventional(&counts[leaf.number], leaf.count, pattern, scale, row);
                        };
                        tables.add(self, rows, columns, credit, fill);
                    }
                    None => self.against_each(tree, rows, &background, columns, credit),
                }
            }
            Ok(())
        };
        self.in_parts(rows, outputs, "an interventional Shapley value", part)
    }

    /// Shapley values `[n, features]` of the outputs before their final activation where absent features follow the
    /// training data down the tree. They sum to `f(x)` minus [`Ensemble::conditional_mean`].
    ///
    /// # Errors
    /// As [`Ensemble::shapley_values`], and files that do not say how much training data went where.
    pub fn conditional_shapley_values(&self, rows: &[f64], outputs: &[usize]) -> Result<Vec<f64>> {
        self.covered()?;
        let part = |rows: &[f64], columns: &[Column], credit: &mut [f64]| {
            for tree in 0..self.trees() {
                let mut tables = Tables::of(self, tree)
                    .or_else(|| Tables::without_memory(self, tree))
                    .ok_or(Error::Undefined {
                        question: "a conditional Shapley value",
                        reason: "trees with more than 64 features on one way: give a background instead",
                    })?;
                let (cover, rules) = (std::mem::take(&mut tables.ways.cover), rules(tables.ways.most));
                let fill = |leaf: &Leaf, pattern: u64, row: &mut [f64]| {
                    conditional(&cover[leaf.first..][..leaf.count], &rules[leaf.count], pattern, row);
                };
                tables.add(self, rows, columns, credit, fill);
            }
            Ok(())
        };
        self.in_parts(rows, outputs, "a conditional Shapley value", part)
    }

    /// The mean of an output over the training data, as the nodes have counted it.
    ///
    /// # Errors
    /// As [`Ensemble::conditional_shapley_values`].
    pub fn conditional_mean(&self, output: usize) -> Result<f64> {
        self.covered()?;
        let column = self.column(output)?;
        let mut sum = self.base[column.raw];
        for tree in 0..self.trees() {
            let range = self.tree(tree);
            let mut reach = vec![1.0; range.len()];
            for at in range.clone() {
                let (node, here) = (&self.nodes[at], reach[at - range.start]);
                sum += here * self.vote(at, column.raw as u32);
                for child in node.children.map(|child| child as usize).into_iter().filter(|&c| c != at) {
                    let ratio = self.cover[child] / self.cover[at];
                    reach[child - range.start] = if ratio.is_finite() { here * ratio } else { 0.0 };
                }
            }
        }
        Ok(column.offset + column.sign * sum)
    }

    fn covered(&self) -> Result<()> {
        if self.has_cover() {
            return Ok(());
        }
        Err(Error::Undefined {
            question: "a conditional Shapley value",
            reason: "a file that does not say how much training data went where: give a background",
        })
    }

    /// Runs parts of the rows on all workers; a row's values do not depend on its part.
    fn in_parts(
        &self,
        rows: &[f64],
        outputs: &[usize],
        question: &'static str,
        part: impl Fn(&[f64], &[Column], &mut [f64]) -> Result<()> + Sync,
    ) -> Result<Vec<f64>> {
        self.additive(question)?;
        let count = self.count(rows)?;
        expect("the number of outputs", count, outputs.len())?;
        let columns: Vec<Column> =
            outputs.iter().map(|&output| self.column(output)).collect::<Result<_>>()?;
        let rows: Vec<f64> = rows.iter().map(|&v| self.rounded(v)).collect();
        let mut credit = vec![0.0; rows.len()];
        let size = count.div_ceil(rayon::current_num_threads()).max(ROWS);
        let parts = rows.par_chunks(size * self.features).zip(columns.par_chunks(size));
        credit
            .par_chunks_mut(size * self.features)
            .zip(parts)
            .try_for_each(|(credit, (rows, columns))| part(rows, columns, credit))?;
        Ok(credit)
    }

    /// A tree without tables: every row against every row of the background.
    fn against_each(
        &self,
        tree: usize,
        rows: &[f64],
        background: &[f64],
        columns: &[Column],
        credit: &mut [f64],
    ) {
        let (mut walk, scale) = (Walk::new(self, true), self.features as f64 / background.len() as f64);
        let each = rows.chunks(self.features).zip(columns).zip(credit.chunks_mut(self.features));
        for ((row, column), credit) in each {
            for from in background.chunks(self.features) {
                walk.tree(tree, from, row, &mut |share: Share| {
                    let value = self.vote(share.leaf, column.raw as u32);
                    credit[share.feature] += scale * column.sign * share.part * value;
                });
            }
        }
    }
}

/// A leaf as those see it who fill its table.
struct Leaf {
    number: usize,
    first: usize,
    count: usize,
}

/// What is known of a table's row.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Not,
    Zero,
    Filled,
}

/// The ways of a tree with a table for each leaf: what its features get of a leaf's value, by pattern.
struct Tables {
    ways: Ways,
    /// Where the rows of a leaf begin in `known`, and its numbers in `values`; empty without memory.
    begins: Vec<(usize, usize)>,
    known: Vec<Known>,
    values: Vec<f64>,
}

impl Tables {
    /// None where they would be too large.
    fn of(ensemble: &Ensemble, tree: usize) -> Option<Tables> {
        let ways = Ways::of(ensemble, tree)?;
        let (mut begins, mut rows, mut cells) = (Vec::with_capacity(ways.leaves.len()), 0, 0);
        for way in &ways.leaves {
            begins.push((rows, cells));
            let patterns = 1_usize.checked_shl(way.count as u32).filter(|_| way.count < 20)?;
            rows += patterns;
            cells += patterns * way.count;
            if cells > CELLS {
                return None;
            }
        }
        Some(Tables { ways, begins, known: vec![Known::Not; rows], values: vec![0.0; cells] })
    }

    /// The same without tables: everything is computed anew.
    fn without_memory(ensemble: &Ensemble, tree: usize) -> Option<Tables> {
        let ways = Ways::of(ensemble, tree)?;
        Some(Tables { ways, begins: Vec::new(), known: Vec::new(), values: Vec::new() })
    }

    /// For each leaf, the patterns of the background's rows and how often they occur.
    fn counts(&mut self, ensemble: &Ensemble, background: &[f64]) -> Vec<Vec<(u64, f64)>> {
        let mut seen = vec![0_u32; self.known.len()];
        for row in background.chunks(ensemble.features) {
            self.ways.answer(ensemble, row);
            for leaf in 0..self.ways.leaves.len() {
                seen[self.begins[leaf].0 + self.ways.pattern(leaf) as usize] += 1;
            }
        }
        let ends = self.begins.iter().skip(1).map(|begin| begin.0).chain([seen.len()]);
        self.begins
            .iter()
            .zip(ends)
            .map(|(begin, end)| {
                let counts = seen[begin.0..end].iter().enumerate();
                counts.filter(|(_, n)| **n > 0).map(|(q, &n)| (q as u64, f64::from(n))).collect()
            })
            .collect()
    }

    /// Adds the values of all rows; `fill` computes a row of a table.
    fn add(
        &mut self,
        ensemble: &Ensemble,
        rows: &[f64],
        columns: &[Column],
        credit: &mut [f64],
        fill: impl Fn(&Leaf, u64, &mut [f64]),
    ) {
        let width = ensemble.features;
        let mut fresh = vec![0.0; self.ways.most];
        for ((row, column), credit) in rows.chunks(width).zip(columns).zip(credit.chunks_mut(width)) {
            self.ways.answer(ensemble, row);
            for number in 0..self.ways.leaves.len() {
                let (first, count) = (self.ways.leaves[number].first, self.ways.leaves[number].count);
                let (pattern, leaf) = (self.ways.pattern(number), Leaf { number, first, count });
                let values: &[f64] = match self.begins.get(number) {
                    None => {
                        fresh[..count].fill(0.0);
                        fill(&leaf, pattern, &mut fresh[..count]);
                        &fresh[..count]
                    }
                    Some(&(known, cells)) => {
                        let known = &mut self.known[known + pattern as usize];
                        let values = &mut self.values[cells + pattern as usize * count..][..count];
                        if *known == Known::Not {
                            fill(&leaf, pattern, values);
                            let zero = values.iter().all(|v| *v == 0.0);
                            *known = if zero { Known::Zero } else { Known::Filled };
                        }
                        if *known == Known::Zero {
                            continue;
                        }
                        values
                    }
                };
                let vote = column.sign * ensemble.vote(self.ways.node(number), column.raw as u32);
                for (&feature, value) in self.ways.features[first..][..count].iter().zip(values) {
                    credit[feature as usize] += vote * value;
                }
            }
        }
    }
}

/// What the features on a way get of 1 at its leaf, averaged over the patterns of a background.
fn interventional(counts: &[(u64, f64)], features: usize, pattern: u64, scale: f64, row: &mut [f64]) {
    for &(other, count) in counts {
        if pattern | other != full(features) {
            continue;
        }
        // Features that only the row brings to this leaf, and features that only the background row does.
        let (ours, theirs) = (pattern & !other, other & !pattern);
        let (gain, loss) = weights(ours.count_ones() as usize, theirs.count_ones() as usize);
        for (slot, value) in row.iter_mut().enumerate() {
            let bit = 1 << slot;
            if ours & bit != 0 {
                *value += scale * count * gain;
            } else if theirs & bit != 0 {
                *value -= scale * count * loss;
            }
        }
    }
}

/// Rules that integrate the products of up to this many features exactly, by their number.
fn rules(most: usize) -> Vec<Vec<(f64, f64)>> {
    let rule = |count: usize| -> Vec<(f64, f64)> {
        let nodes = NonZeroUsize::new(count.div_ceil(2)).unwrap_or(NonZeroUsize::MIN);
        GaussLegendre::new(nodes).iter().map(|(node, weight)| (0.5 * (node + 1.0), 0.5 * weight)).collect()
    };
    (0..=most).map(rule).collect()
}

/// What the features on a way get of 1 at its leaf, where the training data decide for absent features.
///
/// ```text
/// phi_i = (o_i - z_i) int_0^1 prod_(j != i) (z_j (1 - y) + o_j y) dy        o: the row's bits, z: parts of the data
/// ```
fn conditional(cover: &[f64], rule: &[(f64, f64)], pattern: u64, row: &mut [f64]) {
    let bit = |slot: usize| ((pattern >> slot) & 1) as f64;
    let count = cover.len();
    let mut below = vec![1.0; count + 1];
    for &(y, weight) in rule {
        let factor = |slot: usize| cover[slot] * (1.0 - y) + bit(slot) * y;
        for slot in 0..count {
            below[slot + 1] = below[slot] * factor(slot);
        }
        let mut above = 1.0;
        for slot in (0..count).rev() {
            row[slot] += weight * (bit(slot) - cover[slot]) * below[slot] * above;
            above *= factor(slot);
        }
    }
}
