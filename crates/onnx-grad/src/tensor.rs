//! Tensors at rest: an element type, a shape, and little-endian bytes.
//!
//! A [`TensorData`] is what a graph holds as a weight or a constant. Its bytes are shared, so cloning a
//! graph does not copy weights. Arithmetic is not its business: [`crate::eval`] converts to `f64` arrays.

use bytes::Bytes;
use half::f16;

use crate::error::{Error, Result};

/// The element types that are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit integer.
    I8,
    /// 16-bit unsigned integer.
    U16,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Boolean, one byte each.
    Bool,
    /// 16-bit float.
    F16,
    /// 64-bit float.
    F64,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
}

/// Code in the file, name in messages, bytes per element.
const TYPES: [(DType, i32, &str, usize); 12] = [
    (DType::F32, 1, "float32", 4),
    (DType::U8, 2, "uint8", 1),
    (DType::I8, 3, "int8", 1),
    (DType::U16, 4, "uint16", 2),
    (DType::I16, 5, "int16", 2),
    (DType::I32, 6, "int32", 4),
    (DType::I64, 7, "int64", 8),
    (DType::Bool, 9, "bool", 1),
    (DType::F16, 10, "float16", 2),
    (DType::F64, 11, "float64", 8),
    (DType::U32, 12, "uint32", 4),
    (DType::U64, 13, "uint64", 8),
];

impl DType {
    fn row(self) -> &'static (DType, i32, &'static str, usize) {
        TYPES.iter().find(|row| row.0 == self).expect("every element type has a row in TYPES")
    }

    /// The type's code in `TensorProto.data_type`.
    pub fn code(self) -> i32 {
        self.row().1
    }

    /// The type with this code, if it is one that is read.
    pub fn from_code(code: i32) -> Option<DType> {
        TYPES.iter().find(|row| row.1 == code).map(|row| row.0)
    }

    /// The name as NumPy has it.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Bytes per element.
    pub fn size(self) -> usize {
        self.row().3
    }

    /// Whether gradients flow through values of this type.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A tensor's element type, shape and little-endian bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct TensorData {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Bytes,
}

impl std::fmt::Debug for TensorData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)?;
        if self.len() <= 8 {
            write!(f, " {:?}", self.to_f64())?;
        }
        Ok(())
    }
}

/// Tensors of more axes than this do not occur, and a few nodes can ask for billions: a `Gather` whose
/// data and indices are the same tensor doubles the number of axes.
pub(crate) const MAX_RANK: usize = 64;

/// The number of elements of a shape, or `None` where it does not fit the address space.
///
/// An axis of size zero does not excuse absurd other axes: strides are computed from them all the same.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    let nonzero = shape.iter().filter(|&&dim| dim > 0).try_fold(1usize, |n, &dim| n.checked_mul(dim))?;
    isize::try_from(nonzero).ok()?;
    Some(if shape.contains(&0) { 0 } else { nonzero })
}

impl TensorData {
    /// A tensor of raw little-endian bytes, whose number must fit type and shape.
    pub fn from_bytes(dtype: DType, shape: Vec<usize>, bytes: impl Into<Bytes>) -> Result<Self> {
        let bytes = bytes.into();
        let needed = element_count(&shape).and_then(|count| count.checked_mul(dtype.size()));
        if needed != Some(bytes.len()) {
            return Err(Error::Tensor {
                name: String::new(),
                reason: format!("{dtype}{shape:?} does not fit its {} bytes of data", bytes.len()),
            });
        }
        Ok(TensorData { dtype, shape, bytes })
    }

    fn from_elements<T, const B: usize>(
        dtype: DType,
        shape: &[usize],
        values: &[T],
        to_bytes: impl Fn(&T) -> [u8; B],
    ) -> Self {
        assert_eq!(
            element_count(shape),
            Some(values.len()),
            "shape {shape:?} does not hold {} values",
            values.len()
        );
        let mut bytes = Vec::with_capacity(values.len() * B);
        for value in values {
            bytes.extend_from_slice(&to_bytes(value));
        }
        TensorData { dtype, shape: shape.to_vec(), bytes: bytes.into() }
    }

    /// A float32 tensor. Panics where the number of values does not fit the shape.
    pub fn f32(shape: &[usize], values: &[f32]) -> Self {
        Self::from_elements(DType::F32, shape, values, |v| v.to_le_bytes())
    }

    /// A float64 tensor. Panics where the number of values does not fit the shape.
    pub fn f64(shape: &[usize], values: &[f64]) -> Self {
        Self::from_elements(DType::F64, shape, values, |v| v.to_le_bytes())
    }

    /// An int64 tensor. Panics where the number of values does not fit the shape.
    pub fn i64(shape: &[usize], values: &[i64]) -> Self {
        Self::from_elements(DType::I64, shape, values, |v| v.to_le_bytes())
    }

    /// A boolean tensor. Panics where the number of values does not fit the shape.
    pub fn bool(shape: &[usize], values: &[bool]) -> Self {
        Self::from_elements(DType::Bool, shape, values, |v| [u8::from(*v)])
    }

    /// A vector of int64, the form in which ONNX wants axes and shapes.
    pub fn ints(values: &[i64]) -> Self {
        Self::i64(&[values.len()], values)
    }

