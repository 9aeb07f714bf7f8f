//! Methods without gradients: convergence, standard errors, closed forms, memory and refusals.

use brenier::attribute::{
    Absence, Baseline, Coalitions, Context, Distance, Grouping, KernelShap, Lime, Method, Occlusion, Rise,
    ShapleyValues, Slic, Surrogate,
};
use brenier::data::Dataset;
use brenier::problems::log_slope;
use brenier::{Explanation, Result, ValueFn};
use ndarray::{Array1, Array2, ArrayView1, Axis, array};

use crate::shared::{Counting, normal, smooth_score};

fn one(explanations: Result<Vec<Explanation>>) -> Explanation {
    explanations.unwrap().remove(0)
}

/// Product `i` of three features on a ring.
fn product(x: ArrayView1<f64>, i: usize) -> f64 {
    x[i] * x[(i + 1) % x.len()] * x[(i + 5) % x.len()]
}

/// The Shapley values of the sum of those products: a third of each for each factor.
fn thirds(x: ArrayView1<f64>) -> Array1<f64> {
    let mut credit = Array1::zeros(x.len());
    for i in 0..x.len() {
        for j in [i, (i + 1) % x.len(), (i + 5) % x.len()] {
            credit[j] += product(x, i) / 3.0;
        }
    }
    credit
}

/// Root mean squared deviation from `truth` over features and runs.
fn deviation(runs: &[Array1<f64>], truth: &Array1<f64>) -> f64 {
    let squares: f64 = runs.iter().map(|run| (run - truth).mapv(|gap| gap * gap).mean().unwrap()).sum();
    (squares / runs.len() as f64).sqrt()
}

/// The root mean square of the reported standard errors over that of the deviations from the runs' mean.
fn reported_over_seen(runs: &[Explanation]) -> f64 {
    let values: Vec<_> = runs.iter().map(|run| run.values.clone()).collect();
    let mean = values.iter().fold(Array1::zeros(values[0].len()), |sum, run| sum + run) / runs.len() as f64;
    let errors: Vec<_> = runs.iter().map(|run| run.standard_errors.clone().unwrap()).collect();
    let seen = deviation(&values, &mean) * (runs.len() as f64 / (runs.len() - 1) as f64).sqrt();
    deviation(&errors, &Array1::zeros(mean.len())) / seen
}

#[test]
fn the_error_of_sampled_kernel_shap_falls_with_the_root_of_the_coalitions() {
    let features = 24;
    let score = ValueFn::new(&[features], |x, _| (0..features).map(|i| product(x, i)).sum());
    let input = normal(1, features, 3);
    let truth = thirds(input.row(0));
    let counts = [150, 600, 2400];
    let mut errors = Vec::new();
    for count in counts {
        let runs: Vec<_> = (0..24)
            .map(|seed| {
                let sampled =
                    KernelShap { coalitions: Coalitions::Sampled { count }, seed, ..KernelShap::default() };
                one(sampled.explain(&score, input.view(), &[0], &Context::default()))
            })
            .collect();
        let values: Vec<_> = runs.iter().map(|run| run.values.clone()).collect();
        errors.push(deviation(&values, &truth));
        let ratio = reported_over_seen(&runs);
        println!("{count} coalitions: error {:.4}, reported over seen {ratio:.3}", errors[errors.len() - 1]);
        assert!((0.8..1.25).contains(&ratio), "{count}: {ratio}");
    }
    let rate = log_slope(&counts, &errors);
    println!("slope {rate:.3}");
    assert!((-0.75..-0.4).contains(&rate), "{rate}: {errors:?}");
}

#[test]
fn enough_samples_are_all_coalitions() {
    let (score, input) = (smooth_score(9, 4), normal(1, 9, 5));
    let kernel = |coalitions| KernelShap { coalitions, ..KernelShap::default() };
    let exact = one(ShapleyValues::default().explain(&score, input.view(), &[0], &Context::default()));
    for coalitions in [Coalitions::Usual, Coalitions::Sampled { count: 510 }] {
        let explanation = one(kernel(coalitions).explain(&score, input.view(), &[0], &Context::default()));
        assert!((&explanation.values - &exact.values).iter().all(|gap| gap.abs() < 1e-9));
        assert!(explanation.certificate.sampling.is_none());
        assert_eq!(explanation.certificate.score_evaluations, 512);
    }
    let sampled = one(kernel(Coalitions::Sampled { count: 200 }).explain(
        &score,
        input.view(),
        &[0],
        &Context::default(),
    ));
    assert!(sampled.certificate.sampling.is_some());
}

