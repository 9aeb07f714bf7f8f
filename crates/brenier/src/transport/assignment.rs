//! The assignment problem, exactly, with the proof.
//!
//! ```text
//! min over permutations p of   sum_i  cost[i, p(i)]
//! max over prices u, v of      sum_i u_i + sum_j v_j,    u_i + v_j <= cost[i, j] for all i, j
//! ```
//!
//! The two have the same value, so prices that are feasible and worth as much as an assignment prove that none is
//! better: [`Assignment::optimality`] computes by how much that fails.
//!
//! Shortest augmenting paths with prices (Jonker and Volgenant, 1987): columns are priced at their cheapest row, free
//! rows bid for columns as long as that settles them, and each row that is left is added along the cheapest path
//! that frees a column for it. Cost `O(n^3)`, in practice far less. Written out here because the crates for it take
//! integers, or have not been kept up.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, expect_shape};

/// An assignment of least total cost, with the prices that prove it.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The column of every row.
    pub columns: Vec<usize>,
    /// The price of every row.
    pub row_prices: Vec<f64>,
    /// The price of every column.
    pub column_prices: Vec<f64>,
}

/// How far a solution can be from the best one, by the prices that came with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Optimality {
    /// The cost of the solution.
    pub cost: f64,
    /// No solution costs less than this.
    pub bound: f64,
}

impl Optimality {
    /// The largest part of the cost that a better solution could save.
    pub fn relative_gap(&self) -> f64 {
        let gap = (self.cost - self.bound).max(0.0);
        if gap == 0.0 { 0.0 } else { gap / self.cost.abs().max(self.bound.abs()) }
    }
}

impl Assignment {
    /// The cost of the assignment, and a bound below which no assignment can cost.
    ///
    /// Where prices exceed a cost by `e` at most (rounding), lowering all row prices by `e` makes them feasible, so the
    /// bound is `sum u + sum v - n e`.
    pub fn optimality(&self, cost: ArrayView2<f64>) -> Optimality {
        let mut excess = 0.0f64;
        let mut total = 0.0;
        for (i, row) in cost.rows().into_iter().enumerate() {
            total += row[self.columns[i]];
            for (c, v) in row.iter().zip(&self.column_prices) {
                excess = excess.max(self.row_prices[i] + v - c);
            }
        }
        let prices = self.row_prices.iter().chain(&self.column_prices).sum::<f64>();
        Optimality { cost: total, bound: prices - excess * self.columns.len() as f64 }
    }
}

const FREE: usize = usize::MAX;

/// The column of every row in an assignment of least total cost.
///
/// # Errors
/// A matrix that is not square, or a cost that is not finite.
pub fn assign(cost: ArrayView2<f64>) -> Result<Vec<usize>> {
    Ok(solve_assignment(cost)?.columns)
}

/// As [`assign`], with the prices.
///
/// ```
/// use brenier::transport::solve_assignment;
/// use ndarray::array;
///
/// let cost = array![[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]];
/// let best = solve_assignment(cost.view())?;
/// assert_eq!(best.columns, [1, 0, 2]);
/// assert_eq!(best.optimality(cost.view()).relative_gap(), 0.0);
/// # Ok::<(), brenier::Error>(())
/// ```
///
/// # Errors
/// A matrix that is not square, or a cost that is not finite.
pub fn solve_assignment(cost: ArrayView2<f64>) -> Result<Assignment> {
    let n = cost.nrows();
    expect_shape("the cost matrix", &[n, n], cost.shape())?;
    expect_finite_costs(cost)?;
    let cost = cost.as_standard_layout();
    let rows: Vec<&[f64]> = cost.rows().into_iter().filter_map(|row| row.to_slice()).collect();
    let mut search = Search::new(&rows);
    search.price_columns();
    for _ in 0..2 {
        search.bid();
    }
    search.augment();
    Ok(search.finish())
}

pub(super) fn expect_finite_costs(cost: ArrayView2<f64>) -> Result<()> {
    match cost.indexed_iter().find(|(_, v)| !v.is_finite()) {
        None => Ok(()),
        Some(((row, column), &value)) => Err(Error::Setting {
            name: "the cost of an assignment",
            value: format!("{value} between row {row} and column {column}"),
            needs: "all costs must be finite",
            hint: "look for infinite or very large numbers in the data".into(),
        }),
    }
}

