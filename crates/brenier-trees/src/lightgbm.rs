//! LightGBM's text files (`model.txt`).
//!
//! A question is `x <= t` in 64 bits, or "the category is one of these". What a missing value does is said by the kind of
//! missing values that the feature had: none (NaN counts as 0), zeros, or NaN.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::build::{Aggregate, Branch, Description, Test, Tree};
use crate::ensemble::Ensemble;
use crate::error::{Error, Result};
use crate::link::Link;

/// Bits of `decision_type`.
const CATEGORICAL: u8 = 1;
const DEFAULT_LEFT: u8 = 2;
const MISSING_SHIFT: u8 = 2;

type Section<'a> = BTreeMap<&'a str, &'a str>;

impl Ensemble {
    /// Reads a model that LightGBM saved as text.
    ///
    /// # Errors
    /// Files of another kind, and trees whose leaves are linear models.
    pub fn from_lightgbm(text: &str) -> Result<Ensemble> {
        let mut sections = sections(text).into_iter();
        let header = sections.next().unwrap_or_default();
        if !header.contains_key("max_feature_idx") || !text.trim_start().starts_with("tree") {
            return Err(malformed("it does not begin with 'tree' and 'max_feature_idx'"));
        }
        // LightGBM itself counts them in 32 bits.
        let last = usize::try_from(one::<i32>(&header, "max_feature_idx")?)
            .map_err(|_| malformed("'max_feature_idx' is below 0"))?;
        let features = last + 1;
        let raw = one::<usize>(&header, "num_tree_per_iteration")?.max(1);
        let mut trees = Vec::new();
        for (number, section) in sections.enumerate() {
            trees.push(tree_of(&section, number % raw).map_err(|e| in_tree(e, number))?);
        }
        // Forests average over the iterations, and an iteration has a tree for each class.
        let averaged = header.contains_key("average_output");
        let scale = if averaged { raw as f64 / trees.len().max(1) as f64 } else { 1.0 };
        for branch in trees.iter_mut().flat_map(|tree: &mut Tree| &mut tree.nodes) {
            if let Branch::Leaf { votes } = branch {
                votes.iter_mut().for_each(|vote| vote.1 *= scale);
            }
        }
        let link = link(header.get("objective").copied().unwrap_or(""));
        let names: Vec<String> = words(&header, "feature_names").map(str::to_string).collect();
        // Names that LightGBM made up say nothing.
        let made_up = names.iter().enumerate().all(|(i, name)| *name == format!("Column_{i}"));
        let names = if made_up || names.len() != features { Vec::new() } else { names };
        let aggregate = Aggregate::Sum;
        Ensemble::new(Description { features, raw, trees, link, names, aggregate, ..Description::default() })
    }
}

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: "model of LightGBM", reason: reason.into() }
}

fn in_tree(error: Error, tree: usize) -> Error {
    match error {
        Error::Malformed { reason, .. } => malformed(format!("tree {tree}: {reason}")),
        other => other,
    }
}

/// The header, and one section for each tree.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections = vec![Section::new()];
    for line in text.lines().map(str::trim).take_while(|line| *line != "end of trees") {
        if line.starts_with("Tree=") {
            sections.push(Section::new());
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if let Some(section) = sections.last_mut() {
            section.insert(key, value);
        }
    }
    sections
}

fn words<'a>(section: &Section<'a>, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    section.get(key).copied().unwrap_or("").split_ascii_whitespace()
}

fn one<T: FromStr>(section: &Section, key: &str) -> Result<T> {
    let text = section.get(key).ok_or_else(|| malformed(format!("it has no '{key}'")))?;
    text.trim().parse().map_err(|_| malformed(format!("'{key}' is '{text}'")))
}

fn list<T: FromStr>(section: &Section, key: &str) -> Result<Vec<T>> {
    let number = |word: &str| word.parse().map_err(|_| malformed(format!("'{key}' holds '{word}'")));
    words(section, key).map(number).collect()
}

/// What an objective makes of a raw score.
fn link(objective: &str) -> Link {
    let mut parts = objective.split_ascii_whitespace();
    let name = parts.next().unwrap_or("");
    let mut settings = parts.clone().filter_map(|part| part.split_once(':'));
    let slope = settings.find(|(key, _)| *key == "sigmoid").and_then(|(_, value)| value.parse().ok());
    match name {
        "binary" | "multiclassova" => Link::Logistic { slope: slope.unwrap_or(1.0) },
        "cross_entropy" | "xentropy" => Link::Logistic { slope: 1.0 },
        "cross_entropy_lambda" | "xentlambda" => Link::Softplus,
        "multiclass" => Link::Softmax,
        "poisson" | "gamma" | "tweedie" => Link::Exp,
        _ if parts.any(|part| part == "sqrt") => Link::SignedSquare,
        _ => Link::Identity,
    }
}

