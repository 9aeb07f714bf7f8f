//! Grad-CAM as a graph: the walk back ends at a layer, and the enlargement is two products with constant matrices.

use ndarray::Array2;
use onnx_grad::{
    BackwardRules, Builder, DType, GradOptions, Graph, Model, Node, TensorData, Value, ValueInfo, grad_with,
    gradient_name, seed_name, shapes::Facts,
};

use super::wanted::{Begun, Wanted};
use super::{INSIDE, set_apart, split};
use crate::attribute::enlarge;
use crate::error::{Error, Remedy, Result};
use crate::predictor::SCORES;

/// The graph of the explanation by the maps of a layer, for images `[channels, height, width]`.
pub(super) fn graph(model: &Model, wanted: Wanted, layer: &str, image: [usize; 3]) -> Result<Graph> {
    let mut whole = model.graph.clone();
    let at = Facts::of(&whole)?.get(layer).shape.clone();
    let size = |axis: usize| {
        let known = at.as_ref().filter(|shape| shape.len() == 4)?.get(axis)?.known()?;
        usize::try_from(known).ok()
    };
    let (Some(rows), Some(columns)) = (size(2), size(3)) else {
        return Err(Error::Predictor {
            reason: format!("the values of layer '{layer}' are not maps of a size that is known beforehand"),
            remedy: Remedy::ChooseLayer,
        });
    };
    let input = whole.inputs[0].clone();
    whole.outputs.push(ValueInfo { name: layer.to_string(), dtype: input.dtype, shape: at });
    let options = GradOptions { rules: BackwardRules::default(), ..GradOptions::default() };
    let gradient = set_apart(grad_with(&whole, &[SCORES], &[layer], options)?)?;
    let [channels, height, width] = image;
    let Begun { builder: mut b, x, asked } = wanted.begin(model, &gradient, &image);
    b.push(Node::new("Identity", &[&x], &[&format!("{INSIDE}{}", input.name)]));
    let seed = format!("{INSIDE}{}", seed_name(SCORES));
    let (forward, back) = split(&gradient, &seed);
    forward.into_iter().for_each(|node| b.push(node.clone()));
    let scores = b.reshape(&format!("{INSIDE}{SCORES}"), &[-1, wanted.outputs as i64]);
    let explained = wanted.explained(&mut b, &scores, asked);
    let one_hot = wanted.one_hot(&mut b, &explained, input.dtype);
    b.push(Node::new("Identity", &[&one_hot], &[&seed]));
    back.into_iter().for_each(|node| b.push(node.clone()));
    // max(0, sum_k mean(dA_k) A_k)
    let weights = b.reduce_mean(&format!("{INSIDE}{}", gradient_name(layer)), &[2, 3], true);
    let weighted = b.mul(&format!("{INSIDE}{layer}"), &weights);
    let sum = b.reduce_sum(&weighted, &[1], true);
    let map = b.op("Relu", &[&sum]);
    let down = enlargement(&mut b, input.dtype, height, rows);
    let across = enlargement(&mut b, input.dtype, width, columns);
    let across = b.transpose(&across, &[1, 0]);
    let tall = b.matmul(&down, &map);
    let large = b.matmul(&tall, &across);
    let share = b.scale(&large, 1.0 / channels as f64);
    let credit = b.expand_like(&share, &x);
    b.output("scores", &scores);
    b.output("credit", &credit);
    b.output("explained", &explained);
    let mut graph = b.finish()?;
    graph.prune();
    Ok(graph)
}

/// The matrix `[to, from]` of the interpolation along one axis.
fn enlargement(b: &mut Builder, dtype: DType, to: usize, from: usize) -> Value {
    let matrix = enlarge(Array2::eye(from).view(), to, from);
    let flat: Vec<f64> = matrix.iter().copied().collect();
    b.constant(TensorData::from_f64(dtype, &[to, from], &flat))
}
