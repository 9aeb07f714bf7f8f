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

/// A question of a tree, asked about another feature.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The feature that is asked now.
    pub feature: usize,
    /// What is asked of it.
    pub test: Test,
    /// Whether "yes" is now where "no" was.
    pub turned: bool,
    /// Whether a missing value counts as "yes" of the question as it was.
    pub missing_yes: bool,
}

impl Description {
    /// The same trees over other features: `question` says what is asked in the place of a test of a feature, with what a missing
    /// value did there.
    ///
    /// ```
    /// use brenier_trees::{Branch, Description, Ensemble, Moved, Test, Tree};
    ///
    /// // The trees saw -2 x: what was `-2 x <= 3` is `x >= -1.5`, which is not `x < -1.5`.
    /// let nodes = vec![Branch::at_most(0, 3.0, 1, 2), Branch::leaf(1.0), Branch::leaf(0.0)];
    /// let trees = vec![Tree { nodes, cover: vec![] }];
    /// let seen = Description { features: 1, raw: 1, trees, ..Description::default() };
    /// let own = seen.moved(1, |_, _, missing_yes| {
    ///     Ok::<_, brenier_trees::Error>(Moved { feature: 0, test: Test::Below(-1.5), turned: true, missing_yes })
    /// })?;
    /// assert_eq!(Ensemble::new(own)?.scores(&[-1.6, -1.5, 0.0])?, [0.0, 1.0, 1.0]);
    /// # Ok::<(), brenier_trees::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `question`.
    pub fn moved<E>(
        mut self,
        features: usize,
        mut question: impl FnMut(usize, &Test, bool) -> Result<Moved, E>,
    ) -> Result<Description, E> {
        for branch in self.trees.iter_mut().flat_map(|tree| &mut tree.nodes) {
            if let Branch::Split { feature, test, yes, no, missing_yes, .. } = branch {
                let moved = question(*feature, test, *missing_yes)?;
                *feature = moved.feature;
                *test = moved.test;
                *missing_yes = moved.missing_yes;
                if moved.turned {
                    std::mem::swap(yes, no);
                    *missing_yes = !moved.missing_yes;
                }
            }
        }
        self.features = features;
        self.names = Vec::new();
        Ok(self)
    }
}
