//! Occlusion: a window slides over the input, and what it hides is credited with the score that is lost.
//!
//! ```text
//! Phi_i = mean over the windows W that cover i of  f(x) - v(x without W)
//! ```
//!
//! (Zeiler and Fergus, 2014.) Windows are placed as Captum places them: they start at multiples of the stride, the
//! last one of an axis is the first that reaches the edge, and what would hang over the edge is cut off. Where
//! windows overlap, a feature's credit is the mean of theirs. Credit does not sum to the score's change, and
//! does not claim to.

use std::ops::Range;

use ndarray::{Array1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::perturbation::{Case, Finding, Question};
use super::spec::{Explainer, MethodPage, MethodSpec, Setting};
use super::{Absence, Context, Explanation, Meaning};
use crate::predictor::Score;
use crate::{Error, Result};

/// Patches along each side of an image, where no window is given.
const PATCHES: usize = 8;

/// Occlusion by a sliding window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Occlusion {
    /// The window's size along every axis of the input, such as `[3, 8, 8]` for all channels of 8 by 8 pixels.
    /// Where not given: all channels of an eighth of an image's height and width; one feature of a row.
    pub window: Option<Vec<usize>>,
    /// Steps of the window along every axis. Where not given: half the window, at least 1.
    pub stride: Option<Vec<usize>>,
    /// What stands in for what the window hides.
    pub absence: Absence,
    /// The largest batch that the score is given, in rows; what takes about 8 MB where not given.
    pub micro_batch: Option<usize>,
}

impl Default for Occlusion {
    /// An eighth of an image's height and width, in steps of half of it; zero for what is hidden.
    fn default() -> Self {
        Self { window: None, stride: None, absence: Absence::default(), micro_batch: None }
    }
}

impl Occlusion {
    /// The method's name.
    pub const NAME: &'static str = "occlusion";

    /// Explains output `targets[i]` of row `i`.
    ///
    /// # Errors
    /// A window that does not fit the input, a stride that would leave features uncovered, scores that are not
    /// finite.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        let windows = Windows::new(self, score.shape())?;
        let question = Question { score, inputs, targets, context };
        question.answer(Self::NAME, self.absence, 0, self.micro_batch, |case| find(&windows, case))
    }
}

impl Occlusion {
    /// What every place of the window hides along every axis of inputs of this shape.
    ///
    /// # Errors
    /// A window or a stride that does not fit.
    pub(crate) fn places(&self, shape: &[usize]) -> Result<Vec<Vec<Range<usize>>>> {
        let windows = Windows::new(self, shape)?;
        Ok((0..windows.count()).map(|number| windows.along(number)).collect())
    }
}

fn find(windows: &Windows, case: &Case) -> Result<Finding> {
    let score = case.input_score()?;
    let mut credit = Array1::<f64>::zeros(case.input.len());
    let mut counts = Array1::<f64>::zeros(case.input.len());
    let evaluations = case.values(
        0..windows.count(),
        |&window, mask| {
            mask.fill(1.0);
            windows.features(window).into_iter().for_each(|feature| mask[feature] = 0.0);
        },
        |window, value| {
            for feature in windows.features(window) {
                credit[feature] += score - value;
                counts[feature] += 1.0;
            }
        },
    )?;
    Ok(Finding {
        credit: credit / counts,
        standard_errors: None,
        reference_score: None,
        score,
        evaluations: evaluations + 1,
        drawn: None,
    })
}

/// Where the window stands.
struct Windows {
    shape: Vec<usize>,
    window: Vec<usize>,
    stride: Vec<usize>,
    /// Places along every axis.
    places: Vec<usize>,
}

