//! A model with several inputs as a model with one: a function from graph to graph.
//!
//! ```text
//! x [N, total]  ->  Slice, Reshape, Cast  ->  each input of the model  ->  the model as it was
//! ```
//!
//! Gradients, engines, methods and certificates see a model with one flat input. Integers travel as floats, which hold
//! them exactly up to 2^24, and a `Cast` makes integers of them again. An inner value that is explained is an input of
//! the model behind it (`split.rs`).

use std::collections::BTreeMap;

use ndarray::ArrayD;
use onnx_grad::{Builder, DType, Dim, Graph, TensorData, ValueInfo};

use super::split::{Embedding, before, cut, declared, drop_unused_inputs, embeddings, value_of};
use crate::error::{Error, Notice, Remedy, Result};
use crate::packed::{PackedInput, PackedInputs, Role};

/// The name of the one input.
const ROW: &str = "brenier/row";

/// What becomes of the inputs of a model.
///
/// ```
/// use brenier::{OnnxPredictor, Packing, PredictorConfig, Score};
/// use onnx_grad::{Builder, DType, Model};
///
/// let mut b = Builder::new("product");
/// let x = b.input("x", DType::F32, &["N".into(), 2usize.into()]);
/// let y = b.input("y", DType::F32, &["N".into(), 2usize.into()]);
/// let product = b.mul(&x, &y);
/// b.output("f", &product);
/// let packing = Packing { hold: vec!["y".into()], ..Packing::default() };
/// let config = PredictorConfig { packing: Some(packing), ..PredictorConfig::default() };
/// let model = Model { graph: b.finish()?, opset: 18, ir_version: 8, ..Model::default() };
/// let model = OnnxPredictor::new(&model, &config)?;
/// assert_eq!(model.shape(), [4]);
/// assert_eq!(model.inputs().map(|inputs| inputs.explained_features()), Some((vec![0, 1], vec![2])));
/// # Ok::<(), brenier::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Packing {
    /// The shape of one example of an input, where the file leaves sizes open.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// The inputs that get credit, ids at their embedding. Where not given: all of floats, or the embedding where there is
    /// none of floats; with `at`, none.
    pub explain: Option<Vec<String>>,
    /// Inputs that stay as they are.
    pub hold: Vec<String>,
    /// Inner values that get credit, by their names or those of their nodes.
    pub at: Vec<String>,
    /// Inputs that are the same for every example, such as those without a batch axis: they become constants.
    pub fixed: BTreeMap<String, TensorData>,
    /// Nothing is explained: only values are asked for.
    pub values_only: bool,
}

/// The graph with one input `[N, total]`, and which features of it are which input.
pub(super) fn pack(
    graph: Graph,
    packing: &Packing,
    notices: &mut Vec<Notice>,
) -> Result<(Graph, PackedInputs)> {
    let (graph, packed, _) = packed_parts(graph, packing, notices)?;
    Ok((graph, packed))
}

/// Parts of a graph by the inner values that they compute.
type Parts = Vec<(String, Graph)>;

/// The same, with the part of the graph before each inner value that is explained.
pub(super) fn packed_parts(
    mut graph: Graph,
    packing: &Packing,
    notices: &mut Vec<Notice>,
) -> Result<(Graph, PackedInputs, Parts)> {
    packing.check_names(&graph)?;
    for (name, value) in &packing.fixed {
        graph.inputs.retain(|input| input.name != *name);
        graph.initializers.insert(name.clone(), value.clone());
    }
    drop_unused_inputs(&mut graph);
    packing.fix_sizes(&mut graph)?;
    let tables = embeddings(&graph);
    let mut wanted: Vec<String> =
        packing.at.iter().map(|name| value_of(&graph, name)).collect::<Result<_>>()?;
    wanted.extend(packing.embedded(&graph, &tables, notices)?);
    let mut parts = Vec::with_capacity(wanted.len());
    let whole = graph.clone();
    for value in &wanted {
        let info = cut(&mut graph, value)?;
        parts.push((value.clone(), before(&whole, value, &info)));
    }
    let mut inputs = Vec::with_capacity(graph.inputs.len());
    let mut first = 0;
    for input in &graph.inputs {
        let shape = packing.row_shape(input)?;
        let range = first..first + shape.iter().product::<usize>();
        first = range.end;
        let role = if wanted.contains(&input.name) { Role::Explained } else { packing.role(input) };
        let (name, integer) = (input.name.clone(), !input.dtype.is_float());
        let entries = tables.iter().filter(|table| table.ids == name).map(|table| table.entries).min();
        let embeds = tables.iter().find(|table| table.value == name).map(|table| table.ids.clone());
        inputs.push(PackedInput { name, role, shape, range, integer, embeds, entries });
    }
    let packed = PackedInputs { inputs };
    if packed.explained().next().is_none() && !packing.values_only {
        return Err(Error::Inputs {
            reason: "no input is left to explain".to_string(),
            remedy: Remedy::NameInnerValue,
        });
    }
    Ok((rewired(graph, &packed)?, packed, parts))
}

