//! A report from what a run has left in its folder, so that a page can be made anew without the model.
//!
//! - `report.json`: title, facts, names of features and classes, the table of metrics;
//! - `explanations.npz` and `.jsonl`, in the folder itself or in a folder for each method;
//! - `stills.npz` beside them: the paths as pictures, rounded to 65,536 steps. `rows` says which
//!   explanations they belong to; `times`, `scores` and `sums` are `[stills, frames]`, `states` and `credit`
//!   `[stills, frames, features]` in steps between the two numbers of `state_range` and `credit_range`.

use std::fs::File;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, Array3, ArrayD, Axis, Ix1, Ix2, Ix3, OwnedRepr};
use ndarray_npy::{NpzReader, ReadableElement};

use super::page::{Report, ReportExample};
use super::steps::{from_steps, steps, wide};
use crate::attribute::{Certificate, Explanation, Frames};
use crate::error::{Error, Result};
use crate::whole_file::{Failure, Packing, make_folder, write_arrays, write_whole};

const DESCRIPTION: &str = "report.json";
const ARRAYS: &str = "explanations.npz";
const CERTIFICATES: &str = "explanations.jsonl";
const STILLS: &str = "stills.npz";

impl Report {
    /// Writes `report.json`: what the explanations beside it do not say. Names and metrics that are there already stay
    /// where there are no new ones, so that explanations and an evaluation may share a folder.
    pub fn save_description(&self, folder: &Path) -> Result<()> {
        make_folder(folder)?;
        let path = folder.join(DESCRIPTION);
        let before = if path.exists() { description(&path)? } else { Report::default() };
        let names = |new: &Vec<String>, old: Vec<String>| if new.is_empty() { old } else { new.clone() };
        let whole = Report {
            title: self.title.clone(),
            facts: self.facts.clone(),
            features: names(&self.features, before.features),
            classes: names(&self.classes, before.classes),
            metrics: self.metrics.clone().or(before.metrics),
            parts: names(&self.parts, before.parts),
            ..Report::default()
        };
        let json = serde_json::to_vec_pretty(&whole)
            .map_err(|e| Error::Write { path: path.clone(), source: e.into() })?;
        write_whole(&path, &json)
    }

    /// The same with the table of metrics that an evaluation has left in the folder, where it has none itself.
    pub fn with_metrics_in(mut self, folder: &Path) -> Result<Report> {
        let path = folder.join(DESCRIPTION);
        if self.metrics.is_none() && path.exists() {
            self.metrics = description(&path)?.metrics;
        }
        Ok(self)
    }

    /// The report of a folder in which explanations were saved; it shows the first `limit` examples.
    ///
    /// # Errors
    /// If there are no explanations, or they cannot be read.
    pub fn open(folder: &Path, limit: usize) -> Result<Report> {
        let path = folder.join(DESCRIPTION);
        let mut report = match path.exists() {
            true => description(&path)?,
            false => Report { title: "Explanations".to_string(), ..Report::default() },
        };
        let mut all = Vec::new();
        for part in parts(folder, &report.parts)? {
            let explanations = load_explanations(&part)?;
            let mut stills: Vec<Option<Frames>> = vec![None; explanations.len()];
            if part.join(STILLS).exists() {
                for (row, frames) in load_stills(&part)? {
                    if let Some(place) = stills.get_mut(row) {
                        *place = Some(frames);
                    }
                }
            }
            all.extend(explanations.into_iter().zip(stills));
        }
        if all.is_empty() && report.metrics.is_none() {
            return Err(Error::NoExplanations { folder: folder.to_owned() });
        }
        report.show(all, limit);
        Ok(report)
    }

    /// Puts explanations of all methods and targets into the report, by example; the first `limit` examples.
    pub fn show(&mut self, explanations: Vec<(Explanation, Option<Frames>)>, limit: usize) {
        for (explanation, stills) in explanations {
            if self.shape.is_empty() {
                self.shape.clone_from(&explanation.shape);
            }
            let example = explanation.certificate.example;
            if example >= limit {
                continue;
            }
            while self.examples.len() <= example {
                let name = format!("example {}", self.examples.len());
                self.examples.push(ReportExample { name, explanations: Vec::new() });
            }
            let entry = &mut self.examples[example];
            if let Some(name) = &explanation.certificate.name {
                entry.name.clone_from(name);
            }
            entry.explanations.push((explanation, stills));
        }
    }
}

fn description(path: &Path) -> Result<Report> {
    read(path, |path| Ok(serde_json::from_slice(&std::fs::read(path)?)?))
}

/// The folder itself, or those in it, that hold explanations; in this order, others after them by name.
fn parts(folder: &Path, order: &[String]) -> Result<Vec<PathBuf>> {
    let holds = |path: &PathBuf| path.join(ARRAYS).is_file();
    let mut found: Vec<PathBuf> = vec![folder.to_owned()];
    let inside: Vec<PathBuf> = read(folder, |path| {
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::result::Result<_, Failure>>()
    })?;
    found.extend(inside);
    found.retain(holds);
    let place = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        order.iter().position(|part| Some(part.as_str()) == name.as_deref()).unwrap_or(order.len())
    };
    found.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.cmp(b)));
    Ok(found)
}

