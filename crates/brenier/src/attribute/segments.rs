//! Whether a rule of fixed size accounts for the score's change on every segment, not only in total.
//!
//! ```text
//! e_k = (f(t_{k+1}) - f(t_k)) - what the rule gives between the two nodes;     disagreement = (sum_k e_k^2)^(1/2)
//! ```
//!
//! Each node stands for as much of the path as it weighs, so that the rule's part of a segment is that of the two nodes at
//! its ends. Scores come with the gradients, so this costs nothing. In total errors may cancel: a left rule of three
//! steps may sum to the last digit and give every feature the wrong credit; here they may not.

use super::Rule;

/// Nodes below which rules of high order say nothing about segments: their parts are right in total only.
const ENOUGH: usize = 10;

/// What a rule saw at one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visited {
    pub(super) time: f64,
    pub(super) score: f64,
    /// The credit that the node gave to all features together.
    pub(super) credit: f64,
    /// The part of the path that it stands for.
    pub(super) width: f64,
}

/// The disagreement of all segments, relative to the score's change; nothing where the rule has too few nodes.
pub(super) fn disagreement(rule: Rule, nodes: &mut [Visited], (first, last): (f64, f64)) -> Option<f64> {
    let high_order = matches!(rule, Rule::GaussLegendre { .. } | Rule::Simpson { .. });
    if nodes.is_empty() || (high_order && nodes.len() < ENOUGH) {
        return None;
    }
    nodes.sort_by(|a, b| a.time.total_cmp(&b.time));
    let rate = |node: &Visited| if node.width == 0.0 { 0.0 } else { node.credit / node.width };
    // Where what a node stands for ends, and the next begins.
    let (mut edge, mut square) = (0.0, 0.0);
    let (mut time, mut score, mut speed) = (0.0, first, rate(&nodes[0]));
    for node in nodes.iter() {
        let given = (edge - time) * speed + (node.time - edge) * rate(node);
        square += (node.score - score - given).powi(2);
        (time, score, speed) = (node.time, node.score, rate(node));
        edge += node.width;
    }
    square += (last - score - (1.0 - time) * speed).powi(2);
    let scale = (last - first).abs();
    Some(if square == 0.0 { 0.0 } else { square.sqrt() / scale.max(f64::MIN_POSITIVE) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rule sees of a score along a path, by its value and its derivative.
    fn seen(rule: Rule, f: impl Fn(f64) -> (f64, f64)) -> f64 {
        let mut nodes: Vec<Visited> = rule
            .nodes_and_weights()
            .unwrap()
            .into_iter()
            .map(|(time, width)| Visited { time, score: f(time).0, credit: width * f(time).1, width })
            .collect();
        disagreement(rule, &mut nodes, (f(0.0).0, f(1.0).0)).unwrap()
    }

    #[test]
    fn errors_that_cancel_in_total_are_seen() {
        // Up and down again around a slope of 1: the left rule of three steps sums to 1 exactly.
        let tau = std::f64::consts::TAU;
        let wave = move |t: f64| (t + 0.3 * (tau * t).sin(), 1.0 + 0.3 * tau * (tau * t).cos());
        let rule = Rule::Left { steps: 3 };
        let total: f64 = rule.nodes_and_weights().unwrap().iter().map(|&(t, w)| w * wave(t).1).sum();
        assert!((total - 1.0).abs() < 1e-12);
        assert!(seen(rule, wave) > 0.3);
        for rule in [
            Rule::Left { steps: 400 },
            Rule::Right { steps: 400 },
            Rule::Midpoint { steps: 50 },
            Rule::Trapezoid { steps: 50 },
            Rule::Simpson { steps: 50 },
            Rule::GaussLegendre { nodes: 50 },
        ] {
            let found = seen(rule, wave);
            assert!(found < 0.02, "{rule:?} {found}");
        }
    }

    #[test]
    fn a_jump_that_no_gradient_sees_is_seen() {
        // Up by 1 at 0.3 and down at 0.7: the sum is right without them.
        let step = |t: f64| (t + f64::from(u8::from((0.3..0.7).contains(&t))), 1.0);
        assert!(seen(Rule::Left { steps: 50 }, step) > 1.0);
        assert!(seen(Rule::GaussLegendre { nodes: 50 }, step) > 1.0);
        assert!(seen(Rule::GaussLegendre { nodes: 50 }, |t| (3.0 * t, 3.0)) < 1e-12);
    }
}
