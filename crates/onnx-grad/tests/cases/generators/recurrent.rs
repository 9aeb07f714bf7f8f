//! Recurrent layers in all their forms.

use onnx_grad::{Attribute, TensorData, Value};

use super::super::{Case, Maker};

/// A layer with weights that are parameters or constants, and all of its outputs in one.
pub(super) fn recurrent(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let (gates, functions) = match op {
        "LSTM" => (4, 3),
        "GRU" => (3, 2),
        _ => (1, 1),
    };
    let (batch, steps, width, hidden) =
        (m.rng.size(1, 3), m.rng.size(2, 4), m.rng.size(1, 3), m.rng.size(1, 3));
    let direction = m.rng.pick(&["forward", "reverse", "bidirectional"]);
    let ways = if direction == "bidirectional" { 2 } else { 1 };
    let batch_first = m.rng.coin();
    let mut attributes = vec![
        ("hidden_size", Attribute::Int(hidden as i64)),
        ("direction", direction.into()),
        ("layout", Attribute::Int(batch_first.into())),
    ];
    // The batch may be a symbol on the first axis only.
    let x = m.batched(&[batch, steps, width]);
    let turned = |m: &mut Maker, value: Value| match batch_first {
        true => value,
        false => m.b.transpose(&value, &[1, 0, 2]),
    };
    let x = turned(&mut m, x);
    let constants = m.rng.coin();
    let weights = |m: &mut Maker, shape: &[usize]| match constants {
        true => m.constant(shape, -0.9, 0.8),
        false => m.parameter(shape, -0.9, 0.8),
    };
    let w = weights(&mut m, &[ways, gates * hidden, width]);
    let r = weights(&mut m, &[ways, gates * hidden, hidden]);
    let mut inputs = vec![x, w, r];
    let nothing = Value::named("");
    let bias = m.rng.coin();
    inputs.push(if bias { weights(&mut m, &[ways, 2 * gates * hidden]) } else { nothing.clone() });
    inputs.push(match m.rng.int(0, 2) {
        0 => {
            let lengths: Vec<i32> = (0..batch).map(|_| m.rng.int(1, steps as i64) as i32).collect();
            m.b.constant(TensorData::from_f64(
                onnx_grad::DType::I32,
                &[batch],
                &lengths.iter().map(|&n| f64::from(n)).collect::<Vec<_>>(),
            ))
        }
        _ => nothing.clone(),
    });
    let memory = op == "LSTM";
    for _ in 0..1 + usize::from(memory) {
        let state = match m.rng.coin() {
            true => {
                let state = m.batched(&[batch, ways, hidden]);
                turned(&mut m, state)
            }
            false => nothing.clone(),
        };
        inputs.push(state);
    }
    if memory && m.rng.coin() {
        let peepholes = weights(&mut m, &[ways, 3 * hidden]);
        inputs.push(peepholes);
    }
    match m.rng.int(0, 5) {
        0 => attributes.push(("clip", Attribute::Float(0.7))),
        1 => attributes.push(("input_forget", Attribute::Int(i64::from(memory)))),
        2 | 3 => attributes.push(("linear_before_reset", Attribute::Int(i64::from(op == "GRU")))),
        _ => {}
    }
    if !memory {
        attributes.retain(|(name, _)| *name != "input_forget");
    }
    if op != "GRU" {
        attributes.retain(|(name, _)| *name != "linear_before_reset");
    }
    if m.rng.int(0, 3) == 0 {
        let names = ["Relu", "Tanh", "Sigmoid", "Softsign", "HardSigmoid", "LeakyRelu", "Elu"];
        let drawn: Vec<String> = (0..functions * ways).map(|_| m.rng.pick(&names).to_string()).collect();
        attributes.push(("activations", Attribute::Strings(drawn)));
    }
    let inputs: Vec<&str> = inputs.iter().map(|value| &**value).collect();
    let outputs = m.b.op_many(op, &inputs, &attributes, 2 + usize::from(memory));
    let flat: Vec<Value> = outputs.iter().map(|output| m.b.reshape(output, &[-1])).collect();
    let flat: Vec<&str> = flat.iter().map(|value| &**value).collect();
    let y = m.b.concat(&flat, 0);
    m.finish(&y)
}
