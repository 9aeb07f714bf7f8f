//! Which operators a file uses, without reading anything else of it.
//!
//! A [`Model`](crate::Model) has tensors at its ends and between its nodes. A file may have more: a scikit-learn
//! pipeline names classes with strings and returns maps. Whoever wants to hand such a file to an engine as it is
//! must know what is in it first.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;

use super::domain;
use crate::error::{Error, Result};
use crate::proto::{ModelProto, NodeProto};

impl ModelProto {
    /// The messages of a file as they are, for whoever knows operators that a [`Model`](crate::Model) does not.
    ///
    /// # Errors
    /// If it is no ONNX.
    pub fn parse(file: impl Into<Bytes>) -> Result<ModelProto> {
        ModelProto::decode(file.into()).map_err(|e| Error::NotOnnx { reason: e.to_string() })
    }
}

/// The operators that a file uses, in its graph and in bodies of control flow: `Conv` for ONNX's own,
/// `ai.onnx.ml::Scaler` for those of another domain. Functions that the file defines itself are looked into.
pub fn operators(file: impl Into<Bytes>) -> Result<BTreeSet<String>> {
    let model = ModelProto::parse(file)?;
    let Some(graph) = &model.graph else {
        return Err(Error::NotOnnx { reason: "it holds no graph".to_string() });
    };
    let key = |name: &Option<String>, of: &Option<String>| {
        (domain(of.as_deref()), name.as_deref().unwrap_or("").to_string())
    };
    let functions: BTreeMap<_, _> = model.functions.iter().map(|f| (key(&f.name, &f.domain), f)).collect();
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&NodeProto> = graph.node.iter().collect();
    while let Some(node) = waiting.pop() {
        let operator = key(&node.op_type, &node.domain);
        let bodies = node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs));
        waiting.extend(bodies.flat_map(|graph| &graph.node));
        let is_new = found.insert(operator.clone());
        // Once is enough, and a function that calls itself must not keep us here.
        if let Some(function) = functions.get(&operator).filter(|_| is_new) {
            waiting.extend(&function.node);
        }
    }
    let own = found.into_iter().filter(|operator| !functions.contains_key(operator));
    Ok(own.map(|(domain, op)| if domain.is_empty() { op } else { format!("{domain}::{op}") }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, FunctionProto, GraphProto};

    fn node(op: &str, domain: &str) -> NodeProto {
        NodeProto { op_type: Some(op.into()), domain: Some(domain.into()), ..NodeProto::default() }
    }

    #[test]
    fn functions_and_bodies_are_looked_into() {
        let body = GraphProto { node: vec![node("Scaler", "ai.onnx.ml")], ..GraphProto::default() };
        let branch = AttributeProto { g: Some(body), ..AttributeProto::default() };
        let condition = NodeProto { attribute: vec![branch], ..node("If", "ai.onnx") };
        // A function that calls itself ends here too.
        let function = FunctionProto {
            name: Some("Twice".into()),
            domain: Some("local".into()),
            node: vec![node("Add", ""), node("Twice", "local")],
            ..FunctionProto::default()
        };
        let nodes = vec![condition, node("Twice", "local"), node("Gelu", "com.microsoft")];
        let model = ModelProto {
            graph: Some(GraphProto { node: nodes, ..GraphProto::default() }),
            functions: vec![function],
            ..ModelProto::default()
        };
        let found: Vec<String> = operators(model.encode_to_vec()).unwrap().into_iter().collect();
        assert_eq!(found, ["Add", "If", "ai.onnx.ml::Scaler", "com.microsoft::Gelu"]);
        assert!(operators(vec![1, 2, 3]).is_err() && operators(vec![]).is_err());
    }
}
