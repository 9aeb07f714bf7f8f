//! What is asked of arrays in many places.

use super::{Error, Result};

/// Refuses an array whose shape is not the expected one.
pub(crate) fn expect_shape(what: &str, expected: &[usize], found: &[usize]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape { what: what.to_owned(), expected: expected.to_vec(), found: found.to_vec() })
}

/// Refuses the first value of a row that is NaN or infinite, naming its feature.
pub(crate) fn expect_finite<'a>(
    what: &'static str,
    example: usize,
    time: f64,
    row: impl IntoIterator<Item = &'a f64>,
) -> Result<()> {
    match row.into_iter().enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((feature, &value)) => {
            Err(Error::NonFinite { what, example, time, place: format!("feature {feature}"), value })
        }
    }
}
