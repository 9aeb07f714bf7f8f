//! Tree ensembles as ONNX writes them (domain `ai.onnx.ml`), with the attributes of a node as plain lists.
//!
//! [`NodeTrees`] is `TreeEnsembleRegressor` and `TreeEnsembleClassifier`: nodes by tree and number, votes beside them.
//! [`FlatTrees`] is `TreeEnsemble`, which replaces both: splits and leaves in two lists, sets of values, roots.

use std::collections::BTreeMap;

use crate::build::{Aggregate, Branch, Description, Test, Tree};
use crate::ensemble::Ensemble;
use crate::error::{Error, Result};
use crate::link::{Column, Link};

/// Votes of leaves: the lists `target_*` of a regressor, `class_*` of a classifier.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Votes {
    /// The tree of each vote.
    pub trees: Vec<i64>,
    /// The leaf.
    pub nodes: Vec<i64>,
    /// The target or class.
    pub targets: Vec<i64>,
    /// The weight.
    pub weights: Vec<f64>,
}

/// The attributes of `TreeEnsembleRegressor` and `TreeEnsembleClassifier`. Lists that a file leaves out are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeTrees {
    /// `nodes_treeids`.
    pub trees: Vec<i64>,
    /// `nodes_nodeids`.
    pub nodes: Vec<i64>,
    /// `nodes_featureids`.
    pub features: Vec<i64>,
    /// `nodes_values`.
    pub values: Vec<f64>,
    /// `nodes_modes`.
    pub modes: Vec<String>,
    /// `nodes_truenodeids`.
    pub yes: Vec<i64>,
    /// `nodes_falsenodeids`.
    pub no: Vec<i64>,
    /// `nodes_missing_value_tracks_true`.
    pub missing_yes: Vec<i64>,
    /// The votes of the leaves.
    pub votes: Votes,
    /// `n_targets`, or the number of class labels.
    pub targets: usize,
    /// `base_values`.
    pub base: Vec<f64>,
    /// `aggregate_function` of a regressor.
    pub aggregate: String,
    /// `post_transform`.
    pub transform: String,
    /// Whether it is a classifier.
    pub classifier: bool,
    /// The width of a row, where the file says.
    pub width: Option<usize>,
    /// Whether its numbers are 32 bits wide.
    pub single: bool,
}

/// The attributes of `TreeEnsemble`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlatTrees {
    /// `tree_roots`.
    pub roots: Vec<i64>,
    /// `nodes_featureids`.
    pub features: Vec<i64>,
    /// `nodes_splits`.
    pub splits: Vec<f64>,
    /// `nodes_modes`: 0 to 6 for LEQ, LT, GTE, GT, EQ, NEQ, MEMBER.
    pub modes: Vec<i64>,
    /// `nodes_truenodeids`.
    pub yes: Vec<i64>,
    /// `nodes_trueleafs`: whether "yes" leads to a leaf.
    pub yes_leaf: Vec<i64>,
    /// `nodes_falsenodeids`.
    pub no: Vec<i64>,
    /// `nodes_falseleafs`.
    pub no_leaf: Vec<i64>,
    /// `nodes_missing_value_tracks_true`.
    pub missing_yes: Vec<i64>,
    /// `membership_values`: sets with a NaN after each.
    pub members: Vec<f64>,
    /// `leaf_targetids`.
    pub leaf_targets: Vec<i64>,
    /// `leaf_weights`.
    pub leaf_weights: Vec<f64>,
    /// `n_targets`.
    pub targets: usize,
    /// `aggregate_function`: 0 average, 1 sum, 2 min, 3 max.
    pub aggregate: i64,
    /// `post_transform`: 0 none, 1 softmax, 2 logistic, 3 softmax over what is not 0, 4 probit.
    pub transform: i64,
    /// The width of a row, where the file says.
    pub width: Option<usize>,
    /// Whether its numbers are 32 bits wide.
    pub single: bool,
}

/// The votes of each leaf, by its tree and its number there.
type LeafVotes = BTreeMap<(i64, i64), Vec<(usize, f64)>>;

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: "tree ensemble of ONNX", reason: reason.into() }
}

fn number(value: i64, what: &str) -> Result<usize> {
    usize::try_from(value).map_err(|_| malformed(format!("{what} is {value}")))
}

