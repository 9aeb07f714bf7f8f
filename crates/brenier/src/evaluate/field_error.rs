//! Relative error of a field against another along the path, lower is better:
//! `E_field = (sum_k |v - v_ref|^2)^(1/2) / ((sum_k |v_ref|^2)^(1/2) + 1e-12)`.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec, needed};
use super::{Cases, Comparable, Direction, PathGrid};
use crate::Result;

/// Relative error of a field against another, on this grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FieldError(pub PathGrid);

impl FieldError {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "field-error",
        aliases: &[],
        help: "difference of two flows along the path",
        needs: &[MetricNeed::Path, MetricNeed::TwoFlows],
        uses: &[MetricSetting::Steps],
        direction: Direction::Lower,
        comparable: Comparable::NotByConstruction,
        usual: false,
        build: |settings| FieldError(PathGrid::of(settings)).into(),
        page: MetricPage {
            formula: r"$(\sum_k\lvert v-v_\mathrm{ref}\rvert^2)^{1/2}/((\sum_k\lvert v_\mathrm{ref}\rvert^2)^{1/2}+10^{-12})$",
            range: "0 to ∞",
            says: "two flows agree along the path",
            does_not_say: "anything away from it",
        },
    }];
}

impl Measure for FieldError {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let field = needed(self.spec(), cases.context.flows.first())?;
        let reference = needed(self.spec(), cases.reference_field)?;
        self.0.field_errors(cases, *field, reference)
    }
}
