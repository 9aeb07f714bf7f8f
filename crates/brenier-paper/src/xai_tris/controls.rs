//! A classifier that cannot see one of the tetrominoes: the control of credit that follows the populations and not the model.
//!
//! It is trained on images in which the pixels of the T are 0, and its weights for these pixels are then set to 0. So its score does not depend on
//! them, and credit for them must be exactly 0, however far a transport moves them.

use brenier::data::Dataset;
use brenier::problems::TetrominoImages;
use brenier::runs::ClassifierRun;
use brenier::{Error, OnnxPredictor, Result, Store};
use ndarray::Axis;
use onnx_grad::{Model, TensorData};

use super::super::Tell;
use super::super::compare::margins;
use super::super::trained;

/// The weights of the first layer of our MLP, `[features, width]`.
const FIRST: &str = "input.weight";

/// Which pixels are hidden, the classifier, and how often it is right.
pub(super) fn blind(
    made: &TetrominoImages,
    (train, held_out): (&Dataset, &Dataset),
    run: &ClassifierRun,
    store: &Store,
    tell: Tell,
) -> Result<(Vec<bool>, OnnxPredictor, f64)> {
    // The first image is of class 0, whose tetromino is the T.
    let hidden = made.own.row(0).to_vec();
    let hide = |data: &Dataset| -> Result<Dataset> {
        let mut rows = data.to_f32()?;
        for (mut column, hidden) in rows.axis_iter_mut(Axis(1)).zip(&hidden) {
            if *hidden {
                column.fill(0.0);
            }
        }
        Dataset::from_rows(&format!("{}, T hidden", data.origin()), data.shape(), rows.view())?
            .with_labels(data.require_labels()?, data.classes().to_vec())
    };
    let trained = trained::classifier(&hide(train)?, &hide(held_out)?, run, store, "blind", tell)?;
    let network = without_weights(trained.network, &hidden)?;
    Ok((hidden, margins(&network, &run.training.engine)?, trained.accuracy))
}

/// The network with weights of 0 for these features.
pub(super) fn without_weights(mut network: Model, hidden: &[bool]) -> Result<Model> {
    let none = || Error::Training {
        reason: format!("the classifier has no weights '{FIRST}' for {} features", hidden.len()),
        remedy: "the blind control needs the MLP of this library".into(),
    };
    let weights = network.graph.initializers.get_mut(FIRST).ok_or_else(none)?;
    let shape = weights.shape().to_vec();
    if shape.first() != Some(&hidden.len()) {
        return Err(none());
    }
    let width: usize = shape[1..].iter().product();
    let mut values = weights.to_f32();
    for (row, hidden) in values.chunks_mut(width).zip(hidden) {
        if *hidden {
            row.fill(0.0);
        }
    }
    *weights = TensorData::f32(&shape, &values);
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brenier::classify::{ClassifierConfig, MlpClassifierConfig};
    use brenier::data::Scaling;
    use brenier::engine::EngineConfig;
    use ndarray::array;

    #[test]
    fn what_a_model_cannot_see_gets_exactly_nothing_and_what_it_sees_does() {
        let scaling = Scaling::new(&[3], vec![0.3, -0.2, 0.1], vec![1.0, 2.0, 0.5]).unwrap();
        let network = ClassifierConfig::Mlp(MlpClassifierConfig::default()).build(&scaling, 2, 7).unwrap();
        let (from, to) = (array![[-1.0, 0.4, 2.0]], array![[1.0, -0.7, 0.5]]);
        let credit = |network: &Model| {
            let model = margins(network, &EngineConfig::default()).unwrap();
            super::super::super::compare::along_lines(&model, from.view(), to.view(), &[1]).unwrap()
        };
        let seeing = credit(&network);
        let blind = credit(&without_weights(network.clone(), &[false, true, false]).unwrap());
        assert_eq!(blind[[0, 1]], 0.0);
        assert!(seeing[[0, 1]].abs() > 1e-3 && blind[[0, 0]].abs() > 1e-3, "{seeing} {blind}");
        assert!(without_weights(network, &[true]).is_err());
    }
}
