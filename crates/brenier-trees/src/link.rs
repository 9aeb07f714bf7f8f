//! From raw sums of leaves to what a model gives out: mirrored columns of binary classifiers, and final activations.
//!
//! ```text
//! y_o = offset_o + sign_o * raw_(r(o)),     output = g(y)
//! ```
//!
//! Credit is exact for `y`, which is linear in the leaves. Along a path it is exact for `g(y)` as well.

/// One column of a model's outputs before its final activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    /// The raw sum that it shows.
    pub raw: usize,
    /// Its sign: -1 for the mirrored column of a binary classifier.
    pub sign: f64,
    /// What is added: 1 where the column is `1 - p`.
    pub offset: f64,
}

/// The final activation of a model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Link {
    /// None.
    #[default]
    Identity,
    /// `1 / (1 + exp(-slope y))` of each column.
    Logistic {
        /// The slope; 1 nearly everywhere.
        slope: f64,
    },
    /// `exp(y_o) / sum exp(y)`.
    Softmax,
    /// Softmax over the columns that are not 0; those of 0 stay 0.
    SoftmaxZero,
    /// The inverse of the normal distribution function of each column.
    Probit,
    /// `exp(y)` of each column: counts, durations.
    Exp,
    /// `sign(y) y^2` of each column: a regression on square roots.
    SignedSquare,
    /// `log(1 + exp(y))` of each column.
    Softplus,
}

impl Link {
    /// The activation in words.
    pub fn name(self) -> &'static str {
        match self {
            Link::Identity => "identity",
            Link::Logistic { .. } => "logistic",
            Link::Softmax | Link::SoftmaxZero => "softmax",
            Link::Probit => "probit",
            Link::Exp => "exp",
            Link::SignedSquare => "signed square",
            Link::Softplus => "softplus",
        }
    }

    /// Applies the activation to the columns of one row.
    pub fn apply(self, y: &mut [f64]) {
        match self {
            Link::Identity => {}
            Link::Logistic { slope } => y.iter_mut().for_each(|v| *v = 1.0 / (1.0 + (-slope * *v).exp())),
            Link::Softmax => softmax(y, |_| true),
            Link::SoftmaxZero => softmax(y, |v| v.abs() > 1e-7),
            Link::Probit => y.iter_mut().for_each(|v| *v = probit(*v)),
            Link::Exp => y.iter_mut().for_each(|v| *v = v.exp()),
            Link::SignedSquare => y.iter_mut().for_each(|v| *v *= v.abs()),
            // Large values lose nothing this way.
            Link::Softplus => y.iter_mut().for_each(|v| *v = v.max(0.0) + (-v.abs()).exp().ln_1p()),
        }
    }
}

/// Softmax over the columns that `takes_part`; the others keep 0.
fn softmax(y: &mut [f64], takes_part: impl Fn(f64) -> bool) {
    let top = y.iter().copied().filter(|v| takes_part(*v)).fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for v in y.iter_mut() {
        *v = if takes_part(*v) { (*v - top).exp() } else { 0.0 };
        sum += *v;
    }
    if sum > 0.0 {
        y.iter_mut().for_each(|v| *v /= sum);
    }
}

/// `sqrt(2) erfinv(2 p - 1)` by Winitzki's formula with a = 0.147, which is what ONNX Runtime computes (to about 2e-3).
fn probit(p: f64) -> f64 {
    let x = 2.0 * p - 1.0;
    let log = ((1.0 - x) * (1.0 + x)).ln();
    let v = 2.0 / (std::f64::consts::PI * 0.147) + 0.5 * log;
    let root = (-v + (v * v - log / 0.147).sqrt()).sqrt();
    std::f64::consts::SQRT_2 * if x < 0.0 { -root } else { root }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_have_their_values() {
        let applied = |link: Link, y: &[f64]| {
            let mut y = y.to_vec();
            link.apply(&mut y);
            y
        };
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near(&applied(Link::Logistic { slope: 2.0 }, &[0.5]), &[1.0 / (1.0 + (-1.0_f64).exp())]));
        assert!(near(&applied(Link::Softmax, &[0.0, 3.0_f64.ln()]), &[0.25, 0.75]));
        assert!(near(&applied(Link::SoftmaxZero, &[1.0, 0.0, 1.0]), &[0.5, 0.0, 0.5]));
        assert!(near(&applied(Link::SignedSquare, &[-3.0]), &[-9.0]));
        assert!(near(&applied(Link::Softplus, &[0.0]), &[2.0_f64.ln()]));
        assert!((applied(Link::Probit, &[0.975])[0] - 1.96).abs() < 5e-3);
        assert!(near(&applied(Link::Probit, &[0.5]), &[0.0]));
    }
}
