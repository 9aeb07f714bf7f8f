//! Convolutions in ONNX Runtime's blocked layout, for weights that change.
//!
//! ONNX Runtime's fast convolutions keep channels in blocks of 16 (8 without AVX-512): `[N, C / b, H, W, b]` for images
//! and `[out / b, in / b, k.., b of in, b of out]` for weights. It brings a graph into that form itself where weights
//! are constants. In training they are inputs. Here the graph is brought into the same form, with weights reordered by a
//! `Transpose` whenever the graph runs.
//!
//! The operators belong to ONNX Runtime alone and their blocks to the machine, so a [probe](probe) is run first: a
//! convolution in both forms, which must agree.

use std::collections::{BTreeMap, BTreeSet};

use onnx_grad::shapes::Facts;
use onnx_grad::{Attribute, DType, Graph, Model, Node, TensorData, ValueInfo};

/// The operators' domain.
const DOMAIN: &str = "com.microsoft.nchwc";

/// Sizes of blocks that machines have, the faster first.
pub(super) const SIZES: [i64; 2] = [16, 8];

/// The model with every convolution in blocks whose weights depend on its inputs and divide into blocks; none if it has
/// no such convolution.
pub(super) fn in_blocks(model: &Model, block: i64) -> Option<Model> {
    let eligible = eligible(&model.graph, block);
    if eligible.is_empty() {
        return None;
    }
    let mut model = model.clone();
    model.other_opsets.insert(DOMAIN.to_string(), 1);
    let graph = &mut model.graph;
    let mut images = BTreeMap::new();
    for (i, node) in std::mem::take(&mut graph.nodes).into_iter().enumerate() {
        match eligible.get(&i) {
            Some(weights) => convolution(graph, &mut images, node, weights, block),
            None => graph.nodes.push(node),
        }
    }
    Some(model)
}

/// Places of convolutions that can be had in blocks, with the shapes of their weights.
fn eligible(graph: &Graph, block: i64) -> BTreeMap<usize, [i64; 4]> {
    // A model whose shapes are not known stays as it is.
    let Ok(facts) = Facts::of(graph) else { return BTreeMap::new() };
    let weights = |&i: &usize| {
        let node = &graph.nodes[i];
        let shape = facts.get(node.input(1)?).shape.as_ref()?;
        let shape: Vec<i64> = shape.iter().map(onnx_grad::Dim::known).collect::<Option<_>>()?;
        let &[out, inner, height, width] = shape.as_slice() else { return None };
        let plain = node.int("group", 1) == 1
            && node.string("auto_pad", "NOTSET") == "NOTSET"
            && facts.get(node.input(0)?).dtype == Some(DType::F32);
        (plain && out % block == 0 && inner % block == 0).then_some((i, [out, inner, height, width]))
    };
    changing(graph).iter().filter_map(weights).collect()
}

/// Places of convolutions whose weights depend on an input of the graph.
pub(super) fn changing(graph: &Graph) -> Vec<usize> {
    let mut values: BTreeSet<&str> = graph.inputs.iter().map(|input| input.name.as_str()).collect();
    let mut places = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        if node.inputs.iter().any(|input| values.contains(input.as_str())) {
            values.extend(node.outputs.iter().map(String::as_str));
        }
        if node.is("Conv") && node.input(1).is_some_and(|w| values.contains(w)) {
            places.push(i);
        }
    }
    places
}

