//! What files say in more than one way: functions, typed and raw data, data files, symbolic sizes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use onnx_grad::eval::{Array, evaluate};
use onnx_grad::proto::{
    AttributeProto, DimensionProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
    attribute_type,
};
use onnx_grad::{DType, Dim, Error, Model, TensorData, grad};
use prost::Message;

fn text(s: &str) -> Option<String> {
    Some(s.to_string())
}

fn value(name: &str, code: i32, dims: &[i64]) -> ValueInfoProto {
    let dim = |&d: &i64| match d {
        -1 => DimensionProto { dim_value: None, dim_param: text("N") },
        d => DimensionProto { dim_value: Some(d), dim_param: None },
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type: Some(code), shape });
    ValueInfoProto { name: text(name), r#type: Some(TypeProto { tensor_type }) }
}

fn node(op: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
    NodeProto {
        op_type: text(op),
        input: names(inputs),
        output: names(outputs),
        attribute,
        ..NodeProto::default()
    }
}

fn call(function: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto { domain: text("local"), ..node(function, inputs, outputs, attribute) }
}

fn attribute(name: &str, kind: i32) -> AttributeProto {
    AttributeProto { name: text(name), r#type: Some(kind), ..AttributeProto::default() }
}

fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { f: Some(f), ..attribute(name, attribute_type::FLOAT) }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { ints: ints.to_vec(), ..attribute(name, attribute_type::INTS) }
}

fn reference(name: &str, kind: i32, to: &str) -> AttributeProto {
    AttributeProto { ref_attr_name: text(to), ..attribute(name, kind) }
}

fn branch(name: &str, nodes: Vec<NodeProto>, output: &str) -> AttributeProto {
    let graph = GraphProto { node: nodes, output: vec![value(output, 1, &[2, 2])], ..GraphProto::default() };
    AttributeProto { g: Some(graph), ..attribute(name, attribute_type::GRAPH) }
}

fn imports(version: i64) -> Vec<OperatorSetIdProto> {
    vec![
        OperatorSetIdProto { domain: text(""), version: Some(version) },
        OperatorSetIdProto { domain: text("local"), version: Some(1) },
    ]
}

fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: Vec<NodeProto>) -> FunctionProto {
    let names = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
    FunctionProto {
        name: text(name),
        domain: text("local"),
        input: names(inputs),
        output: names(outputs),
        node: nodes,
        opset_import: imports(18),
        ..FunctionProto::default()
    }
}

/// A model from `x` of shape [2, 2], and a flag `c`, to `y`.
fn model(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: imports(18),
        graph: Some(GraphProto {
            name: text("graph"),
            input: vec![value("x", 1, &[2, 2]), value("c", 9, &[])],
            output: vec![value("y", 1, &[2, 2])],
            node: nodes,
            ..GraphProto::default()
        }),
        functions,
        ..ModelProto::default()
    }
}

fn read(proto: &ModelProto) -> onnx_grad::Result<Model> {
    Model::from_bytes(proto.encode_to_vec())
}

/// `y` of `x = [[1, -2], [3, 4]]`.
fn run(model: &Model, flag: bool) -> Vec<f64> {
    let inputs = BTreeMap::from([
        ("x".to_string(), Array::new(DType::F32, &[2, 2], vec![1.0, -2.0, 3.0, 4.0])),
        ("c".to_string(), Array::scalar(DType::Bool, f64::from(flag))),
    ]);
    evaluate(&model.graph, &inputs).unwrap()[0].data.iter().copied().collect()
}

#[test]
fn functions_are_inlined_inside_bodies() {
    let twice = function("Twice", &["a"], &["b"], vec![node("Add", &["a", "a"], &["b"], vec![])]);
    let select = node(
        "If",
        &["c"],
        &["y"],
        vec![
            branch("then_branch", vec![call("Twice", &["x"], &["t"], vec![])], "t"),
            branch("else_branch", vec![node("Neg", &["x"], &["e"], vec![])], "e"),
        ],
    );
    let model = read(&model(vec![select], vec![twice])).unwrap();
    assert_eq!(run(&model, true), [2.0, -4.0, 6.0, 8.0]);
    assert_eq!(run(&model, false), [-1.0, 2.0, -3.0, -4.0]);
}

