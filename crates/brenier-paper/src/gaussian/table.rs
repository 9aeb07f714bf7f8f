//! The table of appendix F.2: 1-RF, 2-RF, 3-RF and an OT-coupled 1-RF beside the oracle and the exact 1-RF.
//!
//! With N(0, I) at one end the covariances commute, so the ends of the exact 1-RF are optimally coupled and one
//! exact Reflow is optimal transport: what is left after it is the error of learning.

use brenier::engine::EngineConfig;
use brenier::{Result, Store, VelocityField};
use serde::{Deserialize, Serialize};

use super::levels::{Levels, LevelsConfig};
use super::plane::{self, Sketch};
use super::world::{DIMENSION, Measures, SQUARED_DISTANCE, STEPS, World};
use super::{Collected, Scale, check_size};
use crate::{Figure, Row, Table};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GaussianConfig {
    /// How large it is, in a word.
    pub scale: Scale,
    /// The number of seeds; the paper has 5.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
    /// The trainings in ten dimensions.
    pub levels: LevelsConfig,
    /// Pairs that are assigned together for the OT-coupled flow.
    pub group: usize,
    /// Paths on which flows are measured.
    pub paths: usize,
    /// The trainings in the plane, for the picture.
    pub plane: LevelsConfig,
}

impl GaussianConfig {
    /// The settings of a scale.
    pub fn at(scale: Scale, engine: &EngineConfig) -> GaussianConfig {
        let sized = |steps, batch| LevelsConfig::sized(steps, batch, engine);
        let (levels, plane, group, paths) = match scale {
            Scale::Quick => {
                let small = |levels| LevelsConfig { pairs: 2048, ..levels };
                (small(sized(300, 256)), small(sized(200, 256)), 64, 256)
            }
            Scale::Full => {
                let ten = sized(FIRST_STEPS, FIRST_BATCH);
                (ten.later_steps(LATER_STEPS), sized(2000, 1024), 256, 2000)
            }
        };
        GaussianConfig { scale, seeds: scale.seeds(), first_seed: 0, levels, group, paths, plane }
    }
}

/// The first level sees 290 million pairs: what is left of their noise is what is left after Reflow.
const FIRST_STEPS: u64 = 70_000;
const FIRST_BATCH: usize = 4096;
const LATER_STEPS: u64 = 5000;

/// Runs the experiment: its table, and the picture of the same in the plane. `progress` is told what has been done.
pub fn gaussian(
    config: &GaussianConfig,
    store: &Store,
    progress: &mut dyn FnMut(&str),
) -> Result<(Table, Vec<Figure>)> {
    check_size(&[("seeds", config.seeds), ("paths", config.paths as u64)])?;
    config.levels.check()?;
    config.plane.check()?;
    let world = World::paper()?;
    let mut collected = Collected::default();
    for seed in config.first_seed..config.first_seed + config.seeds {
        let settings = (config.levels.essential(), config.group, config.paths);
        let found = store
            .part(&format!("gaussian-{seed}"), &settings, || one_seed(&world, config, seed, progress))?;
        found.iter().for_each(|(method, measures)| collected.add(method, *measures));
    }
    let distance = world.optimal.squared_distance();
    let mut rows = vec![Row::of("OT oracle", "W2^2", &[distance], Some(SQUARED_DISTANCE))];
    rows.extend(collected.rows(paper));
    let training = &config.levels.first;
    let table = Table {
        name: "gaussian".into(),
        scale: format!(
            "{}: d = {DIMENSION}, {} seeds, first level {} steps of {} pairs, {} paths of {STEPS} steps",
            config.scale.name(),
            config.seeds,
            training.steps,
            training.batch,
            config.paths
        ),
        rows,
    };
    let seed = config.first_seed;
    let settings = (config.plane.essential(), seed);
    let sketches = store.part("gaussian-plane", &settings, || {
        progress("training in the plane, for the picture");
        picture(&config.plane, seed)
    })?;
    let title = "Between Gaussians in the plane: N(0, I) to N((4, 2), diag(0.25, 3.24))";
    Ok((table, vec![plane::figure("gaussian-plane.svg", title, &sketches)]))
}

