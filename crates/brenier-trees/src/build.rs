//! Trees as readers and people write them down, checked before they become an [`Ensemble`](crate::Ensemble).

use crate::link::{Column, Link};

/// The question that a split asks of its feature.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `x <= value`.
    AtMost(f64),
    /// `x < value`.
    Below(f64),
    /// `x` is one of these values.
    OneOf {
        /// The values.
        values: Vec<f64>,
        /// Whether `x` is cut to a whole number first, as codes of categories are.
        whole: bool,
    },
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Branch {
    /// An end: what it adds to which raw sums, as pairs of the sum and the value.
    Leaf {
        /// The votes.
        votes: Vec<(usize, f64)>,
    },
    /// A question, and where its answers lead.
    Split {
        /// The feature.
        feature: usize,
        /// The question.
        test: Test,
        /// The node of the tree that "yes" leads to.
        yes: usize,
        /// The node that "no" leads to.
        no: usize,
        /// Whether a missing value counts as "yes".
        missing_yes: bool,
        /// Whether 0 counts as missing.
        zero_is_missing: bool,
    },
}

impl Branch {
    /// A leaf of a model with one output.
    pub fn leaf(value: f64) -> Branch {
        Branch::Leaf { votes: vec![(0, value)] }
    }

    /// A split `x <= value`; missing values go to "no".
    pub fn at_most(feature: usize, value: f64, yes: usize, no: usize) -> Branch {
        let test = Test::AtMost(value);
        Branch::Split { feature, test, yes, no, missing_yes: false, zero_is_missing: false }
    }
}

/// A tree: its nodes, the root first, and how much of the training data each has seen where that is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    /// The nodes.
    pub nodes: Vec<Branch>,
    /// Training rows, or their weight, at each node; empty where the file does not say.
    pub cover: Vec<f64>,
}

/// How the votes of trees become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregate {
    /// Their sum.
    #[default]
    Sum,
    /// Their sum over the number of trees.
    Average,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// Everything that an ensemble is made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Description {
    /// The number of features of a row.
    pub features: usize,
    /// The number of raw sums that leaves vote for.
    pub raw: usize,
    /// The trees.
    pub trees: Vec<Tree>,
    /// What is added to each raw sum; empty for none.
    pub base: Vec<f64>,
    /// How votes are put together.
    pub aggregate: Aggregate,
    /// The outputs; empty where they are the raw sums.
    pub columns: Vec<Column>,
    /// The final activation.
    pub link: Link,
    /// Whether features are rounded to 32 bits before they are compared, as most libraries do.
    pub single: bool,
    /// The names of the features; empty where there are none.
    pub names: Vec<String>,
}
