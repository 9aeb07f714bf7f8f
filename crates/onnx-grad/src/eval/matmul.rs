//! Products of matrices, and `Einsum`, their general form.

use std::collections::BTreeMap;

use super::Array;
use super::call::Call;
use super::elementwise::fit;
use super::walk::{Walk, broadcast, broadcast_strides, offset, spread, strides};
use crate::error::Result;

/// NumPy's `matmul`: vectors become matrices, axes before the last two broadcast.
pub(super) fn matmul(call: &Call) -> Result<Array> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    call.rank(a, 1)?;
    call.rank(b, 1)?;
    let (mut left, mut right) = (a.shape().to_vec(), b.shape().to_vec());
    if a.shape().len() == 1 {
        left.insert(0, 1);
    }
    if b.shape().len() == 1 {
        right.push(1);
    }
    let (batch_a, last_a) = left.split_at(left.len() - 2);
    let (batch_b, last_b) = right.split_at(right.len() - 2);
    let (m, k, n) = (last_a[0], last_a[1], last_b[1]);
    let batch = broadcast(batch_a, batch_b).filter(|_| k == last_b[0]).ok_or_else(|| {
        call.malformed(format!("shapes {:?} and {:?} do not multiply", a.shape(), b.shape()))
    })?;
    let mut shape = batch.clone();
    shape.extend([m, n]);
    call.work(&[call.room(&shape)?, k])?;
    let (x, y) = (a.values(), b.values());
    let (steps_a, steps_b) = (broadcast_strides(batch_a, &batch), broadcast_strides(batch_b, &batch));
    let mut out = Vec::with_capacity(shape.iter().product());
    let mut walk = Walk::new(&batch);
    while let Some(index) = walk.step() {
        let (x, y) = (&x[offset(index, &steps_a) * m * k..], &y[offset(index, &steps_b) * k * n..]);
        product(x, y, m, k, n, &mut out);
    }
    if a.shape().len() == 1 {
        shape.remove(shape.len() - 2);
    }
    if b.shape().len() == 1 {
        shape.pop();
    }
    call.array(a.dtype, &shape, out.into_iter().map(|v| fit(a.dtype, v)).collect())
}

/// Appends the rows of the m x k matrix `x` times the k x n matrix `y`.
pub(super) fn product(x: &[f64], y: &[f64], m: usize, k: usize, n: usize, out: &mut Vec<f64>) {
    for i in 0..m {
        let start = out.len();
        out.resize(start + n, 0.0);
        let row = &mut out[start..];
        for l in 0..k {
            let factor = x[i * k + l];
            for (sum, v) in row.iter_mut().zip(&y[l * n..]) {
                *sum += factor * v;
            }
        }
    }
}

/// alpha A B + beta C, with A and B transposed on request.
pub(super) fn gemm(call: &Call) -> Result<Array> {
    let side = |i: usize, flag: &str| -> Result<(Vec<f64>, usize, usize)> {
        let array = call.input(i)?;
        let &[rows, columns] = array.shape() else {
            return Err(call.malformed(format!("input {i} has shape {:?}, not two axes", array.shape())));
        };
        Ok(match call.node.int(flag, 0) {
            0 => (array.values().into_owned(), rows, columns),
            _ => (array.data.t().iter().copied().collect(), columns, rows),
        })
    };
    let ((a, m, k), (b, inner, n)) = (side(0, "transA")?, side(1, "transB")?);
    if k != inner {
        return Err(call.malformed(format!("{m} x {k} and {inner} x {n} do not multiply")));
    }
    call.work(&[call.room(&[m, n])?, k])?;
    let dtype = call.input(0)?.dtype;
    let (alpha, beta) = (f64::from(call.node.float("alpha", 1.0)), f64::from(call.node.float("beta", 1.0)));
    let mut out = Vec::with_capacity(m * n);
    product(&a, &b, m, k, n, &mut out);
    out.iter_mut().for_each(|v| *v *= alpha);
    if let Some(c) = call.optional(2) {
        for (v, c) in out.iter_mut().zip(spread(call, c, &[m, n])?) {
            *v += beta * c;
        }
    }
    call.array(dtype, &[m, n], out.into_iter().map(|v| fit(dtype, v)).collect())
}

/// An axis of an `Einsum` operand: a letter, or one of those an ellipsis stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// Counted from the back, as these axes broadcast.
    Ellipsis(usize),
    Letter(char),
}

