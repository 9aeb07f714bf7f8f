//! One node's outputs from its inputs: element types, sizes, contents.

use super::Fact;
use super::dims::{self, Product};
use super::layout;
use super::window::Window;
use crate::error::{Error, Result};
use crate::graph::{Attribute, Dim, Node};
use crate::tensor::{DType, TensorData};

/// The shape of the image that patches are laid over.
fn image_shape(batch: Dim, rows: Option<i64>, image: &[i64], block: &[i64]) -> Vec<Dim> {
    let patch: i64 = block.iter().product();
    let channels = rows.filter(|_| patch > 0).map_or(Dim::Unknown, |rows| Dim::Known(rows / patch));
    [batch, channels].into_iter().chain(image.iter().map(|&n| Dim::Known(n))).collect()
}

/// `axis` counted from the front, where it is an axis of a tensor of this rank.
pub(crate) fn normalise_axis(axis: i64, rank: usize) -> Option<usize> {
    let shifted = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(shifted).ok().filter(|&a| a < rank)
}

pub(super) fn malformed(node: &Node, reason: impl Into<String>) -> Error {
    Error::Node { node: node.label(), reason: reason.into() }
}

pub(super) fn axis_of(node: &Node, axis: i64, rank: usize) -> Result<usize> {
    normalise_axis(axis, rank)
        .ok_or_else(|| malformed(node, format!("axis {axis} is not an axis of a tensor of rank {rank}")))
}

pub(super) fn show(shape: &[Dim]) -> String {
    let dims: Vec<String> = shape.iter().map(Dim::to_string).collect();
    format!("[{}]", dims.join(", "))
}

