//! Calibrating a flow: how it treats rows that it was not trained on.
//!
//! Each row is followed back to its reference and its [statistics](crate::calibration) are kept. Some of the rows also say
//! whether the flow is any good: their likelihood under it is held against that under a Gaussian (`likelihood.rs`),
//! and the energy of their references against 1.

mod likelihood;

use std::ops::{ControlFlow, Range};
use std::path::Path;

use ndarray::{Array1, ArrayView2};
use onnx_grad::Model;

use self::likelihood::log_likelihoods;
use crate::calibration::{Calibration, FlowQuality};
use crate::data::Dataset;
use crate::error::{Result, expect_shape};
use crate::field::VelocityField;
use crate::flow::{
    CoupledPairs, Coupling, FlowMetadata, OnnxFlow, ScaledRows, Source, TrainConfig, flow_identity, flow_loss,
};
use crate::path::{Solver, Trajectory, solve, statistics_of};
use crate::transport::{Gaussian, GaussianConfig, Rank, Shrinkage};
use crate::whole_file::write_whole;

/// How a flow is calibrated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrateConfig {
    /// Rows that are traced at the most.
    pub rows: usize,
    /// Of these, rows whose likelihood is taken.
    pub likelihoods: usize,
    /// How they are traced.
    pub solver: Solver,
    /// Everything that is drawn follows from it.
    pub seed: u64,
}

impl Default for CalibrateConfig {
    /// 1,000 rows, the likelihood of 64.
    fn default() -> Self {
        Self { rows: 1000, likelihoods: 64, solver: Solver::default(), seed: 0 }
    }
}

/// Rows that are traced at a time.
const AT_ONCE: usize = 32;
/// Rows that the Gaussian is fitted to at the most.
const FITTED: usize = 8192;
/// Features up to which its covariance is kept whole.
const WHOLE: usize = 4096;
/// Features up to which shrinkage is chosen by held-out rows.
const CHOSEN: usize = 1024;
/// Numbers over which the loss is averaged, and rows at a time.
const LOSSES: usize = 65_536;
const BATCH: usize = 64;
/// Groups of principal directions.
const GROUPS: usize = 5;

