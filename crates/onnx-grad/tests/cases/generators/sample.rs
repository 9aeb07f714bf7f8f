//! Operators that look at places, transforms of signals, and bodies that are written out.

use onnx_grad::{Attribute, Builder, DType, Graph, TensorData};

use super::super::{Case, Maker};

fn text(value: &str) -> Attribute {
    Attribute::String(value.to_string())
}

pub(super) fn grid_sample(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, channels) = (m.rng.size(1, 2), m.rng.size(1, 3));
    let (height, width) = (m.rng.size(1, 4), m.rng.size(2, 5));
    let (rows, columns) = (m.rng.size(1, 3), m.rng.size(1, 3));
    let mode = m.rng.pick(&["linear", "bilinear", "nearest"]);
    let attributes = [
        ("mode", text(mode)),
        ("padding_mode", text(m.rng.pick(&["zeros", "border"]))),
        ("align_corners", m.rng.int(0, 1).into()),
    ];
    let x = m.batched(&[n, channels, height, width]);
    // Which pixel is the nearest is piecewise constant.
    let places = [n, rows, columns, 2];
    let grid = if mode == "nearest" { m.constant(&places, -1.3, 1.3) } else { m.within(&places, -1.3, 1.3) };
    let y = m.op("GridSample", &[&x, &grid], &attributes);
    m.finish(&y)
}

pub(super) fn col2im(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let axes = m.rng.size(1, 2);
    let (mut image, mut block, mut strides, mut dilations, mut pads) =
        (vec![], vec![], vec![], vec![], vec![0; 2 * axes]);
    let mut count = 1;
    for axis in 0..axes {
        let (size, k, stride, dilation) =
            (m.rng.int(4, 6), m.rng.int(1, 2), m.rng.int(1, 2), m.rng.int(1, 2));
        (pads[axis], pads[axes + axis]) = (m.rng.int(0, 1), m.rng.int(0, 1));
        let reach = dilation * (k - 1) + 1;
        count *= (size + pads[axis] + pads[axes + axis] - reach) / stride + 1;
        image.push(size);
        block.push(k);
        strides.push(stride);
        dilations.push(dilation);
    }
    let patch: i64 = block.iter().product();
    let (n, channels) = (m.rng.size(1, 2), m.rng.size(1, 3));
    let x = m.batched(&[n, channels * patch as usize, count as usize]);
    let (image, block) = (m.b.ints(&image), m.b.ints(&block));
    let attributes = [("strides", strides.into()), ("dilations", dilations.into()), ("pads", pads.into())];
    let y = m.op("Col2Im", &[&x, &image, &block], &attributes);
    m.finish(&y)
}

pub(super) fn dft(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let parts = m.rng.size(1, 2);
    let inverse = m.rng.int(0, 1);
    let onesided = if inverse == 0 && parts == 1 { m.rng.int(0, 1) } else { 0 };
    let (n, given) = (m.rng.size(1, 3), m.rng.size(2, 6));
    let x = m.batched(&[n, given, parts]);
    let length = m.rng.pick(&[given as i64, 4, 7]);
    let length = m.b.constant(TensorData::from_f64(DType::I64, &[], &[length as f64]));
    let y = m.op(
        "DFT",
        &[&x, &length],
        &[("axis", 1i64.into()), ("inverse", inverse.into()), ("onesided", onesided.into())],
    );
    m.finish(&y)
}

pub(super) fn stft(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, samples) = (m.rng.size(1, 3), m.rng.size(9, 14));
    let (length, step) = (m.rng.size(3, 8), m.rng.int(1, 4));
    let x = m.batched(&[n, samples, 1]);
    let step = m.b.constant(TensorData::from_f64(DType::I64, &[], &[step as f64]));
    let onesided = [("onesided", m.rng.int(0, 1).into())];
    let y = if m.rng.coin() {
        let window = m.constant(&[length], 0.1, 1.0);
        m.op("STFT", &[&x, &step, &window], &onesided)
    } else {
        let length = m.b.constant(TensorData::from_f64(DType::I64, &[], &[length as f64]));
        m.op("STFT", &[&x, &step, "", &length], &onesided)
    };
    m.finish(&y)
}

