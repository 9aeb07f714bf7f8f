//! The words in which rules, lowering and networks are written: one for each operator that they use most.

use super::{Builder, Value};
use crate::error::Result;
use crate::graph::{Attribute, Dim};
use crate::tensor::{DType, TensorData};

/// Shorthand for the operators that gradient rules and networks use most.
impl Builder {
    /// `a + b`
    pub fn add(&mut self, a: &str, b: &str) -> Value {
        self.op("Add", &[a, b])
    }

    /// `a - b`
    pub fn sub(&mut self, a: &str, b: &str) -> Value {
        self.op("Sub", &[a, b])
    }

    /// `a * b`, element by element
    pub fn mul(&mut self, a: &str, b: &str) -> Value {
        self.op("Mul", &[a, b])
    }

    /// `a / b`, element by element
    pub fn div(&mut self, a: &str, b: &str) -> Value {
        self.op("Div", &[a, b])
    }

    /// `-a`
    pub fn neg(&mut self, a: &str) -> Value {
        self.op("Neg", &[a])
    }

    /// `a * k`
    pub fn scale(&mut self, a: &str, k: f64) -> Value {
        if k == 1.0 {
            return Value::named(a);
        }
        let k = self.scalar_like(a, k);
        self.mul(a, &k)
    }

    /// `a + k`
    pub fn shift(&mut self, a: &str, k: f64) -> Value {
        let k = self.scalar_like(a, k);
        self.add(a, &k)
    }

    /// `k - a`
    pub fn rsub(&mut self, k: f64, a: &str) -> Value {
        let k = self.scalar_like(a, k);
        self.sub(&k, a)
    }

    /// The matrix product.
    pub fn matmul(&mut self, a: &str, b: &str) -> Value {
        self.op("MatMul", &[a, b])
    }

    /// `condition ? a : b`
    pub fn select(&mut self, condition: &str, a: &str, b: &str) -> Value {
        self.op("Where", &[condition, a, b])
    }

    /// `a` where the condition holds, else 0.
    pub fn keep_where(&mut self, condition: &str, a: &str) -> Value {
        let zero = self.scalar_like(a, 0.0);
        self.select(condition, a, &zero)
    }

    /// The sum over `axes`.
    pub fn reduce_sum(&mut self, a: &str, axes: &[i64], keep: bool) -> Value {
        self.reduce("ReduceSum", a, axes, keep)
    }

    /// The mean over `axes`.
    pub fn reduce_mean(&mut self, a: &str, axes: &[i64], keep: bool) -> Value {
        self.reduce("ReduceMean", a, axes, keep)
    }

    fn reduce(&mut self, op: &str, a: &str, axes: &[i64], keep: bool) -> Value {
        if axes.is_empty() {
            return Value::named(a);
        }
        let axes = self.ints(axes);
        self.op_with(op, &[a, &axes], &[("keepdims", Attribute::Int(keep.into()))])
    }

    /// The same elements under another shape (`0`: as before, `-1`: what remains).
    pub fn reshape(&mut self, a: &str, shape: &[i64]) -> Value {
        let shape = self.ints(shape);
        self.op("Reshape", &[a, &shape])
    }

    /// Axes in another order.
    pub fn transpose(&mut self, a: &str, perm: &[usize]) -> Value {
        if perm.iter().enumerate().all(|(i, &p)| i == p) {
            return Value::named(a);
        }
        let key = self.graph.initializers.contains_key(a).then(|| (a.to_string(), perm.to_vec()));
        if let Some(value) = key.as_ref().and_then(|key| self.transposed.get(key)) {
            return value.clone();
        }
        let perm: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
        let value = self.op_with("Transpose", &[a], &[("perm", perm.into())]);
        if let Some(key) = key {
            self.transposed.insert(key, value.clone());
        }
        value
    }

