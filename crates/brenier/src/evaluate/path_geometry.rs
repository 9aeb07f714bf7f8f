//! Paths as metrics: action, straightness, consistency with a field, and the error of a field along paths.
//!
//! ```text
//! A = sum_k |x_{k+1} - x_k|^2 / dt                                             lower is better
//! GPS = sum_k |x_{k+1} - x_k| / |x_K - x_0|                                    neither; 1 is a straight path
//! FCE = 1/K sum_k |(x_{k+1} - x_k)/dt - v(x_k, t_k)|^2                         lower is better
//! defect = 1/K sum_k |x'(t) - v(x, t)|^2 at t = t_k + dt/2                     lower is better
//! E_field = (sum_k |v - v_ref|^2)^(1/2) / ((sum_k |v_ref|^2)^(1/2) + 1e-12)    lower is better
//! ```
//!
//! The formulas are in `path/diagnostics.rs`; here they meet the cases. Any path can be held against the learned
//! field, not only the trace of that field: this is how the paper compares Integrated Gradients with its own path.

use serde::{Deserialize, Serialize};

use super::{Cases, MetricSettings};
use crate::flow::VelocityField;
use crate::path::{flow_consistency_errors, flow_defects, geometry, relative_field_error, sample};
use crate::{Error, Result, error};

/// The uniform grid on which a path is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathGrid {
    /// The number of steps, the paper's K.
    pub steps: usize,
}

impl Default for PathGrid {
    /// 50 steps, as in the paper.
    fn default() -> Self {
        Self { steps: 50 }
    }
}

impl PathGrid {
    /// The grid with the steps that are given.
    pub(super) fn of(settings: &MetricSettings) -> PathGrid {
        PathGrid { steps: settings.steps.unwrap_or(PathGrid::default().steps) }
    }

    fn checked(&self) -> Result<usize> {
        if self.steps == 0 {
            return Err(Error::Zero { what: "the number of steps on the path" });
        }
        Ok(self.steps)
    }

    /// Kinetic action of each path.
    pub(super) fn actions(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let steps = self.checked()?;
        Ok(cases.paths.iter().map(|path| Some(geometry(*path, steps).0)).collect())
    }

    /// Length over distance of each path; not defined for a path that returns to its start.
    pub(super) fn straightness(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let steps = self.checked()?;
        let straightness = |path: &&dyn crate::Path| geometry(*path, steps).1;
        Ok(cases.paths.iter().map(straightness).map(|v| v.is_finite().then_some(v)).collect())
    }

    /// Flow Consistency Error of each path against the field.
    pub(super) fn consistency(&self, cases: &Cases, field: &dyn VelocityField) -> Result<Vec<Option<f64>>> {
        let steps = self.checked()?;
        error::expect_shape("the field's state", cases.shape(), field.shape())?;
        Ok(flow_consistency_errors(&cases.paths, steps, field)?.into_iter().map(Some).collect())
    }

    /// Defect of each path as a solution of the field.
    pub(super) fn defects(&self, cases: &Cases, field: &dyn VelocityField) -> Result<Vec<Option<f64>>> {
        let steps = self.checked()?;
        error::expect_shape("the field's state", cases.shape(), field.shape())?;
        Ok(flow_defects(&cases.paths, steps, field)?.into_iter().map(Some).collect())
    }

    /// Relative error of the field against the reference field, along each path.
    pub(super) fn field_errors(
        &self,
        cases: &Cases,
        field: &dyn VelocityField,
        reference: &dyn VelocityField,
    ) -> Result<Vec<Option<f64>>> {
        let steps = self.checked()?;
        let error =
            |path: &&dyn crate::Path| relative_field_error(sample(*path, steps).view(), field, reference);
        cases.paths.iter().map(|path| error(path).map(Some)).collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::problems::LinearScore;
    use crate::{FieldFn, Line, Path, PathEvidence, Polyline};

    #[test]
    fn lines_and_corners_in_closed_form() {
        let score = LinearScore::new(array![1.0, 1.0], 0.0);
        let line = Line::new(array![0.0, 0.0].view(), array![3.0, 4.0].view()).unwrap();
        let corner = Polyline::new(array![[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]).unwrap();
        let paths: Vec<&dyn Path> = vec![&line, &corner];
        let zeros = Array2::zeros((2, 2));
        let cases = Cases { paths, ..Cases::new(&score, zeros.clone(), vec![0, 0], zeros).unwrap() };
        let grid = PathGrid { steps: 10 };
        let near = |found: Vec<Option<f64>>, expected: [f64; 2]| {
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?} {expected}");
            }
        };
        // Speeds 5 throughout, and 6 and 8 for half the time each.
        near(grid.actions(&cases).unwrap(), [25.0, 0.5 * 36.0 + 0.5 * 64.0]);
        near(grid.straightness(&cases).unwrap(), [1.0, 7.0 / 5.0]);
        let field = FieldFn::new(&[2], |_, _| array![3.0, 4.0]);
        near(grid.consistency(&cases, &field).unwrap(), [0.0, 0.5 * 25.0 + 0.5 * 25.0]);
        near(grid.defects(&cases, &field).unwrap(), [0.0, 0.5 * 25.0 + 0.5 * 25.0]);
        let reference = FieldFn::new(&[2], |_, _| array![3.0, 0.0]);
        near(grid.field_errors(&cases, &field, &reference).unwrap(), [4.0 / 3.0, 4.0 / 3.0]);
        assert!(PathGrid { steps: 0 }.actions(&cases).is_err());
    }

    #[test]
    fn a_curve_that_follows_its_field_has_no_defect_but_a_consistency_error() {
        // x = t^2 solves x' = 2t. The difference over dt is 2 t_k + dt, so FCE is dt^2 and the defect 0.
        struct Square;
        impl Path for Square {
            fn at(&self, t: f64) -> ndarray::Array1<f64> {
                array![t * t]
            }
            fn derivative(&self, t: f64) -> ndarray::Array1<f64> {
                array![2.0 * t]
            }
            fn evidence(&self) -> PathEvidence {
                PathEvidence::default()
            }
        }
        let score = LinearScore::new(array![1.0], 0.0);
        let one = Array2::ones((1, 1));
        let cases = Cases { paths: vec![&Square], ..Cases::new(&score, one.clone(), vec![0], one).unwrap() };
        let field = FieldFn::new(&[1], |_, t| array![2.0 * t]);
        for steps in [10, 50] {
            let grid = PathGrid { steps };
            let dt = 1.0 / steps as f64;
            assert!((grid.consistency(&cases, &field).unwrap()[0].unwrap() - dt * dt).abs() < 1e-12);
            assert!(grid.defects(&cases, &field).unwrap()[0].unwrap() < 1e-24);
        }
        // A field that is 1 too fast everywhere.
        let faster = FieldFn::new(&[1], |_, t| array![2.0 * t + 1.0]);
        assert!((PathGrid::default().defects(&cases, &faster).unwrap()[0].unwrap() - 1.0).abs() < 1e-12);
    }
}
