//! Layer-wise Relevance Propagation: the score is handed back layer by layer, in shares of what each input contributed.
//!
//! ```text
//! R_i = sum_j  x_i w_ij / (sum_i x_i w_ij + b_j)  R_j         (Bach et al., 2015)
//! ```
//!
//! What differs is the [rule](LrpRule) by which layers share; the default is `epsilon-gamma`, the epsilon rule for dense
//! layers and the gamma rule for convolutions (Montavon et al., 2019). It says something of every pixel and of every
//! column of a table; the `flat` rule of some composites says nothing of a table's columns, since it shares equally.
//! Relevance starts as the score. What biases contributed is given to nobody, so no sum is claimed.
//! The rules themselves are values of [`onnx_grad::backward::lrp`], and the result is a graph like that of a gradient.

use std::str::FromStr;

use ndarray::ArrayView2;
use onnx_grad::backward::lrp::{Composite, LayerRule};
use serde::{Deserialize, Serialize};

use super::gradient::at_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Context, Explanation, Meaning};
use crate::predictor::{OnnxPredictor, PREPARATION, Score};
use crate::{Error, Result};

/// Layer-wise Relevance Propagation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lrp {
    /// How layers share relevance among their inputs.
    pub rule: LrpRule,
}

/// How layers share relevance among their inputs: one rule for all, or a composite as in Zennit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum LrpRule {
    /// Epsilon for all layers.
    Epsilon {
        /// The stabiliser: the larger, the fewer and the stronger contributions remain.
        epsilon: f64,
    },
    /// Gamma for all layers.
    Gamma {
        /// How much more contributions of the output's sign count.
        gamma: f64,
    },
    /// Positive contributions only, for all layers.
    ZPlus,
    /// Positive contributions `alpha` times, negative ones `1 - alpha` times, for all layers.
    AlphaBeta {
        /// At least 1.
        alpha: f64,
    },
    /// Equal shares for all layers.
    Flat,
    /// Squared weights for all layers.
    WSquare,
    /// Gamma for convolutions, epsilon for dense layers.
    EpsilonGamma {
        /// As of [`LrpRule::Gamma`].
        gamma: f64,
    },
    /// As [`LrpRule::EpsilonGamma`], and the z-box rule for the first layer.
    EpsilonGammaBox {
        /// The lowest value that an input can have.
        low: f64,
        /// The highest value that an input can have.
        high: f64,
    },
    /// Positive contributions for convolutions, epsilon for dense layers.
    EpsilonPlus,
    /// As [`LrpRule::EpsilonPlus`], and equal shares for the first layer.
    EpsilonPlusFlat,
    /// Alpha-beta with 2 and 1 for convolutions, epsilon for dense layers.
    #[serde(rename = "epsilon-alpha2-beta1")]
    EpsilonAlpha2Beta1,
    /// As [`LrpRule::EpsilonAlpha2Beta1`], and equal shares for the first layer.
    #[serde(rename = "epsilon-alpha2-beta1-flat")]
    EpsilonAlpha2Beta1Flat,
}

/// Zennit's stabiliser and gamma.
const EPSILON: f64 = 1e-6;
const GAMMA: f64 = 0.25;

impl Default for LrpRule {
    /// `epsilon-gamma` with a gamma of 0.25.
    fn default() -> Self {
        LrpRule::EpsilonGamma { gamma: GAMMA }
    }
}

impl LrpRule {
    /// The names of all rules. Numbers may follow after a colon: `epsilon:0.25`, `gamma:0.1`, `alpha-beta:2`,
    /// `epsilon-gamma:0.1`, `epsilon-gamma-box:LOW,HIGH`, of which the last must.
    pub const NAMES: &'static [&'static str] = &[
        "epsilon-gamma",
        "epsilon-gamma-box:LOW,HIGH",
        "epsilon-plus",
        "epsilon-plus-flat",
        "epsilon-alpha2-beta1",
        "epsilon-alpha2-beta1-flat",
        "epsilon",
        "gamma",
        "z-plus",
        "alpha-beta",
        "flat",
        "w-square",
    ];

    /// Which rule each layer has.
    pub fn composite(self) -> Composite {
        let epsilon = LayerRule::Epsilon { epsilon: EPSILON };
        let two_one = LayerRule::AlphaBeta { alpha: 2.0, beta: 1.0 };
        let with = |first, convolution| Composite { first, convolution, ..Composite::uniform(epsilon) };
        match self {
            LrpRule::Epsilon { epsilon } => Composite::uniform(LayerRule::Epsilon { epsilon }),
            LrpRule::Gamma { gamma } => Composite::uniform(LayerRule::Gamma { gamma }),
            LrpRule::ZPlus => Composite::uniform(LayerRule::ZPlus),
            LrpRule::AlphaBeta { alpha } => {
                Composite::uniform(LayerRule::AlphaBeta { alpha, beta: alpha - 1.0 })
            }
            LrpRule::Flat => Composite::uniform(LayerRule::Flat),
            LrpRule::WSquare => Composite::uniform(LayerRule::WSquare),
            LrpRule::EpsilonGamma { gamma } => with(None, LayerRule::Gamma { gamma }),
            LrpRule::EpsilonGammaBox { low, high } => {
                with(Some(LayerRule::ZBox { low, high }), LayerRule::Gamma { gamma: GAMMA })
            }
            LrpRule::EpsilonPlus => with(None, LayerRule::ZPlus),
            LrpRule::EpsilonPlusFlat => with(Some(LayerRule::Flat), LayerRule::ZPlus),
            LrpRule::EpsilonAlpha2Beta1 => with(None, two_one),
            LrpRule::EpsilonAlpha2Beta1Flat => with(Some(LayerRule::Flat), two_one),
        }
    }
}

