//! Tree ensembles as a score: no gradient, but exact credit.

use std::ops::Range;

use brenier_trees::{Ensemble, Link};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use onnx_grad::{Model, WeightGradient};

use crate::engine::{Engine, Plan, Program, Weights};
use crate::error::{EngineError, Error, Remedy, Result};
use crate::ranking::highest;
use crate::score::Trees;

/// A row of a table as trees behind steps see it: a number for each column. A category is the place of its level, so that it is
/// one column there too, and changes at once.
#[derive(Debug, Clone)]
pub(super) struct Table(Vec<Place>);

/// The features that are one column.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) features: Range<usize>,
    /// Whether they are the levels of a category.
    pub(super) category: bool,
}

impl Table {
    pub(super) fn new(places: Vec<Place>) -> Table {
        Table(places)
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.0
    }

    /// The number of features of a row.
    pub(super) fn features(&self) -> usize {
        self.0.last().map_or(0, |place| place.features.end)
    }

    /// A number for each column. A category is the level of which the row has most, or the number of levels where it has none.
    fn seen(&self, row: ArrayView1<f64>) -> impl Iterator<Item = f64> {
        self.0.iter().map(move |place| match place.category {
            false => row[place.features.start],
            true => level(row, &place.features).unwrap_or(place.features.len()) as f64,
        })
    }

    /// Credit of columns as credit of features: that of a category is its level's at the end of the path.
    fn credit(&self, columns: ArrayView1<f64>, end: ArrayView1<f64>) -> Array1<f64> {
        let mut found = Array1::zeros(self.features());
        for (place, credit) in self.0.iter().zip(columns) {
            let own = if place.category { level(end, &place.features).unwrap_or(0) } else { 0 };
            found[place.features.start + own] = *credit;
        }
        found
    }
}

/// The level of which a row has most; of equals the first.
fn level(row: ArrayView1<f64>, features: &Range<usize>) -> Option<usize> {
    let levels = row.slice(s![features.clone()]);
    highest(levels.iter().copied()).filter(|&level| levels[level] > 0.0)
}

/// An ensemble, with what of it is explained.
#[derive(Debug)]
pub(super) struct TreeModel {
    ensemble: Ensemble,
    /// How a row becomes what the trees see, where that is something else.
    table: Option<Table>,
    /// Whether the outputs after the final activation are explained.
    activated: bool,
    /// The class whose score is taken from all.
    contrast: Option<usize>,
}

impl TreeModel {
    pub(super) fn new(ensemble: Ensemble, table: Option<Table>, keep_activation: bool) -> TreeModel {
        let activated = keep_activation && ensemble.link() != Link::Identity;
        TreeModel { ensemble, table, activated, contrast: None }
    }

    pub(super) fn contrast(&mut self, class: usize) {
        self.contrast = Some(class);
    }

    /// All scores, `[rows, outputs]`.
    pub(super) fn scores(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        let rows = self.seen(x);
        let found =
            if self.activated { self.ensemble.predictions(&rows) } else { self.ensemble.scores(&rows) };
        let scores = matrix(x.nrows(), self.ensemble.outputs(), found.map_err(refused)?)?;
        Ok(match self.contrast {
            Some(class) => &scores - &scores.column(class).insert_axis(Axis(1)),
            None => scores,
        })
    }

    /// What the trees see of rows.
    fn seen(&self, rows: ArrayView2<f64>) -> Vec<f64> {
        match &self.table {
            Some(table) => rows.rows().into_iter().flat_map(|row| table.seen(row)).collect(),
            None => rows.iter().copied().collect(),
        }
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
        let seen = self.seen(points);
        let mut credit = self.credit(&seen, target)?;
        if let Some(class) = self.contrast {
            credit -= &self.credit(&seen, class)?;
        }
        Ok(match (&self.table, points.rows().into_iter().next_back()) {
            (Some(table), Some(end)) => table.credit(credit.view(), end),
            _ => credit,
        })
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
        let (rows, other) = (self.seen(x), background.map(|rows| self.seen(rows)));
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
        if let Some(table) = &self.table {
            let mut own = Array2::zeros((0, table.features()));
            for (credit, row) in credit.rows().into_iter().zip(x.rows()) {
                let credit = table.credit(credit, row);
                own.push_row(credit.view()).map_err(|_| Error::Shape {
                    what: "the values of trees".to_string(),
                    expected: vec![table.features()],
                    found: vec![credit.len()],
                })?;
            }
            credit = own;
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
