//! The function being explained, as the integrator sees it: a scalar score and its input gradient.
//!
//! ```text
//! f_c : R^d -> R,    (f_c(x), grad f_c(x))   for each row x of a batch and its target c
//! ```
//!
//! States are flat: a batch is `[rows, features]` in f64, and `shape()` says how a row folds back into an
//! image or a table row. That keeps every kernel two-dimensional; whoever runs a network reshapes at the edge.
//! A target is the index of the output to explain, one per row, so that one batch may mix examples and targets.
//! A score with a single output has target 0.

mod stream;
mod watched;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::Result;
use crate::packed::PackedInputs;
pub(crate) use stream::{ScoreStream, rows_at_once};
pub use watched::Watched;

/// A scalar function of the features with its gradient, evaluated on batches.
///
/// Row `i` of every result depends on row `i` of the input only. The integrator relies on it: it mixes
/// examples, targets and path times in one batch, and its result does not depend on how they were mixed.
pub trait Score {
    /// The shape of one example, without the batch axis; its product is the number of features.
    fn shape(&self) -> &[usize];

    /// The scores of a batch: `x` is `[rows, features]`, `targets` has one output index per row.
    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>>;

    /// The scores of a batch and their gradients `[rows, features]`.
    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)>;

    /// The number of features of one example.
    fn features(&self) -> usize {
        self.shape().iter().product()
    }

    /// Which features are which input of the model, where it has several. Methods leave those of held inputs as they are.
    fn inputs(&self) -> Option<&PackedInputs> {
        None
    }

    /// The score as a sum of decision trees, where it is one: it has no gradient then, but exact credit all the same.
    fn trees(&self) -> Option<&dyn Trees> {
        None
    }
}

/// A score that is a sum of decision trees: constant between thresholds, with jumps that belong to features.
pub trait Trees: Sync {
    /// The exact credit along the polyline through `points`, `[points, features]`.
    ///
    /// # Errors
    /// Points of another width, and outputs that do not exist.
    fn path_credit(&self, points: ArrayView2<f64>, target: usize) -> Result<Array1<f64>>;

    /// Exact Shapley values `[rows, features]`, and the score that each is compared with: the mean over the rows of a
    /// background, or over the training data as the nodes have counted it.
    ///
    /// # Errors
    /// Without a background: trees that have not counted their training data.
    fn shapley_values(
        &self,
        x: ArrayView2<f64>,
        background: Option<ArrayView2<f64>>,
        targets: &[usize],
    ) -> Result<(Array2<f64>, Vec<f64>)>;
}

/// A closure as a [`Score`]: from one example and its target to the value and the gradient.
///
/// ```
/// use brenier::{Score, ScoreFn};
/// use ndarray::array;
///
/// let square = ScoreFn::new(&[2], |x, _target| (x.dot(&x), 2.0 * &x));
/// let (values, gradients) = square.gradients(array![[1.0, 2.0]].view(), &[0])?;
/// assert_eq!(values, array![5.0]);
/// assert_eq!(gradients, array![[2.0, 4.0]]);
/// # Ok::<(), brenier::Error>(())
/// ```
pub struct ScoreFn<F> {
    shape: Vec<usize>,
    function: F,
}

impl<F: Fn(ArrayView1<f64>, usize) -> (f64, Array1<f64>)> ScoreFn<F> {
    /// Wraps a closure that takes a flat example and an output index.
    pub fn new(shape: &[usize], function: F) -> Self {
        Self { shape: shape.to_vec(), function }
    }
}

impl<F: Fn(ArrayView1<f64>, usize) -> (f64, Array1<f64>)> Score for ScoreFn<F> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        Ok(x.rows().into_iter().zip(targets).map(|(row, &target)| (self.function)(row, target).0).collect())
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let mut values = Array1::zeros(x.nrows());
        let mut gradients = Array2::zeros(x.raw_dim());
        for (i, (row, &target)) in x.rows().into_iter().zip(targets).enumerate() {
            let (value, gradient) = (self.function)(row, target);
            crate::error::expect_shape("the closure's gradient", &[x.ncols()], gradient.shape())?;
            values[i] = value;
            gradients.row_mut(i).assign(&gradient);
        }
        Ok((values, gradients))
    }
}

/// A closure as a [`Score`] that gives values only: from one example and its target to the value.
///
/// Methods that leave parts of the input out need no more than that.
///
/// ```
/// use brenier::ValueFn;
/// use brenier::attribute::{Context, Occlusion};
/// use ndarray::array;
///
/// let larger = ValueFn::new(&[2], |x, _target| x[0].max(x[1]));
/// let explanations = Occlusion::default().explain(&larger, array![[3.0, 1.0]].view(), &[0], &Context::default())?;
/// assert_eq!(explanations[0].values, array![2.0, 0.0]);
/// # Ok::<(), brenier::Error>(())
/// ```
pub struct ValueFn<F> {
    shape: Vec<usize>,
    function: F,
}

impl<F: Fn(ArrayView1<f64>, usize) -> f64> ValueFn<F> {
    /// Wraps a closure that takes a flat example and an output index.
    pub fn new(shape: &[usize], function: F) -> Self {
        Self { shape: shape.to_vec(), function }
    }
}

impl<F: Fn(ArrayView1<f64>, usize) -> f64> Score for ValueFn<F> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        Ok(x.rows().into_iter().zip(targets).map(|(row, &target)| (self.function)(row, target)).collect())
    }

    fn gradients(&self, _x: ArrayView2<f64>, _targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        Err(crate::Error::NoGradient { reason: "it is a function that gives values only".to_string() })
    }
}
