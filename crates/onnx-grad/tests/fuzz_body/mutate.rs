//! Models broken on purpose, from a real model and a string of bytes that decides how.

use onnx_grad::proto::{
    AttributeProto, DimensionProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto, attribute_type,
};
use onnx_grad::{NEWEST_OPSET, OLDEST_OPSET, coverage};
use prost::Message;

/// Operators that are neither in the coverage table nor in ONNX's node tests.
const MORE_OPS: &[&str] =
    &["If", "Loop", "Scan", "Upsample", "Scatter", "Constant", "QLinearMatMul", "LpPool", "LSTM", "Wobble"];

/// Attributes that hold one integer.
const INT: &[&str] = &[
    "axis",
    "keepdims",
    "to",
    "group",
    "ceil_mode",
    "transA",
    "transB",
    "blocksize",
    "batch_dims",
    "size",
    "num_groups",
    "num_outputs",
    "start",
    "end",
    "noop_with_empty_axes",
    "allowzero",
    "upper",
    "exclusive",
    "reverse",
    "p",
    "largest",
    "k",
    "q_num_heads",
    "kv_num_heads",
    "is_causal",
    "count_include_pad",
    "training_mode",
    "fmod",
    "value_int",
    "storage_order",
];
/// Attributes that hold several.
const INTS: &[&str] = &[
    "kernel_shape",
    "strides",
    "dilations",
    "pads",
    "perm",
    "axes",
    "output_padding",
    "output_shape",
    "split",
    "value_ints",
];
const FLOAT: &[&str] = &["alpha", "beta", "gamma", "epsilon", "bias", "scale", "softcap", "value_float"];
const STRING: &[(&str, &[&str])] = &[
    ("auto_pad", &["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "?"]),
    ("mode", &["nearest", "linear", "cubic", "reflect", "edge", "wrap", "constant", "CRD", "DCR"]),
    ("equation", &["ij,jk->ik", "...i,...i", "ii->i", "i,j->ij", "...->...", "ij->", "->", "b...,..."]),
    ("reduction", &["add", "mul", "max", "min", "none"]),
    ("coordinate_transformation_mode", &["half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]),
    ("nearest_mode", &["floor", "ceil", "round_prefer_ceil"]),
    ("keep_aspect_ratio_policy", &["not_larger", "not_smaller", "stretch"]),
    ("approximate", &["tanh", "none"]),
];

/// Larger nodes are not put into the branches of an `If`.
const MAX_WRAPPED: usize = 4096;

/// Bytes as a source of choices; all choices are 0 behind the end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn more(&self) -> bool {
        !self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        let wide = if n > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (wide | usize::from(self.byte())) % n.max(1)
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    fn pick_mut<'t, T>(&mut self, from: &'t mut [T]) -> Option<&'t mut T> {
        if from.is_empty() {
            return None;
        }
        let i = self.below(from.len());
        from.get_mut(i)
    }

    /// Mostly small, sometimes absurd.
    fn number(&mut self) -> i64 {
        match self.byte() {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => 1 << 40,
            3 => 1 << 31,
            4 => (1 << 62) + 1,
            5 => -(1 << 33),
            6 => 65_537,
            7 => 1_000_000,
            b => i64::from(b) % 9 - 3,
        }
    }

    fn float(&mut self) -> f32 {
        *self.pick(&[0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, f32::NAN, f32::INFINITY, -0.0])
    }

    fn numbers(&mut self, most: usize) -> Vec<i64> {
        (0..self.below(most + 1)).map(|_| self.number()).collect()
    }
}

/// The model with as many changes as the choices last for.
pub(crate) fn mutated(model: &[u8], choices: &[u8]) -> Vec<u8> {
    let Ok(mut proto) = ModelProto::decode(model) else { return model.to_vec() };
    let mut choices = Choices(choices);
    let c = &mut choices;
    if proto.opset_import.is_empty() {
        proto.opset_import.push(OperatorSetIdProto::default());
    }
    if let Some(import) = proto.opset_import.first_mut() {
        import.version = import.version.map(|v| v.clamp(OLDEST_OPSET, NEWEST_OPSET));
    }
    while c.more() {
        match c.below(24) {
            0 => {
                if let Some(import) = c.pick_mut(&mut proto.opset_import) {
                    import.version = Some(OLDEST_OPSET + c.below(15) as i64);
                }
            }
            1 => to_function(c, &mut proto),
            2 => {
                if let Some(function) = c.pick_mut(&mut proto.functions) {
                    change_nodes(c, &mut function.node, &[]);
                }
            }
            _ => {
                let Some(mut graph) = proto.graph.as_mut() else { break };
                if c.below(4) == 0 {
                    graph = body(c, graph);
                }
                change(c, graph);
            }
        }
    }
    proto.encode_to_vec()
}

/// A body somewhere inside, or the graph itself.
fn body<'g>(c: &mut Choices<'_>, graph: &'g mut GraphProto) -> &'g mut GraphProto {
    let holds = |n: &NodeProto| n.attribute.iter().any(|a| a.g.is_some());
    let Some(i) = graph.node.iter().position(holds) else { return graph };
    let node = &mut graph.node[i];
    let bodies: Vec<usize> = (0..node.attribute.len()).filter(|&k| node.attribute[k].g.is_some()).collect();
    let k = *c.pick(&bodies);
    node.attribute[k].g.as_mut().expect("it was found to be there")
}

fn names(graph: &GraphProto) -> Vec<String> {
    let mut names = vec![String::new()];
    names.extend(graph.input.iter().filter_map(|v| v.name.clone()));
    names.extend(graph.initializer.iter().filter_map(|t| t.name.clone()));
    names.extend(graph.node.iter().flat_map(|n| n.output.clone()));
    names
}

fn op(c: &mut Choices<'_>) -> String {
    if c.below(6) == 0 {
        return c.pick(MORE_OPS).to_string();
    }
    c.pick(&coverage()).op.to_string()
}

fn change(c: &mut Choices<'_>, graph: &mut GraphProto) {
    let known = names(graph);
    match c.below(12) {
        0 | 1 => change_nodes(c, &mut graph.node, &known),
        2 => {
            // One more node behind the others, whose output is asked for.
            let name = format!("new.{}", graph.node.len());
            let node = NodeProto {
                input: (0..c.below(4)).map(|_| c.pick(&known).clone()).collect(),
                output: vec![name.clone()],
                op_type: Some(op(c)),
                attribute: (0..c.below(3)).map(|_| attribute(c)).collect(),
                ..NodeProto::default()
            };
            graph.node.push(node);
            if let Some(output) = c.pick_mut(&mut graph.output) {
                output.name = Some(name);
            }
        }
        3 | 4 => {
            if let Some(info) = c.pick_mut(&mut graph.input) {
                resize(c, info);
            }
        }
        5 | 6 => {
            // An input becomes a constant.
            if !graph.input.is_empty() {
                let i = c.below(graph.input.len());
                let info = graph.input.remove(i);
                graph.initializer.push(TensorProto { name: info.name, ..tensor(c) });
            }
        }
        7 => {
            if let Some(data) = c.pick_mut(&mut graph.initializer) {
                match c.below(4) {
                    0 => data.data_type = Some(c.below(18) as i32),
                    1 => data.dims = c.numbers(5),
                    2 => data.raw_data = None,
                    _ => *data = TensorProto { name: data.name.clone(), ..tensor(c) },
                }
            }
        }
        8 => {
            if let Some(info) = c.pick_mut(&mut graph.output) {
                if c.below(2) == 0 {
                    info.name = Some(c.pick(&known).clone());
                } else {
                    resize(c, info);
                }
            }
        }
        9 => {
            // What the file says of a value in between need not be true.
            let mut info = ValueInfoProto { name: Some(c.pick(&known).clone()), r#type: None };
            resize(c, &mut info);
            graph.value_info.push(info);
        }
        10 => wrap_in_if(c, graph),
        _ => {
            if !graph.node.is_empty() {
                let i = c.below(graph.node.len());
                graph.node.remove(i);
            }
        }
    }
}

fn change_nodes(c: &mut Choices<'_>, nodes: &mut Vec<NodeProto>, known: &[String]) {
    if c.below(12) == 0 && !nodes.is_empty() {
        let mut copy = c.pick(nodes).clone();
        copy.output = copy.output.iter().map(|name| format!("{name}.copy")).collect();
        nodes.push(copy);
        return;
    }
    let Some(node) = c.pick_mut(nodes) else { return };
    match c.below(8) {
        0 => node.op_type = Some(op(c)),
        1 | 2 => {
            if let Some(input) = c.pick_mut(&mut node.input) {
                *input = if known.is_empty() { String::new() } else { c.pick(known).clone() };
            }
        }
        3 => {
            let _ = if c.below(2) == 0 { node.input.pop() } else { node.output.pop() };
        }
        4 => node.output.push(format!("more.{}", c.byte())),
        5 => {
            if let Some(old) = c.pick_mut(&mut node.attribute) {
                match old.r#type {
                    Some(attribute_type::INT) => old.i = Some(c.number()),
                    Some(attribute_type::INTS) => match c.pick_mut(&mut old.ints) {
                        Some(value) => *value = c.number(),
                        None => old.ints = c.numbers(5),
                    },
                    Some(attribute_type::FLOAT) => old.f = Some(c.float()),
                    Some(attribute_type::TENSOR) => old.t = Some(tensor(c)),
                    _ => old.r#type = Some(c.below(12) as i32),
                }
            }
        }
        _ => {
            let new = attribute(c);
            node.attribute.retain(|a| a.name != new.name);
            node.attribute.push(new);
        }
    }
}

fn attribute(c: &mut Choices<'_>) -> AttributeProto {
    let named = |name: &str, kind| AttributeProto {
        name: Some(name.to_string()),
        r#type: Some(kind),
        ..AttributeProto::default()
    };
    match c.below(6) {
        0 | 1 => AttributeProto { i: Some(c.number()), ..named(c.pick::<&str>(INT), attribute_type::INT) },
        2 => AttributeProto { ints: c.numbers(8), ..named(c.pick::<&str>(INTS), attribute_type::INTS) },
        3 => AttributeProto { f: Some(c.float()), ..named(c.pick::<&str>(FLOAT), attribute_type::FLOAT) },
        4 => AttributeProto { t: Some(tensor(c)), ..named("value", attribute_type::TENSOR) },
        _ => {
            let (name, values) = *c.pick(STRING);
            let text = c.pick(values).as_bytes();
            AttributeProto { s: Some(text.to_vec().into()), ..named(name, attribute_type::STRING) }
        }
    }
}

/// A small tensor of a common type.
fn tensor(c: &mut Choices<'_>) -> TensorProto {
    let kind = *c.pick(&[1, 7, 7, 9, 6, 11]);
    let dims: Vec<i64> = match c.below(6) {
        0 => vec![],
        1..4 => vec![c.below(5) as i64],
        _ => (0..c.below(5)).map(|_| c.below(4) as i64).collect(),
    };
    let count = dims.iter().product::<i64>();
    let mut data = TensorProto { dims, data_type: Some(kind), ..TensorProto::default() };
    for _ in 0..count {
        match kind {
            1 => data.float_data.push(c.float()),
            11 => data.double_data.push(f64::from(c.float())),
            7 => data.int64_data.push(c.number()),
            _ => data.int32_data.push(c.number() as i32),
        }
    }
    data
}

fn resize(c: &mut Choices<'_>, info: &mut ValueInfoProto) {
    let tensor = info
        .r#type
        .get_or_insert_with(TypeProto::default)
        .tensor_type
        .get_or_insert(TensorTypeProto { elem_type: Some(1), shape: None });
    let size = |c: &mut Choices<'_>| match c.below(8) {
        0 => DimensionProto::default(),
        1 => DimensionProto { dim_value: None, dim_param: Some("N".to_string()) },
        2 => DimensionProto { dim_value: Some(c.number()), dim_param: None },
        _ => DimensionProto { dim_value: Some(c.below(7) as i64), dim_param: None },
    };
    match (c.below(5), &mut tensor.shape) {
        (0, shape) => *shape = None,
        (1, _) => tensor.elem_type = Some(*c.pick(&[1, 7, 9, 10, 11, 8])),
        (2, _) | (_, None) => {
            tensor.shape = Some(TensorShapeProto { dim: (0..c.below(6)).map(|_| size(c)).collect() });
        }
        (_, Some(shape)) => {
            if let Some(dim) = c.pick_mut(&mut shape.dim) {
                *dim = size(c);
            }
        }
    }
}

