//! Straight is not optimal: Gaussians whose covariances have different axes.
//!
//! ```text
//! N(0, diag(4, 1/4)) -> N(0, [[1, 0.9], [0.9, 1]])      in one plane, and in five planes at once (d = 10)
//! ```
//!
//! The covariances do not commute, so the ends of the exact 1-RF are not optimally coupled: their straight lines,
//! which is what an exact Reflow makes of them, cost 65 % more than W2^2, in one plane as in five. Reflow
//! straightens; it does not make optimal.
//!
//! What does is the coupling. Pairs assigned optimally in groups of `n` cost, as a coupling of the two Gaussians,
//!
//! ```text
//! E |z1 - z0|^2  >=  A(1-RF on these pairs)  >=  E |x1 - x0|^2  >=  W2^2
//! ```
//!
//! (the conditional mean is no longer than what it is the mean of; a straight line is no longer than a path). The
//! first falls towards W2^2 as `n` grows: fast in the plane, slowly in ten dimensions, where the nearest of `n` points
//! is far away. The second step of the ladder is what the flow gains over its own pairs, the third what Reflow gains.

use brenier::engine::EngineConfig;
use brenier::flow::MlpConfig;
use brenier::report::{Chart, Mark, Scale, Series};
use brenier::{Result, Store, VelocityField};
use serde::{Deserialize, Serialize};

use super::levels::{Levels, LevelsConfig};
use super::plane::{self, Sketch};
use super::world::{Measures, STEPS, World};
use super::{Collected, Scale as Size, check_size};
use crate::{Figure, Row, Table};

/// The number of planes in ten dimensions.
const PLANES: usize = 5;

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RotatedConfig {
    /// How large it is, in a word.
    pub scale: Size,
    /// The number of seeds.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
    /// The trainings in the plane.
    pub plane: LevelsConfig,
    /// Pairs that are assigned together in the plane.
    pub plane_group: usize,
    /// The trainings in ten dimensions, on assigned pairs only.
    pub ten: LevelsConfig,
    /// Pairs that are assigned together in ten dimensions, one flow for each.
    pub groups: Vec<usize>,
    /// Paths on which flows are measured.
    pub paths: usize,
}

impl RotatedConfig {
    /// The settings of a scale.
    pub fn at(scale: Size, engine: &EngineConfig) -> RotatedConfig {
        // The axes of the field turn with the time, so the network is wider than where they do not.
        let sized = |steps, batch, pairs| LevelsConfig {
            network: MlpConfig { width: 64, blocks: 0, ..MlpConfig::default() },
            pairs,
            ..LevelsConfig::sized(steps, batch, engine)
        };
        let (plane, plane_group, ten, groups, paths) = match scale {
            Size::Quick => (sized(300, 256, 2048), 128, sized(200, 256, 2048), vec![8, 64], 256),
            Size::Full => {
                let groups = vec![16, 64, 256, 1024];
                (sized(3000, 1024, 32_768), 1024, sized(3000, 1024, 32_768), groups, 2000)
            }
        };
        RotatedConfig { scale, seeds: scale.seeds(), first_seed: 0, plane, plane_group, ten, groups, paths }
    }
}

/// What a seed found: measures of flows, and the relative excess cost of assigned pairs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Found {
    flows: Vec<(String, Measures)>,
    couplings: Vec<(String, f64)>,
    /// Flows of the plane.
    sketches: Vec<Sketch>,
}

