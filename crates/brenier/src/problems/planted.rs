//! Data in which it is known what decides the label, so that explanations can be held against the truth.
//!
//! *Images*: a patch on a photograph, at a place of its own in every image, whose colour is the label: red or green.
//! A second patch, blue or yellow, agrees with the label as often as asked for and decides nothing. Everything else
//! in the image has nothing to do with the label.
//!
//! *Tables*: twelve columns, normal with variance 1,
//!
//! ```text
//! label = [ a0 - a1 + 2 a2 a3 > 0 ]        a: four active columns, the truth
//! c_k = r a_k + (1 - r^2)^(1/2) e_k        c: four columns that are correlated with them and decide nothing
//! n_k                                      n: four columns of noise
//! ```

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::{Error, Result};

/// Data with the features that decide.
pub struct Planted {
    /// The rows, with labels.
    pub data: Dataset,
    /// What decides the label of each row, `[rows, features]`.
    pub truth: Array2<bool>,
    /// What goes along with the label and decides nothing, `[rows, features]`.
    pub others: Array2<bool>,
}

/// Patches on photographs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlantedImages {
    /// The side of a patch in pixels.
    pub patch: usize,
    /// How often the second patch agrees with the label: 0.5 is chance, 1 is always.
    pub agreement: f64,
    /// Which patch decides.
    pub deciding: DecidingPatch,
    /// Where that patch is.
    pub place: PatchPlace,
}

/// Which of the two patches has the label's colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidingPatch {
    /// The red or green one.
    #[default]
    RedOrGreen,
    /// The blue or yellow one.
    BlueOrYellow,
}

/// Where the patch that decides is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchPlace {
    /// At a place of its own in every image.
    #[default]
    Anywhere,
    /// In the middle of every image.
    Middle,
}

impl Default for PlantedImages {
    /// Patches of 6 pixels; the second agrees in 8 of 10.
    fn default() -> Self {
        Self { patch: 6, agreement: 0.8, deciding: DecidingPatch::default(), place: PatchPlace::default() }
    }
}

const RED_OR_GREEN: [[u8; 3]; 2] = [[220, 40, 40], [40, 190, 60]];
const BLUE_OR_YELLOW: [[u8; 3]; 2] = [[40, 60, 220], [225, 205, 40]];
/// How far a colour may be off, either way.
const JITTER: i16 = 25;

impl PlantedImages {
    /// So many images, each on one of the backgrounds (`[3, height, width]`), drawn by the seed.
    ///
    /// # Errors
    /// If backgrounds are no colour images, or too small for two patches.
    pub fn make(&self, backgrounds: &Dataset, rows: usize, seed: u64) -> Result<Planted> {
        let [3, height, width] = backgrounds.shape()[..] else {
            return Err(Error::NotAnImage { what: "a coloured patch", shape: backgrounds.shape().to_vec() });
        };
        backgrounds.require_rows(1, "a background")?;
        if self.patch == 0 || 2 * self.patch > height.min(width) || !(0.0..=1.0).contains(&self.agreement) {
            return Err(Error::Setting {
                name: "the patch and its agreement",
                value: format!("{} pixels, {}", self.patch, self.agreement),
                needs: "two patches fit beside each other, and an agreement lies between 0 and 1",
                hint: "6 pixels and 0.8".into(),
            });
        }
        let pixels = height * width;
        let colours = match self.deciding {
            DecidingPatch::RedOrGreen => [RED_OR_GREEN, BLUE_OR_YELLOW],
            DecidingPatch::BlueOrYellow => [BLUE_OR_YELLOW, RED_OR_GREEN],
        };
        let mut bytes = Vec::with_capacity(rows * 3 * pixels);
        let mut truth = Array2::from_elem((rows, 3 * pixels), false);
        let mut others = truth.clone();
        let mut labels = Vec::with_capacity(rows);
        for row in 0..rows {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(row as u64);
            let mut image = background(backgrounds, &mut rng)?;
            let label = rng.random_range(0..2);
            let says = if rng.random::<f64>() < self.agreement { label } else { 1 - label };
            let mut place =
                || (rng.random_range(0..=height - self.patch), rng.random_range(0..=width - self.patch));
            let deciding = match self.place {
                PatchPlace::Anywhere => place(),
                PatchPlace::Middle => ((height - self.patch) / 2, (width - self.patch) / 2),
            };
            let distracting = loop {
                let other = place();
                let apart = |a: usize, b: usize| a.abs_diff(b) >= self.patch;
                if apart(deciding.0, other.0) || apart(deciding.1, other.1) {
                    break other;
                }
            };
            for (at, colour) in [(distracting, colours[1][says]), (deciding, colours[0][label])] {
                let colour =
                    colour.map(|c| (i16::from(c) + rng.random_range(-JITTER..=JITTER)).clamp(0, 255) as u8);
                for pixel in self.pixels(at, width) {
                    (0..3).for_each(|c| image[c * pixels + pixel] = colour[c]);
                }
            }
            for (at, mask) in [(deciding, &mut truth), (distracting, &mut others)] {
                for pixel in self.pixels(at, width) {
                    (0..3).for_each(|c| mask[[row, c * pixels + pixel]] = true);
                }
            }
            bytes.extend(image);
            labels.push(label);
        }
        let classes = match self.deciding {
            DecidingPatch::RedOrGreen => ["red", "green"],
            DecidingPatch::BlueOrYellow => ["blue", "yellow"],
        };
        let classes = classes.map(str::to_string).to_vec();
        let data = Dataset::from_pixels("planted patches", backgrounds.shape(), bytes)?
            .with_labels(labels, classes)?;
        Ok(Planted { data, truth, others })
    }

