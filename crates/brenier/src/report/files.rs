//! Explanations as files that anybody can open.
//!
//! - `explanations.npz`, for NumPy: `values` and `inputs` (`[examples, ...]`), `examples` (their numbers in the
//!   run), `targets` and `scores` (`[examples]`); where the method has them, `references` and `standard_errors` (`[examples, ...]`) and
//!   `reference_scores` (`[examples]`);
//! - `explanations.jsonl`: a certificate a line.

use std::io::Write;
use std::path::Path;

use ndarray::{Array1, ArrayD, IxDyn};

use crate::attribute::Explanation;
use crate::error::{Error, Result};
use crate::whole_file::{Packing, make_folder, write_arrays, write_with};

/// Writes `explanations.npz` and `explanations.jsonl` into a folder, which is made where it is missing.
///
/// All explanations must be of one shape. Files appear whole or not at all.
pub fn save_explanations(folder: &Path, explanations: &[Explanation]) -> Result<()> {
    make_folder(folder)?;
    write_npz(&folder.join("explanations.npz"), explanations)?;
    write_with(&folder.join("explanations.jsonl"), |file| {
        for explanation in explanations {
            serde_json::to_writer(&mut *file, &explanation.certificate)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })
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
    let examples: Array1<i64> = explanations.iter().map(|e| e.certificate.example as i64).collect();
    let targets: Array1<i64> = explanations.iter().map(|e| e.certificate.target as i64).collect();
    let scores: Array1<f64> = explanations.iter().map(|e| e.certificate.score).collect();
    let reference_scores: Option<Array1<f64>> =
        explanations.iter().map(|e| e.certificate.completeness.map(|c| c.reference_score)).collect();
    write_arrays(path, Packing::Plain, |npz| {
        for (name, array) in &arrays {
            if let Some(array) = array {
                npz.add_array(*name, array)?;
            }
        }
        npz.add_array("examples", &examples)?;
        npz.add_array("targets", &targets)?;
        npz.add_array("scores", &scores)?;
        if let Some(scores) = &reference_scores {
            npz.add_array("reference_scores", scores)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, PathIntegral, Rule, ScoreFn};
    use ndarray::{Ix1, Ix2, array};
    use ndarray_npy::NpzReader;
    use std::fs::{self, File};

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
