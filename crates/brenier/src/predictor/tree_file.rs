//! Files that are tree ensembles: XGBoost's and LightGBM's own, and ONNX graphs that are one tree operator.
//!
//! An ONNX graph counts as trees where nothing computes with the operator's scores (exporters put casts, labels and `ZipMap`
//! behind it), and where it takes the graph's input, or what steps make of every column by itself ([`behind`]).

use std::collections::BTreeMap;

use brenier_trees::{Description, Ensemble, FlatTrees, Link, NodeTrees, Votes};
use onnx_grad::TensorData;
use onnx_grad::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};

use super::behind;
use super::frame::Framed;
use super::onnx::PredictorConfig;
use super::trees::{Table, refused};
use crate::engine::EngineKind;
use crate::error::Result;

/// The domain of classical machine learning.
const DOMAIN: &str = "ai.onnx.ml";
/// How the names of all operators that are trees begin.
const OPERATOR: &str = "TreeEnsemble";
/// The element type of 64-bit floats.
const DOUBLE: i32 = 11;

/// What a file of trees holds.
pub(super) struct TreeFile {
    pub(super) ensemble: Ensemble,
    /// The name of the input.
    pub(super) input: String,
    pub(super) metadata: BTreeMap<String, String>,
    /// The final activation by name, where there is one.
    pub(super) activation: Option<&'static str>,
    /// How a row becomes what the trees see, where that is something else.
    pub(super) table: Option<Table>,
}

/// Reads a file that is a tree ensemble and nothing else; none where it is something else.
pub(super) fn read(file: &[u8], config: &PredictorConfig) -> Result<Option<TreeFile>> {
    let begins = |text: &[u8]| file.trim_ascii_start().starts_with(text);
    if begins(b"tree\n") || begins(b"tree\r\n") {
        return own(Ensemble::from_lightgbm(&String::from_utf8_lossy(file))).map(Some);
    }
    if begins(b"{") {
        return own(Ensemble::from_xgboost(file)).map(Some);
    }
    if config.engine.kind == EngineKind::Ort {
        return Ok(None);
    }
    // Most models have no trees, and are not to be parsed twice for that.
    if memchr::memmem::find(file, OPERATOR.as_bytes()).is_none() {
        return Ok(None);
    }
    // What is no ONNX is told by whoever reads it as such.
    let Ok(model) = ModelProto::parse(file.to_vec()) else { return Ok(None) };
    let Some(graph) = &model.graph else { return Ok(None) };
    let mut metadata: BTreeMap<String, String> = model
        .metadata_props
        .iter()
        .map(|entry| (entry.key.clone().unwrap_or_default(), entry.value.clone().unwrap_or_default()))
        .collect();
    let (node, name, ensemble, table) = match only_trees(graph) {
        Some((node, input)) => {
            let tensor = input.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
            let single = tensor.and_then(|tensor| tensor.elem_type) != Some(DOUBLE);
            let declared =
                tensor.and_then(|t| t.shape.as_ref()).and_then(|shape| shape.dim.get(1)?.dim_value);
            let declared = declared.and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
            let width = declared.or_else(|| Some(config.input_shape.as_ref()?.iter().product()));
            let ensemble = Ensemble::new(description(node, single, width)?).map_err(refused)?;
            (node, input.name.clone().unwrap_or_default(), ensemble, None)
        }
        None => {
            // What stands in the way is told by whoever looks for a gradient next.
            let Ok(Some(found)) = behind::read(file, config) else { return Ok(None) };
            let of_scores = |node: &&NodeProto| node.output.contains(&found.scores);
            let Some(node) = graph.node.iter().find(of_scores) else { return Ok(None) };
            let seen = description(node, found.single, Some(found.width()))?;
            let Ok(own) = found.over_columns(seen) else { return Ok(None) };
            if !found.columns.is_empty() {
                Framed::tell(&found.columns, &mut metadata);
            }
            let ensemble = Ensemble::new(own).map_err(refused)?;
            (node, found.input.clone(), ensemble, Some(found.table))
        }
    };
    let classes = classes(node);
    if !classes.is_empty() && classes.len() == ensemble.outputs() {
        metadata.entry("brenier.classes".to_string()).or_insert_with(|| list(&classes));
    }
    let activation = activation(&ensemble);
    Ok(Some(TreeFile { ensemble, input: name, metadata, activation, table }))
}

/// A file in a library's own format.
fn own(ensemble: brenier_trees::Result<Ensemble>) -> Result<TreeFile> {
    let ensemble = ensemble.map_err(refused)?;
    let mut metadata = BTreeMap::new();
    if ensemble.names().len() == ensemble.features() {
        metadata.insert("feature_names".to_string(), list(ensemble.names()));
    }
    let activation = activation(&ensemble);
    Ok(TreeFile { ensemble, input: "x".to_string(), metadata, activation, table: None })
}

fn activation(ensemble: &Ensemble) -> Option<&'static str> {
    (ensemble.link() != Link::Identity).then(|| ensemble.link().name())
}

fn list(names: &[String]) -> String {
    serde_json::to_string(names).unwrap_or_default()
}

