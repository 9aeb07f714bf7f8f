//! Blur IG: the path integral along which the image comes out of a blur.
//!
//! ```text
//! Phi = int_0^1 grad f(L(sigma(t)) x) * d/dt L(sigma(t)) x dt,   sigma(t) = sigma_max (1 - t)
//! ```
//!
//! No baseline has to be chosen, and no colour is preferred (Xu et al., 2020). The path is [`BlurPath`].

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::integrated_gradients::requests;
use super::rows::check_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Allocation, Context, Explanation, Meaning, Method, WithPaths, boxed};
use crate::path::{BlurPath, Border};
use crate::predictor::Score;
use crate::{Error, Result};

/// Blur IG.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BlurIg {
    /// Standard deviation of the strongest blur in pixels; a quarter of the image's longer side where not given.
    pub max_sigma: Option<f64>,
    /// What lies beyond the border of an image.
    pub border: Border,
    /// How credit is given along the path.
    pub allocation: Allocation,
}

impl BlurIg {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "blur-ig";

    /// Explains each row of `inputs`; as many gradient evaluations as the rule needs.
    ///
    /// # Errors
    /// If the inputs are not images.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        Ok(self.explain_with_paths(score, inputs, targets)?.0)
    }

    /// As [`BlurIg::explain`], with the paths.
    pub fn explain_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<(Vec<Explanation>, Vec<BlurPath>)> {
        check_inputs(score, inputs, targets)?;
        let shape = score.shape();
        if shape.len() != 3 {
            return Err(Error::Method {
                method: Self::NAME.to_string(),
                reason: format!("inputs of shape {shape:?} are not images"),
                remedy: "use a method that needs no image, such as 'ig'".into(),
            });
        }
        let side = shape[1].max(shape[2]) as f64;
        let sigma = self.max_sigma.unwrap_or(side / 4.0);
        let paths: Result<Vec<BlurPath>> =
            inputs.rows().into_iter().map(|row| BlurPath::new(row, shape, sigma, self.border)).collect();
        let paths = paths?;
        Ok((self.allocation.explain_all(Self::NAME, score, &requests(&paths, targets))?, paths))
    }
}

impl BlurIg {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &["blur-integrated-gradients"],
        help: "path along which the image comes out of a blur",
        needs: &[Need::Gradients, Need::Image],
        uses: &[Setting::Rule],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral()),
        page: MethodPage {
            credit: "path integral as a blur recedes",
            sums_to: r"$f(x)-f(\text{blurred }x)$",
            cost: "as the tolerance needs, or $K$",
            use_it: "for textures and details, without a baseline to choose",
            refuses: "inputs that are no images",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        Self::PLAIN.with_idgi("blur-ig+idgi", &[Setting::Steps], |settings| build(settings.idgi())),
    ];
}

impl Explainer for BlurIg {
    fn spec(&self) -> &'static MethodSpec {
        self.allocation.spec(Self::SPECS)
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        _: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets)
    }

    fn run_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        _: &Context,
    ) -> Result<WithPaths> {
        Ok(boxed(self.explain_with_paths(score, inputs, targets)?))
    }
}

fn build(allocation: Allocation) -> Method {
    BlurIg { allocation, ..BlurIg::default() }.into()
}