#[test]
fn bodies_inside_functions_are_renamed() {
    // Both calls bring an `h` and a `t` of their own, and the body uses the function's names.
    let gated = function(
        "Gated",
        &["flag", "a"],
        &["b"],
        vec![
            node("Abs", &["a"], &["h"], vec![]),
            node(
                "If",
                &["flag"],
                &["b"],
                vec![
                    branch("then_branch", vec![node("Add", &["h", "a"], &["t"], vec![])], "t"),
                    branch("else_branch", vec![node("Identity", &["h"], &["t"], vec![])], "t"),
                ],
            ),
        ],
    );
    let nodes = vec![call("Gated", &["c", "x"], &["h"], vec![]), call("Gated", &["c", "h"], &["y"], vec![])];
    let model = read(&model(nodes, vec![gated])).unwrap();
    assert_eq!(run(&model, true), [4.0, 0.0, 12.0, 16.0]);
    assert_eq!(run(&model, false), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn attribute_references_are_filled_also_inside_bodies() {
    let leaky = |input: &str, output: &str| {
        node("LeakyRelu", &[input], &[output], vec![reference("alpha", attribute_type::FLOAT, "slope")])
    };
    let mut bent = function(
        "Bent",
        &["flag", "a"],
        &["b"],
        vec![node(
            "If",
            &["flag"],
            &["b"],
            vec![
                branch("then_branch", vec![leaky("a", "t")], "t"),
                branch("else_branch", vec![node("Neg", &["a"], &["e"], vec![])], "e"),
            ],
        )],
    );
    bent.attribute_proto = vec![float("slope", 0.25)];
    let plain = call("Bent", &["c", "x"], &["y"], vec![]);
    assert_eq!(run(&read(&model(vec![plain], vec![bent.clone()])).unwrap(), true), [1.0, -0.5, 3.0, 4.0]);
    let steep = call("Bent", &["c", "x"], &["y"], vec![float("slope", 2.0)]);
    assert_eq!(run(&read(&model(vec![steep], vec![bent])).unwrap(), true), [1.0, -4.0, 3.0, 4.0]);
}

#[test]
fn a_function_is_read_in_its_own_opset() {
    // Up to opset 12, Softmax flattens from `axis` on and axes are attributes; the reference comes first.
    let old = |version| {
        let softmax = node(
            "Softmax",
            &["a"],
            &["s"],
            vec![AttributeProto { i: Some(0), ..attribute("axis", attribute_type::INT) }],
        );
        let sum = node("ReduceSum", &["s"], &["r"], vec![reference("axes", attribute_type::INTS, "over")]);
        let spread = node("Add", &["r", "s"], &["b"], vec![]);
        FunctionProto {
            opset_import: imports(version),
            ..function("Old", &["a"], &["b"], vec![softmax, sum, spread])
        }
    };
    let proto = model(vec![call("Old", &["x"], &["y"], vec![ints("over", &[1])])], vec![old(12)]);
    let found = run(&read(&proto).unwrap(), true);
    let exp = [1.0f64, -2.0, 3.0, 4.0].map(f64::exp);
    let softmax = exp.map(|e| e / exp.iter().sum::<f64>());
    for i in 0..4 {
        let row = softmax[i / 2 * 2] + softmax[i / 2 * 2 + 1];
        assert!((found[i] - row - softmax[i]).abs() < 1e-12, "{found:?}");
    }
    let error = read(&model(vec![call("Old", &["x"], &["y"], vec![])], vec![old(9)])).unwrap_err();
    assert!(matches!(error, Error::Opset { found: 9, .. }), "{error}");
}

#[test]
fn functions_call_functions_but_not_themselves() {
    let inner = function("Inner", &["a"], &["b"], vec![node("Neg", &["a"], &["b"], vec![])]);
    // The first output is an input handed through, and the input is used besides.
    let outer = function("Outer", &["a"], &["a", "b"], vec![call("Inner", &["a"], &["b"], vec![])]);
    let nodes = vec![
        call("Outer", &["x"], &["same", "other"], vec![]),
        node("Sub", &["same", "other"], &["y"], vec![]),
    ];
    let model_of = |functions| read(&model(nodes.clone(), functions));
    assert_eq!(run(&model_of(vec![inner, outer.clone()]).unwrap(), true), [2.0, -4.0, 6.0, 8.0]);
    let circular = function("Inner", &["a"], &["b"], vec![call("Outer", &["a"], &["b"], vec![])]);
    let error = model_of(vec![circular, outer]).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains("calls itself"), "{error}");
}

#[test]
fn functions_that_multiply_are_refused() {
    let ten = |name: &str, inner: &str| {
        let calls = (0..10).map(|i| call(inner, &["a"], &[&format!("b{i}")], vec![])).collect();
        function(name, &["a"], &["b0"], calls)
    };
    let mut functions = vec![function("F0", &["a"], &["b"], vec![node("Neg", &["a"], &["b"], vec![])])];
    functions.extend((1..20).map(|i| ten(&format!("F{i}"), &format!("F{}", i - 1))));
    let error = read(&model(vec![call("F19", &["x"], &["y"], vec![])], functions)).unwrap_err();
    assert!(error.to_string().contains("too many nodes"), "{error}");
}

#[test]
fn overloads_of_a_function_are_told_apart() {
    let overload = |name: &str, op: &str| FunctionProto {
        overload: text(name),
        ..function("F", &["a"], &["b"], vec![node(op, &["a"], &["b"], vec![])])
    };
    let chosen = NodeProto { overload: text("second"), ..call("F", &["x"], &["y"], vec![]) };
    let proto = model(vec![chosen], vec![overload("first", "Neg"), overload("second", "Abs")]);
    assert_eq!(run(&read(&proto).unwrap(), true), [1.0, 2.0, 3.0, 4.0]);
}

/// The tensor a model reads from a message.
fn tensor(proto: TensorProto) -> onnx_grad::Result<TensorData> {
    TensorData::decode(proto.encode_to_vec())
}

#[test]
fn typed_data_beside_empty_raw_data() {
    let proto = TensorProto {
        dims: vec![2],
        data_type: Some(1),
        float_data: vec![1.5, -2.0],
        raw_data: Some(Vec::new().into()),
        ..TensorProto::default()
    };
    assert_eq!(tensor(proto).unwrap(), TensorData::f32(&[2], &[1.5, -2.0]));
}

#[test]
fn absurd_shapes_are_refused_even_when_empty() {
    for dims in [vec![0, i64::MAX, 4], vec![i64::MAX, 0, 2], vec![-1], vec![1 << 62, 1 << 62, 0]] {
        let error = tensor(TensorProto { dims, data_type: Some(1), ..TensorProto::default() }).unwrap_err();
        assert!(matches!(error, Error::Tensor { .. }), "{error}");
    }
    let empty = tensor(TensorProto { dims: vec![0, 3], data_type: Some(1), ..TensorProto::default() });
    assert_eq!(Array::from(&empty.unwrap()).shape(), [0, 3]);
}

#[test]
fn typed_and_raw_data_are_the_same() {
    let values = [0.0, 1.0, 1.0, 0.0];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I32, DType::I64, DType::Bool, DType::U8] {
        let expected = TensorData::from_f64(dtype, &[2, 2], &values);
        let mut typed =
            TensorProto { dims: vec![2, 2], data_type: Some(dtype.code()), ..TensorProto::default() };
        let raw = TensorProto { raw_data: Some(expected.bytes().clone()), ..typed.clone() };
        for v in values {
            match dtype {
                DType::F32 => typed.float_data.push(v as f32),
                DType::F64 => typed.double_data.push(v),
                DType::I64 => typed.int64_data.push(v as i64),
                // Halves are stored as their bits: 0x3c00 is 1.
                DType::F16 => typed.int32_data.push(if v == 1.0 { 0x3c00 } else { 0 }),
                _ => typed.int32_data.push(v as i32),
            }
        }
        assert_eq!(tensor(typed).unwrap(), expected, "{dtype}");
        assert_eq!(tensor(raw).unwrap(), expected, "{dtype}");
        let mut model = read(&model(vec![node("Neg", &["x"], &["y"], vec![])], vec![])).unwrap();
        model.graph.initializers.insert("data".to_string(), expected);
        assert_eq!(Model::from_bytes(model.to_bytes()).unwrap(), model, "{dtype}");
    }
}

