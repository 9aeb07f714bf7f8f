//! Results as people read them.

mod by_column;
mod chart;
mod comparison_picture;
mod explanations;
mod glance;
mod grid;
mod heat_map;
mod lettering;
mod metric_table;
mod page;
mod panels;
mod parquet;
mod picture_grid;
mod ranking;
mod reasons;
mod result_format;
mod saved;
mod shift;
mod shift_chart;
mod shown_map;
mod steps;
mod stills;

pub use by_column::{ColumnCredit, credit_by_column};
pub use chart::{Chart, Mark, Scale, Series};
pub(crate) use explanations::{CertificateReader, join_explanations, remove_explanations};
pub use explanations::{
    ExplanationReader, load_explanations, save_by_input, save_explanations, save_explanations_as,
    save_parquet,
};
pub use glance::{Cohort, Gathering, Glance, GlanceColumn, Mean, SHOWN_ROWS, save_glance};
pub use grid::image_grid;
pub use heat_map::{HeatMapGround, HeatMapStyle, Scales, credit_scales, heat_map, save_heat_maps};
pub use page::{Report, ReportExample, ReportTable};
pub use panels::{Axes, Panels};
pub use picture_grid::{PictureCell, picture_grid};
pub use ranking::ranking;
pub use reasons::{REASONS_CAVEAT, Reason, Reasons, ReasonsConfig, Side, Template, save_reasons};
pub use result_format::ResultFormat;
pub use shift::{ShiftReport, ShiftResult};
pub use shift_chart::shift_chart;
pub use shown_map::{ShownMap, TOLD_APART};
pub use stills::save_stills;
pub(crate) use stills::{STILLS, join_stills};
