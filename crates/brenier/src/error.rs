//! Everything that can go wrong in the library, with the values that went wrong.
//!
//! A message says what happened and with which value; where there is something to try, it follows on a
//! line of its own that begins with `hint:`.

use std::path::PathBuf;

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

    /// A setting has a value with which nothing can be computed.
    #[error("{name} is {value}, but {needs}\nhint: {hint}")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// The value it was given.
        value: String,
        /// What holds for values that work.
        needs: &'static str,
        /// A value to try.
        hint: &'static str,
    },

    /// A score, a gradient or a velocity is not a finite number.
    #[error(
        "{what} is {value} at {place} (example {example}, time {time})\nhint: look at the input there: {what} \
         is not defined for it, or a number grew beyond the model's range"
    )]
    NonFinite {
        /// What was computed: score, gradient, velocity, state.
        what: &'static str,
        /// Which example of the batch, counted from 0.
        example: usize,
        /// The time on the path, 0 at the reference and 1 at the data.
        time: f64,
        /// Which entry: a feature's index, or the output.
        place: String,
        /// The value: NaN or an infinity.
        value: f64,
    },

    /// The adaptive solver cannot make its step small enough.
    #[error(
        "step size underflow: example {example} needs steps below {step:e} at time {time} (largest |velocity| \
         {speed:e})\nhint: the field blows up or is very stiff there; loosen the tolerance, or use fixed steps"
    )]
    StepUnderflow {
        /// Which example of the batch, counted from 0.
        example: usize,
        /// Where on the path.
        time: f64,
        /// The step that was still too large.
        step: f64,
        /// The largest velocity component at that place.
        speed: f64,
    },

    /// The adaptive solver used up its steps.
    #[error(
        "example {example} reached only time {time} after {steps} solver steps\nhint: allow more steps or \
         loosen the tolerance"
    )]
    TooManySteps {
        /// Which example of the batch, counted from 0.
        example: usize,
        /// How far it came.
        time: f64,
        /// The limit.
        steps: usize,
    },

    /// Adaptive stepping was asked of a method without an error estimate.
    #[error(
        "{method} has no embedded error estimate, so its step size cannot adapt\nhint: use dormand-prince or \
         heun, or a fixed number of steps"
    )]
    NoErrorEstimate {
        /// The method's name.
        method: &'static str,
    },

    /// A covariance has an eigenvalue that is not positive.
    #[error(
        "{what} is not positive definite: its smallest eigenvalue is {eigenvalue:e}\nhint: add a small \
         multiple of the identity"
    )]
    NotPositiveDefinite {
        /// Which matrix.
        what: &'static str,
        /// The offending eigenvalue.
        eigenvalue: f64,
    },

    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Refuses an array whose shape is not the expected one.
pub(crate) fn expect_shape(what: &str, expected: &[usize], found: &[usize]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.to_owned(),
        expected: expected.to_vec(),
        found: found.to_vec(),
    })
}

/// Refuses the first value of a row that is NaN or infinite, naming its feature.
pub(crate) fn expect_finite<'a>(
    what: &'static str,
    example: usize,
    time: f64,
    row: impl IntoIterator<Item = &'a f64>,
) -> Result<()> {
    match row
        .into_iter()
        .enumerate()
        .find(|(_, value)| !value.is_finite())
    {
        None => Ok(()),
        Some((feature, &value)) => Err(Error::NonFinite {
            what,
            example,
            time,
            place: format!("feature {feature}"),
            value,
        }),
    }
}
