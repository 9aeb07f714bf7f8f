//! A user's ONNX model as a predictor: scores, and the gradient of one score a row.
//!
//! ```text
//! scores    f(x)                     [N, C]
//! gradients d f_c(x) / dx, c by row  [N, ...]
//! ```
//!
//! The gradient graph takes a seed of the shape of the scores; a one-hot row picks the target of that row,
//! so a batch may mix targets. Both graphs run in [`Workers`], in micro-batches that the model fixes.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::{Array1, Array2, ArrayD, ArrayView2, ArrayViewD, Ix2};
use onnx_grad::{
    BackwardRules, Builder, CLASSICAL_DOMAIN, DType, Dim, GradOptions, Graph, Model, Node, TensorData,
    ValueInfo, coverage, grad_with, lower, seed_name,
};

use super::behind;
use super::contrast::contrasted;
use super::ending::put_right;
use super::frame::{Framed, framed};
use super::layer::LayerPredictor;
use super::logits::cut_final_activation;
use super::pack::{Packing, pack};
use super::pairs::PairPredictor;
use super::preprocessing::Preprocessing;
use super::scoring::Scoring;
use super::values::ValuePredictor;
use crate::data::Column;
use crate::engine::{Engine, EngineConfig, EngineKind, Tensor, TensorView, Weights, Workers, check};
use crate::error::{Error, Notice, Remedy, Result};
use crate::packed::PackedInputs;
use crate::score::Score;

/// The name of the scores in the graphs made here.
pub(crate) const SCORES: &str = "brenier/scores";

/// How a model is turned into a predictor.
#[derive(Debug, Clone, Default)]
pub struct PredictorConfig {
    /// The engine that runs it.
    pub engine: EngineConfig,
    /// The output to explain; the first where not given.
    pub output: Option<String>,
    /// The shape of one input without the batch, where the file leaves sizes open or inputs are resized.
    pub input_shape: Option<Vec<usize>>,
    /// What is done to an input before it reaches the model.
    pub preprocessing: Preprocessing,
    /// Explain probabilities as they are, instead of the logits before a final `Softmax` or `Sigmoid`.
    pub keep_final_activation: bool,
    /// What becomes of several inputs, or of values inside the model; the model has one input where not given.
    pub packing: Option<Packing>,
    /// Which numbers of the output are scores; all of them where not given.
    pub scoring: Option<Scoring>,
    /// What replaces the derivative of some operators; nothing by default.
    pub rules: BackwardRules,
}

/// A model, ready to be explained.
#[derive(Debug)]
pub struct OnnxPredictor {
    values: ValuePredictor,
    gradient: Workers,
    /// The graph from the input to the scores, for methods that look inside.
    model: Model,
    config: PredictorConfig,
}

/// The scores of a batch and the gradients of each row's target.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueAndGradient {
    /// All scores, `[N, C]`.
    pub scores: Array2<f64>,
    /// The gradient of the target's score, `[N, ...]`.
    pub gradients: ArrayD<f64>,
}

impl OnnxPredictor {
    /// Loads an ONNX file.
    pub fn load(path: impl AsRef<Path>, config: &PredictorConfig) -> Result<OnnxPredictor> {
        OnnxPredictor::new(&Model::load(path)?, config)
    }

    /// Takes a model that is in memory already.
    pub fn new(model: &Model, config: &PredictorConfig) -> Result<OnnxPredictor> {
        let mut notices = Vec::new();
        let prepared = prepare(model, config, &mut notices)?;
        OnnxPredictor::of(prepared.of(model), config.clone(), notices)
    }

