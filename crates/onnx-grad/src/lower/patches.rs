//! `Col2Im`: patches laid over one another are a transposed convolution whose kernels have a single 1.

use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;
use crate::tensor::{DType, TensorData};

/// More kernels than this are not written into a graph.
const MAX_KERNELS: i64 = 1 << 22;

pub(super) fn col2im(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some(x) = node.input(0) else { return Ok(None) };
    let content = |b: &Builder, i: usize| node.input(i).and_then(|name| b.fact(name).known_content());
    let (Some(image), Some(block)) = (content(b, 1), content(b, 2)) else { return Ok(None) };
    let rows = b.shape(x).filter(|shape| shape.len() == 3).and_then(|shape| shape[1].known());
    let axes = image.len();
    if block.len() != axes || image.iter().chain(&block).any(|&n| !(1..1 << 20).contains(&n)) {
        return Ok(None);
    }
    let each = |name: &str, default: i64, count: usize| {
        node.ints(name).map_or_else(|| vec![default; count], <[i64]>::to_vec)
    };
    let (strides, dilations, pads) =
        (each("strides", 1, axes), each("dilations", 1, axes), each("pads", 0, 2 * axes));
    let patch: i64 = block.iter().product();
    let Some(channels) = rows.filter(|rows| *rows > 0 && rows % patch == 0).map(|rows| rows / patch) else {
        return Ok(None);
    };
    if strides.len() != axes
        || dilations.len() != axes
        || pads.len() != 2 * axes
        || strides.iter().any(|&s| s < 1)
    {
        return Ok(None);
    }
    if channels.checked_mul(patch * patch).is_none_or(|kernels| kernels > MAX_KERNELS) {
        return Ok(None);
    }
    // How many patches there are along each axis, and what is left at its end.
    let mut steps = Vec::with_capacity(axes);
    let mut rest = Vec::with_capacity(axes);
    for axis in 0..axes {
        let reach = dilations[axis] * (block[axis] - 1) + 1;
        let room = image[axis] + pads[axis] + pads[axes + axis] - reach;
        if room < 0 {
            return Ok(None);
        }
        steps.push(room / strides[axis] + 1);
        rest.push(room % strides[axis]);
    }
    let mut kernels = vec![0.0; (channels * patch * patch) as usize];
    for row in 0..channels * patch {
        kernels[(row * patch + row % patch) as usize] = 1.0;
    }
    let mut shape = vec![(channels * patch) as usize, 1];
    shape.extend(block.iter().map(|&n| n as usize));
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let kernels = b.constant(TensorData::from_f64(dtype, &shape, &kernels));
    let mut apart = vec![0, channels * patch];
    apart.extend(&steps);
    let maps = b.reshape(x, &apart);
    // What is left is cut off again where padding reaches further than the image.
    let attributes = [
        ("strides", strides.into()),
        ("dilations", dilations.into()),
        ("pads", pads.into()),
        ("output_padding", rest.into()),
        ("kernel_shape", block.into()),
        ("group", channels.into()),
    ];
    Ok(Some(b.op_with("ConvTranspose", &[&maps, &kernels], &attributes)))
}
