//! Orders, tolerances, and what cannot be solved.

use super::*;
use crate::FieldFn;
use ndarray::array;

/// x' = x cos(pi t) pi on a 2-vector, x(t) = x0 exp(sin(pi t)), and a rotation: curved and smooth.
fn problem() -> impl VelocityField {
    FieldFn::new(&[2], |x, t| array![x[1] + 0.3 * t.sin(), -x[0] * (1.0 + 0.5 * t)])
}

#[test]
fn observed_order_is_the_declared_order_forward_and_backward() {
    for (from, to) in [(0.0, 1.0), (1.0, 0.0)] {
        let start = array![[1.0, 0.4]];
        let truth = solve(&problem(), start.view(), from, to, &Solver::adaptive(1e-13)).unwrap();
        let end = if to > from { 1.0 } else { 0.0 };
        for method in Scheme::ALL {
            let error = |steps| {
                let solved =
                    solve(&problem(), start.view(), from, to, &Solver::fixed(method, steps)).unwrap();
                let gap = solved[0].at(end) - truth[0].at(end);
                gap.dot(&gap).sqrt()
            };
            let slope = (error(16) / error(32)).log2();
            let order = method.tableau().order as f64;
            assert!((slope - order).abs() < 0.35, "{method:?}: slope {slope}, order {order}");
        }
    }
}

#[test]
fn dense_output_of_dormand_prince_has_order_four_and_its_derivative_fits() {
    let start = array![[1.0, 0.4]];
    let truth =
        solve(&problem(), start.view(), 0.0, 1.0, &Solver::fixed(Scheme::DormandPrince, 400)).unwrap();
    let error = |steps: usize| {
        let solved =
            solve(&problem(), start.view(), 0.0, 1.0, &Solver::fixed(Scheme::DormandPrince, steps)).unwrap();
        (1..200)
            .map(|i| {
                let t = f64::from(i) / 200.0;
                let gap = solved[0].at(t) - truth[0].at(t);
                gap.dot(&gap).sqrt()
            })
            .fold(0.0, f64::max)
    };
    // Local error theta^5: the interpolant loses one order against the step, and gains none.
    let slope = (error(4) / error(8)).log2();
    assert!(slope > 4.4, "slope {slope}");
    let t = 0.3371;
    let difference = (truth[0].at(t + 1e-5) - truth[0].at(t - 1e-5)) / 2e-5;
    let derivative = truth[0].derivative(t);
    assert!((&difference - &derivative).iter().all(|e| e.abs() < 1e-8));
    let velocity = problem().velocity(stack_rows(&[truth[0].at(t)]).view(), &[t]).unwrap();
    assert!((&velocity.row(0) - &derivative).iter().all(|e| e.abs() < 1e-7));
}

#[test]
fn a_trajectory_does_not_depend_on_its_batch() {
    // The middle one is slow and hard, the others easy.
    let field =
        FieldFn::new(&[1], |x, t| array![(x[0] * x[0] * 9.0 * (12.0 * t).sin()).sin() * (1.0 + x[0])]);
    let starts = array![[0.1], [2.5], [-0.7]];
    let together = solve(&field, starts.view(), 1.0, 0.0, &Solver::adaptive(1e-8)).unwrap();
    for i in 0..3 {
        let alone = solve(&field, starts.slice(ndarray::s![i..i + 1, ..]), 1.0, 0.0, &Solver::adaptive(1e-8));
        assert_eq!(alone.unwrap()[0], together[i], "trajectory {i}");
    }
    assert_ne!(together[0].times.len(), together[1].times.len());
}

#[test]
fn adaptive_error_follows_the_tolerance() {
    let start = array![[1.0, 0.4]];
    let truth = solve(&problem(), start.view(), 0.0, 1.0, &Solver::adaptive(1e-13)).unwrap();
    for tolerance in [1e-4, 1e-6, 1e-8] {
        let solved = solve(&problem(), start.view(), 0.0, 1.0, &Solver::adaptive(tolerance)).unwrap();
        let gap = solved[0].end() - truth[0].end();
        assert!(gap.dot(&gap).sqrt() < 20.0 * tolerance, "tolerance {tolerance}");
    }
}

#[test]
fn a_field_that_blows_up_is_a_step_size_underflow_with_its_place() {
    // x' = x^2 from x(0) = 1.25 has a pole at t = 0.8.
    let field = FieldFn::new(&[1], |x, _| array![x[0] * x[0]]);
    let starts = array![[0.1], [1.25]];
    match solve(&field, starts.view(), 0.0, 1.0, &Solver::adaptive(1e-6)) {
        Err(Error::StepUnderflow { example: 1, time, .. }) => {
            assert!((time - 0.8).abs() < 1e-6, "{time}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_solved_is_refused_with_its_reason() {
    let nan = FieldFn::new(&[2], |x, t| array![x[0], if t > 0.5 && x[1] > 1.0 { f64::NAN } else { 0.0 }]);
    let starts = array![[0.0, 0.0], [1.0, 2.0]];
    let error = solve(&nan, starts.view(), 0.0, 1.0, &Solver::fixed(Scheme::Rk4, 10)).unwrap_err();
    match error {
        Error::NonFinite { what: "velocity", example: 1, time, ref place, .. } => {
            assert!(time > 0.5 && time < 0.7);
            assert_eq!(place, "feature 1");
        }
        other => panic!("{other:?}"),
    }
    let fine = FieldFn::new(&[2], |x, _| x.to_owned());
    let refused = |solver: Solver| solve(&fine, starts.view(), 0.0, 1.0, &solver).unwrap_err().to_string();
    assert!(refused(Solver::fixed(Scheme::Euler, 0)).contains("at least one step"));
    assert!(refused(Solver::adaptive(0.0)).contains("positive"));
    assert!(refused(Solver { scheme: Scheme::Rk4, ..Solver::adaptive(1e-3) }).contains("rk4"));
    let wrong = solve(&fine, array![[1.0, 2.0, 3.0]].view(), 0.0, 1.0, &Solver::default()).unwrap_err();
    assert!(wrong.to_string().contains("[1, 2]"), "{wrong}");
}
