//! Grad-CAM: where in the image the maps of a convolution speak for the class.
//!
//! ```text
//! a_k = mean_uv d f / d A_kuv,    map = max(0, sum_k a_k A_k)        (Selvaraju et al., 2017)
//! ```
//!
//! `A` are the values of a layer, the last convolution where none is named. The map is enlarged to the size of
//! the image by bilinear interpolation (pixel centres, edges repeated). It says nothing of channels: each one
//! gets an equal share, so that the channels of a pixel sum to the map.

use ndarray::{Array1, Array2, ArrayView2, ArrayView3};
use serde::{Deserialize, Serialize};

use super::rows::{MICRO_BATCH, check_inputs};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Certificate, Context, Explanation, Meaning};
use crate::predictor::{OnnxPredictor, Score};
use crate::{Error, Result, error};

/// Grad-CAM on one layer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GradCam {
    /// The layer, by the name of its node or of its value; the last convolution where not given.
    pub layer: Option<String>,
}

impl GradCam {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "grad-cam";

    /// Explains each row of `inputs`; one gradient evaluation each, up to the layer only.
    ///
    /// # Errors
    /// If the input is no image, or the model has no convolution, or no layer of the name.
    pub fn explain(
        &self,
        predictor: &OnnxPredictor,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        check_inputs(predictor, inputs, targets)?;
        let layer = predictor.layer(self.layer.as_deref())?;
        let &[channels, height, width] = Score::shape(predictor) else {
            return Err(Error::Method {
                method: Self::NAME.to_string(),
                reason: format!("inputs of shape {:?} are not images", Score::shape(predictor)),
                remedy: "use a method that needs no image, such as 'ig'".into(),
            });
        };
        let mut explanations = Vec::with_capacity(targets.len());
        for first in (0..targets.len()).step_by(MICRO_BATCH) {
            let range = first..(first + MICRO_BATCH).min(targets.len());
            let rows = inputs.slice(ndarray::s![range.clone(), ..]);
            let found = layer.values_and_gradients(rows, &targets[range.clone()])?;
            for (i, example) in range.enumerate() {
                let (activations, gradients) = (found.activations.outer_iter(), found.gradients.outer_iter());
                let Some((activations, gradients)) = activations.zip(gradients).nth(i) else { continue };
                error::expect_finite("gradient", example, 1.0, gradients.iter())?;
                error::expect_finite("activation", example, 1.0, activations.iter())?;
                let map = enlarge(class_map(activations, gradients).view(), height, width);
                let share: Array1<f64> = map.iter().map(|value| value / channels as f64).collect();
                let values = (0..channels).flat_map(|_| share.iter().copied()).collect();
                explanations.push(Explanation {
                    values,
                    shape: vec![channels, height, width],
                    reference: None,
                    input: inputs.row(example).to_owned(),
                    standard_errors: None,
                    certificate: Certificate {
                        gradient_evaluations: 1,
                        ..Certificate::new(Self::NAME, example, targets[example], found.scores[i])
                    },
                });
            }
        }
        Ok(explanations)
    }
}

/// The map in the layer's own size.
fn class_map(activations: ArrayView3<f64>, gradients: ArrayView3<f64>) -> Array2<f64> {
    let (_, height, width) = activations.dim();
    let mut map = Array2::zeros((height, width));
    for (activation, gradient) in activations.outer_iter().zip(gradients.outer_iter()) {
        map.scaled_add(gradient.mean().unwrap_or(0.0), &activation);
    }
    map.mapv_into(|value: f64| value.max(0.0))
}

/// Bilinear interpolation between pixel centres; beyond the outermost centres the edge is repeated.
pub(crate) fn enlarge(map: ArrayView2<f64>, height: usize, width: usize) -> Array2<f64> {
    let (rows, columns) = map.dim();
    let place = |i: usize, from: usize, to: usize| {
        let x = ((i as f64 + 0.5) * from as f64 / to as f64 - 0.5).clamp(0.0, (from - 1) as f64);
        let low = x.floor() as usize;
        (low, (low + 1).min(from - 1), x - low as f64)
    };
    Array2::from_shape_fn((height, width), |(y, x)| {
        let (top, bottom, down) = place(y, rows, height);
        let (left, right, across) = place(x, columns, width);
        let upper = (1.0 - across) * map[[top, left]] + across * map[[top, right]];
        let lower = (1.0 - across) * map[[bottom, left]] + across * map[[bottom, right]];
        (1.0 - down) * upper + down * lower
    })
}

impl GradCam {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["layer-grad-cam"],
        help: "where in the image the maps of a convolution speak for the class",
        needs: &[Need::Gradients, Need::Model, Need::Image],
        uses: &[Setting::Layer],
        meaning: Meaning::Credit,
        build: |settings| GradCam { layer: settings.layer.clone() }.into(),
        page: MethodPage {
            credit: r"$\max(0,\sum_k \overline{\partial f/\partial A_k}\,A_k)$, enlarged",
            sums_to: "nothing",
            cost: "1, down to the layer",
            use_it: "for *where*, not *what*, in convolutional networks",
            refuses: "a model without convolutions, an input that is no image, an unknown layer",
        },
    }];
}

impl Explainer for GradCam {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        _: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(context.require_model(Self::NAME)?, inputs, targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_ramp_stays_a_ramp_between_the_outermost_centres() {
        let map = enlarge(array![[0.0, 2.0]].view(), 1, 4);
        assert_eq!(map, array![[0.0, 0.5, 1.5, 2.0]]);
        assert_eq!(enlarge(map.view(), 1, 4), map);
    }
}
