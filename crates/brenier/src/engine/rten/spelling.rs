//! Operators that RTen 0.27 computes otherwise than ONNX says, written in others that it computes as ONNX says.
//!
//! | operator | what RTen does | what is done here |
//! |---|---|---|
//! | `Resize` | cubic as linear; no `axes`; picks by `1 / scale`, one pixel off for some sizes | along each axis a matrix product or a `Gather` |
//! | `ConvTranspose` | `output_shape` is not read, `SAME_LOWER` taken for `SAME_UPPER` | padding in numbers |
//! | `ConvInteger`, `MatMulInteger` | sums of 8-bit products saturate without VNNI, zero points of weights | in float32 |
//! | `Cast` to a boolean | 2 stays 2, 0.5 becomes 0 | `not (x = 0)` |
//! | `Pow` | fails with an integer exponent | the exponent as a float |
//! | `QuantizeLinear` | scales along the last axis where none is named | the axis 1 named |
//! | `DynamicQuantizeLinear` | a scale of 0 for zeros | written out |
//! | `Softplus` | infinite above 88 | `softplus(min(x, 30)) + relu(x - 30)` |
//! | `ReduceX` with `noop_with_empty_axes` | elements as they are, or the mean of all | the function of each element |
//! | `ReduceMax`, `ReduceMin` of booleans | not 0 or 1 for none | as integers |
//! | `MatMul` with a vector on the right | keeps an axis | a matrix of one column |
//! | `Expand` to fewer axes | panics | ones in front |
//! | `LSTM`, `GRU` of unknown length | lengths of sequences and peepholes are not heeded | refused |
//!
//! `Sign`, `ArgMax` and `ArgMin` are put right in `quirks`. Left as it is: NaN becomes 0 in `Relu` (and in `Sign` there).
//!
//! `tests/operators.rs` compares every operator with the reference; what it finds belongs here.

mod quantised;
mod shapes;
mod windows;

use onnx_grad::{Builder, DType, Graph, Node, Value};

use super::Rten;
use crate::error::{EngineError, Error, Remedy, Result};

type Spell = fn(&mut Builder, &Node) -> Result<Option<Value>>;

/// Every operator that must be looked at.
const SPELLINGS: &[(&str, Spell)] = &[
    ("Cast", cast),
    ("CastLike", cast),
    ("ConvInteger", quantised::conv_integer),
    ("ConvTranspose", windows::conv_transpose),
    ("Expand", shapes::expand),
    ("GRU", recurrent),
    ("LSTM", recurrent),
    ("MatMul", shapes::matmul),
    ("MatMulInteger", quantised::matmul_integer),
    ("Pow", pow),
    ("QuantizeLinear", quantised::quantize),
    ("Resize", windows::resize),
    ("Softplus", softplus),
];

fn find(node: &Node) -> Option<Spell> {
    if node.is_standard() && node.op.starts_with("Reduce") {
        return Some(shapes::reduce);
    }
    SPELLINGS.iter().find(|(op, _)| node.is(op)).map(|(_, spell)| *spell)
}

/// Whether a node must be looked at.
pub(super) fn concerns(node: &Node) -> bool {
    find(node).is_some() || node.is("DynamicQuantizeLinear")
}

/// What takes the place of a node, or nothing where RTen computes it as it should.
pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Vec<Value>>> {
    if node.is("DynamicQuantizeLinear") {
        return quantised::dynamic_quantize(b, node).map(Some);
    }
    match find(node) {
        Some(spell) => Ok(spell(b, node)?.map(|value| vec![value])),
        None => Ok(None),
    }
}

