//! The diffusion baseline: a network that predicts noise (Ho et al., 2020).
//!
//! ```text
//! x_t = alpha(t) z1 + sigma(t) z0,   z0 ~ N(0, I)
//! min over theta  E | eps_theta(x_t, t) - z0 |^2 / d
//! ```
//!
//! Time runs from 0 (noise) to 1 (data) as everywhere here, the opposite of the diffusion literature. The schedule
//! is the continuous limit of DDPM's linear one (Song et al., 2021): with `s = 1 - t`,
//!
//! ```text
//! alpha^2 = exp(-(0.1 s + 9.95 s^2)),   sigma^2 = 1 - alpha^2
//! ```
//!
//! so that nothing depends on a number of steps chosen at training. The networks are those of flows, and the file
//! has the same form; `brenier.objective` tells them apart. The trajectories are in [`ddim`](crate::ddim).
//!
//! Near noise the data are `(x - sigma eps) / alpha` with an alpha of 0.007: an error of a hundredth in the noise is
//! one of more than 1 in the data. So a network `F` that is built here predicts what is left beside a known part,
//!
//! ```text
//! eps_theta(x, t) = sigma(t) x + alpha(t) F(x, t),    so    (x - sigma eps_theta) / alpha = alpha x - sigma F
//! ```
//!
//! and its errors are not enlarged anywhere. (`F` learns `alpha z0 - sigma z1`, Salimans and Ho's (2022) velocity.)

use std::path::Path;

use ndarray::{Array2, ArrayView2};
use onnx_grad::{Builder, DType, Graph, Model};

use super::metadata::{FlowMetadata, Objective};
use super::onnx::{Network, signature};
use super::pairs::Pairs;
use super::rectified::{END, LossGraph, START, fold};
use crate::engine::EngineConfig;
use crate::error::{Error, Remedy, Result, expect_shape};
use crate::net::{STATE, TIME, VELOCITY};
use crate::train::{Batch, Task, strata};

const SIGNAL: &str = "alpha";
const NOISE: &str = "sigma";
/// What a network inside a noise predictor says.
const INNER: &str = "network";

/// The part of data and of noise in a state at a time, `(alpha, sigma)`.
pub fn noise_schedule(t: f64) -> (f64, f64) {
    let s = 1.0 - t;
    let exponent = 0.1 * s + 9.95 * s * s;
    ((-0.5 * exponent).exp(), (-(-exponent).exp_m1()).sqrt())
}

/// The noise predictor around a network `F` from `x` and `t` to `v`.
///
/// # Errors
/// A network with other inputs and outputs.
pub fn predict_noise_with(network: Model) -> Result<Model> {
    let (shape, _) = signature(&network, None)?;
    let mut graph = network.graph.clone();
    graph.outputs.clear();
    for output in graph.nodes.iter_mut().flat_map(|node| &mut node.outputs).filter(|o| *o == VELOCITY) {
        *output = INNER.to_string();
    }
    let mut b = Builder::extend(graph, "noise/")?;
    let axes: Vec<i64> = (1..=shape.len() as i64).collect();
    let time = b.unsqueeze(TIME, &axes);
    let back = b.neg(&time);
    let s = b.shift(&back, 1.0);
    let (square, linear) = (b.mul(&s, &s), b.scale(&s, 0.1));
    let square = b.scale(&square, 9.95);
    let exponent = b.add(&linear, &square);
    let half = b.scale(&exponent, -0.5);
    let alpha = b.op("Exp", &[&half]);
    let kept = b.mul(&alpha, &alpha);
    let kept = b.neg(&kept);
    let rest = b.shift(&kept, 1.0);
    let sigma = b.op("Sqrt", &[&rest]);
    let (known, learned) = (b.mul(STATE, &sigma), b.mul(INNER, &alpha));
    let noise = b.add(&known, &learned);
    b.output(VELOCITY, &noise);
    Ok(Model { graph: b.finish()?, ..network })
}

/// Predicting the noise in states between noise and data.
pub struct Denoising<'a> {
    shape: Vec<usize>,
    pairs: &'a dyn Pairs,
    seed: u64,
}

impl<'a> Denoising<'a> {
    /// The task of training `model` on pairs of noise and data; times are drawn by the seed.
    pub fn new(model: &Model, pairs: &'a dyn Pairs, seed: u64) -> Result<Self> {
        let (shape, _) = signature(model, None)?;
        expect_shape("an example of the training pairs", &shape, pairs.shape())?;
        Ok(Self { shape, pairs, seed })
    }
}

