//! The stages of a model, loaded and run one after the other.
//!
//! Values have numbers (slots). Which stage is the last to use a value is known when the model is loaded: from then on
//! RTen may write into it, or its memory serves the next kernel.

use std::collections::BTreeMap;
use std::error::Error as _;

use ::rten::{ModelOptions, NodeId, RunOptions, Value, ValueOrView, ValueView};
use brenier_kernels::{Input, Kernel};
use onnx_grad::{Graph, Model, Node, TensorData};
use rten_tensor::Layout;

use super::buffers::Buffers;
use super::cut::{Stage, cut};
use crate::engine::Arithmetic;
use crate::engine::rten::quirks::merge_outputs;
use crate::error::Result;

/// Values have numbers while stages run.
type Slot = usize;

/// The stages of a model, loaded. Several threads may run them at once, each with its own [`Workbench`].
pub(crate) struct Staged {
    stages: Vec<Loaded>,
    /// What each stage is the last to use, apart from outputs.
    last_used: Vec<Vec<Slot>>,
    inputs: BTreeMap<String, Slot>,
    /// What kernels take from the model itself: shapes and numbers.
    constants: Vec<(Slot, Vec<usize>, Vec<f32>)>,
    outputs: Vec<Slot>,
    slots: usize,
}

enum Loaded {
    Part {
        model: Box<::rten::Model>,
        inputs: Vec<(NodeId, Slot)>,
        outputs: Vec<NodeId>,
        /// The value that each slot gets, among the outputs.
        given: Vec<(Slot, usize)>,
    },
    Kernel {
        name: String,
        /// For each [`Workbench`] to clone.
        kernel: Box<Kernel>,
        inputs: Vec<Source>,
        outputs: Vec<Slot>,
    },
}

/// Where an input of a kernel is.
enum Source {
    Slot(Slot),
    /// A constant of this shape, which the kernel keeps in a form of its own.
    Kept(Vec<usize>),
}

/// Why a run stopped: the node, as it is called in the model, and the reason.
pub(crate) struct Stopped {
    pub(crate) node: Option<String>,
    pub(crate) reason: String,
}

impl Staged {
    /// Loads a model whose outputs are all different. `load_error` says what is wrong with a node.
    pub(crate) fn load(
        model: &Model,
        arithmetic: Arithmetic,
        load_error: impl Fn(Option<&str>, String) -> crate::Error,
    ) -> Result<Staged> {
        let mut slots: BTreeMap<String, Slot> = BTreeMap::new();
        let mut slot = |name: &str| {
            let next = slots.len();
            *slots.entry(name.to_string()).or_insert(next)
        };
        let inputs = model.graph.inputs.iter().map(|v| (v.name.clone(), slot(&v.name))).collect();
        let mut stages = Vec::new();
        let mut constants = BTreeMap::new();
        for stage in cut(&model.graph)? {
            stages.push(match stage {
                Stage::Part(graph) => part(model, graph, &mut slot, &load_error)?,
                Stage::Kernel(node) => {
                    kernel(model, node, arithmetic, &mut slot, &mut constants, &load_error)?
                }
            });
        }
        let outputs: Vec<Slot> = model.graph.outputs.iter().map(|v| slot(&v.name)).collect();
        let numbers = |(slot, data): (Slot, TensorData)| (slot, data.shape().to_vec(), data.to_f32());
        let constants = constants.into_iter().map(numbers).collect();
        let mut last_used: Vec<Vec<Slot>> = vec![Vec::new(); stages.len()];
        let mut seen = outputs.clone();
        for (stage, last) in stages.iter().zip(&mut last_used).rev() {
            for slot in stage.inputs() {
                if !seen.contains(&slot) {
                    seen.push(slot);
                    last.push(slot);
                }
            }
        }
        Ok(Staged { stages, last_used, inputs, constants, outputs, slots: slots.len() })
    }
}

impl Loaded {
    fn inputs(&self) -> Vec<Slot> {
        match self {
            Loaded::Part { inputs, .. } => inputs.iter().map(|(_, slot)| *slot).collect(),
            Loaded::Kernel { inputs, .. } => inputs.iter().filter_map(Source::slot).collect(),
        }
    }
}

impl Source {
    fn slot(&self) -> Option<Slot> {
        match self {
            Source::Slot(slot) => Some(*slot),
            Source::Kept(_) => None,
        }
    }
}

