//! The flags that say how data are read, shared by every verb that reads data.

use brenier::data::{Color, Missing, OpenOptions, Part, Transform};
use clap::{Args, ValueEnum};

/// How the data are read
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Tables: the column with the labels
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Tables: columns to leave out, with commas between
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    drop: Vec<String>,
    /// Tables: columns whose numbers are names
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    categorical: Vec<String>,
    /// Tables: leave out rows with empty cells, which are refused otherwise
    #[arg(long)]
    drop_missing: bool,
    /// Images: resize to HEIGHTxWIDTH, such as 32x32
    #[arg(long, value_name = "SIZE", value_parser = size)]
    resize: Option<(usize, usize)>,
    /// Images: cut out the largest square in the middle, before resizing
    #[arg(long)]
    square: bool,
    /// Images: gray or rgb; default: as in the files
    #[arg(long, value_enum)]
    color: Option<Colour>,
    /// Arrays and tables: the shape of a row, such as 1,8,8 for 64 columns that are an image
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    shape: Option<Vec<usize>>,
    /// Arrays and tables: divide every value by this
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    maximum: Option<f32>,
    /// Use only the first rows
    #[arg(long, value_name = "N", value_parser = rows, allow_negative_numbers = true)]
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    Gray,
    Rgb,
}

/// Which split of the data
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataPart {
    /// What models are trained on; all of data that do not come in parts
    Train,
    /// What is held out
    Test,
    /// Both
    All,
}

impl From<DataPart> for Part {
    fn from(part: DataPart) -> Part {
        match part {
            DataPart::Train => Part::Train,
            DataPart::Test => Part::Test,
            DataPart::All => Part::All,
        }
    }
}

/// Pixels of an image at the most.
const MOST_PIXELS: usize = 1 << 28;

/// A number of rows: at least one.
fn rows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("no rows would be left".to_string()),
        Ok(rows) => Ok(rows),
        Err(_) => Err("it is a whole number from 1 on".to_string()),
    }
}

pub(crate) fn size(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('x').and_then(|(h, w)| Some((h.parse().ok()?, w.parse().ok()?)));
    let (height, width): (usize, usize) =
        parsed.ok_or_else(|| format!("'{text}' is no size such as 32x32"))?;
    if height == 0 || width == 0 || height.saturating_mul(width) > MOST_PIXELS {
        return Err(format!("'{text}' is no size: an image has between 1 and {MOST_PIXELS} pixels"));
    }
    Ok((height, width))
}

impl DataArgs {
    /// The first flag that says nothing of arrays of floats, where one was given.
    pub(crate) fn not_for_floats(&self) -> Option<&'static str> {
        let given = [
            ("--label", self.label.is_some()),
            ("--drop", !self.drop.is_empty()),
            ("--categorical", !self.categorical.is_empty()),
            ("--drop-missing", self.drop_missing),
            ("--color", self.color.is_some()),
            ("--square", self.square),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// What the flags mean.
    pub(crate) fn options(&self) -> OpenOptions {
        let mut transforms = Vec::new();
        if self.square {
            transforms.push(Transform::CenterSquare);
        }
        if let Some((height, width)) = self.resize {
            transforms.push(Transform::Resize { height, width });
        }
        OpenOptions {
            label: self.label.clone(),
            drop: self.drop.clone(),
            categorical: self.categorical.clone(),
            missing: if self.drop_missing { Missing::DropRow } else { Missing::Refuse },
            transforms,
            color: match self.color {
                None => Color::AsStored,
                Some(Colour::Gray) => Color::Gray,
                Some(Colour::Rgb) => Color::Rgb,
            },
            shape: self.shape.clone(),
            maximum: self.maximum,
            limit: self.limit,
            ..OpenOptions::default()
        }
    }
}

/// A number of something; what zero means is said by what takes it.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is a whole number from 1 on".to_string())
}
