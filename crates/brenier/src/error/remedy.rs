//! What to try, as a fact. The library names no flag and no argument: who talks to a user words the remedy in the
//! user's language, with a table that is a `match` over [`Remedy`], so that a missing wording does not compile.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Something to try. [`fmt::Display`] words it for a program that calls the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// A sentence that is the same for everybody: it names no setting of a front end.
    Plain(&'static str),

    /// Run the model with ONNX Runtime, which knows more of them.
    OnnxRuntime,
    /// Run the model with ONNX Runtime, or bring it in float32.
    OnnxRuntimeOrFloat32,
    /// ONNX Runtime is at fault: run the model with the built-in engine, or with another version.
    BuiltInEngine,
    /// Look at the model's nodes; a newer ONNX Runtime may know the operator.
    InspectOrNewerOnnxRuntime,
    /// Look at all nodes without a derivative, or use a method without gradients.
    InspectOrNoGradients,

    /// Give the shape of one input, here that of an image.
    InputShapeOfImage,
    /// Give the shape of one input, here a number of columns.
    InputShapeOfTable,
    /// Explain what comes out of the final activation.
    KeepFinalActivation,
    /// Explain what goes into the final activation, or use a method that asks for scores only.
    CutFinalActivation,
    /// Say how several numbers become one score.
    SayHowToReduce,
    /// Name a range along an axis, or leave out how it is put together.
    NameRange,
    /// Choose a layer whose values are maps.
    ChooseLayer,
    /// Explain it here: what would be exported is more than a graph holds.
    ExplainInPlace,

    /// Give an array for each input, by its name.
    GiveInputsByName,
    /// Give as a flow what looks like one.
    IsAFlow,
    /// Give ids by the name of their input: they are explained at their embedding.
    GiveIdsByName,
    /// Explain an inner value of floats, or hold fewer inputs.
    NameInnerValue,
    /// Another inner value can be explained as well.
    OtherInnerValue,
    /// Look at the inner values that have names.
    ListInnerValues,
    /// Cut texts to fewer tokens.
    CutTexts,
    /// Use a method that asks for scores only, with ONNX Runtime.
    NoGradientsInOnnxRuntime,

    /// Give data like those of the model's training.
    GiveBackground,
    /// Give rows to compare with.
    GiveRowsToCompare,
    /// Give a flow that was trained on the model's data.
    GiveFlow,
    /// Give a diffusion model that was trained on the model's data.
    GiveDiffusionModel,
    /// The network given is a diffusion model: follow it by DDIM.
    FollowByDdim,
    /// The flow leads between classes: say which one to compare with.
    SayClass,
    /// Train a diffusion model.
    TrainDiffusionModel,
    /// The network given is a classifier: it is what is explained, and a flow is trained otherwise.
    TrainFlow,
    /// Give the data set whose rows a flow starts from.
    GiveReferenceData,
    /// Calibrate the flow with rows that it was not trained on.
    Calibrate,

    /// Say which population the inputs belong to, or give data that have it.
    SayPopulation,
    /// Name the model's classes as the data do, or say which population the inputs belong to.
    NameClassesOrSayPopulation,
    /// Give tables with the same columns, or leave out those that only one has.
    LeaveOutColumns,
    /// Name another column, or say that its numbers are names.
    CategoricalColumn,

    /// Take more steps against the flow of the data.
    MoreInversionSteps,
    /// Allow more gradients, or a larger tolerance.
    MoreGradients,
    /// Make the solver's tolerance smaller.
    SmallerSolverTolerance,

    /// Choose a folder for what is written.
    ChooseFolder,
    /// Name a folder that a finished run of explanations has written.
    FolderOfExplanations,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Remedy::Plain(sentence) => sentence,
            Remedy::OnnxRuntime => "run the model with ONNX Runtime, which knows more of them",
            Remedy::OnnxRuntimeOrFloat32 => "run the model with ONNX Runtime, or export it in float32",
            Remedy::BuiltInEngine => {
                "run the model with the built-in engine, or with another version of ONNX Runtime"
            }
            Remedy::InspectOrNewerOnnxRuntime => {
                "an inspection shows the model's nodes, and a newer onnxruntime may know the op"
            }
            Remedy::InspectOrNoGradients => {
                "an inspection lists all such nodes, and methods without gradients (KernelSHAP, occlusion) still work"
            }
            Remedy::InputShapeOfImage => "give the shape of one input, such as [3, 224, 224]",
            Remedy::InputShapeOfTable => "give the shape of one input, such as [12] for twelve columns",
            Remedy::KeepFinalActivation => "its output can be explained too, by keeping the final activation",
            Remedy::CutFinalActivation => {
                "explain what comes before the final activation, or use shapley-values or kernel-shap"
            }
            Remedy::SayHowToReduce => "say how they become one score: by their mean, sum or largest",
            Remedy::NameRange => "name a range along an axis, such as ':' for all of it, or leave this out",
            Remedy::ChooseLayer => "choose a convolution, or a node that follows one, as the layer",
            Remedy::ExplainInPlace => "explain it without exporting it, or export the model without it",
            Remedy::GiveInputsByName => "give each by its name",
            Remedy::IsAFlow => "a file with inputs x and t is a flow: give the model that is to be explained",
            Remedy::GiveIdsByName => "give it by its name: ids are explained at their embedding",
            Remedy::NameInnerValue => "name an inner value of floats, or hold fewer inputs",
            Remedy::OtherInnerValue => "another inner value can be named",
            Remedy::ListInnerValues => "name a value or a node of the graph; an inspection lists them",
            Remedy::CutTexts => "cut texts to so many tokens, or shorten this one",
            Remedy::NoGradientsInOnnxRuntime => {
                "use a method that needs none, with ONNX Runtime: kernel-shap, shapley-values, lime, occlusion or feature-ablation"
            }
            Remedy::SayClass => "say which class to compare with",
            Remedy::GiveBackground => "give data of the kind that the model was trained on as the background",
            Remedy::GiveRowsToCompare => "give rows to compare with as the background",
            Remedy::GiveFlow => "give a flow that was trained on the model's data",
            Remedy::GiveDiffusionModel => "give a diffusion model that was trained on the model's data",
            Remedy::FollowByDdim => "a diffusion model gives DDIM paths: explain with the method ddim",
            Remedy::TrainDiffusionModel => "train one with the objective ddpm",
            Remedy::TrainFlow => "give a classifier as the model, and a flow that was trained with the objective flow",
            Remedy::GiveReferenceData => "give the data set that the flow starts from",
            Remedy::Calibrate => "calibrate it with rows that it was not trained on",
            Remedy::SayPopulation => {
                "give data that have it, or say which population the inputs belong to"
            }
            Remedy::NameClassesOrSayPopulation => {
                "name the model's classes as the data do, or say which population the inputs belong to"
            }
            Remedy::LeaveOutColumns => {
                "give tables with the same columns, or leave out those that only one has"
            }
            Remedy::CategoricalColumn => {
                "name another column, or say that its numbers are names, as a categorical column"
            }
            Remedy::MoreInversionSteps => "take more steps for the inversion",
            Remedy::MoreGradients => "allow more gradients, or a larger tolerance",
            Remedy::SmallerSolverTolerance => "tighten the solver's tolerance",
            Remedy::ChooseFolder => "choose a folder",
            Remedy::FolderOfExplanations => "name a folder that a finished run of explanations has written",
        })
    }
}

