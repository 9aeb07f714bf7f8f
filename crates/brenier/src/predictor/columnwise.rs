//! Which column of a table each number inside a graph comes from.
//!
//! A graph is read with one row whose numbers are not known. What moves numbers (`Reshape`, `Concat`, `Gather`, ...) is run on
//! their places in a list, so that it needs no rule of its own; what computes with a number says whether the result rises or
//! falls with it. Two columns in one number have no answer here.

use std::collections::BTreeMap;

use onnx_grad::eval::{Array, evaluate_node};
use onnx_grad::{DType, Graph, Node};

/// A number inside a graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// The same for all rows.
    Known(f64),
    /// Made of one column alone.
    Of(usize, Trend),
}

/// How a number follows its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trend {
    Rising,
    Falling,
    /// Not known.
    Any,
}

/// The numbers of one row of a value.
#[derive(Debug, Clone)]
struct Cells {
    dtype: DType,
    shape: Vec<usize>,
    numbers: Vec<Number>,
}

use Number::{Known, Of};
use Trend::{Any, Falling, Rising};

/// The numbers of the graph's first output, for the columns of the features of its one input; or why they cannot be told apart.
pub(super) fn numbers(graph: &Graph, columns: &[usize]) -> Result<Vec<Number>, String> {
    let input = graph.inputs.first().ok_or("the graph has no input")?;
    let mut known: BTreeMap<&str, Cells> = BTreeMap::new();
    let row = columns.iter().map(|&column| Of(column, Rising)).collect();
    known.insert(&input.name, Cells { dtype: input.dtype, shape: vec![1, columns.len()], numbers: row });
    for (name, tensor) in &graph.initializers {
        known.insert(name, Cells::of(&Array::from(tensor)));
    }
    for node in &graph.nodes {
        let given: Option<Vec<Option<&Cells>>> = node
            .inputs
            .iter()
            .map(|name| if name.is_empty() { Some(None) } else { known.get(name.as_str()).map(Some) })
            .collect();
        let given =
            given.ok_or_else(|| format!("node {} asks for a value that is not there", node.label()))?;
        let found = step(node, &given)?;
        for (name, cells) in node.outputs.iter().zip(found) {
            known.insert(name, cells);
        }
    }
    let output = graph.outputs.first().ok_or("the graph has no output")?;
    let found = known.remove(output.name.as_str());
    Ok(found.ok_or("the graph does not compute its output")?.numbers)
}

impl Cells {
    fn of(array: &Array) -> Cells {
        let numbers = array.values().iter().map(|&value| Known(value)).collect();
        Cells { dtype: array.dtype, shape: array.shape().to_vec(), numbers }
    }

    /// The array itself, where nothing in it depends on a row.
    fn known(&self) -> Option<Array> {
        let value = |number: &Number| if let Known(value) = number { Some(*value) } else { None };
        let values: Option<Vec<f64>> = self.numbers.iter().map(value).collect();
        Some(Array::new(self.dtype, &self.shape, values?))
    }

    /// An array of the same shape with a number for each place.
    fn with(&self, value: impl Fn(usize) -> f64) -> Array {
        Array::new(DType::F64, &self.shape, (0..self.numbers.len()).map(value).collect())
    }
}

