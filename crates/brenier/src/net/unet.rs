//! A U-Net: residual blocks on the way down to low resolutions and up again, joined by skips.
//!
//! ```text
//! block(h, e) = h + conv(silu(norm(conv(silu(norm(h))) + W e)))        e = time embedding
//! ```
//!
//! After Ho et al. (2020) and Ronneberger et al. (2015): GroupNorm and SiLU before every convolution, attention
//! where the image is small, the time added to the channels of every block. The last convolution of each
//! branch begins at zero, so every block begins as the identity.

use onnx_grad::{Attribute, Model, TensorData, Value};
use serde::{Deserialize, Serialize};

use super::layers::{Init, Layers};
use super::room::expect_room;
use super::{STATE, TIME, VELOCITY, model};
use crate::{Error, Result};

/// A U-Net for images `[C, H, W]`. The height and the width must be divisible by `patch 2^(levels - 1)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnetConfig {
    /// Squares of so many pixels a side are the points that the network works on: 1 for pixels. 2 needs about a third
    /// of the time for the same number of weights, and suits images of 28x28 and more.
    pub patch: usize,
    /// Channels at the highest resolution; a multiple of `groups`.
    pub width: usize,
    /// Channels of each level as multiples of `width`; their number is the number of levels.
    pub multipliers: Vec<usize>,
    /// Residual blocks per level on the way down; one more on the way up.
    pub blocks: usize,
    /// Attention where neither side of the image is larger than this, in pixels; 0: none.
    pub attention_at: usize,
    /// Attention heads.
    pub heads: usize,
    /// Groups of the normalisations.
    pub groups: usize,
    /// The highest frequency of the time embedding, in radians per unit of time.
    pub highest_frequency: f64,
}

impl Default for UnetConfig {
    fn default() -> Self {
        Self {
            patch: 1,
            width: 32,
            multipliers: vec![1, 2, 2],
            blocks: 1,
            attention_at: 8,
            heads: 2,
            groups: 8,
            highest_frequency: 30.0,
        }
    }
}

/// The side from which on an image is seen in patches where nothing is said.
const PATCHED: usize = 24;

impl UnetConfig {
    /// What suits images `[C, H, W]`: two levels over patches of 2x2 pixels where both sides have 24 pixels or more, which
    /// takes about a third of the time of [`UnetConfig::default`], otherwise the default.
    pub fn suited_to(shape: &[usize]) -> UnetConfig {
        let default = UnetConfig::default();
        match shape {
            &[_, height, width] if height.min(width) >= PATCHED => {
                UnetConfig { patch: 2, multipliers: vec![1, 2], ..default }
            }
            _ => default,
        }
    }
}

/// A value with its channels and size.
#[derive(Clone)]
struct Map {
    value: Value,
    channels: usize,
    height: usize,
    width: usize,
}

impl Map {
    fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    fn with(&self, value: Value, channels: usize) -> Map {
        Map { value, channels, ..*self }
    }
}

impl UnetConfig {
    /// The network for images `[C, H, W]`, with initial weights that follow from the seed.
    pub fn build(&self, shape: &[usize], seed: u64) -> Result<Model> {
        self.build_with(shape, None, seed)
    }

