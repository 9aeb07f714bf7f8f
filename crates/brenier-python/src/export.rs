//! An explanation as an ONNX file.

use brenier::Rule;
use brenier::attribute::{Occlusion, SmoothGrad};
use brenier::export::{Exported, ExportedSteps, ExportedTarget, export_with as write};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;

use crate::arrays::{Rows, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::model::Model;

/// A method and its settings; what is absent is the method's own default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    method: String,
    rule: String,
    steps: usize,
    samples: Option<usize>,
    noise: Option<f64>,
    seed: u64,
    target: ExportedTarget,
    steps_as: ExportedSteps,
    layer: Option<String>,
    window: Option<Vec<usize>>,
    stride: Option<Vec<usize>>,
}

impl Given {
    /// The method, or what is wrong with it.
    fn exported(
        &self,
        references: Option<ndarray::Array2<f64>>,
        features: usize,
    ) -> Result<Exported, String> {
        Ok(match self.method.as_str() {
            "gradient" => Exported::Gradient,
            "gradient-input" => Exported::GradientInput,
            "guided-backprop" => Exported::GuidedBackprop,
            "deconvnet" => Exported::Deconvnet,
            "ig" | "expected-gradients" => Exported::IntegratedGradients {
                rule: Rule::fixed(&self.rule, self.steps).ok_or_else(|| {
                    format!("there is no rule '{}' of fixed size\nhint: rule=\"gauss-legendre\"", self.rule)
                })?,
                references: references.unwrap_or_else(|| ndarray::Array2::zeros((1, features))),
            },
            "smoothgrad" => {
                let usual = SmoothGrad::default();
                Exported::SmoothGrad {
                    samples: self.samples.unwrap_or(usual.samples),
                    noise: self.noise.unwrap_or(usual.noise),
                    seed: self.seed,
                }
            }
            "grad-cam" => Exported::GradCam { layer: self.layer.clone() },
            "occlusion" => {
                let (window, stride) = (self.window.clone(), self.stride.clone());
                Exported::Occlusion {
                    config: Occlusion { window, stride, ..Occlusion::default() },
                    reference: references.unwrap_or_else(|| ndarray::Array2::zeros((1, features))),
                }
            }
            other => {
                return Err(format!(
                    "'{other}' cannot be exported: its work is not known before it sees an input\nhint: choose gradient, \
                     gradient-input, guided-backprop, deconvnet, ig, expected-gradients, smoothgrad, grad-cam or occlusion"
                ));
            }
        })
    }
}

/// The bytes of the file.
#[pyfunction]
#[pyo3(signature = (model, settings, references=None))]
pub(crate) fn export<'py>(
    py: Python<'py>,
    model: &Model,
    settings: &str,
    references: Option<Rows<'py>>,
) -> Answer<Bound<'py, PyBytes>> {
    let given: Given =
        serde_json::from_str(settings).map_err(|e| raise(py, "SettingError", &e.to_string()))?;
    let loaded = model.load(py, true)?;
    let Some(predictor) = loaded.with_gradients() else {
        return Err(raise(
            py,
            "ModelError",
            "the model is not an ONNX graph with gradients\nhint: give an ONNX file, its bytes, or a torch module",
        ));
    };
    let features = predictor.shape().iter().product();
    let method = given
        .exported(references.as_ref().map(owned), features)
        .map_err(|message| raise(py, "MethodError", &message))?;
    let bytes = py.detach(|| {
        let file = write(predictor, &method, given.target, given.steps_as, None)?;
        Ok::<_, brenier::Error>(file.to_bytes())
    });
    Ok(PyBytes::new(py, &bytes.or_raise(py)?))
}
