//! Layers with named, seeded parameters, over the graph builder.

use onnx_grad::{Attribute, Builder, DType, Dim, TensorData, Value};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::data::Scaling;

/// How a layer's weights begin. Biases begin at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Init {
    /// Variance `1 / inputs` (LeCun): keeps the size of what passes.
    LeCun,
    /// Variance `2 / inputs` (He): for a layer whose output is cut by an activation.
    He,
    /// Zero: the layer says nothing at first.
    Zero,
}

/// A graph under construction and the source of its initial weights.
pub(super) struct Layers {
    pub(super) b: Builder,
    rng: ChaCha8Rng,
}

impl Layers {
    pub(super) fn new(name: &str, seed: u64) -> Layers {
        Layers { b: Builder::new(name), rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// An input of 32-bit floats with a batch of any size in front.
    pub(super) fn input(&mut self, name: &str, shape: &[usize]) -> Value {
        let dims: Vec<Dim> =
            std::iter::once(Dim::symbol("N")).chain(shape.iter().map(|&n| n.into())).collect();
        self.b.input(name, DType::F32, &dims)
    }

    /// A parameter `name` drawn for a layer with so many inputs.
    fn weight(&mut self, name: &str, shape: &[usize], fan_in: usize, init: Init) -> Value {
        let gain = match init {
            Init::LeCun => 1.0,
            Init::He => 2.0,
            Init::Zero => 0.0,
        };
        let deviation = (gain / fan_in.max(1) as f32).sqrt();
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count)
            .map(|_| {
                let z: f32 = StandardNormal.sample(&mut self.rng);
                deviation * z
            })
            .collect();
        self.b.parameter(name, TensorData::f32(shape, &values))
    }

    fn filled(&mut self, name: &str, shape: &[usize], value: f32) -> Value {
        self.b.parameter(name, TensorData::f32(shape, &vec![value; shape.iter().product()]))
    }

    /// `x W + b` along the last axis.
    pub(super) fn linear(&mut self, name: &str, x: &str, inputs: usize, outputs: usize, init: Init) -> Value {
        let w = self.weight(&format!("{name}.weight"), &[inputs, outputs], inputs, init);
        let bias = self.filled(&format!("{name}.bias"), &[outputs], 0.0);
        let product = self.b.matmul(x, &w);
        self.b.add(&product, &bias)
    }

    /// A square convolution that keeps the size (stride 1) or halves it (stride 2).
    pub(super) fn conv(
        &mut self,
        name: &str,
        x: &str,
        channels: (usize, usize),
        kernel: usize,
        stride: usize,
        init: Init,
    ) -> Value {
        let (inputs, outputs) = channels;
        let fan_in = inputs * kernel * kernel;
        let w = self.weight(&format!("{name}.weight"), &[outputs, inputs, kernel, kernel], fan_in, init);
        let bias = self.filled(&format!("{name}.bias"), &[outputs], 0.0);
        let (k, s, pad) = (kernel as i64, stride as i64, kernel as i64 / 2);
        let attributes: [(&str, Attribute); 5] = [
            ("kernel_shape", vec![k, k].into()),
            ("strides", vec![s, s].into()),
            ("pads", vec![pad; 4].into()),
            ("dilations", vec![1i64, 1].into()),
            ("group", 1i64.into()),
        ];
        self.b.op_with("Conv", &[x, &w, &bias], &attributes)
    }

    /// `(x - shift) / scale`, with the constants of a scaling.
    pub(super) fn scaled(&mut self, x: &str, scaling: &Scaling) -> Value {
        let shape = scaling.shape();
        let features: usize = shape.iter().product();
        let pick = |part: fn((f64, f64)) -> f64| -> TensorData {
            let values: Vec<f32> = (0..features).map(|i| part(scaling.of(i)) as f32).collect();
            // One number per channel says the same in less space.
            let area = features / shape[0].max(1);
            let per_channel: Vec<f32> = values.iter().step_by(area.max(1)).copied().collect();
            let same = values.iter().enumerate().all(|(i, v)| *v == per_channel[i / area.max(1)]);
            let mut sizes = vec![1; shape.len()];
            sizes[0] = shape[0];
            match same {
                true => TensorData::f32(&sizes, &per_channel),
                false => TensorData::f32(shape, &values),
            }
        };
        let (shift, scale) = (self.b.constant(pick(|p| p.0)), self.b.constant(pick(|p| 1.0 / p.1)));
        let centred = self.b.sub(x, &shift);
        self.b.mul(&centred, &scale)
    }

    /// `x sigmoid(x)`.
    pub(super) fn silu(&mut self, x: &str) -> Value {
        let gate = self.b.op("Sigmoid", &[x]);
        self.b.mul(x, &gate)
    }

    /// Group normalisation of `[N, C, H, W]`, each channel with its gain and bias.
    ///
    /// Written as PyTorch exports it: an instance normalisation of the groups, which every engine has.
    pub(super) fn group_norm(&mut self, name: &str, x: &str, shape: [usize; 3], groups: usize) -> Value {
        let [channels, height, width] = shape;
        let ones = self.b.constant(TensorData::f32(&[groups], &vec![1.0; groups]));
        let zeros = self.b.constant(TensorData::f32(&[groups], &vec![0.0; groups]));
        let grouped = self.b.reshape(x, &[-1, groups as i64, (channels / groups * height * width) as i64]);
        let normal = self.b.op_with(
            "InstanceNormalization",
            &[&grouped, &ones, &zeros],
            &[("epsilon", Attribute::Float(1e-5))],
        );
        let normal = self.b.reshape(&normal, &[-1, channels as i64, height as i64, width as i64]);
        let gain = self.filled(&format!("{name}.weight"), &[channels, 1, 1], 1.0);
        let bias = self.filled(&format!("{name}.bias"), &[channels, 1, 1], 0.0);
        let scaled = self.b.mul(&normal, &gain);
        self.b.add(&scaled, &bias)
    }

    /// Sines and cosines of a time `[N]` at frequencies from 1 to `highest` (radians per unit of time) in
    /// geometric progression: `[N, features]`, `features` even.
    pub(super) fn time_features(&mut self, t: &str, features: usize, highest: f64) -> Value {
        let half = (features / 2).max(1);
        let ratio = |k: usize| k as f64 / (half - 1).max(1) as f64;
        let frequencies: Vec<f32> = (0..half).map(|k| highest.powf(ratio(k)) as f32).collect();
        let frequencies = self.b.constant(TensorData::f32(&[1, half], &frequencies));
        let column = self.b.unsqueeze(t, &[1]);
        let phase = self.b.mul(&column, &frequencies);
        let (sine, cosine) = (self.b.op("Sin", &[&phase]), self.b.op("Cos", &[&phase]));
        self.b.concat(&[&sine, &cosine], 1)
    }

    /// An embedding of the time to which that of the classes is added, where a network is told of them.
    pub(super) fn with_classes(&mut self, time: Value, classes: Option<usize>, width: usize) -> Value {
        let Some(classes) = classes else { return time };
        let told = self.input(super::CLASSES, &[classes]);
        let embedded = self.linear("classes", &told, classes, width, Init::He);
        self.b.add(&time, &embedded)
    }
}
