//! What reads `tokenizer.json`: the tokenizers of Hugging Face, without their C libraries.

use tokenizers::{PaddingDirection, TruncationParams};

use super::Piece;

pub(super) struct Pieces(tokenizers::Tokenizer);

impl Pieces {
    pub(super) fn read(bytes: &[u8]) -> Result<Pieces, String> {
        tokenizers::Tokenizer::from_bytes(bytes).map(Pieces).map_err(|error| error.to_string())
    }

    /// The token that fills up short texts, and whether it is put before them.
    pub(super) fn padding(&self) -> (Option<String>, bool) {
        let padding = self.0.get_padding();
        let left = padding.is_some_and(|padding| matches!(padding.direction, PaddingDirection::Left));
        (padding.map(|padding| padding.pad_token.clone()), left)
    }

    /// How many tokens it cuts texts to.
    pub(super) fn longest(&self) -> Option<usize> {
        self.0.get_truncation().map(|cut| cut.max_length)
    }

    /// Cuts texts to so many tokens, or leaves them whole, and fills none up.
    pub(super) fn cut(&mut self, longest: Option<usize>) -> Result<(), String> {
        let cut = longest.map(|max_length| TruncationParams { max_length, ..TruncationParams::default() });
        self.0.with_padding(None);
        self.0.with_truncation(cut).map(|_| ()).map_err(|error| error.to_string())
    }

    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    pub(super) fn pieces(&self, text: &str, special: bool) -> Result<Vec<Piece>, String> {
        let found = self.0.encode(text, special).map_err(|error| error.to_string())?;
        let piece = |i: usize| {
            Some(Piece {
                id: *found.get_ids().get(i)?,
                segment: *found.get_type_ids().get(i)?,
                name: found.get_tokens().get(i)?.clone(),
                special: *found.get_special_tokens_mask().get(i)? == 1,
                word: *found.get_word_ids().get(i)?,
                bytes: *found.get_offsets().get(i)?,
            })
        };
        Ok((0..found.len()).filter_map(piece).collect())
    }
}
