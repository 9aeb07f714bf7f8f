//! Several inputs as one flat row: which features belong to which input, and which of them are held.
//!
//! ```text
//! row = [ image 0..3072 | age 3072..3073 | mask 3073..3089 ]
//!         explained       explained        held
//! ```
//!
//! Methods explain a flat row of floats. A model with several inputs takes such a row once its inputs are packed
//! ([`Packing`](crate::Packing)). A held input (ids, masks, flags) is never moved, so its credit is 0.

use std::collections::BTreeMap;
use std::ops::Range;

use ndarray::{Array2, ArrayD, ArrayView1, ArrayView2, Axis, concatenate, s};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The largest integer up to which float32 holds all of them.
const EXACT: f64 = 16_777_216.0;

/// What becomes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Its features get credit.
    Explained,
    /// It stays as it is.
    Held,
}

/// One input of a model in the packed row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedInput {
    /// Its name in the model.
    pub name: String,
    /// What becomes of it.
    pub role: Role,
    /// The shape of one example.
    pub shape: Vec<usize>,
    /// Its features in the row.
    pub range: Range<usize>,
    /// Whether it takes integers or truth values.
    pub integer: bool,
    /// The input of ids whose embedding this is; credit of a token is the sum over its vector.
    pub embeds: Option<String>,
    /// The number of entries of the table that its integers choose from, where the graph says.
    pub entries: Option<usize>,
}

/// The inputs of a model, in the order of the packed row.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PackedInputs {
    /// The inputs; their ranges follow one another.
    pub inputs: Vec<PackedInput>,
}

impl PackedInputs {
    /// The number of features of a row.
    pub fn features(&self) -> usize {
        self.inputs.last().map_or(0, |input| input.range.end)
    }

    /// The inputs that get credit.
    pub fn explained(&self) -> impl Iterator<Item = &PackedInput> {
        self.inputs.iter().filter(|input| input.role == Role::Explained)
    }

    /// Whether an input is held.
    pub fn has_held(&self) -> bool {
        self.inputs.iter().any(|input| input.role == Role::Held)
    }

    /// The explained features by their numbers in the row, and the shape of an example that has only them: that of the
    /// input where one is explained, flat where several are.
    pub fn explained_features(&self) -> (Vec<usize>, Vec<usize>) {
        let features: Vec<usize> = self.explained().flat_map(|input| input.range.clone()).collect();
        let mut explained = self.explained();
        let shape = match (explained.next(), explained.next()) {
            (Some(only), None) if !only.shape.is_empty() => only.shape.clone(),
            _ => vec![features.len()],
        };
        (features, shape)
    }

    /// The credit of each input in its own shape, from flat rows of credit; of an embedding also the sum of every token,
    /// under the name of the ids.
    pub fn by_input(&self, values: ArrayView2<f64>) -> BTreeMap<String, ArrayD<f64>> {
        let mut found = BTreeMap::new();
        for input in self.explained() {
            let part = values.slice(s![.., input.range.clone()]).to_owned();
            let shape: Vec<usize> =
                std::iter::once(values.nrows()).chain(input.shape.iter().copied()).collect();
            let Ok(part) = part.into_shape_with_order(shape) else { continue };
            if let Some(ids) = &input.embeds {
                found.insert(ids.clone(), part.sum_axis(Axis(part.ndim() - 1)));
            }
            found.insert(input.name.clone(), part);
        }
        found
    }

    /// The credit of each token of an input of ids, from one flat row of credit; nothing where its embedding is not explained.
    pub fn of_tokens(&self, ids: &str, values: ArrayView1<f64>) -> Option<Vec<f64>> {
        let input = self.explained().find(|input| input.embeds.as_deref() == Some(ids))?;
        let width = input.shape.last().copied().filter(|width| *width > 0)?;
        let part = values.slice(s![input.range.clone()]);
        Some(part.exact_chunks(width).into_iter().map(|vector| vector.sum()).collect())
    }

