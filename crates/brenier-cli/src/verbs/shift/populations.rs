//! The two populations as they are typed: two files or folders, or two classes of one labelled file.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brenier::attribute::Subgroups;
use brenier::data::{Dataset, OpenOptions, Population};
use clap::Args;

/// What is compared
#[derive(Debug, Clone, Args)]
pub(crate) struct PopulationArgs {
    /// Two files or folders of rows, the first as it was and the second as it is; or one, with --from-class and
    /// --to-class
    #[arg(required = true, num_args = 1..=2, value_name = "DATA")]
    populations: Vec<PathBuf>,
    /// The class of the first population, by name or number, where one labelled file is given
    #[arg(long, value_name = "CLASS", requires = "to_class")]
    from_class: Option<String>,
    /// The class of the second population
    #[arg(long, value_name = "CLASS", requires = "from_class")]
    to_class: Option<String>,
}

/// Both populations, and their subgroups where they are asked for.
pub(super) struct Read {
    pub(super) from: Population,
    pub(super) to: Population,
    pub(super) groups: Option<Subgroups>,
}

impl PopulationArgs {
    /// Refuses what does not go together, before anything is read.
    pub(super) fn check(&self) -> Result<()> {
        match (self.populations.as_slice(), &self.from_class) {
            ([_, _], None) | ([_], Some(_)) => {}
            ([_], None) => bail!(
                "one population is given, and two are compared\nhint: give a second file or folder, or two classes of \
                 this one with --from-class and --to-class"
            ),
            _ => bail!(
                "--from-class and --to-class divide one file, and {} are given\nhint: give one file, or leave the \
                 classes out",
                self.populations.len()
            ),
        }
        for file in &self.populations {
            if !file.exists() {
                bail!(
                    "there is no {}\nhint: give a folder of images, or an npy, npz, csv or parquet file",
                    file.display()
                );
            }
        }
        Ok(())
    }

    /// The files, as they were typed.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.populations
    }

    /// Reads both, with subgroups by a column.
    pub(super) fn read(&self, options: &OpenOptions, by: Option<&str>) -> Result<Read> {
        match (&self.from_class, &self.to_class, self.populations.as_slice()) {
            (Some(first), Some(second), [file]) => classes(file, (first, second), options, by),
            (_, _, [first, second]) => files(first, second, options, by),
            _ => bail!(
                "two populations are compared\nhint: give two files, or one with --from-class and --to-class"
            ),
        }
    }
}

fn files(first: &Path, second: &Path, options: &OpenOptions, by: Option<&str>) -> Result<Read> {
    let (a, b) = (first.display().to_string(), second.display().to_string());
    let (from, to) = Population::open_pair(&a, &b, options)?;
    let groups = match by {
        None => None,
        Some(by) if has_column(&from, by) => Some(Subgroups::by_column(by, &from, &to)?),
        Some(by) => {
            let of_a = labelled_by(first, by, options, from.rows().len())?;
            let of_b = labelled_by(second, by, options, to.rows().len())?;
            Some(Subgroups::by_labels(by, &of_a, &of_b)?)
        }
    };
    Ok(Read { from, to, groups })
}

fn classes(
    file: &Path,
    (first, second): (&str, &str),
    options: &OpenOptions,
    by: Option<&str>,
) -> Result<Read> {
    // A limit counts the rows of each class, not those of the file.
    let whole = OpenOptions { limit: None, ..options.clone() };
    let data = Dataset::open(file, &whole)?;
    let labels = data.require_labels()?;
    let first_rows = |class: &str| -> Result<(Population, Vec<usize>)> {
        let population = Population::of_class(&data, class)?;
        let is_it = |row: &usize| data.classes()[labels[*row]] == population.name();
        let most = options.limit.unwrap_or(usize::MAX);
        let rows: Vec<usize> = (0..data.len()).filter(is_it).take(most).collect();
        Ok((Population::new(population.name(), data.select(&rows)?)?, rows))
    };
    let ((from, of_a), (to, of_b)) = (first_rows(first)?, first_rows(second)?);
    let groups = match by {
        None => None,
        Some(by) if has_column(&from, by) => Some(Subgroups::by_column(by, &from, &to)?),
        Some(by) => {
            let all = labelled_by(file, by, &whole, data.len())?;
            Some(Subgroups::by_labels(by, &all.select(&of_a)?, &all.select(&of_b)?)?)
        }
    };
    Ok(Read { from, to, groups })
}

fn has_column(population: &Population, name: &str) -> bool {
    population.rows().columns().iter().any(|column| column.name == name)
}

/// The same rows, labelled by a column that the model does not see.
fn labelled_by(file: &Path, by: &str, options: &OpenOptions, rows: usize) -> Result<Dataset> {
    let mut options = options.clone();
    options.drop.extend(options.label.take().filter(|label| label != by));
    options.label = Some(by.to_string());
    options.classes = Vec::new();
    let data = Dataset::open(file, &options)?;
    if data.len() != rows {
        bail!(
            "column '{by}' of {} is empty in {} of {rows} rows\nhint: fill it in, or leave these rows out",
            file.display(),
            rows - data.len().min(rows)
        );
    }
    Ok(data)
}
