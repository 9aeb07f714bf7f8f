//! A report from what a run has left in its folder, so that a page can be made anew without the model.
//!
//! - `report.json`: title, facts, names of features and classes, the table of metrics;
//! - `explanations.npz` and `.jsonl`, or `explanations.parquet`, in the folder itself or in a folder for each method;
//! - `stills.npz` beside them: the paths as pictures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::explanations::ExplanationReader;
use super::page::{Report, ReportExample};
use super::result_format::ResultFormat;
use super::stills::{STILLS, load_stills};
use crate::attribute::{Explanation, Frames};
use crate::error::{Error, Result};
use crate::whole_file::{Failure, make_folder, write_whole};

const DESCRIPTION: &str = "report.json";

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
            // Columns belong to their features.
            columns: if self.features.is_empty() { before.columns } else { self.columns.clone() },
            features: names(&self.features, before.features),
            inputs: self.inputs.clone().or(before.inputs),
            tokens: if self.tokens.is_empty() { before.tokens } else { self.tokens.clone() },
            classes: names(&self.classes, before.classes),
            metrics: self.metrics.clone().or(before.metrics),
            parts: names(&self.parts, before.parts),
            superpixels: self.superpixels,
            shared_scale: self.shared_scale,
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
            let mut stills: BTreeMap<usize, Frames> = match part.join(STILLS).exists() {
                true => load_stills(&part)?.into_iter().collect(),
                false => BTreeMap::new(),
            };
            // Examples come in order: those behind the last that is shown are not read.
            for (row, explanation) in ExplanationReader::open(&part)?.enumerate() {
                let explanation = explanation?;
                if explanation.certificate.example >= limit && !all.is_empty() {
                    break;
                }
                all.push((explanation, stills.remove(&row)));
            }
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
    read(path, |path| Ok(serde_json::from_slice(&crate::readable::read(path)?)?))
}

/// The folder itself, or those in it, that hold explanations; in this order, others after them by name.
fn parts(folder: &Path, order: &[String]) -> Result<Vec<PathBuf>> {
    let holds = |path: &PathBuf| ResultFormat::of(path).is_some();
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

pub(super) fn read<T>(path: &Path, how: impl FnOnce(&Path) -> std::result::Result<T, Failure>) -> Result<T> {
    how(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::frames;
    use crate::report::{ReportTable, save_explanations, save_stills};
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
        save_stills(&part, 0, &[None, Some(still.clone())]).unwrap();
        let mut other = made.clone();
        other.certificate.method = "gradient".to_string();
        save_explanations(&folder.path().join("gradient"), std::slice::from_ref(&other)).unwrap();
        let metrics = ReportTable {
            columns: vec!["method".into()],
            rows: vec![("ig".into(), vec![])],
            notes: Vec::new(),
        };
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
