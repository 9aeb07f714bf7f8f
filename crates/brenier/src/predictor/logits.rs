//! The score to explain is the logit, not the probability.
//!
//! A softmax saturates: for a confident model its gradient vanishes, and what is left explains the other
//! classes as much as this one. The paper explains logits, and so do we: a final `Softmax` or `Sigmoid` is
//! cut off, and the user is told.

use onnx_grad::{DType, Graph, Node, ValueInfo};

/// Cuts the last operator before `output` where it turns logits into probabilities; returns its name.
pub(super) fn cut_final_activation(graph: &mut Graph, output: &str) -> Option<String> {
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
    Some(format!("the model ends in {op}: its input, the logits, is explained (node {label} is cut)"))
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
            assert!(notice.contains(op), "{notice}");
            assert_eq!(graph.nodes.len(), 1);
            graph.validate().unwrap();
        }
    }

    #[test]
    fn other_ends_stay() {
        let mut graph = model("Tanh");
        assert_eq!(cut_final_activation(&mut graph, "y"), None);
        assert_eq!(graph.outputs[0].name, "y");
    }
}
