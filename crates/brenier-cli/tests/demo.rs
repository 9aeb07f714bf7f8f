//! The demo, with what is inside the program, in a folder that knows nothing of the repository.

#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn the_demo_explains_embedded_images_and_can_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = |images: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_brenier"))
            .args(["demo", "--images", images, "-o", "demo"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        (String::from_utf8(output.stdout).unwrap(), told)
    };
    let (table, told) = run("1");
    for line in ["explain demo/pullovers.npy", "evaluate demo/images", "explain demo/images"] {
        assert!(told.contains(&format!("$ brenier {line}")), "{told}");
    }
    for method in ["transport", "ig", "ddim", "grad-cam"] {
        // A row of the evaluation, one of the explanations, and of two one of why a pullover is no T-shirt.
        let rows = if ["transport", "ig"].contains(&method) { 3 } else { 2 };
        assert_eq!(
            table.lines().filter(|line| line.starts_with(&format!("{method} "))).count(),
            rows,
            "{table}"
        );
    }
    let page = std::fs::read_to_string(folder.path().join("demo/report/report.html")).unwrap();
    for part in ["Ankle boot", "insertion-zero", "t10k-images-idx3-ubyte.gz#0"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(folder.path().join("demo/report/heatmaps/0000-transport-target9.png").exists());
    // What was measured is kept, and the numbers are the same.
    assert_eq!(run("1").0, table);
    // Another number of images takes the place of the first.
    assert_eq!(run("2").0.lines().filter(|line| line.starts_with("transport ")).count(), 5);
    let why = folder.path().join("demo/why");
    assert!(std::fs::read_to_string(why.join("report.html")).unwrap().contains("T-shirt"));
    assert!(std::fs::read_to_string(why.join("comparison.svg")).unwrap().contains("counterpart"));
}
