//! Random networks with two hidden layers: what a predictor looks like to the integrator, without a file.
//!
//! ```text
//! f(x) = w . a(W2 a(W1 x + b1) + b2)
//! ```
//!
//! Weights are normal with variance `gain / inputs`, the gain being what each activation is usually started
//! with: 2 for ReLU and softplus (He), 1 for tanh (LeCun). Biases have standard deviation 0.5, so that a line
//! between two random points crosses many kinks of a ReLU network.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::{Result, Score};

/// The nonlinearity of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `max(0, z)`: piecewise linear.
    Relu,
    /// `tanh z`.
    Tanh,
    /// `ln(1 + e^z)`.
    Softplus,
}

impl Activation {
    /// The value and the derivative.
    fn apply(self, z: f64) -> (f64, f64) {
        match self {
            Activation::Relu => (z.max(0.0), if z > 0.0 { 1.0 } else { 0.0 }),
            Activation::Tanh => (z.tanh(), 1.0 - z.tanh().powi(2)),
            Activation::Softplus => (z.max(0.0) + (-z.abs()).exp().ln_1p(), 1.0 / (1.0 + (-z).exp())),
        }
    }
}

/// A network with two hidden layers of equal width and random weights.
#[derive(Debug, Clone)]
pub struct RandomMlp {
    activation: Activation,
    layers: [(Array2<f64>, Array1<f64>); 2],
    output: Array1<f64>,
    shape: [usize; 1],
}

impl RandomMlp {
    /// Draws a network.
    pub fn new(features: usize, width: usize, activation: Activation, rng: &mut impl Rng) -> Self {
        let gain = if activation == Activation::Tanh { 1.0 } else { 2.0 };
        let mut normal = |count: usize, scale: f64| -> Vec<f64> {
            (0..count)
                .map(|_| scale * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, rng))
                .collect()
        };
        let mut layer = |inputs: usize| {
            let weights = normal(width * inputs, (gain / inputs as f64).sqrt());
            // The vector has `width * inputs` entries, so the shape always fits.
            let weights = Array2::from_shape_vec((width, inputs), weights).unwrap_or_default();
            (weights, Array1::from(normal(width, 0.5)))
        };
        let layers = [layer(features), layer(width)];
        let output = Array1::from(normal(width, (1.0 / width as f64).sqrt()));
        Self { activation, layers, output, shape: [features] }
    }

    fn value_and_gradient(&self, x: ArrayView1<f64>) -> (f64, Array1<f64>) {
        let mut state = x.to_owned();
        let mut slopes = Vec::with_capacity(2);
        for (weights, bias) in &self.layers {
            let pairs = (weights.dot(&state) + bias).mapv(|z| self.activation.apply(z));
            state = pairs.mapv(|pair| pair.0);
            slopes.push(pairs.mapv(|pair| pair.1));
        }
        let value = self.output.dot(&state);
        let mut back = self.output.clone();
        for ((weights, _), slope) in self.layers.iter().zip(&slopes).rev() {
            back = (back * slope).dot(weights);
        }
        (value, back)
    }
}

impl Score for RandomMlp {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn values(&self, x: ArrayView2<f64>, _targets: &[usize]) -> Result<Array1<f64>> {
        Ok(x.rows().into_iter().map(|row| self.value_and_gradient(row).0).collect())
    }

    fn gradients(&self, x: ArrayView2<f64>, _targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let mut values = Array1::zeros(x.nrows());
        let mut gradients = Array2::zeros(x.raw_dim());
        for (i, row) in x.rows().into_iter().enumerate() {
            let (value, gradient) = self.value_and_gradient(row);
            values[i] = value;
            gradients.row_mut(i).assign(&gradient);
        }
        Ok((values, gradients))
    }
}
