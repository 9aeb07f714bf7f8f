//! Ops that look at one position at a time: arithmetic, comparisons, casts.

use super::Array;
use super::call::Call;
use super::walk::{broadcast_all, spread};
use crate::error::Result;
use crate::graph::Attribute;
use crate::tensor::DType;

/// A value as an element type holds it: integers are whole and wrap, floats stay as they are.
pub(super) fn fit(dtype: DType, value: f64) -> f64 {
    let wrap = |width: i32, signed: bool| {
        let span = f64::powi(2.0, width);
        let low = if signed { -span / 2.0 } else { 0.0 };
        let whole = value.trunc();
        match (low..low + span).contains(&whole) || !whole.is_finite() {
            true => whole + 0.0,
            false => (whole - low).rem_euclid(span) + low,
        }
    };
    match dtype {
        DType::F16 | DType::F32 | DType::F64 => value,
        DType::Bool => f64::from(value != 0.0),
        DType::I8 => wrap(8, true),
        DType::U8 => wrap(8, false),
        DType::I16 => wrap(16, true),
        DType::U16 => wrap(16, false),
        DType::I32 => wrap(32, true),
        DType::U32 => wrap(32, false),
        // Beyond 2^53 not every integer is an f64 anyway.
        DType::I64 | DType::U64 => value.trunc() + 0.0,
    }
}

/// What the maximum of no values is.
pub(super) fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 | DType::F32 | DType::F64 => f64::NEG_INFINITY,
        DType::I8 => f64::from(i8::MIN),
        DType::I16 => f64::from(i16::MIN),
        DType::I32 => f64::from(i32::MIN),
        DType::I64 => i64::MIN as f64,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool => 0.0,
    }
}

/// What the minimum of no values is.
pub(super) fn highest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 | DType::F32 | DType::F64 => f64::INFINITY,
        DType::I8 => f64::from(i8::MAX),
        DType::I16 => f64::from(i16::MAX),
        DType::I32 => f64::from(i32::MAX),
        DType::I64 => i64::MAX as f64,
        DType::U8 => f64::from(u8::MAX),
        DType::U16 => f64::from(u16::MAX),
        DType::U32 => f64::from(u32::MAX),
        DType::U64 => u64::MAX as f64,
        DType::Bool => 1.0,
    }
}

/// Applies `f` at every position.
pub(super) fn map(array: &Array, f: impl Fn(f64) -> f64) -> Array {
    Array { dtype: array.dtype, data: array.data.mapv(|v| fit(array.dtype, f(v))) }
}

/// Applies `f` at every position of two broadcast arrays.
pub(super) fn zip(call: &Call, dtype: DType, f: impl Fn(f64, f64) -> f64) -> Result<Array> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let shape = broadcast_all(call, &[a, b])?;
    let (a, b) = (spread(call, a, &shape)?, spread(call, b, &shape)?);
    call.array(dtype, &shape, a.into_iter().zip(b).map(|(a, b)| fit(dtype, f(a, b))).collect())
}

pub(super) fn unary(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let truth =
        |f: &dyn Fn(f64) -> bool| Array { dtype: DType::Bool, data: x.data.mapv(|v| f64::from(f(v))) };
    let f: fn(f64) -> f64 = match call.node.op.as_str() {
        "Neg" => |v| -v,
        "Sqrt" => f64::sqrt,
        "Exp" => f64::exp,
        "Log" => f64::ln,
        "Abs" => f64::abs,
        "Reciprocal" => f64::recip,
        "Erf" => libm::erf,
        "Sin" => f64::sin,
        "Cos" => f64::cos,
        "Tan" => f64::tan,
        "Asin" => f64::asin,
        "Acos" => f64::acos,
        "Atan" => f64::atan,
        "Sinh" => f64::sinh,
        "Cosh" => f64::cosh,
        "Asinh" => f64::asinh,
        "Acosh" => f64::acosh,
        "Atanh" => f64::atanh,
        "Floor" => f64::floor,
        "Ceil" => f64::ceil,
        "Round" => f64::round_ties_even,
        "Sign" => |v| if v == 0.0 { 0.0 } else { v.signum() },
        "Not" => return Ok(truth(&|v| v == 0.0)),
        "IsNaN" => return Ok(truth(&f64::is_nan)),
        "IsInf" => {
            let negative = call.node.int("detect_negative", 1) != 0;
            let positive = call.node.int("detect_positive", 1) != 0;
            return Ok(truth(&|v| v.is_infinite() && if v < 0.0 { negative } else { positive }));
        }
        _ => return Err(call.unsupported("it is no unary operator")),
    };
    Ok(map(x, f))
}

