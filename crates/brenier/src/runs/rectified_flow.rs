//! The objective of a rectified flow: the velocity from reference to data.

use onnx_grad::Model;

use super::objective::{GeneratorSpec, Goal, HeldOut, Measured, ObjectiveSpec};
use crate::engine::EngineConfig;
use crate::error::Result;
use crate::flow::{Objective, OnnxFlow, Rectified};
use crate::path::{Reference, Solver, TraceConfig, assess, flow_ends, trace};

pub(super) static SPEC: GeneratorSpec = GeneratorSpec {
    spec: ObjectiveSpec {
        name: "flow",
        help: "The velocity of a rectified flow",
        file: "flow.onnx",
        goal: Goal::Generator { objective: Objective::Flow, any_reference: true },
    },
    level: Some(1),
    network: Ok,
    task: |model, pairs, seed| Ok(Box::new(Rectified::new(model, pairs, seed)?)),
    measure,
};

/// Traces held-out rows backward, and follows references forward.
fn measure(model: &Model, held_out: &HeldOut, engine: &EngineConfig, seed: u64) -> Result<Measured> {
    let flow = OnnxFlow::new(model.clone(), engine)?;
    let config = TraceConfig { consistency_steps: 0, reference: Reference::Other, ..TraceConfig::default() };
    let paths = trace(&flow, held_out.traced, &config)?;
    let start = flow.to_user(held_out.references);
    let samples = flow_ends(&flow, start.view(), 0.0, 1.0, &Solver::adaptive(1e-3))?;
    let (made, real) = (flow.to_network(samples.view()), flow.to_network(held_out.data));
    Ok((assess(&paths, made.view(), real.view(), seed)?, samples))
}
