//! The metrics by name, and one way to call them all.
//!
//! ```text
//! metric (settings) + cases  ->  a number for each example
//! ```
//!
//! A [`Metric`] is a plain value: it can be written to a file and compared. What a metric needs besides the
//! explanations is in the [`Cases`]; [`Metric::missing`] says in words what is not there, which a table shows as a
//! dash, as the paper does for the straightness of methods without a path.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    Cases, Channels, EdgeAlignment, FaithfulnessCorrelation, Infidelity, MaxSensitivity, ModelRandomisation,
    Order, PathGrid, PixelVariance, PlantedTruth, RankCorrelation, Removal, Satv, Ssim, Subsets, Units,
    completeness, relative_attribution_error,
};
use crate::attribute::Baseline;
use crate::{Error, Result};

/// Which values of a metric are the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// It describes; neither is better.
    Neither,
}

/// A metric with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "metric", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Metric {
    // The account.
    /// Completeness residual.
    CompletenessResidual,
    /// Completeness residual over the score's change.
    RelativeResidual,
    // The path.
    /// Kinetic action.
    Action(PathGrid),
    /// Geometric Path Straightness.
    Gps(PathGrid),
    /// Flow Consistency Error.
    Fce(PathGrid),
    /// Defect of the path as a solution of the flow.
    FlowDefect(PathGrid),
    /// Relative error of a field against another along the path.
    FieldError(PathGrid),
    // The map.
    /// Structure-Aware Total Variation.
    Satv(Satv),
    /// Edge Alignment Score.
    Eas(EdgeAlignment),
    // What the score does when parts are replaced.
    /// Deletion and insertion.
    Removal(Removal),
    /// Infidelity.
    Infidelity(Infidelity),
    /// Faithfulness correlation.
    FaithfulnessCorrelation(FaithfulnessCorrelation),
    // Other explanations of the same input.
    /// Relative attribution error against reference explanations.
    Rae,
    /// Pixel variance across seeds.
    PixelVariance(PixelVariance),
    /// Structural similarity across seeds.
    Ssim(Ssim),
    /// Rank correlation across seeds.
    RankCorrelation(RankCorrelation),
    // The method asked again.
    /// Max-sensitivity.
    MaxSensitivity(MaxSensitivity),
    /// The model-randomisation check.
    ModelRandomisation(ModelRandomisation),
    // A planted truth.
    /// Mass accuracy.
    MassAccuracy(PlantedTruth),
    /// Rank accuracy.
    RankAccuracy(PlantedTruth),
    /// Pointing game.
    PointingGame(PlantedTruth),
}

/// What is common to the settings of many metrics. What is not given is each metric's own default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricSettings {
    /// How channels become one map.
    pub channels: Option<Channels>,
    /// Steps of a path's grid, and fractions of deletion and insertion.
    pub steps: Option<usize>,
    /// Number of draws.
    pub samples: Option<usize>,
    /// What is removed together.
    pub units: Option<Units>,
    /// Standard deviation of a blur in pixels.
    pub sigma: Option<f64>,
    /// Seed of all draws.
    pub seed: u64,
}

/// The names of all metrics.
const NAMES: &[&str] = &[
    "completeness-residual",
    "relative-residual",
    "action",
    "gps",
    "fce",
    "flow-defect",
    "field-error",
    Satv::NAME,
    EdgeAlignment::NAME,
    "deletion-zero",
    "deletion-blur",
    "insertion-zero",
    "insertion-blur",
    Infidelity::NAME,
    FaithfulnessCorrelation::NAME,
    "rae",
    PixelVariance::NAME,
    Ssim::NAME,
    RankCorrelation::NAME,
    MaxSensitivity::NAME,
    ModelRandomisation::NAME,
    "mass-accuracy",
    "rank-accuracy",
    "pointing-game",
];

