//! Appendix F.3: attribution error against field mismatch, and neighbourhoods along the path.
//!
//! ```text
//! RAE_m = mean over inputs of |Phi_m - Phi*| / |Phi*|        credit along the flow's trace against the oracle's
//! RFE_m = mean over inputs of |v_m - v*| / |v*|              on the same trace
//! ```
//!
//! in the paper's ten-dimensional world, for a score that is smooth, bounded and has interactions: a sum of
//! hyperbolic tangents of random directions. The stability theorem says that the first is small where the second
//! is. The flows are checkpoints of a 1-RF and of the 2-RF that follows it, at steps that double. Each stage is a
//! training of its own that goes on from the last one's weights.
//!
//! The second panel asks how many of an input's nearest neighbours in the data are still its nearest at time `t`.
//! In this world it has an exact answer for every flow, which is not 1 even for the oracle: maps stretch.

use brenier::engine::EngineConfig;
use brenier::evaluate::pearson;
use brenier::flow::{OnnxFlow, Pairs, TrainConfig};
use brenier::problems::TanhSum;
use brenier::report::{Axes, Chart, Mark, Panels, Scale, Series};
use brenier::{
    Path, PathIntegral, Reference, Result, Rule, Scheme, Solver, Store, Trace, TraceConfig, VelocityField,
    neighbourhood_preservation, relative_attribution_error, trace,
};
use ndarray::{Array1, Array2, ArrayView2};
use onnx_grad::Model;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::levels::{Levels, LevelsConfig};
use super::world::{STEPS, World};
use super::{Scale as Size, check_size};
use crate::{Figure, Row, Table};

/// Terms of the score.
const TERMS: usize = 8;
/// Nodes of the quadrature: the score is smooth.
const NODES: usize = 16;
/// Times at which neighbourhoods are looked at: tenths.
const TENTHS: usize = 10;

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MismatchConfig {
    /// How large it is, in a word.
    pub scale: Size,
    /// The number of seeds.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
    /// The trainings.
    pub levels: LevelsConfig,
    /// Checkpoints of each of the two levels, the steps doubling from one to the next.
    pub checkpoints: u32,
    /// Inputs that are explained.
    pub inputs: usize,
    /// Neighbours that an input has.
    pub neighbours: usize,
}

impl MismatchConfig {
    /// The settings of a scale.
    pub fn at(scale: Size, engine: &EngineConfig) -> MismatchConfig {
        let sized = |steps, batch, pairs| LevelsConfig { pairs, ..LevelsConfig::sized(steps, batch, engine) };
        let (levels, checkpoints, inputs) = match scale {
            Size::Quick => (sized(256, 256, 2048), 3, 64),
            Size::Full => (sized(4096, 1024, 20_000), 8, 500),
        };
        MismatchConfig {
            scale,
            seeds: scale.seeds(),
            first_seed: 0,
            levels,
            checkpoints,
            inputs,
            neighbours: 10,
        }
    }
}

/// What is found of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Found {
    flow: String,
    field_error: f64,
    attribution_error: f64,
    /// Neighbourhood preservation at tenths of the time, where it is looked at.
    neighbourhoods: Vec<f64>,
}

