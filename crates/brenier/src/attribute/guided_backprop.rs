//! Guided Backpropagation and the deconvolutional network: gradients in which ReLU passes only what is positive.
//!
//! ```text
//! gradient          R_in = [input > 0]           R_out
//! guided-backprop   R_in = [input > 0] [R_out > 0] R_out    (Springenberg et al., 2015)
//! deconvnet         R_in =             [R_out > 0] R_out    (Zeiler and Fergus, 2014)
//! ```
//!
//! The change is made in the graph of the gradient, not by hooks on modules, so every `Relu` of the model is
//! seen, however it was written and however often it is used. What comes out is no gradient of anything and
//! depends little on the score: sharp pictures, weak evidence (Adebayo et al., 2018).

use ndarray::ArrayView2;
use onnx_grad::BackwardRules;
use onnx_grad::backward::relu;
use serde::{Deserialize, Serialize};

use super::gradient::at_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need};
use super::{Context, Explanation, Meaning};
use crate::predictor::{OnnxPredictor, Score};
use crate::{Error, Result};

/// Guided Backpropagation. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuidedBackprop {}

/// The deconvolutional network. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deconvnet {}

impl GuidedBackprop {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "guided-backprop";

    /// Explains each row of `inputs`; one gradient evaluation each.
    ///
    /// # Errors
    /// If the model has no ReLU.
    pub fn explain(
        &self,
        predictor: &OnnxPredictor,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let guided = with_rules(predictor, relu::guided())?;
        at_inputs(Self::NAME, &guided, inputs, targets, |gradient, _| gradient)
    }
}

impl Deconvnet {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "deconvnet";

    /// Explains each row of `inputs`; one gradient evaluation each.
    ///
    /// # Errors
    /// If the model has no ReLU.
    pub fn explain(
        &self,
        predictor: &OnnxPredictor,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let deconvnet = with_rules(predictor, relu::deconvnet())?;
        at_inputs(Self::NAME, &deconvnet, inputs, targets, |gradient, _| gradient)
    }
}

impl GuidedBackprop {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["guided-backpropagation"],
        help: "gradient in which ReLU passes only what is positive both ways",
        needs: &[Need::Gradients, Need::Model],
        uses: &[],
        meaning: Meaning::Sensitivity,
        build: |_| GuidedBackprop {}.into(),
        page: MethodPage {
            credit: "gradient in which ReLU passes $[a>0][R>0]R$",
            sums_to: "nothing",
            cost: "1",
            use_it: "to compare with papers; pictures are sharp but hardly depend on the class",
            refuses: "a model without ReLU; a closure",
        },
    }];
}

impl Explainer for GuidedBackprop {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        _: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(context.require_model(Self::NAME)?, inputs, targets)
    }
}

impl Deconvnet {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["deconvolution"],
        help: "gradient in which ReLU passes only positive gradients",
        needs: &[Need::Gradients, Need::Model],
        uses: &[],
        meaning: Meaning::Sensitivity,
        build: |_| Deconvnet {}.into(),
        page: MethodPage {
            credit: "gradient in which ReLU passes $[R>0]R$",
            sums_to: "nothing",
            cost: "1",
            use_it: "to compare with papers; pictures are sharp but hardly depend on the class",
            refuses: "a model without ReLU; a closure",
        },
    }];
}

impl Explainer for Deconvnet {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        _: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(context.require_model(Self::NAME)?, inputs, targets)
    }
}

/// The model with other rules at its ReLUs, of which it must have one: nothing would differ from the gradient.
fn with_rules(predictor: &OnnxPredictor, rules: BackwardRules) -> Result<OnnxPredictor> {
    expect_relu(predictor)?;
    predictor.with_rules(rules)
}

/// Refuses a model that other rules for ReLU would not change.
pub(crate) fn expect_relu(predictor: &OnnxPredictor) -> Result<()> {
    if predictor.model().graph.nodes.iter().any(|node| node.is("Relu")) {
        return Ok(());
    }
    Err(Error::Predictor {
        reason: "it has no ReLU, so there is nothing that guided gradients could change".to_string(),
        remedy: "use the method 'gradient' or 'smoothgrad'".into(),
    })
}
