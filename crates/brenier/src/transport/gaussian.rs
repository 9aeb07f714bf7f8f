//! A Gaussian fitted to the rows of a population.
//!
//! ```text
//! N(m, S),    S = (1 - r) C + r mu I        (see `Shrinkage`)
//! ```
//!
//! **Up to a thousand features** `S` is kept whole. **Beyond**, it is kept as its leading eigenvectors and one variance
//! for all other directions (probabilistic PCA; Tipping and Bishop, 1999),
//!
//! ```text
//! S = U diag(l) U^T + s (I - U U^T),    s = what is left of the trace, shared equally
//! ```
//!
//! which two populations share in form, so that the map between them is closed in the span of both bases
//! ([`GaussianMap`](super::GaussianMap)). If there are fewer rows than leading directions this form is exact:
//! what shrinkage adds to the directions that no row has is the same everywhere. Otherwise the leading
//! eigenvectors come from subspace iteration on `C` (Halko, Martinsson and Tropp, 2011). `C` is summed
//! over parts of the rows, so memory does not grow with their number.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::held_out;
use super::matrix::{add_square, eigen, mirror, orthonormal, product, scale_columns};
use super::shrinkage::{Moments, Shrinkage};
use crate::error::{Error, Result, expect_finite, expect_shape};

/// How a Gaussian is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GaussianConfig {
    /// How far the covariance is drawn toward a multiple of the identity.
    pub shrinkage: Shrinkage,
    /// How many directions have a variance of their own.
    pub rank: Rank,
}

/// How many directions of a covariance have a variance of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Rank {
    /// All of them up to 1,024 features, at most 256 beyond.
    #[default]
    Auto,
    /// All of them.
    Full,
    /// At most so many.
    AtMost {
        /// Leading directions.
        directions: usize,
    },
}

/// Features up to which a covariance is kept whole by [`Rank::Auto`].
const WHOLE: usize = 1024;
/// Directions beyond that.
const DIRECTIONS: usize = 256;
/// Directions that are iterated beside those that are kept: the last of them converge slowly.
const SPARE: usize = 24;
/// Rounds of subspace iteration.
const ROUNDS: usize = 6;
/// Rows that are in memory at a time.
const PART: usize = 512;

/// A normal distribution with a positive definite covariance.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    pub(super) mean: Array1<f64>,
    pub(super) covariance: Covariance,
    shrinkage: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Covariance {
    Whole(Array2<f64>),
    LowRank {
        /// `[features, directions]`, orthonormal columns.
        basis: Array2<f64>,
        variances: Array1<f64>,
        /// The variance of every other direction.
        rest: f64,
    },
}

impl Gaussian {
    /// From a mean and a symmetric positive definite covariance.
    ///
    /// # Errors
    /// If the shapes do not fit. A covariance that is not positive definite is refused where a map is made of it.
    pub fn new(mean: ArrayView1<f64>, covariance: ArrayView2<f64>) -> Result<Self> {
        expect_shape("the covariance", &[mean.len(), mean.len()], covariance.shape())?;
        let covariance = 0.5 * (&covariance + &covariance.t());
        Ok(Self { mean: mean.to_owned(), covariance: Covariance::Whole(covariance), shrinkage: 0.0 })
    }

    /// Fits a Gaussian to rows `[rows, features]`.
    ///
    /// ```
    /// use brenier::transport::{Gaussian, GaussianConfig};
    /// use ndarray::array;
    ///
    /// let rows = array![[0.0, 1.0], [2.0, 1.0], [1.0, 0.0], [1.0, 2.0]];
    /// let fitted = Gaussian::fit(rows.view(), &GaussianConfig::default())?;
    /// assert_eq!(fitted.mean(), array![1.0, 1.0]);
    /// assert_eq!(fitted.variances(), array![0.5, 0.5]);
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fewer than two rows, rows that are all the same, a number that is not finite, and no shrinkage where the rows
    /// are too few for a covariance of full rank.
    pub fn fit(rows: ArrayView2<f64>, config: &GaussianConfig) -> Result<Self> {
        Self::fit_parts(rows.nrows(), rows.ncols(), config, |part| Ok(rows.slice(s![part, ..]).to_owned()))
    }

