//! A model that gives values only: any ONNX file, tree ensembles included.
//!
//! Methods that leave parts of an input out ask for scores and never for a gradient. So the model may have
//! operators without one, and even operators that only the engine knows, such as the tree ensembles, scalers and
//! encoders of scikit-learn (domain `ai.onnx.ml`). A file of ONNX's own operators is prepared as for gradients, so
//! that every method explains the same scores, logits instead of probabilities included; so is a pipeline whose operators can
//! be spelled out in these. A file with other operators is handed to ONNX Runtime as it is, byte for byte, and its scores are the first output of floats:
//! a classifier's probabilities, not its label.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewD, Axis, IxDyn};
use onnx_grad::{DType, Dim, Model, ValueInfo, operators, without_maps};

use super::behind;
use super::contrast::check_class;
use super::file::ModelFile;
use super::onnx::{PredictorConfig, floats, prepare, row_shape};
use super::scoring::without_graph;
use super::signature::{choose_output, known_sizes, only_input};
use super::tree_file::{self, TreeFile};
use super::trees::{TREES, Table, TreeModel};
use crate::engine::{AsItIs, Engine, EngineKind, Tensor, TensorView, Workers, check};
use crate::error::{Error, Notice, Remedy, Result};
use crate::packed::PackedInputs;
use crate::ranking::highest;
use crate::score::{Score, Trees};

/// Rows of a micro-batch of a file that is run as it is.
const ROWS: usize = 64;

/// Operators that compute a row in the same way whatever its place among others. A file with any other is run one
/// row at a time, since nothing is known of how its sums depend on that.
const ROW_BY_ROW: [&str; 12] = [
    "ai.onnx.ml::ArrayFeatureExtractor",
    "ai.onnx.ml::Imputer",
    "ai.onnx.ml::LabelEncoder",
    "ai.onnx.ml::Scaler",
    "ai.onnx.ml::TreeEnsemble",
    "ai.onnx.ml::TreeEnsembleClassifier",
    "ai.onnx.ml::TreeEnsembleRegressor",
    "ai.onnx.ml::ZipMap",
    "Cast",
    "Concat",
    "Identity",
    "Reshape",
];

/// A model whose scores can be asked for, and nothing else.
#[derive(Debug)]
pub struct ValuePredictor {
    input: ValueInfo,
    shape: Vec<usize>,
    outputs: usize,
    notices: Vec<Notice>,
    metadata: BTreeMap<String, String>,
    runner: Runner,
    /// The class whose score is taken from all.
    contrast: Option<usize>,
    /// Which features are which input, where the model has several.
    packed: Option<PackedInputs>,
}

/// Who computes the scores.
#[derive(Debug)]
enum Runner {
    Graph {
        /// Which of the workers' outputs has the scores.
        place: usize,
        workers: Workers,
        engine: Arc<dyn Engine>,
    },
    Trees(Box<TreeModel>),
}

impl ValuePredictor {
    /// Loads an ONNX file, or the trees that XGBoost and LightGBM save.
    ///
    /// # Errors
    /// Operators that are not ONNX's own with another engine than ONNX Runtime, more than one input, an input that
    /// is not of floats, and a file none of whose outputs is a tensor of floats.
    pub fn load(path: impl AsRef<Path>, config: &PredictorConfig) -> Result<ValuePredictor> {
        let path = path.as_ref();
        let file = crate::readable::read(path)
            .map_err(|source| Error::Read { path: path.to_path_buf(), source: Box::new(source) })?;
        ValuePredictor::read(&file, || Ok(Model::load(path)?), config)
    }

    /// Loads a file that is a tree ensemble and nothing else; none where it is something else. ONNX files are left to ONNX
    /// Runtime where that engine is asked for.
    ///
    /// # Errors
    /// A file of trees that cannot be read, and preprocessing.
    pub fn load_trees(path: impl AsRef<Path>, config: &PredictorConfig) -> Result<Option<ValuePredictor>> {
        let path = path.as_ref();
        // What cannot be read is no file of trees: whoever reads it next says why.
        let Ok(file) = crate::readable::read(path) else { return Ok(None) };
        ValuePredictor::trees_of(&file, config)
    }

