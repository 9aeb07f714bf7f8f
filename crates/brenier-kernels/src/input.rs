//! What kernels read, and what they say where it does not fit.

/// A tensor that a kernel reads, in row-major order.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Its shape.
    pub shape: &'a [usize],
    /// Its numbers.
    pub data: &'a [f32],
}

/// Shapes that do not fit each other or the node's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit;

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the shapes of its inputs do not fit")
    }
}

impl std::error::Error for Misfit {}

impl Misfit {
    /// The sentence for a node whose inputs have these shapes.
    pub fn told(self, shapes: &[&[usize]]) -> String {
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        format!("{self}: {}", shapes.join(", "))
    }
}
