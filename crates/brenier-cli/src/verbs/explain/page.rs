//! `report.html` of an explain run.

use brenier::report::Report;

use super::{Explain, Run};
use crate::verbs::report::SHOWN;

/// The report of all methods together.
pub(super) fn report(args: &Explain, runs: Vec<Run>, inputs: usize, report: Report) -> Report {
    let mut facts = vec![
        ("model".to_string(), args.model.model.display().to_string()),
        ("inputs".to_string(), inputs.to_string()),
    ];
    for flow in &args.settings.flow {
        facts.push(("flow".to_string(), flow.display().to_string()));
    }
    if inputs > SHOWN {
        facts.push(("shown".to_string(), format!("the first {SHOWN}")));
    }
    let first = runs.first().and_then(|run| run.explanations.first());
    if let Some(certificate) = first.map(|e| &e.certificate) {
        facts.extend(certificate.engine.iter().map(|engine| ("engine".to_string(), engine.clone())));
        facts.push(("version".to_string(), format!("brenier {}", certificate.version)));
        facts.extend(certificate.model_hash.iter().map(|hash| ("model hash".to_string(), hash.clone())));
    }
    let title = format!("Explanations of {}", args.model.model.display());
    let parts = runs.iter().map(|run| run.name.clone()).collect();
    let mut report = Report { title, facts, parts, ..report };
    let shown = runs.into_iter().flat_map(|run| {
        let stills = run.stills.into_iter().chain(std::iter::repeat(None));
        run.explanations.into_iter().zip(stills)
    });
    report.show(shown.collect(), SHOWN);
    report
}
