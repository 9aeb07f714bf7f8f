//! Edges of images and of maps of credit, by finite differences.
//!
//! ```text
//! (D m)_uv = (m_{u+1,v} - m_uv,  m_{u,v+1} - m_uv)          0 beyond the last row and column
//! s_uv = |D phi_uv|_1,     e_uv = |D I_uv|_2
//! ```
//!
//! The paper writes finite differences and leaves three things open: which (forward, here), what lies beyond the
//! border (nothing changes there), and what the gradient of a colour image is: [`ImageEdges`].

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

/// What the edges of a colour image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageEdges {
    /// Those of the mean over the channels.
    #[default]
    Gray,
    /// The root of the summed squares over all channels, which also sees edges between colours equally bright.
    AllChannels,
}

/// The differences of a map `[height, width]` to the pixel below and to the pixel to the right, by pixel.
fn differences(map: &[f64], width: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
    map.iter().enumerate().map(move |(pixel, value)| {
        let below = map.get(pixel + width).map_or(0.0, |next| next - value);
        let right = if pixel % width + 1 < width { map[pixel + 1] - value } else { 0.0 };
        (below, right)
    })
}

/// The strength of edges in a map of credit, `s`.
pub(super) fn map_edges(map: &[f64], width: usize) -> Vec<f64> {
    differences(map, width).map(|(below, right)| below.abs() + right.abs()).collect()
}

impl ImageEdges {
    /// The strength of edges in an image `[channels, height, width]`, `e`, after multiplication by `scale`.
    pub(super) fn of(&self, image: ArrayView1<f64>, shape: [usize; 3], scale: f64) -> Vec<f64> {
        let [channels, height, width] = shape;
        let pixels = height * width;
        let mut planes = vec![vec![0.0; pixels]; if *self == ImageEdges::Gray { 1 } else { channels }];
        let share = scale / if *self == ImageEdges::Gray { channels as f64 } else { 1.0 };
        let count = planes.len();
        for (feature, value) in image.iter().enumerate() {
            planes[(feature / pixels) % count][feature % pixels] += share * value;
        }
        let mut squares = vec![0.0; pixels];
        for plane in &planes {
            for (sum, (below, right)) in squares.iter_mut().zip(differences(plane, width)) {
                *sum += below * below + right * right;
            }
        }
        squares.into_iter().map(f64::sqrt).collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn forward_differences_that_end_at_the_border() {
        // 1 2
        // 4 8
        assert_eq!(map_edges(&[1.0, 2.0, 4.0, 8.0], 2), [4.0, 6.0, 4.0, 0.0]);
        // One row: nothing below.
        assert_eq!(map_edges(&[1.0, 2.0, 5.0], 3), [1.0, 3.0, 0.0]);
    }

    #[test]
    fn colours_equally_bright_have_edges_in_all_channels_only() {
        let image = array![0.0, 3.0, 3.0, 0.0];
        assert_eq!(ImageEdges::Gray.of(image.view(), [2, 1, 2], 1.0), [0.0, 0.0]);
        let both = ImageEdges::AllChannels.of(image.view(), [2, 1, 2], 0.5);
        assert!((both[0] - 0.5 * 18.0_f64.sqrt()).abs() < 1e-15 && both[1] == 0.0);
    }
}
