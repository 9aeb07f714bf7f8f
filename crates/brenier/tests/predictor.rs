//! A user's model as a predictor: the same bits whatever the load, logits, and refusals.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use brenier::engine::EngineConfig;
use brenier::{ChannelOrder, Error, Layout, OnnxPredictor, PredictorConfig, Preprocessing, Score};
use common::engine_configs;
use ndarray::{Array2, ArrayD, Axis, IxDyn, Slice};
use onnx_grad::{Builder, DType, Dim, Graph, Model, Node, TensorData, ValueInfo};

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
fn an_operator_that_is_not_known_is_named() {
    let graph = Graph {
        inputs: vec![ValueInfo::new("x", DType::F32, &[Dim::from("N"), Dim::from(3usize)])],
        outputs: vec![ValueInfo::new("y", DType::F32, &[Dim::from("N"), Dim::from(3usize)])],
        nodes: vec![Node::new("Shrink", &["x"], &["y"])],
        ..Graph::default()
    };
    let model = Model { graph, ir_version: 8, opset: 18, ..Model::default() };
    let error = OnnxPredictor::new(&model, &PredictorConfig::default()).unwrap_err();
    assert!(error.to_string().contains("the operator of node 'y' (Shrink) is not known"), "{error}");
}

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
            assert!(logits.notices()[0].what.contains(last), "{:?}", logits.notices());
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
        let guided = PredictorConfig { rules: onnx_grad::backward::relu::guided(), ..standard.clone() };
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
    let mut custom = small("Tanh", Dim::symbol("N"));
    let last = custom.graph.nodes.last_mut().unwrap();
    (last.op, last.domain) = ("Own".to_string(), "mine".to_string());
    let wrong = OnnxPredictor::new(&custom, &config).unwrap_err();
    let told = message(wrong);
    assert!(told.contains("mine::Own"), "{told}");
    let wrong = OnnxPredictor::load(fixture("unet.script.onnx"), &config).unwrap_err();
    assert!(message(wrong).contains("2 inputs (x, t)"));

    let mut b = Builder::new("open");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::symbol("W")]);
    let y = b.reduce_sum(&x, &[1], true);
    b.output("y", &y);
    let open = model(b.finish().unwrap());
    let wrong = OnnxPredictor::new(&open, &config).unwrap_err();
    assert!(message(wrong).contains("give the shape of one input"));
    let fixed = PredictorConfig { input_shape: Some(vec![7]), ..config };
    assert_eq!(OnnxPredictor::new(&open, &fixed).unwrap().shape(), [7]);
}

/// The model `y = x`, so that its scores are what the preprocessing makes of an input.
fn as_it_comes(shape: &[i64]) -> Model {
    let mut b = Builder::new("identity");
    let dims: Vec<Dim> = std::iter::once(Dim::symbol("N")).chain(shape.iter().map(|&n| n.into())).collect();
    let x = b.input("x", DType::F32, &dims);
    let y = b.op_with("Flatten", &[&x], &[("axis", 1i64.into())]);
    b.output("y", &y);
    model(b.finish().unwrap())
}

