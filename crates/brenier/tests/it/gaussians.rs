//! The exact flows between Gaussians: action, straightness, and the difference between straight and optimal.

use brenier::problems::{Gaussian, OptimalTransport, RectifiedTransport};
use brenier::{
    Path, Solver, TraceConfig, TraceMode, VelocityField, curvature, flow_consistency_error,
    geometric_path_straightness, kinetic_action, relative_field_error, sample, solve, trace,
};
use ndarray::{Array1, Array2, array, s};
use proptest::prelude::*;

use crate::shared::normal;

fn random_covariance(d: usize, seed: u64) -> Array2<f64> {
    let factor = normal(d, d, seed);
    factor.dot(&factor.t()) / d as f64 + 0.3 * Array2::<f64>::eye(d)
}

fn random_gaussian(d: usize, seed: u64) -> Gaussian {
    Gaussian::new(normal(1, d, seed + 77).row(0), random_covariance(d, seed).view()).unwrap()
}

#[test]
fn action_of_the_exact_rectified_flow_has_its_known_values() {
    for (variance, rectified, optimal) in [(0.25, 0.4646, 0.25), (4.0, 1.8584, 1.0), (9.0, 5.2876, 4.0)] {
        let (from, to) = (Gaussian::isotropic(1, 1.0).unwrap(), Gaussian::isotropic(1, variance).unwrap());
        let flow = RectifiedTransport::new(from.clone(), to.clone()).unwrap();
        let best = OptimalTransport::new(from, to).unwrap();
        // The trace that begins at 1 ends at the scale r(1) = sqrt(s); E x0^2 = 1, so it has the mean action.
        let input = array![[variance.sqrt()]];
        let config = TraceConfig { solver: Solver::adaptive(1e-10), ..TraceConfig::default() };
        let path = &trace(&flow, input.view(), &config).unwrap()[0];
        for t in [0.0, 0.25, 0.6] {
            let scale = ((1.0_f64 - t).powi(2) + t * t * variance).sqrt();
            assert!((path.at(t)[0] - scale).abs() < 1e-7, "s = {variance}, t = {t}");
        }
        let action = kinetic_action(sample(path, 2000).view()).unwrap();
        assert!((action - rectified).abs() < 6e-5, "s = {variance}: {action}");
        let straight = &trace(&best, input.view(), &config).unwrap()[0];
        let action = kinetic_action(sample(straight, 2000).view()).unwrap();
        assert!((action - optimal).abs() < 1e-6, "s = {variance}: {action}");
        assert!((best.squared_distance() - optimal).abs() < 1e-12);
    }
}

