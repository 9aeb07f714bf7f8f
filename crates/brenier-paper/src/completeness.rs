//! Section 5.2: how far credit is from the score's change as the grid is refined.
//!
//! ```text
//! r = | sum_i Phi_i - (f(x) - f(x_0)) |        MAE, standard deviation and SEM of r; relative error = MAE / mean |f(x) - f(x_0)|
//! ```
//!
//! The paper measures its left rule on CUB-200. Here every rule is measured on the same traces, and the slope of the
//! relative error over K is fitted beside that of the paper's own figures: the left rule has order 1, so -1 is what
//! theory says of both. The default rule adapts; it is measured at its own tolerance and at the cost of K = 50.

use brenier::attribute::Completeness;
use brenier::evaluate::ResidualSummary;
use brenier::problems::log_slope;
use brenier::report::{Chart, Mark, Scale, Series};
use brenier::{PathIntegral, Result, Rule, Store, TraceConfig, trace};
use ndarray::s;
use serde::{Deserialize, Serialize};

use super::{Figure, Row, Scale as Size, Subject, Table, Tell};

/// The size of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletenessConfig {
    /// Inputs that are explained; by its SEM the paper has 58.
    pub examples: usize,
    /// The seed that draws them.
    pub seed: u64,
}

impl CompletenessConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> CompletenessConfig {
        CompletenessConfig { examples: if scale == Size::Quick { 12 } else { 200 }, seed: 0 }
    }
}

/// The paper's numbers of steps, with MAE, standard deviation, SEM and relative error.
const PAPER: [(usize, [f64; 4]); 5] = [
    (10, [1.483, 1.346, 0.177, 0.1930]),
    (20, [0.895, 0.778, 0.102, 0.1165]),
    (50, [0.411, 0.317, 0.042, 0.0534]),
    (100, [0.229, 0.181, 0.024, 0.0298]),
    (200, [0.101, 0.079, 0.010, 0.0134]),
];

/// A rule at every number of steps.
type Maker = (&'static str, fn(usize) -> Rule);

const RULES: [Maker; 4] = [
    ("left", |steps| Rule::Left { steps }),
    ("midpoint", |steps| Rule::Midpoint { steps }),
    ("trapezoid", |steps| Rule::Trapezoid { steps }),
    ("gauss-legendre", |nodes| Rule::GaussLegendre { nodes }),
];

/// Examples that are traced together.
const CHUNK: usize = 4;

/// What a rule gives on some examples.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Accounts {
    accounts: Vec<Completeness>,
    gradients: Vec<usize>,
}