#[test]
fn occlusion_of_a_linear_score_is_the_mean_over_the_windows_of_the_terms_they_hide() {
    let shape = [1, 4, 5];
    let (weights, input, baseline) = (normal(1, 20, 1), normal(1, 20, 2), normal(1, 20, 3));
    let score = ValueFn::new(&shape, |x, _| 3.0 + x.dot(&weights.row(0)));
    let occlusion = Occlusion {
        window: Some(vec![1, 2, 3]),
        stride: Some(vec![1, 1, 2]),
        absence: Absence::Baseline(Baseline::Given),
        ..Occlusion::default()
    };
    let context = Context { baselines: Some(baseline.view()), ..Context::default() };
    let explanation = one(occlusion.explain(&score, input.view(), &[0], &context));
    let terms = &weights.row(0) * &(&input.row(0) - &baseline.row(0));
    let (mut sum, mut count) = (Array1::<f64>::zeros(20), Array1::<f64>::zeros(20));
    for row in 0..=2 {
        for column in [0, 2] {
            let inside =
                |i: usize| (row..row + 2).contains(&(i / 5)) && (column..column + 3).contains(&(i % 5));
            let hidden: f64 = (0..20).filter(|&i| inside(i)).map(|i| terms[i]).sum();
            for i in (0..20).filter(|&i| inside(i)) {
                sum[i] += hidden;
                count[i] += 1.0;
            }
        }
    }
    assert!((explanation.values - sum / count).iter().all(|gap| gap.abs() < 1e-12));
    assert_eq!(explanation.certificate.score_evaluations, 7);
    assert!(explanation.certificate.completeness.is_none());
}