/// A convolution as nodes around one in blocks. An image that several convolutions see is reordered once.
fn convolution(
    graph: &mut Graph,
    images: &mut BTreeMap<String, String>,
    conv: Node,
    weights: &[i64; 4],
    block: i64,
) {
    let [out, inner, height, width] = *weights;
    let (x, w, y) = (conv.inputs[0].clone(), conv.inputs[1].clone(), conv.outputs[0].clone());
    let part = |part: &str| format!("{y}/blocks.{part}");
    let push = |graph: &mut Graph, mut node: Node| {
        // Messages tell the convolution that a node belongs to.
        node.name = format!("{}.{}", conv.name, graph.nodes.len());
        graph.nodes.push(node);
    };
    for (name, shape) in [
        ("split", vec![out / block, block, inner / block, block, height, width]),
        ("whole", vec![out, inner, height, width]),
    ] {
        graph.initializers.insert(part(name), TensorData::i64(&[shape.len()], &shape));
    }
    let order = Attribute::Ints(vec![0, 2, 4, 5, 3, 1]);
    push(graph, Node::new("Reshape", &[&w, &part("split")], &[&part("apart")]));
    push(graph, Node::new("Transpose", &[&part("apart")], &[&part("ordered")]).with("perm", order));
    push(graph, Node::new("Reshape", &[&part("ordered"), &part("whole")], &[&part("weights")]));
    let image = images.entry(x.clone()).or_insert_with(|| {
        push(graph, blocked("ReorderInput", &[&x], &part("image")));
        part("image")
    });
    let mut inner_conv = blocked("Conv", &[image, &part("weights")], &part("result"));
    inner_conv.inputs.extend(conv.inputs.iter().skip(2).cloned());
    inner_conv.attributes = conv.attributes.clone();
    push(graph, inner_conv);
    push(graph, blocked("ReorderOutput", &[&part("result")], &y).with("channels", Attribute::Int(out)));
}

fn blocked(op: &str, inputs: &[&str], output: &str) -> Node {
    Node { domain: DOMAIN.to_string(), ..Node::new(op, inputs, &[output]) }
}

/// A model that computes one convolution of `x` with `w` in both forms.
pub(super) fn probe(block: i64) -> Option<Model> {
    let input = |name: &str, shape: &[usize]| ValueInfo::new(name, DType::F32, shape);
    let output = |name: &str| ValueInfo { name: name.to_string(), dtype: DType::F32, shape: None };
    let conv = Node::new("Conv", &["x", "w"], &["blocked"]).with("pads", Attribute::Ints(vec![1; 4]));
    let graph = Graph {
        inputs: vec![input("x", &PROBE_IMAGE), input("w", &PROBE_WEIGHTS)],
        nodes: vec![conv.clone()],
        outputs: vec![output("blocked")],
        ..Graph::default()
    };
    let model = Model { graph, ir_version: 8, opset: 18, ..Model::default() };
    let mut model = in_blocks(&model, block)?;
    model.graph.nodes.push(Node { outputs: vec!["plain".to_string()], ..conv });
    model.graph.outputs.push(output("plain"));
    Some(model)
}

/// The shape of the probe's image.
pub(super) const PROBE_IMAGE: [usize; 4] = [2, 32, 5, 4];
/// The shape of the probe's weights.
pub(super) const PROBE_WEIGHTS: [usize; 4] = [32, 32, 3, 3];

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_grad::Builder;

    fn ops(model: &Model) -> Vec<&str> {
        model.graph.nodes.iter().map(|node| node.op.as_str()).collect()
    }

    fn model(weights: &[usize], constant: bool) -> Model {
        let mut b = Builder::new("conv");
        let x = b.input("x", DType::F32, &[1usize, weights[1], 4, 4].map(Into::into));
        let count = weights.iter().product();
        let w = match constant {
            true => b.parameter("w", TensorData::f32(weights, &vec![0.0; count])),
            false => b.input("w", DType::F32, &weights.iter().map(|&n| n.into()).collect::<Vec<_>>()),
        };
        let y = b.op("Conv", &[&x, &w]);
        b.output("y", &y);
        Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() }
    }

    #[test]
    fn what_changes_and_divides_is_brought_into_blocks() {
        let blocked = in_blocks(&model(&[16, 32, 3, 3], false), 16).unwrap();
        let expected = ["Reshape", "Transpose", "Reshape", "ReorderInput", "Conv", "ReorderOutput"];
        assert_eq!(ops(&blocked)[..6], expected);
        assert_eq!(blocked.other_opsets[DOMAIN], 1);
        blocked.graph.validate().unwrap();
        // A whole number of blocks, of weights that are not there when the graph is loaded.
        assert!(in_blocks(&model(&[16, 24, 3, 3], false), 16).is_none());
        assert!(in_blocks(&model(&[16, 32, 3, 3], true), 16).is_none());
    }
}
