//! A path through points that a user supplies, straight in between.
//!
//! ```text
//! gamma(t) = x_k + (t - t_k) / (t_{k+1} - t_k) (x_{k+1} - x_k)    for t in [t_k, t_{k+1}]
//! ```
//!
//! Any path that some other program has computed can be explained along: write its points as the rows of an
//! npy file, reference first, input last.

use std::path::Path as FilePath;

use ndarray::{Array1, Array2, ArrayD, Axis};

use super::{Path, PathEvidence, piece_of};
use crate::{Error, Result, error};

/// Straight pieces through given points.
#[derive(Debug, Clone)]
pub struct Polyline {
    times: Vec<f64>,
    points: Array2<f64>,
    kind: &'static str,
}

impl Polyline {
    /// Through the rows of `points`, at equal time steps: row 0 at time 0, the last row at time 1.
    pub fn new(points: Array2<f64>) -> Result<Self> {
        let pieces = points.nrows().saturating_sub(1).max(1);
        let times = (0..points.nrows()).map(|k| k as f64 / pieces as f64).collect();
        Self::with_times(points, times)
    }

    /// Through the rows of `points` at the given times, which ascend strictly from 0 to 1.
    pub fn with_times(points: Array2<f64>, times: Vec<f64>) -> Result<Self> {
        if points.nrows() < 2 {
            return Err(Error::Setting {
                name: "the number of points",
                value: points.nrows().to_string(),
                needs: "a polyline has at least two: the reference and the input",
                hint: "give the points as rows, reference first, input last".into(),
            });
        }
        error::expect_shape("the polyline's times", &[points.nrows()], &[times.len()])?;
        let ascending = times.windows(2).all(|pair| pair[0] < pair[1]);
        if times[0] != 0.0 || times[times.len() - 1] != 1.0 || !ascending {
            return Err(Error::Setting {
                name: "the polyline's times",
                value: format!("{times:?}"),
                needs: "they ascend strictly from 0 to 1",
                hint: "subtract the first time and divide by the last".into(),
            });
        }
        for (row, &time) in points.rows().into_iter().zip(&times) {
            error::expect_finite("state", 0, time, row)?;
        }
        Ok(Self { times, points, kind: "polyline" })
    }

    /// The same path under another name in certificates.
    pub(crate) fn named(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    /// Reads the points from an npy file: f64 or f32, first axis the point; further axes are flattened.
    pub fn read(file: &FilePath) -> Result<Self> {
        crate::npy::expect_honest(file).map_err(|source| Error::Read { path: file.to_owned(), source })?;
        let points = match ndarray_npy::read_npy::<_, ArrayD<f64>>(file) {
            Ok(points) => points,
            Err(ndarray_npy::ReadNpyError::WrongDescriptor(_)) => {
                ndarray_npy::read_npy::<_, ArrayD<f32>>(file)
                    .map_err(|e| unreadable(file, e))?
                    .mapv(f64::from)
            }
            Err(e) => return Err(unreadable(file, e)),
        };
        let rows = if points.ndim() == 0 { 0 } else { points.len_of(Axis(0)) };
        let features = points.len().checked_div(rows).unwrap_or(0);
        let found = points.shape().to_vec();
        // `to_shape` reads in logical order, so files in Fortran order are right as well.
        let points = points
            .to_shape((rows, features))
            .map_err(|_| Error::Shape {
                what: "the polyline's points".into(),
                expected: vec![rows, features],
                found,
            })?
            .to_owned();
        Self::new(points)
    }
}

fn unreadable(file: &FilePath, source: ndarray_npy::ReadNpyError) -> Error {
    Error::Read { path: file.to_owned(), source: Box::new(source) }
}

impl Path for Polyline {
    fn at(&self, t: f64) -> Array1<f64> {
        let k = piece_of(&self.times, t);
        let s = (t - self.times[k]) / (self.times[k + 1] - self.times[k]);
        (1.0 - s) * &self.points.row(k) + s * &self.points.row(k + 1)
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        let k = piece_of(&self.times, t);
        (&self.points.row(k + 1) - &self.points.row(k)) / (self.times[k + 1] - self.times[k])
    }

    fn corners(&self) -> Vec<f64> {
        self.times[1..self.times.len() - 1].to_vec()
    }

    fn is_straight(&self) -> bool {
        true
    }

    fn evidence(&self) -> PathEvidence {
        PathEvidence { kind: self.kind.into(), ..PathEvidence::default() }
    }
}
