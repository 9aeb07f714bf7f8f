//! Tree ensembles as a score: no gradient, but exact credit.

use brenier_trees::{Ensemble, Link};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use onnx_grad::{Model, WeightGradient};

use crate::engine::{Engine, Plan, Program, Weights};
use crate::error::{EngineError, Error, Remedy, Result};
use crate::score::Trees;

/// An ensemble, with what of it is explained.
#[derive(Debug)]
pub(super) struct TreeModel {
    ensemble: Ensemble,
    /// Whether the outputs after the final activation are explained.
    activated: bool,
    /// The class whose score is taken from all.
    contrast: Option<usize>,
}

impl TreeModel {
    pub(super) fn new(ensemble: Ensemble, keep_activation: bool) -> TreeModel {
        let activated = keep_activation && ensemble.link() != Link::Identity;
        TreeModel { ensemble, activated, contrast: None }
    }

    pub(super) fn contrast(&mut self, class: usize) {
        self.contrast = Some(class);
    }

    /// All scores, `[rows, outputs]`.
    pub(super) fn scores(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        let rows = flat(x);
        let found =
            if self.activated { self.ensemble.predictions(&rows) } else { self.ensemble.scores(&rows) };
        let scores = matrix(x.nrows(), self.ensemble.outputs(), found.map_err(refused)?)?;
        Ok(match self.contrast {
            Some(class) => &scores - &scores.column(class).insert_axis(Axis(1)),
            None => scores,
        })
    }

    fn credit(&self, points: &[f64], target: usize) -> Result<Array1<f64>> {
        let found = if self.activated {
            self.ensemble.activated_path_credit(points, target)
        } else {
            self.ensemble.path_credit(points, target)
        };
        Ok(found.map_err(refused)?.into())
    }
}

impl Trees for TreeModel {
    fn path_credit(&self, points: ArrayView2<f64>, target: usize) -> Result<Array1<f64>> {
        let points = flat(points);
        let credit = self.credit(&points, target)?;
        match self.contrast {
            Some(class) => Ok(credit - self.credit(&points, class)?),
            None => Ok(credit),
        }
    }

    fn shapley_values(
        &self,
        x: ArrayView2<f64>,
        background: Option<ArrayView2<f64>>,
        targets: &[usize],
    ) -> Result<(Array2<f64>, Vec<f64>)> {
        if self.activated {
            return Err(Error::Method {
                method: "tree-shap".to_string(),
                reason: format!("{} of trees is no sum over them", self.ensemble.link().name()),
                remedy: Remedy::CutFinalActivation,
            });
        }
        let (rows, other) = (flat(x), background.map(flat));
        let values = |targets: &[usize]| match &other {
            Some(background) => self.ensemble.shapley_values(&rows, background, targets),
            None => self.ensemble.conditional_shapley_values(&rows, targets),
        };
        let shaped = |found: brenier_trees::Result<Vec<f64>>| {
            matrix(x.nrows(), self.ensemble.features(), found.map_err(refused)?)
        };
        let mut credit = shaped(values(targets))?;
        if let Some(class) = self.contrast {
            credit -= &shaped(values(&vec![class; targets.len()]))?;
        }
        let means: Vec<f64> = match background {
            Some(background) => match self.scores(background)?.mean_axis(Axis(0)) {
                Some(means) => means.to_vec(),
                None => Vec::new(),
            },
            None => {
                let mean = |output| self.ensemble.conditional_mean(output).map_err(refused);
                let means = (0..self.ensemble.outputs()).map(mean).collect::<Result<Vec<f64>>>()?;
                let other = self.contrast.map_or(0.0, |class| means[class]);
                means.iter().map(|mean| mean - other).collect()
            }
        };
        let of = |&target: &usize| {
            let outputs = means.len();
            means.get(target).copied().ok_or(Error::Target { target, outputs, row: 0 })
        };
        Ok((credit, targets.iter().map(of).collect::<Result<_>>()?))
    }
}

fn flat(rows: ArrayView2<f64>) -> Vec<f64> {
    rows.iter().copied().collect()
}

fn matrix(rows: usize, columns: usize, values: Vec<f64>) -> Result<Array2<f64>> {
    let found = vec![values.len()];
    Array2::from_shape_vec((rows, columns), values).map_err(|_| Error::Shape {
        what: "the values of trees".to_string(),
        expected: vec![rows, columns],
        found,
    })
}

/// What trees say, as the library says it.
pub(super) fn refused(error: brenier_trees::Error) -> Error {
    let remedy = "trees are read from XGBoost's JSON and UBJSON, LightGBM's text and ONNX (docs/trees.md)";
    Error::Predictor { reason: error.to_string(), remedy: remedy.into() }
}

/// What runs trees, by name: it runs no graphs.
#[derive(Debug)]
pub(super) struct TreeEngine;

/// The one of its kind.
pub(super) static TREES: TreeEngine = TreeEngine;

impl Engine for TreeEngine {
    fn name(&self) -> &'static str {
        "brenier-trees"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn plan(&self, _weights: Weights) -> Plan {
        Plan { fused: false, weight_gradient: WeightGradient::default(), place_matters: false }
    }

    fn workers(&self) -> usize {
        1
    }

    fn load_many(&self, _model: &Model, _count: usize) -> Result<Vec<Box<dyn Program>>> {
        Err(Error::Engine(EngineError::Load {
            engine: self.name(),
            node: None,
            reason: "it runs tree ensembles, and this is a graph".to_string(),
            remedy: "use another engine".into(),
        }))
    }
}