/// The width of a row: as the file says, or one more than the last feature that is asked for.
fn width(given: Option<usize>, features: &[i64]) -> Result<usize> {
    let asked = number(features.iter().copied().max().unwrap_or(0), "a feature")? + 1;
    Ok(given.unwrap_or(asked).max(1))
}

/// A split in one of ONNX's modes.
fn split(mode: &str, value: f64, feature: usize, yes: usize, no: usize, missing_yes: bool) -> Result<Branch> {
    let ask = |test, yes, no, missing_yes| Branch::Split {
        feature,
        test,
        yes,
        no,
        missing_yes,
        zero_is_missing: false,
    };
    let equal = || Test::OneOf { values: vec![value], whole: false };
    Ok(match mode {
        "BRANCH_LEQ" => ask(Test::AtMost(value), yes, no, missing_yes),
        "BRANCH_LT" => ask(Test::Below(value), yes, no, missing_yes),
        // The other way round, answers change places, and with them what a missing value does.
        "BRANCH_GTE" => ask(Test::Below(value), no, yes, !missing_yes),
        "BRANCH_GT" => ask(Test::AtMost(value), no, yes, !missing_yes),
        "BRANCH_EQ" => ask(equal(), yes, no, missing_yes),
        // NaN differs from everything.
        "BRANCH_NEQ" => ask(equal(), no, yes, false),
        other => return Err(malformed(format!("a node has the mode '{other}'"))),
    })
}

fn aggregate(name: &str) -> Result<Aggregate> {
    Ok(match name {
        "" | "SUM" => Aggregate::Sum,
        "AVERAGE" => Aggregate::Average,
        "MIN" => Aggregate::Min,
        "MAX" => Aggregate::Max,
        other => return Err(malformed(format!("its aggregate function is '{other}'"))),
    })
}

fn transform(name: &str) -> Result<Link> {
    Ok(match name {
        "" | "NONE" => Link::Identity,
        "LOGISTIC" => Link::Logistic { slope: 1.0 },
        "SOFTMAX" => Link::Softmax,
        "SOFTMAX_ZERO" => Link::SoftmaxZero,
        "PROBIT" => Link::Probit,
        other => return Err(malformed(format!("its post transform is '{other}'"))),
    })
}

impl NodeTrees {
    /// The ensemble.
    ///
    /// # Errors
    /// Lists of different lengths, and nodes that do not form trees.
    pub fn ensemble(self) -> Result<Ensemble> {
        Ensemble::new(self.description()?)
    }

    /// What the ensemble is made from.
    ///
    /// # Errors
    /// Lists of different lengths.
    pub fn description(self) -> Result<Description> {
        let all = self.trees.len();
        let lists = [
            self.nodes.len(),
            self.features.len(),
            self.values.len(),
            self.modes.len(),
            self.yes.len(),
            self.no.len(),
        ];
        if lists.iter().any(|&len| len != all)
            || !(self.missing_yes.is_empty() || self.missing_yes.len() == all)
        {
            return Err(malformed(format!("lists of {all} and of {lists:?} nodes")));
        }
        // Trees in the order in which they first appear, and nodes by their numbers.
        let (mut order, mut numbers) = (Vec::<i64>::new(), BTreeMap::<(i64, i64), usize>::new());
        let mut sizes = BTreeMap::<i64, usize>::new();
        for (&tree, &node) in self.trees.iter().zip(&self.nodes) {
            let size = sizes.entry(tree).or_insert_with(|| {
                order.push(tree);
                0
            });
            if numbers.insert((tree, node), *size).is_some() {
                return Err(malformed(format!("tree {tree} has two nodes {node}")));
            }
            *size += 1;
        }
        let votes = self.votes()?;
        let mut trees: BTreeMap<i64, Tree> = BTreeMap::new();
        for i in 0..all {
            let tree = self.trees[i];
            let node = if self.modes[i] == "LEAF" {
                Branch::Leaf { votes: votes.get(&(tree, self.nodes[i])).cloned().unwrap_or_default() }
            } else {
                let child = |to: i64| {
                    let found = numbers.get(&(tree, to)).copied();
                    found.ok_or_else(|| malformed(format!("tree {tree} leads to a node {to} that it lacks")))
                };
                let missing_yes = self.missing_yes.get(i).is_some_and(|&bit| bit != 0);
                let feature = number(self.features[i], "a feature")?;
                let (yes, no) = (child(self.yes[i])?, child(self.no[i])?);
                split(&self.modes[i], self.values[i], feature, yes, no, missing_yes)?
            };
            trees.entry(tree).or_default().nodes.push(node);
        }
        let trees: Vec<Tree> = order.iter().filter_map(|tree| trees.remove(tree)).collect();
        let features = width(self.width, &self.features)?;
        let aggregate = if self.classifier { Aggregate::Sum } else { aggregate(&self.aggregate)? };
        let (raw, base, columns, link) = self.outputs(transform(&self.transform)?)?;
        let single = self.single;
        let names = Vec::new();
        let trees = if raw == 1 && self.classifier { to_one(trees) } else { trees };
        Ok(Description { features, raw, trees, base, aggregate, columns, link, single, names })
    }

