//! The registry of objectives: what `train` can learn, and what each of them does differently.
//!
//! A generator learns from pairs of reference and data; all else that two generators differ in (network, loss, file,
//! how the result is measured) is in a [`GeneratorSpec`], in the objective's own file. The command line takes names
//! and help from [`objectives`].

use ndarray::{Array2, ArrayView2};
use onnx_grad::Model;

use super::{classifier, ddpm, rectified_flow};
use crate::engine::EngineConfig;
use crate::error::Result;
use crate::flow::{Objective, Pairs};
use crate::path::Quality;
use crate::train::Task;

/// What `train` can learn.
#[derive(Debug, Clone, Copy)]
pub struct ObjectiveSpec {
    /// The name on the command line and in the metadata of files.
    pub name: &'static str,
    /// One line for `--help`.
    pub help: &'static str,
    /// The file with the result.
    pub file: &'static str,
    /// What kind of run it takes.
    pub goal: Goal,
}

/// What kind of run an objective takes.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// A network that makes data from a reference distribution: [`train_generator`](super::train_generator).
    Generator {
        /// What its files say that it predicts.
        objective: Objective,
        /// Whether the reference can be anything; otherwise it is standard normal noise.
        any_reference: bool,
    },
    /// A network that tells classes apart: [`train_classifier`](super::train_classifier).
    Classifier,
}

/// All objectives, in the order of the help.
pub fn objectives() -> impl Iterator<Item = &'static ObjectiveSpec> {
    GENERATORS.iter().map(|generator| &generator.spec).chain([&classifier::SPEC])
}

/// What a generator's objective does differently from others'.
pub(super) struct GeneratorSpec {
    pub(super) spec: ObjectiveSpec,
    /// The rectification level of a network that is trained on data coupled with the reference, where it has one.
    pub(super) level: Option<u32>,
    /// What is made of a network that takes a state and a time and returns a state.
    pub(super) network: fn(Model) -> Result<Model>,
    /// The loss.
    pub(super) task: MakeTask,
    /// How good the result is, and what it makes of the references, in the user's space.
    pub(super) measure: fn(&Model, &HeldOut, &EngineConfig, u64) -> Result<Measured>,
}

/// Makes the loss of a network over pairs, with a seed.
pub(super) type MakeTask = for<'a> fn(&Model, &'a dyn Pairs, u64) -> Result<Box<dyn Task + 'a>>;

/// Quality, and samples in the user's space.
pub(super) type Measured = (Quality, Array2<f64>);

/// What a generator is measured on.
pub(super) struct HeldOut<'a> {
    /// Rows of the data, in the user's space.
    pub(super) data: ArrayView2<'a, f64>,
    /// Those that are traced.
    pub(super) traced: ArrayView2<'a, f64>,
    /// Points of the reference, in the network's space.
    pub(super) references: ArrayView2<'a, f64>,
}

/// Makes of the list of generators the list of specs and the way from what a file says to its spec: a variant of
/// [`Objective`] that is not in the list does not compile.
macro_rules! generators {
    ($($objective:ident => $module:ident,)*) => {
        static GENERATORS: &[&GeneratorSpec] = &[$(&$module::SPEC,)*];

        /// The spec of a generator's objective.
        pub(super) fn generator(objective: Objective) -> &'static GeneratorSpec {
            match objective {
                $(Objective::$objective => &$module::SPEC,)*
            }
        }
    };
}

generators! {
    Flow => rectified_flow,
    Ddpm => ddpm,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_objective_is_known_by_the_name_that_files_have() {
        let mut names = Vec::new();
        for spec in objectives() {
            if let Goal::Generator { objective, any_reference } = spec.goal {
                assert_eq!(serde_json::to_string(&objective).unwrap(), format!("\"{}\"", spec.name));
                let found = generator(objective);
                assert_eq!(found.spec.name, spec.name);
                // Reflow starts from where a flow starts, so levels are of flows.
                assert_eq!(found.level.is_some(), any_reference);
            }
            names.push((spec.name, spec.file));
        }
        assert_eq!(names, [("flow", "flow.onnx"), ("ddpm", "ddpm.onnx"), ("classify", "classifier.onnx")]);
    }
}
