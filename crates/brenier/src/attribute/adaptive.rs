//! The adaptive rule for one path and target, as a state machine: it asks for gradients at some times, is
//! given them, and asks again until the credit agrees with the score.
//!
//! A gradient evaluation brings the score with it. So between any two nodes there is something to check that
//! costs nothing: the score's change there against the credit given there,
//!
//! ```text
//! e_j = f(b_j) - f(a_j) - sum_i credit_ij,     done when |sum_j e_j| <= tau and (sum_j e_j^2)^(1/2) <= tau
//! ```
//!
//! with `tau = tolerance |f(1) - f(0)|`. The second condition keeps luck out: errors that happen to cancel do
//! not pass. It begins with eight Gauss-Legendre nodes. If the polynomial through their slopes predicts the
//! change of the score between all of them, the model is smooth, and Gauss-Legendre with 8, 16, 32 or 64
//! nodes is the answer. If it does not (a ReLU network has kinks, where high order buys nothing), the same
//! nodes become the ends of segments with trapezoidal credit, and segments are halved, those first from which the
//! two conditions gain most: with `E = sum_j e_j`, and a quarter of `e_j` left after halving,
//!
//! ```text
//! gain_j = E^2 - (E - 3/4 e_j)^2 + e_j^2 - 2 (e_j / 8)^2 = 3/2 E e_j + 13/32 e_j^2
//! ```
//!
//! A quarter is what smooth functions leave, and, on average, slopes that wander like Brownian motion, as those of a
//! network with many kinks do. If it is a quarter time after time, the first look was too coarse for a smooth
//! function, and Gauss-Legendre gets another chance with about as many nodes as there are by then.
//!
//! Gradients are kept only for open segments, at most [`OPEN_BYTES`] of them; beyond that the segments that
//! agree best are closed for good. So memory does not grow with the number of steps.

use std::rc::Rc;

use ndarray::{Array1, ArrayView1};

use super::rule::gauss_legendre;
use crate::path::Path;

/// Memory for the gradients that one path keeps for further halving.
const OPEN_BYTES: usize = 64 << 20;
/// Segments halved at a time, at most.
const HALVED_AT_ONCE: usize = 16;
/// Halving waits for the next round if it promises less than this part of the round's greatest gain.
const WORTHWHILE: f64 = 0.1;
const FIRST_NODES: usize = 8;
const MOST_NODES: usize = 256;
/// The polynomial must predict the segments this much better than a trapezoid for a model to count as smooth.
const SMOOTH: f64 = 0.1;

/// What is known at one time on the path.
struct Node {
    time: f64,
    value: f64,
    gradient: Array1<f64>,
}

struct Segment {
    from: Rc<Node>,
    to: Rc<Node>,
    error: f64,
}

enum Stage {
    /// Waiting for Gauss-Legendre nodes; remembers the disagreement of the stage before.
    Legendre {
        nodes: usize,
        before: Option<f64>,
    },
    /// Waiting for Gauss-Legendre nodes while the segments stay open, in case it fails.
    SecondLegendre {
        nodes: usize,
    },
    /// Waiting for what turns nodes into segments: the ends, or all nodes of a path with corners.
    Opening {
        nodes: Vec<Rc<Node>>,
    },
    /// Waiting for the middles of the segments that disagree most.
    Halving {
        asked: Vec<usize>,
    },
    Done,
}

/// The adaptive integration of one path and target.
pub(super) struct Adaptive<'a> {
    path: &'a dyn Path,
    tolerance: f64,
    max_gradients: usize,
    ends: (f64, f64),
    /// Least and greatest score seen.
    range: (f64, f64),
    stage: Stage,
    segments: Vec<Segment>,
    open_limit: usize,
    closed_error: f64,
    closed_squares: f64,
    /// Halved segments since the last look, and how many of them shrank as on a smooth function.
    halved: usize,
    shrunk: usize,
    /// The number of gradients before which Gauss-Legendre is not tried again.
    next_look: usize,
    /// The credit so far: of closed segments while halving, of everything when done.
    pub(super) credit: Array1<f64>,
    /// Root of summed squares of the segments' errors, when done.
    pub(super) disagreement: f64,
    pub(super) gradients: usize,
    /// What it settled on, in words.
    pub(super) used: String,
}

