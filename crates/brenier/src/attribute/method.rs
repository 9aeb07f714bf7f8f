//! The registry of methods, and one way to call them all.
//!
//! ```text
//! method (settings) + score + inputs + targets + context  ->  an explanation for each input
//! ```
//!
//! A [`Method`] is a plain value: it can be written to a file and compared. What a method needs besides the
//! score, and not every method does, is in the [`Context`]: data, baselines, flows, the model as a graph.
//!
//! A method is a file with a settings struct, its `SPECS` (one [`MethodSpec`] for each name that it has) and its
//! `Explainer`; and a line in the list below. Nothing else names it.

use std::str::FromStr;
use std::sync::LazyLock;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::held;
use super::idgi::SUFFIX;
use super::spec::Explainer;
use super::{
    BlurIg, Context, Ddim, Deconvnet, DeepLift, DeepShap, ExpectedGradients, Explanation, GeodesicIg,
    GradCam, Gradient, GradientInput, GradientShap, GuidedBackprop, GuidedIg, IntegratedGradients,
    KernelShap, Lime, Lrp, ManifoldIg, Meaning, MethodSpec, NearestIg, Need, Occlusion, Rise, Settings,
    ShapleyValues, SmoothGrad, Transport, TransportLine, TreeShap,
};
use crate::path::Path;
use crate::predictor::Score;
use crate::{Error, Result, registry};

/// Makes of the list of methods the closed enum, the list of specs and the one way to each method.
macro_rules! methods {
    ($($(#[$attribute:meta])* $method:ident,)*) => {
        /// A method with its settings.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "method", rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$attribute])* $method($method),)*
        }

        const SPECS: &[&[MethodSpec]] = &[$($method::SPECS,)*];

        impl Method {
            fn explainer(&self) -> &dyn Explainer {
                match self {
                    $(Method::$method(method) => method,)*
                }
            }
        }

        $(impl From<$method> for Method {
            fn from(method: $method) -> Method {
                Method::$method(method)
            }
        })*
    };
}

methods! {
    // One gradient.
    /// The gradient.
    Gradient,
    /// Gradient times input.
    GradientInput,
    /// Guided Backpropagation.
    GuidedBackprop,
    /// The deconvolutional network.
    Deconvnet,
    /// Grad-CAM.
    GradCam,
    /// Layer-wise Relevance Propagation.
    Lrp,
    /// DeepLIFT.
    #[serde(rename = "deeplift")]
    DeepLift,
    /// DeepSHAP.
    DeepShap,
    // Gradients at many points.
    /// SmoothGrad, SmoothGrad-squared and VarGrad.
    #[serde(rename = "smoothgrad")]
    SmoothGrad,
    /// Expected Gradients.
    ExpectedGradients,
    /// GradientSHAP.
    GradientShap,
    // Gradients along a path.
    /// Integrated Gradients.
    #[serde(rename = "ig")]
    IntegratedGradients,
    /// Integrated Gradients from the nearest rows of the data.
    NearestIg,
    /// Guided Integrated Gradients.
    GuidedIg,
    /// Blur IG.
    BlurIg,
    /// Geodesic IG.
    GeodesicIg,
    /// Manifold IG.
    ManifoldIg,
    /// The DDIM trajectory of a diffusion model.
    Ddim,
    /// The trace of a flow, or of several.
    Transport,
    /// The line from the end of a flow's trace.
    TransportLine,
    // Trees.
    /// TreeSHAP.
    TreeShap,
    // Scores without gradients.
    /// KernelSHAP.
    KernelShap,
    /// Exact Shapley values.
    ShapleyValues,
    /// Occlusion.
    Occlusion,
    /// RISE.
    Rise,
    /// LIME.
    Lime,
}

/// Explanations, and the path of each where there is one to look at.
pub type WithPaths = (Vec<Explanation>, Vec<Box<dyn Path>>);

/// Paths of one kind as paths of any kind.
pub(super) fn boxed<P: Path + 'static>((explanations, paths): (Vec<Explanation>, Vec<P>)) -> WithPaths {
    (explanations, paths.into_iter().map(|path| Box::new(path) as Box<dyn Path>).collect())
}

