//! The fixed-path axioms and the two propositions of appendix B, on random scores and paths.

use brenier::problems::{LinearScore, QuadraticScore, SineSum};
use brenier::{Line, Path, PathIntegral, Polyline, Reparameterised, Rule, Score, ScoreFn, Verdict, sample};
use proptest::prelude::*;

use crate::shared::{Curve, normal, smooth_score};

const D: usize = 5;

fn precise() -> PathIntegral {
    PathIntegral::new(Rule::GaussLegendre { nodes: 300 })
}

fn close(a: &ndarray::Array1<f64>, b: &ndarray::Array1<f64>, tolerance: f64) -> bool {
    (a - b).iter().all(|gap| gap.abs() <= tolerance)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn efficiency_credit_sums_to_the_change_of_the_score(seed in 0_u64..1_000_000) {
        let (score, curve) = (smooth_score(D, seed), Curve::random(D, seed + 1));
        let explanation = precise().explain(&score, &curve, 0).unwrap();
        let (x0, x1) = curve.ends();
        let f = |x: &ndarray::Array1<f64>| score.values(x.view().insert_axis(ndarray::Axis(0)), &[0]).unwrap()[0];
        prop_assert!((explanation.values.sum() - (f(&x1) - f(&x0))).abs() < 1e-8);
        prop_assert_eq!(explanation.certificate.completeness.unwrap().reference_score, f(&x0));
        prop_assert_eq!(explanation.certificate.score, f(&x1));
    }

    #[test]
    fn linearity_in_the_score(seed in 0_u64..1_000_000, a in -3.0..3.0_f64, b in -3.0..3.0_f64) {
        let (f, g, curve) = (smooth_score(D, seed), smooth_score(D, seed + 7), Curve::random(D, seed + 1));
        let mixed = ScoreFn::new(&[D], |x, _| {
            let x = x.insert_axis(ndarray::Axis(0));
            let (vf, gf) = f.gradients(x, &[0]).unwrap();
            let (vg, gg) = g.gradients(x, &[0]).unwrap();
            (a * vf[0] + b * vg[0], a * &gf.row(0) + b * &gg.row(0))
        });
        for rule in [Rule::Left { steps: 9 }, Rule::Simpson { steps: 8 }, Rule::GaussLegendre { nodes: 7 }] {
            let integral = PathIntegral::new(rule);
            let expected = a * integral.explain(&f, &curve, 0).unwrap().values
                + b * integral.explain(&g, &curve, 0).unwrap().values;
            prop_assert!(close(&integral.explain(&mixed, &curve, 0).unwrap().values, &expected, 1e-11));
        }
    }

    #[test]
    fn dummy_features_get_nothing(seed in 0_u64..1_000_000) {
        // Feature 2 does not enter the score; feature 4 does, but does not move.
        let inner = smooth_score(D, seed);
        let score = ScoreFn::new(&[D], |x, _| {
            let mut x = x.to_owned();
            x[2] = 0.0;
            let (value, gradient) = inner.gradients(x.view().insert_axis(ndarray::Axis(0)), &[0]).unwrap();
            let mut gradient = gradient.row(0).to_owned();
            gradient[2] = 0.0;
            (value[0], gradient)
        });
        let mut curve = Curve::random(D, seed + 1);
        curve.to[4] = curve.from[4];
        curve.loops[4] = 0.0;
        for rule in [Rule::Left { steps: 9 }, Rule::Simpson { steps: 8 }, Rule::GaussLegendre { nodes: 7 }, Rule::adaptive(1e-2)] {
            let values = PathIntegral::new(rule).explain(&score, &curve, 0).unwrap().values;
            prop_assert_eq!(values[2], 0.0);
            prop_assert!(values[4].abs() < 1e-14);
            prop_assert!(values[0] != 0.0);
        }
    }

    #[test]
    fn reparameterisation_changes_nothing(seed in 0_u64..1_000_000, bend in -0.9..0.9_f64) {
        let (score, curve) = (smooth_score(D, seed), Curve::random(D, seed + 1));
        let expected = precise().explain(&score, &curve, 0).unwrap().values;
        let sigma = |t: f64| t + bend * t * (1.0 - t);
        let other = Reparameterised::new(&curve, sigma, |t| 1.0 + bend * (1.0 - 2.0 * t)).unwrap();
        prop_assert!(close(&precise().explain(&score, &other, 0).unwrap().values, &expected, 1e-7));
    }

    #[test]
    fn additive_scores_are_recovered_on_any_path(seed in 0_u64..1_000_000) {
        let score = SineSum::new(D);
        let curve = Curve::random(D, seed);
        let (x0, x1) = curve.ends();
        let exact = score.exact_credit(x0.view(), x1.view());
        prop_assert!(close(&precise().explain(&score, &curve, 0).unwrap().values, &exact, 1e-9));
        // A polyline with corners has the same ends, so the same credit.
        let points = sample(&curve, 6);
        let polyline = Polyline::new(points).unwrap();
        prop_assert!(close(&precise().explain(&score, &polyline, 0).unwrap().values, &exact, 1e-9));
    }

    #[test]
    fn linear_scores_are_exact_with_any_rule_of_any_size(seed in 0_u64..1_000_000, steps in 1_usize..20) {
        let weights = normal(1, D, seed).row(0).to_owned();
        let score = LinearScore::new(weights, 0.7);
        let curve = Curve::random(D, seed + 1);
        let (x0, x1) = curve.ends();
        let exact = score.exact_credit(x0.view(), x1.view());
        for rule in [Rule::Left { steps }, Rule::Right { steps }, Rule::Midpoint { steps }, Rule::Trapezoid { steps }, Rule::Simpson { steps: 2 * steps }] {
            prop_assert!(close(&PathIntegral::new(rule).explain(&score, &curve, 0).unwrap().values, &exact, 1e-12));
        }
    }

    #[test]
    fn quadratic_scores_are_exact_on_lines(seed in 0_u64..1_000_000) {
        let numbers = normal(D + 3, D, seed);
        let score = QuadraticScore::new(numbers.slice(ndarray::s![3.., ..]), numbers.row(0).to_owned()).unwrap();
        let line = Line::new(numbers.row(1), numbers.row(2)).unwrap();
        let exact = score.exact_line_credit(numbers.row(1), numbers.row(2));
        for rule in [Rule::Midpoint { steps: 1 }, Rule::Trapezoid { steps: 1 }, Rule::Simpson { steps: 2 }, Rule::GaussLegendre { nodes: 1 }, Rule::adaptive(1e-9)] {
            let explanation = PathIntegral::new(rule).explain(&score, &line, 0).unwrap();
            prop_assert!(close(&explanation.values, &exact, 1e-11), "{:?}", rule);
        }
    }

    #[test]
    fn discrete_residual_is_under_its_bound(seed in 0_u64..1_000_000, steps in 1_usize..60) {
        // Prop. discrete_efficiency: |residual| <= M/2 sum_k |dx_k|^2 for the left rule.
        let (score, curve) = (smooth_score(D, seed), Curve::random(D, seed + 1));
        let states = sample(&curve, steps);
        let squares: f64 = (0..steps).map(|k| (&states.row(k + 1) - &states.row(k)).mapv(|v| v * v).sum()).sum();
        let explanation = PathIntegral::new(Rule::Left { steps }).explain(&score, &curve, 0).unwrap();
        prop_assert!(explanation.certificate.completeness.unwrap().residual <= 0.5 * score.hessian_bound() * squares + 1e-12);
    }

    #[test]
    fn adaptive_keeps_its_tolerance_or_says_so(seed in 0_u64..1_000_000, exponent in 1_i32..7) {
        let tolerance = 10.0_f64.powi(-exponent);
        let (score, curve) = (smooth_score(D, seed), Curve::random(D, seed + 1));
        let certificate = PathIntegral::new(Rule::adaptive(tolerance)).explain(&score, &curve, 0).unwrap().certificate;
        let met = certificate.completeness.unwrap().relative_residual.unwrap() <= tolerance && certificate.path.as_ref().unwrap().relative_disagreement.unwrap() <= tolerance;
        prop_assert_eq!(met, certificate.verdict == Verdict::Pass);
        // Smooth curves and scores: 2,000 gradients are plenty for what is asked here.
        prop_assert!(met || exponent > 5, "{:?}", certificate);
    }
}

