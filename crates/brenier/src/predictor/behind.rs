//! Trees behind other steps: a scaler, an encoder, a `ColumnTransformer`.
//!
//! ```text
//! trees(h(x)),  h_k depends on one column alone:    h_k(x_j) <= c   is   x_j <= t   (h_k rising; falling: x_j >= t)
//! ```
//!
//! So the trees can be asked about the table's own columns, and everything that trees have (jumps along paths, Shapley values) is
//! exact for the pipeline. `t` is the last number for which the steps give at most `c`, in the very arithmetic of the graph: it
//! is found by halving, not by turning formulas around. A category has few levels: a question about any function of it is a
//! question about a set of levels.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use brenier_trees::{Branch, Description, Moved, Test};
use onnx_grad::eval::{Array, evaluate_node};
use onnx_grad::shapes::Facts;
use onnx_grad::{CLASSICAL_DOMAIN, DType, Graph, Model, Node, ValueInfo, lower};

use super::columnwise::{Number, Trend, numbers};
use super::frame::{Framed, framed};
use super::onnx::{PredictorConfig, explained_output};
use super::split::declared;
use super::trees::{Place, Table};
use crate::data::{Column, ColumnKind};

/// Rows that the steps are computed for at a time.
const ROWS: usize = 1024;

/// Trees and the steps before them.
pub(super) struct Behind {
    /// The name of the trees' scores in the file.
    pub(super) scores: String,
    /// Whether the trees see 32 bits.
    pub(super) single: bool,
    pub(super) input: String,
    /// The columns of a model that takes a data frame; none of one that takes a table of numbers.
    pub(super) columns: Vec<Column>,
    pub(super) table: Table,
    steps: Steps,
    seen: Vec<Number>,
}

/// Finds the trees of a file and the steps before them; nothing where there is no one ensemble whose scores are the output.
///
/// # Errors
/// Why the steps cannot be told apart by columns, as a sentence.
pub(super) fn read(file: &[u8], config: &PredictorConfig) -> Result<Option<Behind>, String> {
    let Ok(model) = Model::from_bytes(file.to_vec()) else { return Ok(None) };
    of(&model, config)
}

/// The same of a model that was read.
pub(super) fn of(model: &Model, config: &PredictorConfig) -> Result<Option<Behind>, String> {
    let mut graph = model.graph.with_floats(DType::F16, DType::F32);
    let asked = config.output.clone().or_else(|| explained_output(&graph).map(|output| output.name.clone()));
    let Some(output) = asked else { return Ok(None) };
    graph.outputs.retain(|other| other.name == output);
    graph.prune();
    let Some((trees, scores)) = trees_of(&graph, &output) else { return Ok(None) };
    let Some(value) = trees.input(0).map(str::to_string) else { return Ok(None) };
    let broken =
        |error: &dyn std::fmt::Display| format!("the steps before the trees cannot be read: {error}");
    let single = Facts::of(&graph).map_err(|error| broken(&error))?.get(&value).dtype != Some(DType::F64);
    let dtype = if single { DType::F32 } else { DType::F64 };
    graph.outputs = vec![ValueInfo { name: value, dtype, shape: None }];
    graph.prune();
    let (graph, columns) = match framed(&graph, &model.words).map_err(|error| broken(&error))? {
        Some(Framed { graph, columns }) => (graph, columns),
        None => (graph, Vec::new()),
    };
    let [input] = graph.inputs.as_slice() else { return Ok(None) };
    let width =
        declared(input).and_then(|sizes| if let [Some(width)] = sizes[..] { Some(width) } else { None });
    let Some(width) = width.filter(|_| input.dtype.is_float()) else { return Ok(None) };
    let input = input.name.clone();
    let table = table(&columns, width);
    let names: Vec<String> = match columns.is_empty() {
        true => (0..width).map(|column| column.to_string()).collect(),
        false => columns.iter().map(|column| format!("'{}'", column.name)).collect(),
    };
    let steps = Steps { graph: lower(&graph, &[]).map_err(|error| broken(&error))? };
    if let Some(node) = steps.graph.nodes.iter().find(|node| node.domain == CLASSICAL_DOMAIN) {
        return Err(format!("node {} before the trees is not known here", node.label()));
    }
    let named = |reason: String| {
        let place = |text: String, (i, name): (usize, &String)| text.replace(&format!("{{{i}}}"), name);
        format!(
            "{}, so a jump of the trees belongs to no one column",
            names.iter().enumerate().fold(reason, place)
        )
    };
    let of_feature: Vec<usize> =
        table.places().iter().enumerate().flat_map(|(i, place)| vec![i; place.features.len()]).collect();
    let seen = numbers(&steps.graph, &of_feature).map_err(named)?;
    for number in &seen {
        if let Number::Of(column, Trend::Any) = number
            && !table.places()[*column].category
        {
            return Err(format!(
                "what the trees see of column {} neither rises nor falls with it throughout, so a threshold is none of the \
                 column's own",
                names[*column]
            ));
        }
    }
    Ok(Some(Behind { scores, single, input, columns, table, steps, seen }))
}

