//! How a trace looks to the calibration of its flow.

use ndarray::Array2;

use super::{Path, geometric_path_straightness, grid_time, stack_rows};
use crate::VelocityField;
use crate::calibration::{Ordinary, SPEEDS, Seen, Standard, trace_statistics};

/// Steps of the grid on which the length of a way is measured.
const STEPS: usize = 20;

/// What the field's calibration says of a path of it; nothing for a formula.
pub(super) fn ordinary(field: &dyn VelocityField, path: &dyn Path) -> Option<Ordinary> {
    match field.standard() {
        Standard::Exact => None,
        Standard::Missing(reason) => Some(Ordinary::NotCalibrated { reason: reason.to_owned() }),
        Standard::Calibrated(calibration) => {
            let (statistics, names) = statistics_of(field, path);
            let standing = calibration.standing(&statistics, &names);
            Some(Ordinary::Calibrated { standing, quality: calibration.quality.clone() })
        }
    }
}

/// The statistics of a path of a field, with their names.
pub(crate) fn statistics_of(field: &dyn VelocityField, path: &dyn Path) -> (Vec<f64>, Vec<String>) {
    let points = |count: usize, of: &dyn Fn(f64) -> ndarray::Array1<f64>| -> Array2<f64> {
        stack_rows(&(0..=count).map(|k| of(grid_time(0.0, 1.0, k, count))).collect::<Vec<_>>())
    };
    let states = field.own_units(points(STEPS, &|t| path.at(t)).view());
    let tangents = points(SPEEDS - 1, &|t| path.derivative(t));
    let moved = field.own_units(tangents.view()) - field.own_units(Array2::zeros(tangents.raw_dim()).view());
    let speeds: Vec<f64> = moved.rows().into_iter().map(|v| v.dot(&v) / v.len().max(1) as f64).collect();
    let seen = Seen {
        reference: states.row(0),
        input: states.row(STEPS),
        speeds: &speeds,
        straightness: geometric_path_straightness(states.view()).unwrap_or(f64::NAN),
    };
    trace_statistics(field.shape(), &seen)
}