/// The outputs' facts, as far as they follow; shorter than the outputs where nothing is known.
pub(super) fn infer(node: &Node, inputs: &[&Fact]) -> Result<Vec<Fact>> {
    if node.is_fused() {
        return super::fused_outputs(node, inputs);
    }
    if !node.is_standard() {
        return Ok(Vec::new());
    }
    let nothing = Fact::default();
    let x = inputs.first().copied().unwrap_or(&nothing);
    let one =
        |dtype: Option<DType>, shape: Option<Vec<Dim>>| Ok(vec![Fact { dtype, shape, ..Fact::default() }]);
    match node.op.as_str() {
        "Constant" => constant(node),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min" | "Sum" | "Mean" | "PRelu" | "Mod" => {
            let mut fact = Fact { dtype: x.dtype, shape: broadcast(node, inputs)?, ..Fact::default() };
            fact.content = arithmetic(node, inputs);
            Ok(vec![fact])
        }
        "And" | "Or" | "Xor" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => {
            let mut fact = typed(Some(DType::Bool), broadcast(node, inputs)?);
            if let ("Equal", [a, b]) = (node.op.as_str(), inputs) {
                fact.content = elementwise(&[a, b], |v| equal(&v[0], &v[1]));
            }
            Ok(vec![fact])
        }
        "Where" => {
            let value = inputs.get(1).copied().unwrap_or(&nothing);
            let mut fact = typed(value.dtype, broadcast(node, inputs)?);
            fact.content = elementwise(inputs, |v| match v {
                [Dim::Known(0), _, other] => other.clone(),
                [Dim::Known(_), value, _] => value.clone(),
                [_, value, other] if value.same(other) => value.clone(),
                _ => Dim::Unknown,
            });
            Ok(vec![fact])
        }
        "Not" | "IsNaN" | "IsInf" => one(Some(DType::Bool), x.shape.clone()),
        "MatMul" => one(x.dtype, matmul(node, inputs)?),
        "Gemm" => {
            let size = |fact: &Fact, transposed: i64, axis: usize| {
                let axis = if transposed != 0 { 1 - axis } else { axis };
                fact.shape.as_ref().and_then(|s| s.get(axis).cloned()).unwrap_or(Dim::Unknown)
            };
            let w = inputs.get(1).copied().unwrap_or(&nothing);
            let (ta, tb) = (node.int("transA", 0), node.int("transB", 0));
            check_equal(node, &size(x, ta, 1), &size(w, tb, 0), x, w)?;
            one(x.dtype, Some(vec![size(x, ta, 0), size(w, tb, 1)]))
        }
        "MatMulInteger" => one(Some(DType::I32), matmul(node, &inputs[..inputs.len().min(2)])?),
        "ConvInteger" => {
            // Where a convolution has its bias, this has a zero point.
            let facts = conv(node, &inputs[..inputs.len().min(2)], false)?;
            Ok(facts.into_iter().map(|fact| Fact { dtype: Some(DType::I32), ..fact }).collect())
        }
        "QuantizeLinear" => {
            let declared = DType::from_code(node.int("output_dtype", 0) as i32);
            let zero = inputs.get(2).and_then(|fact| fact.dtype);
            // Without a zero point there is nothing but bytes.
            let bytes = node.input(2).is_none().then_some(DType::U8);
            one(zero.or(declared).or(bytes), x.shape.clone())
        }
        "DequantizeLinear" => one(inputs.get(1).and_then(|scale| scale.dtype), x.shape.clone()),
        "DynamicQuantizeLinear" => Ok(vec![
            typed(Some(DType::U8), x.shape.clone()),
            typed(Some(DType::F32), Some(Vec::new())),
            typed(Some(DType::U8), Some(Vec::new())),
        ]),
        "GridSample" => {
            let grid = inputs.get(1).and_then(|grid| grid.shape.as_ref()).filter(|shape| shape.len() > 2);
            let shape = x.shape.as_ref().zip(grid).map(|(x, grid)| {
                let places = grid[1..grid.len() - 1].iter().cloned();
                x.iter().take(2).cloned().chain(places).collect()
            });
            one(x.dtype, shape)
        }
        "Col2Im" => {
            let content = |i: usize| inputs.get(i).and_then(|fact| fact.known_content());
            let shape = x.shape.as_ref().filter(|shape| shape.len() == 3);
            let shape = shape.zip(content(1)).zip(content(2)).map(|((shape, image), block)| {
                image_shape(shape[0].clone(), shape[1].known(), &image, &block)
            });
            one(x.dtype, shape)
        }
        "Conv" => conv(node, inputs, false),
        "ConvTranspose" => conv(node, inputs, true),
        "MaxPool" | "AveragePool" | "LpPool" => pool(node, x),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => one(
            x.dtype,
            x.shape.as_ref().map(|s| {
                s.iter().enumerate().map(|(i, d)| if i < 2 { d.clone() } else { Dim::Known(1) }).collect()
            }),
        ),
        op if op.starts_with("Reduce") => {
            let mut fact = typed(x.dtype, reduce(node, inputs)?);
            if let ("ReduceProd", Some(content), Some(1)) = (op, &x.content, x.rank()) {
                fact.content = Some(vec![count(content)]);
            }
            Ok(vec![fact])
        }
        "ArgMax" | "ArgMin" => {
            let shape = match &x.shape {
                Some(shape) => {
                    let axis = axis_of(node, node.int("axis", 0), shape.len())?;
                    let mut shape = shape.clone();
                    if node.int("keepdims", 1) != 0 {
                        shape[axis] = Dim::Known(1);
                    } else {
                        shape.remove(axis);
                    }
                    Some(shape)
                }
                None => None,
            };
            one(Some(DType::I64), shape)
        }
        "Cast" => {
            let dtype = DType::from_code(node.int("to", 0) as i32);
            let content = x.content.clone().filter(|_| dtype.is_some_and(|d| !d.is_float()));
            // True is 1, whatever number it was.
            let truth = |dim: Dim| dim.known().map_or(Dim::Unknown, |n| Dim::Known(i64::from(n != 0)));
            let content = match dtype {
                Some(DType::Bool) => content.map(|c| c.into_iter().map(truth).collect()),
                _ => content,
            };
            Ok(vec![Fact { dtype, shape: x.shape.clone(), content, constant: None }])
        }
        "CastLike" => one(inputs.get(1).and_then(|f| f.dtype), x.shape.clone()),
        "Softmax" | "LogSoftmax" | "Hardmax" => {
            if let Some(rank) = x.rank().filter(|&r| r > 0) {
                axis_of(node, node.int("axis", -1), rank)?;
            }
            one(x.dtype, x.shape.clone())
        }
        op if SAME_SHAPE.contains(&op) => {
            let content = x.content.clone().filter(|_| op == "Identity");
            let fact = Fact { dtype: x.dtype, shape: x.shape.clone(), content, constant: None };
            // Dropout's mask has the data's shape too.
            let mask = Fact { dtype: Some(DType::Bool), shape: x.shape.clone(), ..Fact::default() };
            Ok(if op == "Dropout" { vec![fact, mask] } else { vec![fact] })
        }
        "LayerNormalization" => {
            let mut facts = vec![Fact { content: None, constant: None, ..x.clone() }];
            if let Some(shape) = &x.shape {
                let axis = axis_of(node, node.int("axis", -1), shape.len())?;
                let stats: Vec<Dim> = shape
                    .iter()
                    .enumerate()
                    .map(|(i, d)| if i < axis { d.clone() } else { Dim::Known(1) })
                    .collect();
                facts.extend([typed(x.dtype, Some(stats.clone())), typed(x.dtype, Some(stats))]);
            }
            Ok(facts)
        }
        "BatchNormalization" => one(x.dtype, x.shape.clone()),
        "LSTM" | "GRU" | "RNN" => super::recurrent::infer(node, inputs),
        _ => layout::infer(node, inputs),
    }
}