/// A kernel that keeps of the model's constants what it can.
fn kernel(
    model: &Model,
    node: Node,
    arithmetic: Arithmetic,
    slot: &mut impl FnMut(&str) -> Slot,
    constants: &mut BTreeMap<Slot, TensorData>,
    load_error: &impl Fn(Option<&str>, String) -> crate::Error,
) -> Result<Loaded> {
    let missing = || load_error(Some(&node.name), "there is no kernel for it".to_string());
    let mut kernel = Kernel::of(&node).ok_or_else(missing)?;
    let mut inputs = Vec::new();
    for (i, name) in node.given_inputs().enumerate() {
        let constant = model.graph.initializers.get(name);
        let keeps = |data: &&TensorData| {
            let value = Input { shape: data.shape(), data: &data.to_f32() };
            kernel.fix(i, value, arithmetic.of_kernels())
        };
        inputs.push(match constant.filter(keeps) {
            Some(data) => Source::Kept(data.shape().to_vec()),
            None => {
                constants.extend(constant.map(|data| (slot(name), data.clone())));
                Source::Slot(slot(name))
            }
        });
    }
    let outputs = node.outputs.iter().map(|name| slot(name)).collect();
    Ok(Loaded::Kernel { name: node.name, kernel: Box::new(kernel), inputs, outputs })
}

fn part(
    model: &Model,
    mut graph: Graph,
    slot: &mut impl FnMut(&str) -> Slot,
    load_error: &impl Fn(Option<&str>, String) -> crate::Error,
) -> Result<Loaded> {
    let wanted: Vec<Slot> = graph.outputs.iter().map(|output| slot(&output.name)).collect();
    let places = merge_outputs(&mut graph);
    let (inputs, outputs) = (graph.inputs.clone(), graph.outputs.clone());
    let file = Model { graph, ..model.clone() }.to_bytes();
    let model = ModelOptions::with_all_ops()
        .enable_optimization(true)
        .prepack_weights(true)
        .load(file)
        .map_err(|e| load_error(e.node(), e.source().map_or_else(|| e.to_string(), |s| s.to_string())))?;
    let find = |name: &str| model.node_id(name).map_err(|e| load_error(None, e.to_string()));
    let inputs = inputs.iter().map(|v| Ok((find(&v.name)?, slot(&v.name)))).collect::<Result<_>>()?;
    let outputs = outputs.iter().map(|v| find(&v.name)).collect::<Result<_>>()?;
    let given = wanted.into_iter().zip(places).collect();
    Ok(Loaded::Part { model: Box::new(model), inputs, outputs, given })
}

/// What one thread needs to run stages: its kernels, and memory to use again.
pub(crate) struct Workbench {
    options: RunOptions,
    kernels: Vec<Option<Kernel>>,
    memory: Buffers,
}

impl Workbench {
    pub(crate) fn new(staged: &Staged, options: RunOptions) -> Workbench {
        let kernel = |stage: &Loaded| match stage {
            Loaded::Kernel { kernel, .. } => Some(kernel.as_ref().clone()),
            Loaded::Part { .. } => None,
        };
        Workbench { options, kernels: staged.stages.iter().map(kernel).collect(), memory: Buffers::default() }
    }

