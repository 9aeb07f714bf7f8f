//! The methods against closed forms: what they estimate, at what rate, what they sum to, and what they cost.

use brenier::attribute::{
    Allocation, Baseline, BlurIg, Context, ExpectedGradients, GeodesicIg, GeodesicMetric, GradientShap,
    Grouping, GuidedIg, Idgi, IntegratedGradients, Method, Need, Setting, Settings, SmoothGrad, Smoothing,
    StepCredit, Transport,
};
use brenier::data::Dataset;
use brenier::problems::log_slope;
use brenier::problems::{Gaussian, LinearScore, OptimalTransport, QuadraticScore, SineSum};
use brenier::{
    Explanation, FieldFn, Line, Path, PathIntegral, Request, Rule, Score, ScoreFn, VelocityField, Verdict,
    trace,
};
use ndarray::{Array1, Array2, array};

use crate::shared::{Counting, Curve, gaussian_noise_predictor, normal, smooth_score};

const D: usize = 5;

fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |m, v| m.max(v.abs()))
}

fn data(rows: usize, seed: u64) -> Dataset {
    Dataset::from_rows("normal", &[D], normal(rows, D, seed).mapv(|v| v as f32).view()).unwrap()
}

fn quadratic(seed: u64) -> (QuadraticScore, Array2<f64>) {
    let numbers = normal(D + 1, D, seed);
    let matrix = numbers.slice(ndarray::s![1.., ..]).to_owned();
    let score = QuadraticScore::new(matrix.view(), numbers.row(0).to_owned()).unwrap();
    (score, 0.5 * (&matrix + &matrix.t()))
}

/// Of a quadratic score the gradient at x + e is `g + Q e`: mean `g`, variance `sigma^2 (Q^2)_ii`.
#[test]
fn smoothing_estimates_the_moments_of_the_gradient_at_the_rate_of_independent_draws() {
    let (score, q) = quadratic(1);
    let inputs = normal(1, D, 2);
    let (_, gradient) = score.gradients(inputs.view(), &[0]).unwrap();
    let range = largest(inputs.iter().flat_map(|a| inputs.iter().map(move |b| a - b)));
    let variance = q.dot(&q).diag().to_owned() * (0.3 * range).powi(2);
    let exact = |smoothing: Smoothing| match smoothing {
        Smoothing::Mean => gradient.row(0).to_owned(),
        Smoothing::Square => gradient.row(0).mapv(|g| g * g) + &variance,
        Smoothing::Variance => variance.clone(),
    };
    for smoothing in [Smoothing::Mean, Smoothing::Square, Smoothing::Variance] {
        let sizes = [200, 800, 3200];
        let mut errors = Vec::new();
        for samples in sizes {
            let method = SmoothGrad { smoothing, samples, noise: 0.3, seed: 7 };
            let explanation =
                method.explain(&score, inputs.view(), &[0], &Context::default()).unwrap().remove(0);
            let claimed = explanation.standard_errors.unwrap();
            let off = (&explanation.values - &exact(smoothing)) / &claimed;
            assert!(largest(off.iter().copied()) < 4.0, "{smoothing:?} {samples}: {off}");
            // Estimates of a variance are biased by 1/n, so some error is left: they must not be right by luck.
            assert!(largest(off.iter().copied()) > 0.05, "{smoothing:?} {samples}: {off}");
            let sampling = explanation.certificate.sampling.unwrap();
            assert!((sampling.mean_standard_error.unwrap() - claimed.mean().unwrap()).abs() < 1e-12);
            assert!(explanation.certificate.completeness.is_none());
            errors.push(claimed.mean().unwrap());
        }
        let rate = log_slope(&sizes, &errors);
        assert!((rate + 0.5).abs() < 0.06, "{smoothing:?}: {rate}");
    }
}

