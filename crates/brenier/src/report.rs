//! Results as people read them.

mod chart;
mod files;
mod grid;
mod metric_table;
mod page;
mod panels;
mod picture_grid;

pub use chart::{Chart, Mark, Scale, Series};
pub use files::save_explanations;
pub use grid::image_grid;
pub use page::{Report, ReportExample, ReportTable};
pub use panels::{Axes, Panels};
pub use picture_grid::{PictureCell, picture_grid};
