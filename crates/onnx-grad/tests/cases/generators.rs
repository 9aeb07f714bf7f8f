//! One generator for every operator (or for a few that share their attributes).

use onnx_grad::{Attribute, DType, TensorData};

use super::{Case, Maker};

type Generator = fn(u64) -> Case;

/// The operator a case is about, and its generator.
pub(crate) const GENERATORS: &[(&str, Generator)] = &[
    ("Add", |s| binary(s, "Add")),
    ("Sub", |s| binary(s, "Sub")),
    ("Mul", |s| binary(s, "Mul")),
    ("Div", |s| binary(s, "Div")),
    ("Max", |s| binary(s, "Max")),
    ("Min", |s| binary(s, "Min")),
    ("Mod", modulo),
    ("Sum", |s| variadic(s, "Sum")),
    ("Mean", |s| variadic(s, "Mean")),
    ("Pow", pow),
    ("Where", select),
    ("Clip", clip),
    ("Neg", |s| unary(s, "Neg", -2.0, 2.0)),
    ("Sqrt", |s| unary(s, "Sqrt", 0.2, 3.0)),
    ("Exp", |s| unary(s, "Exp", -2.0, 2.0)),
    ("Log", |s| unary(s, "Log", 0.2, 3.0)),
    ("Abs", |s| unary(s, "Abs", -2.0, 2.0)),
    ("Reciprocal", |s| unary(s, "Reciprocal", 0.3, 3.0)),
    ("Erf", |s| unary(s, "Erf", -2.0, 2.0)),
    ("Sin", |s| unary(s, "Sin", -3.0, 3.0)),
    ("Cos", |s| unary(s, "Cos", -3.0, 3.0)),
    ("Tan", |s| unary(s, "Tan", -1.0, 1.0)),
    ("Asin", |s| unary(s, "Asin", -0.9, 0.9)),
    ("Acos", |s| unary(s, "Acos", -0.9, 0.9)),
    ("Atan", |s| unary(s, "Atan", -2.0, 2.0)),
    ("Sinh", |s| unary(s, "Sinh", -2.0, 2.0)),
    ("Cosh", |s| unary(s, "Cosh", -2.0, 2.0)),
    ("Asinh", |s| unary(s, "Asinh", -2.0, 2.0)),
    ("Acosh", |s| unary(s, "Acosh", 1.2, 3.0)),
    ("Atanh", |s| unary(s, "Atanh", -0.8, 0.8)),
    ("Tanh", |s| unary(s, "Tanh", -2.0, 2.0)),
    ("Sigmoid", |s| unary(s, "Sigmoid", -3.0, 3.0)),
    ("Softplus", |s| unary(s, "Softplus", -3.0, 3.0)),
    ("Softsign", |s| unary(s, "Softsign", -3.0, 3.0)),
    ("Relu", |s| unary(s, "Relu", -2.0, 2.0)),
    ("HardSwish", |s| unary(s, "HardSwish", -5.0, 5.0)),
    ("Mish", |s| unary(s, "Mish", -3.0, 3.0)),
    ("Identity", |s| unary(s, "Identity", -3.0, 3.0)),
    ("LeakyRelu", |s| with_float(s, "LeakyRelu", &["alpha"])),
    ("Elu", |s| with_float(s, "Elu", &["alpha"])),
    ("Celu", |s| with_float(s, "Celu", &["alpha"])),
    ("Selu", |s| with_float(s, "Selu", &["alpha", "gamma"])),
    ("Swish", |s| with_float(s, "Swish", &["alpha"])),
    ("ThresholdedRelu", |s| with_float(s, "ThresholdedRelu", &["alpha"])),
    ("HardSigmoid", |s| with_float(s, "HardSigmoid", &["alpha", "beta"])),
    ("PRelu", prelu),
    ("Gelu", gelu),
    ("Softmax", |s| along_axis(s, "Softmax")),
    ("LogSoftmax", |s| along_axis(s, "LogSoftmax")),
    ("MatMul", matmul),
    ("Gemm", gemm),
    ("Einsum", einsum),
    ("Conv", conv),
    ("ConvTranspose", conv_transpose),
    ("MaxPool", |s| pool(s, "MaxPool")),
    ("AveragePool", |s| pool(s, "AveragePool")),
    ("GlobalAveragePool", |s| global_pool(s, "GlobalAveragePool")),
    ("GlobalMaxPool", |s| global_pool(s, "GlobalMaxPool")),
    ("BatchNormalization", batch_norm),
    ("InstanceNormalization", instance_norm),
    ("LayerNormalization", |s| layer_norm(s, "LayerNormalization")),
    ("RMSNormalization", |s| layer_norm(s, "RMSNormalization")),
    ("GroupNormalization", group_norm),
    ("LpNormalization", lp_norm),
    ("LRN", local_response_norm),
    ("MeanVarianceNormalization", mean_variance_norm),
    ("ReduceSum", |s| reduce(s, "ReduceSum")),
    ("ReduceMean", |s| reduce(s, "ReduceMean")),
    ("ReduceMax", |s| reduce(s, "ReduceMax")),
    ("ReduceMin", |s| reduce(s, "ReduceMin")),
    ("ReduceProd", |s| reduce(s, "ReduceProd")),
    ("ReduceL1", |s| reduce(s, "ReduceL1")),
    ("ReduceL2", |s| reduce(s, "ReduceL2")),
    ("ReduceLogSum", |s| reduce(s, "ReduceLogSum")),
    ("ReduceLogSumExp", |s| reduce(s, "ReduceLogSumExp")),
    ("ReduceSumSquare", |s| reduce(s, "ReduceSumSquare")),
    ("Reshape", reshape),
    ("Flatten", flatten),
    ("Squeeze", squeeze),
    ("Unsqueeze", unsqueeze),
    ("Transpose", transpose),
    ("Concat", concat),
    ("Split", split),
    ("Slice", slice),
    ("Expand", expand),
    ("Tile", tile),
    ("Pad", pad),
    ("Resize", resize),
    ("DepthToSpace", |s| blocks(s, "DepthToSpace")),
    ("SpaceToDepth", |s| blocks(s, "SpaceToDepth")),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("CumSum", cumsum),
    ("Trilu", trilu),
    ("Gather", gather),
    ("GatherElements", gather_elements),
    ("GatherND", gather_nd),
    ("ScatterElements", scatter_elements),
    ("ScatterND", scatter_nd),
    ("TopK", top_k),
    ("Attention", attention),
    ("Dropout", |s| unary(s, "Dropout", -2.0, 2.0)),
];

