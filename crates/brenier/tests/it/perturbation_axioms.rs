//! Shapley values: closed forms, the axioms, and KernelSHAP's agreement with the definition.

use brenier::attribute::{Absence, Baseline, Coalitions, Context, Grouping, KernelShap, ShapleyValues};
use brenier::data::Dataset;
use brenier::{Explanation, Score, ValueFn, Verdict};
use ndarray::{Array1, Array2, Axis, array};
use proptest::prelude::*;

use crate::shared::{normal, smooth_score};

const D: usize = 6;

fn all() -> KernelShap {
    KernelShap { coalitions: Coalitions::All, ..KernelShap::default() }
}

fn one(explanations: brenier::Result<Vec<Explanation>>) -> Explanation {
    explanations.unwrap().remove(0)
}

fn close(a: &Array1<f64>, b: &Array1<f64>, tolerance: f64) -> bool {
    (a - b).iter().all(|gap| gap.abs() <= tolerance)
}

/// Numbers that float32 has too, as data have them.
fn single(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    normal(rows, columns, seed).mapv(|v| f64::from(v as f32))
}

/// Exact values and full KernelSHAP, which must agree: over a background, or from zero.
fn both(
    score: &dyn Score,
    input: &Array1<f64>,
    groups: Grouping,
    background: Option<&Array2<f64>>,
) -> Array1<f64> {
    let inputs = input.view().insert_axis(Axis(0));
    let data = background
        .map(|rows| Dataset::from_rows("rows", &[rows.ncols()], rows.mapv(|v| v as f32).view()).unwrap());
    let context = Context { data: data.as_ref(), ..Context::default() };
    let absence = match background {
        Some(_) => Absence::Background { rows: 100 },
        None => Absence::Baseline(Baseline::Zero),
    };
    let exact = ShapleyValues { groups: groups.clone(), absence, ..ShapleyValues::default() };
    let exact = one(exact.explain(score, inputs, &[0], &context));
    let kernel = one(KernelShap { groups, absence, ..all() }.explain(score, inputs, &[0], &context));
    assert!(close(&exact.values, &kernel.values, 1e-9), "{} {}", exact.values, kernel.values);
    assert_eq!(exact.certificate.verdict, Verdict::Pass);
    assert_eq!(kernel.certificate.verdict, Verdict::Pass);
    assert!(kernel.certificate.sampling.is_none() && kernel.standard_errors.is_none());
    exact.values
}

#[test]
fn a_linear_score_credits_each_feature_with_its_own_term() {
    let weights = array![2.0, -1.0, 0.5, 3.0];
    let score = ValueFn::new(&[4], |x, _| 7.0 + x.dot(&weights));
    let (input, background) = (array![1.0, 2.0, 3.0, 4.0], single(5, 4, 1));
    let values = both(&score, &input, Grouping::Each, Some(&background));
    let expected = &weights * &(&input - &background.mean_axis(Axis(0)).unwrap());
    assert!(close(&values, &expected, 1e-12));
}

#[test]
fn products_are_shared_by_their_factors() {
    // x0 x1 + x2 x3 x4, from zero.
    let score = ValueFn::new(&[5], |x, _| x[0] * x[1] + x[2] * x[3] * x[4]);
    let values = both(&score, &array![2.0, 3.0, 1.0, 5.0, 2.0], Grouping::Each, None);
    assert!(close(&values, &array![3.0, 3.0, 10.0 / 3.0, 10.0 / 3.0, 10.0 / 3.0], 1e-12));
}

#[test]
fn the_largest_value_is_shared_as_an_airport_shares_its_runway() {
    // In ascending order x_1 <= .. <= x_n: phi_k = sum_{j <= k} (x_j - x_{j-1}) / (n - j + 1).
    let input = array![5.0, 1.0, 3.0, 3.5, 9.0];
    let score = ValueFn::new(&[5], |x, _| x.iter().copied().fold(0.0, f64::max));
    let values = both(&score, &input, Grouping::Each, None);
    let mut order: Vec<usize> = (0..5).collect();
    order.sort_by(|a, b| input[*a].total_cmp(&input[*b]));
    let (mut expected, mut share, mut before) = (Array1::zeros(5), 0.0, 0.0);
    for (j, &feature) in order.iter().enumerate() {
        share += (input[feature] - before) / (5 - j) as f64;
        before = input[feature];
        expected[feature] = share;
    }
    assert!(close(&values, &expected, 1e-12), "{values} {expected}");
}

