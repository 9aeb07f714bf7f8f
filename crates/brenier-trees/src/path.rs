//! Exact credit along straight lines and polylines.
//!
//! ```text
//! Phi_i = sum of the score's jumps at the times at which feature i passes a threshold
//! ```
//!
//! This is the path integral of a score that is constant between thresholds. It needs no steps and no tolerance: the sum of
//! all credit is the change of the score but for the rounding of the additions.

use rayon::prelude::*;

use crate::ensemble::Ensemble;
use crate::error::{Error, Result, expect};
use crate::walk::{Share, Walk};

/// Lines that a worker takes at a time: a tree serves all of them while it is in the cache.
const LINES: usize = 64;

impl Ensemble {
    /// The credit of each feature along the polyline through `points` (`[points, features]`) for one output before its
    /// final activation.
    ///
    /// ```
    /// use brenier_trees::{Branch, Description, Ensemble, Tree};
    ///
    /// // 1 where x0 > 0.5 and x1 > 0.8, else 0. On the diagonal x1 comes last, and makes the jump.
    /// let nodes = vec![
    ///     Branch::at_most(0, 0.5, 1, 2),
    ///     Branch::leaf(0.0),
    ///     Branch::at_most(1, 0.8, 3, 4),
    ///     Branch::leaf(0.0),
    ///     Branch::leaf(1.0),
    /// ];
    /// let trees = vec![Tree { nodes, cover: vec![] }];
    /// let ensemble = Ensemble::new(Description { features: 2, raw: 1, trees, ..Description::default() })?;
    /// assert_eq!(ensemble.path_credit(&[0.0, 0.0, 1.0, 1.0], 0)?, [0.0, 1.0]);
    /// # Ok::<(), brenier_trees::Error>(())
    /// ```
    ///
    /// # Errors
    /// Points of another width, an output that does not exist, and ensembles that are not sums.
    pub fn path_credit(&self, points: &[f64], output: usize) -> Result<Vec<f64>> {
        let column = self.column(output)?;
        self.additive("path credit")?;
        self.count(points)?;
        let mut credit = vec![0.0; self.features];
        let rounded: Vec<f64> = points.iter().map(|&v| self.rounded(v)).collect();
        let rows: Vec<&[f64]> = rounded.chunks(self.features).collect();
        let mut walk = Walk::new(self, false);
        for tree in 0..self.trees() {
            for ends in rows.windows(2) {
                walk.tree(tree, ends[0], ends[1], &mut |share: Share| {
                    credit[share.feature] += share.part * self.vote(share.leaf, column.raw as u32);
                });
            }
        }
        credit.iter_mut().for_each(|value| *value *= column.sign);
        Ok(credit)
    }

    /// The credit along many straight lines: `from` and `to` are `[n, features]`, with one output for each line.
    ///
    /// # Errors
    /// As [`Ensemble::path_credit`].
    pub fn line_credit(&self, from: &[f64], to: &[f64], outputs: &[usize]) -> Result<Vec<f64>> {
        self.additive("path credit")?;
        expect("the number of lines", self.count(from)?, self.count(to)?)?;
        expect("the number of outputs", self.count(from)?, outputs.len())?;
        let columns: Vec<_> = outputs.iter().map(|&output| self.column(output)).collect::<Result<_>>()?;
        let mut credit = vec![0.0; from.len()];
        let cells = LINES * self.features;
        credit.par_chunks_mut(cells).enumerate().for_each(|(chunk, credit)| {
            let range = chunk * cells..chunk * cells + credit.len();
            let rounded = |rows: &[f64]| -> Vec<f64> { rows.iter().map(|&v| self.rounded(v)).collect() };
            let (from, to) = (rounded(&from[range.clone()]), rounded(&to[range]));
            let ends = || from.chunks(self.features).zip(to.chunks(self.features));
            let columns = &columns[chunk * LINES..];
            let mut walk = Walk::new(self, false);
            for tree in 0..self.trees() {
                for ((credit, (from, to)), column) in
                    credit.chunks_mut(self.features).zip(ends()).zip(columns)
                {
                    walk.tree(tree, from, to, &mut |share: Share| {
                        let value = self.vote(share.leaf, column.raw as u32);
                        credit[share.feature] += column.sign * share.part * value;
                    });
                }
            }
        });
        Ok(credit)
    }

    /// Refuses what is not a sum over trees.
    pub(crate) fn additive(&self, question: &'static str) -> Result<()> {
        if self.is_additive() {
            return Ok(());
        }
        let reason = "trees that are put together by MIN or MAX: use a method that needs scores only";
        Err(Error::Undefined { question, reason })
    }
}