/// The mean over all references of the exact credit on each line, for a quadratic score.
#[test]
fn expected_gradients_converge_to_the_mean_over_the_data() {
    let (score, _) = quadratic(3);
    let (inputs, background) = (normal(2, D, 4), data(12, 5));
    let rows = background.rows_f64(&(0..12).collect::<Vec<_>>()).unwrap();
    let context = Context { data: Some(&background), ..Context::default() };
    let exact = |example: usize| {
        let credits = rows.rows().into_iter().map(|row| score.exact_line_credit(row, inputs.row(example)));
        credits.fold(Array1::<f64>::zeros(D), |sum, credit| sum + credit) / 12.0
    };
    let sizes = [200, 800, 3200];
    let mut errors = Vec::new();
    for samples in sizes {
        let found =
            ExpectedGradients { samples, seed: 1 }.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
        for (example, explanation) in found.iter().enumerate() {
            let claimed = explanation.standard_errors.as_ref().unwrap();
            let off = (&explanation.values - &exact(example)) / claimed;
            assert!(largest(off.iter().copied()) < 4.0, "{samples}: {off}");
            assert!(largest(off.iter().copied()) > 0.05, "{samples}: {off}");
        }
        errors.push(found[0].standard_errors.as_ref().unwrap().mean().unwrap());
    }
    let rate = log_slope(&sizes, &errors);
    assert!((rate + 0.5).abs() < 0.06, "{rate}");
    // Without noise GradientSHAP is the same estimator; with noise it claims no sum.
    let shap = GradientShap { samples: 800, noise: 0.0, seed: 2 };
    let found = shap.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
    let off = (&found[1].values - &exact(1)) / found[1].standard_errors.as_ref().unwrap();
    assert!(largest(off.iter().copied()) < 4.0, "{off}");
    assert!(found[1].certificate.completeness.is_some());
    let noisy = GradientShap { noise: 0.2, ..shap };
    let found = noisy.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
    assert!(found[1].certificate.completeness.is_none());
}

/// On a linear score every draw sums to its own change, so the sum is exact with any number of draws.
#[test]
fn expected_gradients_sum_up_on_linear_scores() {
    let score = LinearScore::new(normal(1, D, 1).row(0).to_owned(), 0.3);
    let background = data(20, 2);
    let context = Context { data: Some(&background), ..Context::default() };
    let found = ExpectedGradients { samples: 7, seed: 3 }
        .explain(&score, normal(3, D, 3).view(), &[0; 3], &context)
        .unwrap();
    for explanation in found {
        assert!(explanation.certificate.completeness.unwrap().residual < 1e-12);
        assert_eq!(explanation.certificate.verdict, Verdict::Pass);
    }
}

#[test]
fn draws_follow_from_the_seed_and_the_example_alone() {
    let score = smooth_score(D, 1);
    let inputs = normal(40, D, 2);
    let background = data(20, 3);
    let context = Context { data: Some(&background), ..Context::default() };
    for name in ["smoothgrad", "vargrad", "expected-gradients", "gradient-shap"] {
        let settings = |seed| Settings { samples: Some(9), noise: Some(0.1), seed, ..Settings::default() };
        let run = |rows: usize, seed: u64| {
            let method = Method::new(name, &settings(seed)).unwrap();
            let inputs = inputs.slice(ndarray::s![..rows, ..]);
            method.explain(&score, inputs, &vec![0; rows], &context).unwrap()
        };
        let (few, many) = (run(3, 5), run(40, 5));
        assert_eq!(few[2], many[2], "{name}");
        assert_ne!(few[2].values, run(3, 6)[2].values, "{name}");
        assert_eq!(few[2].certificate.sampling.unwrap().seed, 5);
    }
}

