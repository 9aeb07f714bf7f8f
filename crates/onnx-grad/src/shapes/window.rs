//! The geometry of sliding windows: convolutions and pools.
//!
//! Along one axis of size `n`, a window of `k` taps spaced by `d` and moved by `s`, with `a` and `b`
//! rows of padding before and after, has `floor((n + a + b - d (k - 1) - 1) / s) + 1` places
//! (`ceil` instead of `floor` in `ceil_mode`, except for a place that would start in the padding behind).

use crate::error::{Error, Result};
use crate::graph::{Dim, Node};

/// Kernel, strides, dilations and padding of a node, one entry for every spatial axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    pub(crate) kernel: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
    /// Padding before each axis.
    pub(crate) before: Vec<i64>,
    /// Padding after each axis.
    pub(crate) after: Vec<i64>,
    pub(crate) ceil: bool,
    auto_pad: AutoPad,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum AutoPad {
    NotSet,
    Upper,
    Lower,
    Valid,
}

impl Window {
    /// Reads a node's attributes; `kernel` is the weight's spatial shape where the node has weights.
    pub(crate) fn of(node: &Node, kernel: Option<Vec<i64>>) -> Result<Window> {
        let malformed = |reason: String| Error::Node { node: node.label(), reason };
        let kernel = match node.ints("kernel_shape").map(<[i64]>::to_vec).or(kernel) {
            Some(kernel) => kernel,
            None => return Err(malformed("it has no kernel_shape".into())),
        };
        let rank = kernel.len();
        let list = |name: &str, default: i64, len: usize| -> Result<Vec<i64>> {
            match node.ints(name) {
                None => Ok(vec![default; len]),
                Some(values) if values.len() == len => Ok(values.to_vec()),
                Some(values) => Err(malformed(format!("{name} {values:?} does not fit kernel {kernel:?}"))),
            }
        };
        let strides = list("strides", 1, rank)?;
        let dilations = list("dilations", 1, rank)?;
        let pads = list("pads", 0, 2 * rank)?;
        // The bound keeps products of sizes within an i64.
        let sane = |values: &[i64]| values.iter().all(|v| (1..1 << 20).contains(v));
        if !sane(&kernel)
            || !sane(&strides)
            || !sane(&dilations)
            || pads.iter().any(|p| !(-(1 << 20)..1 << 20).contains(p))
        {
            return Err(malformed("kernel, strides and dilations must be positive".into()));
        }
        let auto_pad = match node.string("auto_pad", "NOTSET") {
            "NOTSET" | "" => AutoPad::NotSet,
            "SAME_UPPER" => AutoPad::Upper,
            "SAME_LOWER" => AutoPad::Lower,
            "VALID" => AutoPad::Valid,
            other => return Err(malformed(format!("auto_pad '{other}' is not known"))),
        };
        let (before, after) = match auto_pad {
            AutoPad::NotSet => (pads[..rank].to_vec(), pads[rank..].to_vec()),
            _ => (vec![0; rank], vec![0; rank]),
        };
        let ceil = node.int("ceil_mode", 0) != 0;
        Ok(Window { kernel, strides, dilations, before, after, ceil, auto_pad })
    }

    /// Whether the padding is left to be worked out.
    pub(crate) fn is_automatic(&self) -> bool {
        self.auto_pad != AutoPad::NotSet
    }

    /// The window through which a convolution without strides is undone: that of a convolution from places back to
    /// sizes. None where there are strides, or more padding than the kernel reaches.
    pub(crate) fn back(&self) -> Option<Window> {
        let mut back = self.clone();
        for i in 0..self.rank() {
            let room = self.extent(i) - 1;
            let fits = |pad: i64| (0..=room).contains(&pad);
            if self.strides[i] != 1 || !fits(self.before[i]) || !fits(self.after[i]) {
                return None;
            }
            (back.before[i], back.after[i]) = (room - self.before[i], room - self.after[i]);
        }
        Some(back)
    }

    /// Padding before all axes, then after all axes, as the attribute has it.
    pub(crate) fn pads(&self) -> Vec<i64> {
        self.before.iter().chain(&self.after).copied().collect()
    }

    /// The number of spatial axes.
    pub(crate) fn rank(&self) -> usize {
        self.kernel.len()
    }

    /// From the first tap to the last, inclusive.
    pub(crate) fn extent(&self, axis: usize) -> i64 {
        self.dilations[axis] * (self.kernel[axis] - 1) + 1
    }

    /// The window with `auto_pad` worked out for these sizes; `None` where a size is needed and unknown.
    pub(crate) fn resolved(&self, sizes: &[Dim]) -> Option<Window> {
        let mut window = self.clone();
        window.auto_pad = AutoPad::NotSet;
        if matches!(self.auto_pad, AutoPad::Upper | AutoPad::Lower) {
            for axis in 0..self.rank() {
                let stride = self.strides[axis];
                let total = match sizes.get(axis)? {
                    Dim::Known(n) => {
                        let places = (n + stride - 1) / stride;
                        ((places - 1) * stride + self.extent(axis) - n).max(0)
                    }
                    // Without a stride, the padding does not depend on the size.
                    _ if stride == 1 => self.extent(axis) - 1,
                    _ => return None,
                };
                let small = total / 2;
                let (before, after) = match self.auto_pad {
                    AutoPad::Upper => (small, total - small),
                    _ => (total - small, small),
                };
                window.before[axis] = before;
                window.after[axis] = after;
            }
        }
        Some(window)
    }

    /// How many places the window has along `axis` of an input of this size.
    pub(crate) fn places(&self, axis: usize, size: &Dim) -> Dim {
        let stride = self.strides[axis];
        let room = self.before[axis] + self.after[axis] - self.extent(axis);
        match size {
            Dim::Known(n) => {
                let span = n + room;
                let mut places = if self.ceil {
                    (span + stride - 1).div_euclid(stride) + 1
                } else {
                    span.div_euclid(stride) + 1
                };
                if self.ceil && (places - 1) * stride >= n + self.before[axis] {
                    places -= 1;
                }
                Dim::Known(places)
            }
            // A convolution that keeps its size keeps a symbol too.
            symbol if stride == 1 && room == -1 => symbol.clone(),
            _ => Dim::Unknown,
        }
    }

    /// The size of a transposed convolution's output.
    pub(crate) fn transposed_size(&self, axis: usize, size: &Dim, output_padding: i64) -> Dim {
        match size {
            Dim::Known(n) => Dim::Known(
                ((n - 1) * self.strides[axis] + self.extent(axis) - self.before[axis] - self.after[axis])
                    .saturating_add(output_padding),
            ),
            _ => Dim::Unknown,
        }
    }

    /// Whether windows tile the input: neither overlap nor gaps nor padding.
    pub(crate) fn tiles(&self, sizes: &[Dim]) -> bool {
        (0..self.rank()).all(|i| {
            self.kernel[i] == self.strides[i]
                && self.dilations[i] == 1
                && self.before[i] == 0
                && self.after[i] == 0
                && sizes.get(i).and_then(Dim::known).is_some_and(|n| n % self.kernel[i] == 0)
        })
    }
}
