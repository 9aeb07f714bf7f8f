//! What a flow file says of itself, under `brenier.` in its `metadata_props`.
//!
//! Each field is one entry, `brenier.shape`, `brenier.scaling` and so on, as JSON: readable in any ONNX viewer.
//! A file without them is a flow too, in the space of its own input.

use onnx_grad::Model;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::data::Scaling;
use crate::net::NetworkConfig;
use crate::{Error, Remedy, Result};

/// What the network was trained to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The velocity of a rectified flow.
    #[default]
    Flow,
    /// The noise of a diffusion model; see [`Denoising`](super::Denoising).
    Ddpm,
}

/// The history of a flow. What is not known is absent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowMetadata {
    /// The shape of one example.
    pub shape: Option<Vec<usize>>,
    /// How the user's numbers and the network's belong together.
    pub scaling: Option<Scaling>,
    /// What was learned.
    pub objective: Option<Objective>,
    /// Rectification level: 1 for data coupled with the reference, 2 and up after Reflow.
    pub level: Option<u32>,
    /// The network, where it was built here.
    pub network: Option<NetworkConfig>,
    /// The training settings, as JSON.
    pub training: Option<serde_json::Value>,
    /// The seed of the training.
    pub seed: Option<u64>,
    /// A fingerprint of the training data.
    pub data: Option<String>,
    /// The distribution at time 0, in words: `standard-normal`, `uniform`, or where its rows come from.
    pub reference: Option<String>,
    /// A fingerprint of the rows at time 0, where they are data.
    pub reference_data: Option<String>,
    /// The class that the rows at time 0 have, where they are those of one.
    pub from_class: Option<String>,
    /// The class that the data have, where they are those of one.
    pub to_class: Option<String>,
    /// The classes between which the flow leads, where the network is told which two.
    pub between: Option<Vec<String>>,
    /// How reference and data were coupled.
    pub coupling: Option<String>,
    /// What is ordinary for the flow.
    pub calibration: Option<Calibration>,
}

impl FlowMetadata {
    /// Reads the entries of a model.
    pub fn of(model: &Model) -> Result<FlowMetadata> {
        refuse_classifier(model)?;
        Ok(FlowMetadata {
            shape: entry(model, "brenier.shape")?,
            scaling: entry(model, "brenier.scaling")?,
            objective: entry(model, "brenier.objective")?,
            level: entry(model, "brenier.level")?,
            network: entry(model, "brenier.network")?,
            training: entry(model, "brenier.training")?,
            seed: entry(model, "brenier.seed")?,
            data: entry(model, "brenier.data")?,
            reference: entry(model, "brenier.reference")?,
            reference_data: entry(model, "brenier.reference_data")?,
            from_class: entry(model, "brenier.from_class")?,
            to_class: entry(model, "brenier.to_class")?,
            between: entry(model, "brenier.between")?,
            coupling: entry(model, "brenier.coupling")?,
            calibration: entry(model, "brenier.calibration")?,
        })
    }

    /// Writes the entries into a model; those that are absent are removed.
    pub fn write(&self, model: &mut Model) -> Result<()> {
        put(model, "brenier.shape", &self.shape)?;
        put(model, "brenier.scaling", &self.scaling)?;
        put(model, "brenier.objective", &self.objective)?;
        put(model, "brenier.level", &self.level)?;
        put(model, "brenier.network", &self.network)?;
        put(model, "brenier.training", &self.training)?;
        put(model, "brenier.seed", &self.seed)?;
        put(model, "brenier.data", &self.data)?;
        put(model, "brenier.reference", &self.reference)?;
        put(model, "brenier.reference_data", &self.reference_data)?;
        put(model, "brenier.from_class", &self.from_class)?;
        put(model, "brenier.to_class", &self.to_class)?;
        put(model, "brenier.between", &self.between)?;
        put(model, "brenier.coupling", &self.coupling)?;
        put(model, "brenier.calibration", &self.calibration)
    }
}

/// What `train --objective classify` writes is no flow, and its entries are none of a flow's.
fn refuse_classifier(model: &Model) -> Result<()> {
    let objective = entry::<String>(model, "brenier.objective")?;
    match objective.as_deref() {
        Some(value @ "classify") => Err(Error::Setting {
            name: "the network's objective",
            value: value.to_string(),
            needs: "a flow is trained with flow or ddpm",
            hint: Remedy::TrainFlow,
        }),
        _ => Ok(()),
    }
}

fn entry<T: DeserializeOwned>(model: &Model, key: &'static str) -> Result<Option<T>> {
    let Some(text) = model.metadata.get(key) else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|e| bad_entry(key, format!("{text} ({e})")))
}

fn put<T: Serialize>(model: &mut Model, key: &'static str, value: &Option<T>) -> Result<()> {
    match value {
        Some(value) => {
            let text = serde_json::to_string(value).map_err(|e| bad_entry(key, e.to_string()))?;
            model.metadata.insert(key.to_string(), text);
        }
        None => drop(model.metadata.remove(key)),
    }
    Ok(())
}

fn bad_entry(key: &'static str, value: String) -> Error {
    Error::Setting {
        name: key,
        value,
        needs: "the entry of the flow's metadata must be the JSON that this version writes",
        hint: "remove the entry, or write the file again with this version".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::MlpConfig;

    #[test]
    fn reads_what_it_writes_and_leaves_other_entries() {
        let mut model = Model::default();
        model.metadata.insert("author".into(), "somebody".into());
        let metadata = FlowMetadata {
            shape: Some(vec![2, 1]),
            scaling: Some(Scaling::new(&[2, 1], vec![0.1, 1.0 / 3.0], vec![2.0, 0.7]).unwrap()),
            objective: Some(Objective::Flow),
            level: Some(2),
            network: Some(NetworkConfig::Mlp(MlpConfig::default())),
            training: None,
            seed: Some(u64::MAX),
            data: Some("abc".into()),
            reference: Some("healthy.csv".into()),
            reference_data: Some("def".into()),
            from_class: Some("healthy".into()),
            to_class: None,
            between: Some(vec!["healthy".into(), "ill".into()]),
            coupling: None,
            calibration: None,
        };
        metadata.write(&mut model).unwrap();
        assert_eq!(model.metadata["brenier.level"], "2");
        assert_eq!(FlowMetadata::of(&model).unwrap(), metadata);
        FlowMetadata::default().write(&mut model).unwrap();
        assert_eq!(model.metadata.len(), 1);
        model.metadata.insert("brenier.objective".into(), "\"classify\"".into());
        let refusal = FlowMetadata::of(&model).unwrap_err().to_string();
        assert!(
            refusal.starts_with("the network's objective is classify, but a flow is trained with"),
            "{refusal}"
        );
        model.metadata.remove("brenier.objective");
        model.metadata.insert("brenier.level".into(), "two".into());
        assert!(FlowMetadata::of(&model).unwrap_err().to_string().contains("brenier.level"));
    }
}
