//! Products of matrices and tensors.

use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::Attribute;
use crate::shapes::einsum_terms;

/// The most operands of an `Einsum` that is differentiated.
const MAX_OPERANDS: usize = 32;

/// `dA = dy B^T`, `dB = A^T dy`, summed over the batch axes that were broadcast.
pub(super) fn matmul(step: &mut Step<'_>) -> Gradients {
    let (mut dy, a, b) = (step.dy()?, step.x(0)?, step.x(1)?);
    let (rank_a, rank_b) = (step.shape(a)?.len(), step.shape(b)?.len());
    // Vectors are matrices of one row or one column.
    let matrix_a = if rank_a == 1 { step.b.unsqueeze(a, &[0]) } else { Value::named(a) };
    let matrix_b = if rank_b == 1 { step.b.unsqueeze(b, &[1]) } else { Value::named(b) };
    if rank_b == 1 {
        dy = step.b.unsqueeze(&dy, &[-1]);
    }
    if rank_a == 1 {
        dy = step.b.unsqueeze(&dy, &[-2]);
    }
    let mut sent = vec![None, None];
    if step.wants(0) {
        let transposed = transpose_last(step, &matrix_b)?;
        let gradient = step.b.matmul(&dy, &transposed);
        let gradient = step.b.sum_to(&gradient, &matrix_a)?;
        sent[0] = Some(if rank_a == 1 { step.b.squeeze(&gradient, &[0]) } else { gradient });
    }
    if step.wants(1) {
        let gradient = if rank_b == 2 && rank_a > 2 {
            // All rows of all batches at once.
            let (k, n) = (step.size(b, 0)?, step.size(b, 1)?);
            let rows = step.b.reshape(a, &[-1, k]);
            let rows = transpose_last(step, &rows)?;
            let grads = step.b.reshape(&dy, &[-1, n]);
            step.b.matmul(&rows, &grads)
        } else {
            let transposed = transpose_last(step, &matrix_a)?;
            step.b.matmul(&transposed, &dy)
        };
        let gradient = step.b.sum_to(&gradient, &matrix_b)?;
        sent[1] = Some(if rank_b == 1 { step.b.squeeze(&gradient, &[1]) } else { gradient });
    }
    Ok(sent)
}

fn transpose_last(step: &mut Step<'_>, value: &str) -> Result<Value> {
    step.b.transpose_last(value).ok_or_else(|| step.unknown_shape(format!("the rank of '{value}'")))
}

/// `y = alpha A' B' + beta C`, where `'` may transpose.
pub(super) fn gemm(step: &mut Step<'_>) -> Gradients {
    let (dy, a, b) = (step.dy()?, step.x(0)?, step.x(1)?);
    let flag = |name: &str| i64::from(step.node.int(name, 0) != 0);
    let (ta, tb) = (flag("transA"), flag("transB"));
    let alpha = step.node.float("alpha", 1.0);
    let product = |step: &mut Step<'_>, left: &str, right: &str, tl: i64, tr: i64| {
        let attributes = [("alpha", Attribute::Float(alpha)), ("transA", tl.into()), ("transB", tr.into())];
        step.b.op_with("Gemm", &[left, right], &attributes)
    };
    let mut sent = vec![None; step.node.inputs.len()];
    if step.wants(0) {
        sent[0] = Some(if ta == 0 { product(step, &dy, b, 0, 1 - tb) } else { product(step, b, &dy, tb, 1) });
    }
    if step.wants(1) {
        sent[1] = Some(if tb == 0 { product(step, a, &dy, 1 - ta, 0) } else { product(step, &dy, a, 1, ta) });
    }
    if step.wants(2) {
        let gradient = step.b.sum_to(&dy, step.x(2)?)?;
        sent[2] = Some(step.b.scale(&gradient, f64::from(step.node.float("beta", 1.0))));
    }
    Ok(sent)
}

/// The gradient of an einsum is an einsum: the operand and the output exchange places.
///
/// A label that only this operand has was summed over, so its gradient is the same along that axis.
pub(super) fn einsum(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    // Every operand's gradient needs all the others.
    if step.node.inputs.len() > MAX_OPERANDS {
        let reason = format!("it has {} operands, and a rule for {MAX_OPERANDS}", step.node.inputs.len());
        return Err(step.not_differentiable(reason));
    }
    let ranks =
        (0..step.node.inputs.len()).map(|i| Ok(step.shape(step.x(i)?)?.len())).collect::<Result<Vec<_>>>()?;
    let (terms, output) = einsum_terms(step.node.string("equation", ""), &ranks)
        .ok_or_else(|| step.malformed("its equation does not fit its inputs"))?;
    let mut sent = vec![None; terms.len()];
    for i in 0..terms.len() {
        if !step.wants(i) {
            continue;
        }
        let operand = step.x(i)?;
        let mut labels: Vec<char> = terms[i].chars().collect();
        labels.sort_unstable();
        labels.dedup();
        if labels.len() != terms[i].chars().count() {
            return Err(step.not_differentiable(format!("its term '{}' repeats a label", terms[i])));
        }
        let others: Vec<usize> = (0..terms.len()).filter(|&k| k != i).collect();
        let elsewhere = |l: &char| output.contains(*l) || others.iter().any(|&k| terms[k].contains(*l));
        let lone: Vec<i64> = terms[i]
            .chars()
            .enumerate()
            .filter(|(_, l)| !elsewhere(l))
            .map(|(axis, _)| axis as i64)
            .collect();
        let target: String = terms[i].chars().filter(elsewhere).collect();
        let mut operands: Vec<&str> = vec![&dy];
        let mut equation = output.clone();
        for &k in &others {
            operands.push(step.x(k)?);
            equation = format!("{equation},{}", terms[k]);
        }
        let equation = format!("{equation}->{target}");
        let mut gradient = step.b.op_with("Einsum", &operands, &[("equation", equation.into())]);
        if !lone.is_empty() {
            gradient = step.b.unsqueeze(&gradient, &lone);
            gradient = step.b.expand_like(&gradient, operand);
        }
        sent[i] = Some(step.b.sum_to(&gradient, operand)?);
    }
    Ok(sent)
}