/// Runs the experiment along the subject's most rectified flow.
pub fn completeness(
    subject: &Subject,
    config: &CompletenessConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let flow = subject.best_flow("completeness")?;
    let examples = subject.examples(config.examples, config.seed)?;
    let rules = rules();
    let mut found = vec![Accounts::default(); rules.len()];
    let count = examples.targets.len();
    for first in (0..count).step_by(CHUNK) {
        let last = (first + CHUNK).min(count);
        let inputs = examples.inputs.slice(s![first..last, ..]);
        let settings = (subject.key(inputs), &rules);
        let part: Vec<Accounts> = store.part(&format!("completeness-{first:05}"), &settings, || {
            let traces =
                trace(flow.flow, inputs, &TraceConfig { consistency_steps: 0, ..TraceConfig::default() })?;
            rules
                .iter()
                .map(|(_, rule)| account(subject, *rule, &traces, &examples.targets[first..last]))
                .collect()
        })?;
        for (all, part) in found.iter_mut().zip(part) {
            all.accounts.extend(part.accounts);
            all.gradients.extend(part.gradients);
        }
        tell(&format!("completeness: {last} of {count} examples"));
    }
    let summaries: Vec<Option<ResidualSummary>> = found
        .iter()
        .map(|f| ResidualSummary::of(&f.accounts.iter().map(|a| Some(*a)).collect::<Vec<_>>()))
        .collect();
    let mut rows = Vec::new();
    for (((name, rule), found), summary) in rules.iter().zip(&found).zip(&summaries) {
        let paper = |place: usize| match rule {
            Rule::Left { steps } => PAPER.iter().find(|(k, _)| k == steps).map(|(_, figures)| figures[place]),
            _ => None,
        };
        if let Some(summary) = summary {
            rows.push(Row::of(
                name,
                "MAE",
                &found.accounts.iter().map(|a| a.residual).collect::<Vec<_>>(),
                paper(0),
            ));
            let one =
                |metric: &str, value: f64, paper| Row { n: count, ..Row::of(name, metric, &[value], paper) };
            rows.extend(
                summary.residual.standard_deviation.map(|sd| one("standard deviation", sd, paper(1))),
            );
            rows.extend(summary.residual.standard_error.map(|sem| one("SEM", sem, paper(2))));
            rows.extend(summary.relative.map(|relative| one("relative error", relative, paper(3))));
        }
        let gradients: Vec<f64> = found.gradients.iter().map(|g| *g as f64).collect();
        rows.push(Row::of(name, "gradient evaluations", &gradients, None));
    }
    let steps = PAPER.map(|(k, _)| k);
    let relative = |place: usize| summaries[place].as_ref().and_then(|s| s.relative).filter(|r| *r > 0.0);
    let mut series = Vec::new();
    for (colour, (name, maker)) in RULES.into_iter().enumerate() {
        let places = colour * steps.len()..(colour + 1) * steps.len();
        let points: Vec<(usize, f64)> =
            steps.into_iter().zip(places).filter_map(|(k, place)| Some((k, relative(place)?))).collect();
        let (sizes, errors): (Vec<usize>, Vec<f64>) = points.iter().copied().unzip();
        if maker(2).order().is_some() && sizes.len() == steps.len() {
            let paper = PAPER.map(|(_, figures)| figures[3]);
            let paper = (name == "left").then(|| log_slope(&steps, &paper));
            let slope = log_slope(&sizes, &errors);
            rows.push(Row::of(name, "slope of log relative error over log K", &[slope], paper));
        }
        let points = points.into_iter().map(|(k, error)| (k as f64, error)).collect();
        series.push(Series { name: name.to_string(), points, mark: Mark::Line, colour });
    }
    let paper = PAPER.iter().map(|(k, figures)| (*k as f64, figures[3])).collect();
    series.push(Series {
        name: "left, paper (CUB-200)".into(),
        points: paper,
        mark: Mark::Dashed,
        colour: 7,
    });
    let adaptive = RULES.len() * steps.len();
    let points = (adaptive..rules.len()).filter_map(|place| {
        let gradients = found[place].gradients.iter().sum::<usize>() as f64 / count as f64;
        Some((gradients, relative(place)?))
    });
    series.push(Series { name: "adaptive".into(), points: points.collect(), mark: Mark::Dots, colour: 6 });
    let chart = Chart {
        title: format!("{}: credit and the score's change", subject.name),
        x: ("gradient evaluations".into(), Scale::Log),
        y: ("relative error".into(), Scale::Log),
        series,
    };
    let table = Table {
        name: "completeness".into(),
        scale: format!("{}, {count} examples along {}, seed {}", subject.name, flow.name, config.seed),
        rows,
    };
    Ok((table, vec![Figure { file: "completeness.svg".into(), svg: chart.svg() }]))
}

/// Every rule at every size, and the adaptive one at its tolerance and at the cost of the paper's default.
fn rules() -> Vec<(String, Rule)> {
    let mut rules = Vec::new();
    for (name, maker) in RULES {
        rules.extend(PAPER.map(|(k, _)| (format!("{name}, K = {k}"), maker(k))));
    }
    rules.push(("adaptive, 1e-3".to_string(), Rule::adaptive(1e-3)));
    let bounded = Rule::Adaptive { tolerance: 1e-3, max_gradients: 50, map_tolerance: None };
    rules.push(("adaptive, at most 50 gradients".to_string(), bounded));
    rules
}

fn account(subject: &Subject, rule: Rule, traces: &[brenier::Trace], targets: &[usize]) -> Result<Accounts> {
    let explanations = PathIntegral::new(rule).explain_batch(subject.model, traces, targets)?;
    Ok(Accounts {
        accounts: explanations.iter().filter_map(|e| e.certificate.completeness).collect(),
        gradients: explanations.iter().map(|e| e.certificate.gradient_evaluations).collect(),
    })
}
