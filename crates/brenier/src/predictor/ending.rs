//! What a pipeline of classical machine learning ends in, put right before it is lowered.
//!
//! - A `Normalizer` behind probabilities makes them sum to 1. It stands between the scores and the end, and changes nothing but
//!   one-versus-rest probabilities; what is explained are the scores before both.
//! - The scores of a support vector machine for two classes come as `(-s, s)`, where a positive `s` means the *first* class. They
//!   are turned around, so that the higher score belongs to the predicted class, and the second is `decision_function`.

use onnx_grad::{Attribute, Graph, Node};

/// Puts the ending before `output` right; tells the user what was done.
pub(super) fn put_right(graph: &mut Graph, output: &str, keep_activation: bool) -> Option<String> {
    let place = last(graph, output)?;
    let node = &graph.nodes[place];
    if node.is_classical("Normalizer") && node.string("norm", "MAX") == "L1" && !keep_activation {
        let before = producer(graph, node.input(0)?)?;
        let node = &graph.nodes[before];
        let linear = node.is_classical("LinearClassifier") || node.is_classical("SVMClassifier");
        if linear && ends_in_probabilities(node) {
            let (source, target) = (node.output(1)?.to_string(), graph.nodes[place].output(0)?.to_string());
            graph.nodes[place] = Node::new("Identity", &[&source], &[&target]);
        }
        return None;
    }
    if node.is_classical("SVMClassifier") && is_decision_of_two(node) {
        let label = node.label();
        let scores = node.output(1)?.to_string();
        let raw = format!("{scores}/turned");
        graph.nodes[place].outputs[1].clone_from(&raw);
        graph.nodes.insert(place + 1, Node::new("Neg", &[&raw], &[&scores]));
        return Some(format!(
            "the scores of node {label} are turned around: engines give the score of the second class first"
        ));
    }
    None
}

/// The node that computes a value, through nodes that do nothing to floats.
fn last(graph: &Graph, output: &str) -> Option<usize> {
    let mut place = producer(graph, output)?;
    while graph.nodes[place].is("Identity") || graph.nodes[place].is("Cast") {
        place = producer(graph, graph.nodes[place].input(0)?)?;
    }
    Some(place)
}

fn producer(graph: &Graph, name: &str) -> Option<usize> {
    graph.nodes.iter().position(|node| node.outputs.iter().any(|output| output == name))
}

fn ends_in_probabilities(node: &Node) -> bool {
    matches!(node.string("post_transform", "NONE"), "LOGISTIC" | "SOFTMAX")
}

fn is_decision_of_two(node: &Node) -> bool {
    let given = |name: &str| matches!(node.attributes.get(name), Some(Attribute::Floats(v)) if !v.is_empty());
    node.ints("vectors_per_class").is_some_and(|sizes| sizes.len() == 2 && sizes.iter().sum::<i64>() > 0)
        && !given("prob_a")
        && node.string("post_transform", "NONE") == "NONE"
}