/// Held to the straight line, Guided IG is Integrated Gradients; let loose, it still sums up, at second order.
#[test]
fn guided_ig_is_integrated_gradients_on_a_leash_of_zero() {
    let score = smooth_score(D, 1);
    let inputs = normal(2, D, 2);
    let explain =
        |method: GuidedIg| method.explain(&score, inputs.view(), &[0, 0], &Context::default()).unwrap();
    let zero = Array1::zeros(D);
    for (credit, rule) in
        [(StepCredit::Left, Rule::Left { steps: 30 }), (StepCredit::Trapezoid, Rule::Trapezoid { steps: 30 })]
    {
        let leashed = explain(GuidedIg { steps: 30, max_distance: 0.0, credit, ..GuidedIg::default() });
        for (i, explanation) in leashed.iter().enumerate() {
            let line = Line::new(zero.view(), inputs.row(i)).unwrap();
            let expected = PathIntegral::new(rule).explain(&score, &line, 0).unwrap();
            assert!(largest((&explanation.values - &expected.values).iter().copied()) < 1e-9);
            let path = explanation.certificate.path.as_ref().unwrap();
            assert!((path.geometric_path_straightness.unwrap() - 1.0).abs() < 1e-9);
            assert_eq!(path.rule, rule);
        }
    }
    let loose = |steps| GuidedIg { steps, max_distance: 0.3, fraction: 0.4, ..GuidedIg::default() };
    let sizes = [50, 100, 200, 400];
    let residual = |steps: usize, credit: StepCredit| {
        let found = explain(GuidedIg { credit, ..loose(steps) });
        found.iter().map(|e| e.certificate.completeness.unwrap().residual).sum::<f64>()
    };
    let second: Vec<f64> = sizes.iter().map(|&n| residual(n, StepCredit::Trapezoid)).collect();
    let first: Vec<f64> = sizes.iter().map(|&n| residual(n, StepCredit::Left)).collect();
    assert!(log_slope(&sizes, &second) < -1.5, "{second:?}");
    assert!(second[3] < 0.1 * first[3], "{first:?} {second:?}");
    let bent = &explain(loose(200))[0].certificate;
    assert!(bent.path.as_ref().unwrap().geometric_path_straightness.unwrap() > 1.01);
    let shared = &explain(GuidedIg { credit: StepCredit::Idgi, ..loose(20) })[0].certificate;
    assert!(shared.completeness.unwrap().residual < 1e-12 && shared.method == "guided-ig+idgi");
}

/// An image score with interactions between neighbours.
fn image_score() -> impl Score {
    ScoreFn::new(&[2, 4, 5], |x, _| {
        let mut gradient = Array1::zeros(40);
        let mut value = 0.0;
        for i in 0..39 {
            value += (x[i] * x[i + 1]).sin();
            gradient[i] += x[i + 1] * (x[i] * x[i + 1]).cos();
            gradient[i + 1] += x[i] * (x[i] * x[i + 1]).cos();
        }
        (value, gradient)
    })
}

#[test]
fn blur_ig_sums_up_and_converges_like_its_rule() {
    let score = image_score();
    let inputs = normal(1, 40, 6);
    let residual = |rule: Rule| {
        let method = BlurIg { allocation: Allocation::PathIntegral { rule }, ..BlurIg::default() };
        let explanation = method.explain(&score, inputs.view(), &[0]).unwrap().remove(0);
        assert_eq!(explanation.certificate.path.as_ref().unwrap().evidence.kind, "blur");
        assert_eq!(explanation.certificate.method, "blur-ig");
        explanation.certificate.completeness.unwrap().residual
    };
    let sizes = [100, 200, 400];
    let errors: Vec<f64> = sizes.iter().map(|&steps| residual(Rule::Midpoint { steps })).collect();
    assert!(log_slope(&sizes, &errors) < -1.7, "{errors:?}");
    // A kernel that is cut off at some multiple of sigma would make the path jump, and leave this undone.
    assert!(residual(Rule::GaussLegendre { nodes: 100 }) < 1e-9);
}

