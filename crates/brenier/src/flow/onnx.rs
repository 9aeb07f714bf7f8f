//! Any ONNX graph with inputs `x`, `t` and output `v` as a velocity field.
//!
//! ```text
//! network:  du/dt = v(u, t)            user:  x = shift + scale u
//! so        dx/dt = scale v((x - shift) / scale, t)
//! ```
//!
//! A flow that was trained on scaled data carries the scaling in its metadata, and then works on the user's own
//! numbers: states come in and velocities go out in user space, and the network sees `u`. The map does not
//! depend on the time, so trajectories in the two spaces are images of each other. The reference distribution
//! lives in the network's space: [`OnnxFlow::to_network`] takes an endpoint there.
//!
//! States are kept in f64 up to the network, which computes in the type of its own file.

use std::path::Path;

use ndarray::{Array1, Array2, ArrayView2, Axis};
use onnx_grad::{DType, Dim, Model};

use super::identity::flow_identity;
use super::metadata::{FlowMetadata, Objective};
use crate::calibration::Standard;
use crate::engine::{EngineConfig, Tensor, TensorView, Workers, check};
use crate::error::{Error, Remedy, Result, expect_shape};
use crate::field::VelocityField;
use crate::net::{CLASSES, STATE, TIME, VELOCITY};

/// A network from `x` and `t` to `v`, loaded, with the scaling between the user's space and its own.
#[derive(Debug)]
pub(super) struct Network {
    model: Model,
    metadata: FlowMetadata,
    shape: Vec<usize>,
    dtype: DType,
    shift: Array1<f64>,
    scale: Array1<f64>,
    workers: Workers,
}

impl Network {
    pub(super) fn new(model: Model, engine: &EngineConfig) -> Result<Network> {
        let metadata = FlowMetadata::of(&model)?;
        let (shape, dtype) = signature(&model, metadata.shape.as_deref())?;
        if model.graph.input(CLASSES).is_some() {
            return Err(Error::Flow {
                reason: format!(
                    "it leads between the classes {}, and none of them are chosen",
                    metadata.between.unwrap_or_default().join(", ")
                ),
                remedy: Remedy::SayClass,
            });
        }
        let features: usize = shape.iter().product();
        let (shift, scale) = match &metadata.scaling {
            Some(scaling) => {
                expect_shape("a row of the flow's scaling", &shape, scaling.shape())?;
                (0..features).map(|feature| scaling.of(feature)).unzip()
            }
            None => (vec![0.0; features], vec![1.0; features]),
        };
        let workers = Workers::planned(engine.build()?.as_ref(), &model)?;
        Ok(Network { model, metadata, shape, dtype, shift: shift.into(), scale: scale.into(), workers })
    }

    /// Holds the engine against the reference evaluator, once for each network.
    pub(super) fn check(&self, config: &EngineConfig) -> Result<()> {
        if !config.unchecked {
            let run = |inputs: &[(&str, TensorView)]| self.workers.map(inputs);
            let model = || Ok(self.model.clone());
            check::verdict(config.build()?.as_ref(), (&self.model, "flow"), model, &run)?;
        }
        Ok(())
    }

