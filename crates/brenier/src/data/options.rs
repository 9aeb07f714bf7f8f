//! What a user may say about data that the files do not say themselves.

use serde::{Deserialize, Serialize};

use super::{Column, Dataset};

/// How data are to be read. The defaults read well-formed files of any of the formats; each option says where
/// it has a meaning, and is refused elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenOptions {
    /// Which part of a set that comes in two.
    pub part: Part,
    /// Keep the first so many rows; it is an error if there are fewer.
    pub limit: Option<usize>,

    /// Images: steps applied to each, in this order.
    pub transforms: Vec<Transform>,
    /// Images: gray, RGB, or as the files are.
    pub color: Color,
    /// Image folders: only files that end so, such as `pgm`.
    pub extension: Option<String>,

    /// Arrays and tables: the shape of a row, such as `[1, 8, 8]` for 64 columns that are an image.
    pub shape: Option<Vec<usize>>,
    /// Arrays: where the channels of images are.
    pub layout: Layout,
    /// Arrays and tables: divide every value by this, such as 16 for pixels that run from 0 to 16.
    pub maximum: Option<f32>,

    /// Tables: the column with the labels. In Parquet files with images as well.
    pub label: Option<String>,
    /// Tables: columns to leave out.
    pub drop: Vec<String>,
    /// Tables: columns whose numbers are names, to be coded by value.
    pub categorical: Vec<String>,
    /// Tables: what to do with a row that has an empty cell.
    pub missing: Missing,
    /// CSV: whether the first line has names; guessed if not given. Without names, columns are `0`, `1`, ...
    pub header: Option<bool>,
    /// CSV: the character between cells; guessed if not given.
    pub delimiter: Option<char>,
    /// Tables: code columns as in another data set, by [`Dataset::columns`].
    pub columns: Vec<Column>,

    /// The names of the classes, in the order of the model's outputs.
    pub classes: Vec<String>,
}

impl OpenOptions {
    /// Options for more data of the same kind: the same coding of columns, the same classes in the same order.
    ///
    /// Without this a test file in which a category happens not to occur would get other features.
    #[must_use]
    pub fn like(mut self, data: &Dataset) -> Self {
        self.columns = data.columns().to_vec();
        self.classes = data.classes().to_vec();
        self
    }
}

/// Which part of a set that comes in two: MNIST, CIFAR-10, `train` and `test` folders, `x_train` arrays.
///
/// Data that do not come in parts are all `Train`; asking for their `Test` part is an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// What models are trained on.
    #[default]
    Train,
    /// What is held out.
    Test,
    /// Both, training rows first.
    All,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Test => "test",
            Part::All => "train or test",
        }
    }

    /// Whether something of the part `of` is wanted.
    pub(crate) fn wants(self, of: Part) -> bool {
        self == Part::All || self == of
    }
}

/// A step applied to each image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Transform {
    /// To this size, whatever the proportions were (bilinear, smoothed when it shrinks).
    Resize {
        /// Rows of pixels.
        height: usize,
        /// Columns of pixels.
        width: usize,
    },
    /// The shorter side to this length, proportions kept (bilinear, smoothed when it shrinks).
    ResizeShorter {
        /// The shorter side.
        side: usize,
    },
    /// The middle of the image.
    CenterCrop {
        /// Rows of pixels.
        height: usize,
        /// Columns of pixels.
        width: usize,
    },
    /// The largest square in the middle.
    CenterSquare,
}

/// Gray, RGB, or as the files are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Color {
    /// One channel for gray files, three for coloured ones; a set with both is refused.
    #[default]
    AsStored,
    /// One channel, the luminance.
    Gray,
    /// Three channels, equal for gray files.
    Rgb,
}

/// Where the channels of an array of images are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Last if the last axis is 1 or 3 and the second is not, otherwise first.
    #[default]
    Guess,
    /// `[N, C, H, W]`.
    ChannelsFirst,
    /// `[N, H, W, C]`.
    ChannelsLast,
}

/// What to do with a row that has an empty cell (also `NA`, `NaN`, `null`, `?`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Refuse the table, naming the first such cell.
    #[default]
    Refuse,
    /// Leave the row out.
    DropRow,
    /// In categorical columns count it as the value `missing`; refuse it in numeric columns.
    Category,
}
