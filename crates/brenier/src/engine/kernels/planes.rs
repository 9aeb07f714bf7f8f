//! Images side by side in planes, so that a tap of a convolution is a distance.
//!
//! A plane holds one channel of several images. Zeros between rows and between images are the padding of both
//! neighbours:
//!
//! ```text
//! place of (image n, row r, column c) = (n tall + r) wide + c,      wide = W + padding,  tall = H + padding
//! ```
//!
//! The tap `(a, b)` of a kernel sees the image moved by `a wide + b` places, whatever the place: no window has to be
//! copied, no edge treated apart. What stands between rows is computed as well and not used, 3 % of all places for
//! images of 32x32 and kernels of 3x3.

use std::ops::Range;

/// Elements in reach behind the last place, for vectors of any machine: three of 16.
const SLACK: usize = 64;

/// Places of a plane, unless a single image has more: channels of a layer then fit into a core's second cache.
const PLACES: usize = 1300;

/// Numbers that a kernel keeps between runs at most. Every node has a kernel: what large images need is given back, or a
/// network of many layers would hold it many times over.
pub(super) const KEPT: usize = 1 << 20;

/// Kernel, dilations and padding of a convolution that moves by single pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// Height and width of the kernel.
    pub(super) kernel: [usize; 2],
    /// How far taps are apart.
    pub(super) dilations: [usize; 2],
    /// Zeros before the first row and column.
    pub(super) before: [usize; 2],
    /// Zeros behind the last row and column.
    pub(super) after: [usize; 2],
}

impl Window {
    /// From the first to the last tap, along one axis.
    fn reach(&self, axis: usize) -> usize {
        self.dilations[axis] * (self.kernel[axis] - 1)
    }

    /// The size of the result, where the window fits.
    pub(super) fn places(&self, size: [usize; 2]) -> Option<[usize; 2]> {
        let along = |axis: usize| {
            let places =
                (size[axis] + self.before[axis] + self.after[axis] + 1).checked_sub(self.reach(axis) + 1)?;
            (places > 0).then_some(places)
        };
        Some([along(0)?, along(1)?])
    }

    /// The number of taps.
    pub(super) fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }
}

/// How images of one size lie in a plane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    window: Window,
    /// Height and width of an image without its padding.
    size: [usize; 2],
    /// Height and width of the result.
    pub(super) places: [usize; 2],
    wide: usize,
    /// Places from one image to the next.
    image: usize,
}

impl Grid {
    /// The grid for images of this size, where the window fits.
    pub(super) fn new(window: &Window, size: [usize; 2]) -> Option<Grid> {
        let places = window.places(size)?;
        // Room for zeros on either side, and for the result.
        let along = |i: usize| (size[i] + window.before[i].max(window.after[i])).max(places[i]);
        let (tall, wide) = (along(0), along(1));
        Some(Grid { window: *window, size, places, wide, image: tall * wide })
    }

    /// How many images go into a plane: as many as a core has at hand, shared out evenly.
    pub(super) fn images(&self, rows: usize) -> usize {
        let most = (PLACES / self.image).max(1);
        rows.div_ceil(rows.div_ceil(most).max(1)).max(1)
    }

    /// Places from the first to the last of a result, for so many images.
    pub(super) fn span(&self, images: usize) -> usize {
        (images - 1) * self.image + self.places[0] * self.wide
    }

    /// The length of a plane for so many images.
    pub(super) fn plane(&self, images: usize) -> usize {
        images * self.image + self.window.reach(0) * self.wide + self.window.reach(1) + SLACK
    }

    /// How far each tap is from the first.
    pub(super) fn offsets(&self) -> Vec<usize> {
        let Window { kernel, dilations, .. } = self.window;
        let row = |a: usize| (0..kernel[1]).map(move |b| a * dilations[0] * self.wide + b * dilations[1]);
        (0..kernel[0]).flat_map(row).collect()
    }

    /// Height and width of one side.
    fn size(&self, side: Side) -> [usize; 2] {
        match side {
            Side::Input => self.size,
            Side::Result => self.places,
        }
    }

    /// Where the rows of one side of an image are.
    fn rows(&self, side: Side, image: usize) -> impl Iterator<Item = Range<usize>> {
        let [top, left] = match side {
            Side::Input => self.window.before,
            Side::Result => [0, 0],
        };
        let ([height, width], wide) = (self.size(side), self.wide);
        let first = image * self.image + top * wide + left;
        (0..height).map(move |row| first + row * wide..first + row * wide + width)
    }
}

/// What a plane holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    /// What a convolution sees.
    Input,
    /// What it makes, or what has its shape: the gradient.
    Result,
}

/// Planes that are zero wherever nothing is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Planes {
    grid: Option<Grid>,
    length: usize,
    data: Vec<f32>,
}

impl Planes {
    /// Planes for this grid and so many images. Kept as they are where they were made for the same.
    pub(super) fn prepare(&mut self, grid: &Grid, images: usize, channels: usize) {
        let length = grid.plane(images);
        let count = channels * length + SLACK;
        if self.grid.as_ref() == Some(grid) && self.length == length && self.data.len() == count {
            return;
        }
        *self = Planes { grid: Some(grid.clone()), length, data: vec![0.0; count] };
    }

    /// Fills in one side of some images, `[images, channels, height, width]`.
    pub(super) fn fill(&mut self, side: Side, images: &[f32], channels: usize) {
        let Planes { grid: Some(grid), length, data } = self else { return };
        let [height, width] = grid.size(side);
        for (i, from) in images.chunks_exact(height * width).enumerate() {
            let plane = &mut data[i % channels * *length..][..*length];
            let rows = grid.rows(side, i / channels).zip(from.chunks_exact(width));
            rows.for_each(|(to, row)| plane[to].copy_from_slice(row));
        }
    }

    /// Gives memory back that is more than a kernel may keep.
    pub(super) fn give_back(&mut self) {
        if self.data.len() > KEPT {
            *self = Planes::default();
        }
    }

    /// The elements, a plane behind the other.
    pub(super) fn data(&self) -> &[f32] {
        &self.data
    }
}

/// Results out of planes of this length, to `[images, channels, height, width]`, with a number added for each channel.
pub(super) fn take_results(
    planes: &[f32],
    length: usize,
    grid: &Grid,
    channels: usize,
    bias: Option<&[f32]>,
    images: &mut [f32],
) {
    let area = grid.places[0] * grid.places[1];
    for (i, to) in images.chunks_exact_mut(area).enumerate() {
        let (image, channel) = (i / channels, i % channels);
        let plane = &planes[channel * length..][..length];
        let shift = bias.map_or(0.0, |bias| bias[channel]);
        for (from, row) in grid.rows(Side::Result, image).zip(to.chunks_exact_mut(grid.places[1])) {
            row.iter_mut().zip(&plane[from]).for_each(|(to, from)| *to = from + shift);
        }
    }
}
