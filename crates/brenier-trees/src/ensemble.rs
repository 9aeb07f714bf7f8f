//! A tree ensemble in flat arrays.
//!
//! Nodes of a tree lie in the order of a walk that goes left first, so that a parent stands before its children and a
//! tree is read from few cache lines. A leaf leads to itself: rows that arrive early wait for the others without a branch.
//! All numerical questions are `x <= threshold`: `x < t` is `x <= t'` with the next smaller number, and questions the other
//! way round exchange their answers. What a missing value does is a bit of the node.

use crate::build::{Aggregate, Branch, Description, Test, Tree};
use crate::error::{Error, Result, expect};
use crate::link::{Column, Link};

/// Bits of [`Node::kind`]; the number of a set of values stands above them.
pub(crate) const MISSING_LEFT: u32 = 1;
pub(crate) const ZERO_MISSING: u32 = 2;
pub(crate) const SET: u32 = 4;
pub(crate) const LEAF: u32 = 8;
/// The question was `x < t`: the threshold itself lies just above.
pub(crate) const STRICT: u32 = 16;
const SET_SHIFT: u32 = 8;

/// Walks that split in two call themselves: deeper trees than this are refused.
const DEEPEST: u32 = 4096;
/// Copies of nodes that several ways lead to, for each node of a tree.
const MOST_COPIES: usize = 64;
/// What LightGBM takes for 0.
const ZERO: f64 = 1e-35;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    pub(crate) threshold: f64,
    pub(crate) feature: u32,
    pub(crate) children: [u32; 2],
    pub(crate) kind: u32,
}

/// Values that lead to the left.
#[derive(Debug, Clone, PartialEq)]
struct Set {
    values: Vec<f64>,
    whole: bool,
}

/// A sum of decision trees with its final activation.
#[derive(Debug, Clone, PartialEq)]
pub struct Ensemble {
    pub(crate) features: usize,
    pub(crate) raw: usize,
    pub(crate) nodes: Vec<Node>,
    /// The first node of each tree, and one past the last.
    pub(crate) roots: Vec<u32>,
    /// The longest way down each tree.
    pub(crate) depths: Vec<u32>,
    /// Where the votes of a node begin in `votes`.
    pub(crate) first_vote: Vec<u32>,
    pub(crate) votes: Vec<(u32, f64)>,
    /// What each node adds, where there is one raw sum; else empty.
    pub(crate) values: Vec<f64>,
    sets: Vec<Set>,
    /// For each node; empty where not all trees have it.
    pub(crate) cover: Vec<f64>,
    pub(crate) base: Vec<f64>,
    pub(crate) aggregate: Aggregate,
    pub(crate) columns: Vec<Column>,
    pub(crate) link: Link,
    pub(crate) single: bool,
    names: Vec<String>,
    /// Whether all questions are `x <= t`, so that the fast way down is open.
    pub(crate) plain: bool,
}

