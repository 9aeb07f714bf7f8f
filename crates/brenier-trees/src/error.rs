//! What can be wrong with a file, an ensemble or a question about it.

/// Everything that goes wrong here, each in one sentence with its values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that is not what it should be.
    #[error("this is no {format} that can be read: {reason}")]
    Malformed {
        /// The format that was expected.
        format: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// A file of a kind of model that is not a sum of trees.
    #[error("{what} cannot be read as trees: {remedy}")]
    Unsupported {
        /// The model.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Nodes that do not form trees.
    #[error("tree {tree} is broken: {reason}")]
    Tree {
        /// The tree, counted from 0.
        tree: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Rows of another width, or a target that does not exist.
    #[error("{what} should be {expected}, but is {found}")]
    Mismatch {
        /// What does not fit.
        what: &'static str,
        /// What would fit.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A question that has no exact answer for this ensemble.
    #[error("{question} is not defined for {reason}")]
    Undefined {
        /// What was asked.
        question: &'static str,
        /// Why there is no answer, and what to ask instead.
        reason: &'static str,
    },
}

/// The result of everything that can go wrong here.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn expect(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Mismatch { what, expected, found }) }
}
