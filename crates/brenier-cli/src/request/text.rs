//! Text as input: sentences as they are typed, text files and columns of tables, made ids by a tokenizer.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brenier::data::{OpenOptions, read_texts};
use brenier::text::Tokenizer;
use brenier::{NamedInputs, TextBaseline, TextInputs, embeddings};
use clap::Args;
use ndarray::Array2;
use onnx_grad::Graph;

use super::named::Arrays;
use crate::output::print_notices;

/// Text
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Text")]
pub(crate) struct TextArgs {
    /// Make ids of text with this tokenizer.json: of --text, of text files (a text a line), or of columns (reviews.csv:review)
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// A text to explain; may be given several times
    #[arg(long, value_name = "TEXT", requires = "tokenizer")]
    text: Vec<String>,
    /// Cut texts to this many tokens, those of the tokenizer itself included
    #[arg(long, value_name = "N", requires = "tokenizer")]
    max_tokens: Option<usize>,
}

/// What stands for the baseline of text where none is named: padding where the tokenizer has it, or else zero.
const USUAL: &str = "padding or zero";
/// The mean embedding, which is no mean of rows.
const MEAN: &str = "mean embedding";

/// Texts as they were read.
pub(super) struct Texts {
    pub(super) inputs: TextInputs,
    pub(super) names: Vec<String>,
    tokenizer: Tokenizer,
}

impl TextArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// The tokenizer's file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.tokenizer.as_deref()
    }

    /// The name of a baseline among those of rows; `used` says whether a method takes one.
    pub(crate) fn baseline(&self, named: Option<String>, used: bool) -> Option<String> {
        match (self.is_given(), named.as_deref()) {
            (true, None) if used => Some(USUAL.to_string()),
            (true, Some("mean")) => Some(MEAN.to_string()),
            _ => named,
        }
    }

    /// Reads the texts that are among the files and the inputs by name, which are taken away from these.
    pub(super) fn read(
        &self,
        files: &mut Vec<PathBuf>,
        inputs: &mut Vec<String>,
        explain: &[String],
        graph: &Graph,
        options: &OpenOptions,
    ) -> Result<Option<Texts>> {
        let Some(path) = &self.tokenizer else { return Ok(None) };
        let tables = embeddings(graph);
        let of_ids = |name: &str| tables.iter().any(|table| table.ids == name);
        let longest = tables.iter().max_by_key(|table| table.entries).map(|table| table.ids.as_str());
        let asked = explain.iter().find(|name| of_ids(name)).map(String::as_str).or(longest);
        let mut sources = std::mem::take(files);
        inputs.retain(|input| match input.split_once('=') {
            Some((name, file))
                if is_text(file)
                    && (Some(name) == asked || name == "text" && graph.input(name).is_none()) =>
            {
                sources.push(PathBuf::from(file));
                false
            }
            _ => true,
        });
        let mut texts: Vec<(String, String)> =
            self.text.iter().enumerate().map(|(i, text)| (format!("text#{i}"), text.clone())).collect();
        for source in &sources {
            texts.extend(read(source)?);
        }
        if texts.is_empty() {
            bail!(
                "there is no text\nhint: give --text, a text file with a text a line, or a column such as reviews.csv:review"
            );
        }
        texts.truncate(options.limit.unwrap_or(usize::MAX));
        let tokenizer = Tokenizer::open(path, self.max_tokens)?;
        let given: Vec<String> =
            inputs.iter().filter_map(|input| Some(input.split_once('=')?.0.to_string())).collect();
        let (names, texts): (Vec<String>, Vec<String>) = texts.into_iter().unzip();
        let inputs = TextInputs::new(graph, &tokenizer, &texts, asked, &given)?;
        print_notices(&inputs.notices);
        Ok(Some(Texts { inputs, names, tokenizer }))
    }
}

impl Texts {
    /// Where they come from, in words.
    pub(super) fn origin(&self) -> String {
        format!("{} texts", self.names.len())
    }

    /// The references that were asked for; none where they are no matter of text.
    pub(super) fn baselines(
        &self,
        graph: &Graph,
        inputs: &NamedInputs,
        arrays: &Arrays,
        named: Option<&str>,
    ) -> Result<Option<Array2<f64>>> {
        let usual = || match self.tokenizer.padding() {
            Some(_) => TextBaseline::Padding,
            None => TextBaseline::Zero,
        };
        let embedded = inputs.packed().explained().any(|input| input.embeds.is_some());
        let baseline = match named {
            Some(USUAL) if embedded => usual(),
            // Inner values start at zero, as always.
            Some(USUAL) => return Ok(Some(Array2::zeros((1, inputs.packed().features())))),
            Some("pad") => TextBaseline::Padding,
            Some("mask") => TextBaseline::Mask,
            Some(MEAN) => TextBaseline::Mean,
            Some(name) => match name.strip_prefix("token:") {
                Some(word) => TextBaseline::Token(word.to_string()),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        Ok(Some(self.inputs.baselines(graph, &self.tokenizer, inputs, arrays, &baseline)?))
    }
}

/// Whether a file holds text and no numbers.
fn is_text(file: &str) -> bool {
    !file.ends_with(".npy") && !file.ends_with(".npz")
}

/// The texts of FILE or TABLE:COLUMN.
fn read(source: &Path) -> Result<Vec<(String, String)>> {
    let text = source.to_string_lossy();
    let split = text.rsplit_once(':').filter(|_| !source.exists());
    let (file, column) = split.map_or((source, None), |(file, column)| (Path::new(file), Some(column)));
    if !file.exists() {
        bail!(
            "there is no {}\nhint: give a text file, or TABLE:COLUMN; a sentence is given with --text",
            file.display()
        );
    }
    Ok(read_texts(file, column)?)
}
