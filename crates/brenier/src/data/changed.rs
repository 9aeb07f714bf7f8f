//! The same rows with other values: features of a table in another order, images of another size.

use super::dataset::Names;
use super::{Column, Dataset};
use crate::error::{Result, expect_shape};

impl Dataset {
    /// The same rows, labels and names with these features of a table in this order, which are these columns.
    pub(crate) fn with_features(&self, features: &[usize], columns: Vec<Column>) -> Result<Self> {
        let mut values = Vec::with_capacity(self.len() * features.len());
        let mut row_values = vec![0.0; self.features()];
        for row in 0..self.len() {
            self.for_each_value(row, |feature, value| row_values[feature] = value);
            values.extend(features.iter().map(|&feature| row_values[feature]));
        }
        let mut changed = Self::from_floats(self.origin(), &[features.len()], values)?;
        if let Some(labels) = self.labels() {
            changed = changed.with_labels(labels, self.classes().to_vec())?;
        }
        let names = (0..self.len()).map(|row| self.name(row)).collect();
        Ok(changed.with_columns(columns).with_names(Names::Each(names)))
    }

    /// The same labels, classes and names for other values of the same rows.
    pub(crate) fn with_pixels(&self, shape: &[usize], pixels: Vec<u8>) -> Result<Self> {
        let mut changed = Self::from_pixels(self.origin(), shape, pixels)?;
        expect_shape("the changed images", &[self.len()], &[changed.len()])?;
        if let Some(labels) = self.labels() {
            changed = changed.with_labels(labels, self.classes().to_vec())?;
        }
        let names = (0..self.len()).map(|row| self.name(row)).collect();
        Ok(changed.with_names(Names::Each(names)))
    }
}
