//! PatternLocal (Gjolbye, Haufe and Hansen, 2025; arXiv 2505.11210), the peer that leads this benchmark, written from its paper.
//!
//! ```text
//! w, b      a linear surrogate around the input (LIME, continuous features)
//! x'        the input, put onto the surrogate's plane  w x + b = 0
//! a = C w   C: the covariance of the training rows nearest to x', those further away weighing less
//! ```
//!
//! A surrogate's weights also serve to cancel what is noise to the model (suppressors); times the covariance they say which pixels go
//! along with the score. A tenth of the rows is near, and the kernel is Gaussian with the median of their distances, as in the authors' package.

use brenier::{Result, Score};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Draws for a surrogate, and its ridge.
const DRAWS: usize = 1000;
const RIDGE: f64 = 1.0;
/// The part of the training rows that is near.
const NEAR: f64 = 0.1;

/// Credit of each input.
///
/// # Errors
/// What the score says.
pub(super) fn pattern_local(
    score: &dyn Score,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    train: ArrayView2<f64>,
    seed: u64,
) -> Result<Array2<f64>> {
    let mean = train.mean_axis(Axis(0)).unwrap_or_default();
    let deviation = train.std_axis(Axis(0), 0.0).mapv(|s| if s > 0.0 { s } else { 1.0 });
    let mut credit = Array2::zeros(inputs.raw_dim());
    for (k, (input, &target)) in inputs.rows().into_iter().zip(targets).enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(k as u64);
        let draws = Array2::from_shape_simple_fn((DRAWS, input.len()), || StandardNormal.sample(&mut rng));
        let rows = &input + &(&draws * &deviation);
        let values = score.values(rows.view(), &[target; DRAWS])?;
        let width = 0.75 * (input.len() as f64).sqrt();
        let near =
            draws.rows().into_iter().map(|d: ArrayView1<f64>| (-d.dot(&d) / (width * width)).exp().sqrt());
        let scaled = (&rows - &mean) / &deviation;
        let (weights, intercept) = ridge(scaled.view(), values.view(), &near.collect::<Vec<_>>());
        // From units of a pixel's deviation to pixels.
        let weights = &weights / &deviation;
        let intercept = intercept - weights.dot(&mean);
        credit.row_mut(k).assign(&pattern(weights.view(), intercept, input, train));
    }
    Ok(credit)
}

/// What the surrogate's weights say of the rows near its plane.
fn pattern(
    weights: ArrayView1<f64>,
    intercept: f64,
    input: ArrayView1<f64>,
    train: ArrayView2<f64>,
) -> Array1<f64> {
    let norm = weights.dot(&weights);
    if norm == 0.0 {
        return Array1::zeros(input.len());
    }
    let point = &input - &(&weights * ((weights.dot(&input) + intercept) / norm));
    let mut by_distance: Vec<(f64, usize)> = train
        .rows()
        .into_iter()
        .enumerate()
        .map(|(row, values)| ((&values - &point).mapv(|v| v * v).sum().sqrt(), row))
        .collect();
    by_distance.sort_by(|a, b| a.0.total_cmp(&b.0));
    by_distance.truncate(((NEAR * train.nrows() as f64) as usize).max(1));
    let count = by_distance.len();
    let median = 0.5 * (by_distance[(count - 1) / 2].0 + by_distance[count / 2].0);
    let width = if median > 0.0 { median } else { f64::EPSILON };
    let kernel: Vec<f64> = by_distance.iter().map(|(d, _)| (-0.5 * (d / width).powi(2)).exp()).collect();
    let total: f64 = kernel.iter().sum();
    let of_each = || kernel.iter().map(|k| k / total).zip(by_distance.iter().map(|(_, row)| train.row(*row)));
    let mut centre = Array1::<f64>::zeros(input.len());
    of_each().for_each(|(share, row)| centre.scaled_add(share, &row));
    let mut pattern = Array1::<f64>::zeros(input.len());
    for (share, row) in of_each() {
        let apart = &row - &centre;
        pattern.scaled_add(share * apart.dot(&weights), &apart);
    }
    pattern
}

