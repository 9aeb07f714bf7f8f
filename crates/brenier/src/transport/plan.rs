//! The transport plan of least cost between weighted rows, exactly, with the proof.
//!
//! ```text
//! min  sum_ij m_ij cost[i, j],    sum_j m_ij = supply_i,   sum_i m_ij = demand_j,   m >= 0
//! ```
//!
//! Masses are whole numbers, so that a plan keeps its marginals exactly. (Populations of `n` and `k` rows with equal
//! weights have supplies `k` and demands `n`.) Successive shortest paths, as for an [assignment](super::assign): the
//! mass of each row is sent along the cheapest path to a column with demand left; a path may go back along mass that
//! was sent already. Prices prove the result in the same way.

use ndarray::ArrayView2;

use super::assignment::{Optimality, expect_finite_costs};
use crate::error::{Error, Result, expect_shape};

/// Mass from a row to a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedPair {
    /// The row.
    pub from: usize,
    /// The column.
    pub to: usize,
    /// How much goes there; above 0.
    pub mass: u64,
}

/// A plan of least cost, with the prices that prove it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All pairs with mass, by row and then by column.
    pub pairs: Vec<PlannedPair>,
    row_prices: Vec<f64>,
    column_prices: Vec<f64>,
}

impl Plan {
    /// The cost of the plan per unit of mass, and a bound below which no plan can cost.
    pub fn optimality(&self, cost: ArrayView2<f64>) -> Optimality {
        let mut excess = 0.0f64;
        for (row, u) in cost.rows().into_iter().zip(&self.row_prices) {
            for (c, v) in row.iter().zip(&self.column_prices) {
                excess = excess.max(u + v - c);
            }
        }
        let total = self.pairs.iter().map(|pair| pair.mass).sum::<u64>().max(1) as f64;
        let (mut paid, mut prices) = (0.0, 0.0);
        for &PlannedPair { from, to, mass } in &self.pairs {
            paid += mass as f64 * cost[[from, to]];
            prices += mass as f64 * (self.row_prices[from] + self.column_prices[to]);
        }
        Optimality { cost: paid / total, bound: prices / total - excess }
    }
}

/// The plan of least cost.
///
/// ```
/// use brenier::transport::plan;
/// use ndarray::array;
///
/// // Two rows of A, three of B on a line: each of A sends 3 units, each of B takes 2.
/// let cost = array![[0.0, 1.0, 4.0], [4.0, 1.0, 0.0]];
/// let best = plan(cost.view(), &[3, 3], &[2, 2, 2])?;
/// let mass: Vec<_> = best.pairs.iter().map(|p| (p.from, p.to, p.mass)).collect();
/// assert_eq!(mass, [(0, 0, 2), (0, 1, 1), (1, 1, 1), (1, 2, 2)]);
/// # Ok::<(), brenier::Error>(())
/// ```
///
/// # Errors
/// Masses that do not fit the matrix or do not sum to the same, and a cost that is not finite.
pub fn plan(cost: ArrayView2<f64>, supply: &[u64], demand: &[u64]) -> Result<Plan> {
    expect_shape("the cost matrix", &[supply.len(), demand.len()], cost.shape())?;
    expect_finite_costs(cost)?;
    let (offered, wanted) = (supply.iter().sum::<u64>(), demand.iter().sum::<u64>());
    if offered != wanted {
        return Err(Error::Setting {
            name: "the mass of a transport plan",
            value: format!("{offered} on one side and {wanted} on the other"),
            needs: "both sides must have the same mass",
            hint: "give each of n and k rows the weights k and n".into(),
        });
    }
    let cost = cost.as_standard_layout();
    let rows: Vec<&[f64]> = cost.rows().into_iter().filter_map(|row| row.to_slice()).collect();
    let mut search = Search::new(&rows, demand);
    for (row, &mass) in supply.iter().enumerate() {
        let mut left = mass;
        while left > 0 {
            left -= search.send(row, left);
        }
    }
    Ok(search.finish())
}

const NONE: usize = usize::MAX;

