//! Optimal transport between two populations, without training.
//!
//! ```text
//! W2^2(A, B) = min over couplings of  E |y - x|^2,    x from A, y from B
//! ```
//!
//! Two ways to a coupling, both exact for what they are given:
//!
//! - **Between distributions**: a Gaussian is fitted to each population ([`Gaussian`]) and the optimal map between
//!   the two is written down ([`GaussianMap`]). It carries any row, also one that was never seen, and it is a
//!   velocity field, so that whatever works with a flow works with it.
//! - **Between rows**: an assignment of least cost ([`assign`]), or, for populations of different sizes, a plan whose
//!   pairs have weights ([`plan`]). [`match_rows`] chooses and cuts large populations into blocks. Every solution
//!   has prices that prove it ([`Optimality`]).
//!
//! Products of matrices run over blocks of a fixed size, and blocks on whichever core is free: the same numbers come
//! out for any number of cores.

mod assignment;
mod density;
mod distances;
mod fit_map;
mod gaussian;
mod gaussian_map;
mod held_out;
mod matching;
mod matrix;
mod plan;
mod shrinkage;
mod units;

pub use assignment::{Assignment, Optimality, assign, solve_assignment};
pub use distances::squared_distances;
pub use gaussian::{Gaussian, GaussianConfig, Rank};
pub use gaussian_map::GaussianMap;
pub use matching::{MatchConfig, MatchedPair, Matching, match_rows};
pub use plan::{Plan, PlannedPair, plan};
pub use shrinkage::{Moments, Shrinkage};
pub use units::{in_units, units};