/// What IDGI is: complete by construction, quadratic in the gradient, and not linear in the score.
#[test]
fn idgi_sums_up_exactly_and_is_not_linear() {
    let (f, g, curve) = (smooth_score(D, 1), smooth_score(D, 2), Curve::random(D, 3));
    let idgi = Idgi { steps: 7, ..Idgi::default() };
    let explain = |score: &dyn Score, path: &dyn Path| {
        let request = Request { example: 0, path, target: 0 };
        idgi.explain_all(score, &[request]).unwrap().remove(0)
    };
    let both = ScoreFn::new(&[D], |x, _| {
        let x = x.insert_axis(ndarray::Axis(0));
        let ((vf, gf), (vg, gg)) = (f.gradients(x, &[0]).unwrap(), g.gradients(x, &[0]).unwrap());
        (vf[0] + vg[0], &gf.row(0) + &gg.row(0))
    });
    let (of_f, of_g, of_both) = (explain(&f, &curve), explain(&g, &curve), explain(&both, &curve));
    for explanation in [&of_f, &of_g, &of_both] {
        assert!(explanation.certificate.completeness.unwrap().residual < 1e-12);
        assert_eq!(explanation.certificate.gradient_evaluations, 7);
        assert_eq!(explanation.certificate.score_evaluations, 1);
    }
    let gap = &of_both.values - &(&of_f.values + &of_g.values);
    assert!(largest(gap.iter().copied()) > 1e-2, "{gap}");
    // Of a linear score, shares are w_i^2 / |w|^2, also for a feature that does not move.
    let weights = array![1.0, -2.0, 0.5, 0.0, 1.0];
    let score = LinearScore::new(weights.clone(), 0.0);
    let line =
        Line::new(array![0.0, 0.0, 0.0, 0.0, 3.0].view(), array![1.0, 1.0, 4.0, 1.0, 3.0].view()).unwrap();
    let expected = weights.mapv(|w| w * w) / weights.dot(&weights) * (1.0 - 2.0 + 2.0);
    let found = explain(&score, &line);
    assert!(largest((&found.values - &expected).iter().copied()) < 1e-12);
    // A flat start cannot be shared out, and the residual says so.
    let ramp = ScoreFn::new(&[1], |x, _| ((x[0] - 0.5).max(0.0), array![f64::from(x[0] > 0.5)]));
    let line = Line::new(array![0.0].view(), array![1.0].view()).unwrap();
    let left = explain(&ramp, &line).certificate;
    assert!(left.completeness.unwrap().residual > 0.05, "{left:?}");
    assert!(matches!(left.verdict, Verdict::Warn { .. }));
}

/// Additive scores are credited by the ends of the path alone, whichever way it takes through the data.
#[test]
fn geodesic_ig_is_exact_on_additive_scores_and_avoids_what_is_steep() {
    let background = data(60, 1);
    let context = Context { data: Some(&background), ..Context::default() };
    let inputs = normal(2, D, 2);
    let score = SineSum::new(D);
    for metric in [GeodesicMetric::Model, GeodesicMetric::Euclidean] {
        let allocation = Allocation::PathIntegral { rule: Rule::GaussLegendre { nodes: 200 } };
        let method = GeodesicIg { metric, allocation, neighbours: 6, ..GeodesicIg::default() };
        let found = method.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
        for (i, explanation) in found.iter().enumerate() {
            let exact = score.exact_credit(Array1::zeros(D).view(), inputs.row(i));
            assert!(largest((&explanation.values - &exact).iter().copied()) < 1e-9);
            assert!(
                explanation.certificate.path.as_ref().unwrap().geometric_path_straightness.unwrap() > 1.0
            );
        }
    }
    // A ring of data, one half of it on a steep slope: the way takes the other half, whichever it is.
    let ring = Array2::from_shape_fn((80, 2), |(i, axis)| {
        let angle = std::f32::consts::TAU * i as f32 / 80.0 + 0.01;
        if axis == 0 { angle.cos() } else { angle.sin() }
    });
    let ring = Dataset::from_rows("ring", &[2], ring.view()).unwrap();
    let start = array![[1.0, 0.0]];
    let context = Context { data: Some(&ring), baselines: Some(start.view()), ..Context::default() };
    for sign in [1.0, -1.0] {
        let slope = ScoreFn::new(&[2], move |x, _| {
            let steep = if sign * x[1] > 0.0 { 20.0 } else { 1.0 };
            (steep * x[0], array![steep, 0.0])
        });
        let method = GeodesicIg { baseline: Baseline::Given, neighbours: 3, ..GeodesicIg::default() };
        let found = method.explain(&slope, array![[-1.0, 0.0]].view(), &[0], &context).unwrap().remove(0);
        let path = found.certificate.path.unwrap();
        assert!((path.geometric_path_straightness.unwrap() - std::f64::consts::FRAC_PI_2).abs() < 0.02);
        assert!((found.values[0] + 2.0).abs() < 0.5, "{}", found.values);
    }
}

