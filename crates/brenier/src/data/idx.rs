//! IDX, the format of MNIST and its kin: two zero bytes, an element type, the number of axes, the length of
//! each axis as four bytes (big-endian), then the values. Files may be gzipped.
//!
//! Images are `[rows, height, width]` bytes, labels `[rows]` bytes; a label file belongs to the image file whose
//! name differs only in `images` and `idx3`. A file `classes.txt` beside them names the classes, a line each.

use std::path::{Path, PathBuf};

use super::dataset::Names;
use super::{DataError, Dataset, OpenOptions, Part, file};
use crate::error::Result;

const BYTES: u8 = 0x08;

/// The image files of a folder, each with its part.
pub(crate) fn find(entries: &[PathBuf]) -> Vec<(Part, PathBuf)> {
    let mut found: Vec<(Part, PathBuf)> = Vec::new();
    for path in entries {
        let name = file::name(path).to_lowercase();
        // The same file both packed and unpacked is one file; sorted, the unpacked one comes first.
        let twin =
            found.last().is_some_and(|(_, last)| name == format!("{}.gz", file::name(last).to_lowercase()));
        if is_idx(&name) && name.contains("images") && !twin {
            let test = name.contains("t10k") || name.contains("test");
            found.push((if test { Part::Test } else { Part::Train }, path.clone()));
        }
    }
    found
}

/// Whether a file is IDX by its name.
pub(crate) fn is_idx(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.ends_with("-ubyte")
        || name.ends_with(".idx")
        || ["idx1", "idx3"].iter().any(|mark| name.contains(mark))
}

/// Reads the image files of a folder that belong to the part asked for.
pub(crate) fn open_folder(
    folder: &Path,
    files: &[(Part, PathBuf)],
    options: &OpenOptions,
) -> Result<Dataset> {
    let of = |wanted: Part| files.iter().filter(move |(part, _)| *part == wanted).map(|(_, path)| path);
    // By name `t10k` would come before `train`.
    let wanted: Vec<&PathBuf> =
        [Part::Train, Part::Test].into_iter().filter(|part| options.part.wants(*part)).flat_map(of).collect();
    if wanted.is_empty() {
        return Err(DataError::NoPart { path: folder.to_path_buf(), part: options.part.name() }.into());
    }
    if wanted.len() > 1 && options.part != Part::All {
        return Err(DataError::Unrecognised {
            path: folder.to_path_buf(),
            reason: format!(
                "{} and {} are both {} images",
                file::name(wanted[0]),
                file::name(wanted[1]),
                options.part.name()
            ),
            hint: "give the file instead of the folder".into(),
        }
        .into());
    }
    read(&folder.display().to_string(), &wanted, options)
}

/// Reads one image file, and its labels if they are beside it.
pub(crate) fn open_file(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    read(&path.display().to_string(), &[&path.to_path_buf()], options)
}

fn read(origin: &str, files: &[&PathBuf], options: &OpenOptions) -> Result<Dataset> {
    let mut pixels = Vec::new();
    let mut labels: Vec<usize> = Vec::new();
    let mut label_file = None;
    let mut names = Vec::new();
    let mut size: Option<(PathBuf, Vec<usize>)> = None;
    for &path in files {
        let (axes, values) = parse(path)?;
        let &[rows, height, width] = axes.as_slice() else {
            return Err(DataError::Magic {
                path: path.clone(),
                format: "a file of IDX images",
                found: format!("00 00 08 {:02x}, {} axes", axes.len(), axes.len()),
                expected: "00 00 08 03, three axes",
                hint:
                    "give the file of images, such as train-images-idx3-ubyte; its labels are found beside it"
                        .into(),
            }
            .into());
        };
        let shape = vec![1, height, width];
        match &size {
            Some((first, first_shape)) if *first_shape != shape => {
                return Err(DataError::MixedSizes {
                    first: first.clone(),
                    first_shape: first_shape.clone(),
                    second: path.clone(),
                    second_shape: shape,
                }
                .into());
            }
            Some(_) => {}
            None => size = Some((path.clone(), shape)),
        }
        if pixels.is_empty() {
            pixels = values;
        } else {
            pixels.extend_from_slice(&values);
        }
        names.push((file::name(path), rows));
        if let Some(beside) = labels_beside(path) {
            let (axes, values) = parse(&beside)?;
            if axes != [rows] {
                return Err(DataError::LabelCount {
                    data: path.clone(),
                    rows,
                    file: beside,
                    labels: axes.iter().product(),
                }
                .into());
            }
            labels.extend(values.iter().map(|&label| usize::from(label)));
            label_file = Some(beside);
        }
    }
    let (path, shape) = size.ok_or_else(|| DataError::Empty {
        path: origin.into(),
        looked_for: "IDX images".into(),
        hint: "give a folder with files such as train-images-idx3-ubyte.gz".into(),
    })?;
    if pixels.is_empty() {
        return Err(DataError::Empty {
            path,
            looked_for: "images".into(),
            hint: "the header tells of no images; fetch the file again".into(),
        }
        .into());
    }
    let data = Dataset::from_pixels(origin, &shape, pixels)?.with_names(Names::Numbered(names));
    match label_file {
        Some(label_file) => {
            let names = label_file.with_file_name("classes.txt");
            let known = if names.is_file() { file::lines(&names)? } else { Vec::new() };
            file::label(data, labels, &known, &label_file, options)
        }
        None => Ok(data),
    }
}

/// The label file that belongs to a file of images, if there is one.
fn labels_beside(images: &Path) -> Option<PathBuf> {
    let name = file::name(images);
    let bare = name.strip_suffix(".gz").unwrap_or(&name);
    let labels = bare.replace("images", "labels").replace("idx3", "idx1");
    if labels == bare {
        return None;
    }
    [labels.clone(), format!("{labels}.gz")]
        .iter()
        .map(|name| images.with_file_name(name))
        .find(|path| path.is_file())
}

/// The axes and the bytes of a file.
fn parse(path: &Path) -> Result<(Vec<usize>, Vec<u8>)> {
    let mut bytes = file::read(path)?;
    let magic = |found: &[u8]| DataError::Magic {
        path: path.to_path_buf(),
        format: "an IDX file of bytes",
        found: if found.is_empty() {
            "nothing".into()
        } else {
            found.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        },
        expected: "00 00 08 and the number of axes",
        hint: "fetch the file again; a web page saved in its place begins with 3c".into(),
    };
    let count = match bytes.get(..4) {
        Some(&[0, 0, BYTES, count]) if count > 0 => usize::from(count),
        _ => return Err(magic(&bytes[..bytes.len().min(4)]).into()),
    };
    let header = 4 + 4 * count;
    let too_short = |expected: u64, found: usize| DataError::Length {
        path: path.to_path_buf(),
        expected,
        found: found as u64,
    };
    if bytes.len() < header {
        return Err(too_short(header as u64, bytes.len()).into());
    }
    let axes: Vec<usize> = bytes[4..header]
        .chunks_exact(4)
        .map(|axis| u32::from_be_bytes([axis[0], axis[1], axis[2], axis[3]]) as usize)
        .collect();
    let expected = axes.iter().fold(1_u64, |product, &axis| product.saturating_mul(axis as u64));
    let found = bytes.len() - header;
    if expected != found as u64 {
        return Err(too_short(expected, found).into());
    }
    bytes.drain(..header);
    Ok((axes, bytes))
}