fn unary(seed: u64, op: &str, low: f64, high: f64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.within(&shape, low, high);
    let y = m.op(op, &[&x], &[]);
    m.finish(&y)
}

fn with_float(seed: u64, op: &str, names: &[&str]) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.within(&shape, -4.0, 4.0);
    let mut attributes = Vec::new();
    for name in names.iter().filter(|_| true) {
        if m.rng.coin() {
            attributes.push((*name, Attribute::Float(m.rng.apart(1, 0.3, 1.7)[0] as f32)));
        }
    }
    let y = m.op(op, &[&x], &attributes);
    m.finish(&y)
}

/// Two shapes that broadcast against each other.
fn broadcasting(m: &mut Maker) -> (Vec<usize>, Vec<usize>) {
    let full = m.shape(1, 4, 3);
    let shrink = |m: &mut Maker| {
        let cut = m.rng.size(0, full.len());
        let mut shape = full[cut..].to_vec();
        for size in &mut shape {
            if m.rng.int(0, 2) == 0 {
                *size = 1;
            }
        }
        shape
    };
    (shrink(m), if m.rng.coin() { full.clone() } else { shrink(m) })
}

fn binary(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let (a, b) = broadcasting(&mut m);
    let whole = a.len() == b.len() && a.first() == b.first();
    let x = if whole { m.batched(&a) } else { m.fixed(&a) };
    let y = match (op, m.rng.int(0, 2)) {
        ("Div", _) => m.parameter(&b, 0.4, 2.0),
        (_, 0) => m.parameter(&b, -1.9, 2.1),
        _ if whole => m.batched(&b),
        _ => m.fixed(&b),
    };
    // RTen multiplies by the reciprocal of a single number, and loses the axes of that number.
    m.reference_only = op == "Div" && b.len() > a.len() && b.iter().all(|&n| n == 1);
    let (first, second) = if op != "Div" && m.rng.coin() { (y.clone(), x.clone()) } else { (x, y) };
    let z = m.op(op, &[&first, &second], &[]);
    m.finish(&z)
}

