//! What stands in for features that are left out.
//!
//! ```text
//! f_S(x) = (1 / B) sum_b f(x on S, r_b elsewhere)          B rows r_b; B = 1 but for a background
//! ```
//!
//! A model takes no holes, so something must be put where a feature is absent, and the answer depends on what.
//! A background of rows gives the expectation over them, as the shap package does; one row gives a baseline.

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1, Axis};
use serde::{Deserialize, Serialize};

use crate::attribute::groups::image;
use crate::{Error, Result, error};

/// What stands in for absent features.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Absence {
    /// Zero.
    #[default]
    Zero,
    /// The mean of the image that is explained, channel by channel.
    Mean,
    /// The image that is explained, blurred by a Gaussian.
    Blur {
        /// Standard deviation in pixels.
        sigma: f64,
    },
    /// A given row.
    Baseline {
        /// One row of features for all inputs, or one for each.
        rows: Vec<Vec<f64>>,
    },
    /// The expectation over given rows, such as a sample of the training data.
    Background {
        /// Rows of features; the cost grows with their number.
        rows: Vec<Vec<f64>>,
    },
}

impl Absence {
    /// The name, as in configurations and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Absence::Zero => "zero",
            Absence::Mean => "mean",
            Absence::Blur { .. } => "blur",
            Absence::Baseline { .. } => "baseline",
            Absence::Background { .. } => "background",
        }
    }

    /// The rows that stand in for the absent features of one of several examples: `[B, features]`.
    pub(crate) fn rows(
        &self,
        shape: &[usize],
        input: ArrayView1<f64>,
        example: usize,
        examples: usize,
    ) -> Result<Array2<f64>> {
        let one = |row: Array1<f64>| row.insert_axis(Axis(0));
        match self {
            Absence::Zero => Ok(Array2::zeros((1, input.len()))),
            Absence::Mean => Ok(one(channel_means(shape, input)?)),
            Absence::Blur { sigma } => Ok(one(blur(shape, input, *sigma)?)),
            Absence::Baseline { rows } if rows.len() == 1 || rows.len() == examples => {
                let row = if rows.len() == 1 { 0 } else { example };
                matrix("the baseline", &rows[row..=row], input.len())
            }
            Absence::Baseline { rows } => Err(Error::Shape {
                what: "the list of baselines".to_string(),
                expected: vec![examples, input.len()],
                found: vec![rows.len(), rows.first().map_or(0, Vec::len)],
            }),
            Absence::Background { rows } if rows.is_empty() => {
                Err(Error::Zero { what: "the number of background rows" })
            }
            Absence::Background { rows } => matrix("the background", rows, input.len()),
        }
    }
}

fn matrix(what: &'static str, rows: &[Vec<f64>], features: usize) -> Result<Array2<f64>> {
    let mut matrix = Array2::zeros((rows.len(), features));
    for (mut to, from) in matrix.rows_mut().into_iter().zip(rows) {
        error::expect_shape(&format!("a row of {what}"), &[features], &[from.len()])?;
        if let Some((feature, value)) = from.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(Error::Setting {
                name: what,
                value: format!("{value} at feature {feature}"),
                needs: "what stands in for a feature is a finite number",
                hint: "fill missing values first",
            });
        }
        to.assign(&ArrayView1::from(from));
    }
    Ok(matrix)
}

fn channel_means(shape: &[usize], input: ArrayView1<f64>) -> Result<Array1<f64>> {
    let [_, rows, columns] = image("the mean of a channel", shape)?;
    let plane = rows * columns;
    let mut means = Array1::zeros(input.len());
    for (mut to, from) in means.exact_chunks_mut(plane).into_iter().zip(input.exact_chunks(plane)) {
        to.fill(from.mean().unwrap_or(0.0));
    }
    Ok(means)
}

