//! Feature groups: which features are present or absent together.
//!
//! ```text
//! {0, .., d-1} = G_0 + .. + G_{M-1}          every feature is in exactly one group
//! ```
//!
//! A method that leaves features out asks a question for every subset of them; 3072 pixel values have too many.
//! Groups make the question smaller: patches or superpixels of an image, columns of a table. A group's credit is
//! spread evenly over its features, so that credit sums to the same number whether it is added up over groups or
//! over features.

mod slic;

use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};

pub use slic::Slic;

use crate::{Error, Result};

/// Images of more pixels than this have superpixels for groups where nothing else is said.
const MANY_PIXELS: usize = 64;

/// How features are put into groups.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Grouping {
    /// Every feature is a group of its own.
    #[default]
    Each,
    /// What suits the input: superpixels of an image of more than 64 pixels, else every feature by itself. With every
    /// pixel as a group, a method that asks for subsets does not come back.
    Natural,
    /// Patches of an image, all channels together; those at the right and lower edge may be smaller.
    Patches {
        /// Height of a patch in pixels.
        height: usize,
        /// Width of a patch in pixels.
        width: usize,
    },
    /// Superpixels of the image that is explained, all channels together.
    Superpixels(Slic),
    /// Columns of a table; those that code one variable together, such as a one-hot block, are one group.
    Columns {
        /// Lists of columns, counted from 0, that belong together. A column in no list is a group of its own.
        blocks: Vec<Vec<usize>>,
    },
    /// Groups by number: features with the same number belong together.
    Given {
        /// A number for every feature, or for every pixel where the channels of an image go together.
        labels: Vec<usize>,
    },
}

/// A partition of the features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    labels: Vec<usize>,
    members: Vec<Vec<usize>>,
}

impl Grouping {
    /// The groups of an input of this shape. Only superpixels look at the input itself.
    ///
    /// ```
    /// use brenier::attribute::Grouping;
    /// use ndarray::Array1;
    ///
    /// // Two channels of 4 x 4 pixels in patches of 2 x 2: pixel (0, 1) of the second channel is in the first patch.
    /// let groups = Grouping::Patches { height: 2, width: 2 }.groups(&[2, 4, 4], Array1::zeros(32).view())?;
    /// assert_eq!((groups.count(), groups.labels()[17]), (4, 0));
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// Patches and superpixels of what is not an image, sizes of 0, columns that do not exist or stand in two
    /// blocks, and lists of the wrong length.
    pub fn groups(&self, shape: &[usize], input: ArrayView1<f64>) -> Result<Groups> {
        let features: usize = shape.iter().product();
        Ok(Groups::new(match self {
            Grouping::Natural => return natural(shape).groups(shape, input),
            Grouping::Each => (0..features).collect(),
            Grouping::Patches { height, width } => patches(shape, *height, *width)?,
            Grouping::Superpixels(slic) => {
                let [channels, rows, columns] = image("superpixels", shape)?;
                repeat(&slic.labels(input, [channels, rows, columns])?, channels)
            }
            Grouping::Columns { blocks } => columns(features, blocks)?,
            Grouping::Given { labels } => given(shape, labels)?,
        }))
    }
}

impl Grouping {
    /// About how many groups an input of this shape has: superpixels of another number may come out.
    pub(super) fn expected(&self, shape: &[usize]) -> usize {
        match self {
            Grouping::Natural => natural(shape).expected(shape),
            Grouping::Superpixels(slic) => slic.segments,
            _ => self
                .groups(shape, Array1::zeros(shape.iter().product::<usize>()).view())
                .map_or(0, |groups| groups.count()),
        }
    }
}

/// What [`Grouping::Natural`] stands for, for inputs of this shape.
fn natural(shape: &[usize]) -> Grouping {
    match *shape {
        [1 | 3, height, width] if height * width > MANY_PIXELS => Grouping::Superpixels(Slic::default()),
        _ => Grouping::Each,
    }
}

impl Groups {
    /// Groups from a label for every feature; groups are numbered in the order of their labels.
    fn new(labels: Vec<usize>) -> Groups {
        let mut distinct = labels.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut members = vec![Vec::new(); distinct.len()];
        let mut compact = labels;
        for (feature, label) in compact.iter_mut().enumerate() {
            *label = distinct.partition_point(|known| known < label);
            members[*label].push(feature);
        }
        Groups { labels: compact, members }
    }

    /// The number of groups.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The group of every feature.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The features of a group.
    pub fn members(&self, group: usize) -> &[usize] {
        &self.members[group]
    }

    /// Credit of groups as credit of features: every feature of a group gets an equal share.
    pub(crate) fn spread(&self, credit: &Array1<f64>) -> Array1<f64> {
        self.labels.iter().map(|&group| credit[group] / self.members[group].len() as f64).collect()
    }
}