/// Runs the experiment: its table and the two panels of the paper's figure.
pub fn field_mismatch(
    config: &MismatchConfig,
    store: &Store,
    progress: &mut dyn FnMut(&str),
) -> Result<(Table, Vec<Figure>)> {
    check_size(&[("seeds", config.seeds), ("checkpoints", config.checkpoints.into())])?;
    config.levels.check()?;
    let world = World::paper()?;
    let mut seeds: Vec<Vec<Found>> = Vec::new();
    for seed in config.first_seed..config.first_seed + config.seeds {
        let settings = (config.levels.essential(), config.checkpoints, config.inputs, config.neighbours);
        seeds.push(store.part(&format!("field-mismatch-{seed}"), &settings, || {
            let study = Study::new(&world, config, seed)?;
            study.run(progress)
        })?);
    }
    let mut rows = Vec::new();
    let correlations = |of: fn(f64) -> f64| -> Vec<f64> {
        let one = |found: &Vec<Found>| {
            let flows = found.iter().filter(|f| f.field_error > 1e-9);
            let (x, y): (Vec<f64>, Vec<f64>) =
                flows.map(|f| (of(f.field_error), of(f.attribution_error))).unzip();
            // Flows whose errors do not vary tell nothing.
            pearson(&x, &y).unwrap_or(0.0)
        };
        seeds.iter().map(one).collect()
    };
    rows.push(Row::of(
        "all flows but the oracle",
        "Pearson correlation of RAE and RFE",
        &correlations(|v| v),
        None,
    ));
    let logs = correlations(f64::ln);
    rows.push(Row::of("all flows but the oracle", "Pearson correlation of their logarithms", &logs, None));
    for (place, found) in seeds[0].iter().enumerate() {
        let mut row = |metric: &str, value: &dyn Fn(&Found) -> f64| {
            let values: Vec<f64> = seeds.iter().map(|all| value(&all[place])).collect();
            rows.push(Row::of(&found.flow, metric, &values, None));
        };
        row("relative field error", &|f| f.field_error);
        row("relative attribution error", &|f| f.attribution_error);
        if !found.neighbourhoods.is_empty() {
            row("neighbourhood preservation, t = 0", &|f| f.neighbourhoods[0]);
            row("neighbourhood preservation, t = 1/2", &|f| f.neighbourhoods[TENTHS / 2]);
        }
    }
    let table = Table {
        name: "field-mismatch".into(),
        scale: format!(
            "{}: d = 10, {} seeds, {} inputs, {} neighbours, {} checkpoints a level, up to {} steps",
            config.scale.name(),
            config.seeds,
            config.inputs,
            config.neighbours,
            config.checkpoints,
            config.levels.first.steps
        ),
        rows,
    };
    let panels = Panels {
        title: "Ten dimensions: what a flow's error does to credit, and what paths do to neighbours".into(),
        charts: vec![error_chart(&seeds), neighbour_chart(&seeds[0], config.neighbours)],
        axes: Axes::Own,
    };
    Ok((table, vec![Figure { file: "field-mismatch.svg".into(), svg: panels.svg() }]))
}

/// One seed: a score, inputs, and the oracle's credit.
struct Study<'a> {
    levels: Levels<'a>,
    config: &'a MismatchConfig,
    score: TanhSum,
    inputs: Array2<f64>,
    best: Vec<Array1<f64>>,
}