#[test]
fn one_group_or_none_that_differs_has_all_the_credit_or_nothing() {
    let score = ValueFn::new(&[3], |x, _| x.iter().product::<f64>() + x[1].exp());
    let change = 5_f64.exp() - 1.0;
    assert!(close(
        &both(&score, &array![0.0, 5.0, 0.0], Grouping::Each, None),
        &array![0.0, change, 0.0],
        1e-12
    ));
    assert_eq!(both(&score, &array![0.0, 0.0, 0.0], Grouping::Each, None), Array1::<f64>::zeros(3));
}

#[test]
fn rounding_alone_is_no_reason_to_warn() {
    // 0.1 - 0.3 + 0.2 is 0 but for rounding, so is what credit sums to, and their ratio means nothing.
    let score = ValueFn::new(&[3], |x, _| 0.1 * x[0] - 0.3 * x[1] + 0.2 * x[2]);
    both(&score, &array![1.0, 1.0, 1.0], Grouping::Each, None);
    let score = ValueFn::new(&[3], |x, _| (0.1 * x[0] * x[1] + 0.7 * x[2]) * (1.0 - x[0]) * (3.0 - x[1]));
    both(&score, &array![1.0, 3.0, 0.3], Grouping::Each, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn efficiency_and_agreement_with_background_and_groups(seed in 0_u64..1_000_000) {
        let (score, numbers) = (smooth_score(D, seed), single(4, D, seed + 1));
        let groups = Grouping::Columns { blocks: vec![vec![1, 4], vec![0, 5]] };
        let background = numbers.slice(ndarray::s![1.., ..]).to_owned();
        let input = numbers.row(0).to_owned();
        let values = both(&score, &input, groups, Some(&background));
        let f = |x: &Array2<f64>| score.values(x.view(), &[0, 0, 0]).unwrap().mean().unwrap();
        let at_input = f(&input.insert_axis(Axis(0)));
        prop_assert!((values.sum() - (at_input - f(&background))).abs() < 1e-9);
        prop_assert_eq!(values[1], values[4]);
        prop_assert_eq!(values[0], values[5]);
    }

    #[test]
    fn dummies_get_nothing_and_equals_get_the_same(seed in 0_u64..1_000_000) {
        // Feature 3 does not enter; features 0 and 2 enter by their sum, with the same values.
        let inner = smooth_score(D, seed);
        let score = ValueFn::new(&[D], |x, _| {
            let mut x = x.to_owned();
            let sum = x[0] + x[2];
            (x[0], x[2], x[3]) = (sum, sum, 0.0);
            inner.values(x.view().insert_axis(Axis(0)), &[0]).unwrap()[0]
        });
        let mut input = normal(1, D, seed + 1).row(0).to_owned();
        input[2] = input[0];
        let values = both(&score, &input, Grouping::Each, None);
        prop_assert!(values[3].abs() < 1e-12);
        prop_assert!((values[0] - values[2]).abs() < 1e-12);
        prop_assert!(values[0] != 0.0 && values[1] != values[0]);
    }

    #[test]
    fn sampled_credit_sums_up_as_well(seed in 0_u64..1_000_000) {
        let (features, count) = (30, 300);
        let (score, input) = (smooth_score(features, seed), normal(1, features, seed + 1));
        let sampled = KernelShap { coalitions: Coalitions::Sampled { count }, seed, ..KernelShap::default() };
        let explanation = one(sampled.explain(&score, input.view(), &[0], &Context::default()));
        let completeness = explanation.certificate.completeness.unwrap();
        prop_assert!(completeness.residual < 1e-9);
        prop_assert_eq!(explanation.certificate.verdict, Verdict::Pass);
        prop_assert!(explanation.certificate.score_evaluations <= count + 2);
        prop_assert!(explanation.certificate.sampling.unwrap().mean_standard_error.unwrap() > 0.0);
    }
}