impl Method {
    /// The specs of all methods, one for each name.
    pub fn specs() -> impl Iterator<Item = &'static MethodSpec> {
        SPECS.iter().flat_map(|specs| specs.iter())
    }

    /// The names of all methods.
    pub fn names() -> &'static [&'static str] {
        static NAMES: LazyLock<Vec<&'static str>> =
            LazyLock::new(|| Method::specs().map(|spec| spec.name).collect());
        &NAMES
    }

    /// A method by its name, or by another that it is known by (`IntegratedGradients`, `KernelExplainer`).
    ///
    /// # Errors
    /// If there is none of this name; the nearest one is suggested.
    pub fn new(name: &str, settings: &Settings) -> Result<Method> {
        let found = registry::find(Method::specs(), name).or_else(|| {
            // The other names of a path stand for it with IDGI as well.
            let path = registry::find(Method::specs(), name.strip_suffix(SUFFIX)?)?;
            Method::specs().find(|spec| spec.name.strip_suffix(SUFFIX) == Some(path.name))
        });
        settings.check()?;
        match found {
            Some(spec) => Ok((spec.build)(settings)),
            None => Err(Error::UnknownMethod {
                found: name.to_string(),
                nearest: registry::nearest(Method::specs(), name),
                known: Method::names().to_vec(),
            }),
        }
    }

    /// What is known of the method before it runs.
    pub fn spec(&self) -> &'static MethodSpec {
        self.explainer().spec()
    }

    /// The name on the command line and in certificates.
    pub fn name(&self) -> String {
        self.spec().name.to_string()
    }

    /// Whether the method asks for gradients; one that does not works with any model that gives scores.
    pub fn needs_gradients(&self) -> bool {
        self.spec().needs(Need::Gradients)
    }

    /// About how many rows go through the score for one input of this shape, where the settings say so: what is needed
    /// to tell how far a long explanation is. Methods with a tolerance find out on the way.
    pub fn evaluations(&self, shape: &[usize]) -> Option<usize> {
        self.explainer().evaluations(shape)
    }

    /// What the numbers of this method mean: derivatives are sensitivities, all else is credit. The maps of
    /// Grad-CAM and RISE are no shares of the score either, but positive where they speak for it.
    pub fn meaning(&self) -> Meaning {
        self.spec().meaning
    }

    /// Explains each row of `inputs` (`[examples, features]`) for its target.
    ///
    /// # Errors
    /// What the method cannot do, in one sentence, and the first value that is not finite, with its place.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.spec().fits(score)?;
        if let Some(packed) = held::inputs(score) {
            return held::explain(self, score, inputs, targets, context, packed);
        }
        let part = self.explainer().run(score, inputs, targets, context).map(|part| (part, Vec::new()));
        Ok(counted_from(context.first_example, part)?.0)
    }

    /// As [`Method::explain`], with the path of each explanation where the method follows one that can be looked at
    /// again; otherwise with none. Guided IG makes its path as it goes and keeps no point of it, and the mean over
    /// several flows has no single path.
    ///
    /// # Errors
    /// As [`Method::explain`].
    pub fn explain_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        self.spec().fits(score)?;
        if let Some(packed) = held::inputs(score) {
            return Ok((held::explain(self, score, inputs, targets, context, packed)?, Vec::new()));
        }
        let part = self.explainer().run_with_paths(score, inputs, targets, context);
        counted_from(context.first_example, part)
    }
}

/// Examples of a part under their numbers in the run, in certificates as in errors.
fn counted_from(first: usize, part: Result<WithPaths>) -> Result<WithPaths> {
    let (mut explanations, paths) = part.map_err(|error| error.counted_from(first))?;
    explanations.iter_mut().for_each(|explanation| explanation.certificate.example += first);
    let explanations = explanations.into_iter().map(Explanation::draws_judged).collect();
    Ok((explanations, paths))
}

impl FromStr for Method {
    type Err = Error;

    /// The method of this name with its defaults.
    fn from_str(name: &str) -> Result<Method> {
        Method::new(name, &Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_method_that_knows_its_name_and_survives_a_file() {
        for name in Method::names() {
            let method: Method = name.parse().unwrap();
            assert_eq!(method.name(), *name);
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(serde_json::from_str::<Method>(&json).unwrap(), method, "{json}");
        }
    }

    #[test]
    fn examples_of_a_part_have_their_numbers_in_the_run_with_paths_and_without() {
        let score = crate::problems::LinearScore::new(ndarray::array![1.0, -2.0], 0.0);
        let inputs = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
        let context = Context { first_example: 5, ..Context::default() };
        for name in ["gradient", "ig"] {
            let method: Method = name.parse().unwrap();
            let plain = method.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
            let (with_paths, _) =
                method.explain_with_paths(&score, inputs.view(), &[0, 0], &context).unwrap();
            let numbers = |all: &[Explanation]| -> Vec<usize> {
                all.iter().map(|explanation| explanation.certificate.example).collect()
            };
            assert_eq!((numbers(&plain), numbers(&with_paths)), (vec![5, 6], vec![5, 6]), "{name}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        for (typed, meant) in
            [("smoothgrd", "smoothgrad"), ("gradcam", "grad-cam"), ("IG", "ig"), ("transprot", "transport")]
        {
            let refused = typed.to_lowercase().parse::<Method>();
            match refused {
                Ok(method) => assert_eq!(method.name(), meant),
                Err(error) => {
                    assert!(error.to_string().contains(&format!("did you mean '{meant}'")), "{error}")
                }
            }
        }
    }
}
