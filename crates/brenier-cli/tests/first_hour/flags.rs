//! Flags and hints.

use ndarray::{Array2, Array4};
use ndarray_npy::write_npy;
use onnx_grad::{Attribute, Builder, DType, Dim, Model, TensorData};

use crate::place::Place;
use crate::{flow, noise, said, simple, values};

/// A convolution of images 1x8x8 with a ReLU and two scores.
fn convolution(place: &Place, name: &str) {
    let mut b = Builder::new("conv");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(1), Dim::Known(8), Dim::Known(8)]);
    let w = b.parameter("w", TensorData::f32(&[2, 1, 3, 3], &noise(18, 7)));
    let maps = b.op_with("Conv", &[&x, &w], &[("pads", Attribute::Ints(vec![1, 1, 1, 1]))]);
    let maps = b.op("Relu", &[&maps]);
    let flat = b.reshape(&maps, &[-1, 128]);
    let v = b.parameter("v", TensorData::f32(&[128, 2], &noise(256, 8)));
    let y = b.matmul(&flat, &v);
    b.output("y", &y);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file(name)).unwrap();
}

#[test]
fn options_of_data_work_for_arrays_of_floats_or_are_refused() {
    let place = Place::new();
    place.image_model("images.onnx");
    let images = Array4::from_shape_vec((4, 1, 8, 8), noise(256, 5)).unwrap();
    write_npy(place.file("images.npy"), &images).unwrap();
    write_npy(place.file("flat.npy"), &images.to_shape((4, 64)).unwrap()).unwrap();
    write_npy(place.file("bytes.npy"), &(&images * 255.0)).unwrap();
    write_npy(
        place.file("big.npy"),
        &Array4::from_shape_fn((4, 1, 16, 16), |(n, _, i, j)| images[[n, 0, i / 2, j / 2]]),
    )
    .unwrap();
    write_npy(place.file("colour.npy"), &Array4::<f32>::zeros((4, 3, 8, 8))).unwrap();
    let line = |inputs: &str| format!("explain -m images.onnx {inputs} --target 0");
    let plain = values(&place, &line("images.npy"));
    assert_eq!(values(&place, &line("flat.npy --shape 1,8,8")), plain);
    assert_eq!(values(&place, &line("images.npy --limit 2")).shape(), [2, 1, 8, 8]);
    let scaled = values(&place, &line("bytes.npy --maximum 255"));
    assert!((&scaled - &plain).iter().all(|gap| gap.abs() < 1e-5));
    assert_eq!(values(&place, &line("big.npy --resize 8x8")).shape(), [4, 1, 8, 8]);
    for flag in ["--part test", "--label class", "--drop a", "--color gray"] {
        let told = place.refused(&line(&format!("images.npy {flag}")));
        assert!(told.contains("makes no difference to images.npy, an array of floats"), "{flag}\n{told}");
    }
    // No hint leads to a flag that is refused then.
    let told = place.refused(&line("colour.npy"));
    assert!(told.contains("of an array in NumPy, such as x.mean(axis=1, keepdims=True)"), "{told}");
    assert!(place.refused(&line("flat.npy")).contains("give the shape of a row with --shape"));
}

#[test]
fn what_changes_nothing_is_refused() {
    let place = simple();
    let line = |flags: &str| format!("explain -m model.onnx rows.npy {flags}");
    let told = place.refused(&line("--background rows.npy"));
    assert!(told.contains("--background makes no difference to ig without --baseline mean"), "{told}");
    let told = place.refused(&line("--method gradient --background rows.npy"));
    assert!(told.contains("--background makes no difference to gradient\nhint: leave it out"), "{told}");
    assert!(place.refused(&line("--method gradient --samples 9")).contains("--samples makes no difference"));
    for used in ["--baseline mean", "--method kernel-shap", "--method expected-gradients"] {
        said(&place, &line(&format!("{used} --background rows.npy")));
    }
}

#[test]
fn a_folder_of_a_run_is_taken_as_its_flow() {
    let place = simple();
    for folder in ["run", "empty"] {
        std::fs::create_dir(place.file(folder)).unwrap();
    }
    flow(&place, "run/flow.onnx", 0.5);
    said(&place, "explain -m model.onnx rows.npy -f run");
    let told = place.refused("explain -m model.onnx rows.npy -f empty");
    assert!(told.contains("there is no flow in the folder empty: it has no flow.onnx"), "{told}");
    let told = place.refused("explain -m run/flow.onnx rows.npy");
    assert!(told.contains("a file with inputs x and t is a flow: give it as --flow"), "{told}");
}

#[test]
fn folders_and_outputs_that_are_not_there_are_named() {
    let place = simple();
    for (line, answer) in [
        ("report nothing", "there is no nothing\nhint: give a folder that 'explain -o' has written"),
        ("merge nothing", "there is no folder nothing\nhint: "),
        ("explain -m model.onnx rows.npy --output-name z", "the model has no output 'z'; it has y"),
        ("evaluate -m model.onnx rows.npy -n -1", "it is a whole number from 1 on"),
        ("train rows.npy -o run --steps -1", "it is a whole number from 1 on"),
        ("train rows.npy -o run --batch -1", "it is a whole number from 1 on"),
    ] {
        let told = place.refused(line);
        assert!(told.contains(answer), "{line}\n{told}");
    }
}

