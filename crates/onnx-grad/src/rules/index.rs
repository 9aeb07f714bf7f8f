//! Operators that pick or place elements by index: the gradient of a gather is a scatter that adds, and
//! that of a scatter a gather.

use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Attribute, Dim};

const ADD: (&str, &str) = ("reduction", "add");

/// Zeros of the given sizes; sizes that are symbols are taken from axes of `x` when the graph runs.
fn zeros(step: &mut Step<'_>, like: &str, sizes: &[Dim], x: &str, axes: &[usize]) -> Value {
    let zero = step.b.scalar_like(like, 0.0);
    let known: Option<Vec<i64>> = sizes.iter().map(Dim::known).collect();
    let shape = match known {
        Some(sizes) => step.b.ints(&sizes),
        None => {
            let shape = step.b.op("Shape", &[x]);
            let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
            let axes = step.b.ints(&axes);
            step.b.op("Gather", &[&shape, &axes])
        }
    };
    step.b.op("Expand", &[&zero, &shape])
}

/// Adds the slices of `dy` along `axis` up at `indices` (a vector); `sizes` is the shape of the result,
/// which must be that of `x` but for axes that are still sliced.
pub(super) fn scatter_axis(
    step: &mut Step<'_>,
    dy: &str,
    indices: &str,
    x: &str,
    axis: usize,
    sizes: &[Dim],
) -> Result<Value> {
    let rank = sizes.len();
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(0, axis);
    let moved: Vec<Dim> = perm.iter().map(|&a| sizes[a].clone()).collect();
    let updates = step.b.transpose(dy, &perm);
    let base = if moved.iter().all(|d| d.known().is_some()) {
        zeros(step, dy, &moved, x, &perm)
    } else {
        // The shape of the updates, with the full size in front.
        let attributes = [("start", Attribute::Int(axis as i64)), ("end", Attribute::Int(axis as i64 + 1))];
        let size = step.b.op_with("Shape", &[x], &attributes);
        let rest = step.b.op_with("Shape", &[&updates], &[("start", Attribute::Int(1))]);
        let shape = step.b.concat(&[&size, &rest], 0);
        let zero = step.b.scalar_like(dy, 0.0);
        step.b.op("Expand", &[&zero, &shape])
    };
    let places = step.b.unsqueeze(indices, &[-1]);
    let placed = step.b.op_with("ScatterND", &[&base, &places, &updates], &[(ADD.0, ADD.1.into())]);
    Ok(step.b.transpose(&placed, &perm))
}

pub(super) fn gather(step: &mut Step<'_>) -> Gradients {
    let (dy, x, indices) = (step.dy()?, step.x(0)?, step.x(1)?);
    let shape = step.shape(x)?;
    let axis = step.axis("axis", 0, shape.len())?;
    let index_rank = step.shape(indices)?.len();
    if let (Some([index]), Some(size)) =
        (step.b.fact(indices).known_content().as_deref(), shape[axis].known())
        && index_rank <= 1
    {
        // One slice: put zeros around it.
        let index = if *index < 0 { index + size } else { *index };
        if !(0..size).contains(&index) {
            return Err(step.malformed(format!("index {index} is outside an axis of size {size}")));
        }
        let slice = if index_rank == 0 { step.b.unsqueeze(&dy, &[axis as i64]) } else { dy };
        let mut pads = vec![0; 2 * shape.len()];
        (pads[axis], pads[shape.len() + axis]) = (index, size - 1 - index);
        let pads = step.b.ints(&pads);
        return Ok(vec![Some(step.b.op("Pad", &[&slice, &pads])), None]);
    }
    // Index axes first, then the others in order; then the same with the result.
    let rank = shape.len();
    let index_axes = axis..axis + index_rank;
    let front: Vec<usize> =
        index_axes.clone().chain((0..rank - 1 + index_rank).filter(|a| !index_axes.contains(a))).collect();
    let updates = step.b.transpose(&dy, &front);
    let perm: Vec<usize> = std::iter::once(axis).chain((0..rank).filter(|&a| a != axis)).collect();
    let moved: Vec<Dim> = perm.iter().map(|&a| shape[a].clone()).collect();
    let base = zeros(step, &dy, &moved, x, &perm);
    let places = step.b.unsqueeze(indices, &[-1]);
    let placed = step.b.op_with("ScatterND", &[&base, &places, &updates], &[(ADD.0, ADD.1.into())]);
    let mut inverse = vec![0; rank];
    perm.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
    Ok(vec![Some(step.b.transpose(&placed, &inverse)), None])
}

