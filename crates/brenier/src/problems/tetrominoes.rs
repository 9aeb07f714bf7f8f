//! Tetrominoes on noise: images of 8x8 pixels in which it is known which pixels tell the two classes apart.
//!
//! The 8x8 part of the benchmark XAI-TRIS (Clark, Wilming and Haufe, "XAI-TRIS: non-linear image benchmarks to quantify false
//! positive post-hoc attribution of feature importance", 2024), written from its description. A signal `s` and a background `b`,
//! each divided by its Frobenius norm over all rows, give
//!
//! ```text
//! linear, xor, rigid   x = a s + (1 - a) b
//! multiplicative       x = (1 - a s) b                 1 - a s is divided by its norm as well
//! ```
//!
//! and all of `x` is divided by its largest absolute value. `s` holds a T at (1, 1) for class 0 and an L at (4, 5) for class
//! 1 (linear, multiplicative); both, with equal signs for class 0 and opposite signs for class 1 (xor); or the T or the L anywhere,
//! turned by any number of quarter turns (rigid). Backgrounds are normal, independent or smoothed with a deviation of 3 pixels.
//! The truth is both tetrominoes, for rigid that of the image.
//!
//! Backgrounds are known, so the exact answers to two questions are known too: the image *without* its tetromino, and the nearest image *of
//! the other class* on the same background. Smoothed backgrounds make pixels beside the truth useful to a classifier, because
//! they tell what the background is below it (suppressor variables).

use ndarray::{Array2, ArrayView2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::Planted;
use crate::data::Dataset;
use crate::{Error, Result};

/// Pixels of a side.
pub const TETROMINO_SIDE: usize = 8;
const SIDE: usize = TETROMINO_SIDE;
const PIXELS: usize = SIDE * SIDE;
/// Cells of a T and of an L, and where they are unless they move.
const T: [(usize, usize); 4] = [(0, 0), (1, 0), (2, 0), (1, 1)];
const L: [(usize, usize); 4] = [(0, 0), (1, 0), (2, 0), (2, 1)];
const PLACES: [(usize, usize); 2] = [(1, 1), (4, 5)];
/// The deviation of the smoothing in pixels, and where its weights end, in deviations.
const SMOOTHING: f64 = 3.0;
const TRUNCATE: f64 = 4.0;

/// How the tetrominoes make the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// A T is added for one class, an L for the other, each at its place.
    Linear,
    /// The same places, where the background is made weaker.
    Multiplicative,
    /// Both are there; whether their signs agree is the class.
    Xor,
    /// A T or an L, anywhere, turned anyhow.
    Rigid,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 4] =
        [Scenario::Linear, Scenario::Multiplicative, Scenario::Xor, Scenario::Rigid];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Linear => "linear",
            Scenario::Multiplicative => "multiplicative",
            Scenario::Xor => "xor",
            Scenario::Rigid => "rigid",
        }
    }
}

/// What tetrominoes lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backdrop {
    /// Independent pixels.
    White,
    /// Pixels that are smoothed, so that neighbours go together.
    Correlated,
}

impl Backdrop {
    /// All of them.
    pub const ALL: [Backdrop; 2] = [Backdrop::White, Backdrop::Correlated];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Backdrop::White => "white",
            Backdrop::Correlated => "correlated",
        }
    }
}

/// A cell of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tetrominoes {
    /// How the label is made.
    pub scenario: Scenario,
    /// What it lies on.
    pub backdrop: Backdrop,
    /// The weight of the signal, from 0 to 1.
    pub weight: f64,
}

/// Images, and what they would be otherwise. All arrays are `[rows, 64]`, in the same order and scale.
pub struct TetrominoImages {
    /// The images `[1, 8, 8]` with labels and truth.
    pub planted: Planted,
    /// The tetrominoes that each image has.
    pub own: Array2<bool>,
    /// The same backgrounds without tetrominoes.
    pub without: Array2<f32>,
    /// The same backgrounds with what the other class has, where that changes least.
    pub counterparts: Array2<f32>,
}

/// Pixels with values.
type Signal = Vec<(usize, f64)>;

impl Tetrominoes {
    /// The cell with the weight that the benchmark's configuration for 8x8 pixels has.
    pub fn of_benchmark(scenario: Scenario, backdrop: Backdrop) -> Self {
        let weight = match (scenario, backdrop) {
            (Scenario::Linear, Backdrop::White) => 0.18,
            (Scenario::Linear, Backdrop::Correlated) => 0.0125,
            (Scenario::Multiplicative, Backdrop::White) => 0.7,
            (Scenario::Multiplicative, Backdrop::Correlated) => 0.1,
            (Scenario::Xor, Backdrop::White) => 0.35,
            (Scenario::Xor, Backdrop::Correlated) => 0.15,
            (Scenario::Rigid, Backdrop::White) => 0.65,
            (Scenario::Rigid, Backdrop::Correlated) => 0.2,
        };
        Self { scenario, backdrop, weight }
    }

