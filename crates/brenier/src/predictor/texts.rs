//! Texts as the inputs of a model: ids, and what a model takes beside them.
//!
//! ```text
//! input_ids        the ids of the tokens, filled up to one length
//! attention_mask   1 for tokens, 0 for padding
//! token_type_ids   the segment of each token
//! position_ids     the place of each token
//! ```
//!
//! The ids go where the longest table of vectors is. Other inputs are told by their names, and said in a notice.

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayD, s};
use onnx_grad::{Graph, ValueInfo};

use super::named::NamedInputs;
use super::places::places;
use super::split::{declared, embeddings, table_of};
use crate::error::{Error, Notice, Remedy, Result};
use crate::text::{Encoded, Tokenizer, Tokens, Word, too_long};

/// What stands for "no text".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextBaseline {
    /// The token for padding, in place of every token but those that the tokenizer adds.
    Padding,
    /// The token for a hidden word, likewise.
    Mask,
    /// A token by its name, likewise.
    Token(String),
    /// The mean of the table of vectors, likewise.
    Mean,
    /// Vectors of zeros, everywhere.
    Zero,
}

/// Texts as arrays by the names of a model's inputs.
#[derive(Debug, Clone)]
pub struct TextInputs {
    /// An array for each input that text gives, `[texts, tokens]`.
    pub arrays: BTreeMap<String, ArrayD<f64>>,
    /// The tokens of each text.
    pub tokens: Vec<Tokens>,
    /// What was decided.
    pub notices: Vec<Notice>,
    /// The input of ids.
    pub ids: String,
    /// Tokens that no baseline replaces: those that the tokenizer adds, and padding.
    special: Array2<bool>,
}

/// What an input takes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tokens,
    NoTokens,
    Segments,
    Places,
}

impl Part {
    /// By the name of the input; nothing where that says nothing.
    fn named(name: &str) -> Option<Part> {
        let name = name.to_lowercase();
        let has = |word: &str| name.contains(word);
        match () {
            () if has("pad") => Some(Part::NoTokens),
            () if has("mask") => Some(Part::Tokens),
            () if has("type") || has("segment") => Some(Part::Segments),
            () if has("position") => Some(Part::Places),
            () => None,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Part::Tokens => "1 for tokens and 0 for padding",
            Part::NoTokens => "0 for tokens and 1 for padding",
            Part::Segments => "the segment of each token",
            Part::Places => "the place of each token",
        }
    }
}