pub(super) fn gather_elements(step: &mut Step<'_>) -> Gradients {
    let (dy, x, indices) = (step.dy()?, step.x(0)?, step.x(1)?);
    let axis = step.node.int("axis", 0);
    let base = step.b.zeros_like(x);
    let attributes = [("axis", Attribute::Int(axis)), (ADD.0, ADD.1.into())];
    let gradient = step.b.op_with("ScatterElements", &[&base, indices, &dy], &attributes);
    Ok(vec![Some(gradient), None])
}

pub(super) fn gather_nd(step: &mut Step<'_>) -> Gradients {
    let (dy, x, indices) = (step.dy()?, step.x(0)?, step.x(1)?);
    let batch = step.node.int("batch_dims", 0);
    let places = match batch {
        0 => Value::named(indices),
        1 => {
            // The batch is one more index.
            let rank = step.shape(indices)?.len();
            let count = step.b.op_with("Shape", &[indices], &[("end", Attribute::Int(1))]);
            let count = step.b.squeeze(&count, &[0]);
            let [zero, one] = [0, 1].map(|v| step.b.constant(crate::TensorData::i64(&[], &[v])));
            let rows = step.b.op("Range", &[&zero, &count, &one]);
            let inner: Vec<i64> = (1..rank as i64).collect();
            let rows = step.b.unsqueeze(&rows, &inner);
            let shape = step.b.op_with("Shape", &[indices], &[("end", Attribute::Int(rank as i64 - 1))]);
            let last = step.b.ints(&[1]);
            let shape = step.b.concat(&[&shape, &last], 0);
            let rows = step.b.op("Expand", &[&rows, &shape]);
            step.b.concat(&[&rows, indices], -1)
        }
        _ => return Err(step.not_differentiable(format!("batch_dims {batch} has no rule, 0 and 1 have"))),
    };
    let base = step.b.zeros_like(x);
    let gradient = step.b.op_with("ScatterND", &[&base, &places, &dy], &[(ADD.0, ADD.1.into())]);
    Ok(vec![Some(gradient), None])
}

/// `ScatterND` and `ScatterElements`: the data's gradient where it was kept, the updates' where they went.
pub(super) fn scatter(step: &mut Step<'_>) -> Gradients {
    let (dy, indices, updates) = (step.dy()?, step.x(1)?, step.x(2)?);
    let reduction = step.node.string("reduction", "none");
    if !matches!(reduction, "none" | "add") {
        return Err(
            step.not_differentiable(format!("reduction '{reduction}' has no rule, none and add have"))
        );
    }
    let elements = step.node.op == "ScatterElements";
    let axis: Vec<(&str, Attribute)> =
        if elements { vec![("axis", step.node.int("axis", 0).into())] } else { Vec::new() };
    let mut sent = vec![None, None, None];
    if step.wants(0) {
        sent[0] = Some(if reduction == "add" {
            dy.clone()
        } else {
            let zeros = step.b.zeros_like(updates);
            step.b.op_with(&step.node.op, &[&dy, indices, &zeros], &axis)
        });
    }
    if step.wants(2) {
        let gather = if elements { "GatherElements" } else { "GatherND" };
        sent[2] = Some(step.b.op_with(gather, &[&dy, indices], &axis));
    }
    Ok(sent)
}

pub(super) fn top_k(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let Some(indices) = step.node.output(1) else {
        return Err(step.not_differentiable("its second output, the indices, has no name"));
    };
    let axis = step.node.int("axis", -1);
    let base = step.b.zeros_like(x);
    let gradient = step.b.op_with("ScatterElements", &[&base, indices, &dy], &[("axis", axis.into())]);
    Ok(vec![Some(gradient), None])
}