impl<'a> Adaptive<'a> {
    /// `ends` are the scores at reference and input, for which forward evaluations suffice.
    pub(super) fn new(path: &'a dyn Path, ends: (f64, f64), tolerance: f64, max_gradients: usize) -> Self {
        let features = path.at(0.0).len();
        let stage = if path.corners().is_empty() {
            Stage::Legendre { nodes: FIRST_NODES, before: None }
        } else {
            Stage::Opening { nodes: Vec::new() }
        };
        Self {
            path,
            tolerance,
            max_gradients,
            ends,
            range: (ends.0.min(ends.1), ends.0.max(ends.1)),
            stage,
            segments: Vec::new(),
            open_limit: (OPEN_BYTES / (8 * features.max(1))).max(64),
            closed_error: 0.0,
            closed_squares: 0.0,
            halved: 0,
            shrunk: 0,
            next_look: 3 * FIRST_NODES,
            credit: Array1::zeros(features),
            disagreement: 0.0,
            gradients: 0,
            used: String::new(),
        }
    }

    /// What residuals are measured against: the score's change, or a thousandth of what the score does on
    /// the way if it returns to where it began.
    pub(super) fn scale(&self) -> f64 {
        (self.ends.1 - self.ends.0).abs().max(1e-3 * (self.range.1 - self.range.0))
    }

    /// The times at which gradients are needed next; empty when done.
    pub(super) fn wanted(&self) -> Vec<f64> {
        match &self.stage {
            Stage::Legendre { nodes, .. } | Stage::SecondLegendre { nodes } => {
                gauss_legendre(*nodes).iter().map(|node| node.0).collect()
            }
            Stage::Opening { nodes } if nodes.is_empty() => {
                // A path with corners: its pieces, halved until there are at least as many as first nodes.
                let mut times = vec![0.0];
                times.extend(self.path.corners());
                times.push(1.0);
                while times.len() <= FIRST_NODES {
                    let halved = times.windows(2).flat_map(|pair| [pair[0], 0.5 * (pair[0] + pair[1])]);
                    times = halved.chain([1.0]).collect();
                }
                times
            }
            Stage::Opening { .. } => vec![0.0, 1.0],
            Stage::Halving { asked } => asked.iter().map(|&j| self.segments[j].middle()).collect(),
            Stage::Done => Vec::new(),
        }
    }

