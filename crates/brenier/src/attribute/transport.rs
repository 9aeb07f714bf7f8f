//! Transport: the path integral along the trace of a flow, and its mean over several flows.
//!
//! ```text
//! d gamma / dt = v(gamma, t),  gamma(1) = x;     Phi = mean over flows of  int grad f(gamma) * d gamma
//! se_i = (sum_j (Phi_ji - Phi_i)^2 / (F (F - 1)))^(1/2)
//! ```
//!
//! A flow is any [`VelocityField`]: rectified once or several times, trained on coupled pairs, or a closed form.
//! Flows that were trained alike but for the seed agree on what the data says and differ in what they made up;
//! the standard error over flows shows which features are which.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::mean_of::mean_of;
use super::rows::check_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Allocation, Context, Explanation, Meaning, Method, Settings, WithPaths, boxed};
use crate::flow::VelocityField;
use crate::path::{Solver, Trace, TraceConfig, trace_and};
use crate::predictor::Score;
use crate::{Error, Remedy, Result};

/// Credit along the trace of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Transport {
    /// How an input is traced.
    pub trace: TraceConfig,
    /// How credit is given along the trace.
    pub allocation: Allocation,
}

impl Transport {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "transport";

    /// Explains each row of `inputs` along every flow of the context; with several, credit is their mean and
    /// has standard errors. Inputs are traced a micro-batch at a time.
    ///
    /// # Errors
    /// If the context has no flow, or one of another shape.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        over_flows(Self::NAME, context, |flow| self.along(flow, score, inputs, targets, &mut |_| {}))
    }

    /// As [`Transport::explain`] along one flow, with the traces, which serve other models and targets as well.
    ///
    /// # Errors
    /// If the flow has another shape.
    pub fn explain_with_traces(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        flow: &dyn VelocityField,
    ) -> Result<(Vec<Explanation>, Vec<Trace>)> {
        let mut traces = Vec::with_capacity(targets.len());
        let explanations = self.along(flow, score, inputs, targets, &mut |part| traces.extend(part))?;
        Ok((explanations, traces))
    }

    fn along(
        &self,
        flow: &dyn VelocityField,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        keep: &mut dyn FnMut(Vec<Trace>),
    ) -> Result<Vec<Explanation>> {
        check_inputs(score, inputs, targets)?;
        expect_fitting(Self::NAME, flow, score)?;
        self.allocation.explain_traced(
            Self::NAME,
            score,
            inputs,
            targets,
            |rows, follow| trace_and(flow, rows, &self.trace, follow),
            keep,
        )
    }
}

/// What `explain` says along each flow of the context: itself for one, the mean with standard errors for several.
pub(super) fn over_flows(
    method: &str,
    context: &Context,
    explain: impl Fn(&dyn VelocityField) -> Result<Vec<Explanation>>,
) -> Result<Vec<Explanation>> {
    let mut members: Vec<Vec<Explanation>> = Vec::with_capacity(context.flows.len());
    for &flow in &context.flows {
        members.push(explain(flow)?);
    }
    match members.len() {
        0 => Err(no_flow(method, context)),
        1 => Ok(members.swap_remove(0)),
        _ => Ok((0..members[0].len())
            .map(|i| mean_of(&members.iter().map(|m| &m[i]).collect::<Vec<_>>(), "flow"))
            .collect()),
    }
}

/// Refuses a flow of another shape.
pub(super) fn expect_fitting(method: &str, flow: &dyn VelocityField, score: &dyn Score) -> Result<()> {
    if flow.features() == score.features() {
        return Ok(());
    }
    Err(Error::Method {
        method: method.to_string(),
        reason: format!(
            "the flow is for inputs of shape {:?}, the model for {:?}",
            flow.shape(),
            score.shape()
        ),
        remedy: "use a flow that was trained on this model's data".into(),
    })
}

/// What is said where there is no flow.
fn no_flow(method: &str, context: &Context) -> Error {
    Error::Method {
        method: method.to_string(),
        reason: "there is no flow to follow".to_string(),
        remedy: match context.diffusion {
            Some(_) => Remedy::FollowByDdim,
            None => Remedy::GiveFlow,
        },
    }
}

impl Transport {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "path along the trace of a flow, or the mean over several flows",
        needs: &[Need::GradientsOrTrees, Need::Flow],
        uses: &[Setting::SolverTolerance, Setting::Rule, Setting::Flow],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral(), settings),
        page: MethodPage {
            credit: "path integral along the trace of a flow",
            sums_to: "$f(x)-f(x_0)$",
            cost: "as the tolerance needs, or $K$; and the flow's evaluations",
            use_it: "where the data's own distribution should say what the input is compared with",
            refuses: "a run without a flow, a flow of another shape",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        // Shares of squared gradients need gradients.
        MethodSpec {
            needs: &[Need::Gradients, Need::Flow],
            ..Self::PLAIN.with_idgi(
                "transport+idgi",
                &[Setting::SolverTolerance, Setting::Steps, Setting::Flow],
                |settings| build(settings.idgi(), settings),
            )
        },
    ];
}

impl Explainer for Transport {
    fn spec(&self) -> &'static MethodSpec {
        self.allocation.spec(Self::SPECS)
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets, context)
    }

    fn run_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        match context.flows.as_slice() {
            [flow] => Ok(boxed(self.explain_with_traces(score, inputs, targets, *flow)?)),
            _ => Ok((self.run(score, inputs, targets, context)?, Vec::new())),
        }
    }
}

fn build(allocation: Allocation, settings: &Settings) -> Method {
    let solver = settings.solver_tolerance.map_or(Solver::default(), Solver::adaptive);
    Transport { trace: TraceConfig { solver, ..TraceConfig::default() }, allocation }.into()
}
