//! Relative attribution error (RAE) of one explanation against another.
//!
//! ```text
//! RAE = |Phi - Phi_ref|_2 / (|Phi_ref|_2 + 1e-12)
//! ```
//!
//! Unlike the completeness residual it sees every feature, not only their sum, but it needs a reference.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSpec, needed};
use super::{Cases, Comparable, Direction};
use crate::{Result, error};

/// The relative attribution error of `credit` against `reference`. Lower is better; 0 means equal.
pub fn relative_attribution_error(credit: ArrayView1<f64>, reference: ArrayView1<f64>) -> Result<f64> {
    error::expect_shape("the credit", reference.shape(), credit.shape())?;
    let gap = &credit - &reference;
    Ok(gap.dot(&gap).sqrt() / (reference.dot(&reference).sqrt() + 1e-12))
}

/// Relative attribution error against reference explanations. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttributionError {}

impl AttributionError {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "rae",
        aliases: &["relative-attribution-error"],
        help: "distance from reference explanations",
        needs: &[MetricNeed::References],
        uses: &[],
        direction: Direction::Lower,
        comparable: Comparable::Methods,
        usual: false,
        build: |_| AttributionError {}.into(),
        page: MetricPage {
            formula: r"$\lvert\Phi-\Phi_\mathrm{ref}\rvert/(\lvert\Phi_\mathrm{ref}\rvert+10^{-12})$",
            range: "0 to ∞",
            says: "how far credit is from a reference",
            does_not_say: "whether the reference is right",
        },
    }];
}

impl Measure for AttributionError {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let references = needed(self.spec(), cases.reference_values.as_ref())?;
        let rows = cases.values.rows().into_iter().zip(references.rows());
        rows.map(|(values, reference)| relative_attribution_error(values, reference).map(Some)).collect()
    }
}
