//! Curves, random arrays and counting scores used by several tests.

use std::cell::{Cell, RefCell};

use brenier::problems::TanhSum;
use brenier::{Path, PathEvidence, Result, Score};
use ndarray::{Array1, Array2, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub(crate) fn normal(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_fn((rows, columns), |_| StandardNormal.sample(&mut rng))
}

pub(crate) fn smooth_score(features: usize, seed: u64) -> TanhSum {
    let numbers = normal(features + 1, features, seed);
    let amplitudes = numbers.row(0).to_owned();
    TanhSum::new(amplitudes, 0.5 * &numbers.slice(ndarray::s![1.., ..])).unwrap()
}

/// A smooth curve that is neither straight nor of constant speed: a line plus loops that vanish at the ends.
pub(crate) struct Curve {
    pub from: Array1<f64>,
    pub to: Array1<f64>,
    pub loops: Array1<f64>,
}

impl Curve {
    pub(crate) fn random(features: usize, seed: u64) -> Self {
        let numbers = normal(3, features, seed);
        Self {
            from: numbers.row(0).to_owned(),
            to: numbers.row(1).to_owned(),
            loops: numbers.row(2).to_owned(),
        }
    }
}

impl Path for Curve {
    fn at(&self, t: f64) -> Array1<f64> {
        let mut x = (1.0 - t) * &self.from + t * &self.to;
        for (i, amplitude) in self.loops.iter().enumerate() {
            x[i] += amplitude * (std::f64::consts::PI * (1 + i % 3) as f64 * t).sin();
        }
        x
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        let mut v = &self.to - &self.from;
        for (i, amplitude) in self.loops.iter().enumerate() {
            let w = std::f64::consts::PI * (1 + i % 3) as f64;
            v[i] += amplitude * w * (w * t).cos();
        }
        v
    }

    fn evidence(&self) -> PathEvidence {
        PathEvidence { kind: "curve".into(), ..PathEvidence::default() }
    }
}

/// Counts what passes through a score.
pub(crate) struct Counting<S> {
    pub score: S,
    pub gradients: Cell<usize>,
    pub values: Cell<usize>,
    pub largest_batch: Cell<usize>,
    pub targets: RefCell<Vec<usize>>,
}

impl<S> Counting<S> {
    pub(crate) fn new(score: S) -> Self {
        Self {
            score,
            gradients: Cell::new(0),
            values: Cell::new(0),
            largest_batch: Cell::new(0),
            targets: RefCell::new(Vec::new()),
        }
    }

    fn saw(&self, x: &ArrayView2<f64>, targets: &[usize]) {
        self.largest_batch.set(self.largest_batch.get().max(x.nrows()));
        self.targets.borrow_mut().extend(targets);
    }
}

impl<S: Score> Score for Counting<S> {
    fn shape(&self) -> &[usize] {
        self.score.shape()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        self.saw(&x, targets);
        self.values.set(self.values.get() + x.nrows());
        self.score.values(x, targets)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        self.saw(&x, targets);
        self.gradients.set(self.gradients.get() + x.nrows());
        self.score.gradients(x, targets)
    }
}

/// The noise that is expected in states between noise and data `N(0, deviation^2)`, as a network:
/// `eps(x, t) = sigma x / (alpha^2 deviation^2 + sigma^2)`.
pub(crate) fn gaussian_noise_predictor(shape: &[usize], deviation: f64) -> brenier::flow::NoisePredictor {
    use onnx_grad::{Builder, DType, Dim, Model};
    let mut b = Builder::new("noise");
    let dims: Vec<Dim> = std::iter::once(Dim::symbol("N")).chain(shape.iter().map(|&n| n.into())).collect();
    let x = b.input("x", DType::F32, &dims);
    let t = b.input("t", DType::F32, &dims[..1]);
    // s = 1 - t, alpha^2 = exp(-(0.1 s + 9.95 s^2)), sigma^2 = 1 - alpha^2
    let s = b.scale(&t, -1.0);
    let s = b.shift(&s, 1.0);
    let square = b.mul(&s, &s);
    let (linear, square) = (b.scale(&s, -0.1), b.scale(&square, -9.95));
    let exponent = b.add(&linear, &square);
    let signal = b.op("Exp", &[&exponent]);
    let noise = b.scale(&signal, -1.0);
    let noise = b.shift(&noise, 1.0);
    let sigma = b.op("Sqrt", &[&noise]);
    let spread = b.scale(&signal, deviation * deviation);
    let variance = b.add(&spread, &noise);
    let factor = b.op("Div", &[&sigma, &variance]);
    let axes: Vec<i64> = (1..=shape.len() as i64).collect();
    let factor = b.unsqueeze(&factor, &axes);
    let v = b.mul(&x, &factor);
    b.output("v", &v);
    let mut model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.metadata.insert("brenier.objective".into(), "\"ddpm\"".into());
    brenier::flow::NoisePredictor::new(model, &brenier::engine::EngineConfig::default()).unwrap()
}