impl<'a> Study<'a> {
    fn new(world: &'a World, config: &'a MismatchConfig, seed: u64) -> Result<Study<'a>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_0030);
        let d = world.dimension();
        let mut normal = |scale: f64| -> f64 {
            let z: f64 = StandardNormal.sample(&mut rng);
            scale * z
        };
        let amplitudes = Array1::from_shape_simple_fn(TERMS, || normal(1.0));
        // Directions of such a length that the tangents are neither straight nor flat over the data.
        let directions = Array2::from_shape_simple_fn((TERMS, d), || normal(0.2));
        let score = TanhSum::new(amplitudes, directions)?;
        let inputs = world.to.sample(config.inputs, &mut rng);
        let levels = Levels { world, config: &config.levels, seed };
        let mut study = Study { levels, config, score, inputs, best: Vec::new() };
        study.best = study.credit(&study.traces(&world.optimal)?)?;
        Ok(study)
    }

    fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<Vec<Found>> {
        let world = self.levels.world;
        let mut all = Vec::new();
        let mut note = |flow: &str, field: &dyn VelocityField, neighbours: bool| -> Result<()> {
            let found = self.look_at(flow, field, neighbours)?;
            progress(&format!(
                "seed {}, {flow}: relative field error {:.5}, relative attribution error {:.5}",
                self.levels.seed, found.field_error, found.attribution_error
            ));
            all.push(found);
            Ok(())
        };
        note("OT oracle", &world.optimal, true)?;
        note("1-RF exact", &world.rectified, true)?;
        let training = &self.config.levels;
        let mut model = self.levels.initial()?;
        for level in [1, 2] {
            // The second level learns from the ends of the finished first one.
            let ends = match level {
                1 => None,
                _ => Some(
                    self.levels.reflow_pairs(&OnnxFlow::new(model.clone(), &training.first.engine)?, 2)?,
                ),
            };
            let settings = if level == 1 { &training.first } else { &training.later };
            for (stage, (done, steps)) in
                stages(settings.steps, self.config.checkpoints).into_iter().enumerate()
            {
                let last = stage as u32 + 1 == self.config.checkpoints;
                let flow = match &ends {
                    Some(pairs) => self.stage(&model, pairs, settings, steps)?,
                    None => self.stage(&model, &self.levels.fresh_pairs(stage as u64), settings, steps)?,
                };
                let name = if last { format!("{level}-RF") } else { format!("{level}-RF, {done} steps") };
                note(&name, &flow, last)?;
                model = flow.model().clone();
            }
        }
        Ok(all)
    }

    fn stage(
        &self,
        model: &Model,
        pairs: &dyn Pairs,
        settings: &TrainConfig,
        steps: u64,
    ) -> Result<OnnxFlow> {
        let training = TrainConfig { steps, warmup_steps: steps.min(40) / 4, ..settings.clone() };
        self.levels.train(model, pairs, &training)
    }

    fn look_at(&self, name: &str, field: &dyn VelocityField, neighbours: bool) -> Result<Found> {
        let traces = self.traces(field)?;
        let trajectories: Vec<_> = traces.iter().map(|trace| trace.trajectory().clone()).collect();
        let count = traces.len() as f64;
        let mut attribution_error = 0.0;
        for (credit, best) in self.credit(&traces)?.iter().zip(&self.best) {
            attribution_error += relative_attribution_error(credit.view(), best.view())? / count;
        }
        let mut neighbourhoods = Vec::new();
        for tenth in 0..=TENTHS * usize::from(neighbours) {
            if !neighbours {
                break;
            }
            let states = states_at(&traces, tenth as f64 / TENTHS as f64);
            neighbourhoods.push(neighbourhood_preservation(
                self.inputs.view(),
                states.view(),
                self.config.neighbours,
            )?);
        }
        Ok(Found {
            flow: name.to_owned(),
            field_error: self.levels.world.field_errors(&trajectories)?.iter().sum::<f64>() / count,
            attribution_error,
            neighbourhoods,
        })
    }

    /// The inputs traced back on the paper's grid.
    fn traces(&self, field: &dyn VelocityField) -> Result<Vec<Trace>> {
        let config = TraceConfig {
            solver: Solver::fixed(Scheme::Rk4, STEPS),
            consistency_steps: 0,
            reference: Reference::StandardNormal,
            ..TraceConfig::default()
        };
        trace(field, self.inputs.view(), &config)
    }

    fn credit(&self, traces: &[Trace]) -> Result<Vec<Array1<f64>>> {
        let integral = PathIntegral::new(Rule::GaussLegendre { nodes: NODES });
        let explained = integral.explain_batch(&self.score, traces, &vec![0; traces.len()])?;
        Ok(explained.into_iter().map(|explanation| explanation.values).collect())
    }
}

/// Where every path is at a time.
fn states_at(traces: &[Trace], t: f64) -> Array2<f64> {
    let states: Vec<Array1<f64>> = traces.iter().map(|trace| trace.at(t)).collect();
    let views: Vec<ArrayView2<f64>> =
        states.iter().map(|state| state.view().insert_axis(ndarray::Axis(0))).collect();
    ndarray::concatenate(ndarray::Axis(0), &views).unwrap_or_default()
}

