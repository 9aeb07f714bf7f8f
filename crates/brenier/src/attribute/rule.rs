//! Quadrature rules: where on the path the gradient is taken, and with what weight.
//!
//! ```text
//! Phi_i = int_0^1 d_i f(gamma(t)) gamma_i'(t) dt  ~  sum_k d_i f(gamma(t_k)) dx_{k,i}
//! ```
//!
//! The equally spaced rules take `dx_k` from differences of the path's points, not from tangents times `1/K`.
//! For the left rule that is the paper's estimator to the letter (Eq. discrete_estimator); for all of them it
//! means that linear scores come out exactly on any path, and that corners do no harm at the nodes.
//! With quadratic interpolation of the path on each pair of steps, Simpson's rule keeps its fourth order.
//! Gauss-Legendre uses tangents, piece by piece between the path's corners.

use gauss_quad::GaussLegendre;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A quadrature rule with its size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum Rule {
    /// Gradient at the start of each step: Eq. (discrete_estimator) of the paper. Order 1.
    Left {
        /// Number of steps, K.
        steps: usize,
    },
    /// Gradient at the end of each step. Order 1.
    Right {
        /// Number of steps, K.
        steps: usize,
    },
    /// Gradient in the middle of each step. Order 2, and the best of the simple rules.
    Midpoint {
        /// Number of steps, K.
        steps: usize,
    },
    /// Mean of the gradients at both ends of each step; K + 1 gradients. Order 2.
    Trapezoid {
        /// Number of steps, K.
        steps: usize,
    },
    /// Simpson's rule on pairs of steps, so K is even; K + 1 gradients. Order 4.
    Simpson {
        /// Number of steps, K.
        steps: usize,
    },
    /// Gauss-Legendre: exact for polynomials of degree 2n - 1. Unbeatable on smooth models, ordinary on ReLU.
    GaussLegendre {
        /// Number of nodes, shared out between the pieces of a path with corners, at least one each.
        nodes: usize,
    },
    /// As many nodes as the tolerance needs: Clenshaw-Curtis while the model looks smooth, bisection of the
    /// segments on which the gradient changes most where it does not.
    Adaptive {
        /// Allowed completeness residual, relative to the score's change.
        tolerance: f64,
        /// Gradient evaluations after which to stop and say so in the certificate.
        max_gradients: usize,
        /// Allowed error of the map itself, in the Euclidean norm and relative to the map's; it is estimated, but not
        /// waited for, where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map_tolerance: Option<f64>,
    },
}

impl Rule {
    /// The adaptive rule with room for 2,000 gradients.
    pub fn adaptive(tolerance: f64) -> Self {
        Rule::Adaptive { tolerance, max_gradients: 2000, map_tolerance: None }
    }

    /// The rule of this name with so many steps or nodes; none where there is no such rule of fixed size.
    pub fn fixed(name: &str, steps: usize) -> Option<Self> {
        Some(match name {
            "left" => Rule::Left { steps },
            "right" => Rule::Right { steps },
            "midpoint" => Rule::Midpoint { steps },
            "trapezoid" => Rule::Trapezoid { steps },
            "simpson" => Rule::Simpson { steps },
            "gauss-legendre" => Rule::GaussLegendre { nodes: steps },
            _ => return None,
        })
    }

