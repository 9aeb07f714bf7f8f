//! `GridSample` of images: the four pixels around each place, gathered and weighted.
//!
//! ```text
//! y = sum over corners of x[corner] (1 - |px - cx|) (1 - |py - cy|)
//! ```
//!
//! Which pixels are gathered is piecewise constant in the grid; their weights are linear in it, so its gradient goes through
//! them, as PyTorch has it.

use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::{Dim, Node};
use crate::tensor::DType;

/// One coordinate of all places, in pixels.
struct Along {
    /// Where to look, `[N, H, W]`.
    at: Value,
    /// The last pixel.
    last: i64,
}

pub(super) fn grid_sample(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (Some(x), Some(grid)) = (node.input(0), node.input(1)) else { return Ok(None) };
    let known = |shape: &[Dim]| -> Option<Vec<i64>> { shape.iter().skip(1).map(Dim::known).collect() };
    let (Some(from), Some(to)) = (b.shape(x).and_then(known), b.shape(grid).and_then(known)) else {
        return Ok(None);
    };
    let (&[channels, height, width], &[rows, columns, 2]) = (&from[..], &to[..]) else { return Ok(None) };
    let border = node.string("padding_mode", "zeros") == "border";
    let nearest = node.string("mode", "linear") == "nearest";
    if !covered(node) || height < 1 || width < 1 {
        return Ok(None);
    }
    let corners = node.int("align_corners", 0) != 0;
    let mut along = Vec::with_capacity(2);
    for (part, size) in [(0, width), (1, height)] {
        let whole = b.slice(grid, 3, part, part + 1, 1);
        let whole = b.reshape(&whole, &[0, rows, columns]);
        // From -1..1 to pixels.
        let scaled = if corners {
            let half = b.scale(&whole, (size - 1) as f64 / 2.0);
            b.shift(&half, (size - 1) as f64 / 2.0)
        } else {
            let half = b.scale(&whole, size as f64 / 2.0);
            b.shift(&half, (size - 1) as f64 / 2.0)
        };
        let at = if border { clipped(b, &scaled, size - 1) } else { scaled };
        along.push(Along { at, last: size - 1 });
    }
    let flat = b.reshape(x, &[0, channels, height * width]);
    let places = rows * columns;
    let mut sum: Option<Value> = None;
    if nearest {
        let [px, py] = [&along[0], &along[1]].map(|axis| b.op("Round", &[&axis.at]));
        let (pixels, inside) = gathered(b, &flat, [&px, &py], &along, [channels, width, places]);
        let inside = b.reshape(&inside, &[0, 1, places]);
        sum = Some(b.mul(&pixels, &inside));
    } else {
        let [low_x, low_y] = [&along[0], &along[1]].map(|axis| b.op("Floor", &[&axis.at]));
        let (high_x, high_y) = (b.shift(&low_x, 1.0), b.shift(&low_y, 1.0));
        let (right, below) = (b.sub(&along[0].at, &low_x), b.sub(&along[1].at, &low_y));
        let (left, above) = (b.rsub(1.0, &right), b.rsub(1.0, &below));
        let corners = [
            (&low_x, &low_y, &left, &above),
            (&high_x, &low_y, &right, &above),
            (&low_x, &high_y, &left, &below),
            (&high_x, &high_y, &right, &below),
        ];
        for (px, py, wx, wy) in corners {
            let (pixels, inside) = gathered(b, &flat, [px, py], &along, [channels, width, places]);
            let weight = b.mul(wx, wy);
            let weight = b.mul(&weight, &inside);
            let weight = b.reshape(&weight, &[0, 1, places]);
            let part = b.mul(&pixels, &weight);
            sum = Some(match sum {
                Some(sum) => b.add(&sum, &part),
                None => part,
            });
        }
    }
    Ok(sum.map(|sum| b.reshape(&sum, &[0, channels, rows, columns])))
}

/// Whether the mode and the padding are those that are spelled out.
pub(crate) fn covered(node: &Node) -> bool {
    ["linear", "bilinear", "nearest"].contains(&node.string("mode", "linear"))
        && ["zeros", "border"].contains(&node.string("padding_mode", "zeros"))
}

fn clipped(b: &mut Builder, value: &str, last: i64) -> Value {
    let (low, high) = (b.scalar_like(value, 0.0), b.scalar_like(value, last as f64));
    b.op("Clip", &[value, &low, &high])
}

/// The pixels at whole places, `[N, C, places]`, and 1 where a place is inside, `[N, H, W]`.
fn gathered(
    b: &mut Builder,
    flat: &str,
    [px, py]: [&str; 2],
    along: &[Along],
    [channels, width, places]: [i64; 3],
) -> (Value, Value) {
    let (cx, cy) = (clipped(b, px, along[0].last), clipped(b, py, along[1].last));
    let dtype = b.fact(px).dtype.unwrap_or(DType::F32);
    let [in_x, in_y] = [(px, &cx), (py, &cy)].map(|(at, kept)| b.op("Equal", &[at, kept]));
    let inside = b.op("And", &[&in_x, &in_y]);
    let inside = b.cast(&inside, dtype);
    let row = b.scale(&cy, width as f64);
    let index = b.add(&row, &cx);
    let index = b.cast(&index, DType::I64);
    let index = b.reshape(&index, &[0, 1, places]);
    let wide = b.ints(&[1, channels, 1]);
    let index = b.op("Expand", &[&index, &wide]);
    (b.op_with("GatherElements", &[flat, &index], &[("axis", 2i64.into())]), inside)
}
