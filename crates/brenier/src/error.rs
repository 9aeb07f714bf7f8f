//! Everything that can go wrong in the library, with the values that went wrong.

/// What can go wrong. Each message says what happened, with which value, and what to try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array does not have the shape that the operation needs.
    #[error("{what} has shape {found:?}, but {expected:?} is needed")]
    Shape {
        /// Which array.
        what: String,
        /// The shape that would fit.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;
