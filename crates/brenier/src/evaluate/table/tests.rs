//! Parts, resuming, and tables that do not depend on how they were cut.

use ndarray::Array2;

use super::*;
use crate::attribute::{Settings, SmoothGrad};
use crate::evaluate::{EvaluationShard, MetricSettings};
use crate::problems::SineSum;
use crate::{FieldFn, VelocityField};

const EXAMPLES: usize = 2 * CHUNK + 3;

fn inputs() -> Array2<f64> {
    Array2::from_shape_fn((EXAMPLES, 4), |(i, j)| (1.3 * i as f64 + 0.7 * j as f64).sin() + 0.1)
}

fn methods(names: &[&str]) -> Vec<Method> {
    names.iter().map(|name| Method::new(name, &Settings::default()).unwrap()).collect()
}

fn metrics(names: &[&str]) -> Vec<Metric> {
    names.iter().map(|name| Metric::new(name, &MetricSettings::default()).unwrap()).collect()
}

struct World {
    score: SineSum,
    inputs: Array2<f64>,
    targets: Vec<usize>,
    flows: Vec<Box<dyn VelocityField>>,
}

impl World {
    fn new() -> World {
        // Two flows with closed form: x(t) = x(1) exp(r (t - 1)).
        let flow = |rate: f64| Box::new(FieldFn::new(&[4], move |x, _| rate * &x)) as Box<dyn VelocityField>;
        let (score, inputs) = (SineSum::new(4), inputs());
        World { score, inputs, targets: vec![0; EXAMPLES], flows: vec![flow(1.0), flow(2.0)] }
    }

    fn evaluation<'a>(&'a self, metrics: &'a [Metric], flows: usize) -> Evaluation<'a> {
        let flows = self.flows[..flows].iter().map(|flow| flow.as_ref()).collect();
        Evaluation {
            score: &self.score,
            inputs: self.inputs.view(),
            targets: &self.targets,
            context: Context { flows, ..Context::default() },
            truth: None,
            metrics,
            leave_out: false,
        }
    }
}

fn go_on(_: Done) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn cells_are_what_the_metrics_say_of_all_examples_at_once() {
    let world = World::new();
    let metrics = metrics(&["deletion-zero", "infidelity", "gps", "fce", "completeness-residual"]);
    let methods = methods(&["ig", "smoothgrad", "transport"]);
    let evaluation = world.evaluation(&metrics, 1);
    let table = evaluation.run(&methods, &Store::nowhere(), &[], &mut go_on).unwrap().unwrap();
    // A straight line is straight, the flow's own trace follows it, and both sum up.
    let mean = |row: usize, column: usize| table.rows[row].cells[column].summary().unwrap().mean;
    assert!((mean(0, 2) - 1.0).abs() < 1e-12 && (mean(2, 2) - 1.0).abs() < 1e-9);
    assert!(mean(2, 3) < 1e-3 && mean(0, 3) > 0.1 && mean(2, 4) < 1e-2, "{table:?}");
    let no_path = "the method has no path".to_string();
    assert_eq!(table.rows[1].cells[2], Cell::Absent(no_path));
    assert_eq!((table.rows[1].gradients, table.examples), (SmoothGrad::default().samples as f64, EXAMPLES));
    // Chunks change nothing: neither draws of the method nor of the metric.
    let explanations =
        methods[1].explain(&world.score, world.inputs.view(), &world.targets, &Context::default()).unwrap();
    let cases = Cases { meaning: methods[1].meaning(), ..Cases::of(&world.score, &explanations).unwrap() };
    for column in [0, 1] {
        let whole = Summary::of(&metrics[column].scores(&cases).unwrap()).unwrap();
        assert_eq!(table.rows[1].cells[column], Cell::Measured(whole));
    }
}