/// Flows that carry the input back to different places: credit is their mean, with their spread as error.
#[test]
fn an_ensemble_of_flows_has_the_mean_and_its_standard_error() {
    let score = smooth_score(2, 1);
    let flows: Vec<OptimalTransport> = [2.0, 4.0, 9.0]
        .iter()
        .map(|&variance| {
            let (from, to) =
                (Gaussian::isotropic(2, 1.0).unwrap(), Gaussian::isotropic(2, variance).unwrap());
            OptimalTransport::new(from, to).unwrap()
        })
        .collect();
    let inputs = normal(40, 2, 2);
    let targets = vec![0; 40];
    let method = Transport::default();
    let explain = |flows: Vec<&dyn VelocityField>| {
        let context = Context { flows, ..Context::default() };
        method.explain(&score, inputs.view(), &targets, &context).unwrap()
    };
    let single: Vec<Vec<Explanation>> = flows.iter().map(|flow| explain(vec![flow])).collect();
    let together = explain(flows.iter().map(|flow| flow as &dyn VelocityField).collect());
    for i in [0, 39] {
        let members: Vec<&Array1<f64>> = single.iter().map(|member| &member[i].values).collect();
        let mean = (members[0] + members[1] + members[2]) / 3.0;
        let squares =
            members.iter().fold(Array1::<f64>::zeros(2), |sum, m| sum + (*m - &mean).mapv(|d| d * d));
        assert!(largest((&together[i].values - &mean).iter().copied()) < 1e-12);
        let errors = together[i].standard_errors.as_ref().unwrap();
        assert!(largest((errors - &(squares / 6.0).mapv(f64::sqrt)).iter().copied()) < 1e-12);
        assert_eq!(together[i].certificate.example, i);
        assert!(together[i].certificate.completeness.unwrap().relative_residual.unwrap() < 2e-3);
        assert_eq!(single[0][i].certificate.path.as_ref().unwrap().evidence.kind, "trace");
        // One flow is the path integral along its trace, to the bit.
        let traced = &trace(&flows[0], inputs.view(), &method.trace).unwrap()[i];
        let integral = PathIntegral::new(Rule::adaptive(1e-3)).explain(&score, traced, 0).unwrap();
        assert_eq!(single[0][i].values, integral.values);
    }
}

/// An input far down the list that a flow cannot be followed from is named by its number in the whole.
#[test]
fn a_flow_that_fails_names_the_example_in_the_whole_list() {
    let score = smooth_score(1, 1);
    let flow = FieldFn::new(&[1], |x, _| if x[0] > 5.0 { array![f64::NAN] } else { array![0.0] });
    let mut inputs = Array2::zeros((40, 1));
    inputs[[37, 0]] = 6.0;
    let context = Context { flows: vec![&flow], ..Context::default() };
    let refused = Transport::default().explain(&score, inputs.view(), &[0; 40], &context).unwrap_err();
    assert!(refused.to_string().contains("example 37"), "{refused}");
}

