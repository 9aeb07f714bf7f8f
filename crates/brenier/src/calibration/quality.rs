//! Is a flow good enough to explain with?
//!
//! Three things are asked of it on held-out rows, once:
//!
//! - A first level that was trained from noise on independent pairs has a loss no larger than that of the best linear
//!   flow, which is known: `(pi / 2) mean sqrt(l)` per feature, with `l` the eigenvalues of the data's covariance.
//! - It knows more of the data than their mean and covariance: the log-likelihood of a held-out row under the flow is
//!   no lower than under a Gaussian that is fitted to the data (the median, per feature). A flow that was trained for a
//!   moment, or whose weights are spoilt, falls below it.
//! - It leads rows back to where it starts from: the energy of their references is about 1 in the directions in which the
//!   data vary. A flow whose velocity is too small, or that runs the other way, does not.
//!
//! Directions in which data hardly vary are not looked at: no flow expands them, and what is missing there says
//! nothing of the rest. A flow that starts from data has neither figure; its references are held against those data
//! where an input is explained.

use serde::{Deserialize, Serialize};

/// What a gain may fall short by: data that are Gaussian leave nothing to gain.
const SHORT: f64 = 0.1;
/// The most that a loss may be of the best linear flow's: Gaussian data allow for no less than 1.
const LOSS: f64 = 1.1;
/// Between which numbers the energy of references lies.
const ENERGIES: (f64, f64) = (0.5, 1.5);

/// How a flow treats held-out rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowQuality {
    /// Log-likelihood of a held-out row under the flow minus that under a fitted Gaussian, per feature; the median. Absent
    /// where the flow starts from data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The mean energy of references in five groups of the directions in which the data vary most, first those with the
    /// most; 1 is ordinary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energies: Vec<f64>,
    /// The held-out loss over that of the best linear flow; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Rows that the gain was measured on.
    #[serde(default)]
    pub rows: usize,
}

impl FlowQuality {
    /// What speaks against the flow, in words.
    pub fn objection(&self) -> Option<String> {
        if let Some(gain) = self.gain.filter(|gain| gain.is_nan() || *gain < -SHORT) {
            return Some(format!(
                "the flow knows less of its data than their mean and covariance do (log-likelihood {gain:+.2} a feature \
                 against a Gaussian): train it longer"
            ));
        }
        if let Some(ratio) = self.loss_ratio.filter(|ratio| ratio.is_nan() || *ratio > LOSS) {
            return Some(format!(
                "the flow's loss is {ratio:.2} times that of the best linear flow: train it longer"
            ));
        }
        let off = self.energies.iter().find(|energy| !(ENERGIES.0..=ENERGIES.1).contains(*energy))?;
        Some(format!(
            "the flow does not lead held-out rows back to where it starts from (energy {off:.2} of 1 where the data vary \
             most): train it longer"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_below_a_gaussian_or_with_quiet_references_is_told_of() {
        let quality = |gain, energies: &[f64]| FlowQuality {
            gain,
            energies: energies.to_vec(),
            rows: 9,
            ..FlowQuality::default()
        };
        assert_eq!(quality(Some(0.4), &[0.9, 1.1]).objection(), None);
        assert_eq!(quality(Some(-0.05), &[]).objection(), None);
        assert_eq!(FlowQuality::default().objection(), None);
        assert!(quality(Some(-0.3), &[1.0]).objection().is_some_and(|o| o.contains("-0.30 a feature")));
        assert!(quality(Some(f64::NAN), &[1.0]).objection().is_some());
        assert!(quality(Some(0.4), &[1.0, 0.3]).objection().is_some_and(|o| o.contains("energy 0.30")));
        assert!(quality(Some(0.4), &[f64::NAN]).objection().is_some());
        let untrained = FlowQuality { loss_ratio: Some(1.27), ..quality(Some(0.0), &[1.0]) };
        assert!(untrained.objection().is_some_and(|o| o.contains("1.27 times")));
    }
}
