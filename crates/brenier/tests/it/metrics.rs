//! Metrics against scikit-image, SciPy and NumPy (`fixtures/metrics`), and on a real network.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path as FilePath, PathBuf};

use brenier::attribute::{Baseline, Context, Grouping, Meaning, Method, Slic};
use brenier::engine::EngineConfig;
use brenier::evaluate::{
    Cases, Channels, Direction, EdgeAlignment, ImageEdges, Metric, ModelRandomisation, Order, Removal, Satv,
    Spread, Subsets, Units, explain_with, spearman, structural_similarity, weight_layers,
};
use brenier::problems::LinearScore;
use brenier::{FieldFn, Line, OnnxPredictor, Path, PredictorConfig, Score, ValueFn};
use ndarray::{Array1, Array2, ArrayD, ArrayView1, Axis, Ix3, array, s};
use ndarray_npy::NpzReader;

use crate::shared::{Counting, normal};

pub(crate) const SHAPE: [usize; 3] = [3, 8, 8];

fn fixture(name: &str) -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn truth() -> BTreeMap<String, ArrayD<f64>> {
    let mut npz = NpzReader::new(File::open(fixture("metrics/metrics.npz")).unwrap()).unwrap();
    let names = npz.names().unwrap();
    let mut read = |name: &String| npz.by_name::<ndarray::OwnedRepr<f64>, ndarray::IxDyn>(name).unwrap();
    names.iter().map(|name| (name.trim_end_matches(".npy").to_string(), read(name))).collect()
}

fn rows(array: &ArrayD<f64>) -> Array2<f64> {
    let count = array.shape()[0];
    array.to_shape((count, array.len() / count)).unwrap().into_owned()
}

/// The score of the fixtures: a sum of tanh on images.
fn tanh_sum(truth: &BTreeMap<String, ArrayD<f64>>) -> impl Score + use<> {
    let (amplitudes, directions) = (truth["amplitudes"].clone(), rows(&truth["directions"]));
    ValueFn::new(&SHAPE, move |x: ArrayView1<f64>, _| {
        directions.dot(&x).iter().zip(&amplitudes).map(|(z, a)| a * z.tanh()).sum()
    })
}

fn near<'a>(
    what: &str,
    found: impl IntoIterator<Item = &'a f64>,
    expected: impl IntoIterator<Item = &'a f64>,
    tolerance: f64,
) {
    let (found, expected): (Vec<_>, Vec<_>) = (found.into_iter().collect(), expected.into_iter().collect());
    assert_eq!(found.len(), expected.len(), "{what}");
    for (f, e) in found.iter().zip(&expected) {
        assert!((*f - *e).abs() <= tolerance * e.abs().max(1.0), "{what}: {f} but {e}");
    }
}

#[test]
fn similarity_is_scikit_images() {
    let truth = truth();
    let map = |name: &str| truth[name].clone().into_dimensionality::<Ix3>().unwrap();
    let (a, b) = (map("ssim_a"), map("ssim_b"));
    for window in [7, 3] {
        let found: Vec<f64> = (0..a.shape()[0])
            .map(|i| {
                structural_similarity(a.slice(s![i, .., ..]), b.slice(s![i, .., ..]), 2.0, window).unwrap()
            })
            .collect();
        near("ssim", &found, &truth[&format!("ssim_{window}")], 1e-11);
    }
}

#[test]
fn rank_correlation_is_scipys() {
    let truth = truth();
    let (a, b) = (rows(&truth["ranks_a"]), rows(&truth["ranks_b"]));
    let pairs = a.rows().into_iter().zip(b.rows());
    let found: Vec<f64> = pairs.map(|(a, b)| spearman(&a.to_vec(), &b.to_vec()).unwrap()).collect();
    near("spearman", &found, &truth["spearman"], 1e-13);
}

