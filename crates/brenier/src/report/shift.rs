//! A shift as files: JSON with everything, a table as CSV, a chart, and for images the mean map and the strongest pairs.

use std::path::{Path, PathBuf};

use ndarray::Array1;
use serde::{Deserialize, Serialize};

use super::heat_map::{HeatMapStyle, heat_map};
use super::picture_grid::{PictureCell, picture_grid};
use super::shift_chart::shift_chart;
use crate::attribute::{Certificate, ColumnShift, Completeness, Explanation, GroupedShift, Shift};
use crate::data::{Column, Dataset, Population};
use crate::error::{Error, Result};
use crate::evaluate::Channels;
use crate::whole_file::{make_folder, write_whole};

/// A shift with what it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShiftReport {
    /// The version of Brenier.
    pub version: String,
    /// The model's file.
    pub model: String,
    /// The fingerprint of that file.
    pub model_hash: String,
    /// The engine that ran it.
    pub engine: String,
    /// The name of the output that is explained, where it has one.
    pub target_name: Option<String>,
    /// The columns of tables, as they were coded.
    pub columns: Vec<Column>,
    /// What every reader must be told.
    pub caveat: String,
    /// What was found.
    pub result: ShiftResult,
}

/// A shift of all rows together, or within subgroups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ShiftResult {
    /// All rows together.
    Whole(Shift),
    /// Within subgroups.
    Grouped(GroupedShift),
}

impl ShiftResult {
    /// All rows together.
    pub fn whole(&self) -> &Shift {
        match self {
            ShiftResult::Whole(shift) => shift,
            ShiftResult::Grouped(grouped) => &grouped.whole,
        }
    }

    /// The subgroups, where there are any.
    pub fn grouped(&self) -> Option<&GroupedShift> {
        match self {
            ShiftResult::Whole(_) => None,
            ShiftResult::Grouped(grouped) => Some(grouped),
        }
    }
}

/// The file with everything.
const JSON: &str = "shift.json";

impl ShiftReport {
    /// Everything as JSON; the same run gives the same bytes.
    ///
    /// # Errors
    /// If a number cannot be written.
    pub fn json(&self) -> Result<String> {
        let written = serde_json::to_string_pretty(self);
        written
            .map(|text| text + "\n")
            .map_err(|error| Error::Write { path: JSON.into(), source: error.into() })
    }