    /// From a model that is one input and the scores already.
    fn of(
        (model, packed): (Model, Option<PackedInputs>),
        config: PredictorConfig,
        notices: Vec<Notice>,
    ) -> Result<OnnxPredictor> {
        let output = &model.graph.outputs[0];
        if output.shape.as_ref().and_then(|shape| shape.get(1)).and_then(Dim::known).is_none() {
            return Err(Error::Predictor {
                reason: format!("the size of output '{}' is not known", output.name),
                remedy: "export the model with fixed sizes for all axes but the batch".into(),
            });
        }
        let values = ValuePredictor::prepared(&model, &config, notices)?.with_inputs(packed);
        let engine = values.engine();
        let options =
            GradOptions { rules: config.rules.clone(), ..engine.plan(Weights::Constants).gradient() };
        let gradient = grad_with(&model.graph, &[SCORES], &[values.input()], options)?;
        let gradient = Model { graph: gradient, ..model.clone() };
        let gradient = Workers::planned(engine, &gradient)?;
        let mut predictor = OnnxPredictor { values, gradient, model, config };
        // Other rules are for a model that was checked when it was loaded with none.
        if !predictor.config.engine.unchecked && predictor.config.rules.name().is_empty() {
            let notice = predictor.check()?;
            predictor.values.notify(notice.map(Into::into));
        }
        Ok(predictor)
    }

    /// Holds the engine against the reference evaluator, once for each model: its scores and its gradients.
    fn check(&self) -> Result<Option<String>> {
        let run = |inputs: &[(&str, TensorView)]| {
            let mut outputs = self.gradient.map(inputs)?;
            // Scores alone are computed by a program of their own, which must give the same.
            let x: Vec<_> = inputs.iter().filter(|(name, _)| *name == self.values.input()).cloned().collect();
            outputs.extend(self.values.run(&x)?);
            Ok(outputs)
        };
        let model = || {
            let mut graph =
                grad_with(&self.model.graph, &[SCORES], &[self.values.input()], GradOptions::default())?;
            // The scores once more, for the program that computes nothing else.
            let again = format!("{SCORES}/alone");
            graph.nodes.push(Node::new("Identity", &[SCORES], &[&again]));
            graph.outputs.push(ValueInfo { name: again, ..self.model.graph.outputs[0].clone() });
            Ok(Model { graph, ..self.model.clone() })
        };
        let verdict = check::verdict(self.engine(), (&self.model, "gradients"), model, &run)?;
        Ok(verdict.notice(self.engine().name()))
    }

    fn packed(&self) -> Option<PackedInputs> {
        self.inputs().cloned()
    }

    /// The same model for its values only.
    pub fn values_only(&self) -> &ValuePredictor {
        &self.values
    }

    /// The same scores with other rules on the way back: what would be gradients is what the rules say.
    ///
    /// # Errors
    /// If the rules have none for a node that they must not take the derivative of.
    pub fn with_rules(&self, rules: BackwardRules) -> Result<OnnxPredictor> {
        let config = PredictorConfig { rules, ..self.config.clone() };
        OnnxPredictor::of((self.model.clone(), self.packed()), config, self.notices().to_vec())
    }

    /// The same model with every score minus that of one class: why this and not that.
    ///
    /// # Errors
    /// If there is no such class, or one score only.
    pub fn with_contrast(&self, class: usize) -> Result<OnnxPredictor> {
        let graph = contrasted(&self.model.graph, class)?;
        let model = Model { graph, ..self.model.clone() };
        OnnxPredictor::of((model, self.packed()), self.config.clone(), self.notices().to_vec())
    }

