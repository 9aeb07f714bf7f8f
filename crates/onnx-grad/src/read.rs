//! Reading ONNX: bytes to messages to [`Model`].
//!
//! Whatever the file's age, the graph that comes out speaks one dialect: functions are inlined
//! ([`functions`]), operators older than opset 18 are rewritten to their opset 18 form ([`upgrade`]), and weights
//! stored in 16 bits are widened to what the arithmetic is in ([`half_weights`](crate::half_weights)).
//! Pipelines of classical machine learning are opened first ([`pipeline`]), since what is around their numbers (labels, maps,
//! words) is nothing that a graph of tensors holds. Everything after this module knows only that dialect.

mod columns;
mod functions;
mod operators;
mod pipeline;
mod upgrade;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use prost::Message;

pub use operators::operators;
pub use pipeline::without_maps;

use crate::error::{Error, Result};
use crate::graph::{Attribute, Dim, Graph, Model, NEWEST_OPSET, Node, OLDEST_OPSET, ValueInfo, Words};
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    attribute_type,
};
use crate::tensor::{DType, TensorData};

/// Graphs nest (`If` in `Loop` in ...); deeper than this is an attack or an accident.
const MAX_DEPTH: usize = 16;

impl Model {
    /// Reads a model and the data files beside it.
    ///
    /// ```no_run
    /// let model = onnx_grad::Model::load("resnet.onnx")?;
    /// # Ok::<(), onnx_grad::Error>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let bytes = read_ordinary(path).map_err(|reason| Error::File {
            action: "read",
            path: path.to_path_buf(),
            reason,
        })?;
        Ok(Model::from_bytes_in(bytes, path.parent().unwrap_or(Path::new("")))?.0)
    }

    /// Reads a model whose data may lie in files of this folder, and says what those files held: by their locations
    /// in the model, so that a fingerprint of the model can cover them.
    pub fn from_bytes_in(bytes: impl Into<Bytes>, folder: &Path) -> Result<(Model, DataFiles)> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let reader = Reader { folder: Some(folder.to_path_buf()), files: Default::default() };
        let model = decode(bytes.into(), &reader)?;
        Ok((model, reader.files.into_inner()))
    }

    /// Reads a model that holds all its data.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model> {
        decode(bytes.into(), &Reader { folder: None, files: Default::default() })
    }
}

/// What the data files of a model held, by their locations in it.
pub type DataFiles = BTreeMap<PathBuf, Bytes>;

impl TensorData {
    /// Reads a single tensor (a `.pb` file), as ONNX's test suites store inputs and outputs.
    pub fn decode(bytes: impl Into<Bytes>) -> Result<TensorData> {
        let malformed = |reason: String| Error::Tensor { name: String::new(), reason };
        let proto = TensorProto::decode(bytes.into()).map_err(|e| malformed(e.to_string()))?;
        TensorData::from_proto(&proto)
    }

    /// The tensor of a message that holds all its data.
    ///
    /// # Errors
    /// A message that contradicts itself, and data in another file.
    pub fn from_proto(proto: &TensorProto) -> Result<TensorData> {
        Reader { folder: None, files: Default::default() }.tensor(proto)
    }
}

