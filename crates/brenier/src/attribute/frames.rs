//! A path in a number of still pictures: where it is, the score there, and the credit so far.
//!
//! ```text
//! Phi_i(t_k) = sum over pieces up to t_k of  int d_i f(gamma) d gamma_i       two Gauss-Legendre nodes a piece
//! ```
//!
//! To be looked at, not to be reported: the credit of an explanation is integrated to a tolerance, this one on a
//! fixed grid. So that a page does not show two sums, what the grid missed is shared out over the way:
//! [`Frames::ending_at`].

use ndarray::{Array1, Array2, ArrayView1, Axis, Zip};

use super::Reduction;
use super::rows::MICRO_BATCH;
use crate::path::{Path, grid_time, stack_rows};
use crate::score::{Score, rows_at_once};
use crate::{Error, Result};

/// Stills of a path, the reference first.
#[derive(Debug, Clone, PartialEq)]
pub struct Frames {
    /// The times, from 0 to 1.
    pub times: Vec<f64>,
    /// The states, `[frames, features]`; for large images in blocks ([`Reduction::of_stills`]).
    pub states: Array2<f64>,
    /// The score at each.
    pub scores: Array1<f64>,
    /// The credit gathered up to each, `[frames, features]`.
    pub credit: Array2<f64>,
    /// The same, of all features together.
    pub sums: Array1<f64>,
}

impl Frames {
    /// The same stills, with the credit of an explanation at the end. What the grid missed of a feature's credit is
    /// added along the way in proportion to how much credit the feature has gained and lost so far.
    pub fn ending_at(mut self, values: ArrayView1<f64>, shape: &[usize]) -> Frames {
        let last = self.credit.nrows() - 1;
        let smaller = Reduction::of_stills(shape).map(|reduction| reduction.sums(values));
        let shown = smaller.as_ref().map_or(values, |smaller| smaller.view());
        for (feature, &value) in shown.iter().enumerate() {
            let mut column = self.credit.column_mut(feature);
            let missed = value - column[last];
            let moved: Vec<f64> = (1..=last).map(|k| (column[k] - column[k - 1]).abs()).collect();
            let whole: f64 = moved.iter().sum();
            let mut so_far = 0.0;
            for k in 1..=last {
                so_far += moved[k - 1];
                let share = if whole > 0.0 { so_far / whole } else { k as f64 / last as f64 };
                column[k] += share * missed;
            }
            column[last] = value;
        }
        self.sums = self.credit.sum_axis(Axis(1));
        // In the order in which the certificate sums.
        self.sums[last] = values.sum();
        self
    }
}

/// Stills of a path at `pieces + 1` equal times. Costs `2 pieces` gradients and `pieces + 1` scores.
pub fn frames(score: &dyn Score, path: &dyn Path, target: usize, pieces: usize) -> Result<Frames> {
    if pieces == 0 {
        return Err(Error::Zero { what: "the number of pieces of a path" });
    }
    let times: Vec<f64> = (0..=pieces).map(|k| grid_time(0.0, 1.0, k, pieces)).collect();
    let reduction = Reduction::of_stills(score.shape());
    // A point and its gradient are there together.
    let at_once = rows_at_once(MICRO_BATCH, 2 * score.features());
    let mut scores = Vec::with_capacity(times.len());
    let mut states = Vec::with_capacity(times.len());
    for chunk in times.chunks(at_once) {
        let points = points(path, chunk, score.features());
        scores.extend(score.values(points.view(), &vec![target; chunk.len()])?);
        let shown = |row: ArrayView1<f64>| reduction.map_or_else(|| row.to_owned(), |by| by.means(row));
        states.extend(points.rows().into_iter().map(shown));
    }
    let states = stack_rows(&states);
    // The nodes of the rule with two of them, on [0, 1].
    let offset = 0.5 / 3.0_f64.sqrt();
    let width = 1.0 / pieces as f64;
    let nodes: Vec<f64> = times[..pieces]
        .iter()
        .flat_map(|t| [t + width * (0.5 - offset), t + width * (0.5 + offset)])
        .collect();
    let mut credit = Array2::zeros(states.raw_dim());
    let mut so_far = Array1::zeros(score.features());
    let mut node = 0;
    for chunk in nodes.chunks(at_once) {
        let points = points(path, chunk, score.features());
        let (_, gradients) = score.gradients(points.view(), &vec![target; chunk.len()])?;
        drop(points);
        for (&t, gradient) in chunk.iter().zip(gradients.rows()) {
            Zip::from(&mut so_far)
                .and(&gradient)
                .and(&path.derivative(t))
                .for_each(|sum, g, d| *sum += g * d * (0.5 * width));
            node += 1;
            if node % 2 == 0 {
                match reduction {
                    Some(by) => credit.row_mut(node / 2).assign(&by.sums(so_far.view())),
                    None => credit.row_mut(node / 2).assign(&so_far),
                }
            }
        }
    }
    let sums = credit.sum_axis(Axis(1));
    Ok(Frames { times, states, scores: scores.into(), credit, sums })
}

/// Points of a path as rows. Each is made in its turn, so that of a large image there is one more than the rows, not twice as many.
fn points(path: &dyn Path, times: &[f64], features: usize) -> Array2<f64> {
    let mut points = Array2::zeros((times.len(), features));
    for (mut row, &t) in points.rows_mut().into_iter().zip(times) {
        row.assign(&path.at(t));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, ScoreFn};
    use ndarray::array;

    #[test]
    fn credit_so_far_is_the_integral_up_to_there() {
        // f = x0^2 + 3 x1, along a line from (0, 0) to (2, 1): credit (4 t^2, 3 t).
        let score = ScoreFn::new(&[2], |x, _| (x[0] * x[0] + 3.0 * x[1], array![2.0 * x[0], 3.0]));
        let line = Line::new(array![0.0, 0.0].view(), array![2.0, 1.0].view()).unwrap();
        let found = frames(&score, &line, 0, 40).unwrap();
        for (k, &t) in found.times.iter().enumerate() {
            assert!((found.credit[[k, 0]] - 4.0 * t * t).abs() < 1e-12);
            assert!((found.credit[[k, 1]] - 3.0 * t).abs() < 1e-12);
            assert!((found.scores[k] - (4.0 * t * t + 3.0 * t)).abs() < 1e-12);
        }
        assert_eq!(found.states.row(40), array![2.0, 1.0]);
        // The end is what the explanation says, and the way there stays close to what was found.
        let ended = found.clone().ending_at(array![4.1, 2.9].view(), &[2]);
        assert_eq!(ended.credit.row(40), array![4.1, 2.9]);
        assert_eq!(ended.sums[40], 7.0);
        assert_eq!(ended.credit.row(0), found.credit.row(0));
        assert!((ended.credit[[20, 0]] - (1.0 + 0.25 * 0.1)).abs() < 1e-12);
        assert!(frames(&score, &line, 0, 0).is_err());
    }
}