const SAME_SHAPE: &[&str] = &[
    "Neg",
    "Sqrt",
    "Exp",
    "Log",
    "Abs",
    "Reciprocal",
    "Erf",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Sinh",
    "Cosh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Tanh",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Relu",
    "LeakyRelu",
    "Elu",
    "Selu",
    "Celu",
    "HardSigmoid",
    "HardSwish",
    "ThresholdedRelu",
    "Gelu",
    "Mish",
    "Swish",
    "Clip",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Identity",
    "Dropout",
    "InstanceNormalization",
    "GroupNormalization",
    "RMSNormalization",
    "LpNormalization",
    "LRN",
    "MeanVarianceNormalization",
    "CumSum",
    "Trilu",
    "ScatterND",
    "ScatterElements",
    "BitwiseNot",
];

pub(super) fn typed(dtype: Option<DType>, shape: Option<Vec<Dim>>) -> Fact {
    Fact { dtype, shape, ..Fact::default() }
}

fn constant(node: &Node) -> Result<Vec<Fact>> {
    Ok(match constant_value(node) {
        Some(data) => vec![Fact::constant(&data)],
        None => Vec::new(),
    })
}

/// The tensor of a `Constant` node; `None` for strings and sparse tensors.
pub(crate) fn constant_value(node: &Node) -> Option<TensorData> {
    node.attributes.iter().find_map(|(name, value)| match (name.as_str(), value) {
        ("value", Attribute::Tensor(data)) => Some(data.clone()),
        ("value_int", Attribute::Int(i)) => Some(TensorData::i64(&[], &[*i])),
        ("value_float", Attribute::Float(f)) => Some(TensorData::f32(&[], &[*f])),
        ("value_ints", Attribute::Ints(v)) => Some(TensorData::ints(v)),
        ("value_floats", Attribute::Floats(v)) => Some(TensorData::f32(&[v.len()], v)),
        _ => None,
    })
}

/// The shape of all inputs broadcast together; unknown where any of theirs is.
fn broadcast(node: &Node, inputs: &[&Fact]) -> Result<Option<Vec<Dim>>> {
    let mut shape: Vec<Dim> = Vec::new();
    for fact in inputs {
        let Some(other) = &fact.shape else { return Ok(None) };
        shape = dims::broadcast_shapes(&shape, other).ok_or_else(|| {
            malformed(
                node,
                format!("its inputs of shapes {} and {} do not broadcast", show(&shape), show(other)),
            )
        })?;
    }
    Ok(Some(shape))
}

/// The content of an elementwise operator on small integer tensors; one element goes with many.
fn elementwise(inputs: &[&Fact], combine: impl Fn(&[Dim]) -> Dim) -> Option<Vec<Dim>> {
    let contents: Vec<&Vec<Dim>> = inputs.iter().map(|f| f.content.as_ref()).collect::<Option<_>>()?;
    let count = contents.iter().map(|c| c.len()).max()?;
    if contents.iter().any(|c| c.len() != 1 && c.len() != count) {
        return None;
    }
    let at = |i: usize| -> Vec<Dim> {
        contents.iter().map(|c| c[if c.len() == 1 { 0 } else { i }].clone()).collect()
    };
    Some((0..count).map(|i| combine(&at(i))).collect())
}

