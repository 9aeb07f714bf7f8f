//! `LSTM`, `GRU` and `RNN`, sequence by sequence, as the specification defines them.
//!
//! Written apart from `lower`, which spells the same layers out for engines, so that one can be held against the other:
//! a sequence is read on its own up to its length, backwards where the direction is reversed, gate by gate.

use super::Array;
use super::call::Call;
use crate::error::Result;
use crate::recurrent::{Activation, Direction, Layer, Recurrence};

/// The value of an activation function.
fn bend(function: &Activation, x: f64) -> f64 {
    let (alpha, beta) = (f64::from(function.alpha), f64::from(function.beta));
    match function.name {
        "Tanh" => x.tanh(),
        "Sigmoid" => 1.0 / (1.0 + (-x).exp()),
        "Relu" => x.max(0.0),
        "Softsign" => x / (1.0 + x.abs()),
        "Softplus" => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        "Elu" if x < 0.0 => alpha * x.exp_m1(),
        "LeakyRelu" if x < 0.0 => alpha * x,
        "ThresholdedRelu" if x <= alpha => 0.0,
        "HardSigmoid" => (alpha * x + beta).clamp(0.0, 1.0),
        "Affine" => alpha * x + beta,
        "ScaledTanh" => alpha * (beta * x).tanh(),
        _ => x,
    }
}

/// The layer with the weights of one direction.
struct Way<'a> {
    recurrence: &'a Recurrence,
    direction: &'a Direction,
    hidden: usize,
    width: usize,
    w: &'a [f64],
    r: &'a [f64],
    /// Biases of the input, then of the state; empty where there are none.
    bias: &'a [f64],
    peepholes: &'a [f64],
}