fn modulo(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    let by = m.constant(&[], 0.71, 0.72);
    let y = m.op("Mod", &[&x, &by], &[("fmod", 1i64.into())]);
    m.finish(&y)
}

fn variadic(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let (a, b) = broadcasting(&mut m);
    let (x, y) = (m.fixed(&a), m.fixed(&b));
    let z = if m.rng.coin() { m.op(op, &[&x, &y], &[]) } else { m.op(op, &[&x, &y, &x], &[]) };
    m.finish(&z)
}

fn pow(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let y = match m.rng.int(0, 3) {
        0 => {
            let x = m.batched(&shape);
            let exponent = m.rng.pick(&[2.0, 3.0]);
            let exponent = m.b.constant(TensorData::scalar(DType::F32, exponent));
            m.op("Pow", &[&x, &exponent], &[])
        }
        1 => {
            let x = m.within(&shape, 0.3, 2.0);
            let exponent = m.rng.pick(&[-1.0, 0.5, 1.0, 0.0]);
            let exponent = m.b.constant(TensorData::scalar(DType::F32, exponent));
            m.op("Pow", &[&x, &exponent], &[])
        }
        _ => {
            let x = m.within(&shape, 0.3, 2.0);
            let last = shape[shape.len() - 1];
            let exponent = m.parameter(&[last], 0.5, 2.5);
            m.op("Pow", &[&x, &exponent], &[])
        }
    };
    m.finish(&y)
}

fn select(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (a, b) = broadcasting(&mut m);
    let (x, y) = (m.fixed(&a), m.fixed(&b));
    let condition: Vec<bool> = (0..b.iter().product()).map(|_| m.rng.coin()).collect();
    let condition = m.b.constant(TensorData::bool(&b, &condition));
    // RTen makes a vector of a choice between two scalars.
    m.reference_only = a.is_empty() && b.is_empty();
    let z = m.op("Where", &[&condition, &x, &y], &[]);
    m.finish(&z)
}

fn clip(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.batched(&shape);
    let (low, high) = (m.constant(&[], -1.11, -1.1), m.constant(&[], 0.8, 0.81));
    let inputs: Vec<&str> = match m.rng.int(0, 2) {
        0 => vec![&x, &low, &high],
        1 => vec![&x, &low],
        _ => vec![&x, "", &high],
    };
    let y = m.op("Clip", &inputs, &[]);
    m.finish(&y)
}

fn prelu(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, c, h) = (m.rng.size(1, 3), m.rng.size(1, 4), m.rng.size(1, 4));
    let x = m.batched(&[n, c, h]);
    let shape = m.rng.pick(&[vec![c, 1], vec![1], vec![c, h]]);
    let slope = m.parameter(&shape, -0.5, 0.7);
    let y = m.op("PRelu", &[&x, &slope], &[]);
    m.finish(&y)
}

fn gelu(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.batched(&shape);
    let mode = m.rng.pick(&["none", "tanh"]);
    let y = m.op("Gelu", &[&x], &[("approximate", mode.into())]);
    m.finish(&y)
}

fn along_axis(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 4, 4);
    let x = m.batched(&shape);
    let axis = m.rng.int(-(shape.len() as i64), shape.len() as i64 - 1);
    let y = m.op(op, &[&x], &[("axis", axis.into())]);
    m.finish(&y)
}

fn matmul(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (r, k, c) = (m.rng.size(1, 3), m.rng.size(1, 4), m.rng.size(1, 3));
    let (batch, other) = (m.rng.size(1, 3), m.rng.size(1, 2));
    let (a, b): (Vec<usize>, Vec<usize>) = match m.rng.int(0, 7) {
        0 => (vec![r, k], vec![k, c]),
        1 => (vec![k], vec![k, c]),
        2 => (vec![r, k], vec![k]),
        3 => (vec![k], vec![k]),
        4 => (vec![batch, r, k], vec![k, c]),
        5 => (vec![batch, other, r, k], vec![batch, other, k, c]),
        6 => (vec![batch, 1, r, k], vec![other, k, c]),
        _ => (vec![batch, r, k], vec![batch, k]).into_column(),
    };
    let x = if a.len() > 1 { m.batched(&a) } else { m.fixed(&a) };
    let w = m.parameter(&b, -1.7, 1.6);
    let y = m.op("MatMul", &[&x, &w], &[]);
    m.finish(&y)
}

