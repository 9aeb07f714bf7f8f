//! What flags do to arrays of floats, row by row: another shape, another size, other units, fewer rows.

use std::path::Path;

use anyhow::{Result, bail};
use brenier::data::{OpenOptions, Transform};
use brenier::resampling;
use ndarray::{Array2, ArrayView2, Axis};

/// How the rows of an array are changed.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The shape of a row before it is resized.
    before: Vec<usize>,
    /// The shape of a row at the end.
    after: Vec<usize>,
    maximum: Option<f64>,
    limit: Option<usize>,
}

impl Change {
    /// Of rows of this shape.
    pub(super) fn of(row: &[usize], options: &OpenOptions) -> Result<Change> {
        let before = match &options.shape {
            Some(shape) if shape.iter().product::<usize>() != row.iter().product::<usize>() => bail!(
                "rows of shape {row:?} do not fold into {shape:?}\nhint: give --shape as many elements as a row has"
            ),
            Some(shape) => shape.clone(),
            None => row.to_vec(),
        };
        let mut after = before.clone();
        for transform in &options.transforms {
            match (transform, after.as_slice()) {
                (&Transform::Resize { height, width }, &[channels, _, _]) => {
                    after = vec![channels, height, width];
                }
                _ => bail!(
                    "rows of shape {before:?} cannot be resized\nhint: images have three axes, channels first; give \
                     them with --shape"
                ),
            }
        }
        Ok(Change { before, after, maximum: options.maximum.map(f64::from), limit: options.limit })
    }

    /// The same, where the array has rows enough.
    pub(super) fn expecting(self, file: &Path, rows: usize) -> Result<Change> {
        match self.limit {
            Some(limit) if limit > rows => bail!(
                "{} has {rows} rows, but --limit asks for {limit}\nhint: ask for {rows} or fewer",
                file.display()
            ),
            _ => Ok(self),
        }
    }

    /// The shape of a row at the end.
    pub(super) fn shape(&self) -> &[usize] {
        &self.after
    }

    /// How many of so many rows are used.
    pub(super) fn limit(&self, rows: usize) -> usize {
        self.limit.map_or(rows, |limit| limit.min(rows))
    }

    /// Rows as the model takes them.
    pub(super) fn apply(&self, rows: Array2<f64>) -> Array2<f64> {
        let mut rows = match (self.before.as_slice(), self.after.as_slice()) {
            (&[_, h, w], &[channels, height, width]) if self.before != self.after => {
                let (down, across) = (resampling(h, height), resampling(w, width));
                let mut resized = Array2::zeros((rows.nrows(), channels * height * width));
                for (row, mut to) in rows.rows().into_iter().zip(resized.rows_mut()) {
                    let planes = row.to_vec();
                    for (plane, mut to) in
                        planes.chunks_exact(h * w).zip(to.axis_chunks_iter_mut(Axis(0), height * width))
                    {
                        if let Ok(plane) = ArrayView2::from_shape((h, w), plane) {
                            let new = down.dot(&plane).dot(&across.t());
                            to.iter_mut().zip(&new).for_each(|(to, new)| *to = *new);
                        }
                    }
                }
                resized
            }
            _ => rows,
        };
        if let Some(maximum) = self.maximum {
            rows /= maximum;
        }
        rows
    }
}