impl From<&'static str> for Remedy {
    fn from(sentence: &'static str) -> Remedy {
        Remedy::Plain(sentence)
    }
}

/// The remedies of verdicts that name a setting of a front end. Files hold their words; whoever reads a file finds the
/// remedy again, and can say it in flags or arguments.
const IN_VERDICTS: [Remedy; 4] =
    [Remedy::Calibrate, Remedy::MoreGradients, Remedy::MoreInversionSteps, Remedy::SmallerSolverTolerance];

/// Something to say that stops nothing: a fact, and what to try where there is something.
#[derive(Debug, Clone, Eq)]
pub struct Notice {
    /// The fact, with its values.
    pub what: String,
    /// What to try.
    pub remedy: Option<Remedy>,
}

impl Notice {
    /// A fact with something to try.
    pub fn with(what: impl Into<String>, remedy: Remedy) -> Notice {
        Notice { what: what.into(), remedy: Some(remedy) }
    }

    /// The notice in somebody's words for remedies.
    pub fn worded(&self, words: impl Fn(&Remedy) -> String) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}: {}", self.what, words(remedy)),
            None => self.what.clone(),
        }
    }

    /// The same said of something.
    pub(crate) fn said_of(&self, what: &str) -> Notice {
        Notice { what: format!("{what}: {}", self.what), remedy: self.remedy }
    }
}

