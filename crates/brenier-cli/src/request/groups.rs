//! Groups of features as they are typed: `each`, `patches:8x8`, `superpixels:50`, `columns:3-5,9-12`, or a file.

use std::path::Path as FilePath;

use anyhow::{Context, Result, bail};
use brenier::attribute::{Grouping, Slic};
use ndarray::ArrayD;

const HINT: &str = "hint: say each, patches:8x8, superpixels:50, columns:3-5,9-12, or name an .npy file with a group \
                    number for every feature or pixel";

/// What the text stands for.
pub(crate) fn grouping(text: &str) -> Result<Grouping> {
    let number = |part: &str| {
        part.trim().parse::<usize>().with_context(|| format!("'{part}' in '{text}' is not a number\n{HINT}"))
    };
    match text.split_once(':') {
        None if text == "each" => Ok(Grouping::Each),
        None if text == "superpixels" => Ok(Grouping::Superpixels(Slic::default())),
        Some(("patches", size)) => {
            let (height, width) = size.split_once('x').unwrap_or((size, size));
            Ok(Grouping::Patches { height: number(height)?, width: number(width)? })
        }
        Some(("superpixels", count)) => {
            Ok(Grouping::Superpixels(Slic { segments: number(count)?, ..Slic::default() }))
        }
        Some(("columns", list)) => {
            let block = |part: &str| -> Result<Vec<usize>> {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                Ok((number(first)?..=number(last)?).collect())
            };
            Ok(Grouping::Columns { blocks: list.split(',').map(block).collect::<Result<_>>()? })
        }
        _ if text.ends_with(".npy") => Ok(Grouping::Given { labels: labels(FilePath::new(text))? }),
        _ => bail!("there are no groups '{text}'\n{HINT}"),
    }
}

/// The group numbers of a file of integers.
fn labels(file: &FilePath) -> Result<Vec<usize>> {
    use ndarray_npy::{ReadNpyError::WrongDescriptor, read_npy};
    brenier::data::expect_honest_npy(file)?;
    let wide = match read_npy::<_, ArrayD<i64>>(file) {
        Err(WrongDescriptor(_)) => match read_npy::<_, ArrayD<i32>>(file) {
            Err(WrongDescriptor(_)) => read_npy::<_, ArrayD<u8>>(file).map(|array| array.mapv(i64::from)),
            read => read.map(|array| array.mapv(i64::from)),
        },
        read => read,
    };
    let wide = wide.with_context(|| format!("cannot read {} as an array of integers", file.display()))?;
    let label = |&value: &i64| {
        usize::try_from(value).with_context(|| {
            format!("{} holds the group {value}; groups are numbered from 0", file.display())
        })
    };
    wide.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_groups() {
        let same = |text: &str, expected: Grouping| assert_eq!(grouping(text).ok(), Some(expected));
        same("each", Grouping::Each);
        same("patches:8", Grouping::Patches { height: 8, width: 8 });
        same("patches:4x2", Grouping::Patches { height: 4, width: 2 });
        same("superpixels:9", Grouping::Superpixels(Slic { segments: 9, ..Slic::default() }));
        same("columns:1-3,7", Grouping::Columns { blocks: vec![vec![1, 2, 3], vec![7]] });
        for wrong in ["grid", "patches:axb", "columns:", "superpixels:-1", "missing.npy"] {
            assert!(grouping(wrong).is_err(), "{wrong}");
        }
    }
}