    /// So many images, half of each class, drawn by the seed.
    ///
    /// # Errors
    /// Fewer than two rows, or a weight that is not between 0 and 1.
    pub fn make(&self, rows: usize, seed: u64) -> Result<TetrominoImages> {
        if rows < 2 || !(0.0..=1.0).contains(&self.weight) {
            return Err(Error::Setting {
                name: "the tetrominoes",
                value: format!("{rows} rows, weight {}", self.weight),
                needs: "there are at least two rows, and the weight lies between 0 and 1",
                hint: "Tetrominoes::of_benchmark has the benchmark's weights".into(),
            });
        }
        let (mut background, mut signal, mut other) =
            (Array2::zeros((rows, PIXELS)), Array2::zeros((rows, PIXELS)), Array2::zeros((rows, PIXELS)));
        let mut labels = Vec::with_capacity(rows);
        for row in 0..rows {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(row as u64);
            background.row_mut(row).mapv_inplace(|_| StandardNormal.sample(&mut rng));
            // Classes take turns, so that any even number of rows from the first on is balanced.
            labels.push(row % 2);
            let (own, changed) = self.signals(row % 2, &mut rng);
            own.iter().for_each(|&(pixel, value)| signal[[row, pixel]] = value);
            changed.iter().for_each(|&(pixel, value)| other[[row, pixel]] = value);
        }
        if self.backdrop == Backdrop::Correlated {
            background = smoothed(background.view());
        }
        background /= norm(&background);
        let own = signal.mapv(|value: f64| value != 0.0);
        let none = Array2::zeros((rows, PIXELS));
        let [mut images, mut without, mut counterparts] =
            [&signal, &none, &other].map(|signal| self.combined(signal, &background, norm_of_signal(&own)));
        let largest = images.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        for all in [&mut images, &mut without, &mut counterparts] {
            *all /= largest;
        }
        let fixed = PLACES.iter().zip([T, L]).flat_map(|(place, cells)| pixels(cells, *place));
        let fixed: Vec<usize> = fixed.collect();
        let truth = match self.scenario {
            Scenario::Rigid => own.clone(),
            _ => Array2::from_shape_fn((rows, PIXELS), |(_, pixel)| fixed.contains(&pixel)),
        };
        let narrow = |values: Array2<f64>| values.mapv(|v| v as f32);
        let name = format!("tetrominoes, {} {}", self.scenario.name(), self.backdrop.name());
        let classes = match self.scenario {
            Scenario::Xor => vec!["equal signs".to_string(), "opposite signs".to_string()],
            _ => vec!["T".to_string(), "L".to_string()],
        };
        let data = Dataset::from_rows(&name, &[1, SIDE, SIDE], narrow(images).view())?
            .with_labels(labels, classes)?;
        let others = Array2::from_elem((rows, PIXELS), false);
        Ok(TetrominoImages {
            planted: Planted { data, truth, others },
            own,
            without: narrow(without),
            counterparts: narrow(counterparts),
        })
    }

    /// The signal of an image and the nearest of the other class, as pixels with values.
    fn signals(&self, label: usize, rng: &mut ChaCha8Rng) -> (Signal, Signal) {
        let at = |cells: [(usize, usize); 4], place, sign: f64| pixels(cells, place).map(move |p| (p, sign));
        let shapes = [T, L];
        match self.scenario {
            Scenario::Linear | Scenario::Multiplicative => {
                let one = |class: usize| at(shapes[class], PLACES[class], 1.0).collect();
                (one(label), one(1 - label))
            }
            Scenario::Xor => {
                let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
                let both = |class: usize| {
                    let second = if class == 0 { sign } else { -sign };
                    at(T, PLACES[0], sign).chain(at(L, PLACES[1], second)).collect()
                };
                (both(label), both(1 - label))
            }
            Scenario::Rigid => {
                let turned = turned(shapes[label], rng.random_range(0..4));
                let (height, width) = size(turned);
                let place = (rng.random_range(0..=SIDE - height), rng.random_range(0..=SIDE - width));
                let own: Vec<usize> = pixels(turned, place).collect();
                let shared = |all: &[usize]| all.iter().filter(|pixel| own.contains(pixel)).count();
                let nearest = placements(shapes[1 - label]).max_by_key(|all| shared(all)).unwrap_or_default();
                let ones = |all: Vec<usize>| all.into_iter().map(|pixel| (pixel, 1.0)).collect();
                (ones(own.clone()), ones(nearest))
            }
        }
    }

