//! Finds group normalisations, as PyTorch exports them and as lowering writes them.
//!
//! ```text
//! x -> Reshape [N, groups, ..] -> InstanceNormalization (1, 0) -> Reshape as x -> * gain -> + bias
//!                                                               [ -> u -> Sigmoid(u) * u ]
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::fused::{DOMAIN, GROUP_NORM, SILU};
use crate::graph::{Graph, Node};
use crate::shapes::Facts;
use crate::tensor::DType;

/// The graph with every group normalisation as one node.
pub(super) fn fuse(graph: &Graph, facts: &Facts) -> Graph {
    let look = Look::at(graph, facts);
    let mut gone = BTreeSet::new();
    let mut joined = BTreeMap::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        if let Some(found) = node.is("InstanceNormalization").then(|| look.found(i)).flatten() {
            gone.extend(found.places.iter().copied());
            joined.extend(found.places.last().map(|&last| (last, found.node)));
        }
    }
    let mut fused = graph.clone();
    fused.nodes = Vec::with_capacity(graph.nodes.len());
    for (i, node) in graph.nodes.iter().enumerate() {
        match joined.remove(&i) {
            Some(node) => fused.nodes.push(node),
            None if gone.contains(&i) => {}
            None => fused.nodes.push(node.clone()),
        }
    }
    fused
}

/// A normalisation and the places of the nodes it stands for, of which it takes the last.
struct Found {
    node: Node,
    places: Vec<usize>,
}

/// A graph, and who makes and uses its values.
struct Look<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    producers: BTreeMap<&'a str, usize>,
    users: BTreeMap<&'a str, Vec<usize>>,
    outputs: BTreeSet<&'a str>,
}

impl<'a> Look<'a> {
    fn at(graph: &'a Graph, facts: &'a Facts) -> Look<'a> {
        let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (i, node) in graph.nodes.iter().enumerate() {
            let inner = node.bodies().flat_map(|body| body.free_names());
            node.given_inputs().chain(inner).for_each(|name| users.entry(name).or_default().push(i));
        }
        let outputs = graph.outputs.iter().map(|output| output.name.as_str()).collect();
        Look { graph, facts, producers: graph.producers(), users, outputs }
    }

    /// The nodes that use a value, where the graph does not return it as well.
    fn users(&self, value: &str) -> &[usize] {
        if self.outputs.contains(value) { &[] } else { self.users.get(value).map_or(&[], Vec::as_slice) }
    }

    /// The one node that uses the first output of a node.
    fn next(&self, place: usize, op: &str) -> Option<usize> {
        match self.users(self.graph.nodes[place].output(0)?) {
            [next] if self.graph.nodes[*next].is(op) => Some(*next),
            _ => None,
        }
    }

    /// The other input of a node with two.
    fn other(&self, place: usize, value: &str) -> Option<&'a str> {
        let node = &self.graph.nodes[place];
        let (a, b) = (node.input(0)?, node.input(1)?);
        [(a, b), (b, a)].into_iter().find(|(this, _)| *this == value).map(|(_, other)| other)
    }

    /// Whether a value is a constant, the same number everywhere.
    fn is_all(&self, value: Option<&str>, number: f64) -> bool {
        let constant = value.and_then(|value| self.facts.get(value).constant.as_ref());
        constant.is_some_and(|data| data.to_f64().iter().all(|&v| v == number))
    }

    /// Whether a value has a number for each of so many channels of an image, and nothing else.
    fn is_per_channel(&self, value: &str, channels: i64) -> bool {
        let shape = self.facts.get(value).shape.as_deref().unwrap_or(&[]);
        let sizes: Option<Vec<i64>> = shape.iter().map(crate::Dim::known).collect();
        matches!(sizes.as_deref(), Some([c, 1, 1] | [1, c, 1, 1]) if *c == channels)
    }

    /// The normalisation around the instance normalisation at a place.
    fn found(&self, place: usize) -> Option<Found> {
        let norm = &self.graph.nodes[place];
        if !self.is_all(norm.input(1), 1.0) || !self.is_all(norm.input(2), 0.0) {
            return None;
        }
        let split = *self.producers.get(norm.input(0)?)?;
        if !self.graph.nodes[split].is("Reshape") {
            return None;
        }
        let x = self.graph.nodes[split].input(0)?;
        let (image, grouped) = (self.facts.get(x), self.facts.get(norm.input(0)?));
        let [rows, channels, height, width] = image.shape.as_deref()? else { return None };
        let sizes = [channels.known()?, height.known()?, width.known()?];
        let (same, groups) = (grouped.shape.as_ref()?.first()?, grouped.shape.as_ref()?.get(1)?.known()?);
        if image.dtype != Some(DType::F32) || !same.same(rows) || groups <= 0 || sizes[0] % groups != 0 {
            return None;
        }
        let joined = self.next(place, "Reshape")?;
        let whole = self.graph.nodes[joined].output(0)?;
        if self.facts.get(whole).shape != image.shape {
            return None;
        }
        let scaled = self.next(joined, "Mul")?;
        let gain = self.other(scaled, whole)?;
        let shifted = self.next(scaled, "Add")?;
        let bias = self.other(shifted, self.graph.nodes[scaled].output(0)?)?;
        if !self.is_per_channel(gain, sizes[0]) || !self.is_per_channel(bias, sizes[0]) {
            return None;
        }
        let mut places = vec![place, joined, scaled, shifted];
        // Others may see the groups as well.
        if self.users(norm.input(0)?).len() == 1 {
            places.insert(0, split);
        }
        let mut activation = "";
        if let Some([gate, product]) = self.silu(shifted) {
            places.extend([gate, product]);
            activation = SILU;
        }
        let last = &self.graph.nodes[*places.last()?];
        let node = Node {
            domain: DOMAIN.to_string(),
            name: norm.name.clone(),
            ..Node::new(GROUP_NORM, &[x, gain, bias], &[last.output(0)?])
        };
        let node = node
            .with("groups", groups)
            .with("epsilon", norm.float("epsilon", 1e-5))
            .with("activation", activation);
        Some(Found { node, places })
    }

    /// The nodes of `u sigmoid(u)` behind a node that computes `u`.
    fn silu(&self, place: usize) -> Option<[usize; 2]> {
        let u = self.graph.nodes[place].output(0)?;
        let &[a, b] = self.users(u) else { return None };
        let (gate, product) = if self.graph.nodes[a].is("Sigmoid") { (a, b) } else { (b, a) };
        let closed = self.graph.nodes[gate].is("Sigmoid") && self.next(gate, "Mul") == Some(product);
        (closed && self.other(product, u)? == self.graph.nodes[gate].output(0)?).then_some([gate, product])
    }
}
