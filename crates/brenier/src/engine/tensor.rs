//! What goes into and comes out of a program: arrays of the few element types that models have at their ends.

use std::ops::Range;

use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Axis, Dimension, IxDyn, Slice};
use onnx_grad::DType;

use crate::error::{EngineError, Error, Result};

/// An array that a program returned.
#[derive(Debug, Clone, PartialEq)]
pub enum Tensor {
    /// 32-bit floats.
    F32(ArrayD<f32>),
    /// 64-bit floats.
    F64(ArrayD<f64>),
    /// Integers; where a model declares 32-bit integers, it takes and returns these too.
    I64(ArrayD<i64>),
    /// Booleans.
    Bool(ArrayD<bool>),
}

/// A borrowed array, to be passed to a program. Any strides will do; standard layout is not copied.
#[derive(Debug, Clone)]
pub enum TensorView<'a> {
    /// 32-bit floats.
    F32(ArrayViewD<'a, f32>),
    /// 64-bit floats.
    F64(ArrayViewD<'a, f64>),
    /// Integers.
    I64(ArrayViewD<'a, i64>),
    /// Booleans.
    Bool(ArrayViewD<'a, bool>),
}

/// The same expression for every element type.
macro_rules! each {
    ($type:ident, $self:expr, $array:ident => $body:expr) => {
        match $self {
            $type::F32($array) => $body,
            $type::F64($array) => $body,
            $type::I64($array) => $body,
            $type::Bool($array) => $body,
        }
    };
}

/// The same expression for every element type, whose value becomes the same variant of `$to`.
macro_rules! each_to {
    ($type:ident, $self:expr, $array:ident => $to:ident, $body:expr) => {
        match $self {
            $type::F32($array) => $to::F32($body),
            $type::F64($array) => $to::F64($body),
            $type::I64($array) => $to::I64($body),
            $type::Bool($array) => $to::Bool($body),
        }
    };
}

impl Tensor {
    /// The element type.
    pub fn dtype(&self) -> DType {
        self.view().dtype()
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        each!(Tensor, self, array => array.shape())
    }

    /// The array, borrowed.
    pub fn view(&self) -> TensorView<'_> {
        each_to!(Tensor, self, array => TensorView, array.view())
    }

    /// The array of 32-bit floats, or an error where it has another type.
    pub fn into_f32(self) -> Result<ArrayD<f32>> {
        match self {
            Tensor::F32(array) => Ok(array),
            other => {
                Err(Error::Engine(EngineError::OutputType { expected: DType::F32, found: other.dtype() }))
            }
        }
    }

    /// The array of 64-bit floats, or an error where it has another type.
    pub fn into_f64(self) -> Result<ArrayD<f64>> {
        match self {
            Tensor::F64(array) => Ok(array),
            other => {
                Err(Error::Engine(EngineError::OutputType { expected: DType::F64, found: other.dtype() }))
            }
        }
    }

    /// Zeros of this tensor's type and shape, but for the number of rows.
    pub(super) fn zeros_with_rows(&self, rows: usize) -> Tensor {
        let mut shape = self.shape().to_vec();
        shape[0] = rows;
        each_to!(Tensor, self, array => Tensor, zeros_like(array, &shape))
    }

    /// Copies the first rows of `source` into these rows. Types and row shapes are equal.
    pub(super) fn copy_rows(&mut self, rows: Range<usize>, source: &Tensor) {
        fn copy<T: Clone>(into: &mut ArrayD<T>, rows: Range<usize>, from: &ArrayD<T>) {
            let from = from.slice_axis(Axis(0), Slice::from(..rows.len()));
            into.slice_axis_mut(Axis(0), Slice::from(rows)).assign(&from);
        }
        match (self, source) {
            (Tensor::F32(into), Tensor::F32(from)) => copy(into, rows, from),
            (Tensor::F64(into), Tensor::F64(from)) => copy(into, rows, from),
            (Tensor::I64(into), Tensor::I64(from)) => copy(into, rows, from),
            (Tensor::Bool(into), Tensor::Bool(from)) => copy(into, rows, from),
            _ => unreachable!("a program's output has the same element type in every run"),
        }
    }
}

fn zeros_like<T: Clone + Default>(_: &ArrayD<T>, shape: &[usize]) -> ArrayD<T> {
    ArrayD::from_elem(IxDyn(shape), T::default())
}

impl TensorView<'_> {
    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            TensorView::F32(_) => DType::F32,
            TensorView::F64(_) => DType::F64,
            TensorView::I64(_) => DType::I64,
            TensorView::Bool(_) => DType::Bool,
        }
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        each!(TensorView, self, array => array.shape())
    }

    /// A copy that owns its elements.
    pub fn to_owned(&self) -> Tensor {
        each_to!(TensorView, self, array => Tensor, array.to_owned())
    }

    /// A copy of these rows, followed by repetitions of the last one up to `count` rows (zeros, where
    /// there is no row to repeat).
    pub(super) fn padded_rows(&self, rows: Range<usize>, count: usize) -> Tensor {
        fn take<T: Clone + Default>(from: &ArrayViewD<T>, rows: Range<usize>, count: usize) -> ArrayD<T> {
            if rows.is_empty() {
                let mut shape = from.shape().to_vec();
                shape[0] = count;
                return ArrayD::from_elem(IxDyn(&shape), T::default());
            }
            let last = rows.end - 1;
            let indices: Vec<usize> = (0..count).map(|i| (rows.start + i).min(last)).collect();
            from.select(Axis(0), &indices)
        }
        each_to!(TensorView, self, array => Tensor, take(array, rows, count))
    }
}

macro_rules! conversions {
    ($($element:ty => $variant:ident),*) => {$(
        impl<D: Dimension> From<Array<$element, D>> for Tensor {
            fn from(array: Array<$element, D>) -> Tensor {
                Tensor::$variant(array.into_dyn())
            }
        }
        impl<'a, D: Dimension> From<ArrayView<'a, $element, D>> for TensorView<'a> {
            fn from(array: ArrayView<'a, $element, D>) -> TensorView<'a> {
                TensorView::$variant(array.into_dyn())
            }
        }
        impl<'a, D: Dimension> From<&'a Array<$element, D>> for TensorView<'a> {
            fn from(array: &'a Array<$element, D>) -> TensorView<'a> {
                TensorView::$variant(array.view().into_dyn())
            }
        }
    )*};
}
conversions!(f32 => F32, f64 => F64, i64 => I64, bool => Bool);

impl<'a> From<&'a Tensor> for TensorView<'a> {
    fn from(tensor: &'a Tensor) -> TensorView<'a> {
        tensor.view()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn padding_repeats_the_last_row() {
        let a = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let view = TensorView::from(&a);
        let padded = view.padded_rows(1..3, 4);
        assert_eq!(padded, Tensor::from(array![[3.0f32, 4.0], [5.0, 6.0], [5.0, 6.0], [5.0, 6.0]]));
        assert_eq!(view.padded_rows(0..0, 2), Tensor::from(array![[0.0f32, 0.0], [0.0, 0.0]]));

        let mut all = padded.zeros_with_rows(3);
        all.copy_rows(1..3, &padded);
        assert_eq!(all, Tensor::from(array![[0.0f32, 0.0], [3.0, 4.0], [5.0, 6.0]]));
        assert!(all.into_f64().is_err());
    }
}
