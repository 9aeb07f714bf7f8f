//! What is common to the settings of many methods.

use super::{Absence, Allocation, Baseline, Grouping, LrpRule, Rule};
use crate::error::{Error, Result};

/// What is common to the settings of many methods. What is not given is each method's own default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Number of draws.
    pub samples: Option<usize>,
    /// Size of the noise; of the input's range for SmoothGrad, in the input's units for GradientSHAP.
    pub noise: Option<f64>,
    /// Where a path starts.
    pub baseline: Option<Baseline>,
    /// The quadrature rule.
    pub rule: Option<Rule>,
    /// Number of steps of methods that have no choice of rule.
    pub steps: Option<usize>,
    /// The layer of Grad-CAM.
    pub layer: Option<String>,
    /// How layers share relevance in LRP.
    pub lrp_rule: Option<LrpRule>,
    /// Number of nearest neighbours.
    pub neighbours: Option<usize>,
    /// Local error that the solver of a trace may make.
    pub solver_tolerance: Option<f64>,
    /// Number of steps in which DDIM inverts an input.
    pub inversion_steps: Option<usize>,
    /// What stands in for features that are left out; the baseline where not given.
    pub absence: Option<Absence>,
    /// Which features are left out together.
    pub groups: Option<Grouping>,
    /// The window of occlusion, along every axis of the input.
    pub window: Option<Vec<usize>>,
    /// The steps of that window.
    pub stride: Option<Vec<usize>>,
    /// Seed of all draws.
    pub seed: u64,
}

/// Steps and nodes at the most: rules have converged long before.
const MOST_STEPS: usize = 1_000_000;
/// Draws, neighbours and the like at the most.
const MOST_DRAWS: usize = 100_000_000;

impl Settings {
    /// Refuses numbers that would fill memory and change nothing.
    pub(super) fn check(&self) -> Result<()> {
        let nodes = self.rule.and_then(|rule| match rule {
            Rule::Adaptive { .. } => None,
            Rule::GaussLegendre { nodes } => Some(nodes),
            Rule::Left { steps }
            | Rule::Right { steps }
            | Rule::Midpoint { steps }
            | Rule::Trapezoid { steps }
            | Rule::Simpson { steps } => Some(steps),
        });
        let given = [
            ("the number of steps", nodes, MOST_STEPS),
            ("the number of steps", self.steps, MOST_STEPS),
            ("the number of inversion steps", self.inversion_steps, MOST_STEPS),
            ("the number of samples", self.samples, MOST_DRAWS),
            ("the number of neighbours", self.neighbours, MOST_DRAWS),
        ];
        match given.into_iter().find(|(_, value, most)| value.is_some_and(|value| value > *most)) {
            Some((name, Some(value), most)) => Err(Error::TooMany { name, value, most }),
            _ => Ok(()),
        }
    }

    /// The path integral with the rule that is given.
    pub(super) fn path_integral(&self) -> Allocation {
        self.rule.map_or_else(Allocation::default, |rule| Allocation::PathIntegral { rule })
    }

    /// IDGI with the steps that are given.
    pub(super) fn idgi(&self) -> Allocation {
        Allocation::Idgi { steps: self.steps.unwrap_or(super::Idgi::default().steps) }
    }

    /// What stands in for features that are left out.
    pub(super) fn absence(&self) -> Absence {
        self.absence.unwrap_or(Absence::Baseline(self.baseline.unwrap_or_default()))
    }
}
