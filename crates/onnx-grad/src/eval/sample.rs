//! Pixels at places that another tensor names, and patches laid over one another.

use super::Array;
use super::call::Call;
use crate::error::Result;

/// `GridSample` of images, interpolated linearly or by the nearest pixel.
pub(super) fn grid_sample(call: &Call) -> Result<Array> {
    let (x, grid) = (call.input(0)?, call.input(1)?);
    let (&[n, channels, height, width], &[rows_n, rows, columns, 2]) = (x.shape(), grid.shape()) else {
        return Err(call.unsupported("only grids of images [N, H, W, 2] are evaluated"));
    };
    let (mode, padding) = (call.node.string("mode", "linear"), call.node.string("padding_mode", "zeros"));
    let linear = ["linear", "bilinear"].contains(&mode);
    if !linear && mode != "nearest" || !["zeros", "border"].contains(&padding) {
        return Err(call.unsupported(format!("mode {mode} with padding {padding} is not evaluated")));
    }
    if n != rows_n {
        return Err(call.malformed(format!("{n} images and {rows_n} grids")));
    }
    let corners = call.node.int("align_corners", 0) != 0;
    let pixel = |g: f64, size: usize| {
        let size = size as f64;
        let at = if corners { (g + 1.0) / 2.0 * (size - 1.0) } else { ((g + 1.0) * size - 1.0) / 2.0 };
        if padding == "border" { at.clamp(0.0, (size - 1.0).max(0.0)) } else { at }
    };
    let shape = [n, channels, rows, columns];
    let mut out = Vec::with_capacity(call.room(&shape)?);
    let (values, places) = (x.values(), grid.values());
    for image in 0..n {
        for channel in 0..channels {
            let at = |px: f64, py: f64| {
                let inside = px >= 0.0 && py >= 0.0 && px < width as f64 && py < height as f64;
                let place = || ((image * channels + channel) * height + py as usize) * width + px as usize;
                if inside { values[place()] } else { 0.0 }
            };
            for place in 0..rows * columns {
                let g = (image * rows * columns + place) * 2;
                let (px, py) = (pixel(places[g], width), pixel(places[g + 1], height));
                out.push(if linear {
                    let (x0, y0) = (px.floor(), py.floor());
                    let (right, below) = (px - x0, py - y0);
                    at(x0, y0) * (1.0 - right) * (1.0 - below)
                        + at(x0 + 1.0, y0) * right * (1.0 - below)
                        + at(x0, y0 + 1.0) * (1.0 - right) * below
                        + at(x0 + 1.0, y0 + 1.0) * right * below
                } else {
                    at(px.round_ties_even(), py.round_ties_even())
                });
            }
        }
    }
    call.array(x.dtype, &shape, out)
}

/// `Col2Im`: every patch is added where it was taken from.
pub(super) fn col2im(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let (image, block) = (call.sizes(&call.ints(1)?)?, call.sizes(&call.ints(2)?)?);
    let axes = image.len();
    let each = |name: &str, default: i64, count: usize| {
        call.node.ints(name).map_or_else(|| vec![default; count], <[i64]>::to_vec)
    };
    let (strides, dilations, pads) =
        (each("strides", 1, axes), each("dilations", 1, axes), each("pads", 0, 2 * axes));
    let patch: usize = block.iter().product();
    let &[batch, rows, count] = x.shape() else {
        return Err(call.malformed(format!("patches of shape {:?}", x.shape())));
    };
    let fits =
        block.len() == axes && strides.len() == axes && dilations.len() == axes && pads.len() == 2 * axes;
    if !fits || patch == 0 || rows % patch != 0 || strides.iter().any(|&stride| stride < 1) {
        return Err(call.malformed(format!("blocks of {block:?} of images of {image:?}")));
    }
    let steps: Vec<i64> = (0..axes)
        .map(|a| {
            let reach = dilations[a] * (block[a] as i64 - 1) + 1;
            (image[a] as i64 + pads[a] + pads[axes + a] - reach).div_euclid(strides[a]) + 1
        })
        .collect();
    if steps.iter().any(|&step| step < 1) || steps.iter().product::<i64>() != count as i64 {
        return Err(call.malformed(format!("{count} patches do not make steps of {steps:?}")));
    }
    let channels = rows / patch;
    let mut shape = vec![batch, channels];
    shape.extend(&image);
    let mut out = vec![0.0; call.room(&shape)?];
    let whole: usize = image.iter().product();
    let values = x.values();
    for n in 0..batch {
        for row in 0..rows {
            for place in 0..count {
                let (mut within, mut step, mut at, mut scale, mut inside) = (row % patch, place, 0, 1, true);
                for a in (0..axes).rev() {
                    let (k, s) = ((within % block[a]) as i64, step as i64 % steps[a]);
                    within /= block[a];
                    step /= steps[a] as usize;
                    let pixel = s * strides[a] + k * dilations[a] - pads[a];
                    inside &= (0..image[a] as i64).contains(&pixel);
                    at += if inside { pixel as usize * scale } else { 0 };
                    scale *= image[a];
                }
                if inside {
                    out[(n * channels + row / patch) * whole + at] +=
                        values[(n * rows + row) * count + place];
                }
            }
        }
    }
    call.array(x.dtype, &shape, out)
}
