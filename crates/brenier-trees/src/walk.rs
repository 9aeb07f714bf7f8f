//! All leaves that a row can reach on its way from one place to another, and which features open and close them.
//!
//! ```text
//! a feature i satisfies a leaf's questions for times in [a_i, b_i);  the leaf is reached from max a to min b
//! ```
//!
//! Along a straight line every feature moves one way, so it passes each threshold once. A leaf is entered when the last of
//! its features comes in, and left when the first goes out: its value is credited to the feature that lets it in, and taken
//! from the one that leaves. Several features at the same time share as Shapley values do, and a leaf that some would enter
//! at the very time at which others leave counts in the order of the coalitions:
//!
//! ```text
//! A = features that come in at that time, B = features that go out
//! i in A gets  v (|A|-1)! |B|! / (|A|+|B|)!,      i in B gets  -v |A|! (|B|-1)! / (|A|+|B|)!
//! ```
//!
//! With all changes at one time this is the Shapley value between two rows. So one walk serves paths and TreeSHAP.
//!
//! A category, and a value that is missing at one end, has no place between: it changes half way.

use crate::ensemble::{Ensemble, LEAF, Node, SET};

/// Times closer than this are the same: thresholds that are passed together should not be told apart by rounding.
const GRID: f64 = (1_u64 << 40) as f64;

/// When a change happens that has no place on the line.
const HALF_WAY: f64 = 0.5;

/// A walk from one row to another, with room to work in.
pub(crate) struct Walk<'a> {
    ensemble: &'a Ensemble,
    /// Whether all features change at the same time.
    together: bool,
    from: &'a [f64],
    to: &'a [f64],
    /// When a feature satisfies the questions so far.
    windows: Vec<(f64, f64)>,
    /// The features whose window has an end.
    bounded: Vec<u32>,
}

/// A part of a leaf's value: when, for which feature, of which leaf, how much of it.
pub(crate) struct Share {
    pub(crate) time: f64,
    pub(crate) feature: usize,
    pub(crate) leaf: usize,
    pub(crate) part: f64,
}

const ALWAYS: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

impl<'a> Walk<'a> {
    /// A walk from `from` to `to`, both rounded as the model compares them.
    pub(crate) fn new(ensemble: &'a Ensemble, together: bool) -> Walk<'a> {
        let windows = vec![ALWAYS; ensemble.features];
        Walk { ensemble, together, from: &[], to: &[], windows, bounded: Vec::new() }
    }

    /// Gives out all shares of a tree's leaves between two rows, which are rounded as the model compares them.
    pub(crate) fn tree(&mut self, tree: usize, from: &'a [f64], to: &'a [f64], sink: &mut impl FnMut(Share)) {
        (self.from, self.to) = (from, to);
        self.visit(self.ensemble.roots[tree], ALWAYS, sink);
    }

    fn visit(&mut self, mut at: u32, (lo, hi): (f64, f64), sink: &mut impl FnMut(Share)) {
        let ensemble = self.ensemble;
        loop {
            let node = &ensemble.nodes[at as usize];
            if node.kind & LEAF != 0 {
                return self.share_out(at as usize, (lo, hi), sink);
            }
            let feature = node.feature as usize;
            let before = ensemble.side(node, self.from[feature]);
            let after = ensemble.side(node, self.to[feature]);
            if before == after {
                at = node.children[before];
                continue;
            }
            let time = self.time(node, feature);
            let window = self.windows[feature];
            // Before the feature passes, and after it.
            let (early, late) = ((window.0, window.1.min(time)), (window.0.max(time), window.1));
            let earlier = early.0 < early.1 && lo <= hi.min(time);
            let later = late.0 < late.1 && lo.max(time) <= hi;
            if window == ALWAYS {
                self.bounded.push(node.feature);
            }
            if earlier {
                self.windows[feature] = early;
                self.visit(node.children[before], (lo, hi.min(time)), sink);
            }
            if later {
                self.windows[feature] = late;
                self.visit(node.children[after], (lo.max(time), hi), sink);
            }
            self.windows[feature] = window;
            if window == ALWAYS {
                self.bounded.pop();
            }
            return;
        }
    }

    /// When the feature passes the node's question.
    fn time(&self, node: &Node, feature: usize) -> f64 {
        let (from, to) = (self.from[feature], self.to[feature]);
        let no_place = node.kind & SET != 0
            || Ensemble::is_missing(node, from)
            || Ensemble::is_missing(node, to)
            || self.together;
        let time = (self.ensemble.passing(node) - from) / (to - from);
        if no_place || !time.is_finite() {
            return HALF_WAY;
        }
        (time * GRID).round().clamp(0.0, GRID) / GRID
    }

    /// The shares of one leaf.
    fn share_out(&self, leaf: usize, (lo, hi): (f64, f64), sink: &mut impl FnMut(Share)) {
        let opening = |feature: u32| self.windows[feature as usize].0 == lo;
        let closing = |feature: u32| self.windows[feature as usize].1 == hi;
        let opens = if lo.is_finite() { self.bounded.iter().filter(|f| opening(**f)).count() } else { 0 };
        let closes = if hi.is_finite() { self.bounded.iter().filter(|f| closing(**f)).count() } else { 0 };
        let (gain, loss) = if lo == hi { weights(opens, closes) } else { (weight(opens), weight(closes)) };
        for &feature in &self.bounded {
            if opens > 0 && opening(feature) {
                sink(Share { time: lo, feature: feature as usize, leaf, part: gain });
            }
            if closes > 0 && closing(feature) {
                sink(Share { time: hi, feature: feature as usize, leaf, part: -loss });
            }
        }
    }
}

fn weight(features: usize) -> f64 {
    if features == 0 { 0.0 } else { 1.0 / features as f64 }
}

/// `((a-1)! b! / (a+b)!, a! (b-1)! / (a+b)!)`; 0 for a side without features.
pub(crate) fn weights(a: usize, b: usize) -> (f64, f64) {
    // 1 / C(a+b, a), factor by factor.
    let (small, all) = (a.min(b), a + b);
    let ways = (0..small).fold(1.0, |ways, k| ways * (all - k) as f64 / (k + 1) as f64);
    (weight(a) / ways, weight(b) / ways)
}

#[cfg(test)]
mod tests {
    use super::weights;

    #[test]
    fn weights_are_those_of_coalitions() {
        let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
        for a in 1..7 {
            for b in 1..7 {
                let (gain, loss) = weights(a, b);
                let all = factorial(a + b);
                assert!((gain - factorial(a - 1) * factorial(b) / all).abs() < 1e-15);
                assert!((loss - factorial(a) * factorial(b - 1) / all).abs() < 1e-15);
            }
        }
        assert_eq!(weights(4, 0), (0.25, 0.0));
    }
}