/// A node moves into both branches of an `If`.
fn wrap_in_if(c: &mut Choices<'_>, graph: &mut GraphProto) {
    let known = names(graph);
    let Some(node) = c.pick_mut(&mut graph.node) else { return };
    // Each wrapping doubles what is inside: it is the crate that is to be tried, not the maker of files.
    if node.encoded_len() > MAX_WRAPPED {
        return;
    }
    let inner = std::mem::take(node);
    let info = |name: &String| ValueInfoProto {
        name: Some(name.clone()),
        r#type: Some(TypeProto { tensor_type: Some(TensorTypeProto { elem_type: Some(1), shape: None }) }),
    };
    let branch = |name: &str| AttributeProto {
        name: Some(name.to_string()),
        r#type: Some(attribute_type::GRAPH),
        g: Some(GraphProto {
            output: inner.output.iter().map(info).collect(),
            node: vec![inner.clone()],
            ..GraphProto::default()
        }),
        ..AttributeProto::default()
    };
    *node = NodeProto {
        input: vec![c.pick(&known).clone()],
        output: inner.output.clone(),
        op_type: Some("If".to_string()),
        attribute: vec![branch("then_branch"), branch("else_branch")],
        ..NodeProto::default()
    };
    if c.below(2) == 0 {
        let flag = TensorProto {
            data_type: Some(9),
            int32_data: vec![c.below(2) as i32],
            name: Some(format!("flag.{}", graph.initializer.len())),
            ..TensorProto::default()
        };
        node.input = vec![flag.name.clone().unwrap_or_default()];
        graph.initializer.push(flag);
    }
}

