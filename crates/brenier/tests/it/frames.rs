//! Pipelines of a data frame: an input for each column, and trees behind scalers and encoders.

use std::collections::BTreeMap;
use std::path::PathBuf;

use brenier::data::{Column, Dataset, OpenOptions};
use brenier::{OnnxPredictor, PredictorConfig, Score, ValuePredictor};
use ndarray::{Array2, ArrayD, Axis, Ix2, s};
use ndarray_npy::NpzReader;
use onnx_grad::{Attribute, Builder, CLASSICAL_DOMAIN, DType, Model, Node, TensorData, ValueInfo};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pipelines").join(name)
}

fn truth(name: &str) -> Array2<f64> {
    let mut npz = NpzReader::new(std::fs::File::open(fixture("tabular.npz")).unwrap()).unwrap();
    let found: ArrayD<f64> = npz.by_name(name).unwrap();
    found.into_dimensionality::<Ix2>().unwrap()
}

/// The pipeline and the rows of the table, as the model codes them.
fn loaded(name: &str, keep_final_activation: bool) -> (ValuePredictor, Vec<Column>, Array2<f64>) {
    let config = PredictorConfig { keep_final_activation, ..PredictorConfig::default() };
    let model = ValuePredictor::load(fixture(&format!("tabular_{name}.onnx")), &config).unwrap();
    let columns: Vec<Column> = serde_json::from_str(&model.metadata()["brenier.columns"]).unwrap();
    let options = OpenOptions { columns: columns.clone(), ..OpenOptions::default() };
    let data = Dataset::open(fixture("tabular.csv"), &options).unwrap();
    let rows = data.rows_f64(&(0..data.len()).collect::<Vec<_>>()).unwrap();
    (model, columns, rows)
}

fn scores(model: &ValuePredictor, rows: &Array2<f64>, target: usize) -> Vec<f64> {
    model.values(rows.view(), &vec![target; rows.nrows()]).unwrap().to_vec()
}

#[test]
fn pipelines_over_data_frames_give_the_scores_of_scikit_learn() {
    for name in ["boosted", "forest", "imputed", "lightgbm", "logistic"] {
        let truth = truth(name);
        let (model, columns, rows) = loaded(name, true);
        assert!(columns.iter().all(|column| column.name != "unused"), "{name}: {columns:?}");
        for target in 0..truth.ncols() {
            for (row, (found, expected)) in
                scores(&model, &rows, target).iter().zip(truth.column(target)).enumerate()
            {
                assert!((found - expected).abs() < 1e-5, "{name}, row {row}: {found} and {expected}");
            }
        }
    }
}

#[test]
fn trees_behind_steps_have_the_jumps_of_their_columns() {
    for name in ["boosted", "forest", "imputed", "lightgbm"] {
        let (model, columns, rows) = loaded(name, false);
        let trees = model.trees().unwrap();
        let target = model.outputs() - 1;
        let pairs = without_ties(&columns, &rows);
        assert!(pairs.len() > 3, "{name}");
        for &(from, to) in pairs.iter().take(3) {
            let ends = apart(&columns, rows.select(Axis(0), &[from, to]));
            let found = trees.path_credit(ends.view(), target).unwrap();
            let mut start = 0;
            let mut own = Vec::new();
            for column in &columns {
                own.push(found.slice(s![start..start + column.width()]).sum());
                start += column.width();
            }
            let expected = by_small_steps(&model, &columns, &ends, target);
            for ((column, own), expected) in columns.iter().zip(&own).zip(&expected) {
                assert!(
                    (own - expected).abs() < 1e-9,
                    "{name}, {from} to {to}, {}: {own} and {expected}",
                    column.name
                );
            }
        }
    }
}

