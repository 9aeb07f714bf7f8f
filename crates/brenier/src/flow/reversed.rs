//! A flow run the other way: what it carries to the data, carried from them.

use ndarray::{Array2, ArrayView2};

use crate::Result;
use crate::calibration::Standard;
use crate::field::VelocityField;

/// `v'(x, t) = -v(x, 1 - t)`: the flow from the data to where another one starts from. A flow between two populations
/// serves both ways.
pub struct Reversed<F>(pub F);

impl<F: VelocityField> VelocityField for Reversed<F> {
    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        let times: Vec<f64> = times.iter().map(|t| 1.0 - t).collect();
        Ok(-self.0.velocity(x, &times)?)
    }

    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.0.own_units(x)
    }

    /// What is ordinary on the way back is not what is ordinary on the way there.
    fn standard(&self) -> Standard<'_> {
        match self.0.standard() {
            Standard::Exact => Standard::Exact,
            _ => Standard::Missing("a calibration holds for one direction of a flow, and this is the other"),
        }
    }

    /// The population at time 0 is the data of the other way.
    fn normal_coordinates(&self, _x: ArrayView2<f64>) -> Option<Array2<f64>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldFn;
    use crate::path::{Path, TraceConfig, trace};
    use ndarray::{Array1, array};

    #[test]
    fn there_and_back_is_where_it_began() {
        let flow = FieldFn::new(&[2], |x, t| Array1::from_vec(vec![x[1] + t, 0.3 * x[0] - t]));
        let start = array![[0.7, -1.2]];
        let back = trace(&flow, start.view(), &TraceConfig::default()).unwrap();
        let there = back[0].at(0.0).insert_axis(ndarray::Axis(0));
        let again = trace(&Reversed(&flow), there.view(), &TraceConfig::default()).unwrap();
        assert!((again[0].at(0.0) - start.row(0)).iter().all(|gap| gap.abs() < 1e-4));
    }
}
