//! What cannot be read or differentiated is refused in one sentence that says where, why and what to try.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{Attribute, Builder, DType, Dim, Error, Graph, Model, Result, TensorData, grad, seed_name};

fn broken(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/broken").join(format!("{name}.onnx"))
}

/// Loads a model and differentiates its first output by its first input.
fn differentiated(name: &str) -> Result<Graph> {
    let model = Model::load(broken(name))?;
    let (output, input) = (&model.graph.outputs[0].name, &model.graph.inputs[0].name);
    grad(&model.graph, &[output], &[input])
}

/// The refusal of a model, after a look at its form: what happened, a semicolon, what to try.
fn refusal(name: &str) -> Error {
    let error = match differentiated(name) {
        Ok(_) => panic!("{name} is not refused"),
        Err(error) => error,
    };
    let message = error.to_string();
    let (what, remedy) = message.split_once("; ").unwrap_or_else(|| panic!("no remedy: {message}"));
    assert!(what.len() > 10 && remedy.len() > 10, "{message}");
    assert!(!message.contains('\n') && !message.contains(". ") && !message.ends_with('.'), "{message}");
    assert!(message.len() < 320, "{message}");
    error
}

/// Checks the variant of the error, and that its message contains each part.
macro_rules! refused {
    ($test:ident, $file:literal, $variant:pat, $($part:literal),+) => {
        #[test]
        fn $test() {
            let error = refusal($file);
            assert!(matches!(error, $variant), "{error:?}");
            let message = error.to_string();
            for part in [$($part),+] {
                assert!(message.contains(part), "'{part}' is not in: {message}");
            }
        }
    };
}

refused!(
    an_empty_file,
    "empty",
    Error::NotOnnx { .. },
    "the file is empty",
    "check that the file is complete"
);
refused!(a_text_file, "not_onnx", Error::NotOnnx { .. }, "not an ONNX model", "written as .onnx");
refused!(a_truncated_file, "truncated", Error::NotOnnx { .. }, "not an ONNX model", "the file is complete");
refused!(a_missing_file, "no_such_file", Error::File { .. }, "no_such_file.onnx", "check the path");
refused!(a_cycle, "cyclic", Error::Cycle { .. }, "'first' (Add)", "export it again");
refused!(an_opset_that_is_too_old, "opset_9", Error::Opset { found: 9, .. }, "opset 9", "version_converter");
refused!(
    an_opset_that_is_too_new,
    "opset_99",
    Error::Opset { found: 99, .. },
    "opset 99",
    "opset_version=17"
);
refused!(
    a_missing_data_file,
    "missing_external",
    Error::ExternalData { .. },
    "tensor 'w'",
    "missing.data",
    "keep the data file beside"
);
refused!(
    a_data_file_outside_the_folder,
    "escaping_external",
    Error::ExternalData { .. },
    "tensor 'w'",
    "../../secret",
    "outside the model's folder"
);
refused!(
    a_value_defined_twice,
    "duplicate_value",
    Error::Invalid { .. },
    "'y' is defined twice",
    "(Tanh)",
    "export the model again"
);
refused!(
    a_value_that_nothing_defines,
    "undefined_input",
    Error::Invalid { .. },
    "'shift' (Add)",
    "'nowhere'",
    "export the model again"
);
refused!(
    shapes_that_do_not_fit,
    "wrong_shape",
    Error::Node { .. },
    "'project' (MatMul)",
    "[batch, 4] and [5, 3]",
    "onnx.checker"
);
refused!(
    an_operator_of_another_domain,
    "unknown_op",
    Error::NotDifferentiable { .. },
    "'wobble_1' (com.example::Wobble)",
    "without custom operators"
);
refused!(
    a_quantised_model,
    "quantised",
    Error::NotDifferentiable { .. },
    "(DequantizeLinear)",
    "the model is quantised",
    "the float model it was made from"
);
refused!(
    a_loop_on_the_way,
    "loop",
    Error::NotDifferentiable { .. },
    "'repeat' (Loop)",
    "how often it turns",
    "fixed sizes"
);
refused!(
    an_argmax_on_the_way,
    "argmax_path",
    Error::NoGradient { .. },
    "'pick' (ArgMax)",
    "output 'y'",
    "before that node"
);

