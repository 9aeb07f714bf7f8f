//! Explanations as files that anybody can open, and back.
//!
//! - `explanations.npz`, for NumPy: `values` and `inputs` (`[examples, ...]`), `examples` (their numbers in the
//!   run), `targets` and `scores` (`[examples]`); where the method has them, `references` and `standard_errors` (`[examples, ...]`) and
//!   `reference_scores` (`[examples]`);
//! - `explanations.jsonl`: a certificate a line;
//! - or, in place of both, `explanations.parquet` (see [`super::parquet`]).
//!
//! They are read one at a time: a file may hold more of them than fit into memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, ArrayD, IxDyn};

use super::parquet::{self, CertificateColumn, PARQUET};
use super::result_format::ResultFormat;
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

/// Writes explanations into a folder, which is made where it is missing: in the format that is asked for, and in no other.
///
/// # Errors
/// If they are not of one shape, or the files cannot be written.
pub fn save_explanations_as(folder: &Path, explanations: &[Explanation], format: ResultFormat) -> Result<()> {
    match format {
        ResultFormat::Npz => save_explanations(folder, explanations)?,
        ResultFormat::Parquet => {
            make_folder(folder)?;
            save_parquet(&folder.join(PARQUET), explanations, None)?;
        }
    }
    remove_explanations(folder, format.other())
}

/// Writes explanations into one Parquet file, with names of features and classes in words of the caller's own.
///
/// # Errors
/// If they are not of one shape, or the file cannot be written.
pub fn save_parquet(file: &Path, explanations: &[Explanation], names: Option<&str>) -> Result<()> {
    parquet::write(file, names, explanations.iter().cloned().map(Ok))
}

/// Removes explanations in one format.
pub(crate) fn remove_explanations(folder: &Path, format: ResultFormat) -> Result<()> {
    for file in format.files() {
        let path = folder.join(file);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Write { path, source: e.into() });
            }
            _ => {}
        }
    }
    Ok(())
}

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

/// Joins the explanations of several folders into one, in their order. Parts in either format become Parquet; for arrays all
/// of them must be arrays.
pub(crate) fn join_explanations(parts: &[PathBuf], into: &Path, format: ResultFormat) -> Result<()> {
    match format {
        ResultFormat::Npz => join_arrays(parts, into)?,
        ResultFormat::Parquet => {
            let all = parts.iter().flat_map(|part| {
                let (reader, error) = match ExplanationReader::open(part) {
                    Ok(reader) => (Some(reader), None),
                    Err(error) => (None, Some(Err(error))),
                };
                error.into_iter().chain(reader.into_iter().flatten())
            });
            parquet::write(&into.join(PARQUET), None, all)?;
        }
    }
    remove_explanations(into, format.other())
}