/// Channels, rows and columns of an image `[C, H, W]` or `[H, W]`.
pub(crate) fn image(what: &'static str, shape: &[usize]) -> Result<[usize; 3]> {
    match *shape {
        [channels, rows, columns] => Ok([channels, rows, columns]),
        [rows, columns] => Ok([1, rows, columns]),
        _ => Err(Error::NotAnImage { what, shape: shape.to_vec() }),
    }
}

/// The labels of the pixels for every channel.
fn repeat(plane: &[usize], channels: usize) -> Vec<usize> {
    plane.iter().copied().cycle().take(plane.len() * channels).collect()
}

fn patches(shape: &[usize], height: usize, width: usize) -> Result<Vec<usize>> {
    let [channels, rows, columns] = image("patches", shape)?;
    if height == 0 || width == 0 {
        return Err(Error::Zero { what: "the height and the width of a patch" });
    }
    let across = columns.div_ceil(width);
    let label = |pixel: usize| (pixel / columns / height) * across + (pixel % columns) / width;
    Ok(repeat(&(0..rows * columns).map(label).collect::<Vec<_>>(), channels))
}

fn columns(features: usize, blocks: &[Vec<usize>]) -> Result<Vec<usize>> {
    let mut first: Vec<Option<usize>> = vec![None; features];
    for block in blocks {
        for &column in block {
            let wrong = |needs| {
                let hint =
                    "list every column of a block once, such as 3,4,5 for the fourth to the sixth".into();
                Err(Error::Setting { name: "a block's column", value: column.to_string(), needs, hint })
            };
            match first.get_mut(column) {
                None => return wrong("columns are counted from 0, up to the number of features"),
                Some(Some(_)) => return wrong("a column belongs to one block only"),
                Some(place) => *place = block.iter().min().copied(),
            }
        }
    }
    Ok(first.into_iter().enumerate().map(|(column, block)| block.unwrap_or(column)).collect())
}

fn given(shape: &[usize], labels: &[usize]) -> Result<Vec<usize>> {
    let features: usize = shape.iter().product();
    match image("groups", shape) {
        _ if labels.len() == features => Ok(labels.to_vec()),
        Ok([channels, rows, columns]) if labels.len() == rows * columns => Ok(repeat(labels, channels)),
        _ => Err(Error::Shape {
            what: "the list of groups".to_string(),
            expected: shape.to_vec(),
            found: vec![labels.len()],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(grouping: &Grouping, shape: &[usize]) -> Result<Vec<usize>> {
        let input = Array1::zeros(shape.iter().product::<usize>());
        grouping.groups(shape, input.view()).map(|groups| groups.labels().to_vec())
    }

    #[test]
    fn images_have_superpixels_and_tables_have_columns_where_nothing_is_said() {
        let count = |shape: &[usize]| {
            let input = Array1::from_shape_fn(shape.iter().product::<usize>(), |i| (i as f64).sin());
            Grouping::Natural.groups(shape, input.view()).unwrap().count()
        };
        assert_eq!(count(&[20]), 20);
        assert_eq!(count(&[1, 8, 8]), 64);
        let pixels = count(&[3, 32, 32]);
        assert!((20..=100).contains(&pixels), "{pixels}");
    }

    #[test]
    fn patches_cover_all_channels_and_shrink_at_the_edge() {
        let found = labels(&Grouping::Patches { height: 2, width: 2 }, &[2, 3, 3]).unwrap();
        assert_eq!(found, [0, 0, 1, 0, 0, 1, 2, 2, 3].repeat(2));
    }

    #[test]
    fn blocks_of_columns_keep_the_order_of_the_table() {
        let found = labels(&Grouping::Columns { blocks: vec![vec![4, 3], vec![1]] }, &[6]).unwrap();
        assert_eq!(found, [0, 1, 2, 3, 3, 4]);
    }

    #[test]
    fn given_numbers_may_have_gaps_and_channels_may_go_together() {
        let found = labels(&Grouping::Given { labels: vec![9, 2, 2, 9] }, &[3, 2, 2]).unwrap();
        assert_eq!(found, [1, 0, 0, 1].repeat(3));
    }

    #[test]
    fn credit_of_a_group_is_shared_by_its_features() {
        let groups = Groups::new(vec![0, 1, 1, 1]);
        assert_eq!(groups.spread(&ndarray::array![2.0, 6.0]), ndarray::array![2.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn says_what_is_wrong() {
        let message = |grouping: Grouping, shape: &[usize]| labels(&grouping, shape).unwrap_err().to_string();
        assert!(message(Grouping::Patches { height: 2, width: 2 }, &[7]).contains("[7]"));
        assert!(message(Grouping::Patches { height: 0, width: 2 }, &[4, 4]).contains("at least 1"));
        assert!(
            message(Grouping::Columns { blocks: vec![vec![1, 2], vec![2]] }, &[7]).contains("one block only")
        );
        assert!(message(Grouping::Columns { blocks: vec![vec![7]] }, &[7]).contains("is 7"));
        assert!(message(Grouping::Given { labels: vec![0; 3] }, &[7]).contains("[3]"));
    }
}
