//! The same curve run through at another pace.
//!
//! ```text
//! (gamma o sigma)(t) = gamma(sigma(t)),    (gamma o sigma)'(t) = sigma'(t) gamma'(sigma(t))
//! ```
//!
//! Aumann-Shapley credit does not change under it (the reparameterisation axiom); the placing of a rule's
//! nodes does, which is what it is for: spend nodes where the score changes.

use ndarray::Array1;

use super::{Path, PathEvidence};
use crate::{Error, Result};

/// A path with another clock: an increasing map of `[0, 1]` onto itself and its derivative.
pub struct Reparameterised<P, S, D> {
    path: P,
    sigma: S,
    speed: D,
}

impl<P: Path, S: Fn(f64) -> f64, D: Fn(f64) -> f64> Reparameterised<P, S, D> {
    /// `path` at time `sigma(t)`; `speed` is the derivative of `sigma`. `sigma(0) = 0` and `sigma(1) = 1`.
    pub fn new(path: P, sigma: S, speed: D) -> Result<Self> {
        let ends = (sigma(0.0), sigma(1.0));
        if ends.0.abs() > 1e-12 || (ends.1 - 1.0).abs() > 1e-12 {
            return Err(Error::Setting {
                name: "the reparameterisation",
                value: format!("{} at 0 and {} at 1", ends.0, ends.1),
                needs: "it maps 0 to 0 and 1 to 1",
                hint: "use an increasing function such as t*t*(3-2*t)".into(),
            });
        }
        Ok(Self { path, sigma, speed })
    }

    /// The inverse of sigma by bisection: corners are few, and sigma is any increasing function.
    fn time_of(&self, s: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if (self.sigma)(middle) < s { low = middle } else { high = middle }
        }
        high
    }
}

impl<P: Path, S: Fn(f64) -> f64, D: Fn(f64) -> f64> Path for Reparameterised<P, S, D> {
    fn at(&self, t: f64) -> Array1<f64> {
        self.path.at((self.sigma)(t).clamp(0.0, 1.0))
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        (self.speed)(t) * self.path.derivative((self.sigma)(t).clamp(0.0, 1.0))
    }

    fn corners(&self) -> Vec<f64> {
        self.path.corners().into_iter().map(|s| self.time_of(s)).collect()
    }

    fn evidence(&self) -> PathEvidence {
        let inner = self.path.evidence();
        PathEvidence { kind: format!("reparameterised {}", inner.kind), ..inner }
    }
}