fn step(node: &Node, given: &[Option<&Cells>]) -> Result<Vec<Cells>, String> {
    let failed = |error: onnx_grad::Error| format!("node {} cannot be followed: {error}", node.label());
    let arrays: Option<Vec<Option<Array>>> =
        given.iter().map(|cells| cells.map_or(Some(None), |cells| cells.known().map(Some))).collect();
    if let Some(arrays) = arrays {
        let views: Vec<Option<&Array>> = arrays.iter().map(Option::as_ref).collect();
        return Ok(evaluate_node(node, &views).map_err(failed)?.iter().map(Cells::of).collect());
    }
    let data = |place: usize| given.get(place).copied().flatten();
    match (node.op.as_str(), data(0)) {
        ("Shape", Some(cells)) => Ok(vec![Cells::of(&Array::ints(cells.shape.iter().map(|&n| n as i64)))]),
        ("Concat", _) => moved(node, given, given.len()).map_err(failed),
        (
            "Reshape" | "Slice" | "Gather" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Split"
            | "Identity" | "Expand",
            _,
        ) if given.iter().skip(1).flatten().all(|cells| cells.known().is_some()) => {
            moved(node, given, 1).map_err(failed)
        }
        ("MatMul", Some(left)) => product(node, left, data(1)),
        ("Where", Some(asked)) => choice(node, asked, data(1), data(2)),
        (op, Some(only)) if given.iter().skip(1).flatten().all(|cells| cells.known().is_some()) => {
            match alone(op, node, given) {
                Some(trend) => behind(node, only, given, trend).map_err(failed),
                None if given.len() == 2 => pair(node, only, data(1)),
                None => whole(node, given),
            }
        }
        (_, Some(left)) if given.len() == 2 => pair(node, left, data(1)),
        _ => whole(node, given),
    }
}

/// A node that moves the numbers of its first inputs and changes none.
fn moved(node: &Node, given: &[Option<&Cells>], first: usize) -> onnx_grad::Result<Vec<Cells>> {
    let (mut all, mut arrays) = (Vec::new(), Vec::new());
    for (place, cells) in given.iter().enumerate() {
        let Some(cells) = cells else {
            arrays.push(None);
            continue;
        };
        if place < first {
            let from = all.len();
            all.extend(cells.numbers.iter().copied());
            arrays.push(Some(cells.with(|i| (from + i) as f64)));
        } else {
            arrays.push(cells.known());
        }
    }
    let views: Vec<Option<&Array>> = arrays.iter().map(Option::as_ref).collect();
    let dtype = given.first().copied().flatten().map_or(DType::F32, |cells| cells.dtype);
    let back = |array: &Array| {
        let numbers = array.values().iter().map(|&place| all[place as usize]).collect();
        Cells { dtype, shape: array.shape().to_vec(), numbers }
    };
    Ok(evaluate_node(node, &views)?.iter().map(back).collect())
}

/// Whether an operator on one number rises or falls with it; its other inputs are known.
fn alone(op: &str, node: &Node, given: &[Option<&Cells>]) -> Option<Trend> {
    let truth = node.is("Cast") && node.int("to", 0) == i64::from(DType::Bool.code());
    match op {
        "Cast" if truth => Some(Any),
        "Cast" | "Relu" | "Exp" | "Tanh" | "Sigmoid" | "Floor" | "Ceil" | "Round" | "Erf" | "Sign"
        | "Softplus" => Some(Rising),
        "LeakyRelu" if node.float("alpha", 0.01) >= 0.0 => Some(Rising),
        "Clip" if given.len() > 1 => Some(Rising),
        "Neg" | "Not" => Some(Falling),
        "Abs" | "Log" | "Sqrt" | "Reciprocal" | "Sin" | "Cos" | "IsNaN" => Some(Any),
        _ => None,
    }
}

/// Every number of a value behind an operator that sees it alone.
fn behind(
    node: &Node,
    cells: &Cells,
    given: &[Option<&Cells>],
    trend: Trend,
) -> onnx_grad::Result<Vec<Cells>> {
    let array =
        evaluate_node(node, &somewhere(given).iter().map(Option::as_ref).collect::<Vec<_>>())?.remove(0);
    let values = array.values();
    let one = |(number, value): (&Number, &f64)| match *number {
        // A value that is there is not missing; what a missing one does is looked up by itself.
        Of(..) if node.is("IsNaN") => Known(0.0),
        Of(column, own) => Of(column, own.then(trend)),
        Known(_) => Known(*value),
    };
    let numbers = cells.numbers.iter().zip(values.iter()).map(one).collect();
    Ok(vec![Cells { dtype: array.dtype, shape: array.shape().to_vec(), numbers }])
}