struct Search<'a> {
    rows: &'a [&'a [f64]],
    /// Of the columns; those of rows follow from them.
    prices: Vec<f64>,
    column_of: Vec<usize>,
    row_of: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(rows: &'a [&'a [f64]]) -> Self {
        let n = rows.len();
        Self { rows, prices: vec![0.0; n], column_of: vec![FREE; n], row_of: vec![FREE; n] }
    }

    /// Every column costs what its cheapest row pays, and goes to it where that is free.
    fn price_columns(&mut self) {
        let n = self.rows.len();
        self.prices.fill(f64::INFINITY);
        let mut cheapest = vec![0; n];
        for (i, row) in self.rows.iter().enumerate() {
            for (j, &c) in row.iter().enumerate() {
                if c < self.prices[j] {
                    (self.prices[j], cheapest[j]) = (c, i);
                }
            }
        }
        for j in (0..n).rev() {
            if self.column_of[cheapest[j]] == FREE {
                self.column_of[cheapest[j]] = j;
                self.row_of[j] = cheapest[j];
            }
        }
    }

    /// Free rows take their best column at a price that makes their second best as good; who is driven out bids again,
    /// as often as there are rows.
    fn bid(&mut self) {
        let n = self.rows.len();
        let mut free: Vec<usize> = (0..n).rev().filter(|&i| self.column_of[i] == FREE).collect();
        let mut left = 2 * free.len();
        while let Some(i) = free.pop() {
            if left == 0 || n < 2 {
                break;
            }
            left -= 1;
            let (mut first, mut second) = ((f64::INFINITY, FREE), (f64::INFINITY, FREE));
            for (j, (&c, &price)) in self.rows[i].iter().zip(&self.prices).enumerate() {
                let value = c - price;
                if value < second.0 {
                    if value < first.0 {
                        (first, second) = ((value, j), first);
                    } else {
                        second = (value, j);
                    }
                }
            }
            let (gap, mut j) = (second.0 - first.0, first.1);
            let lowered = self.prices[j] - gap;
            if lowered < self.prices[j] {
                self.prices[j] = lowered;
            } else if self.row_of[j] != FREE {
                // Two columns are equally good: the second does not drive anybody out if it is free.
                j = second.1;
            }
            let driven_out = std::mem::replace(&mut self.row_of[j], i);
            self.column_of[i] = j;
            if driven_out != FREE {
                self.column_of[driven_out] = FREE;
                if gap > 0.0 {
                    free.push(driven_out);
                }
            }
        }
    }

    /// Adds each free row along the cheapest path to a free column (Dijkstra over columns, with reduced costs).
    fn augment(&mut self) {
        let n = self.rows.len();
        let mut distance = vec![0.0f64; n];
        let mut before = vec![0usize; n];
        let mut settled: Vec<(usize, f64)> = Vec::new();
        for new in 0..n {
            if self.column_of[new] != FREE {
                continue;
            }
            distance.fill(f64::INFINITY);
            settled.clear();
            let (mut row, mut nearest) = (new, 0.0);
            // What the row pays for its own column, so that going on from there costs nothing.
            let mut own = 0.0;
            let end = loop {
                let best =
                    reach(self.rows[row], &self.prices, nearest - own, row, &mut distance, &mut before);
                nearest = best.0;
                // Of equally near columns a free one ends the search.
                let column = if self.row_of[best.1] == FREE {
                    best.1
                } else {
                    (best.1..n).find(|&j| distance[j] == nearest && self.row_of[j] == FREE).unwrap_or(best.1)
                };
                if self.row_of[column] == FREE {
                    break column;
                }
                settled.push((column, nearest));
                distance[column] = f64::NEG_INFINITY;
                row = self.row_of[column];
                own = self.rows[row][column] - self.prices[column];
            };
            for &(column, at) in &settled {
                self.prices[column] += at - nearest;
            }
            let mut column = end;
            loop {
                let row = before[column];
                self.row_of[column] = row;
                std::mem::swap(&mut self.column_of[row], &mut column);
                if row == new {
                    break;
                }
            }
        }
    }

    fn finish(self) -> Assignment {
        let row_prices =
            self.rows.iter().zip(&self.column_of).map(|(row, &j)| row[j] - self.prices[j]).collect();
        Assignment { columns: self.column_of, row_prices, column_prices: self.prices }
    }
}

/// Shortens the distances of columns by going through a row, and finds the nearest that is not settled (settled ones
/// have distance minus infinity).
#[inline]
fn reach(
    costs: &[f64],
    prices: &[f64],
    base: f64,
    row: usize,
    distance: &mut [f64],
    before: &mut [usize],
) -> (f64, usize) {
    // Two passes without branches run several times as fast as one with: the compiler makes vectors of them.
    let mut nearest = f64::INFINITY;
    for (((c, price), d), b) in costs.iter().zip(prices).zip(distance.iter_mut()).zip(before) {
        let through = base + (c - price);
        let shorter = through < *d;
        *d = if shorter { through } else { *d };
        *b = if shorter { row } else { *b };
        let open = if *d == f64::NEG_INFINITY { f64::INFINITY } else { *d };
        nearest = if open < nearest { open } else { nearest };
    }
    let column = distance.iter().position(|&d| d == nearest).unwrap_or(0);
    (nearest, column)
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
            let proof = solve_assignment(cost.view()).unwrap().optimality(cost.view());
            prop_assert!(proof.relative_gap() < 1e-12 && (proof.cost - best).abs() < 1e-9, "{proof:?}");
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

    #[test]
    fn prices_expose_an_assignment_that_is_not_the_best() {
        let cost = Array2::from_shape_fn((30, 30), |(i, j)| ((i * 7 + j * 13) % 17) as f64 + 0.1 * j as f64);
        let mut found = solve_assignment(cost.view()).unwrap();
        assert!(found.optimality(cost.view()).relative_gap() < 1e-13);
        let worse = (1..30).find(|&i| {
            let (a, b) = (found.columns[0], found.columns[i]);
            cost[[0, b]] + cost[[i, a]] > cost[[0, a]] + cost[[i, b]] + 0.5
        });
        found.columns.swap(0, worse.unwrap());
        assert!(found.optimality(cost.view()).relative_gap() > 1e-3);
    }
}
