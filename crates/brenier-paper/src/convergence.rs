//! Section 5.3 and appendix F.3: attribution error against field error over the checkpoints of a training.
//!
//! ```text
//! RAE     = |Phi - Phi_ref| / (|Phi_ref| + 1e-12)
//! E_field = (sum_k |v(x_k) - v_ref(x_k)|^2)^(1/2) / ((sum_k |v_ref(x_k)|^2)^(1/2) + 1e-12)     on the checkpoint's own path, K = 50
//! ```
//!
//! The last checkpoint is the reference: this measures convergence to a practical reference, not to the truth. The
//! paper reports the median of Pearson's correlation over examples, each over all checkpoints.

use brenier::attribute::Context;
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::evaluate::pearson;
use brenier::flow::{OnnxFlow, VelocityField};
use brenier::report::{Chart, Mark, Scale, Series};
use brenier::runs::FlowRun;
use brenier::{Error, Result, Store, relative_attribution_error, relative_field_error, sample};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::{Figure, Row, Scale as Size, Subject, Table, Tell, trained, transport};

/// The size of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvergenceConfig {
    /// Inputs that are explained along every checkpoint.
    pub examples: usize,
    /// The seed that draws them.
    pub seed: u64,
    /// Where no checkpoints are given: steps of a small training, of which a tenth apart are kept.
    pub steps: u64,
}

impl ConvergenceConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> ConvergenceConfig {
        let (examples, steps) = if scale == Size::Quick { (6, 300) } else { (32, 6000) };
        ConvergenceConfig { examples, seed: 0, steps }
    }
}

/// The paper's grid.
const STEPS: usize = 50;

/// A network of a training, and after how many steps.
pub struct Kept {
    /// The steps.
    pub step: u64,
    /// The network.
    pub flow: OnnxFlow,
}

/// Trains a small flow and keeps its networks on the way, for whoever has no run of their own.
///
/// # Errors
/// A store without a folder, and what training says.
pub fn train_checkpoints(
    data: &Dataset,
    held_out: &Dataset,
    config: &ConvergenceConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<Vec<Kept>> {
    let network = trained::small_network(data.shape(), 32);
    let mut training = trained::training(config.steps, 64, config.seed, engine);
    training.keep_every = (config.steps / 10).max(1);
    let run = FlowRun { network: Some(network), training, ..FlowRun::default() };
    let about =
        [("the data".to_string(), data.fingerprint()), ("the training".to_string(), format!("{config:?}"))];
    store.claim(&about.into_iter().collect())?;
    trained::flow(data, held_out, &run, store, "convergence-flow", tell)?;
    let folder = store.require_folder("checkpoints are kept there")?.join("convergence-flow").join("kept");
    kept_checkpoints(&folder, engine)
}

/// The checkpoints that a training has kept in `kept/`, the earliest first.
///
/// # Errors
/// If there are fewer than four of them: three points are the least that a correlation needs, and one is the
/// reference.
pub fn kept_checkpoints(folder: &std::path::Path, engine: &EngineConfig) -> Result<Vec<Kept>> {
    let unreadable = |e: std::io::Error| Error::Read { path: folder.to_owned(), source: e.into() };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let step = path.file_stem().and_then(|s| s.to_str()).and_then(|s| s.strip_prefix("step-"));
        if let (Some(step), Some("onnx")) =
            (step.and_then(|s| s.parse().ok()), path.extension().and_then(|e| e.to_str()))
        {
            files.push((step, path));
        }
    }
    files.sort();
    if files.len() < 4 {
        return Err(Error::Setting {
            name: "the number of kept checkpoints",
            value: files.len().to_string(),
            needs: "it takes three to correlate, and the last is the reference",
            hint: "train with --keep-every".into(),
        });
    }
    files.into_iter().map(|(step, path)| Ok(Kept { step, flow: OnnxFlow::load(path, engine)? })).collect()
}

/// What a checkpoint gives for each example.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Errors {
    attribution: Vec<f64>,
    field: Vec<f64>,
}