/// Whether two sizes are equal, as far as it can be told: a symbol is never negative.
fn equal(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) => Dim::Known(i64::from(a == b)),
        (Dim::Symbol { .. }, Dim::Known(n)) | (Dim::Known(n), Dim::Symbol { .. }) if *n < 0 => Dim::Known(0),
        (a, b) if a.same(b) => Dim::Known(1),
        _ => Dim::Unknown,
    }
}

/// The content of integer arithmetic on shapes.
fn arithmetic(node: &Node, inputs: &[&Fact]) -> Option<Vec<Dim>> {
    let [a, b] = inputs else { return None };
    if a.dtype?.is_float() {
        return None;
    }
    elementwise(&[a, b], |v| match (node.op.as_str(), &v[0], &v[1]) {
        ("Add", a, b) => dims::add(a, b),
        ("Sub", a, b) => dims::sub(a, b),
        ("Mul", a, b) => dims::mul(a, b),
        ("Div", Dim::Known(x), Dim::Known(y)) if *y != 0 => {
            x.checked_div(*y).map_or(Dim::Unknown, Dim::Known)
        }
        ("Div", a, b) => dims::div_exact(a, b),
        ("Mod", Dim::Known(x), Dim::Known(y)) if *y > 0 => Dim::Known(x.rem_euclid(*y)),
        ("Max", Dim::Known(x), Dim::Known(y)) => Dim::Known(*x.max(y)),
        ("Min", Dim::Known(x), Dim::Known(y)) => Dim::Known(*x.min(y)),
        _ => Dim::Unknown,
    })
}

fn check_equal(node: &Node, a: &Dim, b: &Dim, x: &Fact, w: &Fact) -> Result<()> {
    if let (Dim::Known(m), Dim::Known(n)) = (a, b)
        && m != n
    {
        let shape = |f: &Fact| f.shape.as_deref().map_or("?".to_string(), show);
        return Err(malformed(
            node,
            format!("its inputs of shapes {} and {} do not fit", shape(x), shape(w)),
        ));
    }
    Ok(())
}

fn matmul(node: &Node, inputs: &[&Fact]) -> Result<Option<Vec<Dim>>> {
    let [a, b, ..] = inputs else { return Ok(None) };
    let (Some(s), Some(t)) = (&a.shape, &b.shape) else { return Ok(None) };
    if s.is_empty() || t.is_empty() {
        return Err(malformed(node, "MatMul needs tensors of rank 1 or more"));
    }
    let (mut s, mut t) = (s.clone(), t.clone());
    let (row, column) = (s.len() == 1, t.len() == 1);
    if row {
        s.insert(0, Dim::Known(1));
    }
    if column {
        t.push(Dim::Known(1));
    }
    check_equal(node, &s[s.len() - 1], &t[t.len() - 2], a, b)?;
    let batch = dims::broadcast_shapes(&s[..s.len() - 2], &t[..t.len() - 2]);
    let mut shape = batch.ok_or_else(|| {
        malformed(node, format!("its inputs of shapes {} and {} do not fit", show(&s), show(&t)))
    })?;
    if !row {
        shape.push(s[s.len() - 2].clone());
    }
    if !column {
        shape.push(t[t.len() - 1].clone());
    }
    Ok(Some(shape))
}

/// The window of a convolution whose weights have this fact.
pub(crate) fn conv_window(node: &Node, weight: &Fact) -> Result<Option<Window>> {
    let kernel = weight
        .shape
        .as_ref()
        .filter(|s| s.len() >= 3)
        .and_then(|s| s[2..].iter().map(Dim::known).collect::<Option<Vec<i64>>>());
    if kernel.is_none() && node.ints("kernel_shape").is_none() {
        return Ok(None);
    }
    Window::of(node, kernel).map(Some)
}