    /// Takes the scores and gradients at the times last asked for, in that order.
    pub(super) fn absorb(&mut self, found: Vec<(f64, Array1<f64>)>) {
        let times = self.wanted();
        self.gradients += found.len();
        let fresh: Vec<Rc<Node>> = times
            .into_iter()
            .zip(found)
            .map(|(time, (value, gradient))| {
                self.range = (self.range.0.min(value), self.range.1.max(value));
                Rc::new(Node { time, value, gradient })
            })
            .collect();
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Legendre { nodes, before } => {
                let (agreed, disagreement, smooth) = self.try_legendre(nodes, &fresh);
                let improving = before.is_none_or(|before| disagreement < SMOOTH * before);
                let room = self.gradients + 2 * nodes <= self.max_gradients;
                if !agreed {
                    self.stage = if smooth && improving && room && 2 * nodes <= MOST_NODES {
                        Stage::Legendre { nodes: 2 * nodes, before: Some(disagreement) }
                    } else {
                        Stage::Opening { nodes: fresh }
                    };
                }
            }
            Stage::SecondLegendre { nodes } => {
                if !self.try_legendre(nodes, &fresh).0 {
                    self.next_look = 3 * self.gradients;
                    self.next_round();
                }
            }
            Stage::Opening { nodes } => {
                let mut all = nodes;
                all.extend(fresh);
                all.sort_by(|a, b| a.time.total_cmp(&b.time));
                self.segments = all.windows(2).map(|pair| self.segment(&pair[0], &pair[1])).collect();
                self.used = "bisection".into();
                self.next_round();
            }
            Stage::Halving { asked } => {
                for (&j, node) in asked.iter().zip(&fresh) {
                    let (from, to) = (Rc::clone(&self.segments[j].from), Rc::clone(&self.segments[j].to));
                    let (first, second) = (self.segment(&from, node), self.segment(node, &to));
                    // Smooth: a quarter of the error is left. At a kink: anything, typically half.
                    self.halved += 1;
                    let left = first.error.abs() + second.error.abs();
                    self.shrunk += usize::from(left <= 0.35 * self.segments[j].error.abs());
                    self.segments[j] = first;
                    self.segments.push(second);
                }
                self.next_round();
            }
            Stage::Done => {}
        }
    }

    /// Judges a Gauss-Legendre estimate by the score's change between its own nodes, and takes its credit if
    /// it agrees. Returns whether it does, by how much it disagrees, and whether the model looks smooth.
    fn try_legendre(&mut self, count: usize, nodes: &[Rc<Node>]) -> (bool, f64, bool) {
        let rule = gauss_legendre(count);
        let tangents: Vec<_> = nodes.iter().map(|node| self.path.derivative(node.time)).collect();
        let slopes: Vec<f64> = nodes.iter().zip(&tangents).map(|(node, v)| node.gradient.dot(v)).collect();
        let rises = predicted_rises(&rule, &slopes);
        let mut values = vec![self.ends.0];
        values.extend(nodes.iter().map(|node| node.value));
        values.push(self.ends.1);
        let errors: Vec<f64> = values.windows(2).zip(&rises).map(|(f, rise)| f[1] - f[0] - rise).collect();
        let disagreement = root_of_squares(&errors);
        let tau = self.tolerance * self.scale();
        if errors.iter().sum::<f64>().abs() <= tau && disagreement <= tau {
            self.segments.clear();
            self.credit.fill(0.0);
            for ((node, tangent), (_, weight)) in nodes.iter().zip(&tangents).zip(&rule) {
                self.credit.zip_mut_with(&(&node.gradient * tangent), |c, g| *c += weight * g);
            }
            self.disagreement = disagreement;
            self.used = format!("gauss-legendre, {count} nodes");
            return (true, disagreement, true);
        }
        // Smooth: the polynomial predicts far better than the trapezoid.
        let trapezoid: Vec<f64> = nodes
            .windows(2)
            .zip(slopes.windows(2))
            .map(|(n, s)| n[1].value - n[0].value - 0.5 * (s[0] + s[1]) * (n[1].time - n[0].time))
            .collect();
        let inner = root_of_squares(&errors[1..errors.len() - 1]);
        (false, disagreement, inner < SMOOTH * root_of_squares(&trapezoid))
    }

    fn segment(&self, from: &Rc<Node>, to: &Rc<Node>) -> Segment {
        let step = self.path.at(to.time) - self.path.at(from.time);
        let credit = 0.5 * (from.gradient.dot(&step) + to.gradient.dot(&step));
        Segment { from: Rc::clone(from), to: Rc::clone(to), error: to.value - from.value - credit }
    }

    /// Finishes, or chooses the segments to halve next.
    fn next_round(&mut self) {
        let sum = self.closed_error + self.segments.iter().map(|s| s.error).sum::<f64>();
        let squares = self.closed_squares + self.segments.iter().map(|s| s.error * s.error).sum::<f64>();
        self.disagreement = squares.sqrt();
        let tau = self.tolerance * self.scale();
        let agreed = sum.abs() <= tau && self.disagreement <= tau;
        let mut asked = if agreed { Vec::new() } else { self.worth_halving(sum) };
        if asked.is_empty() {
            for segment in std::mem::take(&mut self.segments) {
                self.closed_error += segment.error;
                self.close(&segment);
            }
            self.stage = Stage::Done;
            return;
        }
        if self.gradients >= self.next_look && self.path.corners().is_empty() {
            let nodes = self.gradients.next_power_of_two().clamp(32, MOST_NODES);
            let smooth = 4 * self.shrunk >= 3 * self.halved;
            self.halved = 0;
            self.shrunk = 0;
            if smooth && self.gradients + nodes <= self.max_gradients {
                self.stage = Stage::SecondLegendre { nodes };
                return;
            }
            self.next_look = 2 * self.gradients;
        }
        // Make room for the new ones by closing those that agree best.
        let mut excess = (self.segments.len() + asked.len()).saturating_sub(self.open_limit);
        if excess > 0 {
            let mut order: Vec<usize> = (0..self.segments.len()).filter(|j| !asked.contains(j)).collect();
            order.sort_by(|&a, &b| self.segments[a].error.abs().total_cmp(&self.segments[b].error.abs()));
            excess = excess.min(order.len());
            let closing = &order[..excess];
            let mut kept = Vec::with_capacity(self.open_limit);
            let mut renumbered = vec![usize::MAX; self.segments.len()];
            for (j, segment) in std::mem::take(&mut self.segments).into_iter().enumerate() {
                if closing.contains(&j) {
                    self.closed_error += segment.error;
                    self.closed_squares += segment.error * segment.error;
                    self.close(&segment);
                } else {
                    renumbered[j] = kept.len();
                    kept.push(segment);
                }
            }
            self.segments = kept;
            asked.iter_mut().for_each(|j| *j = renumbered[*j]);
        }
        self.stage = Stage::Halving { asked };
    }

    /// The segments from whose halving the conditions gain most, each chosen as if those before it had left a
    /// quarter of their errors; `sum` is that of all errors.
    fn worth_halving(&self, mut sum: f64) -> Vec<usize> {
        let room = self.max_gradients.saturating_sub(self.gradients).min(HALVED_AT_ONCE);
        let mut candidates: Vec<usize> =
            (0..self.segments.len()).filter(|&j| self.segments[j].divisible()).collect();
        if candidates.iter().all(|&j| self.segments[j].gain(sum) <= 0.0) {
            // Only closed segments could mend the sum: the open ones at least shall agree.
            sum = 0.0;
        }
        let mut chosen = Vec::new();
        let mut enough = 0.0;
        while chosen.len() < room {
            let gains = candidates.iter().map(|&j| self.segments[j].gain(sum)).enumerate();
            let Some((place, gain)) = gains.max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            if gain <= enough {
                break;
            }
            if chosen.is_empty() {
                enough = WORTHWHILE * gain;
            }
            let j = candidates.swap_remove(place);
            sum -= 0.75 * self.segments[j].error;
            chosen.push(j);
        }
        chosen
    }

    /// Adds the credit of a segment for good.
    fn close(&mut self, segment: &Segment) {
        let step = self.path.at(segment.to.time) - self.path.at(segment.from.time);
        for i in 0..step.len() {
            self.credit[i] += 0.5 * (segment.from.gradient[i] + segment.to.gradient[i]) * step[i];
        }
    }
}