    fn votes(&self) -> Result<LeafVotes> {
        let Votes { trees, nodes, targets, weights } = &self.votes;
        if [nodes.len(), targets.len(), weights.len()].iter().any(|&len| len != trees.len()) {
            return Err(malformed(format!("{} votes, but {} weights", trees.len(), weights.len())));
        }
        let mut votes = LeafVotes::new();
        for i in 0..trees.len() {
            let vote = (number(targets[i], "the target of a vote")?, weights[i]);
            votes.entry((trees[i], nodes[i])).or_default().push(vote);
        }
        Ok(votes)
    }

    /// The raw sums, their base values, the outputs and the activation. A classifier with two classes of which leaves
    /// vote for one alone has two outputs all the same: `(1 - p, p)` where all votes are positive, else `(-z, z)`.
    fn outputs(&self, link: Link) -> Result<(usize, Vec<f64>, Vec<Column>, Link)> {
        let first = self.votes.targets.first();
        let one_class = self.votes.targets.iter().all(|target| Some(target) == first);
        if !(self.classifier && self.targets <= 2 && one_class) {
            let base = if self.base.len() == self.targets { self.base.clone() } else { Vec::new() };
            let base = match (self.base.as_slice(), self.targets) {
                ([one], 1) => vec![*one],
                _ => base,
            };
            return Ok((self.targets.max(1), base, Vec::new(), link));
        }
        let base = vec![self.base.last().copied().unwrap_or(0.0)];
        let positive = self.votes.weights.iter().all(|&weight| weight >= 0.0);
        let column = |sign, offset| Column { raw: 0, sign, offset };
        let columns = match (positive && self.base.len() < 2, link) {
            (_, Link::Probit) => vec![column(1.0, 0.0)],
            // Probabilities already: an activation is not applied to them.
            (true, _) => return Ok((1, base, vec![column(-1.0, 1.0), column(1.0, 0.0)], Link::Identity)),
            (false, _) => vec![column(-1.0, 0.0), column(1.0, 0.0)],
        };
        Ok((1, base, columns, link))
    }
}

/// All votes for the one sum.
fn to_one(mut trees: Vec<Tree>) -> Vec<Tree> {
    for branch in trees.iter_mut().flat_map(|tree| &mut tree.nodes) {
        if let Branch::Leaf { votes } = branch {
            votes.iter_mut().for_each(|vote| vote.0 = 0);
        }
    }
    trees
}

impl FlatTrees {
    /// The ensemble.
    ///
    /// # Errors
    /// Lists of different lengths, and nodes that do not form trees.
    pub fn ensemble(self) -> Result<Ensemble> {
        Ensemble::new(self.description()?)
    }

