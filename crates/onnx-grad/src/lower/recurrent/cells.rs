//! One step of each recurrent layer.
//!
//! `X` is the projection of a step's input with all biases that may be added there, `H` and `C` the state before it:
//!
//! ```text
//! LSTM  i, o, f = f(X + H R^T + P C)     c = g(X + H R^T)     C' = f C + i c     H' = o h(C')
//! GRU   z, r = f(X + H R^T)   n = g(X + (r H) R^T) or g(X + r (H R^T + b))   H' = n + z (H - n)
//! RNN   H' = f(X + H R^T)
//! ```
//!
//! No state at all stands for zeros, and saves the first product.

use super::weights::Weights;
use crate::build::{Builder, Value};
use crate::graph::Attribute;
use crate::recurrent::{Activation, Direction, Layer, Recurrence};

/// What goes from step to step; none is zero.
#[derive(Clone)]
pub(super) struct State {
    pub(super) h: Option<Value>,
    pub(super) c: Option<Value>,
}

/// The weights of one direction that are used in every step.
pub(super) struct Cell<'a> {
    recurrence: &'a Recurrence,
    direction: &'a Direction,
    hidden: i64,
    /// `R^T` of all gates.
    recurrent: Value,
    /// GRU whose reset comes first: `R^T` of the third gate, then `recurrent` has the first two.
    candidate: Option<Value>,
    /// GRU whose product comes first: the bias of the state in the third gate.
    inner_bias: Option<Value>,
    /// LSTM: peepholes to i, o and f.
    peepholes: Option<[Value; 3]>,
}

