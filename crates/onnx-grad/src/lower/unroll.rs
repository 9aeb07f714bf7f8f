//! `If`, `Loop` and `Scan` whose conditions and counts are known: their bodies, once or several times, in the graph around.
//!
//! A count is known where it is a constant, or follows from a size that is fixed. A body's condition must be known after
//! each turn: constants are folded while it is written out, so a counter that reaches its limit is.

use super::Pass;
use super::recurrent::MAX_STEPS;
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Attribute, Dim, Graph, Node};
use crate::tensor::{DType, TensorData};

/// More nodes of bodies than this are not written out, all turns of all loops together: a few bytes can ask for billions, and
/// a graph of them could neither be differentiated nor loaded.
const MAX_NODES: usize = 1 << 16;

impl Pass<'_> {
    /// The node without its control, where what it does is known.
    pub(super) fn opened(&mut self, node: &Node) -> Result<bool> {
        match node.op.as_str() {
            _ if !node.is_standard() => Ok(false),
            "If" => self.branch(node),
            "Loop" => self.turns(node),
            "Scan" => self.scan(node),
            _ => Ok(false),
        }
    }

    /// The one number that a value is known to be.
    fn known(&self, name: &str) -> Option<f64> {
        let fact = self.builder.fact(name);
        let content = fact.known_content().and_then(|content| content.first().map(|&n| n as f64));
        content.or_else(|| fact.constant.as_ref().and_then(|data| data.to_f64().first().copied()))
    }

    fn branch(&mut self, node: &Node) -> Result<bool> {
        let Some(condition) = node.input(0).and_then(|name| self.known(name)) else { return Ok(false) };
        let branch = if condition != 0.0 { "then_branch" } else { "else_branch" };
        let Some(Attribute::Graph(body)) = node.attributes.get(branch) else { return Ok(false) };
        let results = self.written_out(body, &[])?;
        for (outer, result) in node.outputs.iter().zip(&results) {
            self.rename(outer, result);
        }
        Ok(true)
    }

    /// A body in the graph around it, with these values for its inputs; the names of its outputs.
    fn written_out(&mut self, body: &Graph, given: &[String]) -> Result<Vec<String>> {
        self.written += body.nodes.len() + 1;
        let prefix = self.builder.fresh("body");
        let inner = |name: &str| format!("{prefix}/{name}");
        for (input, value) in body.inputs.iter().zip(given) {
            self.rename(&input.name, value);
        }
        for (name, data) in &body.initializers {
            let value = self.builder.parameter(&inner(name), data.clone());
            self.rename(name, &value);
        }
        for nested in &body.nodes {
            let mut nested = nested.clone();
            let outputs: Vec<String> = nested.outputs.clone();
            for output in nested.outputs.iter_mut().filter(|output| !output.is_empty()) {
                *output = inner(output);
            }
            self.node(&nested)?;
            for output in outputs.iter().filter(|output| !output.is_empty()) {
                let value = self.renamed.get(&inner(output)).cloned().unwrap_or(inner(output));
                self.rename(output, &value);
            }
        }
        let value = |name: &String| self.renamed.get(name).cloned().unwrap_or(name.clone());
        Ok(body.outputs.iter().map(|result| value(&result.name)).collect())
    }

    fn turns(&mut self, node: &Node) -> Result<bool> {
        let Some(Attribute::Graph(body)) = node.attributes.get("body") else { return Ok(false) };
        let body = body.as_ref().clone();
        let most = match node.input(0) {
            Some(name) => match self.known(name) {
                Some(count) => count,
                None => return Ok(false),
            },
            None => f64::INFINITY,
        };
        let mut goes_on = match node.input(1) {
            Some(name) => match self.known(name) {
                Some(condition) => condition != 0.0,
                None => return Ok(false),
            },
            None => true,
        };
        let states = node.inputs.len().saturating_sub(2);
        if body.outputs.len() <= states || body.inputs.len() != states + 2 {
            return Ok(false);
        }
        let mut carried: Vec<String> = node.inputs[node.inputs.len() - states..].to_vec();
        let mut stacks: Vec<Vec<String>> = vec![Vec::new(); body.outputs.len() - 1 - states];
        let mut turn = 0;
        while goes_on && (turn as f64) < most {
            if turn >= MAX_STEPS || self.written > MAX_NODES {
                return Ok(false);
            }
            let count = self.builder.constant(TensorData::from_f64(DType::I64, &[], &[turn as f64]));
            let condition = self.builder.constant(TensorData::from_f64(DType::Bool, &[], &[1.0]));
            let mut given = vec![count.to_string(), condition.to_string()];
            given.append(&mut carried);
            let results = self.written_out(&body, &given)?;
            let Some(condition) = self.known(&results[0]) else { return Ok(false) };
            goes_on = condition != 0.0;
            carried = results[1..=states].to_vec();
            for (stack, value) in stacks.iter_mut().zip(&results[1 + states..]) {
                stack.push(value.clone());
            }
            turn += 1;
        }
        let wanted = |i: usize| node.output(states + i).is_some();
        if turn == 0 && (0..stacks.len()).any(wanted) {
            return Ok(false);
        }
        for (i, stack) in stacks.iter().enumerate().filter(|(i, _)| wanted(*i)) {
            let value = self.stacked(stack, 0);
            self.rename(&node.outputs[states + i], &value);
        }
        for (output, value) in node.outputs.iter().zip(&carried).filter(|(output, _)| !output.is_empty()) {
            self.rename(output, value);
        }
        Ok(true)
    }

    fn scan(&mut self, node: &Node) -> Result<bool> {
        let Some(Attribute::Graph(body)) = node.attributes.get("body") else { return Ok(false) };
        let body = body.as_ref().clone();
        let Ok(scanned) = usize::try_from(node.int("num_scan_inputs", 0)) else { return Ok(false) };
        let Some(states) = node.inputs.len().checked_sub(scanned).filter(|_| scanned > 0) else {
            return Ok(false);
        };
        if body.inputs.len() != node.inputs.len() || body.outputs.len() < states {
            return Ok(false);
        }
        let at =
            |name: &str, i: usize| node.ints(name).and_then(|values| values.get(i).copied()).unwrap_or(0);
        let mut length = None;
        let mut parts = Vec::with_capacity(scanned);
        for i in 0..scanned {
            let x = node.inputs[states + i].clone();
            let Some(shape) = self.builder.shape(&x).map(<[Dim]>::to_vec) else { return Ok(false) };
            let Some(axis) = crate::shapes::normalise_axis(at("scan_input_axes", i), shape.len()) else {
                return Ok(false);
            };
            let steps = shape[axis].known().filter(|steps| (1..=MAX_STEPS).contains(steps));
            let Some(steps) = steps.filter(|steps| length.is_none_or(|length| length == *steps)) else {
                return Ok(false);
            };
            length = Some(steps);
            let mut split = self.taken_apart(&x, axis, steps);
            if at("scan_input_directions", i) != 0 {
                split.reverse();
            }
            parts.push(split);
        }
        let Some(steps) = length else { return Ok(false) };
        let mut carried: Vec<String> = node.inputs[..states].to_vec();
        let mut stacks: Vec<Vec<String>> = vec![Vec::new(); body.outputs.len() - states];
        for step in 0..steps as usize {
            if self.written > MAX_NODES {
                return Ok(false);
            }
            let mut given = carried;
            given.extend(parts.iter().map(|split| split[step].clone()));
            let results = self.written_out(&body, &given)?;
            carried = results[..states].to_vec();
            for (stack, value) in stacks.iter_mut().zip(&results[states..]) {
                stack.push(value.clone());
            }
        }
        for (i, stack) in stacks.iter_mut().enumerate().filter(|(i, _)| node.output(states + i).is_some()) {
            if at("scan_output_directions", i) != 0 {
                stack.reverse();
            }
            let value = self.stacked(stack, at("scan_output_axes", i));
            self.rename(&node.outputs[states + i], &value);
        }
        for (output, value) in node.outputs.iter().zip(&carried).filter(|(output, _)| !output.is_empty()) {
            self.rename(output, value);
        }
        Ok(true)
    }

    /// The places along an axis, each without that axis. The gradient of all of them is one `Concat`.
    fn taken_apart(&mut self, x: &str, axis: usize, steps: i64) -> Vec<String> {
        let b = &mut self.builder;
        if steps == 1 {
            return vec![b.squeeze(x, &[axis as i64]).to_string()];
        }
        let ones = b.ints(&vec![1; steps as usize]);
        let parts = b.op_many("Split", &[x, &ones], &[("axis", (axis as i64).into())], steps as usize);
        parts.iter().map(|part| b.squeeze(part, &[axis as i64]).to_string()).collect()
    }

    /// Values beside one another along a new axis.
    fn stacked(&mut self, values: &[String], axis: i64) -> Value {
        let b = &mut self.builder;
        let wide: Vec<Value> = values.iter().map(|value| b.unsqueeze(value, &[axis])).collect();
        if wide.len() == 1 {
            return wide[0].clone();
        }
        let names: Vec<&str> = wide.iter().map(|value| -> &str { value }).collect();
        b.concat(&names, axis)
    }
}