/// The explanations that were saved in a folder.
pub fn load_explanations(folder: &Path) -> Result<Vec<Explanation>> {
    let certificates: Vec<Certificate> = read(&folder.join(CERTIFICATES), |path| {
        let text = std::fs::read_to_string(path)?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    })?;
    read(&folder.join(ARRAYS), |path| {
        let mut npz = NpzReader::new(File::open(path)?)?;
        let names = npz.names()?;
        let mut array = |name: &str| -> std::result::Result<Option<ArrayD<f64>>, Failure> {
            let there = names.iter().any(|n| n.trim_end_matches(".npy") == name);
            Ok(there.then(|| npz.by_name(name)).transpose()?)
        };
        let missing = |name: &str| format!("it has no array '{name}'");
        let values = array("values")?.ok_or_else(|| missing("values"))?;
        let inputs = array("inputs")?.ok_or_else(|| missing("inputs"))?;
        let (references, errors) = (array("references")?, array("standard_errors")?);
        let rows = certificates.len();
        let others = [Some(&inputs), references.as_ref(), errors.as_ref()];
        if values.ndim() == 0
            || values.shape()[0] != rows
            || others.iter().flatten().any(|other| other.shape() != values.shape())
        {
            return Err(format!(
                "its arrays are not of one shape with a row for each of {rows} certificates"
            )
            .into());
        }
        let row = |array: &ArrayD<f64>, i: usize| -> Array1<f64> {
            array.index_axis(Axis(0), i).iter().copied().collect()
        };
        let explanation = |(i, certificate): (usize, Certificate)| Explanation {
            values: row(&values, i),
            shape: values.shape()[1..].to_vec(),
            reference: references.as_ref().map(|array| row(array, i)),
            input: row(&inputs, i),
            standard_errors: errors.as_ref().map(|array| row(array, i)),
            certificate,
        };
        Ok(certificates.into_iter().enumerate().map(explanation).collect())
    })
}

/// Writes stills of the paths of explanations, by their place among them. Writes nothing where there are none.
pub fn save_stills(folder: &Path, stills: &[Option<Frames>]) -> Result<()> {
    let there: Vec<(usize, &Frames)> =
        stills.iter().enumerate().filter_map(|(row, still)| Some((row, still.as_ref()?))).collect();
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

/// Stills that were saved, with the places of their explanations.
fn load_stills(folder: &Path) -> Result<Vec<(usize, Frames)>> {
    read(&folder.join(STILLS), |path| {
        let mut npz = NpzReader::new(File::open(path)?)?;
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

fn read<T>(path: &Path, how: impl FnOnce(&Path) -> std::result::Result<T, Failure>) -> Result<T> {
    how(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::frames;
    use crate::report::{ReportTable, save_explanations};
    use crate::{Line, PathIntegral, Rule, ScoreFn};
    use ndarray::array;

    #[test]
    fn a_folder_gives_the_report_back() {
        let score = ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]));
        let line = Line::new(array![0.0, 0.0].view(), array![2.0, 3.0].view()).unwrap();
        let mut made = PathIntegral::new(Rule::GaussLegendre { nodes: 4 }).explain(&score, &line, 0).unwrap();
        made.certificate.example = 1;
        made.certificate.name = Some("<b>".to_string());
        let still = frames(&score, &line, 0, 4).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(Report::open(folder.path(), 9).unwrap_err().to_string().contains("no explanations"));
        let part = folder.path().join("ig");
        save_explanations(&part, &[made.clone(), made.clone()]).unwrap();
        save_stills(&part, &[None, Some(still.clone())]).unwrap();
        let mut other = made.clone();
        other.certificate.method = "gradient".to_string();
        save_explanations(&folder.path().join("gradient"), std::slice::from_ref(&other)).unwrap();
        let metrics = ReportTable { columns: vec!["method".into()], rows: vec![("ig".into(), vec![])] };
        let described = Report {
            title: "T".into(),
            classes: vec!["no".into(), "yes".into()],
            metrics: Some(metrics.clone()),
            parts: vec!["ig".into(), "gradient".into()],
            ..Report::default()
        };
        described.save_description(folder.path()).unwrap();
        // A later run of another kind keeps what it does not know.
        Report { title: "T".into(), ..Report::default() }.save_description(folder.path()).unwrap();

        let later = Report { title: "T".into(), ..Report::default() }.with_metrics_in(folder.path()).unwrap();
        assert_eq!(later.metrics, described.metrics);

        let found = Report::open(folder.path(), 9).unwrap();
        assert_eq!((found.title.as_str(), found.classes.len(), &found.shape[..]), ("T", 2, &[2][..]));
        assert_eq!(found.metrics, Some(metrics));
        assert_eq!(found.examples.len(), 2);
        assert_eq!(found.examples[1].name, "<b>");
        let [(first, None), (second, Some(frames)), (third, None)] = &found.examples[1].explanations[..]
        else {
            panic!("the stills belong to the second explanation");
        };
        assert_eq!((first, second, third), (&made, &made, &other));
        assert_eq!((&frames.times, &frames.scores, &frames.sums), (&still.times, &still.scores, &still.sums));
        assert!((&frames.credit - &still.credit).iter().all(|d| d.abs() < 6.0 / 65_535.0));
        assert!(Report::open(folder.path(), 1).unwrap().examples.is_empty());
    }
}
