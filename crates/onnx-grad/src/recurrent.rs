//! What the attributes of `LSTM`, `GRU` and `RNN` say, for `shapes`, `eval` and `lower` alike.

use crate::graph::{Attribute, Node};

/// Which of the three recurrent layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Lstm,
    Gru,
    Rnn,
}

impl Layer {
    /// The layer that a node is, if it is one.
    pub(crate) fn of(node: &Node) -> Option<Layer> {
        match node.op.as_str() {
            _ if !node.is_standard() => None,
            "LSTM" => Some(Layer::Lstm),
            "GRU" => Some(Layer::Gru),
            "RNN" => Some(Layer::Rnn),
            _ => None,
        }
    }

    /// How many blocks of rows its weights have: `i, o, f, c` of an LSTM, `z, r, h` of a GRU.
    pub(crate) fn gates(self) -> usize {
        match self {
            Layer::Lstm => 4,
            Layer::Gru => 3,
            Layer::Rnn => 1,
        }
    }

    /// The functions that each direction has where the file names none: `f, g, h`.
    fn functions(self) -> &'static [&'static str] {
        match self {
            Layer::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Layer::Gru => &["Sigmoid", "Tanh"],
            Layer::Rnn => &["Tanh"],
        }
    }
}

/// An activation function with its two numbers, where it has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Activation {
    pub(crate) name: &'static str,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
}

/// The functions of the specification, and what their numbers are where the file has none.
const ACTIVATIONS: &[(&str, Option<f32>, Option<f32>)] = &[
    ("Relu", None, None),
    ("Tanh", None, None),
    ("Sigmoid", None, None),
    ("Softsign", None, None),
    ("Softplus", None, None),
    ("Elu", Some(1.0), None),
    ("LeakyRelu", Some(0.01), None),
    ("ThresholdedRelu", Some(1.0), None),
    ("HardSigmoid", Some(0.2), Some(0.5)),
    ("Affine", Some(1.0), Some(0.0)),
    ("ScaledTanh", Some(1.0), Some(1.0)),
];

/// One direction of a layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Direction {
    pub(crate) reverse: bool,
    pub(crate) activations: Vec<Activation>,
}

/// A recurrent layer, without its weights.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recurrence {
    pub(crate) layer: Layer,
    pub(crate) directions: Vec<Direction>,
    /// What goes into the functions of the gates is kept between `-clip` and `clip`.
    pub(crate) clip: Option<f32>,
    /// Whether the batch is the first axis, not the second.
    pub(crate) batch_first: bool,
    /// GRU: whether the product with the state comes before the reset gate.
    pub(crate) linear_before_reset: bool,
    /// LSTM: whether the forget gate is one minus the input gate.
    pub(crate) input_forget: bool,
}

impl Recurrence {
    /// Reads a node; the error says which attribute is not known.
    pub(crate) fn of(node: &Node) -> Result<Recurrence, String> {
        let layer = Layer::of(node).ok_or_else(|| format!("{} is not recurrent", node.op))?;
        let reverse: &[bool] = match node.string("direction", "forward") {
            "forward" => &[false],
            "reverse" => &[true],
            "bidirectional" => &[false, true],
            other => return Err(format!("its direction '{other}' is not known")),
        };
        let each = layer.functions().len();
        let named: Vec<&str> = match node.attributes.get("activations") {
            Some(Attribute::Strings(names)) if !names.is_empty() => {
                names.iter().map(String::as_str).collect()
            }
            _ => layer.functions().repeat(reverse.len()),
        };
        if named.len() != each * reverse.len() {
            let wanted = each * reverse.len();
            return Err(format!("it names {} activations where {wanted} are needed", named.len()));
        }
        let mut numbers = ["activation_alpha", "activation_beta"].map(|name| {
            match node.attributes.get(name) {
                Some(Attribute::Floats(values)) => values.clone(),
                _ => Vec::new(),
            }
            .into_iter()
        });
        let mut activations = Vec::new();
        for name in named {
            let known = ACTIVATIONS.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name));
            let &(name, alpha, beta) =
                known.ok_or_else(|| format!("its activation '{name}' is not known"))?;
            // Numbers are handed out in order, to the functions that have some.
            let mut take = |i: usize, default: Option<f32>| {
                default.map_or(0.0, |default| numbers[i].next().unwrap_or(default))
            };
            activations.push(Activation { name, alpha: take(0, alpha), beta: take(1, beta) });
        }
        let directions = reverse
            .iter()
            .zip(activations.chunks(each))
            .map(|(&reverse, functions)| Direction { reverse, activations: functions.to_vec() })
            .collect();
        Ok(Recurrence {
            layer,
            directions,
            clip: Some(node.float("clip", 0.0)).filter(|&clip| clip > 0.0),
            batch_first: node.int("layout", 0) != 0,
            linear_before_reset: node.int("linear_before_reset", 0) != 0,
            input_forget: node.int("input_forget", 0) != 0,
        })
    }
}