    /// The name on the command line and in certificates.
    pub fn name(&self) -> &'static str {
        match self {
            Rule::Left { .. } => "left",
            Rule::Right { .. } => "right",
            Rule::Midpoint { .. } => "midpoint",
            Rule::Trapezoid { .. } => "trapezoid",
            Rule::Simpson { .. } => "simpson",
            Rule::GaussLegendre { .. } => "gauss-legendre",
            Rule::Adaptive { .. } => "adaptive",
        }
    }

    /// The order p: on smooth scores the error falls like `K^-p`. `None` where no power of K describes it
    /// (Gauss-Legendre converges faster than any, the adaptive rule follows its tolerance).
    pub fn order(&self) -> Option<usize> {
        match self {
            Rule::Left { .. } | Rule::Right { .. } => Some(1),
            Rule::Midpoint { .. } | Rule::Trapezoid { .. } => Some(2),
            Rule::Simpson { .. } => Some(4),
            Rule::GaussLegendre { .. } | Rule::Adaptive { .. } => None,
        }
    }

    /// Refuses sizes with which nothing can be computed.
    pub(crate) fn check(&self) -> Result<()> {
        match *self {
            Rule::Left { steps: 0 }
            | Rule::Right { steps: 0 }
            | Rule::Midpoint { steps: 0 }
            | Rule::Trapezoid { steps: 0 }
            | Rule::Simpson { steps: 0 }
            | Rule::GaussLegendre { nodes: 0 } => Err(Error::Setting {
                name: "the number of steps",
                value: "0".into(),
                needs: "an integral needs at least one",
                hint: "50 is the paper's choice; or give a tolerance".into(),
            }),
            Rule::Simpson { steps } if steps % 2 == 1 => Err(Error::Setting {
                name: "the number of steps",
                value: steps.to_string(),
                needs: "Simpson's rule takes them in pairs",
                hint: "use the next even number".into(),
            }),
            Rule::Adaptive { tolerance, .. } if !(tolerance > 0.0 && tolerance.is_finite()) => {
                Err(Error::Setting {
                    name: "the tolerance",
                    value: tolerance.to_string(),
                    needs: "it must be positive and finite: no number of gradients reaches an exact sum",
                    hint: "1e-3 asks for credit that sums to the score's change within a thousandth".into(),
                })
            }
            Rule::Adaptive { map_tolerance: Some(tolerance), .. }
                if !(tolerance > 0.0 && tolerance.is_finite()) =>
            {
                Err(Error::Setting {
                    name: "the tolerance of the map",
                    value: tolerance.to_string(),
                    needs: "it must be positive and finite",
                    hint: "1e-2 asks for a map within a hundredth of the converged one".into(),
                })
            }
            Rule::Adaptive { max_gradients, .. } if max_gradients < 10 => Err(Error::Setting {
                name: "the limit of gradient evaluations",
                value: max_gradients.to_string(),
                needs: "the first estimate alone takes 10",
                hint: "2000 is the default".into(),
            }),
            _ => Ok(()),
        }
    }

    /// Nodes and weights on `[0, 1]` of a rule of fixed size; the weights sum to 1.
    pub fn nodes_and_weights(&self) -> Result<Vec<(f64, f64)>> {
        let nodes = FixedRule::new(*self, &[])?;
        Ok((0..nodes.count())
            .map(|k| {
                let node = nodes.node(k);
                (node.time, node.weight.width())
            })
            .collect())
    }
}

impl Weight {
    /// The part of the path that a node with this weight stands for.
    pub(super) fn width(&self) -> f64 {
        match self {
            Weight::Tangent(weight) => *weight,
            Weight::Differences(scale, terms) => scale * terms.iter().map(|(c, t)| c * t).sum::<f64>(),
        }
    }
}

/// Nodes and weights of the Gauss-Legendre rule on `[0, 1]`, ascending.
pub fn gauss_legendre(nodes: usize) -> Vec<(f64, f64)> {
    let Some(count) = std::num::NonZeroUsize::new(nodes) else {
        return Vec::new();
    };
    let rule = GaussLegendre::new(count);
    let mut pairs: Vec<_> =
        rule.as_node_weight_pairs().iter().map(|&(x, w)| (0.5 * (1.0 + x), 0.5 * w)).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    pairs
}

/// A place on the path where the gradient is taken.
pub(crate) struct Node {
    pub(crate) time: f64,
    pub(crate) weight: Weight,
}

/// By what the gradient is multiplied there.
pub(crate) enum Weight {
    /// A number times a combination of the path's points, `scale sum_m c_m gamma(t_m)`, as pairs `(c, t)`. The
    /// `c` are small whole numbers that sum to zero: exact, so that a path far from the origin loses nothing.
    Differences(f64, Vec<(f64, f64)>),
    /// A number times the path's tangent at the node.
    Tangent(f64),
}

/// A rule of fixed size on a path, its nodes computed one by one so that nothing grows with their number.
pub(crate) struct FixedRule {
    rule: Rule,
    /// The pieces between corners, and the Gauss-Legendre nodes on each.
    knots: Vec<f64>,
    legendre: Vec<(f64, f64)>,
}

impl FixedRule {
    pub(crate) fn new(rule: Rule, corners: &[f64]) -> Result<Self> {
        rule.check()?;
        let mut knots = vec![0.0];
        knots.extend(corners);
        knots.push(1.0);
        let legendre = match rule {
            Rule::GaussLegendre { nodes } => gauss_legendre(nodes.div_ceil(knots.len() - 1)),
            _ => Vec::new(),
        };
        Ok(Self { rule, knots, legendre })
    }

    pub(crate) fn count(&self) -> usize {
        match self.rule {
            Rule::Left { steps } | Rule::Right { steps } | Rule::Midpoint { steps } => steps,
            Rule::Trapezoid { steps } | Rule::Simpson { steps } => steps + 1,
            Rule::GaussLegendre { .. } => (self.knots.len() - 1) * self.legendre.len(),
            Rule::Adaptive { .. } => 0,
        }
    }