impl Metric {
    /// The names of all metrics. Deletion and insertion are also there under other replacements.
    pub fn names() -> &'static [&'static str] {
        NAMES
    }

    /// A metric by its name.
    ///
    /// # Errors
    /// If there is none of this name; the nearest one is suggested.
    pub fn new(name: &str, settings: &MetricSettings) -> Result<Metric> {
        let seed = settings.seed;
        let grid = PathGrid { steps: settings.steps.unwrap_or(PathGrid::default().steps) };
        let blur = Baseline::Blur { sigma: settings.sigma };
        let channels = settings.channels;
        let removal = |order, replacement| {
            let default = Removal::default();
            let steps = settings.steps.unwrap_or(default.steps);
            let units = settings.units.clone().unwrap_or_default();
            Metric::Removal(Removal { order, replacement, units, channels, steps, seed })
        };
        let subsets = || {
            let default = Subsets::default();
            let samples = settings.samples.unwrap_or(default.samples);
            let units = settings.units.clone().unwrap_or_default();
            Subsets { samples, units, seed, ..default }
        };
        let map = channels.unwrap_or_default();
        let planted = PlantedTruth { channels: channels.unwrap_or(PlantedTruth::default().channels) };
        Ok(match name {
            "completeness-residual" => Metric::CompletenessResidual,
            "relative-residual" => Metric::RelativeResidual,
            "action" => Metric::Action(grid),
            "gps" => Metric::Gps(grid),
            "fce" => Metric::Fce(grid),
            "flow-defect" => Metric::FlowDefect(grid),
            "field-error" => Metric::FieldError(grid),
            Satv::NAME => Metric::Satv(Satv { channels: map, ..Satv::default() }),
            EdgeAlignment::NAME => Metric::Eas(EdgeAlignment { channels: map, ..EdgeAlignment::default() }),
            "deletion-zero" => removal(Order::Deletion, Baseline::Zero),
            "deletion-blur" => removal(Order::Deletion, blur),
            "insertion-zero" => removal(Order::Insertion, Baseline::Zero),
            "insertion-blur" => removal(Order::Insertion, blur),
            Infidelity::NAME => {
                Metric::Infidelity(Infidelity { subsets: subsets(), ..Infidelity::default() })
            }
            FaithfulnessCorrelation::NAME => {
                Metric::FaithfulnessCorrelation(FaithfulnessCorrelation { subsets: subsets() })
            }
            "rae" => Metric::Rae,
            PixelVariance::NAME => {
                Metric::PixelVariance(PixelVariance { channels: map, ..PixelVariance::default() })
            }
            Ssim::NAME => Metric::Ssim(Ssim { channels: map, ..Ssim::default() }),
            RankCorrelation::NAME => Metric::RankCorrelation(RankCorrelation { channels }),
            MaxSensitivity::NAME => {
                let default = MaxSensitivity::default();
                let samples = settings.samples.unwrap_or(default.samples);
                Metric::MaxSensitivity(MaxSensitivity { samples, seed, ..default })
            }
            ModelRandomisation::NAME => {
                let default = ModelRandomisation::default();
                let channels = channels.unwrap_or(default.channels);
                Metric::ModelRandomisation(ModelRandomisation { channels, seed, ..default })
            }
            "mass-accuracy" => Metric::MassAccuracy(planted),
            "rank-accuracy" => Metric::RankAccuracy(planted),
            "pointing-game" => Metric::PointingGame(planted),
            _ => {
                let nearest = crate::nearest_name(name, NAMES).unwrap_or_default();
                return Err(Error::UnknownMetric { found: name.to_string(), nearest, known: NAMES.to_vec() });
            }
        })
    }

    /// The name on the command line and in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Metric::CompletenessResidual => "completeness-residual",
            Metric::RelativeResidual => "relative-residual",
            Metric::Action(_) => "action",
            Metric::Gps(_) => "gps",
            Metric::Fce(_) => "fce",
            Metric::FlowDefect(_) => "flow-defect",
            Metric::FieldError(_) => "field-error",
            Metric::Satv(_) => Satv::NAME,
            Metric::Eas(_) => EdgeAlignment::NAME,
            Metric::Removal(removal) => removal.name(),
            Metric::Infidelity(_) => Infidelity::NAME,
            Metric::FaithfulnessCorrelation(_) => FaithfulnessCorrelation::NAME,
            Metric::Rae => "rae",
            Metric::PixelVariance(_) => PixelVariance::NAME,
            Metric::Ssim(_) => Ssim::NAME,
            Metric::RankCorrelation(_) => RankCorrelation::NAME,
            Metric::MaxSensitivity(_) => MaxSensitivity::NAME,
            Metric::ModelRandomisation(_) => ModelRandomisation::NAME,
            Metric::MassAccuracy(_) => "mass-accuracy",
            Metric::RankAccuracy(_) => "rank-accuracy",
            Metric::PointingGame(_) => "pointing-game",
        }
    }

    /// Which values are the better ones.
    pub fn direction(&self) -> Direction {
        match self {
            Metric::Gps(_) => Direction::Neither,
            Metric::Removal(Removal { order: Order::Insertion, .. })
            | Metric::Eas(_)
            | Metric::FaithfulnessCorrelation(_)
            | Metric::Ssim(_)
            | Metric::RankCorrelation(_)
            | Metric::MassAccuracy(_)
            | Metric::RankAccuracy(_)
            | Metric::PointingGame(_) => Direction::Higher,
            _ => Direction::Lower,
        }
    }

    /// What the metric needs and the cases do not have, in words; none where all is there.
    pub fn missing(&self, cases: &Cases) -> Option<&'static str> {
        let lacks = |absent: bool, what| absent.then_some(what);
        let path = lacks(cases.paths.is_empty() && !cases.is_empty(), "the method has no path");
        match self {
            Metric::CompletenessResidual | Metric::RelativeResidual => {
                let promised = cases.completeness.iter().any(Option::is_some);
                lacks(!promised, "the method does not promise that credit sums to the score's change")
            }
            Metric::Action(_) | Metric::Gps(_) => path,
            Metric::Fce(_) | Metric::FlowDefect(_) => {
                path.or(lacks(cases.field.is_none(), "there is no flow to compare the path with"))
            }
            Metric::FieldError(_) => path.or(lacks(
                cases.field.is_none() || cases.reference_field.is_none(),
                "there are no two fields to compare",
            )),
            Metric::Rae => {
                lacks(cases.reference_values.is_none(), "there are no explanations to compare with")
            }
            Metric::PixelVariance(_) | Metric::Ssim(_) | Metric::RankCorrelation(_) => {
                lacks(cases.repeats.is_empty(), "there are no explanations with other seeds")
            }
            Metric::MaxSensitivity(_) => lacks(cases.explain.is_none(), "the method cannot be asked again"),
            Metric::ModelRandomisation(_) => {
                lacks(cases.explain.is_none(), "the method cannot be asked again")
                    .or(lacks(cases.model.is_none(), "there is no model whose weights could be redrawn"))
            }
            Metric::MassAccuracy(_) | Metric::RankAccuracy(_) | Metric::PointingGame(_) => {
                lacks(cases.truth.is_none(), "there is no planted truth")
            }
            Metric::Satv(_)
            | Metric::Eas(_)
            | Metric::Removal(_)
            | Metric::Infidelity(_)
            | Metric::FaithfulnessCorrelation(_) => None,
        }
    }

    /// The metric of each example; none where it is not defined for that one.
    ///
    /// ```
    /// use brenier::ValueFn;
    /// use brenier::evaluate::{Cases, Metric, Summary};
    /// use ndarray::array;
    ///
    /// // The score x0 + 2 x1 at (1, 1), and credit (1, 2): without x1 the score is 1, without both 0.
    /// let score = ValueFn::new(&[2], |x, _| x[0] + 2.0 * x[1]);
    /// let cases = Cases::new(&score, array![[1.0, 1.0]], vec![0], array![[1.0, 2.0]])?;
    /// let areas = "deletion-zero".parse::<Metric>()?.scores(&cases)?;
    /// assert_eq!(Summary::of(&areas).map(|summary| summary.mean), Some(0.5 * 2.0 + 0.5 * 0.5));
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// What is missing, what the metric refuses, and the first value that is not finite, with its place.
    pub fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        cases.check()?;
        let refuse = |reason: &str| Error::Metric {
            metric: self.name().to_string(),
            reason: reason.to_string(),
            remedy: "supply it with the cases, or leave the metric out for this method",
        };
        if let Some(reason) = self.missing(cases) {
            return Err(refuse(reason));
        }
        match (self, cases.field, cases.reference_field, cases.explain, cases.model) {
            (Metric::CompletenessResidual, ..) => Ok(completeness::residuals(cases)),
            (Metric::RelativeResidual, ..) => Ok(completeness::relative_residuals(cases)),
            (Metric::Action(grid), ..) => grid.actions(cases),
            (Metric::Gps(grid), ..) => grid.straightness(cases),
            (Metric::Fce(grid), Some(field), ..) => grid.consistency(cases, field),
            (Metric::FlowDefect(grid), Some(field), ..) => grid.defects(cases, field),
            (Metric::FieldError(grid), Some(field), Some(reference), ..) => {
                grid.field_errors(cases, field, reference)
            }
            (Metric::Satv(metric), ..) => metric.scores(cases),
            (Metric::Eas(metric), ..) => metric.scores(cases),
            (Metric::Removal(metric), ..) => metric.scores(cases),
            (Metric::Infidelity(metric), ..) => metric.scores(cases),
            (Metric::FaithfulnessCorrelation(metric), ..) => metric.scores(cases),
            (Metric::Rae, ..) => match &cases.reference_values {
                Some(references) => {
                    let rows = cases.values.rows().into_iter().zip(references.rows());
                    rows.map(|(values, reference)| relative_attribution_error(values, reference).map(Some))
                        .collect()
                }
                None => Err(refuse("there are no explanations to compare with")),
            },
            (Metric::PixelVariance(metric), ..) => Ok(metric.scores(cases)),
            (Metric::Ssim(metric), ..) => metric.scores(cases),
            (Metric::RankCorrelation(metric), ..) => Ok(metric.scores(cases)),
            (Metric::MaxSensitivity(metric), _, _, Some(explain), _) => metric.scores(cases, explain),
            (Metric::ModelRandomisation(metric), _, _, Some(explain), Some(model)) => {
                metric.scores(cases, model, explain)
            }
            (Metric::MassAccuracy(metric), ..) => Ok(metric.mass(cases)),
            (Metric::RankAccuracy(metric), ..) => Ok(metric.rank(cases)),
            (Metric::PointingGame(metric), ..) => Ok(metric.pointing(cases)),
            _ => Err(refuse("something that it needs is not there")),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    /// The metric of this name with its defaults.
    fn from_str(name: &str) -> Result<Metric> {
        Metric::new(name, &MetricSettings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_metric_that_knows_its_name_and_survives_a_file() {
        for name in Metric::names() {
            let metric: Metric = name.parse().unwrap();
            assert_eq!(metric.name(), *name);
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(serde_json::from_str::<Metric>(&json).unwrap(), metric, "{json}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        for (typed, meant) in
            [("deletion", "deletion-zero"), ("sssim", "ssim"), ("rankcorrelation", "rank-correlation")]
        {
            let message = typed.parse::<Metric>().unwrap_err().to_string();
            assert!(message.contains(&format!("did you mean '{meant}'")), "{message}");
        }
    }
}
