//! How far a column itself moved, and how far it would seem to move without a shift.
//!
//! ```text
//! numbers      W1 = int |F_A(v) - F_B(v)| dv / unit          (the sorted distance)
//! categories   1/2 sum_v |p_A(v) - p_B(v)|
//! ```
//!
//! Two samples of one population differ too. So rows are exchanged at random between the two populations, again and again,
//! and the distance that 5 % of these exchanges exceed stands beside the one that was found. Pairs of a matching would not
//! do: they lie apart even where nothing moved.

use ndarray::{Array1, ArrayView2};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::rows::ColumnOf;

pub(super) struct Movement {
    pub(super) distance: f64,
    pub(super) by_chance: f64,
    pub(super) mean_difference: Option<f64>,
}

pub(super) struct Movements<'a> {
    a: ArrayView2<'a, f64>,
    b: ArrayView2<'a, f64>,
    /// Which rows count as the first population: as they are, then after each exchange.
    first: Vec<Vec<bool>>,
}

impl<'a> Movements<'a> {
    pub(super) fn new(a: ArrayView2<'a, f64>, b: ArrayView2<'a, f64>, exchanges: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(4);
        let mut sides: Vec<bool> = (0..a.nrows() + b.nrows()).map(|i| i < a.nrows()).collect();
        let mut first = vec![sides.clone()];
        for _ in 0..exchanges {
            sides.shuffle(&mut rng);
            first.push(sides.clone());
        }
        Self { a, b, first }
    }

    pub(super) fn of(&self, column: &ColumnOf, unit: &Array1<f64>) -> Movement {
        let mut distances: Vec<f64> = if column.categorical {
            self.first.iter().map(|sides| self.share_moved(column, sides)).collect()
        } else {
            let feature = column.features.start;
            let scale = if unit[feature] > 0.0 { 1.0 / unit[feature] } else { 0.0 };
            self.sorted_distances(feature).into_iter().map(|d| d * scale).collect()
        };
        let distance = distances.remove(0);
        distances.sort_by(f64::total_cmp);
        let place = (0.95 * (distances.len() + 1) as f64).ceil() as usize;
        let by_chance = distances.get(place.saturating_sub(1).min(distances.len().saturating_sub(1)));
        let mean = |rows: &ArrayView2<f64>| rows.column(column.features.start).mean().unwrap_or(f64::NAN);
        Movement {
            distance,
            by_chance: by_chance.copied().unwrap_or(0.0),
            mean_difference: (!column.categorical).then(|| mean(&self.b) - mean(&self.a)),
        }
    }

    fn value(&self, row: usize, feature: usize) -> f64 {
        let rows = self.a.nrows();
        if row < rows { self.a[[row, feature]] } else { self.b[[row - rows, feature]] }
    }

    fn sorted_distances(&self, feature: usize) -> Vec<f64> {
        let mut order: Vec<(f64, usize)> =
            (0..self.a.nrows() + self.b.nrows()).map(|row| (self.value(row, feature), row)).collect();
        order.sort_by(|x, y| x.0.total_cmp(&y.0));
        let (of_a, of_b) = (1.0 / self.a.nrows() as f64, 1.0 / self.b.nrows() as f64);
        let distance = |sides: &Vec<bool>| {
            let (mut ahead, mut sum) = (0.0f64, 0.0);
            for pair in order.windows(2) {
                ahead += if sides[pair[0].1] { of_a } else { -of_b };
                sum += ahead.abs() * (pair[1].0 - pair[0].0);
            }
            sum
        };
        self.first.iter().map(distance).collect()
    }

    fn share_moved(&self, column: &ColumnOf, sides: &[bool]) -> f64 {
        let (of_a, of_b) = (1.0 / self.a.nrows() as f64, 1.0 / self.b.nrows() as f64);
        let excess = |feature: usize| -> f64 {
            let weight = |side: bool| if side { of_a } else { -of_b };
            sides.iter().enumerate().map(|(row, &side)| weight(side) * self.value(row, feature)).sum()
        };
        0.5 * column.features.clone().map(|feature| excess(feature).abs()).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn numbers_move_by_their_sorted_distance_and_categories_by_the_share_that_changes() {
        let a = array![[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]];
        let b = array![[5.0, 0.0, 1.0], [2.0, 1.0, 0.0]];
        let movements = Movements::new(a.view(), b.view(), 39, 1);
        let number = ColumnOf { name: "n".into(), features: 0..1, categorical: false };
        let category = ColumnOf { name: "c".into(), features: 1..3, categorical: true };
        let unit = array![2.0, 0.5, 0.5];
        let found = movements.of(&number, &unit);
        // Sorted: 0, 1 go to 2 and 2, 3 go to 5: (2 + 1 + 3 + 2) / 4 = 2, in units of 2.
        assert!((found.distance - 1.0).abs() < 1e-12, "{}", found.distance);
        assert_eq!(found.mean_difference, Some(2.0));
        let found = movements.of(&category, &unit);
        assert!((found.distance - 0.25).abs() < 1e-12 && found.mean_difference.is_none());
        assert!(found.by_chance >= 0.25);
    }

    #[test]
    fn a_shift_exceeds_what_chance_does_and_no_shift_mostly_does_not() {
        let wave =
            |n: usize, by: f64| ndarray::Array2::from_shape_fn((n, 1), |(i, _)| (i as f64 * 0.7).sin() + by);
        let column = ColumnOf { name: "n".into(), features: 0..1, categorical: false };
        let moved = |by: f64| {
            let (a, b) = (wave(200, 0.0), wave(150, by));
            let found = Movements::new(a.view(), b.view(), 99, 3).of(&column, &array![1.0]);
            (found.distance, found.by_chance)
        };
        let (still, chance) = moved(0.0);
        assert!(still < chance, "{still} {chance}");
        let (far, chance) = moved(1.0);
        assert!(far > 3.0 * chance && (far - 1.0).abs() < 0.05, "{far} {chance}");
    }
}