/// The tree operator of a graph that is nothing else, and the graph's input.
fn only_trees(graph: &GraphProto) -> Option<(&NodeProto, &ValueInfoProto)> {
    let op = |node: &NodeProto| node.op_type.clone().unwrap_or_default();
    let is_tree =
        |node: &&NodeProto| node.domain.as_deref() == Some(DOMAIN) && op(node).starts_with(OPERATOR);
    let mut trees = graph.node.iter().filter(is_tree);
    let (tree, None) = (trees.next()?, trees.next()) else { return None };
    let mut before = tree.input.first()?.as_str();
    // Whatever stands between the input and the trees must do nothing.
    while let Some(node) = graph.node.iter().find(|node| node.output.iter().any(|name| name == before)) {
        if !matches!(op(node).as_str(), "Cast" | "Identity") {
            return None;
        }
        before = node.input.first()?.as_str();
    }
    let [input] = graph.input.as_slice() else { return None };
    if input.name.as_deref() != Some(before) {
        return None;
    }
    // Behind the scores, too; labels may be treated as anyone likes.
    let scores = tree.output.last()?;
    let mut known = vec![scores.as_str()];
    for node in &graph.node {
        if node.input.iter().any(|name| known.contains(&name.as_str())) {
            if !matches!(op(node).as_str(), "Cast" | "Identity" | "ZipMap") {
                return None;
            }
            known.extend(node.output.iter().map(String::as_str));
        }
    }
    Some((tree, input))
}

/// The names of the classes, where they say more than their places.
fn classes(node: &NodeProto) -> Vec<String> {
    let attributes = Attributes(node);
    let words = attributes.strings("classlabels_strings");
    if !words.is_empty() {
        return words;
    }
    let numbers = attributes.ints("classlabels_int64s");
    let places = numbers.iter().enumerate().all(|(place, &number)| number == place as i64);
    if places { Vec::new() } else { numbers.iter().map(ToString::to_string).collect() }
}

/// What the trees of a node are, over rows of this width.
fn description(node: &NodeProto, single: bool, width: Option<usize>) -> Result<Description> {
    let a = Attributes(node);
    if node.op_type.as_deref() == Some(OPERATOR) {
        let trees = FlatTrees {
            roots: a.ints("tree_roots"),
            features: a.ints("nodes_featureids"),
            splits: a.floats("nodes_splits")?,
            modes: a.floats("nodes_modes")?.into_iter().map(|mode| mode as i64).collect(),
            yes: a.ints("nodes_truenodeids"),
            yes_leaf: a.ints("nodes_trueleafs"),
            no: a.ints("nodes_falsenodeids"),
            no_leaf: a.ints("nodes_falseleafs"),
            missing_yes: a.ints("nodes_missing_value_tracks_true"),
            members: a.floats("membership_values")?,
            leaf_targets: a.ints("leaf_targetids"),
            leaf_weights: a.floats("leaf_weights")?,
            targets: usize::try_from(a.int("n_targets", 1)).unwrap_or(1),
            aggregate: a.int("aggregate_function", 1),
            transform: a.int("post_transform", 0),
            width,
            single,
        };
        return trees.description().map_err(refused);
    }
    let classifier = node.op_type.as_deref() == Some("TreeEnsembleClassifier");
    let kind = if classifier { "class" } else { "target" };
    let labels = a.ints("classlabels_int64s").len().max(a.strings("classlabels_strings").len());
    let trees = NodeTrees {
        trees: a.ints("nodes_treeids"),
        nodes: a.ints("nodes_nodeids"),
        features: a.ints("nodes_featureids"),
        values: a.floats("nodes_values")?,
        modes: a.strings("nodes_modes"),
        yes: a.ints("nodes_truenodeids"),
        no: a.ints("nodes_falsenodeids"),
        missing_yes: a.ints("nodes_missing_value_tracks_true"),
        votes: Votes {
            trees: a.ints(&format!("{kind}_treeids")),
            nodes: a.ints(&format!("{kind}_nodeids")),
            targets: a.ints(&format!("{kind}_ids")),
            weights: a.floats(&format!("{kind}_weights"))?,
        },
        targets: if classifier { labels } else { usize::try_from(a.int("n_targets", 1)).unwrap_or(1) },
        base: a.floats("base_values")?,
        aggregate: a.string("aggregate_function"),
        transform: a.string("post_transform"),
        classifier,
        width,
        single,
    };
    trees.description().map_err(refused)
}

/// The attributes of a node as plain values.
struct Attributes<'a>(&'a NodeProto);

impl Attributes<'_> {
    fn get(&self, name: &str) -> Option<&AttributeProto> {
        self.0.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
    }

    fn ints(&self, name: &str) -> Vec<i64> {
        self.get(name).map(|attribute| attribute.ints.clone()).unwrap_or_default()
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.get(name).map_or(default, |attribute| attribute.i.unwrap_or(0))
    }

    fn string(&self, name: &str) -> String {
        let bytes = self.get(name).and_then(|attribute| attribute.s.as_ref());
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    fn strings(&self, name: &str) -> Vec<String> {
        let bytes = self.get(name).map(|attribute| attribute.strings.as_slice()).unwrap_or_default();
        bytes.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// Numbers in a list, or in a tensor under the same name or under that name for doubles.
    fn floats(&self, name: &str) -> Result<Vec<f64>> {
        let doubles = format!("{name}_as_tensor");
        for attribute in [self.get(name), self.get(&doubles)].into_iter().flatten() {
            if let Some(tensor) = &attribute.t {
                return Ok(TensorData::from_proto(tensor)?.to_f64());
            }
            if !attribute.floats.is_empty() {
                return Ok(attribute.floats.iter().map(|&v| f64::from(v)).collect());
            }
        }
        Ok(Vec::new())
    }
}