impl Packing {
    /// The same, with the sizes of these arrays, whose first axis is the example. An array for an input without axes is
    /// the same for every example.
    pub fn sized_by(mut self, graph: &Graph, arrays: &BTreeMap<String, ArrayD<f64>>) -> Packing {
        for (name, array) in arrays {
            let Some(input) = graph.input(name) else { continue };
            let scalar = input.shape.as_ref().is_some_and(Vec::is_empty);
            match array.first() {
                Some(&value) if scalar && array.len() == 1 => {
                    let data = TensorData::from_f64(input.dtype, &[], &[value]);
                    self.fixed.insert(name.clone(), data);
                }
                _ => {
                    let row = array.shape().get(1..).unwrap_or_default().to_vec();
                    self.shapes.insert(name.clone(), row);
                }
            }
        }
        self
    }

    fn check_names(&self, graph: &Graph) -> Result<()> {
        let asked = self.explain.iter().flatten().chain(&self.hold).chain(self.fixed.keys());
        for name in asked {
            if graph.input(name).is_none() {
                let known: Vec<&str> = graph.inputs.iter().map(|i| i.name.as_str()).collect();
                return Err(Error::Inputs {
                    reason: format!("the model has no input '{name}'; it has {}", known.join(", ")),
                    remedy: "name one of them".into(),
                });
            }
        }
        if let Some(name) = self.explain.iter().flatten().find(|name| self.hold.contains(name)) {
            return Err(Error::Inputs {
                reason: format!("input '{name}' cannot be explained and held"),
                remedy: "name it once".into(),
            });
        }
        Ok(())
    }

    /// Writes the sizes of examples into the graph's inputs.
    fn fix_sizes(&self, graph: &mut Graph) -> Result<()> {
        for input in &mut graph.inputs {
            let shape = self.row_shape(input)?;
            let batch = input.shape.as_ref().and_then(|s| s.first()).cloned().unwrap_or(Dim::symbol("N"));
            input.shape = Some(std::iter::once(batch).chain(shape.iter().map(|&n| n.into())).collect());
        }
        // What the file said of values in between was for open sizes.
        graph.value_info.clear();
        Ok(())
    }