#[test]
fn the_left_rule_is_the_papers_estimator_to_the_letter() {
    let (score, curve) = (smooth_score(D, 3), Curve::random(D, 4));
    let steps = 50;
    let states = sample(&curve, steps);
    let (_, gradients) = score.gradients(states.view(), &vec![0; steps + 1]).unwrap();
    let mut expected = ndarray::Array1::<f64>::zeros(D);
    for k in 0..steps {
        for i in 0..D {
            expected[i] += gradients[[k, i]] * (states[[k + 1, i]] - states[[k, i]]);
        }
    }
    let values = PathIntegral::new(Rule::Left { steps }).explain(&score, &curve, 0).unwrap().values;
    assert_eq!(values, expected);
}

#[test]
fn the_bound_is_not_vacuous() {
    // f = x^2 / 2 has Hessian 1 and constant steps: the bound of Prop. discrete_efficiency is attained.
    let score = QuadraticScore::new(ndarray::array![[1.0]].view(), ndarray::array![0.0]).unwrap();
    let line = Line::new(ndarray::array![0.0].view(), ndarray::array![3.0].view()).unwrap();
    let residual = PathIntegral::new(Rule::Left { steps: 10 })
        .explain(&score, &line, 0)
        .unwrap()
        .certificate
        .completeness
        .unwrap()
        .residual;
    assert!((residual - 0.5 * 10.0 * 0.09).abs() < 1e-12);
}

#[test]
fn fifty_euler_steps_and_the_left_rule_are_algorithm_1_of_the_paper() {
    use brenier::problems::{Gaussian, RectifiedTransport};
    use brenier::{Scheme, Solver, TraceConfig, TraceMode, trace};

    let (from, to) = (Gaussian::isotropic(D, 1.0).unwrap(), Gaussian::isotropic(D, 4.0).unwrap());
    let flow = RectifiedTransport::new(from, to).unwrap();
    let score = smooth_score(D, 5);
    for mode in [TraceMode::ReversedBackward, TraceMode::BackwardForward] {
        let solver = Solver::fixed(Scheme::Euler, 50);
        let config = TraceConfig { solver, mode, ..TraceConfig::default() };
        let path = &trace(&flow, normal(1, D, 6).view(), &config).unwrap()[0];
        // The stored states themselves, not the interpolated path, enter the sum.
        let states = &path.trajectory().states;
        assert_eq!(states.nrows(), 51);
        let (_, gradients) = score.gradients(states.view(), &[0; 51]).unwrap();
        let mut expected = ndarray::Array1::<f64>::zeros(D);
        for k in 0..50 {
            expected += &(&gradients.row(k) * &(&states.row(k + 1) - &states.row(k)));
        }
        let integral = PathIntegral::new(Rule::Left { steps: 50 });
        assert_eq!(integral.explain(&score, path, 0).unwrap().values, expected, "{mode:?}");
    }
}
