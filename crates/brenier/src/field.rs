//! A time-dependent velocity field, the thing a flow is.
//!
//! ```text
//! dx/dt = v(x, t),    t from 0 (reference) to 1 (data)
//! ```
//!
//! Each row of a batch has its own time, because the solver lets every trajectory choose its own steps.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::Result;
use crate::calibration::Standard;

/// A velocity field, evaluated on batches. Row `i` of the result depends on row `i` of the input only. It may be
/// asked from several threads at once: a trace is checked while it is being followed.
pub trait VelocityField: Sync {
    /// The shape of one example, without the batch axis.
    fn shape(&self) -> &[usize];

    /// Velocities `[rows, features]` of the states `x` (`[rows, features]`) at one time per row.
    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>>;

    /// The number of features of one example.
    fn features(&self) -> usize {
        self.shape().iter().product()
    }

    /// States at time 0 in the coordinates in which the reference is a standard normal distribution; nothing
    /// where it is another one. By default the states themselves.
    fn normal_coordinates(&self, x: ArrayView2<f64>) -> Option<Array2<f64>> {
        Some(x.to_owned())
    }

    /// States in the units that the field itself is expressed in, such as those that a network was trained in: each
    /// feature shifted and scaled. By default the states themselves.
    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        x.to_owned()
    }

    /// By what traces are judged. By default a field is a formula that does what it says.
    fn standard(&self) -> Standard<'_> {
        Standard::Exact
    }

    /// Where states at time 1 come from, where the ways of the field are straight lines whose starts are known in closed
    /// form: then nothing is solved. By default nothing is known.
    fn straight_starts(&self, _x: ArrayView2<f64>) -> Option<Result<StraightStarts>> {
        None
    }
}

impl<F: VelocityField + ?Sized> VelocityField for &F {
    fn shape(&self) -> &[usize] {
        (**self).shape()
    }
    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        (**self).velocity(x, times)
    }
    fn features(&self) -> usize {
        (**self).features()
    }
    fn normal_coordinates(&self, x: ArrayView2<f64>) -> Option<Array2<f64>> {
        (**self).normal_coordinates(x)
    }
    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        (**self).own_units(x)
    }
    fn standard(&self) -> Standard<'_> {
        (**self).standard()
    }
    fn straight_starts(&self, x: ArrayView2<f64>) -> Option<Result<StraightStarts>> {
        (**self).straight_starts(x)
    }
}

/// The starts of straight ways; see [`VelocityField::straight_starts`].
#[derive(Debug, Clone, PartialEq)]
pub struct StraightStarts {
    /// The states at time 0, `[rows, features]`.
    pub states: Array2<f64>,
    /// How far from its row each way ends, followed forward from its start.
    pub misses: Array1<f64>,
    /// By how much of its way each start was moved to keep its values within bounds; absent where there are none.
    pub clipped: Option<Array1<f64>>,
}

/// A closure as a [`VelocityField`]: from one state and a time to the velocity.
///
/// ```
/// use brenier::{FieldFn, VelocityField};
/// use ndarray::array;
///
/// let decay = FieldFn::new(&[2], |x, _t| -1.0 * &x);
/// assert_eq!(decay.velocity(array![[1.0, 2.0]].view(), &[0.5])?, array![[-1.0, -2.0]]);
/// # Ok::<(), brenier::Error>(())
/// ```
pub struct FieldFn<F> {
    shape: Vec<usize>,
    function: F,
}

impl<F: Fn(ArrayView1<f64>, f64) -> Array1<f64>> FieldFn<F> {
    /// Wraps a closure that takes a flat state and a time.
    pub fn new(shape: &[usize], function: F) -> Self {
        Self { shape: shape.to_vec(), function }
    }
}

impl<F: Fn(ArrayView1<f64>, f64) -> Array1<f64> + Sync> VelocityField for FieldFn<F> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        let mut velocity = Array2::zeros(x.raw_dim());
        for (i, (row, &time)) in x.rows().into_iter().zip(times).enumerate() {
            let v = (self.function)(row, time);
            crate::error::expect_shape("the closure's velocity", &[x.ncols()], v.shape())?;
            velocity.row_mut(i).assign(&v);
        }
        Ok(velocity)
    }
}
