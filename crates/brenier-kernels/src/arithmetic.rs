//! How convolutions with constant weights are computed.

/// How convolutions of 3x3 whose weights stay the same are computed. The other ones are summed up as they are defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// Winograd's F(4x4, 3x3): four times fewer products, rounding errors a few times those of the plain sum.
    #[default]
    Fast,
    /// Winograd's F(2x2, 3x3): 2.25 times fewer products, rounding errors as those of the plain sum.
    Accurate,
}
