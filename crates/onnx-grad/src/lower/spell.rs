//! Operators written out in simpler ones.
//!
//! An operator is here if it has no rule of its own, or if an engine lacks it. Each function returns the
//! value that takes the place of the node's first output, or `None` to leave the node as it is (because
//! what it needs to know is not known, or another output is used).

use super::batch_norm::affine;
use super::{attention, patches, recurrent, sample, signal};
use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::graph::{Attribute, Node};
use crate::shapes::normalise_axis;
use crate::tensor::{DType, TensorData};

/// More groups than this are too many for a constant with a number for each.
const MAX_GROUPS: i64 = 1 << 20;
/// More channels than this are too many for a matrix of channels by channels.
const MAX_BAND: i64 = 4096;

pub(super) type Spell = fn(&mut Builder, &Node) -> Result<Option<Value>>;

/// Every operator that is spelled out, with its family.
pub(crate) const REGISTRY: &[(&str, &str, Spell)] = &[
    ("Selu", "activation", selu),
    ("Celu", "activation", celu),
    ("Mish", "activation", mish),
    ("Swish", "activation", swish),
    ("ThresholdedRelu", "activation", thresholded_relu),
    ("BatchNormalization", "norm", batch_norm),
    ("GroupNormalization", "norm", group_norm),
    ("RMSNormalization", "norm", rms_norm),
    ("LpNormalization", "norm", lp_norm),
    ("LRN", "norm", local_response_norm),
    ("MeanVarianceNormalization", "norm", mean_variance_norm),
    ("DepthToSpace", "layout", depth_to_space),
    ("SpaceToDepth", "layout", space_to_depth),
    ("Attention", "attention", attention::spell),
    ("GridSample", "index", sample::grid_sample),
    ("Col2Im", "layout", patches::col2im),
    ("DFT", "signal", signal::dft),
    ("STFT", "signal", signal::stft),
];

pub(super) type SpellMany = fn(&mut Builder, &Node) -> Result<Option<Vec<Value>>>;

/// Operators of several outputs, each of which is spelled out.
pub(crate) const MANY: &[(&str, &str, SpellMany)] = &[
    ("LSTM", "recurrent", recurrent::spell),
    ("GRU", "recurrent", recurrent::spell),
    ("RNN", "recurrent", recurrent::spell),
];

pub(super) fn find_many(node: &Node) -> Option<SpellMany> {
    MANY.iter().find(|(op, _, _)| node.is(op)).map(|(_, _, spell)| *spell)
}

pub(super) fn find(node: &Node) -> Option<Spell> {
    REGISTRY.iter().find(|(op, _, _)| node.is(op)).map(|(_, _, spell)| *spell)
}

fn input(node: &Node, i: usize) -> Result<&str> {
    node.input(i).ok_or_else(|| Error::Node { node: node.label(), reason: format!("it has no input {i}") })
}

fn elu(b: &mut Builder, x: &str, alpha: f32) -> Value {
    b.op_with("Elu", &[x], &[("alpha", alpha.into())])
}

/// `gamma elu(x; alpha)`
fn selu(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let bent = elu(b, input(node, 0)?, node.float("alpha", 1.673_263_2));
    Ok(Some(b.scale(&bent, f64::from(node.float("gamma", 1.050_701)))))
}

/// `alpha elu(x / alpha)`
fn celu(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let alpha = f64::from(node.float("alpha", 1.0));
    let scaled = b.scale(input(node, 0)?, 1.0 / alpha);
    let bent = elu(b, &scaled, 1.0);
    Ok(Some(b.scale(&bent, alpha)))
}

/// `x tanh(softplus(x))`
fn mish(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let soft = b.op("Softplus", &[x]);
    let gate = b.op("Tanh", &[&soft]);
    Ok(Some(b.mul(x, &gate)))
}

/// `x sigmoid(alpha x)`
fn swish(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let scaled = b.scale(x, f64::from(node.float("alpha", 1.0)));
    let gate = b.op("Sigmoid", &[&scaled]);
    Ok(Some(b.mul(x, &gate)))
}

fn thresholded_relu(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let threshold = b.scalar_like(x, f64::from(node.float("alpha", 1.0)));
    let above = b.op("Greater", &[x, &threshold]);
    Ok(Some(b.keep_where(&above, x)))
}

/// One value a channel, shaped to broadcast over `[n, c, ...]`.
fn per_channel(b: &mut Builder, values: &str, rank: usize) -> Value {
    let axes: Vec<i64> = (1..rank as i64 - 1).collect();
    if axes.is_empty() { Value::named(values) } else { b.unsqueeze(values, &axes) }
}

