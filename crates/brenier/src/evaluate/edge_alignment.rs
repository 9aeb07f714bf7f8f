//! Edge Alignment Score: how strong the image's edges are where the map has its own. Higher is better.
//!
//! ```text
//! EAS = sum_uv s_uv e_uv / (sum_uv s_uv + 1e-12),     s = |D phi|_1,  e = |D I|_2
//! ```
//!
//! It is a mean of the image's edge strength, so it has the image's units and ranges from 0 to the strongest edge.
//! It does not depend on the scale of the credit. A map that copies the image's outline scores well, whatever the
//! model looks at.

use serde::{Deserialize, Serialize};

use super::edges::map_edges;
use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Channels, Comparable, Direction, ImageEdges};
use crate::Result;
use crate::attribute::image;

/// The Edge Alignment Score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EdgeAlignment {
    /// How channels become one map.
    pub channels: Channels,
    /// What the edges of a colour image are.
    pub edges: ImageEdges,
    /// What the input is multiplied by before its edges are taken; see [`Satv`](super::Satv).
    pub image_scale: f64,
}

impl Default for EdgeAlignment {
    /// The signed sum over channels, edges of the gray image as the model takes it.
    fn default() -> Self {
        Self { channels: Channels::SignedSum, edges: ImageEdges::Gray, image_scale: 1.0 }
    }
}

impl EdgeAlignment {
    /// The metric's name.
    pub const NAME: &'static str = "eas";

    /// The alignment of each map.
    pub(super) fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let shape = image("EAS", cases.shape())?;
        let score = |example: usize| {
            let map = self.channels.map(cases.values.row(example), cases.shape()).to_vec();
            let edges = self.edges.of(cases.inputs.row(example), shape, self.image_scale);
            let (mut aligned, mut total) = (0.0, 0.0);
            for (s, e) in map_edges(&map, shape[2]).into_iter().zip(edges) {
                aligned += s * e;
                total += s;
            }
            aligned / (total + 1e-12)
        };
        Ok((0..cases.len()).map(|example| Some(score(example))).collect())
    }
}

impl EdgeAlignment {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &["edge-alignment-score"],
        help: "strength of the image's edges where the map has its own",
        needs: &[MetricNeed::Image],
        uses: &[MetricSetting::Channels],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: true,
        build: |settings| {
            let channels = settings.channels.unwrap_or_default();
            EdgeAlignment { channels, ..EdgeAlignment::default() }.into()
        },
        page: MetricPage {
            formula: r"$\sum_{uv}\lvert Dm\rvert_1\lvert DI\rvert_2/(\sum_{uv}\lvert Dm\rvert_1+10^{-12})$",
            range: "0 to the strongest edge of the image",
            says: "the map changes where the image does",
            does_not_say: "that the model looks there: an edge detector does well",
        },
    }];
}

impl Measure for EdgeAlignment {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.scores(cases)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::ValueFn;

    #[test]
    fn the_edge_under_the_step_counts_and_scale_does_not() {
        let score = ValueFn::new(&[1, 4, 6], |_, _| 0.0);
        let input = Array2::from_shape_fn((1, 24), |(_, i)| if i % 6 >= 2 { 0.7 } else { 0.0 });
        let eas = |at: usize, height: f64| {
            let values = Array2::from_shape_fn((1, 24), |(_, i)| if i % 6 >= at { height } else { 0.0 });
            let cases = Cases::new(&score, input.clone(), vec![0], values).unwrap();
            EdgeAlignment::default().scores(&cases).unwrap()[0].unwrap()
        };
        assert!((eas(2, 1.0) - 0.7).abs() < 1e-9);
        assert!((eas(2, -1e3) - 0.7).abs() < 1e-9);
        assert!(eas(4, 1.0).abs() < 1e-9);
        // A flat map has no edges that could be aligned.
        assert_eq!(eas(0, 1.0), 0.0);
    }
}