/// Weights and intercept of a weighted linear fit; the intercept is not held small.
fn ridge(rows: ArrayView2<f64>, values: ArrayView1<f64>, near: &[f64]) -> (Array1<f64>, f64) {
    let features = rows.ncols();
    let near = Array1::from(near.to_vec());
    let total = near.sum();
    let centre = rows.t().dot(&near) / total;
    let middle = values.dot(&near) / total;
    let apart = &rows - &centre;
    let weighted = &apart * &near.view().insert_axis(Axis(1));
    let mut system = weighted.t().dot(&apart);
    (0..features).for_each(|k| system[[k, k]] += RIDGE);
    let weights = solve(system, weighted.t().dot(&(&values - middle)));
    let intercept = middle - weights.dot(&centre);
    (weights, intercept)
}

/// The solution of a positive definite system, by Cholesky's factors.
fn solve(mut a: Array2<f64>, mut b: Array1<f64>) -> Array1<f64> {
    let n = b.len();
    for j in 0..n {
        for k in 0..j {
            let factor = a[[j, k]];
            (j..n).for_each(|i| a[[i, j]] -= a[[i, k]] * factor);
        }
        let root = a[[j, j]].sqrt();
        (j..n).for_each(|i| a[[i, j]] /= root);
    }
    for i in 0..n {
        let known: f64 = (0..i).map(|k| a[[i, k]] * b[k]).sum();
        b[i] = (b[i] - known) / a[[i, i]];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| a[[k, i]] * b[k]).sum();
        b[i] = (b[i] - known) / a[[i, i]];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use brenier::ScoreFn;
    use ndarray::array;

    fn rows() -> Array2<f64> {
        Array2::from_shape_fn((40, 4), |(i, j)| {
            (3.0 * i as f64 + 7.0 * j as f64).sin() + 0.5 * (i as f64).sin()
        })
    }

    #[test]
    fn the_pattern_is_that_of_the_authors_package() {
        // patternlocal 1.0.1, LocalCovarianceSolver({'k_ratio': 0.1}).solve(w, b, x, rows)
        let expected =
            [0.06765009590975983, 0.0479768538779615, -8.799882259654182e-05, -0.05288715840205736];
        let (weights, input) = (array![0.7, -0.2, 0.4, 0.1], array![0.5, -0.25, 0.75, 0.1]);
        let found = pattern(weights.view(), 0.3, input.view(), rows().view());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn the_surrogate_is_a_weighted_ridge() {
        // sklearn.linear_model.Ridge(alpha=1.0).fit(rows, cos(i), sample_weight=exp(-0.1 i))
        let expected = [-0.0043199915479048, 0.04289619567133947, 0.047465648782205404, 0.007139303565756601];
        let values = Array1::from_shape_fn(40, |i| (i as f64).cos());
        let near: Vec<f64> = (0..40).map(|i| (-0.1 * f64::from(i)).exp()).collect();
        let (weights, intercept) = ridge(rows().view(), values.view(), &near);
        for (found, expected) in weights.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!((intercept - 0.05257228060785437).abs() < 1e-12);
    }

    #[test]
    fn what_only_cancels_noise_gets_less_than_by_the_weights() {
        // x0 = signal + noise, x1 = noise: the best score is x0 - x1, and x1 has nothing to do with the signal. The other
        // features decide which rows are near; with two features alone the near rows are a small round cloud, whose
        // covariance says nothing.
        const OTHERS: usize = 30;
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut train = Array2::from_shape_simple_fn((1000, 2 + OTHERS), || StandardNormal.sample(&mut rng));
        for mut row in train.rows_mut() {
            row[0] += row[1];
        }
        let score = ScoreFn::new(&[2 + OTHERS], |x, _| {
            let mut gradient = Array1::zeros(2 + OTHERS);
            (gradient[0], gradient[1]) = (1.0, -1.0);
            (x[0] - x[1], gradient)
        });
        let mut input = Array2::zeros((1, 2 + OTHERS));
        (input[[0, 0]], input[[0, 1]]) = (0.5, 0.2);
        let credit = pattern_local(&score, input.view(), &[0], train.view(), 1).unwrap();
        assert!(credit[[0, 1]].abs() < 0.5 * credit[[0, 0]].abs(), "{credit}");
    }
}
