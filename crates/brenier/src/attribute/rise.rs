//! RISE: the mean score of randomly masked inputs, feature by feature, over the masks that leave it present.
//!
//! ```text
//! Phi_i = sum_k M_ki v(M_k) / sum_k M_ki          ->  E[ v(M) | i present ]
//! ```
//!
//! (Petsiuk, Das and Saenko, 2018.) For an image a mask is a small grid of cells, each present with some
//! probability, enlarged bilinearly and shifted by a random part of a cell; a row's features are masked one by
//! one. Values are scores, not differences: what matters is where they are larger. The paper divides by the
//! expected mask, `N p`; the sum of the masks themselves has the same limit, and a score that is constant comes
//! out constant instead of as noise. The standard error is that of a ratio of two means.

use ndarray::{Array1, ArrayView2};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draws::generator;
use super::perturbation::{Case, Finding, Question};
use super::spec::{Explainer, MethodPage, MethodSpec, Setting};
use super::{Absence, Context, Explanation, Meaning};
use crate::predictor::Score;
use crate::{Error, Result};

/// Randomised input sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rise {
    /// The number of masks.
    pub samples: usize,
    /// Cells of a mask along each side of an image.
    pub cells: usize,
    /// The probability with which a cell is present.
    pub probability: f64,
    /// What stands in for what is masked.
    pub absence: Absence,
    /// The seed of the draws.
    pub seed: u64,
    /// The largest batch that the score is given, in rows; what takes about 8 MB where not given.
    pub micro_batch: Option<usize>,
}

impl Default for Rise {
    /// The paper's 4000 masks of 7 by 7 cells, each present with probability 0.5; zero for what is masked.
    fn default() -> Self {
        Self {
            samples: 4000,
            cells: 7,
            probability: 0.5,
            absence: Absence::default(),
            seed: 0,
            micro_batch: None,
        }
    }
}

impl Rise {
    /// The method's name.
    pub const NAME: &'static str = "rise";

    /// Explains output `targets[i]` of row `i`.
    ///
    /// # Errors
    /// Settings with which nothing can be drawn; a feature that no mask left present; scores that are not finite.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        if self.samples == 0 || self.cells == 0 {
            return Err(Error::Zero { what: "the number of masks and of their cells" });
        }
        if !(self.probability > 0.0 && self.probability < 1.0) {
            return Err(Error::Setting {
                name: "the probability of a cell",
                value: self.probability.to_string(),
                needs: "it lies between 0 and 1, so that masks differ",
                hint: "0.5 is the default".into(),
            });
        }
        let question = Question { score, inputs, targets, context };
        question.answer(Self::NAME, self.absence, self.seed, self.micro_batch, |case| self.find(case))
    }

    fn find(&self, case: &Case) -> Result<Finding> {
        let score = case.input_score()?;
        let mut rng = generator(self.seed, case.key, 0);
        let shape = case.score.shape();
        let masks = (0..self.samples).map(|_| self.mask(shape, &mut rng));
        let mut sums = Sums::zero(plane(shape));
        let spread = |mask: &Vec<f64>, row: &mut [f64]| {
            row.chunks_mut(mask.len()).for_each(|channel| channel.copy_from_slice(mask));
        };
        // Differences from the input's score: a large score does not drown what the masks change.
        let evaluations = case.values(masks, spread, |mask, value| sums.add(&mask, value - score))?;
        if let Some(never) = sums.masks.iter().position(|sum| *sum == 0.0) {
            return Err(Error::NeverPresent { feature: never, samples: self.samples });
        }
        let mean = &sums.scores / &sums.masks;
        let spread =
            &sums.squared_scores - 2.0 * &mean * &sums.weighted_scores + &mean * &mean * &sums.squares;
        let errors = spread.mapv(|s| s.max(0.0).sqrt()) / &sums.masks;
        let channels = |plane: Array1<f64>| -> Array1<f64> {
            plane.iter().copied().cycle().take(case.input.len()).collect()
        };
        Ok(Finding {
            credit: channels(mean + score),
            standard_errors: Some(channels(errors)),
            reference_score: None,
            score,
            evaluations: evaluations + 1,
            drawn: Some((self.seed, self.samples)),
        })
    }

    fn mask(&self, shape: &[usize], rng: &mut ChaCha8Rng) -> Vec<f64> {
        let [rows, columns] = match *shape {
            [_, rows, columns] => [rows, columns],
            // A row of features has no neighbourhood to be smooth over.
            _ => return (0..plane(shape)).map(|_| f64::from(rng.random_bool(self.probability))).collect(),
        };
        let cells = self.cells;
        let grid: Vec<f64> =
            (0..cells * cells).map(|_| f64::from(rng.random_bool(self.probability))).collect();
        let down = Axis::draw(rows, cells, rng);
        let across = Axis::draw(columns, cells, rng);
        let mut mask = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            let (above, below, v) = down.place(row);
            for column in 0..columns {
                let (left, right, u) = across.place(column);
                let line = |r: usize| (1.0 - u) * grid[r * cells + left] + u * grid[r * cells + right];
                mask.push((1.0 - v) * line(above) + v * line(below));
            }
        }
        mask
    }
}

