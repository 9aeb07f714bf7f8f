//! `report.html`: everything about a run on one page that needs no network and no server.
//!
//! The page is a template with its style and script inside, and one block of JSON with the numbers: arrays as
//! base64 of quantised values, names as they are. The script writes names as text, never as markup, and the JSON
//! is written so that nothing in it can end its block: a file called `</script>.png` is just a name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ShownMap;
use super::by_column::ByColumn;
use super::heat_map::{Scales, scales_of, shown_range};
use super::shown_map::superpixel_labels;
use super::steps::{Steps, steps};
use crate::attribute::{Certificate, Explanation, Frames, Reduction, Slic};
use crate::data::Column;
use crate::error::{Error, Result};
use crate::packed::PackedInputs;
use crate::whole_file::write_whole;

const TEMPLATE: &str = include_str!("page/page.html");
pub(super) const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// All that a report shows.
///
/// Written to `report.json`, it leaves out what the explanations beside it say themselves.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// What was run on what: names and values.
    pub facts: Vec<(String, String)>,
    /// The shape of an input: `[C, H, W]` is shown as images, anything else as bars.
    #[serde(skip)]
    pub shape: Vec<usize>,
    /// The names of the features of a table.
    pub features: Vec<String>,
    /// The columns of a table, as they were coded: credit of a category is shown as one.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// Which features are which input of the model, where it has several: each is shown in its own way.
    #[serde(default)]
    pub inputs: Option<PackedInputs>,
    /// The words of inputs of ids, by the input's name: those of every example in their order.
    #[serde(default)]
    pub tokens: BTreeMap<String, Vec<Vec<String>>>,
    /// The names of the outputs; numbers where there are none.
    pub classes: Vec<String>,
    /// What was explained.
    #[serde(skip)]
    pub examples: Vec<ReportExample>,
    /// A table of methods by metrics, where there is one.
    pub metrics: Option<ReportTable>,
    /// The folders of the methods, in the order in which they are shown.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Credit of images is first shown summed over about so many superpixels; by pixels where not given. The page has a
    /// switch for either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superpixels: Option<usize>,
    /// Whether methods whose credit sums to the score's change are first shown on one scale. The page has a switch.
    #[serde(default)]
    pub shared_scale: bool,
}

/// One input with what every method says of it.
#[derive(Debug, Clone)]
pub struct ReportExample {
    /// Its name.
    pub name: String,
    /// What each method gave for each target, with stills of the path where there is one.
    pub explanations: Vec<(Explanation, Option<Frames>)>,
}

/// Rows of numbers with names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportTable {
    /// The heading of each column; the first is that of the row names.
    pub columns: Vec<String>,
    /// A name and its numbers; absent where a metric does not apply.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// What is best by which metric, and why there is no best; sentences below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Numbers between `low` and `high` as bytes or pairs of bytes.
#[derive(Serialize)]
struct Packed {
    low: f64,
    high: f64,
    /// Bytes per number.
    bytes: u8,
    data: String,
}

#[derive(Serialize)]
struct PageData<'a> {
    title: &'a str,
    facts: &'a [(String, String)],
    shape: Vec<usize>,
    /// The shape of the inputs, where pictures are smaller.
    whole: Option<&'a [usize]>,
    features: Vec<String>,
    inputs: Option<&'a PackedInputs>,
    tokens: &'a BTreeMap<String, Vec<Vec<String>>>,
    classes: &'a [String],
    /// Whether maps are first shown by superpixels, and whether on one scale.
    by_superpixels: bool,
    shared_scale: bool,
    examples: Vec<PageExample<'a>>,
    metrics: Option<&'a ReportTable>,
}

#[derive(Serialize)]
struct PageExample<'a> {
    name: &'a str,
    /// The level that the input has in each category of a table.
    levels: Vec<Option<String>>,
    /// What the input has in each column of a table, in full.
    described: Vec<String>,
    input: Packed,
    /// The values shown as black and as white.
    range: (f64, f64),
    /// The superpixel of every pixel of an image.
    superpixels: Option<Packed>,
    methods: Vec<PageMethod>,
}