/// The inputs of a node with zeros for what is not known.
fn somewhere(given: &[Option<&Cells>]) -> Vec<Option<Array>> {
    let number = |number: &Number| if let Known(value) = number { *value } else { 0.0 };
    let array =
        |cells: &Cells| Array::new(cells.dtype, &cells.shape, cells.numbers.iter().map(number).collect());
    given.iter().map(|cells| cells.map(array)).collect()
}

impl Trend {
    fn then(self, next: Trend) -> Trend {
        match (self, next) {
            (Any, _) | (_, Any) => Any,
            (Rising, other) => other,
            (Falling, Rising) => Falling,
            (Falling, Falling) => Rising,
        }
    }
}

/// Two values, number by number.
fn pair(node: &Node, left: &Cells, right: Option<&Cells>) -> Result<Vec<Cells>, String> {
    let op = node.op.as_str();
    let elementwise = [
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Min",
        "Max",
        "Less",
        "LessOrEqual",
        "Greater",
        "GreaterOrEqual",
        "Equal",
        "And",
        "Or",
    ];
    let (Some(right), true) = (right, elementwise.contains(&op)) else {
        return whole(node, &[Some(left), right]);
    };
    let add = Node::new("Add", &["a", "b"], &["c"]);
    let failed = |error: onnx_grad::Error| format!("node {} cannot be followed: {error}", node.label());
    let spread = |a: Array, b: Array| evaluate_node(&add, &[Some(&a), Some(&b)]).map_err(failed);
    let lefts = spread(left.with(|i| i as f64), right.with(|_| 0.0))?.remove(0);
    let rights = spread(left.with(|_| 0.0), right.with(|i| i as f64))?.remove(0);
    let places = lefts
        .values()
        .iter()
        .zip(rights.values().iter())
        .map(|(&a, &b)| (a as usize, b as usize))
        .collect::<Vec<_>>();
    let numbers = places
        .iter()
        .map(|&(a, b)| combined(node, left.numbers[a], right.numbers[b]))
        .collect::<Result<_, _>>()?;
    let truth = ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "And", "Or"].contains(&op);
    let dtype = if truth { DType::Bool } else { left.dtype };
    Ok(vec![Cells { dtype, shape: lefts.shape().to_vec(), numbers }])
}

fn combined(node: &Node, left: Number, right: Number) -> Result<Number, String> {
    let op = node.op.as_str();
    let turned = |trend: Trend| trend.then(Falling);
    Ok(match (op, left, right) {
        (_, Known(a), Known(b)) => Known(match op {
            "Add" => a + b,
            "Sub" => a - b,
            "Mul" => a * b,
            "Div" => a / b,
            "Min" => a.min(b),
            "Max" => a.max(b),
            "Less" => f64::from(u8::from(a < b)),
            "LessOrEqual" => f64::from(u8::from(a <= b)),
            "Greater" => f64::from(u8::from(a > b)),
            "GreaterOrEqual" => f64::from(u8::from(a >= b)),
            "Equal" => f64::from(u8::from(a == b)),
            "And" => f64::from(u8::from(a != 0.0 && b != 0.0)),
            _ => f64::from(u8::from(a != 0.0 || b != 0.0)),
        }),
        ("Mul", Of(..), Known(0.0)) | ("Mul", Known(0.0), Of(..)) => Known(0.0),
        ("Mul", Of(column, trend), Known(by))
        | ("Mul", Known(by), Of(column, trend))
        | ("Div", Of(column, trend), Known(by)) => {
            let trend = if by > 0.0 {
                trend
            } else if by < 0.0 {
                turned(trend)
            } else {
                Any
            };
            Of(column, trend)
        }
        ("Sub" | "Greater" | "GreaterOrEqual", Known(_), Of(column, trend))
        | ("Less" | "LessOrEqual", Of(column, trend), Known(_)) => Of(column, turned(trend)),
        ("Equal", Of(column, _), Known(_)) | ("Equal" | "Div", Known(_), Of(column, _)) => Of(column, Any),
        (_, Of(column, trend), Known(_)) | (_, Known(_), Of(column, trend)) => Of(column, trend),
        (_, Of(a, first), Of(b, second)) if a == b => {
            let both =
                if first == second && ["Add", "Min", "Max", "And", "Or"].contains(&op) { first } else { Any };
            Of(a, both)
        }
        (_, Of(a, _), Of(b, _)) => return Err(mixes(node, a, b)),
    })
}

