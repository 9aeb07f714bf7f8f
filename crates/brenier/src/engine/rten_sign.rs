//! `Sign` for RTen, which returns 1 at 0 where ONNX has 0.
//!
//! `sign(x) = [x > 0] - [x < 0]`, spelled out before a model is loaded.

use onnx_grad::{Attribute, Graph, Model, Node, TensorData, shapes::Facts};

use crate::error::Result;

/// The model without `Sign`.
pub(super) fn spell_out_sign(model: &Model) -> Result<Model> {
    let mut model = model.clone();
    if model.graph.nodes.iter().any(|node| node.is("Sign")) {
        let facts = Facts::of(&model.graph)?;
        rewrite(&mut model.graph, &facts);
    }
    Ok(model)
}

fn rewrite(graph: &mut Graph, facts: &Facts) {
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        let (Some(x), Some(y), true) = (node.input(0), node.output(0), node.is("Sign")) else {
            nodes.push(node);
            continue;
        };
        let dtype = facts.get(x).dtype.unwrap_or(onnx_grad::DType::F32);
        let name = |part: &str| format!("{y}/sign.{part}");
        let zero = name("zero");
        graph.initializers.insert(zero.clone(), TensorData::scalar(dtype, 0.0));
        let mut sides = Vec::new();
        for op in ["Greater", "Less"] {
            let (mask, number) = (name(op), name(&format!("{op}.number")));
            nodes.push(Node::new(op, &[x, &zero], &[&mask]));
            let to = Attribute::Int(i64::from(dtype.code()));
            nodes.push(Node::new("Cast", &[&mask], &[&number]).with("to", to));
            sides.push(number);
        }
        let mut difference = Node::new("Sub", &[&sides[0], &sides[1]], &[y]);
        difference.name = node.name.clone();
        nodes.push(difference);
    }
    graph.nodes = nodes;
}
