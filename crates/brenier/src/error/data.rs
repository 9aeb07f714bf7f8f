//! What can be wrong with data: each message names the file or the row, and what to try.

use std::path::PathBuf;

use super::Remedy;

/// What can be wrong with data. Rows are counted from 0, lines of a text file from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder is in no format that is read.
    #[error("{} cannot be read as data: {reason}\nhint: {hint}", path.display())]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
        /// What was looked at.
        reason: String,
        /// What to try.
        hint: Remedy,
    },
    /// A file or folder has no examples in it.
    #[error("{} has no examples: {looked_for} looked for, none found\nhint: {hint}", path.display())]
    Empty {
        /// The file or folder.
        path: PathBuf,
        /// What was looked for.
        looked_for: String,
        /// What to try.
        hint: Remedy,
    },
    /// Data have no such part as was asked for.
    #[error(
        "{} has no {part} part\nhint: give the folder that has it, or split the rows with a fraction and a seed",
        path.display()
    )]
    NoPart {
        /// The file or folder.
        path: PathBuf,
        /// `train` or `test`.
        part: &'static str,
    },
    /// An option was given that has no meaning for these data.
    #[error("{option} has no meaning for {}, which holds {kind}\nhint: leave it out", path.display())]
    Option {
        /// The option's name.
        option: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the data are.
        kind: &'static str,
    },

    /// A population has no rows, or one.
    #[error(
        "population '{name}' has {rows} rows, and two are the least that can be compared\nhint: give more rows: \
         some hundreds are a good beginning"
    )]
    Population {
        /// Its name.
        name: String,
        /// Its rows.
        rows: usize,
    },
    /// There is no such class.
    #[error("{data} has no class '{class}'\nhint: did you mean '{nearest}'?")]
    NoClass {
        /// The data.
        data: String,
        /// The class asked for.
        class: String,
        /// The class whose name is nearest to it.
        nearest: String,
    },
    /// Two populations have rows of different shapes.
    #[error(
        "population '{first}' has rows of shape {first_shape:?}, but '{second}' has {second_shape:?}\nhint: populations \
         that are compared have the same features; resize images, or leave out columns"
    )]
    PopulationShape {
        /// The first population.
        first: String,
        /// The shape of its rows.
        first_shape: Vec<usize>,
        /// The second population.
        second: String,
        /// The shape of its rows.
        second_shape: Vec<usize>,
    },
    /// A column of one population is not in the other, or is coded in another way.
    #[error(
        "column '{column}' of population '{first}' {reason} in '{second}'\nhint: {}",
        Remedy::LeaveOutColumns
    )]
    PopulationColumn {
        /// The population with the column.
        first: String,
        /// The other.
        second: String,
        /// The column.
        column: String,
        /// What is wrong with it there.
        reason: &'static str,
    },

    /// Two images of a set differ in size or channels.
    #[error(
        "images of different sizes: {} is {first_shape:?}, but {} is {second_shape:?} (channels, height, \
         width)\nhint: resize or crop to one size, choose gray or RGB for all, or remove what does not belong",
        first.display(), second.display()
    )]
    MixedSizes {
        /// The first image.
        first: PathBuf,
        /// Its channels, height and width.
        first_shape: Vec<usize>,
        /// The first image that differs from it.
        second: PathBuf,
        /// Its channels, height and width.
        second_shape: Vec<usize>,
    },
    /// An image cannot be decoded.
    #[error(
        "cannot decode image {place}: {reason}\nhint: the file is damaged or incomplete; replace or remove it"
    )]
    Image {
        /// The file, or the row of a file of images.
        place: String,
        /// What the decoder said.
        reason: String,
    },
    /// A crop reaches beyond the image.
    #[error(
        "{place} is {}x{} (height x width), too small to crop {}x{} from\nhint: resize first, or crop less",
        found[0], found[1], crop[0], crop[1]
    )]
    CropTooLarge {
        /// The file, or the row of a file of images.
        place: String,
        /// The image's height and width.
        found: [usize; 2],
        /// The crop's height and width.
        crop: [usize; 2],
    },

    /// A file ends too early, or goes on too long.
    #[error(
        "{} holds {found} bytes of data, but its header tells of {expected}\nhint: the file is damaged or \
         incomplete; fetch it again",
        path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// The bytes that its header tells of.
        expected: u64,
        /// The bytes it has.
        found: u64,
    },
    /// A file does not begin as its format does.
    #[error("{} is not {format}: it begins with {found}, not {expected}\nhint: {hint}", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// The format expected.
        format: &'static str,
        /// How it begins.
        found: String,
        /// How it should.
        expected: &'static str,
        /// What to try.
        hint: Remedy,
    },
    /// Images and labels are not the same number.
    #[error(
        "{} has {rows} examples, but {} has {labels} labels\nhint: take both from the same set and part",
        data.display(), file.display()
    )]
    LabelCount {
        /// Where the examples are.
        data: PathBuf,
        /// Their number.
        rows: usize,
        /// Where the labels are.
        file: PathBuf,
        /// Their number.
        labels: usize,
    },
    /// A label is none of the classes.
    #[error(
        "label {label} of row {row} in {} is none of the {classes} classes\nhint: labels are class names, or \
         numbers from 0; look at the row, or at the classes given",
        path.display()
    )]
    Label {
        /// The file.
        path: PathBuf,
        /// The row.
        row: usize,
        /// The label.
        label: String,
        /// The number of classes.
        classes: usize,
    },
    /// Labels are needed, and there are none.
    #[error(
        "{data} has no labels\nhint: for a table name the label column; for images use a folder per class, or \
         put the label file beside the images"
    )]
    NoLabels {
        /// Where the data come from.
        data: String,
    },
    /// There are fewer rows than asked for.
    #[error(
        "{data} has {rows} rows, but {needed} are needed for {what}\nhint: ask for fewer, or bring more data"
    )]
    TooFewRows {
        /// Where the data come from.
        data: String,
        /// The number of rows there are.
        rows: usize,
        /// The number needed.
        needed: usize,
        /// What for.
        what: String,
    },
    /// An array of a file is missing, or does not have a shape that can be used.
    #[error("{}: {reason}\nhint: {hint}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the array's name and shape.
        reason: String,
        /// What to try.
        hint: Remedy,
    },
    /// A value is NaN or infinite.
    #[error("row {row} of {data} is {value} at {place}\nhint: remove the row, or fill in the value")]
    NotFinite {
        /// Where the data come from.
        data: String,
        /// The row.
        row: usize,
        /// Which entry of the row.
        place: String,
        /// NaN or an infinity.
        value: f64,
    },

    /// A cell of a table cannot be used.
    #[error("{}, {line}, column '{column}': {reason}\nhint: {hint}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line or row, such as `line 7`.
        line: String,
        /// The column's name.
        column: String,
        /// What is wrong, with the cell's text.
        reason: String,
        /// What to try.
        hint: Remedy,
    },
    /// A line of a table has more or fewer cells than the first.
    #[error(
        "{}, line {line}: {found} cells, but the first line has {expected}\nhint: look for a stray delimiter or \
         quote there, or give the delimiter",
        path.display()
    )]
    Ragged {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The number of its cells.
        found: u64,
        /// The number of cells of the first line.
        expected: u64,
    },
    /// A table has no column of this name.
    #[error(
        "{} has no column '{name}'; its columns are {}\nhint: columns are found by the names in the first line: look \
         for another spelling, or for a line of names that is missing",
        path.display(), first_names(known)
    )]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        name: String,
        /// The columns there are.
        known: Vec<String>,
    },
    /// A column of a table cannot be used.
    #[error("column '{column}' of {} {reason}\nhint: {hint}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
        /// What is wrong.
        reason: String,
        /// What to try.
        hint: Remedy,
    },
    /// A feature has the same value in every row, so it cannot be scaled.
    #[error(
        "{feature} is {value} in all {rows} rows of {data}\nhint: leave it out, or tell the scaling to keep \
         constants (they become 0)"
    )]
    Constant {
        /// The column, channel or feature.
        feature: String,
        /// Its only value.
        value: String,
        /// The number of rows.
        rows: usize,
        /// Where the data come from.
        data: String,
    },
}

impl DataError {
    /// What to try, where the error leaves the words to others.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        match self {
            DataError::Unrecognised { hint, .. }
            | DataError::Empty { hint, .. }
            | DataError::Magic { hint, .. }
            | DataError::Array { hint, .. }
            | DataError::Cell { hint, .. }
            | DataError::Column { hint, .. } => Some(*hint),
            DataError::PopulationColumn { .. } => Some(Remedy::LeaveOutColumns),
            _ => None,
        }
    }
}

/// The first of many names.
fn first_names(names: &[String]) -> String {
    let (first, more) = names.split_at(names.len().min(20));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let short = |name: &String| name.chars().take(60).collect::<String>();
    format!("{}{more}", first.iter().map(short).collect::<Vec<_>>().join(", "))
}