    /// A name for every feature: `age`, `table[3]`, `image[0,2,5]`.
    pub fn feature_names(&self) -> Vec<String> {
        let name = |input: &PackedInput, place: usize| {
            if input.range.len() == 1 {
                return input.name.clone();
            }
            let (mut rest, mut index) = (place, Vec::new());
            for &size in input.shape.iter().rev() {
                index.push((rest % size).to_string());
                rest /= size;
            }
            index.reverse();
            format!("{}[{}]", input.name, index.join(","))
        };
        self.inputs.iter().flat_map(|input| (0..input.range.len()).map(move |i| name(input, i))).collect()
    }

    /// Rows for the packed model, from an array for each input whose first axis is the example.
    ///
    /// # Errors
    /// An input that is missing, another shape, another number of examples, and integers that are none, that are outside
    /// their table or that float32 does not hold.
    pub fn rows(&self, arrays: &BTreeMap<String, ArrayD<f64>>) -> Result<Array2<f64>> {
        let known = || self.inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
        let mut parts: Vec<Array2<f64>> = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let array = arrays.get(&input.name).ok_or_else(|| {
                let reason =
                    format!("there is no array for input '{}'; the model takes {}", input.name, known());
                refused(reason, "give an array for every input, by its name")
            })?;
            parts.push(input.flat(array)?);
        }
        for (part, input) in parts.iter().zip(&self.inputs).skip(1) {
            if part.nrows() != parts[0].nrows() {
                let (first, rows) = (&self.inputs[0].name, parts[0].nrows());
                let (name, found) = (&input.name, part.nrows());
                let reason = format!("input '{first}' has {rows} examples, but '{name}' has {found}");
                return Err(refused(reason, "give as many examples of every input, in the same order"));
            }
        }
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        let rows = concatenate(Axis(1), &views)
            .map_err(|_| refused("the model has no inputs".to_string(), "export it with inputs"))?;
        Ok(rows.as_standard_layout().into_owned())
    }
}

impl PackedInput {
    /// The examples of this input, flat, once they are known to be what it takes.
    fn flat(&self, array: &ArrayD<f64>) -> Result<Array2<f64>> {
        let name = &self.name;
        let row = array.shape().get(1..).unwrap_or_default();
        // A column of numbers, one for each example, may come without its second axis.
        let column = self.range.len() == 1 && row.is_empty() && array.ndim() == 1;
        if row != self.shape.as_slice() && !column {
            let reason = format!(
                "input '{name}' takes examples of shape {:?}, but those given have {row:?}",
                self.shape
            );
            return Err(refused(
                reason,
                "the first axis is the example: add or remove an axis, or export the model for this size",
            ));
        }
        for (place, &value) in array.iter().enumerate() {
            let at = || format!("example {} of input '{name}' has {value}", place / self.range.len().max(1));
            if !value.is_finite() {
                return Err(refused(at(), "remove the example, or fill in the value"));
            }
            if !self.integer {
                continue;
            }
            if value.fract() != 0.0 {
                return Err(refused(
                    format!("{}, which is no integer", at()),
                    "give integers for this input",
                ));
            }
            if value.abs() > EXACT {
                let reason = format!("{}, which is above 2^24", at());
                return Err(refused(
                    reason,
                    "give smaller ids: rows are float32, which does not hold this one",
                ));
            }
            if let Some(entries) = self.entries
                && (value >= entries as f64 || value < -(entries as f64))
            {
                let reason =
                    format!("{}, but its table has the entries 0 to {}", at(), entries.saturating_sub(1));
                return Err(refused(
                    reason,
                    "use the tokenizer or the coding that the model was trained with",
                ));
            }
        }
        let rows = array.shape().first().copied().unwrap_or(0);
        let flat = array.to_shape((rows, self.range.len()));
        flat.map(|flat| flat.to_owned()).map_err(|_| Error::Shape {
            what: format!("input '{name}'"),
            expected: vec![rows, self.range.len()],
            found: array.shape().to_vec(),
        })
    }
}

fn refused(reason: String, remedy: &'static str) -> Error {
    Error::Inputs { reason, remedy: remedy.into() }
}
