//! Advice on all inputs together: do their traces differ from those of the flow's data where each by itself does not?

use brenier::calibration::{Ordinary, Standard, statistic_names};
use brenier::{Certificate, VelocityField};

/// Inputs that are kept at the most: more tell no more.
const MOST: usize = 10_000;

/// What is known of the traces of the inputs.
#[derive(Default)]
pub(super) struct Together {
    rows: Vec<Vec<f32>>,
    /// The last input, which counts once however many of its scores are explained.
    last: Option<usize>,
}

impl Together {
    pub(super) fn add(&mut self, certificates: &[Certificate]) {
        for certificate in certificates {
            let ordinary = certificate.path.as_ref().and_then(|path| path.evidence.ordinary.as_ref());
            if let Some(Ordinary::Calibrated { standing, .. }) = ordinary
                && self.last != Some(certificate.example)
                && self.rows.len() < MOST
            {
                self.last = Some(certificate.example);
                self.rows.push(standing.statistics.clone());
            }
        }
    }

    /// A line, where they are unlike the data of this flow together.
    pub(super) fn advice(&self, flow: &dyn VelocityField) -> Option<String> {
        let Standard::Calibrated(calibration) = flow.standard() else { return None };
        let found = calibration.standing_together(&self.rows, &statistic_names(flow.shape()))?;
        let (name, z) = found.furthest.first()?;
        let side = if *z < 0.0 { "below" } else { "above" };
        found.is_rare().then(|| {
            format!(
                "notice: together, the {} inputs are unlike the flow's data (share {:.1e}, limit 0.01; {name}: {:.1} standard \
                 errors {side} what is usual): inputs of one class differ so, and so do inputs that were changed",
                found.inputs,
                found.share,
                z.abs()
            )
        })
    }
}
