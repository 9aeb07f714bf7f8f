//! Which columns the model's table has, and who says so. Rows are bound to them by name.

use std::path::Path;

use anyhow::{Result, bail};
use brenier::data::{Column, Dataset, OpenOptions, learn_columns};
use brenier::{Score, Sidecar};

use super::model::{Loaded, ModelArgs};
use crate::output::print_progress;

/// Columns that a line names.
const NAMED: usize = 6;

impl ModelArgs {
    /// The same options with the columns of the model: as `--schema` has them, or the model itself, or the file beside
    /// it, or the background; none where nobody says.
    pub(crate) fn bind(
        &self,
        model: &Loaded,
        options: OpenOptions,
        background: Option<&Path>,
    ) -> Result<OpenOptions> {
        let Some((columns, source)) = self.columns(model, &options, background)? else { return Ok(options) };
        let (found, taken) = (
            columns.iter().map(Column::width).sum::<usize>(),
            Score::shape(model.values()).iter().product::<usize>(),
        );
        if found != taken {
            bail!(
                "the columns of {source} are {found} features, but the model takes {taken}\nhint: leave out columns that \
                 the model does not see with --drop, and its label with --label; --categorical names numbers that are \
                 names"
            );
        }
        Ok(OpenOptions { columns, ..options })
    }

    /// The columns, and who says so.
    fn columns(
        &self,
        model: &Loaded,
        options: &OpenOptions,
        background: Option<&Path>,
    ) -> Result<Option<(Vec<Column>, String)>> {
        if let Some(table) = &self.schema {
            let Some(columns) = learn_columns(table, options)? else {
                bail!(
                    "{} is no table with names of columns\nhint: --schema takes a csv, tsv or parquet file",
                    table.display()
                );
            };
            return Ok(Some((columns, table.display().to_string())));
        }
        let own = model.columns();
        if !own.is_empty() {
            return Ok(Some((own, "the model's metadata".to_string())));
        }
        let beside = Sidecar::beside(&self.model)?.coding();
        if !beside.is_empty() {
            return Ok(Some((beside, Sidecar::path(&self.model).display().to_string())));
        }
        match background.filter(|_| Score::shape(model.values()).len() == 1) {
            None => Ok(None),
            Some(table) => {
                Ok(learn_columns(table, options)?.map(|columns| (columns, table.display().to_string())))
            }
        }
    }
}

/// Says which columns were ignored, and where the names of columns are confirmed by nobody.
pub(crate) fn tell_of_columns(data: &Dataset, bound: bool) {
    let ignored = data.ignored_columns();
    if !ignored.is_empty() {
        print_progress(&format!(
            "notice: the model does not take these columns of {}, which are ignored: {}",
            data.origin(),
            some(ignored)
        ));
    }
    let names: Vec<String> = data.columns().iter().map(|column| column.name.clone()).collect();
    if !bound && !names.is_empty() {
        print_progress(&format!(
            "notice: nothing says which columns the model takes, so those of {} are taken in their order ({}); --schema \
             TABLE binds them by name",
            data.origin(),
            some(&names)
        ));
    }
}

/// The first of many names.
fn some(names: &[String]) -> String {
    let (first, more) = names.split_at(names.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{more}", first.join(", "))
}