#[test]
fn negative_numbers_keep_their_sign_in_typed_data() {
    let proto =
        TensorProto { dims: vec![2], data_type: Some(6), int32_data: vec![-7, 7], ..TensorProto::default() };
    assert_eq!(tensor(proto).unwrap().to_i64(), [-7, 7]);
    let proto =
        TensorProto { dims: vec![1], data_type: Some(3), int32_data: vec![-7], ..TensorProto::default() };
    assert_eq!(tensor(proto).unwrap().to_i64(), [-7]);
}

#[test]
fn a_symbolic_batch_survives_writing() {
    let mut proto = model(vec![node("Exp", &["x"], &["y"], vec![])], vec![]);
    let graph = proto.graph.as_mut().unwrap();
    graph.input = vec![value("x", 1, &[-1, 3])];
    graph.output = vec![value("y", 1, &[-1, 3])];
    let model = read(&proto).unwrap();
    assert_eq!(model.graph.inputs[0].shape, Some(vec![Dim::symbol("N"), Dim::Known(3)]));
    let gradient = Model { graph: grad(&model.graph, &["y"], &["x"]).unwrap(), ..model };
    let again = Model::from_bytes(gradient.to_bytes()).unwrap();
    assert_eq!(again, gradient);
    for value in again.graph.inputs.iter().chain(&again.graph.outputs) {
        assert_eq!(value.shape, Some(vec![Dim::symbol("N"), Dim::Known(3)]), "{}", value.name);
    }
}