trait IntoColumn {
    fn into_column(self) -> (Vec<usize>, Vec<usize>);
}

impl IntoColumn for (Vec<usize>, Vec<usize>) {
    /// A stack of matrices by a stack of columns.
    fn into_column(mut self) -> (Vec<usize>, Vec<usize>) {
        self.1.push(1);
        self
    }
}

fn gemm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (r, k, c) = (m.rng.size(1, 3), m.rng.size(1, 4), m.rng.size(1, 3));
    let (ta, tb) = (m.rng.coin(), m.rng.coin());
    let x = if ta { m.fixed(&[k, r]) } else { m.batched(&[r, k]) };
    let w = m.parameter(&if tb { [c, k] } else { [k, c] }, -1.2, 1.3);
    let attributes = [
        ("transA", Attribute::Int(ta.into())),
        ("transB", Attribute::Int(tb.into())),
        ("alpha", Attribute::Float(0.7)),
        ("beta", Attribute::Float(1.3)),
    ];
    let shape = m.rng.pick(&[vec![c], vec![1, c], vec![r, c], vec![1]]);
    let bias = m.parameter(&shape, -1.0, 1.0);
    let y = if m.rng.coin() {
        m.op("Gemm", &[&x, &w, &bias], &attributes)
    } else {
        // The bias must be used, or it has no gradient.
        let product = m.op("Gemm", &[&x, &w], &attributes);
        m.op("Add", &[&product, &bias], &[])
    };
    m.finish(&y)
}

fn einsum(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let forms = [
        "ij,jk->ik",
        "bij,bjk->bik",
        "bhqd,bhkd->bhqk",
        "bhqk,bhkd->bhqd",
        "i,j->ij",
        "ij->ji",
        "ij->i",
        "ij->",
        "bij,ij->b",
        "...ij,...jk->...ik",
        "ij,jk",
        "bi,bj,ij->b",
    ];
    let equation = m.rng.pick(&forms);
    let sizes: Vec<usize> = (0..26).map(|_| m.rng.size(1, 3)).collect();
    let leading = m.rng.size(1, 2);
    let size = |c: char| if c.is_ascii_lowercase() { sizes[(c as u8 - b'a') as usize] } else { leading };
    let inputs = equation.split("->").next().unwrap();
    let mut operands = Vec::new();
    for (i, term) in inputs.split(',').enumerate() {
        let shape: Vec<usize> = term.replace("...", "E").chars().map(size).collect();
        operands.push(if i == 1 { m.parameter(&shape, -1.1, 1.3) } else { m.fixed(&shape) });
    }
    let operands: Vec<&str> = operands.iter().map(|o| &**o).collect();
    let y = m.op("Einsum", &operands, &[("equation", equation.into())]);
    m.finish(&y)
}

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

fn conv(seed: u64) -> Case {
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

fn conv_transpose(seed: u64) -> Case {
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

fn pool(seed: u64, op: &str) -> Case {
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

fn global_pool(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(3, 4, 3);
    let x = m.batched(&shape);
    let y = m.op(op, &[&x], &[]);
    m.finish(&y)
}

fn batch_norm(seed: u64) -> Case {
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

fn instance_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 2);
    let mut shape = vec![m.rng.size(1, 2), m.rng.size(1, 3)];
    shape.extend((0..rank).map(|_| m.rng.size(2, 3)));
    let x = m.batched(&shape);
    let (gain, bias) = (m.parameter(&[shape[1]], 0.5, 1.5), m.parameter(&[shape[1]], -1.0, 1.0));
    let y = m.op("InstanceNormalization", &[&x, &gain, &bias], &[("epsilon", Attribute::Float(1e-3))]);
    m.finish(&y)
}

fn layer_norm(seed: u64, op: &str) -> Case {
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

fn group_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (groups, inner) = (m.rng.size(1, 2), m.rng.size(1, 2));
    let channels = groups * inner;
    let shape = [m.rng.size(1, 2), channels, 2, m.rng.size(1, 3)];
    let x = m.batched(&shape);
    let count = if m.rng.coin() { groups } else { channels };
    let (gain, bias) = (m.parameter(&[count], 0.5, 1.5), m.parameter(&[count], -1.0, 1.0));
    let attributes = [("num_groups", Attribute::Int(groups as i64)), ("epsilon", Attribute::Float(1e-3))];
    let y = m.op("GroupNormalization", &[&x, &gain, &bias], &attributes);
    m.finish(&y)
}

fn lp_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 3, 3);
    let x = m.batched(&shape);
    let axis = m.rng.int(-1, shape.len() as i64 - 1);
    let p = m.rng.int(1, 2);
    let y = m.op("LpNormalization", &[&x], &[("axis", axis.into()), ("p", p.into())]);
    m.finish(&y)
}

