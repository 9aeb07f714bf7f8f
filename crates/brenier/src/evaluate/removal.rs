//! Deletion and insertion: the score as units are taken away, or put back, in the order of the credit.
//!
//! ```text
//! area = int_0^1 f(x with the fraction q of its highest-ranked units replaced) dq       deletion: lower is better
//! area = int_0^1 f(replacement with the fraction q of x's units put back) dq            insertion: higher is better
//! ```
//!
//! At step k of K, `floor(k n / K)` of the n units are replaced; the area is that of the trapezoids between those
//! points. The score is the target's logit, as in the paper, so areas have the units of the score and differ in
//! scale from image to image; the curve is kept for those who would scale it otherwise. Credit is ranked by its sign
//! and sensitivity by its size, unless told otherwise. The measure is only as good as its replacement: zeros make
//! images that no model has seen, a blur leaves in what should be gone.
//!
//! (Samek et al., 2016; Petsiuk et al., 2018.) Rows of all fractions and all examples stream through the score
//! together.

use serde::{Deserialize, Serialize};

use super::replacement::replacements;
use super::row_stream::RowStream;
use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Channels, Comparable, Direction, Metric, MetricSettings, Units};
use crate::attribute::Baseline;
use crate::{Error, Result, highest_first};

/// Whether units go or come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// From the input, the highest-ranked units are replaced first. Lower areas are better.
    #[default]
    Deletion,
    /// From the replacement, the highest-ranked units of the input come back first. Higher areas are better.
    Insertion,
}

/// Deletion or insertion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Removal {
    /// Whether units go or come.
    pub order: Order,
    /// What replaces a unit; zeros and blurs are the paper's. Zero is the model's zero: after a model's own
    /// normalisation it need not be black.
    pub replacement: Baseline,
    /// What is removed together.
    pub units: Units,
    /// How units are ranked; where not given, credit by the signed sum over channels and sensitivity by the sum
    /// of absolute values.
    pub channels: Option<Channels>,
    /// The number of fractions, without the first point of the curve.
    pub steps: usize,
    /// Seed of a replacement by noise.
    pub seed: u64,
}

impl Default for Removal {
    /// Deletion of pixels by zeros, 20 fractions.
    fn default() -> Self {
        Self {
            order: Order::Deletion,
            replacement: Baseline::Zero,
            units: Units::Pixels,
            channels: None,
            steps: 20,
            seed: 0,
        }
    }
}

/// A score over the fraction of units that were removed, or put back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScoreCurve {
    /// The fractions, from 0 to 1.
    pub fractions: Vec<f64>,
    /// The score at each.
    pub scores: Vec<f64>,
}

impl ScoreCurve {
    /// The area under the curve, by trapezoids.
    pub fn area(&self) -> f64 {
        let pieces = self.fractions.windows(2).zip(self.scores.windows(2));
        pieces.map(|(q, f)| 0.5 * (q[1] - q[0]) * (f[0] + f[1])).sum()
    }
}

impl Removal {
    /// Deletion under this replacement.
    pub fn deletion(replacement: Baseline) -> Removal {
        Removal { replacement, ..Removal::default() }
    }

    /// Insertion over this replacement.
    pub fn insertion(replacement: Baseline) -> Removal {
        Removal { order: Order::Insertion, replacement, ..Removal::default() }
    }

