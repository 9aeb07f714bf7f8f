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
//! not pass. Neither is the error of the map, which has its own estimate and may have its own tolerance.
//!
//! It begins with nine nodes of Clenshaw-Curtis. If the polynomial through their slopes predicts the change of the score
//! between all of them, the model is smooth, and twice as many, which keep these, are taken until the conditions hold. With
//! `D_n = |C_n - C_{n/2}|`, the distance of two maps from the same nodes, the map's error is estimated as `D_n^2 / D_{n/2}`,
//! at most `D_n`: an error that fell by some factor falls by at least that factor again.
//!
//! If the model is not smooth (a ReLU network has kinks, where high order buys nothing), the same nodes become the ends of
//! segments with trapezoidal credit, and segments are halved. With `d_j` the gradients' difference between the ends times
//! the step, feature by feature, the error of a segment's credit is of size
//!
//! ```text
//! |d_j| / sqrt(12)
//! ```
//!
//! for a kink anywhere in it, and for many of them, whose slopes wander like Brownian motion. Errors of segments are
//! independent, so the map's error is the root of their summed squares. Halving leaves a quarter of that square. Those are halved
//! first from which the map and the two conditions gain most: with `E = sum_j e_j`, and a quarter of `e_j` left after halving,
//!
//! ```text
//! gain_j = 3/4 |d_j|^2 / 12 + 1/10 (3/2 E e_j + 13/32 e_j^2)
//! ```
//!
//! The tenth is small enough to leave the map as good as without the second term, and large enough to bring the residual down
//! to a third of what it is without. With n features the first term counts `1 - 1/n` and the second at least `1/n`: the sum of
//! the features' errors is known exactly, and with one feature it is all there is. If it is a quarter of `e_j` that is left time after
//! time, the first look was too coarse for a smooth function, and Clenshaw-Curtis gets another chance with about as many
//! nodes as there are by then.
//!
//! Gradients are kept only for open segments, at most [`OPEN_BYTES`] of them; beyond that the segments that
//! agree best are closed for good. So memory does not grow with the number of steps.

use std::rc::Rc;

use ndarray::Array1;

use super::chebyshev::{clenshaw_curtis, predicted_rises, time};
use crate::path::Path;

/// Memory for the gradients that one path keeps for further halving.
const OPEN_BYTES: usize = 64 << 20;
/// Segments halved at a time, at most.
const HALVED_AT_ONCE: usize = 16;
/// Halving waits for the next round if it promises less than this part of the round's greatest gain.
const WORTHWHILE: f64 = 0.1;
/// Intervals of the first look.
const FIRST: usize = 8;
const MOST: usize = 256;
/// What the conditions count for beside the map when segments are chosen.
const ACCOUNTING: f64 = 0.1;
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
    /// The square of the estimated error of its credit.
    map_square: f64,
}

enum Stage {
    /// Waiting for the nodes that a Clenshaw-Curtis rule has beyond those known; remembers the disagreement before.
    Smooth {
        intervals: usize,
        known: Vec<Rc<Node>>,
        before: Option<f64>,
    },
    /// Waiting for all its nodes while the segments stay open, in case it fails.
    SecondLook {
        intervals: usize,
    },
    /// Waiting for the ends of the first segments of a path with corners.
    Opening,
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
    /// Allowed error of the map, relative to its size.
    map_tolerance: Option<f64>,
    max_gradients: usize,
    ends: (f64, f64),
    /// Least and greatest score seen.
    range: (f64, f64),
    stage: Stage,
    segments: Vec<Segment>,
    open_limit: usize,
    closed_error: f64,
    closed_squares: f64,
    closed_map_squares: f64,
    /// Halved segments since the last look, and how many of them shrank as on a smooth function.
    halved: usize,
    shrunk: usize,
    /// The number of gradients before which Clenshaw-Curtis is not tried again.
    next_look: usize,
    /// The credit so far: of closed segments while halving, of everything when done.
    pub(super) credit: Array1<f64>,
    /// Root of summed squares of the segments' errors, when done.
    pub(super) disagreement: f64,
    /// The estimated error of the credit, in its own norm, when done.
    pub(super) map_error: f64,
    pub(super) gradients: usize,
    /// What it settled on, in words.
    pub(super) used: String,
}

