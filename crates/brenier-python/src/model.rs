//! A model as Python holds it: an ONNX graph, or functions.
//!
//! It is loaded when it is first asked, and kept: for its values only where no method needs more, so that any model will
//! do; with its gradients from the first method on that needs them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brenier::engine::EngineConfig;
use brenier::runs::explain::{Outputs, Provenance};
use brenier::{
    Inspection, ModelFile, OnnxPredictor, Packing, PredictorConfig, Preprocessing, Score, Scoring, Sidecar,
    ValuePredictor, score_axes,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray4};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::arrays::{Rows, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::function::{Called, Function};
use crate::watch::{Watch, WatchedScore};
use crate::wording::arguments;

/// How a model is loaded, as Python says it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    engine: EngineConfig,
    output: Option<String>,
    input_shape: Option<Vec<usize>>,
    preprocessing: Preprocessing,
    keep_final_activation: bool,
    scoring: Option<Scoring>,
}

/// Where an ONNX graph comes from.
#[derive(Clone)]
enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Source {
    fn model(&self) -> brenier::Result<onnx_grad::Model> {
        Ok(match self {
            Source::File(path) => onnx_grad::Model::load(path)?,
            Source::Bytes(bytes) => onnx_grad::Model::from_bytes(bytes.to_vec())?,
        })
    }

    fn hash(&self, config: &PredictorConfig) -> brenier::Result<String> {
        let file = match self {
            Source::Bytes(bytes) => ModelFile::from_bytes(bytes.to_vec()),
            Source::File(path) => ModelFile::open(path)?,
        };
        Ok(file.hash_as(config, None))
    }
}

/// An ONNX graph, loaded as far as it was needed.
struct Onnx {
    source: Source,
    config: PredictorConfig,
    sidecar: Sidecar,
    hash: String,
    values: Mutex<Option<Arc<ValuePredictor>>>,
    gradients: Mutex<Option<Arc<OnnxPredictor>>>,
}

/// A model, ready to be asked.
#[derive(Clone)]
pub(crate) enum Loaded {
    Gradients(Arc<OnnxPredictor>),
    Values(Arc<ValuePredictor>),
    Function(Function),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Onnx {
    fn load(&self, gradients: bool) -> brenier::Result<Loaded> {
        let mut full = locked(&self.gradients);
        if let Some(model) = full.as_ref() {
            return Ok(Loaded::Gradients(model.clone()));
        }
        // Trees have no gradient, and need none.
        if gradients && self.trees()?.is_none() {
            let model = Arc::new(OnnxPredictor::new(&self.source.model()?, &self.config)?);
            *full = Some(model.clone());
            // What was loaded for values alone is not needed any more.
            *locked(&self.values) = None;
            return Ok(Loaded::Gradients(model));
        }
        let mut values = locked(&self.values);
        if let Some(model) = values.as_ref() {
            return Ok(Loaded::Values(model.clone()));
        }
        let model = Arc::new(match &self.source {
            Source::File(path) => ValuePredictor::load(path, &self.config)?,
            Source::Bytes(bytes) => ValuePredictor::from_bytes(bytes, &self.config)?,
        });
        *values = Some(model.clone());
        Ok(Loaded::Values(model))
    }
}

impl Onnx {
    /// The model as an ensemble of trees, where it is one.
    fn trees(&self) -> brenier::Result<Option<ValuePredictor>> {
        match &self.source {
            Source::File(path) => ValuePredictor::load_trees(path, &self.config),
            Source::Bytes(bytes) => ValuePredictor::trees_of(bytes, &self.config),
        }
    }
}

impl Loaded {
    /// The graph for its values, where it is one.
    pub(crate) fn values(&self) -> Option<&ValuePredictor> {
        match self {
            Loaded::Gradients(model) => Some(model.values_only()),
            Loaded::Values(model) => Some(model),
            Loaded::Function(_) => None,
        }
    }

    /// The graph with its gradients, where it has them.
    pub(crate) fn with_gradients(&self) -> Option<&OnnxPredictor> {
        match self {
            Loaded::Gradients(model) => Some(model),
            _ => None,
        }
    }

    /// The shape of one input.
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Loaded::Function(function) => &function.shape,
            Loaded::Gradients(model) => model.shape(),
            Loaded::Values(model) => model.shape(),
        }
    }

    /// Hands the model to some work as a score that can be stopped, and as something whose outputs can be seen.
    pub(crate) fn during<T>(
        &self,
        watch: &Watch,
        work: impl FnOnce(&dyn Score, &dyn Outputs) -> brenier::Result<T>,
    ) -> brenier::Result<T> {
        match self {
            Loaded::Gradients(model) => work(&WatchedScore::new(model.as_ref(), watch), model.values_only()),
            Loaded::Values(model) => work(&WatchedScore::new(model.as_ref(), watch), model.as_ref()),
            Loaded::Function(function) => {
                let called = Called { function, watch };
                work(&WatchedScore::new(&called, watch), &called)
            }
        }
    }
}

