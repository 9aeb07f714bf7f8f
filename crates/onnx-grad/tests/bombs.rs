//! Small files that ask for much: more work, memory or depth than their size lets expect.

mod fuzz_body;

use std::time::{Duration, Instant};

use fuzz_body::{Reached, exercise};
use onnx_grad::{Attribute, DType, Graph, Model, Node, TensorData, ValueInfo};

/// A graph of nodes from `x` of shape [2] to `y`.
fn graph(nodes: Vec<Node>) -> Graph {
    Graph {
        inputs: vec![ValueInfo::new("x", DType::F32, &[2usize])],
        outputs: vec![ValueInfo { name: "y".to_string(), dtype: DType::F32, shape: None }],
        nodes,
        ..Graph::default()
    }
}

fn bytes(graph: Graph) -> Vec<u8> {
    Model { graph, ir_version: 8, opset: 18, ..Model::default() }.to_bytes()
}

/// How far the file comes, which must not take long even on a busy machine.
fn quick(graph: Graph) -> Reached {
    let bytes = bytes(graph);
    let start = Instant::now();
    let reached = exercise(&bytes);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?} for {} bytes", start.elapsed(), bytes.len());
    reached
}

/// `x` to `v0` to `v1` ... to `y`, each step by the node that `step` makes of the two names.
fn chain(length: usize, step: impl Fn(&str, &str) -> Node) -> Vec<Node> {
    let name = |i: usize| match i {
        0 => "x".to_string(),
        i if i == length => "y".to_string(),
        i => format!("v{i}"),
    };
    (0..length).map(|i| step(&name(i), &name(i + 1))).collect()
}

fn body(nodes: Vec<Node>, output: &str) -> Attribute {
    let outputs = vec![ValueInfo { name: output.to_string(), dtype: DType::F32, shape: None }];
    Attribute::Graph(Box::new(Graph { nodes, outputs, ..Graph::default() }))
}

#[test]
fn a_long_chain() {
    assert_eq!(quick(graph(chain(20_000, |a, b| Node::new("Tanh", &[a], &[b])))), Reached::Differentiated);
}

#[test]
fn axes_that_double() {
    quick(graph(chain(60, |a, b| Node::new("Gather", &[a, a], &[b]))));
    // The same of a constant, which lowering would fold.
    let mut constant = graph(chain(60, |a, b| Node::new("Gather", &[a, a], &[b])));
    constant.inputs.clear();
    constant.initializers.insert("x".to_string(), TensorData::ints(&[0]));
    quick(constant);
    let mut axes = graph(chain(2000, |a, b| Node::new("Unsqueeze", &[a, "axes"], &[b])));
    axes.initializers.insert("axes".to_string(), TensorData::ints(&(0..64).collect::<Vec<i64>>()));
    quick(axes);
}

#[test]
fn constants_that_grow() {
    for (op, by) in
        [("Tile", vec![1 << 20]), ("Expand", vec![1 << 30, 1]), ("ConstantOfShape", vec![1 << 27])]
    {
        let mut big = graph(vec![]);
        big.initializers.insert("c".to_string(), TensorData::f32(&[1], &[1.0]));
        big.initializers.insert("by".to_string(), TensorData::ints(&by));
        let inputs: &[&str] = if op == "ConstantOfShape" { &["by"] } else { &["c", "by"] };
        big.nodes = vec![Node::new(op, inputs, &["big"]), Node::new("Add", &["x", "big"], &["y"])];
        quick(big);
    }
}

#[test]
fn tables_that_a_gradient_would_need() {
    let wide = |shape: &[i64], node: Node| {
        let mut graph = graph(vec![node]);
        graph.inputs = vec![ValueInfo::new("x", DType::F32, shape)];
        quick(graph)
    };
    let big = 1i64 << 30;
    let pool = |op: &str| Node::new(op, &["x"], &["y"]).with("kernel_shape", vec![1000i64, 1000]);
    assert_eq!(wide(&[1, big, 5000, 5000], pool("MaxPool")), Reached::Read);
    assert_eq!(wide(&[1, big, 5000, 5000], pool("AveragePool")), Reached::Read);
    wide(&[1, 3, big, big], Node::new("GlobalMaxPool", &["x"], &["y"]));
    wide(&[big, big], Node::new("ReduceProd", &["x"], &["y"]));
    wide(&[1, big, 4, 4], Node::new("LRN", &["x"], &["y"]).with("size", i64::MAX));
    wide(&[1, 4, big, 4], Node::new("SpaceToDepth", &["x"], &["y"]).with("blocksize", i64::MAX));
}

#[test]
fn an_einsum_of_many_operands() {
    let inputs = vec!["x"; 5000];
    let equation = vec!["i"; 5000].join(",") + "->i";
    assert_eq!(
        quick(graph(vec![Node::new("Einsum", &inputs, &["y"]).with("equation", equation)])),
        Reached::Read
    );
}

