//! Mean, variance and their standard errors of arrays that come one by one.
//!
//! ```text
//! se(mean) = (M2 / (n (n - 1)))^(1/2),    se(variance) = ((M4 / n - (M2 / n)^2) / n)^(1/2)
//! ```
//!
//! with `M_p` the sum of the p-th powers of the deviations from the mean. They are updated in one pass and
//! without cancellation (Pébay, "Formulas for robust, one-pass parallel computation of covariances and
//! arbitrary-order statistical moments", 2008), so no sample is kept.

use ndarray::{Array1, ArrayView1};

/// The first four moments of a stream of arrays, feature by feature.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    count: usize,
    mean: Array1<f64>,
    second: Array1<f64>,
    third: Array1<f64>,
    fourth: Array1<f64>,
}

impl Moments {
    pub(crate) fn new(features: usize) -> Self {
        let zeros = || Array1::zeros(features);
        Self { count: 0, mean: zeros(), second: zeros(), third: zeros(), fourth: zeros() }
    }

    pub(crate) fn push(&mut self, sample: ArrayView1<f64>) {
        let before = self.count as f64;
        self.count += 1;
        let n = self.count as f64;
        for i in 0..sample.len() {
            let delta = sample[i] - self.mean[i];
            let step = delta / n;
            let square = step * step;
            let term = delta * step * before;
            self.mean[i] += step;
            self.fourth[i] += term * square * (n * n - 3.0 * n + 3.0) + 6.0 * square * self.second[i]
                - 4.0 * step * self.third[i];
            self.third[i] += term * step * (n - 2.0) - 3.0 * step * self.second[i];
            self.second[i] += term;
        }
    }

    pub(crate) fn mean(&self) -> Array1<f64> {
        self.mean.clone()
    }

    /// The standard error of the mean; absent for a single sample.
    pub(crate) fn mean_error(&self) -> Option<Array1<f64>> {
        let n = self.count as f64;
        (self.count > 1).then(|| self.second.mapv(|m| (m / (n * (n - 1.0))).sqrt()))
    }

    /// The mean squared deviation from the mean.
    pub(crate) fn variance(&self) -> Array1<f64> {
        &self.second / (self.count.max(1) as f64)
    }

    /// The standard error of the variance; absent for a single sample.
    pub(crate) fn variance_error(&self) -> Option<Array1<f64>> {
        let n = self.count as f64;
        let error = |m4: f64, m2: f64| ((m4 / n - (m2 / n).powi(2)).max(0.0) / n).sqrt();
        (self.count > 1)
            .then(|| self.fourth.iter().zip(&self.second).map(|(&m4, &m2)| error(m4, m2)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn one_pass_agrees_with_the_definitions_far_from_zero() {
        let samples = [1e6 + 1.0, 1e6 + 2.5, 1e6 - 3.0, 1e6 + 0.25, 1e6 + 7.0];
        let mut moments = Moments::new(1);
        samples.iter().for_each(|&x| moments.push(array![x].view()));
        let n = 5.0;
        let mean = samples.iter().sum::<f64>() / n;
        let power = |p: i32| samples.iter().map(|x| (x - mean).powi(p)).sum::<f64>() / n;
        assert!((moments.mean()[0] - mean).abs() < 1e-9);
        assert!((moments.variance()[0] - power(2)).abs() < 1e-9);
        assert!((moments.mean_error().unwrap()[0] - (power(2) / (n - 1.0)).sqrt()).abs() < 1e-9);
        let exact = ((power(4) - power(2).powi(2)) / n).sqrt();
        assert!((moments.variance_error().unwrap()[0] - exact).abs() < 1e-8);
    }
}
