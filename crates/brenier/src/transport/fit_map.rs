//! The optimal map between Gaussians that are fitted to two data sets.

use std::ops::Range;

use super::gaussian::{Gaussian, GaussianConfig};
use super::gaussian_map::GaussianMap;
use super::units::{in_units, units};
use crate::data::Dataset;
use crate::error::Result;

impl GaussianMap {
    /// Fits a Gaussian to each of two data sets, in [`units`] of both, and gives the map from the first to the second, in
    /// the numbers of the rows. Rows are read in parts.
    ///
    /// ```
    /// use brenier::data::Dataset;
    /// use brenier::transport::{GaussianConfig, GaussianMap};
    /// use ndarray::array;
    ///
    /// let last = Dataset::from_rows("last", &[2], array![[0., 10.], [1., 30.], [2., 20.]].view())?;
    /// let this = Dataset::from_rows("this", &[2], array![[5., 10.], [6., 30.], [7., 20.]].view())?;
    /// let map = GaussianMap::fit(&last, &this, &GaussianConfig::default())?;
    /// // The second population is the first, moved by 5 in its first column.
    /// let counterpart = map.invert(array![[6.0, 25.0]].view())?;
    /// assert!((counterpart[[0, 0]] - 1.0).abs() < 1e-9 && (counterpart[[0, 1]] - 25.0).abs() < 1e-9);
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// Data of different shapes, fewer than two rows, or rows that are all the same.
    pub fn fit(from: &Dataset, to: &Dataset, config: &GaussianConfig) -> Result<Self> {
        let unit = units(from, to)?;
        let fit = |data: &Dataset| {
            Gaussian::fit_parts(data.len(), data.features(), config, |part: Range<usize>| {
                let rows = data.rows_f64(&part.collect::<Vec<_>>())?;
                Ok(in_units(rows.view(), &unit))
            })
        };
        Self::between(&fit(from)?, &fit(to)?)?.with_units(unit.view())?.with_shape(from.shape())
    }
}
