//! Faults of the sum: rules that are too coarse, models with jumps that no gradient sees, models that say nothing, and too
//! few draws. Explained along the traces of sound inputs, or from black where the method has no path.

use brenier::attribute::{Context, Grouping, Method, Settings};
use brenier::{
    Explanation, OnnxPredictor, PathIntegral, PredictorConfig, Rule, Score, Trace, TraceConfig, Verdict,
    trace,
};
use ndarray::Axis;
use onnx_grad::{Model, Node, TensorData};

use super::bench::Bench;

/// The class that the model takes each input for.
fn predicted(model: &OnnxPredictor, bench: &Bench) -> Vec<usize> {
    let all: Vec<Vec<f64>> = (0..model.outputs())
        .map(|class| model.values(bench.inputs.view(), &vec![class; bench.inputs.nrows()]).unwrap().to_vec())
        .collect();
    let best = |row: usize| (0..all.len()).max_by(|&a, &b| all[a][row].total_cmp(&all[b][row])).unwrap();
    (0..bench.inputs.nrows()).map(best).collect()
}

fn passed(explanations: &[Explanation]) -> usize {
    explanations.iter().filter(|one| one.certificate.verdict == Verdict::Pass).count()
}

pub(crate) fn faults(bench: &Bench, classifier: &Model) {
    let config = TraceConfig { consistency_steps: 0, ..TraceConfig::default() };
    let field = bench.sound();
    let traces: Vec<Trace> = bench
        .inputs
        .axis_chunks_iter(Axis(0), 20)
        .flat_map(|part| trace(&field, part, &config).unwrap())
        .collect();
    let count = bench.inputs.nrows();
    let sound = OnnxPredictor::new(classifier, &PredictorConfig::default()).unwrap();
    let targets = &predicted(&sound, bench);
    let along = |model: &Model, rule: Rule| match OnnxPredictor::new(model, &PredictorConfig::default()) {
        Ok(predictor) => {
            PathIntegral::new(rule).explain_batch(&predictor, &traces, targets).map_or(0, |all| passed(&all))
        }
        Err(error) => panic!("{error}"),
    };
    let adaptive = Rule::adaptive(1e-3);
    let fixed = Rule::Midpoint { steps: 50 };
    bench.tell_passed("nothing, with its classifier: the whole verdict", along(classifier, adaptive), count);
    bench.tell_passed("left rule with 3 steps", along(classifier, Rule::Left { steps: 3 }), count);
    let floor = before(classifier, "Floor", 8.0);
    bench.tell_passed("Floor inside the model, 50 fixed steps", along(&floor, fixed), count);
    bench.tell_passed("Floor inside the model, to a tolerance", along(&floor, adaptive), count);
    let sign = before(classifier, "Sign", 1.0);
    bench.tell_passed("Sign inside the model, 50 fixed steps", along(&sign, fixed), count);
    bench.tell_passed("constant model", along(&constant(classifier), adaptive), count);
    let predictor = sound;
    let groups = Some(Grouping::Patches { height: 4, width: 4 });
    let settings = Settings { samples: Some(82), groups, ..Settings::default() };
    let context = Context { model: Some(&predictor), ..Context::default() };
    let method = Method::new("kernel-shap", &settings).unwrap();
    let found = method.explain(&predictor, bench.inputs.view(), targets, &context);
    bench.tell_passed("KernelSHAP of patches with 82 samples", found.map_or(0, |all| passed(&all)), count);
}

/// Half of the input goes through the operator first: `x / 2 + op(c (x - 1/2)) / (2 c)`.
fn before(model: &Model, op: &str, scale: f32) -> Model {
    let mut model = model.clone();
    let graph = &mut model.graph;
    let name = graph.inputs[0].name.clone();
    graph.inputs[0].name = "raw".into();
    let constants = [("c.half", 0.5), ("c.scale", scale), ("c.back", 0.5 / scale)];
    graph.initializers.extend(constants.map(|(name, v)| (name.to_string(), TensorData::f32(&[1], &[v]))));
    let nodes = [
        Node::new("Mul", &["raw", "c.half"], &["c.kept"]),
        Node::new("Sub", &["raw", "c.half"], &["c.moved"]),
        Node::new("Mul", &["c.moved", "c.scale"], &["c.wide"]),
        Node::new(op, &["c.wide"], &["c.jumps"]),
        Node::new("Mul", &["c.jumps", "c.back"], &["c.narrow"]),
        Node::new("Add", &["c.kept", "c.narrow"], &[&name]),
    ];
    graph.nodes.splice(0..0, nodes);
    model
}

/// The same score for everything.
fn constant(model: &Model) -> Model {
    let mut model = model.clone();
    let graph = &mut model.graph;
    let name = graph.outputs[0].name.clone();
    graph.outputs[0].name = "said".into();
    graph.initializers.insert("c.zero".into(), TensorData::f32(&[1], &[0.0]));
    graph.nodes.push(Node::new("Mul", &[&name, "c.zero"], &["said"]));
    model
}
