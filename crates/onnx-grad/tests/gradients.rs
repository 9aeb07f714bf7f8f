//! Every rule against central differences in float64.

#![allow(clippy::unwrap_used)]

mod cases;

use std::collections::BTreeMap;

use cases::{Case, GENERATORS, Rng};
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{GradOptions, Treatment, WeightGradient, coverage, grad_with, gradient_name, seed_name};
use proptest::prelude::*;

/// The steps of the differences; their error is of the order of a step's square.
///
/// The first does, save where a kink (of `Clip`, `HardSigmoid`, ...) lies within a step of the point: the
/// others look nearer. No step makes a wrong rule right.
const STEPS: [f64; 3] = [1e-5, 1e-7, 1e-8];
const TOLERANCE: f64 = 1e-6;

/// `sum(seed * y)`, with the parameters replaced by the given values.
fn objective(case: &Case, values: &BTreeMap<String, Array>, seed: &Array) -> f64 {
    let mut graph = case.graph.clone();
    let mut inputs = BTreeMap::new();
    for (name, array) in values {
        if graph.initializers.remove(name).is_some() {
            graph.inputs.push(onnx_grad::ValueInfo::new(name.clone(), array.dtype, array.data.shape()));
        }
        inputs.insert(name.clone(), array.clone());
    }
    let y = evaluate(&graph, &inputs).expect("the reference evaluator knows every operator");
    (&y[0].data * &seed.data).sum()
}

/// The largest difference between the graph's gradient and the differences, relative to the largest entry.
fn worst_error(case: &Case, options: GradOptions) -> Result<f64, String> {
    let wrt: Vec<&str> = case.wrt.iter().map(String::as_str).collect();
    let graph = grad_with(&case.graph, &["y"], &wrt, options).map_err(|e| e.to_string())?;
    graph.validate().map_err(|e| e.to_string())?;

    let y = &evaluate(&case.graph, &case.inputs).map_err(|e| format!("forward: {e}"))?[0];
    let shape = y.data.shape().to_vec();
    let mut rng = Rng(17);
    // A scalar output is not seeded: its gradient is 1.
    let seed = match shape.is_empty() {
        true => Array::new(y.dtype, &shape, vec![1.0]),
        false => Array::new(y.dtype, &shape, rng.apart(y.data.len(), -1.0, 1.0)),
    };
    let mut inputs = case.inputs.clone();
    if graph.input(&seed_name("y")).is_some() {
        inputs.insert(seed_name("y"), seed.clone());
    }
    let outputs = evaluate(&graph, &inputs).map_err(|e| format!("gradient: {e}"))?;

    let mut values = case.inputs.clone();
    for name in &case.wrt {
        if let Some(data) = case.graph.initializers.get(name) {
            values.insert(name.clone(), Array::from(data));
        }
    }
    let mut worst: f64 = 0.0;
    for name in &case.wrt {
        let index = graph.outputs.iter().position(|o| o.name == gradient_name(name)).unwrap();
        let ours = &outputs[index].data;
        let point = values[name].clone();
        if ours.shape() != point.data.shape() {
            return Err(format!(
                "gradient of {name} has shape {:?}, not {:?}",
                ours.shape(),
                point.data.shape()
            ));
        }
        let mut difference = |i: usize, step: f64| {
            let [ahead, behind] = [step, -step].map(|by| {
                let mut moved = point.clone();
                *moved.data.iter_mut().nth(i).unwrap() += by;
                values.insert(name.clone(), moved);
                objective(case, &values, &seed)
            });
            (ahead - behind) / (2.0 * step)
        };
        let differences: Vec<f64> = (0..point.data.len()).map(|i| difference(i, STEPS[0])).collect();
        let scale = differences.iter().fold(1.0f64, |m, d| m.max(d.abs()));
        for (i, (ours, &first)) in ours.iter().zip(&differences).enumerate() {
            let apart = |theirs: f64| (ours - theirs).abs() / scale;
            let mut error = apart(first);
            for &step in &STEPS[1..] {
                if error < TOLERANCE {
                    break;
                }
                error = apart(difference(i, step));
            }
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
        values.insert(name.clone(), point);
    }
    Ok(worst)
}

/// What is wrong with one case, if anything.
fn complaint(op: &str, generator: fn(u64) -> Case, seed: u64, options: GradOptions) -> Option<String> {
    let case = generator(seed);
    let what = match worst_error(&case, options) {
        Ok(error) if error < TOLERANCE => return None,
        Ok(error) => format!("error {error:.1e}"),
        Err(message) => message,
    };
    let nodes: Vec<String> = case.graph.nodes.iter().map(|n| format!("{n:?}")).collect();
    Some(format!("{op}, seed {seed}: {what}\n    {}", nodes.join("\n    ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 0, ..ProptestConfig::default() })]

    /// Random shapes and attributes for every operator.
    #[test]
    fn every_rule_agrees_with_central_differences(seed in any::<u64>()) {
        let complaints: Vec<String> = GENERATORS
            .iter()
            .filter_map(|&(op, generator)| complaint(op, generator, seed, GradOptions::default()))
            .collect();
        prop_assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    /// Both forms of a convolution's weight gradient.
    #[test]
    fn weight_gradients_agree_in_both_forms(seed in any::<u64>()) {
        for form in [WeightGradient::Im2col, WeightGradient::TransposedConv] {
            let options = GradOptions { weight_gradient: form, ..GradOptions::default() };
            for &(op, generator) in GENERATORS.iter().filter(|(op, _)| op.starts_with("Conv")) {
                for offset in 0..8 {
                    let complaint = complaint(op, generator, seed.wrapping_add(offset), options.clone());
                    prop_assert!(complaint.is_none(), "{form:?} {complaint:?}");
                }
            }
        }
    }
}

/// An operator that is listed as differentiable but has no case would go unchecked.
#[test]
fn every_listed_operator_is_checked() {
    for line in coverage() {
        let checked = GENERATORS.iter().any(|(op, _)| *op == line.op);
        let known =
            matches!(line.treatment, Treatment::Stops(_) | Treatment::Renamed) || line.op == "Constant";
        assert!(checked || known, "{} has a rule but no case", line.op);
    }
}