fn decode(bytes: Bytes, reader: &Reader) -> Result<Model> {
    if bytes.is_empty() {
        return Err(Error::NotOnnx { reason: "the file is empty".to_string() });
    }
    let mut proto = ModelProto::decode(bytes).map_err(|e| Error::NotOnnx { reason: e.to_string() })?;
    let words = proto.graph.as_mut().map(pipeline::open).unwrap_or_default();
    let Some(graph) = &proto.graph else {
        return Err(Error::NotOnnx { reason: "it holds no graph".to_string() });
    };
    let opset = match opset_of(&proto.opset_import)? {
        Some(opset) => opset,
        // A file that says nothing at all is older than the field.
        None if proto.opset_import.is_empty() => return Err(wrong_opset(1)),
        None => NEWEST_OPSET,
    };
    let other_opsets = proto
        .opset_import
        .iter()
        .map(|import| (domain(import.domain.as_deref()), import.version.unwrap_or(1)))
        .filter(|(domain, _)| !domain.is_empty())
        .collect();
    let graph = reader.graph(graph, 0)?;
    let mut model = Model {
        graph,
        ir_version: proto.ir_version.unwrap_or(3),
        opset,
        other_opsets,
        producer: proto.producer_name.clone().unwrap_or_default(),
        metadata: proto
            .metadata_props
            .iter()
            .map(|e| (e.key.clone().unwrap_or_default(), e.value.clone().unwrap_or_default()))
            .collect(),
        words,
    };
    let functions = proto
        .functions
        .iter()
        .map(|f| functions::Function::read(reader, f, opset))
        .collect::<Result<Vec<_>>>()?;
    upgrade::upgrade(&mut model)?;
    functions::inline(&mut model.graph, &functions)?;
    // Maps are opened where the graph has them; inside a function nobody would see what they become.
    if let Some(node) = model.graph.nodes.iter().find(|node| node.is_classical("ZipMap")) {
        return Err(Error::Invalid {
            reason: format!(
                "node {} is inside a function; export the model with 'zipmap': False",
                node.label()
            ),
        });
    }
    crate::half_weights::widen(&mut model.graph);
    model.graph.sort()?;
    model.graph.validate()?;
    if functions.is_empty() || !model.graph.inputs.iter().any(is_column_of_codes) {
        return Ok(model);
    }
    // What reads a column of codes was inside a function until now.
    let mut opened = decode(model.to_bytes().into(), reader)?;
    let Words { classes, levels, left_out } = model.words;
    opened.words.classes.splice(..0, classes);
    opened.words.levels.extend(levels);
    opened.words.left_out.splice(..0, left_out);
    Ok(opened)
}

/// Whether an input may be a column of categories or of whole numbers ([`columns`]).
fn is_column_of_codes(input: &ValueInfo) -> bool {
    let one = |shape: &Vec<Dim>| matches!(shape.as_slice(), [_, Dim::Known(1)]);
    !input.dtype.is_float() && input.shape.as_ref().is_some_and(one)
}

/// The version of ONNX's own operators, where it is said.
fn opset_of(imports: &[OperatorSetIdProto]) -> Result<Option<i64>> {
    let own = imports.iter().rfind(|import| domain(import.domain.as_deref()).is_empty());
    let Some(version) = own.map(|import| import.version.unwrap_or(1)) else { return Ok(None) };
    match (OLDEST_OPSET..=NEWEST_OPSET).contains(&version) {
        true => Ok(Some(version)),
        false => Err(wrong_opset(version)),
    }
}

fn wrong_opset(found: i64) -> Error {
    Error::Opset { found, oldest: OLDEST_OPSET, newest: NEWEST_OPSET }
}

/// A domain's name; ONNX's own has two, and the shorter is ours.
fn domain(name: Option<&str>) -> String {
    match name.unwrap_or("") {
        "ai.onnx" => String::new(),
        name => name.to_string(),
    }
}

/// The name of an operator, of which a file may define several under one name.
fn overloaded(name: Option<&str>, overload: Option<&str>) -> String {
    let name = name.unwrap_or("");
    overload.filter(|o| !o.is_empty()).map_or(name.to_string(), |overload| format!("{name}:{overload}"))
}

fn too_deep() -> Error {
    Error::Invalid {
        reason: format!("bodies of If and Loop are nested more than {MAX_DEPTH} deep; export it again"),
    }
}

/// Turns messages into values; knows where external data lies.
struct Reader {
    folder: Option<PathBuf>,
    /// Data files read so far: one file usually holds all tensors.
    files: std::cell::RefCell<DataFiles>,
}

