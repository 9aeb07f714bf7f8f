//! Recomputing what a folder holds, and comparing.
//!
//! ```text
//! origins   what the folder says it was made from, against what the question is made from now
//! results   every explanation anew, against the saved one: to the bit, or |difference| <= tolerance * largest |credit|
//! ```
//!
//! The same program on the same engine and kind of processor gives the same bits, so there anything else is a difference.
//! Another version, engine or processor rounds differently: then credit and score are held to a tolerance.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use ndarray::Array1;
use serde::Serialize;
use serde_json::Value;

use super::about::about;
use super::folder::FINISHED;
use super::{Question, Way};
use crate::attribute::{Certificate, Explanation};
use crate::report::ExplanationReader;
use crate::{Error, Result};

/// What rounds differently from one machine to another: the facts by their names in the record.
const ROUNDING: [&str; 3] = ["the engine", "the version", "the processor"];
/// What a certificate says of its making, not of its result.
const UNJUDGED: [&str; 3] = ["name", "engine", "version"];

/// What came of recomputing the results of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// The method.
    pub method: String,
    /// Explanations that were recomputed.
    pub explanations: usize,
    /// The tolerance that they were held to, relative to the largest credit of each; absent where to the bit.
    pub tolerance: Option<f64>,
    /// Why not to the bit: what rounds differently here.
    pub because: Vec<Changed>,
    /// The largest difference of credit that was found, relative to the largest credit of its explanation.
    pub largest_difference: f64,
    /// What the results were made from that is something else now.
    pub changed: Vec<Changed>,
    /// The first explanation that differs.
    pub difference: Option<Difference>,
}

/// Something that was one thing and is another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// What.
    pub what: String,
    /// As the folder says.
    pub kept: String,
    /// As it is now.
    pub found: String,
}

/// Where a recomputed explanation differs from the saved one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Which input of the run.
    pub example: usize,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Which output.
    pub target: usize,
    /// What differs: credit, input, reference, standard error, or a field of the certificate.
    pub what: String,
    /// The first feature that does, where it is a feature.
    pub feature: Option<usize>,
    /// The saved value.
    pub kept: Value,
    /// The recomputed value.
    pub found: Value,
    /// By how much, where both are numbers.
    pub by: Option<f64>,
}

impl Verification {
    /// Whether everything is as it was saved.
    pub fn is_verified(&self) -> bool {
        self.changed.is_empty() && self.difference.is_none()
    }
}

