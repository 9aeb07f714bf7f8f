//! What engines refuse, each in one sentence; and kernels between parts of a graph.

use super::*;

fn message(result: Result<impl Sized, Error>) -> String {
    result.err().expect("this must be refused").to_string()
}

#[test]
fn doubles_run_on_onnx_runtime_only() {
    let model = model(Graph {
        inputs: vec![ValueInfo::new("x", DType::F64, &["N"])],
        outputs: vec![ValueInfo::new("y", DType::F64, &["N"])],
        nodes: vec![Node::new("Exp", &["x"], &["y"])],
        ..Graph::default()
    });
    assert_eq!(
        message(engines()[0].load(&model)),
        "RTen does not run float64, the type of 'x'; run the model with ONNX Runtime, or export it in float32"
    );
    let x = array![0.5f64, 1.0];
    if let Some(ort) = ort() {
        let y = ort.load(&model).unwrap().run(&[("x", (&x).into())]).unwrap().swap_remove(0);
        let error = (y.into_f64().unwrap() - x.mapv(f64::exp)).mapv(f64::abs).sum();
        assert!(error < 1e-14, "{error}");
    }
    let hidden = graph(
        &[2],
        &[],
        vec![
            Node::new("Cast", &["x"], &["d"]).with("to", i64::from(DType::F64.code())),
            Node::new("Cast", &["d"], &["y"]).with("to", i64::from(DType::F32.code())),
        ],
    );
    assert!(message(engines()[0].load(&hidden)).contains("the type of 'd'"));
}

#[test]
fn a_wrong_input_is_one_clear_sentence() {
    for engine in engines() {
        let workers = Workers::with_count(engine.as_ref(), &mlp(), 4, 1).unwrap();
        let of = |name, x: TensorView| message(workers.map(&[(name, x)]));
        let (good, wide, double) = (rows(1, 5, &[37]), rows(1, 5, &[38]), rows(1, 5, &[37]).mapv(f64::from));
        assert_eq!(of("z", (&good).into()), "the model has no input 'z'; its inputs are 'x'");
        assert_eq!(of("x", (&wide).into()), "input 'x' has shape [4, 38], but the model takes [N=4, 37]");
        assert_eq!(of("x", (&double).into()), "input 'x' is float64, but the model takes float32");

        let workers = Workers::with_count(engine.as_ref(), &summed(), 4, 1).unwrap();
        let (x, w) = (array![[1.0f32, 2.0]], array![1.0f32, 2.0]);
        assert_eq!(
            message(workers.map(&[("x", (&x).into()), ("w", (&w).into())])),
            "input 'w' has shape [2], but the inputs of a batch share a first axis, here of 1"
        );
    }
}

#[test]
fn an_output_without_rows_is_not_a_map() {
    let axes = [("axes", TensorData::ints(&[0]))];
    let model = graph(&[3], &axes, vec![Node::new("ReduceSum", &["x", "axes"], &["y"]).with("keepdims", 0)]);
    for engine in engines() {
        let workers = Workers::with_count(engine.as_ref(), &model, 4, 1).unwrap();
        let x = rows(1, 5, &[3]);
        let message = message(workers.map(&[("x", (&x).into())]));
        assert!(message.starts_with("output 'y' has shape [3] for 4 rows of input"), "{message}");
    }
}

