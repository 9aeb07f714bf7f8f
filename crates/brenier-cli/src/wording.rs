//! What to try, in flags of the command line: the one table.

use brenier::Remedy;

/// A remedy of the library in flags. Without a line for each it does not compile.
pub(crate) fn flags(remedy: &Remedy) -> String {
    let words = match remedy {
        Remedy::Plain(sentence) => sentence,
        Remedy::OnnxRuntime => "run the model with ONNX Runtime, which knows more of them (--engine ort)",
        Remedy::OnnxRuntimeOrFloat32 => "use --engine ort, or export the model in float32",
        Remedy::BuiltInEngine => {
            "run the model with the built-in engine (--engine rten), or with another version of ONNX Runtime"
        }
        Remedy::InspectOrNewerOnnxRuntime => {
            "`brenier inspect` shows the model's nodes, and a newer onnxruntime may know the op"
        }
        Remedy::InspectOrNoGradients => {
            "`brenier inspect` lists all such nodes, and methods without gradients (KernelSHAP, occlusion) still work"
        }
        Remedy::InputShapeOfImage => {
            "give the shape of one input with --input-shape, such as --input-shape 3,224,224"
        }
        Remedy::InputShapeOfTable => {
            "give them with --input-shape, such as --input-shape 12 for twelve columns"
        }
        Remedy::KeepFinalActivation => "--keep-softmax explains its output",
        Remedy::CutFinalActivation => "leave out --keep-softmax, or use shapley-values or kernel-shap",
        Remedy::SayHowToReduce => "say how they become one score: --reduce mean, sum or max",
        Remedy::NameRange => {
            "name a range along an axis, such as ':' for all of it, or leave out --reduce and --within"
        }
        Remedy::ChooseLayer => "choose a convolution, or a node that follows one, with --layer",
        Remedy::ExplainInPlace => "explain it with 'brenier explain', or export the model without it",
        Remedy::GiveInputsByName => "give each by its name: --input NAME=FILE",
        Remedy::IsAFlow => {
            "a file with inputs x and t is a flow: give it as --flow, and the model that is to be explained as --model"
        }
        Remedy::GiveIdsByName => {
            "give it by its name, --input NAME=FILE: ids are explained at their embedding"
        }
        Remedy::NameInnerValue => "name an inner value of floats with --at, or hold fewer inputs",
        Remedy::OtherInnerValue => "--at names another value",
        Remedy::ListInnerValues => {
            "name a value or a node of the graph; `brenier inspect --values` lists them"
        }
        Remedy::CutTexts => "cut texts with --max-tokens N, or shorten this one",
        Remedy::NoGradientsInOnnxRuntime => {
            "use a method that needs none, with ONNX Runtime: --engine ort --method kernel-shap, shapley-values, lime, \
             occlusion or feature-ablation (docs/pipelines.md)"
        }
        Remedy::SayClass => {
            "say what to compare with (--against CLASS); a flow for one thing alone is trained with --from-class and --to-class"
        }
        Remedy::GiveBackground => "give data of the kind that the model was trained on (--background DATA)",
        Remedy::GiveRowsToCompare => "give rows to compare with (--background)",
        Remedy::GiveFlow => "give a flow that was trained on the model's data (--flow flow.onnx)",
        Remedy::GiveDiffusionModel => {
            "give a diffusion model that was trained on the model's data (--flow ddpm.onnx)"
        }
        Remedy::FollowByDdim => "a diffusion model gives DDIM paths: explain with --method ddim",
        Remedy::TrainDiffusionModel => "train one with `brenier train --objective ddpm`",
        Remedy::TrainFlow => {
            "give a classifier as --model, and as --flow what 'brenier train' makes without --objective classify"
        }
        Remedy::GiveReferenceData => "give the data set with --reference",
        Remedy::Calibrate => "calibrate it with rows that it was not trained on (brenier calibrate)",
        Remedy::SayPopulation => {
            "give data that have it, or say which population the inputs belong to (--among)"
        }
        Remedy::NameClassesOrSayPopulation => {
            "name the model's classes as the data do (--classes), or say which population the inputs belong to (--among)"
        }
        Remedy::LeaveOutColumns => {
            "give tables with the same columns, or leave out those that only one has (--drop)"
        }
        Remedy::CategoricalColumn => "name another column, or say that its numbers are names (--categorical)",
        Remedy::MoreInversionSteps => "take more steps (--inversion-steps)",
        Remedy::MoreGradients => "allow more gradients (--max-gradients), or a larger tolerance",
        Remedy::SmallerSolverTolerance => "tighten the solver (--solver-tolerance)",
        Remedy::ChooseFolder => "choose one with -o DIR",
        Remedy::FolderOfExplanations => "name a folder that 'brenier explain -o' has finished",
    };
    words.to_owned()
}

/// An error as it is shown: the library's own with remedies in flags.
pub(crate) fn told(error: &(dyn std::error::Error + 'static)) -> String {
    error.downcast_ref::<brenier::Error>().map_or_else(|| error.to_string(), |error| error.worded(flags))
}

#[cfg(test)]
mod tests {
    use brenier::Error;

    use super::*;

    #[test]
    fn the_librarys_remedy_is_said_in_flags_wherever_the_error_is_in_a_chain() {
        let error = Error::Method {
            method: "transport".to_string(),
            reason: "there is no flow".to_string(),
            remedy: Remedy::GiveFlow,
        };
        let plain = error.to_string();
        assert!(!plain.contains("--"), "{plain}");
        let chained = anyhow::Error::new(error).context("the third input");
        let said: Vec<String> = chained.chain().map(told).collect();
        assert_eq!(said[0], "the third input");
        assert!(said[1].starts_with("transport cannot explain this: there is no flow\nhint: give a flow"));
        assert!(said[1].ends_with("(--flow flow.onnx)"), "{said:?}");
    }
}