    /// As [`Gaussian::fit`], with rows that are asked for in parts, twice each; three times and all at once to hold some
    /// out.
    ///
    /// # Errors
    /// As [`Gaussian::fit`], and whatever asking for rows returns.
    pub fn fit_parts(
        rows: usize,
        features: usize,
        config: &GaussianConfig,
        mut part: impl FnMut(Range<usize>) -> Result<Array2<f64>>,
    ) -> Result<Self> {
        if rows < 2 {
            return Err(Error::Setting {
                name: "the number of rows of a population",
                value: rows.to_string(),
                needs: "a distribution can be fitted to two rows at the least",
                hint: "give more rows: some hundreds are a good beginning".into(),
            });
        }
        let parts: Vec<Range<usize>> =
            (0..rows).step_by(PART).map(|first| first..(first + PART).min(rows)).collect();
        let mut mean = Array1::zeros(features);
        for range in &parts {
            let x = part(range.clone())?;
            expect_shape("a part of the rows", &[range.len(), features], x.shape())?;
            for (i, row) in x.rows().into_iter().enumerate() {
                expect_finite("a row of the population", range.start + i, 0.0, row)?;
            }
            mean += &x.sum_axis(Axis(0));
        }
        mean /= rows as f64;
        let mut sample = Sample::new(rows, features, config.rank);
        for range in &parts {
            sample.add(range.start, part(range.clone())? - &mean);
        }
        let (covariance, moments) = sample.finish();
        let held_out = match config.shrinkage {
            Shrinkage::HeldOut if features <= WHOLE => {
                let mut all = Array2::zeros((rows, features));
                for range in parts {
                    all.slice_mut(s![range.clone(), ..]).assign(&part(range)?);
                }
                held_out::amount(all.view())
            }
            _ => None,
        };
        let amount = held_out.map_or_else(|| config.shrinkage.amount(&moments), Ok)?;
        let gaussian = Self { mean, covariance, shrinkage: amount };
        gaussian.shrunk(&moments, amount)
    }

    fn shrunk(mut self, moments: &Moments, amount: f64) -> Result<Self> {
        let mu = moments.trace / moments.features as f64;
        if mu <= 0.0 {
            return Err(Error::NotPositiveDefinite {
                what: "the covariance of rows that are all the same",
                eigenvalue: mu,
            });
        }
        let shrink = |v: f64| (1.0 - amount) * v + amount * mu;
        match &mut self.covariance {
            Covariance::Whole(matrix) => {
                *matrix *= 1.0 - amount;
                matrix.diag_mut().iter_mut().for_each(|v| *v += amount * mu);
            }
            Covariance::LowRank { variances, rest, .. } => {
                variances.mapv_inplace(shrink);
                *rest = shrink(*rest);
                let least = variances.iter().copied().fold(*rest, f64::min);
                if least <= 1e-12 * mu {
                    return Err(Error::NotPositiveDefinite { what: "the covariance", eigenvalue: least });
                }
            }
        }
        Ok(self)
    }

    /// The mean of each feature.
    pub fn mean(&self) -> ArrayView1<'_, f64> {
        self.mean.view()
    }

    /// The variance of each feature.
    pub fn variances(&self) -> Array1<f64> {
        match &self.covariance {
            Covariance::Whole(matrix) => matrix.diag().to_owned(),
            Covariance::LowRank { basis, variances, rest } => {
                let excess = variances.mapv(|v| v - rest);
                basis.rows().into_iter().map(|row| rest + (&row * &row).dot(&excess)).collect()
            }
        }
    }

    /// The covariance as a matrix, `[features, features]`.
    pub fn covariance(&self) -> Array2<f64> {
        match &self.covariance {
            Covariance::Whole(matrix) => matrix.clone(),
            Covariance::LowRank { basis, variances, rest } => {
                let weighted = scale_columns(basis.clone(), &variances.mapv(|v| v - rest));
                let mut matrix = product(weighted.view(), basis.t());
                matrix.diag_mut().iter_mut().for_each(|v| *v += rest);
                matrix
            }
        }
    }

    /// The amount of shrinkage that was applied, from 0 to 1.
    pub fn shrinkage(&self) -> f64 {
        self.shrinkage
    }

    /// The number of directions with a variance of their own.
    pub fn directions(&self) -> usize {
        match &self.covariance {
            Covariance::Whole(matrix) => matrix.nrows(),
            Covariance::LowRank { variances, .. } => variances.len(),
        }
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.mean.len()
    }
}

/// The second moments of rows as they come in, minus their mean.
struct Sample {
    moments: Moments,
    directions: Option<usize>,
    kept: Kept,
}