/// The process that first loaded something here. Threads do not survive a fork.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Refuses to work in a process that was forked from one that has worked here.
pub(crate) fn expect_own_process(py: Python) -> Answer<()> {
    let here = std::process::id();
    match PROCESS.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(first) if first == here => Ok(()),
        Err(_) => Err(raise(
            py,
            "EngineError",
            "this process was forked from one that had used brenier already, and its worker threads are not here\n\
             hint: start processes with multiprocessing.get_context('spawn'), or use brenier only in the children",
        )),
    }
}

enum Kind {
    Onnx(Box<Onnx>),
    Function(Function),
}

/// A model to explain.
#[pyclass(frozen, module = "brenier._internal")]
pub(crate) struct Model {
    kind: Kind,
}

impl Model {
    /// Loads what is not loaded yet.
    pub(crate) fn load(&self, py: Python, gradients: bool) -> Answer<Loaded> {
        expect_own_process(py)?;
        match &self.kind {
            Kind::Function(function) => Ok(Loaded::Function(function.clone())),
            Kind::Onnx(onnx) => py.detach(|| onnx.load(gradients)).or_raise(py),
        }
    }

    /// The graph, and how it is loaded; nothing for a function.
    #[allow(clippy::type_complexity)]
    pub(crate) fn graph(&self) -> Option<(brenier::Result<onnx_grad::Model>, PredictorConfig)> {
        match &self.kind {
            Kind::Onnx(onnx) => Some((onnx.source.model(), onnx.config.clone())),
            Kind::Function(_) => None,
        }
    }

    /// The same model with several inputs as one.
    pub(crate) fn packed(&self, py: Python, packing: Packing) -> Answer<Model> {
        let Kind::Onnx(onnx) = &self.kind else {
            return Err(raise(py, "ModelError", "a function has one input\nhint: explain an ONNX model"));
        };
        let (source, sidecar) = (onnx.source.clone(), onnx.sidecar.clone());
        let config = PredictorConfig { packing: Some(packing), ..onnx.config.clone() };
        let hash = source.hash(&config).or_raise(py)?;
        let (values, gradients) = (Mutex::new(None), Mutex::new(None));
        Ok(Model { kind: Kind::Onnx(Box::new(Onnx { source, config, sidecar, hash, values, gradients })) })
    }

    /// What results are made from.
    pub(crate) fn provenance(&self, loaded: &Loaded) -> Provenance {
        let engine = loaded.values().map(|model| model.engine());
        Provenance {
            engine: engine.map(|engine| engine.described()),
            model: match &self.kind {
                Kind::Onnx(onnx) => Some(onnx.hash.clone()),
                Kind::Function(_) => None,
            },
            flows: None,
        }
    }
}

#[pymethods]
impl Model {
    /// An ONNX file.
    #[staticmethod]
    fn from_file(py: Python, path: PathBuf, options: &str) -> Answer<Model> {
        let sidecar = Sidecar::beside(&path).or_raise(py)?;
        onnx(py, Source::File(path), options, sidecar)
    }

    /// The bytes of an ONNX file.
    #[staticmethod]
    fn from_bytes(py: Python, content: &[u8], options: &str) -> Answer<Model> {
        onnx(py, Source::Bytes(content.into()), options, Sidecar::default())
    }

    /// Functions from a batch to scores, and to gradients.
    #[staticmethod]
    #[pyo3(signature = (shape, scores, gradients=None))]
    fn from_functions(shape: Vec<usize>, scores: Py<PyAny>, gradients: Option<Py<PyAny>>) -> Model {
        let (scores, gradients) = (Arc::new(scores), gradients.map(Arc::new));
        Model { kind: Kind::Function(Function { shape, scores, gradients }) }
    }

    /// The shape of one input, without the batch.
    fn shape(&self, py: Python) -> Answer<Vec<usize>> {
        Ok(self.load(py, false)?.shape().to_vec())
    }

    /// The sizes of the output's axes behind the batch, as far as the file tells; nothing of functions and trees.
    fn axes(&self, py: Python) -> Option<Vec<Option<usize>>> {
        let Kind::Onnx(onnx) = &self.kind else { return None };
        py.detach(|| score_axes(&onnx.source.model().ok()?, &onnx.config))
    }

    /// The number of scores; nothing where only a call of the function tells.
    fn outputs(&self, py: Python) -> Answer<Option<usize>> {
        Ok(self.load(py, false)?.values().map(ValuePredictor::outputs))
    }