fn tree_of(section: &Section, class: usize) -> Result<Tree> {
    if one::<u8>(section, "is_linear").unwrap_or(0) != 0 {
        return Err(Error::Unsupported {
            what: "a tree of LightGBM with linear models in its leaves".to_string(),
            remedy: "train without linear_tree, or use a method that needs scores only",
        });
    }
    let leaves = one::<usize>(section, "num_leaves")?.max(1);
    let values: Vec<f64> = list(section, "leaf_value")?;
    let splits = leaves - 1;
    let (features, thresholds): (Vec<usize>, Vec<f64>) =
        (list(section, "split_feature")?, list(section, "threshold")?);
    let (left, right): (Vec<i64>, Vec<i64>) = (list(section, "left_child")?, list(section, "right_child")?);
    let kinds: Vec<u8> = list(section, "decision_type")?;
    let lists = [features.len(), thresholds.len(), left.len(), right.len(), kinds.len()];
    if lists.iter().any(|&len| len != splits) || values.len() != leaves {
        return Err(malformed(format!("{leaves} leaves, but lists of {lists:?} questions")));
    }
    let boundaries: Vec<usize> = list(section, "cat_boundaries")?;
    let sets: Vec<u32> = list(section, "cat_threshold")?;
    // Questions first, then leaves, which the file counts as -1, -2, ...
    let place = |child: i64| {
        let number = if child < 0 { (-(child + 1)) as usize + splits } else { child as usize };
        if number < splits + leaves { Ok(number) } else { Err(malformed(format!("a child {child}"))) }
    };
    let mut nodes = Vec::with_capacity(splits + leaves);
    for i in 0..splits {
        let (feature, yes, no) = (features[i], place(left[i])?, place(right[i])?);
        let default_left = kinds[i] & DEFAULT_LEFT != 0;
        let (test, missing_yes, zero_is_missing) = if kinds[i] & CATEGORICAL != 0 {
            let values = categories(thresholds[i], &boundaries, &sets)?;
            (Test::OneOf { values, whole: true }, false, false)
        } else {
            let (missing_yes, zero) = match (kinds[i] >> MISSING_SHIFT) & 3 {
                // NaN counts as 0.
                0 => (0.0 <= thresholds[i], false),
                1 => (default_left, true),
                _ => (default_left, false),
            };
            (Test::AtMost(thresholds[i]), missing_yes, zero)
        };
        nodes.push(Branch::Split { feature, test, yes, no, missing_yes, zero_is_missing });
    }
    nodes.extend(values.iter().map(|&value| Branch::Leaf { votes: vec![(class, value)] }));
    let mut cover: Vec<f64> = list(section, "internal_count")?;
    cover.extend(list::<f64>(section, "leaf_count")?);
    // A tree of one leaf has no counts, and needs none.
    if leaves == 1 {
        cover = vec![1.0];
    }
    Ok(Tree { nodes, cover })
}

/// The categories of a set of bits.
fn categories(number: f64, boundaries: &[usize], sets: &[u32]) -> Result<Vec<f64>> {
    let number = number as usize;
    let range = boundaries.get(number).zip(boundaries.get(number + 1));
    let words = range.and_then(|(&begin, &end)| sets.get(begin..end));
    let words = words.ok_or_else(|| malformed(format!("there are no categories of question {number}")))?;
    let bit = |k: usize| words[k / 32] >> (k % 32) & 1 != 0;
    Ok((0..32 * words.len()).filter(|&k| bit(k)).map(|k| k as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_in_one_sentence() {
        let message = |text: &str| Ensemble::from_lightgbm(text).unwrap_err().to_string();
        assert_eq!(
            message("a,b\n1,2\n"),
            "this is no model of LightGBM that can be read: it does not begin with 'tree' and 'max_feature_idx'"
        );
        let header = "tree\nmax_feature_idx=1\nnum_tree_per_iteration=1\n";
        let linear = format!("{header}\nTree=0\nnum_leaves=1\nleaf_value=1\nis_linear=1\n");
        assert!(message(&linear).contains("linear models in its leaves"));
        let short = format!("{header}\nTree=0\nnum_leaves=2\nleaf_value=1 2\nsplit_feature=0\n");
        assert!(message(&short).contains("tree 0: 2 leaves, but lists of [1, 0, 0, 0, 0] questions"));
        let text = format!("{header}\nTree=0\nnum_leaves=two\n");
        assert!(message(&text).contains("'num_leaves' is 'two'"));
    }
}