/// A Gaussian over rows, then over columns, cut at four standard deviations; the image is mirrored at its edges.
fn blur(shape: &[usize], input: ArrayView1<f64>, sigma: f64) -> Result<Array1<f64>> {
    let [_, rows, columns] = image("blurring", shape)?;
    if !(sigma > 0.0 && sigma.is_finite()) {
        return Err(Error::Setting {
            name: "the blur",
            value: format!("{sigma} pixels"),
            needs: "its standard deviation is a positive number of pixels",
            hint: "a tenth of the image's width hides most of what is in it",
        });
    }
    let reach = (4.0 * sigma).round().max(1.0) as i64;
    let weights: Vec<f64> = (-reach..=reach).map(|k| (-0.5 * (k as f64 / sigma).powi(2)).exp()).collect();
    let mut image = input.to_owned();
    for mut plane in image.exact_chunks_mut(rows * columns) {
        for row in 0..rows {
            smooth(plane.slice_mut(ndarray::s![row * columns..(row + 1) * columns]), reach, &weights);
        }
        for column in 0..columns {
            smooth(plane.slice_mut(ndarray::s![column..;columns]), reach, &weights);
        }
    }
    Ok(image)
}

fn smooth(mut line: ArrayViewMut1<f64>, reach: i64, weights: &[f64]) {
    let total: f64 = weights.iter().sum();
    let (old, size) = (line.to_owned(), line.len() as i64);
    // .. 2 1 0 | 0 1 2 .. n-1 | n-1 n-2 ..
    let mirrored = |i: i64| {
        let i = i.rem_euclid(2 * size);
        (if i < size { i } else { 2 * size - 1 - i }) as usize
    };
    for (i, value) in line.iter_mut().enumerate() {
        let taps = (-reach..=reach).zip(weights);
        *value = taps.map(|(k, weight)| weight * old[mirrored(i as i64 + k)]).sum::<f64>() / total;
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_blur_keeps_the_mean_and_spreads_a_point_as_a_gaussian() {
        let mut point = Array1::zeros(2 * 21 * 21);
        point[21 * 21 + 10 * 21 + 10] = 1.0;
        let blurred = blur(&[2, 21, 21], point.view(), 2.0).unwrap();
        assert!((blurred.sum() - 1.0).abs() < 1e-12);
        assert_eq!(blurred.slice(ndarray::s![..441]).sum(), 0.0);
        let at = |row: usize, column: usize| blurred[441 + row * 21 + column];
        // exp(-d^2 / (2 sigma^2)) at a distance of 2 sideways, and of sqrt(8) across.
        assert!((at(10, 12) / at(10, 10) - (-0.5_f64).exp()).abs() < 1e-12);
        assert!((at(12, 12) / at(10, 10) - (-1.0_f64).exp()).abs() < 1e-12);
        // Mirrored edges: nothing is lost in a corner either.
        let mut corner = Array1::zeros(16);
        corner[0] = 1.0;
        assert!((blur(&[4, 4], corner.view(), 3.0).unwrap().sum() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn rows_are_one_for_all_or_one_for_each() {
        let input = array![1.0, 2.0];
        let rows = |absence: &Absence, example| absence.rows(&[2], input.view(), example, 2);
        let each = Absence::Baseline { rows: vec![vec![3.0, 4.0], vec![5.0, 6.0]] };
        assert_eq!(rows(&each, 1).unwrap(), array![[5.0, 6.0]]);
        let background = Absence::Background { rows: vec![vec![3.0, 4.0], vec![5.0, 6.0], vec![7.0, 8.0]] };
        assert_eq!(rows(&background, 1).unwrap().nrows(), 3);
        assert!(rows(&Absence::Baseline { rows: vec![vec![0.0; 2]; 3] }, 0).is_err());
        assert!(rows(&Absence::Background { rows: vec![] }, 0).is_err());
        assert!(rows(&Absence::Background { rows: vec![vec![0.0; 3]] }, 0).is_err());
        assert!(rows(&Absence::Baseline { rows: vec![vec![0.0, f64::NAN]] }, 0).is_err());
        assert!(rows(&Absence::Mean, 0).is_err());
        let image = array![1.0, 3.0, 5.0, 7.0];
        let means = Absence::Mean.rows(&[2, 1, 2], image.view(), 0, 1).unwrap();
        assert_eq!(means, array![[2.0, 2.0, 6.0, 6.0]]);
    }
}
