//! Which row of one population goes with which of the other: the optimal coupling of their rows.
//!
//! Up to [`MatchConfig::exact`] rows on either side the coupling is exact: an [assignment](super::assign) for
//! populations of one size, a [plan](super::plan) with weights otherwise. Above, both are put into a random order and cut
//! into blocks of about [`MatchConfig::block`] rows, matched block by block. Each block holds the same mass
//! of both populations; where sizes differ, a row at the edge of a block is shared between two. So the weights of every
//! row sum to one over the number of rows, whatever the sizes, and a mean over pairs is a mean over rows.

use ndarray::{ArrayView2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::assignment::{Optimality, solve_assignment};
use super::distances::squared_distances;
use super::plan::plan;
use crate::error::{Error, Result, expect_shape};

/// How rows are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatchConfig {
    /// Rows of the larger population up to which all are matched at once.
    pub exact: usize,
    /// Rows of a block beyond that.
    pub block: usize,
    /// Seed of the order from which blocks are cut.
    pub seed: u64,
}

impl Default for MatchConfig {
    /// At once up to 2,000 rows, blocks of 500 beyond.
    fn default() -> Self {
        Self { exact: 2000, block: 500, seed: 0 }
    }
}

/// A row of the first population with one of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatchedPair {
    /// The row of the first population.
    pub from: usize,
    /// The row of the second population.
    pub to: usize,
    /// The part of the mass that goes this way; all together 1.
    pub weight: f64,
}

/// A coupling of two populations.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// The pairs, by row of the first population and then of the second.
    pub pairs: Vec<MatchedPair>,
    /// Blocks that were matched by themselves; 1: the coupling is the best of all.
    pub blocks: usize,
    /// The mean squared distance of the pairs, and a bound below which no coupling within the blocks can be.
    pub optimality: Optimality,
}

/// Matches the rows of two populations, `[rows, features]` each, under the squared distance of the rows as they are.
///
/// # Errors
/// An empty population, rows with different numbers of features, or a value that is not finite.
pub fn match_rows(x: ArrayView2<f64>, y: ArrayView2<f64>, config: &MatchConfig) -> Result<Matching> {
    expect_shape("a row of the second population", &[x.ncols()], &[y.ncols()])?;
    let (n, k) = (x.nrows(), y.nrows());
    if n == 0 || k == 0 {
        return Err(Error::Zero { what: "the number of rows of a population" });
    }
    if config.block == 0 {
        return Err(Error::Zero { what: "the number of rows of a block" });
    }
    let most = n.max(k);
    let blocks = if most <= config.exact { 1 } else { most.div_ceil(config.block) };
    let order = |rows: usize, stream: u64| {
        let mut order: Vec<usize> = (0..rows).collect();
        if blocks > 1 {
            let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
            rng.set_stream(stream);
            order.shuffle(&mut rng);
        }
        order
    };
    let (first, second) = (order(n, 0), order(k, 1));
    let solved: Result<Vec<Block>> = (0..blocks)
        .into_par_iter()
        .map(|block| {
            let (rows, supply) = share(&first, k, block, blocks);
            let (columns, demand) = share(&second, n, block, blocks);
            solve(x, y, (rows, &supply), (columns, &demand))
        })
        .collect();
    let solved = solved?;
    let whole = n as f64 * k as f64 * blocks as f64;
    let mut pairs: Vec<MatchedPair> = solved
        .iter()
        .flat_map(|block| &block.pairs)
        .map(|&(from, to, mass)| MatchedPair { from, to, weight: mass as f64 / whole })
        .collect();
    pairs.sort_by_key(|pair| (pair.from, pair.to));
    let mean = |of: fn(&Optimality) -> f64| {
        solved.iter().map(|block| of(&block.optimality)).sum::<f64>() / blocks as f64
    };
    Ok(Matching {
        pairs,
        blocks,
        optimality: Optimality { cost: mean(|o| o.cost), bound: mean(|o| o.bound) },
    })
}

struct Block {
    pairs: Vec<(usize, usize, u64)>,
    optimality: Optimality,
}

/// The rows of a block with their masses. On a line of length `rows * others * blocks`, each row is `others * blocks`
/// long and each block `rows * others`.
fn share(order: &[usize], others: usize, block: usize, blocks: usize) -> (&[usize], Vec<u64>) {
    let (rows, others, blocks, block) = (order.len() as u64, others as u64, blocks as u64, block as u64);
    let (length, start, end) = (others * blocks, block * rows * others, (block + 1) * rows * others);
    let (first, last) = (start / length, end.div_ceil(length));
    let mass = |row: u64| ((row + 1) * length).min(end) - (row * length).max(start);
    (&order[first as usize..last as usize], (first..last).map(mass).collect())
}

fn solve(
    x: ArrayView2<f64>,
    y: ArrayView2<f64>,
    (rows, supply): (&[usize], &[u64]),
    (columns, demand): (&[usize], &[u64]),
) -> Result<Block> {
    let cost = squared_distances(x.select(Axis(0), rows).view(), y.select(Axis(0), columns).view())?;
    let equal = rows.len() == columns.len() && supply.iter().chain(demand).all(|&mass| mass == supply[0]);
    if equal {
        let found = solve_assignment(cost.view())?;
        let proof = found.optimality(cost.view());
        let count = rows.len() as f64;
        let optimality = Optimality { cost: proof.cost / count, bound: proof.bound / count };
        let pairs =
            found.columns.iter().enumerate().map(|(i, &j)| (rows[i], columns[j], supply[i])).collect();
        return Ok(Block { pairs, optimality });
    }
    let found = plan(cost.view(), supply, demand)?;
    let optimality = found.optimality(cost.view());
    let pairs = found.pairs.iter().map(|p| (rows[p.from], columns[p.to], p.mass)).collect();
    Ok(Block { pairs, optimality })
}