impl Windows {
    fn new(config: &Occlusion, shape: &[usize]) -> Result<Windows> {
        let window = config.window.clone().unwrap_or_else(|| match *shape {
            [channels, rows, columns] => {
                vec![channels, rows.div_ceil(PATCHES).max(1), columns.div_ceil(PATCHES).max(1)]
            }
            _ => vec![1; shape.len()],
        });
        let stride =
            config.stride.clone().unwrap_or_else(|| window.iter().map(|size| (size / 2).max(1)).collect());
        let refuse = |name, value: &[usize], needs| Error::Setting {
            name,
            value: format!("{value:?}"),
            needs,
            hint: "leave the window and the stride out to have them chosen".into(),
        };
        if window.len() != shape.len() || window.iter().zip(shape).any(|(w, size)| *w == 0 || w > size) {
            let needs = "it has a size for every axis of the input, from 1 to the axis's own";
            return Err(refuse("the window", &window, needs));
        }
        let uncovered = |((s, w), size): ((&usize, &usize), &usize)| *s == 0 || (s > w && w < size);
        if stride.len() != shape.len() || stride.iter().zip(&window).zip(shape).any(uncovered) {
            let needs = "it has a step for every axis of the input, from 1 to the window's size, so that no \
                         feature is passed over";
            return Err(refuse("the stride", &stride, needs));
        }
        let axes = shape.iter().zip(&window).zip(&stride);
        let places = axes.map(|((size, w), s)| (size - w).div_ceil(*s) + 1).collect();
        Ok(Windows { shape: shape.to_vec(), window, stride, places })
    }

    fn count(&self) -> usize {
        self.places.iter().product()
    }

    /// What a window hides along every axis.
    fn along(&self, mut number: usize) -> Vec<Range<usize>> {
        let mut along = vec![0..0; self.shape.len()];
        for axis in (0..self.shape.len()).rev() {
            let start = number % self.places[axis] * self.stride[axis];
            number /= self.places[axis];
            along[axis] = start..(start + self.window[axis]).min(self.shape[axis]);
        }
        along
    }

    /// The features that a window hides.
    fn features(&self, number: usize) -> Vec<usize> {
        let mut features = vec![0];
        let mut spacing = 1;
        for (axis, along) in self.along(number).into_iter().enumerate().rev() {
            features = along.flat_map(|i| features.iter().map(move |f| f + i * spacing)).collect();
            spacing *= self.shape[axis];
        }
        features
    }
}

impl Occlusion {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "score that is lost under a sliding window",
        needs: &[],
        uses: &[Setting::Baseline, Setting::Absence, Setting::Window, Setting::Stride, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let (window, stride) = (settings.window.clone(), settings.stride.clone());
            Occlusion { window, stride, absence: settings.absence(), ..Occlusion::default() }.into()
        },
        page: MethodPage {
            credit: "score lost under a sliding window",
            sums_to: "nothing",
            cost: "no gradients; a score a window",
            use_it: "for any model, beside others that people know it from",
            refuses: "see [its page](perturbation-methods.md)",
        },
    }];
}

impl Explainer for Occlusion {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn evaluations(&self, shape: &[usize]) -> Option<usize> {
        Some(Windows::new(self, shape).ok()?.count() * self.absence.rows() + 1)
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
    fn windows_are_cut_off_at_the_edge_and_cover_everything() {
        let config = Occlusion { window: Some(vec![2, 3]), stride: Some(vec![2, 2]), ..Occlusion::default() };
        let windows = Windows::new(&config, &[3, 6]).unwrap();
        assert_eq!(windows.places, [2, 3]);
        assert_eq!(windows.features(0), [0, 1, 2, 6, 7, 8]);
        // Rows 2..4 of 3, columns 4..7 of 6.
        assert_eq!(windows.features(5), [16, 17]);
        let mut covered: Vec<usize> = (0..windows.count()).flat_map(|w| windows.features(w)).collect();
        covered.sort_unstable();
        covered.dedup();
        assert_eq!(covered, (0..18).collect::<Vec<_>>());
    }

    #[test]
    fn says_what_does_not_fit() {
        let windows = |window: &[usize], stride: &[usize]| {
            let config = Occlusion {
                window: Some(window.to_vec()),
                stride: Some(stride.to_vec()),
                ..Occlusion::default()
            };
            Windows::new(&config, &[4, 4]).err().map(|e| e.to_string())
        };
        assert!(windows(&[2], &[1]).unwrap().contains("the window is [2]"));
        assert!(windows(&[5, 1], &[1, 1]).unwrap().contains("the window is [5, 1]"));
        assert!(windows(&[2, 2], &[3, 1]).unwrap().contains("the stride is [3, 1]"));
        assert!(windows(&[2, 2], &[0, 1]).is_some());
        // A window as large as the axis covers it, whatever the stride.
        assert!(windows(&[4, 2], &[9, 1]).is_none());
    }
}
