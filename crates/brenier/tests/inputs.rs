//! Models with several inputs, with held ones, and explained inside, against Captum (`fixtures/inputs/generate.py`).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use brenier::attribute::{Absence, Baseline, Context, Method, Settings};
use brenier::engine::{EngineConfig, EngineKind};
use brenier::{Error, NamedInputs, OnnxPredictor, Packing, PredictorConfig, Rule, Score, ValuePredictor};
use ndarray::{Array2, ArrayD, IxDyn, OwnedRepr};
use ndarray_npy::NpzReader;
use onnx_grad::Model;

type Arrays = BTreeMap<String, ArrayD<f64>>;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/inputs")).join(name)
}

fn arrays(name: &str) -> Arrays {
    let mut file = NpzReader::new(File::open(fixture(name)).unwrap()).unwrap();
    let names = file.names().unwrap();
    let read = |name: String| {
        let floats = file.by_name::<OwnedRepr<f32>, IxDyn>(&name).map(|array| array.mapv(f64::from));
        let found = floats
            .unwrap_or_else(|_| file.by_name::<OwnedRepr<i64>, IxDyn>(&name).unwrap().mapv(|v| v as f64));
        (name, found)
    };
    names.into_iter().map(read).collect()
}

fn engines() -> Vec<EngineConfig> {
    let all =
        [EngineKind::Rten, EngineKind::Ort].map(|kind| EngineConfig { kind, ..EngineConfig::default() });
    all.into_iter().filter(|engine| engine.build().is_ok()).collect()
}

/// Credit by input of both exports on every engine, along the line from zero or from `from`.
fn credit(name: &str, inputs: &Arrays, from: Option<&Arrays>, packing: &Packing) -> Vec<Arrays> {
    let mut found = Vec::new();
    for exporter in ["dynamo", "script"] {
        for engine in engines() {
            let model = Model::load(fixture(&format!("{name}-{exporter}.onnx"))).unwrap();
            let packing = packing.clone().sized_by(&model.graph, inputs);
            let config = PredictorConfig { engine, packing: Some(packing), ..PredictorConfig::default() };
            let named = NamedInputs::new(&model, &config).unwrap();
            let predictor = OnnxPredictor::new(&model, &config).unwrap();
            let rows = named.rows(inputs).unwrap();
            let baselines = from.map(|from| named.rows(from).unwrap());
            let rule = Some(Rule::GaussLegendre { nodes: 200 });
            let baseline = from.map(|_| Baseline::Given);
            let settings = Settings { rule, baseline, ..Settings::default() };
            let context = Context { baselines: baselines.as_ref().map(|b| b.view()), ..Context::default() };
            let method = Method::new("ig", &settings).unwrap();
            let targets = vec![1; rows.nrows()];
            let all = method.explain(&predictor, rows.view(), &targets, &context).unwrap();
            for one in &all {
                let sum = one.certificate.completeness.unwrap();
                assert!(sum.residual.abs() < 1e-4, "{name} {exporter}: {sum:?}");
            }
            let flat: Vec<f64> = all.iter().flat_map(|e| e.values.to_vec()).collect();
            let values = Array2::from_shape_vec((all.len(), rows.ncols()), flat).unwrap();
            found.push(predictor.inputs().unwrap().by_input(values.view()));
        }
    }
    assert!(found.len() >= 2);
    found
}

#[track_caller]
fn expect_close(found: &ArrayD<f64>, expected: &ArrayD<f64>) {
    assert_eq!(found.shape(), expected.shape());
    let most = expected.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let off = found.iter().zip(expected).fold(0.0_f64, |off, (a, b)| off.max((a - b).abs()));
    assert!(off < 1e-4 * most, "{off:e} of {most}");
}

#[test]
fn two_inputs_move_at_once_as_in_captum() {
    let (inputs, expected) = (arrays("two_inputs.npz"), arrays("two_inputs.expected.npz"));
    for found in credit("two_inputs", &inputs, None, &Packing::default()) {
        expect_close(&found["image"], &expected["image"]);
        expect_close(&found["table"], &expected["table"]);
    }
}

#[test]
fn a_held_input_gets_no_credit_and_stays_where_it_is() {
    let (inputs, expected) = (arrays("two_inputs.npz"), arrays("two_inputs.expected.npz"));
    for packing in [
        Packing { hold: vec!["table".into()], ..Packing::default() },
        Packing { explain: Some(vec!["image".into()]), ..Packing::default() },
    ] {
        for found in credit("two_inputs", &inputs, None, &packing) {
            expect_close(&found["image"], &expected["image_alone"]);
            assert!(!found.contains_key("table"));
        }
    }
    let (inputs, expected) = (arrays("masked.npz"), arrays("masked.expected.npz"));
    for found in credit("masked", &inputs, None, &Packing::default()) {
        expect_close(&found["x"], &expected["x"]);
    }
}

