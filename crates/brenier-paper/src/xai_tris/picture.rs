//! What methods say of the first test images of a cell.

use brenier::Result;
use brenier::problems::{TETROMINO_SIDE, Tetrominoes};
use brenier::report::{PictureCell, picture_grid};
use ndarray::Array2;

use super::cell::Examples;

/// Images that are shown, and the methods beside them, where they are there.
const SHOWN: usize = 4;
const METHODS: [&str; 7] = [
    "ig",
    "expected-gradients, other class",
    "lime",
    "gaussian",
    "flow, line",
    "free flow, line",
    "true counterpart",
];

/// Input, truth and credit, a row for each image.
pub(super) fn picture(
    problem: Tetrominoes,
    examples: &Examples,
    all: &[(String, Array2<f64>)],
) -> Result<String> {
    let methods: Vec<_> =
        METHODS.iter().filter_map(|name| all.iter().find(|(method, _)| method == name)).collect();
    let mut heads = vec!["input".to_string(), "truth".to_string()];
    // Long names would run into each other.
    heads
        .extend(methods.iter().map(|(name, _)| name.replace("expected-gradients, other class", "eg, other")));
    let largest = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let (mut cells, mut names) = (Vec::new(), Vec::new());
    for row in 0..examples.targets.len().min(SHOWN) {
        names.push(format!("class {}", examples.targets[row]));
        let signed = |values: Vec<f64>| PictureCell::Signed { scale: largest(&values), values };
        cells.push(signed(examples.inputs.row(row).to_vec()));
        cells.push(signed(examples.truth.row(row).iter().map(|t| f64::from(u8::from(*t))).collect()));
        cells.extend(methods.iter().map(|(_, credit)| signed(credit.row(row).to_vec())));
    }
    let title = format!("XAI-TRIS, {} {}", problem.scenario.name(), problem.backdrop.name());
    picture_grid(&title, &heads, &names, &cells, [TETROMINO_SIDE, TETROMINO_SIDE])
}
