//! Batch normalisation at inference is an affine map of every channel,
//! `y = a x + b` with `a = gain / sqrt(variance + epsilon)` and `b = bias - a mean`,
//! so it can be folded into the weights of a `Conv`, `ConvTranspose` or `Gemm` before it.

use std::collections::BTreeMap;

use crate::graph::{Graph, Node};
use crate::tensor::TensorData;

/// Folds every batch normalisation that can be; the others are spelled out later.
pub(super) fn fold(graph: &mut Graph, keep: &[&str]) {
    // Values with one use, and who computes them; folding changes neither.
    let uses = graph.use_counts();
    let only_used_here: BTreeMap<String, usize> = graph
        .producers()
        .into_iter()
        .filter(|(name, _)| uses.get(name) == Some(&1))
        .map(|(name, node)| (name.to_string(), node))
        .collect();
    for i in 0..graph.nodes.len() {
        if graph.nodes[i].is("BatchNormalization") {
            // What cannot be folded stays: there is no error in that.
            let _ = fold_one(graph, i, keep, &only_used_here);
        }
    }
}

/// The affine map of each channel, where it is constant.
pub(super) fn affine<'a>(
    node: &Node,
    constant: impl Fn(&str) -> Option<&'a TensorData>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let constant = |i: usize| node.input(i).and_then(&constant).map(TensorData::to_f64);
    let (gain, bias, mean, variance) = (constant(1)?, constant(2)?, constant(3)?, constant(4)?);
    let epsilon = f64::from(node.float("epsilon", 1e-5));
    let a: Vec<f64> = gain.iter().zip(&variance).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
    let same = [bias.len(), mean.len(), variance.len()].iter().all(|&n| n == a.len());
    let b = bias.iter().zip(&mean).zip(&a).map(|((b, m), a)| b - a * m).collect();
    (same && node.int("training_mode", 0) == 0).then_some((a, b))
}

fn fold_one(
    graph: &mut Graph,
    i: usize,
    keep: &[&str],
    only_used_here: &BTreeMap<String, usize>,
) -> Option<()> {
    let norm = graph.nodes[i].clone();
    if norm.inputs.iter().any(|input| keep.contains(&input.as_str())) {
        return None;
    }
    let (a, b) = affine(&norm, |name| graph.initializers.get(name))?;
    let source = norm.input(0)?;
    let before = *only_used_here.get(source)?;
    let node = graph.nodes[before].clone();
    if !node.is_standard() || node.inputs.iter().skip(1).any(|input| keep.contains(&input.as_str())) {
        return None;
    }
    let weights = graph.initializers.get(node.input(1)?)?.clone();
    let bias = match node.input(2) {
        Some(name) => Some(graph.initializers.get(name)?.to_f64()),
        None => None,
    };
    let shape = weights.shape().to_vec();
    let channel = channel_of(&node, &shape, a.len())?;
    let scaled: Vec<f64> = weights.to_f64().iter().enumerate().map(|(k, w)| w * a[channel(k)]).collect();
    let beta = if node.op == "Gemm" { f64::from(node.float("beta", 1.0)) } else { 1.0 };
    let old = |c: usize| match &bias {
        Some(values) if values.len() == a.len() => Some(values[c]),
        Some(values) if values.len() == 1 => Some(values[0]),
        Some(_) => None,
        None => Some(0.0),
    };
    let shifted: Option<Vec<f64>> = (0..a.len()).map(|c| Some(old(c)? * beta * a[c] + b[c])).collect();
    let dtype = weights.dtype();
    let (weight_name, bias_name) = (format!("{source}/folded.weight"), format!("{source}/folded.bias"));
    let shifted = TensorData::from_f64(dtype, &[a.len()], &shifted?);
    graph.initializers.insert(weight_name.clone(), TensorData::from_f64(dtype, &shape, &scaled));
    graph.initializers.insert(bias_name.clone(), shifted);
    let output = norm.output(0)?.to_string();
    let folded = &mut graph.nodes[before];
    folded.inputs = vec![node.input(0)?.to_string(), weight_name, bias_name];
    if node.op == "Gemm" {
        *folded = folded.clone().with("beta", 1.0f32);
    }
    graph.nodes[i] = Node { name: norm.name.clone(), ..Node::new("Identity", &[source], &[&output]) };
    Some(())
}

type ChannelOf = Box<dyn Fn(usize) -> usize>;

/// From the place of a weight to the output channel it belongs to.
fn channel_of(node: &Node, shape: &[usize], channels: usize) -> Option<ChannelOf> {
    match node.op.as_str() {
        "Conv" if shape.first() == Some(&channels) => {
            let inner: usize = shape[1..].iter().product();
            Some(Box::new(move |k| k / inner))
        }
        "ConvTranspose" if shape.len() > 2 => {
            // [in, out / groups, k...]: the group of a row follows from its input channel.
            let groups = usize::try_from(node.int("group", 1))
                .ok()
                .filter(|&g| g > 0 && shape[0].is_multiple_of(g))?;
            let (rows, per_group) = (shape[0] / groups, shape[1]);
            let taps: usize = shape[2..].iter().product();
            (rows > 0 && per_group.checked_mul(groups) == Some(channels)).then(|| -> ChannelOf {
                Box::new(move |k| (k / taps / per_group / rows) * per_group + k / taps % per_group)
            })
        }
        "Gemm" if shape.len() == 2 => {
            let columns = shape[1];
            if node.int("transB", 0) != 0 {
                (shape[0] == channels).then(|| -> ChannelOf { Box::new(move |k| k / columns) })
            } else {
                (columns == channels).then(|| -> ChannelOf { Box::new(move |k| k % columns) })
            }
        }
        _ => None,
    }
}