#[test]
fn straight_is_not_optimal_when_covariances_do_not_commute() {
    let from = Gaussian::new(array![0.0, 0.0].view(), array![[4.0, 0.0], [0.0, 0.25]].view()).unwrap();
    let to = Gaussian::new(array![0.0, 0.0].view(), array![[1.0, 0.9], [0.9, 1.0]].view()).unwrap();
    let flow = RectifiedTransport::new(from.clone(), to.clone()).unwrap();
    let best = OptimalTransport::new(from.clone(), to).unwrap();
    let unit = array![[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
    let images = |field: &dyn VelocityField| {
        let solved = solve(field, unit.view(), 0.0, 1.0, &Solver::adaptive(1e-10)).unwrap();
        let mut ends = Array2::zeros((3, 2));
        for (mut row, trajectory) in ends.rows_mut().into_iter().zip(solved) {
            row.assign(&trajectory.end());
        }
        ends
    };
    let optimal = flow.endpoint_cost(images(&best).view()).unwrap();
    assert!((optimal - best.squared_distance()).abs() < 1e-7, "the optimal flow attains W2^2");
    // Straight lines between the ends of 1-RF (what exact Reflow gives) have this cost as their action:
    let straightened = flow.endpoint_cost(images(&flow).view()).unwrap();
    assert!(straightened > 1.05 * optimal, "straightened {straightened}, optimal {optimal}");

    // Where the covariances commute, the endpoint map is optimal although the way there is curved.
    let to = Gaussian::new(array![0.0, 0.0].view(), array![[1.0, 0.0], [0.0, 9.0]].view()).unwrap();
    let flow = RectifiedTransport::new(from.clone(), to.clone()).unwrap();
    let best = OptimalTransport::new(from, to).unwrap();
    let commuting = flow.endpoint_cost(images(&flow).view()).unwrap();
    assert!((commuting - best.squared_distance()).abs() < 1e-7);
    let path = &trace(&flow, array![[0.5, 2.0]].view(), &TraceConfig::default()).unwrap()[0];
    assert!(curvature(sample(path, 100).view()).unwrap() > 0.1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn optimal_traces_are_straight_and_end_where_the_map_says(seed in 0_u64..100_000, d in 1_usize..6) {
        let (from, to) = (random_gaussian(d, seed), random_gaussian(d, seed + 1));
        let best = OptimalTransport::new(from, to).unwrap();
        let input = normal(1, d, seed + 2);
        let config = TraceConfig { solver: Solver::adaptive(1e-9), ..TraceConfig::default() };
        let path = &trace(&best, input.view(), &config).unwrap()[0];
        let reference = best.inverse_map(input.row(0));
        prop_assert!((path.at(0.0) - &reference).iter().all(|gap| gap.abs() < 1e-6));
        prop_assert!((best.map(reference.view()) - input.row(0)).iter().all(|gap| gap.abs() < 1e-9));
        let states = sample(path, 40);
        prop_assert!((geometric_path_straightness(states.view()).unwrap() - 1.0).abs() < 1e-6);
        prop_assert!(curvature(states.view()).unwrap() < 1e-4);
        prop_assert!(flow_consistency_error(states.view(), &best).unwrap() < 1e-8);
        prop_assert!(path.evidence().round_trip_error.unwrap() < 1e-6);
    }

    #[test]
    fn rectified_flow_carries_the_covariance_over(seed in 0_u64..100_000) {
        // The flow map B of an affine flow satisfies B S0 B^T = S1, however the covariances lie.
        let d = 3;
        let flow = RectifiedTransport::new(random_gaussian(d, seed), random_gaussian(d, seed + 1)).unwrap();
        let mut starts = Array2::zeros((d + 1, d));
        starts.slice_mut(s![1.., ..]).assign(&Array2::<f64>::eye(d));
        let solved = solve(&flow, starts.view(), 0.0, 1.0, &Solver::adaptive(1e-10)).unwrap();
        let map = Array2::from_shape_fn((d, d), |(i, j)| solved[j + 1].end()[i] - solved[0].end()[i]);
        let carried = map.dot(&random_covariance(d, seed)).dot(&map.t());
        let expected = random_covariance(d, seed + 1);
        prop_assert!((&carried - &expected).iter().all(|gap| gap.abs() < 1e-6), "{} {}", carried, expected);
    }
}

#[test]
fn diagnostics_have_their_closed_forms() {
    // A quarter circle of radius 2 at constant speed: length pi, distance 2 sqrt 2, acceleration pi^2/2.
    let steps = 1000;
    let quarter = std::f64::consts::FRAC_PI_2;
    let states = Array2::from_shape_fn((steps + 1, 2), |(k, i)| {
        let angle = quarter * k as f64 / steps as f64;
        2.0 * if i == 0 { angle.cos() } else { angle.sin() }
    });
    let pi = std::f64::consts::PI;
    assert!((kinetic_action(states.view()).unwrap() - pi * pi).abs() < 1e-4);
    assert!((geometric_path_straightness(states.view()).unwrap() - pi / 8.0_f64.sqrt()).abs() < 1e-5);
    let acceleration = 2.0 * quarter * quarter;
    assert!((curvature(states.view()).unwrap() - acceleration.powi(2)).abs() < 0.05);
    let rotation = brenier::FieldFn::new(&[2], |x, _| array![-x[1], x[0]] * std::f64::consts::FRAC_PI_2);
    assert!(flow_consistency_error(states.view(), &rotation).unwrap() < 1e-4);
    // Against a field at rest, FCE is the mean squared speed; a field 10 % too fast is 10 % off.
    let rest = brenier::FieldFn::new(&[2], |x, _| 0.0 * &x);
    assert!((flow_consistency_error(states.view(), &rest).unwrap() - pi * pi).abs() < 1e-4);
    let fast = brenier::FieldFn::new(&[2], |x, _| array![-x[1], x[0]] * (1.1 * std::f64::consts::FRAC_PI_2));
    assert!((relative_field_error(states.view(), &fast, &rotation).unwrap() - 0.1).abs() < 1e-9);
    let credit: Array1<f64> = array![3.0, 4.0];
    assert!(
        (brenier::relative_attribution_error((1.2 * &credit).view(), credit.view()).unwrap() - 0.2).abs()
            < 1e-12
    );
    // The mean of chi-square is ordinary; five times the radius is not.
    assert!(brenier::reference_deviation(Array1::ones(100).view()).abs() < 0.1);
    assert!(brenier::reference_deviation((5.0 * Array1::<f64>::ones(100)).view()) > 10.0);
}

#[test]
fn both_ways_of_tracing_end_at_the_input_and_report_the_mismatch() {
    let flow = RectifiedTransport::new(random_gaussian(3, 1), random_gaussian(3, 2)).unwrap();
    let input = normal(2, 3, 3);
    // Ten Euler steps are crude: the way forward misses the input.
    let solver = Solver::fixed(brenier::Scheme::Euler, 10);
    let mut errors = Vec::new();
    for mode in [TraceMode::ReversedBackward, TraceMode::BackwardForward] {
        let config = TraceConfig { solver, mode, ..TraceConfig::default() };
        let traces = trace(&flow, input.view(), &config).unwrap();
        for (i, path) in traces.iter().enumerate() {
            assert_eq!(path.ends().1, input.row(i), "{mode:?}");
        }
        let evidence = traces[0].evidence();
        let consistency = flow_consistency_error(sample(&traces[0], 50).view(), &flow).unwrap();
        assert!((evidence.flow_consistency_error.unwrap() / consistency - 1.0).abs() < 1e-12);
        assert!(evidence.round_trip_error.unwrap() > 1e-3);
        assert_eq!(
            evidence.velocity_evaluations.unwrap(),
            if mode == TraceMode::ReversedBackward { 11 } else { 22 }
        );
        errors.push(evidence.round_trip_error.unwrap());
    }
    assert_eq!(errors[0], errors[1]);
    assert!(trace(&flow, Array2::zeros((0, 3)).view(), &TraceConfig::default()).unwrap().is_empty());
    let fine = TraceConfig { solver: Solver::adaptive(1e-9), ..TraceConfig::default() };
    assert!(trace(&flow, input.view(), &fine).unwrap()[0].evidence().round_trip_error.unwrap() < 1e-7);
}
