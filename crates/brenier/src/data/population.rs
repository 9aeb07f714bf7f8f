//! Populations: rows with a name, to be compared with each other.
//!
//! "Why this and not that" needs two of them: a class of labelled data, everything but a class, or a file. What can be
//! compared has the same shape, and tables the same columns; columns in another order are put into the same one.

use super::{Column, ColumnKind, DataError, Dataset, OpenOptions, coding};
use crate::error::Result;
use crate::nearest::nearest_name;

/// Rows with a name, two at the least.
#[derive(Debug, Clone)]
pub struct Population {
    name: String,
    rows: Dataset,
}

impl Population {
    /// These rows under this name.
    ///
    /// # Errors
    /// If there are fewer than two.
    pub fn new(name: &str, rows: Dataset) -> Result<Self> {
        if rows.len() < 2 {
            return Err(DataError::Population { name: name.to_owned(), rows: rows.len() }.into());
        }
        Ok(Self { name: name.to_owned(), rows })
    }

    /// The rows of a file or folder, coded as `like`, where given, is.
    ///
    /// # Errors
    /// As [`Dataset::open`], and if there are fewer than two rows.
    pub fn open(path: &str, options: &OpenOptions, like: Option<&Dataset>) -> Result<Self> {
        let options = match like {
            Some(data) => options.clone().like(data),
            None => options.clone(),
        };
        Self::new(path, Dataset::open(path, &options)?)
    }

    /// Two files or folders. Where nothing says how tables are coded, a category has the values of both.
    ///
    /// # Errors
    /// As [`Population::open`].
    pub fn open_pair(first: &str, second: &str, options: &OpenOptions) -> Result<(Self, Self)> {
        let (a, b) = (Self::open(first, options, None)?, Self::open(second, options, None)?);
        let (of_a, of_b) = (a.rows.columns(), b.rows.columns());
        let joint = coding::joint(of_a, of_b);
        let listed = |columns: &[Column]| {
            let mut columns = columns.to_vec();
            columns.sort_by(|x, y| x.name.cmp(&y.name));
            columns
        };
        let names = |columns: &[Column]| listed(columns).into_iter().map(|c| c.name).collect::<Vec<_>>();
        // Other columns are told of where the two are compared.
        if !options.columns.is_empty() || listed(of_a) == listed(of_b) || names(of_a) != names(of_b) {
            return Ok((a, b));
        }
        let options = OpenOptions { columns: joint, ..options.clone() };
        let open = |path: &str| Self::open(path, &options, None);
        Ok((open(first)?, open(second)?))
    }

    /// The rows of a class, by its name or its number.
    ///
    /// ```
    /// use brenier::data::{Dataset, Population};
    /// use ndarray::array;
    ///
    /// let data = Dataset::from_rows("points", &[1], array![[0.], [1.], [2.], [3.], [4.]].view())?
    ///     .with_labels(vec![0, 1, 0, 1, 1], vec!["even".into(), "odd".into()])?;
    /// assert_eq!(Population::of_class(&data, "odd")?.rows().len(), 3);
    /// assert_eq!(Population::others(&data, "odd")?.rows().len(), 2);
    /// let message = Population::of_class(&data, "add").unwrap_err().to_string();
    /// assert!(message.contains("did you mean 'odd'?"));
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// Data without labels, a class that there is not, and one with fewer than two rows.
    pub fn of_class(data: &Dataset, class: &str) -> Result<Self> {
        let (number, name) = find_class(data, class)?;
        Self::new(&name, with_label(data, |label| label == number)?)
    }

    /// The rows of all classes but one.
    ///
    /// # Errors
    /// As [`Population::of_class`].
    pub fn others(data: &Dataset, class: &str) -> Result<Self> {
        let (number, name) = find_class(data, class)?;
        Self::new(&format!("others than {name}"), with_label(data, |label| label != number)?)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its rows.
    pub fn rows(&self) -> &Dataset {
        &self.rows
    }

    /// The same rows with the columns of `other`, in the order that they have there.
    ///
    /// # Errors
    /// Rows of another shape, or tables with other columns.
    pub fn aligned_with(&self, other: &Population) -> Result<Self> {
        let (here, there) = (self.rows.columns(), other.rows.columns());
        if here == there && self.rows.shape() == other.rows.shape() {
            return Ok(self.clone());
        }
        if here.is_empty() || there.is_empty() {
            return Err(DataError::PopulationShape {
                first: other.name.clone(),
                first_shape: other.rows.shape().to_vec(),
                second: self.name.clone(),
                second_shape: self.rows.shape().to_vec(),
            }
            .into());
        }
        let mut features = Vec::with_capacity(other.rows.features());
        for column in there {
            let found = coding::with_features(here).find(|(known, _)| known.name == column.name);
            match found {
                Some((known, range)) if known.kind == column.kind => features.extend(range),
                Some((known, _)) => {
                    return Err(self.other_column(other, column.name.clone(), reason(&known.kind)));
                }
                None => return Err(self.other_column(other, column.name.clone(), "is not there")),
            }
        }
        if let Some(extra) = here.iter().find(|known| there.iter().all(|column| column.name != known.name)) {
            return Err(other.other_column(self, extra.name.clone(), "is not there"));
        }
        Ok(Self { name: self.name.clone(), rows: self.rows.with_features(&features, there.to_vec())? })
    }

    fn other_column(&self, other: &Population, column: String, reason: &'static str) -> crate::Error {
        let (first, second) = (other.name.clone(), self.name.clone());
        DataError::PopulationColumn { first, second, column, reason }.into()
    }

    /// Whether the two have the same values in the same order: comparing them says nothing.
    pub fn is_same_as(&self, other: &Population) -> bool {
        self.rows.values_fingerprint() == other.rows.values_fingerprint()
    }
}

fn reason(kind: &ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Numeric => "holds numbers",
        ColumnKind::Categorical { .. } => "holds other categories",
    }
}