#[test]
fn ids_are_explained_at_their_embedding() {
    let (inputs, expected) = (arrays("tokens.npz"), arrays("tokens.expected.npz"));
    let mut padding = inputs.clone();
    padding.get_mut("ids").unwrap().fill(0.0);
    for packing in [Packing::default(), Packing { explain: Some(vec!["ids".into()]), ..Packing::default() }] {
        for found in credit("tokens", &inputs, Some(&padding), &packing) {
            let vectors = found.iter().find(|(name, _)| *name != "ids").unwrap().1;
            expect_close(vectors, &expected["from_token_0"]);
            expect_close(&found["ids"], &expected["from_token_0"].sum_axis(ndarray::Axis(2)));
        }
    }
}

#[test]
fn every_method_leaves_held_inputs_alone() {
    let inputs = arrays("two_inputs.npz");
    let model = Model::load(fixture("two_inputs-script.onnx")).unwrap();
    let packing =
        Packing { hold: vec!["table".into()], ..Packing::default() }.sized_by(&model.graph, &inputs);
    let config = PredictorConfig { packing: Some(packing), ..PredictorConfig::default() };
    let rows = NamedInputs::new(&model, &config).unwrap().rows(&inputs).unwrap();
    let predictor = OnnxPredictor::new(&model, &config).unwrap();
    let values = ValuePredictor::new(&model, &config).unwrap();
    let context = Context { model: Some(&predictor), ..Context::default() };
    for name in [
        "ig",
        "gradient",
        "smoothgrad",
        "occlusion",
        "kernel-shap",
        "shapley-values",
        "lime",
        "blur-ig",
        "rise",
    ] {
        let Ok(method) = name.parse::<Method>() else { panic!("{name}") };
        let score: &dyn Score = if method.needs_gradients() { &predictor } else { &values };
        let found = method.explain(score, rows.view(), &[0, 1, 0], &context);
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        for (i, one) in found.iter().enumerate() {
            assert_eq!(one.shape, [19]);
            assert!(one.values.iter().skip(16).all(|v| *v == 0.0), "{name}: {}", one.values);
            // LIME's penalty may leave nothing of scores this small.
            assert!(name == "lime" || one.values.iter().any(|v| *v != 0.0), "{name}");
            assert_eq!(one.input, rows.row(i), "{name}");
            assert_eq!(one.certificate.target, [0, 1, 0][i]);
            assert_eq!(one.certificate.example, i);
        }
    }
    let refused =
        "grad-cam".parse::<Method>().unwrap().explain(&predictor, rows.view(), &[0, 1, 0], &context);
    assert!(refused.unwrap_err().to_string().contains("an input is held or"));
}

/// Without gradients, what is hidden is a token: its credit is what the score loses when its vector is that of token 0.
#[test]
fn methods_without_gradients_hide_tokens() {
    let inputs = arrays("tokens.npz");
    let model = Model::load(fixture("tokens-script.onnx")).unwrap();
    let packing = Packing::default().sized_by(&model.graph, &inputs);
    let config = PredictorConfig { packing: Some(packing), ..PredictorConfig::default() };
    let named = NamedInputs::new(&model, &config).unwrap();
    let mut padding = inputs.clone();
    padding.get_mut("ids").unwrap().fill(0.0);
    let (rows, references) = (named.rows(&inputs).unwrap(), named.rows(&padding).unwrap());
    let predictor = OnnxPredictor::new(&model, &config).unwrap();
    let context = Context { baselines: Some(references.view()), ..Context::default() };
    let settings = Settings { absence: Some(Absence::Baseline(Baseline::Given)), ..Settings::default() };
    let score = predictor.values(rows.view(), &[1, 1]).unwrap();
    let reference = predictor.values(references.view(), &[1, 1]).unwrap();
    for name in ["occlusion", "shapley-values", "kernel-shap"] {
        let method = Method::new(name, &settings).unwrap();
        let all = method.explain(&predictor, rows.view(), &[1, 1], &context).unwrap();
        for (i, one) in all.iter().enumerate() {
            let credit = one.values.to_owned().insert_axis(ndarray::Axis(0));
            let tokens = predictor.inputs().unwrap().by_input(credit.view())["ids"].clone();
            if name == "occlusion" {
                for token in 0..5 {
                    let mut without = inputs.clone();
                    without.get_mut("ids").unwrap()[[i, token]] = 0.0;
                    let lower = predictor.values(named.rows(&without).unwrap().view(), &[1, 1]).unwrap()[i];
                    assert!((tokens[[0, token]] - (score[i] - lower)).abs() < 1e-6, "{tokens}");
                }
            } else {
                assert!((tokens.sum() - (score[i] - reference[i])).abs() < 1e-5, "{name}: {tokens}");
            }
        }
    }
}

