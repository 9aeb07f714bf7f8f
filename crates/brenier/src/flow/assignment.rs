//! The assignment problem, exactly.
//!
//! ```text
//! min over permutations p of   sum_i  cost[i, p(i)]
//! ```
//!
//! Shortest augmenting paths with dual prices (Jonker and Volgenant, 1987; in the form of Crouse, 2016, which
//! SciPy has too): rows are added one by one, each along the cheapest path that frees a column for it. Cost
//! `O(n^3)`, in practice far less. Written out here, a page, because the crates for it take integers, or have
//! not been kept up.

use ndarray::ArrayView2;

use crate::error::{Error, Result, expect_shape};

/// The column of every row in an assignment of least total cost. Ties go to the lower column.
///
/// # Errors
/// A matrix that is not square, or a cost that is not finite.
pub fn assign(cost: ArrayView2<f64>) -> Result<Vec<usize>> {
    let n = cost.nrows();
    expect_shape("the cost matrix", &[n, n], cost.shape())?;
    if let Some(((row, column), &value)) = cost.indexed_iter().find(|(_, v)| !v.is_finite()) {
        return Err(Error::Setting {
            name: "the cost of an assignment",
            value: format!("{value} between row {row} and column {column}"),
            needs: "all costs must be finite",
            hint: "look for infinite or very large numbers in the data",
        });
    }
    const FREE: usize = usize::MAX;
    let (mut row_price, mut column_price) = (vec![0.0; n], vec![0.0; n]);
    let (mut column_of, mut row_of) = (vec![FREE; n], vec![FREE; n]);
    for new in 0..n {
        // Dijkstra over columns, with reduced costs, from the new row to the nearest free column.
        let mut distance = vec![f64::INFINITY; n];
        let mut before = vec![FREE; n];
        let mut open: Vec<usize> = (0..n).collect();
        let mut reached_rows = Vec::new();
        let mut reached_columns = Vec::new();
        let (mut row, mut nearest) = (new, 0.0);
        let end = loop {
            reached_rows.push(row);
            let mut best = (f64::INFINITY, 0);
            for (place, &column) in open.iter().enumerate() {
                let through = nearest + cost[[row, column]] - row_price[row] - column_price[column];
                if through < distance[column] {
                    (distance[column], before[column]) = (through, row);
                }
                // Of equally near columns a free one ends the search.
                let free = row_of[column] == FREE;
                if distance[column] < best.0 || (distance[column] == best.0 && free) {
                    best = (distance[column], place);
                }
            }
            nearest = best.0;
            let column = open.swap_remove(best.1);
            reached_columns.push(column);
            if row_of[column] == FREE {
                break column;
            }
            row = row_of[column];
        };
        row_price[new] += nearest;
        for &row in &reached_rows[1..] {
            row_price[row] += nearest - distance[column_of[row]];
        }
        for &column in &reached_columns {
            column_price[column] -= nearest - distance[column];
        }
        let mut column = end;
        loop {
            let row = before[column];
            row_of[column] = row;
            std::mem::swap(&mut column_of[row], &mut column);
            if row == new {
                break;
            }
        }
    }
    Ok(column_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use proptest::prelude::*;

    fn total(cost: &Array2<f64>, columns: &[usize]) -> f64 {
        columns.iter().enumerate().map(|(i, &j)| cost[[i, j]]).sum()
    }

    /// The least cost over all permutations.
    fn brute_force(cost: &Array2<f64>, row: usize, used: &mut Vec<bool>) -> f64 {
        if row == cost.nrows() {
            return 0.0;
        }
        let mut best = f64::INFINITY;
        for column in 0..cost.nrows() {
            if !used[column] {
                used[column] = true;
                best = best.min(cost[[row, column]] + brute_force(cost, row + 1, used));
                used[column] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn is_as_good_as_the_best_of_all_permutations(
            n in 1_usize..7,
            numbers in prop::collection::vec(-5.0_f64..5.0, 36),
            whole in any::<bool>(),
        ) {
            // Whole numbers make ties.
            let cost = Array2::from_shape_fn((n, n), |(i, j)| {
                if whole { numbers[6 * i + j].round() } else { numbers[6 * i + j] }
            });
            let columns = assign(cost.view()).unwrap();
            let mut sorted = columns.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            let best = brute_force(&cost, 0, &mut vec![false; n]);
            prop_assert!((total(&cost, &columns) - best).abs() < 1e-9);
        }
    }

    #[test]
    fn sorts_a_line_and_refuses_what_is_not_finite() {
        // On a line the best assignment is the one in order.
        let points = [3.0, -1.0, 0.5, 7.0, 2.0_f64];
        let cost = Array2::from_shape_fn((5, 5), |(i, j)| (points[i] - j as f64).powi(2));
        assert_eq!(assign(cost.view()).unwrap(), [3, 0, 1, 4, 2]);
        assert!(assign(Array2::from_elem((2, 2), f64::NAN).view()).is_err());
        assert!(assign(Array2::zeros((2, 3)).view()).is_err());
        assert!(assign(Array2::zeros((0, 0)).view()).unwrap().is_empty());
    }
}
