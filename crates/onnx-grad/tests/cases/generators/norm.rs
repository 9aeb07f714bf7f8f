//! Normalisations.

use onnx_grad::{Attribute, TensorData};

use super::super::{Case, Maker};

pub(super) fn batch_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let channels = m.rng.size(1, 3);
    let n = m.rng.size(1, 3);
    let epsilon = ("epsilon", Attribute::Float(1e-3));
    let before = m.rng.int(0, 4);
    let source = match before {
        0 => {
            let x = m.batched(&[n, 2, 4, 4]);
            let w = m.constant(&[channels, 2, 3, 3], -1.0, 1.0);
            m.op("Conv", &[&x, &w], &[])
        }
        1 => {
            let x = m.batched(&[n, 2, 3, 3]);
            let (w, bias) = (m.constant(&[2, channels, 2, 2], -1.0, 1.0), m.constant(&[channels], -1.0, 1.0));
            m.op("ConvTranspose", &[&x, &w, &bias], &[])
        }
        2 => {
            let x = m.batched(&[n, 3]);
            let (w, bias) = (m.constant(&[channels, 3], -1.0, 1.0), m.constant(&[channels], -1.0, 1.0));
            m.op("Gemm", &[&x, &w, &bias], &[("transB", 1i64.into()), ("beta", Attribute::Float(0.5))])
        }
        _ => m.batched(&[n, channels, 2]),
    };
    // Trained in the last form, folded in the others.
    let trained = before == 4;
    let parameter = |m: &mut Maker, low: f64, high: f64| {
        if trained { m.parameter(&[channels], low, high) } else { m.constant(&[channels], low, high) }
    };
    let (gain, bias) = (parameter(&mut m, 0.5, 1.5), parameter(&mut m, -1.0, 1.0));
    let (mean, variance) = (m.constant(&[channels], -1.0, 1.0), m.constant(&[channels], 0.5, 2.0));
    let y = m.op("BatchNormalization", &[&source, &gain, &bias, &mean, &variance], &[epsilon]);
    m.finish(&y)
}

pub(super) fn instance_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 2);
    let mut shape = vec![m.rng.size(1, 2), m.rng.size(1, 3)];
    shape.extend((0..rank).map(|_| m.rng.size(2, 3)));
    let x = m.batched(&shape);
    let (gain, bias) = match seed % 3 {
        // As exporters write a group normalisation.
        0 => {
            let [ones, zeros] = [1.0, 0.0].map(|v| TensorData::f32(&[shape[1]], &vec![v; shape[1]]));
            (m.b.constant(ones), m.b.constant(zeros))
        }
        _ => (m.parameter(&[shape[1]], 0.5, 1.5), m.parameter(&[shape[1]], -1.0, 1.0)),
    };
    let y = m.op("InstanceNormalization", &[&x, &gain, &bias], &[("epsilon", Attribute::Float(1e-3))]);
    m.finish(&y)
}

pub(super) fn layer_norm(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(1, 3), m.rng.size(1, 3), m.rng.size(2, 4)];
    // RTen normalises over the last axis only.
    let axis: i64 = m.rng.pick(&[-1, -1, 2, 1]);
    m.reference_only = axis == 1 && op == "LayerNormalization";
    let tail = if axis == 1 { shape[1..].to_vec() } else { shape[2..].to_vec() };
    let x = m.batched(&shape);
    let gain = m.parameter(&tail, 0.5, 1.5);
    let attributes = [("axis", axis.into()), ("epsilon", Attribute::Float(1e-3))];
    let y = if op == "LayerNormalization" && m.rng.coin() {
        let bias = m.parameter(&tail, -1.0, 1.0);
        m.op(op, &[&x, &gain, &bias], &attributes)
    } else {
        m.op(op, &[&x, &gain], &attributes)
    };
    m.finish(&y)
}

pub(super) fn group_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (groups, inner) = (m.rng.size(1, 2), m.rng.size(1, 2));
    let channels = groups * inner;
    let shape = [m.rng.size(1, 2), channels, 2, m.rng.size(1, 3)];
    let x = m.batched(&shape);
    let count = if m.rng.coin() { groups } else { channels };
    let (gain, bias) = (m.parameter(&[count], 0.5, 1.5), m.parameter(&[count], -1.0, 1.0));
    let attributes = [("num_groups", Attribute::Int(groups as i64)), ("epsilon", Attribute::Float(1e-3))];
    let mut y = m.op("GroupNormalization", &[&x, &gain, &bias], &attributes);
    if m.rng.coin() {
        // What follows it in most networks.
        let gate = m.op("Sigmoid", &[&y], &[]);
        y = m.op("Mul", &[&y, &gate], &[]);
    }
    m.finish(&y)
}

pub(super) fn lp_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 3, 3);
    let x = m.batched(&shape);
    let axis = m.rng.int(-1, shape.len() as i64 - 1);
    let p = m.rng.int(1, 2);
    let y = m.op("LpNormalization", &[&x], &[("axis", axis.into()), ("p", p.into())]);
    m.finish(&y)
}

pub(super) fn local_response_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(1, 2), m.rng.size(1, 5), 2, 2];
    let x = m.batched(&shape);
    let size = m.rng.pick(&[1i64, 3, 5]);
    let attributes =
        [("size", size.into()), ("alpha", Attribute::Float(0.5)), ("bias", Attribute::Float(1.5))];
    let y = m.op("LRN", &[&x], &attributes);
    m.finish(&y)
}

pub(super) fn mean_variance_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [2, m.rng.size(1, 3), 2, m.rng.size(1, 3)];
    let x = m.fixed(&shape);
    let y = if m.rng.coin() {
        m.op("MeanVarianceNormalization", &[&x], &[])
    } else {
        m.op("MeanVarianceNormalization", &[&x], &[("axes", vec![2i64, 3].into())])
    };
    m.finish(&y)
}