    /// What the user should know, such as a softmax that was cut off.
    fn notices(&self, py: Python) -> Answer<Vec<String>> {
        Ok(self.load(py, false)?.values().map_or(Vec::new(), |model| {
            model.notices().iter().map(|notice| notice.worded(arguments)).collect()
        }))
    }

    /// The names of the outputs; empty where nothing says them.
    fn classes(&self, py: Python) -> Answer<Vec<String>> {
        let loaded = self.load(py, false)?;
        let (Kind::Onnx(onnx), Some(values)) = (&self.kind, loaded.values()) else { return Ok(Vec::new()) };
        if let Some(scoring) = onnx.config.scoring.as_ref().filter(|scoring| scoring.is_one_score()) {
            return Ok(vec![scoring.to_string()]);
        }
        if !onnx.sidecar.classes.is_empty() {
            return Ok(onnx.sidecar.classes.clone());
        }
        let own: Option<Vec<String>> =
            values.metadata().get("brenier.classes").and_then(|text| serde_json::from_str(text).ok());
        Ok(own.filter(|own| own.len() == values.outputs()).unwrap_or_default())
    }

    /// The file's own key-value pairs.
    fn metadata(&self, py: Python) -> Answer<BTreeMap<String, String>> {
        Ok(self.load(py, false)?.values().map_or(BTreeMap::new(), |model| model.metadata().clone()))
    }

    /// The fingerprint of an ONNX graph.
    fn hash(&self) -> Option<String> {
        match &self.kind {
            Kind::Onnx(onnx) => Some(onnx.hash.clone()),
            Kind::Function(_) => None,
        }
    }

    /// All scores of flat rows, `[rows, outputs]`.
    fn scores<'py>(&self, py: Python<'py>, rows: Rows<'py>) -> Answer<Bound<'py, PyArray2<f64>>> {
        let (loaded, rows, watch) = (self.load(py, false)?, owned(&rows), Watch::new());
        let found = py.detach(|| loaded.during(&watch, |_, outputs| outputs.outputs(rows.view())));
        Ok(watch.answer(py, found)?.into_pyarray(py))
    }

    /// The score of each row's target, and its gradient, flat.
    #[allow(clippy::type_complexity)]
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        rows: Rows<'py>,
        targets: Vec<usize>,
    ) -> Answer<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (loaded, rows, watch) = (self.load(py, true)?, owned(&rows), Watch::new());
        let found = py.detach(|| loaded.during(&watch, |score, _| score.gradients(rows.view(), &targets)));
        let (values, gradients) = watch.answer(py, found)?;
        Ok((values.into_pyarray(py), gradients.into_pyarray(py)))
    }

    /// Activations of a layer and the gradients of each row's target with respect to them.
    #[allow(clippy::type_complexity)]
    fn layer<'py>(
        &self,
        py: Python<'py>,
        rows: Rows<'py>,
        targets: Vec<usize>,
        name: &str,
    ) -> Answer<(Bound<'py, PyArray4<f64>>, Bound<'py, PyArray4<f64>>)> {
        let loaded = self.load(py, true)?;
        let Some(model) = loaded.with_gradients() else {
            return Err(raise(
                py,
                "MethodError",
                "a function has no layers to look at\nhint: explain an ONNX model",
            ));
        };
        let rows = owned(&rows);
        let found = py
            .detach(|| model.layer(Some(name))?.values_and_gradients(rows.view(), &targets))
            .or_raise(py)?;
        Ok((found.activations.into_pyarray(py), found.gradients.into_pyarray(py)))
    }
}

fn onnx(py: Python, source: Source, options: &str, sidecar: Sidecar) -> Answer<Model> {
    let options: Options =
        serde_json::from_str(options).map_err(|e| raise(py, "SettingError", &e.to_string()))?;
    let config = PredictorConfig {
        engine: options.engine,
        output: options.output,
        input_shape: options.input_shape,
        preprocessing: options.preprocessing.or(sidecar.preprocessing.clone()),
        keep_final_activation: options.keep_final_activation,
        scoring: options.scoring,
        ..PredictorConfig::default()
    };
    let hash = source.hash(&config).or_raise(py)?;
    let (values, gradients) = (Mutex::new(None), Mutex::new(None));
    Ok(Model { kind: Kind::Onnx(Box::new(Onnx { source, config, sidecar, hash, values, gradients })) })
}

/// What an ONNX file is, as JSON.
#[pyfunction]
#[pyo3(signature = (path=None, content=None))]
pub(crate) fn inspect(py: Python, path: Option<PathBuf>, content: Option<&[u8]>) -> Answer<String> {
    let source = match path {
        Some(path) => Source::File(path),
        None => Source::Bytes(content.unwrap_or_default().into()),
    };
    let inspection = py.detach(|| Inspection::of(&source.model()?)).or_raise(py)?;
    serde_json::to_string(&inspection).map_err(|e| raise(py, "BrenierError", &e.to_string()))
}
