//! DDIM trajectories, against the probability flow of a Gaussian.
//!
//! For data `N(0, c^2)` the exact trajectory is `x_t = x_1 sqrt(alpha^2 c^2 + sigma^2) / c`.

use brenier::flow::noise_schedule;
use brenier::{Path, ddim, ddim_ends};
use ndarray::array;

use crate::shared::gaussian_noise_predictor;

const DEVIATION: f64 = 2.0;

fn exact(x: f64, t: f64) -> f64 {
    let (alpha, sigma) = noise_schedule(t);
    x * (alpha * alpha * DEVIATION * DEVIATION + sigma * sigma).sqrt() / DEVIATION
}

#[test]
fn inversion_converges_to_the_exact_trajectory_at_first_order() {
    let model = gaussian_noise_predictor(&[2], DEVIATION);
    let inputs = array![[1.5, -0.4]];
    let mut errors = Vec::new();
    for steps in [50, 100, 200, 400] {
        let path = ddim(&model, inputs.view(), steps).unwrap().remove(0);
        assert_eq!(path.at(1.0), inputs.row(0));
        let gap = |t: f64| (path.at(t)[0] - exact(1.5, t)).abs();
        errors.push(gap(0.0).max(gap(0.5)));
    }
    let order = (errors[0] / errors[3]).ln() / 8.0_f64.ln();
    assert!((0.7..1.4).contains(&order), "order {order} of {errors:?}");
    assert!(errors[3] < 0.02, "{errors:?}");
}

#[test]
fn generation_undoes_inversion_up_to_the_error_in_the_certificate() {
    let model = gaussian_noise_predictor(&[2], DEVIATION);
    let inputs = array![[1.5, -0.4], [0.3, 2.0]];
    let mut last = f64::INFINITY;
    for steps in [25, 50, 100] {
        let paths = ddim(&model, inputs.view(), steps).unwrap();
        for (i, path) in paths.iter().enumerate() {
            let evidence = path.evidence();
            let reference = path.at(0.0).insert_axis(ndarray::Axis(0));
            let back = ddim_ends(&model, reference.view(), 0.0, 1.0, steps).unwrap();
            let gap = (&back.row(0) - &inputs.row(i)).mapv(|v| v * v).sum().sqrt();
            assert!((gap - evidence.round_trip_error.unwrap()).abs() < 1e-12);
        }
        let error = paths[0].evidence().round_trip_error.unwrap();
        assert!(error < 0.7 * last, "{error} after {last}");
        last = error;
    }
    assert!(ddim(&model, inputs.view(), 0).is_err());
    assert!(ddim(&model, array![[1.0]].view(), 10).is_err());
}