#[test]
fn baselines_are_what_they_are_called() {
    let score = image_score();
    let inputs = normal(2, 40, 8);
    let rows = normal(300, 40, 9);
    let background = Dataset::from_rows("rows", &[2, 4, 5], rows.mapv(|v| v as f32).view()).unwrap();
    let given = normal(2, 40, 10);
    let context = Context { data: Some(&background), baselines: Some(given.view()), ..Context::default() };
    let references = |baseline: Baseline, seed: u64| {
        let method = IntegratedGradients { baseline, seed, ..IntegratedGradients::default() };
        let found = method.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
        assert!(found.iter().all(|e| e.certificate.completeness.unwrap().relative_residual.unwrap() < 1e-2));
        found.into_iter().map(|e| e.reference.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(references(Baseline::Zero, 0)[1], Array1::<f64>::zeros(40));
    let mean = references(Baseline::Mean, 0);
    assert!(largest((&mean[1] - &rows.mean_axis(ndarray::Axis(0)).unwrap()).iter().copied()) < 1e-6);
    assert_eq!(references(Baseline::Given, 0)[1], given.row(1));
    let blurred = &references(Baseline::Blur { sigma: Some(2.0) }, 0)[1];
    let plane = |x: &Array1<f64>| x.slice(ndarray::s![..20]).to_owned();
    let image = plane(&inputs.row(1).to_owned());
    assert!((plane(blurred).mean().unwrap() - image.mean().unwrap()).abs() < 1e-12);
    assert!(plane(blurred).var(0.0) < 0.1 * image.var(0.0));
    let noise = references(Baseline::Noise, 3);
    let (low, high) =
        (inputs.row(1).fold(9.0_f64, |m, &v| m.min(v)), inputs.row(1).fold(-9.0_f64, |m, &v| m.max(v)));
    assert!(noise[1].iter().all(|&v| (low..=high).contains(&v)) && noise[1].var(0.0) > 0.1);
    assert_eq!(noise, references(Baseline::Noise, 3));
    assert_ne!(noise, references(Baseline::Noise, 4));
}

/// Certificates count what was spent, and no method hands the score more than a micro-batch.
#[test]
fn every_method_streams_and_counts() {
    let flow = FieldFn::new(&[2, 4, 5], |x, _| 0.5 * &x);
    let rows = normal(30, 40, 1).mapv(|v| v as f32);
    let background = Dataset::from_rows("rows", &[2, 4, 5], rows.view()).unwrap();
    let diffusion = gaussian_noise_predictor(&[2, 4, 5], 1.5);
    let diffusion = Some(&diffusion);
    let context = Context { data: Some(&background), flows: vec![&flow], diffusion, ..Context::default() };
    let groups = Some(Grouping::Patches { height: 2, width: 2 });
    let settings =
        Settings { samples: Some(150), steps: Some(150), neighbours: Some(5), groups, ..Settings::default() };
    let inputs = normal(1, 40, 2);
    for name in Method::names() {
        let method = Method::new(name, &settings).unwrap();
        // The score is a closure: there is no model to look into, and there are no trees.
        if method.spec().needs(Need::Model) || method.spec().needs(Need::Trees) {
            continue;
        }
        let score = Counting::new(image_score());
        let found = method.explain(&score, inputs.view(), &[0], &context).unwrap().remove(0);
        assert_eq!(found.certificate.method, *name);
        assert_eq!(found.certificate.gradient_evaluations, score.gradients.get(), "{name}");
        assert_eq!(found.certificate.score_evaluations, score.values.get(), "{name}");
        // Rows without gradients are cheap: a batch is larger, and bounded all the same.
        let bound = if method.needs_gradients() { 32 } else { 1024 };
        assert!(score.largest_batch.get() <= bound, "{name}");
        assert_eq!(found.values.len(), 40);
        // So few draws do not sum up, and are told so; every path does. DDIM in 50 steps does not lead back.
        let drawn = found.certificate.sampling.is_some();
        let warned = drawn || name.starts_with("ddim");
        // What promises no sum has nothing to be held to.
        let expected = match found.certificate.completeness {
            Some(_) => Verdict::Pass,
            None => Verdict::NoCheck,
        };
        assert!(warned || found.certificate.verdict == expected, "{name} {:?}", found.certificate.verdict);
        // Several references have an error, too.
        assert_eq!(found.standard_errors.is_some(), drawn || *name == "nearest-ig", "{name}");
    }
}

#[test]
fn an_input_alone_or_in_another_order_has_the_same_credit_to_the_bit() {
    let rows = normal(30, 40, 1).mapv(|v| v as f32);
    let background = Dataset::from_rows("rows", &[2, 4, 5], rows.view()).unwrap();
    let inputs = normal(3, 40, 2);
    let groups = Some(Grouping::Patches { height: 2, width: 2 });
    let settings = Settings { samples: Some(40), groups, ..Settings::default() };
    let score = image_score();
    let explain = |name: &str, rows: Array2<f64>, first_example: usize| {
        let context = Context { data: Some(&background), first_example, ..Context::default() };
        let targets = vec![0; rows.nrows()];
        Method::new(name, &settings).unwrap().explain(&score, rows.view(), &targets, &context).unwrap()
    };
    let drawn = Method::specs()
        .filter(|spec| spec.uses(Setting::Seed) && !spec.needs(Need::Model) && !spec.needs(Need::Flow));
    let names: Vec<&str> = drawn.map(|spec| spec.name).collect();
    assert!(names.contains(&"gradient-shap") && names.contains(&"kernel-shap"), "{names:?}");
    for name in names {
        let together = explain(name, inputs.clone(), 0);
        let turned = explain(name, inputs.select(ndarray::Axis(0), &[2, 0, 1]), 7);
        let alone = explain(name, inputs.select(ndarray::Axis(0), &[2]), 5);
        assert_eq!(together[2].values, alone[0].values, "{name}");
        assert_eq!(together[1].values, turned[2].values, "{name}");
        assert_ne!(together[1].values, together[2].values, "{name}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let score = smooth_score(D, 1);
    let inputs = normal(1, D, 2);
    let refused = |name: &str, settings: Settings| {
        let method = Method::new(name, &settings).unwrap();
        let background = data(5, 1);
        let context = Context { data: Some(&background), ..Context::default() };
        method.explain(&score, inputs.view(), &[0], &context).unwrap_err().to_string()
    };
    let samples = Settings { samples: Some(0), ..Settings::default() };
    for name in ["smoothgrad", "expected-gradients", "gradient-shap"] {
        assert!(refused(name, samples.clone()).contains("number of samples must be at least 1"), "{name}");
    }
    let noise = Settings { noise: Some(f64::NAN), ..Settings::default() };
    assert!(refused("smoothgrad", noise.clone()).contains("the noise is NaN"));
    assert!(refused("gradient-shap", noise).contains("the noise is NaN"));
    let steps = Settings { steps: Some(0), ..Settings::default() };
    assert!(refused("guided-ig", steps.clone()).contains("the number of steps is 0"));
    assert!(refused("ig+idgi", steps).contains("the number of steps is 0"));
    let few = Settings { neighbours: Some(0), ..Settings::default() };
    assert!(refused("geodesic-ig", few).contains("number of neighbours must be at least 1"));
    let given = Settings { baseline: Some(Baseline::Given), ..Settings::default() };
    assert!(refused("ig", given).contains("no rows are given"));
    let short = Method::new("gradient", &Settings::default()).unwrap();
    let refusal = short.explain(&score, inputs.view(), &[0, 1], &Context::default()).unwrap_err();
    assert!(refusal.to_string().contains("the list of targets has shape [2]"), "{refusal}");
    let looks = Method::new("grad-cam", &Settings::default()).unwrap();
    let refusal = looks.explain(&score, inputs.view(), &[0], &Context::default()).unwrap_err();
    assert!(refusal.to_string().contains("it looks inside a model"), "{refusal}");
}

/// A run may be cut into parts: draws follow from an example's number in the run, and so does its certificate.
#[test]
fn parts_of_a_run_draw_what_the_whole_draws() {
    let (score, _) = quadratic(5);
    let (inputs, rows) = (normal(3, D, 6), data(20, 7));
    let noisy = Settings { baseline: Some(Baseline::Noise), noise: Some(0.2), ..Settings::default() };
    let names = ["smoothgrad", "vargrad", "expected-gradients", "gradient-shap", "ig", "kernel-shap", "lime"];
    for name in names {
        let settings = Settings { samples: (name != "ig").then_some(40), seed: 3, ..noisy.clone() };
        let method = Method::new(name, &settings).unwrap();
        let explain = |from: usize, to: usize, first_example: usize| {
            let context = Context { data: Some(&rows), first_example, ..Context::default() };
            let part = inputs.slice(ndarray::s![from..to, ..]);
            method.explain(&score, part, &vec![0; to - from], &context).unwrap()
        };
        let whole = explain(0, 3, 0);
        assert_eq!([explain(0, 1, 0), explain(1, 3, 1)].concat(), whole, "{name}");
        // Under another number in the run it draws the same, by another seed it does not.
        assert_eq!(explain(1, 2, 0)[0].values, whole[1].values, "{name}");
        let other = Method::new(name, &Settings { seed: 4, ..settings }).unwrap();
        let context = Context { data: Some(&rows), ..Context::default() };
        let other = other.explain(&score, inputs.view(), &[0; 3], &context).unwrap();
        assert_ne!(other[1].values, whole[1].values, "{name} draws nothing");
    }
}