#[test]
fn a_sum_of_many_operands() {
    assert_eq!(quick(graph(vec![Node::new("Sum", &vec!["x"; 20_000], &["y"])])), Reached::Differentiated);
}

#[test]
fn many_bodies() {
    let branch = |a: &str, b: &str| {
        let nodes = |op: &str| vec![Node::new(op, &[a], &["inner"])];
        let mut node = Node::new("If", &["flag"], &[b]);
        node.attributes.insert("then_branch".to_string(), body(nodes("Neg"), "inner"));
        node.attributes.insert("else_branch".to_string(), body(nodes("Abs"), "inner"));
        node
    };
    let mut unknown = graph(chain(1500, branch));
    unknown.inputs.push(ValueInfo::new::<usize>("flag", DType::Bool, &[]));
    assert_eq!(quick(unknown), Reached::Read);
    let mut known = graph(chain(1500, branch));
    known.initializers.insert("flag".to_string(), TensorData::bool(&[], &[true]));
    assert_eq!(quick(known), Reached::Differentiated);
}

#[test]
fn bodies_within_bodies() {
    let nested = |depth: usize| {
        let mut nodes = vec![Node::new("Neg", &["x"], &["inner"])];
        for _ in 0..depth {
            let both = body(nodes, "inner");
            let node = Node::new("If", &["flag"], &["inner"]).with("then_branch", both.clone());
            nodes = vec![node.with("else_branch", both)];
        }
        nodes.push(Node::new("Identity", &["inner"], &["y"]));
        let mut graph = graph(nodes);
        graph.initializers.insert("flag".to_string(), TensorData::bool(&[], &[true]));
        graph
    };
    // Both branches hold all that is below: depth 8 is 2^8 bodies.
    assert_eq!(quick(nested(8)), Reached::Differentiated);
    let mut deep = vec![Node::new("Neg", &["x"], &["inner"])];
    for _ in 0..20 {
        deep = vec![Node::new("If", &["x"], &["inner"]).with("then_branch", body(deep, "inner"))];
    }
    assert_eq!(quick(graph(deep)), Reached::Refused);
}

#[test]
fn many_batch_normalisations() {
    let mut nodes = vec![Node::new("Unsqueeze", &["x", "zero"], &["v0"])];
    let norm = |a: &str, b: &str| {
        let a = if a == "x" { "v0" } else { a };
        Node::new("BatchNormalization", &[a, "one", "one", "one", "one"], &[b])
    };
    nodes.extend(chain(1000, norm));
    let mut graph = graph(nodes);
    graph.initializers.insert("one".to_string(), TensorData::f32(&[2], &[1.0, 1.0]));
    graph.initializers.insert("zero".to_string(), TensorData::ints(&[0]));
    assert_eq!(quick(graph), Reached::Differentiated);
}

/// Loops in loops, each of a thousand turns, whose numbers are constants or come from the input.
#[test]
fn loops_in_loops() {
    let scalar = |name: &str, dtype| ValueInfo { name: name.to_string(), dtype, shape: Some(Vec::new()) };
    let nested = |depth: usize| {
        let mut inner: Option<Graph> = None;
        for level in 0..depth {
            let (state, next) = (format!("s{level}"), format!("n{level}"));
            let node = match inner.take() {
                None => Node::new("Tanh", &[&state], &[&next]),
                Some(body) => Node::new("Loop", &["trips", "going", &state], &[&next])
                    .with("body", Attribute::Graph(Box::new(body))),
            };
            let (turn, goes, still) = (format!("t{level}"), format!("g{level}"), format!("still{level}"));
            inner = Some(Graph {
                inputs: vec![
                    scalar(&turn, DType::I64),
                    scalar(&goes, DType::Bool),
                    scalar(&state, DType::F32),
                ],
                outputs: vec![scalar(&still, DType::Bool), scalar(&next, DType::F32)],
                nodes: vec![Node::new("Identity", &[&goes], &[&still]), node],
                ..Graph::default()
            });
        }
        inner.unwrap_or_default()
    };
    for constant in [false, true] {
        let body = Attribute::Graph(Box::new(nested(4)));
        let mut graph = graph(vec![Node::new("Loop", &["trips", "going", "x"], &["y"]).with("body", body)]);
        graph.initializers.insert("trips".to_string(), TensorData::from_f64(DType::I64, &[], &[1000.0]));
        graph.initializers.insert("going".to_string(), TensorData::from_f64(DType::Bool, &[], &[1.0]));
        if constant {
            graph.inputs.clear();
            graph.initializers.insert("x".to_string(), TensorData::from_f64(DType::F32, &[], &[0.5]));
        }
        quick(graph);
    }
}