fn local_response_norm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(1, 2), m.rng.size(1, 5), 2, 2];
    let x = m.batched(&shape);
    let size = m.rng.pick(&[1i64, 3, 5]);
    let attributes =
        [("size", size.into()), ("alpha", Attribute::Float(0.5)), ("bias", Attribute::Float(1.5))];
    let y = m.op("LRN", &[&x], &attributes);
    m.finish(&y)
}

fn mean_variance_norm(seed: u64) -> Case {
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

fn reduce(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 4, 3);
    let x = match op {
        "ReduceLogSum" => m.within(&shape, 0.3, 2.0),
        _ => m.batched(&shape),
    };
    let keep = ("keepdims", Attribute::Int(m.rng.coin().into()));
    let rank = shape.len() as i64;
    let mut axes: Vec<i64> = (0..rank).collect();
    m.rng.shuffle(&mut axes);
    axes.truncate(m.rng.size(1, shape.len()));
    if op == "ReduceProd" && axes.contains(&0) {
        // The product rule wants the number of factors.
        let shape = shape.clone();
        m = Maker::new(seed);
        let x = m.fixed(&shape);
        let axes = m.b.ints(&axes);
        let y = m.op(op, &[&x, &axes], &[keep]);
        return m.finish(&y);
    }
    if m.rng.coin() {
        axes.iter_mut().for_each(|a| *a -= rank);
    }
    let axes = m.b.ints(&axes);
    let y = match m.rng.int(0, 5) {
        0 if op != "ReduceProd" => m.op(op, &[&x], &[keep]),
        _ => m.op(op, &[&x, &axes], &[keep]),
    };
    m.finish(&y)
}

fn reshape(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, c, h) = (m.rng.size(1, 3), m.rng.size(1, 3), m.rng.size(1, 3));
    let x = m.batched(&[n, c, h]);
    let (c, h) = (c as i64, h as i64);
    let target = m.rng.pick(&[vec![0, c * h], vec![-1, h], vec![0, h, c], vec![0, -1, 1], vec![-1]]);
    let y = m.b.reshape(&x, &target);
    m.finish(&y)
}

fn flatten(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 4, 3);
    let x = m.batched(&shape);
    let axis = m.rng.int(0, shape.len() as i64);
    let y = m.op("Flatten", &[&x], &[("axis", axis.into())]);
    m.finish(&y)
}

fn squeeze(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(2, 3);
    let x = m.batched(&[n, 1, 3, 1]);
    let axes = m.rng.pick(&[vec![1i64], vec![3], vec![1, 3], vec![-1]]);
    let y = m.b.squeeze(&x, &axes);
    m.finish(&y)
}

fn unsqueeze(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(1, 3);
    let x = m.batched(&[n, 3]);
    let axes = m.rng.pick(&[vec![0i64], vec![2], vec![0, 3], vec![-1]]);
    let y = m.b.unsqueeze(&x, &axes);
    m.finish(&y)
}

fn transpose(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 4, 3);
    let x = m.batched(&shape);
    let mut perm: Vec<i64> = (0..shape.len() as i64).collect();
    m.rng.shuffle(&mut perm);
    let y = if m.rng.int(0, 3) == 0 {
        m.op("Transpose", &[&x], &[])
    } else {
        m.op("Transpose", &[&x], &[("perm", perm.into())])
    };
    m.finish(&y)
}

fn concat(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 3, 3);
    let axis = m.rng.size(0, shape.len() - 1);
    let mut parts = Vec::new();
    for i in 0..m.rng.size(1, 3) {
        let mut part = shape.clone();
        part[axis] = m.rng.size(1, 3);
        parts.push(if i == 1 || axis == 0 { m.fixed(&part) } else { m.batched(&part) });
    }
    if m.rng.coin() {
        // The same value twice.
        parts.push(parts[0].clone());
    }
    let parts: Vec<&str> = parts.iter().map(|p| &**p).collect();
    let y = m.op("Concat", &parts, &[("axis", (axis as i64).into())]);
    m.finish(&y)
}