impl FromStr for LrpRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || Error::Setting {
            name: "the rule of LRP",
            value: format!("'{text}'"),
            needs: "it must be a known rule with the numbers that belong to it",
            hint: "try 'epsilon-gamma', 'epsilon-plus', 'epsilon-plus-flat' or 'epsilon-gamma-box:0,1'"
                .into(),
        };
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<f64> = match numbers {
            "" => Vec::new(),
            numbers => numbers
                .split(',')
                .map(|n| n.trim().parse().ok().filter(|n: &f64| n.is_finite()))
                .collect::<Option<_>>()
                .ok_or_else(refuse)?,
        };
        Ok(match (name, numbers.as_slice()) {
            ("epsilon", []) => LrpRule::Epsilon { epsilon: EPSILON },
            ("epsilon", &[epsilon]) if epsilon >= 0.0 => LrpRule::Epsilon { epsilon },
            ("gamma", []) => LrpRule::Gamma { gamma: GAMMA },
            ("gamma", &[gamma]) if gamma >= 0.0 => LrpRule::Gamma { gamma },
            ("z-plus", []) => LrpRule::ZPlus,
            ("alpha-beta", []) => LrpRule::AlphaBeta { alpha: 2.0 },
            ("alpha-beta", &[alpha]) if alpha >= 1.0 => LrpRule::AlphaBeta { alpha },
            ("flat", []) => LrpRule::Flat,
            ("w-square", []) => LrpRule::WSquare,
            ("epsilon-gamma", []) => LrpRule::default(),
            ("epsilon-gamma", &[gamma]) if gamma >= 0.0 => LrpRule::EpsilonGamma { gamma },
            ("epsilon-gamma-box", &[low, high]) if low < high => LrpRule::EpsilonGammaBox { low, high },
            ("epsilon-plus", []) => LrpRule::EpsilonPlus,
            ("epsilon-plus-flat", []) => LrpRule::EpsilonPlusFlat,
            ("epsilon-alpha2-beta1", []) => LrpRule::EpsilonAlpha2Beta1,
            ("epsilon-alpha2-beta1-flat", []) => LrpRule::EpsilonAlpha2Beta1Flat,
            _ => return Err(refuse()),
        })
    }
}

impl Lrp {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "lrp";

    /// Explains each row of `inputs`; one way back each, of a few times a gradient's cost.
    ///
    /// # Errors
    /// If the model has an operator that LRP has no rule for; the error names it.
    pub fn explain(
        &self,
        predictor: &OnnxPredictor,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let composite = Composite { preparation: Some(PREPARATION.to_string()), ..self.rule.composite() };
        let relevance = predictor.with_rules(composite.rules())?;
        at_inputs(Self::NAME, &relevance, inputs, targets, |relevance, _| relevance)
    }
}

impl Lrp {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["layer-wise-relevance-propagation"],
        help: "the score handed back layer by layer, in shares of contributions",
        needs: &[Need::Gradients, Need::Model],
        uses: &[Setting::LrpRule],
        meaning: Meaning::Credit,
        build: |settings| Lrp { rule: settings.lrp_rule.unwrap_or_default() }.into(),
        page: MethodPage {
            credit: r"$R_i=\sum_j \frac{x_iw_{ij}}{z_j}R_j$, layer by layer from $R=f(x)$",
            sums_to: "$f(x)$ less what biases contributed",
            cost: "1 (two to five times the products of layers)",
            use_it: "for a picture without the noise of a gradient, on networks of layers and activations",
            refuses: "a closure; softmax, attention and normalisation inside the network",
        },
    }];
}

impl Explainer for Lrp {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read_by_its_name_and_by_its_numbers() {
        for name in LrpRule::NAMES {
            let text = name.replace("LOW,HIGH", "-1,2.5");
            let rule: LrpRule = text.parse().unwrap();
            let written = serde_json::to_value(rule).unwrap();
            assert_eq!(written["rule"], text.split(':').next().unwrap(), "{text}");
            assert_eq!(serde_json::from_value::<LrpRule>(written).unwrap(), rule);
        }
        assert_eq!("epsilon:0.25".parse::<LrpRule>().unwrap(), LrpRule::Epsilon { epsilon: 0.25 });
        assert_eq!("alpha-beta:1".parse::<LrpRule>().unwrap(), LrpRule::AlphaBeta { alpha: 1.0 });
        for wrong in
            ["epsilon:-1", "gamma:x", "z-plus:1", "epsilon-gamma-box", "epsilon-gamma-box:1,0", "delta"]
        {
            let message = wrong.parse::<LrpRule>().unwrap_err().to_string();
            assert!(message.contains(wrong), "{message}");
        }
    }
}
