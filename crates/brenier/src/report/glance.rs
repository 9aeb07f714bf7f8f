//! A whole table at a glance: which columns weigh how much over many rows.
//!
//! ```text
//! weight of a column   mean over rows of |credit| +- t standard errors
//! lean of a column     mean over rows of credit, the same way; in cohorts for each level of one column
//! ```
//!
//! Explanations pass by once. Means are over all rows; the points that are drawn are at most [`SHOWN_ROWS`] rows, evenly spread over the
//! run, so a page stays small however long the table is. Intervals take rows as independent draws: they say how far the mean of another
//! sample of rows could lie off, not how far the credit of a row is right.

mod page;
mod spread;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::spread::Moments;
use super::ExplanationReader;
use super::by_column::ByColumn;
use crate::attribute::Explanation;
use crate::data::{Column, ColumnKind};
use crate::error::{Error, Result};
use crate::whole_file::write_whole;

/// Rows that are drawn as points.
pub const SHOWN_ROWS: usize = 600;
/// Columns that are drawn: those that weigh most.
const SHOWN_COLUMNS: usize = 20;
/// Levels that a column may have to make cohorts.
const COHORTS: usize = 12;

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Where the interval begins; absent for one row.
    pub low: Option<f64>,
    /// Where it ends.
    pub high: Option<f64>,
}

/// One column over all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlanceColumn {
    /// Its name.
    pub name: String,
    /// Its levels; empty for numbers.
    pub levels: Vec<String>,
    /// The mean of the sizes of its credit.
    pub weight: Mean,
    /// The mean of its credit.
    pub lean: Mean,
}

/// The rows that have one level of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cohort {
    /// The level.
    pub level: String,
    /// How many rows.
    pub rows: usize,
    /// The mean score.
    pub score: Mean,
    /// The mean credit of each column, in the order of the columns.
    pub lean: Vec<Mean>,
}

/// A table at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Glance {
    /// The method.
    pub method: String,
    /// How many explanations.
    pub rows: usize,
    /// The outputs that are explained: more than one where each row has its own.
    pub targets: Vec<usize>,
    /// The columns, heaviest first.
    pub columns: Vec<GlanceColumn>,
    /// The column that makes the cohorts.
    pub by: Option<String>,
    /// The cohorts, in the order of their levels.
    pub cohorts: Vec<Cohort>,
}

/// A row that is drawn.
#[derive(Debug, Clone)]
struct Point {
    score: f64,
    credit: Vec<f64>,
    /// Numbers, and places of levels.
    values: Vec<f64>,
}

/// Gathers explanations one at a time.
#[derive(Debug)]
pub struct Gathering<'a> {
    columns: &'a [Column],
    by: Option<(usize, String)>,
    method: String,
    rows: usize,
    targets: Vec<usize>,
    sizes: Vec<Moments>,
    means: Vec<Moments>,
    cohorts: BTreeMap<String, (Moments, Vec<Moments>)>,
    points: Vec<Point>,
    /// Every how many rows one is kept.
    stride: usize,
}