/// `NonZero` decides how much is summed, but the gradient goes around it.
#[test]
fn a_nonzero_beside_the_way_is_no_obstacle() {
    let graph = differentiated("nonzero").unwrap();
    assert!(graph.input(&seed_name("y")).is_none(), "a scalar needs no seed");
    let x = Array::new(DType::F32, &[2, 4], vec![1.0, -2.0, 0.5, -0.5, 3.0, 4.0, -1.0, 2.0]);
    let outputs = evaluate(&graph, &BTreeMap::from([("x".to_string(), x)])).unwrap();
    let values: Vec<f64> = outputs[1].data.iter().copied().collect();
    assert_eq!(values, [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
}

/// What has no gradient may still be evaluated, and what cannot be says so.
#[test]
fn evaluation_refuses_in_one_sentence_too() {
    let x = || BTreeMap::from([("x".to_string(), Array::new(DType::F32, &[1, 4], vec![1.0; 4]))]);
    let graph = |name| Model::load(broken(name)).unwrap().graph;
    assert_eq!(evaluate(&graph("argmax_path"), &x()).unwrap()[0].shape(), [1, 1]);
    assert_eq!(evaluate(&graph("loop"), &x()).unwrap()[0].shape(), [1, 4]);
    let error = evaluate(&graph("unknown_op"), &x()).unwrap_err();
    assert!(matches!(error, Error::NotEvaluable { .. }), "{error:?}");
    let part = "(com.example::Wobble)";
    assert!(error.to_string().contains(part) && error.to_string().contains("; "), "{error}");
    let error = evaluate(&graph("wrong_shape"), &x()).unwrap_err();
    assert!(matches!(&error, Error::Node { node, .. } if node.contains("project")), "{error:?}");
    let error = evaluate(&graph("argmax_path"), &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("needs 'x'; give it as an input"), "{error}");
}

/// Names that are not there are answered by those that are.
#[test]
fn a_name_that_is_not_there() {
    let graph = Model::load(broken("argmax_path")).unwrap().graph;
    let error = grad(&graph, &["z"], &["x"]).unwrap_err();
    assert_eq!(error.to_string(), "the graph has no value named 'z'; it has 'y'");
    let error = grad(&graph, &["y"], &["input"]).unwrap_err();
    assert_eq!(error.to_string(), "the graph has no value named 'input'; it has 'x'");
}

#[test]
fn a_resize_that_keeps_the_aspect_ratio() {
    let case = "../../fixtures/onnx_node/test_resize_downsample_sizes_nearest_not_smaller/model.onnx";
    let model = Model::load(Path::new(env!("CARGO_MANIFEST_DIR")).join(case)).unwrap();
    let message = grad(&model.graph, &["Y"], &["X"]).unwrap_err().to_string();
    assert!(
        message.contains("keep_aspect_ratio_policy has no rule; export the model with scales"),
        "{message}"
    );
}

/// A recurrent layer is spelled out step by step: it must be known how many steps there are, and what a step does.
#[test]
fn a_recurrent_layer_that_cannot_be_spelled_out() {
    let refusal = |steps: Dim, activation: &str| {
        let mut b = Builder::new("recurrent");
        let x = b.input("x", DType::F32, &[steps, Dim::symbol("N"), Dim::Known(2)]);
        let w = b.parameter("w", TensorData::f32(&[1, 1, 2], &[0.5, -0.5]));
        let r = b.parameter("r", TensorData::f32(&[1, 1, 1], &[0.5]));
        let activations = Attribute::Strings(vec![activation.to_string()]);
        let y = b.op_with("RNN", &[&x, &w, &r], &[("activations", activations)]);
        b.output("y", &y);
        grad(&b.finish().unwrap(), &["y"], &["x"]).err().map(|error| error.to_string())
    };
    assert_eq!(refusal(Dim::Known(3), "Tanh"), None);
    let open = refusal(Dim::symbol("T"), "Tanh").unwrap();
    assert!(open.contains("(RNN)") && open.contains("the length of its sequences is not known"), "{open}");
    assert!(open.contains("export the model with one fixed length"), "{open}");
    let unknown = refusal(Dim::Known(3), "Wobble").unwrap();
    assert!(
        unknown.contains("(RNN)") && unknown.contains("its activation 'Wobble' is not known"),
        "{unknown}"
    );
}