/// Pairs of rows between which at most one category changes: those that change together share a jump, which small steps
/// cannot see.
fn without_ties(columns: &[Column], rows: &Array2<f64>) -> Vec<(usize, usize)> {
    let fits = |from: usize, to: usize| {
        let (mut start, mut changed) = (0, 0);
        for column in columns {
            let range = start..start + column.width();
            start = range.end;
            let (a, b) = (rows.slice(s![from, range.clone()]), rows.slice(s![to, range]));
            changed += usize::from(column.width() > 1 && a != b);
        }
        changed < 2
    };
    let all = (0..rows.nrows()).flat_map(|from| (from + 1..rows.nrows()).map(move |to| (from, to)));
    all.filter(|&(from, to)| fits(from, to)).collect()
}

/// The same rows with odd numbers, so that no threshold lies half way, where categories change.
fn apart(columns: &[Column], mut ends: Array2<f64>) -> Array2<f64> {
    let mut start = 0;
    for (place, column) in columns.iter().enumerate() {
        if column.width() == 1 {
            ends[[1, start]] += 0.012_345_6 + 0.001 * place as f64;
        }
        start += column.width();
    }
    ends
}

/// The credit of each column, by going from one end to the other in small steps, a column at a time: scores are all that it
/// asks for. A category changes half way.
fn by_small_steps(model: &ValuePredictor, columns: &[Column], ends: &Array2<f64>, target: usize) -> Vec<f64> {
    const STEPS: usize = 20_000;
    let mut rows = vec![ends.row(0).to_owned()];
    for step in 1..=STEPS {
        let t = step as f64 / STEPS as f64;
        let mut start = 0;
        for column in columns {
            let mut row = rows.last().unwrap().clone();
            let range = start..start + column.width();
            start = range.end;
            for feature in range {
                let (a, b) = (ends[[0, feature]], ends[[1, feature]]);
                row[feature] = if column.width() > 1 { if t > 0.5 { b } else { a } } else { a + t * (b - a) };
            }
            rows.push(row);
        }
    }
    let views: Vec<_> = rows.iter().map(|row| row.view()).collect();
    let all = ndarray::stack(Axis(0), &views).unwrap();
    let scores = scores(model, &all, target);
    let jump = |column: usize| {
        (0..STEPS).map(|step| step * columns.len() + column).map(|i| scores[i + 1] - scores[i]).sum()
    };
    (0..columns.len()).map(jump).collect()
}

#[test]
fn shapley_values_behind_steps_are_of_whole_columns_and_sum_to_the_change() {
    let (model, columns, rows) = loaded("boosted", false);
    let (x, background) = (rows.slice(s![..4, ..]), rows.slice(s![4.., ..]));
    let (found, means) = model.trees().unwrap().shapley_values(x, Some(background), &[1; 4]).unwrap();
    let scores = scores(&model, &x.to_owned(), 1);
    let width = columns.iter().map(Column::width).sum::<usize>();
    assert_eq!(found.dim(), (4, width));
    for ((row, score), mean) in found.rows().into_iter().zip(&scores).zip(&means) {
        assert!((row.sum() - (score - mean)).abs() < 1e-9, "{row} {score} {mean}");
    }
    // The credit of a category lies on the level that the row has.
    let job = 3..6;
    for (credit, row) in found.rows().into_iter().zip(x.rows()) {
        for feature in job.clone() {
            assert!(row[feature] > 0.0 || credit[feature] == 0.0, "{credit} {row}");
        }
    }
}

#[test]
fn a_logistic_regression_over_a_frame_has_gradients_on_both_engines_of_numbers() {
    let model = OnnxPredictor::load(fixture("tabular_logistic.onnx"), &PredictorConfig::default()).unwrap();
    assert!(model.notices().iter().any(|notice| notice.what.contains("float32")), "{:?}", model.notices());
    let (_, _, rows) = loaded("logistic", false);
    let (values, gradients) = model.gradients(rows.view(), &vec![1; rows.nrows()]).unwrap();
    let slope = gradients.row(0).to_owned();
    // Linear: the same slope everywhere, and differences of scores are products with it.
    for (i, row) in rows.rows().into_iter().enumerate() {
        let change = (&row - &rows.row(0)).dot(&slope);
        assert!((values[i] - values[0] - change).abs() < 1e-4, "{i}");
    }
}

