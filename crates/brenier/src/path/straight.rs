//! Traces of a field whose ways are straight lines with starts in closed form: nothing is solved.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, stack};

use super::{Path, PathEvidence, Trace, Trajectory};
use crate::field::StraightStarts;
use crate::{Result, error};

/// The line from each start to its input, as a trace, which `follow` may follow at once.
pub(super) fn straight_traces(
    inputs: ArrayView2<f64>,
    starts: &StraightStarts,
    follow: &mut dyn FnMut(&[&dyn Path]),
) -> Result<Vec<Trace>> {
    error::expect_shape("the starts of the ways", inputs.shape(), starts.states.shape())?;
    let mut traces = Vec::with_capacity(inputs.nrows());
    for (example, (start, input)) in starts.states.rows().into_iter().zip(inputs.rows()).enumerate() {
        error::expect_finite("reference", example, 0.0, start)?;
        error::expect_finite("input", example, 1.0, input)?;
        let way = &input - &start;
        let length = way.dot(&way).sqrt();
        let miss = starts.misses[example];
        let evidence = PathEvidence {
            kind: "trace".into(),
            solver: Some("closed form: a straight line".into()),
            velocity_evaluations: Some(0),
            check_evaluations: Some(0),
            round_trip_error: Some(miss),
            relative_round_trip_error: Some(if miss == 0.0 {
                0.0
            } else {
                miss / length.max(f64::MIN_POSITIVE)
            }),
            reference_clipped: starts.clipped.as_ref().map(|clipped| clipped[example]),
            ..PathEvidence::default()
        };
        traces.push(Trace { trajectory: line(start, input, &way), evidence });
    }
    let paths: Vec<&dyn Path> = traces.iter().map(|trace| trace as &dyn Path).collect();
    follow(&paths);
    Ok(traces)
}

fn line(start: ArrayView1<f64>, input: ArrayView1<f64>, way: &Array1<f64>) -> Trajectory {
    let pair = |a: ArrayView1<f64>, b: ArrayView1<f64>| {
        stack(ndarray::Axis(0), &[a, b]).unwrap_or_else(|_| Array2::zeros((2, a.len())))
    };
    Trajectory {
        times: vec![0.0, 1.0],
        states: pair(start, input),
        velocities: pair(way.view(), way.view()),
        quartics: Array2::zeros((1, way.len())),
        velocity_evaluations: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_known_line_is_followed_without_a_solver() {
        let starts = StraightStarts {
            states: array![[1.0, -2.0], [0.0, 0.0]],
            misses: array![0.0, 0.5],
            clipped: Some(array![0.25, 0.0]),
        };
        let inputs = array![[3.0, 2.0], [0.0, 2.0]];
        let mut ends = Vec::new();
        let mut follow = |paths: &[&dyn Path]| ends = paths.iter().map(|path| path.ends()).collect();
        let traces = straight_traces(inputs.view(), &starts, &mut follow).unwrap();
        assert_eq!(ends[0], (array![1.0, -2.0], array![3.0, 2.0]));
        assert_eq!(traces[0].at(0.25), array![1.5, -1.0]);
        assert_eq!(traces[0].derivative(0.7), array![2.0, 4.0]);
        let evidence = traces[1].evidence();
        assert_eq!(evidence.relative_round_trip_error, Some(0.25));
        assert_eq!(traces[0].evidence().reference_clipped, Some(0.25));
        let wrong = StraightStarts { states: array![[1.0]], misses: array![0.0], clipped: None };
        assert!(straight_traces(inputs.view(), &wrong, &mut |_| {}).is_err());
    }
}