#[test]
fn a_run_that_is_cut_again_and_again_ends_with_the_same_table() {
    let world = World::new();
    let metrics = metrics(&["deletion-zero", "infidelity", "gps"]);
    let methods = methods(&["ig", "smoothgrad"]);
    let evaluation = world.evaluation(&metrics, 1);
    let whole = evaluation.run(&methods, &Store::nowhere(), &[], &mut go_on).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let mut made = 0;
    let mut table = None;
    for _ in 0..20 {
        table = evaluation
            .run(&methods, &store, &[], &mut |done| {
                made += usize::from(!done.kept);
                if done.kept { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
        if table.is_some() {
            break;
        }
    }
    assert_eq!(made, 3 * 2, "every part is made once");
    let text = |table: &Option<MetricTable>| serde_json::to_string(table).unwrap();
    assert_eq!(text(&table), text(&whole));
    // The same folder does not take another run's parts.
    let model = [("the model".to_string(), "another".to_string())];
    let refused = evaluation.run(&methods, &store, &model, &mut go_on).unwrap_err().to_string();
    assert!(refused.contains("the model was none, and now it is another"), "{refused}");
}

#[test]
fn stability_compares_flows_one_by_one() {
    let world = World::new();
    let metrics = metrics(&["rank-correlation", "deletion-zero"]);
    let evaluation = world.evaluation(&metrics, 2);
    let table = evaluation.run(&methods(&["transport", "ig"]), &Store::nowhere(), &[], &mut go_on);
    let table = table.unwrap().unwrap();
    // By hand: sin(x) - sin(x exp(-r)) for both rates.
    let credit = |rate: f64| world.inputs.mapv(|x| x.sin() - (x * (-rate).exp()).sin());
    let (one, two) = (credit(1.0), credit(2.0));
    let by_hand: Vec<Option<f64>> = (0..EXAMPLES)
        .map(|i| crate::evaluate::spearman(&one.row(i).to_vec(), &two.row(i).to_vec()))
        .collect();
    let (found, expected) = (table.rows[0].cells[0].summary().unwrap(), Summary::of(&by_hand).unwrap());
    assert!((found.mean - expected.mean).abs() < 1e-9, "{found:?} {expected:?}");
    assert!(table.rows[1].cells[0].summary().is_none());
}

#[test]
fn what_applies_to_no_method_is_left_out_where_nobody_asked_for_it() {
    let world = World::new();
    let metrics = metrics(&["gps", "deletion-zero", "mass-accuracy"]);
    let evaluation = Evaluation { leave_out: true, ..world.evaluation(&metrics, 0) };
    let table = evaluation.run(&methods(&["gradient", "smoothgrad"]), &Store::nowhere(), &[], &mut go_on);
    let table = table.unwrap().unwrap();
    let names: Vec<&str> = table.left_out.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["gps", "mass-accuracy"]);
    assert_eq!((table.metrics.len(), table.rows[0].cells.len()), (1, 1));
    assert_eq!(table.metrics[0].name, "deletion-zero");
    // A method beside itself is no better than itself.
    let twice = [methods(&["gradient"]), methods(&["gradient"])].concat();
    let table = evaluation.run(&twice, &Store::nowhere(), &[], &mut go_on).unwrap().unwrap();
    assert_eq!(table.metrics[0].lead.best(), None);
}

#[test]
fn what_cannot_be_measured_at_all_is_refused() {
    let world = World::new();
    let truth = metrics(&["mass-accuracy"]);
    let run = |metrics: &[Metric], methods: &[Method]| {
        let refused = world.evaluation(metrics, 1).run(methods, &Store::nowhere(), &[], &mut go_on);
        refused.unwrap_err().to_string()
    };
    let message = run(&truth, &methods(&["ig", "gradient"]));
    assert!(message.contains("mass-accuracy cannot be computed: there is no planted truth"), "{message}");
    assert_eq!(run(&truth, &[]), "the number of methods must be at least 1");
    assert_eq!(run(&[], &methods(&["ig"])), "the number of metrics must be at least 1");
}

#[test]
fn shards_in_any_order_make_the_table_of_one_run() {
    let world = World::new();
    let (metrics, methods) =
        (metrics(&["deletion-zero", "infidelity", "gps"]), methods(&["ig", "smoothgrad"]));
    let evaluation = world.evaluation(&metrics, 1);
    let whole = evaluation.run(&methods, &Store::nowhere(), &[], &mut go_on).unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let shard = |chunks: Range<usize>| {
        let found = evaluation.run_shard(&methods, chunks, &Store::nowhere(), &[], &mut go_on);
        found.unwrap().unwrap().save(folder.path()).unwrap();
        EvaluationShard::load(folder.path()).unwrap().unwrap()
    };
    assert_eq!(evaluation.chunks(), 3);
    for parts in [vec![2..3, 0..1, 1..2], vec![1..3, 0..2], vec![0..0, 0..3]] {
        let shards = parts.into_iter().map(&shard).collect();
        assert_eq!(EvaluationShard::merge(shards, folder.path()).unwrap(), whole);
    }
    let missing = EvaluationShard::merge(vec![shard(1..2)], folder.path()).unwrap_err().to_string();
    assert!(missing.contains("0 to 7, 16 to 18"), "{missing}");
    let other = world.evaluation(&metrics[..2], 1);
    let other = other.run_shard(&methods, 0..1, &Store::nowhere(), &[], &mut go_on).unwrap().unwrap();
    let told = EvaluationShard::merge(vec![shard(1..3), other], folder.path()).unwrap_err().to_string();
    assert!(told.contains("the list of metrics"), "{told}");
    let asked = evaluation.expect_shard(&shard(0..1), &methods[..1], &[], folder.path());
    assert!(asked.unwrap_err().to_string().contains("the list of methods"));
    assert!(EvaluationShard::merge(Vec::new(), folder.path()).is_err());
}