/// Calibrates a flow by rows that it was not trained on. `fitted` are rows to fit the Gaussian to, such as those that it was
/// trained on. `watch` is told of the rows that are done and may stop it; then there is nothing.
///
/// # Errors
/// Rows of another shape, fewer than [`FEWEST_ROWS`](crate::calibration::FEWEST_ROWS), and a flow whose velocity is not finite.
pub fn calibrate(
    flow: &OnnxFlow,
    held_out: &Dataset,
    fitted: &Dataset,
    config: &CalibrateConfig,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Calibration>> {
    expect_shape("a row to calibrate by", flow.shape(), held_out.shape())?;
    let order = held_out.shuffled_order(config.seed);
    let chosen = &order[..config.rows.min(order.len())];
    let (mut statistics, mut kept) = (Vec::with_capacity(chosen.len()), Vec::new());
    for part in chosen.chunks(AT_ONCE) {
        let ways = solve(flow, held_out.rows_f64(part)?.view(), 1.0, 0.0, &config.solver)?;
        for way in ways {
            statistics.push(statistics_of(flow, &way).0);
            if kept.len() < config.likelihoods {
                kept.push(way);
            }
        }
        if watch(statistics.len(), chosen.len()) == ControlFlow::Break(()) {
            return Ok(None);
        }
    }
    let quality = quality(flow, &kept, (held_out, fitted), config)?;
    let identity = flow_identity(flow.model());
    Calibration::new(&statistics, quality, (identity, held_out.fingerprint())).map(Some)
}

/// A flow's network with the calibration in its metadata.
///
/// # Errors
/// Metadata that cannot be read or written.
pub fn with_calibration(mut model: Model, calibration: Calibration) -> Result<Model> {
    FlowMetadata { calibration: Some(calibration), ..FlowMetadata::of(&model)? }.write(&mut model)?;
    Ok(model)
}

/// The bytes of its file; weights that were stored in 16 bits are again.
///
/// # Errors
/// Metadata that cannot be written.
pub fn calibrated_file(flow: &OnnxFlow, calibration: Calibration) -> Result<Vec<u8>> {
    let mut model = with_calibration(flow.model().clone(), calibration)?;
    if model.fits_half_weights() {
        model.halve_weights();
    }
    Ok(model.to_bytes())
}

/// Writes the flow's network with the calibration to a file, which is whole or not there.
///
/// # Errors
/// A file that cannot be written.
pub fn save_calibrated(flow: &OnnxFlow, calibration: Calibration, path: &Path) -> Result<()> {
    write_whole(path, &calibrated_file(flow, calibration)?)
}

/// How far features of the reference spread, where they do so alike; nothing where it is made of data.
fn spread_of_reference(metadata: &FlowMetadata) -> Option<f64> {
    match metadata.reference.as_deref() {
        None | Some("standard-normal") => Some(1.0),
        // Uniform between -1 and 1.
        Some("uniform") => Some(1.0 / 3.0),
        Some(_) => None,
    }
}

fn quality(
    flow: &OnnxFlow,
    ways: &[Trajectory],
    (held_out, fitted): (&Dataset, &Dataset),
    config: &CalibrateConfig,
) -> Result<FlowQuality> {
    let Some(variance) = spread_of_reference(flow.metadata()) else { return Ok(FlowQuality::default()) };
    let ends = |t: f64| {
        let states: Vec<_> = ways.iter().map(|way| way.at(t)).collect();
        flow.own_units(crate::path::stack_rows(&states).view())
    };
    let (references, inputs) = (ends(0.0), ends(1.0));
    let gaussians = Gaussians::fit(flow, fitted)?;
    let by_flow = log_likelihoods(flow, ways, variance, config.seed)?;
    let by_gaussian = gaussians.whole.log_densities(inputs.view())?;
    let mut gains: Vec<f64> =
        (&by_flow - &by_gaussian).iter().map(|gain| gain / flow.features() as f64).collect();
    gains.sort_by(f64::total_cmp);
    let (deviations, directions) =
        gaussians.leading.as_ref().unwrap_or(&gaussians.whole).principal_directions();
    Ok(FlowQuality {
        gain: gains.get(gains.len() / 2).copied(),
        energies: energies(directions.view(), references.view(), variance),
        loss_ratio: loss_ratio(flow, &deviations, held_out, config)?,
        rows: ways.len(),
    })
}

/// The loss on held-out rows with independent noise, over that of the best linear flow along all these deviations, for a
/// first level that was trained on such pairs.
fn loss_ratio(
    flow: &OnnxFlow,
    deviations: &Array1<f64>,
    held_out: &Dataset,
    config: &CalibrateConfig,
) -> Result<Option<f64>> {
    let metadata = flow.metadata();
    let first = metadata.level == Some(1) && metadata.coupling.as_deref() == Some("independent");
    let noise = metadata.reference.as_deref() == Some("standard-normal");
    let (Some(scaling), true) = (&metadata.scaling, first && noise && deviations.len() == flow.features())
    else {
        return Ok(None);
    };
    let rows = ScaledRows::new(held_out.clone(), scaling.clone())?;
    let pairs = CoupledPairs::new(&rows, Source::StandardNormal, Coupling::Independent, config.seed)?;
    let batch = held_out.len().min(BATCH);
    let steps = (LOSSES / flow.features()).clamp(64, 4096).div_ceil(batch) as u64;
    let training = TrainConfig { batch, seed: config.seed, ..TrainConfig::default() };
    let loss = flow_loss(flow.model(), &pairs, steps, &training)?;
    let linear = std::f64::consts::FRAC_PI_2 * deviations.mean().unwrap_or(f64::NAN);
    Ok(Some(loss / linear))
}

/// The data as a Gaussian, whole where that can be kept, and by its leading directions where it has too many.
struct Gaussians {
    whole: Gaussian,
    leading: Option<Gaussian>,
}

impl Gaussians {
    fn fit(flow: &OnnxFlow, data: &Dataset) -> Result<Gaussians> {
        let features = flow.features();
        let order = data.shuffled_order(0);
        let rows = &order[..data.len().min(FITTED)];
        let fit = |rank| {
            let shrinkage = if features <= CHOSEN { Shrinkage::HeldOut } else { Shrinkage::LedoitWolf };
            Gaussian::fit_parts(
                rows.len(),
                features,
                &GaussianConfig { shrinkage, rank },
                |part: Range<usize>| Ok(flow.own_units(data.rows_f64(&rows[part])?.view())),
            )
        };
        let whole = fit(if features <= WHOLE { Rank::Full } else { Rank::Auto })?;
        let leading = (features > CHOSEN && features <= WHOLE).then(|| fit(Rank::Auto)).transpose()?;
        Ok(Gaussians { whole, leading })
    }
}

/// The mean energy of references in groups of the directions in which the data vary most: half of all, or as many as are
/// known.
fn energies(directions: ArrayView2<f64>, references: ArrayView2<f64>, variance: f64) -> Vec<f64> {
    let most = directions.nrows().div_ceil(2).min(directions.ncols());
    let directions = directions.slice(ndarray::s![.., ..most]);
    let along = references.dot(&directions);
    let groups = GROUPS.min(directions.ncols());
    let edge = |group: usize| group * directions.ncols() / groups;
    (0..groups)
        .map(|group| {
            let part = along.slice(ndarray::s![.., edge(group)..edge(group + 1)]);
            part.mapv(|v| v * v).mean().unwrap_or(f64::NAN) / variance
        })
        .collect()
}
