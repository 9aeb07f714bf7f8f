//! The objective of a diffusion model: the noise in a noisy example.

use onnx_grad::Model;

use super::objective::{GeneratorSpec, Goal, HeldOut, Measured, ObjectiveSpec};
use crate::engine::EngineConfig;
use crate::error::Result;
use crate::flow::{Denoising, NoisePredictor, Objective, predict_noise_with};
use crate::path::{assess, ddim, ddim_ends};

/// DDIM steps when a diffusion model is measured.
const DDIM_STEPS: usize = 50;

pub(super) static SPEC: GeneratorSpec = GeneratorSpec {
    spec: ObjectiveSpec {
        name: "ddpm",
        help: "The noise of a diffusion model",
        file: "ddpm.onnx",
        goal: Goal::Generator { objective: Objective::Ddpm, any_reference: false },
    },
    level: None,
    network: predict_noise_with,
    task: |model, pairs, seed| Ok(Box::new(Denoising::new(model, pairs, seed)?)),
    measure,
};

/// Inverts held-out rows, and follows noise forward.
fn measure(model: &Model, held_out: &HeldOut, engine: &EngineConfig, seed: u64) -> Result<Measured> {
    let diffusion = NoisePredictor::new(model.clone(), engine)?;
    let paths = ddim(&diffusion, held_out.traced, DDIM_STEPS)?;
    let start = diffusion.to_user(held_out.references);
    let samples = ddim_ends(&diffusion, start.view(), 0.0, 1.0, DDIM_STEPS)?;
    let (made, real) = (diffusion.to_network(samples.view()), diffusion.to_network(held_out.data));
    Ok((assess(&paths, made.view(), real.view(), seed)?, samples))
}
