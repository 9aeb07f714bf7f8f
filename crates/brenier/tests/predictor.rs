//! A user's model as a predictor: the same bits whatever the load, logits, and refusals.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use brenier::engine::EngineConfig;
use brenier::{Error, OnnxPredictor, PredictorConfig, Score};
use common::engine_configs;
use ndarray::{Array2, ArrayD, Axis, IxDyn, Slice};
use onnx_grad::{Builder, DType, Dim, Graph, Model, ReluBackward, TensorData};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch").join(name)
}

fn with_engine(engine: EngineConfig) -> PredictorConfig {
    PredictorConfig { engine, ..PredictorConfig::default() }
}

/// Numbers that look random and are the same everywhere.
fn noise(shape: &[usize]) -> ArrayD<f32> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    })
}

fn model(graph: Graph) -> Model {
    Model { graph, ir_version: 8, opset: 18, ..Model::default() }
}

/// `scale * x`, then `last`.
fn small(last: &str, batch: Dim) -> Model {
    let mut b = Builder::new("small");
    let x = b.input("x", DType::F32, &[batch, Dim::Known(3)]);
    let y = b.scale(&x, 2.0);
    let y = b.op(last, &[&y]);
    b.output("y", &y);
    model(b.finish().unwrap())
}

/// Neither the number of workers, nor the batch, nor a row's place in it changes a bit.
#[test]
fn results_do_not_depend_on_the_load() {
    let names = [
        "resnet",
        "vgg",
        "densenet",
        "mobilenet_v3",
        "convnext",
        "efficientnet",
        "vit",
        "swin",
        "mlp",
        "conv1d",
    ];
    for engine in engine_configs() {
        for name in names {
            let load = |workers: usize| {
                let config = EngineConfig { workers: Some(workers), ..engine.clone() };
                OnnxPredictor::load(fixture(&format!("{name}.dynamo.onnx")), &with_engine(config)).unwrap()
            };
            let predictor = load(2);
            let shape: Vec<usize> = [11].iter().chain(predictor.shape()).copied().collect();
            let x = noise(&shape);
            let targets: Vec<usize> = (0..11).map(|row| row % predictor.outputs()).collect();
            let whole = predictor.value_and_grad(x.view(), &targets).unwrap();
            for workers in [1, 3] {
                assert_eq!(load(workers).value_and_grad(x.view(), &targets).unwrap(), whole, "{name}");
            }
            for size in [1, 3, 7] {
                for from in (0..11).step_by(size) {
                    let to = (from + size).min(11);
                    let part = x.slice_axis(Axis(0), Slice::from(from..to));
                    let part = predictor.value_and_grad(part, &targets[from..to]).unwrap();
                    for (i, row) in (from..to).enumerate() {
                        let place = format!("{name} on {}, rows {from}..{to}", predictor.engine().name());
                        assert_eq!(part.scores.row(i), whole.scores.row(row), "{place}");
                        let (ours, theirs) = (&part.gradients, &whole.gradients);
                        assert_eq!(ours.index_axis(Axis(0), i), theirs.index_axis(Axis(0), row), "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn probabilities_are_explained_at_their_logits() {
    let x = noise(&[2, 3]);
    for engine in engine_configs() {
        for last in ["Softmax", "Sigmoid"] {
            let model = small(last, Dim::symbol("N"));
            let logits = OnnxPredictor::new(&model, &with_engine(engine.clone())).unwrap();
            assert!(logits.notices()[0].contains(last), "{:?}", logits.notices());
            assert_eq!(logits.scores(x.view()).unwrap().mapv(|v| v as f32).into_dyn(), 2.0 * &x);
            let gradient = logits.value_and_grad(x.view(), &[0, 2]).unwrap().gradients;
            assert_eq!(gradient.iter().copied().collect::<Vec<f64>>(), [2.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
            let kept = PredictorConfig { keep_final_activation: true, ..with_engine(engine.clone()) };
            let kept = OnnxPredictor::new(&model, &kept).unwrap();
            assert!(kept.notices().is_empty());
            assert!(kept.scores(x.view()).unwrap().iter().all(|p| (0.0..1.0).contains(p)));
        }
    }
}

/// A file exported for one row at a time serves any batch; half-precision weights are widened; a score
/// without a class axis is one class.
#[test]
fn models_as_people_have_them() {
    let x = noise(&[5, 3]);
    for engine in engine_configs() {
        let config = with_engine(engine);
        let fixed = OnnxPredictor::new(&small("Tanh", Dim::Known(1)), &config).unwrap();
        let open = OnnxPredictor::new(&small("Tanh", Dim::symbol("N")), &config).unwrap();
        assert_eq!(fixed.scores(x.view()).unwrap(), open.scores(x.view()).unwrap());

        let mut b = Builder::new("half");
        let input = b.input("x", DType::F16, &[Dim::symbol("N"), Dim::Known(3)]);
        let w = b.parameter("w", TensorData::from_f64(DType::F16, &[3], &[1.0, 2.0, -0.5]));
        let y = b.matmul(&input, &w);
        b.output("y", &y);
        let half = OnnxPredictor::new(&model(b.finish().unwrap()), &config).unwrap();
        assert_eq!(half.outputs(), 1);
        let result = half.value_and_grad(x.view(), &[0; 5]).unwrap();
        assert_eq!(
            result.gradients.index_axis(Axis(0), 4).iter().copied().collect::<Vec<_>>(),
            [1.0, 2.0, -0.5]
        );
    }
}

/// The model is a score: flat rows in, flat gradients out.
#[test]
fn a_model_is_a_score() {
    for engine in engine_configs() {
        let predictor = OnnxPredictor::load(fixture("vgg.script.onnx"), &with_engine(engine)).unwrap();
        let features = predictor.features();
        let x = noise(&[2, features]).mapv(f64::from).into_dimensionality().unwrap();
        let x: Array2<f64> = x;
        let (values, gradients) = predictor.gradients(x.view(), &[1, 0]).unwrap();
        assert_eq!(gradients.dim(), (2, features));
        assert_eq!(values, predictor.values(x.view(), &[1, 0]).unwrap());
    }
}

#[test]
fn guided_backpropagation_changes_a_relu_model() {
    for engine in engine_configs() {
        let standard = with_engine(engine);
        let guided = PredictorConfig { relu: ReluBackward::Guided, ..standard.clone() };
        let [standard, guided] =
            [standard, guided].map(|c| OnnxPredictor::load(fixture("vgg.script.onnx"), &c).unwrap());
        let shape: Vec<usize> = [2].iter().chain(standard.shape()).copied().collect();
        let x = noise(&shape);
        let [standard, guided] = [standard, guided].map(|p| p.value_and_grad(x.view(), &[0, 1]).unwrap());
        assert_eq!(standard.scores, guided.scores);
        assert_ne!(standard.gradients, guided.gradients);
    }
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let config = PredictorConfig::default();
    let predictor = OnnxPredictor::new(&small("Tanh", Dim::symbol("N")), &config).unwrap();
    let message = |error: Error| error.to_string();

    let wrong = predictor.scores(noise(&[2, 4]).view()).unwrap_err();
    assert_eq!(message(wrong), "the batch for input 'x' has shape [2, 4], but [2, 3] is needed");
    let wrong = predictor.value_and_grad(noise(&[2, 3]).view(), &[0, 3]).unwrap_err();
    assert_eq!(message(wrong), "target 3 of row 1 is out of range: the model has 3 outputs, numbered from 0");
    let output = PredictorConfig { output: Some("z".into()), ..config.clone() };
    let wrong = OnnxPredictor::new(&small("Tanh", Dim::symbol("N")), &output).unwrap_err();
    assert!(message(wrong).contains("no output 'z'; it has y"));
    let wrong = OnnxPredictor::load(fixture("unet.script.onnx"), &config).unwrap_err();
    assert!(message(wrong).contains("2 inputs (x, t)"));

    let mut b = Builder::new("open");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::symbol("W")]);
    let y = b.reduce_sum(&x, &[1], true);
    b.output("y", &y);
    let open = model(b.finish().unwrap());
    let wrong = OnnxPredictor::new(&open, &config).unwrap_err();
    assert!(message(wrong).contains("--input-shape"));
    let fixed = PredictorConfig { input_shape: Some(vec![7]), ..config };
    assert_eq!(OnnxPredictor::new(&open, &fixed).unwrap().shape(), [7]);
}