    /// As [`ValuePredictor::load_trees`], from the bytes of a file.
    ///
    /// # Errors
    /// As [`ValuePredictor::load_trees`].
    pub fn trees_of(file: &[u8], config: &PredictorConfig) -> Result<Option<ValuePredictor>> {
        let Some(found) = tree_file::read(file, config)? else { return Ok(None) };
        if !config.preprocessing.is_identity() {
            return Err(Error::Predictor {
                reason: "preprocessing cannot be folded into trees".to_string(),
                remedy: "preprocess the data: thresholds are in the units of the training data".into(),
            });
        }
        let TreeFile { ensemble, input, metadata, activation, table } = found;
        let (width, outputs) = (ensemble.features(), ensemble.outputs());
        let shape = vec![table.as_ref().map_or(width, Table::features)];
        let mut notices = Vec::new();
        if table.is_some() {
            notices.push(
                "the steps before the trees are done column by column, and credit is that of the columns"
                    .to_string()
                    .into(),
            );
        }
        if let (Some(activation), false) = (activation, config.keep_final_activation) {
            let what = format!("the model ends in {activation}, and what comes before it is explained");
            notices.push(Notice::with(what, Remedy::KeepFinalActivation));
        }
        let trees = TreeModel::new(ensemble, table, config.keep_final_activation);
        let input = ValueInfo::new(input, DType::F64, &[Dim::symbol("N"), Dim::Known(shape[0] as i64)]);
        let runner = Runner::Trees(Box::new(trees));
        let (contrast, packed) = (None, None);
        let all = ValuePredictor { input, shape, outputs, notices, metadata, runner, contrast, packed };
        without_graph(all, "trees", config.scoring.as_ref()).map(Some)
    }

    /// Takes a file that was read already.
    ///
    /// # Errors
    /// As [`ValuePredictor::load`].
    pub fn of_file(file: &ModelFile, config: &PredictorConfig) -> Result<ValuePredictor> {
        ValuePredictor::read(file.bytes(), || file.model().cloned(), config)
    }

    /// Takes the bytes of an ONNX file that holds all its data.
    ///
    /// # Errors
    /// As [`ValuePredictor::load`].
    pub fn from_bytes(file: &[u8], config: &PredictorConfig) -> Result<ValuePredictor> {
        ValuePredictor::read(file, || Ok(Model::from_bytes(file.to_vec())?), config)
    }

    /// From a graph of ONNX's own operators, or from the file as it is.
    fn read(
        file: &[u8],
        model: impl FnOnce() -> Result<Model>,
        config: &PredictorConfig,
    ) -> Result<ValuePredictor> {
        if let Some(trees) = ValuePredictor::trees_of(file, config)? {
            return Ok(trees);
        }
        let used = operators(file.to_vec())?;
        let foreign = used.iter().find(|op| op.contains("::") && !op.starts_with("com.microsoft::"));
        let Some(foreign) = foreign else { return ValuePredictor::new(&model()?, config) };
        // A pipeline whose operators can all be spelled out is a graph like any other.
        let opened = model().ok();
        if let Some(model) = &opened
            && prepare(model, config, &mut Vec::new()).is_ok()
        {
            return ValuePredictor::new(model, config);
        }
        if config.engine.kind != EngineKind::Ort {
            return Err(Error::Predictor {
                reason: format!("only ONNX Runtime has its operator {foreign}{}", why_not(opened, config)),
                remedy: Remedy::OnnxRuntime,
            });
        }
        match used.contains("ai.onnx.ml::ZipMap") {
            true => ValuePredictor::as_it_is(&without_maps(file.to_vec())?, &used, config),
            false => ValuePredictor::as_it_is(file, &used, config),
        }
    }

    /// Takes a model that is in memory already.
    pub fn new(model: &Model, config: &PredictorConfig) -> Result<ValuePredictor> {
        let mut notices = Vec::new();
        let prepared = prepare(model, config, &mut notices)?;
        let (model, packed) = prepared.of(model);
        let mut predictor = ValuePredictor::prepared(&model, config, notices)?.with_inputs(packed);
        if !config.engine.unchecked {
            let run = |inputs: &[(&str, TensorView)]| predictor.run(inputs);
            let engine = predictor.engine();
            let verdict = check::verdict(engine, (&model, "values"), || Ok(model.clone()), &run)?;
            let notice = verdict.notice(engine.name());
            predictor.notify(notice.map(Into::into));
        }
        Ok(predictor)
    }

    /// From a model that is one input and the scores already; not checked.
    pub(super) fn prepared(
        model: &Model,
        config: &PredictorConfig,
        notices: Vec<Notice>,
    ) -> Result<ValuePredictor> {
        let engine = config.engine.build()?;
        let graph = &model.graph;
        let (input, shape) = (graph.inputs[0].clone(), row_shape(graph)?);
        let workers = Workers::planned(engine.as_ref(), model)?;
        let declared = graph.outputs[0].shape.as_ref().and_then(|s| s.get(1)).and_then(Dim::known);
        let declared = declared.and_then(|n| usize::try_from(n).ok());
        let place = 0;
        let outputs = declared.unwrap_or(0);
        let mut metadata = model.metadata.clone();
        if !model.words.classes.is_empty() && declared == Some(model.words.classes.len()) {
            let names = serde_json::to_string(&model.words.classes).unwrap_or_default();
            metadata.entry("brenier.classes".to_string()).or_insert(names);
        }
        let contrast = None;
        let runner = Runner::Graph { place, workers, engine };
        let packed = None;
        let predictor = ValuePredictor { input, shape, outputs, notices, metadata, runner, contrast, packed };
        if declared.is_some() { Ok(predictor) } else { predictor.with_outputs_counted() }
    }