    /// The same model seen at two points at once.
    ///
    /// # Errors
    /// If it has an operator that DeepLIFT has no rule for.
    pub fn pairs(&self) -> Result<PairPredictor<'_>> {
        PairPredictor::new(&self.values, &self.model)
    }

    /// The graph from the input to the scores, with all that was lowered on the way.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The same graph with other weights, on the same engine.
    pub(crate) fn with_weights(&self, weights: BTreeMap<String, TensorData>) -> Result<OnnxPredictor> {
        let mut model = self.model.clone();
        model.graph.initializers.extend(weights);
        // The nodes are those that were checked already.
        let mut config = self.config.clone();
        config.engine.unchecked = true;
        OnnxPredictor::of((model, self.packed()), config, self.notices().to_vec())
    }

    /// The same model seen at one of its layers: a node or value by name, or the last convolution.
    ///
    /// # Errors
    /// If there is no such layer, or its values are not maps `[channels, height, width]`.
    pub fn layer(&self, name: Option<&str>) -> Result<LayerPredictor> {
        LayerPredictor::new(&self.model, &self.config, self.engine(), name)
    }

    /// The shape of one input, without the batch.
    pub fn shape(&self) -> &[usize] {
        self.values.shape()
    }

    /// The file's own key-value pairs.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        self.values.metadata()
    }

    /// The number of scores.
    pub fn outputs(&self) -> usize {
        self.values.outputs()
    }

    /// What the user should know, such as a softmax that was cut off.
    pub fn notices(&self) -> &[Notice] {
        self.values.notices()
    }

    /// The engine that runs the model.
    pub fn engine(&self) -> &dyn Engine {
        self.values.engine()
    }

    /// All scores of a batch `[N, ...]`, as `[N, C]`.
    pub fn scores(&self, x: ArrayViewD<f32>) -> Result<Array2<f64>> {
        self.values.scores(x)
    }

    /// All scores of a batch, and for every row the gradient of its target's score.
    pub fn value_and_grad(&self, x: ArrayViewD<f32>, targets: &[usize]) -> Result<ValueAndGradient> {
        self.values.check(&x)?;
        let rows = x.shape()[0];
        if targets.len() != rows {
            return Err(Error::Shape {
                what: "the list of targets".to_string(),
                expected: vec![rows],
                found: vec![targets.len()],
            });
        }
        let seed = one_hot(targets, self.outputs())?;
        let (x, seed) = (self.values.feed(x), self.values.feed(seed.view().into_dyn()));
        let outputs =
            self.gradient.map(&[(self.values.input(), x.view()), (&seed_name(SCORES), seed.view())])?;
        let mut outputs = outputs.into_iter();
        let scores = matrix(outputs.next())?;
        let gradients = floats(outputs.next())?;
        Ok(ValueAndGradient { scores, gradients })
    }
}

impl Score for OnnxPredictor {
    fn shape(&self) -> &[usize] {
        self.values.shape()
    }

    fn inputs(&self) -> Option<&PackedInputs> {
        self.values.inputs()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        self.values.values(x, targets)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let ValueAndGradient { scores, gradients } =
            self.value_and_grad(self.values.fold(x)?.view(), targets)?;
        let flat = gradients.to_shape(x.raw_dim()).map_err(|_| Error::Shape {
            what: "the gradients".to_string(),
            expected: x.shape().to_vec(),
            found: gradients.shape().to_vec(),
        })?;
        Ok((self.values.pick(&scores, targets)?, flat.to_owned()))
    }
}

/// A graph from one input to scores, and what its features are where it had several inputs.
pub(super) struct Prepared {
    graph: Graph,
    packed: Option<PackedInputs>,
    /// The columns of a model that takes a data frame.
    columns: Vec<Column>,
}

impl Prepared {
    /// The model with this graph, which says which columns its table has.
    pub(super) fn of(self, model: &Model) -> (Model, Option<PackedInputs>) {
        let mut model = Model { graph: self.graph, ..model.clone() };
        if !self.columns.is_empty() {
            Framed::tell(&self.columns, &mut model.metadata);
        }
        (model, self.packed)
    }
}

