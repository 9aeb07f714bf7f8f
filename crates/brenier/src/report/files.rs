//! Explanations as files that anybody can open.
//!
//! - `explanations.npz`, for NumPy: `values` and `inputs` (`[examples, ...]`), `targets` and `scores`
//!   (`[examples]`); where the method has them, `references` and `standard_errors` (`[examples, ...]`) and
//!   `reference_scores` (`[examples]`);
//! - `explanations.jsonl`: a certificate a line.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use ndarray::{Array1, ArrayD, IxDyn};
use ndarray_npy::NpzWriter;

use crate::attribute::Explanation;
use crate::error::{Error, Result};

/// Writes `explanations.npz` and `explanations.jsonl` into a folder, which is made where it is missing.
///
/// All explanations must be of one shape. Files appear whole or not at all.
pub fn save_explanations(folder: &Path, explanations: &[Explanation]) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| unwritable(folder, e))?;
    let npz = folder.join("explanations.npz");
    let part = folder.join("explanations.npz.part");
    write_npz(&part, explanations)?;
    fs::rename(&part, &npz).map_err(|e| unwritable(&npz, e))?;
    let jsonl = folder.join("explanations.jsonl");
    let part = folder.join("explanations.jsonl.part");
    write_certificates(&part, explanations)?;
    fs::rename(&part, &jsonl).map_err(|e| unwritable(&jsonl, e))
}

fn unwritable(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Write { path: path.to_owned(), source: source.into() }
}

fn write_npz(path: &Path, explanations: &[Explanation]) -> Result<()> {
    let shape = explanations.first().map_or(Vec::new(), |e| e.shape.clone());
    let stack = |pick: fn(&Explanation) -> Option<&Array1<f64>>| -> Result<Option<ArrayD<f64>>> {
        if explanations.iter().any(|e| pick(e).is_none()) {
            return Ok(None);
        }
        let all: Vec<f64> = explanations.iter().filter_map(pick).flatten().copied().collect();
        let whole: Vec<usize> = std::iter::once(explanations.len()).chain(shape.iter().copied()).collect();
        let found = vec![all.len()];
        ArrayD::from_shape_vec(IxDyn(&whole), all).map(Some).map_err(|_| Error::Shape {
            what: "the explanations to be saved together".to_string(),
            expected: whole,
            found,
        })
    };
    let arrays = [
        ("values", stack(|e| Some(&e.values))?),
        ("inputs", stack(|e| Some(&e.input))?),
        ("references", stack(|e| e.reference.as_ref())?),
        ("standard_errors", stack(|e| e.standard_errors.as_ref())?),
    ];
    let targets: Array1<i64> = explanations.iter().map(|e| e.certificate.target as i64).collect();
    let scores: Array1<f64> = explanations.iter().map(|e| e.certificate.score).collect();
    let reference_scores: Option<Array1<f64>> =
        explanations.iter().map(|e| e.certificate.completeness.map(|c| c.reference_score)).collect();
    let file = File::create(path).map_err(|e| unwritable(path, e))?;
    let mut npz = NpzWriter::new(BufWriter::new(file));
    for (name, array) in &arrays {
        if let Some(array) = array {
            npz.add_array(*name, array).map_err(|e| unwritable(path, e))?;
        }
    }
    npz.add_array("targets", &targets).map_err(|e| unwritable(path, e))?;
    npz.add_array("scores", &scores).map_err(|e| unwritable(path, e))?;
    if let Some(scores) = reference_scores {
        npz.add_array("reference_scores", &scores).map_err(|e| unwritable(path, e))?;
    }
    npz.finish().map_err(|e| unwritable(path, e))?;
    Ok(())
}

fn write_certificates(path: &Path, explanations: &[Explanation]) -> Result<()> {
    let mut file = BufWriter::new(File::create(path).map_err(|e| unwritable(path, e))?);
    for explanation in explanations {
        serde_json::to_writer(&mut file, &explanation.certificate).map_err(|e| unwritable(path, e))?;
        file.write_all(b"\n").map_err(|e| unwritable(path, e))?;
    }
    file.flush().map_err(|e| unwritable(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, PathIntegral, Rule, ScoreFn};
    use ndarray::{Ix1, Ix2, array};
    use ndarray_npy::NpzReader;

    #[test]
    fn arrays_and_certificates_come_back() {
        let score = ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]));
        let line = Line::new(array![0.0, 0.0].view(), array![2.0, 3.0].view()).unwrap();
        let explanation =
            PathIntegral::new(Rule::GaussLegendre { nodes: 4 }).explain(&score, &line, 0).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        save_explanations(&folder, &[explanation.clone(), explanation.clone()]).unwrap();

        let mut npz = NpzReader::new(File::open(folder.join("explanations.npz")).unwrap()).unwrap();
        let values = npz.by_name::<ndarray::OwnedRepr<f64>, Ix2>("values").unwrap();
        assert_eq!(values.row(1), explanation.values);
        let scores = npz.by_name::<ndarray::OwnedRepr<f64>, Ix1>("scores").unwrap();
        assert_eq!(scores, array![6.0, 6.0]);
        let lines = fs::read_to_string(folder.join("explanations.jsonl")).unwrap();
        let first: crate::Certificate = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert_eq!(first, explanation.certificate);
    }
}