    fn as_it_is(file: &[u8], used: &BTreeSet<String>, config: &PredictorConfig) -> Result<ValuePredictor> {
        if !config.preprocessing.is_identity() {
            return Err(Error::Predictor {
                reason: "preprocessing cannot be folded into operators that only ONNX Runtime has"
                    .to_string(),
                remedy: "preprocess the data, or export the model with its preprocessing".into(),
            });
        }
        let engine = config.engine.build()?;
        let AsItIs { programs, inputs, outputs, left_out } = engine.load_as_it_is(file, engine.workers())?;
        let input = only_input(inputs, config.input_shape.as_deref())?;
        let place = choose_output(&outputs, &left_out, config.output.as_deref())?;
        let batch = input.shape.as_ref().and_then(|shape| shape.first()).and_then(Dim::known);
        let rows = match batch.and_then(|rows| usize::try_from(rows).ok()) {
            Some(rows) => rows.max(1),
            None if used.iter().all(|op| ROW_BY_ROW.contains(&op.as_str())) => ROWS,
            None => 1,
        };
        let shape = known_sizes(&input)?;
        let notices = vec![Notice::from(format!(
            "the model is run as it is, and its scores are its output '{}'",
            outputs[place].name
        ))];
        let names = outputs.into_iter().map(|output| output.name).collect();
        let workers = Workers::with_programs(engine.name(), programs, names, rows)?;
        let metadata = BTreeMap::new();
        let runner = Runner::Graph { place, workers, engine };
        let (outputs, contrast, packed) = (0, None, None);
        ValuePredictor { input, shape, outputs, notices, metadata, runner, contrast, packed }
            .with_outputs_counted()
            .and_then(|all| without_graph(all, "a file that is run as it is", config.scoring.as_ref()))
    }

    /// One row of zeros tells how many scores there are; files do not always say.
    fn with_outputs_counted(mut self) -> Result<ValuePredictor> {
        let zeros = ArrayD::zeros(IxDyn(&self.batch_shape(1)));
        self.outputs = self.scores(zeros.view())?.ncols();
        Ok(self)
    }

    /// The same, with what is known of several inputs.
    pub(super) fn with_inputs(self, packed: Option<PackedInputs>) -> ValuePredictor {
        ValuePredictor { packed, ..self }
    }

    /// The shape of one input, without the batch.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of scores.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// What the user should know, such as a softmax that was cut off.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The file's own key-value pairs; none of a file that is run as it is.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The engine that runs the model.
    pub fn engine(&self) -> &dyn Engine {
        match &self.runner {
            Runner::Graph { engine, .. } => engine.as_ref(),
            Runner::Trees(_) => &TREES,
        }
    }

    /// Tells the user something more.
    pub(super) fn notify(&mut self, notice: Option<Notice>) {
        self.notices.extend(notice);
    }

    /// The model's outputs for a batch as an engine takes it.
    pub(super) fn run(&self, inputs: &[(&str, TensorView)]) -> Result<Vec<Tensor>> {
        match &self.runner {
            Runner::Graph { workers, .. } => workers.map(inputs),
            Runner::Trees(_) => Err(Error::NoGradient { reason: "it is an ensemble of trees".to_string() }),
        }
    }

    /// The name of the input.
    pub(super) fn input(&self) -> &str {
        &self.input.name
    }

    /// All scores of a batch `[N, ...]`, as `[N, C]`.
    pub fn scores(&self, x: ArrayViewD<f32>) -> Result<Array2<f64>> {
        self.check(&x)?;
        let rows = x.shape()[0];
        let (place, workers) = match &self.runner {
            Runner::Graph { place, workers, .. } => (*place, workers),
            Runner::Trees(trees) => {
                let x = x.mapv(f64::from).into_shape_with_order((rows, self.features()));
                return trees.scores(x.map_err(|_| self.misshapen(rows))?.view());
            }
        };
        let x = self.feed(x);
        let outputs = workers.map(&[(&self.input.name, x.view())])?;
        let scores = floats(outputs.into_iter().nth(place))?;
        // A regressor may leave out the axis of its only score.
        let columns = scores.len().checked_div(rows).unwrap_or(self.outputs);
        let shape = scores.shape().to_vec();
        let scores = scores.into_shape_with_order((rows, columns)).map_err(|_| Error::Shape {
            what: "the scores".to_string(),
            expected: vec![rows, columns],
            found: shape,
        })?;
        match self.contrast {
            Some(class) => Ok(&scores - &scores.column(class).insert_axis(Axis(1))),
            None => Ok(scores),
        }
    }

