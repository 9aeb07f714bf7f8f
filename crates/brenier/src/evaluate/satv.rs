//! Structure-Aware Total Variation: how much a map changes where the image does not. Lower is better.
//!
//! ```text
//! SATV = sum_uv |D phi_uv|_1 exp(-alpha |D I_uv|_2),     alpha = 10          (the paper's Eq. satv)
//! ```
//!
//! It grows with the size of the credit and with the number of pixels, so as it stands it compares methods
//! whose credit sums to the same. The paper does not say whether its maps were normalised first; its formula is
//! computed as it stands, and [`Normalisation`] is there for methods whose numbers have different units. A smooth
//! map that is wrong scores well.

use serde::{Deserialize, Serialize};

use super::edges::map_edges;
use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Channels, Comparable, Direction, ImageEdges, Normalisation};
use crate::attribute::image;
use crate::{Error, Result};

/// Structure-Aware Total Variation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Satv {
    /// How fast an edge of the image excuses changes of the map, per unit of the image.
    pub alpha: f64,
    /// How channels become one map.
    pub channels: Channels,
    /// The scale of the map.
    pub normalisation: Normalisation,
    /// What the edges of a colour image are.
    pub edges: ImageEdges,
    /// What the input is multiplied by before its edges are taken: 1 for the input as the model takes it, 0.5 to
    /// bring inputs in -1 to 1 to a range of width 1.
    pub image_scale: f64,
}

impl Default for Satv {
    /// Alpha 10, the signed sum over channels, no normalisation, edges of the gray image as the model takes it.
    fn default() -> Self {
        Self {
            alpha: 10.0,
            channels: Channels::SignedSum,
            normalisation: Normalisation::None,
            edges: ImageEdges::Gray,
            image_scale: 1.0,
        }
    }
}

impl Satv {
    /// The metric's name.
    pub const NAME: &'static str = "satv";

    /// The total variation of each map.
    pub(super) fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let shape = image("SATV", cases.shape())?;
        if !(self.alpha >= 0.0 && self.alpha.is_finite()) {
            return Err(Error::Setting {
                name: "alpha of SATV",
                value: self.alpha.to_string(),
                needs: "it is a number, at least 0",
                hint: "10 is the paper's".into(),
            });
        }
        let score = |example: usize| {
            let map = self.channels.map(cases.values.row(example), cases.shape());
            let map = self.normalisation.apply(&map).to_vec();
            let edges = self.edges.of(cases.inputs.row(example), shape, self.image_scale);
            let parts = map_edges(&map, shape[2]).into_iter().zip(edges);
            parts.map(|(s, e)| s * (-self.alpha * e).exp()).sum()
        };
        Ok((0..cases.len()).map(|example| Some(score(example))).collect())
    }
}

impl Satv {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &["structure-aware-total-variation"],
        help: "how restless the map is where the image is quiet",
        needs: &[MetricNeed::Image],
        uses: &[MetricSetting::Channels],
        direction: Direction::Lower,
        comparable: Comparable::SameScaleOnly,
        usual: true,
        build: |settings| {
            let channels = settings.channels.unwrap_or_default();
            Satv { channels, ..Satv::default() }.into()
        },
        page: MetricPage {
            formula: r"$\sum_{uv}\lvert Dm_{uv}\rvert_1\exp(-10\lvert DI_{uv}\rvert_2)$",
            range: "0 to ∞, units of the credit",
            says: "the map is quiet where the image is",
            does_not_say: "that it is right: a smooth map does well. It grows with the size of credit",
        },
    }];
}

impl Measure for Satv {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn comparable(&self) -> Comparable {
        match self.normalisation {
            Normalisation::None => Comparable::SameScaleOnly,
            _ => Comparable::Methods,
        }
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

    /// A map that is a step of height 3 between two columns of a 4 x 6 image, and an image with a step of the
    /// given height at the given column.
    fn step(height: f64, column: usize, satv: Satv) -> f64 {
        let score = ValueFn::new(&[1, 4, 6], |_, _| 0.0);
        let input = Array2::from_shape_fn((1, 24), |(_, i)| if i % 6 >= column { height } else { 0.0 });
        let values = Array2::from_shape_fn((1, 24), |(_, i)| if i % 6 >= 2 { 3.0 } else { 0.0 });
        satv.scores(&Cases::new(&score, input, vec![0], values).unwrap()).unwrap()[0].unwrap()
    }

    #[test]
    fn a_step_costs_its_height_and_is_excused_by_an_edge() {
        let satv = Satv::default();
        // Four rows, each with one jump of 3.
        assert!((step(0.0, 2, satv) - 12.0).abs() < 1e-12);
        assert!((step(0.2, 2, satv) - 12.0 * (-2.0_f64).exp()).abs() < 1e-12);
        // An edge elsewhere excuses nothing.
        assert!((step(0.2, 4, satv) - 12.0).abs() < 1e-12);
        assert!((step(0.2, 2, Satv { image_scale: 0.5, ..satv }) - 12.0 * (-1.0_f64).exp()).abs() < 1e-12);
        assert!((step(0.0, 2, Satv { normalisation: Normalisation::Range, ..satv }) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn rows_of_a_table_are_refused() {
        let score = ValueFn::new(&[3], |_, _| 0.0);
        let cases = Cases::new(&score, Array2::zeros((1, 3)), vec![0], Array2::zeros((1, 3))).unwrap();
        assert!(Satv::default().scores(&cases).unwrap_err().to_string().contains("[3]"));
    }
}
