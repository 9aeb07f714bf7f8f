//! Which operators can be differentiated, from the registries themselves.

use crate::lower::{classical, spell};
use crate::rules::{self, Kind};

/// How an operator is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It has a rule of its own.
    Rule,
    /// It is written out in simpler operators first.
    SpelledOut,
    /// It computes as always, and no gradient goes through it, for this reason.
    Stops(&'static str),
    /// It is removed: at inference it does nothing.
    Removed,
    /// It is an old name, replaced when a file is read.
    Renamed,
}

/// One line of the coverage table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// The operator.
    pub op: &'static str,
    /// Its family, the name of the file its rule is in.
    pub family: &'static str,
    /// How it is treated.
    pub treatment: Treatment,
}

/// Every operator that is known, sorted by family and name.
pub fn coverage() -> Vec<Coverage> {
    let mut table: Vec<Coverage> = Vec::new();
    for rule in rules::REGISTRY {
        let treatment = match rule.kind {
            Kind::Backward(_) => Treatment::Rule,
            Kind::Stop(why) => Treatment::Stops(why),
        };
        table.push(Coverage { op: rule.op, family: rule.family, treatment });
    }
    for &(op, family, _) in spell::REGISTRY {
        table.push(Coverage { op, family, treatment: Treatment::SpelledOut });
    }
    for &(op, family, _) in spell::MANY {
        table.push(Coverage { op, family, treatment: Treatment::SpelledOut });
    }
    for op in ["Dropout", "Constant"] {
        table.push(Coverage { op, family: "layout", treatment: Treatment::Removed });
    }
    for (op, family) in [("Upsample", "layout"), ("Scatter", "index")] {
        table.push(Coverage { op, family, treatment: Treatment::Renamed });
    }
    table.sort_by_key(|c| (matches!(c.treatment, Treatment::Stops(_)), c.family, c.op));
    table
}

/// The coverage table as Markdown.
pub fn coverage_table() -> String {
    let mut text = String::from("| operator | family | treatment |\n|---|---|---|\n");
    for Coverage { op, family, treatment } in coverage() {
        let treatment = match treatment {
            Treatment::Rule => "rule".to_string(),
            Treatment::SpelledOut => "spelled out in simpler operators".to_string(),
            Treatment::Stops(why) => format!("passes through, no gradient: {why}"),
            Treatment::Removed => "removed".to_string(),
            Treatment::Renamed => "an old name, replaced when a file is read".to_string(),
        };
        text.push_str(&format!("| {op} | {family} | {treatment} |\n"));
    }
    for (op, smooth, _) in classical::REGISTRY {
        let treatment = match smooth {
            true => "spelled out in simpler operators",
            false => "spelled out; its output is held: no gradient goes through it",
        };
        text.push_str(&format!("| ai.onnx.ml {op} | pipeline | {treatment} |\n"));
    }
    text
}
