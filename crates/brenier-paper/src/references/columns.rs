//! The same question on tables: credit on the columns that decide, by what a row is compared with.
//!
//! Twelve columns, of which four decide, four go along with these and four are noise. A row is compared with zero, with data, and with
//! the other class: rows of it, optimal transport between two fitted Gaussians, and a flow from class to class.

use brenier::attribute::{Method, Settings};
use brenier::classify::{ClassifierConfig, MlpClassifierConfig};
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::flow::{Coupling, MlpConfig, NetworkConfig, OnnxFlow, Reversed};
use brenier::problems::PlantedTable;
use brenier::runs::{ClassifierRun, FlowRun, ReferenceKind, ReflowRun};
use brenier::transport::{GaussianConfig, GaussianMap};
use brenier::{Result, Store, VelocityField};

use super::super::compare::{along_lines, by_method, from_nearest, margins};
use super::super::{RULE, Row, Tell, trained};
use super::ReferencesConfig;
use super::explained::{Explained, Scores, explained, leads};

const BATCH: usize = 128;
const FLOW: &str = "columns: other class, flow";
const GAUSSIAN: &str = "columns: other class, gaussian";

/// What every way of comparing has on the columns that decide, and by how much transport leads.
pub(super) fn columns(
    config: &ReferencesConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<Vec<Row>> {
    let seed = config.seed;
    let table = PlantedTable::default();
    let train = table.make(config.train_rows, seed)?.data;
    let test = table.make(2 * config.examples.max(64), seed ^ 0x7e57)?;
    let training = |steps| trained::training(steps, BATCH.min(config.train_rows / 8), seed, engine);
    let run = ClassifierRun {
        network: Some(ClassifierConfig::Mlp(MlpClassifierConfig::default())),
        training: training(config.classifier_steps),
        ..ClassifierRun::default()
    };
    let made = trained::classifier(&train, &test.data, &run, store, "columns-classifier", tell)?;
    tell(&format!("columns: accuracy {:.3}", made.accuracy));
    let rows = explained(margins(&made.network, engine)?, &test, config.examples)?;
    let classes = [class(&train, 0)?, class(&train, 1)?];
    let flow = between(&classes, config, engine, store, tell)?;
    let mut scores: Scores =
        vec![("columns: classifier".to_string(), "accuracy".to_string(), vec![Some(made.accuracy)])];
    let settings = Settings { seed, rule: Some(RULE), ..Settings::default() };
    let mut rivals = Vec::new();
    for name in ["ig", "expected-gradients", "shapley-values", "lime"] {
        let method = Method::new(name, &settings)?;
        let credit = by_method(&method, &rows.model, rows.inputs.view(), &rows.targets, &train)?;
        rivals.push(format!("columns: {name}"));
        scores.extend(rows.scores(&format!("columns: {name}"), &credit)?);
    }
    let against = by_class(&rows, &classes, &flow, config, &settings)?;
    for name in ["expected-gradients", "shapley-values", "nearest"] {
        rivals.push(format!("columns: other class, {name}"));
    }
    scores.extend(against);
    let rivals: Vec<&str> = rivals.iter().map(String::as_str).collect();
    let mut table: Vec<Row> = scores
        .iter()
        .map(|(method, metric, values)| {
            Row::of(method, metric, &values.iter().flatten().copied().collect::<Vec<_>>(), None)
        })
        .collect();
    for ours in [GAUSSIAN.to_string(), format!("{FLOW}: trace")] {
        table.extend(leads(&scores, &ours, &rivals));
    }
    Ok(table)
}

/// What compares with the other class, each class by itself. Examples are in the order of their classes, so the numbers of other
/// methods are put into the same order.
fn by_class(
    rows: &Explained,
    classes: &[Dataset; 2],
    flow: &OnnxFlow,
    config: &ReferencesConfig,
    settings: &Settings,
) -> Result<Scores> {
    let order: Vec<usize> = (0..2).flat_map(|label| rows.rows_of(label)).collect();
    let mut scores: Scores = Vec::new();
    for label in 0..2 {
        let part = rows.of_class(label);
        if part.targets.is_empty() {
            continue;
        }
        let other = &classes[1 - label];
        let mut found = Vec::new();
        for name in ["expected-gradients", "shapley-values"] {
            let method = Method::new(name, settings)?;
            let credit = by_method(&method, part.model, part.inputs.view(), &part.targets, other)?;
            found.extend(part.scores(&format!("columns: other class, {name}"), &credit)?);
        }
        let method = from_nearest(config.nearest);
        let credit = by_method(&method, part.model, part.inputs.view(), &part.targets, other)?;
        found.extend(part.scores("columns: other class, nearest", &credit)?);
        let map = GaussianMap::fit(other, &classes[label], &GaussianConfig::default())?;
        let counterparts = map.invert(part.inputs.view())?;
        let credit = along_lines(part.model, counterparts.view(), part.inputs.view(), &part.targets)?;
        found.extend(part.scores(GAUSSIAN, &credit)?);
        let moved = &part.inputs - &counterparts;
        found.extend(part.scores(&format!("{GAUSSIAN}: displacement, no model"), &moved)?);
        let reversed = Reversed(flow);
        let field: &dyn VelocityField = if label == 1 { flow } else { &reversed };
        found.extend(part.along(FLOW, field)?);
        for (k, one) in found.into_iter().enumerate() {
            match scores.get_mut(k) {
                Some(known) => known.2.extend(one.2),
                None => scores.push(one),
            }
        }
    }
    for (_, _, values) in &mut scores {
        let mut in_order = vec![None; values.len()];
        order.iter().zip(values.iter()).for_each(|(&row, value)| in_order[row] = *value);
        *values = in_order;
    }
    Ok(scores)
}

/// A flow from the first class to the second, straightened once.
fn between(
    [from, to]: &[Dataset; 2],
    config: &ReferencesConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<OnnxFlow> {
    let group = config.groups.last().copied().unwrap_or(1);
    let training = |steps| trained::training(steps, BATCH.min(config.train_rows / 8), config.seed, engine);
    let run = FlowRun {
        network: Some(NetworkConfig::Mlp(MlpConfig::default())),
        reference: ReferenceKind::Data,
        coupling: Coupling::OptimalTransport { group },
        training: training(config.flow_steps),
        ..FlowRun::default()
    };
    let first = trained::flow_between(Some(from), to, &run, store, "columns-flow", tell)?;
    let run = ReflowRun {
        generated: to.len().min(4096) / 2,
        inverted: to.len().min(4096) / 2,
        reference: ReferenceKind::Data,
        training: training(config.reflow_steps),
        ..ReflowRun::default()
    };
    trained::next_level_between(&first, from, to, &run, store, "columns-reflow", tell)
}

fn class(data: &Dataset, label: usize) -> Result<Dataset> {
    let labels = data.require_labels()?;
    data.select(&(0..data.len()).filter(|&row| labels[row] == label).collect::<Vec<_>>())
}
