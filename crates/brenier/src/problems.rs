//! The closed-form world: problems that come with their exact solutions, shared by tests, experiments and docs.
//!
//! Nothing here is learned. Where a claim of the paper can be checked against a formula, the formula is here.

mod gaussian;
mod mlp;
mod planted;
mod scores;

pub use gaussian::{Gaussian, OptimalTransport, RectifiedTransport};
pub use mlp::{Activation, RandomMlp};
pub use planted::{Planted, PlantedImages, PlantedTable};
pub use scores::{LinearScore, QuadraticScore, SineSum, TanhSum};
