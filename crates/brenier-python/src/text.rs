//! Texts as rows of a model that takes ids.

use std::path::PathBuf;

use brenier::text::Tokenizer;
use brenier::{NamedInputs, Packing, Score, TextBaseline, TextInputs};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Rows, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::model::Model;
use crate::wording::arguments;

type Array<'py> = Bound<'py, PyArray2<f64>>;

/// A model of rows that are texts: the model, the rows, what stands for no text, ids, the tokens of each text as JSON, the name of the
/// input of ids, and notices. `baseline` is `zero`, `pad`, `mask`, `mean`, `token:WORD`, or nothing: padding where there is such a token.
#[pyfunction]
#[pyo3(signature = (model, tokenizer, texts, baseline=None, max_tokens=None))]
#[allow(clippy::type_complexity)]
pub(crate) fn text<'py>(
    py: Python<'py>,
    model: &Model,
    tokenizer: PathBuf,
    texts: Vec<String>,
    baseline: Option<String>,
    max_tokens: Option<usize>,
) -> Answer<(Model, Array<'py>, Array<'py>, Array<'py>, Vec<String>, String, Vec<String>)> {
    let Some((graph, config)) = model.graph() else {
        return Err(raise(
            py,
            "ModelError",
            "a function takes no ids of tokens\nhint: explain an ONNX model",
        ));
    };
    let (rows, no_text, found, packing) = py
        .detach(|| -> brenier::Result<_> {
            let whole = graph?;
            let tokenizer = Tokenizer::open(&tokenizer, max_tokens)?;
            let found = TextInputs::new(&whole.graph, &tokenizer, &texts, None, &[])?;
            let packing = Packing { explain: Some(vec![found.ids.clone()]), ..Packing::default() };
            let packing = packing.sized_by(&whole.graph, &found.arrays);
            let inputs = NamedInputs::new(
                &whole,
                &brenier::PredictorConfig { packing: Some(packing.clone()), ..config },
            )?;
            let rows = inputs.rows(&found.arrays)?;
            let kind = match baseline.as_deref() {
                None if tokenizer.padding().is_some() => TextBaseline::Padding,
                None | Some("zero") => TextBaseline::Zero,
                Some("pad") => TextBaseline::Padding,
                Some("mask") => TextBaseline::Mask,
                Some("mean") => TextBaseline::Mean,
                Some(token) => TextBaseline::Token(token.trim_start_matches("token:").to_string()),
            };
            let no_text = found.baselines(&whole.graph, &tokenizer, &inputs, &found.arrays, &kind)?;
            Ok((rows, no_text, found, packing))
        })
        .or_raise(py)?;
    let ids = found.arrays.get(&found.ids).cloned().and_then(|ids| ids.into_dimensionality().ok());
    let ids: Array2<f64> = ids.unwrap_or_default();
    let tokens =
        found.tokens.iter().map(|tokens| crate::methods::to_json(py, tokens)).collect::<Answer<_>>()?;
    let notices = found.notices.iter().map(|notice| notice.worded(arguments)).collect();
    let packed = model.packed(py, packing)?;
    let (rows, no_text, ids) = (rows.into_pyarray(py), no_text.into_pyarray(py), ids.into_pyarray(py));
    Ok((packed, rows, no_text, ids, tokens, found.ids, notices))
}

/// The credit of each token of an input of ids, from rows of credit of such a model.
#[pyfunction]
pub(crate) fn token_credit<'py>(
    py: Python<'py>,
    model: &Model,
    ids: &str,
    rows: Rows<'py>,
) -> Answer<Array<'py>> {
    let loaded = model.load(py, false)?;
    let rows = owned(&rows);
    let inputs = loaded.values().and_then(|values| values.inputs());
    let credit: Option<Vec<Vec<f64>>> =
        inputs.and_then(|inputs| rows.rows().into_iter().map(|row| inputs.of_tokens(ids, row)).collect());
    let credit = credit.unwrap_or_default();
    let width = credit.first().map_or(0, Vec::len);
    let flat = Array2::from_shape_vec((credit.len(), width), credit.into_iter().flatten().collect());
    Ok(flat.unwrap_or_default().into_pyarray(py))
}