struct Search<'a> {
    rows: &'a [&'a [f64]],
    row_prices: Vec<f64>,
    column_prices: Vec<f64>,
    /// Demand left.
    open: Vec<u64>,
    /// Mass that a column has, by row.
    held: Vec<Vec<(usize, u64)>>,
    distance: Vec<f64>,
    /// The row through which a column was reached.
    before: Vec<usize>,
    /// The column through which a row was reached.
    through: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(rows: &'a [&'a [f64]], demand: &[u64]) -> Self {
        let columns = demand.len();
        Self {
            rows,
            row_prices: vec![0.0; rows.len()],
            column_prices: vec![0.0; columns],
            open: demand.to_vec(),
            held: vec![Vec::new(); columns],
            distance: vec![0.0; columns],
            before: vec![NONE; columns],
            through: vec![NONE; rows.len()],
        }
    }

    /// Sends mass of a row along the cheapest path; how much went.
    fn send(&mut self, source: usize, most: u64) -> u64 {
        self.distance.fill(f64::INFINITY);
        self.through.fill(NONE);
        let mut reached_rows = vec![(source, 0.0)];
        let mut settled = Vec::new();
        let mut next = 0;
        let (end, length) = loop {
            // Rows that were reached since the last column was settled shorten what lies behind them.
            while let Some(&(row, at)) = reached_rows.get(next) {
                let base = at - self.row_prices[row];
                let columns = self.rows[row].iter().zip(&self.column_prices);
                for (((c, price), d), b) in columns.zip(&mut self.distance).zip(&mut self.before) {
                    let via = base + (c - price);
                    let shorter = via < *d;
                    *d = if shorter { via } else { *d };
                    *b = if shorter { row } else { *b };
                }
                next += 1;
            }
            let mut best = (f64::INFINITY, NONE);
            for (column, &d) in self.distance.iter().enumerate() {
                // Settled columns have distance minus infinity. Of equally near ones one with demand ends the search.
                let nearer = d < best.0 || (d == best.0 && self.open[column] > 0);
                if nearer && d > f64::NEG_INFINITY {
                    best = (d, column);
                }
            }
            let (at, column) = best;
            if self.open[column] > 0 {
                break (column, at);
            }
            self.distance[column] = f64::NEG_INFINITY;
            settled.push((column, at));
            for &(row, _) in &self.held[column] {
                if row != source && self.through[row] == NONE {
                    self.through[row] = column;
                    reached_rows.push((row, at));
                }
            }
        };
        for &(row, at) in &reached_rows {
            self.row_prices[row] += length - at;
        }
        for &(column, at) in &settled {
            self.column_prices[column] -= length - at;
        }
        self.shift_mass(source, end, most)
    }

    /// Moves as much mass as every part of the path can take.
    fn shift_mass(&mut self, source: usize, end: usize, most: u64) -> u64 {
        let mut amount = most.min(self.open[end]);
        let mut column = end;
        while self.before[column] != source {
            let row = self.before[column];
            column = self.through[row];
            amount = amount.min(self.mass(column, row));
        }
        self.open[end] -= amount;
        let mut column = end;
        loop {
            let row = self.before[column];
            match self.held[column].iter_mut().find(|(known, _)| *known == row) {
                Some((_, mass)) => *mass += amount,
                None => self.held[column].push((row, amount)),
            }
            if row == source {
                return amount;
            }
            column = self.through[row];
            if let Some(place) = self.held[column].iter().position(|(known, _)| *known == row) {
                self.held[column][place].1 -= amount;
                if self.held[column][place].1 == 0 {
                    self.held[column].remove(place);
                }
            }
        }
    }

    fn mass(&self, column: usize, row: usize) -> u64 {
        self.held[column].iter().find(|(known, _)| *known == row).map_or(0, |(_, mass)| *mass)
    }

    fn finish(self) -> Plan {
        let mut pairs: Vec<PlannedPair> = self
            .held
            .iter()
            .enumerate()
            .flat_map(|(to, held)| held.iter().map(move |&(from, mass)| PlannedPair { from, to, mass }))
            .collect();
        pairs.sort_by_key(|pair| (pair.from, pair.to));
        Plan { pairs, row_prices: self.row_prices, column_prices: self.column_prices }
    }
}

#[cfg(test)]
mod tests {
    use super::super::assign;
    use super::*;
    use ndarray::Array2;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_its_marginals_and_proves_itself(
            n in 1_usize..9,
            k in 1_usize..9,
            numbers in prop::collection::vec(-5.0_f64..5.0, 64),
            whole in any::<bool>(),
        ) {
            let value = |v: f64| if whole { v.round() } else { v };
            let cost = Array2::from_shape_fn((n, k), |(i, j)| value(numbers[8 * i + j]));
            let (supply, demand) = (vec![k as u64; n], vec![n as u64; k]);
            let best = plan(cost.view(), &supply, &demand).unwrap();
            for i in 0..n {
                let sent: u64 = best.pairs.iter().filter(|p| p.from == i).map(|p| p.mass).sum();
                prop_assert_eq!(sent, k as u64);
            }
            for j in 0..k {
                let got: u64 = best.pairs.iter().filter(|p| p.to == j).map(|p| p.mass).sum();
                prop_assert_eq!(got, n as u64);
            }
            let proof = best.optimality(cost.view());
            prop_assert!(proof.cost - proof.bound < 1e-12, "{:?}", proof);
            // Every row k times and every column n times: an assignment of n k rows costs as much.
            let copies = Array2::from_shape_fn((n * k, n * k), |(i, j)| cost[[i / k, j / n]]);
            let columns = assign(copies.view()).unwrap();
            let total: f64 = columns.iter().enumerate().map(|(i, &j)| copies[[i, j]]).sum();
            prop_assert!((total / (n * k) as f64 - proof.cost).abs() < 1e-12);
        }
    }

    #[test]
    fn refuses_masses_that_do_not_fit() {
        let cost = Array2::zeros((2, 2));
        assert!(plan(cost.view(), &[1, 2], &[1, 1]).unwrap_err().to_string().contains("same mass"));
        assert!(plan(cost.view(), &[1, 2, 3], &[1, 1]).is_err());
        assert!(plan(Array2::from_elem((1, 1), f64::NAN).view(), &[1], &[1]).is_err());
        assert!(plan(Array2::zeros((0, 0)).view(), &[], &[]).unwrap().pairs.is_empty());
    }
}
