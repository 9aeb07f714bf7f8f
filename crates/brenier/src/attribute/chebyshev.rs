//! Clenshaw-Curtis quadrature on `[0, 1]`: nodes that each larger rule keeps, so that nothing is computed twice and the
//! smaller rules among the same nodes say how far the map is from converged.
//!
//! ```text
//! t_k = (1 - cos(k pi / n)) / 2,   k = 0 .. n;      the nodes of n/2 are every second node of n
//! ```
//!
//! On the smooth functions for which it is used its error falls as fast as that of Gauss-Legendre (L. N. Trefethen, *Is Gauss
//! quadrature better than Clenshaw-Curtis?*, SIAM Review 50, 2008), whose nodes are of no use to the next rule.

use std::f64::consts::PI;

/// Nodes and weights of the rule with `n` intervals, `n + 1` nodes; `n` is even and at least 2.
pub(super) fn clenshaw_curtis(n: usize) -> Vec<(f64, f64)> {
    let size = n as f64;
    (0..=n)
        .map(|k| {
            let angle = PI * k as f64 / size;
            let ends = if k == 0 || k == n { 1.0 } else { 2.0 };
            // The integral of the cosine polynomial that is 1 at this node and 0 at the others.
            let sum: f64 = (1..=n / 2)
                .map(|j| {
                    let last = if 2 * j == n { 1.0 } else { 2.0 };
                    last * (2.0 * j as f64 * angle).cos() / ((4 * j * j) as f64 - 1.0)
                })
                .sum();
            (time(k, n), 0.5 * ends / size * (1.0 - sum))
        })
        .collect()
}

/// The node `k` of the rule with `n` intervals, the same number in every rule that has it.
pub(super) fn time(k: usize, n: usize) -> f64 {
    // By the sine, so that times near 0 keep their digits; the middle is exact.
    if 2 * k == n { 0.5 } else { (0.5 * PI * k as f64 / n as f64).sin().powi(2) }
}

/// The integrals, over the segments between the nodes, of the polynomial through the slopes there.
pub(super) fn predicted_rises(slopes: &[f64]) -> Vec<f64> {
    let n = slopes.len() - 1;
    let size = n as f64;
    let halved = |k: usize| if k == 0 || k == n { 0.5 } else { 1.0 };
    // sum_j a_j T_j is the polynomial in x = 1 - 2 t.
    let coefficients: Vec<f64> = (0..=n)
        .map(|j| {
            let sum: f64 = slopes
                .iter()
                .enumerate()
                .map(|(k, slope)| halved(k) * slope * (PI * (j * k) as f64 / size).cos())
                .sum();
            2.0 / size * halved(j) * sum
        })
        .collect();
    // int T_j = (T_{j+1} / (j + 1) - T_{j-1} / (j - 1)) / 2.
    let primitive = |k: usize| -> f64 {
        let t = |j: usize| (PI * (j * k) as f64 / size).cos();
        coefficients
            .iter()
            .enumerate()
            .map(|(j, a)| match j {
                0 => a * t(1),
                1 => a * 0.5 * t(1) * t(1),
                j => a * 0.5 * (t(j + 1) / (j + 1) as f64 - t(j - 1) / (j - 1) as f64),
            })
            .sum()
    };
    let heights: Vec<f64> = (0..=n).map(primitive).collect();
    heights.windows(2).map(|pair| 0.5 * (pair[0] - pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_exact_for_polynomials_of_its_degree_and_nested() {
        for n in [2, 4, 8, 16, 64] {
            let rule = clenshaw_curtis(n);
            assert!((rule.iter().map(|node| node.1).sum::<f64>() - 1.0).abs() < 1e-14);
            for degree in 0..=n.min(20) as i32 {
                let value: f64 = rule.iter().map(|&(t, w)| w * t.powi(degree)).sum();
                assert!((value * f64::from(degree + 1) - 1.0).abs() < 1e-12, "{n} {degree}");
            }
            let larger = clenshaw_curtis(2 * n);
            assert!((0..=n).all(|k| rule[k].0 == larger[2 * k].0), "{n}");
        }
    }

    #[test]
    fn predicted_rises_are_exact_for_polynomials() {
        let nodes: Vec<f64> = (0..=8).map(|k| time(k, 8)).collect();
        let slopes: Vec<f64> = nodes.iter().map(|t| 5.0 * t.powi(4) - 2.0 * t + 0.5).collect();
        let primitive = |t: f64| t.powi(5) - t * t + 0.5 * t;
        for (pair, rise) in nodes.windows(2).zip(predicted_rises(&slopes)) {
            assert!((primitive(pair[1]) - primitive(pair[0]) - rise).abs() < 1e-14);
        }
    }
}