#[test]
fn rise_of_a_linear_score_is_its_own_term_and_a_share_of_the_others() {
    // E[f(M x) | i present] = f(r) + w_i d_i + p sum_{j != i} w_j d_j.
    let (features, p) = (6, 0.4);
    let (weights, input) = (normal(1, features, 7), normal(1, features, 8));
    let score = ValueFn::new(&[features], |x, _| 2.0 + x.dot(&weights.row(0)));
    let terms = &weights.row(0) * &input.row(0);
    let expected = terms.mapv(|term| 2.0 + term + p * (terms.sum() - term));
    let rise = |samples, seed| {
        let rise = Rise { samples, probability: p, seed, ..Rise::default() };
        one(rise.explain(&score, input.view(), &[0], &Context::default()))
    };
    let large = rise(40_000, 1);
    let errors = large.standard_errors.clone().unwrap();
    assert!((&large.values - &expected).iter().zip(&errors).all(|(gap, error)| gap.abs() < 4.0 * error));
    let runs: Vec<_> = (0..40).map(|seed| rise(400, seed)).collect();
    let values: Vec<_> = runs.iter().map(|run| run.values.clone()).collect();
    let more: Vec<_> = (100..140).map(|seed| rise(6400, seed).values).collect();
    let rate = log_slope(&[400, 6400], &[deviation(&values, &expected), deviation(&more, &expected)]);
    assert!((-0.6..-0.4).contains(&rate), "{rate}");
    let ratio = reported_over_seen(&runs);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn rise_finds_the_only_patch_that_counts() {
    let shape = [3, 16, 16];
    let inside = |i: usize| (2..7).contains(&(i / 16 % 16)) && (9..14).contains(&(i % 16));
    let score = ValueFn::new(&shape, |x, _| (0..x.len()).filter(|&i| inside(i)).map(|i| x[i]).sum());
    let rise = Rise { samples: 600, cells: 6, ..Rise::default() };
    let explanation = one(rise.explain(&score, Array2::ones((1, 768)).view(), &[0], &Context::default()));
    let best = explanation.values.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    assert!(inside(best), "{best}");
    // All channels of a pixel are masked together.
    assert_eq!(explanation.values[5], explanation.values[5 + 256]);
}

#[test]
fn lime_recovers_a_linear_score_and_its_error_agrees_with_the_spread() {
    let (features, groups) = (7, Grouping::Columns { blocks: vec![vec![2, 3]] });
    let (weights, input, baseline) = (normal(1, features, 1), normal(1, features, 2), normal(1, features, 3));
    let terms = &weights.row(0) * &(&input.row(0) - &baseline.row(0));
    let mut expected = terms.to_owned();
    (expected[2], expected[3]) = ((terms[2] + terms[3]) / 2.0, (terms[2] + terms[3]) / 2.0);
    let score = ValueFn::new(&[features], |x, _| 100.0 + x.dot(&weights.row(0)));
    let absence = Absence::Baseline(Baseline::Given);
    let context = Context { baselines: Some(baseline.view()), ..Context::default() };
    for surrogate in [Surrogate::Lasso { alpha: 1e-9 }, Surrogate::Ridge { alpha: 1e-7 }] {
        for distance in [Distance::Cosine, Distance::Euclidean] {
            let lime = Lime {
                groups: groups.clone(),
                absence,
                samples: 100,
                surrogate,
                distance,
                kernel_width: 3.0,
                ..Lime::default()
            };
            let explanation = one(lime.explain(&score, input.view(), &[0], &context));
            assert!((&explanation.values - &expected).iter().all(|gap| gap.abs() < 1e-6), "{surrogate:?}");
            assert!(explanation.standard_errors.unwrap().iter().all(|error| *error < 1e-6));
        }
    }
    // A score that is not linear: draws matter.
    let score = smooth_score(features, 4);
    for surrogate in [Surrogate::Lasso { alpha: 0.003 }, Surrogate::Ridge { alpha: 1.0 }] {
        let run = |seed| {
            let lime = Lime { samples: 300, seed, surrogate, absence, ..Lime::default() };
            one(lime.explain(&score, input.view(), &[0], &context))
        };
        let ratio = reported_over_seen(&(0..30).map(run).collect::<Vec<_>>());
        println!("{surrogate:?}: reported over seen {ratio:.3}");
        assert!((0.75..1.35).contains(&ratio), "{surrogate:?}: {ratio}");
    }
}

/// Every method with a background, given the size of the micro-batch.
fn methods(micro_batch: usize) -> Vec<Method> {
    let (absence, micro_batch) = (Absence::Background { rows: 3 }, Some(micro_batch));
    let coalitions = Coalitions::Sampled { count: 60 };
    vec![
        Method::ShapleyValues(ShapleyValues { micro_batch, absence, ..ShapleyValues::default() }),
        Method::KernelShap(KernelShap { micro_batch, absence, coalitions, ..KernelShap::default() }),
        Method::Occlusion(Occlusion { micro_batch, absence, ..Occlusion::default() }),
        Method::Rise(Rise { micro_batch, absence, samples: 50, ..Rise::default() }),
        Method::Lime(Lime { micro_batch, absence, samples: 50, ..Lime::default() }),
    ]
}

#[test]
fn results_and_memory_do_not_depend_on_how_rows_are_batched() {
    let (features, inputs) = (8, normal(2, 8, 10));
    let rows = normal(5, features, 9).mapv(|v| v as f32);
    let data = Dataset::from_rows("rows", &[features], rows.view()).unwrap();
    let context = Context { data: Some(&data), ..Context::default() };
    for kind in 0..methods(1).len() {
        let mut found = Vec::new();
        for micro_batch in [1, 7, 1000] {
            let method = methods(micro_batch).remove(kind);
            assert!(!method.needs_gradients());
            let score = Counting::new(smooth_score(features, 11));
            let explanations = method.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
            assert!(score.largest_batch.get() <= micro_batch);
            assert_eq!(score.gradients.get(), 0);
            let counted: usize = explanations.iter().map(|e| e.certificate.score_evaluations).sum();
            assert_eq!(score.values.get(), counted);
            assert_eq!(explanations[0].certificate.method, method.name());
            found.push(explanations);
        }
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0], found[2]);
        assert_ne!(found[0][0].values, found[0][1].values);
        let none = methods(0).remove(kind);
        assert!(none.explain(&smooth_score(features, 11), inputs.view(), &[0, 0], &context).is_err());
    }
}

#[test]
fn another_seed_gives_another_estimate_and_the_same_seed_the_same() {
    let (score, inputs) = (smooth_score(12, 11), normal(2, 12, 10));
    let values = |seed| {
        let coalitions = Coalitions::Sampled { count: 60 };
        let kernel = KernelShap { coalitions, seed, ..KernelShap::default() };
        let lime = Lime { samples: 50, seed, ..Lime::default() };
        let rise = Rise { samples: 50, seed, ..Rise::default() };
        let explained = [
            kernel.explain(&score, inputs.view(), &[0, 0], &Context::default()),
            lime.explain(&score, inputs.view(), &[0, 0], &Context::default()),
            rise.explain(&score, inputs.view(), &[0, 0], &Context::default()),
        ];
        explained.map(|explanations| one(explanations).values)
    };
    assert_eq!(values(1), values(1));
    let (first, second) = (values(1), values(2));
    assert!(first.iter().zip(&second).all(|(a, b)| a != b));
}

