//! The program that computes a loss and its parameter gradients over micro-batches.

use onnx_grad::{GradOptions, Graph, Model, ValueInfo, grad_with, gradient_name};

use super::parameters::Parameters;
use super::{LOSS, Task, TrainConfig};
use crate::engine::{Tensor, TensorView, Weights, Workers};
use crate::error::{Error, Result};

/// The loaded gradient graph with the layout of its parameters.
pub(super) struct LossProgram {
    pub(super) parameters: Parameters,
    workers: Workers,
}

impl LossProgram {
    pub(super) fn new(model: &Model, task: &dyn Task, config: &TrainConfig) -> Result<LossProgram> {
        let engine = config.engine.build()?;
        let loss = task.loss(model)?;
        let plan = engine.plan(Weights::Inputs);
        let (gradient, parameters) = parameter_gradient(&loss, &config.frozen, plan.gradient())?;
        let rows = match config.micro_batch {
            Some(rows) => rows,
            None => plan.training_rows(&gradient, parameters.len(), config.batch)?,
        };
        let gradient = parameters_as_inputs(gradient, &parameters);
        let workers = Workers::new(engine.as_ref(), &like(model, gradient), rows)?;
        Ok(LossProgram { parameters, workers })
    }

    /// The loss alone, with the weights that the model has.
    pub(super) fn without_gradient(
        model: &Model,
        task: &dyn Task,
        config: &TrainConfig,
    ) -> Result<LossProgram> {
        let engine = config.engine.build()?;
        let graph = task.loss(model)?;
        let rows = match config.micro_batch {
            Some(rows) => rows,
            None => engine.plan(Weights::Constants).training_rows(&graph, 0, config.batch)?,
        };
        let parameters = Parameters::new(&graph, &[]);
        let workers = Workers::new(engine.as_ref(), &like(model, graph), rows)?;
        Ok(LossProgram { parameters, workers })
    }

    /// The mean loss of a batch of so many rows.
    pub(super) fn loss(&self, inputs: &[(String, Tensor)], rows: usize) -> Result<f64> {
        self.gradient(&[], inputs, rows, &mut [])
    }

    /// The mean loss of a batch of so many rows; its gradient goes to `total`.
    pub(super) fn gradient(
        &self,
        parameters: &[f32],
        inputs: &[(String, Tensor)],
        rows: usize,
        total: &mut [f32],
    ) -> Result<f64> {
        let inputs: Vec<(&str, TensorView)> =
            inputs.iter().map(|(name, t)| (name.as_str(), t.view())).collect();
        total.fill(0.0);
        let mut loss = 0.0;
        self.workers.run_each(&inputs, &self.parameters.views(parameters), |_, outputs| {
            let mut outputs = outputs.into_iter();
            let part = outputs.next().map(Tensor::into_f32).transpose()?;
            loss += part.and_then(|p| p.first().copied()).map_or(f64::NAN, f64::from);
            let mut place = 0;
            for output in outputs {
                let gradient = output.into_f32()?;
                for (sum, g) in total[place..].iter_mut().zip(&gradient) {
                    *sum += g;
                }
                place += gradient.len();
            }
            crate::error::expect_shape("the gradient of a step", &[total.len()], &[place])
        })?;
        let share = 1.0 / rows as f32;
        total.iter_mut().for_each(|g| *g *= share);
        Ok(loss / rows as f64)
    }
}

/// The graph as a model of the same kind. The builder writes operators as opset 18 has them.
fn like(model: &Model, graph: Graph) -> Model {
    Model { graph, opset: model.opset.max(18), ir_version: model.ir_version, ..Model::default() }
}