    /// The metric's name.
    pub fn name(&self) -> &'static str {
        match (self.order, self.replacement) {
            (Order::Deletion, Baseline::Zero) => "deletion-zero",
            (Order::Deletion, Baseline::Blur { .. }) => "deletion-blur",
            (Order::Deletion, Baseline::Mean) => "deletion-mean",
            (Order::Deletion, Baseline::Noise) => "deletion-noise",
            (Order::Deletion, Baseline::Given) => "deletion-given",
            (Order::Insertion, Baseline::Zero) => "insertion-zero",
            (Order::Insertion, Baseline::Blur { .. }) => "insertion-blur",
            (Order::Insertion, Baseline::Mean) => "insertion-mean",
            (Order::Insertion, Baseline::Noise) => "insertion-noise",
            (Order::Insertion, Baseline::Given) => "insertion-given",
        }
    }

    /// The score curve of each example.
    ///
    /// # Errors
    /// No fractions; a blur of what is no image, a mean without data; a score that is not finite.
    pub fn curves(&self, cases: &Cases) -> Result<Vec<ScoreCurve>> {
        if self.steps == 0 {
            return Err(Error::Zero { what: "the number of fractions" });
        }
        let replaced = replacements(&self.replacement, cases, self.seed)?;
        let mut curves = vec![ScoreCurve::default(); cases.len()];
        let mut stream = RowStream::new(cases.score, |(example, fraction): (usize, f64), score| {
            let curve: &mut ScoreCurve = &mut curves[example];
            curve.fractions.push(fraction);
            curve.scores.push(score);
        });
        for example in 0..cases.len() {
            let groups = self.units.of(cases.shape(), cases.inputs.row(example))?;
            let order = highest_first(&self.units.ranks(&groups, cases, example, self.channels));
            let (from, to) = match self.order {
                Order::Deletion => (cases.inputs.row(example), replaced.row(example)),
                Order::Insertion => (replaced.row(example), cases.inputs.row(example)),
            };
            let mut state = from.to_owned();
            let mut moved = 0;
            for step in 0..=self.steps {
                let count = step * order.len() / self.steps;
                // Fewer units than fractions: a fraction that moves nothing would count a point twice.
                if step > 0 && count == moved {
                    continue;
                }
                for &unit in &order[moved..count] {
                    groups.members(unit).iter().for_each(|&feature| state[feature] = to[feature]);
                }
                moved = count;
                let fraction = count as f64 / order.len().max(1) as f64;
                let number = cases.context.first_example + example;
                stream.push(state.view(), cases.targets[example], number, (example, fraction))?;
            }
        }
        stream.finish()?;
        Ok(curves)
    }

    /// The area under each curve.
    pub(super) fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(self.curves(cases)?.iter().map(|curve| Some(curve.area())).collect())
    }
}

impl Removal {
    pub(super) const SPECS: &'static [MetricSpec] = &[
        MetricSpec {
            name: "deletion-zero",
            aliases: &[],
            help: "score as the highest-ranked pixels become zero",
            needs: &[],
            uses: &[MetricSetting::Channels, MetricSetting::Steps, MetricSetting::Units, MetricSetting::Seed],
            direction: Direction::Lower,
            comparable: Comparable::Methods,
            usual: true,
            build: |settings| build(Order::Deletion, Baseline::Zero, settings),
            page: MetricPage {
                formula: "area under $f$ as the highest-ranked pixels are replaced",
                range: "units of the score",
                says: "what is ranked high moves the score",
                does_not_say: "what zeros or blur themselves do to the model; read both",
            },
        },
        MetricSpec {
            name: "deletion-blur",
            aliases: &[],
            help: "score as the highest-ranked pixels become blurred",
            needs: &[MetricNeed::Image],
            uses: &[
                MetricSetting::Channels,
                MetricSetting::Steps,
                MetricSetting::Units,
                MetricSetting::Sigma,
                MetricSetting::Seed,
            ],
            direction: Direction::Lower,
            comparable: Comparable::Methods,
            usual: true,
            build: |settings| build(Order::Deletion, Baseline::Blur { sigma: settings.sigma }, settings),
            page: MetricPage {
                formula: "area under $f$ as the highest-ranked pixels are replaced",
                range: "units of the score",
                says: "what is ranked high moves the score",
                does_not_say: "what zeros or blur themselves do to the model; read both",
            },
        },
        MetricSpec {
            name: "insertion-zero",
            aliases: &[],
            help: "score as the highest-ranked pixels come back over zeros",
            needs: &[],
            uses: &[MetricSetting::Channels, MetricSetting::Steps, MetricSetting::Units, MetricSetting::Seed],
            direction: Direction::Higher,
            comparable: Comparable::Methods,
            usual: true,
            build: |settings| build(Order::Insertion, Baseline::Zero, settings),
            page: MetricPage {
                formula: "area under $f$ as the highest-ranked pixels come back",
                range: "units of the score",
                says: "what is ranked high moves the score",
                does_not_say: "what zeros or blur themselves do to the model; read both",
            },
        },
        MetricSpec {
            name: "insertion-blur",
            aliases: &[],
            help: "score as the highest-ranked pixels come back over a blur",
            needs: &[MetricNeed::Image],
            uses: &[
                MetricSetting::Channels,
                MetricSetting::Steps,
                MetricSetting::Units,
                MetricSetting::Sigma,
                MetricSetting::Seed,
            ],
            direction: Direction::Higher,
            comparable: Comparable::Methods,
            usual: true,
            build: |settings| build(Order::Insertion, Baseline::Blur { sigma: settings.sigma }, settings),
            page: MetricPage {
                formula: "area under $f$ as the highest-ranked pixels come back",
                range: "units of the score",
                says: "what is ranked high moves the score",
                does_not_say: "what zeros or blur themselves do to the model; read both",
            },
        },
    ];
}