impl TextInputs {
    /// The inputs of this graph for these texts. `ids` names the input of ids where that is known; inputs that are `given` otherwise are
    /// left alone.
    ///
    /// # Errors
    /// If the model takes no ids or something that no text gives, and texts that are empty, too long or of tokens that its table
    /// does not have.
    pub fn new(
        graph: &Graph,
        tokenizer: &Tokenizer,
        texts: &[String],
        ids: Option<&str>,
        given: &[String],
    ) -> Result<TextInputs> {
        let input = ids_of(graph, ids, given)?;
        let encoded = tokenizer.encode(texts)?;
        let length = length(graph, input, tokenizer, &encoded)?;
        let entries = embeddings(graph)
            .into_iter()
            .filter(|table| table.ids == input.name)
            .map(|table| table.entries)
            .min();
        let mut notices = Vec::new();
        let short = encoded.iter().filter(|one| one.ids.len() < length).count();
        let padding = match tokenizer.padding() {
            Some(padding) => padding,
            None if short == 0 => (0, ""),
            None => {
                let reason = format!(
                    "{short} of {} texts are shorter than {length} tokens, and the tokenizer has no token to fill them up",
                    encoded.len()
                );
                return Err(refused(
                    reason,
                    "name its pad_token in tokenizer_config.json, or explain texts of one length",
                ));
            }
        };
        let filled: Vec<Filled> =
            encoded.iter().map(|one| Filled::new(one, length, padding, tokenizer.pads_left())).collect();
        if let Some(entries) = entries {
            for (i, one) in filled.iter().enumerate() {
                if let Some(place) = one.ids.iter().position(|id| *id as usize >= entries) {
                    let (token, id) = (&one.tokens[place], one.ids[place]);
                    let reason = format!(
                        "'{token}' in text {i} has the id {id}, and the table of '{}' has {entries} entries",
                        input.name
                    );
                    return Err(refused(reason, "give the tokenizer that the model was trained with"));
                }
            }
        }
        let array = |of: &dyn Fn(&Filled, usize) -> f64| {
            Array2::from_shape_fn((filled.len(), length), |(row, place)| of(&filled[row], place)).into_dyn()
        };
        let mut arrays =
            BTreeMap::from([(input.name.clone(), array(&|one, place| f64::from(one.ids[place])))]);
        let mut masked = false;
        let used = graph.use_counts();
        let wanted = |other: &&ValueInfo| {
            other.name != input.name && !given.contains(&other.name) && used.contains_key(other.name.as_str())
        };
        for other in graph.inputs.iter().filter(wanted) {
            let part = Part::named(&other.name).filter(|_| declared(other).is_none_or(|row| row.len() == 1));
            let Some(part) = part else {
                let reason = format!("the model takes '{}' as well, which no text gives", other.name);
                return Err(Error::Inputs { reason, remedy: Remedy::GiveInputsByName });
            };
            masked |= matches!(part, Part::Tokens | Part::NoTokens);
            notices.push(format!("'{}' is made of the text: {}", other.name, part.in_words()).into());
            let values = match part {
                Part::Tokens => array(&|one, place| f64::from(u8::from(one.own.contains(&place)))),
                Part::NoTokens => array(&|one, place| f64::from(u8::from(!one.own.contains(&place)))),
                Part::Segments => array(&|one, place| f64::from(one.segments[place])),
                Part::Places => array(&|one, place| place.saturating_sub(one.own.start) as f64),
            };
            arrays.insert(other.name.clone(), values);
        }
        if short > 0 && !masked && given.is_empty() {
            notices.push(
                format!("{short} of {} texts are filled up with '{}', which the model takes as text: it has no mask", encoded.len(), padding.1)
                    .into(),
            );
        }
        let special =
            Array2::from_shape_fn((filled.len(), length), |(row, place)| filled[row].special[place]);
        let tokens = filled
            .into_iter()
            .map(|one| Tokens { input: input.name.clone(), tokens: one.tokens, words: one.words })
            .collect();
        Ok(TextInputs { arrays, tokens, notices, ids: input.name.clone(), special })
    }

    /// References for rows of the packed model, one for each text; `arrays` are all inputs, of which text gives some.
    ///
    /// # Errors
    /// If the tokenizer has no such token, or the ids choose from no table that is explained.
    pub fn baselines(
        &self,
        graph: &Graph,
        tokenizer: &Tokenizer,
        inputs: &NamedInputs,
        arrays: &BTreeMap<String, ArrayD<f64>>,
        baseline: &TextBaseline,
    ) -> Result<Array2<f64>> {
        let id = match baseline {
            TextBaseline::Padding => Some(named(tokenizer.padding(), "padding")?),
            TextBaseline::Mask => Some(named(tokenizer.mask(), "a hidden word")?),
            TextBaseline::Token(word) => Some(tokenizer.token(word)?),
            TextBaseline::Mean | TextBaseline::Zero => None,
        };
        let mut arrays = arrays.clone();
        if let (Some(id), Some(ids)) = (id, arrays.get_mut(&self.ids)) {
            ids.iter_mut()
                .zip(&self.special)
                .filter(|(_, special)| !**special)
                .for_each(|(own, _)| *own = f64::from(id));
        }
        let packed = inputs.packed();
        // Other inputs that move start at zero.
        for input in packed.explained() {
            if let Some(array) = arrays.get_mut(&input.name) {
                array.fill(0.0);
            }
        }
        let mut rows = inputs.rows(&arrays)?;
        let vector = match baseline {
            TextBaseline::Mean | TextBaseline::Zero => {
                let explained = packed.explained().find(|input| input.embeds.as_deref() == Some(&self.ids));
                let input = explained.ok_or_else(|| {
                    let reason = format!("'{}' is not explained at its embedding", self.ids);
                    refused(reason, "choose a token as the baseline")
                })?;
                let mean = match baseline {
                    TextBaseline::Mean => {
                        table_of(graph, &input.name).and_then(|table| table.mean_axis(ndarray::Axis(0)))
                    }
                    _ => None,
                };
                Some((
                    input.range.clone(),
                    mean.unwrap_or_else(|| ndarray::Array1::zeros(input.shape.last().copied().unwrap_or(0))),
                ))
            }
            _ => None,
        };
        if let Some((range, vector)) = vector {
            let width = vector.len().max(1);
            for (mut row, special) in rows.rows_mut().into_iter().zip(self.special.rows()) {
                let mut part = row.slice_mut(s![range.clone()]);
                for (mut token, special) in part.exact_chunks_mut(width).into_iter().zip(special) {
                    if !special || *baseline == TextBaseline::Zero {
                        token.assign(&vector);
                    }
                }
            }
        }
        Ok(rows)
    }
}