/// `gain (x - mean) / sqrt(variance + epsilon) + bias`, with the stored mean and variance.
fn batch_norm(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    if node.int("training_mode", 0) != 0 {
        if b.graph().depends_on_inputs(x) {
            return Err(Error::NotDifferentiable {
                node: node.label(),
                reason: "it is in training mode; call model.eval() before the export".to_string(),
            });
        }
        return standardised(b, node, x);
    }
    let Some(rank) = b.fact(x).rank() else { return Ok(None) };
    if let Some((scale, shift)) = affine(node, |name| b.fact(name).constant.as_ref()) {
        let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
        let mut shape = vec![1; rank.max(2) - 1];
        shape[0] = scale.len();
        let scale = b.constant(TensorData::from_f64(dtype, &shape, &scale));
        let shift = b.constant(TensorData::from_f64(dtype, &shape, &shift));
        let scaled = b.mul(x, &scale);
        return Ok(Some(b.add(&scaled, &shift)));
    }
    let variance = b.shift(input(node, 4)?, f64::from(node.float("epsilon", 1e-5)));
    let deviation = b.op("Sqrt", &[&variance]);
    let scale = b.div(input(node, 1)?, &deviation);
    let [mean, bias, scale] = [input(node, 3)?, input(node, 2)?, &scale].map(|v| per_channel(b, v, rank));
    let centred = b.sub(x, &mean);
    let scaled = b.mul(&centred, &scale);
    Ok(Some(b.add(&scaled, &bias)))
}

/// Weights that are normalised by their own mean and variance: a batch normalisation in training mode that sees no input of
/// the model, as in nets without normalised activations (NFNet).
fn standardised(b: &mut Builder, node: &Node, x: &str) -> Result<Option<Value>> {
    let Some(rank) = b.fact(x).rank().filter(|rank| *rank > 1) else { return Ok(None) };
    let axes: Vec<i64> = (0..rank as i64).filter(|axis| *axis != 1).collect();
    let mean = b.reduce_mean(x, &axes, true);
    let centred = b.sub(x, &mean);
    let square = b.mul(&centred, &centred);
    let variance = b.reduce_mean(&square, &axes, true);
    let variance = b.shift(&variance, f64::from(node.float("epsilon", 1e-5)));
    let deviation = b.op("Sqrt", &[&variance]);
    let normal = b.div(&centred, &deviation);
    let [scale, bias] = [input(node, 1)?, input(node, 2)?].map(|value| per_channel(b, value, rank));
    let scaled = b.mul(&normal, &scale);
    Ok(Some(b.add(&scaled, &bias)))
}

/// Groups of channels become channels of an instance normalisation.
fn group_norm(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (x, gain, bias) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let groups = node.int("num_groups", 1);
    let Some(shape) = b.shape(x).map(<[_]>::to_vec) else { return Ok(None) };
    let Some(channels) = shape.get(1).and_then(|d| d.known()) else { return Ok(None) };
    if groups > MAX_GROUPS {
        return Ok(None);
    }
    if groups <= 0 || channels % groups != 0 {
        let reason = format!("{channels} channels do not make {groups} groups");
        return Err(Error::Node { node: node.label(), reason });
    }
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let flat = b.reshape(x, &[0, groups, -1]);
    let count = groups as usize;
    let ones = b.constant(TensorData::from_f64(dtype, &[count], &vec![1.0; count]));
    let zeros = b.constant(TensorData::from_f64(dtype, &[count], &vec![0.0; count]));
    let epsilon = [("epsilon", Attribute::Float(node.float("epsilon", 1e-5)))];
    let normal = b.op_with("InstanceNormalization", &[&flat, &ones, &zeros], &epsilon);
    let normal = b.reshape_like(&normal, x);
    let parameter = |b: &mut Builder, values: &str| {
        // Up to opset 20 there is one value a group, from 21 on one a channel.
        let per_group = groups != channels
            && b.shape(values).is_some_and(|s| s.len() == 1 && s[0].known() == Some(groups));
        let values = if per_group {
            let column = b.unsqueeze(values, &[1]);
            let wide = b.ints(&[groups, channels / groups]);
            let wide = b.op("Expand", &[&column, &wide]);
            b.reshape(&wide, &[channels])
        } else {
            Value::named(values)
        };
        per_channel(b, &values, shape.len())
    };
    let (gain, bias) = (parameter(b, gain), parameter(b, bias));
    let scaled = b.mul(&normal, &gain);
    Ok(Some(b.add(&scaled, &bias)))
}

/// The axes from `axis` on, where the rank is known.
fn axes_from(b: &Builder, node: &Node, x: &str) -> Option<Vec<i64>> {
    let rank = b.fact(x).rank()?;
    let axis = normalise_axis(node.int("axis", -1), rank)?;
    Some((axis as i64..rank as i64).collect())
}

