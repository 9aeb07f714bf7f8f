//! Text as ids, and ids as words again.
//!
//! ```text
//! "An unbelievable film"  ->  [CLS] an un ##believ ##able film [SEP]  ->  ids, special, segments
//!      words                   0    1  2    2        2     3    4
//! ```
//!
//! Credit is for tokens, which a tokenizer cuts words into; a reader sees words. So every token keeps its place in the text,
//! and tokens that are pieces of one word are known as such. What reads `tokenizer.json` is behind the cargo feature `text`.

#[cfg_attr(not(feature = "text"), path = "text/absent.rs")]
mod pieces;
mod settings;
mod tokenizer;

use serde::{Deserialize, Serialize};

pub use tokenizer::Tokenizer;
pub(crate) use tokenizer::too_long;

/// The tokens of one text, as they stand in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// The model's input that takes their ids.
    pub input: String,
    /// Each token: what it stands for in the text, or its name where it stands for nothing in it, such as `[CLS]`.
    pub tokens: Vec<String>,
    /// The words that they are pieces of, in order; every token belongs to one.
    pub words: Vec<Word>,
}

/// Tokens that a reader sees as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// As it stands in the text.
    pub text: String,
    /// Its first token.
    pub first: usize,
    /// The token behind its last one.
    pub end: usize,
    /// Whether the tokenizer has put it there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub special: bool,
}

/// One text as ids, before it is made as long as others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// The ids.
    pub ids: Vec<u32>,
    /// The segment of each.
    pub segments: Vec<u32>,
    /// Whether the tokenizer has put it there.
    pub special: Vec<bool>,
    /// Each token in the text.
    pub tokens: Vec<String>,
    /// The words.
    pub words: Vec<Word>,
}

impl Tokens {
    /// Credit of each word: the sum over its tokens.
    pub fn by_word<'a>(&'a self, credit: &'a [f64]) -> impl Iterator<Item = (&'a Word, f64)> {
        self.words
            .iter()
            .map(|word| (word, credit.get(word.first..word.end).unwrap_or_default().iter().sum()))
    }
}

/// A token of a tokenizer: its bytes in the text, and what is known of it.
struct Piece {
    id: u32,
    segment: u32,
    name: String,
    special: bool,
    /// The number of the word that the tokenizer cut it from.
    word: Option<u32>,
    bytes: (usize, usize),
}

/// Pieces in their text. Pieces of one word touch, and a space begins a new one: not every tokenizer cuts at spaces first.
fn placed(text: &str, pieces: &[Piece]) -> Encoded {
    let mut found = Encoded::default();
    // The word so far: its number, and its bytes in the text.
    let mut open: Option<(u32, usize, usize)> = None;
    for (i, piece) in pieces.iter().enumerate() {
        let (from, to) = piece.bytes;
        let own = text.get(from..to).filter(|own| !own.is_empty() && !piece.special);
        let spelled = own.map(str::trim).filter(|own| !own.is_empty());
        found.ids.push(piece.id);
        found.segments.push(piece.segment);
        found.special.push(piece.special);
        found.tokens.push(spelled.unwrap_or(&piece.name).to_string());
        let goes_on = match (open, piece.word, own) {
            // Several tokens may be bytes of one letter: then they have the same place.
            (Some((word, first, last)), Some(now), Some(own)) => {
                word == now
                    && (from == last || first <= from && to <= last)
                    && !own.starts_with(char::is_whitespace)
            }
            _ => false,
        };
        if let (true, Some(word), Some((_, first, last))) = (goes_on, found.words.last_mut(), open.as_mut()) {
            *last = to.max(*last);
            word.end = i + 1;
            word.text = text.get(*first..*last).unwrap_or_default().trim().to_string();
            continue;
        }
        open = own.and(piece.word).map(|word| (word, from, to));
        let (text, special) = (found.tokens[i].clone(), piece.special);
        found.words.push(Word { text, first: i, end: i + 1, special });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(name: &str, word: u32, bytes: (usize, usize)) -> Piece {
        Piece { id: 7, segment: 0, name: name.into(), special: false, word: Some(word), bytes }
    }

    fn words(text: &str, pieces: &[Piece]) -> Vec<(String, usize, usize)> {
        placed(text, pieces).words.into_iter().map(|word| (word.text, word.first, word.end)).collect()
    }

    #[test]
    fn pieces_of_a_word_are_joined() {
        let mut pieces = vec![
            piece("un", 0, (0, 2)),
            piece("##fit", 0, (2, 5)),
            piece("-", 1, (5, 6)),
            piece("[UNK]", 2, (7, 9)),
        ];
        let end = Piece { special: true, word: None, ..piece("[SEP]", 0, (0, 0)) };
        pieces.push(end);
        let found = placed("unfit- \u{00e9}", &pieces);
        assert_eq!(found.tokens, ["un", "fit", "-", "\u{00e9}", "[SEP]"]);
        let expected = [("unfit", 0, 2), ("-", 2, 3), ("\u{00e9}", 3, 4), ("[SEP]", 4, 5)];
        assert_eq!(words("unfit- \u{00e9}", &pieces), expected.map(|(w, a, b)| (w.to_string(), a, b)));
        assert!(found.words[3].special && !found.words[2].special);
    }

    #[test]
    fn bytes_of_one_letter_are_one_word_and_spaces_end_one() {
        // A letter of three bytes in three tokens, all with its place; then a word that begins with its space.
        let text = "ab\u{20ac} so";
        let pieces = [
            piece("ab", 0, (0, 2)),
            piece("\u{e2}", 0, (2, 5)),
            piece("\u{82}", 0, (2, 5)),
            piece("\u{ac}", 0, (2, 5)),
            piece("_so", 0, (5, 8)),
        ];
        let expected = [("ab\u{20ac}".to_string(), 0, 4), ("so".to_string(), 4, 5)];
        assert_eq!(words(text, &pieces), expected);
        // Places that lie inside a letter are no reason to panic.
        assert_eq!(placed("\u{20ac}", &[piece("x", 0, (1, 2))]).tokens, ["x"]);
    }

    #[test]
    fn credit_of_a_word_is_the_sum_over_its_tokens() {
        let pieces = [piece("un", 0, (0, 2)), piece("fit", 0, (2, 5)), piece("so", 1, (6, 8))];
        let found = placed("unfit so", &pieces);
        let tokens = Tokens { input: "ids".into(), tokens: found.tokens, words: found.words };
        let credit: Vec<(String, f64)> =
            tokens.by_word(&[1.0, 2.0, -1.0]).map(|(word, credit)| (word.text.clone(), credit)).collect();
        assert_eq!(credit, [("unfit".to_string(), 3.0), ("so".to_string(), -1.0)]);
    }
}