    /// What the ensemble is made from.
    ///
    /// # Errors
    /// Lists of different lengths.
    pub fn description(self) -> Result<Description> {
        let splits = self.features.len();
        let lists = [
            self.splits.len(),
            self.modes.len(),
            self.yes.len(),
            self.yes_leaf.len(),
            self.no.len(),
            self.no_leaf.len(),
        ];
        let missing = self.missing_yes.len();
        if lists.iter().any(|&len| len != splits) || !(missing == 0 || missing == splits) {
            return Err(malformed(format!("lists of {splits} and of {lists:?} nodes")));
        }
        if self.leaf_targets.len() != self.leaf_weights.len() {
            let (targets, weights) = (self.leaf_targets.len(), self.leaf_weights.len());
            return Err(malformed(format!("{targets} targets of leaves, but {weights} weights")));
        }
        let sets = self.sets()?;
        let mut trees = Vec::with_capacity(self.roots.len());
        for &root in &self.roots {
            trees.push(self.tree(number(root, "a root")?, &sets)?);
        }
        let aggregate = match self.aggregate {
            0 => Aggregate::Average,
            1 => Aggregate::Sum,
            2 => Aggregate::Min,
            3 => Aggregate::Max,
            other => return Err(malformed(format!("its aggregate function is {other}"))),
        };
        let link = match self.transform {
            0 => Link::Identity,
            1 => Link::Softmax,
            2 => Link::Logistic { slope: 1.0 },
            3 => Link::SoftmaxZero,
            4 => Link::Probit,
            other => return Err(malformed(format!("its post transform is {other}"))),
        };
        let features = width(self.width, &self.features)?;
        let (raw, single) = (self.targets.max(1), self.single);
        Ok(Description { features, raw, trees, aggregate, link, single, ..Description::default() })
    }

    /// The sets of the nodes that ask for members, by node.
    fn sets(&self) -> Result<BTreeMap<usize, Vec<f64>>> {
        let mut all = self.members.split(|value| value.is_nan());
        let askers = (0..self.modes.len()).filter(|&i| self.modes[i] == 6);
        askers
            .map(|i| {
                let set = all.next().ok_or_else(|| malformed(format!("node {i} has no set of members")))?;
                Ok((i, set.to_vec()))
            })
            .collect()
    }

    /// The tree under a root. Trees that share nodes, or lead in circles, are refused by their size.
    fn tree(&self, root: usize, sets: &BTreeMap<usize, Vec<f64>>) -> Result<Tree> {
        let mut tree = Tree::default();
        // A node or a leaf, and what to tell its parent.
        let mut open = vec![(root, false, None::<(usize, bool)>)];
        while let Some((at, leaf, parent)) = open.pop() {
            let here = tree.nodes.len();
            if here > 2 * self.features.len() + 1 {
                return Err(malformed("its trees lead in circles"));
            }
            if let Some((parent, is_yes)) = parent
                && let Branch::Split { yes, no, .. } = &mut tree.nodes[parent]
            {
                *(if is_yes { yes } else { no }) = here;
            }
            if leaf {
                let vote = self.leaf_targets.get(at).zip(self.leaf_weights.get(at));
                let (&target, &weight) = vote.ok_or_else(|| malformed(format!("there is no leaf {at}")))?;
                tree.nodes
                    .push(Branch::Leaf { votes: vec![(number(target, "the target of a leaf")?, weight)] });
                continue;
            }
            let (Some(&feature), Some(&mode)) = (self.features.get(at), self.modes.get(at)) else {
                return Err(malformed(format!("there is no node {at}")));
            };
            // A tree of one leaf is a split that leads to the same leaf twice.
            let (yes, no) = ((self.yes[at], self.yes_leaf[at] != 0), (self.no[at], self.no_leaf[at] != 0));
            if yes == no && yes.1 {
                open.push((number(yes.0, "a leaf")?, true, parent));
                continue;
            }
            let (feature, missing_yes) =
                (number(feature, "a feature")?, self.missing_yes.get(at).is_some_and(|&bit| bit != 0));
            let names = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"];
            let branch = match (usize::try_from(mode).ok().and_then(|m| names.get(m)), sets.get(&at)) {
                (Some(name), _) => split(name, self.splits[at], feature, 0, 0, missing_yes)?,
                (None, Some(set)) => {
                    let test = Test::OneOf { values: set.clone(), whole: false };
                    Branch::Split { feature, test, yes: 0, no: 0, missing_yes, zero_is_missing: false }
                }
                (None, None) => return Err(malformed(format!("node {at} has the mode {mode}"))),
            };
            tree.nodes.push(branch);
            // Modes that exchange their answers have exchanged "yes" and "no" by now.
            let exchanged = matches!(mode, 2 | 3 | 5);
            open.push((number(no.0, "a child")?, no.1, Some((here, exchanged))));
            open.push((number(yes.0, "a child")?, yes.1, Some((here, !exchanged))));
        }
        Ok(tree)
    }
}