/// Runs the experiment: its table, the flows of the plane, and the gap over the number assigned together.
pub fn rotated_gaussian(
    config: &RotatedConfig,
    store: &Store,
    progress: &mut dyn FnMut(&str),
) -> Result<(Table, Vec<Figure>)> {
    check_size(&[
        ("seeds", config.seeds),
        ("paths", config.paths as u64),
        ("sizes of groups", config.groups.len() as u64),
    ])?;
    config.plane.check()?;
    config.ten.check()?;
    let worlds = [World::rotated(1)?, World::rotated(PLANES)?];
    let mut all = Vec::new();
    for seed in config.first_seed..config.first_seed + config.seeds {
        let settings = (
            (config.plane.essential(), config.plane_group),
            (config.ten.essential(), &config.groups, config.paths),
        );
        all.push(store.part(&format!("rotated-gaussian-{seed}"), &settings, || {
            let mut found = Found::default();
            in_the_plane(&worlds[0], config, seed, &mut found, progress)?;
            in_ten_dimensions(&worlds[1], config, seed, &mut found, progress)?;
            Ok(found)
        })?);
    }
    let mut rows = Vec::new();
    for (world, name) in worlds.iter().zip(["2-D", "10-D"]) {
        let distance = world.optimal.squared_distance();
        rows.push(Row::of(&format!("{name}: OT oracle"), "W2^2", &[distance], None));
        let gap = world.reflow_gap()?;
        rows.push(Row::of(&format!("{name}: exact Reflow of exact 1-RF"), "action gap", &[gap], None));
    }
    for (place, (method, _)) in all[0].couplings.iter().enumerate() {
        let gaps: Vec<f64> = all.iter().map(|found| found.couplings[place].1).collect();
        rows.push(Row::of(method, "gap of the coupling", &gaps, None));
    }
    let mut collected = Collected::default();
    all.iter().flat_map(|found| &found.flows).for_each(|(name, found)| collected.add(name, *found));
    rows.extend(collected.rows(|_, _| None));
    let groups = groups_chart(&config.groups, &rows, worlds[1].reflow_gap()?);
    let table = Table {
        name: "rotated-gaussian".into(),
        scale: format!(
            "{}: {} seeds, {} steps of {} pairs a level, {} paths of {STEPS} steps",
            config.scale.name(),
            config.seeds,
            config.plane.first.steps,
            config.plane.first.batch,
            config.paths
        ),
        rows,
    };
    let title = "Different axes: N(0, diag(4, 1/4)) to N(0, [[1, 0.9], [0.9, 1]])";
    let figures = vec![
        plane::figure("rotated-gaussian-plane.svg", title, &all[0].sketches),
        Figure { file: "rotated-gaussian-groups.svg".into(), svg: groups.svg() },
    ];
    Ok((table, figures))
}

fn in_the_plane(
    world: &World,
    config: &RotatedConfig,
    seed: u64,
    found: &mut Found,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let levels = Levels { world, config: &config.plane, seed };
    let starts = world.starts(config.paths, seed)?;
    let drawn = world.starts(plane::POINTS, seed ^ 0x5eed_0002)?;
    let mut note = |name: &str, field: &dyn VelocityField, drawn_as: Option<&str>| -> Result<()> {
        let name = format!("2-D: {name}");
        let measures = world.measure(field, starts.view())?;
        tell(seed, &name, &measures, progress);
        found.flows.push((name, measures));
        if let Some(title) = drawn_as {
            found.sketches.push(Sketch::of(title, field, drawn.view())?);
        }
        Ok(())
    };
    note("OT oracle", &world.optimal, Some("optimal transport"))?;
    note("1-RF exact", &world.rectified, None)?;
    let first = levels.first()?;
    note("1-RF", &first, Some("1-RF"))?;
    note("2-RF", &levels.next(&first, 2)?, Some("2-RF"))?;
    let (coupled, cost) = levels.coupled(config.plane_group)?;
    note("OT-coupled 1-RF", &coupled, None)?;
    note("OT-coupled 2-RF", &levels.next(&coupled, 2)?, Some("OT-coupled 2-RF"))?;
    let gap = cost / world.optimal.squared_distance() - 1.0;
    found.couplings.push((format!("2-D: pairs assigned by {}", config.plane_group), gap));
    Ok(())
}

