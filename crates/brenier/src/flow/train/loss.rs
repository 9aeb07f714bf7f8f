//! The loss as a graph, and the program that computes its parameter gradients.
//!
//! ```text
//! x = (1 - t) z0 + t z1            loss = sum over rows of  mean over features of (v(x, t) - (z1 - z0))^2
//! ```
//!
//! The sum over rows, not their mean: so that micro-batches, whatever their size, simply add up.

use ndarray::{Array1, Array2};
use onnx_grad::shapes::Facts;
use onnx_grad::{
    Attribute, Builder, DType, Dim, GradOptions, Graph, Model, Node, Value, ValueInfo, grad_with,
    gradient_name,
};

use super::TrainConfig;
use super::parameters::Parameters;
use crate::engine::{Tensor, TensorView, Workers};
use crate::error::{Error, Result};
use crate::flow::net::{STATE, TIME, VELOCITY};

const START: &str = "z0";
const END: &str = "z1";
const LOSS: &str = "loss";

/// The loaded gradient graph with the layout of its parameters.
pub(super) struct LossProgram {
    pub(super) parameters: Parameters,
    workers: Workers,
    shape: Vec<usize>,
}

impl LossProgram {
    pub(super) fn new(model: &Model, shape: &[usize], config: &TrainConfig) -> Result<LossProgram> {
        let engine = config.engine.build()?;
        let loss = loss_graph(&model.graph, shape)?;
        let options = GradOptions { weight_gradient: engine.weight_gradient(), ..GradOptions::default() };
        let (gradient, parameters) = parameter_gradient(&loss, &config.frozen, options)?;
        let rows = match config.micro_batch {
            Some(rows) => rows,
            None => training_rows(&gradient, parameters.len(), config.batch)?,
        };
        let gradient = parameters_as_inputs(gradient, &parameters);
        // The builder writes operators as opset 18 has them.
        let gradient = Model { graph: gradient, opset: model.opset.max(18), ..model.clone() };
        let workers = Workers::new(engine.as_ref(), &gradient, rows)?;
        Ok(LossProgram { parameters, workers, shape: shape.to_vec() })
    }

    /// The mean loss of a batch; its gradient goes to `total`.
    pub(super) fn gradient(
        &self,
        parameters: &[f32],
        z0: &Array2<f32>,
        z1: &Array2<f32>,
        times: &Array1<f32>,
        total: &mut [f32],
    ) -> Result<f64> {
        let sizes: Vec<usize> = std::iter::once(z0.nrows()).chain(self.shape.iter().copied()).collect();
        let fold = |z: &'_ Array2<f32>| -> Result<Tensor> {
            let folded = z.to_shape(sizes.as_slice()).map(|z| z.to_owned());
            folded.map(Tensor::from).map_err(|_| Error::Shape {
                what: "the pairs of a step".to_string(),
                expected: sizes.clone(),
                found: z.shape().to_vec(),
            })
        };
        let (start, end) = (fold(z0)?, fold(z1)?);
        let inputs: [(&str, TensorView); 3] =
            [(START, start.view()), (END, end.view()), (TIME, times.into())];
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
        let share = 1.0 / z0.nrows() as f32;
        total.iter_mut().for_each(|g| *g *= share);
        Ok(loss / z0.nrows() as f64)
    }
}

/// The loss of the velocity network `net`, with inputs `z0`, `z1` and `t`.
pub(super) fn loss_graph(net: &Graph, shape: &[usize]) -> Result<Graph> {
    let dtype = net.input(STATE).map_or(DType::F32, |x| x.dtype);
    if dtype != DType::F32 {
        return Err(Error::Flow {
            reason: format!("it computes in {dtype}"),
            remedy: "training is in float32: export the network so",
        });
    }
    let batch = net.input(STATE).and_then(|x| x.shape.as_ref()).and_then(|s| s.first()).cloned();
    let batch = batch.filter(|b| *b != Dim::Unknown).unwrap_or(Dim::symbol("N"));
    let dims: Vec<Dim> = std::iter::once(batch.clone()).chain(shape.iter().map(|&n| n.into())).collect();
    let mut b = Builder::extend(
        Graph {
            name: "rectified-flow loss".into(),
            initializers: net.initializers.clone(),
            ..Graph::default()
        },
        "loss/",
    )?;
    let z0 = b.input(START, DType::F32, &dims);
    let z1 = b.input(END, DType::F32, &dims);
    let t = b.input(TIME, DType::F32, &[batch]);
    let axes: Vec<i64> = (1..=shape.len() as i64).collect();
    let column = b.unsqueeze(&t, &axes);
    let target = b.sub(&z1, &z0);
    let moved = b.mul(&target, &column);
    let x = b.add(&z0, &moved);
    b.push(Node::new("Identity", &[&x], &[STATE]));
    for node in &net.nodes {
        b.push(node.clone());
    }
    let gap = b.sub(VELOCITY, &target);
    let square = b.mul(&gap, &gap);
    let per_row = b.reduce_mean(&square, &axes, false);
    let sum = total(&mut b, &per_row);
    b.output(LOSS, &sum);
    Ok(b.finish()?)
}