#[test]
fn an_inner_value_is_explained_by_its_name() {
    // Behind the last hidden value the model is linear, so credit there is value times weight.
    let inputs = arrays("two_inputs.npz");
    let model = Model::load(fixture("two_inputs-script.onnx")).unwrap();
    let last = model.graph.nodes.iter().rev().find(|node| node.is("Mul")).unwrap();
    let (node, value) = (last.name.clone(), last.outputs[0].clone());
    let found = credit_at(&inputs, &model, &node);
    let again = credit_at(&inputs, &model, &value);
    assert_eq!(found, again, "a node's name or its output's");
    let gemm = model.graph.nodes.iter().rev().find(|node| node.is("Gemm")).unwrap();
    let weights = model.graph.initializers[&gemm.inputs[1]].to_f32();
    let hidden = found["hidden"].clone();
    for (row, credit) in hidden.outer_iter().zip(found["credit"].outer_iter()) {
        for (j, (h, c)) in row.iter().zip(credit.iter()).enumerate() {
            assert!((c - h * f64::from(weights[5 + j])).abs() < 1e-6, "{c} {h}");
        }
    }
}

fn credit_at(inputs: &Arrays, model: &Model, at: &str) -> Arrays {
    let packing = Packing { at: vec![at.to_string()], ..Packing::default() }.sized_by(&model.graph, inputs);
    let config = PredictorConfig { packing: Some(packing), ..PredictorConfig::default() };
    let rows = NamedInputs::new(model, &config).unwrap().rows(inputs).unwrap();
    let predictor = OnnxPredictor::new(model, &config).unwrap();
    let method: Method = "ig".parse().unwrap();
    let all = method.explain(&predictor, rows.view(), &[1, 1, 1], &Context::default()).unwrap();
    let flat: Vec<f64> = all.iter().flat_map(|e| e.values.to_vec()).collect();
    let credit = Array2::from_shape_vec((3, 5), flat).unwrap();
    BTreeMap::from([("credit".to_string(), credit.into_dyn()), ("hidden".to_string(), rows.into_dyn())])
}

#[test]
fn what_does_not_fit_is_named() {
    let inputs = arrays("tokens.npz");
    let model = Model::load(fixture("tokens-script.onnx")).unwrap();
    let refusal = |inputs: &Arrays, packing: Packing| -> String {
        let packing = packing.sized_by(&model.graph, inputs);
        let config = PredictorConfig { packing: Some(packing), ..PredictorConfig::default() };
        let found = NamedInputs::new(&model, &config).and_then(|named| named.rows(inputs));
        match found {
            Err(error @ Error::Inputs { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let with = |name: &str, change: &dyn Fn(&mut ArrayD<f64>)| {
        let mut changed = inputs.clone();
        change(changed.get_mut(name).unwrap());
        refusal(&changed, Packing::default())
    };
    let without = |name: &str| {
        let mut fewer = inputs.clone();
        fewer.remove(name);
        refusal(&fewer, Packing::default())
    };
    assert!(
        with("ids", &|ids| ids[[1, 2]] = 11.0).contains("example 1 of input 'ids' has 11, but its table has")
    );
    assert!(with("ids", &|ids| ids[[0, 0]] = 0.5).contains("no integer"));
    assert!(with("ids", &|ids| ids[[0, 0]] = f64::NAN).contains("example 0 of input 'ids' has NaN"));
    assert!(
        with("mask", &|mask| *mask = mask.slice(ndarray::s![..1, ..]).to_owned().into_dyn())
            .contains("examples")
    );
    assert!(with("mask", &|mask| *mask = ArrayD::ones(IxDyn(&[2, 9]))).contains("[5]"));
    assert!(without("mask").contains("'mask'"));
    let mut more = inputs.clone();
    more.insert("other".into(), ArrayD::zeros(IxDyn(&[2, 1])));
    assert!(refusal(&more, Packing::default()).contains("no input 'other'; it has ids, mask"));
    assert!(refusal(&inputs, Packing { hold: vec!["ids".into()], ..Packing::default() }).contains("explain"));
    assert!(
        refusal(&inputs, Packing { explain: Some(vec!["mask".into()]), ..Packing::default() })
            .contains("no table")
    );
    assert!(
        refusal(&inputs, Packing { at: vec!["nothing".into()], ..Packing::default() })
            .contains("no inner value")
    );
    let both = Packing { explain: Some(vec!["ids".into()]), hold: vec!["ids".into()], ..Packing::default() };
    assert!(refusal(&inputs, both).contains("explained and held"));
}
