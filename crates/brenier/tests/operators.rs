//! Every operator that RTen accepts, with every choice of attributes, against what ONNX says.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;
#[path = "operators/elementwise.rs"]
mod elementwise;
#[path = "operators/layout.rs"]
mod layout;
#[path = "operators/models.rs"]
mod models;
#[path = "operators/node_suite.rs"]
mod node_suite;
#[path = "operators/products.rs"]
mod products;
#[path = "operators/reduce.rs"]
mod reduce;
#[path = "operators/sample.rs"]
mod sample;
#[path = "operators/windows.rs"]
mod windows;

use brenier::engine::Engine;
use common::engines;
use onnx_grad::eval::Array;
use sample::{Outcome, Sample, TOLERANCE, difference};

/// What came of a family of samples.
#[derive(Default)]
struct Tally {
    agreed: usize,
    refused: usize,
    wrong: Vec<String>,
    /// Neither the reference nor ONNX Runtime knows what must come out.
    unknown: usize,
}

impl Tally {
    /// Holds RTen against the truth: as it is and as a predictor prepares it, with inputs and with constants.
    fn hold(&mut self, rten: &dyn Engine, sample: &Sample, truth: &[Array], tolerance: f64) {
        let variants = [Some(sample.clone()), sample.with_constants()];
        let variants = variants.into_iter().flatten().flat_map(|v| [Some(v.clone()), v.lowered()]).flatten();
        for variant in variants {
            match variant.compare(rten, truth, tolerance) {
                Outcome::Agrees => self.agreed += 1,
                Outcome::Refused(why) => {
                    self.refused += 1;
                    if std::env::var_os("SHOW_REFUSED").is_some() {
                        println!("refused {}: {why}", variant.label);
                    }
                }
                Outcome::Wrong(what) => self.wrong.push(format!("{}: {what}", variant.label)),
            }
        }
    }

    /// Nothing is wrong, and so much is run at least: refusing everything would be right too.
    fn judge(&self, family: &str, least: usize) {
        let Tally { agreed, refused, wrong, unknown } = self;
        println!("{family}: {agreed} agree, {refused} refused, {} wrong, {unknown} unknown", wrong.len());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(*agreed >= least, "{family}: only {agreed} agree");
    }
}

fn check(family: &str, samples: Vec<Sample>, least: usize) {
    let engines = engines();
    let ort = engines.get(1);
    let mut tally = Tally::default();
    for sample in &samples {
        let other = ort.and_then(|ort| sample.run(ort.as_ref()).ok());
        let truth = sample.truth();
        if let (Some(truth), Some(other)) = (&truth, &other)
            && let Some(what) = truth.iter().zip(other).find_map(|(t, o)| difference(o, t, TOLERANCE))
        {
            println!("ONNX Runtime differs from the reference in {}: {what}", sample.label);
        }
        match truth.or(other) {
            Some(truth) => tally.hold(engines[0].as_ref(), sample, &truth, TOLERANCE),
            None => tally.unknown += 1,
        }
    }
    tally.judge(family, least);
}

#[test]
fn elementwise_operators() {
    check("elementwise", elementwise::samples(), 1900);
}

#[test]
fn layout_operators() {
    check("layout", layout::samples(), 4000);
}

#[test]
fn reductions_and_norms() {
    check("reduce", reduce::samples(), 2500);
}

#[test]
fn windows_and_resizing() {
    check("windows", windows::samples(), 4800);
}

#[test]
fn products_and_recurrence() {
    check("products", products::samples(), 1500);
}

#[test]
fn the_node_tests_of_onnx() {
    let engines = engines();
    let mut tally = Tally::default();
    for (sample, truth) in node_suite::samples() {
        // Some of its numbers are written with four digits.
        tally.hold(engines[0].as_ref(), &sample, &truth, 1e-3);
    }
    tally.judge("node tests", 1750);
}
