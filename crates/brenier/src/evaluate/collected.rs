//! What the chunks of one method have given so far, and the row of the table that they become.

use serde::{Deserialize, Serialize};

use super::{Cell, MethodRow, Summary};

/// A finished chunk of a method.
#[derive(Serialize, Deserialize)]
pub(super) struct Chunk {
    /// For each metric the number of each example, or why there is none.
    pub(super) scores: Vec<std::result::Result<Vec<Option<f64>>, String>>,
    pub(super) gradients: usize,
    pub(super) evaluations: usize,
}

/// What the chunks of a method have given so far.
pub(super) struct Collected {
    pub(super) scores: Vec<Vec<Option<f64>>>,
    pub(super) absent: Vec<Option<String>>,
    gradients: usize,
    evaluations: usize,
}

impl Collected {
    pub(super) fn new(metrics: usize) -> Collected {
        Collected {
            scores: vec![Vec::new(); metrics],
            absent: vec![None; metrics],
            gradients: 0,
            evaluations: 0,
        }
    }

    pub(super) fn add(&mut self, chunk: Chunk) {
        for (k, scores) in chunk.scores.into_iter().enumerate() {
            match scores {
                Ok(scores) => self.scores[k].extend(scores),
                Err(reason) => self.absent[k] = Some(reason),
            }
        }
        self.gradients += chunk.gradients;
        self.evaluations += chunk.evaluations;
    }

    /// The row of a method with these of the metrics.
    pub(super) fn finish(self, method: String, examples: usize, kept: &[usize]) -> MethodRow {
        let cell = |&k: &usize| match Summary::of(&self.scores[k]) {
            Some(summary) => Cell::Measured(summary),
            None => {
                let reason = self.absent[k].clone();
                Cell::Absent(reason.unwrap_or_else(|| "it is defined for none of the examples".into()))
            }
        };
        MethodRow {
            method,
            cells: kept.iter().map(cell).collect(),
            gradients: self.gradients as f64 / examples as f64,
            scores: self.evaluations as f64 / examples as f64,
        }
    }
}