#[test]
fn data_is_read_from_a_file_beside_the_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch");
    let model = Model::load(folder.join("mlp.external.onnx")).unwrap();
    assert!(model.graph.parameter_count() > 0);
    assert_eq!(Model::from_bytes(model.to_bytes()).unwrap(), model);
    let error = Model::from_bytes(std::fs::read(folder.join("mlp.external.onnx")).unwrap()).unwrap_err();
    assert!(error.to_string().contains("load it from its file"), "{error}");
}

#[test]
fn a_data_file_is_read_from_the_offset_it_says() {
    let folder = std::env::temp_dir().join(format!("onnx-grad-reading-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let values: Vec<u8> = [9.0f32, 1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(folder.join("weights.data"), values).unwrap();
    let mut proto = model(vec![node("Add", &["x", "w"], &["y"], vec![])], vec![]);
    let entry = |key: &str, value: &str| StringStringEntryProto { key: text(key), value: text(value) };
    proto.graph.as_mut().unwrap().initializer = vec![TensorProto {
        name: text("w"),
        dims: vec![2],
        data_type: Some(1),
        data_location: Some(1),
        external_data: vec![entry("location", "weights.data"), entry("offset", "4"), entry("length", "8")],
        ..TensorProto::default()
    }];
    let path = folder.join("model.onnx");
    let load = |proto: &ModelProto| {
        std::fs::write(&path, proto.encode_to_vec()).unwrap();
        Model::load(&path)
    };
    assert_eq!(load(&proto).unwrap().graph.initializers["w"].to_f64(), [1.0, 2.0]);
    // Beyond the end of the file, or not a number, is refused.
    for (key, value) in [("offset", "8"), ("offset", "18446744073709551615"), ("length", "-1")] {
        let mut proto = proto.clone();
        let data = &mut proto.graph.as_mut().unwrap().initializer[0].external_data;
        data.iter_mut().filter(|e| e.key.as_deref() == Some(key)).for_each(|e| e.value = text(value));
        let error = load(&proto).unwrap_err();
        assert!(matches!(error, Error::ExternalData { .. }), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// `Upsample` is what `Resize` was called before opset 10; files still have it.
#[test]
fn old_names_are_replaced() {
    let mut proto = ModelProto { opset_import: imports(11), ..ModelProto::default() };
    let scales = TensorProto {
        dims: vec![4],
        data_type: Some(1),
        name: text("scales"),
        float_data: vec![1.0, 1.0, 2.0, 2.0],
        ..TensorProto::default()
    };
    proto.graph = Some(GraphProto {
        node: vec![node("Upsample", &["x", "scales"], &["y"], Vec::new())],
        initializer: vec![scales],
        input: vec![value("x", 1, &[-1, 1, 1, 2])],
        output: vec![value("y", 1, &[-1, 1, 2, 4])],
        ..GraphProto::default()
    });
    let model = read(&proto).unwrap();
    let x = Array::new(DType::F32, &[1, 1, 1, 2], vec![3.0, 5.0]);
    let mut inputs = BTreeMap::from([("x".to_string(), x)]);
    let y = &evaluate(&model.graph, &inputs).unwrap()[0];
    assert_eq!(y.data.iter().copied().collect::<Vec<_>>(), [3.0, 3.0, 5.0, 5.0, 3.0, 3.0, 5.0, 5.0]);
    let gradient = grad(&model.graph, &["y"], &["x"]).unwrap();
    inputs.insert(
        "seed/y".to_string(),
        Array::new(DType::F32, &[1, 1, 2, 4], (1..=8).map(f64::from).collect()),
    );
    let dx = &evaluate(&gradient, &inputs).unwrap()[1];
    assert_eq!(dx.data.iter().copied().collect::<Vec<_>>(), [1.0 + 2.0 + 5.0 + 6.0, 3.0 + 4.0 + 7.0 + 8.0]);
}