/// The gradient graph for all parameters that the loss depends on.
fn parameter_gradient(loss: &Graph, frozen: &[String], options: GradOptions) -> Result<(Graph, Parameters)> {
    let mut names = Parameters::candidates(loss, frozen);
    loop {
        if names.is_empty() {
            return Err(Error::Training {
                reason: "the loss depends on none of its float32 initializers".to_string(),
                remedy: "export the network with its weights as initializers, and check which are frozen"
                    .into(),
            });
        }
        let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
        match grad_with(loss, &[LOSS], &wanted, options.clone()) {
            Ok(graph) => return Ok((graph, Parameters::new(loss, &names))),
            // Some initializers only tell shapes or scales.
            Err(onnx_grad::Error::NoGradient { input, .. }) if names.contains(&input) => {
                names.retain(|name| *name != input);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Parameters as inputs, outputs in their order: the loss, then the gradients.
fn parameters_as_inputs(mut graph: Graph, parameters: &Parameters) -> Graph {
    let mut outputs: Vec<ValueInfo> = graph.output(LOSS).cloned().into_iter().collect();
    for name in parameters.names() {
        if let Some(tensor) = graph.initializers.remove(name) {
            graph.inputs.push(ValueInfo::new(name, tensor.dtype(), tensor.shape()));
        }
        outputs.extend(graph.output(&gradient_name(name)).cloned());
    }
    graph.outputs = outputs;
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{EngineConfig, EngineKind};
    use crate::flow::{MlpConfig, Pairs, PairsFn, Rectified, UnetConfig};
    use ndarray::Array2;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn engines() -> Vec<EngineConfig> {
        let ort = EngineConfig { kind: EngineKind::Ort, ..EngineConfig::default() };
        let mut engines = vec![EngineConfig::default()];
        if ort.build().is_ok() {
            engines.push(ort);
        }
        engines
    }

    fn random_pairs(shape: &[usize]) -> impl Pairs {
        let features = shape.iter().product();
        PairsFn::new(shape, 4, move |rng, rows| {
            let mut draw = || Array2::<f32>::zeros((rows, features)).mapv(|_| StandardNormal.sample(rng));
            Ok((draw(), draw()))
        })
    }

    /// A network whose last layers are not zero, so that every parameter matters.
    fn shaken(model: &Model) -> Model {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut model = model.clone();
        for name in Parameters::candidates(&model.graph, &[]) {
            let tensor = &model.graph.initializers[&name];
            let moved: Vec<f32> = tensor
                .to_f32()
                .into_iter()
                .map(|v| {
                    let z: f32 = StandardNormal.sample(&mut rng);
                    v + 0.05 * z
                })
                .collect();
            let data = onnx_grad::TensorData::f32(tensor.shape(), &moved);
            model.graph.initializers.insert(name, data);
        }
        model
    }

    /// Gradients along random directions agree with differences of the loss, on every engine.
    fn check_gradient(model: &Model, shape: &[usize], rows: usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| StandardNormal.sample(&mut rng)).collect() };
        let pairs = random_pairs(shape);
        let mut gradients: Vec<Vec<f32>> = Vec::new();
        for engine in engines() {
            let config = TrainConfig { engine, batch: rows, ..TrainConfig::default() };
            let task = Rectified::new(model, &pairs, 1).unwrap();
            let batch = task.batch(0, rows).unwrap();
            let program = LossProgram::new(model, &task, &config).unwrap();
            let parameters = program.parameters.values(model).unwrap();
            let mut gradient = vec![0.0; parameters.len()];
            let loss = |p: &[f32], into: &mut [f32]| program.gradient(p, &batch.inputs, rows, into).unwrap();
            loss(&parameters, &mut gradient);
            let mut scratch = gradient.clone();
            for _ in 0..3 {
                // Along the gradient and a random direction, where the difference stands out of rounding.
                let noise = draw(parameters.len());
                let length = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
                let scale = length / (parameters.len() as f32).sqrt();
                let direction: Vec<f32> =
                    gradient.iter().zip(&noise).map(|(g, n)| (g + scale * n) / length).collect();
                let h = 2e-3;
                let moved = |s: f32| -> Vec<f32> {
                    parameters.iter().zip(&direction).map(|(p, d)| p + s * d).collect()
                };
                let slope =
                    (loss(&moved(h), &mut scratch) - loss(&moved(-h), &mut scratch)) / (2.0 * f64::from(h));
                let expected: f64 =
                    gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
                assert!((slope / expected - 1.0).abs() < 2e-2, "{slope} against {expected}");
            }
            gradients.push(gradient);
        }
        if let [a, b] = gradients.as_slice() {
            let size = a.iter().map(|v| v * v).sum::<f32>().sqrt();
            let gap = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
            assert!(gap < 1e-4 * size, "engines differ by {gap} of {size}");
        }
    }

    #[test]
    fn gradients_of_the_mlp_agree_with_differences_on_both_engines() {
        let config = MlpConfig { width: 12, blocks: 1, time_features: 4, ..MlpConfig::default() };
        check_gradient(&shaken(&config.build(&[3], 1).unwrap()), &[3], 10);
        check_gradient(&shaken(&config.build(&[1, 2, 2], 1).unwrap()), &[1, 2, 2], 6);
    }

    #[test]
    fn gradients_of_the_unet_agree_with_differences_on_both_engines() {
        let config = UnetConfig {
            width: 8,
            multipliers: vec![1, 2],
            groups: 4,
            attention_at: 3,
            heads: 2,
            ..UnetConfig::default()
        };
        for shape in [[1, 6, 4], [3, 4, 6]] {
            check_gradient(&shaken(&config.build(&shape, 2).unwrap()), &shape, 5);
        }
        let patches = UnetConfig { patch: 2, ..config };
        check_gradient(&shaken(&patches.build(&[2, 8, 4], 2).unwrap()), &[2, 8, 4], 5);
    }

    #[test]
    fn an_untrained_network_is_at_rest_and_its_loss_is_the_squared_displacement() {
        let model = MlpConfig::default().build(&[2], 0).unwrap();
        let pairs = random_pairs(&[2]);
        let task = Rectified::new(&model, &pairs, 0).unwrap();
        let batch = task.batch(0, 6).unwrap();
        let program = LossProgram::without_gradient(&model, &task, &TrainConfig::default()).unwrap();
        let loss = program.loss(&batch.inputs, 6).unwrap();
        assert!((loss - batch.rest_loss).abs() < 1e-5, "{loss} {}", batch.rest_loss);
    }
}