/// The one ensemble of a graph whose scores are its output, and the name of the scores.
fn trees_of<'a>(graph: &'a Graph, output: &str) -> Option<(&'a Node, String)> {
    let producers = graph.producers();
    let mut name = output.to_string();
    loop {
        let node = &graph.nodes[*producers.get(name.as_str())?];
        if node.domain == CLASSICAL_DOMAIN && node.op.starts_with("TreeEnsemble") {
            return (node.outputs.last() == Some(&name)).then_some((node, name));
        }
        if !(node.is("Cast") || node.is("Identity")) {
            return None;
        }
        name = node.input(0)?.to_string();
    }
}

/// Where each column is in a row.
fn table(columns: &[Column], width: usize) -> Table {
    if columns.is_empty() {
        return Table::new((0..width).map(|i| Place { features: i..i + 1, category: false }).collect());
    }
    let mut start = 0;
    let place = |column: &Column| {
        let features = start..start + column.width();
        start = features.end;
        Place { features, category: matches!(column.kind, ColumnKind::Categorical { .. }) }
    };
    Table::new(columns.iter().map(place).collect())
}

impl Behind {
    /// The number of features that the trees see.
    pub(super) fn width(&self) -> usize {
        self.seen.len()
    }

    /// The same trees over the columns of the table.
    ///
    /// # Errors
    /// A question that has no counterpart, as a sentence.
    pub(super) fn over_columns(&self, seen: Description) -> Result<Description, String> {
        let places = self.table.places();
        let levels = self.levels()?;
        let missing = self.steps.run(vec![f64::NAN; self.table.features()])?;
        let thresholds = self.thresholds(&seen)?;
        let own = seen.moved(places.len(), |feature, test, missing_yes| {
            let number =
                self.seen.get(feature).ok_or_else(|| format!("the trees see no feature {feature}"))?;
            let missing_yes = match missing[feature] {
                value if value.is_nan() => missing_yes,
                value => answer(test, value),
            };
            let ask = |feature, test, turned| Moved { feature, test, turned, missing_yes };
            Ok::<Moved, String>(match *number {
                Number::Known(_) => {
                    let always = answer(test, levels[0][feature]);
                    let limit = if always { f64::INFINITY } else { f64::NEG_INFINITY };
                    Moved { feature: 0, test: Test::AtMost(limit), turned: false, missing_yes: always }
                }
                Number::Of(column, _) if places[column].category => {
                    let codes = 0..=places[column].features.len();
                    let yes = codes.filter(|&code| answer(test, levels[code][feature]));
                    ask(
                        column,
                        Test::OneOf { values: yes.map(|code| code as f64).collect(), whole: false },
                        false,
                    )
                }
                Number::Of(column, trend) => {
                    let limit = thresholds.get(&key(feature, test)?).copied().unwrap_or(f64::NAN);
                    match trend {
                        Trend::Falling => ask(column, Test::Below(limit), true),
                        _ => ask(column, Test::AtMost(limit), false),
                    }
                }
            })
        })?;
        Ok(Description { single: false, ..own })
    }

    /// What the trees see where every category has its first level, its second, and so on; at last, of one with none.
    fn levels(&self) -> Result<Vec<Vec<f64>>, String> {
        let categories: Vec<&Place> = self.table.places().iter().filter(|place| place.category).collect();
        let most = categories.iter().map(|place| place.features.len()).max().unwrap_or(0);
        let row = |code: usize| {
            let mut row = vec![0.0; self.table.features()];
            for place in &categories {
                if code < place.features.len() {
                    row[place.features.start + code] = 1.0;
                }
            }
            row
        };
        let rows: Vec<f64> = (0..=most).flat_map(row).collect();
        Ok(self.steps.run(rows)?.chunks(self.width()).map(<[f64]>::to_vec).collect())
    }