    /// The same, steered by `classes` beside the time where there are some.
    pub(super) fn build_with(&self, shape: &[usize], classes: Option<usize>, seed: u64) -> Result<Model> {
        let [channels, height, width] = self.check(shape)?;
        let levels = self.multipliers.iter().map(|m| self.width.saturating_mul(*m));
        let convolutions = self.blocks.saturating_mul(4).saturating_add(2);
        let levels: Vec<_> = levels.map(|wide| (wide, wide, 9, convolutions)).collect();
        expect_room(&levels)?;
        let mut l = Layers::new("unet", seed);
        let x = l.input(STATE, shape);
        let t = l.input(TIME, &[]);
        let time = l.time_features(&t, self.width, self.highest_frequency);
        let time = l.linear("time.0", &time, self.width, 4 * self.width, Init::He);
        let time = l.with_classes(time, classes, 4 * self.width);
        let time = l.silu(&time);
        let time = l.linear("time.1", &time, 4 * self.width, 4 * self.width, Init::He);
        let time = l.silu(&time);

        let whole = Map { value: x, channels, height, width };
        let points = self.split_patches(&mut l, &whole);
        let first = l.conv("input", &points.value, (points.channels, self.width), 3, 1, Init::LeCun);
        let mut h = points.with(first, self.width);
        let mut skips = vec![h.clone()];
        let levels = self.multipliers.len();
        for level in 0..levels {
            for block in 0..self.blocks {
                let name = format!("down.{level}.{block}");
                h = self.block(&mut l, &name, &h, &time, self.channels(level));
                skips.push(h.clone());
            }
            if level + 1 < levels {
                let value = l.conv(
                    &format!("down.{level}.halve"),
                    &h.value,
                    (h.channels, h.channels),
                    3,
                    2,
                    Init::LeCun,
                );
                h = Map { value, height: h.height / 2, width: h.width / 2, ..h };
                skips.push(h.clone());
            }
        }
        let bottom = h.channels;
        h = self.block(&mut l, "middle.0", &h, &time, bottom);
        h = self.residual(&mut l, "middle.1", &h, &time, bottom);
        for level in (0..levels).rev() {
            for block in 0..=self.blocks {
                let Some(skip) = skips.pop() else { break };
                let joined = l.b.concat(&[&h.value, &skip.value], 1);
                h = h.with(joined, h.channels + skip.channels);
                h = self.block(&mut l, &format!("up.{level}.{block}"), &h, &time, self.channels(level));
            }
            if level > 0 {
                h = self.double(&mut l, &format!("up.{level}.double"), &h);
            }
        }
        let out = l.group_norm("output.norm", &h.value, h.shape(), self.groups);
        let out = l.silu(&out);
        let v = l.conv("output", &out, (h.channels, points.channels), 3, 1, Init::Zero);
        let v = self.join_patches(&mut l, v, &whole);
        l.b.output(VELOCITY, &v);
        Ok(model(l.b.finish()?))
    }

    /// `[C, H, W]` to `[C p p, H / p, W / p]`.
    fn split_patches(&self, l: &mut Layers, whole: &Map) -> Map {
        let &Map { channels, height, width, .. } = whole;
        let p = self.patch;
        if p == 1 {
            return whole.clone();
        }
        let (rows, columns) = (height / p, width / p);
        let split = [channels, rows, p, columns, p].map(|n| n as i64);
        let split = l.b.reshape(&whole.value, &[&[-1], split.as_slice()].concat());
        let gathered = l.b.transpose(&split, &[0, 1, 3, 5, 2, 4]);
        let channels = channels * p * p;
        let value = l.b.reshape(&gathered, &[-1, channels as i64, rows as i64, columns as i64]);
        Map { value, channels, height: rows, width: columns }
    }

    /// Back again.
    fn join_patches(&self, l: &mut Layers, value: Value, whole: &Map) -> Value {
        let &Map { channels, height, width, .. } = whole;
        let p = self.patch;
        if p == 1 {
            return value;
        }
        let split = [channels, p, p, height / p, width / p].map(|n| n as i64);
        let split = l.b.reshape(&value, &[&[-1], split.as_slice()].concat());
        let spread = l.b.transpose(&split, &[0, 1, 4, 2, 5, 3]);
        l.b.reshape(&spread, &[-1, channels as i64, height as i64, width as i64])
    }

    fn channels(&self, level: usize) -> usize {
        self.width * self.multipliers[level]
    }

