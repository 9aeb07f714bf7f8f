//! Images side by side in planes, so that a tap of a convolution is a distance.
//!
//! A plane holds one channel of several images, side by side like pictures of a strip. Zeros between them are the padding
//! of both neighbours, and the rows above and below the padding of all:
//!
//! ```text
//! place of (image n, row r, column c) = r wide + n step + c,      step = W + padding,  wide = images step
//! ```
//!
//! The tap `(a, b)` of a kernel sees the strip moved by `a wide + b` places, whatever the place: no window has to be
//! copied, no edge treated apart. What stands between images is computed as well and not used: for kernels of 3x3 one
//! place in 33 with images of 32x32, one in 9 with images of 8x8.

use std::ops::Range;

/// Elements in reach behind the last place, for vectors of any machine: three of 16.
const SLACK: usize = 64;

/// Places of a plane, unless a single image has more: channels of a layer then fit into a core's second cache.
const PLACES: usize = 600;

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

/// Which way the kernel is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Direction {
    /// `w` is `[out, in, ..]`.
    Forward,
    /// `w` is `[in, out, ..]`, and its taps come in the opposite order.
    Backward,
}

/// How images of one size lie in a plane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    window: Window,
    /// Height and width of an image without its padding.
    size: [usize; 2],
    /// Height and width of the result.
    pub(super) places: [usize; 2],
    /// How many images a plane holds.
    pub(super) images: usize,
    /// Places from one image to the next.
    step: usize,
    /// Places from one row to the next.
    wide: usize,
}

impl Grid {
    /// The grid for so many images of this size, where the window fits: as many in a plane as a core has at hand, shared out
    /// evenly.
    pub(super) fn new(window: &Window, size: [usize; 2], rows: usize) -> Option<Grid> {
        let places = window.places(size)?;
        // Room for zeros on either side, and for the result.
        let step = (size[1] + window.before[1].max(window.after[1])).max(places[1]);
        let most = (PLACES / (places[0] * step)).max(1);
        let images = rows.div_ceil(rows.div_ceil(most).max(1)).max(1);
        Some(Grid { window: *window, size, places, images, step, wide: images * step })
    }

    /// Places from the first to the last of the results, for so many of the images.
    pub(super) fn span(&self, images: usize) -> usize {
        (self.places[0] - 1) * self.wide + (images - 1) * self.step + self.places[1]
    }

    /// The length of a plane.
    pub(super) fn length(&self) -> usize {
        let rows = (self.size[0] + self.window.before[0]).max(self.places[0] + self.window.reach(0));
        rows * self.wide + self.window.before[1] + self.window.reach(1) + SLACK
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
        let first = image * self.step + top * wide + left;
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
    data: Vec<f32>,
}

impl Planes {
    /// Planes for this grid. Kept as they are where they were made for the same.
    pub(super) fn prepare(&mut self, grid: &Grid, channels: usize) {
        let count = channels * grid.length() + SLACK;
        if self.grid.as_ref() == Some(grid) && self.data.len() == count {
            return;
        }
        *self = Planes { grid: Some(grid.clone()), data: vec![0.0; count] };
    }

    /// Fills in one side of some images, `[images, channels, height, width]`.
    pub(super) fn fill(&mut self, side: Side, images: &[f32], channels: usize) {
        let Planes { grid: Some(grid), data } = self else { return };
        let ([height, width], length) = (grid.size(side), grid.length());
        for (i, from) in images.chunks_exact(height * width).enumerate() {
            let plane = &mut data[i % channels * length..][..length];
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

/// Results out of planes, to `[images, channels, height, width]`, with a number added for each channel.
pub(super) fn take_results(
    planes: &[f32],
    grid: &Grid,
    channels: usize,
    bias: Option<&[f32]>,
    images: &mut [f32],
) {
    let (area, length) = (grid.places[0] * grid.places[1], grid.length());
    for (i, to) in images.chunks_exact_mut(area).enumerate() {
        let (image, channel) = (i / channels, i % channels);
        let plane = &planes[channel * length..][..length];
        let shift = bias.map_or(0.0, |bias| bias[channel]);
        for (from, row) in grid.rows(Side::Result, image).zip(to.chunks_exact_mut(grid.places[1])) {
            row.iter_mut().zip(&plane[from]).for_each(|(to, from)| *to = from + shift);
        }
    }
}
