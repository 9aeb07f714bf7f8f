//! Exact credit along a path for what a model gives out after its final activation.
//!
//! ```text
//! at each time: y jumps by d_1 + d_2 + ...,   output jumps by g(y + d) - g(y)
//! ```
//!
//! The jumps of all trees are put in the order of their times. A jump of one feature is its own. Where several features
//! jump at the same time, what the output gains is integrated along the straight way from `y` to `y + d`, each feature for
//! its part of `d`; the rest of the quadrature is shared in the same proportions, so that the sum stays exact.

use std::num::NonZeroUsize;

use gauss_quad::GaussLegendre;

use crate::ensemble::Ensemble;
use crate::error::Result;
use crate::link::Link;
use crate::walk::{Share, Walk};

/// Nodes along a jump of several features.
const NODES: NonZeroUsize = NonZeroUsize::new(16).unwrap();
/// Step of the central difference of the activation, relative to the size of the jump.
const STEP: f64 = 1e-4;

struct Jump {
    /// The piece of the polyline, and the time on it.
    time: (usize, f64),
    feature: usize,
    raw: u32,
    value: f64,
}

impl Ensemble {
    /// As [`Ensemble::path_credit`] for the output after the final activation, such as a probability.
    ///
    /// # Errors
    /// As [`Ensemble::path_credit`].
    pub fn activated_path_credit(&self, points: &[f64], output: usize) -> Result<Vec<f64>> {
        if self.link == Link::Identity {
            return self.path_credit(points, output);
        }
        self.column(output)?;
        self.additive("path credit")?;
        let count = self.count(points)?;
        let mut credit = vec![0.0; self.features];
        if count < 2 {
            return Ok(credit);
        }
        let jumps = self.jumps(points);
        let mut raw = self.raw_scores(&points[..self.features]);
        let mut value = self.activated(&raw, output);
        for together in jumps.chunk_by(|a, b| a.time == b.time) {
            let mut parts: Vec<(usize, Vec<f64>)> = Vec::new();
            for jump in together {
                let known = parts.iter().position(|(feature, _)| *feature == jump.feature);
                let place = known.unwrap_or_else(|| {
                    parts.push((jump.feature, vec![0.0; self.raw]));
                    parts.len() - 1
                });
                parts[place].1[jump.raw as usize] += jump.value;
            }
            let whole: Vec<f64> =
                (0..self.raw).map(|k| parts.iter().map(|(_, part)| part[k]).sum()).collect();
            let after: Vec<f64> = raw.iter().zip(&whole).map(|(raw, jump)| raw + jump).collect();
            let reached = self.activated(&after, output);
            match parts.as_slice() {
                [(feature, _)] => credit[*feature] += reached - value,
                _ => self.share(&raw, &whole, &parts, reached - value, output, &mut credit),
            }
            (raw, value) = (after, reached);
        }
        Ok(credit)
    }

    /// All jumps along the polyline, in the order of their times and then of the features.
    fn jumps(&self, points: &[f64]) -> Vec<Jump> {
        let rounded: Vec<f64> = points.iter().map(|&v| self.rounded(v)).collect();
        let rows: Vec<&[f64]> = rounded.chunks(self.features).collect();
        let mut walk = Walk::new(self, false);
        let mut jumps = Vec::new();
        for (piece, ends) in rows.windows(2).enumerate() {
            for tree in 0..self.trees() {
                walk.tree(tree, ends[0], ends[1], &mut |share: Share| {
                    for &(raw, value) in self.votes_of(share.leaf) {
                        let (time, value) = ((piece, share.time), share.part * value);
                        jumps.push(Jump { time, feature: share.feature, raw, value });
                    }
                });
            }
        }
        jumps.sort_by(|a, b| {
            let time = a.time.0.cmp(&b.time.0).then(a.time.1.total_cmp(&b.time.1));
            time.then(a.feature.cmp(&b.feature))
        });
        jumps
    }

    /// One output after the activation.
    fn activated(&self, raw: &[f64], output: usize) -> f64 {
        let mut y: Vec<f64> = self.columns.iter().map(|c| c.offset + c.sign * raw[c.raw]).collect();
        self.link.apply(&mut y);
        y[output]
    }

    /// Shares a jump among the features that make it together.
    fn share(
        &self,
        raw: &[f64],
        whole: &[f64],
        parts: &[(usize, Vec<f64>)],
        change: f64,
        output: usize,
        credit: &mut [f64],
    ) {
        let largest = parts.iter().flat_map(|(_, part)| part).fold(0.0_f64, |m, v| m.max(v.abs()));
        let step = if largest > 0.0 { STEP / largest.max(1.0) } else { 0.0 };
        let mut shares = vec![0.0; parts.len()];
        for (node, weight) in GaussLegendre::new(NODES).iter() {
            let s = 0.5 * (node + 1.0);
            for (share, (_, part)) in shares.iter_mut().zip(parts) {
                let at = |h: f64| -> f64 {
                    let y: Vec<f64> = (0..raw.len()).map(|k| raw[k] + s * whole[k] + h * part[k]).collect();
                    self.activated(&y, output)
                };
                if step > 0.0 {
                    *share += 0.5 * weight * (at(step) - at(-step)) / (2.0 * step);
                }
            }
        }
        let (sum, sizes) = (shares.iter().sum::<f64>(), shares.iter().map(|s| s.abs()).sum::<f64>());
        for (share, (feature, _)) in shares.iter().zip(parts) {
            let even = 1.0 / parts.len() as f64;
            let portion = if sizes > 0.0 { share.abs() / sizes } else { even };
            credit[*feature] += share + (change - sum) * portion;
        }
    }
}