fn in_ten_dimensions(
    world: &World,
    config: &RotatedConfig,
    seed: u64,
    found: &mut Found,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let levels = Levels { world, config: &config.ten, seed };
    let starts = world.starts(config.paths, seed)?;
    let mut note = |name: String, field: &dyn VelocityField| -> Result<()> {
        let measures = world.measure(field, starts.view())?;
        tell(seed, &name, &measures, progress);
        found.flows.push((name, measures));
        Ok(())
    };
    note("10-D: OT oracle".into(), &world.optimal)?;
    note("10-D: 1-RF exact".into(), &world.rectified)?;
    for &group in &config.groups {
        let (coupled, cost) = levels.coupled(group)?;
        note(method(1, group), &coupled)?;
        note(method(2, group), &levels.next(&coupled, 2)?)?;
        let gap = cost / world.optimal.squared_distance() - 1.0;
        found.couplings.push((assigned(group), gap));
    }
    Ok(())
}

fn method(level: u64, group: usize) -> String {
    format!("10-D: OT-coupled {level}-RF, assigned by {group}")
}

fn assigned(group: usize) -> String {
    format!("10-D: pairs assigned by {group}")
}

fn tell(seed: u64, name: &str, found: &Measures, progress: &mut dyn FnMut(&str)) {
    progress(&format!(
        "seed {seed}, {name}: action gap {:.4}, endpoint gap {:.4}, relative field error {:.4}",
        found.action_gap, found.endpoint_gap, found.field_error
    ));
}

/// Gaps in ten dimensions over the number of pairs that are assigned together.
fn groups_chart(groups: &[usize], rows: &[Row], reflow: f64) -> Chart {
    let line = |name: &str, colour, metric: &str, method: &dyn Fn(usize) -> String| Series {
        name: name.into(),
        points: groups
            .iter()
            .filter_map(|&group| {
                let row = rows.iter().find(|row| row.method == method(group) && row.metric == metric)?;
                Some((group as f64, row.mean))
            })
            .collect(),
        mark: Mark::Line,
        colour,
    };
    let ends = [groups.iter().min(), groups.iter().max()];
    let level = ends.iter().flatten().map(|&&group| (group as f64, reflow)).collect();
    Chart {
        title: "Ten dimensions, different axes: cost above the optimum".into(),
        x: ("pairs assigned together".into(), Scale::Log),
        y: ("relative excess over W2^2".into(), Scale::Log),
        series: vec![
            Series { name: "exact Reflow, no OT".into(), points: level, mark: Mark::Dashed, colour: 7 },
            line("the assigned pairs", 4, "gap of the coupling", &assigned),
            line("OT-coupled 1-RF", 1, "action gap", &|group| method(1, group)),
            line("OT-coupled 2-RF", 0, "action gap", &|group| method(2, group)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflow_straightens_and_the_coupling_makes_optimal() {
        let config = RotatedConfig::at(Size::Quick, &EngineConfig::default());
        let (table, figures) = rotated_gaussian(&config, &Store::nowhere(), &mut |_| {}).unwrap();
        let value = |method: &str, metric: &str| {
            table.rows.iter().find(|r| r.method == method && r.metric == metric).unwrap().mean
        };
        let exact = value("2-D: exact Reflow of exact 1-RF", "action gap");
        let reflow = value("2-D: 2-RF", "action gap");
        assert!(reflow < 0.8 * value("2-D: 1-RF", "action gap"), "straighter: {reflow}");
        assert!(reflow > 0.5 * exact, "not optimal: {reflow} of {exact}");
        let coupled = value("2-D: OT-coupled 2-RF", "action gap");
        assert!(coupled.abs() < 0.25 * reflow, "{coupled} against {reflow}");
        // Pairs cost more than the flow that learns from them, and large groups less than small ones.
        let pairs = |group| value(&assigned(group), "gap of the coupling");
        assert!(pairs(64) < 0.8 * pairs(8));
        assert!(value(&method(1, 64), "action gap") < pairs(64));
        assert!(value(&method(2, 64), "action gap") < value(&method(2, 8), "action gap"));
        assert_eq!(figures.len(), 2);
        assert!(figures.iter().all(|figure| !figure.svg.contains("NaN")));
        assert_eq!(figures[0].svg.matches("first coordinate").count(), 4, "four panels");
    }
}