/// `h -> tanh(h w)`, which ends after so many turns at the latest, or where its own condition says.
fn turn(ends_after: i64) -> Graph {
    let mut b = Builder::new("turn");
    let at = b.input("turn", DType::I64, &[]);
    let going = b.input("going", DType::Bool, &[]);
    let h = b.input("h", DType::F32, &["N".into(), 3usize.into()]);
    let w = b.parameter(
        "w",
        TensorData::from_f64(DType::F32, &[3, 3], &[0.5, -0.4, 0.3, 0.2, 0.6, -0.7, 0.1, -0.2, 0.8]),
    );
    let last = b.constant(TensorData::from_f64(DType::I64, &[], &[(ends_after - 1) as f64]));
    let below = b.op("Less", &[&at, &last]);
    let still = b.op("And", &[&below, &going]);
    let product = b.matmul(&h, &w);
    let next = b.op("Tanh", &[&product]);
    let square = b.mul(&next, &next);
    b.output("still", &still);
    b.output("next", &next);
    b.output("square", &square);
    b.finish().unwrap()
}

pub(super) fn repeated(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(1, 3);
    let x = m.batched(&[n, 3]);
    let (most, ends_after) = (m.rng.int(1, 4), m.rng.int(1, 4));
    let most = m.b.constant(TensorData::from_f64(DType::I64, &[], &[most as f64]));
    let going = m.b.constant(TensorData::from_f64(DType::Bool, &[], &[1.0]));
    let body = ("body", Attribute::Graph(Box::new(turn(ends_after))));
    let found = m.b.op_many("Loop", &[&most, &going, &x], &[body], 2);
    let sums = m.b.reduce_sum(&found[1], &[0], false);
    let y = m.b.add(&found[0], &sums);
    m.finish(&y)
}

pub(super) fn scanned(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let mut b = Builder::new("step");
    let (h, x) = (
        b.input("h", DType::F32, &["N".into(), 2usize.into()]),
        b.input("part", DType::F32, &["N".into(), 2usize.into()]),
    );
    let both = b.mul(&h, &x);
    let next = b.op("Tanh", &[&both]);
    let next = b.add(&next, &x);
    let square = b.mul(&next, &next);
    b.output("next", &next);
    b.output("square", &square);
    let body = Attribute::Graph(Box::new(b.finish().unwrap()));
    let (n, steps) = (m.rng.size(1, 3), m.rng.size(1, 4));
    let h = m.fixed(&[n, 2]);
    let x = m.fixed(&[n, steps, 2]);
    let attributes = [
        ("body", body),
        ("num_scan_inputs", 1i64.into()),
        ("scan_input_axes", vec![1i64].into()),
        ("scan_input_directions", vec![m.rng.int(0, 1)].into()),
        ("scan_output_axes", vec![m.rng.int(0, 2)].into()),
        ("scan_output_directions", vec![m.rng.int(0, 1)].into()),
    ];
    let found = m.b.op_many("Scan", &[&h, &x], &attributes, 2);
    let total = m.b.reduce_sum(&found[1], &[0, 1, 2], false);
    let y = m.b.mul(&found[0], &total);
    m.finish(&y)
}

pub(super) fn standardised(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, channels) = (m.rng.size(1, 3), m.rng.size(2, 4));
    let w = m.parameter(&[1, channels, 4], -1.0, 1.0);
    let (gain, bias) = (m.parameter(&[channels], 0.5, 1.5), m.constant(&[channels], -1.0, 1.0));
    let [mean, variance] = [0.0, 1.0].map(|v| m.b.constant(TensorData::f32(&[channels], &vec![v; channels])));
    let attributes = [("training_mode", 1i64.into()), ("epsilon", Attribute::Float(1e-3))];
    let w = m.op("BatchNormalization", &[&w, &gain, &bias, &mean, &variance], &attributes);
    let w = m.b.reshape(&w, &[channels as i64, 4]);
    let x = m.batched(&[n, channels]);
    let y = m.b.matmul(&x, &w);
    m.finish(&y)
}