/// The graph from the one input to scores `[N, C]`, lowered, in float32 or float64.
pub(super) fn prepare(
    model: &Model,
    config: &PredictorConfig,
    notices: &mut Vec<Notice>,
) -> Result<Prepared> {
    let refuse = |reason: String, remedy: Remedy| Error::Predictor { reason, remedy };
    let mut graph = model.graph.with_floats(DType::F16, DType::F32);
    let output = match &config.output {
        Some(name) => name.clone(),
        // A label is never meant: the first output of floats is.
        None => explained_output(&graph).map(|o| o.name.clone()).unwrap_or_default(),
    };
    if graph.output(&output).is_none() {
        let known: Vec<&str> = graph.outputs.iter().map(|o| o.name.as_str()).collect();
        let reason = format!("the model has no output '{output}'; it has {}", known.join(", "));
        return Err(refuse(reason, "name one of them".into()));
    }
    graph.outputs.retain(|o| o.name == output);
    graph.prune();
    let mut packed = None;
    if let Some(packing) = &config.packing {
        if !config.preprocessing.is_identity() {
            return Err(refuse(
                "inputs are given by name, and preprocessing is for a model with one".to_string(),
                "give inputs as the model takes them".into(),
            ));
        }
        let (one, inputs) = pack(graph, packing, notices)?;
        (graph, packed) = (one, Some(inputs));
    }
    let mut columns = Vec::new();
    if config.packing.is_none()
        && let Some(framed) = framed(&graph, &model.words)?
    {
        (graph, columns) = (framed.graph, framed.columns);
        if config.engine.kind != EngineKind::Ort && graph.has_floats(DType::F64) {
            graph = graph.with_floats(DType::F64, DType::F32);
            notices.push("the model computes in float64, and is run in float32 here".to_string().into());
        }
    }
    notices.extend(put_right(&mut graph, &output, config.keep_final_activation).map(Notice::from));
    if graph.inputs.len() != 1 {
        let known: Vec<&str> = graph.inputs.iter().map(|i| i.name.as_str()).collect();
        let reason = format!("the model has {} inputs ({})", known.len(), known.join(", "));
        let flow = graph.inputs.len() == 2 && ["x", "t"].iter().all(|name| graph.input(name).is_some());
        return Err(refuse(reason, if flow { Remedy::IsAFlow } else { Remedy::GiveInputsByName }));
    }
    if !graph.inputs[0].dtype.is_float() {
        let reason = format!("input '{}' is {}", graph.inputs[0].name, graph.inputs[0].dtype);
        return Err(refuse(reason, Remedy::GiveIdsByName));
    }
    let given = config.input_shape.as_deref();
    if config.preprocessing.is_identity() {
        fix_sizes(&mut graph, given)?;
    } else {
        let (user, own) = config.preprocessing.shapes(&graph.inputs[0], given)?;
        fix_sizes(&mut graph, Some(&own))?;
        graph = config.preprocessing.before(graph, &user)?;
        let what = format!("inputs are {} on their way into the model", config.preprocessing.words());
        notices.push(what.into());
    }
    let mut graph = lower(&graph, &[])?;
    // What lowering leaves of classical machine learning has no gradient, and only one engine runs it.
    if let Some(node) = graph.nodes.iter().find(|node| node.domain == CLASSICAL_DOMAIN) {
        let why = behind::of(model, config).err().filter(|_| node.op.starts_with("TreeEnsemble"));
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        return Err(refuse(
            format!("node {} has no gradient{why}", node.label()),
            Remedy::NoGradientsInOnnxRuntime,
        ));
    }
    if !config.keep_final_activation {
        notices.extend(cut_final_activation(&mut graph, &output));
    }
    let graph = match &config.scoring {
        Some(scoring) => {
            let graph = scoring.apply(graph)?;
            notices.push(format!("what is explained of output '{output}': {scoring}").into());
            graph
        }
        None => flatten_scores(graph)?,
    };
    Ok(Prepared { graph, packed, columns })
}

/// The output that is explained where none is named: the first of floats.
pub(super) fn explained_output(graph: &Graph) -> Option<&ValueInfo> {
    graph.outputs.iter().find(|output| output.dtype.is_float()).or(graph.outputs.first())
}

/// Replaces open sizes of the input by what the user says.
fn fix_sizes(graph: &mut Graph, given: Option<&[usize]>) -> Result<()> {
    let (Some(given), input) = (given, &mut graph.inputs[0]) else { return Ok(()) };
    let batch = input.shape.as_ref().and_then(|s| s.first()).cloned().unwrap_or(Dim::symbol("N"));
    let fixed: Vec<Dim> = std::iter::once(batch).chain(given.iter().map(|&n| n.into())).collect();
    let fits = input.shape.as_ref().is_none_or(|shape| {
        let pairs = shape.iter().zip(&fixed).skip(1);
        shape.len() == fixed.len() && pairs.into_iter().all(|(s, f)| s.known().is_none_or(|_| s == f))
    });
    if !fits {
        let declared: Vec<String> = input.shape.iter().flatten().map(Dim::to_string).collect();
        return Err(Error::Predictor {
            reason: format!(
                "input '{}' is [{}], which {given:?} does not fit",
                input.name,
                declared.join(", ")
            ),
            remedy: "give the shape of one input without the batch".into(),
        });
    }
    input.shape = Some(fixed);
    // What the file said of values in between was for open sizes.
    graph.value_info.clear();
    Ok(())
}