#[derive(Serialize)]
struct PageMethod {
    certificate: Certificate,
    values: Packed,
    /// The credit that has the full colour, of the map alone and of all that share a scale.
    scale: f64,
    shared_scale: f64,
    errors: Option<Packed>,
    /// What the input was compared with, where it was compared with a population.
    reference: Option<Packed>,
    /// What that has in each column of a table, in full.
    counterpart: Vec<String>,
    frames: Option<PageFrames>,
}

#[derive(Serialize)]
struct PageFrames {
    times: Vec<f64>,
    scores: Vec<f64>,
    sums: Vec<f64>,
    states: Packed,
    credit: Packed,
    /// Whether stills have half the pixels of the picture each way.
    half: bool,
}

impl Report {
    /// The page.
    ///
    /// # Errors
    /// If a number is not finite: the page would show nothing in its place.
    pub fn html(&self) -> Result<String> {
        let by_column = Some(ByColumn::new(&self.columns))
            .filter(|by| !self.columns.is_empty() && self.shape == [by.features()]);
        let smaller = Reduction::of_page(&self.shape);
        let mut examples = Vec::with_capacity(self.examples.len());
        for example in &self.examples {
            let Some((first, _)) = example.explanations.first() else { continue };
            let levels = by_column.as_ref().map(|by| by.levels(first.input.view())).unwrap_or_default();
            let described = by_column.as_ref().map(|by| by.described(first.input.view())).unwrap_or_default();
            let shown: Vec<Cow<(Explanation, Option<Frames>)>> = example
                .explanations
                .iter()
                .map(|one| match (&by_column, &smaller) {
                    (None, None) => Cow::Borrowed(one),
                    (None, Some(by)) => Cow::Owned((reduced(&one.0, by), one.1.clone())),
                    (Some(by), _) => {
                        let frames = one.1.as_ref().map(|frames| by.frames(frames, one.0.input.view()));
                        Cow::Owned((by.explanation(&one.0), frames))
                    }
                })
                .collect();
            let all: Vec<&Explanation> = shown.iter().map(|one| &one.0).collect();
            let maps = all.iter().map(|e| ShownMap::of(e, None)).collect::<Result<Vec<_>>>()?;
            let shared = scales_of(&all, &maps, Scales::Shared);
            let first = all[0];
            let scales = maps.iter().map(ShownMap::scale).zip(shared);
            let pairs = shown.iter().zip(scales);
            let mut methods = pairs.map(|(e, scales)| page_method(e, scales)).collect::<Result<Vec<_>>>()?;
            for (method, (whole, _)) in methods.iter_mut().zip(&example.explanations) {
                if let (Some(by), Some(_), Some(reference)) =
                    (&by_column, &method.reference, &whole.reference)
                {
                    method.counterpart = by.described(reference.view());
                }
            }
            examples.push(PageExample {
                name: &example.name,
                levels,
                described,
                input: packed(first.input.view(), 2)?,
                range: shown_range(first.input.view()),
                superpixels: self.superpixels_of(first)?,
                methods,
            });
        }
        let data = PageData {
            title: &self.title,
            facts: &self.facts,
            shape: smaller.map_or_else(|| self.shape.clone(), |by| by.shape().to_vec()),
            whole: smaller.map(|_| self.shape.as_slice()),
            features: by_column.as_ref().map_or_else(|| self.features.clone(), ByColumn::names),
            inputs: self.inputs.as_ref(),
            tokens: &self.tokens,
            classes: &self.classes,
            by_superpixels: self.superpixels.is_some(),
            shared_scale: self.shared_scale,
            examples,
            metrics: self.metrics.as_ref(),
        };
        let json = serde_json::to_string(&data)
            .map_err(|e| Error::Write { path: "report.html".into(), source: e.into() })?;
        // Inside a string, JSON may spell this character so; then no name can end the block.
        let json = json.replace('<', "\\u003c");
        // What names hold is not looked at again: data goes between two halves of the template, the title in last.
        let fill = |half: &str| {
            half.replace("{{style}}", STYLE)
                .replace("{{script}}", SCRIPT)
                .replace("{{policy}}", &policy())
                .replace("{{title}}", &escaped(&self.title))
        };
        let (before, after) = TEMPLATE.split_once("{{data}}").unwrap_or((TEMPLATE, ""));
        Ok(format!("{}{json}{}", fill(before), fill(after)))
    }

