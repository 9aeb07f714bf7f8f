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

use brenier::attribute::{Context, Method};
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::evaluate::{Cases, Metric};
use brenier::transport::squared_distances;
use brenier::{
    Line, OnnxPredictor, Path, PathIntegral, PredictorConfig, Reference, Result, Rule, Score, Solver,
    TraceConfig, VelocityField, trace,
};
use ndarray::{Array2, ArrayView2, Axis, s};
use onnx_grad::{Builder, Dim, Model, TensorData};

use super::RULE;

/// What a solver of these experiments may err by in a step.
pub(super) const SOLVER_TOLERANCE: f64 = 1e-4;
/// Nodes on each of several lines that are averaged.
const NODES_OF_MANY: usize = 16;

/// The classifier of two classes whose outputs are margins: `f_0 - f_1` and `f_1 - f_0`.
pub(super) fn margins(network: &Model, engine: &EngineConfig) -> Result<OnnxPredictor> {
    mixed(network, TensorData::f32(&[2, 2], &[1.0, -1.0, -1.0, 1.0]), engine)
}

/// The classifier with one output, the margin between two of its classes.
pub(super) fn contrast(
    network: &Model,
    engine: &EngineConfig,
    plus: usize,
    minus: usize,
) -> Result<OnnxPredictor> {
    let logits = network.graph.outputs.first().and_then(|output| output.shape.as_ref());
    let classes = match logits.and_then(|shape| shape.last()) {
        Some(Dim::Known(classes)) => usize::try_from(*classes).unwrap_or_default(),
        _ => plus.max(minus) + 1,
    };
    let mut weights = vec![0.0; classes];
    weights[plus] += 1.0;
    weights[minus] -= 1.0;
    mixed(network, TensorData::f32(&[classes, 1], &weights), engine)
}

/// The network with logits that are mixed by a matrix.
fn mixed(network: &Model, matrix: TensorData, engine: &EngineConfig) -> Result<OnnxPredictor> {
    let mut graph = network.graph.clone();
    let logits = graph.outputs.remove(0).name;
    graph.outputs.clear();
    let mut b = Builder::extend(graph, "margin/")?;
    let matrix = b.constant(matrix);
    let margins = b.matmul(&logits, &matrix);
    b.output("margins", &margins);
    let model = Model { graph: b.finish()?, ..network.clone() };
    OnnxPredictor::new(&model, &PredictorConfig { engine: engine.clone(), ..PredictorConfig::default() })
}

/// A flow the other way: what was the reference is the data.
pub(super) struct Reversed<'a>(pub(super) &'a dyn VelocityField);

impl VelocityField for Reversed<'_> {
    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        let times: Vec<f64> = times.iter().map(|t| 1.0 - t).collect();
        Ok(-self.0.velocity(x, &times)?)
    }

    fn normal_coordinates(&self, _x: ArrayView2<f64>) -> Option<Array2<f64>> {
        None
    }
}

/// Credit of each input along the line from its reference.
pub(super) fn along_lines(
    score: &dyn Score,
    references: ArrayView2<f64>,
    inputs: ArrayView2<f64>,
    targets: &[usize],
) -> Result<Array2<f64>> {
    lines(score, references, inputs, targets, RULE)
}

fn lines(
    score: &dyn Score,
    references: ArrayView2<f64>,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    rule: Rule,
) -> Result<Array2<f64>> {
    let pairs = references.rows().into_iter().zip(inputs.rows());
    let lines = pairs.map(|(from, to)| Line::new(from, to)).collect::<Result<Vec<_>>>()?;
    of_paths(score, &lines, targets, rule)
}

fn of_paths<P: Path>(score: &dyn Score, paths: &[P], targets: &[usize], rule: Rule) -> Result<Array2<f64>> {
    let explanations = PathIntegral::new(rule).explain_batch(score, paths, targets)?;
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
        of_paths(score, &self.paths, targets, RULE)
    }
}

/// The nearest rows of a population for each input.
pub(super) struct Nearest {
    rows: Array2<f64>,
    of: Vec<Vec<usize>>,
}

impl Nearest {
    /// The `count` nearest rows of a data set.
    pub(super) fn new(population: &Dataset, inputs: ArrayView2<f64>, count: usize) -> Result<Nearest> {
        let rows = population.rows_f64(&(0..population.len()).collect::<Vec<_>>())?;
        let distances = squared_distances(inputs, rows.view())?;
        let of = distances.axis_iter(Axis(0)).map(|to| {
            let mut order: Vec<usize> = (0..to.len()).collect();
            order.sort_by(|&a, &b| to[a].total_cmp(&to[b]));
            order.truncate(count);
            order
        });
        Ok(Nearest { of: of.collect(), rows })
    }

    /// Credit along the lines from them, averaged.
    pub(super) fn credit(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Array2<f64>> {
        let mut credit = Array2::zeros(inputs.raw_dim());
        for (i, nearest) in self.of.iter().enumerate() {
            let references = self.rows.select(Axis(0), nearest);
            let many = inputs.slice(s![i..=i, ..]);
            let many =
                many.broadcast(references.raw_dim()).map_or_else(|| references.clone(), |v| v.to_owned());
            let rule = Rule::GaussLegendre { nodes: NODES_OF_MANY };
            let targets = vec![targets[i]; nearest.len()];
            let all = lines(score, references.view(), many.view(), &targets, rule)?;
            credit.row_mut(i).assign(&(all.sum_axis(Axis(0)) / nearest.len().max(1) as f64));
        }
        Ok(credit)
    }
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
    use brenier::{FieldFn, ScoreFn};
    use ndarray::array;

    #[test]
    fn a_reversed_flow_ends_where_the_flow_begins() {
        // dx/dt = x multiplies by e; the other way it divides.
        let growth = FieldFn::new(&[1], |x, _| x.to_owned());
        let ways = Ways::back(&growth, array![[1.0]].view()).unwrap();
        let other = Ways::back(&Reversed(&growth), array![[1.0]].view()).unwrap();
        let e = std::f64::consts::E;
        assert!((ways.references[[0, 0]] * e - 1.0).abs() < 1e-3);
        assert!((other.references[[0, 0]] / e - 1.0).abs() < 1e-3);
    }

    #[test]
    fn credit_along_lines_and_from_the_nearest() {
        let product = ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]));
        let inputs = array![[2.0, 3.0]];
        let credit = along_lines(&product, array![[0.0, 0.0]].view(), inputs.view(), &[0]).unwrap();
        assert!((credit[[0, 0]] - 3.0).abs() < 1e-9 && (credit[[0, 1]] - 3.0).abs() < 1e-9);
        let rows = array![[9.0_f32, 9.0], [2.0, 2.0], [1.0, 3.0]];
        let population = Dataset::from_rows("rows", &[2], rows.view()).unwrap();
        // From (2, 2) the second feature has all: 2 * 1; from (1, 3) the first: 3 * 1.
        let near = Nearest::new(&population, inputs.view(), 2).unwrap();
        let credit = near.credit(&product, inputs.view(), &[0]).unwrap();
        assert!((credit[[0, 0]] - 1.5).abs() < 1e-9 && (credit[[0, 1]] - 1.0).abs() < 1e-9, "{credit}");
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
        let one = contrast(&model, &EngineConfig::default(), 1, 0).unwrap();
        assert_eq!(one.values(array![[1.0, 1.0]].view(), &[0]).unwrap(), array![2.0]);
    }
}
