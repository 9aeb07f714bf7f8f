//! A file that an engine runs as it is: nothing of it was read here, so the engine tells what it takes and
//! returns.

use onnx_grad::ValueInfo;

use super::Program;

/// Programs of a file, and its interface as the engine tells it.
pub struct AsItIs {
    /// The instances, single-threaded each.
    pub programs: Vec<Box<dyn Program>>,
    /// What a program takes.
    pub inputs: Vec<ValueInfo>,
    /// What it returns, in this order.
    pub outputs: Vec<ValueInfo>,
    /// Outputs that are not returned, with what they are: strings, sequences, maps.
    pub left_out: Vec<(String, String)>,
}
