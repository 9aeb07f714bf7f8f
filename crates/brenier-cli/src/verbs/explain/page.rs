//! What is drawn of an explain run: `report.html`, and a heat map for each explanation of an image.

use std::path::{Path, PathBuf};

use anyhow::Result;
use brenier::Explanation;
use brenier::report::{ExplanationReader, HeatMapGround, HeatMapStyle, Report, Scales, save_heat_maps};
use brenier::runs::explain::Provenance;

use super::{Explain, one_run};
use crate::output::print_progress;
use crate::verbs::report::SHOWN;

/// Writes down what the explanations do not say by themselves.
pub(super) fn describe(
    args: &Explain,
    folder: &Path,
    parts: &[(String, PathBuf)],
    inputs: usize,
    (provenance, report): (&Provenance, Report),
) -> Result<()> {
    let mut facts = vec![
        ("model".to_string(), args.model.model.display().to_string()),
        ("inputs".to_string(), inputs.to_string()),
    ];
    for flow in &args.settings.flow {
        facts.push(("flow".to_string(), flow.display().to_string()));
    }
    facts.extend(args.against.facts());
    if inputs > SHOWN {
        facts.push(("shown".to_string(), format!("the first {SHOWN}")));
    }
    facts.extend(provenance.engine.iter().map(|engine| ("engine".to_string(), engine.clone())));
    facts.push(("version".to_string(), format!("brenier {}", env!("CARGO_PKG_VERSION"))));
    facts.extend(provenance.model.iter().map(|hash| ("model hash".to_string(), hash.clone())));
    let title = format!("Explanations of {}", args.model.model.display());
    let parts = parts.iter().map(|(name, _)| name.clone()).collect();
    Ok(Report { title, facts, parts, ..report }.save_description(folder)?)
}

/// Draws everything from what is saved: the folders of the methods, by their names.
pub(crate) fn draw(folder: &Path, parts: &[(String, PathBuf)], shape: &[usize], overlay: bool) -> Result<()> {
    let report = Report::open(folder, SHOWN)?;
    if shape.len() == 3 {
        let style = HeatMapStyle {
            ground: if overlay { HeatMapGround::Input } else { HeatMapGround::Paper },
            superpixels: report.superpixels,
            scales: if report.shared_scale { Scales::Shared } else { Scales::Own },
        };
        heat_maps(&folder.join("heatmaps"), parts, &style)?;
    }
    let file = folder.join("report.html");
    report.save(&file)?;
    print_progress(&format!("wrote {}", file.display()));
    let picture = folder.join("comparison.svg");
    if report.save_comparison_picture(&picture)? {
        print_progress(&format!("wrote {}", picture.display()));
    }
    Ok(())
}

/// A picture for each example, method and target; those of one example by one rule for the scale.
fn heat_maps(folder: &Path, parts: &[(String, PathBuf)], style: &HeatMapStyle) -> Result<()> {
    let mut readers = Vec::with_capacity(parts.len());
    for (_, part) in parts {
        readers.push(ExplanationReader::open(part)?.peekable());
    }
    let mut made = Vec::new();
    loop {
        // The next example of any method: inputs that could not be explained are left out.
        let number = |next: &brenier::Result<Explanation>| {
            next.as_ref().map_or(0, |explanation| explanation.certificate.example)
        };
        let Some(example) = readers.iter_mut().filter_map(|reader| reader.peek().map(number)).min() else {
            break;
        };
        let mut of_it: Vec<Explanation> = Vec::new();
        for reader in &mut readers {
            while let Some(explanation) = reader.next_if(|next| next.is_err() || number(next) == example) {
                of_it.push(explanation?);
            }
        }
        made.extend(save_heat_maps(folder, &of_it.iter().collect::<Vec<_>>(), style)?);
    }
    one_run::keep_only(folder, &made)?;
    let count = made.len();
    print_progress(&format!("wrote {count} heat maps into {}", folder.display()));
    Ok(())
}
