//! `SVMClassifier`: a score for each pair of classes, as libsvm has it, or for each class without support vectors.
//!
//! For classes `i < j` the score is positive where `i` wins:
//!
//! ```text
//! s_ij = rho_ij + sum over vectors k of i: c[j - 1, k] K(x, s_k)  +  sum over vectors k of j: c[i, k] K(x, s_k)
//! ```
//!
//! For two classes ONNX Runtime gives `(-s, s)`, so that the number that is high belongs to the *other* class; with Platt's
//! constants it gives probabilities in the order of the classes. Probabilities of more classes are the result of an iteration and
//! are not spelled out.

use super::linear_regressor::product;
use super::{floats, kernel, malformed, post_transform, table};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some((x, features)) = table(b, node)? else { return Ok(None) };
    let sizes: Vec<usize> = node
        .ints("vectors_per_class")
        .unwrap_or_default()
        .iter()
        .map(|&n| usize::try_from(n).unwrap_or(0))
        .collect();
    let count: usize = sizes.iter().sum();
    let (classes, rho) = (sizes.len(), node.floats("rho"));
    if count == 0 || classes < 2 {
        return linear(b, node, &x, features);
    }
    let pairs = classes * (classes - 1) / 2;
    if node.floats("coefficients").len() != (classes - 1) * count || rho.len() != pairs {
        let reason =
            format!("it has {classes} classes and {count} support vectors, which its numbers do not fit");
        return Err(malformed(node, &reason));
    }
    let platt = (node.floats("prob_a"), node.floats("prob_b"));
    if classes > 2 && !platt.0.is_empty() {
        return Ok(None);
    }
    let Some(kernels) = kernel::values(b, node, &x, (count, features)) else { return Ok(None) };
    let weights = pair_weights(node.floats("coefficients"), &sizes, count);
    let weights = floats(b, &[count, pairs], &weights);
    let sums = b.matmul(&kernels, &weights);
    let rho = floats(b, &[pairs], rho);
    let scores = b.add(&sums, &rho);
    if let ([a], [offset]) = platt {
        // 1 - logistic(a s + b) for the first class, logistic(a s + b) for the second.
        let scaled = b.scale(&scores, f64::from(*a));
        let second = b.shift(&scaled, f64::from(*offset));
        let first = b.neg(&second);
        let logits = b.concat(&[&first, &second], 1);
        return Ok(Some(b.op("Sigmoid", &[&logits])));
    }
    let scores = match classes {
        2 => {
            let opposite = b.neg(&scores);
            b.concat(&[&opposite, &scores], 1)
        }
        _ => scores,
    };
    Ok(post_transform::apply(b, node, scores))
}

/// Without support vectors: a linear score for each class.
fn linear(b: &mut Builder, node: &Node, x: &str, features: usize) -> Result<Option<Value>> {
    let outputs = node.floats("coefficients").len() / features;
    // What engines make of one score for two classes depends on signs of the weights.
    if outputs < 2 || !node.floats("prob_a").is_empty() {
        return Ok(None);
    }
    let sums = product(b, node, x, (outputs, features))?;
    let scores = b.shift(&sums, f64::from(node.floats("rho").first().copied().unwrap_or(0.0)));
    Ok(post_transform::apply(b, node, scores))
}

/// `[count, pairs]`: what each support vector adds to the score of each pair.
fn pair_weights(coefficients: &[f32], sizes: &[usize], count: usize) -> Vec<f32> {
    let classes = sizes.len();
    let first: Vec<usize> = sizes
        .iter()
        .scan(0, |sum, size| {
            *sum += size;
            Some(*sum - size)
        })
        .collect();
    let pairs: Vec<(usize, usize)> =
        (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let mut weights = vec![0.0; count * pairs.len()];
    for (p, &(i, j)) in pairs.iter().enumerate() {
        for k in first[i]..first[i] + sizes[i] {
            weights[k * pairs.len() + p] = coefficients[(j - 1) * count + k];
        }
        for k in first[j]..first[j] + sizes[j] {
            weights[k * pairs.len() + p] = coefficients[i * count + k];
        }
    }
    weights
}