/// The shape of one row of the input.
pub(super) fn row_shape(graph: &Graph) -> Result<Vec<usize>> {
    let input = &graph.inputs[0];
    let open = || Error::Predictor {
        reason: format!("the sizes of input '{}' are open", input.name),
        remedy: Remedy::InputShapeOfImage,
    };
    let shape = input.shape.as_ref().filter(|s| !s.is_empty()).ok_or_else(open)?;
    shape[1..].iter().map(|d| d.known().and_then(|n| usize::try_from(n).ok()).ok_or_else(open)).collect()
}

/// Scores as a matrix, whatever axes the model gives them.
fn flatten_scores(graph: Graph) -> Result<Graph> {
    let output = graph.outputs[0].name.clone();
    let mut source = graph;
    source.outputs.clear();
    let mut builder = Builder::extend(source, "brenier/")?;
    let rank = builder.fact(&output).rank();
    let scores = match rank {
        Some(1) => builder.unsqueeze(&output, &[1]),
        Some(2) => onnx_grad::Value::named(&output),
        Some(rank) if rank > 2 => builder.op_with("Flatten", &[&output], &[("axis", 1i64.into())]),
        _ => {
            // Nothing is known of what an operator gives that is somebody's own, or that is not known here.
            let (nodes, known) = (&builder.graph().nodes, coverage());
            let foreign = nodes.iter().find(|node| !node.is_standard());
            let unknown = nodes.iter().find(|node| known.iter().all(|entry| !node.is(entry.op)));
            let (reason, remedy) = match (foreign, unknown) {
                (Some(Node { domain, op, .. }), _) => (
                    format!("its operator {domain}::{op} is not one of ONNX's own"),
                    "export the model without custom operators",
                ),
                (None, Some(node)) => (
                    format!("the operator of node {} is not known", node.label()),
                    "write that part of the model in other operators (docs/operators.md lists them)",
                ),
                (None, None) => (
                    format!("output '{output}' has no batch axis, or its rank is not known"),
                    "explain an output of shape [batch, scores]",
                ),
            };
            return Err(Error::Predictor { reason, remedy: remedy.into() });
        }
    };
    builder.output(SCORES, &scores);
    Ok(builder.finish()?)
}

/// A row for each target, 1 in its place.
pub(super) fn one_hot(targets: &[usize], outputs: usize) -> Result<Array2<f32>> {
    let mut seed = Array2::<f32>::zeros((targets.len(), outputs));
    for (row, &target) in targets.iter().enumerate() {
        match seed.get_mut((row, target)) {
            Some(entry) => *entry = 1.0,
            None => return Err(Error::Target { target, outputs, row }),
        }
    }
    Ok(seed)
}

pub(super) fn floats(tensor: Option<Tensor>) -> Result<ArrayD<f64>> {
    match tensor {
        Some(Tensor::F32(array)) => Ok(array.mapv(f64::from)),
        Some(Tensor::F64(array)) => Ok(array),
        _ => Err(Error::Predictor {
            reason: "the engine returned no floats".to_string(),
            remedy: "try the other engine".into(),
        }),
    }
}

pub(super) fn matrix(tensor: Option<Tensor>) -> Result<Array2<f64>> {
    let array = floats(tensor)?;
    let shape = array.shape().to_vec();
    array.into_dimensionality::<Ix2>().map_err(|_| Error::Shape {
        what: "the scores".to_string(),
        expected: vec![shape.first().copied().unwrap_or(0), 0],
        found: shape,
    })
}
