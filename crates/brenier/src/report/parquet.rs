//! Explanations as a Parquet file, for pandas, polars, DuckDB, Spark: one row for each explanation.
//!
//! ```text
//! id, example, method, target, score, verdict, ...    what is asked of a table: found without reading the credit
//! credit, input, reference, standard_errors           lists of numbers, in the order of the flat features
//! certificate                                         the whole certificate as JSON
//! ```
//!
//! Nothing else is needed to read the explanations again. Rows stand in groups of one size, which their number of features
//! decides: however a run was cut into parts and shards, its file has the same bytes. Neither writing nor reading holds more
//! than a group in memory.

mod read;
mod write;

pub(crate) use read::{CertificateColumn, Rows};
pub(crate) use write::write;

/// The file of a folder.
pub(crate) const PARQUET: &str = "explanations.parquet";

/// The name under which a file says how features fold into an image or a row.
const SHAPE: &str = "brenier.shape";
/// That of names of features and classes, which are as whoever saved them wrote them.
const NAMES: &str = "brenier.names";

/// The columns. Lists are spelled as Parquet's rules for them ask.
const SCHEMA: &str = "message explanations {
    required binary id (STRING);
    required int64 example;
    required binary method (STRING);
    required int64 target;
    required double score;
    optional double reference_score;
    optional double residual;
    optional double relative_residual;
    required binary verdict (STRING);
    required int64 gradient_evaluations;
    required int64 score_evaluations;
    required group credit (LIST) { repeated group list { required double element; } }
    required group input (LIST) { repeated group list { required double element; } }
    optional group reference (LIST) { repeated group list { required double element; } }
    optional group standard_errors (LIST) { repeated group list { required double element; } }
    required binary certificate (STRING);
}";

/// Numbers of one column of lists in a group of rows.
const NUMBERS: usize = 1 << 20;
/// Rows in a group at the most.
const MOST_ROWS: usize = 1 << 16;

/// Rows in a group.
fn rows_in_group(features: usize) -> usize {
    (NUMBERS / features.max(1)).clamp(1, MOST_ROWS)
}