    pub(super) fn metadata(&self) -> &FlowMetadata {
        &self.metadata
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn to_network(&self, x: ArrayView2<f64>) -> Array2<f64> {
        (&x - &self.shift) / &self.scale
    }

    pub(super) fn to_user(&self, u: ArrayView2<f64>) -> Array2<f64> {
        &u * &self.scale + &self.shift
    }

    /// What the network says of states `u` of its own space, `[rows, features]`, at one time per row.
    pub(super) fn evaluate(&self, u: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        expect_shape("the batch of states", &[times.len(), self.shift.len()], u.shape())?;
        let sizes: Vec<usize> = std::iter::once(u.nrows()).chain(self.shape.iter().copied()).collect();
        let found = u.shape().to_vec();
        let folded = u.to_owned().into_shape_with_order(sizes.clone()).map_err(|_| Error::Shape {
            what: "the batch of states".to_string(),
            expected: sizes,
            found,
        })?;
        let times = Array1::from(times.to_vec());
        let (x, t): (Tensor, Tensor) = match self.dtype {
            DType::F64 => (folded.into(), times.into()),
            _ => (folded.mapv(|v| v as f32).into(), times.mapv(|v| v as f32).into()),
        };
        let outputs = self.workers.map(&[(STATE, x.view()), (TIME, t.view())])?;
        let output = match outputs.into_iter().next() {
            Some(Tensor::F64(v)) => v,
            Some(other) => other.into_f32()?.mapv(f64::from),
            None => return Err(refuse("it has no output".to_string())),
        };
        let found = output.shape().to_vec();
        output.into_shape_with_order(u.raw_dim()).map_err(|_| Error::Shape {
            what: "the flow's velocity".to_string(),
            expected: u.shape().to_vec(),
            found,
        })
    }
}

/// A flow from an ONNX file, ready to be evaluated.
#[derive(Debug)]
pub struct OnnxFlow {
    network: Network,
    /// Why there is no calibration to go by.
    not_calibrated: Option<&'static str>,
}

impl OnnxFlow {
    /// Loads an ONNX file.
    pub fn load(path: impl AsRef<Path>, engine: &EngineConfig) -> Result<OnnxFlow> {
        let loaded = OnnxFlow::new(Model::load(path)?, engine)?;
        loaded.network.check(engine)?;
        Ok(loaded)
    }

    /// Takes a model that is in memory already.
    pub fn new(model: Model, engine: &EngineConfig) -> Result<OnnxFlow> {
        let network = Network::new(model, engine)?;
        if network.metadata.objective == Some(Objective::Ddpm) {
            return Err(Error::Flow {
                reason: "it predicts noise, not a velocity (brenier.objective is ddpm)".to_string(),
                remedy: Remedy::FollowByDdim,
            });
        }
        let not_calibrated = match &network.metadata.calibration {
            None => Some("the flow was never calibrated"),
            Some(known) if known.identity != flow_identity(&network.model) => Some(
                "the flow's calibration is that of another flow: graph, weights or scaling were changed since",
            ),
            Some(_) => None,
        };
        Ok(OnnxFlow { network, not_calibrated })
    }

    /// The model, with its weights and metadata.
    pub fn model(&self) -> &Model {
        &self.network.model
    }

    /// What the file says of itself.
    pub fn metadata(&self) -> &FlowMetadata {
        &self.network.metadata
    }

    /// States of the user's space in the network's, `(x - shift) / scale`.
    pub fn to_network(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.network.to_network(x)
    }

    /// States of the network's space in the user's, `shift + scale u`.
    pub fn to_user(&self, u: ArrayView2<f64>) -> Array2<f64> {
        self.network.to_user(u)
    }
}

impl VelocityField for OnnxFlow {
    fn shape(&self) -> &[usize] {
        &self.network.shape
    }

    fn normal_coordinates(&self, x: ArrayView2<f64>) -> Option<Array2<f64>> {
        // A file that says nothing is taken to start from where flows usually start.
        let normal = self.network.metadata.reference.as_deref().is_none_or(|r| r == "standard-normal");
        normal.then(|| self.to_network(x))
    }

    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.to_network(x)
    }

    fn standard(&self) -> Standard<'_> {
        match (self.not_calibrated, &self.network.metadata.calibration) {
            (None, Some(calibration)) => Standard::Calibrated(calibration),
            (reason, _) => Standard::Missing(reason.unwrap_or_default()),
        }
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        expect_shape("the batch of states", &[times.len(), self.features()], x.shape())?;
        let mut velocity = self.network.evaluate(self.to_network(x).view(), times)?;
        for mut row in velocity.axis_iter_mut(Axis(0)) {
            row *= &self.network.scale;
        }
        Ok(velocity)
    }
}

fn refuse(reason: String) -> Error {
    Error::Flow {
        reason,
        remedy: "a flow has inputs x [N, ...] and t [N] and one output v [N, ...], all float32".into(),
    }
}

