//! Credit of a tree ensemble along any path: jumps at thresholds, exactly.
//!
//! A path that is straight between its corners is followed as it is. One that bends, such as the trace of a flow, is replaced
//! by many short chords: the sum of all credit stays exact, and two features can only change places where they pass
//! thresholds within one chord. A trace that turns out to be straight is one line.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::path_integral::certify;
use super::{Explanation, PathIntegral, Request};
use crate::path::{Path, grid_time, stack_rows};
use crate::score::{Score, Trees};
use crate::{Result, error};

/// Chords in place of a path that bends.
const CHORDS: usize = 256;
/// How far points may lie off the line between the ends, relative to its length, for it to be that line.
const STRAIGHT: f64 = 1e-9;

/// Explains requests along their jumps.
pub(super) fn explain_all(
    integral: &PathIntegral,
    score: &dyn Score,
    trees: &dyn Trees,
    requests: &[Request],
) -> Result<Vec<Explanation>> {
    let mut lines = Vec::with_capacity(requests.len());
    for request in requests {
        let points = points(request.path);
        for (place, time) in [(0, 0.0), (points.nrows() - 1, 1.0)] {
            error::expect_finite("state", request.example, time, points.row(place))?;
        }
        lines.push((points, request.target));
    }
    let ends: Vec<Array1<f64>> = lines
        .iter()
        .flat_map(|(points, _)| [0, points.nrows() - 1].map(|place| points.row(place).to_owned()))
        .collect();
    let targets: Vec<usize> = requests.iter().flat_map(|request| [request.target; 2]).collect();
    let scores = match ends.is_empty() {
        true => Array1::zeros(0),
        false => score.values(stack_rows(&ends).view(), &targets)?,
    };
    let credit: Vec<Array1<f64>> = lines
        .par_iter()
        .map(|(points, target)| trees.path_credit(points.view(), *target))
        .collect::<Result<_>>()?;
    let explained = requests.iter().zip(credit).enumerate().map(|(i, (request, credit))| {
        let ends = (scores[2 * i], scores[2 * i + 1]);
        let credit = balanced(credit, ends.1 - ends.0);
        let rule = (integral.rule, "exact jumps", None, None);
        let mut explanation = certify(score, request, credit, ends, rule, &integral.limits);
        explanation.certificate.score_evaluations = 2;
        explanation
    });
    Ok(explained.collect())
}

/// The corners of a path, or many points on it where it bends.
fn points(path: &dyn Path) -> Array2<f64> {
    let mut times = vec![0.0, 1.0];
    times.extend(path.corners());
    if !path.is_straight() {
        times.extend((1..CHORDS).map(|k| grid_time(0.0, 1.0, k, CHORDS)));
    }
    times.sort_by(f64::total_cmp);
    times.dedup();
    let points = stack_rows(&times.iter().map(|&t| path.at(t)).collect::<Vec<_>>());
    if path.is_straight() || !on_a_line(&points) {
        return points;
    }
    let last = points.nrows() - 1;
    stack_rows(&[points.row(0).to_owned(), points.row(last).to_owned()])
}

/// Whether all points lie on the line between the ends, and in their order.
fn on_a_line(points: &Array2<f64>) -> bool {
    let (first, last) = (points.row(0), points.row(points.nrows() - 1));
    let way = &last - &first;
    let length = way.dot(&way);
    let mut before = 0.0;
    points.rows().into_iter().all(|point| {
        let gone = &point - &first;
        let part = if length > 0.0 { gone.dot(&way) / length } else { 0.0 };
        let off = &gone - &(part * &way);
        let forward = part >= before - STRAIGHT;
        before = part;
        forward && off.dot(&off) <= STRAIGHT * STRAIGHT * length
    })
}

/// The same credit with what additions rounded off added to small shares, so that it sums to the change where it can.
fn balanced(mut credit: Array1<f64>, change: f64) -> Array1<f64> {
    let sizes: f64 = credit.iter().map(|v| v.abs()).sum();
    let missed = change - credit.sum();
    if missed == 0.0 || missed.abs() > 1e-12 * sizes {
        return credit;
    }
    let mut order: Vec<usize> = (0..credit.len()).filter(|&i| credit[i] != 0.0).collect();
    order.sort_by(|&i, &j| credit[i].abs().total_cmp(&credit[j].abs()));
    for place in order {
        let missed = change - credit.sum();
        if missed == 0.0 {
            break;
        }
        credit[place] += missed;
    }
    credit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;
    use ndarray::array;

    #[test]
    fn what_is_straight_is_one_line_and_what_bends_is_many() {
        let line = Line::new(array![0.0, 1.0].view(), array![2.0, 0.0].view()).unwrap();
        assert_eq!(points(&line).nrows(), 2);
        let straight = stack_rows(&[array![0.0, 0.0], array![0.3, 0.6], array![1.0, 2.0]]);
        assert!(on_a_line(&straight));
        assert!(!on_a_line(&stack_rows(&[array![0.0, 0.0], array![0.3, 0.6 + 1e-6], array![1.0, 2.0]])));
        // There and back again is not one way.
        assert!(!on_a_line(&stack_rows(&[array![0.0], array![2.0], array![1.0]])));
    }

    #[test]
    fn rounding_is_put_right_and_nothing_else() {
        let rounded = balanced(array![0.1, 0.2, -0.3], 0.0);
        assert_eq!(rounded.sum(), 0.0);
        assert_eq!(balanced(array![0.1, 0.2], 0.5), array![0.1, 0.2]);
    }
}
