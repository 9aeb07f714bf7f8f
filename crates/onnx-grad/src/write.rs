//! Writing ONNX: [`Model`] to messages to bytes.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::graph::{Attribute, Dim, Graph, Model, Node, ValueInfo};
use crate::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
    attribute_type,
};
use crate::shapes::dims::FRESH;
use crate::tensor::TensorData;

impl Model {
    /// The model as the bytes of an `.onnx` file, with all data inside.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_proto().encode_to_vec()
    }

    /// Writes the model as an `.onnx` file, with all data inside.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        fs::write(path, self.to_bytes()).map_err(|e| Error::File {
            action: "write",
            path: path.to_path_buf(),
            reason: e.to_string(),
        })
    }

    fn to_proto(&self) -> ModelProto {
        let opset = |domain: &str, version| OperatorSetIdProto {
            domain: Some(domain.to_string()),
            version: Some(version),
        };
        let mut opset_import = vec![opset("", self.opset)];
        opset_import.extend(self.other_opsets.iter().map(|(d, &v)| opset(d, v)));
        ModelProto {
            ir_version: Some(self.ir_version),
            producer_name: Some(self.producer.clone()),
            graph: Some(graph(&self.graph)),
            opset_import,
            metadata_props: self
                .metadata
                .iter()
                .map(|(key, value)| StringStringEntryProto {
                    key: Some(key.clone()),
                    value: Some(value.clone()),
                })
                .collect(),
            ..ModelProto::default()
        }
    }
}

fn graph(graph: &Graph) -> GraphProto {
    GraphProto {
        node: graph.nodes.iter().map(node).collect(),
        name: Some(match graph.name.as_str() {
            "" => "graph".to_string(),
            name => name.to_string(),
        }),
        initializer: graph.initializers.iter().map(|(name, t)| tensor(name, t)).collect(),
        input: graph.inputs.iter().map(value_info).collect(),
        output: graph.outputs.iter().map(value_info).collect(),
        value_info: graph.value_info.values().map(value_info).collect(),
        ..GraphProto::default()
    }
}

fn node(node: &Node) -> NodeProto {
    NodeProto {
        input: node.inputs.clone(),
        output: node.outputs.clone(),
        name: Some(node.name.clone()),
        op_type: Some(node.op.clone()),
        domain: Some(node.domain.clone()),
        attribute: node.attributes.iter().map(|(n, a)| attribute(n, a)).collect(),
        ..NodeProto::default()
    }
}

fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut proto = AttributeProto { name: Some(name.to_string()), ..AttributeProto::default() };
    let text = |s: &String| Bytes::copy_from_slice(s.as_bytes());
    proto.r#type = Some(match value {
        Attribute::Int(i) => {
            proto.i = Some(*i);
            attribute_type::INT
        }
        Attribute::Float(f) => {
            proto.f = Some(*f);
            attribute_type::FLOAT
        }
        Attribute::String(s) => {
            proto.s = Some(text(s));
            attribute_type::STRING
        }
        Attribute::Tensor(t) => {
            proto.t = Some(tensor("", t));
            attribute_type::TENSOR
        }
        Attribute::Ints(v) => {
            proto.ints = v.clone();
            attribute_type::INTS
        }
        Attribute::Floats(v) => {
            proto.floats = v.clone();
            attribute_type::FLOATS
        }
        Attribute::Strings(v) => {
            proto.strings = v.iter().map(text).collect();
            attribute_type::STRINGS
        }
        Attribute::Graph(g) => {
            proto.g = Some(graph(g));
            attribute_type::GRAPH
        }
        // Only inside functions, which reading has inlined; kept for completeness of the round trip.
        Attribute::Reference(source) => {
            proto.ref_attr_name = Some(source.clone());
            attribute_type::INT
        }
    });
    proto
}

fn tensor(name: &str, data: &TensorData) -> TensorProto {
    TensorProto {
        dims: data.shape().iter().map(|&d| d as i64).collect(),
        data_type: Some(data.dtype().code()),
        name: Some(name.to_string()),
        raw_data: Some(data.bytes().clone()),
        ..TensorProto::default()
    }
}

fn value_info(info: &ValueInfo) -> ValueInfoProto {
    let dim = |dim: &Dim| match dim {
        Dim::Known(n) => DimensionProto { dim_value: Some(*n), dim_param: None },
        Dim::Symbol { symbol, factor: 1 } if !symbol.starts_with(FRESH) => {
            DimensionProto { dim_value: None, dim_param: Some(symbol.to_string()) }
        }
        // A name for 4 N would be a new free symbol to every reader: better to say nothing.
        Dim::Symbol { .. } | Dim::Unknown => DimensionProto::default(),
    };
    ValueInfoProto {
        name: Some(info.name.clone()),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: Some(info.dtype.code()),
                shape: info
                    .shape
                    .as_ref()
                    .map(|shape| TensorShapeProto { dim: shape.iter().map(dim).collect() }),
            }),
        }),
    }
}
