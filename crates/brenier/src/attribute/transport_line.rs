//! Transport line: the straight line from where a flow says that the input comes from.
//!
//! ```text
//! d gamma / dt = v(gamma, t),  gamma(1) = x,  x0 = gamma(0);     Phi = int grad f(x0 + t (x - x0)) * (x - x0) dt
//! ```
//!
//! At the exact optimum the trace of a flow *is* this line: particles of an optimal transport move straight. A flow that was
//! trained once bends, and what it passes on its way is where its pairs crossed, not where the input would go; its end is
//! right before its way is. So between two populations the line is the better path until Reflow has straightened the
//! trace. From noise it is not: the line crosses a grey that no image has.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::rows::check_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::transport::{expect_fitting, over_flows};
use super::{Allocation, Context, Explanation, Meaning, Method, Settings, WithPaths, boxed};
use crate::Result;
use crate::flow::VelocityField;
use crate::path::{Chord, Path, Solver, TraceConfig, trace};
use crate::predictor::Score;

/// Credit along the line from the end of a flow's trace.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TransportLine {
    /// How an input is traced to its reference.
    pub trace: TraceConfig,
    /// How credit is given along the line.
    pub allocation: Allocation,
}

impl TransportLine {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "transport-line";

    /// Explains each row of `inputs` along the line from its reference under every flow of the context; with several,
    /// credit is their mean and has standard errors.
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
        over_flows(Self::NAME, context, |flow| Ok(self.along(flow, score, inputs, targets)?.0))
    }

    fn along(
        &self,
        flow: &dyn VelocityField,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<(Vec<Explanation>, Vec<Chord>)> {
        check_inputs(score, inputs, targets)?;
        expect_fitting(Self::NAME, flow, score)?;
        // How well the trace follows the flow says nothing of the line.
        let config = TraceConfig { consistency_steps: 0, ..self.trace };
        let mut lines = Vec::with_capacity(targets.len());
        let explanations = self.allocation.explain_traced(
            Self::NAME,
            score,
            inputs,
            targets,
            |rows, follow| {
                let chords: Vec<Chord> = trace(flow, rows, &config)?.iter().map(Chord::of).collect();
                let paths: Vec<&dyn Path> = chords.iter().map(|chord| chord as &dyn Path).collect();
                follow(&paths);
                Ok(chords)
            },
            &mut |part| lines.extend(part),
        )?;
        Ok((explanations, lines))
    }
}

impl TransportLine {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "straight line from where the trace of a flow ends",
        needs: &[Need::GradientsOrTrees, Need::Flow],
        uses: &[Setting::SolverTolerance, Setting::Rule, Setting::Flow],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral(), settings),
        page: MethodPage {
            credit: "path integral along the line from the end of a flow's trace",
            sums_to: "$f(x)-f(x_0)$",
            cost: "as the tolerance needs, or $K$; and the flow's evaluations",
            use_it: "with a flow between two populations that was not straightened by Reflow",
            refuses: "a run without a flow, a flow of another shape",
        },
    }];
}

impl Explainer for TransportLine {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
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
            [flow] => Ok(boxed(self.along(*flow, score, inputs, targets)?)),
            _ => Ok((self.run(score, inputs, targets, context)?, Vec::new())),
        }
    }
}

fn build(allocation: Allocation, settings: &Settings) -> Method {
    let solver = settings.solver_tolerance.map_or(Solver::default(), Solver::adaptive);
    TransportLine { trace: TraceConfig { solver, ..TraceConfig::default() }, allocation }.into()
}