#[test]
fn numbers_below_zero_are_answered_with_what_is_allowed() {
    let place = simple();
    for (line, answer) in [
        ("--steps -3", "it is a whole number from 1 on"),
        ("--steps 0", "an integral needs at least one"),
        ("--method smoothgrad --samples -3", "it is a whole number from 1 on"),
        ("--limit -1", "it is a whole number from 1 on"),
        ("--limit 0", "no rows would be left"),
        ("--max-gradients -1", "it is a whole number from 1 on"),
        ("--tolerance -1", "it must be positive and finite"),
        ("--map-tolerance -1", "it must be positive and finite"),
        ("--target -1", "target -1 is out of range"),
    ] {
        let told = place.refused(&format!("explain -m model.onnx rows.npy {line}"));
        assert!(told.contains(answer), "{line}\n{told}");
        assert!(!told.contains("use '-- "), "{line}\n{told}");
    }
}

#[test]
fn a_number_is_a_constant_baseline_and_other_words_list_the_choices() {
    let place = simple();
    write_npy(place.file("half.npy"), &Array2::from_elem((1, 2), 0.5f32)).unwrap();
    let line = |baseline: &str| format!("explain -m model.onnx rows.npy --baseline {baseline}");
    assert_eq!(values(&place, &line("0.5")), values(&place, &line("half.npy")));
    assert_ne!(values(&place, &line("-0.5")), values(&place, &line("0.5")));
    let told = place.refused(&line("median"));
    assert!(
        told.contains("there is no baseline 'median'\nhint: say zero, a number such as 0.5, mean"),
        "{told}"
    );
    // What was made from a number can be verified.
    said(&place, &format!("{} -o out --force", line("0.5")));
    said(&place, "verify out");
}

#[test]
fn long_names_find_their_method() {
    let place = simple();
    for name in ["integrated-gradients", "IntegratedGradients", "Saliency", "InputXGradient"] {
        said(&place, &format!("explain -m model.onnx rows.npy --method {name}"));
    }
    convolution(&place, "conv.onnx");
    write_npy(place.file("images.npy"), &Array4::from_shape_vec((2, 1, 8, 8), noise(128, 5)).unwrap())
        .unwrap();
    for name in ["GuidedBackprop", "LayerGradCam", "DeepLift", "KernelShap"] {
        said(&place, &format!("explain -m conv.onnx images.npy --method {name}"));
    }
    let told = place.refused("explain -m model.onnx rows.npy --method shapp");
    assert!(told.contains("-shap'?"), "{told}");
}

#[test]
fn inputs_in_other_units_than_the_background_are_told() {
    let place = Place::new();
    place.image_model("images.onnx");
    let images = Array4::from_shape_vec((4, 1, 8, 8), noise(256, 5)).unwrap().mapv(f32::abs);
    write_npy(place.file("train.npy"), &images).unwrap();
    write_npy(place.file("bytes.npy"), &(&images * 255.0)).unwrap();
    let line = |inputs| format!("explain -m images.onnx {inputs} --background train.npy --baseline mean");
    assert!(said(&place, &line("bytes.npy")).contains("notice: the inputs do not look like the background"));
    assert!(!said(&place, &line("train.npy")).contains("do not look like"));
    // Without a background the preprocessing knows: after it, values are about 1.
    let line = |inputs| format!("explain -m images.onnx {inputs} --mean 0.3 --std 0.3");
    assert!(
        said(&place, &line("bytes.npy")).contains("do not look like what the model's preprocessing expects")
    );
    assert!(!said(&place, &line("train.npy")).contains("do not look like"));
}

#[test]
fn inspect_judges_the_output_that_explain_takes() {
    let place = Place::new();
    let mut b = Builder::new("two");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(3)]);
    let label = b.op_with("ArgMax", &[&x], &[("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(0))]);
    let score = b.op("Tanh", &[&x]);
    let stepped = b.op("Floor", &[&x]);
    b.output("label", &label);
    b.output("score", &score);
    b.output("stepped", &stepped);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file("two.onnx")).unwrap();
    let text = |line: &str| String::from_utf8_lossy(&place.run(line).stdout).into_owned();
    let found = text("inspect two.onnx");
    assert!(found.contains("gradient      yes, of the output 'score'"), "{found}");
    let found = text("inspect two.onnx --output-name stepped");
    assert!(found.contains(", of the output 'stepped'"), "{found}");
    let told = place.refused("inspect two.onnx --output-name logits");
    assert!(told.contains("no output 'logits'"), "{told}");
}

#[test]
fn inspect_says_that_trees_need_no_gradient() {
    let place = Place::new();
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/trees");
    for name in ["sk_boosted.onnx", "lgb.txt"] {
        let done = place.run(&format!("inspect {}", fixtures.join(name).display()));
        let found = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(found.contains("gradient      none needed: trees get exact credit"), "{name}\n{found}");
    }
}
