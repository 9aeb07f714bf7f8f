//! Theorem stability: a field that is off by at most eps moves no feature's credit by more than C eps, with
//! the constant of the proof, C = B_g (L_v e^L_v + 1) + B_v L_g e^L_v.

use brenier::{FieldFn, Path, PathIntegral, Rule, Solver, TraceConfig, VelocityField, sample, trace};
use ndarray::{Array1, array};
use proptest::prelude::*;

use crate::shared::{normal, smooth_score};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn credit_moves_no_more_than_the_bound(seed in 0_u64..1_000_000, exponent in 1..5_i32) {
        let eps = 10.0_f64.powi(-exponent);
        // A rotation plus a drift: Lipschitz constant exactly `spin`.
        let spin = 0.8;
        let ideal = |x: &ndarray::ArrayView1<f64>, t: f64| array![-spin * x[1] + t, spin * x[0] - 0.5];
        // A perturbation of norm at most eps, itself with Lipschitz constant at most 2 eps.
        let phases = normal(1, 4, seed).row(0).to_owned();
        let push = move |x: &ndarray::ArrayView1<f64>, t: f64| -> Array1<f64> {
            let angle = phases[0] * 3.0 + phases[1].tanh() * x[0] + phases[2].tanh() * x[1] + phases[3] * t;
            array![eps * angle.cos(), eps * angle.sin()]
        };
        let exact = FieldFn::new(&[2], move |x, t| ideal(&x, t));
        let learned = FieldFn::new(&[2], move |x, t| ideal(&x, t) + push(&x, t));
        let input = normal(1, 2, seed + 1);
        let config = TraceConfig { solver: Solver::adaptive(1e-11), ..TraceConfig::default() };
        let gamma = &trace(&exact, input.view(), &config).unwrap()[0];
        let other = &trace(&learned, input.view(), &config).unwrap()[0];
        let score = smooth_score(2, seed + 2);
        let integral = PathIntegral::new(Rule::GaussLegendre { nodes: 40 });
        let gap = integral.explain(&score, gamma, 0).unwrap().values - integral.explain(&score, other, 0).unwrap().values;
        let speed = |path: &dyn Path, field: &dyn VelocityField| {
            let states = sample(path, 200);
            let times: Vec<f64> = (0..=200).map(|k| f64::from(k) / 200.0).collect();
            let v = field.velocity(states.view(), &times).unwrap();
            v.rows().into_iter().map(|row| row.dot(&row).sqrt()).fold(0.0, f64::max)
        };
        let lipschitz = spin + 2.0 * eps;
        let fastest = 1.01 * speed(gamma, &exact).max(speed(other, &learned)) + lipschitz * eps;
        let growth = lipschitz.exp();
        let constant = score.gradient_bound() * (lipschitz * growth + 1.0) + fastest * score.hessian_bound() * growth;
        let largest = gap.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        prop_assert!(largest <= constant * eps, "{largest} > {constant} * {eps}");
        // And it does move: the perturbation is not lost on the way.
        prop_assert!(largest > 1e-6 * eps);
    }
}
