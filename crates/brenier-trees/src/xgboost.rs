//! XGBoost's own files: JSON, and the same in UBJSON (`model.json`, `model.ubj`).
//!
//! A question is `x < t` in 32 bits, or "the category is one of these", whose "yes" is the right child. Leaves of a tree count
//! for the class in `tree_info`, or for all outputs where a leaf is a vector. The base score is kept in the space of the
//! predictions and becomes a margin here.

use serde_json::Value;

use crate::build::{Branch, Description, Test, Tree};
use crate::ensemble::Ensemble;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::ubjson;

impl Ensemble {
    /// Reads a model that XGBoost saved, as JSON or as UBJSON.
    ///
    /// # Errors
    /// Files of another kind, and boosters that are not trees.
    pub fn from_xgboost(bytes: &[u8]) -> Result<Ensemble> {
        let parsed = serde_json::from_slice(bytes);
        let file = match parsed {
            Ok(file) => file,
            // In UBJSON, the length of the first key comes after the brace, with a letter before it.
            Err(_) if bytes.len() > 2 && bytes[0] == b'{' && bytes[1].is_ascii_uppercase() => {
                ubjson::parse(bytes).map_err(malformed)?
            }
            Err(error) => return Err(malformed(error.to_string())),
        };
        read(&file)
    }
}

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: "model of XGBoost", reason: reason.into() }
}

fn read(file: &Value) -> Result<Ensemble> {
    let learner = get(file, "learner")?;
    let booster = get(learner, "gradient_booster")?;
    let (model, dropped) = match booster.get("name").and_then(Value::as_str) {
        Some("gbtree") => (get(booster, "model")?, Vec::new()),
        Some("dart") => (get(get(booster, "gbtree")?, "model")?, floats(booster, "weight_drop")?),
        other => {
            return Err(Error::Unsupported {
                what: format!("the booster '{}' of XGBoost", other.unwrap_or("without a name")),
                remedy: "only gbtree and dart are ensembles of trees",
            });
        }
    };
    let param = get(learner, "learner_model_param")?;
    let features = count(param, "num_feature")?;
    let raw = count(param, "num_class")?.max(count(param, "num_target").unwrap_or(1)).max(1);
    let objective = get(learner, "objective")?.get("name").and_then(Value::as_str).unwrap_or("");
    let (link, to_margin) = objective_of(objective);
    let classes = integers(model, "tree_info")?;
    let listed = get(model, "trees")?.as_array().ok_or_else(|| malformed("'trees' is no list"))?;
    let mut trees = Vec::with_capacity(listed.len());
    for (number, tree) in listed.iter().enumerate() {
        let class = classes.get(number).and_then(|&class| usize::try_from(class).ok()).unwrap_or(0);
        let weight = dropped.get(number).copied().unwrap_or(1.0);
        trees.push(tree_of(tree, class, weight).map_err(|e| in_tree(e, number))?);
    }
    let base = base_scores(param, raw)?.into_iter().map(to_margin).collect();
    let names = learner.get("feature_names").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str).map(str::to_string).collect();
    let description =
        Description { features, raw, trees, base, link, single: true, names, ..Description::default() };
    Ensemble::new(description)
}

fn in_tree(error: Error, tree: usize) -> Error {
    match error {
        Error::Malformed { reason, .. } => malformed(format!("tree {tree}: {reason}")),
        other => other,
    }
}

/// What an objective makes of a margin, and the margin of its base score.
fn objective_of(name: &str) -> (Link, fn(f64) -> f64) {
    match name {
        "binary:logistic" | "reg:logistic" => (Link::Logistic { slope: 1.0 }, |p| -(1.0 / p - 1.0).ln()),
        // The raw margin is what is predicted, yet its base score is a probability.
        "binary:logitraw" => (Link::Identity, |p| -(1.0 / p - 1.0).ln()),
        "multi:softprob" | "multi:softmax" => (Link::Softmax, |score| score),
        "count:poisson" | "reg:gamma" | "reg:tweedie" | "survival:cox" | "survival:aft" => {
            (Link::Exp, f64::ln)
        }
        _ => (Link::Identity, |score| score),
    }
}

/// One score for all outputs, or a list of them in brackets.
fn base_scores(param: &Value, raw: usize) -> Result<Vec<f64>> {
    let text = get(param, "base_score")?.as_str().unwrap_or("");
    let parts: Vec<f64> = text
        .trim_matches(['[', ']'])
        .split(',')
        .map(|part| part.trim().parse::<f64>())
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| malformed(format!("the base score is '{text}'")))?;
    match parts.as_slice() {
        [one] => Ok(vec![*one; raw]),
        several if several.len() == raw => Ok(parts),
        several => Err(malformed(format!("{} base scores for {raw} outputs", several.len()))),
    }
}

