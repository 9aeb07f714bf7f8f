//! `report.html` of an explain run.

use anyhow::Result;
use brenier::attribute::{Frames, frames};
use brenier::report::Report;
use brenier::{Explanation, Line, Path, Score};

use super::{Explain, Run};
use crate::verbs::report::SHOWN;

/// Stills of each path.
const PIECES: usize = 20;

/// Stills of the paths of a method, where it has paths and the model gradients.
pub(super) fn stills(
    explanations: &[Explanation],
    paths: Option<&[Box<dyn Path>]>,
    score: &dyn Score,
) -> Result<Vec<Option<Frames>>> {
    let mut all = Vec::with_capacity(explanations.len());
    for explanation in explanations.iter().take_while(|e| e.certificate.example < SHOWN) {
        let target = explanation.certificate.target;
        let straight = explanation.certificate.path.as_ref().is_some_and(|p| p.evidence.kind == "line");
        let still = match (
            paths.and_then(|paths| paths.get(explanation.certificate.example)),
            &explanation.reference,
        ) {
            (Some(path), _) => Some(frames(score, path.as_ref(), target, PIECES)?),
            (None, Some(reference)) if straight => {
                let line = Line::new(reference.view(), explanation.input.view())?;
                Some(frames(score, &line, target, PIECES)?)
            }
            _ => None,
        };
        all.push(still);
    }
    Ok(all)
}

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