fn split(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let mut shape = m.shape(2, 3, 3);
    let axis = m.rng.size(1, shape.len() - 1);
    let even = m.rng.coin();
    let sizes: Vec<i64> = if even { vec![2, 2, 2] } else { vec![1, 3, 2] };
    shape[axis] = 6;
    let x = m.batched(&shape);
    let axis = ("axis", Attribute::Int(axis as i64));
    let parts = if even && m.rng.coin() {
        m.b.op_many("Split", &[&x], &[axis, ("num_outputs", 3i64.into())], 3)
    } else {
        let sizes = m.b.ints(&sizes);
        m.b.op_many("Split", &[&x, &sizes], &[axis], 3)
    };
    // The middle part gets no gradient.
    let (first, last) = (m.op("Exp", &[&parts[0]], &[]), m.op("Sin", &[&parts[2]], &[]));
    let [first, last] = [first, last].map(|v| m.op("ReduceSum", &[&v], &[]));
    let y = m.op("Add", &[&first, &last], &[]);
    m.finish(&y)
}

fn slice(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 3);
    let shape: Vec<usize> = (0..rank).map(|_| m.rng.size(3, 6)).collect();
    let x = m.batched(&shape);
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    m.rng.shuffle(&mut axes);
    axes.truncate(m.rng.size(1, rank));
    let (mut from, mut to, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for _ in &axes {
        let step = m.rng.pick(&[1i64, 1, 2, 3, -1, -2]);
        let (a, b) = m.rng.pick(&[(0, 2), (1, 1000), (1, -1), (-2, 1000), (0, 3)]);
        from.push(if step > 0 { a } else { m.rng.pick(&[-1, 2]) });
        to.push(if step > 0 { b } else { m.rng.pick(&[-1000, 0]) });
        steps.push(step);
    }
    let [from, to, axes, steps] = [from, to, axes, steps].map(|v| m.b.ints(&v));
    let y = m.op("Slice", &[&x, &from, &to, &axes, &steps], &[]);
    m.finish(&y)
}

fn expand(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, c) = (m.rng.size(1, 3), m.rng.size(1, 3));
    let (shape, target) =
        m.rng.pick(&[(vec![n, 1], vec![1, 4]), (vec![n, c], vec![2, 1, 1]), (vec![n, 1, c], vec![1, 3, 1])]);
    let x = m.batched(&shape);
    let target = m.b.ints(&target);
    let y = m.op("Expand", &[&x, &target], &[]);
    m.finish(&y)
}

fn tile(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    let repeats: Vec<i64> = shape.iter().map(|_| m.rng.int(1, 3)).collect();
    let repeats = m.b.ints(&repeats);
    let y = m.op("Tile", &[&x, &repeats], &[]);
    m.finish(&y)
}

fn pad(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let mode = m.rng.pick(&["constant", "reflect", "edge", "wrap"]);
    let shape = [m.rng.size(1, 2), m.rng.size(3, 4), m.rng.size(3, 4)];
    let x = m.batched(&shape);
    let most = if mode == "constant" { 3 } else { 2 };
    let least = if mode == "constant" && seed.is_multiple_of(3) { -1 } else { 0 };
    let pads: Vec<i64> = (0..4).map(|_| m.rng.int(least, most)).collect();
    // RTen has neither negative padding nor wrapping.
    m.reference_only = mode == "wrap" || pads.iter().any(|&p| p < 0);
    let attribute = [("mode", mode.into())];
    let y = if m.rng.coin() {
        let pads = m.b.ints(&[&[0], &pads[..2], &[0], &pads[2..]].concat());
        m.op("Pad", &[&x, &pads], &attribute)
    } else {
        m.reference_only = true;
        let (pads, axes) = (m.b.ints(&pads), m.b.ints(&[1, -1]));
        m.op("Pad", &[&x, &pads, "", &axes], &attribute)
    };
    m.finish(&y)
}