    /// `s` is divided by the norm that the images' own signal has, so that other signals stay comparable.
    fn combined(&self, signal: &Array2<f64>, background: &Array2<f64>, own_norm: f64) -> Array2<f64> {
        let a = self.weight;
        match self.scenario {
            Scenario::Multiplicative => {
                let factor = signal.mapv(|value| 1.0 - a * value);
                let every = (signal.len() as f64 - own_norm.powi(2) * (1.0 - (1.0 - a).powi(2))).sqrt();
                factor / every * background
            }
            _ => a / own_norm * signal + (1.0 - a) * background,
        }
    }
}

/// The Frobenius norm of signals of 1 and -1 at these pixels.
fn norm_of_signal(own: &Array2<bool>) -> f64 {
    (own.iter().filter(|there| **there).count() as f64).sqrt()
}

fn norm(values: &Array2<f64>) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn pixels(cells: [(usize, usize); 4], (top, left): (usize, usize)) -> impl Iterator<Item = usize> {
    cells.into_iter().map(move |(i, j)| (top + i) * SIDE + left + j)
}

fn size(cells: [(usize, usize); 4]) -> (usize, usize) {
    cells.iter().fold((0, 0), |(h, w), &(i, j)| (h.max(i + 1), w.max(j + 1)))
}

/// Cells after so many quarter turns.
fn turned(mut cells: [(usize, usize); 4], turns: usize) -> [(usize, usize); 4] {
    for _ in 0..turns {
        let (_, width) = size(cells);
        cells = cells.map(|(i, j)| (width - 1 - j, i));
    }
    cells
}

/// Every way in which a tetromino can lie in the image.
fn placements(cells: [(usize, usize); 4]) -> impl Iterator<Item = Vec<usize>> {
    (0..4).flat_map(move |turns| {
        let cells = turned(cells, turns);
        let (height, width) = size(cells);
        (0..=SIDE - height)
            .flat_map(move |top| (0..=SIDE - width).map(move |left| pixels(cells, (top, left)).collect()))
    })
}

