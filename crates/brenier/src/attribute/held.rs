//! Inputs that stay as they are: methods see the other features only.
//!
//! ```text
//! f_i(z) = f_c(i)(z, h_i)       z explained features, h_i the held features of example i
//! grad f_i = the explained part of grad f
//! ```
//!
//! A batch mixes rows of several examples, and each has held features of its own. A target names the function that a row
//! is put into; so the target of the smaller problem is the example's number, which says both the held features and the
//! output. Every method then leaves held features alone without knowing of them: no baseline, no noise, no group and no
//! flow has them. Afterwards held features get credit 0, and their reference is the input.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use super::tokens::over_tokens;
use super::{Context, Explanation, Method, Need};
use crate::data::Dataset;
use crate::packed::PackedInputs;
use crate::score::Score;
use crate::{Error, Result, error};

/// The score as a function of the explained features.
struct Explained<'a> {
    score: &'a dyn Score,
    /// The whole inputs, a row for each example.
    inputs: ArrayView2<'a, f64>,
    /// The output of each example.
    outputs: &'a [usize],
    features: &'a [usize],
    shape: &'a [usize],
}

impl Explained<'_> {
    /// Whole rows, and the output of each.
    fn whole(&self, x: ArrayView2<f64>, examples: &[usize]) -> Result<(Array2<f64>, Vec<usize>)> {
        error::expect_shape("the explained features", &[examples.len(), self.features.len()], x.shape())?;
        let mut rows = Array2::zeros((x.nrows(), self.inputs.ncols()));
        let mut outputs = Vec::with_capacity(examples.len());
        for ((mut row, part), (i, &example)) in
            rows.rows_mut().into_iter().zip(x.rows()).zip(examples.iter().enumerate())
        {
            let known = Error::Target { target: example, outputs: self.outputs.len(), row: i };
            outputs.push(*self.outputs.get(example).ok_or(known)?);
            row.assign(&self.inputs.row(example));
            self.features.iter().zip(part).for_each(|(&feature, &value)| row[feature] = value);
        }
        Ok((rows, outputs))
    }
}

impl Score for Explained<'_> {
    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn values(&self, x: ArrayView2<f64>, examples: &[usize]) -> Result<Array1<f64>> {
        let (rows, outputs) = self.whole(x, examples)?;
        self.score.values(rows.view(), &outputs)
    }

    fn gradients(&self, x: ArrayView2<f64>, examples: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let (rows, outputs) = self.whole(x, examples)?;
        let (values, gradients) = self.score.gradients(rows.view(), &outputs)?;
        Ok((values, gradients.select(Axis(1), self.features)))
    }
}

/// The inputs of the model, where one of them is held or is a sequence of tokens.
pub(crate) fn inputs(score: &dyn Score) -> Option<&PackedInputs> {
    let tokens = |packed: &PackedInputs| packed.explained().any(|input| input.embeds.is_some());
    score.inputs().filter(|packed| packed.has_held() || tokens(packed))
}

/// Explains the features that are not held.
pub(super) fn explain(
    method: &Method,
    score: &dyn Score,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    context: &Context,
    packed: &PackedInputs,
) -> Result<Vec<Explanation>> {
    if method.spec().needs(Need::Model) {
        return Err(Error::Method {
            method: method.name(),
            reason: "it looks inside the model, and an input is held or is ids".to_string(),
            remedy: "use a method that needs gradients or scores only, such as 'ig'".into(),
        });
    }
    error::expect_shape("the inputs", &[targets.len(), packed.features()], inputs.shape())?;
    let (features, shape) = packed.explained_features();
    let part = |rows: ArrayView2<f64>| -> Array2<f64> {
        // Rows that are of the explained features already are taken as they are.
        if rows.ncols() == features.len() { rows.to_owned() } else { rows.select(Axis(1), &features) }
    };
    let (whole, own) = (context.baselines.as_ref(), context.draw_as.as_ref());
    for rows in whole.into_iter().chain(own) {
        if rows.ncols() != features.len() {
            error::expect_shape("a row", &[packed.features()], &[rows.ncols()])?;
        }
    }
    let baselines = whole.map(|rows| part(rows.view()));
    let draw_as = own.map(|rows| part(rows.view()));
    let data = context.data.map(|data| data_part(data, packed, &features, &shape)).transpose()?;
    let smaller = Context {
        data: data.as_ref(),
        baselines: baselines.as_ref().map(|rows| rows.view()),
        flows: context.flows.clone(),
        diffusion: context.diffusion,
        model: None,
        first_example: context.first_example,
        draw_as: draw_as.as_ref().map(|rows| rows.view()),
    };
    let explained = Explained { score, inputs, outputs: targets, features: &features, shape: &shape };
    let (rows, examples) = (part(inputs), (0..targets.len()).collect::<Vec<_>>());
    let over = over_tokens(method, packed, &shape);
    let found = over.method.explain(&explained, rows.view(), &examples, &smaller)?;
    let whole_row = score.shape().to_vec();
    let own = |mut one: Explanation| {
        one.values *= over.share;
        widened(one, inputs, targets, &features, &whole_row)
    };
    Ok(found.into_iter().map(own).collect())
}

/// Rows of data with the explained features only.
fn data_part(data: &Dataset, packed: &PackedInputs, features: &[usize], shape: &[usize]) -> Result<Dataset> {
    if data.shape() == shape {
        return Ok(data.clone());
    }
    error::expect_shape("a row of the data", &[packed.features()], &[data.features()])?;
    let rows = data.to_f32()?.select(Axis(1), features);
    Dataset::from_rows(data.origin(), shape, rows.view())
}

/// An explanation of the explained features as one of the whole row.
fn widened(
    explanation: Explanation,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    features: &[usize],
    shape: &[usize],
) -> Explanation {
    let example = explanation.certificate.target;
    let input = inputs.row(example).to_owned();
    let within = |part: ArrayView1<f64>, mut whole: Array1<f64>| {
        features.iter().zip(part).for_each(|(&feature, &value)| whole[feature] = value);
        whole
    };
    let zeros = || Array1::zeros(input.len());
    let mut certificate = explanation.certificate;
    certificate.target = targets[example];
    Explanation {
        values: within(explanation.values.view(), zeros()),
        shape: shape.to_vec(),
        reference: explanation.reference.map(|reference| within(reference.view(), input.clone())),
        standard_errors: explanation.standard_errors.map(|errors| within(errors.view(), zeros())),
        input,
        certificate,
    }
}