impl Segment {
    fn middle(&self) -> f64 {
        0.5 * (self.from.time + self.to.time)
    }

    /// By how much halving is expected to lower the square of the errors' sum, `sum`, and the sum of their squares.
    fn gain(&self, sum: f64) -> f64 {
        1.5 * sum * self.error + 13.0 / 32.0 * self.error * self.error
    }

    fn divisible(&self) -> bool {
        self.to.time - self.from.time > 1e-12
    }
}

fn root_of_squares(errors: &[f64]) -> f64 {
    errors.iter().map(|e| e * e).sum::<f64>().sqrt()
}

/// The integrals, over the segments between 0, the nodes and 1, of the polynomial through the slopes.
///
/// With `u = 2t - 1` the polynomial is `sum_k c_k P_k(u)`, `c_k = (2k + 1) sum_i w_i s_i P_k(u_i)`, and
/// `int P_k = (P_{k+1} - P_{k-1}) / (2k + 1)`.
fn predicted_rises(rule: &[(f64, f64)], slopes: &[f64]) -> Vec<f64> {
    let n = rule.len();
    let at_nodes: Vec<Vec<f64>> = rule.iter().map(|&(t, _)| legendre(2.0 * t - 1.0, n + 1)).collect();
    let sums: Vec<f64> =
        (0..n).map(|k| (0..n).map(|i| rule[i].1 * slopes[i] * at_nodes[i][k]).sum::<f64>()).collect();
    let primitive = |p: ArrayView1<f64>| {
        let first = sums[0] * (p[1] + 1.0);
        let rest: f64 = (1..n).map(|k| sums[k] * (p[k + 1] - p[k - 1])).sum();
        0.5 * (first + rest)
    };
    let mut heights = vec![0.0];
    heights.extend(at_nodes.iter().map(|p| primitive(ArrayView1::from(p))));
    heights.push(primitive(ArrayView1::from(&legendre(1.0, n + 1))));
    heights.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The Legendre polynomials `P_0 .. P_degree` at `u`.
fn legendre(u: f64, degree: usize) -> Vec<f64> {
    let mut p = vec![1.0, u];
    for k in 1..degree {
        let k_ = k as f64;
        p.push(((2.0 * k_ + 1.0) * u * p[k] - k_ * p[k - 1]) / (k_ + 1.0));
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;
    use ndarray::array;

    /// A score with 200 kinks along the path, and its slope; the seed moves the kinks.
    fn kinks(seed: f64, x: f64) -> (f64, f64) {
        (0..200).fold((0.0, 0.0), |(value, slope), k| {
            let (kink, sign) =
                (((f64::from(k) + seed) * 0.618_034).fract(), if k % 3 == 0 { 1.0 } else { -0.4 });
            if x > kink { (value + sign * (x - kink), slope + sign) } else { (value, slope) }
        })
    }

    /// Gives the state what it asks for, until it is done or says stop.
    fn run(state: &mut Adaptive, seed: f64, mut check: impl FnMut(&Adaptive)) {
        loop {
            let found: Vec<_> =
                state.wanted().into_iter().map(|t| (kinks(seed, t).0, array![kinks(seed, t).1])).collect();
            if found.is_empty() {
                return;
            }
            state.absorb(found);
            check(state);
        }
    }

    #[test]
    fn closing_segments_keeps_the_books_balanced() {
        // Room for 24 segments: most are closed long before the tolerance is met.
        let line = Line::new(array![0.0].view(), array![1.0].view()).unwrap();
        let ends = (kinks(0.0, 0.0).0, kinks(0.0, 1.0).0);
        let mut state = Adaptive::new(&line, ends, 1e-5, 300);
        state.open_limit = 24;
        run(&mut state, 0.0, |state| assert!(state.segments.len() <= 24 + HALVED_AT_ONCE));
        assert_eq!(state.gradients, 300);
        assert!(state.segments.is_empty());
        // What is missing in the sum is what the segments said was missing, and it is not much.
        let missing = ends.1 - ends.0 - state.credit.sum();
        assert!((missing - state.closed_error).abs() < 1e-9, "{missing} {}", state.closed_error);
        assert!(missing.abs() < 0.05 * (ends.1 - ends.0).abs(), "{missing}");
    }

    #[test]
    fn fifty_gradients_do_better_at_kinks_than_two_hundred_on_a_grid() {
        let line = Line::new(array![0.0].view(), array![1.0].view()).unwrap();
        let (mut adaptive, mut grid) = (0.0, 0.0);
        for seed in 0..40 {
            let seed = 7.3 * f64::from(seed);
            let ends = (kinks(seed, 0.0).0, kinks(seed, 1.0).0);
            let mut state = Adaptive::new(&line, ends, 1e-6, 50);
            run(&mut state, seed, |_| ());
            assert_eq!(state.gradients, 50);
            adaptive += (ends.1 - ends.0 - state.credit.sum()).abs();
            let left: f64 = (0..200).map(|k| kinks(seed, f64::from(k) / 200.0).1 / 200.0).sum();
            grid += (ends.1 - ends.0 - left).abs();
        }
        assert!(adaptive < 0.8 * grid, "{adaptive} {grid}");
    }

    #[test]
    fn a_gain_is_what_halving_takes_off_both_conditions() {
        let node = |time| Rc::new(Node { time, value: 0.0, gradient: array![0.0] });
        let errors = [0.3, -0.1, 0.05];
        let both =
            |errors: &[f64]| errors.iter().sum::<f64>().powi(2) + errors.iter().map(|e| e * e).sum::<f64>();
        for error in errors {
            let mut halved: Vec<f64> = errors.into_iter().filter(|e| *e != error).collect();
            halved.extend([error / 8.0; 2]);
            let gain = Segment { from: node(0.0), to: node(1.0), error }.gain(errors.iter().sum());
            assert!((gain - (both(&errors) - both(&halved))).abs() < 1e-15, "{error}: {gain}");
        }
    }

    #[test]
    fn predicted_rises_are_exact_for_polynomials() {
        let rule = gauss_legendre(6);
        let slopes: Vec<f64> = rule.iter().map(|&(t, _)| 5.0 * t.powi(4) - 2.0 * t + 0.5).collect();
        let primitive = |t: f64| t.powi(5) - t * t + 0.5 * t;
        let mut times = vec![0.0];
        times.extend(rule.iter().map(|node| node.0));
        times.push(1.0);
        for (pair, rise) in times.windows(2).zip(predicted_rises(&rule, &slopes)) {
            assert!((primitive(pair[1]) - primitive(pair[0]) - rise).abs() < 1e-14);
        }
    }
}
