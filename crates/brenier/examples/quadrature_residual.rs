//! How many gradients a completeness residual of 1 % takes, on random networks: the table "Quadrature" of
//! docs/performance.md.
//!
//!     cargo run --release -p brenier --example quadrature_residual
#![allow(clippy::print_stdout, reason = "an example that prints a table")]

use brenier::problems::{Activation, RandomMlp};
use brenier::{Line, PathIntegral, Result, Rule, relative_attribution_error};
use ndarray::{Array1, Array2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const NETWORKS: u64 = 50;
const TOLERANCE: f64 = 0.01;
const MOST: usize = 512;

struct Case {
    network: RandomMlp,
    line: Line,
    /// Credit by 5,000 midpoints, against which each feature is checked.
    truth: Array1<f64>,
}

fn cases(activation: Activation) -> Result<Vec<Case>> {
    (0..NETWORKS)
        .map(|seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let network = RandomMlp::new(10, 64, activation, &mut rng);
            let points = Array2::from_shape_fn((2, 10), |_| StandardNormal.sample(&mut rng));
            let line = Line::new(points.row(0), points.row(1))?;
            let truth =
                PathIntegral::new(Rule::Midpoint { steps: 5_000 }).explain(&network, &line, 0)?.values;
            Ok(Case { network, line, truth })
        })
        .collect()
}

/// The value below which the given share of the values lies (nearest rank).
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

struct Cost {
    gradients: Vec<f64>,
    forwards: Vec<f64>,
    residual: Vec<f64>,
    rae: Vec<f64>,
}

impl Cost {
    fn print(&self, name: &str) {
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |",
            percentile(&self.gradients, 0.5),
            percentile(&self.gradients, 0.9),
            percentile(&self.forwards, 0.9),
            percentile(&self.residual, 0.5),
            percentile(&self.residual, 0.9),
            percentile(&self.rae, 0.5),
            percentile(&self.rae, 0.9),
        );
    }
}

fn run(case: &Case, rule: Rule) -> Result<(f64, f64, f64, f64)> {
    let explanation = PathIntegral::new(rule).explain(&case.network, &case.line, 0)?;
    let certificate = &explanation.certificate;
    Ok((
        certificate.gradient_evaluations as f64,
        certificate.score_evaluations as f64,
        certificate.completeness.and_then(|c| c.relative_residual).unwrap_or(0.0),
        relative_attribution_error(explanation.values.view(), case.truth.view())?,
    ))
}

fn collect(cases: &[Case], rule: impl Fn(&Case) -> Result<(f64, f64, f64, f64)>) -> Result<Cost> {
    let mut cost = Cost { gradients: vec![], forwards: vec![], residual: vec![], rae: vec![] };
    for case in cases {
        let (gradients, forwards, residual, rae) = rule(case)?;
        cost.gradients.push(gradients);
        cost.forwards.push(forwards);
        cost.residual.push(residual);
        cost.rae.push(rae);
    }
    Ok(cost)
}

/// The smallest number of nodes, in steps of 4, with which 90 % of the networks are within the tolerance: what a user who
/// must fix the number beforehand has to pay.
fn fixed_size(cases: &[Case], rule: impl Fn(usize) -> Rule) -> Result<Option<usize>> {
    for n in (4..=MOST).step_by(4) {
        if percentile(&collect(cases, |case| run(case, rule(n)))?.residual, 0.9) <= TOLERANCE {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

fn main() -> Result<()> {
    let header = "| gradients p50 | p90 | forwards p90 | residual p50 | p90 | feature error p50 | p90 |";
    println!("ReLU, 10-64-64-1, {NETWORKS} networks, straight line between two normal points\n");
    println!("| method {header}\n|---|---|---|---|---|---|---|---|");
    let relu = cases(Activation::Relu)?;
    collect(&relu, |case| run(case, Rule::adaptive(TOLERANCE)))?.print("adaptive, tolerance 1 %");
    collect(&relu, |case| run(case, Rule::adaptive(0.2 * TOLERANCE)))?.print("adaptive, tolerance 0.2 %");
    for (name, rule) in [
        ("Gauss-Legendre", (|n| Rule::GaussLegendre { nodes: n }) as fn(usize) -> Rule),
        ("midpoint", |n| Rule::Midpoint { steps: n }),
    ] {
        match fixed_size(&relu, rule)? {
            Some(n) => collect(&relu, |case| run(case, rule(n)))?
                .print(&format!("{name}, smallest fixed size with p90 residual <= 1 %")),
            None => println!("| {name}: more than {MOST} |||||||"),
        }
    }
    // Gauss-Legendre driven by a tolerance: 8, 16, 32, ... until the residual is small; all evaluations count.
    collect(&relu, |case| {
        let (mut gradients, mut nodes) = (0.0, 8);
        loop {
            let (g, f, residual, rae) = run(case, Rule::GaussLegendre { nodes })?;
            gradients += g;
            if residual <= TOLERANCE || nodes >= 4096 {
                return Ok((gradients, f, residual, rae));
            }
            nodes *= 2;
        }
    })?
    .print("Gauss-Legendre, doubled until the residual is <= 1 %");
    // An oracle that knows the first lucky size and pays only for that one.
    collect(&relu, |case| {
        for nodes in 1..128 {
            let found = run(case, Rule::GaussLegendre { nodes })?;
            if found.2 <= TOLERANCE {
                return Ok(found);
            }
        }
        run(case, Rule::GaussLegendre { nodes: 128 })
    })?
    .print("Gauss-Legendre, first size that happens to fit (needs an oracle)");

    println!("\nSmooth networks, same sizes\n\n| method {header}\n|---|---|---|---|---|---|---|---|");
    for (name, activation) in [("softplus", Activation::Softplus), ("tanh", Activation::Tanh)] {
        let smooth = cases(activation)?;
        collect(&smooth, |case| run(case, Rule::GaussLegendre { nodes: 16 }))?
            .print(&format!("{name}: Gauss-Legendre, 16 nodes"));
        for tolerance in [1e-2, 1e-3, 1e-6] {
            collect(&smooth, |case| run(case, Rule::adaptive(tolerance)))?
                .print(&format!("{name}: adaptive, tolerance {tolerance:.0e}"));
        }
    }
    Ok(())
}