/// A text of the length of all.
struct Filled {
    ids: Vec<u32>,
    segments: Vec<u32>,
    special: Vec<bool>,
    tokens: Vec<String>,
    words: Vec<Word>,
    /// The places of its own tokens.
    own: std::ops::Range<usize>,
}

impl Filled {
    fn new(one: &Encoded, length: usize, (id, name): (u32, &str), left: bool) -> Filled {
        let missing = length.saturating_sub(one.ids.len());
        let before = if left { missing } else { 0 };
        let own = before..before + one.ids.len();
        let at = |place: usize| place.checked_sub(before).filter(|place| *place < one.ids.len());
        let mut words: Vec<Word> = Vec::with_capacity(one.words.len() + 1);
        words.extend(one.words.iter().cloned().map(|word| Word {
            first: word.first + before,
            end: word.end + before,
            ..word
        }));
        if missing > 0 {
            let first = if left { 0 } else { own.end };
            let text = if missing == 1 { name.to_string() } else { format!("{name} \u{00d7} {missing}") };
            let padding = Word { text, first, end: first + missing, special: true };
            words.insert(if left { 0 } else { words.len() }, padding);
        }
        Filled {
            ids: (0..length).map(|place| at(place).map_or(id, |place| one.ids[place])).collect(),
            segments: (0..length).map(|place| at(place).map_or(0, |place| one.segments[place])).collect(),
            special: (0..length).map(|place| at(place).is_none_or(|place| one.special[place])).collect(),
            tokens: (0..length)
                .map(|place| at(place).map_or(name.to_string(), |place| one.tokens[place].clone()))
                .collect(),
            words,
            own,
        }
    }
}

/// The input that takes ids of tokens: the one that is named, or that of the longest table.
fn ids_of<'a>(graph: &'a Graph, asked: Option<&str>, given: &[String]) -> Result<&'a ValueInfo> {
    let tables = embeddings(graph);
    let longest = tables.iter().filter(|table| !given.contains(&table.ids)).max_by_key(|table| table.entries);
    let name = asked.or(longest.map(|table| table.ids.as_str()));
    let all = || graph.inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
    let Some(name) = name else {
        let reason = format!("no input of the model takes ids of tokens: {} choose from no table", all());
        return Err(refused(reason, "text is for models whose export has the embedding inside"));
    };
    let Some(input) = graph.input(name) else {
        return Err(refused(
            format!("the model has no input '{name}'; it has {}", all()),
            "name one of them",
        ));
    };
    match declared(input) {
        _ if input.dtype.is_float() => Err(refused(
            format!("input '{name}' is {}, and text becomes integers", input.dtype),
            "name the input of ids",
        )),
        Some(row) if row.len() != 1 => {
            let reason =
                format!("input '{name}' has {} axes, and text becomes [texts, tokens]", row.len() + 1);
            Err(refused(reason, "export the model with ids of two axes"))
        }
        _ => Ok(input),
    }
}

/// The number of tokens that all texts get.
fn length(graph: &Graph, input: &ValueInfo, tokenizer: &Tokenizer, encoded: &[Encoded]) -> Result<usize> {
    let longest = encoded.iter().map(|one| one.ids.len()).max().unwrap_or(0);
    let text = encoded.iter().position(|one| one.ids.len() == longest).unwrap_or(0);
    if let Some(fixed) = declared(input).and_then(|row| row.first().copied().flatten()) {
        return if longest > fixed {
            Err(too_long(text, longest, fixed, "the model was exported for"))
        } else {
            Ok(fixed)
        };
    }
    // Who says how long texts may be knows better than what the graph looks like.
    match places(graph, &input.name).filter(|places| longest > *places && !tokenizer.cuts()) {
        Some(places) => Err(too_long(text, longest, places, "the model has places for")),
        None => Ok(longest),
    }
}

fn named(token: Option<(u32, &str)>, what: &str) -> Result<u32> {
    token.map(|(id, _)| id).ok_or_else(|| {
        refused(
            format!("the tokenizer has no token for {what}"),
            "choose another baseline: a token, the mean, or zero",
        )
    })
}

fn refused(reason: String, remedy: &'static str) -> Error {
    Error::Inputs { reason, remedy: remedy.into() }
}
