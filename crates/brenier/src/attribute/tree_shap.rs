//! TreeSHAP: exact Shapley values of tree ensembles, for any number of features.
//!
//! ```text
//! with a background:   v(S) = mean over its rows r of f(x on S, r elsewhere)         interventional
//! without:             v(S) = mean over the training data that a walk down the trees would meet    conditional
//! ```
//!
//! The same values as those by their definition ([`super::ShapleyValues`]), which costs `2^M` scores; here the cost does not
//! depend on the number of features, and hardly on that of background rows (Lundberg et al., 2020; the tables by leaf are
//! ours, see `brenier-trees`). The conditional values need trees that have counted their training data, as XGBoost's and
//! LightGBM's files do. They give credit to features that the model does not use where these go with others that it uses.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::rows::check_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Certificate, Completeness, Context, Explanation, Limits, Meaning};
use crate::predictor::Score;
use crate::{Error, Remedy, Result, error};

/// Exact Shapley values of a tree ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeShap {}

impl TreeShap {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "tree-shap";

    /// Explains each row of `inputs` against all rows of the context's data, or, without data, against the training data as
    /// the trees have counted it.
    ///
    /// # Errors
    /// A score that is no ensemble of trees, data of another shape, and no data where the trees have counted none.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        Self::SPECS[0].fits(score)?;
        check_inputs(score, inputs, targets)?;
        let Some(trees) = score.trees() else { return Ok(Vec::new()) };
        let background = match context.data {
            None => None,
            Some(data) => {
                data.require_rows(1, "a background")?;
                error::expect_shape("a row of the data", score.shape(), data.shape())?;
                Some(data.rows_f64(&(0..data.len()).collect::<Vec<_>>())?)
            }
        };
        let found = trees.shapley_values(inputs, background.as_ref().map(|rows| rows.view()), targets);
        let (values, means) = found.map_err(|error| match error {
            Error::Predictor { reason, .. } if background.is_none() => {
                Error::Method { method: Self::NAME.to_string(), reason, remedy: Remedy::GiveRowsToCompare }
            }
            other => other,
        })?;
        let scores = score.values(inputs, targets)?;
        let explanations = (0..targets.len()).map(|example| {
            let credit = values.row(example).to_owned();
            let certificate = Certificate {
                completeness: Some(Completeness::new(credit.sum(), means[example], scores[example])),
                score_evaluations: 1,
                ..Certificate::new(Self::NAME, example, targets[example], scores[example])
            };
            Explanation {
                values: credit,
                shape: score.shape().to_vec(),
                reference: None,
                input: inputs.row(example).to_owned(),
                standard_errors: None,
                certificate: certificate.judged(&Limits::default()),
            }
        });
        Ok(explanations.collect())
    }
}

impl TreeShap {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["tree-explainer"],
        help: "exact Shapley values of tree ensembles, for any number of columns",
        needs: &[Need::Trees],
        uses: &[Setting::Data],
        meaning: Meaning::Credit,
        build: |_| TreeShap {}.into(),
        page: MethodPage {
            credit: "Shapley value of the feature, over all rows of the background or over the training data",
            sums_to: r"$f(x)-\overline{f(x')}$",
            cost: "no gradients; a table for each leaf",
            use_it: "for trees, where features should be compared as coalitions",
            refuses: "models that are no trees; trees without counts and no background data",
        },
    }];
}

impl Explainer for TreeShap {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets, context)
    }
}
