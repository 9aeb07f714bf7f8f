//! What makes a graph a graph: every value is defined once and before it is used.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::graph::Graph;

impl Graph {
    /// Puts the nodes in execution order.
    ///
    /// The order of nodes that could run in either order is kept, so sorting a sorted graph changes
    /// nothing. A cycle is an error that names one of its nodes.
    pub fn sort(&mut self) -> Result<()> {
        let producers: BTreeMap<String, usize> =
            self.producers().into_iter().map(|(name, i)| (name.to_string(), i)).collect();
        let depends_on: Vec<Vec<usize>> = self
            .nodes
            .iter()
            .map(|node| {
                let mut names: BTreeSet<&str> = node.given_inputs().collect();
                node.bodies().for_each(|body| names.extend(body.free_names()));
                names.iter().filter_map(|name| producers.get(*name).copied()).collect()
            })
            .collect();
        let order = depth_first(&depends_on).map_err(|i| Error::Cycle { node: self.nodes[i].label() })?;
        let mut nodes: Vec<_> = std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
        self.nodes = order.into_iter().filter_map(|i| nodes[i].take()).collect();
        Ok(())
    }

    /// Checks that every value is defined once and before it is used, here and in bodies.
    pub fn validate(&self) -> Result<()> {
        self.validate_inside(None)
    }

    fn validate_inside(&self, outer: Option<&Scope<'_>>) -> Result<()> {
        let mut local: BTreeSet<&str> = BTreeSet::new();
        let names = self.inputs.iter().map(|v| v.name.as_str());
        for name in names.chain(self.initializers.keys().map(String::as_str)) {
            if name.is_empty() || !local.insert(name) {
                return Err(Error::Invalid {
                    reason: format!(
                        "input or initializer '{name}' is defined twice, or has no name; export the model again"
                    ),
                });
            }
        }
        let mut scope = Scope { local, outer };
        for node in &self.nodes {
            for input in node.given_inputs() {
                if !scope.contains(input) {
                    return Err(Error::Invalid {
                        reason: format!(
                            "node {} uses '{input}', which nothing defines; export the model again",
                            node.label()
                        ),
                    });
                }
            }
            for body in node.bodies() {
                body.validate_inside(Some(&scope))?;
            }
            for output in node.wanted_outputs() {
                if !scope.local.insert(output) {
                    return Err(Error::Invalid {
                        reason: format!(
                            "value '{output}' is defined twice, again by node {}; export the model again",
                            node.label()
                        ),
                    });
                }
            }
        }
        for output in &self.outputs {
            if !scope.contains(output.name.as_str()) {
                return Err(Error::Invalid {
                    reason: format!(
                        "output '{}' is computed by no node; cut the model at a value that is",
                        output.name
                    ),
                });
            }
        }
        Ok(())
    }
}

/// The names that are defined at one place of a graph, and around it.
struct Scope<'a> {
    local: BTreeSet<&'a str>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn contains(&self, name: &str) -> bool {
        self.local.contains(name) || self.outer.is_some_and(|outer| outer.contains(name))
    }
}

/// Dependencies first; `Err` with a member of a cycle. Without recursion: graphs can be deep.
fn depth_first(depends_on: &[Vec<usize>]) -> std::result::Result<Vec<usize>, usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; depends_on.len()];
    let mut order = Vec::with_capacity(depends_on.len());
    for root in 0..depends_on.len() {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(&dependency) = depends_on[node].get(next) else {
                marks[node] = Mark::Done;
                order.push(node);
                continue;
            };
            stack.push((node, next + 1));
            match marks[dependency] {
                Mark::Open => return Err(dependency),
                Mark::Done => {}
                Mark::New => {
                    marks[dependency] = Mark::Open;
                    stack.push((dependency, 0));
                }
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Node, ValueInfo};
    use crate::tensor::DType;

    fn graph(nodes: Vec<Node>) -> Graph {
        Graph {
            inputs: vec![ValueInfo::new("x", DType::F32, &[1usize])],
            outputs: vec![ValueInfo::new("y", DType::F32, &[1usize])],
            nodes,
            ..Graph::default()
        }
    }

    #[test]
    fn sorts_into_execution_order() {
        let mut g = graph(vec![Node::new("Exp", &["a"], &["y"]), Node::new("Neg", &["x"], &["a"])]);
        assert!(g.validate().is_err());
        g.sort().unwrap();
        g.validate().unwrap();
        assert_eq!(g.nodes[0].op, "Neg");
    }

    #[test]
    fn names_a_node_on_a_cycle() {
        let mut g = graph(vec![Node::new("Exp", &["y"], &["a"]), Node::new("Neg", &["a"], &["y"])]);
        assert!(matches!(g.sort(), Err(Error::Cycle { .. })));
    }

    #[test]
    fn refuses_undefined_and_doubled_values() {
        let g = graph(vec![Node::new("Exp", &["nowhere"], &["y"])]);
        assert!(g.validate().unwrap_err().to_string().contains("'nowhere'"));
        let g = graph(vec![Node::new("Exp", &["x"], &["y"]), Node::new("Neg", &["x"], &["y"])]);
        assert!(g.validate().unwrap_err().to_string().contains("defined twice"));
    }
}
