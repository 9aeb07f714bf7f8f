//! A pool of buffers: memory of values that are no longer needed, for the kernels that follow.

use ::rten::{Value, ValueOrView};

/// Memory that is not in use: asking the system for it and giving it back takes as long as using it.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Vec<Vec<f32>>,
}

/// Pieces that are kept at most.
const MOST_PIECES: usize = 64;

impl Buffers {
    /// So many numbers, whatever they are: the smallest piece that holds them and is not much larger.
    pub(super) fn take(&mut self, count: usize) -> Vec<f32> {
        let fits = |piece: &Vec<f32>| (count..=2 * count).contains(&piece.len());
        let best = (0..self.free.len()).filter(|&i| fits(&self.free[i])).min_by_key(|&i| self.free[i].len());
        match best {
            Some(i) => {
                let mut piece = self.free.swap_remove(i);
                piece.truncate(count);
                piece
            }
            None => vec![0.0; count],
        }
    }

    pub(super) fn keep(&mut self, value: Option<ValueOrView<'_>>) {
        if let Some(ValueOrView::Value(Value::FloatTensor(tensor))) = value {
            self.free.push(tensor.into_non_contiguous_data());
            if self.free.len() > MOST_PIECES {
                self.free.remove(0);
            }
        }
    }
}