/// The labels of one operand; `ellipsis` is how many axes `...` stands for.
fn labels(call: &Call, term: &str, ellipsis: usize) -> Result<Vec<Label>> {
    let mut labels = Vec::new();
    let mut rest = term;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            labels.extend((0..ellipsis).rev().map(Label::Ellipsis));
            rest = after;
        } else if letter.is_ascii_alphabetic() {
            labels.push(Label::Letter(letter));
            rest = &rest[1..];
        } else {
            return Err(call.malformed(format!("'{letter}' in the equation")));
        }
    }
    Ok(labels)
}

/// Sums the product of all operands over every label that the output does not have.
pub(super) fn einsum(call: &Call) -> Result<Array> {
    let arrays = call.all()?;
    let equation: String = call.node.string("equation", "").chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != arrays.len() {
        return Err(call.malformed(format!("'{equation}' does not have {} operands", arrays.len())));
    }
    let mut sizes: BTreeMap<Label, usize> = BTreeMap::new();
    let mut operands = Vec::new();
    for (term, array) in terms.iter().zip(&arrays) {
        let rank = array.shape().len();
        let letters = term.chars().filter(char::is_ascii_alphabetic).count();
        let mismatch = || call.malformed(format!("'{term}' does not label the shape {:?}", array.shape()));
        let ellipsis = rank.checked_sub(letters).ok_or_else(mismatch)?;
        let labels = labels(call, term, ellipsis)?;
        if labels.len() != rank {
            return Err(mismatch());
        }
        for (label, &size) in labels.iter().zip(array.shape()) {
            match sizes.get(label) {
                Some(&known) if known != size && size != 1 && known != 1 => return Err(mismatch()),
                Some(&known) if known != 1 => {}
                _ => {
                    sizes.insert(*label, size);
                }
            }
        }
        operands.push(labels);
    }
    let ellipsis = sizes.keys().filter(|l| matches!(l, Label::Ellipsis(_))).count();
    let output = match right {
        Some(right) => labels(call, right, ellipsis)?,
        None => implicit_output(&operands, ellipsis),
    };
    if let Some(i) =
        (0..output.len()).find(|&i| !sizes.contains_key(&output[i]) || output[..i].contains(&output[i]))
    {
        return Err(call.malformed(format!("axis {i} of the output of '{equation}' is unknown or doubled")));
    }
    let shape: Vec<usize> = output.iter().map(|l| sizes[l]).collect();
    let summed: Vec<Label> = sizes.keys().filter(|l| !output.contains(l)).copied().collect();
    let sum_shape: Vec<usize> = summed.iter().map(|l| sizes[l]).collect();
    call.work(&[call.room(&shape)?, call.room(&sum_shape)?.max(1)])?;

    // A label's stride in an operand is the sum over its occurrences: `ii` walks the diagonal.
    let steps = |wanted: &[Label]| -> Vec<Vec<usize>> {
        operands
            .iter()
            .zip(&arrays)
            .map(|(labels, array)| {
                let own = strides(array.shape());
                let step = |label: &Label| {
                    let here = (0..labels.len()).filter(|&i| labels[i] == *label && array.shape()[i] != 1);
                    here.map(|i| own[i]).sum()
                };
                wanted.iter().map(step).collect()
            })
            .collect()
    };
    let (outer, inner) = (steps(&output), steps(&summed));
    let values: Vec<_> = arrays.iter().map(|a| a.values()).collect();
    let mut out = Vec::with_capacity(shape.iter().product());
    let mut walk = Walk::new(&shape);
    while let Some(index) = walk.step() {
        let starts: Vec<usize> = outer.iter().map(|steps| offset(index, steps)).collect();
        let mut sum = 0.0;
        let mut sum_walk = Walk::new(&sum_shape);
        while let Some(index) = sum_walk.step() {
            let factor = |i: usize| values[i][starts[i] + offset(index, &inner[i])];
            sum += (0..values.len()).map(factor).product::<f64>();
        }
        out.push(fit(arrays[0].dtype, sum));
    }
    call.array(arrays[0].dtype, &shape, out)
}

/// Without `->`: the ellipsis, then all letters that occur once, in alphabetical order.
fn implicit_output(operands: &[Vec<Label>], ellipsis: usize) -> Vec<Label> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    operands.iter().flatten().for_each(|l| *counts.entry(*l).or_default() += 1);
    let once = counts.into_iter().filter(|(l, n)| *n == 1 && matches!(l, Label::Letter(_)));
    (0..ellipsis).rev().map(Label::Ellipsis).chain(once.map(|(l, _)| l)).collect()
}
