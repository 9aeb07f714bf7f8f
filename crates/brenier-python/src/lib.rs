//! The native half of the Python package: `brenier._internal`.
//!
//! ```text
//! python/brenier/  what users see: arguments, arrays of any kind, messages in Python's words
//!        |  flat rows in float64, settings as JSON
//! brenier._internal  this crate: one function for each thing the library does, with the interpreter let go
//!        |
//! brenier  the library
//! ```
//!
//! Nothing here decides anything: arguments become the library's values, its answers become arrays and JSON, and its
//! errors become the classes of `brenier.exceptions`. While the library works, other threads of Python run, and Ctrl-C is
//! looked for between batches (`watch`).

mod arrays;
mod errors;
mod evaluate;
mod explain;
mod export;
mod flow;
mod function;
mod methods;
mod model;
mod saved;
mod shift;
mod text;
mod train;
mod watch;
mod wording;

/// What the library does, for Python.
#[pyo3::pymodule]
mod _internal {
    #[pymodule_export]
    use crate::evaluate::{evaluate, metrics};
    #[pymodule_export]
    use crate::explain::explain;
    #[pymodule_export]
    use crate::export::export;
    #[pymodule_export]
    use crate::flow::Flow;
    #[pymodule_export]
    use crate::methods::{method, methods};
    #[pymodule_export]
    use crate::model::{Model, inspect};
    #[pymodule_export]
    use crate::saved::{heat_map, load, reasons, save};
    #[pymodule_export]
    use crate::shift::shift;
    #[pymodule_export]
    use crate::text::{text, token_credit};
    #[pymodule_export]
    use crate::train::{reflow, train_flow};

    /// The version of the library.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
