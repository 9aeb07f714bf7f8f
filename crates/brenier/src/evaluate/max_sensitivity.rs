//! Max-sensitivity: how far the explanation moves when the input hardly does. Lower is better.
//!
//! ```text
//! max over draws e of  |Phi(x + e) - Phi(x)|_2 / |Phi(x)|_2,     e uniform in the box |e_i| <= radius
//! ```
//!
//! (Yeh et al., 2019; divided by the norm of the explanation, as Captum does.) A maximum over draws is a lower bound
//! of the supremum, and grows with their number. An explanation that ignores the model is not sensitive at all. It
//! is not defined where all credit is zero.
//!
//! A method that draws is asked to draw as for the inputs that were not moved, so that its own noise is not taken for
//! sensitivity.

use rand_distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec, needed};
use super::{Cases, Comparable, Direction, Explain};
use crate::attribute::{Key, generator};
use crate::{Error, Result};

/// Max-sensitivity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaxSensitivity {
    /// Half the side of the box, in units of the input.
    pub radius: f64,
    /// The number of draws.
    pub samples: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for MaxSensitivity {
    /// 10 draws within 0.02, as Captum's.
    fn default() -> Self {
        Self { radius: 0.02, samples: 10, seed: 0 }
    }
}

impl MaxSensitivity {
    /// The metric's name.
    pub const NAME: &'static str = "max-sensitivity";

    /// The sensitivity of each explanation.
    pub(super) fn scores(&self, cases: &Cases, explain: &Explain) -> Result<Vec<Option<f64>>> {
        let refuse = || Error::Setting {
            name: "the radius of max-sensitivity",
            value: self.radius.to_string(),
            needs: "it is a positive number in units of the input",
            hint: "0.02 is the default".into(),
        };
        if self.samples == 0 {
            return Err(Error::Zero { what: "the number of draws" });
        }
        if !(self.radius > 0.0 && self.radius.is_finite()) {
            return Err(refuse());
        }
        let uniform = Uniform::new_inclusive(-self.radius, self.radius).map_err(|_| refuse())?;
        let keys = Key::of_each(cases.inputs.view());
        let mut largest = vec![0.0_f64; cases.len()];
        for draw in 0..self.samples {
            let mut inputs = cases.inputs.clone();
            for (example, mut row) in inputs.rows_mut().into_iter().enumerate() {
                let mut rng = generator(self.seed, keys[example], draw);
                row.iter_mut().for_each(|value| *value += uniform.sample(&mut rng));
            }
            let moved = cases.explain_again(explain, cases.score, cases.context.model, inputs.view())?
                - &cases.values;
            for (largest, row) in largest.iter_mut().zip(moved.rows()) {
                *largest = largest.max(row.dot(&row).sqrt());
            }
        }
        let relative = |(moved, row): (f64, ndarray::ArrayView1<f64>)| {
            let size = row.dot(&row).sqrt();
            (size > 0.0).then(|| moved / size)
        };
        Ok(largest.into_iter().zip(cases.values.rows()).map(relative).collect())
    }
}

impl MaxSensitivity {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &["sensitivity-max"],
        help: "how far the explanation moves when the input hardly does",
        needs: &[MetricNeed::Method],
        uses: &[MetricSetting::Samples, MetricSetting::Seed],
        direction: Direction::Lower,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| {
            let default = MaxSensitivity::default();
            let samples = settings.samples.unwrap_or(default.samples);
            MaxSensitivity { samples, seed: settings.seed, ..default }.into()
        },
        page: MetricPage {
            formula: r"$\max_e\lvert\Phi(x+e)-\Phi(x)\rvert/\lvert\Phi(x)\rvert$",
            range: "0 to ∞",
            says: "nearby inputs have nearby explanations",
            does_not_say: "that the model itself is steady there; it grows with the number of draws",
        },
    }];
}

impl Measure for MaxSensitivity {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.scores(cases, needed(self.spec(), cases.explain)?)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::ScoreFn;
    use crate::attribute::{Context, Gradient, GradientInput, Method};
    use crate::evaluate::explain_with;

    #[test]
    fn gradients_of_a_line_do_not_move_and_those_times_the_input_do_by_the_radius() {
        let score = ScoreFn::new(&[1], |x, _| (3.0 * x[0], array![3.0]));
        let context = Context::default();
        let of = |method: Method, values: f64| {
            let explain = explain_with(&method, &context);
            let cases = Cases::new(&score, array![[2.0]], vec![0], array![[values]]).unwrap();
            let metric = MaxSensitivity { radius: 0.1, samples: 200, seed: 1 };
            metric.scores(&cases, &explain).unwrap()[0].unwrap()
        };
        assert_eq!(of(Method::Gradient(Gradient {}), 3.0), 0.0);
        // |3 e| / 6 <= 0.05, and 200 draws come near.
        let found = of(Method::GradientInput(GradientInput {}), 6.0);
        assert!(found <= 0.05 + 1e-12 && found > 0.049, "{found}");
    }
}
