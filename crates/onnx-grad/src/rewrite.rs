//! Replacing single nodes of a graph by others that compute the same: for engines that lack an operator, or compute it
//! otherwise than ONNX says.

use crate::build::{Builder, Value};
use crate::error::Error;
use crate::graph::{Graph, Node};
use crate::resample::Resampling;
use crate::shapes::normalise_axis;
use crate::tensor::{DType, TensorData};

/// A matrix of more elements than this is too large to be written into a graph.
const MAX_MATRIX: usize = 1 << 24;

/// The graph with nodes replaced: `spell` appends what computes a node's outputs and returns them, or returns `None` to
/// leave the node as it is. Names of inputs, outputs and all other values stay.
pub fn rewrite<E: From<Error>>(
    graph: &Graph,
    mut spell: impl FnMut(&mut Builder, &Node) -> Result<Option<Vec<Value>>, E>,
) -> Result<Graph, E> {
    let source = Graph { nodes: Vec::new(), outputs: Vec::new(), ..graph.clone() };
    let mut builder = Builder::extend(source, "spelled/")?;
    for node in &graph.nodes {
        builder.reserve(node.wanted_outputs());
    }
    for node in &graph.nodes {
        match spell(&mut builder, node)? {
            None => builder.push_hinted(node.clone(), &graph.value_info)?,
            Some(values) => {
                for (name, value) in node.outputs.iter().zip(&values).filter(|(name, _)| !name.is_empty()) {
                    let mut same = Node::new("Identity", &[value], &[name]);
                    same.name.clone_from(&node.name);
                    builder.push_hinted(same, &graph.value_info)?;
                }
            }
        }
    }
    builder.graph_mut().outputs.clone_from(&graph.outputs);
    builder.graph_mut().prune();
    Ok(builder.finish()?)
}

/// How an axis is resized.
struct Axis {
    axis: usize,
    size: usize,
    resized: usize,
    scale: f64,
}

/// The axes that a `Resize` changes. `Err` says what is not known.
fn resized_axes(b: &Builder, node: &Node) -> Result<Vec<Axis>, String> {
    let x = node.input(0).ok_or("it has no input")?;
    if node.int("antialias", 0) != 0 {
        return Err("antialias is not implemented".to_string());
    }
    if node.string("keep_aspect_ratio_policy", "stretch") != "stretch" && node.input(3).is_some() {
        return Err("keep_aspect_ratio_policy is not implemented".to_string());
    }
    let facts = b.infer(node).map_err(|e| e.to_string())?;
    let open = || "its sizes are not known before it runs".to_string();
    let from = b.shape(x).ok_or_else(open)?;
    let to = facts.first().and_then(|f| f.shape.clone()).ok_or_else(open)?;
    let named: Vec<usize> = match node.ints("axes") {
        Some(axes) => axes.iter().filter_map(|&a| normalise_axis(a, from.len())).collect(),
        None => (0..from.len()).collect(),
    };
    let scales = node.input(2).and_then(|s| b.fact(s).constant.as_ref()).map(|t| t.to_f64());
    if scales.is_none() && node.input(3).is_none() {
        return Err(open());
    }
    let mut axes = Vec::new();
    for (i, &axis) in named.iter().enumerate() {
        let given = scales.as_ref().and_then(|s| s.get(i)).copied();
        if given == Some(1.0) || given.is_none() && from[axis].same(&to[axis]) {
            continue;
        }
        let known = |dim: &crate::Dim| dim.known().and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
        let (Some(size), Some(resized)) = (known(&from[axis]), known(&to[axis])) else { return Err(open()) };
        let scale = given.unwrap_or(resized as f64 / size as f64);
        axes.push(Axis { axis, size, resized, scale });
    }
    Ok(axes)
}

/// A `Resize` as it is defined: along each axis a matrix product with the map of its mode, or a
/// `Gather` where every element is one of the input's. `Err` holds the reason where that cannot be done.
pub fn resize_by_axes(b: &mut Builder, node: &Node) -> Result<Value, String> {
    let axes = resized_axes(b, node)?;
    let resampling = Resampling::of(node);
    let x = node.input(0).unwrap_or_default();
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let rank = b.fact(x).rank().unwrap_or_default();
    let mut value = Value::named(x);
    for Axis { axis, size, resized, scale } in axes {
        let rows = resampling.rows(size, resized, scale)?;
        if rows.iter().all(|row| matches!(row[..], [(_, 1.0)])) {
            let picks: Vec<i64> = rows.iter().map(|row| row[0].0 as i64).collect();
            let picks = b.ints(&picks);
            value = b.op_with("Gather", &[&value, &picks], &[("axis", (axis as i64).into())]);
            continue;
        }
        if !dtype.is_float() {
            return Err(format!("{dtype} is resized by mode 'nearest' only"));
        }
        if size.saturating_mul(resized) > MAX_MATRIX {
            return Err(format!("an axis of {size} elements resized to {resized} is too large"));
        }
        let mut matrix = vec![0.0; size * resized];
        for (o, row) in rows.iter().enumerate() {
            row.iter().for_each(|&(i, weight)| matrix[o * size + i] += weight);
        }
        if axis + 2 == rank {
            let left = b.constant(TensorData::from_f64(dtype, &[resized, size], &matrix));
            value = b.matmul(&left, &value);
            continue;
        }
        let turned: Vec<f64> =
            (0..size * resized).map(|k| matrix[(k % resized) * size + k / resized]).collect();
        let right = b.constant(TensorData::from_f64(dtype, &[size, resized], &turned));
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 1);
        let last = axis + 1 == rank;
        let moved = if last { value } else { b.transpose(&value, &perm) };
        let product = b.matmul(&moved, &right);
        value = if last { product } else { b.transpose(&product, &perm) };
    }
    Ok(value)
}