impl Measure for Removal {
    fn spec(&self) -> &'static MetricSpec {
        let blurred = matches!(self.replacement, Baseline::Blur { .. });
        match (self.order, blurred) {
            (Order::Deletion, false) => &Self::SPECS[0],
            (Order::Deletion, true) => &Self::SPECS[1],
            (Order::Insertion, false) => &Self::SPECS[2],
            (Order::Insertion, true) => &Self::SPECS[3],
        }
    }

    fn name(&self) -> &'static str {
        // Replacements without a name on the command line have one in tables.
        self.name()
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.scores(cases)
    }
}

fn build(order: Order, replacement: Baseline, settings: &MetricSettings) -> Metric {
    let (channels, seed) = (settings.channels, settings.seed);
    let steps = settings.steps.unwrap_or(Removal::default().steps);
    let units = settings.units.clone().unwrap_or_default();
    Removal { order, replacement, units, channels, steps, seed }.into()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::problems::LinearScore;

    #[test]
    fn a_linear_score_in_closed_form() {
        // Credit 4, 3, -2, 1 of a sum that starts at 6 and ends at 0.
        let score = LinearScore::new(array![2.0, 1.0, -1.0, 1.0], 0.0);
        let input = array![[2.0, 3.0, 2.0, 1.0]];
        let values = array![[4.0, 3.0, -2.0, 1.0]];
        let cases = Cases::new(&score, input, vec![0], values).unwrap();
        let removal = Removal { steps: 4, ..Removal::default() };
        let curve = &removal.curves(&cases).unwrap()[0];
        assert_eq!(curve.fractions, [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(curve.scores, [6.0, 2.0, -1.0, -2.0, 0.0]);
        assert!((curve.area() - (3.0 + 2.0 - 1.0 - 2.0) / 4.0).abs() < 1e-15);
        let insertion = Removal { order: Order::Insertion, ..removal.clone() };
        assert_eq!(insertion.curves(&cases).unwrap()[0].scores, [0.0, 4.0, 7.0, 8.0, 6.0]);
        // By size, what speaks against the score goes before what hardly matters.
        let absolute = Removal { channels: Some(Channels::AbsoluteSum), ..removal.clone() };
        assert_eq!(absolute.curves(&cases).unwrap()[0].scores, [6.0, 2.0, -1.0, 1.0, 0.0]);
        // More fractions than units make no point twice.
        let fine = Removal { steps: 7, ..removal };
        assert_eq!(fine.curves(&cases).unwrap()[0].fractions, [0.0, 0.25, 0.5, 0.75, 1.0]);
    }
}