    /// The superpixels of an image, which is shown by them as well.
    fn superpixels_of(&self, shown: &Explanation) -> Result<Option<Packed>> {
        if !matches!(shown.shape[..], [1 | 3, _, _]) {
            return Ok(None);
        }
        let count = self.superpixels.unwrap_or(Slic::default().segments);
        let labels = superpixel_labels(shown.input.view(), &shown.shape, count)?;
        let labels: Array1<f64> = labels.into_iter().map(|label| label as f64).collect();
        // Steps of a byte are whole numbers where there are few of them.
        Ok(Some(packed(labels.view(), if labels.iter().all(|&label| label < 256.0) { 1 } else { 2 })?))
    }

    /// Writes the page to a file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_whole(path, self.html()?.as_bytes())
    }
}

/// What a browser may do for this page: run its own script, use its own style, and show pictures that are in it.
fn policy() -> String {
    // What stands between the tags, line ends included.
    let hash = STANDARD.encode(Sha256::digest(format!("\n{SCRIPT}\n")));
    format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; img-src data: blob:; \
         base-uri 'none'; form-action 'none'"
    )
}

fn page_method(
    (explanation, frames): &(Explanation, Option<Frames>),
    (scale, shared_scale): (f64, f64),
) -> Result<PageMethod> {
    let errors = explanation.standard_errors.as_ref().map(|e| packed(e.view(), 2)).transpose()?;
    // A picture needs no more than a screen shows; the numbers of a table are read.
    let bytes = if explanation.shape.len() == 3 { 1 } else { 2 };
    let frames = frames.as_ref();
    let frames = frames.map(|frames| page_frames(frames, bytes, explanation.values.len())).transpose()?;
    let compared = explanation.certificate.comparison.is_some();
    let reference = explanation.reference.as_ref().filter(|_| compared);
    Ok(PageMethod {
        certificate: explanation.certificate.clone(),
        values: packed(explanation.values.view(), 2)?,
        scale,
        shared_scale,
        errors,
        reference: reference.map(|reference| packed(reference.view(), 2)).transpose()?,
        counterpart: Vec::new(),
        frames,
    })
}

/// An explanation of a large image by blocks of pixels.
fn reduced(explanation: &Explanation, by: &Reduction) -> Explanation {
    let errors = explanation.standard_errors.as_ref();
    Explanation {
        values: by.sums(explanation.values.view()),
        shape: by.shape().to_vec(),
        input: by.means(explanation.input.view()),
        reference: explanation.reference.as_ref().map(|reference| by.means(reference.view())),
        standard_errors: errors.map(|errors| by.sums(errors.mapv(|e| e * e).view()).mapv(f64::sqrt)),
        certificate: explanation.certificate.clone(),
    }
}

fn page_frames(frames: &Frames, bytes: u8, features: usize) -> Result<PageFrames> {
    let flat = |array: &ndarray::Array2<f64>| packed(Array1::from_iter(array.iter().copied()).view(), bytes);
    Ok(PageFrames {
        times: frames.times.to_vec(),
        scores: frames.scores.to_vec(),
        sums: frames.sums.to_vec(),
        states: flat(&frames.states)?,
        credit: flat(&frames.credit)?,
        half: frames.states.ncols() < features,
    })
}

/// Numbers as text: base64 of their steps.
fn packed(values: ArrayView1<f64>, bytes: u8) -> Result<Packed> {
    let Steps { low, high, data } = steps(values, bytes)?;
    Ok(Packed { low, high, bytes, data: STANDARD.encode(data) })
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_can_leave_its_place() {
        let evil = "</script><img src=x onerror=alert(1)>".to_string();
        let report = Report {
            title: format!("{evil} {{{{data}}}} {{{{style}}}}"),
            facts: vec![(evil.clone(), "{{style}} {{data}}".into())],
            ..Report::default()
        };
        let html = report.html().unwrap();
        assert!(!html.contains("<img"), "a name became markup");
        assert_eq!(html.matches("</script>").count(), 2);
        assert!(html.contains("{{style}} {{data}}"), "a name was taken for a placeholder");
        assert!(!html.contains("http://") && !html.contains("https://"), "the page asks for nothing");
    }
}