    /// The embeddings that get credit: those of the ids that are asked for, or of a model without floats.
    fn embedded(
        &self,
        graph: &Graph,
        tables: &[Embedding],
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<String>> {
        if self.values_only || (!self.at.is_empty() && self.explain.is_none()) {
            return Ok(Vec::new());
        }
        let ids: Vec<&ValueInfo> = graph.inputs.iter().filter(|input| !input.dtype.is_float()).collect();
        let Some(asked) = &self.explain else {
            if ids.len() < graph.inputs.len() || ids.is_empty() {
                return Ok(Vec::new());
            }
            // Words have the longest table; positions and kinds of segments have short ones.
            let free = tables.iter().filter(|table| !self.hold.contains(&table.ids));
            let Some(longest) = free.max_by_key(|table| table.entries) else {
                if !tables.is_empty() {
                    // All ids that choose from a table are held.
                    return Ok(Vec::new());
                }
                return Err(Error::Inputs {
                    reason: format!(
                        "input '{}' is {}, and it chooses from no table",
                        ids[0].name, ids[0].dtype
                    ),
                    remedy: Remedy::NameInnerValue,
                });
            };
            let Embedding { value, ids, entries, width } = longest;
            let what = format!(
                "'{ids}' is explained at '{value}', its vectors of {width} numbers from a table of {entries}"
            );
            notices.push(Notice::with(what, Remedy::OtherInnerValue));
            return Ok(vec![value.clone()]);
        };
        let mut found = Vec::new();
        for input in ids.iter().filter(|input| asked.contains(&input.name)) {
            let own = tables.iter().filter(|table| table.ids == input.name);
            let Some(table) = own.max_by_key(|table| table.entries) else {
                return Err(Error::Inputs {
                    reason: format!(
                        "input '{}' is {}, and it chooses from no table",
                        input.name, input.dtype
                    ),
                    remedy: Remedy::NameInnerValue,
                });
            };
            found.push(table.value.clone());
        }
        Ok(found)
    }

    fn role(&self, input: &ValueInfo) -> Role {
        let asked = match &self.explain {
            Some(names) => names.contains(&input.name),
            None => self.at.is_empty(),
        };
        let moves = asked && input.dtype.is_float() && !self.hold.contains(&input.name);
        if moves && !self.values_only { Role::Explained } else { Role::Held }
    }

    /// The shape of one example: as the file says, and where it leaves sizes open, as the user says.
    fn row_shape(&self, input: &ValueInfo) -> Result<Vec<usize>> {
        let given = self.shapes.get(&input.name);
        let name = &input.name;
        if input.shape.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::Inputs {
                reason: format!("input '{name}' has no axis for examples"),
                remedy:
                    "give one number for all examples, or export the model with a batch axis for every input"
                        .into(),
            });
        }
        let declared = declared(input).unwrap_or_else(|| vec![None; given.map_or(1, Vec::len)]);
        let fits = |given: &Vec<usize>| {
            given.len() == declared.len()
                && declared.iter().zip(given).all(|(declared, given)| declared.is_none_or(|d| d == *given))
        };
        let told = || {
            let sizes = declared.iter().map(|d| d.map_or("?".to_string(), |n| n.to_string()));
            sizes.collect::<Vec<_>>().join(", ")
        };
        match given {
            Some(given) if fits(given) => Ok(given.clone()),
            // A column of numbers, one for each example, may come without its second axis.
            Some(given) if given.is_empty() && declared == [Some(1)] => Ok(vec![1]),
            Some(given) => Err(Error::Inputs {
                reason: format!(
                    "input '{name}' takes examples of [{}], but those given have {given:?}",
                    told()
                ),
                remedy: "give examples of this shape, cut or pad longer and shorter ones, or export the model with open sizes".into(),
            }),
            None => declared.iter().copied().collect::<Option<Vec<_>>>().ok_or_else(|| Error::Inputs {
                reason: format!("the sizes of input '{name}' are open: [{}]", told()),
                remedy: "give examples of it, which tell its sizes".into(),
            }),
        }
    }
}

/// The graph behind slices of one input.
fn rewired(mut graph: Graph, packed: &PackedInputs) -> Result<Graph> {
    let dtypes: Vec<DType> = graph.inputs.iter().map(|input| input.dtype).collect();
    let floats: Vec<DType> = dtypes.iter().copied().filter(|dtype| dtype.is_float()).collect();
    let wide = if !floats.is_empty() && floats.iter().all(|dtype| *dtype == DType::F64) {
        DType::F64
    } else {
        DType::F32
    };
    let batch = |input: &ValueInfo| input.shape.as_ref().and_then(|shape| shape.first()).cloned();
    let fixed = graph.inputs.iter().filter_map(batch).find(|dim| dim.known().is_some());
    let rows = fixed.unwrap_or(Dim::symbol("N"));
    let leading = rows.known().unwrap_or(-1);
    let mut b = Builder::extend(Graph::new("inputs"), "brenier/inputs/")?;
    let row = b.input(ROW, wide, &[rows, packed.features().into()]);
    for (input, dtype) in packed.inputs.iter().zip(dtypes) {
        let part = b.slice(&row, 1, input.range.start as i64, input.range.end as i64, 1);
        let shape: Vec<i64> =
            std::iter::once(leading).chain(input.shape.iter().map(|&size| size as i64)).collect();
        let part = b.reshape(&part, &shape);
        let part = if dtype == wide { part } else { b.cast(&part, dtype) };
        b.output(&input.name, &part);
    }
    let mut whole = b.finish()?;
    whole.nodes.append(&mut graph.nodes);
    whole.initializers.append(&mut graph.initializers);
    // What the file said of values in between was for open sizes.
    whole.outputs = graph.outputs;
    whole.name = graph.name;
    whole.validate()?;
    Ok(whole)
}