impl<'a> Gathering<'a> {
    /// Of rows with these columns, with cohorts by one of them.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn new(columns: &'a [Column], by: Option<&str>) -> Result<Gathering<'a>> {
        let by = by.map(|name| {
            let place = columns.iter().position(|column| column.name == name);
            place
                .map(|place| (place, name.to_string()))
                .ok_or_else(|| no_cohorts(name, "cohorts need a column of the table"))
        });
        Ok(Gathering {
            columns,
            by: by.transpose()?,
            method: String::new(),
            rows: 0,
            targets: Vec::new(),
            sizes: vec![Moments::default(); columns.len()],
            means: vec![Moments::default(); columns.len()],
            cohorts: BTreeMap::new(),
            points: Vec::new(),
            stride: 1,
        })
    }

    /// Takes one more; rows of another table are passed over.
    ///
    /// # Errors
    /// If the column of the cohorts has too many values.
    pub fn add(&mut self, explanation: &Explanation) -> Result<()> {
        let by = ByColumn::new(self.columns);
        if by.features() != explanation.values.len() {
            return Ok(());
        }
        let certificate = &explanation.certificate;
        self.method.clone_from(&certificate.method);
        if let Err(place) = self.targets.binary_search(&certificate.target) {
            self.targets.insert(place, certificate.target);
        }
        let credit = by.explanation(explanation).values.to_vec();
        for ((size, mean), &credit) in self.sizes.iter_mut().zip(&mut self.means).zip(&credit) {
            size.add(credit.abs());
            mean.add(credit);
        }
        let values = by.places(explanation.input.view());
        if let Some((place, name)) = &self.by {
            let key = self.columns[*place].level_of(values[*place]);
            let many = self.cohorts.len() == COHORTS && !self.cohorts.contains_key(&key);
            if many {
                return Err(no_cohorts(name, "cohorts need one of at most 12 values"));
            }
            let fresh = || (Moments::default(), vec![Moments::default(); credit.len()]);
            let (score, lean) = self.cohorts.entry(key).or_insert_with(fresh);
            score.add(certificate.score);
            lean.iter_mut().zip(&credit).for_each(|(lean, &credit)| lean.add(credit));
        }
        if self.rows.is_multiple_of(self.stride) {
            self.points.push(Point { score: certificate.score, credit, values });
            if self.points.len() > SHOWN_ROWS {
                let mut place = 0;
                self.points.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The columns, heaviest first.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        order.sort_by(|&i, &j| self.sizes[j].mean().total_cmp(&self.sizes[i].mean()).then(i.cmp(&j)));
        order
    }

    /// What was gathered.
    pub fn glance(&self) -> Glance {
        let order = self.order();
        let column = |&j: &usize| GlanceColumn {
            name: self.columns[j].name.clone(),
            levels: self.columns[j].levels(),
            weight: self.sizes[j].interval(),
            lean: self.means[j].interval(),
        };
        let cohort = |(level, (score, lean)): (&String, &(Moments, Vec<Moments>))| Cohort {
            level: level.clone(),
            rows: score.count(),
            score: score.interval(),
            lean: order.iter().map(|&j| lean[j].interval()).collect(),
        };
        Glance {
            method: self.method.clone(),
            rows: self.rows,
            targets: self.targets.clone(),
            columns: order.iter().map(column).collect(),
            by: self.by.as_ref().map(|(_, name)| name.clone()),
            cohorts: self.cohorts.iter().map(cohort).collect(),
        }
    }
}

/// Writes `glance.json` and `glance.html` beside the explanations of a folder; none where they are of no table with these columns.
///
/// # Errors
/// If there are no explanations, a file cannot be written, or there are no cohorts by that column.
pub fn save_glance(folder: &Path, title: &str, columns: &[Column], by: Option<&str>) -> Result<Vec<PathBuf>> {
    let mut gathering = Gathering::new(columns, by)?;
    for explanation in ExplanationReader::open(folder)? {
        gathering.add(&explanation?)?;
    }
    if gathering.rows == 0 {
        return Ok(Vec::new());
    }
    let (json, html) = (folder.join("glance.json"), folder.join("glance.html"));
    let glance = gathering.glance();
    let text = serde_json::to_string_pretty(&glance);
    let text = text.map_err(|e| Error::Write { path: json.clone(), source: e.into() })?;
    write_whole(&json, (text + "\n").as_bytes())?;
    write_whole(&html, gathering.html(&glance, title)?.as_bytes())?;
    Ok(vec![json, html])
}

fn no_cohorts(name: &str, needs: &'static str) -> Error {
    Error::Setting {
        name: "the column of the cohorts",
        value: name.to_string(),
        needs,
        hint: "name a column of categories, or of a few numbers".into(),
    }
}

impl Column {
    fn levels(&self) -> Vec<String> {
        match &self.kind {
            ColumnKind::Numeric => Vec::new(),
            ColumnKind::Categorical { values } => values.clone(),
        }
    }

    /// A value as [`ByColumn::places`] gives it, in words.
    fn level_of(&self, value: f64) -> String {
        match &self.kind {
            ColumnKind::Numeric => super::by_column::short(value),
            ColumnKind::Categorical { values } => match value >= 0.0 {
                true => values.get(value as usize).cloned().unwrap_or_default(),
                false => "none".to_string(),
            },
        }
    }
}

impl ByColumn<'_> {
    /// The number of each column; of a category the place of its level, and -1 where it has none.
    fn places(&self, row: ndarray::ArrayView1<f64>) -> Vec<f64> {
        let of = |(column, range): &(&Column, std::ops::Range<usize>)| match &column.kind {
            ColumnKind::Numeric => row[range.start],
            ColumnKind::Categorical { .. } => {
                range.clone().find(|&i| row[i] > 0.5).map_or(-1.0, |i| (i - range.start) as f64)
            }
        };
        self.entries().iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Certificate;
    use crate::data::columns_of_features;
    use ndarray::array;

    fn gathered(columns: &[Column], rows: usize) -> Gathering<'_> {
        let mut gathering = Gathering::new(columns, Some("city")).unwrap();
        for i in 0..rows {
            // Credit of age is 1 and -1 in turn; of the city 2 in Oslo, else 0.
            let (sign, oslo) = (1.0 - 2.0 * (i % 2) as f64, f64::from(u8::from(i % 4 == 0)));
            gathering
                .add(&Explanation {
                    values: array![sign, 0.0, 2.0 * oslo],
                    shape: vec![3],
                    reference: None,
                    input: array![i as f64, 1.0 - oslo, oslo],
                    standard_errors: None,
                    certificate: Certificate::new("ig", i, 1, i as f64),
                })
                .unwrap();
        }
        gathering
    }

    #[test]
    fn weights_leans_and_cohorts_are_means_with_intervals() {
        let columns = columns_of_features(&["age", "city=Lyon", "city=Oslo"]);
        let glance = gathered(&columns, 400).glance();
        assert_eq!((glance.rows, glance.targets.as_slice()), (400, &[1][..]));
        let [age, city] = glance.columns.as_slice() else { panic!("{glance:?}") };
        let near =
            |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-14, "{found} is not {wanted}");
        assert_eq!((age.name.as_str(), city.name.as_str()), ("age", "city"));
        near(age.weight.mean, 1.0);
        near(age.lean.mean, 0.0);
        near(city.weight.mean, 0.5);
        assert_eq!(age.weight.low, Some(1.0), "all sizes are equal");
        // sd of 0 and 2 with a quarter of 2s: sqrt(3/4), over sqrt(400); t near 1.966.
        let reach = city.lean.high.unwrap() - city.lean.mean;
        assert!((reach - 1.966 * (0.75f64 * 400.0 / 399.0).sqrt() / 20.0).abs() < 1e-4, "{reach}");
        let levels: Vec<(&str, usize, f64)> =
            glance.cohorts.iter().map(|c| (c.level.as_str(), c.rows, c.lean[1].mean)).collect();
        assert_eq!(levels, [("Lyon", 300, 0.0), ("Oslo", 100, 2.0)]);
    }

    #[test]
    fn a_long_table_has_no_more_points_than_a_page_takes() {
        let columns = columns_of_features(&["age", "city=Lyon", "city=Oslo"]);
        let gathering = gathered(&columns, 10_000);
        assert!(
            (SHOWN_ROWS / 2..=SHOWN_ROWS).contains(&gathering.points.len()),
            "{}",
            gathering.points.len()
        );
        // Evenly: the last is near the end.
        assert!(gathering.points.last().unwrap().score > 9_900.0);
        assert_eq!(gathering.glance().rows, 10_000);
        let page = gathering.html(&gathering.glance(), "</script><img src=x>").unwrap();
        assert!(page.len() < 300_000 && !page.contains("<img"), "{} bytes", page.len());
    }

    #[test]
    fn cohorts_need_a_column_with_few_values() {
        let columns = columns_of_features(&["age"]);
        assert!(
            Gathering::new(&columns, Some("town"))
                .unwrap_err()
                .to_string()
                .contains("is town, but cohorts need a column of the table")
        );
        let mut gathering = Gathering::new(&columns, Some("age")).unwrap();
        let row = |i: usize| Explanation {
            values: array![1.0],
            shape: vec![1],
            reference: None,
            input: array![i as f64],
            standard_errors: None,
            certificate: Certificate::new("ig", i, 0, 0.0),
        };
        let told = (0..20).find_map(|i| gathering.add(&row(i)).err()).unwrap().to_string();
        assert!(told.contains("is age, but cohorts need one of at most 12 values"), "{told}");
    }
}
