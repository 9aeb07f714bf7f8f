//! Which outputs are explained.

use std::ops::Range;

use ndarray::ArrayView2;

use crate::predictor::Outputs;
use crate::{Error, Result, error, highest_first};

/// Which outputs are explained, of every input.
#[derive(Clone)]
pub enum Targets<'a> {
    /// These, of every input.
    Same(Vec<usize>),
    /// One for each input.
    Each(Vec<usize>),
    /// So many with the highest scores, the highest first.
    Highest {
        /// Whose outputs.
        model: &'a dyn Outputs,
        /// How many of them.
        count: usize,
    },
}

impl Targets<'_> {
    /// How many outputs of each input.
    pub fn count(&self) -> usize {
        match self {
            Targets::Same(targets) => targets.len(),
            Targets::Each(_) => 1,
            Targets::Highest { count, .. } => *count,
        }
    }

    /// The targets of the inputs in a range: a list for each round, with a target for each of these rows.
    ///
    /// # Errors
    /// What the model says; a list of targets that ends too soon.
    pub fn of(&self, rows: ArrayView2<f64>, range: Range<usize>) -> Result<Vec<Vec<usize>>> {
        match self {
            Targets::Same(targets) => Ok(targets.iter().map(|&target| vec![target; rows.nrows()]).collect()),
            Targets::Each(targets) => {
                let here = targets.get(range.clone()).ok_or(Error::Shape {
                    what: "the list of targets".to_string(),
                    expected: vec![range.end],
                    found: vec![targets.len()],
                })?;
                Ok(vec![here.to_vec()])
            }
            Targets::Highest { model, count } => {
                let scores = model.outputs(rows)?;
                error::expect_shape("the outputs", &[rows.nrows(), scores.ncols()], scores.shape())?;
                let orders: Vec<Vec<usize>> =
                    scores.rows().into_iter().map(|row| highest_first(&row.to_vec())).collect();
                let ranks = (0..(*count).min(scores.ncols()))
                    .map(|rank| orders.iter().map(|order| order[rank]).collect());
                Ok(ranks.collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_list_of_targets_is_cut_with_the_inputs() {
        let rows = array![[0.0], [0.0]];
        let each = Targets::Each(vec![4, 5, 6]);
        assert_eq!(each.of(rows.view(), 1..3).unwrap(), [[5, 6]]);
        assert!(each.of(rows.view(), 2..4).unwrap_err().to_string().contains("list of targets"));
        assert_eq!(Targets::Same(vec![7, 1]).of(rows.view(), 0..2).unwrap(), [[7, 7], [1, 1]]);
    }
}