    /// Values of any type, rounded to it. Panics where their number does not fit the shape.
    pub fn from_f64(dtype: DType, shape: &[usize], values: &[f64]) -> Self {
        match dtype {
            DType::F32 => Self::from_elements(dtype, shape, values, |v| (*v as f32).to_le_bytes()),
            DType::F64 => Self::from_elements(dtype, shape, values, |v| v.to_le_bytes()),
            DType::F16 => Self::from_elements(dtype, shape, values, |v| f16::from_f64(*v).to_le_bytes()),
            DType::I64 => Self::from_elements(dtype, shape, values, |v| (*v as i64).to_le_bytes()),
            DType::I32 => Self::from_elements(dtype, shape, values, |v| (*v as i32).to_le_bytes()),
            DType::I16 => Self::from_elements(dtype, shape, values, |v| (*v as i16).to_le_bytes()),
            DType::I8 => Self::from_elements(dtype, shape, values, |v| (*v as i8).to_le_bytes()),
            DType::U64 => Self::from_elements(dtype, shape, values, |v| (*v as u64).to_le_bytes()),
            DType::U32 => Self::from_elements(dtype, shape, values, |v| (*v as u32).to_le_bytes()),
            DType::U16 => Self::from_elements(dtype, shape, values, |v| (*v as u16).to_le_bytes()),
            DType::U8 => Self::from_elements(dtype, shape, values, |v| [*v as u8]),
            DType::Bool => Self::from_elements(dtype, shape, values, |v| [u8::from(*v != 0.0)]),
        }
    }

    /// One number, as a tensor without axes.
    pub fn scalar(dtype: DType, value: f64) -> Self {
        Self::from_f64(dtype, &[], &[value])
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The little-endian bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The same bytes under another shape of as many elements.
    pub fn reshaped(&self, shape: Vec<usize>) -> Result<Self> {
        Self::from_bytes(self.dtype, shape, self.bytes.clone())
    }

    fn elements<'a, T, const B: usize>(
        &'a self,
        from_bytes: impl Fn([u8; B]) -> T + 'a,
    ) -> impl Iterator<Item = T> + 'a {
        self.bytes
            .chunks_exact(B)
            .map(move |chunk| from_bytes(chunk.try_into().expect("chunks_exact gives chunks of B bytes")))
    }

    /// All elements as `f64`, in row-major order. Integers beyond 2^53 lose their last digits.
    pub fn to_f64(&self) -> Vec<f64> {
        match self.dtype {
            DType::F32 => self.elements(|b| f64::from(f32::from_le_bytes(b))).collect(),
            DType::F64 => self.elements(f64::from_le_bytes).collect(),
            DType::F16 => self.elements(|b| f16::from_le_bytes(b).to_f64()).collect(),
            DType::U64 => self.elements(|b| u64::from_le_bytes(b) as f64).collect(),
            _ => self.to_i64().into_iter().map(|v| v as f64).collect(),
        }
    }

    /// All elements as `f32`, in row-major order.
    pub fn to_f32(&self) -> Vec<f32> {
        match self.dtype {
            DType::F32 => self.elements(f32::from_le_bytes).collect(),
            _ => self.to_f64().into_iter().map(|v| v as f32).collect(),
        }
    }

    /// All elements as `i64`, in row-major order; floats are truncated toward zero.
    pub fn to_i64(&self) -> Vec<i64> {
        match self.dtype {
            DType::I64 => self.elements(i64::from_le_bytes).collect(),
            DType::I32 => self.elements(|b| i64::from(i32::from_le_bytes(b))).collect(),
            DType::I16 => self.elements(|b| i64::from(i16::from_le_bytes(b))).collect(),
            DType::I8 => self.elements(|b| i64::from(i8::from_le_bytes(b))).collect(),
            DType::U64 => self.elements(|b| u64::from_le_bytes(b) as i64).collect(),
            DType::U32 => self.elements(|b| i64::from(u32::from_le_bytes(b))).collect(),
            DType::U16 => self.elements(|b| i64::from(u16::from_le_bytes(b))).collect(),
            DType::U8 => self.elements(|[b]: [u8; 1]| i64::from(b)).collect(),
            DType::Bool => self.elements(|[b]: [u8; 1]| i64::from(b != 0)).collect(),
            DType::F16 | DType::F32 | DType::F64 => self.to_f64().into_iter().map(|v| v as i64).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_keeps_small_integers() {
        for (dtype, code, _, size) in TYPES {
            assert_eq!(DType::from_code(code), Some(dtype));
            let tensor = TensorData::from_f64(dtype, &[2], &[0.0, 1.0]);
            assert_eq!(tensor.bytes().len(), 2 * size);
            assert_eq!(tensor.to_f64(), [0.0, 1.0]);
            assert_eq!(tensor.to_i64(), [0, 1]);
        }
    }

    #[test]
    fn bytes_must_fit_the_shape() {
        assert!(TensorData::from_bytes(DType::F32, vec![2, 2], vec![0u8; 15]).is_err());
        assert!(TensorData::from_bytes(DType::F32, vec![usize::MAX, 8], vec![]).is_err());
        assert!(TensorData::from_bytes(DType::F32, vec![0, i64::MAX as usize, 4], vec![]).is_err());
        assert!(TensorData::from_bytes(DType::F32, vec![0, 7, 4], vec![]).is_ok());
    }
}
