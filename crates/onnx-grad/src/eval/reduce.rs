//! Reductions along axes.

use super::Array;
use super::call::Call;
use super::elementwise::{fit, highest, larger, lowest, smaller};
use super::walk::{Walk, along, around, broadcast_strides, offset};
use crate::error::Result;
use crate::tensor::DType;

/// The shape after `axes` are reduced, with and without the reduced axes.
fn reduced(shape: &[usize], axes: &[usize], keep: bool) -> (Vec<usize>, Vec<usize>) {
    let kept: Vec<usize> = (0..shape.len()).map(|i| if axes.contains(&i) { 1 } else { shape[i] }).collect();
    let dropped = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
    (kept.clone(), if keep { kept } else { dropped })
}

pub(super) fn reduce(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = x.shape().len();
    let axes = match call.optional_ints(1).unwrap_or_default() {
        axes if !axes.is_empty() => call.axes(&axes, rank)?,
        _ if call.node.int("noop_with_empty_axes", 0) != 0 => Vec::new(),
        _ => (0..rank).collect(),
    };
    let (kept, shape) = reduced(x.shape(), &axes, call.node.int("keepdims", 1) != 0);
    let steps = broadcast_strides(&kept, x.shape());
    let values = x.values();
    let mut groups = vec![Vec::new(); call.room(&kept)?];
    let mut walk = Walk::new(x.shape());
    let mut i = 0;
    while let Some(index) = walk.step() {
        groups[offset(index, &steps)].push(values[i]);
        i += 1;
    }
    let f = |group: Vec<f64>| {
        let sum = |f: &dyn Fn(f64) -> f64| group.iter().map(|&v| f(v)).sum::<f64>();
        match call.node.op.as_str() {
            "ReduceSum" => sum(&|v| v),
            "ReduceMean" => sum(&|v| v) / group.len() as f64,
            "ReduceMax" => group.iter().copied().fold(lowest(x.dtype), larger),
            "ReduceMin" => group.iter().copied().fold(highest(x.dtype), smaller),
            "ReduceProd" => group.iter().product(),
            "ReduceL1" => sum(&f64::abs),
            "ReduceL2" => sum(&|v| v * v).sqrt(),
            "ReduceSumSquare" => sum(&|v| v * v),
            "ReduceLogSum" => sum(&|v| v).ln(),
            _ => {
                // The largest value is taken out of the sum, so that nothing overflows.
                let top = group.iter().copied().fold(f64::NEG_INFINITY, larger);
                let top = if top.is_finite() { top } else { 0.0 };
                top + sum(&|v| (v - top).exp()).ln()
            }
        }
    };
    call.array(x.dtype, &shape, groups.into_iter().map(|g| fit(x.dtype, f(g))).collect())
}

/// Where the largest or smallest value along an axis lies.
pub(super) fn arg(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let axis = call.axis(call.node.int("axis", 0), x.shape().len())?;
    let (outer, length, inner) = around(x.shape(), axis);
    if length == 0 {
        return Err(call.malformed("an empty axis has no extremum"));
    }
    let sign = if call.node.op == "ArgMax" { 1.0 } else { -1.0 };
    let last = call.node.int("select_last_index", 0) != 0;
    let values = x.values();
    let mut out = Vec::with_capacity(outer * inner);
    for o in 0..outer {
        for i in 0..inner {
            let at = |k: usize| sign * values[(o * length + k) * inner + i];
            let better = |k: usize, best: usize| at(k) > at(best) || last && at(k) == at(best);
            out.push((1..length).fold(0, |best, k| if better(k, best) { k } else { best }) as f64);
        }
    }
    let (_, shape) = reduced(x.shape(), &[axis], call.node.int("keepdims", 1) != 0);
    call.array(DType::I64, &shape, out)
}

pub(super) fn cumulative_sum(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let axis = call.axis(call.scalar(1)? as i64, x.shape().len())?;
    let exclusive = call.node.int("exclusive", 0) != 0;
    let reverse = call.node.int("reverse", 0) != 0;
    let values = along(x, axis, |lane| {
        let mut out = vec![0.0; lane.len()];
        let mut sum = 0.0;
        for step in 0..lane.len() {
            let i = if reverse { lane.len() - 1 - step } else { step };
            let before = sum;
            sum += lane[i];
            out[i] = fit(x.dtype, if exclusive { before } else { sum });
        }
        out
    });
    call.array(x.dtype, x.shape(), values)
}
