//! Running graphs: names to values, bodies inside the graph around them.

use std::collections::BTreeMap;

use ndarray::Axis;

use super::call::{Call, Limits, element_count};
use super::{Array, evaluate_node};
use crate::error::{Error, Result};
use crate::graph::{Attribute, Graph, Node};
use crate::tensor::DType;

/// The values known while a graph runs.
pub(super) struct Scope<'a> {
    given: &'a BTreeMap<String, Array>,
    computed: BTreeMap<&'a str, Array>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<&Array> {
        let here = self.computed.get(name).or_else(|| self.given.get(name));
        here.or_else(|| self.outer.and_then(|outer| outer.get(name)))
    }
}

/// Evaluates a graph; a body also sees the values around it.
pub(super) fn run(
    graph: &Graph,
    given: &BTreeMap<String, Array>,
    outer: Option<&Scope<'_>>,
) -> Result<Vec<Array>> {
    let mut scope = Scope { given, computed: BTreeMap::new(), outer };
    for (name, tensor) in &graph.initializers {
        if element_count(tensor.shape(), Limits::EVALUATION).is_none() {
            return Err(Error::Invalid {
                reason: format!(
                    "initializer '{name}' of shape {:?} is too large to evaluate; run the graph in an engine",
                    tensor.shape()
                ),
            });
        }
        scope.computed.insert(name, Array::from(tensor));
    }
    for node in &graph.nodes {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in &node.inputs {
            inputs.push(match name.as_str() {
                "" => None,
                name => Some(scope.get(name).ok_or_else(|| Error::Invalid {
                    reason: format!("node {} needs '{name}'; give it as an input", node.label()),
                })?),
            });
        }
        let outputs = match node.op.as_str() {
            "If" if node.is_standard() => branch(node, &inputs, &scope)?,
            "Loop" if node.is_standard() => turns(node, &inputs, &scope)?,
            "Scan" if node.is_standard() => scan(node, &inputs, &scope)?,
            _ => evaluate_node(node, &inputs)?,
        };
        if let Some(i) = (outputs.len()..node.outputs.len()).find(|&i| node.output(i).is_some()) {
            return Err(Error::NotEvaluable {
                node: node.label(),
                reason: format!("it has no output {i} here"),
            });
        }
        let named = node.outputs.iter().map(String::as_str).zip(outputs);
        scope.computed.extend(named.filter(|(name, _)| !name.is_empty()));
    }
    let output = |name: &str| {
        scope.get(name).cloned().ok_or_else(|| Error::Invalid {
            reason: format!("output '{name}' is not computed; give it as an input"),
        })
    };
    graph.outputs.iter().map(|info| output(&info.name)).collect()
}

/// `If`: one of two bodies.
fn branch(node: &Node, inputs: &[Option<&Array>], scope: &Scope<'_>) -> Result<Vec<Array>> {
    let call = Call::new(node, inputs, Limits::EVALUATION);
    let body = if call.scalar(0)? != 0.0 { "then_branch" } else { "else_branch" };
    match node.attributes.get(body) {
        Some(Attribute::Graph(graph)) => run(graph, &BTreeMap::new(), Some(scope)),
        _ => Err(call.malformed(format!("it has no {body}"))),
    }
}

/// The body of a node, with values for its inputs.
fn body_once(call: &Call, given: Vec<Array>, scope: &Scope<'_>) -> Result<Vec<Array>> {
    let Some(Attribute::Graph(body)) = call.node.attributes.get("body") else {
        return Err(call.malformed("it has no body"));
    };
    if body.inputs.len() != given.len() {
        let (takes, given) = (body.inputs.len(), given.len());
        return Err(call.malformed(format!("its body takes {takes} inputs, and {given} are given")));
    }
    let given = body.inputs.iter().map(|input| input.name.clone()).zip(given).collect();
    run(body, &given, Some(scope))
}