    /// Runs all stages and returns the model's outputs.
    pub(crate) fn run(
        &mut self,
        staged: &Staged,
        inputs: Vec<(&str, ValueOrView<'_>)>,
    ) -> std::result::Result<Vec<Value>, Stopped> {
        let mut values: Vec<Option<ValueOrView<'_>>> = Vec::with_capacity(staged.slots);
        values.resize_with(staged.slots, || None);
        for (name, value) in inputs {
            if let Some(&slot) = staged.inputs.get(name) {
                values[slot] = Some(value);
            }
        }
        for (slot, shape, numbers) in &staged.constants {
            values[*slot] = ValueView::from_shape(shape, numbers.as_slice()).ok().map(Into::into);
        }
        for ((stage, last), kernel) in staged.stages.iter().zip(&staged.last_used).zip(&mut self.kernels) {
            match stage {
                Loaded::Part { model, inputs, outputs, given } => {
                    let results = run_part(model, inputs, outputs, last, &mut values, &self.options)?;
                    hand_out(results, given, &mut values);
                }
                Loaded::Kernel { name, inputs, outputs, .. } => {
                    let stopped = |reason: &str| Stopped { node: Some(name.clone()), reason: reason.into() };
                    let kernel = kernel.as_mut().ok_or_else(|| stopped("it has no kernel"))?;
                    let results =
                        run_kernel(kernel, inputs, &values, &mut self.memory).map_err(|e| stopped(&e))?;
                    for (slot, result) in outputs.iter().zip(results) {
                        values[*slot] = Some(result.into());
                    }
                    for slot in last {
                        self.memory.keep(values[*slot].take());
                    }
                }
            }
        }
        let mut outputs = Vec::with_capacity(staged.outputs.len());
        for slot in &staged.outputs {
            let missing = || Stopped { node: None, reason: "an output was not computed".to_string() };
            outputs.push(values[*slot].take().ok_or_else(missing)?.into_owned());
        }
        Ok(outputs)
    }
}

/// Runs a part. What it is the last to use is handed over.
fn run_part(
    model: &::rten::Model,
    inputs: &[(NodeId, Slot)],
    outputs: &[NodeId],
    last: &[Slot],
    values: &mut [Option<ValueOrView<'_>>],
    options: &RunOptions,
) -> std::result::Result<Vec<Value>, Stopped> {
    let mut handed: Vec<(NodeId, ValueOrView<'_>)> = Vec::with_capacity(inputs.len());
    for (id, slot) in inputs.iter().filter(|(_, slot)| last.contains(slot)) {
        handed.extend(values[*slot].take().map(|value| (*id, value)));
    }
    for (id, slot) in inputs.iter().filter(|(_, slot)| !last.contains(slot)) {
        handed.extend(values[*slot].as_ref().map(|value| (*id, value.as_view().into())));
    }
    model.run(handed, outputs, Some(options.clone())).map_err(|e| {
        // What follows the node's name, as in: operator "..." failed: incompatible shapes.
        let message = e.to_string();
        let reason = message.split_once(" failed: ").map_or(message.as_str(), |(_, reason)| reason);
        // From the outermost node to the one inside a body; the first that has a number of ours is told.
        let path: Vec<String> = e.node_path().into_iter().flatten().map(|name| name.to_string()).collect();
        let node = (!path.is_empty()).then(|| path.join("/"));
        Stopped { node, reason: reason.to_string() }
    })
}

/// Gives each slot its value, a copy where another slot gets the same.
fn hand_out(results: Vec<Value>, given: &[(Slot, usize)], values: &mut [Option<ValueOrView<'_>>]) {
    let mut results: Vec<Option<Value>> = results.into_iter().map(Some).collect();
    for (i, (slot, place)) in given.iter().enumerate() {
        let last = !given[i + 1..].iter().any(|(_, other)| other == place);
        let value = if last { results[*place].take() } else { results[*place].clone() };
        values[*slot] = value.map(Into::into);
    }
}

fn run_kernel(
    kernel: &mut Kernel,
    inputs: &[Source],
    values: &[Option<ValueOrView<'_>>],
    memory: &mut Buffers,
) -> std::result::Result<Vec<Value>, String> {
    let mut tensors = Vec::with_capacity(inputs.len());
    for source in inputs {
        tensors.push(match source {
            Source::Kept(shape) => (shape.clone(), None),
            Source::Slot(slot) => match values[*slot].as_ref().map(ValueOrView::as_view) {
                Some(ValueView::FloatTensor(tensor)) => (tensor.shape().to_vec(), Some(tensor)),
                _ => return Err("an input is not a tensor of floats".to_string()),
            },
        });
    }
    let contiguous: Vec<_> =
        tensors.iter().map(|(_, tensor)| tensor.as_ref().map(|t| t.to_contiguous())).collect();
    let arrays: Vec<Input> = tensors
        .iter()
        .zip(&contiguous)
        .map(|((shape, _), tensor)| Input { shape, data: tensor.as_ref().map_or(&[], |t| t.data()) })
        .collect();
    let shapes: Vec<&[usize]> = arrays.iter().map(|array| array.shape).collect();
    let wanted = kernel.shapes(&shapes).map_err(|e| e.told(&shapes))?;
    let mut results: Vec<Vec<f32>> = wanted.iter().map(|shape| memory.take(shape.iter().product())).collect();
    let mut outputs: Vec<&mut [f32]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    kernel.run(&arrays, &mut outputs).map_err(|e| e.told(&shapes))?;
    let value =
        |(shape, data): (Vec<usize>, Vec<f32>)| Value::from_shape(&shape, data).map_err(|e| e.to_string());
    wanted.into_iter().zip(results).map(value).collect()
}
