//! Stills of paths in a file.
//!
//! `stills.npz` lies beside the explanations: the paths as pictures, rounded to 65,536 steps. `rows` says which
//! explanations they belong to; `times`, `scores` and `sums` are `[stills, frames]`, `states` and `credit`
//! `[stills, frames, features]` in steps between the two numbers of `state_range` and `credit_range`.

use std::fs::File;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, Array3, Axis, Ix1, Ix2, Ix3, OwnedRepr};
use ndarray_npy::{NpzReader, ReadableElement};

use super::saved::read;
use super::steps::{from_steps, steps, wide};
use crate::attribute::Frames;
use crate::error::Result;
use crate::npz;
use crate::whole_file::{Failure, Packing, make_folder, write_arrays};

/// The name of the file.
pub(crate) const STILLS: &str = "stills.npz";

/// Writes stills of the paths of explanations, by their place in the run: `first` is that of the first of them.
/// Writes nothing where there are none.
pub fn save_stills(folder: &Path, first: usize, stills: &[Option<Frames>]) -> Result<()> {
    let there: Vec<(usize, &Frames)> =
        stills.iter().enumerate().filter_map(|(row, still)| Some((first + row, still.as_ref()?))).collect();
    let Some((_, first)) = there.first() else { return Ok(()) };
    let (frames, features) = first.states.dim();
    let count = there.len();
    let rows: Array1<i64> = there.iter().map(|(row, _)| *row as i64).collect();
    let mut times = Array2::zeros((count, frames));
    let mut scores = Array2::zeros((count, frames));
    let mut sums = Array2::zeros((count, frames));
    let mut states: (Array3<u16>, Array2<f64>) =
        (Array3::zeros((count, frames, features)), Array2::zeros((count, 2)));
    let mut credit = states.clone();
    for (k, (_, still)) in there.iter().enumerate() {
        crate::error::expect_shape("stills to be saved together", &[frames, features], still.states.shape())?;
        times.row_mut(k).assign(&Array1::from(still.times.clone()));
        scores.row_mut(k).assign(&still.scores);
        sums.row_mut(k).assign(&still.sums);
        for (from, into) in [(&still.states, &mut states), (&still.credit, &mut credit)] {
            let flat: Array1<f64> = from.iter().copied().collect();
            let found = steps(flat.view(), 2)?;
            into.0
                .index_axis_mut(Axis(0), k)
                .iter_mut()
                .zip(wide(&found.data))
                .for_each(|(place, step)| *place = step);
            into.1.row_mut(k).assign(&ndarray::array![found.low, found.high]);
        }
    }
    make_folder(folder)?;
    write_arrays(&folder.join(STILLS), Packing::Compressed, |npz| {
        npz.add_array("rows", &rows)?;
        npz.add_array("times", &times)?;
        npz.add_array("scores", &scores)?;
        npz.add_array("sums", &sums)?;
        for (name, (bytes, range)) in [("state", &states), ("credit", &credit)] {
            npz.add_array(if name == "state" { "states" } else { "credit" }, bytes)?;
            npz.add_array(format!("{name}_range"), range)?;
        }
        Ok(())
    })
}

/// Joins files of stills into one.
pub(crate) fn join_stills(parts: &[PathBuf], into: &Path) -> Result<()> {
    npz::join(parts, &[], Packing::Compressed, into)
}

/// Stills that were saved, with the places of their explanations.
pub(super) fn load_stills(folder: &Path) -> Result<Vec<(usize, Frames)>> {
    read(&folder.join(STILLS), |path| {
        let mut npz = NpzReader::new(crate::readable::open(path)?)?;
        let rows = array::<i64, Ix1>(&mut npz, "rows")?;
        let times = array::<f64, Ix2>(&mut npz, "times")?;
        let scores = array::<f64, Ix2>(&mut npz, "scores")?;
        let sums = array::<f64, Ix2>(&mut npz, "sums")?;
        let mut quantised = |name: &str, range: &str| -> std::result::Result<Vec<Array2<f64>>, Failure> {
            let bytes = array::<u16, Ix3>(&mut npz, name)?;
            let range = array::<f64, Ix2>(&mut npz, range)?;
            if bytes.dim().0 != rows.len() || bytes.dim().1 != times.ncols() || range.dim() != (rows.len(), 2)
            {
                return Err(format!("its array '{name}' does not fit the others").into());
            }
            let one = |(k, still): (usize, ndarray::ArrayView2<u16>)| {
                from_steps(still.iter().copied(), range[[k, 0]], range[[k, 1]])
                    .into_shape_with_order(still.dim())
            };
            Ok(bytes.outer_iter().enumerate().map(one).collect::<std::result::Result<_, _>>()?)
        };
        let states = quantised("states", "state_range")?;
        let credit = quantised("credit", "credit_range")?;
        if times.dim() != (rows.len(), times.ncols())
            || scores.dim() != times.dim()
            || sums.dim() != times.dim()
        {
            return Err("its times and scores do not fit".into());
        }
        let pairs = states.into_iter().zip(credit).enumerate();
        Ok(pairs
            .map(|(k, (states, credit))| {
                let frames = Frames {
                    times: times.row(k).to_vec(),
                    states,
                    scores: scores.row(k).to_owned(),
                    sums: sums.row(k).to_owned(),
                    credit,
                };
                (rows[k].max(0) as usize, frames)
            })
            .collect())
    })
}

fn array<T: ReadableElement, D: ndarray::Dimension>(
    npz: &mut NpzReader<File>,
    name: &str,
) -> std::result::Result<ndarray::Array<T, D>, Failure> {
    Ok(npz.by_name::<OwnedRepr<T>, D>(name)?)
}
