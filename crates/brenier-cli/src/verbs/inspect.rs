//! `brenier inspect`: what a model is, and whether and where it can be differentiated.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;
use brenier::export::ExportedFacts;
use brenier::{Inspection, InterfaceValue, PredictorConfig, Score, ValuePredictor};
use clap::Args;
use onnx_grad::Model;

use crate::output::{Format, print_data};
use crate::wording::flags;

/// Inputs, outputs, size and cost of a model, and the nodes that gradients do not get through
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  brenier inspect model.onnx\n  brenier inspect model.onnx --output-name logits\n  brenier inspect model.onnx --format json\n  brenier inspect model.onnx --values"
)]
pub(crate) struct Inspect {
    /// The ONNX file
    model: PathBuf,
    /// List the inner values as well, which `explain --at` takes
    #[arg(long)]
    values: bool,
    /// The output to judge; default: the first of floats, as explain takes it
    #[arg(long, value_name = "NAME")]
    output_name: Option<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(args: &Inspect) -> Result<()> {
    let trees = ValuePredictor::load_trees(&args.model, &PredictorConfig::default()).ok().flatten();
    let model = match (Model::load(&args.model), &trees, args.format) {
        // Trees of other libraries are no ONNX files.
        (Err(_), Some(trees), Format::Text) => {
            let (features, outputs) = (trees.features(), trees.outputs());
            return print_data(&format!("trees         {features} features, {outputs} outputs\n{TREES}"));
        }
        (model, ..) => model?,
    };
    let values = if args.values { Some(Inspection::values(&model)?) } else { None };
    let (inspection, explainer) =
        (Inspection::of_output(&model, args.output_name.as_deref())?, ExportedFacts::of(&model));
    match args.format {
        Format::Json => {
            let mut found = serde_json::to_value(&inspection)?;
            if let Some(facts) = explainer {
                found["explainer"] = serde_json::to_value(facts)?;
            }
            if let Some(values) = values {
                found["values"] = serde_json::to_value(values)?;
            }
            print_data(&format!("{}\n", serde_json::to_string_pretty(&found)?))
        }
        Format::Text => {
            let first = explainer.map(|facts| format!("explainer     {}\n", facts.in_words()));
            let inner = values.iter().flatten().map(|value| format!("value         {}\n", interface(value)));
            print_data(
                &(first.unwrap_or_default()
                    + &text(&inspection, trees.is_some())?
                    + &inner.collect::<String>()),
            )
        }
    }
}

/// What is said of the gradient of trees.
const TREES: &str =
    "gradient      none needed: trees get exact credit (ig, tree-shap, --against; docs/trees.md)\n";

fn text(inspection: &Inspection, trees: bool) -> Result<String> {
    let mut out = String::new();
    let producer = if inspection.producer.is_empty() { "unknown" } else { &inspection.producer };
    writeln!(out, "opset         {}, written by {producer}", inspection.opset)?;
    for (what, values) in [("input", &inspection.inputs), ("output", &inspection.outputs)] {
        for value in values {
            writeln!(out, "{what:<13} {}", interface(value))?;
        }
    }
    writeln!(out, "parameters    {}", grouped(inspection.parameters as u64))?;
    writeln!(out, "cost          {} per input", quantity(inspection.flops_per_input, "FLOP"))?;
    writeln!(out, "activations   {} per input", quantity(inspection.activation_bytes_per_input, "B"))?;
    let operators: Vec<String> = inspection.operators.iter().map(|(op, n)| format!("{op} {n}")).collect();
    writeln!(out, "operators     {}", operators.join(", "))?;
    if trees {
        out.push_str(TREES);
    }
    let judged = match (&inspection.explained, inspection.outputs.len()) {
        (Some(name), 2..) => format!(", of the output '{name}'"),
        _ => String::new(),
    };
    if !trees {
        writeln!(out, "gradient      {}{judged}", if inspection.differentiable { "yes" } else { "no" })?;
    }
    for node in inspection.blocked.iter().filter(|_| !trees) {
        let effect = if node.fatal { "blocks" } else { "stops, gradients flow around it" };
        let effect = if inspection.differentiable || node.fatal { effect } else { "stops" };
        writeln!(out, "  node {}: {} ({effect})", node.node, node.reason)?;
    }
    let told = trees || inspection.blocked.iter().any(|node| node.fatal);
    if let (Some(problem), false) = (&inspection.problem, told) {
        writeln!(out, "  {problem}")?;
    }
    for notice in &inspection.notices {
        writeln!(out, "notice        {}", notice.worded(flags))?;
    }
    Ok(out)
}

fn interface(value: &InterfaceValue) -> String {
    let shape = value.shape.as_ref().map_or("of unknown rank".to_string(), |s| format!("[{}]", s.join(", ")));
    format!("{} {} {shape}", value.name, value.dtype)
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three digits and a prefix: 1.23 MFLOP.
fn quantity(number: u64, unit: &str) -> String {
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        if value < 1000.0 {
            let digits = if prefix.is_empty() || value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            return format!("{value:.digits$} {prefix}{unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.0} E{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1234567), "1,234,567");
        assert_eq!(quantity(999, "B"), "999 B");
        assert_eq!(quantity(83_123_456, "FLOP"), "83.1 MFLOP");
    }
}