/// The shape of one example and the element type, checked.
pub(super) fn signature(model: &Model, stored: Option<&[usize]>) -> Result<(Vec<usize>, DType)> {
    let graph = &model.graph;
    let names: Vec<&str> = graph.inputs.iter().map(|i| i.name.as_str()).collect();
    // A network between classes is told of them as well.
    let own = 2 + usize::from(graph.input(CLASSES).is_some());
    let (Some(x), Some(t), true) = (graph.input(STATE), graph.input(TIME), names.len() == own) else {
        return Err(refuse(format!("its inputs are {}", names.join(", "))));
    };
    let outputs: Vec<&str> = graph.outputs.iter().map(|o| o.name.as_str()).collect();
    if outputs != [VELOCITY] {
        return Err(refuse(format!("its outputs are {}", outputs.join(", "))));
    }
    if x.dtype != t.dtype || !matches!(x.dtype, DType::F32 | DType::F64) {
        return Err(refuse(format!("x is {} and t is {}", x.dtype, t.dtype)));
    }
    let declared = x.shape.as_ref().filter(|s| s.len() >= 2).map(|s| &s[1..]);
    let known: Option<Vec<usize>> = declared
        .and_then(|dims| dims.iter().map(|d| d.known().and_then(|n| usize::try_from(n).ok())).collect());
    let fits = |shape: &[usize]| {
        declared.is_none_or(|dims| {
            dims.len() == shape.len()
                && dims.iter().zip(shape).all(|(d, &n)| d.known().is_none_or(|_| *d == Dim::from(n)))
        })
    };
    match (stored, known) {
        (Some(stored), _) if fits(stored) => Ok((stored.to_vec(), x.dtype)),
        (Some(stored), known) => Err(refuse(format!(
            "its metadata says {stored:?}, but the shape of x is {known:?} after the batch"
        ))),
        (None, Some(known)) => Ok((known, x.dtype)),
        (None, None) => Err(refuse("the sizes of x are open, and no brenier.shape tells them".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scaling;
    use ndarray::array;
    use onnx_grad::Builder;

    /// `v = t x`, over pairs.
    fn model(batch: Dim) -> Model {
        let mut b = Builder::new("flow");
        let x = b.input("x", DType::F32, &[batch.clone(), Dim::Known(2)]);
        let t = b.input("t", DType::F32, &[batch]);
        let t = b.unsqueeze(&t, &[1]);
        let v = b.mul(&x, &t);
        b.output("v", &v);
        Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() }
    }

    #[test]
    fn velocity_in_user_space_is_the_scaled_velocity_of_the_scaled_state() {
        let mut model = model(Dim::symbol("N"));
        let plain = OnnxFlow::new(model.clone(), &EngineConfig::default()).unwrap();
        let x = array![[3.0, -1.0], [1.0, 0.5]];
        assert_eq!(plain.velocity(x.view(), &[0.5, 1.0]).unwrap(), array![[1.5, -0.5], [1.0, 0.5]]);
        let scaling = Scaling::new(&[2], vec![1.0, 0.0], vec![2.0, 4.0]).unwrap();
        FlowMetadata { scaling: Some(scaling), ..FlowMetadata::default() }.write(&mut model).unwrap();
        let scaled = OnnxFlow::new(model, &EngineConfig::default()).unwrap();
        // u = ((3 - 1) / 2, -1 / 4) = (1, -0.25); v = (0.5, -0.125); times (2, 4).
        assert_eq!(scaled.velocity(x.view(), &[0.5, 0.5]).unwrap().row(0), array![1.0, -0.5]);
        assert_eq!(scaled.to_user(scaled.to_network(x.view()).view()), x);
        assert_eq!(scaled.normal_coordinates(x.view()).unwrap().row(0), array![1.0, -0.25]);
        assert_eq!(scaled.velocity(Array2::zeros((0, 2)).view(), &[]).unwrap().shape(), [0, 2]);
    }

    #[test]
    fn refuses_what_is_no_flow() {
        let mut other = model(Dim::symbol("N"));
        other.graph.inputs[0].name = "state".into();
        let message = OnnxFlow::new(other, &EngineConfig::default()).unwrap_err().to_string();
        assert!(message.contains("its inputs are state, t"), "{message}");
        let mut wrong = model(Dim::symbol("N"));
        wrong.metadata.insert("brenier.shape".into(), "[3]".into());
        assert!(OnnxFlow::new(wrong, &EngineConfig::default()).is_err());
    }
}