#[test]
fn steps_that_mix_columns_are_named() {
    let error =
        ValuePredictor::load(fixture("tabular_mixing.onnx"), &PredictorConfig::default()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("'hours' and 'gain' together"), "{message}");
}

/// `max(0, -2 (x0 - 1))` and `x1` unchanged, before one tree with strict and falling questions.
fn falling(op: &str) -> Model {
    let mut b = Builder::new("falling");
    let x = b.input("x", DType::F32, &["N".into(), 2usize.into()]);
    let shift = b.constant(TensorData::f32(&[2], &[1.0, 0.0]));
    let scale = b.constant(TensorData::f32(&[2], &[-2.0, 1.0]));
    let moved = b.sub(&x, &shift);
    let scaled = b.mul(&moved, &scale);
    let shaped = b.op(op, &[&scaled]);
    b.output("seen", &shaped);
    let mut graph = b.finish().unwrap();
    let ints = |values: &[i64]| Attribute::Ints(values.to_vec());
    let floats = |values: &[f32]| Attribute::Floats(values.to_vec());
    let mut tree = Node::new("TreeEnsembleRegressor", &["seen"], &["y"]);
    tree.domain = CLASSICAL_DOMAIN.to_string();
    tree.attributes = BTreeMap::from([
        ("nodes_treeids".to_string(), ints(&[0, 0, 0, 0, 0])),
        ("nodes_nodeids".to_string(), ints(&[0, 1, 2, 3, 4])),
        ("nodes_featureids".to_string(), ints(&[0, 0, 1, 0, 0])),
        ("nodes_values".to_string(), floats(&[3.0, 0.0, 0.5, 0.0, 0.0])),
        (
            "nodes_modes".to_string(),
            Attribute::Strings(
                ["BRANCH_LT", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"].map(str::to_string).to_vec(),
            ),
        ),
        ("nodes_truenodeids".to_string(), ints(&[1, 0, 3, 0, 0])),
        ("nodes_falsenodeids".to_string(), ints(&[2, 0, 4, 0, 0])),
        ("target_treeids".to_string(), ints(&[0, 0, 0])),
        ("target_nodeids".to_string(), ints(&[1, 3, 4])),
        ("target_ids".to_string(), ints(&[0, 0, 0])),
        ("target_weights".to_string(), floats(&[1.0, 10.0, 100.0])),
        ("n_targets".to_string(), Attribute::Int(1)),
    ]);
    graph.nodes.push(tree);
    graph.outputs = vec![ValueInfo::new("y", DType::F32, &["N".into(), onnx_grad::Dim::Known(1)])];
    Model { graph, ir_version: 8, opset: 18, ..Model::default() }
}

#[test]
fn a_step_that_falls_turns_the_question_round_to_the_last_bit() {
    let model = ValuePredictor::from_bytes(&falling("Relu").to_bytes(), &PredictorConfig::default()).unwrap();
    // -2 (x0 - 1) < 3 is x0 > -0.5. Just below -0.5, the sum with -1 rounds up to -1.5 in 32 bits: the graph says 3 there.
    let near = f64::from((-0.5_f32).next_up());
    let exact = |x: f64| -2.0 * (f64::from(x as f32 - 1.0_f32)) < 3.0;
    for (x0, x1) in [(-0.5, 0.0), (near, 0.0), (-0.5 + 1e-6, 0.0), (-0.6, 0.5), (-0.6, 0.50001), (7.0, 9.0)] {
        let expected = if exact(x0) {
            1.0
        } else if x1 <= 0.5 {
            10.0
        } else {
            100.0
        };
        let found = model.values(ndarray::array![[x0, x1]].view(), &[0]).unwrap()[0];
        assert_eq!(found, expected, "{x0} {x1}");
    }
}

#[test]
fn a_step_that_turns_back_is_refused() {
    let file = falling("Abs").to_bytes();
    let message = ValuePredictor::from_bytes(&file, &PredictorConfig::default()).unwrap_err().to_string();
    assert!(message.contains("column 0 neither rises nor falls"), "{message}");
}
