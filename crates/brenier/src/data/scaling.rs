//! The map between the space a user sees and the space a flow is trained in.
//!
//! ```text
//! scaled = (value - shift) / scale
//! ```
//!
//! one shift and scale for each feature or each channel. It is fitted on training rows only and kept in the flow's
//! metadata, so whoever explains with the flow applies the same map. Credit needs no correction: along a path,
//! `d_i f * dx_i` is the same in both spaces.

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use super::{ColumnKind, DataError, Dataset, coding};
use crate::error::{Error, Result, expect_shape};

/// How a [`Scaling`] is fitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScalingConfig {
    /// Which map.
    pub method: ScalingMethod,
    /// What shares a shift and a scale.
    pub unit: ScalingUnit,
    /// What to do with something that never varies.
    pub constants: Constants,
}

/// Which map.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingMethod {
    /// `Symmetric` for images, `Standardise` for everything else.
    #[default]
    Auto,
    /// Values stay as they are.
    Identity,
    /// 0 to 1 becomes -1 to 1, whatever the data.
    Symmetric,
    /// Mean 0 and variance 1 over the training rows; features that stand for a category, 0 to 1 becomes -1 to 1
    /// (a rare category would otherwise get a scale so small that its rows lie far from all others).
    Standardise,
}

/// What shares a shift and a scale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingUnit {
    /// `Channel` for images, `Feature` for everything else.
    #[default]
    Auto,
    /// Every feature has its own.
    Feature,
    /// All pixels of a channel.
    Channel,
}

/// What to do with something that never varies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constants {
    /// Refuse, naming it: a model learns nothing from it, and in other data it may turn out not to be constant.
    #[default]
    Refuse,
    /// Keep it; it becomes 0.
    Keep,
}

/// An affine map of each feature, `(value - shift) / scale`.
///
/// ```
/// use brenier::data::{Dataset, Scaling, ScalingConfig};
/// use ndarray::array;
///
/// let train = Dataset::from_rows("train", &[2], array![[1., 10.], [3., 30.]].view())?;
/// let scaling = Scaling::fit(&train, &ScalingConfig::default())?;
/// let scaled = scaling.apply(array![[3.0_f64, 20.0]].view())?;
/// assert_eq!(scaled, array![[1.0, 0.0]]);
/// assert_eq!(scaling.invert(scaled.view())?, array![[3.0, 20.0]]);
/// # Ok::<(), brenier::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Scaling {
    /// The shape of a row.
    shape: Vec<usize>,
    /// One for each feature, or one for each channel.
    shift: Vec<f64>,
    scale: Vec<f64>,
}

/// A scaling as it is read from a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    shape: Vec<usize>,
    shift: Vec<f64>,
    scale: Vec<f64>,
}

impl TryFrom<Unchecked> for Scaling {
    type Error = Error;

    fn try_from(read: Unchecked) -> Result<Self> {
        Self::new(&read.shape, read.shift, read.scale)
    }
}

impl Scaling {
    /// A map with these shifts and scales: one each for every feature, or one for every channel (the first axis).
    ///
    /// # Errors
    /// If there are neither as many as features nor as channels, or a number is not finite or a scale is 0.
    pub fn new(shape: &[usize], shift: Vec<f64>, scale: Vec<f64>) -> Result<Self> {
        let features: usize = shape.iter().product();
        if shape.is_empty() || features == 0 {
            return Err(Error::Zero { what: "the number of features of a row" });
        }
        if shift.len() != shape[0] {
            expect_shape("the shifts of a scaling", &[features], &[shift.len()])?;
        }
        expect_shape("the scales of a scaling", &[shift.len()], &[scale.len()])?;
        let usable = |value: &&f64| !value.is_finite() || **value == 0.0;
        let bad = scale.iter().find(usable).or_else(|| shift.iter().find(|shift| !shift.is_finite()));
        if let Some(bad) = bad {
            return Err(Error::Setting {
                name: "a shift or scale",
                value: bad.to_string(),
                needs: "shifts must be finite, and scales neither 0 nor infinite",
                hint: "fit the scaling again".into(),
            });
        }
        Ok(Self { shape: shape.to_vec(), shift, scale })
    }

    /// Values stay as they are.
    ///
    /// # Errors
    /// If the shape has no features.
    pub fn identity(shape: &[usize]) -> Result<Self> {
        let units = shape.first().copied().unwrap_or(0);
        Self::new(shape, vec![0.0; units], vec![1.0; units])
    }

    /// 0 to 1 becomes -1 to 1.
    ///
    /// # Errors
    /// If the shape has no features.
    pub fn symmetric(shape: &[usize]) -> Result<Self> {
        let units = shape.first().copied().unwrap_or(0);
        Self::new(shape, vec![0.5; units], vec![0.5; units])
    }

