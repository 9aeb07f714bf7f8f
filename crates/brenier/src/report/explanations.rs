//! Explanations as files that anybody can open, and back.
//!
//! - `explanations.npz`, for NumPy: `values` and `inputs` (`[examples, ...]`), `examples` (their numbers in the
//!   run), `targets` and `scores` (`[examples]`); where the method has them, `references` and `standard_errors` (`[examples, ...]`) and
//!   `reference_scores` (`[examples]`);
//! - `explanations.jsonl`: a certificate a line.
//!
//! They are read one at a time: a file may hold more of them than fit into memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, ArrayD, IxDyn};

use super::saved::read;
use crate::attribute::{Certificate, Explanation};
use crate::error::{Error, Result};
use crate::npz::{self, RowReader};
use crate::packed::PackedInputs;
use crate::whole_file::{Failure, Packing, make_folder, write_arrays, write_with};

/// The file of arrays.
pub(crate) const ARRAYS: &str = "explanations.npz";
/// The file of credit by input.
const BY_INPUT: &str = "by_input.npz";
/// The file of certificates.
pub(crate) const CERTIFICATES: &str = "explanations.jsonl";

/// Writes `explanations.npz` and `explanations.jsonl` into a folder, which is made where it is missing.
///
/// All explanations must be of one shape. Files appear whole or not at all.
pub fn save_explanations(folder: &Path, explanations: &[Explanation]) -> Result<()> {
    make_folder(folder)?;
    write_npz(&folder.join(ARRAYS), explanations)?;
    write_with(&folder.join(CERTIFICATES), |file| {
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

/// Writes `by_input.npz` beside saved explanations: the credit of each input of the model in its own shape, and of ids that
/// of each token.
///
/// # Errors
/// If there are no explanations, or the file cannot be written.
pub fn save_by_input(folder: &Path, inputs: &PackedInputs) -> Result<PathBuf> {
    let all = ExplanationReader::open(folder)?;
    let rows = all.left();
    let mut flat = Vec::with_capacity(rows * inputs.features());
    for explanation in all {
        flat.extend(explanation?.values);
    }
    let found = vec![flat.len()];
    let expected = vec![rows, inputs.features()];
    let values = Array2::from_shape_vec((rows, inputs.features()), flat).map_err(|_| Error::Shape {
        what: "the explanations of several inputs".to_string(),
        expected,
        found,
    })?;
    let path = folder.join(BY_INPUT);
    write_arrays(&path, Packing::Plain, |npz| {
        for (name, credit) in inputs.by_input(values.view()) {
            npz.add_array(name, &credit)?;
        }
        Ok(())
    })?;
    Ok(path)
}

/// Joins the explanations of several folders into one, in their order.
pub(crate) fn join_explanations(parts: &[PathBuf], into: &Path) -> Result<()> {
    let arrays: Vec<PathBuf> = parts.iter().map(|part| part.join(ARRAYS)).collect();
    npz::join(&arrays, &[], Packing::Plain, &into.join(ARRAYS))?;
    write_with(&into.join(CERTIFICATES), |file| {
        for part in parts {
            std::io::copy(&mut crate::readable::open(part.join(CERTIFICATES))?, file)?;
        }
        Ok(())
    })
}

/// Certificates that were saved, one after another.
pub(crate) struct CertificateReader {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
}

impl CertificateReader {
    /// Those of a file.
    pub(crate) fn open(path: &Path) -> Result<CertificateReader> {
        let file = read(path, |path| Ok(crate::readable::open(path)?))?;
        Ok(CertificateReader { path: path.to_owned(), lines: BufReader::new(file).lines() })
    }
}

impl Iterator for CertificateReader {
    type Item = Result<Certificate>;

    fn next(&mut self) -> Option<Result<Certificate>> {
        let line = self.lines.next()?;
        Some(read(&self.path, |_| Ok(serde_json::from_str(&line?)?)))
    }
}

/// Explanations that were saved, one after another: at any time only one is in memory.
pub struct ExplanationReader {
    path: PathBuf,
    shape: Vec<usize>,
    left: usize,
    certificates: CertificateReader,
    values: RowReader,
    inputs: RowReader,
    references: Option<RowReader>,
    errors: Option<RowReader>,
}

impl ExplanationReader {
    /// The explanations of a folder.
    ///
    /// # Errors
    /// If there are none, or arrays and certificates do not belong together.
    pub fn open(folder: &Path) -> Result<ExplanationReader> {
        let certificates = CertificateReader::open(&folder.join(CERTIFICATES))?;
        read(&folder.join(ARRAYS), |path| {
            let needed = |name: &str| {
                RowReader::open(path, name)?.ok_or_else(|| Failure::from(format!("it has no array '{name}'")))
            };
            let (values, inputs) = (needed("values")?, needed("inputs")?);
            let references = RowReader::open(path, "references")?;
            let errors = RowReader::open(path, "standard_errors")?;
            let others = [Some(&inputs), references.as_ref(), errors.as_ref()];
            let like =
                |other: &&RowReader| other.rows() == values.rows() && other.row_shape() == values.row_shape();
            if !others.iter().flatten().all(like) {
                return Err("its arrays are not of one shape".into());
            }
            let (shape, left) = (values.row_shape().to_vec(), values.rows());
            Ok(ExplanationReader {
                path: path.to_owned(),
                shape,
                left,
                certificates,
                values,
                inputs,
                references,
                errors,
            })
        })
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.left
    }

    fn row(&mut self, certificate: Certificate) -> std::result::Result<Explanation, Failure> {
        let optional = |rows: &mut Option<RowReader>| rows.as_mut().map(RowReader::next_row).transpose();
        Ok(Explanation {
            values: self.values.next_row()?,
            shape: self.shape.clone(),
            reference: optional(&mut self.references)?,
            input: self.inputs.next_row()?,
            standard_errors: optional(&mut self.errors)?,
            certificate,
        })
    }
}

impl Iterator for ExplanationReader {
    type Item = Result<Explanation>;

    fn next(&mut self) -> Option<Result<Explanation>> {
        let misfit = |path: &Path| Error::Read {
            path: path.to_owned(),
            source: "its arrays do not have a row for each certificate".into(),
        };
        match (self.left, self.certificates.next()) {
            (0, None) => None,
            (0, Some(_)) | (_, None) => {
                self.left = 0;
                Some(Err(misfit(&self.path)))
            }
            (_, Some(certificate)) => {
                self.left -= 1;
                let path = self.path.clone();
                Some(certificate.and_then(|certificate| read(&path, |_| self.row(certificate))))
            }
        }
    }
}

/// All explanations that were saved in a folder.
pub fn load_explanations(folder: &Path) -> Result<Vec<Explanation>> {
    ExplanationReader::open(folder)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, PathIntegral, Rule, ScoreFn};
    use ndarray::{Ix1, Ix2, array};
    use ndarray_npy::NpzReader;
    use std::fs;

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