/// Recomputes what a folder holds. `made_from` is what [`Folder::explain`](super::Folder::explain) was told.
///
/// # Errors
/// If the folder holds no finished run, or its files cannot be read; what the method says.
pub fn verify(
    question: &Question,
    way: &Way,
    made_from: &[(String, String)],
    folder: &Path,
    tolerance: f64,
) -> Result<Verification> {
    let kept = record(folder)?;
    let now = about(question, way, made_from, false)?;
    let (because, changed): (Vec<Changed>, Vec<Changed>) =
        differences(&kept, &now).into_iter().partition(|change| ROUNDING.contains(&change.what.as_str()));
    let held_to = (!because.is_empty()).then_some(tolerance);
    let mut answer = Verification {
        method: way.name(),
        explanations: 0,
        tolerance: held_to,
        because,
        largest_difference: 0.0,
        changed,
        difference: None,
    };
    // Of something else, nothing can be recomputed.
    if !answer.changed.is_empty() {
        return Ok(answer);
    }
    let mut saved = ExplanationReader::open(folder)?;
    let count = question.inputs.count() * question.targets.count();
    if saved.left() != count {
        let (kept, found) = (saved.left().to_string(), count.to_string());
        answer.changed.push(Changed { what: "the number of explanations".to_string(), kept, found });
        return Ok(answer);
    }
    question.explain(way, 0, &mut |part| {
        for found in &part.explanations {
            let Some(kept) = saved.next().transpose()? else { return Ok(ControlFlow::Break(())) };
            answer.explanations += 1;
            answer.largest_difference = answer.largest_difference.max(largest(&kept, found));
            answer.difference = compare(&kept, found, held_to)?;
            if answer.difference.is_some() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(answer)
}

/// What a finished run says it was made from.
pub(super) fn record(folder: &Path) -> Result<BTreeMap<String, String>> {
    let path = folder.join(FINISHED);
    if !path.exists() {
        return Err(Error::NoRecord { folder: folder.to_owned(), file: FINISHED });
    }
    let unreadable = |source| Error::Read { path: path.clone(), source };
    let bytes = crate::readable::read(&path).map_err(|e| unreadable(e.into()))?;
    serde_json::from_slice(&bytes).map_err(|e| unreadable(e.into()))
}

/// All facts that are not as they were.
fn differences(kept: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Changed> {
    let absent = "none".to_string();
    let mut names: Vec<&String> = kept.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let (before, after) = (kept.get(name).unwrap_or(&absent), now.get(name).unwrap_or(&absent));
        let changed = Changed { what: name.clone(), kept: before.clone(), found: after.clone() };
        (before != after).then_some(changed)
    };
    names.into_iter().filter_map(change).collect()
}

/// The largest difference of credit, relative to the largest credit.
fn largest(kept: &Explanation, found: &Explanation) -> f64 {
    let most = |values: &Array1<f64>| values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if kept.values.len() != found.values.len() {
        return f64::INFINITY;
    }
    let difference = most(&(&kept.values - &found.values));
    if difference == 0.0 { 0.0 } else { difference / most(&kept.values) }
}

/// The first difference between a saved explanation and the same anew.
fn compare(kept: &Explanation, found: &Explanation, tolerance: Option<f64>) -> Result<Option<Difference>> {
    let largest = kept.values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let limit = tolerance.map_or(0.0, |tolerance| tolerance * largest);
    let certificate = &kept.certificate;
    let place = |what: &str, feature: Option<usize>, kept: Value, found: Value| {
        let by = kept.as_f64().zip(found.as_f64()).map(|(kept, found)| (kept - found).abs());
        let what = what.to_string();
        let (example, target, name) = (certificate.example, certificate.target, certificate.name.clone());
        Difference { example, name, target, what, feature, kept, found, by }
    };
    let in_row = |what: &str, kept: Option<&Array1<f64>>, found: Option<&Array1<f64>>, limit: f64| {
        let (Some(kept), Some(found)) = (kept, found) else {
            let there = |row: Option<&Array1<f64>>| Value::from(row.is_some());
            return (kept.is_some() != found.is_some()).then(|| place(what, None, there(kept), there(found)));
        };
        let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && is_far(*a, *b, limit);
        let feature = kept.iter().zip(found).position(differs)?;
        Some(place(what, Some(feature), kept[feature].into(), found[feature].into()))
    };
    // Inputs are the same everywhere.
    let first = in_row("input", Some(&kept.input), Some(&found.input), 0.0)
        .or_else(|| in_row("credit", Some(&kept.values), Some(&found.values), limit));
    if first.is_some() {
        return Ok(first);
    }
    if tolerance.is_some() {
        let (a, b) = (certificate.score, found.certificate.score);
        let far = is_far(a, b, limit.max(tolerance.unwrap_or(0.0) * a.abs()));
        let other = certificate.target != found.certificate.target;
        return Ok(if far { Some(place("score", None, a.into(), b.into())) } else { None }.or(
            other.then(|| place("target", None, certificate.target.into(), found.certificate.target.into()))
        ));
    }
    let rest = in_row("reference", kept.reference.as_ref(), found.reference.as_ref(), 0.0).or_else(|| {
        in_row("standard error", kept.standard_errors.as_ref(), found.standard_errors.as_ref(), 0.0)
    });
    if rest.is_some() {
        return Ok(rest);
    }
    let (a, b) = (fields(certificate)?, fields(&found.certificate)?);
    Ok(first_field("", &a, &b).map(|(field, kept, found)| place(&field, None, kept, found)))
}

/// Whether two numbers are further apart than the limit; what is no number is.
fn is_far(a: f64, b: f64, limit: f64) -> bool {
    let distance = (a - b).abs();
    distance.is_nan() || distance > limit
}

/// A certificate as it is written, without what is not judged.
fn fields(certificate: &Certificate) -> Result<Value> {
    let unwritable = |e: serde_json::Error| Error::Write { path: "a certificate".into(), source: e.into() };
    let mut value = serde_json::to_value(certificate).map_err(unwritable)?;
    if let Value::Object(fields) = &mut value {
        UNJUDGED.iter().for_each(|name| drop(fields.remove(*name)));
    }
    Ok(value)
}

/// The first field in which two values differ.
fn first_field(name: &str, kept: &Value, found: &Value) -> Option<(String, Value, Value)> {
    let (Value::Object(a), Value::Object(b)) = (kept, found) else {
        return (kept != found).then(|| (name.to_string(), kept.clone(), found.clone()));
    };
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter().find_map(|key| {
        let (kept, found) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        first_field(&name, kept, found)
    })
}
