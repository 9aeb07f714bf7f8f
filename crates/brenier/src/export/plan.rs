//! Where a method takes gradients, and with what weights: all of it linear in the input.
//!
//! ```text
//! point p:   a_p x + b_p r_p + s_p (max x - min x)          credit = sum_p grad f(point p) (c_p x + d_p r_p + e_p)
//! ```
//!
//! with references `r` and noise `s` that are constants of the graph. The first point is the input itself, whose scores are
//! an output; points that only a residual needs have weights of zero.

use ndarray::Array2;
use onnx_grad::BackwardRules;
use onnx_grad::backward::relu;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::attribute::{GradCam, Occlusion, Rule};
use crate::error::{Error, Result, expect_shape};

/// A method whose work is known before it sees an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Exported {
    /// The gradient.
    Gradient,
    /// Gradient times input.
    GradientInput,
    /// Guided Backpropagation.
    GuidedBackprop,
    /// The deconvolutional network.
    Deconvnet,
    /// Integrated Gradients: the mean over all references, each with the same rule. With several references this is the
    /// expectation that Expected Gradients estimates by draws.
    IntegratedGradients {
        /// A rule with fixed nodes.
        rule: Rule,
        /// The references, `[references, features]`.
        references: Array2<f64>,
    },
    /// SmoothGrad with noise that is the same for every input.
    SmoothGrad {
        /// Number of noisy copies.
        samples: usize,
        /// Standard deviation, as a fraction of the input's range.
        noise: f64,
        /// Seed of the noise.
        seed: u64,
    },
    /// Occlusion by a sliding window.
    Occlusion {
        /// The window and its steps.
        config: Occlusion,
        /// What stands in for what the window hides, `[1, features]`.
        reference: Array2<f64>,
    },
    /// Grad-CAM on a layer, the last convolution where none is named.
    GradCam {
        /// The layer, by the name of its node or of its value.
        layer: Option<String>,
    },
}

impl Exported {
    /// The method's name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Exported::Gradient => "gradient",
            Exported::GradientInput => "gradient-input",
            Exported::GuidedBackprop => "guided-backprop",
            Exported::Deconvnet => "deconvnet",
            Exported::IntegratedGradients { references, .. } if references.nrows() > 1 => {
                "expected-gradients"
            }
            Exported::IntegratedGradients { .. } => "ig",
            Exported::SmoothGrad { .. } => "smoothgrad",
            Exported::Occlusion { .. } => Occlusion::NAME,
            Exported::GradCam { .. } => GradCam::NAME,
        }
    }

    /// The settings in words.
    pub fn in_words(&self) -> String {
        match self {
            Exported::IntegratedGradients { rule, references } => {
                let steps = rule.nodes_and_weights().map_or(0, |nodes| nodes.len());
                let s = if references.nrows() == 1 { "" } else { "s" };
                format!("{} rule, {steps} nodes, {} reference{s}", rule.name(), references.nrows())
            }
            Exported::SmoothGrad { samples, noise, seed } => {
                format!("{samples} noisy copies, noise {noise} of the range, seed {seed}")
            }
            Exported::Occlusion { config, reference } => {
                let sizes = |sizes: &Option<Vec<usize>>, usual: &str| match sizes {
                    Some(sizes) => sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
                    None => usual.to_string(),
                };
                let zero = reference.iter().all(|value| *value == 0.0);
                format!(
                    "window {}, stride {}, {} behind it",
                    sizes(&config.window, "as usual"),
                    sizes(&config.stride, "as usual"),
                    if zero { "zero" } else { "a reference" }
                )
            }
            Exported::GradCam { layer } => match layer {
                Some(layer) => format!("at layer {layer}"),
                None => "at the last convolution".to_string(),
            },
            _ => "at the input".to_string(),
        }
    }

    /// What replaces derivatives on the way back.
    pub(super) fn rules(&self) -> BackwardRules {
        match self {
            Exported::GuidedBackprop => relu::guided(),
            Exported::Deconvnet => relu::deconvnet(),
            _ => BackwardRules::default(),
        }
    }
}

/// One point, and the weights of its gradient.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Point {
    /// Which of the references is `r`.
    pub(super) which: usize,
    pub(super) of_input: f64,
    pub(super) of_reference: f64,
    pub(super) times_input: f64,
    pub(super) times_reference: f64,
    pub(super) plain: f64,
}

/// All points of a method.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) points: Vec<Point>,
    /// `[references, features]`; one row of zeros where the method has none.
    pub(super) references: Array2<f64>,
    /// `[points, features]`, in units of the input's range.
    pub(super) noise: Option<Array2<f64>>,
    /// For each point, its part in the change of the score that credit must sum to.
    pub(super) change: Option<Vec<f64>>,
}

impl Plan {
    /// The points of a method for inputs of so many features.
    pub(super) fn new(method: &Exported, features: usize) -> Result<Plan> {
        let at_input = Point { of_input: 1.0, ..Point::default() };
        let alone = |point| Plan {
            points: vec![point],
            references: Array2::zeros((1, features)),
            noise: None,
            change: None,
        };
        match method {
            Exported::Gradient | Exported::GuidedBackprop | Exported::Deconvnet => {
                Ok(alone(Point { plain: 1.0, ..at_input }))
            }
            Exported::GradientInput => Ok(alone(Point { times_input: 1.0, ..at_input })),
            Exported::IntegratedGradients { rule, references } => integrated(*rule, references, features),
            Exported::SmoothGrad { samples, noise, seed } => {
                if *samples == 0 {
                    return Err(Error::Zero { what: "the number of samples" });
                }
                let mut rng = ChaCha8Rng::seed_from_u64(*seed);
                let mut draws = Array2::zeros((samples + 1, features));
                for value in draws.rows_mut().into_iter().skip(1).flatten() {
                    let drawn: f64 = StandardNormal.sample(&mut rng);
                    *value = noise * drawn;
                }
                let copy = Point { plain: 1.0 / *samples as f64, ..at_input };
                let points = std::iter::once(at_input).chain(vec![copy; *samples]).collect();
                Ok(Plan { points, noise: Some(draws), ..alone(at_input) })
            }
            // These have graphs of their own.
            Exported::Occlusion { .. } | Exported::GradCam { .. } => Ok(alone(at_input)),
        }
    }
}

/// The nodes of a rule on the lines from all references, after the input and the references themselves.
fn integrated(rule: Rule, references: &Array2<f64>, features: usize) -> Result<Plan> {
    expect_shape("the references", &[references.nrows(), features], references.shape())?;
    let nodes = rule.nodes_and_weights()?;
    if nodes.is_empty() {
        return Err(Error::Setting {
            name: "the rule",
            value: rule.name().to_string(),
            needs: "an exported explanation has the same nodes for every input",
            hint: "choose a number of steps; 50 Gauss-Legendre nodes are common".into(),
        });
    }
    let count = references.nrows();
    if count == 0 {
        return Err(Error::Zero { what: "the number of references" });
    }
    let share = 1.0 / count as f64;
    let mut points = vec![Point { of_input: 1.0, ..Point::default() }];
    points.extend((0..count).map(|which| Point { which, of_reference: 1.0, ..Point::default() }));
    let mut change = vec![-share; count + 1];
    change[0] = 1.0;
    for which in 0..count {
        points.extend(nodes.iter().map(|&(time, weight)| Point {
            which,
            of_input: time,
            of_reference: 1.0 - time,
            times_input: share * weight,
            times_reference: -share * weight,
            plain: 0.0,
        }));
    }
    change.resize(points.len(), 0.0);
    Ok(Plan { points, references: references.clone(), noise: None, change: Some(change) })
}