/// `Loop`: as often as is said, or while its body says so.
fn turns(node: &Node, inputs: &[Option<&Array>], scope: &Scope<'_>) -> Result<Vec<Array>> {
    let call = Call::new(node, inputs, Limits::EVALUATION);
    let most = if call.optional(0).is_some() { call.scalar(0)? } else { f64::INFINITY };
    let mut goes_on = call.optional(1).is_none() || call.scalar(1)? != 0.0;
    let mut carried: Vec<Array> = (2..inputs.len()).map(|i| call.input(i).cloned()).collect::<Result<_>>()?;
    let states = carried.len();
    let mut stacks: Vec<Vec<Array>> = Vec::new();
    let mut turn = 0u32;
    while goes_on && f64::from(turn) < most {
        call.work(&[turn as usize])?;
        let mut given = vec![Array::scalar(DType::I64, f64::from(turn)), Array::scalar(DType::Bool, 1.0)];
        given.append(&mut carried);
        let mut results = body_once(&call, given, scope)?;
        if results.len() <= states {
            return Err(call.malformed("its body has too few outputs"));
        }
        let scanned = results.split_off(states + 1);
        goes_on = results.remove(0).data.iter().all(|&v| v != 0.0);
        carried = results;
        stacks.resize(scanned.len(), Vec::new());
        stacks.iter_mut().zip(scanned).for_each(|(stack, value)| stack.push(value));
        turn += 1;
    }
    if turn == 0 && node.outputs.len() > states {
        return Err(call.unsupported("it collects outputs, and does not turn once"));
    }
    for stack in &stacks {
        carried.push(stacked(&call, stack, 0)?);
    }
    Ok(carried)
}

/// `Scan`: once for each place along an axis of its inputs.
fn scan(node: &Node, inputs: &[Option<&Array>], scope: &Scope<'_>) -> Result<Vec<Array>> {
    let call = Call::new(node, inputs, Limits::EVALUATION);
    let scanned = call.size(node.int("num_scan_inputs", 0))?;
    let all: Vec<&Array> = (0..inputs.len()).map(|i| call.input(i)).collect::<Result<_>>()?;
    let Some(states) = all.len().checked_sub(scanned).filter(|_| scanned > 0) else {
        return Err(call.malformed("it scans nothing"));
    };
    let at = |name: &str, i: usize| node.ints(name).and_then(|values| values.get(i).copied()).unwrap_or(0);
    let axes: Vec<usize> = (0..scanned)
        .map(|i| call.axis(at("scan_input_axes", i), all[states + i].shape().len()))
        .collect::<Result<_>>()?;
    let steps = all[states].shape()[axes[0]];
    let mut carried: Vec<Array> = all[..states].iter().map(|&state| state.clone()).collect();
    let mut stacks: Vec<Vec<Array>> = Vec::new();
    for step in 0..steps {
        let mut given = carried;
        for (i, axis) in axes.iter().enumerate() {
            let x = all[states + i];
            let place = if at("scan_input_directions", i) != 0 { steps - 1 - step } else { step };
            if x.shape()[*axis] != steps {
                return Err(call.malformed("its inputs have different lengths"));
            }
            given.push(Array { dtype: x.dtype, data: x.data.index_axis(Axis(*axis), place).to_owned() });
        }
        let mut results = body_once(&call, given, scope)?;
        if results.len() < states {
            return Err(call.malformed("its body has too few outputs"));
        }
        let collected = results.split_off(states);
        carried = results;
        stacks.resize(collected.len(), Vec::new());
        stacks.iter_mut().zip(collected).for_each(|(stack, value)| stack.push(value));
    }
    for (i, stack) in stacks.iter_mut().enumerate() {
        if at("scan_output_directions", i) != 0 {
            stack.reverse();
        }
        carried.push(stacked(&call, stack, at("scan_output_axes", i))?);
    }
    Ok(carried)
}

/// Values beside one another along a new axis.
fn stacked(call: &Call, values: &[Array], axis: i64) -> Result<Array> {
    let rank = values.first().map_or(0, |value| value.shape().len());
    let axis = call.axis(axis, rank + 1)?;
    let views: Vec<_> = values.iter().map(|value| value.data.view()).collect();
    let data = ndarray::stack(Axis(axis), &views).map_err(|error| call.malformed(error.to_string()))?;
    let dtype = values.first().map_or(DType::F32, |value| value.dtype);
    // In the order of the axes, whatever the order they were put together in.
    Ok(Array { dtype, data: data.as_standard_layout().into_owned() })
}

/// `Dropout` does nothing outside training; its mask keeps everything.
pub(super) fn dropout(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let training = call.optional(2).is_some_and(|flag| flag.data.iter().any(|&v| v != 0.0));
    let ratio = call.optional(1).and_then(|r| r.data.first().copied()).unwrap_or(0.5);
    if training && ratio != 0.0 {
        return Err(call.unsupported("dropout in training mode is random"));
    }
    let mask = Array { dtype: DType::Bool, data: x.data.mapv(|_| 1.0) };
    Ok(vec![x.clone(), mask])
}