/// `gain x / sqrt(mean(x^2) + epsilon)`
fn rms_norm(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (x, gain) = (input(node, 0)?, input(node, 1)?);
    let Some(axes) = axes_from(b, node, x) else { return Ok(None) };
    let square = b.mul(x, x);
    let mean = b.reduce_mean(&square, &axes, true);
    let mean = b.shift(&mean, f64::from(node.float("epsilon", 1e-5)));
    let root = b.op("Sqrt", &[&mean]);
    let normal = b.div(x, &root);
    Ok(Some(b.mul(&normal, gain)))
}

/// `x / |x|`, and 0 where `x` is 0.
fn lp_norm(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let op = if node.int("p", 2) == 1 { "ReduceL1" } else { "ReduceL2" };
    let axes = b.ints(&[node.int("axis", -1)]);
    let norm = b.op_with(op, &[x, &axes], &[("keepdims", 1i64.into())]);
    let (zero, one) = (b.scalar_like(x, 0.0), b.scalar_like(x, 1.0));
    let nothing = b.op("Equal", &[&norm, &zero]);
    let safe = b.select(&nothing, &one, &norm);
    Ok(Some(b.div(x, &safe)))
}

/// `x / (bias + alpha / size * sum of squares of neighbouring channels)^beta`
fn local_response_norm(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let Some(channels) = b.shape(x).and_then(|s| s.get(1)).and_then(|d| d.known()) else { return Ok(None) };
    let size = node.int("size", 1);
    // The band is a matrix, channels by channels; a size beyond all channels says no more than all of them.
    if !(1..=MAX_BAND).contains(&channels) || size < 1 {
        return Ok(None);
    }
    let reach = size.min(2 * channels + 1);
    let (before, after) = ((reach - 1) / 2, reach - 1 - (reach - 1) / 2);
    let near = |i: i64| (i % channels - i / channels >= -before) && (i % channels - i / channels <= after);
    let band: Vec<f64> = (0..channels * channels).map(|i| f64::from(u8::from(near(i)))).collect();
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let side = channels as usize;
    let band = b.constant(TensorData::from_f64(dtype, &[side, side], &band));
    let square = b.mul(x, x);
    let flat = b.reshape(&square, &[0, 0, -1]);
    let sums = b.matmul(&band, &flat);
    let sums = b.reshape_like(&sums, x);
    let scaled = b.scale(&sums, f64::from(node.float("alpha", 1e-4)) / size as f64);
    let inside = b.shift(&scaled, f64::from(node.float("bias", 1.0)));
    let exponent = b.scalar_like(x, f64::from(node.float("beta", 0.75)));
    let below = b.op("Pow", &[&inside, &exponent]);
    Ok(Some(b.div(x, &below)))
}

/// `(x - mean) / (deviation + 1e-9)`
fn mean_variance_norm(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let axes = node.ints("axes").unwrap_or(&[0, 2, 3]).to_vec();
    let mean = b.reduce_mean(x, &axes, true);
    let centred = b.sub(x, &mean);
    let square = b.mul(&centred, &centred);
    let variance = b.reduce_mean(&square, &axes, true);
    let deviation = b.op("Sqrt", &[&variance]);
    let deviation = b.shift(&deviation, 1e-9);
    Ok(Some(b.div(&centred, &deviation)))
}

/// The block size, which must be a positive number no larger than an image.
fn block_size(node: &Node) -> Result<i64> {
    let block = node.int("blocksize", 1);
    match (1..1 << 10).contains(&block) {
        true => Ok(block),
        false => Err(Error::Node { node: node.label(), reason: format!("its blocksize is {block}") }),
    }
}

/// Sizes of axes 1 to 3, where they are known.
fn image_sizes(b: &Builder, x: &str) -> Option<(i64, i64, i64)> {
    let shape = b.shape(x).filter(|s| s.len() == 4)?;
    Some((shape[1].known()?, shape[2].known()?, shape[3].known()?))
}

fn depth_to_space(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let block = block_size(node)?;
    let Some((c, h, w)) = image_sizes(b, x) else { return Ok(None) };
    let out = c / (block * block);
    let (apart, perm) = match node.string("mode", "DCR") {
        "CRD" => ([-1, out, block, block, h, w], [0, 1, 4, 2, 5, 3]),
        _ => ([-1, block, block, out, h, w], [0, 3, 4, 1, 5, 2]),
    };
    let apart = b.reshape(x, &apart);
    let moved = b.transpose(&apart, &perm);
    Ok(Some(b.reshape(&moved, &[-1, out, h * block, w * block])))
}

fn space_to_depth(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let block = block_size(node)?;
    let Some((c, h, w)) = image_sizes(b, x) else { return Ok(None) };
    let apart = b.reshape(x, &[-1, c, h / block, block, w / block, block]);
    let moved = b.transpose(&apart, &[0, 3, 5, 1, 2, 4]);
    Ok(Some(b.reshape(&moved, &[-1, c * block * block, h / block, w / block])))
}