impl<'a> Cell<'a> {
    pub(super) fn new(
        b: &mut Builder,
        recurrence: &'a Recurrence,
        weights: &Weights<'_>,
        way: usize,
        hidden: i64,
    ) -> Cell<'a> {
        let gru = recurrence.layer == Layer::Gru;
        let reset_first = gru && !recurrence.linear_before_reset;
        let gates = recurrence.layer.gates() as i64;
        let (joint, candidate) = match reset_first {
            true => (2, Some(weights.transposed(b, 2, 2 * hidden, 3 * hidden))),
            false => (gates, None),
        };
        let inner_bias = match gru && !reset_first {
            true => weights.vector(b, 3, 5 * hidden, 6 * hidden),
            false => None,
        };
        let peepholes = match (recurrence.layer, weights.node.input(7)) {
            (Layer::Lstm, Some(_)) => {
                let part = |b: &mut Builder, i: i64| weights.vector(b, 7, i * hidden, (i + 1) * hidden);
                part(b, 0).zip(part(b, 1)).zip(part(b, 2)).map(|((i, o), f)| [i, o, f])
            }
            _ => None,
        };
        let recurrent = weights.transposed(b, 2, 0, joint * hidden);
        let direction = &recurrence.directions[way];
        Cell { recurrence, direction, hidden, recurrent, candidate, inner_bias, peepholes }
    }

    pub(super) fn has_memory(&self) -> bool {
        self.recurrence.layer == Layer::Lstm
    }

    /// The bias of the input, and that of the state where it is only added.
    pub(super) fn projected_bias(&self, b: &mut Builder, weights: &Weights<'_>) -> Option<Value> {
        let width = self.recurrence.layer.gates() as i64 * self.hidden;
        let bias = weights.node.input(3)?;
        let added = match self.inner_bias {
            Some(_) => 2 * self.hidden,
            None => width,
        };
        let numbers = (weights.values(b, 3, 0, width), weights.values(b, 3, width, width + added));
        if let (Some(mut sum), Some(more)) = numbers {
            sum.iter_mut().zip(&more).for_each(|(sum, more)| *sum += more);
            return Some(super::vector(b, bias, &sum));
        }
        let first = weights.vector(b, 3, 0, width)?;
        let second = weights.vector(b, 3, width, width + added)?;
        if added == width {
            return Some(b.add(&first, &second));
        }
        let (joint, rest) = (b.slice(&first, 0, 0, added, 1), b.slice(&first, 0, added, width, 1));
        let joint = b.add(&joint, &second);
        Some(b.concat(&[&joint, &rest], 0))
    }

    /// The projection of every step; of a GRU its first two gates and its third apart.
    pub(super) fn inputs(&self, b: &mut Builder, projection: &str, steps: i64) -> Vec<Vec<Value>> {
        let parts = match self.recurrence.layer {
            Layer::Gru => self.blocks(b, projection, &[2, 1]),
            _ => vec![Value::named(projection)],
        };
        let attributes = [("axis", Attribute::Int(0)), ("num_outputs", Attribute::Int(steps))];
        let mut inputs = vec![Vec::new(); steps as usize];
        for part in parts {
            let each = match steps {
                1 => vec![part],
                _ => b.op_many("Split", &[&part], &attributes, steps as usize),
            };
            inputs.iter_mut().zip(each).for_each(|(input, value)| input.push(value));
        }
        inputs
    }

    /// The last axis cut into blocks of so many gates each.
    fn blocks(&self, b: &mut Builder, value: &str, gates: &[i64]) -> Vec<Value> {
        let sizes: Vec<i64> = gates.iter().map(|n| n * self.hidden).collect();
        let sizes = b.ints(&sizes);
        b.op_many("Split", &[value, &sizes], &[("axis", (-1i64).into())], gates.len())
    }

    /// The state after a step.
    pub(super) fn step(&self, b: &mut Builder, x: &[Value], state: &State) -> State {
        match (self.recurrence.layer, x) {
            (Layer::Gru, [x, candidate]) => State { h: Some(self.gru(b, x, candidate, state)), c: None },
            (Layer::Lstm, [x, ..]) => self.lstm(b, x, state),
            (_, [x, ..]) => {
                let sum = self.with_state(b, x, state);
                State { h: Some(self.bent(b, 0, &sum)), c: None }
            }
            _ => state.clone(),
        }
    }

    /// `X + H R^T`
    fn with_state(&self, b: &mut Builder, x: &Value, state: &State) -> Value {
        match &state.h {
            Some(h) => {
                let product = b.matmul(h, &self.recurrent);
                b.add(&product, x)
            }
            None => x.clone(),
        }
    }

    fn lstm(&self, b: &mut Builder, x: &Value, state: &State) -> State {
        let sums = self.with_state(b, x, state);
        let (i, o, f, new) = match &self.peepholes {
            None => {
                let parts = self.blocks(b, &sums, &[3, 1]);
                let gates = self.bent(b, 0, &parts[0]);
                let gates = self.blocks(b, &gates, &[1, 1, 1]);
                let new = self.bent(b, 1, &parts[1]);
                (gates[0].clone(), gates[1].clone(), gates[2].clone(), new)
            }
            Some([p_i, _, p_f]) => {
                let parts = self.blocks(b, &sums, &[1, 1, 1, 1]);
                let i = self.peeped(b, &parts[0], p_i, &state.c);
                let f = self.peeped(b, &parts[2], p_f, &state.c);
                let (i, f) = (self.bent(b, 0, &i), self.bent(b, 0, &f));
                let new = self.bent(b, 1, &parts[3]);
                (i, parts[1].clone(), f, new)
            }
        };
        let f = if self.recurrence.input_forget { b.rsub(1.0, &i) } else { f };
        let mut c = b.mul(&i, &new);
        if let Some(old) = &state.c {
            let kept = b.mul(&f, old);
            c = b.add(&kept, &c);
        }
        let o = match &self.peepholes {
            Some([_, p_o, _]) => {
                let o = self.peeped(b, &o, p_o, &Some(c.clone()));
                self.bent(b, 0, &o)
            }
            None => o,
        };
        // The cell's value itself is never clipped.
        let out = apply(b, &self.direction.activations[2], &c);
        State { h: Some(b.mul(&o, &out)), c: Some(c) }
    }

    fn peeped(&self, b: &mut Builder, gate: &Value, peephole: &str, c: &Option<Value>) -> Value {
        let Some(c) = c else { return gate.clone() };
        let seen = b.mul(c, peephole);
        b.add(gate, &seen)
    }

    fn gru(&self, b: &mut Builder, x: &Value, candidate: &Value, state: &State) -> Value {
        let Some(h) = &state.h else {
            // From zeros: `n + z (0 - n)`.
            let gates = self.bent(b, 0, x);
            let gates = self.blocks(b, &gates, &[1, 1]);
            let sum = match &self.inner_bias {
                Some(bias) => {
                    let inner = b.mul(&gates[1], bias);
                    b.add(candidate, &inner)
                }
                None => candidate.clone(),
            };
            let new = self.bent(b, 1, &sum);
            let kept = b.mul(&gates[0], &new);
            return b.sub(&new, &kept);
        };
        let product = b.matmul(h, &self.recurrent);
        let (joint, inner) = match &self.candidate {
            Some(_) => (product, None),
            None => {
                let parts = self.blocks(b, &product, &[2, 1]);
                (parts[0].clone(), Some(parts[1].clone()))
            }
        };
        let sums = b.add(&joint, x);
        let gates = self.bent(b, 0, &sums);
        let gates = self.blocks(b, &gates, &[1, 1]);
        let (z, r) = (&gates[0], &gates[1]);
        let inner = match (inner, &self.candidate) {
            (None, Some(weights)) => {
                let reset = b.mul(r, h);
                b.matmul(&reset, weights)
            }
            (Some(inner), _) => {
                let inner = match &self.inner_bias {
                    Some(bias) => b.add(&inner, bias),
                    None => inner,
                };
                b.mul(r, &inner)
            }
            (None, None) => return h.clone(),
        };
        let sum = b.add(candidate, &inner);
        let new = self.bent(b, 1, &sum);
        let apart = b.sub(h, &new);
        let kept = b.mul(z, &apart);
        b.add(&new, &kept)
    }

    /// The `i`-th function of what is clipped.
    fn bent(&self, b: &mut Builder, i: usize, value: &Value) -> Value {
        let value = match self.recurrence.clip {
            Some(clip) => {
                let bounds = [-1.0, 1.0].map(|side| b.scalar_like(value, side * f64::from(clip)));
                b.op("Clip", &[value, &bounds[0], &bounds[1]])
            }
            None => value.clone(),
        };
        apply(b, &self.direction.activations[i], &value)
    }
}

fn apply(b: &mut Builder, activation: &Activation, value: &str) -> Value {
    let Activation { name, alpha, beta } = *activation;
    match name {
        "Affine" => {
            let scaled = b.scale(value, f64::from(alpha));
            b.shift(&scaled, f64::from(beta))
        }
        "ScaledTanh" => {
            let inner = b.scale(value, f64::from(beta));
            let bent = b.op("Tanh", &[&inner]);
            b.scale(&bent, f64::from(alpha))
        }
        "ThresholdedRelu" => {
            let threshold = b.scalar_like(value, f64::from(alpha));
            let above = b.op("Greater", &[value, &threshold]);
            b.keep_where(&above, value)
        }
        "Elu" | "LeakyRelu" => b.op_with(name, &[value], &[("alpha", alpha.into())]),
        "HardSigmoid" => b.op_with(name, &[value], &[("alpha", alpha.into()), ("beta", beta.into())]),
        _ => b.op(name, &[value]),
    }
}