impl<'a> Adaptive<'a> {
    /// `ends` are the scores at reference and input, for which forward evaluations suffice.
    pub(super) fn new(
        path: &'a dyn Path,
        ends: (f64, f64),
        (tolerance, map_tolerance): (f64, Option<f64>),
        max_gradients: usize,
    ) -> Self {
        let features = path.at(0.0).len();
        let stage = if path.corners().is_empty() {
            Stage::Smooth { intervals: FIRST, known: Vec::new(), before: None }
        } else {
            Stage::Opening
        };
        Self {
            path,
            tolerance,
            map_tolerance,
            max_gradients,
            ends,
            range: (ends.0.min(ends.1), ends.0.max(ends.1)),
            stage,
            segments: Vec::new(),
            open_limit: (OPEN_BYTES / (8 * features.max(1))).max(64),
            closed_error: 0.0,
            closed_squares: 0.0,
            closed_map_squares: 0.0,
            halved: 0,
            shrunk: 0,
            next_look: 3 * FIRST,
            credit: Array1::zeros(features),
            disagreement: 0.0,
            map_error: 0.0,
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
            Stage::Smooth { intervals, known, .. } => {
                let step = if known.is_empty() { 1 } else { 2 };
                (step - 1..=*intervals).step_by(step).map(|k| time(k, *intervals)).collect()
            }
            Stage::SecondLook { intervals } => (0..=*intervals).map(|k| time(k, *intervals)).collect(),
            Stage::Opening => {
                // A path with corners: its pieces, halved until there are at least as many as first nodes.
                let mut times = vec![0.0];
                times.extend(self.path.corners());
                times.push(1.0);
                while times.len() <= FIRST {
                    let halved = times.windows(2).flat_map(|pair| [pair[0], 0.5 * (pair[0] + pair[1])]);
                    times = halved.chain([1.0]).collect();
                }
                times
            }
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
            Stage::Smooth { intervals, mut known, before } => {
                known.extend(fresh);
                known.sort_by(|a, b| a.time.total_cmp(&b.time));
                let (agreed, disagreement, smooth) = self.try_polynomial(&known);
                let improving = before.is_none_or(|before| disagreement < SMOOTH * before);
                let room = self.gradients + intervals <= self.max_gradients;
                if agreed {
                    return;
                }
                if smooth && improving && room && 2 * intervals <= MOST {
                    self.stage =
                        Stage::Smooth { intervals: 2 * intervals, known, before: Some(disagreement) };
                } else {
                    self.open(&known);
                }
            }
            Stage::SecondLook { .. } => {
                if !self.try_polynomial(&fresh).0 {
                    self.next_look = 3 * self.gradients;
                    self.next_round();
                }
            }
            Stage::Opening => self.open(&fresh),
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

    /// Turns nodes into segments.
    fn open(&mut self, nodes: &[Rc<Node>]) {
        self.segments = nodes.windows(2).map(|pair| self.segment(&pair[0], &pair[1])).collect();
        self.used = "bisection".into();
        self.next_round();
    }

    /// Judges a Clenshaw-Curtis estimate by the score's change between its own nodes, and takes its credit if
    /// it agrees. Returns whether it does, by how much it disagrees, and whether the model looks smooth.
    fn try_polynomial(&mut self, nodes: &[Rc<Node>]) -> (bool, f64, bool) {
        let parts: Vec<_> =
            nodes.iter().map(|node| &node.gradient * &self.path.derivative(node.time)).collect();
        let slopes: Vec<f64> = parts.iter().map(|part| part.sum()).collect();
        let rises = predicted_rises(&slopes);
        let errors: Vec<f64> =
            nodes.windows(2).zip(&rises).map(|(n, rise)| n[1].value - n[0].value - rise).collect();
        let disagreement = root_of_squares(&errors);
        let tau = self.tolerance * self.scale();
        // The same nodes hold the rules of a half and a quarter of the intervals.
        let map = |every: usize| {
            let mut map = Array1::zeros(self.credit.len());
            let rule = clenshaw_curtis((nodes.len() - 1) / every);
            for ((_, weight), part) in rule.iter().zip(parts.iter().step_by(every)) {
                map.scaled_add(*weight, part);
            }
            map
        };
        let (full, half, quarter) = (map(1), map(2), map(4));
        let (last, before) = (norm(&(&full - &half)), norm(&(&half - &quarter)));
        let map_error = if last == 0.0 { 0.0 } else { last * (last / before).min(1.0) };
        let exact = self.map_tolerance.is_none_or(|tolerance| map_error <= tolerance * norm(&full));
        if errors.iter().sum::<f64>().abs() <= tau && disagreement <= tau && exact {
            self.segments.clear();
            self.credit = full;
            self.disagreement = disagreement;
            self.map_error = map_error;
            self.used = format!("clenshaw-curtis, {} nodes", nodes.len());
            return (true, disagreement, true);
        }
        // Smooth: the polynomial predicts far better than the trapezoid.
        let trapezoid: Vec<f64> = nodes
            .windows(2)
            .zip(slopes.windows(2))
            .map(|(n, s)| n[1].value - n[0].value - 0.5 * (s[0] + s[1]) * (n[1].time - n[0].time))
            .collect();
        (false, disagreement, disagreement < SMOOTH * root_of_squares(&trapezoid))
    }

    fn segment(&self, from: &Rc<Node>, to: &Rc<Node>) -> Segment {
        let step = self.path.at(to.time) - self.path.at(from.time);
        let credit = 0.5 * (from.gradient.dot(&step) + to.gradient.dot(&step));
        let differences = from.gradient.iter().zip(&to.gradient).zip(&step);
        let map_square = differences.map(|((a, b), s)| ((b - a) * s).powi(2)).sum::<f64>() / 12.0;
        let error = to.value - from.value - credit;
        Segment { from: Rc::clone(from), to: Rc::clone(to), error, map_square }
    }

    /// The credit of all segments, for its size.
    fn size(&self) -> f64 {
        let mut credit = self.credit.clone();
        self.segments.iter().for_each(|segment| segment.add_credit(self.path, &mut credit));
        norm(&credit)
    }

    /// Finishes, or chooses the segments to halve next.
    fn next_round(&mut self) {
        let sum = self.closed_error + self.segments.iter().map(|s| s.error).sum::<f64>();
        let squares = self.closed_squares + self.segments.iter().map(|s| s.error * s.error).sum::<f64>();
        self.disagreement = squares.sqrt();
        let tau = self.tolerance * self.scale();
        let map_squares = self.closed_map_squares + self.segments.iter().map(|s| s.map_square).sum::<f64>();
        self.map_error = map_squares.sqrt();
        let agreed = sum.abs() <= tau
            && self.disagreement <= tau
            && self.map_tolerance.is_none_or(|tolerance| self.map_error <= tolerance * self.size());
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
            let intervals = self.gradients.next_power_of_two().clamp(32, MOST);
            let smooth = 4 * self.shrunk >= 3 * self.halved;
            self.halved = 0;
            self.shrunk = 0;
            if smooth && self.gradients + intervals < self.max_gradients {
                self.stage = Stage::SecondLook { intervals };
                return;
            }
            self.next_look = 2 * self.gradients;
        }
        // Make room for the new ones by closing those that agree best.
        let mut excess = (self.segments.len() + asked.len()).saturating_sub(self.open_limit);
        if excess > 0 {
            let mut order: Vec<usize> = (0..self.segments.len()).filter(|j| !asked.contains(j)).collect();
            order.sort_by(|&a, &b| self.segments[a].worth().total_cmp(&self.segments[b].worth()));
            excess = excess.min(order.len());
            let closing = &order[..excess];
            let mut kept = Vec::with_capacity(self.open_limit);
            let mut renumbered = vec![usize::MAX; self.segments.len()];
            for (j, segment) in std::mem::take(&mut self.segments).into_iter().enumerate() {
                if closing.contains(&j) {
                    self.closed_error += segment.error;
                    self.closed_squares += segment.error * segment.error;
                    self.closed_map_squares += segment.map_square;
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
        segment.add_credit(self.path, &mut self.credit);
    }
}

impl Segment {
    fn middle(&self) -> f64 {
        0.5 * (self.from.time + self.to.time)
    }

    fn add_credit(&self, path: &dyn Path, credit: &mut Array1<f64>) {
        let step = path.at(self.to.time) - path.at(self.from.time);
        for i in 0..step.len() {
            credit[i] += 0.5 * (self.from.gradient[i] + self.to.gradient[i]) * step[i];
        }
    }

    /// By how much halving is expected to lower the square of the map's error, and, for less, the square of the errors'
    /// sum, `sum`, and the sum of their squares.
    fn gain(&self, sum: f64) -> f64 {
        // Of the features' errors, one combination is known exactly: their sum.
        let known = 1.0 / self.from.gradient.len().max(1) as f64;
        0.75 * (1.0 - known) * self.map_square + known.max(ACCOUNTING) * self.accounting_gain(sum)
    }

    fn accounting_gain(&self, sum: f64) -> f64 {
        1.5 * sum * self.error + 13.0 / 32.0 * self.error * self.error
    }

    /// What is left to be gained if the errors' sum is nothing.
    fn worth(&self) -> f64 {
        self.gain(0.0)
    }

    fn divisible(&self) -> bool {
        self.to.time - self.from.time > 1e-12
    }
}

fn root_of_squares(errors: &[f64]) -> f64 {
    errors.iter().map(|e| e * e).sum::<f64>().sqrt()
}

fn norm(map: &Array1<f64>) -> f64 {
    map.dot(map).sqrt()
}

#[cfg(test)]
mod tests;
