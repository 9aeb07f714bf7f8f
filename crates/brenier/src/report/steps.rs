//! Numbers to be looked at, not to be reported: rounded to a few steps between the smallest and the largest.
//!
//! ```text
//! v ~ low + k (high - low) / (256^bytes - 1)
//! ```

use ndarray::{Array1, ArrayView1};

use crate::error::{Error, Result};

/// Numbers between `low` and `high`, which include 0, in steps of one or two bytes, the low byte first.
pub(super) struct Steps {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) data: Vec<u8>,
}

/// Numbers rounded to the nearest of 256 or 65,536 steps.
pub(super) fn steps(values: ArrayView1<f64>, bytes: u8) -> Result<Steps> {
    if let Some((feature, &value)) = values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(Error::NonFinite {
            what: "a number of the report",
            example: 0,
            time: 1.0,
            place: format!("feature {feature}"),
            value,
        });
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min).min(0.0);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max).max(0.0);
    let count = if bytes == 1 { 255.0 } else { 65_535.0 };
    let scale = if high > low { count / (high - low) } else { 0.0 };
    let mut data = Vec::with_capacity(values.len() * usize::from(bytes));
    for value in values {
        let step = ((value - low) * scale).round() as u16;
        data.extend_from_slice(&step.to_le_bytes()[..usize::from(bytes)]);
    }
    Ok(Steps { low, high, data })
}

/// The numbers behind steps of two bytes.
pub(super) fn from_steps(steps: impl Iterator<Item = u16>, low: f64, high: f64) -> Array1<f64> {
    steps.map(|step| low + f64::from(step) * (high - low) / 65_535.0).collect()
}

/// Two bytes as one step.
pub(super) fn wide(data: &[u8]) -> impl Iterator<Item = u16> + '_ {
    data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn numbers_come_back_to_within_a_step() {
        let values = array![-1.5, 0.0, 0.25, 3.0];
        let Steps { low, high, data } = steps(values.view(), 1).unwrap();
        for (step, value) in data.iter().zip(&values) {
            let found = low + f64::from(*step) * (high - low) / 255.0;
            assert!((found - value).abs() <= 0.51 * 4.5 / 255.0, "{found} {value}");
        }
        let Steps { low, high, data } = steps(values.view(), 2).unwrap();
        let found = from_steps(wide(&data), low, high);
        assert!((found - &values).iter().all(|d| d.abs() <= 0.51 * 4.5 / 65_535.0));
        assert!(steps(array![f64::NAN].view(), 2).is_err());
    }
}
