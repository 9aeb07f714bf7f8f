//! The unit in which each feature is measured when rows are matched.
//!
//! ```text
//! a number            its standard deviation in both populations together
//! a category          sqrt(1 - sum_v p_v^2) for all features of the column, p_v the share of value v
//! pixels              1: they have one unit already
//! ```
//!
//! Both populations count the same, whatever their sizes. A column that never varies has unit 0 and weighs nothing. Units
//! do not whiten: directions in which columns vary together keep their weight, which is what makes the matching of a
//! shift in one column leave the others alone.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::data::{ColumnKind, Dataset, columns_with_features};
use crate::error::{Result, expect_shape};

/// The unit of each feature for two populations.
///
/// # Errors
/// If their rows have different shapes, or one has no rows.
pub fn units(a: &Dataset, b: &Dataset) -> Result<Array1<f64>> {
    expect_shape("a row of the second population", a.shape(), b.shape())?;
    a.require_rows(1, "a unit for each feature")?;
    b.require_rows(1, "a unit for each feature")?;
    if a.is_images() {
        return Ok(Array1::ones(a.features()));
    }
    let (of_a, of_b) = (moments(a), moments(b));
    let mean = (&of_a.0 + &of_b.0) / 2.0;
    let square = (of_a.1 + of_b.1) / 2.0;
    // Numbers that are all the same leave rounding errors; they are told by their extremes.
    let varies = Array1::from_shape_fn(mean.len(), |i| of_a.2[i].min(of_b.2[i]) < of_a.3[i].max(of_b.3[i]));
    let mut units = Array1::from_shape_fn(mean.len(), |i| {
        if varies[i] { (square[i] - mean[i] * mean[i]).max(0.0).sqrt() } else { 0.0 }
    });
    for (column, range) in columns_with_features(a.columns()) {
        if matches!(column.kind, ColumnKind::Categorical { .. }) {
            let spread = 1.0 - range.clone().map(|i| mean[i] * mean[i]).sum::<f64>();
            range.for_each(|i| units[i] = if spread > 1e-12 { spread.sqrt() } else { 0.0 });
        }
    }
    Ok(units)
}

/// Rows divided by their units; features of unit 0 become 0.
pub fn in_units(rows: ArrayView2<f64>, units: &Array1<f64>) -> Array2<f64> {
    let per_unit = units.mapv(|u| if u > 0.0 { 1.0 / u } else { 0.0 });
    &rows * &per_unit.insert_axis(Axis(0))
}

type PerFeature = Array1<f64>;

/// Mean, mean square, least and greatest of each feature.
fn moments(data: &Dataset) -> (PerFeature, PerFeature, PerFeature, PerFeature) {
    let d = data.features();
    let (mut mean, mut square) = (Array1::zeros(d), Array1::zeros(d));
    let (mut least, mut most) =
        (Array1::from_elem(d, f64::INFINITY), Array1::from_elem(d, f64::NEG_INFINITY));
    let share = 1.0 / data.len() as f64;
    for row in 0..data.len() {
        data.for_each_value(row, |i, value| {
            let value = f64::from(value);
            mean[i] += share * value;
            square[i] += share * value * value;
            least[i] = f64::min(least[i], value);
            most[i] = f64::max(most[i], value);
        });
    }
    (mean, square, least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Column;
    use ndarray::array;

    #[test]
    fn numbers_have_their_deviation_categories_theirs_and_constants_none() {
        let numeric = |name: &str| Column { name: name.into(), kind: ColumnKind::Numeric };
        let values = vec!["x".to_string(), "y".into()];
        let columns = vec![
            numeric("a"),
            numeric("b"),
            Column { name: "c".into(), kind: ColumnKind::Categorical { values } },
        ];
        let data = |rows: ArrayView2<f32>| {
            Dataset::from_rows("d", &[4], rows).unwrap().with_columns(columns.clone())
        };
        // Two populations of different sizes, which count the same.
        let a = data(array![[1.0, 0.1, 1.0, 0.0], [1.0, 0.1, 1.0, 0.0]].view());
        let b = data(array![[3.0, 0.1, 0.0, 1.0]].view());
        let found = units(&a, &b).unwrap();
        assert!((found[0] - 1.0).abs() < 1e-12 && found[1] == 0.0, "{found}");
        assert!((found[2] - 0.5_f64.sqrt()).abs() < 1e-12 && found[2] == found[3]);
        let scaled = in_units(array![[2.0, 7.0, 0.0, 1.0]].view(), &found);
        assert_eq!(scaled.row(0).to_vec()[..2], [2.0, 0.0]);
        let images = Dataset::from_rows("i", &[1, 2, 2], array![[0.0, 1.0, 0.5, 0.5]].view()).unwrap();
        assert_eq!(units(&images, &images).unwrap(), array![1.0, 1.0, 1.0, 1.0]);
        assert!(units(&a, &images).is_err());
    }
}