impl Ensemble {
    /// Makes an ensemble of its description.
    ///
    /// ```
    /// use brenier_trees::{Branch, Description, Ensemble, Tree};
    ///
    /// let stump = vec![Branch::at_most(0, 0.5, 1, 2), Branch::leaf(1.0), Branch::leaf(3.0)];
    /// let trees = vec![Tree { nodes: stump, cover: vec![] }];
    /// let ensemble = Ensemble::new(Description { features: 2, raw: 1, trees, ..Description::default() })?;
    /// assert_eq!(ensemble.scores(&[0.0, 9.0, 1.0, 9.0])?, [1.0, 3.0]);
    /// # Ok::<(), brenier_trees::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nodes that do not form trees, features and sums that do not exist, numbers that are not finite.
    pub fn new(description: Description) -> Result<Ensemble> {
        let Description { features, raw, trees, base, aggregate, columns, link, single, names } = description;
        let base = if base.is_empty() { vec![0.0; raw] } else { base };
        expect("the number of base values", raw, base.len())?;
        let plain_columns = || (0..raw).map(|raw| Column { raw, sign: 1.0, offset: 0.0 }).collect();
        let columns = if columns.is_empty() { plain_columns() } else { columns };
        if let Some(column) = columns.iter().find(|column| column.raw >= raw) {
            return Err(Error::Mismatch {
                what: "the number of raw scores",
                expected: column.raw + 1,
                found: raw,
            });
        }
        let scale = match aggregate {
            Aggregate::Average => 1.0 / trees.len().max(1) as f64,
            _ => 1.0,
        };
        let covered = !trees.is_empty() && trees.iter().all(|tree| tree.cover.len() == tree.nodes.len());
        let mut ensemble = Ensemble {
            features,
            raw,
            nodes: Vec::new(),
            roots: vec![0],
            depths: Vec::new(),
            first_vote: vec![0],
            votes: Vec::new(),
            values: Vec::new(),
            sets: Vec::new(),
            cover: Vec::new(),
            base,
            aggregate,
            columns,
            link,
            single,
            names,
            plain: true,
        };
        for (number, tree) in trees.into_iter().enumerate() {
            ensemble.push(number, tree, scale, covered)?;
        }
        if raw == 1 {
            let value = |node| ensemble.votes_of(node).iter().map(|vote| vote.1).sum::<f64>();
            ensemble.values = (0..ensemble.nodes.len()).map(value).collect();
        }
        ensemble.plain = ensemble.nodes.iter().all(|node| node.kind & (SET | ZERO_MISSING) == 0);
        Ok(ensemble)
    }