fn join_arrays(parts: &[PathBuf], into: &Path) -> Result<()> {
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
pub(crate) enum CertificateReader {
    Lines { path: PathBuf, lines: Lines<BufReader<File>> },
    Column(Box<CertificateColumn>),
}

impl CertificateReader {
    /// Those of a folder, or of a Parquet file.
    pub(crate) fn open(place: &Path) -> Result<CertificateReader> {
        if let Some(file) = parquet_file(place) {
            return Ok(CertificateReader::Column(Box::new(CertificateColumn::open(&file)?)));
        }
        let path = place.join(CERTIFICATES);
        let file = read(&path, |path| Ok(crate::readable::open(path)?))?;
        Ok(CertificateReader::Lines { path, lines: BufReader::new(file).lines() })
    }
}

/// The Parquet file of a folder that holds explanations in no other format, or that was given itself.
fn parquet_file(place: &Path) -> Option<PathBuf> {
    if place.is_file() {
        return Some(place.to_owned());
    }
    (ResultFormat::of(place) == Some(ResultFormat::Parquet)).then(|| place.join(PARQUET))
}

impl Iterator for CertificateReader {
    type Item = Result<Certificate>;

    fn next(&mut self) -> Option<Result<Certificate>> {
        match self {
            CertificateReader::Lines { path, lines } => {
                let line = lines.next()?;
                Some(read(path, |_| Ok(serde_json::from_str(&line?)?)))
            }
            CertificateReader::Column(column) => column.next(),
        }
    }
}

/// Explanations that were saved, one after another: at any time only one is in memory, or a few rows of a Parquet file.
pub struct ExplanationReader(Source);

enum Source {
    Arrays(Box<Arrays>),
    Parquet(Box<parquet::Rows>),
}

/// Arrays and certificates, which are read side by side.
struct Arrays {
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
    /// The explanations of a folder, or of a Parquet file.
    ///
    /// # Errors
    /// If there are none, or arrays and certificates do not belong together.
    pub fn open(place: &Path) -> Result<ExplanationReader> {
        Ok(ExplanationReader(match parquet_file(place) {
            Some(file) => Source::Parquet(Box::new(parquet::Rows::open(&file)?)),
            None => Source::Arrays(Box::new(Arrays::open(place)?)),
        }))
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        match &self.0 {
            Source::Arrays(arrays) => arrays.left,
            Source::Parquet(rows) => rows.left(),
        }
    }

    /// What [`save_parquet`] was told about names.
    pub fn names(&self) -> Option<&str> {
        match &self.0 {
            Source::Arrays(_) => None,
            Source::Parquet(rows) => rows.names(),
        }
    }

    /// The shape of one.
    pub fn shape(&self) -> &[usize] {
        match &self.0 {
            Source::Arrays(arrays) => &arrays.shape,
            Source::Parquet(rows) => rows.shape(),
        }
    }
}

impl Iterator for ExplanationReader {
    type Item = Result<Explanation>;

    fn next(&mut self) -> Option<Result<Explanation>> {
        match &mut self.0 {
            Source::Arrays(arrays) => arrays.next(),
            Source::Parquet(rows) => rows.next(),
        }
    }
}

impl Arrays {
    fn open(folder: &Path) -> Result<Arrays> {
        let certificates = CertificateReader::open(folder)?;
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
            let path = path.to_owned();
            Ok(Arrays { path, shape, left, certificates, values, inputs, references, errors })
        })
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

    #[test]
    fn parquet_gives_back_the_bits_and_takes_the_place_of_arrays() {
        let score = ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]));
        let one = |example: usize| {
            let line = Line::new(array![0.1, 0.0].view(), array![2.0, example as f64 / 7.0].view()).unwrap();
            let mut made = PathIntegral::new(Rule::adaptive(1e-3)).explain(&score, &line, 0).unwrap();
            made.certificate.example = example;
            // What one has, another lacks; numbers that are hard to write as text.
            match example % 3 {
                0 => made.reference = None,
                1 => made.values[0] = f64::NAN,
                _ => made.standard_errors = Some(array![f64::MIN_POSITIVE, -0.0]),
            }
            made
        };
        let all: Vec<Explanation> = (0..700).map(one).collect();
        let folder = tempfile::tempdir().unwrap();
        save_explanations(folder.path(), &all[..3]).unwrap();
        save_explanations_as(folder.path(), &all, ResultFormat::Parquet).unwrap();
        assert_eq!(ResultFormat::of(folder.path()), Some(ResultFormat::Parquet));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "arrays of before are gone");
        for place in [folder.path().to_owned(), folder.path().join(PARQUET)] {
            let reader = ExplanationReader::open(&place).unwrap();
            assert_eq!((reader.left(), reader.shape()), (700, &[2][..]));
            let found: Vec<Explanation> = reader.collect::<Result<_>>().unwrap();
            assert_eq!(found.len(), 700);
            for (kept, found) in all.iter().zip(&found) {
                let bits = |row: &Array1<f64>| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&kept.values), bits(&found.values));
                assert_eq!(kept.reference, found.reference);
                assert_eq!(kept.standard_errors.as_ref().map(bits), found.standard_errors.as_ref().map(bits));
                assert_eq!((&kept.input, &kept.certificate), (&found.input, &found.certificate));
            }
        }
        // However the rows were parted, the file has the same bytes.
        let parts: Vec<PathBuf> = [0..1, 1..500, 500..700]
            .into_iter()
            .enumerate()
            .map(|(k, rows)| {
                let part = folder.path().join(k.to_string());
                let format = if k == 1 { ResultFormat::Parquet } else { ResultFormat::Npz };
                // Arrays leave out what some rows lack; these parts have it in all rows or in none.
                let rows: Vec<Explanation> = all[rows]
                    .iter()
                    .cloned()
                    .map(|e| Explanation { reference: None, standard_errors: None, ..e })
                    .collect();
                save_explanations_as(&part, &rows, format).unwrap();
                part
            })
            .collect();
        let (joined, at_once) = (folder.path().join("joined"), folder.path().join("once"));
        make_folder(&joined).unwrap();
        join_explanations(&parts, &joined, ResultFormat::Parquet).unwrap();
        let plain: Vec<Explanation> = all
            .iter()
            .cloned()
            .map(|e| Explanation { reference: None, standard_errors: None, ..e })
            .collect();
        save_explanations_as(&at_once, &plain, ResultFormat::Parquet).unwrap();
        assert!(fs::read(joined.join(PARQUET)).unwrap() == fs::read(at_once.join(PARQUET)).unwrap());
        // Rows of two shapes, and a file that is something else.
        let mut other = all[0].clone();
        other.shape = vec![1, 2];
        let told =
            save_explanations_as(&joined, &[all[0].clone(), other], ResultFormat::Parquet).unwrap_err();
        assert!(told.to_string().contains("[1, 2]"), "{told}");
        fs::write(folder.path().join("no.parquet"), "PAR1 this is none PAR1").unwrap();
        assert!(ExplanationReader::open(&folder.path().join("no.parquet")).is_err());
    }
}
