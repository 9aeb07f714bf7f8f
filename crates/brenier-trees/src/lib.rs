//! Tree ensembles: read from what libraries write, scored, and credited exactly.
//!
//! A sum of decision trees is constant between its thresholds. Along a line each question is passed at one time, and the
//! jump of the score at that time belongs to the feature that passes: so the credit of a path is a finite sum, exact without
//! steps ([`Ensemble::line_credit`], [`Ensemble::path_credit`]). The same walk, with all features passing at once, gives
//! Shapley values between two rows, and tables over the ways to leaves give them against a whole background
//! ([`Ensemble::shapley_values`]).
//!
//! Rows are flat slices, `[n, features]`, in f64. A missing value is NaN. Everything is the same to the bit for any number of
//! workers.
//!
//! ```
//! use brenier_trees::{Branch, Description, Ensemble, Tree};
//!
//! // 2 where x0 > 0 and x1 > 0, else 0.
//! let nodes = vec![
//!     Branch::at_most(0, 0.0, 1, 2),
//!     Branch::leaf(0.0),
//!     Branch::at_most(1, 0.0, 3, 4),
//!     Branch::leaf(0.0),
//!     Branch::leaf(2.0),
//! ];
//! let trees = vec![Tree { nodes, cover: vec![4.0, 2.0, 2.0, 1.0, 1.0] }];
//! let ensemble = Ensemble::new(Description { features: 2, raw: 1, trees, ..Description::default() })?;
//! let (reference, row) = ([-1.0, -1.0], [3.0, 1.0]);
//! assert_eq!(ensemble.scores(&row)?, [2.0]);
//! // On the straight line x0 passes 0 first, x1 then makes the jump; as coalitions both have half of it.
//! assert_eq!(ensemble.line_credit(&reference, &row, &[0])?, [0.0, 2.0]);
//! assert_eq!(ensemble.shapley_values(&row, &reference, &[0])?, [1.0, 1.0]);
//! # Ok::<(), brenier_trees::Error>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod activated;
mod build;
mod ensemble;
mod error;
mod lightgbm;
mod link;
mod onnx;
mod path;
mod score;
mod shap;
mod ubjson;
mod walk;
mod ways;
mod xgboost;

pub use build::{Aggregate, Branch, Description, Moved, Test, Tree};
pub use ensemble::Ensemble;
pub use error::{Error, Result};
pub use link::{Column, Link};
pub use onnx::{FlatTrees, NodeTrees, Votes};