enum Kept {
    /// `sum x x^T`, upper triangle.
    Square(Array2<f64>),
    /// The rows themselves, where they are few.
    Rows(Array2<f64>),
}

impl Sample {
    fn new(rows: usize, features: usize, rank: Rank) -> Self {
        let directions = match rank {
            Rank::Full => None,
            // With few rows, what they span and one variance for the rest is all there is, and quicker.
            Rank::Auto if features <= WHOLE && 2 * rows <= features => Some(rows - 1),
            Rank::Auto if features <= WHOLE => None,
            Rank::Auto => Some(DIRECTIONS),
            Rank::AtMost { directions } if directions >= features => None,
            Rank::AtMost { directions } => Some(directions.max(1)),
        };
        let few = directions.is_some_and(|most| rows - 1 <= most);
        let kept = if few {
            Kept::Rows(Array2::zeros((rows, features)))
        } else {
            Kept::Square(Array2::zeros((features, features)))
        };
        let moments = Moments { rows, features, trace: 0.0, squared_norm: 0.0, fourth: 0.0 };
        Self { moments, directions, kept }
    }

    fn add(&mut self, first: usize, x: Array2<f64>) {
        for row in x.rows() {
            let square = row.dot(&row);
            self.moments.trace += square / self.moments.rows as f64;
            self.moments.fourth += square * square;
        }
        match &mut self.kept {
            Kept::Square(sum) => add_square(sum, x.view()),
            Kept::Rows(rows) => rows.slice_mut(s![first..first + x.nrows(), ..]).assign(&x),
        }
    }

    /// The sample covariance, not yet shrunk.
    fn finish(self) -> (Covariance, Moments) {
        let Self { mut moments, directions, kept } = self;
        let count = moments.rows as f64;
        let (basis, variances) = match (kept, directions) {
            (Kept::Square(mut sum), None) => {
                mirror(&mut sum);
                sum /= count;
                moments.squared_norm = sum.iter().map(|v| v * v).sum();
                return (Covariance::Whole(sum), moments);
            }
            (Kept::Square(mut sum), Some(most)) => {
                mirror(&mut sum);
                sum /= count;
                moments.squared_norm = sum.iter().map(|v| v * v).sum();
                leading(&sum, most)
            }
            (Kept::Rows(rows), _) => {
                // The eigenvectors of X X^T / n, carried over by X^T, are those of X^T X / n.
                let gram = product(rows.view(), rows.t()) / count;
                moments.squared_norm = gram.iter().map(|v| v * v).sum();
                let (values, vectors) = eigen(&gram);
                let floor = 1e-12 * values.first().copied().unwrap_or(0.0);
                let rank = values.iter().take(moments.rows - 1).take_while(|&&v| v > floor).count();
                let basis = product(rows.t(), vectors.slice(s![.., ..rank]));
                let lengths = values.slice(s![..rank]).mapv(|v| 1.0 / (v * count).sqrt());
                (scale_columns(basis, &lengths), values.slice(s![..rank]).to_owned())
            }
        };
        let others = moments.features - variances.len();
        let rest = ((moments.trace - variances.sum()) / others as f64).max(0.0);
        (Covariance::LowRank { basis, variances, rest }, moments)
    }
}

/// The leading eigenvectors of a covariance with their eigenvalues.
fn leading(matrix: &Array2<f64>, most: usize) -> (Array2<f64>, Array1<f64>) {
    let features = matrix.nrows();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut basis: Array2<f64> = Array2::zeros((features, (most + SPARE).min(features)));
    basis.mapv_inplace(|_| StandardNormal.sample(&mut rng));
    for _ in 0..ROUNDS {
        let image = product(matrix.view(), basis.view());
        // Columns of one length, so that those of small eigenvalues are not lost beside the others.
        let lengths = image.columns().into_iter().map(|c| c.dot(&c).sqrt().max(f64::MIN_POSITIVE).recip());
        let lengths = lengths.collect();
        basis = orthonormal(scale_columns(image, &lengths), 1e-7);
    }
    let (values, vectors) = eigen(&product(basis.t(), product(matrix.view(), basis.view()).view()));
    let kept = values.iter().take(most).take_while(|&&v| v > 0.0).count();
    (product(basis.view(), vectors.slice(s![.., ..kept])), values.slice(s![..kept]).to_owned())
}