fn resize(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (h, w) = (m.rng.size(2, 4), m.rng.size(2, 4));
    let mode = m.rng.pick(&["nearest", "nearest", "linear", "cubic"]);
    let coordinates = m.rng.pick(&[
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric",
    ]);
    let nearest = m.rng.pick(&["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"]);
    let x = m.batched(&[2, 2, h, w]);
    let attributes = [
        ("mode", mode.into()),
        ("coordinate_transformation_mode", coordinates.into()),
        ("nearest_mode", nearest.into()),
    ];
    // RTen has the common combinations only.
    m.reference_only = mode == "cubic" || coordinates == "half_pixel_symmetric";
    let y = if m.rng.coin() {
        let scales = m.rng.pick(&[[1.0f32, 1.0, 2.0, 2.0], [1.0, 1.0, 1.5, 2.0], [1.0, 1.0, 0.5, 3.0]]);
        let scales = m.b.constant(TensorData::f32(&[4], &scales));
        m.op("Resize", &[&x, "", &scales], &attributes)
    } else {
        m.reference_only = true;
        let (a, b) = (m.rng.int(1, 6), m.rng.int(1, 6));
        let sizes = m.b.ints(&[a, b]);
        let mut attributes = attributes.to_vec();
        attributes.push(("axes", vec![2i64, 3].into()));
        m.op("Resize", &[&x, "", "", &sizes], &attributes)
    };
    m.finish(&y)
}

fn blocks(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(1, 2);
    let (c, h, w) = (m.rng.size(1, 2), m.rng.size(1, 2), m.rng.size(1, 2));
    let y = if op == "DepthToSpace" {
        let x = m.batched(&[n, 4 * c, h, w]);
        let mode = m.rng.pick(&["DCR", "CRD"]);
        m.op(op, &[&x], &[("blocksize", 2i64.into()), ("mode", mode.into())])
    } else {
        let x = m.batched(&[n, c, 2 * h, 2 * w]);
        m.op(op, &[&x], &[("blocksize", 2i64.into())])
    };
    m.finish(&y)
}

fn cast(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    // Through float64 and back; RTen has float32 only.
    m.reference_only = true;
    let wide = m.b.cast(&x, DType::F64);
    let bent = m.op("Sin", &[&wide], &[]);
    let y = m.b.cast(&bent, DType::F32);
    m.finish(&y)
}

fn cast_like(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    m.reference_only = true;
    let like = m.b.constant(TensorData::scalar(DType::F64, 0.0));
    let wide = m.op("CastLike", &[&x, &like], &[]);
    let bent = m.op("Sin", &[&wide], &[]);
    let y = m.b.cast(&bent, DType::F32);
    m.finish(&y)
}

fn cumsum(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.batched(&shape);
    let axis = m.rng.int(0, shape.len() as i64 - 1);
    let axis = m.b.constant(TensorData::i64(&[], &[axis]));
    let attributes = [
        ("exclusive", Attribute::Int(m.rng.coin().into())),
        ("reverse", Attribute::Int(m.rng.coin().into())),
    ];
    let y = m.op("CumSum", &[&x, &axis], &attributes);
    m.finish(&y)
}

fn trilu(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 3, 4);
    let x = m.batched(&shape);
    let upper = ("upper", Attribute::Int(m.rng.coin().into()));
    let k = m.rng.int(-2, 2);
    let k = m.b.constant(TensorData::i64(&[], &[k]));
    let y = if m.rng.coin() { m.op("Trilu", &[&x], &[upper]) } else { m.op("Trilu", &[&x, &k], &[upper]) };
    m.finish(&y)
}

fn gather(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let axis = m.rng.size(0, shape.len() - 1);
    let x = if axis == 0 { m.fixed(&shape) } else { m.batched(&shape) };
    let size = shape[axis] as i64;
    let index_shape = m.rng.pick(&[vec![], vec![1], vec![3], vec![2, 2]]);
    let indices: Vec<i64> = (0..index_shape.iter().product()).map(|_| m.rng.int(-size, size - 1)).collect();
    let indices = m.b.constant(TensorData::i64(&index_shape, &indices));
    let y = m.op("Gather", &[&x, &indices], &[("axis", (axis as i64).into())]);
    m.finish(&y)
}

/// Indices of a shape into an axis of `size` elements.
fn indices(m: &mut Maker, shape: &[usize], size: usize) -> onnx_grad::Value {
    let size = size as i64;
    let values: Vec<i64> = (0..shape.iter().product()).map(|_| m.rng.int(-size, size - 1)).collect();
    m.b.constant(TensorData::i64(shape, &values))
}

