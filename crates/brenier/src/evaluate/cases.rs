//! What metrics look at: the explanations that one method gave of some inputs, and what is known besides.
//!
//! Only score, inputs, targets and values are always there. The rest is there where the method has it (a path, an
//! account of the score's change) or where somebody supplies it (a field, other seeds, a planted truth); a
//! metric that needs what is not there says so. All examples of a value of [`Cases`] are evaluated together, so
//! whoever has many makes one of a chunk at a time: draws follow from the inputs, not from the chunks.

use ndarray::{Array2, ArrayView2};

use crate::attribute::{Completeness, Context, Explanation, Meaning, Method};
use crate::flow::VelocityField;
use crate::path::Path;
use crate::predictor::{OnnxPredictor, Score};
use crate::{Result, error};

/// A method, to be asked again: for another model (with its graph where there is one), other inputs and targets.
pub type Explain<'a> =
    dyn Fn(&dyn Score, Option<&OnnxPredictor>, ArrayView2<f64>, &[usize]) -> Result<Array2<f64>> + 'a;

/// Explanations of some inputs by one method, and what metrics need besides.
#[derive(Clone)]
pub struct Cases<'a> {
    /// The score that was explained. Its shape says which axes are an image.
    pub score: &'a dyn Score,
    /// The inputs, `[examples, features]`.
    pub inputs: Array2<f64>,
    /// The output that was explained, for each input.
    pub targets: Vec<usize>,
    /// The method's numbers for each feature, `[examples, features]`.
    pub values: Array2<f64>,
    /// What those numbers mean.
    pub meaning: Meaning,
    /// What the method was given besides the score: data and baselines for replacements, the flow that paths are
    /// compared with (its first), the model whose weights can be redrawn, the number of the first example.
    pub context: Context<'a>,
    /// The account of the score's change, for each example; absent for methods that promise none.
    pub completeness: Vec<Option<Completeness>>,
    /// The path of each explanation; empty for methods that have none.
    pub paths: Vec<&'a dyn Path>,
    /// The field that the context's first flow is compared with.
    pub reference_field: Option<&'a dyn VelocityField>,
    /// The explanations that these are compared with, `[examples, features]`.
    pub reference_values: Option<ArrayView2<'a, f64>>,
    /// The same explanations with other seeds, each `[examples, features]`.
    pub repeats: Vec<ArrayView2<'a, f64>>,
    /// The features that truly decide, `[examples, features]`.
    pub truth: Option<ArrayView2<'a, bool>>,
    /// The method itself, for metrics that ask it again. See [`explain_with`].
    pub explain: Option<&'a Explain<'a>>,
}

impl<'a> Cases<'a> {
    /// Cases with what is always there.
    ///
    /// # Errors
    /// Arrays that do not fit the score or each other; inputs and values that are not finite.
    pub fn new(
        score: &'a dyn Score,
        inputs: Array2<f64>,
        targets: Vec<usize>,
        values: Array2<f64>,
    ) -> Result<Cases<'a>> {
        let expected = [inputs.nrows(), score.features()];
        error::expect_shape("the inputs", &expected, inputs.shape())?;
        error::expect_shape("the list of targets", &expected[..1], &[targets.len()])?;
        error::expect_shape("the explanations", &expected, values.shape())?;
        for example in 0..inputs.nrows() {
            error::expect_finite("input", example, 1.0, inputs.row(example))?;
            error::expect_finite("credit", example, 1.0, values.row(example))?;
        }
        Ok(Cases {
            score,
            completeness: vec![None; inputs.nrows()],
            inputs,
            targets,
            values,
            meaning: Meaning::Credit,
            context: Context::default(),
            paths: Vec::new(),
            reference_field: None,
            reference_values: None,
            repeats: Vec::new(),
            truth: None,
            explain: None,
        })
    }

    /// Cases from explanations with their certificates.
    ///
    /// # Errors
    /// As [`Cases::new`].
    pub fn of(score: &'a dyn Score, explanations: &[Explanation]) -> Result<Cases<'a>> {
        let mut inputs = Array2::zeros((explanations.len(), score.features()));
        let mut values = inputs.clone();
        for (i, explanation) in explanations.iter().enumerate() {
            error::expect_shape("an explained input", &[score.features()], explanation.input.shape())?;
            error::expect_shape("an explanation", &[score.features()], explanation.values.shape())?;
            inputs.row_mut(i).assign(&explanation.input);
            values.row_mut(i).assign(&explanation.values);
        }
        let targets = explanations.iter().map(|e| e.certificate.target).collect();
        let completeness = explanations.iter().map(|e| e.certificate.completeness).collect();
        Ok(Cases { completeness, ..Cases::new(score, inputs, targets, values)? })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.inputs.nrows()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of one input.
    pub fn shape(&self) -> &[usize] {
        self.score.shape()
    }

    /// Refuses what was supplied in another shape than the inputs have.
    pub(super) fn check(&self) -> Result<()> {
        let shape = self.inputs.shape();
        if let Some(values) = &self.reference_values {
            error::expect_shape("the reference explanations", shape, values.shape())?;
        }
        for values in &self.repeats {
            error::expect_shape("the explanations of another seed", shape, values.shape())?;
        }
        if let Some(truth) = &self.truth {
            error::expect_shape("the mask of true features", shape, truth.shape())?;
        }
        if !self.paths.is_empty() {
            error::expect_shape("the list of paths", &shape[..1], &[self.paths.len()])?;
        }
        error::expect_shape("the list of accounts", &shape[..1], &[self.completeness.len()])
    }

    /// The method's numbers for other inputs or another model, checked.
    pub(super) fn explain_again(
        &self,
        explain: &Explain,
        score: &dyn Score,
        model: Option<&OnnxPredictor>,
        inputs: ArrayView2<f64>,
    ) -> Result<Array2<f64>> {
        let values = explain(score, model, inputs, &self.targets)?;
        error::expect_shape("the explanations", self.values.shape(), values.shape())?;
        for (example, row) in values.rows().into_iter().enumerate() {
            error::expect_finite("credit", self.context.first_example + example, 1.0, row)?;
        }
        Ok(values)
    }
}

/// A method and its context as something that can be asked again.
pub fn explain_with<'a, 'b: 'a>(method: &'a Method, context: &'a Context<'b>) -> Box<Explain<'a>> {
    Box::new(move |score, model, inputs, targets| {
        // The other model lives for this call only, and so must the context that holds it.
        let context = Context { model, ..context.reborrow() };
        let mut values = Array2::zeros(inputs.raw_dim());
        let explanations = method.explain(score, inputs, targets, &context)?;
        for (mut row, explanation) in values.rows_mut().into_iter().zip(explanations) {
            row.assign(&explanation.values);
        }
        Ok(values)
    })
}