fn total(b: &mut Builder, rows: &str) -> Value {
    let axes = b.ints(&[0]);
    b.op_with("ReduceSum", &[rows, &axes], &[("keepdims", Attribute::Int(0))])
}

/// The gradient graph for all parameters that the loss depends on.
fn parameter_gradient(loss: &Graph, frozen: &[String], options: GradOptions) -> Result<(Graph, Parameters)> {
    let mut names = Parameters::candidates(loss, frozen);
    loop {
        if names.is_empty() {
            return Err(Error::Flow {
                reason: "the loss depends on none of its float32 initializers".to_string(),
                remedy: "export the network with its weights as initializers, and check which are frozen",
            });
        }
        let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
        match grad_with(loss, &[LOSS], &wanted, options) {
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

/// What the rows of a micro-batch may compute in all: a few times the cache of a core.
const BYTES: usize = 8 << 20;

/// Rows of a micro-batch: what suits the cache, but enough that handing over the gradients of all parameters is
/// little beside computing them; at least four micro-batches a step, so that workers can share.
fn training_rows(gradient: &Graph, parameters: usize, batch: usize) -> Result<usize> {
    let bytes = bytes_per_row(gradient)?.max(1);
    let suits = BYTES / bytes;
    let enough = (16 * parameters).div_ceil(bytes);
    Ok(suits.max(enough).min(batch.div_ceil(4)).max(1))
}

/// Bytes of all values that grow with the batch. Weights and their gradients do not.
fn bytes_per_row(graph: &Graph) -> Result<usize> {
    let facts = Facts::of(graph)?;
    let mut bytes = 0;
    for output in graph.nodes.iter().flat_map(Node::wanted_outputs) {
        let Some(shape) = &facts.get(output).shape else { continue };
        if shape.iter().all(|dim| dim.known().is_some()) {
            continue;
        }
        let size = |dim: &Dim| match dim {
            Dim::Known(n) => usize::try_from(*n).unwrap_or(1),
            Dim::Symbol { factor, .. } => usize::try_from(*factor).unwrap_or(1),
            Dim::Unknown => 1,
        };
        bytes += 4 * shape.iter().map(size).product::<usize>();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{EngineConfig, EngineKind};
    use crate::flow::{MlpConfig, UnetConfig};
    use ndarray::Array;
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
        let features: usize = shape.iter().product();
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| StandardNormal.sample(&mut rng)).collect() };
        let z0 = Array::from_shape_vec((rows, features), draw(rows * features)).unwrap();
        let z1 = Array::from_shape_vec((rows, features), draw(rows * features)).unwrap();
        let times = Array1::from_shape_fn(rows, |i| (i as f32 + 0.3) / rows as f32);
        let mut gradients: Vec<Vec<f32>> = Vec::new();
        for engine in engines() {
            let config = TrainConfig { engine, batch: rows, ..TrainConfig::default() };
            let program = LossProgram::new(model, shape, &config).unwrap();
            let parameters = program.parameters.values(model).unwrap();
            let mut gradient = vec![0.0; parameters.len()];
            let loss = |p: &[f32], into: &mut [f32]| program.gradient(p, &z0, &z1, &times, into).unwrap();
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
    }

    #[test]
    fn an_untrained_network_is_at_rest_and_its_loss_is_the_squared_displacement() {
        let model = MlpConfig::default().build(&[2], 0).unwrap();
        let program = LossProgram::new(&model, &[2], &TrainConfig::default()).unwrap();
        let parameters = program.parameters.values(&model).unwrap();
        let z0 = Array::from_shape_vec((2, 2), vec![0.0, 0.0, 1.0, 1.0]).unwrap();
        let z1 = Array::from_shape_vec((2, 2), vec![1.0, 2.0, 1.0, 4.0]).unwrap();
        let times = Array1::from(vec![0.2, 0.9]);
        let loss = program.gradient(&parameters, &z0, &z1, &times, &mut vec![0.0; parameters.len()]);
        // (1 + 4) / 2 and 9 / 2, averaged.
        assert!((loss.unwrap() - 3.5).abs() < 1e-6);
    }
}
