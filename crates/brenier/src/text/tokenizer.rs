//! A tokenizer as models come with it: `tokenizer.json`, and what stands beside it.

use std::fmt;
use std::path::Path;

use super::pieces::Pieces;
use super::settings::Settings;
use super::{Encoded, placed};
use crate::error::{Error, Remedy, Result};

/// Names that tokens for padding have where nothing says which it is.
const PADDING: [&str; 4] = ["[PAD]", "<pad>", "<|pad|>", "<|padding|>"];
/// Names of the token that stands for a hidden word.
const MASKS: [&str; 3] = ["[MASK]", "<mask>", "<|mask|>"];

/// Turns text into ids.
pub struct Tokenizer {
    pieces: Pieces,
    padding: Option<(u32, String)>,
    mask: Option<(u32, String)>,
    pads_left: bool,
    longest: Option<usize>,
    cuts: bool,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Tokenizer { padding, mask, longest, .. } = self;
        f.debug_struct("Tokenizer")
            .field("padding", padding)
            .field("mask", mask)
            .field("longest", longest)
            .finish()
    }
}

impl Tokenizer {
    /// Reads `tokenizer.json`, with the `tokenizer_config.json` beside it. Texts are cut to `max_tokens`, special ones included,
    /// where that is said, and else are whole.
    ///
    /// # Errors
    /// If the file cannot be read, is no tokenizer, or so few tokens leave no room for text.
    pub fn open(path: &Path, max_tokens: Option<usize>) -> Result<Tokenizer> {
        let bytes =
            std::fs::read(path).map_err(|e| Error::Read { path: path.to_owned(), source: e.into() })?;
        let unfit = |reason: String| {
            refused(
                format!("{} cannot be used as a tokenizer: {reason}", path.display()),
                "give the tokenizer.json that the model was trained with; save_pretrained of a fast tokenizer writes it",
            )
        };
        let mut pieces = Pieces::read(&bytes).map_err(unfit)?;
        let settings = Settings::beside(path)?;
        let named = |own: Option<&str>, usual: &[&str]| {
            let names = own.into_iter().chain(usual.iter().copied());
            names.filter_map(|name| Some((pieces.id(name)?, name.to_string()))).next()
        };
        let (own, left) = pieces.padding();
        let padding = named(own.as_deref().or(settings.padding()), &PADDING);
        let mask = named(settings.mask(), &MASKS);
        let declared = [pieces.longest(), settings.longest()].into_iter().flatten().min();
        pieces.cut(None).map_err(unfit)?;
        let special = pieces.pieces("", true).map_err(unfit)?.len();
        if let Some(most) = max_tokens.filter(|most| *most <= special) {
            return Err(self::refused(
                format!("texts are to be cut to {most} tokens, and the tokenizer adds {special} of its own"),
                "allow more tokens",
            ));
        }
        pieces.cut(max_tokens).map_err(unfit)?;
        let longest = max_tokens.or(declared);
        let pads_left = left || settings.pads_left();
        Ok(Tokenizer { pieces, padding, mask, pads_left, longest, cuts: max_tokens.is_some() })
    }

    /// Texts as ids, each as long as it is.
    ///
    /// # Errors
    /// If one is empty, or longer than the tokenizer says that texts may be.
    pub fn encode(&self, texts: &[String]) -> Result<Vec<Encoded>> {
        let one = |(i, text): (usize, &String)| {
            let pieces = self.pieces.pieces(text, true).map_err(|reason| {
                refused(format!("text {i} cannot be cut into tokens: {reason}"), "leave it out")
            })?;
            let found = placed(text, &pieces);
            if found.special.iter().all(|special| *special) {
                return Err(refused(format!("text {i} is empty"), "leave it out"));
            }
            match self.longest.filter(|longest| found.ids.len() > *longest) {
                Some(longest) => Err(too_long(i, found.ids.len(), longest, "the tokenizer is for")),
                None => Ok(found),
            }
        };
        texts.iter().enumerate().map(one).collect()
    }

    /// The id and the name of the token that fills up short texts.
    pub fn padding(&self) -> Option<(u32, &str)> {
        self.padding.as_ref().map(|(id, name)| (*id, name.as_str()))
    }

    /// The id and the name of the token that stands for a hidden word.
    pub fn mask(&self) -> Option<(u32, &str)> {
        self.mask.as_ref().map(|(id, name)| (*id, name.as_str()))
    }

    /// Whether padding stands before the text.
    pub fn pads_left(&self) -> bool {
        self.pads_left
    }

    /// Whether it was said how long texts may be: longer ones are cut.
    pub fn cuts(&self) -> bool {
        self.cuts
    }

    /// The id of one token, by its name or by a word that is one token.
    ///
    /// # Errors
    /// If the word is several tokens, or none.
    pub fn token(&self, word: &str) -> Result<u32> {
        if let Some(id) = self.pieces.id(word) {
            return Ok(id);
        }
        let pieces = self.pieces.pieces(word, false).unwrap_or_default();
        match pieces.as_slice() {
            [one] => Ok(one.id),
            [] => Err(refused(format!("'{word}' is no token"), "name a token of the tokenizer")),
            several => {
                let names: Vec<&str> = several.iter().map(|piece| piece.name.as_str()).collect();
                let reason = format!("'{word}' is {} tokens: {}", several.len(), names.join(" "));
                Err(refused(reason, "name one token"))
            }
        }
    }
}

/// A text that is longer than something allows.
pub(crate) fn too_long(text: usize, tokens: usize, longest: usize, who: &str) -> Error {
    Error::Inputs {
        reason: format!("text {text} has {tokens} tokens, and {who} {longest} at most"),
        remedy: Remedy::CutTexts,
    }
}

fn refused(reason: String, remedy: &'static str) -> Error {
    Error::Inputs { reason, remedy: remedy.into() }
}