impl From<String> for Notice {
    fn from(what: String) -> Notice {
        Notice { what, remedy: None }
    }
}

impl From<&str> for Notice {
    fn from(what: &str) -> Notice {
        what.to_owned().into()
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.worded(Remedy::to_string))
    }
}

/// A notice that was read from a file is the same as the one that was written there.
impl PartialEq for Notice {
    fn eq(&self, other: &Notice) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Serialize for Notice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Notice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known =
            IN_VERDICTS.iter().find_map(|remedy| Some((text.strip_suffix(&format!(": {remedy}"))?, *remedy)));
        Ok(match known {
            Some((what, remedy)) => Notice::with(what, remedy),
            None => text.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DataError, EngineError, Error};
    use super::*;

    /// Whoever adds an error with a remedy that is not the end of its message finds it here.
    #[test]
    fn a_message_ends_in_its_remedy_and_others_can_word_it() {
        let (reason, remedy) = ("it is".to_string(), Remedy::GiveFlow);
        let (engine, node, value) = ("RTen", Some("n".to_string()), "v".to_string());
        let errors = [
            Error::Predictor { reason: reason.clone(), remedy },
            Error::Comparison { reason: reason.clone(), remedy },
            Error::Flow { reason: reason.clone(), remedy },
            Error::Training { reason: reason.clone(), remedy },
            Error::Method { method: value.clone(), reason: reason.clone(), remedy },
            Error::Metric { metric: value.clone(), reason: reason.clone(), remedy },
            Error::Engine(EngineError::Load { engine, node, reason: reason.clone(), remedy }),
            Error::Setting { name: "n", value: value.clone(), needs: "more", hint: remedy },
            Error::Engine(EngineError::Provider {
                engine,
                provider: "cuda",
                reason: reason.clone(),
                available: vec!["cpu"],
                remedy: Some(remedy),
            }),
            Error::Graph(onnx_grad::Error::NotDifferentiable { node: value.clone(), reason: reason.clone() }),
            Error::NoExplanations { folder: "here".into() },
            Error::NoRecord { folder: "here".into(), file: "record.json" },
            DataError::Empty { path: "here".into(), looked_for: value.clone(), hint: remedy }.into(),
            DataError::PopulationColumn {
                first: value.clone(),
                second: value.clone(),
                column: value,
                reason: "is not",
            }
            .into(),
        ];
        for error in errors {
            let said = error.worded(|_| "SAID".to_string());
            assert!(said.ends_with("SAID"), "{said}");
            assert!(!said.contains(&error.remedy().unwrap().to_string()), "{said}");
        }
        assert_eq!(Error::Zero { what: "it" }.worded(|_| "SAID".to_string()), "it must be at least 1");
    }

    #[test]
    fn a_notice_that_was_written_is_the_same_when_read() {
        let notice = Notice::with("the flow misses the input", Remedy::SmallerSolverTolerance);
        let text = serde_json::to_string(&notice).unwrap();
        assert_eq!(text, "\"the flow misses the input: tighten the solver's tolerance\"");
        assert_eq!(serde_json::from_str::<Notice>(&text).unwrap(), notice);
    }
}