    /// Fits a map on training rows.
    ///
    /// # Errors
    /// If there are no rows, or a column, feature or channel has the same value in all of them and the
    /// configuration does not keep such.
    pub fn fit(train: &Dataset, config: &ScalingConfig) -> Result<Self> {
        let shape = train.shape();
        let method = match config.method {
            ScalingMethod::Auto if train.is_images() => ScalingMethod::Symmetric,
            ScalingMethod::Auto => ScalingMethod::Standardise,
            method => method,
        };
        train.require_rows(1, "fitting a scaling")?;
        match method {
            ScalingMethod::Identity => return Self::identity(shape),
            ScalingMethod::Symmetric if train.columns().is_empty() => return Self::symmetric(shape),
            _ => {}
        }
        let channels = match config.unit {
            ScalingUnit::Auto => train.is_images(),
            ScalingUnit::Channel => true,
            ScalingUnit::Feature => false,
        };
        let units = if channels { shape[0] } else { train.features() };
        let moments = Moments::of(train, units);
        if config.constants == Constants::Refuse {
            refuse_constants(train, &moments, channels)?;
        }
        if method == ScalingMethod::Symmetric {
            return Self::symmetric(shape);
        }
        let (mut shift, mut scale) = (moments.mean, moments.deviation);
        for unit in 0..units {
            if moments.least[unit] == moments.most[unit] {
                (shift[unit], scale[unit]) = (f64::from(moments.least[unit]), 1.0);
            }
        }
        if !channels {
            for (column, range) in coding::with_features(train.columns()) {
                if matches!(column.kind, ColumnKind::Categorical { .. }) {
                    shift[range.clone()].fill(0.5);
                    scale[range].fill(0.5);
                }
            }
        }
        Self::new(shape, shift, scale)
    }

    /// The shape of a row.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The shift and the scale of a feature.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn of(&self, feature: usize) -> (f64, f64) {
        let features: usize = self.shape.iter().product();
        let unit = feature / (features / self.shift.len());
        (self.shift[unit], self.scale[unit])
    }

    /// From the space a user sees to the space of the flow, `[rows, features]`.
    ///
    /// # Errors
    /// If the rows do not have as many features as the scaling.
    pub fn apply<T: Real>(&self, rows: ArrayView2<T>) -> Result<Array2<T>> {
        self.map(rows, |value, shift, scale| (value - shift) / scale)
    }

    /// Back from the space of the flow to the space a user sees, `[rows, features]`.
    ///
    /// # Errors
    /// If the rows do not have as many features as the scaling.
    pub fn invert<T: Real>(&self, rows: ArrayView2<T>) -> Result<Array2<T>> {
        self.map(rows, |value, shift, scale| value * scale + shift)
    }

    fn map<T: Real>(&self, rows: ArrayView2<T>, change: impl Fn(f64, f64, f64) -> f64) -> Result<Array2<T>> {
        let features = self.shape.iter().product();
        expect_shape("a row to be scaled", &[features], &[rows.ncols()])?;
        let width = features / self.shift.len();
        let mut mapped = rows.to_owned();
        for mut row in mapped.rows_mut() {
            for (feature, value) in row.iter_mut().enumerate() {
                let unit = feature / width;
                *value = T::from_f64(change(value.to_f64(), self.shift[unit], self.scale[unit]));
            }
        }
        Ok(mapped)
    }
}

/// What is known of each feature or channel.
struct Moments {
    mean: Vec<f64>,
    deviation: Vec<f64>,
    least: Vec<f32>,
    most: Vec<f32>,
}

impl Moments {
    fn of(data: &Dataset, units: usize) -> Self {
        let width = data.features() / units;
        let count = (data.len() * width) as f64;
        let (mut mean, mut variance) = (vec![0.0; units], vec![0.0; units]);
        let (mut least, mut most) = (vec![f32::INFINITY; units], vec![f32::NEG_INFINITY; units]);
        for row in 0..data.len() {
            data.for_each_value(row, |feature, value| {
                let unit = feature / width;
                mean[unit] += f64::from(value);
                least[unit] = least[unit].min(value);
                most[unit] = most[unit].max(value);
            });
        }
        mean.iter_mut().for_each(|sum| *sum /= count);
        // A second walk: no cancellation, however far the mean is from 0.
        for row in 0..data.len() {
            data.for_each_value(row, |feature, value| {
                let gap = f64::from(value) - mean[feature / width];
                variance[feature / width] += gap * gap;
            });
        }
        let deviation = variance.iter().map(|sum: &f64| (sum / count).sqrt()).collect();
        Self { mean, deviation, least, most }
    }
}

fn refuse_constants(train: &Dataset, moments: &Moments, channels: bool) -> Result<()> {
    let constant = |feature: String, value: String| {
        let (rows, data) = (train.len(), train.origin().to_owned());
        Err(DataError::Constant { feature, value, rows, data }.into())
    };
    let fixed = |unit: usize| moments.least[unit] == moments.most[unit];
    if channels || train.columns().is_empty() {
        return match (0..moments.mean.len()).find(|&unit| fixed(unit)) {
            None => Ok(()),
            Some(unit) => {
                let name = if channels { format!("channel {unit}") } else { train.feature_name(unit) };
                constant(name, moments.least[unit].to_string())
            }
        };
    }
    for (column, range) in coding::with_features(train.columns()) {
        // A category that no training row has is no reason to refuse; a column with one category in all rows is.
        if range.clone().all(fixed) {
            let value = match &column.kind {
                ColumnKind::Numeric => moments.least[range.start].to_string(),
                ColumnKind::Categorical { values } => {
                    let only = range.clone().position(|unit| moments.most[unit] > 0.0).unwrap_or(0);
                    format!("'{}'", values[only])
                }
            };
            return constant(format!("column '{}'", column.name), value);
        }
    }
    Ok(())
}

/// Numbers that rows are made of: `f32` and `f64`.
pub trait Real: Copy + private::Sealed {
    /// As a double.
    fn to_f64(self) -> f64;
    /// The nearest number to a double.
    fn from_f64(value: f64) -> Self;
}

impl Real for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(value: f64) -> Self {
        value
    }
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}