    /// So many images without either patch, drawn by the seed from the same backgrounds: what "the feature is not there" means.
    ///
    /// # Errors
    /// If there is no background.
    pub fn without_patches(&self, backgrounds: &Dataset, rows: usize, seed: u64) -> Result<Dataset> {
        backgrounds.require_rows(1, "a background")?;
        let mut bytes = Vec::with_capacity(rows * backgrounds.features());
        for row in 0..rows {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(row as u64);
            bytes.extend(background(backgrounds, &mut rng)?);
        }
        Dataset::from_pixels("without patches", backgrounds.shape(), bytes)
    }

    fn pixels(&self, (top, left): (usize, usize), width: usize) -> impl Iterator<Item = usize> + use<> {
        let patch = self.patch;
        (0..patch * patch).map(move |k| (top + k / patch) * width + left + k % patch)
    }
}

/// One of the backgrounds, as bytes.
fn background(backgrounds: &Dataset, rng: &mut ChaCha8Rng) -> Result<Vec<u8>> {
    let drawn = backgrounds.rows_f32(&[rng.random_range(0..backgrounds.len())])?;
    Ok(drawn.iter().map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8).collect())
}

/// Columns that decide, that go along, and that do neither.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlantedTable {
    /// The correlation of a column that goes along with the one that decides.
    pub correlation: f64,
}

impl Default for PlantedTable {
    /// A correlation of 0.7.
    fn default() -> Self {
        Self { correlation: 0.7 }
    }
}

/// Columns of each of the three kinds.
const COLUMNS: usize = 4;

