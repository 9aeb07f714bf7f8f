//! Nearest IG: Integrated Gradients from the rows of a population that lie nearest to the input, averaged.
//!
//! ```text
//! Phi = 1/K sum_k int grad f(r_k + t (x - r_k)) * (x - r_k) dt,     r_1 .. r_K the K rows nearest to x
//! ```
//!
//! The plain way to compare an input with a population where there is no map and no flow: real rows, and near ones,
//! because a far row differs in everything. Distances are measured in units of the columns
//! ([`units`]), of pixels as they are. The standard error is that over the K references.

use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::expected_gradients::background;
use super::mean_of::mean_of;
use super::rows::{MICRO_BATCH, check_inputs};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Allocation, Context, Explanation, Meaning, Request};
use crate::path::Line;
use crate::predictor::Score;
use crate::transport::{in_units, squared_distances, units};
use crate::{Error, Result};

/// Rows whose distances are taken at a time.
const PART: usize = 1024;

/// Integrated Gradients from the nearest rows of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NearestIg {
    /// How many rows.
    pub neighbours: usize,
    /// How credit is given along each line.
    pub allocation: Allocation,
}

impl Default for NearestIg {
    /// Twenty rows.
    fn default() -> Self {
        Self { neighbours: 20, allocation: Allocation::default() }
    }
}

impl NearestIg {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "nearest-ig";

    /// Explains each row of `inputs`: as many gradients as the rule needs, for each of the neighbours.
    ///
    /// # Errors
    /// If the context has no data, data of another shape, or fewer rows than neighbours.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        check_inputs(score, inputs, targets)?;
        if self.neighbours == 0 {
            return Err(Error::Zero { what: "the number of neighbours" });
        }
        let data = background(Self::NAME, score, context)?;
        data.require_rows(self.neighbours, "as many nearest rows")?;
        let unit = units(data, data)?;
        let wanted = in_units(inputs, &unit);
        let mut found: Vec<Vec<(f64, usize)>> = vec![Vec::new(); inputs.nrows()];
        for first in (0..data.len()).step_by(PART) {
            let rows: Vec<usize> = (first..(first + PART).min(data.len())).collect();
            let distances =
                squared_distances(wanted.view(), in_units(data.rows_f64(&rows)?.view(), &unit).view())?;
            for (near, of_it) in found.iter_mut().zip(distances.rows()) {
                keep_nearest(near, of_it, first, self.neighbours);
            }
        }
        let mut explanations = Vec::with_capacity(targets.len());
        let at_once = (MICRO_BATCH / self.neighbours).max(1);
        for first in (0..targets.len()).step_by(at_once) {
            let examples = first..(first + at_once).min(targets.len());
            let mut lines = Vec::with_capacity(examples.len() * self.neighbours);
            for example in examples.clone() {
                let rows: Vec<usize> = found[example].iter().map(|&(_, row)| row).collect();
                let references: Array2<f64> = data.rows_f64(&rows)?;
                for reference in references.rows() {
                    lines.push((example, Line::new(reference, inputs.row(example))?));
                }
            }
            let requests: Vec<Request> = lines
                .iter()
                .map(|(example, path)| Request { example: *example, path, target: targets[*example] })
                .collect();
            let members = self.allocation.explain_all(Self::NAME, score, &requests)?;
            for of_it in members.chunks(self.neighbours) {
                explanations.push(match of_it {
                    [only] => only.clone(),
                    several => mean_of(&several.iter().collect::<Vec<_>>(), "reference"),
                });
            }
        }
        Ok(explanations)
    }
}

/// Keeps the nearest of those known and of these; of equals the first.
fn keep_nearest(near: &mut Vec<(f64, usize)>, distances: ArrayView1<f64>, first: usize, count: usize) {
    near.extend(distances.iter().enumerate().map(|(i, &distance)| (distance, first + i)));
    near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    near.truncate(count);
}

impl NearestIg {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "ig averaged over the rows of the data that are nearest to the input",
        needs: &[Need::GradientsOrTrees, Need::Data],
        uses: &[Setting::Neighbours, Setting::Rule, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let neighbours = settings.neighbours.unwrap_or(NearestIg::default().neighbours);
            NearestIg { neighbours, allocation: settings.path_integral() }.into()
        },
        page: MethodPage {
            credit: r"mean over the $K$ nearest rows $r$ of $(x_i-r_i)\int\partial_i f(r+t(x-r))\,\mathrm dt$",
            sums_to: r"$f(x)-\overline{f(r)}$",
            cost: "$K$ = 20 times what the tolerance needs",
            use_it: "to compare with a population without a map or a flow",
            refuses: "a run without background data, fewer rows than neighbours",
        },
    }];
}

impl Explainer for NearestIg {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
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
    use crate::attribute::IntegratedGradients;
    use crate::data::Dataset;
    use crate::problems::LinearScore;
    use ndarray::{Array2, array};

    #[test]
    fn the_nearest_rows_are_kept_whatever_the_part_they_are_in() {
        let mut near = Vec::new();
        keep_nearest(&mut near, array![3.0, 1.0, 1.0].view(), 0, 2);
        keep_nearest(&mut near, array![0.5, 1.0].view(), 3, 2);
        assert_eq!(near, [(0.5, 3), (1.0, 1)]);
    }

    #[test]
    fn credit_of_a_linear_score_is_its_weight_times_the_distance_to_the_mean_of_the_nearest() {
        let score = LinearScore::new(array![2.0, -1.0], 0.5);
        // A far row that would change everything, and a column in units a hundred times as large.
        let rows = array![[0.0_f32, 0.0], [1.0, 100.0], [2.0, 0.0], [50.0, 900.0]];
        let data = Dataset::from_rows("rows", &[2], rows.view()).unwrap();
        let context = Context { data: Some(&data), ..Context::default() };
        let method = NearestIg { neighbours: 2, ..NearestIg::default() };
        let found = method.explain(&score, array![[1.0, 10.0]].view(), &[0], &context).unwrap();
        // In units rows 0 and 2 are nearest; their mean is (1, 0).
        assert!((found[0].values[0] - 0.0).abs() < 1e-9 && (found[0].values[1] + 10.0).abs() < 1e-9);
        let errors = found[0].standard_errors.as_ref().unwrap();
        assert!((errors[0] - 2.0).abs() < 1e-9 && errors[1].abs() < 1e-9, "{errors}");
        // One reference is Integrated Gradients from it.
        let one = NearestIg { neighbours: 1, ..NearestIg::default() };
        let found = one.explain(&score, array![[2.0, 1.0]].view(), &[0], &context).unwrap();
        let baselines: Array2<f64> = array![[2.0, 0.0]];
        let given = Context { baselines: Some(baselines.view()), ..Context::default() };
        let ig = IntegratedGradients { baseline: crate::attribute::Baseline::Given, ..Default::default() };
        let expected = ig.explain(&score, array![[2.0, 1.0]].view(), &[0], &given).unwrap();
        assert_eq!(found[0].values, expected[0].values);
        assert!(one.explain(&score, array![[2.0, 1.0]].view(), &[0], &Context::default()).is_err());
        let many = NearestIg { neighbours: 5, ..NearestIg::default() };
        assert!(many.explain(&score, array![[2.0, 1.0]].view(), &[0], &context).is_err());
    }
}
