//! The score to explain is the logit, not the probability.
//!
//! A softmax saturates: for a confident model its gradient vanishes, and what is left explains the other
//! classes as much as this one. The paper explains logits, and so do we: a final `Softmax` or `Sigmoid` is
//! cut off, and the user is told.

use onnx_grad::{DType, Graph, Node, TensorData, ValueInfo};

use crate::error::Notice;

/// Cuts the last operator before `output` where it turns logits into probabilities; returns its name.
pub(super) fn cut_final_activation(graph: &mut Graph, output: &str) -> Option<Notice> {
    let producers = graph.producers();
    let mut name = output;
    // Through nodes that do nothing.
    let node = loop {
        let node: &Node = &graph.nodes[*producers.get(name)?];
        if !node.is("Identity") {
            break node;
        }
        name = node.input(0)?;
    };
    if let Some((parts, gate)) = two_classes(graph, node) {
        return cut_two_classes(graph, output, &parts, &gate);
    }
    if !node.is("Softmax") && !node.is("Sigmoid") {
        return None;
    }
    let (op, logits, label) = (node.op.clone(), node.input(0)?.to_string(), node.label());
    // A gate `x sigmoid(x)` is not a probability: the sigmoid must be the end.
    if graph.use_counts().get(name) != Some(&1) {
        return None;
    }
    let dtype = graph.output(output).map_or(DType::F32, |o| o.dtype);
    let shape = graph.output(output).and_then(|o| o.shape.clone());
    let kept = graph.outputs.iter().filter(|o| o.name != output).cloned();
    let outputs: Vec<ValueInfo> =
        std::iter::once(ValueInfo { name: logits, dtype, shape }).chain(kept).collect();
    graph.outputs = outputs;
    graph.prune();
    Some(format!("the model ends in {op}: its input, the logits, is explained (node {label} is cut)").into())
}

/// The inputs of a `Concat` that is `(1 - p, p)`, as networks of scikit-learn end for two classes, and the sigmoid that is `p`.
fn two_classes(graph: &Graph, node: &Node) -> Option<(Vec<String>, Node)> {
    let [first, second] = node.inputs.as_slice() else { return None };
    if !node.is("Concat") {
        return None;
    }
    let producers = graph.producers();
    let of = |name: &str| producers.get(name).map(|&place| &graph.nodes[place]);
    let (rest, gate) = (of(first)?, of(second)?);
    let one = rest.input(0).and_then(|name| graph.initializers.get(name)).map(TensorData::to_f64);
    let complement = rest.is("Sub") && one.as_deref() == Some(&[1.0]) && rest.input(1) == Some(second);
    let counts = graph.use_counts();
    let only_here = counts.get(first.as_str()) == Some(&1) && counts.get(second.as_str()) == Some(&2);
    (complement && gate.is("Sigmoid") && only_here).then(|| (node.inputs.clone(), gate.clone()))
}

/// `(1 - p, p)` becomes `(-z, z)`, where `p` is the sigmoid of `z`.
fn cut_two_classes(graph: &mut Graph, output: &str, parts: &[String], gate: &Node) -> Option<Notice> {
    let (label, logit) = (gate.label(), gate.input(0)?.to_string());
    let declared = graph.output(output)?.clone();
    for node in &mut graph.nodes {
        if node.output(0) == Some(&parts[0]) {
            *node = Node::new("Neg", &[&logit], &[&parts[0]]);
        } else if node.output(0) == Some(&parts[1]) {
            *node = Node::new("Identity", &[&logit], &[&parts[1]]);
        }
    }
    graph.outputs = vec![declared];
    graph.prune();
    let what = format!("the model ends in Sigmoid: its input, the logit, is explained (node {label} is cut)");
    Some(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_grad::{Builder, Dim};

    fn model(last: &str) -> Graph {
        let mut b = Builder::new("model");
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(3)]);
        let logits = b.scale(&x, 2.0);
        let y = b.op(last, &[&logits]);
        b.output("y", &y);
        b.finish().unwrap()
    }

    #[test]
    fn probabilities_become_logits() {
        for op in ["Softmax", "Sigmoid"] {
            let mut graph = model(op);
            let notice = cut_final_activation(&mut graph, "y").unwrap();
            assert!(notice.what.contains(op), "{notice}");
            assert_eq!(graph.nodes.len(), 1);
            graph.validate().unwrap();
        }
    }

    #[test]
    fn two_classes_become_the_logit_and_its_opposite() {
        let mut b = Builder::new("model");
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(1)]);
        let p = b.op("Sigmoid", &[&x]);
        let rest = b.rsub(1.0, &p);
        let both = b.concat(&[&rest, &p], 1);
        b.output("y", &both);
        let mut graph = b.finish().unwrap();
        assert!(cut_final_activation(&mut graph, "y").unwrap().what.contains("Sigmoid"));
        graph.validate().unwrap();
        let ops: Vec<&str> = graph.nodes.iter().map(|node| node.op.as_str()).collect();
        assert_eq!(ops, ["Identity", "Neg", "Concat", "Identity"]);
    }

    #[test]
    fn other_ends_stay() {
        let mut graph = model("Tanh");
        assert_eq!(cut_final_activation(&mut graph, "y"), None);
        assert_eq!(graph.outputs[0].name, "y");
    }
}
