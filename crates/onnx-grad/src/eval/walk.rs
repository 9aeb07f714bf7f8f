//! Walking over the positions of a tensor, and what broadcasting makes of shapes.

use super::Array;
use super::call::Call;
use crate::error::Result;

/// All positions of a shape, last axis fastest.
///
/// Not an `Iterator`, because each step lends the same buffer.
pub(super) struct Walk {
    shape: Vec<usize>,
    index: Vec<usize>,
    left: usize,
    started: bool,
}

impl Walk {
    pub(super) fn new(shape: &[usize]) -> Walk {
        Walk {
            shape: shape.to_vec(),
            index: vec![0; shape.len()],
            left: shape.iter().product(),
            started: false,
        }
    }

    /// The next position.
    pub(super) fn step(&mut self) -> Option<&[usize]> {
        self.left = self.left.checked_sub(1)?;
        if std::mem::replace(&mut self.started, true) {
            for axis in (0..self.shape.len()).rev() {
                self.index[axis] += 1;
                if self.index[axis] < self.shape[axis] {
                    break;
                }
                self.index[axis] = 0;
            }
        }
        Some(&self.index)
    }
}

/// Row-major strides.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Strides of `shape` seen as the larger shape `target`: zero where an axis is repeated.
///
/// `shape` must broadcast to `target`.
pub(super) fn broadcast_strides(shape: &[usize], target: &[usize]) -> Vec<usize> {
    let missing = target.len() - shape.len();
    let own = strides(shape);
    (0..target.len())
        .map(|axis| match axis.checked_sub(missing) {
            Some(a) if shape[a] == target[axis] => own[a],
            _ => 0,
        })
        .collect()
}

/// Where a position lies in the flat data.
pub(super) fn offset(index: &[usize], strides: &[usize]) -> usize {
    index.iter().zip(strides).map(|(i, s)| i * s).sum()
}

/// The shape both broadcast to, in NumPy's way.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (m, n) if m == n => Some(m),
            (1, n) => Some(n),
            (m, 1) => Some(m),
            _ => None,
        })
        .collect()
}

/// The shape all inputs broadcast to.
pub(super) fn broadcast_all(call: &Call, arrays: &[&Array]) -> Result<Vec<usize>> {
    let mut shape = Vec::new();
    for array in arrays {
        shape = broadcast(&shape, array.shape()).ok_or_else(|| {
            call.malformed(format!("shapes {shape:?} and {:?} do not broadcast", array.shape()))
        })?;
    }
    call.room(&shape)?;
    Ok(shape)
}

/// The values of an array broadcast to `shape`.
pub(super) fn spread(call: &Call, array: &Array, shape: &[usize]) -> Result<Vec<f64>> {
    call.room(shape)?;
    match array.data.broadcast(shape) {
        Some(view) => Ok(view.iter().copied().collect()),
        None => Err(call.malformed(format!("shape {:?} does not broadcast to {shape:?}", array.shape()))),
    }
}

/// A shape around one axis: how many positions before it, along it, and after it.
pub(super) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// Replaces every run of values along `axis` by what `f` makes of it.
pub(super) fn along(array: &Array, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let (outer, length, inner) = around(array.shape(), axis);
    let values = array.values();
    let mut out = vec![0.0; values.len()];
    for o in 0..outer {
        for i in 0..inner {
            let at = |k: usize| (o * length + k) * inner + i;
            let lane: Vec<f64> = (0..length).map(|k| values[at(k)]).collect();
            for (k, value) in f(&lane).into_iter().enumerate() {
                out[at(k)] = value;
            }
        }
    }
    out
}
