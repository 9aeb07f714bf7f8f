//! Maps that are linear along one axis: padding by reflection, resizing.
//!
//! Such a map is a matrix `A` with one row for every element it makes, and its gradient is `A^T`. The rows
//! have few entries, but a matrix product along an axis is what engines do best, and one page serves every
//! mode of `Pad` and `Resize`.

use super::Step;
use crate::build::Value;
use crate::error::Result;
use crate::resample::Row;
use crate::tensor::{DType, TensorData};

/// Row by row, which elements (and how much of each) make up an element of the output.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinearMap {
    pub(super) inputs: usize,
    pub(super) rows: Vec<Row>,
}

impl LinearMap {
    /// Every output is one input.
    pub(super) fn picks(inputs: usize, picks: impl Iterator<Item = usize>) -> LinearMap {
        LinearMap { inputs, rows: picks.map(|i| vec![(i, 1.0)]).collect() }
    }

    /// `Some(k)` where every input is repeated `k` times in a row.
    pub(super) fn repeats(&self) -> Option<usize> {
        let times = self.rows.len() / self.inputs.max(1);
        let repeats = self.rows.len() == times * self.inputs
            && self.rows.iter().enumerate().all(|(o, row)| *row == [(o / times, 1.0)]);
        (repeats && times > 0).then_some(times)
    }

    /// Applies `A^T` along `axis` of `dy`.
    pub(super) fn transposed(&self, step: &mut Step<'_>, dy: &str, axis: usize) -> Result<Value> {
        let rank = step.shape(dy)?.len();
        let (outputs, inputs) = (self.rows.len(), self.inputs);
        step.table(&[outputs as i64, inputs as i64])?;
        let dtype = step.b.fact(dy).dtype.unwrap_or(DType::F32);
        let mut matrix = vec![0.0; outputs * inputs];
        for (o, row) in self.rows.iter().enumerate() {
            for &(i, weight) in row {
                matrix[o * inputs + i] += weight;
            }
        }
        if axis + 2 == rank {
            // Second to last: the transpose from the left.
            let transpose: Vec<f64> =
                (0..inputs * outputs).map(|k| matrix[(k % outputs) * inputs + k / outputs]).collect();
            let left = step.b.constant(TensorData::from_f64(dtype, &[inputs, outputs], &transpose));
            return Ok(step.b.matmul(&left, dy));
        }
        let right = step.b.constant(TensorData::from_f64(dtype, &[outputs, inputs], &matrix));
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 1);
        let moved = step.b.transpose(dy, &perm);
        let product = step.b.matmul(&moved, &right);
        Ok(step.b.transpose(&product, &perm))
    }
}

/// Where the elements of a padded axis come from.
pub(super) fn padding(mode: &str, size: i64, before: i64, after: i64) -> Option<LinearMap> {
    let source = |place: i64| match mode {
        "edge" => Some(place.clamp(0, size - 1)),
        "wrap" => {
            // What is cut off does not wrap around.
            let first = (-before).max(0);
            let left = size - first - (-after).max(0);
            (left > 0).then(|| first + (place - first).rem_euclid(left))
        }
        "reflect" => {
            let period = (2 * (size - 1)).max(1);
            let folded = place.rem_euclid(period);
            Some(if folded < size { folded } else { period - folded })
        }
        _ => None,
    };
    let picks: Option<Vec<usize>> =
        (-before..size + after).map(|p| source(p).and_then(|s| usize::try_from(s).ok())).collect();
    Some(LinearMap::picks(size as usize, picks?.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflection_does_not_repeat_the_edge() {
        let map = padding("reflect", 3, 2, 1).unwrap();
        let picks: Vec<usize> = map.rows.iter().map(|r| r[0].0).collect();
        assert_eq!(picks, [2, 1, 0, 1, 2, 1]);
    }

    #[test]
    fn upsampling_by_two_repeats() {
        let map = LinearMap::picks(3, [0, 0, 1, 1, 2, 2].into_iter());
        assert_eq!(map.repeats(), Some(2));
    }
}
