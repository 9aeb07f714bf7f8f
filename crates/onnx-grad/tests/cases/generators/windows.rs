//! Convolutions and pools: operators with a window that moves.

use onnx_grad::Attribute;

use super::super::{Case, Maker};

/// Kernel, strides, dilations and padding of a window over `rank` axes.
struct Window {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
}

fn window(m: &mut Maker, rank: usize, dilate: bool) -> Window {
    let kernel: Vec<i64> = (0..rank).map(|_| m.rng.int(1, 3)).collect();
    let strides = (0..rank).map(|_| m.rng.int(1, 3)).collect();
    let dilations: Vec<i64> = (0..rank).map(|_| if dilate { m.rng.int(1, 2) } else { 1 }).collect();
    // Padding of a whole kernel would leave places without any element.
    let pads = (0..2 * rank).map(|i| m.rng.int(0, (kernel[i % rank] - 1) * dilations[i % rank])).collect();
    Window { kernel, strides, dilations, pads }
}

impl Window {
    fn attributes(&self, m: &mut Maker) -> Vec<(&'static str, Attribute)> {
        let mut attributes = vec![
            ("kernel_shape", self.kernel.clone().into()),
            ("strides", self.strides.clone().into()),
            ("dilations", self.dilations.clone().into()),
        ];
        match m.rng.int(0, 4) {
            0 => attributes.push(("auto_pad", "SAME_UPPER".into())),
            1 => attributes.push(("auto_pad", "SAME_LOWER".into())),
            2 => attributes.push(("auto_pad", "VALID".into())),
            _ => attributes.push(("pads", self.pads.clone().into())),
        }
        attributes
    }
}

fn sizes(m: &mut Maker, window: &Window) -> Vec<usize> {
    let least = |i: usize| window.dilations[i] * (window.kernel[i] - 1) + 1;
    (0..window.kernel.len()).map(|i| m.rng.int(least(i), least(i) + 4) as usize).collect()
}

/// An image smaller than its padding, so that some taps see nothing else.
fn conv_of_little(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (kernel, dilation) = (m.rng.int(3, 5), m.rng.int(1, 2));
    let room = (kernel - 1) * dilation;
    let shape = [m.rng.size(1, 2), m.rng.size(1, 2), m.rng.size(1, 2), m.rng.size(1, 2)];
    let x = m.batched(&shape);
    let w = m.parameter(&[2, shape[1], kernel as usize, kernel as usize], -1.0, 1.1);
    let attributes = [("dilations", vec![dilation; 2].into()), ("pads", vec![0, room, room, 1].into())];
    let y = m.op("Conv", &[&x, &w], &attributes);
    m.finish(&y)
}

pub(super) fn conv(seed: u64) -> Case {
    if seed % 4 == 3 {
        return conv_of_little(seed);
    }
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 2);
    let window = window(&mut m, rank, true);
    let (groups, inner, outer) = (m.rng.size(1, 2), m.rng.size(1, 2), m.rng.size(1, 2));
    let mut shape = vec![m.rng.size(1, 2), groups * inner];
    shape.extend(sizes(&mut m, &window));
    let x = m.batched(&shape);
    let mut weights = vec![groups * outer, inner];
    weights.extend(window.kernel.iter().map(|&k| k as usize));
    let w = m.parameter(&weights, -1.0, 1.1);
    let mut attributes = window.attributes(&mut m);
    attributes.push(("group", (groups as i64).into()));
    let y = if m.rng.coin() {
        let bias = m.parameter(&[groups * outer], -1.0, 1.0);
        m.op("Conv", &[&x, &w, &bias], &attributes)
    } else {
        m.op("Conv", &[&x, &w], &attributes)
    };
    m.finish(&y)
}

pub(super) fn conv_transpose(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 2);
    let window = window(&mut m, rank, true);
    let (groups, inner, outer) = (m.rng.size(1, 2), m.rng.size(1, 2), m.rng.size(1, 2));
    let mut shape = vec![m.rng.size(1, 2), groups * inner];
    shape.extend((0..rank).map(|_| m.rng.size(2, 4)));
    let x = m.batched(&shape);
    let mut weights = vec![groups * inner, outer];
    weights.extend(window.kernel.iter().map(|&k| k as usize));
    let w = m.parameter(&weights, -1.0, 1.1);
    let pads: Vec<i64> = window.pads.iter().map(|p| (*p).min(1)).collect();
    let mut attributes = vec![
        ("kernel_shape", window.kernel.clone().into()),
        ("strides", window.strides.clone().into()),
        ("dilations", window.dilations.clone().into()),
        ("group", (groups as i64).into()),
        ("pads", pads.into()),
    ];
    match m.rng.int(0, 5) {
        0 | 1 => {
            let extra: Vec<i64> = window.strides.iter().map(|s| s - 1).collect();
            attributes.push(("output_padding", extra.into()));
        }
        2 => {
            // Padding is worked out from the output; engines disagree about where the odd row goes.
            m.reference_only = true;
            attributes.retain(|(name, _)| *name != "pads" && *name != "dilations");
            let mode = m.rng.pick(&["SAME_UPPER", "SAME_LOWER"]);
            attributes.push(("auto_pad", mode.into()));
        }
        3 => {
            m.reference_only = true;
            attributes.retain(|(name, _)| *name != "pads" && *name != "dilations");
            let sizes: Vec<i64> =
                (0..rank).map(|i| (shape[2 + i] as i64 - 1) * window.strides[i] + window.kernel[i]).collect();
            attributes.push(("output_shape", sizes.into()));
        }
        _ => {}
    }
    let y = if m.rng.coin() {
        let bias = m.parameter(&[groups * outer], -1.0, 1.0);
        m.op("ConvTranspose", &[&x, &w, &bias], &attributes)
    } else {
        m.op("ConvTranspose", &[&x, &w], &attributes)
    };
    m.finish(&y)
}

pub(super) fn pool(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 2);
    let mut window = window(&mut m, rank, op == "MaxPool" && seed.is_multiple_of(4));
    if m.rng.int(0, 2) == 0 {
        // Windows that tile.
        window.kernel = vec![2; rank];
        window.strides = vec![2; rank];
        window.dilations = vec![1; rank];
        window.pads = vec![0; 2 * rank];
    }
    // Engines lack dilated pools.
    m.reference_only |= window.dilations.iter().any(|&d| d != 1);
    let mut shape = vec![m.rng.size(1, 2), m.rng.size(1, 2)];
    shape.extend(sizes(&mut m, &window));
    let x = m.batched(&shape);
    let mut attributes = window.attributes(&mut m);
    if op == "AveragePool" {
        attributes.retain(|(name, _)| *name != "dilations");
        attributes.push(("count_include_pad", Attribute::Int(m.rng.coin().into())));
    } else if !m.reference_only {
        attributes.retain(|(name, _)| *name != "dilations");
    }
    let explicit = attributes.iter().any(|(name, _)| *name == "pads");
    if explicit && m.rng.coin() {
        attributes.push(("ceil_mode", 1i64.into()));
        // Engines disagree about what a place beyond the padding counts.
        m.reference_only = true;
    }
    let y = m.op(op, &[&x], &attributes);
    m.finish(&y)
}

pub(super) fn global_pool(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(3, 4, 3);
    let x = m.batched(&shape);
    let y = m.op(op, &[&x], &[]);
    m.finish(&y)
}