/// Runs the experiment over the checkpoints of a training, the earliest first.
pub fn convergence(
    subject: &Subject,
    checkpoints: &[Kept],
    config: &ConvergenceConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let Some((reference, earlier)) = checkpoints.split_last() else {
        return Err(Error::Zero { what: "the number of checkpoints" });
    };
    let examples = subject.examples(config.examples, config.seed)?;
    let inputs = examples.inputs.view();
    let method = transport()?;
    let credit = |flow: &OnnxFlow| {
        let context = Context { flows: vec![flow as &dyn VelocityField], ..Context::default() };
        method.explain_with_paths(subject.model, inputs, &examples.targets, &context)
    };
    let key = subject.key(inputs);
    let reference_credit: Vec<Vec<f64>> =
        store.part("convergence-reference", &(&key, reference.step), || {
            Ok(credit(&reference.flow)?.0.into_iter().map(|e| e.values.to_vec()).collect())
        })?;
    let mut found = Vec::with_capacity(earlier.len());
    for kept in earlier {
        let settings = (&key, kept.step, reference.step);
        let errors: Errors = store.part(&format!("convergence-{:06}", kept.step), &settings, || {
            let (explanations, paths) = credit(&kept.flow)?;
            let attribution = explanations.iter().zip(&reference_credit).map(|(e, reference)| {
                relative_attribution_error(e.values.view(), ndarray::ArrayView1::from(reference))
            });
            let field = paths.iter().map(|path| {
                relative_field_error(sample(path.as_ref(), STEPS).view(), &kept.flow, &reference.flow)
            });
            Ok(Errors {
                attribution: attribution.collect::<Result<_>>()?,
                field: field.collect::<Result<_>>()?,
            })
        })?;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        tell(&format!(
            "step {}: attribution error {:.4}, field error {:.4}",
            kept.step,
            mean(&errors.attribution),
            mean(&errors.field)
        ));
        found.push((kept.step, errors));
    }
    let table = Table {
        name: "convergence".into(),
        scale: format!(
            "{}, {} examples, {} checkpoints against that of step {}, seed {}",
            subject.name,
            inputs.nrows(),
            earlier.len(),
            reference.step,
            config.seed
        ),
        rows: rows(&found),
    };
    Ok((table, vec![figure(subject.name, &found)]))
}

/// The errors of every checkpoint, and their correlation in three ways.
fn rows(found: &[(u64, Errors)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (step, errors) in found {
        let name = format!("step {step}");
        rows.push(Row::of(&name, "relative attribution error", &errors.attribution, None));
        rows.push(Row::of(&name, "relative field error", &errors.field, None));
    }
    let examples = found.first().map_or(0, |(_, errors)| errors.field.len());
    let of = |pick: fn(&Errors) -> &Vec<f64>| {
        Array2::from_shape_fn((found.len(), examples), |(m, i)| pick(&found[m].1)[i])
    };
    let (attribution, field) = (of(|e| &e.attribution), of(|e| &e.field));
    let mut each: Vec<f64> = (0..examples)
        .filter_map(|i| pearson(&field.column(i).to_vec(), &attribution.column(i).to_vec()))
        .collect();
    each.sort_by(f64::total_cmp);
    let all = "all checkpoints";
    if !each.is_empty() {
        // The paper says "above 0.95".
        let median = 0.5 * (each[(each.len() - 1) / 2] + each[each.len() / 2]);
        let row = Row::of(all, "Pearson correlation, median over examples", &[median], Some(0.95));
        rows.push(Row { n: each.len(), ..row });
        rows.push(Row::of(all, "Pearson correlation of each example", &each, None));
    }
    let means =
        |errors: &Array2<f64>| errors.mean_axis(ndarray::Axis(1)).map(|m| m.to_vec()).unwrap_or_default();
    let flat = |errors: &Array2<f64>| errors.iter().copied().collect::<Vec<f64>>();
    let pooled = pearson(&flat(&field), &flat(&attribution));
    rows.extend(pooled.map(|r| Row::of(all, "Pearson correlation, pooled", &[r], None)));
    let of_means = pearson(&means(&field), &means(&attribution));
    rows.extend(of_means.map(|r| Row::of(all, "Pearson correlation of the means", &[r], None)));
    rows
}

fn figure(name: &str, found: &[(u64, Errors)]) -> Figure {
    let dots = found.iter().flat_map(|(_, e)| e.field.iter().copied().zip(e.attribution.iter().copied()));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let means = found.iter().map(|(_, e)| (mean(&e.field), mean(&e.attribution)));
    let chart = Chart {
        title: format!("{name}: attribution error against field error over a training"),
        x: ("relative field error".into(), Scale::Linear),
        y: ("relative attribution error".into(), Scale::Linear),
        series: vec![
            Series { name: "examples".into(), points: dots.collect(), mark: Mark::Dots, colour: 5 },
            Series {
                name: "means of checkpoints".into(),
                points: means.collect(),
                mark: Mark::Line,
                colour: 1,
            },
        ],
    };
    Figure { file: "convergence.svg".into(), svg: chart.svg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_proportion_correlate_fully() {
        let errors =
            |size: f64| Errors { attribution: vec![2.0 * size, 3.0 * size + 1.0], field: vec![size, size] };
        let rows = rows(&[(1, errors(3.0)), (2, errors(2.0)), (3, errors(0.5))]);
        let row = |metric: &str| rows.iter().find(|row| row.metric == metric).unwrap();
        let median = row("Pearson correlation, median over examples");
        assert!((median.mean - 1.0).abs() < 1e-12 && median.paper == Some(0.95) && median.n == 2);
        // Other factors for other examples: pooled, they are not one line.
        assert!(row("Pearson correlation, pooled").mean < 0.99);
        assert!((row("Pearson correlation of the means").mean - 1.0).abs() < 1e-12);
        assert!(figure("a", &[(1, errors(1.0))]).svg.contains("means of checkpoints"));
    }
}
