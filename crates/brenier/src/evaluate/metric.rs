//! The registry of metrics, and one way to call them all.
//!
//! ```text
//! metric (settings) + cases  ->  a number for each example
//! ```
//!
//! A [`Metric`] is a plain value: it can be written to a file and compared. What a metric needs besides the
//! explanations is in the [`Cases`]; [`Metric::missing`] says in words what is not there, which a table shows as a
//! dash, as the paper does for the straightness of methods without a path.
//!
//! A metric is a file with a settings struct, its `SPECS` (one [`MetricSpec`] for each name that it has) and its
//! `Measure`; and a line in the list below. Nothing else names it.

use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::spec::Measure;
use super::{
    Action, AttributionError, Cases, Comparable, CompletenessResidual, Direction, EdgeAlignment,
    FaithfulnessCorrelation, FieldError, FlowConsistency, FlowDefect, Infidelity, MassAccuracy,
    MaxSensitivity, MetricNeed, MetricSettings, MetricSpec, ModelRandomisation, PixelVariance, PointingGame,
    RankAccuracy, RankCorrelation, RelativeResidual, Removal, Satv, Ssim, Straightness,
};
use crate::{Error, Result, registry};

/// Makes of the list of metrics the closed enum, the list of specs and the one way to each metric.
macro_rules! metrics {
    ($($(#[$attribute:meta])* $name:ident($metric:ident),)*) => {
        /// A metric with its settings.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "metric", rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Metric {
            $($(#[$attribute])* $name($metric),)*
        }

        const SPECS: &[&[MetricSpec]] = &[$($metric::SPECS,)*];

        impl Metric {
            fn measure(&self) -> &dyn Measure {
                match self {
                    $(Metric::$name(metric) => metric,)*
                }
            }
        }

        $(impl From<$metric> for Metric {
            fn from(metric: $metric) -> Metric {
                Metric::$name(metric)
            }
        })*
    };
}

metrics! {
    // The account.
    /// Completeness residual.
    CompletenessResidual(CompletenessResidual),
    /// Completeness residual over the score's change.
    RelativeResidual(RelativeResidual),
    // The path.
    /// Kinetic action.
    Action(Action),
    /// Geometric Path Straightness.
    Gps(Straightness),
    /// Flow Consistency Error.
    Fce(FlowConsistency),
    /// Defect of the path as a solution of the flow.
    FlowDefect(FlowDefect),
    /// Relative error of a field against another along the path.
    FieldError(FieldError),
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
    Rae(AttributionError),
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
    MassAccuracy(MassAccuracy),
    /// Rank accuracy.
    RankAccuracy(RankAccuracy),
    /// Pointing game.
    PointingGame(PointingGame),
}

impl Metric {
    /// The specs of all metrics, one for each name.
    pub fn specs() -> impl Iterator<Item = &'static MetricSpec> {
        SPECS.iter().flat_map(|specs| specs.iter())
    }

    /// The names of all metrics. Deletion and insertion are also there under other replacements.
    pub fn names() -> &'static [&'static str] {
        static NAMES: LazyLock<Vec<&'static str>> =
            LazyLock::new(|| Metric::specs().map(|spec| spec.name).collect());
        &NAMES
    }

    /// The names of the metrics that a table has where nobody chooses: the paper's columns and their counterparts, as far
    /// as inputs of this shape allow.
    pub fn usual(shape: &[usize], flow: bool) -> Vec<&'static str> {
        let images = shape.len() == 3;
        let applies = |spec: &&MetricSpec| {
            let needs = |need| spec.needs(need);
            spec.usual && (images || !needs(MetricNeed::Image)) && (flow || !needs(MetricNeed::Flow))
        };
        Metric::specs().filter(applies).map(|spec| spec.name).collect()
    }

    /// A metric by its name, or by another that it is known by.
    ///
    /// # Errors
    /// If there is none of this name; the nearest one is suggested.
    pub fn new(name: &str, settings: &MetricSettings) -> Result<Metric> {
        match registry::find(Metric::specs(), name) {
            Some(spec) => Ok((spec.build)(settings)),
            None => Err(Error::UnknownMetric {
                found: name.to_string(),
                nearest: registry::nearest(Metric::specs(), name),
                known: Metric::names().to_vec(),
            }),
        }
    }

    /// What is known of the metric before it runs.
    pub fn spec(&self) -> &'static MetricSpec {
        self.measure().spec()
    }

    /// The name on the command line and in tables.
    pub fn name(&self) -> &'static str {
        self.measure().name()
    }

    /// Which values are the better ones.
    pub fn direction(&self) -> Direction {
        self.spec().direction
    }

    /// Whether better numbers mean better methods, with these settings.
    pub fn comparable(&self) -> Comparable {
        self.measure().comparable()
    }

    /// What the metric needs and the cases do not have, in words; none where all is there.
    pub fn missing(&self, cases: &Cases) -> Option<&'static str> {
        self.spec().needs.iter().find_map(|need| need.missing(cases))
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
        match self.missing(cases) {
            Some(reason) => Err(Error::Metric {
                metric: self.name().to_string(),
                reason: reason.to_string(),
                remedy: "supply it with the cases, or leave the metric out for this method".into(),
            }),
            None => self.measure().run(cases),
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
            [("deletion", "deletion-zero"), ("sssim", "ssim"), ("rank-corelation", "rank-correlation")]
        {
            let message = typed.parse::<Metric>().unwrap_err().to_string();
            assert!(message.contains(&format!("did you mean '{meant}'")), "{message}");
        }
    }
}
