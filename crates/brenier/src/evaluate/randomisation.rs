//! The model-randomisation sanity check: does the explanation notice when the model forgets? Lower is better.
//!
//! ```text
//! rho_l = Spearman(map of the model, map of the model with layer l's weights redrawn)        from -1 to 1
//! score = mean over the layers l
//! ```
//!
//! (Adebayo et al., "Sanity Checks for Saliency Maps", 2018.) Cascading: from the output to the input, layer after
//! layer, each left random when the next follows. Independent: one layer at a time. Weights are redrawn from a
//! normal distribution with the mean and the deviation that the layer's weights have, so that signals keep their
//! size. A method that passes looks at the weights; that it looks at the right ones is not shown. Maps that follow
//! the input's edges keep some correlation whatever the weights.
//!
//! Layers are the nodes that multiply by weights: `Conv`, `ConvTranspose`, `Gemm`, `MatMul`. Biases of the node
//! itself are redrawn with them; normalisations and other constants stay.

use std::collections::BTreeMap;

use ndarray::ArrayView1;
use onnx_grad::{Model, TensorData};
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec, needed};
use super::{Cases, Channels, Comparable, Direction, Explain, spearman};
use crate::attribute::{Key, generator};
use crate::predictor::OnnxPredictor;
use crate::{Error, Result};

/// How far randomness spreads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// From the output to the input, layer after layer.
    #[default]
    Cascading,
    /// One layer at a time, all others as they were trained.
    Independent,
}

/// The model-randomisation check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRandomisation {
    /// How far randomness spreads.
    pub spread: Spread,
    /// How channels become the map that is ranked.
    pub channels: Channels,
    /// Seed of the weights.
    pub seed: u64,
}

impl Default for ModelRandomisation {
    /// Cascading; maps by absolute values, as the authors' first choice is.
    fn default() -> Self {
        Self { spread: Spread::Cascading, channels: Channels::AbsoluteSum, seed: 0 }
    }
}

/// What became of the explanations when a layer was randomised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RandomisedLayer {
    /// The node's name, or the name of its output where it has none.
    pub layer: String,
    /// The rank correlation of each example's map with the one before; absent where a map is constant.
    pub correlations: Vec<Option<f64>>,
}

/// The layers of a model that can be randomised, from the output to the input, each with its initializers.
pub fn weight_layers(model: &Model) -> Vec<(String, Vec<String>)> {
    let weighs = |name: &str| model.graph.initializers.get(name).is_some_and(|t| t.dtype().is_float());
    let layer = |node: &onnx_grad::Node| {
        let carries = ["Conv", "ConvTranspose", "Gemm", "MatMul"].iter().any(|op| node.is(op));
        let weights: Vec<String> =
            node.given_inputs().filter(|name| weighs(name)).map(str::to_string).collect();
        let name = if node.name.is_empty() { node.wanted_outputs().next()? } else { &node.name };
        (carries && !weights.is_empty()).then(|| (name.to_string(), weights))
    };
    model.graph.nodes.iter().rev().filter_map(layer).collect()
}

impl ModelRandomisation {
    /// The metric's name.
    pub const NAME: &'static str = "model-randomisation";

    /// The rank correlations layer by layer, from the output to the input.
    ///
    /// # Errors
    /// A model without weights in the operators above, and whatever the method refuses.
    pub fn layers(
        &self,
        cases: &Cases,
        model: &OnnxPredictor,
        explain: &Explain,
    ) -> Result<Vec<RandomisedLayer>> {
        let layers = weight_layers(model.model());
        if layers.is_empty() {
            return Err(Error::Metric {
                metric: Self::NAME.to_string(),
                reason: "the model has no convolution and no matrix product with weights".to_string(),
                remedy: "choose another metric for this model".into(),
            });
        }
        let map = |values: ArrayView1<f64>| self.channels.map(values, cases.shape()).to_vec();
        let before: Vec<Vec<f64>> = cases.values.rows().into_iter().map(map).collect();
        let mut weights = BTreeMap::new();
        let randomised = |(number, (layer, names)): (usize, (String, Vec<String>))| {
            if self.spread == Spread::Independent {
                weights.clear();
            }
            for (draw, name) in names.into_iter().enumerate() {
                // A layer's new weights are the same, however far randomness spreads.
                let mut rng = generator(self.seed, Key::numbered(number), draw);
                let drawn = redrawn(&model.model().graph.initializers[&name], &mut rng);
                weights.insert(name, drawn);
            }
            let other = model.with_weights(weights.clone())?;
            let after = cases.explain_again(explain, &other, Some(&other), cases.inputs.view())?;
            let pairs = before.iter().zip(after.rows());
            Ok(RandomisedLayer {
                layer,
                correlations: pairs.map(|(b, row)| spearman(b, &map(row))).collect(),
            })
        };
        layers.into_iter().enumerate().map(randomised).collect()
    }

    /// The mean over the layers, for each example; layers at which a map is constant are left out.
    pub(super) fn scores(
        &self,
        cases: &Cases,
        model: &OnnxPredictor,
        explain: &Explain,
    ) -> Result<Vec<Option<f64>>> {
        let layers = self.layers(cases, model, explain)?;
        let mean = |example: usize| {
            let found: Vec<f64> = layers.iter().filter_map(|layer| layer.correlations[example]).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        Ok((0..cases.len()).map(mean).collect())
    }
}

/// Weights of the same shape, drawn with the same mean and deviation. A single number or equal numbers stay.
fn redrawn(tensor: &TensorData, rng: &mut impl rand::Rng) -> TensorData {
    let values = tensor.to_f64();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len().max(1) as f64;
    match Normal::new(mean, variance.sqrt()) {
        Ok(normal) => {
            let drawn: Vec<f64> = values.iter().map(|_| normal.sample(rng)).collect();
            TensorData::from_f64(tensor.dtype(), tensor.shape(), &drawn)
        }
        Err(_) => tensor.clone(),
    }
}

impl ModelRandomisation {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &["model-parameter-randomisation"],
        help: "whether the map notices that weights are redrawn",
        needs: &[MetricNeed::Method, MetricNeed::Model],
        uses: &[MetricSetting::Channels, MetricSetting::Seed],
        direction: Direction::Lower,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| {
            let default = ModelRandomisation::default();
            let channels = settings.channels.unwrap_or(default.channels);
            ModelRandomisation { channels, seed: settings.seed, ..default }.into()
        },
        page: MetricPage {
            formula: r"mean over layers of Spearman's $\rho$ of maps before and after new weights",
            range: "−1 to 1",
            says: "the method looks at the weights",
            does_not_say: "that it looks at the right ones",
        },
    }];
}

impl Measure for ModelRandomisation {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let model = needed(self.spec(), cases.context.model)?;
        self.scores(cases, model, needed(self.spec(), cases.explain)?)
    }
}