#[test]
fn an_op_that_the_engine_lacks_is_named() {
    // What can be spelled out is; Shrink is not.
    let selu = graph(&[3], &[], vec![Node::new("Selu", &["x"], &["y"])]);
    assert!(engines()[0].load(&selu).is_ok());
    let shrink = graph(&[3], &[], vec![Node::new("Shrink", &["x"], &["y"])]);
    assert_eq!(
        message(engines()[0].load(&shrink)),
        "RTen cannot load the model: at node 'y' (Shrink), Shrink operator not supported or not enabled; run \
         the model with ONNX Runtime, which knows more of them"
    );
    let unknown = graph(&[3], &[], vec![Node::new("Frobnicate", &["x"], &["y"])]);
    for engine in engines() {
        let message = message(engine.load(&unknown));
        let start = format!("{} cannot load the model: at node 'y' (Frobnicate), ", engine.name());
        assert!(message.starts_with(&start), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

/// A graph with a convolution that a kernel computes, between parts for the engine; its image may have any size.
fn with_a_kernel() -> Model {
    let conv = Node { domain: fused::DOMAIN.to_string(), ..Node::new(fused::CONV, &["n", "w"], &["c"]) }
        .with("kernel_shape", vec![3i64, 3])
        .with("dilations", vec![1i64, 1])
        .with("pads", vec![0i64; 4]);
    let nodes = vec![
        Node::new("Neg", &["x"], &["n"]),
        conv,
        Node::new("Relu", &["c"], &["r"]),
        // What one stage made, another takes long after, and the caller as well.
        Node::new("ReduceMax", &["n"], &["m"]).with("keepdims", 1i64),
        Node::new("Add", &["r", "m"], &["y"]),
    ];
    let mut model = graph(&[2, 5, 4], &[("w", weight(1, &[3, 2, 3, 3]))], nodes);
    model.graph.inputs[0].shape = Some(["N", "C", "H", "W"].map(Dim::from).to_vec());
    model.graph.outputs.push(ValueInfo { name: "n".to_string(), dtype: DType::F32, shape: None });
    model
}

#[test]
fn kernels_run_between_parts_of_a_graph() {
    let model = with_a_kernel();
    let x = rows(2, 3, &[2, 5, 4]);
    // The same with ONNX's own convolution.
    let mut plain = model.clone();
    plain.graph.nodes[1].domain.clear();
    for engine in engines() {
        let inputs = [("x", (&x).into())];
        let found = engine.load(&model).unwrap().run(&inputs).unwrap();
        let expected = ort().map(|ort| ort.load(&plain).unwrap().run(&inputs).unwrap());
        let expected = expected.unwrap_or_else(|| engine.load(&plain).unwrap().run(&inputs).unwrap());
        assert_eq!(found[1], (-&x).into(), "{}", engine.name());
        for (found, expected) in found.iter().zip(&expected) {
            let (Tensor::F32(found), Tensor::F32(expected)) = (found, expected) else { panic!("no floats") };
            assert_eq!(found.shape(), expected.shape());
            let gap = (found - expected).mapv(f32::abs).into_iter().fold(0.0, f32::max);
            assert!(gap < 1e-5, "{}: {gap}", engine.name());
        }
    }
}

#[test]
fn a_kernel_whose_inputs_do_not_fit_is_named() {
    for engine in engines() {
        let x = rows(1, 1, &[2, 2, 4]);
        let message = message(engine.load(&with_a_kernel()).unwrap().run(&[("x", (&x).into())]));
        let start =
            format!("{} failed on inputs x: float32[1, 2, 2, 4]: at node 'c' (Conv), ", engine.name());
        assert!(message.starts_with(&start), "{message}");
        assert!(message.ends_with("do not fit: [1, 2, 2, 4], [3, 2, 3, 3]"), "{message}");
    }
}

#[test]
fn a_failing_node_is_named() {
    let model = graph(
        &[3],
        &[("w", weight(1, &[5]))],
        vec![Node::new("Neg", &["x"], &["n"]), Node::new("Add", &["n", "w"], &["y"])],
    );
    let mut model = model;
    model.graph.inputs[0].shape = None;
    for engine in engines() {
        let x = rows(1, 2, &[3]);
        let program = engine.load(&model);
        let message = match program {
            Ok(mut program) => message(program.run(&[("x", (&x).into())])),
            Err(error) => error.to_string(),
        };
        let start = format!("{} failed on inputs x: float32[2, 3]: at node 'y' (Add), ", engine.name());
        assert!(message.starts_with(&start), "{message}");
        assert!(message.contains("broadcast") && !message.contains(".h:"), "{message}");
    }
}

#[test]
fn engines_say_what_they_are() {
    let engines = engines();
    assert_eq!(engines[0].name(), "RTen");
    let plan = Plan { fused: true, weight_gradient: WeightGradient::Im2col, place_matters: false };
    assert_eq!([Weights::Constants, Weights::Inputs].map(|weights| engines[0].plan(weights)), [plan; 2]);
    if let Some(ort) = ort() {
        assert_eq!(ort.name(), "ONNX Runtime");
        assert!(ort.version().starts_with("1."), "{}", ort.version());
        let plan = Plan { place_matters: true, ..plan };
        assert_eq!(ort.plan(Weights::Constants), Plan { fused: false, ..plan });
        assert_eq!(ort.plan(Weights::Inputs), plan);
    }
}

#[test]
fn a_provider_that_is_not_there_is_refused() {
    if ort().is_none() {
        return;
    }
    // No library has both CoreML and DirectML.
    let refusals: Vec<_> = [Provider::CoreMl, Provider::DirectMl]
        .into_iter()
        .filter_map(|provider| {
            let config = EngineConfig { kind: EngineKind::Ort, provider, ..EngineConfig::default() };
            config.build().err().map(|e| e.to_string())
        })
        .collect();
    assert!(
        refusals[0].contains("this ONNX Runtime was built without it; available here: cpu"),
        "{refusals:?}"
    );
}

/// An engine whose programs panic.
#[derive(Debug)]
struct Panicking;

impl Engine for Panicking {
    fn name(&self) -> &'static str {
        "Panicking"
    }
    fn version(&self) -> &str {
        "0"
    }
    fn plan(&self, _weights: Weights) -> Plan {
        Plan { fused: false, weight_gradient: WeightGradient::Im2col, place_matters: false }
    }
    fn workers(&self) -> usize {
        2
    }
    fn load_many(&self, _: &Model, count: usize) -> Result<Vec<Box<dyn Program>>, Error> {
        Ok((0..count).map(|_| Box::new(PanickingProgram) as Box<dyn Program>).collect())
    }
}

struct PanickingProgram;

impl Program for PanickingProgram {
    fn run(&mut self, _: &[(&str, TensorView)]) -> Result<Vec<Tensor>, Error> {
        panic!("this panic is part of the test")
    }
}

#[test]
fn a_panic_in_an_engine_is_an_error() {
    let workers = Workers::new(&Panicking, &mlp(), 4).unwrap();
    let x = rows(1, 50, &[37]);
    for _ in 0..3 {
        assert_eq!(
            message(workers.map(&[("x", (&x).into())])),
            "Panicking failed on inputs x: float32[4, 37]: it panicked (this panic is part of the test)"
        );
    }
}