#[test]
fn superpixels_and_patches_carry_credit_to_their_pixels() {
    // Bright left half: only it counts.
    let shape = [2, 8, 8];
    let left = |i: usize| i % 8 < 4;
    let image: Array1<f64> = (0..128).map(|i| if left(i) { 1.0 } else { 0.25 }).collect();
    let score = ValueFn::new(&shape, |x, _| (0..128).filter(|&i| left(i)).map(|i| x[i]).sum());
    let superpixels = Grouping::Superpixels(Slic { segments: 8, ..Slic::default() });
    for groups in [Grouping::Patches { height: 4, width: 2 }, superpixels] {
        let kernel = KernelShap { groups, coalitions: Coalitions::All, ..KernelShap::default() };
        let values =
            one(kernel.explain(&score, image.view().insert_axis(Axis(0)), &[0], &Context::default())).values;
        assert!((values.sum() - 64.0).abs() < 1e-9);
        assert!((0..128).all(|i| (values[i] - if left(i) { 1.0 } else { 0.0 }).abs() < 1e-9), "{values}");
    }
}

#[test]
fn says_what_cannot_be_done() {
    let (score, wide) = (smooth_score(4, 1), smooth_score(25, 1));
    let (input, wide_input) = (normal(1, 4, 2), normal(1, 25, 2));
    let message = |explanations: Result<Vec<Explanation>>| explanations.unwrap_err().to_string();
    let too_many =
        "exact Shapley values of 25 groups would take 2^25 subsets, and at most 20 groups are enumerated";
    let all = KernelShap { coalitions: Coalitions::All, ..KernelShap::default() };
    assert!(message(all.explain(&wide, wide_input.view(), &[0], &Context::default())).starts_with(too_many));
    assert!(
        message(ShapleyValues::default().explain(&wide, wide_input.view(), &[0], &Context::default()))
            .starts_with(too_many)
    );
    let few = KernelShap { coalitions: Coalitions::Sampled { count: 20 }, ..KernelShap::default() };
    assert!(
        message(few.explain(&wide, wide_input.view(), &[0], &Context::default()))
            .contains("do not determine the credit of 25")
    );
    let none = KernelShap { coalitions: Coalitions::Sampled { count: 0 }, ..KernelShap::default() };
    assert!(message(none.explain(&score, input.view(), &[0], &Context::default())).contains("at least 1"));
    let nan = ValueFn::new(&[4], |x, _| if x[2] == 0.0 { f64::NAN } else { 1.0 });
    let broken = message(Occlusion::default().explain(&nan, input.view(), &[0], &Context::default()));
    assert!(broken.starts_with("output 0 is NaN for example 0 with parts of it left out (row 2"), "{broken}");
    assert!(
        message(Occlusion::default().explain(&score, wide_input.view(), &[0], &Context::default()))
            .contains("[1, 25]")
    );
    assert!(
        message(Occlusion::default().explain(&score, input.view(), &[0, 1], &Context::default()))
            .contains("targets")
    );
    let infinite = array![[0.0, f64::INFINITY, 0.0, 0.0]];
    assert!(
        message(Occlusion::default().explain(&score, infinite.view(), &[0], &Context::default()))
            .contains("feature 1")
    );
    for (samples, kernel_width, alpha) in [(10, 1.0, 0.01), (100, 0.0, 0.01), (100, 1.0, -1.0)] {
        let lime = Lime { samples, kernel_width, surrogate: Surrogate::Ridge { alpha }, ..Lime::default() };
        assert!(lime.explain(&score, input.view(), &[0], &Context::default()).is_err());
    }
    for (samples, probability) in [(0, 0.5), (10, 1.0), (10, 0.0)] {
        assert!(
            Rise { samples, probability, ..Rise::default() }
                .explain(&score, input.view(), &[0], &Context::default())
                .is_err()
        );
    }
    let rare = Rise { samples: 2, probability: 0.01, ..Rise::default() };
    assert!(
        message(rare.explain(&score, input.view(), &[0], &Context::default())).contains("none of 2 masks")
    );
}