    /// The same model with every score minus that of one class: why this and not that.
    ///
    /// # Errors
    /// If there is no such class, or one score only.
    pub fn with_contrast(mut self, class: usize) -> Result<ValuePredictor> {
        check_class(Some(self.outputs), class)?;
        match &mut self.runner {
            Runner::Graph { .. } => self.contrast = Some(class),
            Runner::Trees(trees) => trees.contrast(class),
        }
        Ok(self)
    }
}

impl ValuePredictor {
    /// The output with the highest score for each row of `inputs` (`[examples, features]`); of equals the first.
    pub fn predicted(&self, inputs: ArrayView2<f64>) -> Result<Vec<usize>> {
        let scores = self.all_scores(inputs)?;
        let best = |row: ArrayView1<f64>| highest(row.iter().copied()).unwrap_or(0);
        Ok(scores.rows().into_iter().map(best).collect())
    }
}

impl Score for ValuePredictor {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn inputs(&self) -> Option<&PackedInputs> {
        self.packed.as_ref()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        let scores = self.all_scores(x)?;
        self.pick(&scores, targets)
    }

    fn gradients(&self, _x: ArrayView2<f64>, _targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let reason = match &self.runner {
            Runner::Graph { .. } => "it was loaded for its values only",
            Runner::Trees(_) => "it is an ensemble of trees",
        };
        Err(Error::NoGradient { reason: reason.to_string() })
    }

    fn trees(&self) -> Option<&dyn Trees> {
        match &self.runner {
            Runner::Graph { .. } => None,
            Runner::Trees(trees) => Some(trees.as_ref()),
        }
    }
}

impl ValuePredictor {
    /// All scores of flat rows: of trees to the last bit of the rows, of networks in what they compute in.
    pub(super) fn all_scores(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        match &self.runner {
            Runner::Graph { .. } => self.scores(self.fold(x)?.view()),
            Runner::Trees(trees) => trees.scores(x),
        }
    }

    fn misshapen(&self, rows: usize) -> Error {
        let what = format!("the batch for input '{}'", self.input.name);
        Error::Shape { what, expected: self.batch_shape(rows), found: vec![rows] }
    }

    /// Refuses a batch of another shape.
    pub(super) fn check(&self, x: &ArrayViewD<f32>) -> Result<()> {
        match x.shape() {
            [_, rest @ ..] if rest == self.shape => Ok(()),
            found => Err(Error::Shape {
                what: format!("the batch for input '{}'", self.input.name),
                expected: self.batch_shape(found.first().copied().unwrap_or(1)),
                found: found.to_vec(),
            }),
        }
    }

    /// The batch in the model's element type.
    pub(super) fn feed(&self, x: ArrayViewD<f32>) -> Tensor {
        match self.input.dtype {
            DType::F64 => x.mapv(f64::from).into(),
            _ => x.to_owned().into(),
        }
    }

    /// Flat rows in the shape of the model's input, rounded to what networks compute in.
    pub(super) fn fold(&self, x: ArrayView2<f64>) -> Result<ArrayD<f32>> {
        let shape = self.batch_shape(x.nrows());
        x.mapv(|v| v as f32).into_shape_with_order(shape.clone()).map_err(|_| Error::Shape {
            what: format!("the batch for input '{}'", self.input.name),
            expected: shape,
            found: x.shape().to_vec(),
        })
    }

    /// The score of every row's target.
    pub(super) fn pick(&self, scores: &Array2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        let pick = |(row, &target): (usize, &usize)| {
            let score = scores.get((row, target)).copied();
            score.ok_or(Error::Target { target, outputs: self.outputs, row })
        };
        targets.iter().enumerate().map(pick).collect()
    }

    fn batch_shape(&self, rows: usize) -> Vec<usize> {
        std::iter::once(rows).chain(self.shape.iter().copied()).collect()
    }
}

/// Why trees behind other steps are not read here, where that is so.
fn why_not(model: Option<Model>, config: &PredictorConfig) -> String {
    let why = model.and_then(|model| behind::of(&model, config).err());
    why.map_or(String::new(), |why| format!(": {why}"))
}
