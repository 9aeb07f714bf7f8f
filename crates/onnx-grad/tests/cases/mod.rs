//! Random graphs of one operator each, for every operator that can be differentiated.
//!
//! A generator draws shapes and attributes from a seeded stream, so a failing case is named by its operator
//! and seed. Numbers are drawn apart from each other and from the kinks of the functions, so that central
//! differences are meaningful. The same cases are checked against differences here and between engines in
//! the `brenier` crate.

#![allow(dead_code, unused_imports, clippy::unwrap_used)] // Each test binary uses its own part.

mod generators;

use std::collections::BTreeMap;

use onnx_grad::eval::Array;
use onnx_grad::{Attribute, Builder, DType, Dim, Graph, TensorData, Value};

pub(crate) use generators::GENERATORS;

/// A graph with values for its inputs, and the names to differentiate with respect to.
pub(crate) struct Case {
    pub(crate) graph: Graph,
    pub(crate) inputs: BTreeMap<String, Array>,
    pub(crate) wrt: Vec<String>,
    /// Whether engines are known to lack what the case uses.
    pub(crate) reference_only: bool,
}

/// SplitMix64: small, seeded, the same everywhere.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `low..=high`.
    pub(crate) fn int(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    pub(crate) fn size(&mut self, low: usize, high: usize) -> usize {
        self.int(low as i64, high as i64) as usize
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    pub(crate) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.size(0, choices.len() - 1)].clone()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.size(0, i));
        }
    }

    /// `count` numbers between the bounds, no two of them close together.
    pub(crate) fn apart(&mut self, count: usize, low: f64, high: f64) -> Vec<f64> {
        let step = (high - low) / count as f64;
        let mut values: Vec<f64> = (0..count)
            .map(|i| low + step * (i as f64 + 0.25 + 0.5 * (self.next() % 1024) as f64 / 1024.0))
            .collect();
        self.shuffle(&mut values);
        // The kinks of all activation functions are at whole numbers.
        values.iter_mut().filter(|v| (**v - v.round()).abs() < 2e-3).for_each(|v| *v += 4e-3);
        values
    }
}

/// A case in the making.
pub(crate) struct Maker {
    pub(crate) rng: Rng,
    pub(crate) b: Builder,
    inputs: BTreeMap<String, Array>,
    wrt: Vec<String>,
    symbolic: bool,
    pub(crate) reference_only: bool,
}

impl Maker {
    pub(crate) fn new(seed: u64) -> Maker {
        let mut rng = Rng(seed);
        let symbolic = rng.coin();
        Maker {
            rng,
            b: Builder::new("case"),
            inputs: BTreeMap::new(),
            wrt: Vec::new(),
            symbolic,
            reference_only: false,
        }
    }

    fn input(&mut self, shape: &[usize], low: f64, high: f64, batched: bool) -> Value {
        let name = format!("x{}", self.inputs.len());
        let values = self.rng.apart(shape.iter().product(), low, high);
        let mut dims: Vec<Dim> = shape.iter().map(|&n| n.into()).collect();
        if batched && self.symbolic && !dims.is_empty() {
            dims[0] = Dim::symbol("N");
        }
        self.inputs.insert(name.clone(), Array::new(DType::F32, shape, values));
        self.wrt.push(name.clone());
        self.b.input(&name, DType::F32, &dims)
    }

    /// An input to differentiate; its first axis may be a symbol.
    pub(crate) fn batched(&mut self, shape: &[usize]) -> Value {
        self.input(shape, -2.0, 2.0, true)
    }

    /// An input to differentiate, of known shape.
    pub(crate) fn fixed(&mut self, shape: &[usize]) -> Value {
        self.input(shape, -2.0, 2.0, false)
    }

    /// An input to differentiate, within bounds.
    pub(crate) fn within(&mut self, shape: &[usize], low: f64, high: f64) -> Value {
        self.input(shape, low, high, true)
    }

    /// A parameter to differentiate.
    pub(crate) fn parameter(&mut self, shape: &[usize], low: f64, high: f64) -> Value {
        let name = format!("w{}", self.wrt.len());
        let values = self.rng.apart(shape.iter().product(), low, high);
        self.wrt.push(name.clone());
        self.b.parameter(&name, TensorData::from_f64(DType::F32, shape, &values))
    }

    /// A constant.
    pub(crate) fn constant(&mut self, shape: &[usize], low: f64, high: f64) -> Value {
        let values = self.rng.apart(shape.iter().product(), low, high);
        self.b.constant(TensorData::from_f64(DType::F32, shape, &values))
    }

    /// A random shape.
    pub(crate) fn shape(&mut self, min_rank: usize, max_rank: usize, max_size: usize) -> Vec<usize> {
        let rank = self.rng.size(min_rank, max_rank);
        (0..rank).map(|_| self.rng.size(1, max_size)).collect()
    }

    pub(crate) fn op(&mut self, op: &str, inputs: &[&str], attributes: &[(&str, Attribute)]) -> Value {
        self.b.op_with(op, inputs, attributes)
    }

    pub(crate) fn finish(mut self, y: &Value) -> Case {
        self.b.output("y", y);
        let graph = self.b.finish().expect("generators make valid graphs");
        Case { graph, inputs: self.inputs, wrt: self.wrt, reference_only: self.reference_only }
    }
}