/// Images smoothed along both axes; beyond its border an image is mirrored.
fn smoothed(images: ArrayView2<f64>) -> Array2<f64> {
    let radius = (TRUNCATE * SMOOTHING) as i64;
    let weight = |k: i64| (-0.5 * (k as f64 / SMOOTHING).powi(2)).exp();
    let total: f64 = (-radius..=radius).map(weight).sum();
    let mut along = Array2::<f64>::zeros((SIDE, SIDE));
    for i in 0..SIDE {
        for k in -radius..=radius {
            let period = 2 * SIDE as i64;
            let place = (i as i64 + k).rem_euclid(period);
            let mirrored = if place < SIDE as i64 { place } else { period - 1 - place };
            along[[i, mirrored as usize]] += weight(k) / total;
        }
    }
    let mut result = Array2::zeros(images.raw_dim());
    for (image, mut to) in images.axis_iter(Axis(0)).zip(result.axis_iter_mut(Axis(0))) {
        let square = Array2::from_shape_fn((SIDE, SIDE), |(i, j)| image[i * SIDE + j]);
        let smooth = along.dot(&square).dot(&along.t());
        to.iter_mut().zip(&smooth).for_each(|(to, value)| *to = *value);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> impl Iterator<Item = Tetrominoes> {
        Scenario::ALL
            .into_iter()
            .flat_map(|s| Backdrop::ALL.into_iter().map(move |b| Tetrominoes::of_benchmark(s, b)))
    }

    #[test]
    fn classes_are_balanced_and_every_image_has_its_tetrominoes() {
        for cell in cells() {
            let made = cell.make(400, 5).unwrap();
            let labels = made.planted.data.labels().unwrap();
            assert_eq!(labels.iter().sum::<usize>(), 200);
            let expected = if cell.scenario == Scenario::Xor { 8 } else { 4 };
            let rows = made.planted.data.to_f32().unwrap();
            assert!((rows.iter().fold(0.0, |m: f32, v| m.max(v.abs())) - 1.0).abs() < 1e-6);
            for row in 0..400 {
                let of = |mask: &Array2<bool>| mask.row(row).iter().filter(|t| **t).count();
                assert_eq!(of(&made.own), expected, "{cell:?}");
                assert_eq!(of(&made.planted.truth), if cell.scenario == Scenario::Rigid { 4 } else { 8 });
                // Only the tetrominoes tell an image from its background.
                for pixel in 0..PIXELS {
                    let changed = (rows[[row, pixel]] - made.without[[row, pixel]]).abs() > 1e-7;
                    let own = made.own[[row, pixel]];
                    assert!(changed == own, "{cell:?} {row} {pixel}");
                }
            }
        }
    }

    #[test]
    fn the_fixed_tetrominoes_are_where_the_benchmark_has_them() {
        let made = Tetrominoes::of_benchmark(Scenario::Linear, Backdrop::White).make(4, 0).unwrap();
        let places = |row: usize| -> Vec<(usize, usize)> {
            (0..PIXELS).filter(|&p| made.own[[row, p]]).map(|p| (p / SIDE, p % SIDE)).collect()
        };
        assert_eq!(places(0), [(1, 1), (2, 1), (2, 2), (3, 1)]);
        assert_eq!(places(1), [(4, 5), (5, 5), (6, 5), (6, 6)]);
    }

    #[test]
    fn signal_and_background_have_the_shares_that_are_asked_for() {
        for (cell, rows) in cells().map(|cell| (cell, 2000)) {
            let made = cell.make(rows, 1).unwrap();
            let x = made.planted.data.to_f32().unwrap().mapv(f64::from);
            let b = made.without.mapv(f64::from);
            match cell.scenario {
                Scenario::Multiplicative => {
                    for ((value, under), own) in x.iter().zip(&b).zip(&made.own) {
                        let factor = if *own { 1.0 - cell.weight } else { 1.0 };
                        assert!((value - factor * under).abs() < 1e-6, "{cell:?}");
                    }
                }
                _ => {
                    let ratio = norm(&(&x - &b)) / norm(&b);
                    assert!(
                        (ratio / (cell.weight / (1.0 - cell.weight)) - 1.0).abs() < 1e-5,
                        "{cell:?} {ratio}"
                    );
                }
            }
        }
    }

    #[test]
    fn smooth_backgrounds_go_together_and_keep_what_is_constant() {
        let neighbours = |backdrop| {
            let without = Tetrominoes::of_benchmark(Scenario::Linear, backdrop).make(500, 2).unwrap().without;
            let (mut both, mut square) = (0.0, 0.0);
            for row in without.rows() {
                both += f64::from(row[27] * row[28]);
                square += f64::from(row[27] * row[27]);
            }
            both / square
        };
        assert!(neighbours(Backdrop::White).abs() < 0.15);
        assert!(neighbours(Backdrop::Correlated) > 0.9);
        let constant = smoothed(Array2::from_elem((1, PIXELS), 2.0).view());
        assert!(constant.iter().all(|v| (v - 2.0).abs() < 1e-12));
    }

    #[test]
    fn the_nearest_of_the_other_class_moves_one_cell_where_it_can() {
        let rigid = Tetrominoes::of_benchmark(Scenario::Rigid, Backdrop::White).make(200, 3).unwrap();
        let x = rigid.planted.data.to_f32().unwrap();
        for row in 0..200 {
            let moved: Vec<usize> =
                (0..PIXELS).filter(|&p| (x[[row, p]] - rigid.counterparts[[row, p]]).abs() > 1e-6).collect();
            assert_eq!(moved.len(), 2, "{moved:?}");
            assert_eq!(moved.iter().filter(|&&p| rigid.own[[row, p]]).count(), 1);
        }
        // Four turns are none, and a T has four different ones.
        assert_eq!(turned(T, 4), T);
        assert_eq!(placements(T).count(), 2 * 42 + 2 * 42);
        assert!(
            Tetrominoes { weight: 2.0, ..Tetrominoes::of_benchmark(Scenario::Xor, Backdrop::White) }
                .make(4, 0)
                .is_err()
        );
    }

    #[test]
    fn xor_has_both_signs_in_both_classes() {
        let made = Tetrominoes::of_benchmark(Scenario::Xor, Backdrop::White).make(400, 9).unwrap();
        let x = made.planted.data.to_f32().unwrap();
        let labels = made.planted.data.labels().unwrap();
        let mut seen = [[0; 2]; 2];
        for row in 0..400 {
            let sign = |cells, place| {
                pixels(cells, place).map(|p| x[[row, p]] - made.without[[row, p]]).sum::<f32>()
            };
            let (t, l) = (sign(T, PLACES[0]), sign(L, PLACES[1]));
            assert_eq!(t * l > 0.0, labels[row] == 0);
            seen[labels[row]][usize::from(t > 0.0)] += 1;
        }
        assert!(seen.iter().flatten().all(|&count| count > 60), "{seen:?}");
    }
}
