//! A flow, or a diffusion model, as Python holds it.

use std::ops::ControlFlow;
use std::path::PathBuf;

use brenier::calibrate::{CalibrateConfig, calibrate, calibrated_file};
use brenier::calibration::Standard;
use brenier::engine::EngineConfig;
use brenier::flow::{FlowMetadata, NoisePredictor, Objective, OnnxFlow};
use brenier::{EngineError, Error, Solver, VelocityField, fingerprint, flow_ends};
use ndarray::ArrayView2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Rows, dataset, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::model::expect_own_process;
use crate::watch::{Watch, WatchedField};

/// Root mean square, in the flow's own units, above which inputs cannot be of the kind it was trained on: training
/// data have about 1.
const FAR: f64 = 20.0;

pub(crate) enum Network {
    Flow(OnnxFlow),
    Diffusion(NoisePredictor),
}

/// A network that carries a reference distribution to the data.
#[pyclass(frozen, module = "brenier._internal")]
pub(crate) struct Flow {
    pub(crate) network: Network,
    pub(crate) hash: String,
}

impl Flow {
    /// The flow, where it is one.
    pub(crate) fn field(&self) -> Option<&OnnxFlow> {
        match &self.network {
            Network::Flow(flow) => Some(flow),
            Network::Diffusion(_) => None,
        }
    }

    fn metadata(&self) -> &FlowMetadata {
        match &self.network {
            Network::Flow(flow) => flow.metadata(),
            Network::Diffusion(model) => model.metadata(),
        }
    }

    /// Refuses inputs of another shape, or in other units than the training data, such as 0 to 255 instead of 0 to 1.
    pub(crate) fn expect_like(&self, shape: &[usize], inputs: ArrayView2<f64>) -> brenier::Result<()> {
        let own = match &self.network {
            Network::Flow(flow) => flow.shape(),
            Network::Diffusion(model) => model.shape(),
        };
        if own.iter().product::<usize>() != shape.iter().product::<usize>() {
            return Err(Error::Flow {
                reason: format!("it is for inputs of shape {own:?}, but the model takes {shape:?}"),
                remedy: "use a flow that was trained on this model's data".into(),
            });
        }
        let Some(scaling) = &self.metadata().scaling else { return Ok(()) };
        let size = scaling.apply(inputs)?.mapv(|value| value * value).mean().unwrap_or(0.0).sqrt();
        if size > FAR {
            return Err(Error::Flow {
                reason: format!(
                    "the inputs are unlike its training data: in its units they are of size {size:.0}, where its \
                     training data are of size 1"
                ),
                remedy: "give the inputs in the units of the training data, or use a flow that was trained on such data".into(),
            });
        }
        Ok(())
    }
}

#[pymethods]
impl Flow {
    /// An ONNX file, or the bytes of one.
    #[staticmethod]
    #[pyo3(signature = (path, content, engine))]
    fn open(py: Python, path: Option<PathBuf>, content: Option<&[u8]>, engine: &str) -> Answer<Flow> {
        expect_own_process(py)?;
        let config: EngineConfig =
            serde_json::from_str(engine).map_err(|e| raise(py, "SettingError", &e.to_string()))?;
        let content = content.map(<[u8]>::to_vec);
        let load = || -> brenier::Result<Flow> {
            let (model, bytes) = match (&path, content) {
                (Some(path), _) => {
                    let failed = |e: std::io::Error| Error::Read { path: path.clone(), source: Box::new(e) };
                    (onnx_grad::Model::load(path)?, std::fs::read(path).map_err(failed)?)
                }
                (None, content) => {
                    let bytes = content.unwrap_or_default();
                    (onnx_grad::Model::from_bytes(bytes.clone())?, bytes)
                }
            };
            let network = match FlowMetadata::of(&model)?.objective {
                Some(Objective::Ddpm) => Network::Diffusion(NoisePredictor::new(model, &config)?),
                _ => Network::Flow(OnnxFlow::new(model, &config)?),
            };
            Ok(Flow { network, hash: fingerprint(&bytes) })
        };
        py.detach(load).or_raise(py)
    }

    /// The shape of one example.
    fn shape(&self) -> Vec<usize> {
        match &self.network {
            Network::Flow(flow) => flow.shape().to_vec(),
            Network::Diffusion(model) => model.shape().to_vec(),
        }
    }

    /// Whether it predicts noise, as a diffusion model does.
    fn is_diffusion(&self) -> bool {
        matches!(self.network, Network::Diffusion(_))
    }

    /// The reference distribution's name; a standard normal where the file says nothing.
    fn reference(&self) -> Option<String> {
        self.metadata().reference.clone()
    }

    /// The fingerprint of the file.
    fn hash(&self) -> String {
        self.hash.clone()
    }

    /// Where the flow takes flat rows between two times; rows of time 0 are in the network's own coordinates where
    /// `normal` says so.
    fn carry<'py>(
        &self,
        py: Python<'py>,
        rows: Rows<'py>,
        times: (f64, f64),
        tolerance: f64,
        normal: bool,
    ) -> Answer<Bound<'py, PyArray2<f64>>> {
        expect_own_process(py)?;
        let Some(flow) = self.field() else {
            let message = "a diffusion model predicts noise, not a velocity\nhint: use a flow";
            return Err(raise(py, "FlowError", message));
        };
        let rows = if normal { flow.to_user(owned(&rows).view()) } else { owned(&rows) };
        let watch = Watch::new();
        let found = py.detach(|| {
            let field = WatchedField { field: flow, watch: &watch };
            flow_ends(&field, rows.view(), times.0, times.1, &Solver::adaptive(tolerance))
        });
        Ok(watch.answer(py, found)?.into_pyarray(py))
    }

    /// What is ordinary for the flow, as JSON, where it was calibrated and is still the same: rows and quality.
    fn calibration(&self) -> Option<String> {
        match self.field()?.standard() {
            Standard::Calibrated(known) => {
                let about = serde_json::json!({
                    "rows": known.rows,
                    "quality": known.quality,
                    "objection": known.quality.objection(),
                });
                Some(about.to_string())
            }
            _ => None,
        }
    }

    /// The bytes of the flow's file with a calibration by these flat rows, at most so many of them.
    fn calibrated<'py>(
        &self,
        py: Python<'py>,
        held_out: Rows<'py>,
        rows: usize,
        seed: u64,
        progress: Option<Py<PyAny>>,
    ) -> Answer<Bound<'py, PyBytes>> {
        expect_own_process(py)?;
        let Some(flow) = self.field() else {
            return Err(raise(py, "FlowError", "a diffusion model cannot be calibrated\nhint: use a flow"));
        };
        let held_out = dataset("held-out rows", flow.shape(), owned(&held_out).view(), None).or_raise(py)?;
        let watch = Watch::new();
        let found = py.detach(|| {
            let config = CalibrateConfig { rows, seed, ..CalibrateConfig::default() };
            let mut tell = |done: usize, _| {
                let told = watch.look().and_then(|()| match &progress {
                    Some(progress) => Python::attach(|py| progress.call1(py, (done,)))
                        .map(drop)
                        .map_err(|error| watch.keep(error)),
                    None => Ok(()),
                });
                if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let found = calibrate(flow, &held_out, &held_out, &config, &mut tell)?;
            let stopped = || Error::Engine(EngineError::Worker { reason: "Python stopped it".to_string() });
            calibrated_file(flow, found.ok_or_else(stopped)?)
        });
        Ok(PyBytes::new(py, &watch.answer(py, found)?))
    }
}