/// The number of features that a mask covers: pixels of an image, else all.
fn plane(shape: &[usize]) -> usize {
    match *shape {
        [_, rows, columns] => rows * columns,
        _ => shape.iter().product(),
    }
}

/// How one axis of a mask is enlarged: the grid covers one cell more than the image, and is shifted within it.
struct Axis {
    cells: usize,
    cell_size: usize,
    shift: usize,
}

impl Axis {
    fn draw(size: usize, cells: usize, rng: &mut ChaCha8Rng) -> Axis {
        let cell_size = size.div_ceil(cells);
        Axis { cells, cell_size, shift: rng.random_range(0..cell_size) }
    }

    /// The two cells that a pixel lies between, and how far towards the second.
    fn place(&self, pixel: usize) -> (usize, usize, f64) {
        let enlarged = ((self.cells + 1) * self.cell_size) as f64;
        let at = ((pixel + self.shift) as f64 + 0.5) * self.cells as f64 / enlarged - 0.5;
        let at = at.clamp(0.0, (self.cells - 1) as f64);
        let first = at.floor() as usize;
        (first, (first + 1).min(self.cells - 1), at - first as f64)
    }
}

/// Sums over masks `M` and values `v`, feature by feature.
struct Sums {
    masks: Array1<f64>,
    squares: Array1<f64>,
    scores: Array1<f64>,
    weighted_scores: Array1<f64>,
    squared_scores: Array1<f64>,
}

impl Sums {
    fn zero(features: usize) -> Sums {
        let zero = || Array1::zeros(features);
        Sums {
            masks: zero(),
            squares: zero(),
            scores: zero(),
            weighted_scores: zero(),
            squared_scores: zero(),
        }
    }

    fn add(&mut self, mask: &[f64], value: f64) {
        for (i, &m) in mask.iter().enumerate() {
            self.masks[i] += m;
            self.squares[i] += m * m;
            self.scores[i] += m * value;
            self.weighted_scores[i] += m * m * value;
            self.squared_scores[i] += m * m * value * value;
        }
    }
}

impl Rise {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "mean score of randomly masked inputs in which a feature is present",
        needs: &[],
        uses: &[Setting::Samples, Setting::Baseline, Setting::Absence, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let samples = settings.samples.unwrap_or(Rise::default().samples);
            Rise { samples, absence: settings.absence(), seed: settings.seed, ..Rise::default() }.into()
        },
        page: MethodPage {
            credit: "mean score of masked inputs in which $i$ is present",
            sums_to: "nothing",
            cost: "no gradients; 4000 scores",
            use_it: "for any model, beside others that people know it from",
            refuses: "see [its page](perturbation-methods.md)",
        },
    }];
}

impl Explainer for Rise {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn evaluations(&self, _shape: &[usize]) -> Option<usize> {
        Some(self.samples.saturating_mul(self.absence.rows()))
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_images_are_smooth_and_present_with_the_given_probability_everywhere() {
        let rise = Rise { cells: 4, probability: 0.3, ..Rise::default() };
        let mut rng = generator(3, crate::attribute::Key::SHARED, 0);
        let (count, mut mean) = (20_000, vec![0.0; 12 * 10]);
        for _ in 0..count {
            let mask = rise.mask(&[2, 12, 10], &mut rng);
            assert!(mask.iter().all(|m| (0.0..=1.0).contains(m)));
            let steps = mask.chunks(10).flat_map(|row| row.windows(2)).map(|w| (w[0] - w[1]).abs());
            assert!(steps.fold(0.0, f64::max) < 0.5);
            mean.iter_mut().zip(&mask).for_each(|(sum, m)| *sum += m / count as f64);
        }
        // A mask's deviation is at most sqrt(0.3 * 0.7); five standard errors.
        assert!(mean.iter().all(|m| (m - 0.3).abs() < 5.0 * 0.46 / (count as f64).sqrt()), "{mean:?}");
    }
}