impl PlantedTable {
    /// So many rows, drawn by the seed.
    ///
    /// # Errors
    /// If the correlation is none.
    pub fn make(&self, rows: usize, seed: u64) -> Result<Planted> {
        if !(-1.0..=1.0).contains(&self.correlation) {
            return Err(Error::Setting {
                name: "the correlation",
                value: self.correlation.to_string(),
                needs: "it lies between -1 and 1",
                hint: "0.7".into(),
            });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut values = Array2::<f32>::zeros((rows, 3 * COLUMNS));
        let mut labels = Vec::with_capacity(rows);
        for mut row in values.rows_mut() {
            let active: [f64; COLUMNS] = std::array::from_fn(|_| normal());
            let along =
                active.map(|a| self.correlation * a + (1.0 - self.correlation.powi(2)).sqrt() * normal());
            let noise: [f64; COLUMNS] = std::array::from_fn(|_| normal());
            let all = active.iter().chain(&along).chain(&noise);
            row.iter_mut().zip(all).for_each(|(to, value)| *to = *value as f32);
            labels.push(usize::from(active[0] - active[1] + 2.0 * active[2] * active[3] > 0.0));
        }
        let classes = vec!["no".to_string(), "yes".to_string()];
        let data = Dataset::from_rows("planted columns", &[3 * COLUMNS], values.view())?
            .with_labels(labels, classes)?;
        let kind =
            |kind: usize| Array2::from_shape_fn((rows, 3 * COLUMNS), |(_, column)| column / COLUMNS == kind);
        Ok(Planted { data, truth: kind(0), others: kind(1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backgrounds() -> Dataset {
        let pixels = (0..2 * 3 * 16 * 16).map(|i| (i * 7 % 251) as u8).collect();
        Dataset::from_pixels("grey", &[3, 16, 16], pixels).unwrap()
    }

    #[test]
    fn the_colour_of_the_true_patch_is_the_label_and_that_of_the_other_agrees_as_often_as_asked() {
        let maker = PlantedImages { patch: 4, agreement: 0.75, ..PlantedImages::default() };
        let planted = maker.make(&backgrounds(), 400, 3).unwrap();
        let (rows, labels) = (planted.data.to_f32().unwrap(), planted.data.labels().unwrap());
        let mut agreed = 0;
        for (i, label) in labels.iter().enumerate() {
            let truth = planted.truth.row(i);
            assert_eq!(truth.iter().filter(|t| **t).count(), 3 * 16);
            let at = truth.iter().position(|t| *t).unwrap();
            let (red, green) = (rows[[i, at]], rows[[i, 256 + at]]);
            assert_eq!(usize::from(green > red), *label, "image {i}");
            // Blue patches are the only places where blue is far above both.
            let blue = (0..256)
                .any(|p| rows[[i, 512 + p]] > 0.75 && rows[[i, p]] < 0.26 && rows[[i, 256 + p]] < 0.34);
            agreed += usize::from(blue == (*label == 0));
        }
        assert!((agreed as f64 / 400.0 - 0.75).abs() < 0.08, "{agreed}");
        assert!(labels.iter().sum::<usize>().abs_diff(200) < 40);
        let again = maker.make(&backgrounds(), 400, 3).unwrap();
        assert_eq!(again.data.fingerprint(), planted.data.fingerprint());
        assert!(PlantedImages { patch: 9, ..maker }.make(&backgrounds(), 1, 0).is_err());
    }

    #[test]
    fn images_without_patches_are_the_backgrounds_and_the_other_patch_can_decide() {
        let maker = PlantedImages { patch: 4, agreement: 0.5, ..PlantedImages::default() };
        let free = maker.without_patches(&backgrounds(), 40, 3).unwrap().to_f32().unwrap();
        let all = backgrounds().to_f32().unwrap();
        assert!(free.rows().into_iter().all(|row| row == all.row(0) || row == all.row(1)));
        // The same draws on the same backgrounds: only the patches differ.
        let planted = maker.make(&backgrounds(), 40, 3).unwrap();
        let rows = planted.data.to_f32().unwrap();
        for row in 0..40 {
            for feature in (0..3 * 256).filter(|&f| !planted.truth[[row, f]] && !planted.others[[row, f]]) {
                assert_eq!(rows[[row, feature]], free[[row, feature]]);
            }
            assert!(planted.truth.row(row).iter().zip(planted.others.row(row)).all(|(a, b)| !(*a && *b)));
        }
        let second =
            PlantedImages { deciding: DecidingPatch::BlueOrYellow, place: PatchPlace::Middle, ..maker };
        let planted = second.make(&backgrounds(), 40, 3).unwrap();
        let (rows, labels) = (planted.data.to_f32().unwrap(), planted.data.labels().unwrap());
        for (row, label) in labels.iter().enumerate() {
            // The middle of 16 by 16 with a patch of 4 begins at 6.
            let at = 6 * 16 + 6;
            assert!(planted.truth[[row, at]] && !planted.truth[[row, at - 1]]);
            assert_eq!(usize::from(rows[[row, at]] > rows[[row, 512 + at]]), *label);
        }
    }

    #[test]
    fn active_columns_decide_and_correlated_ones_go_along() {
        let planted = PlantedTable { correlation: 0.6 }.make(4000, 1).unwrap();
        let (rows, labels) = (planted.data.to_f32().unwrap(), planted.data.labels().unwrap());
        let column = |k: usize| rows.column(k).iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
        let correlation = |a: usize, b: usize| crate::evaluate::pearson(&column(a), &column(b)).unwrap();
        for k in 0..COLUMNS {
            assert!((correlation(k, COLUMNS + k) - 0.6).abs() < 0.05);
            assert!(correlation(k, 2 * COLUMNS + k).abs() < 0.06);
        }
        for (row, label) in rows.rows().into_iter().zip(labels) {
            assert_eq!(usize::from(row[0] - row[1] + 2.0 * row[2] * row[3] > 0.0), label);
        }
        assert!(planted.truth.rows().into_iter().all(|t| t.iter().filter(|t| **t).count() == COLUMNS));
    }
}
