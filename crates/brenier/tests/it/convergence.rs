//! The observed order of every quadrature rule is the declared one, on a curve and a score with interactions.

use brenier::problems::log_slope;
use brenier::{PathIntegral, Rule};

use crate::shared::{Curve, smooth_score};

#[test]
fn observed_order_is_the_declared_order_for_every_rule() {
    let (score, curve) = (smooth_score(4, 21), Curve::random(4, 22));
    let truth =
        PathIntegral::new(Rule::GaussLegendre { nodes: 200 }).explain(&score, &curve, 0).unwrap().values;
    let makers: [fn(usize) -> Rule; 5] = [
        |steps| Rule::Left { steps },
        |steps| Rule::Right { steps },
        |steps| Rule::Midpoint { steps },
        |steps| Rule::Trapezoid { steps },
        |steps| Rule::Simpson { steps },
    ];
    let sizes = [64, 128, 256, 512];
    for make in makers {
        let errors: Vec<f64> = sizes
            .iter()
            .map(|&steps| {
                let gap = PathIntegral::new(make(steps)).explain(&score, &curve, 0).unwrap().values - &truth;
                gap.dot(&gap).sqrt()
            })
            .collect();
        let order = make(2).order().unwrap() as f64;
        let observed = -log_slope(&sizes, &errors);
        assert!((observed - order).abs() < 0.1, "{}: observed {observed}, declared {order}", make(2).name());
    }
}

#[test]
fn gauss_legendre_beats_every_power() {
    let (score, curve) = (smooth_score(4, 21), Curve::random(4, 22));
    let credit =
        |nodes| PathIntegral::new(Rule::GaussLegendre { nodes }).explain(&score, &curve, 0).unwrap().values;
    let truth = credit(200);
    let error = |nodes| (credit(nodes) - &truth).mapv(f64::abs).sum();
    // From 16 to 64 nodes a rule of order 4 gains a factor 256.
    assert!(error(16) / error(64) > 1e6, "{:e} {:e}", error(16), error(64));
}

#[test]
fn sixteen_gauss_legendre_nodes_suffice_on_smooth_networks_and_adaptive_halves_the_cost_on_relu() {
    use brenier::Line;
    use brenier::problems::{Activation, RandomMlp};
    use rand::SeedableRng;

    let cases = |activation| -> Vec<(RandomMlp, Line)> {
        (0..50)
            .map(|seed| {
                let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
                let network = RandomMlp::new(10, 64, activation, &mut rng);
                let points = crate::shared::normal(2, 10, 1000 + seed);
                (network, Line::new(points.row(0), points.row(1)).unwrap())
            })
            .collect()
    };
    let run = |case: &(RandomMlp, Line), rule| {
        PathIntegral::new(rule).explain(&case.0, &case.1, 0).unwrap().certificate
    };
    let p90 = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[44]
    };

    for activation in [Activation::Softplus, Activation::Tanh] {
        let smooth = cases(activation);
        let residuals = smooth.iter().map(|case| {
            run(case, Rule::GaussLegendre { nodes: 16 }).completeness.unwrap().relative_residual.unwrap()
        });
        let residual = p90(residuals.collect());
        assert!(residual < 1e-6, "{activation:?}: {residual}");
    }

    let relu = cases(Activation::Relu);
    let adaptive: Vec<_> = relu.iter().map(|case| run(case, Rule::adaptive(0.01))).collect();
    assert!(adaptive.iter().all(|c| c.completeness.unwrap().relative_residual.unwrap() <= 0.01));
    let gradients = p90(adaptive.iter().map(|c| c.gradient_evaluations as f64).collect());
    // Twice that many Gauss-Legendre nodes still leave more than a tenth of the networks above 1 %.
    for nodes in [gradients as usize, 2 * gradients as usize] {
        let legendre = relu.iter().map(|case| {
            run(case, Rule::GaussLegendre { nodes }).completeness.unwrap().relative_residual.unwrap()
        });
        let residual = p90(legendre.collect());
        assert!(residual > 0.01, "{gradients} adaptive gradients; {nodes} nodes give {residual}");
    }
}