fn gather_elements(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(2, 3), m.rng.size(2, 4)];
    let axis = m.rng.size(0, 1);
    let x = m.fixed(&shape);
    let mut picked = shape;
    picked[axis] = m.rng.size(1, 4);
    let places = indices(&mut m, &picked, shape[axis]);
    let y = m.op("GatherElements", &[&x, &places], &[("axis", (axis as i64).into())]);
    m.finish(&y)
}

fn gather_nd(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [2, 3, m.rng.size(1, 2)];
    let x = m.fixed(&shape);
    let y = if m.rng.coin() {
        let places = m.b.constant(TensorData::i64(&[3, 2], &[0, 2, 1, 0, 0, 2]));
        m.op("GatherND", &[&x, &places], &[])
    } else {
        let places = indices(&mut m, &[2, 1], 3);
        m.op("GatherND", &[&x, &places], &[("batch_dims", 1i64.into())])
    };
    m.finish(&y)
}

fn scatter_elements(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [3, m.rng.size(3, 4)];
    let x = m.fixed(&shape);
    let updates = m.fixed(&[2, 2]);
    let add = m.rng.coin();
    // Places must differ, but where they are added.
    let places: &[i64] = if add { &[0, 1, 0, 1] } else { &[0, 1, 2, 0] };
    let places = m.b.constant(TensorData::i64(&[2, 2], places));
    let mut attributes = vec![("axis", Attribute::Int(0))];
    if add {
        attributes.push(("reduction", "add".into()));
    }
    let y = m.op("ScatterElements", &[&x, &places, &updates], &attributes);
    m.finish(&y)
}

fn scatter_nd(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [4, m.rng.size(1, 3)];
    let x = m.fixed(&shape);
    let updates = m.fixed(&[2, shape[1]]);
    let add = m.rng.coin();
    let places: &[i64] = if add { &[1, 1] } else { &[3, 1] };
    let places = m.b.constant(TensorData::i64(&[2, 1], places));
    let attributes: &[(&str, Attribute)] =
        if add { &[("reduction", Attribute::String("add".into()))] } else { &[] };
    let y = m.op("ScatterND", &[&x, &places, &updates], attributes);
    m.finish(&y)
}

fn top_k(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(1, 3), m.rng.size(3, 5)];
    let x = m.batched(&shape);
    let k = m.b.ints(&[2]);
    let largest = ("largest", Attribute::Int(m.rng.coin().into()));
    let y = m.b.op_many("TopK", &[&x, &k], &[("axis", (-1i64).into()), largest], 2);
    m.finish(&y[0])
}

fn attention(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, q_len, k_len, size) = (m.rng.size(1, 2), m.rng.size(1, 3), m.rng.size(2, 3), 2);
    let kv_heads = m.rng.size(1, 2);
    let q_heads = kv_heads * m.rng.size(1, 2);
    let flat = m.rng.coin();
    let shape = |heads: usize, len: usize| {
        if flat { vec![n, len, heads * size] } else { vec![n, heads, len, size] }
    };
    let q = m.fixed(&shape(q_heads, q_len));
    let k = m.fixed(&shape(kv_heads, k_len));
    let v = m.fixed(&shape(kv_heads, k_len));
    let mut attributes = vec![("is_causal", Attribute::Int(i64::from(q_len == k_len && m.rng.coin())))];
    if flat {
        attributes.push(("q_num_heads", (q_heads as i64).into()));
        attributes.push(("kv_num_heads", (kv_heads as i64).into()));
    }
    if m.rng.coin() {
        attributes.push(("scale", Attribute::Float(0.8)));
    }
    let y = match m.rng.int(0, 2) {
        0 => m.op("Attention", &[&q, &k, &v], &attributes),
        1 => {
            let mask = m.fixed(&[q_len, k_len]);
            m.op("Attention", &[&q, &k, &v, &mask], &attributes)
        }
        _ => {
            let mut mask: Vec<bool> = (0..q_len * k_len).map(|_| m.rng.coin()).collect();
            (0..q_len).for_each(|row| mask[row * k_len] = true);
            let mask = m.b.constant(TensorData::bool(&[q_len, k_len], &mask));
            m.op("Attention", &[&q, &k, &v, &mask], &attributes)
        }
    };
    m.finish(&y)
}
