//! DDIM: the deterministic trajectory of a diffusion model (Song et al., 2020), in both directions.
//!
//! ```text
//! x_b = alpha_b (x_a - sigma_a e) / alpha_a + sigma_b e,      e = eps(x_a, t_a)
//! ```
//!
//! One step takes a state from time `a` to time `b`, forward or backward. Inversion from an input to noise gives
//! states on a uniform grid of times; the path is the polyline through them. Run forward from the noise that was
//! found, the same steps end elsewhere, because `e` is then taken at the other end of each step: that gap is the
//! round-trip error of the certificate.

use ndarray::{Array1, Array2, ArrayView2};

use super::{Path, PathEvidence, Polyline, grid_time, reference_deviation};
use crate::error::{Error, Result, expect_finite, expect_shape};
use crate::flow::{NoisePredictor, noise_schedule};

/// Nearer to the data than this there is no noise to predict: the network is asked there instead.
const LAST: f64 = 1.0 - 1e-3;

/// A DDIM trajectory with its evidence.
#[derive(Debug, Clone)]
pub struct DdimPath {
    states: Polyline,
    evidence: PathEvidence,
}

impl Path for DdimPath {
    fn at(&self, t: f64) -> Array1<f64> {
        self.states.at(t)
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        self.states.derivative(t)
    }

    fn corners(&self) -> Vec<f64> {
        self.states.corners()
    }

    fn evidence(&self) -> PathEvidence {
        self.evidence.clone()
    }
}

/// The DDIM inversion of each row of `inputs` (`[examples, features]`), in so many steps.
///
/// Costs `2 steps` evaluations of the network per example: back, and forward again for the round trip.
pub fn ddim(model: &NoisePredictor, inputs: ArrayView2<f64>, steps: usize) -> Result<Vec<DdimPath>> {
    let backward = states(model, inputs, 1.0, 0.0, steps)?;
    let Some(noise) = backward.last() else { return Ok(Vec::new()) };
    let forward = ddim_ends(model, noise.view(), 0.0, 1.0, steps)?;
    let references = model.to_network(noise.view());
    let times: Vec<f64> = (0..=steps).map(|k| grid_time(0.0, 1.0, k, steps)).collect();
    (0..inputs.nrows())
        .map(|i| {
            let rows: Vec<Array1<f64>> = backward.iter().rev().map(|s| s.row(i).to_owned()).collect();
            let norm = |v: Array1<f64>| v.dot(&v).sqrt();
            let gap = norm(&forward.row(i) - &inputs.row(i));
            let length = norm(&inputs.row(i) - &noise.row(i));
            let evidence = PathEvidence {
                kind: "ddim".to_string(),
                solver: Some(format!("DDIM, {steps} steps")),
                velocity_evaluations: Some(steps),
                check_evaluations: Some(steps),
                round_trip_error: Some(gap),
                relative_round_trip_error: (length > 0.0).then(|| gap / length),
                reference_deviation: Some(reference_deviation(references.row(i))),
                ..PathEvidence::default()
            };
            let states = Polyline::with_times(super::stack_rows(&rows), times.clone())?;
            Ok(DdimPath { states, evidence })
        })
        .collect()
}

/// Where DDIM takes each row between two times, in so many steps. From 0 to 1 it generates.
pub fn ddim_ends(
    model: &NoisePredictor,
    start: ArrayView2<f64>,
    from: f64,
    to: f64,
    steps: usize,
) -> Result<Array2<f64>> {
    let mut all = states(model, start, from, to, steps)?;
    Ok(all.pop().unwrap_or_else(|| start.to_owned()))
}

/// The states at every time of the grid, in the user's space.
fn states(
    model: &NoisePredictor,
    start: ArrayView2<f64>,
    from: f64,
    to: f64,
    steps: usize,
) -> Result<Vec<Array2<f64>>> {
    if steps == 0 {
        return Err(Error::Zero { what: "the number of DDIM steps" });
    }
    expect_shape("the states", &[start.nrows(), model.shape().iter().product()], start.shape())?;
    let mut u = model.to_network(start);
    let mut all = vec![start.to_owned()];
    for k in 0..steps {
        let (a, b) = (grid_time(from, to, k, steps), grid_time(from, to, k + 1, steps));
        let noise = model.noise(u.view(), &vec![a.min(LAST); u.nrows()])?;
        let ((alpha_a, sigma_a), (alpha_b, sigma_b)) = (noise_schedule(a), noise_schedule(b));
        u = (&u - &(sigma_a * &noise)) * (alpha_b / alpha_a) + sigma_b * &noise;
        for (example, row) in u.rows().into_iter().enumerate() {
            expect_finite("DDIM state", example, b, row)?;
        }
        all.push(model.to_user(u.view()));
    }
    Ok(all)
}