    /// The last two axes exchanged.
    pub fn transpose_last(&mut self, a: &str) -> Option<Value> {
        let rank = self.facts.get(a).rank().filter(|&r| r >= 2)?;
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 2, rank - 1);
        Some(self.transpose(a, &perm))
    }

    /// New axes of size 1.
    pub fn unsqueeze(&mut self, a: &str, axes: &[i64]) -> Value {
        let axes = self.ints(axes);
        self.op("Unsqueeze", &[a, &axes])
    }

    /// Axes of size 1 removed.
    pub fn squeeze(&mut self, a: &str, axes: &[i64]) -> Value {
        let axes = self.ints(axes);
        self.op("Squeeze", &[a, &axes])
    }

    /// `a[.., from:to:step, ..]` along one axis; `i64::MAX` and `i64::MIN` mean the ends.
    pub fn slice(&mut self, a: &str, axis: usize, from: i64, to: i64, step: i64) -> Value {
        let [from, to, axis, step] = [from, to, axis as i64, step].map(|v| self.ints(&[v]));
        self.op("Slice", &[a, &from, &to, &axis, &step])
    }

    /// Joined along an axis.
    pub fn concat(&mut self, parts: &[&str], axis: i64) -> Value {
        match parts {
            [only] => Value::named(only),
            parts => self.op_with("Concat", parts, &[("axis", axis.into())]),
        }
    }

    /// Another element type.
    pub fn cast(&mut self, a: &str, to: DType) -> Value {
        if self.facts.get(a).dtype == Some(to) {
            return Value::named(a);
        }
        self.op_with("Cast", &[a], &[("to", i64::from(to.code()).into())])
    }

    /// The shape of a value as an integer tensor: constant with one `-1` where that says it all, so that
    /// the value itself need not stay in memory; computed when the graph runs otherwise.
    pub fn shape_of(&mut self, a: &str) -> Value {
        if let Some(shape) = self.facts.get(a).shape.clone() {
            let sizes: Vec<i64> = shape.iter().map(|d| d.known().unwrap_or(-1)).collect();
            if sizes.iter().filter(|&&s| s == -1).count() <= 1 && !sizes.contains(&0) {
                return self.ints(&sizes);
            }
        }
        self.op("Shape", &[a])
    }

    /// The elements of `a` under the shape of `like`.
    pub fn reshape_like(&mut self, a: &str, like: &str) -> Value {
        if let (Some(from), Some(to)) = (self.shape(a), self.shape(like))
            && from == to
        {
            return Value::named(a);
        }
        let shape = self.shape_of(like);
        self.op("Reshape", &[a, &shape])
    }

    /// `a` broadcast to the shape of `like`.
    pub fn expand_like(&mut self, a: &str, like: &str) -> Value {
        let (from, to) = (self.shape(a).map(<[Dim]>::to_vec), self.shape(like).map(<[Dim]>::to_vec));
        if let (Some(from), Some(to)) = (from, to) {
            if from == to {
                return Value::named(a);
            }
            // Sizes that `a` has already may stay unsaid.
            let said = |i: usize| match &to[i] {
                Dim::Known(n) => Some(*n),
                dim if from.len() == to.len() && from[i].same(dim) => Some(1),
                _ => None,
            };
            if let Some(shape) = (0..to.len()).map(said).collect::<Option<Vec<i64>>>() {
                let shape = self.ints(&shape);
                return self.op("Expand", &[a, &shape]);
            }
        }
        let shape = self.op("Shape", &[like]);
        self.op("Expand", &[a, &shape])
    }

    /// Zeros in the shape of `like`.
    pub fn zeros_like(&mut self, like: &str) -> Value {
        let zero = self.scalar_like(like, 0.0);
        self.expand_like(&zero, like)
    }

    /// Sums `a` down to the shape of `like`, undoing a broadcast.
    ///
    /// Axes that were certainly broadcast are summed; where a size is a symbol and it cannot be told
    /// whether the axis was broadcast, the sum is arranged when the graph runs.
    pub fn sum_to(&mut self, a: &str, like: &str) -> Result<Value> {
        let (Some(from), Some(to)) = (self.shape(a), self.shape(like)) else {
            return Ok(self.sum_to_at_run_time(a, like));
        };
        let (from, to) = (from.to_vec(), to.to_vec());
        let Some(extra) = from.len().checked_sub(to.len()) else {
            return Ok(self.sum_to_at_run_time(a, like));
        };
        let mut axes: Vec<i64> = (0..extra as i64).collect();
        for (i, dim) in to.iter().enumerate() {
            match (&from[i + extra], dim) {
                (f, t) if f == t => {}
                (_, Dim::Known(1)) => axes.push((i + extra) as i64),
                // `from` is the broadcast of `to` with something else.
                (Dim::Symbol { .. }, Dim::Known(_)) => {}
                _ => return Ok(self.sum_to_at_run_time(a, like)),
            }
        }
        if axes.len() == extra {
            // A sum over one element is the element.
            let ones = from[..extra].iter().all(|dim| *dim == Dim::Known(1));
            return Ok(match ones && extra > 0 {
                true => self.squeeze(a, &axes),
                false => self.reduce_sum(a, &axes, false),
            });
        }
        let summed = self.reduce_sum(a, &axes, true);
        if extra == 0 {
            return Ok(summed);
        }
        let leading: Vec<i64> = (0..extra as i64).collect();
        Ok(self.squeeze(&summed, &leading))
    }

    fn sum_to_at_run_time(&mut self, a: &str, like: &str) -> Value {
        // Where the shape of `like`, with ones in front, is 1 and that of `a` is not: those axes.
        let (from, to) = (self.op("Shape", &[a]), self.op("Shape", &[like]));
        let (rank_from, rank_to) = (self.op("Shape", &[&from]), self.op("Shape", &[&to]));
        let missing = self.sub(&rank_from, &rank_to);
        let one = self.constant(TensorData::i64(&[], &[1]));
        let ones = self.op("Expand", &[&one, &missing]);
        let padded = self.concat(&[&ones, &to], 0);
        let broadcast = self.op("Equal", &[&from, &padded]);
        let broadcast = self.op("Not", &[&broadcast]);
        let axes = self.op("NonZero", &[&broadcast]);
        let axes = self.squeeze(&axes, &[0]);
        let attributes = [("keepdims", Attribute::Int(1)), ("noop_with_empty_axes", Attribute::Int(1))];
        let summed = self.op_with("ReduceSum", &[a, &axes], &attributes);
        self.op("Reshape", &[&summed, &to])
    }
}