    /// A line for each column, of all rows and of each subgroup.
    ///
    /// # Errors
    /// If a cell cannot be written.
    pub fn csv(&self) -> Result<String> {
        let failed = |error: csv::Error| Error::Write { path: "shift.csv".into(), source: error.into() };
        let mut table = csv::Writer::from_writer(Vec::new());
        table
            .write_record([
                "group",
                "column",
                "credit",
                "standard_error",
                "low",
                "high",
                "significant",
                "moved",
                "moved_by_chance",
                "mean_difference",
            ])
            .map_err(failed)?;
        for (group, columns) in self.tables() {
            for column in columns {
                table.write_record(record(&group, column)).map_err(failed)?;
            }
        }
        if let Some(grouped) = self.result.grouped() {
            for group in &grouped.groups {
                let interval = group.sizes.interval;
                let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
                let mut cells = vec![group.name.clone(), "(size of the group)".to_string()];
                cells.push(group.sizes.value.to_string());
                cells.push(number(interval.map(|i| i.standard_error)));
                cells.push(number(interval.map(|i| i.low)));
                cells.push(number(interval.map(|i| i.high)));
                cells.extend(std::iter::repeat_n(String::new(), 4));
                table.write_record(cells).map_err(failed)?;
            }
        }
        let bytes = table
            .into_inner()
            .map_err(|error| Error::Write { path: "shift.csv".into(), source: error.into_error().into() })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn tables(&self) -> Vec<(String, &[ColumnShift])> {
        let whole = ("all".to_string(), self.result.whole().columns.as_slice());
        let groups = self.result.grouped().into_iter().flat_map(|grouped| &grouped.groups);
        let tables =
            groups.filter_map(|group| Some((group.name.clone(), group.shift.as_ref()?.columns.as_slice())));
        std::iter::once(whole).chain(tables).collect()
    }

    /// Writes `shift.json`, `shift.csv` and `shift.svg` into a folder, which is made where it is missing; of images
    /// `mean-map.png` and `examples.svg` as well. The files are returned.
    ///
    /// # Errors
    /// If the folder has a shift already and `replace` is not said, or a file cannot be written.
    pub fn save(
        &self,
        folder: &Path,
        replace: bool,
        (from, to): (&Population, &Population),
    ) -> Result<Vec<PathBuf>> {
        make_folder(folder)?;
        let (json, shift) = (folder.join(JSON), self.result.whole());
        if json.exists() && !replace {
            return Err(Error::Exists { path: json });
        }
        let mut files = vec![(json, self.json()?.into_bytes())];
        files.push((folder.join("shift.csv"), self.csv()?.into_bytes()));
        let chart = shift_chart(shift, self.result.grouped());
        files.push((folder.join("shift.svg"), chart.into_bytes()));
        if from.rows().is_images() {
            files.push((folder.join("mean-map.png"), mean_map(shift, from.rows(), to.rows())?));
            if !shift.examples.is_empty() {
                let pairs = strongest_pairs(shift, from.rows(), to.rows())?;
                files.push((folder.join("examples.svg"), pairs.into_bytes()));
            }
        }
        for (file, bytes) in &files {
            write_whole(file, bytes)?;
        }
        Ok(files.into_iter().map(|(file, _)| file).collect())
    }
}

fn record(group: &str, column: &ColumnShift) -> [String; 10] {
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let interval = column.credit.interval;
    [
        group.to_string(),
        column.name.clone(),
        column.credit.value.to_string(),
        number(interval.map(|i| i.standard_error)),
        number(interval.map(|i| i.low)),
        number(interval.map(|i| i.high)),
        column.significant.to_string(),
        column.moved.to_string(),
        column.moved_by_chance.to_string(),
        number(column.mean_difference),
    ]
}

/// The mean of all rows.
fn mean_row(data: &Dataset) -> Array1<f64> {
    let mut mean = Array1::zeros(data.features());
    for row in 0..data.len() {
        data.for_each_value(row, |feature, value| mean[feature] += f64::from(value) / data.len() as f64);
    }
    mean
}

/// The credit of every pixel, as a heat map.
fn mean_map(shift: &Shift, from: &Dataset, to: &Dataset) -> Result<Vec<u8>> {
    let values: Array1<f64> = shift.columns.iter().map(|column| column.credit.value).collect();
    let mut certificate = Certificate::new("shift", 0, shift.target, shift.to.mean_score);
    certificate.completeness =
        Some(Completeness::new(shift.credit_sum, shift.from.mean_score, shift.to.mean_score));
    let map = Explanation {
        values,
        shape: shift.shape.clone(),
        reference: Some(mean_row(from)),
        input: mean_row(to),
        standard_errors: None,
        certificate,
    };
    heat_map(&map, &HeatMapStyle::default())
}

/// The pairs with the largest change: both images, and the credit between them.
fn strongest_pairs(shift: &Shift, from: &Dataset, to: &Dataset) -> Result<String> {
    let [channels, height, width] = shift.shape[..] else {
        return Err(Error::NotAnImage { what: "a picture of pairs", shape: shift.shape.clone() });
    };
    let mut cells = Vec::new();
    for example in &shift.examples {
        for (data, row) in [(from, example.from), (to, example.to)] {
            let values = data.rows_f64(&[row])?.into_iter().collect();
            cells.push(PictureCell::Image { channels, values });
        }
        let credit = Array1::from(example.credit.clone());
        let map = Channels::SignedSum.map(credit.view(), &shift.shape);
        let scale = map.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        cells.push(PictureCell::Signed { values: map.iter().copied().collect(), scale });
    }
    let columns = [shift.from.name.clone(), shift.to.name.clone(), "credit".to_string()];
    let rows: Vec<String> = shift.examples.iter().map(|e| format!("change {:+.3}", e.change)).collect();
    picture_grid("The matched pairs with the largest change", &columns, &rows, &cells, [height, width])
}
