//! Whether a network fits into memory, before its first weight is made.

use crate::error::{Error, Result};
use crate::memory;

/// What a weight takes in training: itself, its gradient, two moments and an average, in 32 bits each.
const BYTES: f64 = 20.0;
/// What a layer takes besides its weights, in weights: names and nodes of graphs.
const LAYER: f64 = 1000.0;
/// Bytes where nobody has said how many may be taken.
const MOST: u64 = 1 << 40;

/// Refuses more weights than there is room for. `layers` are sizes with how often each occurs: inputs, outputs, points of the
/// kernel, and how many.
pub(super) fn expect_room(layers: &[(usize, usize, usize, usize)]) -> Result<()> {
    let weights: f64 = layers
        .iter()
        .map(|&(from, to, taps, count)| (from as f64 * to as f64 * taps as f64).max(LAYER) * count as f64)
        .sum();
    let most = memory::most().min(MOST) as f64;
    if weights * BYTES <= most {
        return Ok(());
    }
    Err(Error::Setting {
        name: "the size of the network",
        value: format!(
            "{weights:.1e} weights ({:.1} GB in training, and {:.1} GB may be taken)",
            weights * BYTES / 1e9,
            most / 1e9
        ),
        needs: "weights, gradients and moments must fit into memory",
        hint: "take a smaller width or fewer blocks".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_no_memory_holds_are_refused() {
        assert!(expect_room(&[(4096, 4096, 9, 40)]).is_ok());
        let refused = |layers: &[_]| expect_room(layers).unwrap_err().to_string();
        assert!(refused(&[(usize::MAX, usize::MAX, 9, 2)]).contains("weights"));
        // Many layers of nothing are too many as well.
        assert!(refused(&[(1, 1, 1, 1 << 40)]).contains("1.1e15 weights"));
    }
}
