//! Baselines: what an input is compared with on the straight line.
//!
//! A baseline stands for the absence of what the input shows, and no single one is right (Sturmfels et al.,
//! "Visualizing the impact of feature attribution baselines", 2020). Each choice here is named, and ends up in
//! the explanation as its reference.

use ndarray::{Array2, ArrayView2};
use rand_distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};

use super::Context;
use super::draws::generator;
use crate::data::Dataset;
use crate::path::{BlurPath, Border, Path};
use crate::{Error, Result, error};

/// Rows of data that are read at a time.
const ROWS: usize = 256;

/// Where the straight path starts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "baseline", rename_all = "kebab-case")]
pub enum Baseline {
    /// All zeros.
    #[default]
    Zero,
    /// The mean of the data, feature by feature.
    Mean,
    /// The input, blurred; for images. The border is mirrored, so brightness stays.
    Blur {
        /// Standard deviation in pixels; an eighth of the image's longer side where not given.
        sigma: Option<f64>,
    },
    /// Uniform noise between the smallest and the largest value of the input, drawn once by the seed.
    Noise,
    /// Rows that the caller gives, one for all inputs or one for each.
    Given,
}

impl Baseline {
    /// The baseline of each input, `[inputs, features]`.
    ///
    /// # Errors
    /// If the mean is wanted without data, rows without rows, or a blur of something that is no image.
    pub fn of(
        &self,
        inputs: ArrayView2<f64>,
        shape: &[usize],
        seed: u64,
        context: &Context,
    ) -> Result<Array2<f64>> {
        let mut baselines = Array2::zeros(inputs.raw_dim());
        match *self {
            Baseline::Zero => {}
            Baseline::Mean => {
                let data = context.require_data("the mean as a baseline")?;
                error::expect_shape("a row of the data", shape, data.shape())?;
                let mean = mean(data)?;
                baselines.rows_mut().into_iter().for_each(|mut row| row.assign(&mean));
            }
            Baseline::Blur { sigma } => {
                let side = shape.iter().skip(1).copied().max().unwrap_or(0) as f64;
                for (mut row, input) in baselines.rows_mut().into_iter().zip(inputs.rows()) {
                    let path = BlurPath::new(input, shape, sigma.unwrap_or(side / 8.0), Border::Mirror)?;
                    row.assign(&path.at(0.0));
                }
            }
            Baseline::Noise => {
                let keys = context.keys(inputs);
                for ((mut row, input), key) in baselines.rows_mut().into_iter().zip(inputs.rows()).zip(keys) {
                    let low = input.iter().copied().fold(f64::INFINITY, f64::min);
                    let high = input.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let refuse = |_| Error::Setting {
                        name: "the range of the noise",
                        value: format!("{low} to {high}"),
                        needs: "the input must have finite values",
                        hint: "choose another baseline".into(),
                    };
                    let uniform = Uniform::new_inclusive(low, high).map_err(refuse)?;
                    let mut rng = generator(seed, key, 0);
                    row.iter_mut().for_each(|value| *value = uniform.sample(&mut rng));
                }
            }
            Baseline::Given => {
                let given = context.baselines.ok_or_else(|| Error::Method {
                    method: "a given baseline".to_string(),
                    reason: "no rows are given".to_string(),
                    remedy: "give one row, or one for each input".into(),
                })?;
                let rows = if given.nrows() == 1 { 1 } else { inputs.nrows() };
                error::expect_shape("the baselines", &[rows, inputs.ncols()], given.shape())?;
                for (i, mut row) in baselines.rows_mut().into_iter().enumerate() {
                    row.assign(&given.row(if rows == 1 { 0 } else { i }));
                }
            }
        }
        Ok(baselines)
    }
}

/// The mean of all rows, read a few at a time.
fn mean(data: &Dataset) -> Result<ndarray::Array1<f64>> {
    data.require_rows(1, "a mean")?;
    let mut sum = ndarray::Array1::zeros(data.features());
    for first in (0..data.len()).step_by(ROWS) {
        let indices: Vec<usize> = (first..(first + ROWS).min(data.len())).collect();
        sum += &data.rows_f64(&indices)?.sum_axis(ndarray::Axis(0));
    }
    Ok(sum / data.len() as f64)
}