    /// For every question about a number: the last value of the column with the answer yes, or the first where the steps fall.
    fn thresholds(&self, trees: &Description) -> Result<BTreeMap<Key, f64>, String> {
        let mut asked: BTreeMap<usize, BTreeSet<Key>> = BTreeMap::new();
        for branch in trees.trees.iter().flat_map(|tree| &tree.nodes) {
            let Branch::Split { feature, test, .. } = branch else { continue };
            if let Some(Number::Of(column, _)) = self.seen.get(*feature)
                && !self.table.places()[*column].category
            {
                asked.entry(*column).or_default().insert(key(*feature, test)?);
            }
        }
        let asked: Vec<(usize, Vec<Key>)> =
            asked.into_iter().map(|(column, keys)| (column, keys.into_iter().collect())).collect();
        let rows = asked.iter().map(|(_, keys)| keys.len()).max().unwrap_or(0);
        // Every question has a value of its column with the answer of small ones, and one with that of large ones.
        let ends = (order(f64::NEG_INFINITY), order(f64::INFINITY));
        let mut limits: Vec<Vec<(i64, i64)>> = asked.iter().map(|(_, keys)| vec![ends; keys.len()]).collect();
        let middle = |(low, high): (i64, i64)| low + ((high as i128 - low as i128) / 2) as i64;
        while limits.iter().flatten().any(|&(low, high)| (high as i128) - (low as i128) > 1) {
            let mut x = vec![0.0; rows * self.table.features()];
            for ((column, _), limits) in asked.iter().zip(&limits) {
                let place = self.table.places()[*column].features.start;
                for (row, &limit) in limits.iter().enumerate() {
                    x[row * self.table.features() + place] = value(middle(limit));
                }
            }
            let found = self.steps.run(x)?;
            for ((_, keys), limits) in asked.iter().zip(&mut limits) {
                for (row, (key, limit)) in keys.iter().zip(limits).enumerate() {
                    let (feature, _, _) = *key;
                    let small = self.is_small(key, found[row * self.width() + feature]);
                    if limit.1 as i128 - limit.0 as i128 > 1 {
                        if small { limit.0 = middle(*limit) } else { limit.1 = middle(*limit) }
                    }
                }
            }
        }
        let of = |(_, keys): &(usize, Vec<Key>), limits: &Vec<(i64, i64)>| {
            let limit = |(key, &(low, high)): (&Key, &(i64, i64))| {
                (*key, value(if self.falls(key) { high } else { low }))
            };
            keys.iter().zip(limits).map(limit).collect::<Vec<_>>()
        };
        Ok(asked.iter().zip(&limits).flat_map(|(asked, limits)| of(asked, limits)).collect())
    }

    fn falls(&self, &(feature, _, _): &Key) -> bool {
        matches!(self.seen[feature], Number::Of(_, Trend::Falling))
    }

    /// Whether a value of the steps is that of a small number of the column, for this question.
    fn is_small(&self, key: &Key, seen: f64) -> bool {
        let (_, bits, strict) = *key;
        let limit = f64::from_bits(bits);
        let yes = if strict { seen < limit } else { seen <= limit };
        yes != self.falls(key)
    }
}

/// A feature that trees see, the bits of a threshold, and whether the threshold itself is on the other side.
type Key = (usize, u64, bool);

fn key(feature: usize, test: &Test) -> Result<Key, String> {
    match test {
        Test::AtMost(limit) => Ok((feature, limit.to_bits(), false)),
        Test::Below(limit) => Ok((feature, limit.to_bits(), true)),
        Test::OneOf { .. } => Err(format!("the trees ask feature {feature} for equal values, behind a step")),
    }
}

fn answer(test: &Test, seen: f64) -> bool {
    match test {
        Test::AtMost(limit) => seen <= *limit,
        Test::Below(limit) => seen < *limit,
        Test::OneOf { values, whole } => {
            let seen = if *whole { seen.trunc() } else { seen };
            values.contains(&seen)
        }
    }
}

/// The place of a number among all numbers.
fn order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits < 0 { i64::MIN - bits } else { bits }
}

fn value(order: i64) -> f64 {
    let bits = if order < 0 { i64::MIN - order } else { order };
    f64::from_bits(bits as u64)
}

/// The graph from a row of the table to what the trees see, computed as its element types say: exactly, a node at a time.
struct Steps {
    graph: Graph,
}

impl Steps {
    /// What the trees see of flat rows.
    fn run(&self, rows: Vec<f64>) -> Result<Vec<f64>, String> {
        let width = declared(&self.graph.inputs[0]).and_then(|sizes| sizes[0]).unwrap_or(1);
        let mut found = Vec::new();
        for rows in rows.chunks(ROWS * width) {
            found.extend(self.some(rows, width)?);
        }
        Ok(found)
    }

    fn some(&self, rows: &[f64], width: usize) -> Result<Vec<f64>, String> {
        let input = &self.graph.inputs[0];
        let row = Array::new(input.dtype, &[rows.len() / width, width], rows.to_vec());
        let mut known: BTreeMap<&str, Cow<Array>> =
            BTreeMap::from([(input.name.as_str(), Cow::Owned(rounded(row)))]);
        for (name, tensor) in &self.graph.initializers {
            known.insert(name, Cow::Owned(Array::from(tensor)));
        }
        for node in &self.graph.nodes {
            let given: Vec<Option<&Array>> =
                node.inputs.iter().map(|name| known.get(name.as_str()).map(|array| &**array)).collect();
            let found =
                evaluate_node(node, &given).map_err(|error| format!("node {}: {error}", node.label()))?;
            for (name, array) in node.outputs.iter().zip(found) {
                known.insert(name, Cow::Owned(rounded(array)));
            }
        }
        let output = &self.graph.outputs[0].name;
        let found = known.remove(output.as_str()).ok_or_else(|| format!("'{output}' is not computed"))?;
        Ok(found.values().into_owned())
    }
}

/// Numbers of 32 bits as such.
fn rounded(mut array: Array) -> Array {
    if array.dtype == DType::F32 {
        array.data.mapv_inplace(|value| f64::from(value as f32));
    }
    array
}