impl Task for Denoising<'_> {
    fn loss(&self, model: &Model) -> Result<Graph> {
        let mut loss = LossGraph::begin("denoising loss", &model.graph, &self.shape)?;
        let batch = std::slice::from_ref(&loss.batch);
        let (alpha, sigma) =
            (loss.b.input(SIGNAL, DType::F32, batch), loss.b.input(NOISE, DType::F32, batch));
        let (alpha, sigma) = (loss.b.unsqueeze(&alpha, &loss.axes), loss.b.unsqueeze(&sigma, &loss.axes));
        let (data, noise) = (loss.b.mul(END, &alpha), loss.b.mul(START, &sigma));
        let state = loss.b.add(&data, &noise);
        loss.finish(&model.graph, &state, START)
    }

    fn batch(&self, step: u64, rows: usize) -> Result<Batch> {
        let (z0, z1) = self.pairs.draw(step, rows)?;
        let rest_loss = z0.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / z0.len().max(1) as f64;
        let times = strata(self.seed, step, rows);
        let parts: Vec<(f64, f64)> = times.iter().map(|&t| noise_schedule(t.into())).collect();
        let part = |pick: fn(&(f64, f64)) -> f64| -> ndarray::Array1<f32> {
            parts.iter().map(|p| pick(p) as f32).collect()
        };
        let inputs = vec![
            (START.to_string(), fold("the noise of a step", z0, rows, &self.shape)?),
            (END.to_string(), fold("the data of a step", z1, rows, &self.shape)?),
            (SIGNAL.to_string(), part(|p| p.0).into()),
            (NOISE.to_string(), part(|p| p.1).into()),
            (TIME.to_string(), times.into()),
        ];
        Ok(Batch { inputs, rest_loss })
    }
}

/// A trained noise predictor from an ONNX file, ready to be evaluated.
#[derive(Debug)]
pub struct NoisePredictor {
    network: Network,
}

impl NoisePredictor {
    /// Loads an ONNX file.
    pub fn load(path: impl AsRef<Path>, engine: &EngineConfig) -> Result<NoisePredictor> {
        let loaded = NoisePredictor::new(Model::load(path)?, engine)?;
        loaded.network.check(engine)?;
        Ok(loaded)
    }

    /// Takes a model that is in memory already.
    pub fn new(model: Model, engine: &EngineConfig) -> Result<NoisePredictor> {
        let network = Network::new(model, engine)?;
        if network.metadata().objective != Some(Objective::Ddpm) {
            return Err(Error::Flow {
                reason: "it does not say that it predicts noise (brenier.objective)".to_string(),
                remedy: Remedy::TrainDiffusionModel,
            });
        }
        Ok(NoisePredictor { network })
    }

    /// The shape of one example.
    pub fn shape(&self) -> &[usize] {
        self.network.shape()
    }

    /// What the file says of itself.
    pub fn metadata(&self) -> &FlowMetadata {
        self.network.metadata()
    }

    /// States of the user's space in the network's.
    pub fn to_network(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.network.to_network(x)
    }

    /// States of the network's space in the user's.
    pub fn to_user(&self, u: ArrayView2<f64>) -> Array2<f64> {
        self.network.to_user(u)
    }

    /// The noise in states `u` of the network's space, `[rows, features]`, at one time per row.
    pub fn noise(&self, u: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        self.network.evaluate(u, times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_goes_from_noise_to_data_and_keeps_the_variance() {
        let (alpha, sigma) = noise_schedule(0.0);
        assert!(alpha < 7e-3 && sigma > 0.9999);
        assert_eq!(noise_schedule(1.0), (1.0, 0.0));
        for t in [0.1, 0.5, 0.9, 0.999] {
            let (alpha, sigma) = noise_schedule(t);
            assert!((alpha * alpha + sigma * sigma - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_known_part_of_the_noise_needs_no_training() {
        // A U-Net that was not trained says nothing, so what is left is sigma x.
        let unet = crate::flow::UnetConfig { width: 8, multipliers: vec![1], ..Default::default() };
        let mut model = predict_noise_with(unet.build(&[1, 8, 8], 0).unwrap()).unwrap();
        FlowMetadata { objective: Some(Objective::Ddpm), ..FlowMetadata::default() }
            .write(&mut model)
            .unwrap();
        let predictor = NoisePredictor::new(model, &EngineConfig::default()).unwrap();
        let u = Array2::from_shape_fn((4, 64), |(i, j)| (i as f64 - 1.5) * (j as f64).cos());
        let times = [0.0, 0.4, 0.99, 1.0];
        let found = predictor.noise(u.view(), &times).unwrap();
        for (row, &t) in times.iter().enumerate() {
            let expected = &u.row(row) * noise_schedule(t).1;
            let gap = (&found.row(row) - &expected).iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            assert!(gap < 1e-5, "{t}: {gap}");
        }
    }
}