/// What is said of a node that computes with two columns; columns stand in braces until they have names.
fn mixes(node: &Node, a: usize, b: usize) -> String {
    format!("node {} computes with the columns {{{}}} and {{{}}} together", node.label(), a.min(b), a.max(b))
}

/// One of two values, by a truth value.
fn choice(node: &Node, asked: &Cells, yes: Option<&Cells>, no: Option<&Cells>) -> Result<Vec<Cells>, String> {
    let (Some(yes), Some(no)) = (yes, no) else { return whole(node, &[Some(asked), yes, no]) };
    let Some(sides) = asked.known() else { return whole(node, &[Some(asked), Some(yes), Some(no)]) };
    // The places of the first come first.
    let mut all = yes.numbers.clone();
    let from = all.len();
    all.extend(no.numbers.iter().copied());
    let places = (yes.with(|i| i as f64), no.with(|i| (from + i) as f64));
    let found = evaluate_node(node, &[Some(&sides), Some(&places.0), Some(&places.1)])
        .map_err(|error| format!("node {} cannot be followed: {error}", node.label()))?;
    let back = |array: &Array| {
        let numbers = array.values().iter().map(|&place| all[place as usize]).collect();
        Cells { dtype: yes.dtype, shape: array.shape().to_vec(), numbers }
    };
    Ok(found.iter().map(back).collect())
}

/// A row times a matrix of known numbers.
fn product(node: &Node, left: &Cells, right: Option<&Cells>) -> Result<Vec<Cells>, String> {
    let matrix = right.and_then(Cells::known).filter(|m| m.shape().len() == 2 && left.shape.len() == 2);
    let Some(matrix) = matrix else { return whole(node, &[Some(left), right]) };
    let width = matrix.shape()[1];
    let weights = matrix.values();
    let times = Node { op: "Mul".to_string(), ..node.clone() };
    let plus = Node { op: "Add".to_string(), ..node.clone() };
    let mut numbers = Vec::with_capacity(width);
    for j in 0..width {
        let mut sum = Known(0.0);
        for (i, number) in left.numbers.iter().enumerate() {
            let part = combined(&times, *number, Known(weights[i * width + j]))?;
            sum = combined(&plus, sum, part)?;
        }
        numbers.push(sum);
    }
    Ok(vec![Cells { dtype: left.dtype, shape: vec![left.shape[0], width], numbers }])
}

/// A node of which nothing is known but its inputs: all that it gives is of the one column that it sees.
fn whole(node: &Node, given: &[Option<&Cells>]) -> Result<Vec<Cells>, String> {
    let mut column = None;
    for number in given.iter().flatten().flat_map(|cells| &cells.numbers) {
        match (number, column) {
            (Of(other, _), Some(own)) if *other != own => return Err(mixes(node, own, *other)),
            (Of(other, _), _) => column = Some(*other),
            (Known(_), _) => {}
        }
    }
    let Some(column) = column else { return Err(format!("node {} cannot be followed", node.label())) };
    // Any numbers tell the shapes.
    let arrays = somewhere(given);
    let views: Vec<Option<&Array>> = arrays.iter().map(Option::as_ref).collect();
    let found = evaluate_node(node, &views)
        .map_err(|error| format!("node {} cannot be followed: {error}", node.label()))?;
    let of = |array: &Array| {
        let numbers = vec![Of(column, Any); array.values().len()];
        Cells { dtype: array.dtype, shape: array.shape().to_vec(), numbers }
    };
    Ok(found.iter().map(of).collect())
}