    fn check(&self, shape: &[usize]) -> Result<[usize; 3]> {
        let refuse = |value: String, needs, hint: &'static str| {
            Err(Error::Setting { name: "the U-Net", value, needs, hint: hint.into() })
        };
        let &[channels, height, width] = shape else {
            return refuse(
                format!("given examples of shape {shape:?}"),
                "images have the shape [C, H, W]",
                "use the MLP for examples of other shapes",
            );
        };
        let levels = self.multipliers.len();
        let sizes =
            [self.patch, self.width, self.blocks, self.groups, self.heads, channels, height, width, levels];
        if sizes.contains(&0) || self.multipliers.contains(&0) || self.highest_frequency < 1.0 {
            return refuse(
                format!("{self:?} for images of {channels}x{height}x{width}"),
                "all sizes are at least 1",
                "UnetConfig::suited_to(shape) suits images of 28x28 and 32x32",
            );
        }
        let halvings = 1usize.checked_shl(levels as u32 - 1).unwrap_or(usize::MAX);
        let step = halvings.saturating_mul(self.patch);
        if !height.is_multiple_of(step) || !width.is_multiple_of(step) {
            return refuse(
                format!(
                    "of {levels} levels over patches of {}, given images of {height}x{width}",
                    self.patch
                ),
                "every level halves both sides, so they must be divisible by patch 2^(levels - 1)",
                "use fewer levels, smaller patches, or resize the images",
            );
        }
        if !self.width.is_multiple_of(self.groups)
            || !self.width.is_multiple_of(2)
            || !self.width.is_multiple_of(self.heads)
        {
            return refuse(
                format!("{} channels wide, with {} groups and {} heads", self.width, self.groups, self.heads),
                "the width must be even and divisible by the number of groups and of heads",
                "a width of 32 with 8 groups and 2 heads",
            );
        }
        Ok([channels, height, width])
    }

    /// A residual block, and attention after it where the image is small.
    fn block(&self, l: &mut Layers, name: &str, h: &Map, time: &str, channels: usize) -> Map {
        let out = self.residual(l, name, h, time, channels);
        if out.height.max(out.width) <= self.attention_at {
            self.attention(l, &format!("{name}.attention"), &out)
        } else {
            out
        }
    }

    fn residual(&self, l: &mut Layers, name: &str, h: &Map, time: &str, channels: usize) -> Map {
        let inner = l.group_norm(&format!("{name}.norm0"), &h.value, h.shape(), self.groups);
        let inner = l.silu(&inner);
        let inner = l.conv(&format!("{name}.conv0"), &inner, (h.channels, channels), 3, 1, Init::LeCun);
        let shift = l.linear(&format!("{name}.time"), time, 4 * self.width, channels, Init::LeCun);
        let shift = l.b.unsqueeze(&shift, &[2, 3]);
        let inner = l.b.add(&inner, &shift);
        let inner =
            l.group_norm(&format!("{name}.norm1"), &inner, [channels, h.height, h.width], self.groups);
        let inner = l.silu(&inner);
        let inner = l.conv(&format!("{name}.conv1"), &inner, (channels, channels), 3, 1, Init::Zero);
        let past = if h.channels == channels {
            h.value.clone()
        } else {
            l.conv(&format!("{name}.skip"), &h.value, (h.channels, channels), 1, 1, Init::LeCun)
        };
        h.with(l.b.add(&past, &inner), channels)
    }

    /// `h + W softmax(Q K^T / sqrt(d)) V`, a token being a pixel.
    fn attention(&self, l: &mut Layers, name: &str, h: &Map) -> Map {
        let (channels, heads, pixels) = (h.channels, self.heads, h.height * h.width);
        let per_head = channels / heads;
        let tokens = l.group_norm(&format!("{name}.norm"), &h.value, h.shape(), self.groups);
        let tokens = l.b.reshape(&tokens, &[-1, channels as i64, pixels as i64]);
        let tokens = l.b.transpose(&tokens, &[0, 2, 1]);
        let mut part = |what: &str, perm: &[usize]| {
            let linear = l.linear(&format!("{name}.{what}"), &tokens, channels, channels, Init::LeCun);
            let split = l.b.reshape(&linear, &[-1, pixels as i64, heads as i64, per_head as i64]);
            l.b.transpose(&split, perm)
        };
        let query = part("query", &[0, 2, 1, 3]);
        let key = part("key", &[0, 2, 3, 1]);
        let value = part("value", &[0, 2, 1, 3]);
        let query = l.b.scale(&query, 1.0 / (per_head as f64).sqrt());
        let match_ = l.b.matmul(&query, &key);
        let weights = l.b.op_with("Softmax", &[&match_], &[("axis", Attribute::Int(-1))]);
        let mixed = l.b.matmul(&weights, &value);
        let mixed = l.b.transpose(&mixed, &[0, 2, 1, 3]);
        let mixed = l.b.reshape(&mixed, &[-1, pixels as i64, channels as i64]);
        let out = l.linear(&format!("{name}.out"), &mixed, channels, channels, Init::Zero);
        let out = l.b.transpose(&out, &[0, 2, 1]);
        let out = l.b.reshape(&out, &[-1, channels as i64, h.height as i64, h.width as i64]);
        h.with(l.b.add(&h.value, &out), channels)
    }

    /// Every pixel repeated, then a convolution.
    fn double(&self, l: &mut Layers, name: &str, h: &Map) -> Map {
        let scales = l.b.constant(TensorData::f32(&[4], &[1.0, 1.0, 2.0, 2.0]));
        let attributes: [(&str, Attribute); 3] = [
            ("mode", "nearest".into()),
            ("coordinate_transformation_mode", "asymmetric".into()),
            ("nearest_mode", "floor".into()),
        ];
        let large = l.b.op_with("Resize", &[&h.value, "", &scales], &attributes);
        let value = l.conv(name, &large, (h.channels, h.channels), 3, 1, Init::LeCun);
        Map { value, height: 2 * h.height, width: 2 * h.width, ..*h }
    }
}