    /// The number of features of a row.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.columns.len()
    }

    /// The number of trees.
    pub fn trees(&self) -> usize {
        self.depths.len()
    }

    /// The number of nodes, leaves included.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The final activation.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The names of the features, where the file has them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether every node says how much of the training data it has seen.
    pub fn has_cover(&self) -> bool {
        !self.cover.is_empty()
    }

    /// Whether scores are sums over trees, which is what credit needs.
    pub fn is_additive(&self) -> bool {
        matches!(self.aggregate, Aggregate::Sum | Aggregate::Average)
    }

    /// Adds a tree in the order of a walk that goes left first.
    fn push(&mut self, number: usize, tree: Tree, scale: f64, covered: bool) -> Result<()> {
        let broken = |reason: String| Error::Tree { tree: number, reason };
        if tree.nodes.is_empty() {
            return Err(broken("it has no nodes".to_string()));
        }
        let (mut seen, mut copies) = (vec![false; tree.nodes.len()], 0);
        // A node, the place where its number goes, and its depth.
        let mut open = vec![(0_usize, None::<(usize, usize)>, 0_u32)];
        let mut deepest = 0;
        while let Some((old, parent, depth)) = open.pop() {
            let node = tree.nodes.get(old).ok_or_else(|| {
                broken(format!("it leads to node {old}, but has {} nodes", tree.nodes.len()))
            })?;
            // Some exporters let several ways lead to one node: each has a copy. Ways in a circle would never end.
            copies += usize::from(std::mem::replace(&mut seen[old], true));
            if copies > MOST_COPIES * tree.nodes.len() {
                return Err(broken(format!("two ways lead to node {old}")));
            }
            let new = self.nodes.len();
            if let Some((parent, side)) = parent {
                self.nodes[parent].children[side] = index(new)?;
            }
            deepest = deepest.max(depth);
            if depth > DEEPEST {
                return Err(broken(format!("it is deeper than {DEEPEST} questions")));
            }
            match node {
                Branch::Leaf { votes } => {
                    let here = index(new)?;
                    let (threshold, kind) = (f64::INFINITY, LEAF);
                    self.nodes.push(Node { threshold, feature: 0, children: [here, here], kind });
                    for &(sum, value) in votes {
                        if sum >= self.raw || !value.is_finite() {
                            return Err(broken(format!(
                                "its node {old} adds {value} to score {sum} of {}",
                                self.raw
                            )));
                        }
                        self.votes.push((index(sum)?, value * scale));
                    }
                }
                Branch::Split { feature, test, yes, no, missing_yes, zero_is_missing } => {
                    if *feature >= self.features {
                        return Err(broken(format!(
                            "its node {old} asks for feature {feature} of {}",
                            self.features
                        )));
                    }
                    let (threshold, mut kind) = self
                        .question(test)
                        .ok_or_else(|| broken(format!("the threshold of its node {old} is not a number")))?;
                    kind |= if *missing_yes { MISSING_LEFT } else { 0 };
                    kind |= if *zero_is_missing { ZERO_MISSING } else { 0 };
                    self.nodes.push(Node { threshold, feature: index(*feature)?, children: [0, 0], kind });
                    open.push((*no, Some((new, 1)), depth + 1));
                    open.push((*yes, Some((new, 0)), depth + 1));
                }
            }
            self.first_vote.push(index(self.votes.len())?);
            if covered {
                self.cover.push(tree.cover[old]);
            }
        }
        self.roots.push(index(self.nodes.len())?);
        self.depths.push(deepest);
        Ok(())
    }

    /// A question as a threshold and the bits of its kind.
    fn question(&mut self, test: &Test) -> Option<(f64, u32)> {
        match test {
            Test::AtMost(value) => (!value.is_nan()).then_some((*value, 0)),
            Test::Below(value) if value.is_nan() => None,
            Test::Below(value) if self.single => Some((f64::from((*value as f32).next_down()), STRICT)),
            Test::Below(value) => Some((value.next_down(), STRICT)),
            Test::OneOf { values, whole } => {
                // Adding 0 makes one zero of two.
                let mut values: Vec<f64> = values.iter().map(|v| v + 0.0).collect();
                values.sort_by(f64::total_cmp);
                self.sets.push(Set { values, whole: *whole });
                let number = u32::try_from(self.sets.len() - 1).ok().filter(|n| n < &(1 << 24))?;
                Some((0.0, SET | (number << SET_SHIFT)))
            }
        }
    }

    /// A feature as the model compares it.
    pub(crate) fn rounded(&self, x: f64) -> f64 {
        if self.single { f64::from(x as f32) } else { x }
    }

    /// Whether the node takes this value for missing.
    pub(crate) fn is_missing(node: &Node, x: f64) -> bool {
        x.is_nan() || (node.kind & ZERO_MISSING != 0 && x.abs() <= ZERO)
    }

    /// The side that a (rounded) value goes to: 0 left, 1 right.
    #[inline]
    pub(crate) fn side(&self, node: &Node, x: f64) -> usize {
        if Ensemble::is_missing(node, x) {
            return usize::from(node.kind & MISSING_LEFT == 0);
        }
        if node.kind & SET != 0 {
            let set = &self.sets[(node.kind >> SET_SHIFT) as usize];
            let x = if set.whole { x.trunc() } else { x };
            return usize::from(set.values.binary_search_by(|v| v.total_cmp(&(x + 0.0))).is_err());
        }
        usize::from(x > node.threshold)
    }

    /// Where a value passes the node's question.
    pub(crate) fn passing(&self, node: &Node) -> f64 {
        match (node.kind & STRICT != 0, self.single) {
            (false, _) => node.threshold,
            (true, true) => f64::from((node.threshold as f32).next_up()),
            (true, false) => node.threshold.next_up(),
        }
    }

    /// The votes of a leaf.
    #[inline]
    pub(crate) fn votes_of(&self, node: usize) -> &[(u32, f64)] {
        &self.votes[self.first_vote[node] as usize..self.first_vote[node + 1] as usize]
    }

    /// What a leaf adds to one raw sum.
    #[inline]
    pub(crate) fn vote(&self, node: usize, raw: u32) -> f64 {
        if let Some(value) = self.values.get(node) {
            return *value;
        }
        self.votes_of(node).iter().filter(|vote| vote.0 == raw).map(|vote| vote.1).sum()
    }

    /// The nodes of a tree.
    pub(crate) fn tree(&self, tree: usize) -> std::ops::Range<usize> {
        self.roots[tree] as usize..self.roots[tree + 1] as usize
    }

    /// Refuses rows of another width, and returns their number.
    pub(crate) fn count(&self, rows: &[f64]) -> Result<usize> {
        if self.features == 0 || !rows.len().is_multiple_of(self.features) {
            let (what, expected) = ("the length of the rows, a multiple of the features,", self.features);
            return Err(Error::Mismatch { what, expected, found: rows.len() });
        }
        Ok(rows.len() / self.features)
    }

    /// Refuses an output that does not exist.
    pub(crate) fn column(&self, output: usize) -> Result<Column> {
        self.columns.get(output).copied().ok_or(Error::Mismatch {
            what: "the output to explain, counted from 0, at most",
            expected: self.columns.len().saturating_sub(1),
            found: output,
        })
    }
}