/// A node becomes a call of a function that holds it.
fn to_function(c: &mut Choices<'_>, proto: &mut ModelProto) {
    let Some(node) = proto.graph.as_mut().and_then(|g| c.pick_mut(&mut g.node)) else { return };
    let name = format!("Function{}", proto.functions.len());
    let mut inner = node.clone();
    let mut inputs = node.input.clone();
    inputs.sort();
    inputs.dedup();
    inputs.retain(|name| !name.is_empty());
    if c.below(8) == 0 {
        // A function that calls itself.
        inner.op_type = Some(name.clone());
        inner.domain = Some("local".to_string());
    }
    if let (Some(first), true) = (inner.attribute.first_mut(), c.below(2) == 0) {
        first.ref_attr_name = first.name.clone();
    }
    let function = FunctionProto {
        name: Some(name.clone()),
        domain: Some("local".to_string()),
        input: inputs.clone(),
        output: node.output.clone(),
        node: vec![inner],
        opset_import: vec![OperatorSetIdProto {
            domain: None,
            version: Some(OLDEST_OPSET + c.below(14) as i64),
        }],
        ..FunctionProto::default()
    };
    proto.functions.push(function);
    node.op_type = Some(name);
    node.domain = Some("local".to_string());
    node.input = inputs;
}
