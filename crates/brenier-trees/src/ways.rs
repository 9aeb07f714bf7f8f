//! The ways to the leaves of a tree, with the features on them: what TreeSHAP counts over.
//!
//! A way asks each of its features some questions. Whether a row answers all questions of a feature as the way needs it is
//! one bit, so a row is a pattern of bits for each leaf, and one pass over the nodes gives the patterns of all leaves.

use crate::ensemble::{Ensemble, LEAF};

/// Features on one way: more do not fit into a pattern.
pub(crate) const MOST: usize = 64;

/// The ways of one tree.
pub(crate) struct Ways {
    first: usize,
    /// For each node, the place of its feature among those of the way.
    slots: Vec<u8>,
    /// Leaves as numbers of nodes within the tree, with where their features begin in `features`.
    pub(crate) leaves: Vec<Way>,
    pub(crate) features: Vec<u32>,
    /// The part of the training data that a feature's questions let through, beside `features`.
    pub(crate) cover: Vec<f64>,
    /// The largest number of features on a way.
    pub(crate) most: usize,
    patterns: Vec<u64>,
}

/// The way to one leaf.
pub(crate) struct Way {
    node: usize,
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl Ways {
    /// The ways of a tree; none where one of them has more features than fit into a pattern.
    pub(crate) fn of(ensemble: &Ensemble, tree: usize) -> Option<Ways> {
        let range = ensemble.tree(tree);
        let (first, size) = (range.start, range.len());
        let mut ways = Ways {
            first,
            slots: vec![0; size],
            leaves: Vec::new(),
            features: Vec::new(),
            cover: Vec::new(),
            most: 0,
            patterns: vec![u64::MAX; size],
        };
        let (mut path, mut open) = (Vec::<(u32, f64)>::new(), vec![(0_usize, Vec::<(u32, f64)>::new())]);
        while let Some((at, on_way)) = open.pop() {
            path.clone_from(&on_way);
            let node = &ensemble.nodes[first + at];
            if node.kind & LEAF != 0 {
                ways.leaves.push(Way { node: at, first: ways.features.len(), count: path.len() });
                ways.features.extend(path.iter().map(|(feature, _)| feature));
                ways.cover.extend(path.iter().map(|(_, cover)| cover));
                ways.most = ways.most.max(path.len());
                continue;
            }
            let slot = path.iter().position(|(feature, _)| *feature == node.feature).unwrap_or_else(|| {
                path.push((node.feature, 1.0));
                path.len() - 1
            });
            if slot >= MOST {
                return None;
            }
            ways.slots[at] = slot as u8;
            for side in [1, 0] {
                let child = node.children[side] as usize;
                let mut below = path.clone();
                if ensemble.has_cover() && ensemble.cover[first + at] > 0.0 {
                    below[slot].1 *= ensemble.cover[child] / ensemble.cover[first + at];
                } else {
                    below[slot].1 = 0.0;
                }
                open.push((child - first, below));
            }
        }
        Some(ways)
    }

    /// The node of a leaf in the ensemble.
    pub(crate) fn node(&self, leaf: usize) -> usize {
        self.first + self.leaves[leaf].node
    }

    /// Answers the questions of all nodes for a row of rounded features.
    pub(crate) fn answer(&mut self, ensemble: &Ensemble, x: &[f64]) {
        for at in 0..self.slots.len() {
            let node = &ensemble.nodes[self.first + at];
            if node.kind & LEAF != 0 {
                continue;
            }
            let (pattern, bit) = (self.patterns[at], 1_u64 << self.slots[at]);
            let side = ensemble.side(node, x[node.feature as usize]) as u64;
            let [left, right] = node.children.map(|child| child as usize - self.first);
            self.patterns[left] = pattern & !(bit * side);
            self.patterns[right] = pattern & !(bit * (1 - side));
        }
    }

    /// The pattern of the row that was answered for last.
    #[inline]
    pub(crate) fn pattern(&self, leaf: usize) -> u64 {
        let way = &self.leaves[leaf];
        self.patterns[way.node] & full(way.count)
    }
}

/// As many bits as a way has features.
#[inline]
pub(crate) fn full(count: usize) -> u64 {
    if count >= MOST { u64::MAX } else { (1 << count) - 1 }
}