#[test]
fn deletion_and_insertion_are_numpys() {
    let truth = truth();
    let score = tanh_sum(&truth);
    let cases = Cases::new(&score, rows(&truth["inputs"]), vec![0; 3], rows(&truth["values"])).unwrap();
    let labels = truth["patches"].iter().map(|&label| label as usize).collect();
    let mut compared = 0;
    for (order, order_name) in [(Order::Deletion, "deletion"), (Order::Insertion, "insertion")] {
        for (replacement, name) in [(Baseline::Zero, "zero"), (Baseline::Blur { sigma: Some(2.0) }, "blur")] {
            for (channels, ranking) in [(Channels::SignedSum, "signed"), (Channels::AbsoluteSum, "absolute")]
            {
                let patches = Units::Groups { grouping: Grouping::Given { labels: Vec::clone(&labels) } };
                for (units, units_name) in [(Units::Pixels, "pixels"), (patches, "patches")] {
                    let removal = Removal {
                        order,
                        replacement,
                        units,
                        channels: Some(channels),
                        steps: 10,
                        ..Removal::default()
                    };
                    let key = format!("{order_name}_{name}_{ranking}_{units_name}");
                    let curves = removal.curves(&cases).unwrap();
                    let scores: Vec<f64> = curves.iter().flat_map(|curve| curve.scores.clone()).collect();
                    near(&key, &scores, &truth[&key], 1e-11);
                    let areas = Metric::Removal(removal).scores(&cases).unwrap();
                    let areas: Vec<f64> = areas.into_iter().flatten().collect();
                    near(&key, &areas, &truth[&format!("{key}_area")], 1e-11);
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 16);
}

#[test]
fn structure_is_numpys() {
    let truth = truth();
    let score = tanh_sum(&truth);
    let cases = Cases::new(&score, rows(&truth["inputs"]), vec![0; 3], rows(&truth["values"])).unwrap();
    for (i, edges) in [ImageEdges::Gray, ImageEdges::AllChannels].into_iter().enumerate() {
        let satv = Metric::Satv(Satv { edges, image_scale: 0.1, ..Satv::default() });
        let eas = Metric::Eas(EdgeAlignment { edges, image_scale: 0.1, ..EdgeAlignment::default() });
        for (metric, name) in [(satv, "satv"), (eas, "eas")] {
            let found: Vec<f64> = metric.scores(&cases).unwrap().into_iter().flatten().collect();
            near(name, &found, truth[name].index_axis(Axis(0), i).iter(), 1e-12);
        }
    }
}

#[test]
fn the_method_decides_how_units_are_ranked() {
    let truth = truth();
    let score = tanh_sum(&truth);
    let mut cases = Cases::new(&score, rows(&truth["inputs"]), vec![0; 3], rows(&truth["values"])).unwrap();
    let removal = Removal { steps: 10, ..Removal::default() };
    for (meaning, ranking) in [(Meaning::Credit, "signed"), (Meaning::Sensitivity, "absolute")] {
        cases.meaning = meaning;
        let curves = removal.curves(&cases).unwrap();
        let scores: Vec<f64> = curves.iter().flat_map(|curve| curve.scores.clone()).collect();
        near(ranking, &scores, &truth[&format!("deletion_zero_{ranking}_pixels")], 1e-11);
    }
    let meaning = |name: &str| name.parse::<Method>().unwrap().meaning();
    assert_eq!(meaning("smoothgrad"), Meaning::Sensitivity);
    assert_eq!(meaning("ig"), Meaning::Credit);
}

#[test]
fn fractions_of_all_examples_share_batches_of_bounded_size() {
    let inputs = normal(60, 4, 1);
    let score = Counting::new(LinearScore::new(array![1.0, 2.0, 3.0, 4.0], 0.0));
    let cases = Cases::new(&score, inputs.clone(), vec![0; 60], inputs.clone()).unwrap();
    Metric::Removal(Removal { steps: 4, ..Removal::default() }).scores(&cases).unwrap();
    // Five points for each of 60 examples, in one call.
    assert_eq!((score.values.get(), score.largest_batch.get()), (300, 300));
    // Wide rows: 8 MB hold 64 rows of 16384 numbers.
    let wide = Counting::new(LinearScore::new(Array1::ones(16384), 0.0));
    let inputs = Array2::ones((10, 16384));
    let cases = Cases::new(&wide, inputs.clone(), vec![0; 10], inputs).unwrap();
    Metric::Removal(Removal { steps: 10, ..Removal::default() }).scores(&cases).unwrap();
    assert_eq!((wide.values.get(), wide.largest_batch.get()), (110, 64));
}

#[test]
fn draws_do_not_depend_on_how_a_run_is_cut() {
    let (inputs, values) = (normal(6, 8, 2), normal(6, 8, 3));
    let score = ValueFn::new(&[8], |x: ArrayView1<f64>, _| x.iter().map(|v| v.sin() * v).sum());
    let noise = Removal::deletion(Baseline::Noise);
    let subsets = Subsets { replacement: Baseline::Noise, samples: 9, ..Subsets::default() };
    let infidelity = brenier::evaluate::Infidelity { subsets, rescaled: false };
    for metric in [Metric::Removal(noise), Metric::Infidelity(infidelity)] {
        let of = |range: std::ops::Range<usize>| {
            let rows = |array: &Array2<f64>| array.slice(s![range.clone(), ..]).to_owned();
            let cases = Cases::new(&score, rows(&inputs), vec![0; range.len()], rows(&values)).unwrap();
            let context = Context { first_example: range.start, ..Context::default() };
            metric.scores(&Cases { context, ..cases }).unwrap()
        };
        assert_eq!(of(0..6), [of(0..1), of(1..4), of(4..6)].concat());
    }
}

#[test]
fn superpixels_are_removed_together() {
    let truth = truth();
    let score = Counting::new(tanh_sum(&truth));
    let cases = Cases::new(&score, rows(&truth["inputs"]), vec![0; 3], rows(&truth["values"])).unwrap();
    let slic = Slic { segments: 6, ..Slic::default() };
    let units = Units::Groups { grouping: Grouping::Superpixels(slic) };
    let curves = Removal { units, steps: 1000, ..Removal::default() }.curves(&cases).unwrap();
    for curve in curves {
        // A point for each superpixel, not for each pixel.
        assert!((3..=20).contains(&curve.scores.len()), "{}", curve.scores.len());
        assert_eq!((curve.fractions[0], curve.fractions[curve.fractions.len() - 1]), (0.0, 1.0));
        // Nothing is left: tanh(0) = 0.
        assert!(curve.scores[curve.scores.len() - 1].abs() < 1e-15);
    }
}

pub(crate) fn convnet(workers: usize) -> OnnxPredictor {
    let engine = EngineConfig { workers: Some(workers), ..EngineConfig::default() };
    let config = PredictorConfig { engine, ..PredictorConfig::default() };
    OnnxPredictor::load(fixture("methods/convnet.onnx"), &config).unwrap()
}

#[test]
fn randomised_weights_change_gradients_and_leave_what_ignores_the_model() {
    let predictor = convnet(2);
    let inputs = normal(3, 192, 5);
    let targets = vec![1, 3, 0];
    let layers = weight_layers(predictor.model());
    assert_eq!(layers.len(), 3, "{layers:?}");
    let context = Context { model: Some(&predictor), ..Context::default() };
    let method: Method = "gradient".parse().unwrap();
    let again = explain_with(&method, &context);
    let values = again(&predictor, Some(&predictor), inputs.view(), &targets).unwrap();
    let cases = Cases {
        explain: Some(&again),
        context: context.reborrow(),
        ..Cases::new(&predictor, inputs.clone(), targets.clone(), values).unwrap()
    };
    for spread in [Spread::Cascading, Spread::Independent] {
        let check = ModelRandomisation { spread, ..ModelRandomisation::default() };
        let found = check.layers(&cases, &predictor, &again).unwrap();
        assert_eq!(
            found.iter().map(|l| &l.layer).collect::<Vec<_>>(),
            layers.iter().map(|l| &l.0).collect::<Vec<_>>()
        );
        let all: Vec<f64> = found.iter().flat_map(|l| l.correlations.iter().flatten().copied()).collect();
        assert_eq!(all.len(), 9);
        assert!(all.iter().all(|rho| rho.abs() < 0.75), "{spread:?}: {all:?}");
        // The table's number is the mean over the layers.
        let scores = Metric::ModelRandomisation(check).scores(&cases).unwrap();
        let mean = found.iter().map(|l| l.correlations[0].unwrap()).sum::<f64>() / 3.0;
        assert!((scores[0].unwrap() - mean).abs() < 1e-15);
    }
    // A cascade leaves random what came before, so from the second layer on it is another model.
    let by = |spread| {
        let check = ModelRandomisation { spread, ..ModelRandomisation::default() };
        check.layers(&cases, &predictor, &again).unwrap()
    };
    let (cascading, independent) = (by(Spread::Cascading), by(Spread::Independent));
    assert_eq!(cascading[0], independent[0]);
    assert!((1..3).all(|layer| cascading[layer] != independent[layer]));
    // Another seed draws other weights.
    let seeded = |seed| {
        let check = ModelRandomisation { seed, ..ModelRandomisation::default() };
        check.layers(&cases, &predictor, &again).unwrap()
    };
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
    // An explanation that is the input itself notices nothing.
    let ignorant =
        |_: &dyn Score, _: Option<&OnnxPredictor>, x: ndarray::ArrayView2<f64>, _: &[usize]| Ok(x.to_owned());
    let cases = Cases { values: inputs, explain: Some(&ignorant), ..cases.clone() };
    let scores = Metric::ModelRandomisation(ModelRandomisation::default()).scores(&cases).unwrap();
    assert!(scores.iter().all(|rho| (rho.unwrap() - 1.0).abs() < 1e-12), "{scores:?}");
}

#[test]
fn a_table_of_methods_and_metrics_on_a_network_whatever_the_number_of_workers() {
    let table = |workers: usize| {
        let predictor = convnet(workers);
        let inputs = normal(3, 192, 5);
        let targets = [1, 3, 0];
        let field = FieldFn::new(&SHAPE, |x, _| 0.5 * &x);
        let mask = Array2::from_shape_fn((3, 192), |(_, i)| i % 64 < 8);
        let mut table = BTreeMap::new();
        for name in ["ig", "smoothgrad", "guided-backprop", "occlusion"] {
            let method: Method = name.parse().unwrap();
            let context = Context { model: Some(&predictor), ..Context::default() };
            let again = explain_with(&method, &context);
            let explanations = method.explain(&predictor, inputs.view(), &targets, &context).unwrap();
            let lines: Vec<Line> = explanations
                .iter()
                .filter_map(|e| {
                    Line::new(e.reference.as_ref().filter(|_| name == "ig")?.view(), e.input.view()).ok()
                })
                .collect();
            let cases = Cases::of(&predictor, &explanations).unwrap();
            let repeat = &cases.values + 0.01 * normal(3, 192, 9);
            let cases = Cases {
                meaning: method.meaning(),
                paths: lines.iter().map(|line| line as &dyn Path).collect(),
                context: Context { flows: vec![&field], ..context.reborrow() },
                reference_field: Some(&field),
                reference_values: Some(repeat.view()),
                repeats: vec![repeat.view()],
                truth: Some(mask.view()),
                explain: Some(&again),
                ..cases
            };
            for metric in Metric::names() {
                let metric: Metric = metric.parse().unwrap();
                let found = metric.scores(&cases);
                assert_eq!(found.is_err(), metric.missing(&cases).is_some(), "{name} {}", metric.name());
                if let Ok(found) = found {
                    assert!(found.iter().all(|v| v.is_some_and(f64::is_finite)), "{name} {}", metric.name());
                    table.insert((name, metric.name()), found);
                }
            }
        }
        table
    };
    let found = table(1);
    assert_eq!(found, table(2));
    // Methods without a path or a promise have a dash there.
    assert!(found.contains_key(&("ig", "gps")) && !found.contains_key(&("smoothgrad", "gps")));
    assert!(!found.contains_key(&("smoothgrad", "completeness-residual")));
    assert_eq!(found.len(), 4 * Metric::names().len() - 3 * 7);
    for metric in Metric::names() {
        let higher = metric.parse::<Metric>().unwrap().direction() == Direction::Higher;
        let expected = ["insertion", "eas", "faithfulness", "ssim", "rank-", "mass", "pointing"];
        assert_eq!(higher, expected.iter().any(|start| metric.starts_with(start)), "{metric}");
    }
}

#[test]
fn says_what_is_missing() {
    let score = LinearScore::new(array![1.0, 2.0], 0.0);
    let cases = Cases::new(&score, array![[1.0, 1.0]], vec![0], array![[1.0, 2.0]]).unwrap();
    let message = |name: &str| name.parse::<Metric>().unwrap().scores(&cases).unwrap_err().to_string();
    assert!(message("gps").contains("no path"));
    assert!(message("ssim").contains("other seeds"));
    assert!(message("pointing-game").contains("no planted truth"));
    assert!(message("satv").contains("[2]"));
    assert!(message("deletion-blur").contains("[2]"));
    let mask = array![[true]];
    let wrong = Cases { truth: Some(mask.view()), ..cases.clone() };
    assert!("mass-accuracy".parse::<Metric>().unwrap().scores(&wrong).is_err());
    assert!(Cases::new(&score, array![[1.0]], vec![0], array![[1.0, 2.0]]).is_err());
    let nan = ValueFn::new(&[2], |x: ArrayView1<f64>, _| 1.0 / x[1]);
    let cases = Cases::new(&nan, array![[1.0, 1.0]], vec![0], array![[1.0, 2.0]]).unwrap();
    let refused = Metric::Removal(Removal::default()).scores(&cases).unwrap_err().to_string();
    assert!(refused.contains("inf"), "{refused}");
}
