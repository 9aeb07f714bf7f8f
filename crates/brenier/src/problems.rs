//! The closed-form world: problems that come with their exact solutions, shared by tests, experiments and docs.
//!
//! Nothing here is learned. Where a claim of the paper can be checked against a formula, the formula is here.

mod gaussian;
mod mlp;
mod planted;
mod scores;
mod tetrominoes;

pub use gaussian::{Gaussian, OptimalTransport, RectifiedTransport};
pub use mlp::{Activation, RandomMlp};
pub use planted::{DecidingPatch, PatchPlace, Planted, PlantedImages, PlantedTable};
pub use scores::{LinearScore, QuadraticScore, SineSum, TanhSum};
pub use tetrominoes::{Backdrop, Scenario, TETROMINO_SIDE, TetrominoImages, Tetrominoes};

/// The slope of log error over log size by least squares: the order at which an error falls, with its sign.
pub fn log_slope(sizes: &[usize], errors: &[f64]) -> f64 {
    let x: Vec<f64> = sizes.iter().map(|&n| (n as f64).ln()).collect();
    let y: Vec<f64> = errors.iter().map(|e| e.ln()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let rise: f64 = x.iter().zip(&y).map(|(a, b)| (a - mx) * (b - my)).sum();
    rise / x.iter().map(|a| (a - mx).powi(2)).sum::<f64>()
}