fn conv(node: &Node, inputs: &[&Fact], transposed: bool) -> Result<Vec<Fact>> {
    let [x, w, ..] = inputs else { return Err(malformed(node, "it needs an input and weights")) };
    let unknown = vec![typed(x.dtype, None)];
    let (Some(s), Some(t)) = (&x.shape, &w.shape) else { return Ok(unknown) };
    let Some(window) = conv_window(node, w)? else { return Ok(unknown) };
    if s.len() != window.rank() + 2 || t.len() != s.len() {
        return Err(malformed(node, format!("input {} and weights {} do not fit", show(s), show(t))));
    }
    let groups = node.int("group", 1);
    let expected = if transposed { t[0].clone() } else { dims::mul(&t[1], &Dim::Known(groups)) };
    check_equal(node, &s[1], &expected, x, w)?;
    let mut shape = vec![s[0].clone()];
    if transposed {
        shape.push(dims::mul(&t[1], &Dim::Known(groups)));
        let extra = node.ints("output_padding").map_or(vec![0; window.rank()], <[i64]>::to_vec);
        for axis in 0..window.rank() {
            shape.push(match node.ints("output_shape").and_then(|o| o.get(axis)) {
                Some(&size) => Dim::Known(size),
                None if node.string("auto_pad", "NOTSET").starts_with("SAME") => {
                    dims::mul(&s[2 + axis], &Dim::Known(window.strides[axis]))
                }
                None => window.transposed_size(axis, &s[2 + axis], extra.get(axis).copied().unwrap_or(0)),
            });
        }
    } else {
        shape.push(t[0].clone());
        shape.extend(places(&window, &s[2..]));
    }
    if shape[2..].iter().any(|d| d.known().is_some_and(|n| n <= 0)) {
        return Err(malformed(node, format!("the window does not fit into the input {}", show(s))));
    }
    Ok(vec![typed(x.dtype, Some(shape))])
}

/// The sizes after sliding `window` over `sizes`.
fn places(window: &Window, sizes: &[Dim]) -> Vec<Dim> {
    match window.resolved(sizes) {
        Some(window) => sizes.iter().enumerate().map(|(axis, d)| window.places(axis, d)).collect(),
        None => vec![Dim::Unknown; sizes.len()],
    }
}

fn pool(node: &Node, x: &Fact) -> Result<Vec<Fact>> {
    let window = Window::of(node, None)?;
    let Some(s) = &x.shape else { return Ok(vec![typed(x.dtype, None)]) };
    if s.len() != window.rank() + 2 {
        return Err(malformed(node, format!("input {} does not fit kernel {:?}", show(s), window.kernel)));
    }
    let mut shape = s[..2].to_vec();
    shape.extend(places(&window, &s[2..]));
    if shape[2..].iter().any(|d| d.known().is_some_and(|n| n <= 0)) {
        return Err(malformed(node, format!("the window does not fit into the input {}", show(s))));
    }
    Ok(vec![typed(x.dtype, Some(shape.clone())), typed(Some(DType::I64), Some(shape))])
}

/// The axes that a reduction goes over, sorted; `None` where they are not known.
pub(crate) fn reduced_axes(node: &Node, inputs: &[&Fact], rank: usize) -> Result<Option<Vec<usize>>> {
    let listed = match node.input(1) {
        None => Some(Vec::new()),
        Some(_) => inputs.get(1).and_then(|f| f.known_content()),
    };
    let Some(listed) = listed else { return Ok(None) };
    if listed.is_empty() {
        return Ok(Some(if node.int("noop_with_empty_axes", 0) != 0 { vec![] } else { (0..rank).collect() }));
    }
    let mut axes = listed.iter().map(|&a| axis_of(node, a, rank)).collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(Some(axes))
}

fn reduce(node: &Node, inputs: &[&Fact]) -> Result<Option<Vec<Dim>>> {
    let Some(shape) = inputs.first().and_then(|x| x.shape.as_ref()) else { return Ok(None) };
    let keep = node.int("keepdims", 1) != 0;
    let Some(axes) = reduced_axes(node, inputs, shape.len())? else {
        return Ok(keep.then(|| vec![Dim::Unknown; shape.len()]));
    };
    let reduced = |i: &usize| axes.contains(i);
    Ok(Some(if keep {
        (0..shape.len()).map(|i| if reduced(&i) { Dim::Known(1) } else { shape[i].clone() }).collect()
    } else {
        (0..shape.len()).filter(|i| !reduced(i)).map(|i| shape[i].clone()).collect()
    }))
}

/// The number of elements, as one size.
pub(super) fn count(shape: &[Dim]) -> Dim {
    Product::of(shape).map_or(Dim::Unknown, Product::into_dim)
}