impl Reader {
    fn graph(&self, proto: &GraphProto, depth: usize) -> Result<Graph> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let mut initializers = BTreeMap::new();
        for tensor in &proto.initializer {
            let name = tensor.name.clone().unwrap_or_default();
            let data = self.tensor(tensor)?;
            if initializers.insert(name.clone(), data).is_some() {
                return Err(Error::Invalid {
                    reason: format!("initializer '{name}' is given twice; export the model again"),
                });
            }
        }
        let nodes = proto.node.iter().map(|n| self.node(n, depth)).collect::<Result<Vec<_>>>()?;
        // Old files list every initializer as an input too.
        let inputs = proto
            .input
            .iter()
            .filter(|v| !initializers.contains_key(v.name.as_deref().unwrap_or("")))
            .map(value_info)
            .collect::<Result<Vec<_>>>()?;
        let outputs = proto.output.iter().map(value_info).collect::<Result<Vec<_>>>()?;
        // A hint that cannot be read (a sequence, an exotic type) is no hint.
        let value_info =
            proto.value_info.iter().filter_map(|v| value_info(v).ok()).map(|v| (v.name.clone(), v)).collect();
        Ok(Graph {
            name: proto.name.clone().unwrap_or_default(),
            inputs,
            outputs,
            initializers,
            nodes,
            value_info,
        })
    }

    fn node(&self, proto: &NodeProto, depth: usize) -> Result<Node> {
        let mut node = Node {
            name: proto.name.clone().unwrap_or_default(),
            op: overloaded(proto.op_type.as_deref(), proto.overload.as_deref()),
            domain: domain(proto.domain.as_deref()),
            inputs: proto.input.clone(),
            outputs: proto.output.clone(),
            attributes: BTreeMap::new(),
        };
        for attribute in &proto.attribute {
            let name = attribute.name.clone().unwrap_or_default();
            if let Some(value) = self.attribute(attribute, &node, depth)? {
                node.attributes.insert(name, value);
            }
        }
        Ok(node)
    }

    /// An attribute's value; `None` for kinds that no operator we know has.
    fn attribute(&self, proto: &AttributeProto, node: &Node, depth: usize) -> Result<Option<Attribute>> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        if let Some(name) = proto.ref_attr_name.as_ref().filter(|n| !n.is_empty()) {
            return Ok(Some(Attribute::Reference(name.clone())));
        }
        let missing = || Error::Node {
            node: node.label(),
            reason: format!("attribute '{}' has no value of its type", proto.name.as_deref().unwrap_or("")),
        };
        // proto3 writers leave out a field that holds its default.
        Ok(match proto.r#type.unwrap_or(0) {
            attribute_type::FLOAT => Some(Attribute::Float(proto.f.unwrap_or(0.0))),
            attribute_type::INT => Some(Attribute::Int(proto.i.unwrap_or(0))),
            attribute_type::STRING => Some(Attribute::String(proto.s.as_ref().map(text).unwrap_or_default())),
            attribute_type::TENSOR => {
                Some(Attribute::Tensor(self.tensor(proto.t.as_ref().ok_or_else(missing)?)?))
            }
            attribute_type::GRAPH => {
                let graph = proto.g.as_ref().ok_or_else(missing)?;
                Some(Attribute::Graph(Box::new(self.graph(graph, depth + 1)?)))
            }
            attribute_type::FLOATS => Some(Attribute::Floats(proto.floats.clone())),
            attribute_type::INTS => Some(Attribute::Ints(proto.ints.clone())),
            attribute_type::STRINGS => Some(Attribute::Strings(proto.strings.iter().map(text).collect())),
            _ => None,
        })
    }

    fn tensor(&self, proto: &TensorProto) -> Result<TensorData> {
        let name = proto.name.clone().unwrap_or_default();
        let malformed = |reason: String| Error::Tensor { name: name.clone(), reason };
        let code = proto.data_type.unwrap_or(0);
        let dtype = DType::from_code(code).ok_or_else(|| {
            malformed(format!("element type code {code} is not read (float16/32/64, integers and bool are)"))
        })?;
        let shape = proto
            .dims
            .iter()
            .map(|&d| usize::try_from(d).map_err(|_| malformed(format!("axis of size {d}"))))
            .collect::<Result<Vec<_>>>()?;
        let name_it = |e: Error| match e {
            Error::Tensor { reason, .. } => malformed(reason),
            other => other,
        };
        if proto.data_location == Some(1) {
            let bytes = self.external(proto, &name, dtype, &shape)?;
            return TensorData::from_bytes(dtype, shape, bytes).map_err(name_it);
        }
        // Some writers leave an empty `raw_data` beside typed data.
        if let Some(raw) = proto.raw_data.as_ref().filter(|raw| !raw.is_empty()) {
            return TensorData::from_bytes(dtype, shape, raw.clone()).map_err(name_it);
        }
        let bytes: Vec<u8> = match dtype {
            DType::F32 => proto.float_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::F64 => proto.double_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::I64 => proto.int64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::U64 => proto.uint64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::U32 => proto.uint64_data.iter().flat_map(|v| (*v as u32).to_le_bytes()).collect(),
            DType::I32 => proto.int32_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::I16 | DType::U16 | DType::F16 => {
                proto.int32_data.iter().flat_map(|v| (*v as u16).to_le_bytes()).collect()
            }
            DType::I8 | DType::U8 | DType::Bool => proto.int32_data.iter().map(|v| *v as u8).collect(),
        };
        TensorData::from_bytes(dtype, shape, bytes).map_err(name_it)
    }

    /// The bytes of a tensor whose data lies in a file beside the model.
    fn external(&self, proto: &TensorProto, name: &str, dtype: DType, shape: &[usize]) -> Result<Bytes> {
        let entry = |key: &str| {
            proto
                .external_data
                .iter()
                .find(|e| e.key.as_deref() == Some(key))
                .and_then(|e| e.value.as_deref())
        };
        let location = Path::new(entry("location").unwrap_or(""));
        let refuse = |path: &Path, reason: &str| Error::ExternalData {
            name: name.to_string(),
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        let Some(folder) = &self.folder else {
            return Err(refuse(location, "a model read from memory has no folder; load it from its file"));
        };
        // A model file is data from elsewhere: it must not make us read outside its folder.
        let inside = location.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if location.as_os_str().is_empty() || !inside {
            return Err(refuse(location, "the location is outside the model's folder"));
        }
        let path = folder.join(location);
        let number = |key: &str| -> Result<Option<usize>> {
            entry(key)
                .map(|v| v.parse().map_err(|_| refuse(&path, &format!("its {key} is '{v}'"))))
                .transpose()
        };
        let offset = number("offset")?.unwrap_or(0);
        let mut files = self.files.borrow_mut();
        let file = match files.get(location) {
            Some(file) => file.clone(),
            None => {
                let file = read_inside(folder, &path).map_err(|reason| refuse(&path, &reason))?;
                files.insert(location.to_path_buf(), file.clone());
                file
            }
        };
        let length = match number("length")? {
            Some(length) => length,
            None => crate::tensor::element_count(shape)
                .and_then(|n| n.checked_mul(dtype.size()))
                .unwrap_or(usize::MAX),
        };
        let end = offset.checked_add(length).filter(|&end| end <= file.len());
        match end {
            Some(end) => Ok(file.slice(offset..end)),
            None => Err(refuse(
                &path,
                &format!("it has {} bytes, but bytes {offset} to {offset}+{length} are needed", file.len()),
            )),
        }
    }
}