/// The number and the name of a class.
fn find_class(data: &Dataset, class: &str) -> Result<(usize, String)> {
    data.require_labels()?;
    let classes = data.classes();
    let by_name = classes.iter().position(|name| name == class);
    let by_case = || classes.iter().position(|name| name.eq_ignore_ascii_case(class));
    let by_number = || class.parse::<usize>().ok().filter(|&number| number < classes.len());
    match by_name.or_else(by_case).or_else(by_number) {
        Some(number) => Ok((number, classes[number].clone())),
        None => {
            let known: Vec<&str> = classes.iter().map(String::as_str).collect();
            let nearest = nearest_name(class, &known).unwrap_or_default().to_owned();
            let data = data.origin().to_owned();
            Err(DataError::NoClass { data, class: class.to_owned(), nearest }.into())
        }
    }
}

fn with_label(data: &Dataset, wanted: impl Fn(usize) -> bool) -> Result<Dataset> {
    let labels = data.require_labels()?;
    let rows: Vec<usize> = (0..data.len()).filter(|&row| wanted(labels[row])).collect();
    data.select(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    fn table(name: &str, columns: &[&str], rows: Array2<f32>) -> Population {
        let columns =
            columns.iter().map(|c| Column { name: c.to_string(), kind: ColumnKind::Numeric }).collect();
        let data = Dataset::from_rows(name, &[rows.ncols()], rows.view()).unwrap().with_columns(columns);
        Population::new(name, data).unwrap()
    }

    #[test]
    fn columns_are_matched_by_name_and_others_refused() {
        let a = table("a", &["age", "income"], array![[1.0, 10.0], [2.0, 20.0]]);
        let b = table("b", &["income", "age"], array![[30.0, 3.0], [40.0, 4.0], [50.0, 5.0]]);
        let aligned = b.aligned_with(&a).unwrap();
        assert_eq!(aligned.rows().to_f32().unwrap(), array![[3.0, 30.0], [4.0, 40.0], [5.0, 50.0]]);
        assert_eq!(aligned.rows().feature_names(), ["age", "income"]);
        assert_eq!(aligned.rows().name(1), "b#1");
        let c = table("c", &["age", "city"], array![[1.0, 0.0], [2.0, 1.0]]);
        let message = c.aligned_with(&a).unwrap_err().to_string();
        assert!(message.starts_with("column 'income' of population 'a' is not there in 'c'"), "{message}");
        let d = table("d", &["age", "income", "city"], array![[1.0, 0.0, 1.0], [2.0, 1.0, 1.0]]);
        let message = d.aligned_with(&a).unwrap_err().to_string();
        assert!(message.starts_with("column 'city' of population 'd' is not there in 'a'"), "{message}");
        let coded = Column { name: "age".into(), kind: ColumnKind::Categorical { values: vec!["1".into()] } };
        let income = Column { name: "income".into(), kind: ColumnKind::Numeric };
        let e = Population::new("e", a.rows().clone().with_columns(vec![coded, income])).unwrap();
        assert!(e.aligned_with(&a).unwrap_err().to_string().contains("holds other categories in 'e'"));
        assert!(a.is_same_as(&e) && !a.is_same_as(&aligned));
    }

    #[test]
    fn shapes_that_differ_and_populations_of_one_row_are_refused() {
        let rows = |name, shape: &[usize], count| {
            let values = Array2::<f32>::zeros((count, shape.iter().product()));
            Population::new(name, Dataset::from_rows(name, shape, values.view())?)
        };
        let (a, b) = (rows("a", &[1, 2, 2], 3).unwrap(), rows("b", &[4], 3).unwrap());
        let message = b.aligned_with(&a).unwrap_err().to_string();
        assert!(message.contains("[1, 2, 2]") && message.contains("[4]"), "{message}");
        let message = rows("lonely", &[4], 1).unwrap_err().to_string();
        assert!(message.starts_with("population 'lonely' has 1 rows"), "{message}");
        assert!(rows("none", &[4], 0).is_err());
        let message = Population::of_class(a.rows(), "3").unwrap_err().to_string();
        assert!(message.contains("label"), "{message}");
    }

    #[test]
    fn a_class_goes_by_its_name_in_any_case_or_its_number() {
        let data = Dataset::from_rows("d", &[1], array![[0.], [1.], [2.], [3.]].view()).unwrap();
        let data = data.with_labels(vec![0, 1, 1, 0], vec!["Coat".into(), "Bag".into()]).unwrap();
        for name in ["bag", "Bag", "1"] {
            let found = Population::of_class(&data, name).unwrap();
            assert_eq!((found.name(), found.rows().to_f32().unwrap()), ("Bag", array![[1.], [2.]]));
        }
        let others = Population::others(&data, "bag").unwrap();
        assert_eq!((others.name(), others.rows().len()), ("others than Bag", 2));
    }
}
