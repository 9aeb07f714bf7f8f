//! Credit against references that are given, and how it is held against a planted truth.
//!
//! ```text
//! line      credit along the straight line from a reference to the input
//! trace     credit along the trajectory of a flow that ends at the input
//! nearest   credit along lines from the nearest rows of a population, averaged
//! ```
//!
//! A classifier of two classes is explained at the margin, `f_c - f_other`: its references lie in the other class, where both logits
//! change.

use brenier::attribute::{Allocation, Context, Method, NearestIg};
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::evaluate::{Cases, Metric};
use brenier::{
    Line, OnnxPredictor, Path, PathIntegral, PredictorConfig, Reference, Result, Rule, Score, Solver,
    TraceConfig, VelocityField, trace,
};
use ndarray::{Array2, ArrayView2};
use onnx_grad::{Builder, Model, TensorData};

use super::RULE;

/// What a solver of these experiments may err by in a step.
pub(super) const SOLVER_TOLERANCE: f64 = 1e-4;
/// Nodes on each of several lines that are averaged.
const NODES_OF_MANY: usize = 16;

/// The classifier of two classes whose outputs are margins: `f_0 - f_1` and `f_1 - f_0`.
pub(super) fn margins(network: &Model, engine: &EngineConfig) -> Result<OnnxPredictor> {
    let mut graph = network.graph.clone();
    let logits = graph.outputs.remove(0).name;
    graph.outputs.clear();
    let mut b = Builder::extend(graph, "margin/")?;
    let matrix = b.constant(TensorData::f32(&[2, 2], &[1.0, -1.0, -1.0, 1.0]));
    let margins = b.matmul(&logits, &matrix);
    b.output("margins", &margins);
    let model = Model { graph: b.finish()?, ..network.clone() };
    OnnxPredictor::new(&model, &PredictorConfig { engine: engine.clone(), ..PredictorConfig::default() })
}

/// Credit of each input along the line from its reference.
pub(super) fn along_lines(
    score: &dyn Score,
    references: ArrayView2<f64>,
    inputs: ArrayView2<f64>,
    targets: &[usize],
) -> Result<Array2<f64>> {
    let pairs = references.rows().into_iter().zip(inputs.rows());
    let lines = pairs.map(|(from, to)| Line::new(from, to)).collect::<Result<Vec<_>>>()?;
    of_paths(score, &lines, targets)
}

fn of_paths<P: Path>(score: &dyn Score, paths: &[P], targets: &[usize]) -> Result<Array2<f64>> {
    let explanations = PathIntegral::new(RULE).explain_batch(score, paths, targets)?;
    let mut credit = Array2::zeros((paths.len(), score.features()));
    for (mut row, explanation) in credit.rows_mut().into_iter().zip(&explanations) {
        row.assign(&explanation.values);
    }
    Ok(credit)
}

/// The ways that a flow takes to some inputs, and where they begin.
pub(super) struct Ways {
    pub(super) paths: Vec<brenier::Trace>,
    pub(super) references: Array2<f64>,
}

impl Ways {
    /// Follows a flow back from each input.
    pub(super) fn back(field: &dyn VelocityField, inputs: ArrayView2<f64>) -> Result<Ways> {
        let config = TraceConfig {
            solver: Solver::adaptive(SOLVER_TOLERANCE),
            consistency_steps: 0,
            reference: Reference::Other,
            ..TraceConfig::default()
        };
        let paths = trace(field, inputs, &config)?;
        let mut references = Array2::zeros(inputs.raw_dim());
        for (mut row, path) in references.rows_mut().into_iter().zip(&paths) {
            row.assign(&path.at(0.0));
        }
        Ok(Ways { paths, references })
    }

    /// Credit along the ways.
    pub(super) fn credit(&self, score: &dyn Score, targets: &[usize]) -> Result<Array2<f64>> {
        of_paths(score, &self.paths, targets)
    }
}

/// Credit along the lines from the nearest rows of a population, averaged.
pub(super) fn from_nearest(count: usize) -> Method {
    let allocation = Allocation::PathIntegral { rule: Rule::GaussLegendre { nodes: NODES_OF_MANY } };
    NearestIg { neighbours: count, allocation }.into()
}

/// Credit by one of the library's methods.
pub(super) fn by_method(
    method: &Method,
    score: &OnnxPredictor,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    data: &Dataset,
) -> Result<Array2<f64>> {
    let context = Context { data: Some(data), model: Some(score), ..Context::default() };
    let explanations = method.explain(score, inputs, targets, &context)?;
    let mut credit = Array2::zeros(inputs.raw_dim());
    for (mut row, explanation) in credit.rows_mut().into_iter().zip(&explanations) {
        row.assign(&explanation.values);
    }
    Ok(credit)
}

/// What each example has of a metric of planted truth; nothing where it is not defined.
pub(super) fn truth_scores(
    metric: &Metric,
    score: &dyn Score,
    inputs: ArrayView2<f64>,
    credit: &Array2<f64>,
    truth: ArrayView2<bool>,
) -> Result<Vec<Option<f64>>> {
    let targets = vec![0; inputs.nrows()];
    let cases =
        Cases { truth: Some(truth), ..Cases::new(score, inputs.to_owned(), targets, credit.clone())? };
    metric.scores(&cases)
}

/// The mean of what there is; not a number where there is nothing.
pub(super) fn mean(values: &[Option<f64>]) -> f64 {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    known.iter().sum::<f64>() / known.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use brenier::ScoreFn;
    use ndarray::array;
    use onnx_grad::Dim;

    #[test]
    fn credit_along_lines() {
        let product = ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]));
        let inputs = array![[2.0, 3.0]];
        let credit = along_lines(&product, array![[0.0, 0.0]].view(), inputs.view(), &[0]).unwrap();
        assert!((credit[[0, 0]] - 3.0).abs() < 1e-9 && (credit[[0, 1]] - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_margin_is_the_difference_of_two_logits() {
        let mut b = Builder::new("two");
        let x = b.input("input", onnx_grad::DType::F32, &[Dim::symbol("N"), Dim::Known(2)]);
        let weight = b.constant(TensorData::f32(&[2, 2], &[1.0, 0.0, 0.0, 3.0]));
        let logits = b.matmul(&x, &weight);
        b.output("logits", &logits);
        let model = Model { graph: b.finish().unwrap(), opset: 18, ir_version: 8, ..Model::default() };
        let margin = margins(&model, &EngineConfig::default()).unwrap();
        let (values, gradients) = margin.gradients(array![[1.0, 1.0], [1.0, 1.0]].view(), &[0, 1]).unwrap();
        assert_eq!(values, array![-2.0, 2.0]);
        assert_eq!(gradients, array![[1.0, -3.0], [-1.0, 3.0]]);
    }
}