fn index(number: usize) -> Result<u32> {
    let what = "the number of nodes, at most";
    u32::try_from(number).map_err(|_| Error::Mismatch { what, expected: u32::MAX as usize, found: number })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(nodes: Vec<Branch>) -> Result<Ensemble> {
        let trees = vec![Tree { nodes, cover: vec![] }];
        Ensemble::new(Description { features: 1, raw: 1, trees, ..Description::default() })
    }

    #[test]
    fn what_is_no_tree_is_refused_with_its_place() {
        let message = |nodes| with(nodes).unwrap_err().to_string();
        assert_eq!(message(vec![]), "tree 0 is broken: it has no nodes");
        let cycle = vec![Branch::at_most(0, 1.0, 0, 1), Branch::leaf(0.0)];
        assert_eq!(message(cycle), "tree 0 is broken: two ways lead to node 0");
        let gone = vec![Branch::at_most(0, 1.0, 1, 7), Branch::leaf(0.0)];
        assert_eq!(message(gone), "tree 0 is broken: it leads to node 7, but has 2 nodes");
        let feature = vec![Branch::at_most(3, 1.0, 1, 2), Branch::leaf(0.0), Branch::leaf(0.0)];
        assert_eq!(message(feature), "tree 0 is broken: its node 0 asks for feature 3 of 1");
        assert!(message(vec![Branch::leaf(f64::NAN)]).contains("adds NaN to score 0 of 1"));
    }

    #[test]
    fn questions_of_every_kind_have_their_answers() {
        let split = |test, missing_yes, zero_is_missing| Branch::Split {
            feature: 0,
            test,
            yes: 1,
            no: 2,
            missing_yes,
            zero_is_missing,
        };
        let answers = |test: Test, missing_yes, zero, x: &[f64]| {
            let nodes = vec![split(test, missing_yes, zero), Branch::leaf(1.0), Branch::leaf(0.0)];
            with(nodes).unwrap().scores(x).unwrap()
        };
        let x = [-1.0, 0.0, -0.0, 2.0, 2.5, 3.0, f64::NAN];
        assert_eq!(answers(Test::AtMost(2.0), false, false, &x), [1., 1., 1., 1., 0., 0., 0.]);
        assert_eq!(answers(Test::Below(2.0), true, false, &x), [1., 1., 1., 0., 0., 0., 1.]);
        assert_eq!(answers(Test::Below(0.0), false, false, &x), [1., 0., 0., 0., 0., 0., 0.]);
        // Zero is missing, and missing is "no".
        assert_eq!(answers(Test::AtMost(2.0), false, true, &x), [1., 0., 0., 1., 0., 0., 0.]);
        let set = |whole| Test::OneOf { values: vec![3.0, 0.0, 2.0], whole };
        assert_eq!(answers(set(false), false, false, &x), [0., 1., 1., 1., 0., 1., 0.]);
        assert_eq!(answers(set(true), true, false, &x), [0., 1., 1., 1., 1., 1., 1.]);
    }
}