impl Way<'_> {
    fn input_sum(&self, row: usize, x: &[f64]) -> f64 {
        let bias = self.bias.get(row).copied().unwrap_or(0.0);
        dot(&self.w[row * self.width..(row + 1) * self.width], x) + bias
    }

    fn state_sum(&self, row: usize, h: &[f64]) -> f64 {
        let gates = self.recurrence.layer.gates();
        let bias = self.bias.get(gates * self.hidden + row).copied().unwrap_or(0.0);
        dot(&self.r[row * self.hidden..(row + 1) * self.hidden], h) + bias
    }

    fn gate(&self, function: usize, sum: f64) -> f64 {
        let limit = self.recurrence.clip.map_or(f64::INFINITY, f64::from);
        bend(&self.direction.activations[function], sum.clamp(-limit, limit))
    }

    fn peephole(&self, gate: usize, unit: usize) -> f64 {
        self.peepholes.get(gate * self.hidden + unit).copied().unwrap_or(0.0)
    }

    /// One step: `h` and `c` become the next state.
    fn step(&self, x: &[f64], h: &mut Vec<f64>, c: &mut [f64]) {
        let n = self.hidden;
        let before = h.clone();
        let sum = |gate: usize, unit: usize| {
            self.input_sum(gate * n + unit, x) + self.state_sum(gate * n + unit, &before)
        };
        match self.recurrence.layer {
            Layer::Rnn => *h = (0..n).map(|unit| self.gate(0, sum(0, unit))).collect(),
            Layer::Lstm => {
                for unit in 0..n {
                    let i = self.gate(0, sum(0, unit) + self.peephole(0, unit) * c[unit]);
                    let f = match self.recurrence.input_forget {
                        true => 1.0 - i,
                        false => self.gate(0, sum(2, unit) + self.peephole(2, unit) * c[unit]),
                    };
                    c[unit] = f * c[unit] + i * self.gate(1, sum(3, unit));
                    let o = self.gate(0, sum(1, unit) + self.peephole(1, unit) * c[unit]);
                    h[unit] = o * bend(&self.direction.activations[2], c[unit]);
                }
            }
            Layer::Gru => {
                let reset: Vec<f64> = (0..n).map(|unit| self.gate(0, sum(1, unit))).collect();
                let masked: Vec<f64> = reset.iter().zip(&before).map(|(r, h)| r * h).collect();
                for unit in 0..n {
                    let z = self.gate(0, sum(0, unit));
                    let inner = match self.recurrence.linear_before_reset {
                        true => reset[unit] * self.state_sum(2 * n + unit, &before),
                        false => self.state_sum(2 * n + unit, &masked),
                    };
                    let new = self.gate(1, self.input_sum(2 * n + unit, x) + inner);
                    h[unit] = (1.0 - z) * new + z * before[unit];
                }
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `Y`, `Y_h` and, of an LSTM, `Y_c`.
pub(super) fn recurrent(call: &Call) -> Result<Vec<Array>> {
    let recurrence = Recurrence::of(call.node).map_err(|reason| call.unsupported(reason))?;
    let (x, r) = (call.input(0)?, call.input(2)?);
    call.input(1)?;
    let (ways, gates) = (recurrence.directions.len(), recurrence.layer.gates());
    let (&[first, second, width], &[_, _, hidden]) = (x.shape(), r.shape()) else {
        return Err(call.malformed(format!("input and weights are {:?} and {:?}", x.shape(), r.shape())));
    };
    let batch_first = recurrence.batch_first;
    let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
    let state = if batch_first { [batch, ways, hidden] } else { [ways, batch, hidden] };
    let rows = call.room(&[gates, hidden])?;
    let expect = |i: usize, shape: &[usize]| -> Result<Vec<f64>> {
        match call.optional(i) {
            None => Ok(Vec::new()),
            Some(array) if array.shape() == shape => Ok(array.values().into_owned()),
            Some(array) => {
                Err(call.malformed(format!("input {i} has shape {:?}, not {shape:?}", array.shape())))
            }
        }
    };
    let (w_all, r_all) = (expect(1, &[ways, rows, width])?, expect(2, &[ways, rows, hidden])?);
    let (bias, lengths) = (expect(3, &[ways, 2 * rows])?, expect(4, &[batch])?);
    let (h_first, c_first) = (expect(5, &state)?, expect(6, &state)?);
    let peepholes = expect(7, &[ways, 3 * hidden])?;
    call.work(&[ways, batch, steps, rows, call.room(&[width + hidden + 1])?])?;
    let part = |all: &[f64], way: usize| {
        let size = all.len() / ways;
        all[way * size..(way + 1) * size].to_vec()
    };
    let values = x.values();
    let mut y = vec![0.0; call.room(&[steps, ways, batch, hidden])?];
    let (mut y_h, mut y_c) = (vec![0.0; call.room(&state)?], vec![0.0; call.room(&state)?]);
    for (way, direction) in recurrence.directions.iter().enumerate() {
        let parts = [&w_all, &r_all, &bias, &peepholes].map(|all| part(all, way));
        let [w, r, bias, peepholes] = &parts;
        let cell = Way { recurrence: &recurrence, direction, hidden, width, w, r, bias, peepholes };
        for row in 0..batch {
            let place = if batch_first { row * ways + way } else { way * batch + row } * hidden;
            let start = |all: &[f64]| match all.get(place..place + hidden) {
                Some(given) => given.to_vec(),
                None => vec![0.0; hidden],
            };
            let (mut h, mut c) = (start(&h_first), start(&c_first));
            let length = lengths.get(row).map_or(steps, |&length| (length.max(0.0) as usize).min(steps));
            for step in 0..length {
                let t = if direction.reverse { length - 1 - step } else { step };
                let at = if batch_first { row * steps + t } else { t * batch + row } * width;
                cell.step(&values[at..at + width], &mut h, &mut c);
                let to = match batch_first {
                    true => (row * steps + t) * ways + way,
                    false => (t * ways + way) * batch + row,
                } * hidden;
                y[to..to + hidden].copy_from_slice(&h);
            }
            y_h[place..place + hidden].copy_from_slice(&h);
            y_c[place..place + hidden].copy_from_slice(&c);
        }
    }
    let shape = if batch_first { [batch, steps, ways, hidden] } else { [steps, ways, batch, hidden] };
    let mut outputs = vec![call.array(x.dtype, &shape, y)?, call.array(x.dtype, &state, y_h)?];
    if recurrence.layer == Layer::Lstm {
        outputs.push(call.array(x.dtype, &state, y_c)?);
    }
    Ok(outputs)
}
