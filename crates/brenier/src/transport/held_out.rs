//! The amount of shrinkage under which rows that were not looked at are most likely.
//!
//! ```text
//! r* = argmax_r  log N(one half | fitted to the other, r) + log N(the other | fitted to the one, r)
//! ```
//!
//! In the eigenvectors of one half's covariance, with eigenvalues `l`, their mean `mu`, and `p` the mean square of the
//! other half along each, the likelihood of a row is `-1/2 sum_i (p_i / s_i + log s_i)`, `s_i = (1 - r) l_i + r mu`: one
//! eigen-decomposition a half, and every amount after it costs a sum. Halves are smaller than the whole, so the
//! amount errs to the side of more.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::matrix::{eigen, product, scale_columns};

/// Amounts that are tried.
const TRIED: usize = 40;
/// The least and the most of them.
const RANGE: (f64, f64) = (1e-5, 0.9);

/// One half's covariance in its eigenvectors, beside the other half.
struct Half {
    /// Variance of one half along each direction that it has.
    own: Array1<f64>,
    /// Mean square of the other half along the same.
    other: Array1<f64>,
    /// Directions that the half has no row in, and the mean square of the other half along all of them.
    missing: (usize, f64),
    mean: f64,
}

/// The best amount for rows; nothing where they are too few or all the same.
pub(super) fn amount(rows: ArrayView2<f64>) -> Option<f64> {
    if rows.nrows() < 4 {
        return None;
    }
    // Rows may come in an order: every second one need not be like the others.
    let mut order: Vec<usize> = (0..rows.nrows()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(0));
    let (first, second) = order.split_at(rows.nrows() / 2);
    let (first, second) = (rows.select(Axis(0), first), rows.select(Axis(0), second));
    let halves = [Half::new(first.view(), second.view())?, Half::new(second.view(), first.view())?];
    let ratio = (RANGE.1 / RANGE.0).powf(1.0 / (TRIED - 1) as f64);
    let mut best: Option<(f64, f64)> = None;
    for r in (0..TRIED).map(|i| RANGE.0 * ratio.powi(i as i32)) {
        let likelihood: f64 = halves.iter().map(|half| half.log_likelihood(r)).sum();
        if likelihood.is_finite() && best.is_none_or(|(most, _)| likelihood > most) {
            best = Some((likelihood, r));
        }
    }
    best.map(|(_, r)| r)
}

impl Half {
    fn new(fitted: ArrayView2<f64>, held_out: ArrayView2<f64>) -> Option<Half> {
        let mean = fitted.mean_axis(Axis(0))?;
        let (own, other) = (&fitted - &mean, &held_out - &mean);
        let (count, features) = own.dim();
        let (values, basis) = if count > features {
            let (values, vectors) = eigen(&(product(own.t(), own.view()) / count as f64));
            (values.mapv(|v| v.max(0.0)), vectors)
        } else {
            // The eigenvectors of X X^T / n, carried over by X^T, are those of X^T X / n.
            let (values, vectors) = eigen(&(product(own.view(), own.t()) / count as f64));
            let floor = 1e-10 * values.first().copied().unwrap_or(0.0);
            let rank = values.iter().take(count - 1).take_while(|&&v| v > floor).count();
            let kept = values.slice(s![..rank]).to_owned();
            let lengths = kept.mapv(|v| 1.0 / (v * count as f64).sqrt());
            (kept, scale_columns(product(own.t(), vectors.slice(s![.., ..rank])), &lengths))
        };
        let trace = values.sum();
        if trace <= 0.0 {
            return None;
        }
        let squares = |x: Array2<f64>| x.mapv(|v| v * v).mean_axis(Axis(0));
        let along = squares(product(other.view(), basis.view()))?;
        let all = squares(other)?.sum();
        let missing = (features - values.len(), (all - along.sum()).max(0.0));
        Some(Half { own: values, other: along, missing, mean: trace / features as f64 })
    }

    fn log_likelihood(&self, r: f64) -> f64 {
        let floor = r * self.mean;
        let seen: f64 = self.own.iter().zip(&self.other).map(|(l, p)| cost(*p, (1.0 - r) * l + floor)).sum();
        let (count, square) = self.missing;
        let unseen = if count == 0 { 0.0 } else { square / floor + count as f64 * floor.ln() };
        -0.5 * (seen + unseen)
    }
}

fn cost(square: f64, variance: f64) -> f64 {
    square / variance + variance.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, StandardNormal};

    /// Rows whose feature `i` has the deviation `1 / (i + 1)`.
    fn rows(count: usize, features: usize) -> Array2<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        Array2::from_shape_fn((count, features), |(_, i)| {
            let draw: f64 = StandardNormal.sample(&mut rng);
            draw / (i + 1) as f64
        })
    }

    #[test]
    fn more_rows_need_less_and_too_few_need_much() {
        let [few, many, plenty] = [24, 400, 20_000].map(|count| amount(rows(count, 16).view()).unwrap());
        assert!(few > many && many > plenty, "{few} {many} {plenty}");
        assert!(plenty < 2e-3, "{plenty}");
    }

    #[test]
    fn the_order_of_rows_makes_no_difference_to_speak_of() {
        // Every second row is on one side: halves of even and odd rows would be two other populations.
        let mut x = rows(2000, 4);
        x.rows_mut()
            .into_iter()
            .enumerate()
            .for_each(|(i, mut row)| row[0] += if i % 2 == 0 { 9.0 } else { -9.0 });
        let found = amount(x.view()).unwrap();
        assert!(found < 2e-3, "{found}");
    }

    #[test]
    fn both_ways_to_the_eigenvectors_give_the_same_likelihood() {
        // One row more than features in each half, then one less, of nearly the same rows.
        let x = rows(40, 12);
        let (a, b) = (x.slice(s![..14, ..]), x.slice(s![14.., ..]));
        let whole = Half::new(a, b).unwrap();
        let wide = ndarray::concatenate![Axis(1), a, Array2::zeros((14, 9))];
        let other = ndarray::concatenate![Axis(1), b, Array2::zeros((26, 9))];
        let gram = Half::new(wide.view(), other.view()).unwrap();
        // Nine features without variance: they add a known term, and the mean variance is spread over more.
        assert!((whole.own.sum() - gram.own.sum()).abs() < 1e-12);
        let floor = 0.1 * gram.mean;
        let expected: f64 = whole
            .own
            .iter()
            .zip(&whole.other)
            .map(|(l, p)| cost(*p, 0.9 * l + floor))
            .chain(std::iter::repeat_n(floor.ln(), 9))
            .sum();
        assert!((gram.log_likelihood(0.1) + 0.5 * expected).abs() < 1e-6 * expected.abs());
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(amount(rows(3, 2).view()), None);
        assert_eq!(amount(Array2::ones((10, 3)).view()), None);
    }
}
