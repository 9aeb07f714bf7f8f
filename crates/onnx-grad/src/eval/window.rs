//! Sliding windows, as convolution and pooling share them.

use super::call::Call;
use super::walk::{Walk, offset, strides};
use crate::error::Result;
use crate::graph::Node;

/// A window of `kernel` positions, `dilations` apart, sliding in `strides` over padded `input` axes.
pub(super) struct Windows {
    pub(super) kernel: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    pub(super) begin: Vec<usize>,
    pub(super) end: Vec<usize>,
    pub(super) input: Vec<usize>,
    pub(super) output: Vec<usize>,
}

/// One number per spatial axis, at least `least`; `default` where the attribute is left out.
pub(super) fn per_axis(
    call: &Call,
    name: &str,
    axes: usize,
    default: usize,
    least: usize,
) -> Result<Vec<usize>> {
    let Some(given) = call.node.ints(name) else {
        return Ok(vec![default; axes]);
    };
    let values = call.sizes(given)?;
    // Sizes beyond any tensor would overflow the arithmetic on them.
    if values.len() != axes || values.iter().any(|&v| v < least || v > 1 << 30) {
        return Err(call.malformed(format!("{name} is {given:?} for {axes} spatial axes")));
    }
    Ok(values)
}

/// Whether padding is to be chosen so that output sizes follow from strides; `Some(true)` for
/// `SAME_UPPER`, which puts an odd element at the end.
pub(super) fn same_padding(node: &Node) -> Option<bool> {
    match node.string("auto_pad", "NOTSET") {
        "SAME_UPPER" => Some(true),
        "SAME_LOWER" => Some(false),
        _ => None,
    }
}

/// The padding attribute as begins and ends.
pub(super) fn pads(call: &Call, axes: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    if call.node.string("auto_pad", "NOTSET") == "VALID" {
        return Ok((vec![0; axes], vec![0; axes]));
    }
    let mut begin = per_axis(call, "pads", 2 * axes, 0, 0)?;
    let end = begin.split_off(axes);
    Ok((begin, end))
}

/// The distance from a window's first to behind its last position.
pub(super) fn extent(kernel: usize, dilation: usize) -> usize {
    (kernel - 1) * dilation + 1
}

impl Windows {
    /// The windows that a node's attributes describe.
    pub(super) fn new(call: &Call, input: &[usize], kernel: Vec<usize>) -> Result<Windows> {
        let axes = input.len();
        if kernel.len() != axes || kernel.iter().any(|&k| k == 0 || k > 1 << 30) {
            return Err(call.malformed(format!("a kernel of shape {kernel:?} for {axes} spatial axes")));
        }
        let strides = per_axis(call, "strides", axes, 1, 1)?;
        let dilations = per_axis(call, "dilations", axes, 1, 1)?;
        let (mut begin, mut end) = pads(call, axes)?;
        let ceil = call.node.int("ceil_mode", 0) != 0;
        let mut output = Vec::with_capacity(axes);
        for i in 0..axes {
            let extent = extent(kernel[i], dilations[i]);
            if let Some(upper) = same_padding(call.node) {
                let size = input[i].div_ceil(strides[i]);
                let total = (size.saturating_sub(1) * strides[i] + extent).saturating_sub(input[i]);
                (begin[i], end[i]) = (total / 2, total - total / 2);
                if !upper {
                    (begin[i], end[i]) = (end[i], begin[i]);
                }
                output.push(size);
                continue;
            }
            let padded = input[i] + begin[i] + end[i];
            let room = padded.checked_sub(extent).ok_or_else(|| {
                call.malformed(format!("a window of {extent} does not fit the padded axis of {padded}"))
            })?;
            let mut size = if ceil { room.div_ceil(strides[i]) } else { room / strides[i] } + 1;
            // A window must not start behind the input.
            if ceil && (size - 1) * strides[i] >= input[i] + begin[i] {
                size -= 1;
            }
            output.push(size);
        }
        call.work(&[call.room(&output)?, call.room(&kernel)?])?;
        Ok(Windows { kernel, strides, dilations, begin, end, input: input.to_vec(), output })
    }

    /// Calls `f` for every window with its number and its positions inside the input: pairs of flat
    /// offsets into the input's and the kernel's spatial axes.
    pub(super) fn each(&self, mut f: impl FnMut(usize, &[(usize, usize)])) {
        let steps = strides(&self.input);
        let mut taps = Vec::new();
        let mut place = vec![0; self.input.len()];
        let mut number = 0;
        let mut windows = Walk::new(&self.output);
        while let Some(window) = windows.step() {
            taps.clear();
            let mut cells = Walk::new(&self.kernel);
            let mut cell_number = 0;
            while let Some(cell) = cells.step() {
                let inside = (0..cell.len()).all(|i| {
                    let padded = window[i] * self.strides[i] + cell[i] * self.dilations[i];
                    place[i] = padded.wrapping_sub(self.begin[i]);
                    padded >= self.begin[i] && place[i] < self.input[i]
                });
                if inside {
                    taps.push((offset(&place, &steps), cell_number));
                }
                cell_number += 1;
            }
            f(number, &taps);
            number += 1;
        }
    }

    /// How many positions of each window lie in the padded input.
    pub(super) fn padded_counts(&self) -> Vec<usize> {
        let mut counts = Vec::new();
        let mut windows = Walk::new(&self.output);
        while let Some(window) = windows.step() {
            let along = |i: usize| {
                let bound = self.input[i] + self.begin[i] + self.end[i];
                let at = |k: usize| window[i] * self.strides[i] + k * self.dilations[i];
                (0..self.kernel[i]).filter(|&k| at(k) < bound).count()
            };
            counts.push((0..window.len()).map(along).product());
        }
        counts
    }
}
