use std::cell::Cell;

use onnx_grad::{Builder, GradOptions, Node, TensorData, grad_with};

use super::*;
use crate::engine::{Plan, Program, Rten, Weights};
use crate::error::{EngineError, Remedy};

/// RTen with a bug: a node that it takes for another.
#[derive(Debug)]
struct Mistaken {
    rten: Rten,
    from: &'static str,
    to: &'static str,
    /// Whether nodes whose values are outputs are computed as they should: as where an engine fuses them wrongly.
    unless_shown: bool,
}

impl Engine for Mistaken {
    fn name(&self) -> &'static str {
        self.rten.name()
    }

    fn version(&self) -> &str {
        self.rten.version()
    }

    fn plan(&self, weights: Weights) -> Plan {
        self.rten.plan(weights)
    }

    fn workers(&self) -> usize {
        1
    }

    fn load_many(&self, model: &Model, count: usize) -> Result<Vec<Box<dyn Program>>> {
        let mut model = model.clone();
        let outputs: Vec<String> = model.graph.outputs.iter().map(|o| o.name.clone()).collect();
        let shown = |node: &Node| node.wanted_outputs().all(|name| outputs.iter().any(|o| o == name));
        for node in model.graph.nodes.iter_mut().filter(|node| node.is(self.from)) {
            if !(self.unless_shown && shown(node)) {
                node.op = self.to.to_string();
            }
        }
        self.rten.load_many(&model, count)
    }
}

/// `softsign(W x) -> elu -> sum`, with the gradient.
fn model(op: &str) -> Model {
    let mut b = Builder::new("net");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), 6usize.into()]);
    let weights: Vec<f32> = (0..48).map(|i| ((i * 7) % 11) as f32 / 5.0 - 1.0).collect();
    let w = b.constant(TensorData::f32(&[6, 8], &weights));
    let h = b.matmul(&x, &w);
    b.push(Node::new("Softsign", &[&h], &["bent"]));
    b.push(Node::new(op, &["bent"], &["odd"]));
    let y = b.reduce_sum("odd", &[1], true);
    b.output("y", &y);
    let graph = b.finish().unwrap();
    let graph = grad_with(&graph, &["y"], &["x"], GradOptions::default()).unwrap();
    Model { graph, ir_version: 8, opset: 18, ..Model::default() }
}

fn ask(engine: &dyn Engine, model: &Model) -> Result<Verdict> {
    let program = std::sync::Mutex::new(engine.load(model)?);
    let run = |inputs: &[(&str, TensorView)]| program.lock().unwrap().run(inputs);
    Check { engine, model, run: &run }.compare()
}

#[test]
fn a_right_engine_agrees_in_every_kind_of_node() {
    let verdict = ask(&Rten::new(1), &model("Elu")).unwrap();
    assert!(verdict.agree >= 6, "{verdict:?}");
    assert_eq!(verdict.left_out, [""; 0]);
    assert_eq!(verdict.notice("RTen"), None);
}

#[test]
fn the_node_that_differs_is_named_with_both_numbers() {
    let engine = Mistaken { rten: Rten::new(1), from: "Elu", to: "Relu", unless_shown: false };
    let error = ask(&engine, &model("Elu")).unwrap_err();
    let Error::Engine(EngineError::Disagrees(seen)) = &error else { panic!("{error}") };
    assert_eq!((seen.node.as_str(), seen.value.as_str()), ("'odd' (Elu)", "odd"));
    assert_eq!(seen.found, 0.0);
    assert!(seen.expected < 0.0);
    assert!(
        error
            .to_string()
            .starts_with("RTen 0.27.0 computes node 'odd' (Elu) wrongly: its value 'odd' has 0 where")
    );
    assert_eq!(error.remedy(), Some(Remedy::OnnxRuntime));
}

#[test]
fn what_is_wrong_only_in_the_whole_graph_is_found_too() {
    let engine = Mistaken { rten: Rten::new(1), from: "Softsign", to: "Tanh", unless_shown: true };
    let error = ask(&engine, &model("Elu")).unwrap_err();
    let Error::Engine(EngineError::Disagrees(seen)) = &error else { panic!("{error}") };
    assert!((seen.found - seen.expected).abs() > 1e-3, "{error}");
}

#[test]
fn an_operator_that_the_reference_does_not_know_is_told() {
    let mut model = model("Elu");
    let noise = Node::new("NoSuchOperator", &["x"], &["other"]);
    model.graph.nodes.push(noise);
    let kinds = Kind::all(&model.graph, BYTES).unwrap();
    let kind = kinds.iter().find(|kind| kind.node.op == "NoSuchOperator").unwrap();
    let values = Values::from([("x".to_string(), onnx_grad::eval::Array::scalar(DType::F32, 1.0))]);
    let Held::NotKnown(why) = hold(kind, &model.graph, &values) else { panic!() };
    assert!(why.contains("the reference evaluator does not know the operator"), "{why}");
    let verdict = Verdict { agree: 3, left_out: vec![format!("{} {why}", kind.label())] };
    let notice = verdict.notice("RTen").unwrap();
    assert!(
        notice.starts_with(
            "1 of 4 kinds of operators were not checked against the reference evaluator on RTen: "
        )
    );
}

#[test]
fn a_verdict_is_asked_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, model) = (Rten::new(1), model("Elu"));
    let asked = Cell::new(0);
    let run = |_: &[(&str, TensorView)]| -> Result<Vec<Tensor>> { unreachable!("nothing is compared") };
    let place = || cache::Place::within(Some(folder.path()), &engine, &model, "test");
    assert_eq!(place().read(), None);
    let verdict = Verdict { agree: 7, left_out: vec!["one".to_string()] };
    place().write(&verdict);
    let again = kept_or(place(), || {
        asked.set(asked.get() + 1);
        Check { engine: &engine, model: &model, run: &run }.compare()
    });
    assert_eq!((again.unwrap(), asked.get()), (verdict, 0));
    // Another weight is another model.
    let mut other = model.clone();
    let (name, weights) = other.graph.initializers.iter().find(|(_, w)| w.len() == 48).unwrap();
    let (name, mut values) = (name.clone(), weights.to_f32());
    values[0] += 1.0;
    other.graph.initializers.insert(name, TensorData::f32(&[6, 8], &values));
    assert_eq!(cache::Place::within(Some(folder.path()), &engine, &other, "test").read(), None);
    assert_eq!(cache::Place::within(Some(folder.path()), &engine, &model, "another").read(), None);
}

#[test]
fn no_place_for_the_cache_is_no_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let place = cache::Place::within(Some(file.path()), &Rten::new(1), &model("Elu"), "test");
    place.write(&Verdict::default());
    assert_eq!(place.read(), None);
}