/// Refuses what RTen would compute otherwise than ONNX says and cannot be spelled out: padding by sizes that are not known,
/// and, inside bodies, whose nodes stay as they are, whatever would be.
pub(super) fn refuse(graph: &Graph) -> Result<()> {
    let lower = |node: &&Node| node.string("auto_pad", "NOTSET") == "SAME_LOWER" && !node.is("ConvTranspose");
    if let Some(node) = graph.nodes.iter().find(lower) {
        return Err(refusal(node, "RTen pads it as SAME_UPPER, and its sizes are not known before it runs"));
    }
    for body in graph.nodes.iter().flat_map(Node::bodies) {
        // Of these only rare forms are computed otherwise, and what they are cannot be told without the graph around.
        let mostly_right = ["Expand", "MatMul", "Pow", "QuantizeLinear"];
        let right = |node: &Node| match node.op.as_str() {
            "Cast" => node.int("to", 0) != i64::from(DType::Bool.code()),
            op => {
                mostly_right.contains(&op)
                    || op.starts_with("Reduce") && node.int("noop_with_empty_axes", 0) == 0
            }
        };
        if let Some(node) = body.nodes.iter().find(|node| concerns(node) && !right(node)) {
            return Err(refusal(
                node,
                "inside the body of another node RTen computes it otherwise than ONNX says",
            ));
        }
        refuse(body)?;
    }
    Ok(())
}

fn refusal(node: &Node, reason: impl Into<String>) -> Error {
    Error::Engine(EngineError::Load {
        engine: Rten::NAME,
        node: Some(node.label()),
        reason: reason.into(),
        remedy: Remedy::OnnxRuntime,
    })
}

fn input(node: &Node, i: usize) -> Result<&str> {
    node.input(i).ok_or_else(|| refusal(node, format!("it has no input {i}")))
}

/// To a boolean: `not (x = 0)`. RTen keeps booleans as integers, and a cast would leave 2 as 2 and make 0.5 a 0.
fn cast(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let to = match node.op.as_str() {
        "Cast" => DType::from_code(node.int("to", 0) as i32),
        _ => b.fact(input(node, 1)?).dtype,
    };
    let from = b.fact(x).dtype;
    if to != Some(DType::Bool) || from == Some(DType::Bool) {
        return Ok(None);
    }
    let Some(from) = from else {
        return Err(refusal(
            node,
            "RTen casts to a boolean otherwise than ONNX says, and from what is not known",
        ));
    };
    // Comparisons of bytes are those of integers.
    let wide = if from.is_float() { Value::named(x) } else { b.cast(x, DType::I32) };
    let zero = b.scalar_like(&wide, 0.0);
    let none = b.op("Equal", &[&wide, &zero]);
    Ok(Some(b.op("Not", &[&none])))
}

/// `log(1 + e^x)` overflows in RTen where `e^x` does. It is `x` to the last bit long before.
fn softplus(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let most = b.scalar_like(x, 30.0);
    let bent = b.op("Min", &[x, &most]);
    let bent = b.op("Softplus", &[&bent]);
    let rest = b.sub(x, &most);
    let rest = b.op("Relu", &[&rest]);
    Ok(Some(b.add(&bent, &rest)))
}

/// RTen takes exponents of the base's type only.
fn pow(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (x, exponent) = (input(node, 0)?, input(node, 1)?);
    let (base, power) = (b.fact(x).dtype, b.fact(exponent).dtype);
    if base != Some(DType::F32) || power.is_none_or(|dtype| dtype.is_float()) {
        return Ok(None);
    }
    let exponent = b.cast(exponent, DType::F32);
    Ok(Some(b.op("Pow", &[x, &exponent])))
}

/// RTen reads every sequence to its end, whatever lengths are given, and knows no peepholes.
fn recurrent(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    if let Some(lengths) = node.input(4) {
        let steps = b.shape(input(node, 0)?).and_then(|shape| shape.first()?.known());
        let all = b.fact(lengths).known_content();
        if !all.zip(steps).is_some_and(|(all, steps)| all.iter().all(|&length| length == steps)) {
            return Err(refusal(node, "RTen does not heed its input sequence_lens"));
        }
    }
    if node.is("LSTM") && node.input(7).is_some() {
        return Err(refusal(node, "RTen does not heed its input P (peepholes)"));
    }
    Ok(None)
}