fn one_seed(
    world: &World,
    config: &GaussianConfig,
    seed: u64,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<(String, Measures)>> {
    let levels = Levels { world, config: &config.levels, seed };
    let starts = world.starts(config.paths, seed)?;
    let mut all = Vec::new();
    let mut note = |name: &str, field: &dyn VelocityField| -> Result<()> {
        let found = world.measure(field, starts.view())?;
        progress(&format!(
            "seed {seed}, {name}: action gap {:.5}, relative field error {:.5}, curvature {:.4}",
            found.action_gap, found.field_error, found.curvature
        ));
        all.push((name.to_owned(), found));
        Ok(())
    };
    note("OT oracle", &world.optimal)?;
    note("1-RF exact", &world.rectified)?;
    let mut flow = levels.first()?;
    note("1-RF", &flow)?;
    for level in [2, 3] {
        flow = levels.next(&flow, level)?;
        note(&format!("{level}-RF"), &flow)?;
    }
    note("OT-coupled 1-RF", &levels.coupled(config.group)?.0)?;
    Ok(all)
}

/// The flows of the plane, drawn.
fn picture(config: &LevelsConfig, seed: u64) -> Result<Vec<Sketch>> {
    let world = World::plane()?;
    let levels = Levels { world: &world, config, seed };
    let first = levels.first()?;
    let second = levels.next(&first, 2)?;
    let starts = world.starts(plane::POINTS, seed)?;
    let flows: [(&str, &dyn VelocityField); 3] =
        [("optimal transport", &world.optimal), ("1-RF", &first), ("2-RF", &second)];
    flows.into_iter().map(|(name, field)| Sketch::of(name, field, starts.view())).collect()
}

/// The paper's table.
fn paper(method: &str, metric: &str) -> Option<f64> {
    let figures = match method {
        "OT oracle" => [0.0, 0.0, 3.45e-5],
        "1-RF" => [0.2205, 0.2933, 0.0763],
        "2-RF" => [0.00189, 0.00284, 4.85e-4],
        "3-RF" => [0.00199, 0.00276, 4.35e-4],
        _ => return None,
    };
    let metrics = ["action gap", "relative field error", "curvature proxy"];
    metrics.iter().position(|name| *name == metric).map(|place| figures[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_training_has_the_papers_order_and_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(folder.path());
        let config = GaussianConfig::at(Scale::Quick, &EngineConfig::default());
        let mut lines = 0;
        let (table, figures) = gaussian(&config, &store, &mut |_| lines += 1).unwrap();
        assert_eq!((lines, table.rows.len()), (7, 25));
        let value = |method: &str, metric: &str| {
            table.rows.iter().find(|r| r.method == method && r.metric == metric).unwrap().mean
        };
        for metric in ["relative field error", "curvature proxy"] {
            assert!(value("2-RF", metric) < 0.7 * value("1-RF", metric), "{metric}");
            assert!(value("OT-coupled 1-RF", metric) < value("1-RF", metric), "{metric}");
        }
        assert!(figures[0].svg.matches("<polyline").count() > 30);
        let again = gaussian(&config, &store, &mut |line| panic!("done already: {line}")).unwrap();
        assert_eq!(again, (table, figures));
    }

    #[test]
    fn an_experiment_of_size_zero_is_refused() {
        let config =
            GaussianConfig { paths: 0, ..GaussianConfig::at(Scale::Quick, &EngineConfig::default()) };
        let message = gaussian(&config, &Store::nowhere(), &mut |_| {}).unwrap_err().to_string();
        assert!(message.contains("1 seeds, 0 paths"), "{message}");
    }
}