/// As PyTorch's argmax has it.
#[test]
fn of_equal_outputs_the_first_is_predicted() {
    for engine in engine_configs() {
        let predictor = OnnxPredictor::new(&as_it_comes(&[4]), &with_engine(engine)).unwrap();
        let rows = ndarray::array![[1.0, 2.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [-1.0, -0.0, 0.0, -3.0]];
        assert_eq!(predictor.values_only().predicted(rows.view()).unwrap(), [1, 0, 1]);
    }
}

fn prepared(model: &Model, engine: &EngineConfig, preprocessing: &Preprocessing) -> OnnxPredictor {
    let config = PredictorConfig { preprocessing: preprocessing.clone(), ..with_engine(engine.clone()) };
    OnnxPredictor::new(model, &config).unwrap()
}

#[test]
fn preprocessing_is_what_it_says() {
    let preprocessing = Preprocessing {
        scale: Some(255.0),
        mean: vec![0.1, 0.2, 0.3],
        std: vec![2.0, 4.0, 8.0],
        channels: Some(ChannelOrder::Bgr),
        layout: Some(Layout::Nhwc),
        size: None,
    };
    let x = 100.0 * &noise(&[2, 3, 2, 5]);
    for engine in engine_configs() {
        let seen = prepared(&as_it_comes(&[2, 5, 3]), &engine, &preprocessing);
        assert_eq!(seen.shape(), [3, 2, 5]);
        assert!(seen.notices()[0].what.contains("divided by 255"), "{:?}", seen.notices());
        let scores = seen.scores(x.view()).unwrap();
        for (n, h, w, c) in ndarray::indices((2, 2, 5, 3)).into_iter() {
            let expected = (f64::from(x[[n, 2 - c, h, w]]) / 255.0 - [0.1, 0.2, 0.3][c]) / [2.0, 4.0, 8.0][c];
            let found = scores[[n, (h * 5 + w) * 3 + c]];
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}

/// `g = f(p(x))`, `p` affine: `<grad g, u> = <grad f, p(x + u) - p(x)>` for every direction `u`, and credit along a path
/// sums to the change of `g`.
#[test]
fn credit_goes_through_preprocessing_by_the_chain_rule() {
    let preprocessing = Preprocessing {
        scale: Some(100.0),
        mean: vec![0.2, 0.0, -0.1],
        std: vec![0.5, 1.0, 2.0],
        channels: Some(ChannelOrder::Bgr),
        size: Some([16, 16]),
        ..Preprocessing::default()
    };
    let vgg = Model::load(fixture("vgg.script.onnx")).unwrap();
    for engine in engine_configs() {
        let plain = OnnxPredictor::new(&vgg, &with_engine(engine.clone())).unwrap();
        let config = PredictorConfig {
            preprocessing: preprocessing.clone(),
            input_shape: Some(vec![3, 11, 24]),
            ..with_engine(engine.clone())
        };
        let whole = OnnxPredictor::new(&vgg, &config).unwrap();
        let before = OnnxPredictor::new(&as_it_comes(&[3, 16, 16]), &config).unwrap();
        let rows = |seed: f64| -> Array2<f64> {
            Array2::from_shape_fn((2, 3 * 11 * 24), |(n, i)| 100.0 * (seed + (7 * n + i) as f64 * 0.7).sin())
        };
        let (x, u) = (rows(0.0), rows(1.3));
        let p = |x: &Array2<f64>| -> Array2<f64> {
            let shape = vec![x.nrows(), 3, 11, 24];
            before.scores(x.mapv(|v| v as f32).into_shape_with_order(shape).unwrap().view()).unwrap()
        };
        let (values, gradients) = whole.gradients(x.view(), &[1, 0]).unwrap();
        let (inner_values, inner) = plain.gradients(p(&x).view(), &[1, 0]).unwrap();
        let step = p(&(&x + &u)) - p(&x);
        for row in 0..2 {
            assert!((values[row] - inner_values[row]).abs() < 1e-5);
            let (left, right) = (gradients.row(row).dot(&u.row(row)), inner.row(row).dot(&step.row(row)));
            assert!((left - right).abs() < 1e-4 * right.abs().max(0.1), "{left} {right}");
        }
        let line = brenier::Line::new(u.row(0), x.row(0)).unwrap();
        let explained =
            brenier::PathIntegral::new(brenier::Rule::adaptive(1e-4)).explain(&whole, &line, 1).unwrap();
        let completeness = explained.certificate.completeness.unwrap();
        assert!(completeness.relative_residual.unwrap() < 1e-3, "{completeness:?}");
        assert_eq!(explained.shape, [3, 11, 24]);
    }
}

/// The same network with its channels last says the same of the same images.
#[test]
fn a_model_with_channels_last_is_explained_with_channels_first() {
    let vgg = Model::load(fixture("vgg.script.onnx")).unwrap();
    let mut b = Builder::new("channels last");
    let batch = vgg.graph.inputs[0].shape.as_ref().unwrap()[0].clone();
    let x = b.input("image", DType::F32, &[batch, Dim::Known(16), Dim::Known(16), Dim::Known(3)]);
    let y = b.transpose(&x, &[0, 3, 1, 2]);
    b.output(&vgg.graph.inputs[0].name, &y);
    let mut graph = b.finish().unwrap();
    graph.nodes.extend(vgg.graph.nodes.clone());
    graph.initializers.extend(vgg.graph.initializers.clone());
    graph.outputs = vgg.graph.outputs.clone();
    let last = Model { graph, ..vgg.clone() };
    let layout = Preprocessing { layout: Some(Layout::Nhwc), ..Preprocessing::default() };
    let x = noise(&[3, 3, 16, 16]);
    for engine in engine_configs() {
        let first = prepared(&vgg, &engine, &Preprocessing::default());
        let last = prepared(&last, &engine, &layout);
        assert_eq!(last.shape(), first.shape());
        let [first, last] = [first, last].map(|p| p.value_and_grad(x.view(), &[0, 1, 2]).unwrap());
        assert!((first.scores - last.scores).iter().all(|d| d.abs() < 1e-6));
        assert!((first.gradients - last.gradients).iter().all(|d| d.abs() < 1e-6));
    }
}

#[test]
fn preprocessing_that_does_not_fit_is_refused() {
    let refused = |model: &Model, preprocessing: Preprocessing, told: &str| {
        let config = PredictorConfig { preprocessing, ..PredictorConfig::default() };
        let message = OnnxPredictor::new(model, &config).unwrap_err().to_string();
        assert!(message.contains(told) && message.contains("hint: "), "{message}");
    };
    let (image, row) = (as_it_comes(&[3, 4, 4]), as_it_comes(&[5]));
    let nothing = Preprocessing::default;
    refused(&image, Preprocessing { mean: vec![1.0, 2.0], ..nothing() }, "2 values of mean are given for 3");
    refused(&image, Preprocessing { std: vec![0.0], ..nothing() }, "cannot be computed with");
    refused(&image, Preprocessing { size: Some([8, 8]), ..nothing() }, "not of 8x8");
    refused(&row, Preprocessing { layout: Some(Layout::Nhwc), ..nothing() }, "is no image");
    let gray = as_it_comes(&[1, 4, 4]);
    refused(&gray, Preprocessing { channels: Some(ChannelOrder::Bgr), ..nothing() }, "there are 1 channels");
    // Rows of features may be normalised, too.
    let scaled = Preprocessing { mean: vec![1.0; 5], std: vec![2.0], ..nothing() };
    let predictor = prepared(&row, &EngineConfig::default(), &scaled);
    assert!(predictor.scores(ArrayD::ones(IxDyn(&[1, 5])).view()).unwrap().iter().all(|v| *v == 0.0));
}

/// Every score minus that of one class, with the gradient of the difference, on every engine and for values alone.
#[test]
fn a_contrast_is_the_difference_of_two_scores() {
    for engine in engine_configs() {
        let config = with_engine(engine);
        let plain = OnnxPredictor::load(fixture("mlp.script.onnx"), &config).unwrap();
        let contrast = plain.with_contrast(1).unwrap();
        let shape: Vec<usize> = std::iter::once(3).chain(plain.shape().iter().copied()).collect();
        let x = noise(&shape);
        let rows = x.mapv(f64::from).into_shape_with_order((3, Score::features(&plain))).unwrap();
        let (whole, part) = (plain.gradients(rows.view(), &[0, 2, 1]).unwrap(), &contrast);
        let other = plain.gradients(rows.view(), &[1, 1, 1]).unwrap();
        let found = part.gradients(rows.view(), &[0, 2, 1]).unwrap();
        for i in 0..3 {
            assert!((found.0[i] - (whole.0[i] - other.0[i])).abs() < 1e-5);
            let gap = &found.1.row(i) - &(&whole.1.row(i) - &other.1.row(i));
            assert!(gap.iter().all(|gap| gap.abs() < 1e-5), "{gap}");
        }
        let predicted = |model: &OnnxPredictor| model.values_only().predicted(rows.view()).unwrap();
        assert!(found.0[2] == 0.0 && found.1.row(2).iter().all(|g| *g == 0.0));
        assert_eq!(predicted(&plain), predicted(&contrast));
        let values = brenier::ValuePredictor::load(fixture("mlp.script.onnx"), &config).unwrap();
        let values = values.with_contrast(1).unwrap();
        assert!((values.values(rows.view(), &[0, 2, 1]).unwrap() - &found.0).iter().all(|g| g.abs() < 1e-5));
        let message = plain.with_contrast(99).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("99"), "{message}");
    }
}