fn tree_of(tree: &Value, class: usize, weight: f64) -> Result<Tree> {
    let (left, right) = (integers(tree, "left_children")?, integers(tree, "right_children")?);
    let (features, defaults) = (integers(tree, "split_indices")?, integers(tree, "default_left")?);
    let conditions = floats(tree, "split_conditions")?;
    let kinds = integers(tree, "split_type").unwrap_or_default();
    let vector = tree.get("tree_param").map_or(Ok(1), |param| count(param, "size_leaf_vector"))?.max(1);
    let vectors = if vector > 1 { leaf_vectors(tree, vector)? } else { Vec::new() };
    let categories = categories(tree, left.len())?;
    let short = [right.len(), features.len(), defaults.len(), conditions.len()];
    if short.iter().any(|&len| len != left.len()) {
        return Err(malformed(format!("lists of {} and of {short:?} nodes", left.len())));
    }
    let child = |to: i64| usize::try_from(to).map_err(|_| malformed(format!("a child with number {to}")));
    let mut nodes = Vec::with_capacity(left.len());
    for i in 0..left.len() {
        if left[i] == -1 {
            let votes = if vector > 1 {
                // Leaves are numbered in place of their right child, or, in older files, as all nodes are.
                let place = if vectors.len() == left.len() { i } else { child(right[i])? };
                let values = vectors.get(place).ok_or_else(|| malformed(format!("no leaf {place}")))?;
                values.iter().enumerate().map(|(k, v)| (k, weight * v)).collect()
            } else {
                vec![(class, weight * conditions[i])]
            };
            nodes.push(Branch::Leaf { votes });
            continue;
        }
        let (feature, left, right) = (child(features[i])?, child(left[i])?, child(right[i])?);
        let default_left = defaults[i] != 0;
        nodes.push(if kinds.get(i) == Some(&1) {
            let test = Test::OneOf { values: categories[i].clone(), whole: true };
            let (yes, no, missing_yes) = (right, left, !default_left);
            Branch::Split { feature, test, yes, no, missing_yes, zero_is_missing: false }
        } else {
            let (test, yes, no, missing_yes) = (Test::Below(conditions[i]), left, right, default_left);
            Branch::Split { feature, test, yes, no, missing_yes, zero_is_missing: false }
        });
    }
    let cover = floats(tree, "sum_hessian").unwrap_or_default();
    Ok(Tree { nodes, cover })
}

/// The vectors of all leaves, or of all nodes in older files.
fn leaf_vectors(tree: &Value, size: usize) -> Result<Vec<Vec<f64>>> {
    let values = floats(tree, "leaf_weights").or_else(|_| floats(tree, "base_weights"))?;
    Ok(values.chunks(size).map(<[f64]>::to_vec).collect())
}

/// The categories of each node; none for those that compare numbers.
fn categories(tree: &Value, nodes: usize) -> Result<Vec<Vec<f64>>> {
    let mut of_nodes = vec![Vec::new(); nodes];
    let Ok(all) = integers(tree, "categories") else { return Ok(of_nodes) };
    let (whose, begins, sizes) = (
        integers(tree, "categories_nodes")?,
        integers(tree, "categories_segments")?,
        integers(tree, "categories_sizes")?,
    );
    for ((&node, &begin), &size) in whose.iter().zip(&begins).zip(&sizes) {
        let range = usize::try_from(begin).ok().zip(usize::try_from(size).ok());
        let values = range.and_then(|(begin, size)| all.get(begin..begin.checked_add(size)?));
        let place = usize::try_from(node).ok().and_then(|node| of_nodes.get_mut(node));
        let (Some(values), Some(place)) = (values, place) else {
            return Err(malformed(format!("the categories of node {node} lie outside their list")));
        };
        *place = values.iter().map(|&value| value as f64).collect();
    }
    Ok(of_nodes)
}

fn get<'a>(value: &'a Value, key: &str) -> Result<&'a Value> {
    value.get(key).ok_or_else(|| malformed(format!("it has no '{key}'")))
}

/// A whole number that is kept as text.
fn count(value: &Value, key: &str) -> Result<usize> {
    let found = get(value, key)?;
    let parsed = found.as_str().map_or(found.as_u64(), |text| text.parse().ok());
    let parsed = parsed.and_then(|number| usize::try_from(number).ok());
    parsed.ok_or_else(|| malformed(format!("'{key}' is {found}")))
}

fn floats(value: &Value, key: &str) -> Result<Vec<f64>> {
    let list = get(value, key)?.as_array().ok_or_else(|| malformed(format!("'{key}' is no list")))?;
    let number = |v: &Value| v.as_f64().ok_or_else(|| malformed(format!("'{key}' holds {v}")));
    list.iter().map(number).collect()
}

fn integers(value: &Value, key: &str) -> Result<Vec<i64>> {
    let list = get(value, key)?.as_array().ok_or_else(|| malformed(format!("'{key}' is no list")))?;
    let number = |v: &Value| {
        let known = v.as_i64().or_else(|| v.as_bool().map(i64::from));
        known.ok_or_else(|| malformed(format!("'{key}' holds {v}")))
    };
    list.iter().map(number).collect()
}