/// Checkpoints whose steps double up to the last: the steps done at each, and since the one before.
fn stages(steps: u64, count: u32) -> Vec<(u64, u64)> {
    let mut before = 0;
    (0..count)
        .rev()
        .map(|halvings| {
            let done = (steps >> halvings.min(63)).max(before + 1);
            let stage = (done, done - before);
            before = done;
            stage
        })
        .collect()
}

fn error_chart(seeds: &[Vec<Found>]) -> Chart {
    let dots = |name: &str, colour, chosen: &dyn Fn(&Found) -> bool| Series {
        name: name.into(),
        points: seeds
            .iter()
            .flatten()
            .filter(|found| chosen(found))
            .map(|found| (found.field_error, found.attribution_error))
            .collect(),
        mark: Mark::Dots,
        colour,
    };
    Chart {
        title: "Attribution error over field error".into(),
        x: ("relative field error".into(), Scale::Log),
        y: ("relative attribution error".into(), Scale::Log),
        series: vec![
            dots("1-RF and its checkpoints", 1, &|f| f.flow.starts_with("1-RF") && f.flow != "1-RF exact"),
            dots("2-RF and its checkpoints", 0, &|f| f.flow.starts_with("2-RF")),
            dots("1-RF, exact", 6, &|f| f.flow == "1-RF exact"),
        ],
    }
}

fn neighbour_chart(found: &[Found], neighbours: usize) -> Chart {
    let lines = [("OT oracle", 7), ("1-RF exact", 6), ("1-RF", 1), ("2-RF", 0)];
    let series = lines
        .into_iter()
        .filter_map(|(flow, colour)| {
            let found = found.iter().find(|f| f.flow == flow)?;
            let points = found.neighbourhoods.iter().enumerate();
            let points = points.map(|(k, kept)| (k as f64 / TENTHS as f64, *kept)).collect();
            let exact = flow == "OT oracle" || flow == "1-RF exact";
            let mark = if exact { Mark::Dashed } else { Mark::Line };
            Some(Series { name: flow.into(), points, mark, colour })
        })
        .collect();
    Chart {
        title: "Neighbourhood preservation".into(),
        x: ("time t (1: data)".into(), Scale::Linear),
        y: (format!("kept of {neighbours} nearest"), Scale::Linear),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_double_and_add_up() {
        assert_eq!(stages(64, 4), [(8, 8), (16, 8), (32, 16), (64, 32)]);
        let short = stages(4, 5);
        assert_eq!(short.iter().map(|s| s.1).sum::<u64>(), short[4].0);
        assert!(short.iter().all(|s| s.1 > 0));
    }

    #[test]
    fn better_fields_give_better_credit_and_oracle_paths_keep_more_neighbours() {
        let config = MismatchConfig::at(Size::Quick, &EngineConfig::default());
        let (table, figures) = field_mismatch(&config, &Store::nowhere(), &mut |_| {}).unwrap();
        let value = |method: &str, metric: &str| {
            table.rows.iter().find(|r| r.method == method && r.metric == metric).unwrap().mean
        };
        assert!(value("all flows but the oracle", "Pearson correlation of RAE and RFE") > 0.7);
        assert!(value("OT oracle", "relative attribution error") < 1e-9);
        let error = |flow| value(flow, "relative attribution error");
        assert!(error("2-RF") < 0.8 * error("1-RF"), "{} {}", error("2-RF"), error("1-RF"));
        // The ends of the exact 1-RF are optimal, so at t = 0 it has lost the same neighbours as the oracle;
        // on the way it is more curved.
        let kept = |flow, t: &str| value(flow, &format!("neighbourhood preservation, t = {t}"));
        assert!((kept("OT oracle", "0") - kept("1-RF exact", "0")).abs() < 0.01);
        assert!(kept("OT oracle", "1/2") > kept("OT oracle", "0"));
        assert!(figures[0].svg.contains("kept of 10 nearest") && !figures[0].svg.contains("NaN"));
    }
}
