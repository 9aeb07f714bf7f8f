//! What to try, in arguments of the Python package: the one table.

use brenier::Remedy;

/// A remedy of the library in arguments. Without a line for each it does not compile.
pub(crate) fn arguments(remedy: &Remedy) -> String {
    let words = match remedy {
        Remedy::Plain(sentence) => sentence,
        Remedy::OnnxRuntime => "run the model with ONNX Runtime, which knows more of them (engine='ort')",
        Remedy::OnnxRuntimeOrFloat32 => "use engine='ort', or export the model in float32",
        Remedy::BuiltInEngine => {
            "run the model with the built-in engine (engine='rten'), or with another version of ONNX Runtime"
        }
        Remedy::InspectOrNewerOnnxRuntime => {
            "brenier.inspect(model) shows the model's nodes, and a newer onnxruntime may know the op"
        }
        Remedy::InspectOrNoGradients => {
            "brenier.inspect(model) lists all such nodes, and methods without gradients (KernelSHAP, occlusion) still work"
        }
        Remedy::InputShapeOfImage => "give the shape of one input, such as input_shape=(3, 224, 224)",
        Remedy::InputShapeOfTable => {
            "give the shape of one input, such as input_shape=(12,) for twelve columns"
        }
        Remedy::KeepFinalActivation => "keep_softmax=True explains its output",
        Remedy::CutFinalActivation => "leave out keep_softmax=True, or use shapley-values or kernel-shap",
        Remedy::SayHowToReduce => "say how they become one score: reduce='mean', 'sum' or 'max'",
        Remedy::NameRange => {
            "name a range along an axis, such as slice(None) for all of it, or leave out reduce= and within="
        }
        Remedy::ChooseLayer => "choose a convolution, or a node that follows one, with layer=",
        Remedy::ExplainInPlace => "explain it with brenier.explain(), or export the model without it",
        Remedy::GiveInputsByName => "give a dict with an array for each input, by its name",
        Remedy::IsAFlow => {
            "a file with inputs x and t is a flow: give it as flow=, and the model that is to be explained as the model"
        }
        Remedy::GiveIdsByName => "give it in a dict, by its name: ids are explained at their embedding",
        Remedy::NameInnerValue => "name an inner value of floats (at=), or hold fewer inputs",
        Remedy::OtherInnerValue => "at= names another value",
        Remedy::ListInnerValues => {
            "name a value or a node of the graph; brenier.inspect(model) says which there are"
        }
        Remedy::CutTexts => "cut texts with max_tokens=, or shorten this one",
        Remedy::NoGradientsInOnnxRuntime => {
            "use a method that needs none, with engine='ort': kernel-shap, shapley-values, lime, occlusion or \
             feature-ablation"
        }
        Remedy::SayClass => "compare with one of its classes (against=)",
        Remedy::GiveBackground => "give data of the kind that the model was trained on (background=)",
        Remedy::GiveRowsToCompare => "give rows to compare with (background=)",
        Remedy::GiveFlow => "give a flow that was trained on the model's data (flow=)",
        Remedy::GiveDiffusionModel => "give a diffusion model that was trained on the model's data (flow=)",
        Remedy::FollowByDdim => "a diffusion model gives DDIM paths: explain with method='ddim'",
        Remedy::TrainDiffusionModel => "train one on the command line with `brenier train --objective ddpm`",
        Remedy::TrainFlow => {
            "give a classifier as the model, and as flow= what brenier.train_flow(data) makes"
        }
        Remedy::GiveReferenceData => "give the data set with reference=",
        Remedy::Calibrate => "calibrate it with rows that it was not trained on (Flow.calibrate())",
        Remedy::SayPopulation => {
            "give data that have it, or say which population the inputs belong to (among=)"
        }
        Remedy::NameClassesOrSayPopulation => {
            "name the model's classes as the data do (classes=), or say which population the inputs belong to (among=)"
        }
        Remedy::LeaveOutColumns => {
            "give tables with the same columns: leave out of the table those that only one has"
        }
        Remedy::CategoricalColumn => {
            "name another column, or make it a column of text, so that its numbers are names"
        }
        Remedy::MoreInversionSteps => "take more steps (inversion_steps=)",
        Remedy::MoreGradients => "allow more gradients (max_gradients=), or a larger tolerance",
        Remedy::SmallerSolverTolerance => "tighten the solver (solver_tolerance=)",
        Remedy::ChooseFolder => "name a folder",
        Remedy::FolderOfExplanations => "name a folder that Explanations.save() has written",
    };
    words.to_owned()
}