    pub(crate) fn node(&self, k: usize) -> Node {
        let at = |k: usize, steps: usize| k as f64 / steps as f64;
        let (time, weight) = match self.rule {
            Rule::Left { steps } => {
                (at(k, steps), Weight::Differences(1.0, vec![(1.0, at(k + 1, steps)), (-1.0, at(k, steps))]))
            }
            Rule::Right { steps } => (
                at(k + 1, steps),
                Weight::Differences(1.0, vec![(1.0, at(k + 1, steps)), (-1.0, at(k, steps))]),
            ),
            Rule::Midpoint { steps } => (
                at(2 * k + 1, 2 * steps),
                Weight::Differences(1.0, vec![(1.0, at(k + 1, steps)), (-1.0, at(k, steps))]),
            ),
            Rule::Trapezoid { steps } => {
                let (before, after) = (k.saturating_sub(1), (k + 1).min(steps));
                (
                    at(k, steps),
                    Weight::Differences(0.5, vec![(1.0, at(after, steps)), (-1.0, at(before, steps))]),
                )
            }
            Rule::Simpson { steps } => (at(k, steps), Weight::Differences(1.0 / 6.0, simpson(k, steps))),
            Rule::GaussLegendre { .. } | Rule::Adaptive { .. } => {
                let (piece, i) = (k / self.legendre.len(), k % self.legendre.len());
                let (from, length) = (self.knots[piece], self.knots[piece + 1] - self.knots[piece]);
                let (x, w) = self.legendre[i];
                (from + length * x, Weight::Tangent(length * w))
            }
        };
        Node { time, weight }
    }
}

/// Simpson's weights in points of the path. On a pair of steps with points a, m, b the parabola through them
/// has tangents `-3a + 4m - b`, `b - a`, `a - 4m + 3b` (per pair), which the weights 1/6, 4/6, 1/6 multiply.
fn simpson(k: usize, steps: usize) -> Vec<(f64, f64)> {
    let at = |k: usize| k as f64 / steps as f64;
    if k % 2 == 1 {
        return vec![(4.0, at(k + 1)), (-4.0, at(k - 1))];
    }
    let mut terms = Vec::with_capacity(6);
    if k > 0 {
        terms.extend([(1.0, at(k - 2)), (-4.0, at(k - 1)), (3.0, at(k))]);
    }
    if k < steps {
        terms.extend([(-3.0, at(k)), (4.0, at(k + 1)), (-1.0, at(k + 2))]);
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_to_machine_precision() {
        for n in [1, 2, 3, 7, 16, 50, 101, 500, 4000] {
            let even = 2 * n;
            let rules = [
                Rule::Left { steps: n },
                Rule::Right { steps: n },
                Rule::Midpoint { steps: n },
                Rule::Trapezoid { steps: n },
                Rule::Simpson { steps: even },
                Rule::GaussLegendre { nodes: n },
            ];
            for rule in rules {
                // Compensated, so that the sum's own rounding is not mistaken for the weights'.
                let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
                for (_, weight) in rule.nodes_and_weights().unwrap() {
                    let next = sum + weight;
                    lost +=
                        if sum.abs() >= weight.abs() { (sum - next) + weight } else { (weight - next) + sum };
                    sum = next;
                }
                let sum = sum + lost;
                assert!((sum - 1.0).abs() < 8.0 * f64::EPSILON, "{rule:?}: {:e}", sum - 1.0);
            }
        }
    }

    #[test]
    fn gauss_legendre_is_exact_for_polynomials_of_degree_2n_minus_1() {
        for n in [1, 2, 5, 8, 16] {
            let degree = 2 * n as i32 - 1;
            let value: f64 = gauss_legendre(n).iter().map(|&(x, w)| w * x.powi(degree)).sum();
            assert!((value * f64::from(degree + 1) - 1.0).abs() < 1e-13, "n = {n}");
        }
        // One degree more is beyond it.
        let beyond: f64 = gauss_legendre(2).iter().map(|&(x, w)| w * x.powi(4)).sum();
        assert!((beyond * 5.0 - 1.0).abs() > 1e-3);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused_with_a_remedy() {
        let refused = |rule: Rule| rule.check().unwrap_err().to_string();
        for rule in [Rule::Left { steps: 0 }, Rule::Simpson { steps: 0 }, Rule::GaussLegendre { nodes: 0 }] {
            assert!(refused(rule).contains("hint:"), "{rule:?}");
        }
        assert!(refused(Rule::Simpson { steps: 7 }).contains("even"));
        for tolerance in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(Rule::adaptive(tolerance)).contains("tolerance"), "{tolerance}");
        }
    }
}
