//! Images at the size of a screen: blocks of pixels as one.
//!
//! A page shows the whole of an image in a few hundred pixels. Pictures of more than 256 pixels on a side are shown by
//! blocks, and stills of a path, of which there are many, by blocks of twice the size from 128 pixels on. A block
//! of states is their mean; a block of credit is its sum, so that sums stay what they were.

use ndarray::{Array1, ArrayView1};

/// The longest side of a picture on a page.
const PAGE: usize = 256;
/// The longest side of a still.
const STILL: usize = 128;

/// How an image is made smaller: `factor` pixels each way become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduction {
    shape: [usize; 3],
    factor: usize,
}

impl Reduction {
    /// That of pictures of inputs of this shape; nothing where they are small enough, or no images.
    pub fn of_page(shape: &[usize]) -> Option<Reduction> {
        let &[channels, height, width] = shape else { return None };
        let factor = height.max(width).div_ceil(PAGE);
        (factor > 1).then_some(Reduction { shape: [channels, height, width], factor })
    }

    /// That of stills of inputs of this shape.
    pub fn of_stills(shape: &[usize]) -> Option<Reduction> {
        let &[channels, height, width] = shape else { return None };
        let factor = Self::of_page(shape).map_or(1, |page| page.factor);
        let shape = [channels, height, width];
        (height.max(width) > STILL).then_some(Reduction { shape, factor: 2 * factor })
    }

    /// The shape of what is left.
    pub fn shape(&self) -> [usize; 3] {
        let [channels, height, width] = self.shape;
        [channels, height.div_ceil(self.factor), width.div_ceil(self.factor)]
    }

    /// The sum of every block.
    pub fn sums(&self, values: ArrayView1<f64>) -> Array1<f64> {
        self.blocks(values, false)
    }

    /// The mean of every block.
    pub fn means(&self, values: ArrayView1<f64>) -> Array1<f64> {
        self.blocks(values, true)
    }

    fn blocks(&self, values: ArrayView1<f64>, mean: bool) -> Array1<f64> {
        let ([channels, height, width], [_, rows, columns]) = (self.shape, self.shape());
        let mut found = Array1::zeros(channels * rows * columns);
        for (i, value) in values.iter().enumerate().take(channels * height * width) {
            let (plane, y, x) = (i / (height * width), i / width % height, i % width);
            let (row, column) = (y / self.factor, x / self.factor);
            let size = |at: usize, all: usize| self.factor.min(all - at * self.factor);
            let count = if mean { (size(row, height) * size(column, width)) as f64 } else { 1.0 };
            found[(plane * rows + row) * columns + column] += value / count;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_images_and_tables_stay_as_they_are() {
        assert_eq!(Reduction::of_page(&[3, 256, 200]), None);
        assert_eq!(Reduction::of_stills(&[3, 128, 128]), None);
        assert_eq!(Reduction::of_stills(&[100_000]), None);
        assert_eq!(Reduction::of_page(&[3, 1024, 1000]).unwrap().shape(), [3, 256, 250]);
        assert_eq!(Reduction::of_stills(&[3, 1024, 1000]).unwrap().shape(), [3, 128, 125]);
        // A still has half the pixels of the picture each way, rounded up.
        for side in [129, 200, 257, 511, 513, 1023] {
            let page = Reduction::of_page(&[1, side, side]).map_or(side, |page| page.shape()[1]);
            assert_eq!(
                Reduction::of_stills(&[1, side, side]).unwrap().shape()[1],
                page.div_ceil(2),
                "{side}"
            );
        }
    }

    #[test]
    fn sums_are_kept_and_a_plain_image_stays_plain() {
        let reduction = Reduction { shape: [2, 5, 7], factor: 3 };
        let values = Array1::from_shape_fn(70, |i| (i as f64 * 0.37).sin());
        let found = reduction.sums(values.view());
        assert_eq!(found.len(), 2 * 2 * 3);
        assert!((found.sum() - values.sum()).abs() < 1e-12);
        let first: f64 = [0, 1, 2, 7, 8, 9, 14, 15, 16].iter().map(|&i: &usize| values[i]).sum();
        assert!((found[0] - first).abs() < 1e-12);
        let plain = reduction.means(Array1::from_elem(70, 0.5).view());
        assert!(plain.iter().all(|v| (v - 0.5).abs() < 1e-12));
    }
}
