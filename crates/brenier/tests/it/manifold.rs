//! Manifold IG against a closed form: a flow that bends what it carries, and a score whose credit along the geodesic is known.

use brenier::attribute::{Baseline, Context, IntegratedGradients, ManifoldIg, Method, Settings};
use brenier::{FieldFn, Score, ScoreFn, Solver, VelocityField, Verdict};
use ndarray::{Array1, ArrayView1, array};

/// `F(z) = (z0, z1 + c z0^2)`: the first feature stays, so the second moves at a constant speed.
fn shear(c: f64) -> FieldFn<impl Fn(ArrayView1<f64>, f64) -> Array1<f64>> {
    FieldFn::new(&[2], move |x, _| array![0.0, c * x[0] * x[0]])
}

fn product() -> impl Score {
    ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]))
}

/// From the origin to `(a, d)` the geodesic is `(s a, s (d - c a^2) + s^2 c a^2)`, so `f = x0 x1` gives
/// `Phi_0 = a ((d - c a^2) / 2 + c a^2 / 3)` and `Phi_1 = a ((d - c a^2) / 2 + 2 c a^2 / 3)`.
#[test]
fn credit_is_that_of_the_geodesic() {
    let (a, d, c) = (1.5, 0.7, 0.8);
    let (flow, score) = (shear(c), product());
    let context = Context { flows: vec![&flow], ..Context::default() };
    let method = ManifoldIg { solver: Solver::adaptive(1e-9), ..ManifoldIg::default() };
    let found = method.explain(&score, array![[a, d]].view(), &[0], &context).unwrap().remove(0);
    let (line, bend) = (0.5 * (d - c * a * a), c * a * a);
    let exact = array![a * (line + bend / 3.0), a * (line + 2.0 * bend / 3.0)];
    assert!((&found.values - &exact).iter().all(|off| off.abs() < 1e-7), "{} {exact}", found.values);
    let certificate = found.certificate;
    assert_eq!(certificate.verdict, Verdict::Pass, "{certificate:?}");
    let path = certificate.path.unwrap();
    assert_eq!((certificate.method.as_str(), path.evidence.kind.as_str()), ("manifold-ig", "latent-line"));
    assert!(certificate.completeness.unwrap().relative_residual.unwrap() < 1e-7);
    // 2 ways back and 33 forward, of a few evaluations each.
    assert!(path.evidence.velocity_evaluations.unwrap() > 35 * 6);
    // The straight line shares evenly.
    let straight = IntegratedGradients::default()
        .explain(&score, array![[a, d]].view(), &[0], &Context::default())
        .unwrap();
    assert!((straight[0].values[0] - a * d / 2.0).abs() < 1e-9);
    assert!((found.values[0] - straight[0].values[0]).abs() > 0.1, "the bend makes a difference");
}

/// Pulled back by a flow that scales and shifts, the geometry is that of the data: the geodesic is the line of `ig`.
#[test]
fn under_an_affine_flow_it_is_integrated_gradients() {
    let flow = FieldFn::new(&[2], |x, t| array![0.9 * x[0] + t, -0.4 * x[1] - 2.0 * t]);
    let score = ScoreFn::new(&[2], |x, _| (x[0].sin() * x[1], array![x[0].cos() * x[1], x[0].sin()]));
    let inputs = array![[0.4, -1.1], [1.9, 0.3]];
    let baselines = array![[0.2, 0.5]];
    let context = Context { flows: vec![&flow], baselines: Some(baselines.view()), ..Context::default() };
    let method =
        ManifoldIg { baseline: Baseline::Given, solver: Solver::adaptive(1e-9), ..ManifoldIg::default() };
    let found = method.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
    let ig = IntegratedGradients { baseline: Baseline::Given, ..IntegratedGradients::default() }
        .explain(&score, inputs.view(), &[0, 0], &context)
        .unwrap();
    for (found, ig) in found.iter().zip(&ig) {
        assert!(
            (&found.values - &ig.values).iter().all(|off| off.abs() < 1e-3),
            "{} {}",
            found.values,
            ig.values
        );
        assert_eq!(found.reference, ig.reference);
    }
}

/// A flow that cannot be followed back and forth is told, and so is an input that is nothing the flow makes.
#[test]
fn what_the_flow_cannot_do_is_in_the_certificate() {
    let score = product();
    let coarse = Settings { solver_tolerance: Some(0.5), ..Settings::default() };
    let stiff =
        FieldFn::new(&[2], |x, t| array![(40.0 * t).sin() * 9.0 * x[1], -(31.0 * t).cos() * 9.0 * x[0]]);
    let explain = |flow: &dyn VelocityField, settings: &Settings, input: [f64; 2]| {
        let context = Context { flows: vec![flow], ..Context::default() };
        let method = Method::new("manifold-ig", settings).unwrap();
        method.explain_with_paths(&score, array![input].view(), &[0], &context).unwrap()
    };
    let (found, paths) = explain(&stiff, &coarse, [1.0, 2.0]);
    let Verdict::Warn { reasons } = &found[0].certificate.verdict else {
        panic!("{:?}", found[0].certificate)
    };
    assert!(reasons.iter().any(|reason| reason.to_string().contains("ends off the input")), "{reasons:?}");
    // However far the flow misses, the path ends where it should.
    assert_eq!((paths[0].at(0.0), paths[0].at(1.0)), (array![0.0, 0.0], array![1.0, 2.0]));
    let still = FieldFn::new(&[2], |x, _| 0.0 * &x);
    let (far, _) = explain(&still, &Settings::default(), [90.0, 80.0]);
    let Verdict::Warn { reasons } = &far[0].certificate.verdict else { panic!("{:?}", far[0].certificate) };
    assert!(reasons.iter().any(|reason| reason.to_string().contains("standard deviations")), "{reasons:?}");
}
