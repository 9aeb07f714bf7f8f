//! Neighbourhood preservation: whether a path keeps examples beside those that they are beside in the data.
//!
//! ```text
//! NP_k(t) = 1/n sum_i | N_k(i; x(1)) with N_k(i; x(t)) | / k        in [0, 1], 1: nobody lost a neighbour
//! ```
//!
//! `N_k(i; x)` are the `k` examples nearest to example `i` among the states `x`, by Euclidean distance; of equally
//! near ones the first. States that have nothing to do with the data have `k / (n - 1)` on average. A flow whose
//! intermediate states mix up neighbours sends the credit of similar inputs through different regions.

use ndarray::ArrayView2;

use crate::{Error, Result, error};

/// The mean fraction of the `neighbours` nearest examples in `data` that are among the nearest in `states` too;
/// both `[examples, features]`, in the same order. Higher is better; 1 means that all are.
///
/// Costs the squared number of examples, in time.
///
/// ```
/// use brenier::neighbourhood_preservation;
/// use ndarray::array;
///
/// let data = array![[0.0], [1.0], [3.0], [7.0]];
/// assert_eq!(neighbourhood_preservation(data.view(), (-2.0 * &data).view(), 1)?, 1.0);
/// # Ok::<(), brenier::Error>(())
/// ```
pub fn neighbourhood_preservation(
    data: ArrayView2<f64>,
    states: ArrayView2<f64>,
    neighbours: usize,
) -> Result<f64> {
    let examples = data.nrows();
    error::expect_shape("the states of the examples", &[examples, data.ncols()], states.shape())?;
    if neighbours == 0 || neighbours >= examples {
        return Err(Error::Setting {
            name: "the number of neighbours",
            value: format!("{neighbours}, with {examples} examples"),
            needs: "it is at least 1, and there are more examples than neighbours",
            hint: "10 neighbours of some hundred examples tell much".into(),
        });
    }
    let mut kept = 0;
    for i in 0..examples {
        let before = nearest(data, i, neighbours)?;
        let after = nearest(states, i, neighbours)?;
        kept += before.iter().filter(|j| after.contains(j)).count();
    }
    Ok(kept as f64 / (examples * neighbours) as f64)
}

/// The examples nearest to example `i`, in no particular order.
fn nearest(rows: ArrayView2<f64>, i: usize, count: usize) -> Result<Vec<usize>> {
    error::expect_finite("state", i, 0.0, rows.row(i))?;
    let centre = rows.row(i);
    let mut others: Vec<(f64, usize)> = (0..rows.nrows())
        .filter(|&j| j != i)
        .map(|j| (centre.iter().zip(rows.row(j)).map(|(a, b)| (a - b).powi(2)).sum(), j))
        .collect();
    if count < others.len() {
        others.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }
    Ok(others[..count].iter().map(|&(_, j)| j).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut rng))
    }

    #[test]
    fn similarities_keep_every_neighbour() {
        let data = normal(60, 2, 1);
        let (sin, cos) = 0.7_f64.sin_cos();
        let turned = data.dot(&array![[cos, sin], [-sin, cos]]) * 3.0 + 5.0;
        for k in [1, 7, 59] {
            assert_eq!(neighbourhood_preservation(data.view(), turned.view(), k).unwrap(), 1.0);
        }
    }

    #[test]
    fn unrelated_states_keep_what_chance_keeps() {
        let (data, states) = (normal(400, 5, 2), normal(400, 5, 3));
        let kept = neighbourhood_preservation(data.view(), states.view(), 20).unwrap();
        assert!((kept - 20.0 / 399.0).abs() < 0.01, "{kept}");
    }

    #[test]
    fn a_small_case_by_hand_with_ties_to_the_first() {
        // Nearest of 0, 1, 3, 7: 1, 0, 1, 3. Of 0, 10, 1, 11: the third, the fourth, the first, the second.
        let data = array![[0.0], [1.0], [3.0], [7.0]];
        let swapped = array![[0.0], [10.0], [1.0], [11.0]];
        assert_eq!(neighbourhood_preservation(data.view(), swapped.view(), 1).unwrap(), 0.0);
        // Two of two: {1,2}, {0,2}, {1,0}, {2,1} against {2,1}, {3,2}, {0,1}, {1,2}.
        let two = neighbourhood_preservation(data.view(), swapped.view(), 2).unwrap();
        assert_eq!(two, (2.0 + 1.0 + 2.0 + 2.0) / 8.0);
        // All at one place: the first of the others, {1, 0, 0, 0}, of which {1, 0, 1, 2} are two.
        let collapsed = Array2::zeros((4, 1));
        assert_eq!(neighbourhood_preservation(data.view(), collapsed.view(), 1).unwrap(), 0.5);
    }

    #[test]
    fn refuses_more_neighbours_than_there_are_others() {
        let data = normal(5, 2, 4);
        for k in [0, 5] {
            let message = neighbourhood_preservation(data.view(), data.view(), k).unwrap_err().to_string();
            assert!(message.contains("with 5 examples"), "{message}");
        }
        assert!(neighbourhood_preservation(data.view(), normal(4, 2, 4).view(), 2).is_err());
        let broken = array![[0.0], [f64::NAN], [1.0]];
        assert!(neighbourhood_preservation(broken.view(), broken.view(), 1).is_err());
    }
}