/// An ordinary file of a folder. A link that leads out of it is refused, and so is what is no file.
fn read_inside(folder: &Path, path: &Path) -> std::result::Result<Bytes, String> {
    let found = |path: &Path| path.canonicalize().map_err(|e| e.to_string());
    let (folder, path) = (found(folder)?, found(path)?);
    if !path.starts_with(&folder) {
        return Err("it is a link that leads out of the model's folder".to_string());
    }
    Ok(read_ordinary(&path)?.into())
}

/// The bytes of an ordinary file: a device has no end, and a pipe would wait for a writer.
fn read_ordinary(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let found = fs::metadata(path).map_err(|e| e.to_string())?;
    if !found.is_file() && !found.is_dir() {
        return Err("it is a pipe or a device, not an ordinary file".to_string());
    }
    fs::read(path).map_err(|e| e.to_string())
}

fn value_info(proto: &ValueInfoProto) -> Result<ValueInfo> {
    let name = proto.name.clone().unwrap_or_default();
    let Some(tensor) = proto.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()) else {
        return Err(Error::Invalid {
            reason: format!(
                "value '{name}' is not a tensor (sequences, maps and optionals are not read); cut the model so \
                 that its inputs and outputs are tensors"
            ),
        });
    };
    let code = tensor.elem_type.unwrap_or(0);
    let dtype = DType::from_code(code).ok_or_else(|| Error::Invalid {
        reason: format!(
            "value '{name}' has element type code {code}, which is not read; export the model in float32"
        ),
    })?;
    let shape = tensor.shape.as_ref().map(|shape| {
        shape
            .dim
            .iter()
            .map(|d| match (d.dim_value, d.dim_param.as_deref()) {
                (Some(n), _) if n >= 0 => Dim::Known(n),
                (_, Some(symbol)) if !symbol.is_empty() => Dim::symbol(symbol),
                _ => Dim::Unknown,
            })
            .collect()
    });
    Ok(ValueInfo { name, dtype, shape })
}