pub(super) fn arithmetic(call: &Call) -> Result<Array> {
    let dtype = call.input(0)?.dtype;
    match call.node.op.as_str() {
        "Add" => zip(call, dtype, |a, b| a + b),
        "Sub" => zip(call, dtype, |a, b| a - b),
        "Mul" => zip(call, dtype, |a, b| a * b),
        "Div" if !dtype.is_float() && call.input(1)?.data.iter().any(|&b| b == 0.0) => {
            Err(call.malformed("an integer is divided by zero"))
        }
        "Div" => zip(call, dtype, |a, b| a / b),
        "Pow" => zip(call, dtype, f64::powf),
        // `fmod` has the sign of the dividend as in C, otherwise of the divisor as in Python.
        "Mod" if call.node.int("fmod", 0) != 0 => zip(call, dtype, |a, b| a % b),
        "Mod" => zip(call, dtype, |a, b| {
            let r = a % b;
            if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
        }),
        _ => Err(call.unsupported("it is no arithmetic operator")),
    }
}

pub(super) fn comparison(call: &Call) -> Result<Array> {
    let f: fn(f64, f64) -> bool = match call.node.op.as_str() {
        "And" => |a, b| a != 0.0 && b != 0.0,
        "Or" => |a, b| a != 0.0 || b != 0.0,
        "Xor" => |a, b| (a != 0.0) != (b != 0.0),
        "Equal" => |a, b| a == b,
        "Greater" => |a, b| a > b,
        "GreaterOrEqual" => |a, b| a >= b,
        "Less" => |a, b| a < b,
        "LessOrEqual" => |a, b| a <= b,
        _ => return Err(call.unsupported("it is no comparison")),
    };
    zip(call, DType::Bool, |a, b| f64::from(f(a, b)))
}

/// The larger, or NaN where either is.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller, or NaN where either is.
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

pub(super) fn variadic(call: &Call) -> Result<Array> {
    let arrays = call.all()?;
    let shape = broadcast_all(call, &arrays)?;
    let dtype = arrays[0].dtype;
    let mut total = spread(call, arrays[0], &shape)?;
    let f: fn(f64, f64) -> f64 = match call.node.op.as_str() {
        "Min" => smaller,
        "Max" => larger,
        _ => |a, b| a + b,
    };
    for array in &arrays[1..] {
        for (t, v) in total.iter_mut().zip(spread(call, array, &shape)?) {
            *t = f(*t, v);
        }
    }
    if call.node.op == "Mean" {
        total.iter_mut().for_each(|t| *t /= arrays.len() as f64);
    }
    total.iter_mut().for_each(|t| *t = fit(dtype, *t));
    call.array(dtype, &shape, total)
}

pub(super) fn clip(call: &Call) -> Result<Array> {
    let bound = |i: usize| call.optional(i).map(|_| call.scalar(i)).transpose();
    let (low, high) = (bound(1)?, bound(2)?);
    Ok(map(call.input(0)?, |v| {
        let v = low.filter(|&low| v < low).unwrap_or(v);
        high.filter(|&high| v > high).unwrap_or(v)
    }))
}

pub(super) fn choose(call: &Call) -> Result<Array> {
    let (condition, x, y) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let shape = broadcast_all(call, &[condition, x, y])?;
    let (condition, yes, no) =
        (spread(call, condition, &shape)?, spread(call, x, &shape)?, spread(call, y, &shape)?);
    let values = (0..condition.len()).map(|i| if condition[i] != 0.0 { yes[i] } else { no[i] }).collect();
    call.array(x.dtype, &shape, values)
}

pub(super) fn cast(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let dtype = match (call.node.op.as_str(), call.node.attributes.get("to")) {
        ("CastLike", _) => call.input(1)?.dtype,
        (_, Some(Attribute::Int(code))) => i32::try_from(*code)
            .ok()
            .and_then(DType::from_code)
            .ok_or_else(|| call.unsupported(format!("element type code {code} is not read")))?,
        _ => return Err(call.malformed("attribute 'to' is missing")),
    };
    // NaN has no integer; zero is what most hardware gives.
    let whole = |v: f64| if v.is_nan() && !dtype.is_float() && dtype != DType::Bool { 0.0 } else { v };
    Ok(Array { dtype, data: x.data.mapv(|v| fit(dtype, whole(v))) })
}
