//! Transport between populations, against closed forms, scikit-learn and SciPy (`fixtures/transport`).

use std::fs::File;
use std::path::Path as FilePath;

use brenier::VelocityField;
use brenier::transport::{
    Gaussian, GaussianConfig, GaussianMap, MatchConfig, Rank, Shrinkage, match_rows, plan, solve_assignment,
};
use ndarray::{Array1, Array2, ArrayView2, Axis, array};
use ndarray_npy::NpzReader;
use proptest::prelude::*;

use crate::shared::normal;

/// A covariance with eigenvalues of different sizes.
fn covariance(dimension: usize, seed: u64) -> Array2<f64> {
    let m = normal(dimension, dimension, seed);
    m.dot(&m.t()) / dimension as f64 + 0.05 * Array2::<f64>::eye(dimension)
}

fn furthest(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The matrix of a map, from the images of the unit vectors.
fn matrix(map: &GaussianMap, from: &Gaussian) -> Array2<f64> {
    let d = from.features();
    let starts = Array2::<f64>::eye(d) + from.mean();
    let images = map.apply(starts.view()).unwrap();
    let zero = map.apply(from.mean().insert_axis(Axis(0))).unwrap();
    (images - &zero).reversed_axes()
}

struct Fixture(NpzReader<File>);

impl Fixture {
    fn open() -> Self {
        let path = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/transport/transport.npz");
        Fixture(NpzReader::new(File::open(path).unwrap()).unwrap())
    }

    fn matrix(&mut self, name: &str) -> Array2<f64> {
        self.0.by_name(name).unwrap()
    }

    fn number(&mut self, name: &str) -> f64 {
        let numbers: Array1<f64> = self.0.by_name(name).unwrap();
        numbers[0]
    }
}

#[test]
fn shrinkage_is_what_scikit_learn_says() {
    let mut fixture = Fixture::open();
    for sample in ["many", "few", "heavy", "constant"] {
        let rows = fixture.matrix(&format!("{sample}_rows"));
        for (name, shrinkage) in [("ledoit_wolf", Shrinkage::LedoitWolf), ("oas", Shrinkage::Oas)] {
            let config = GaussianConfig { shrinkage, rank: Rank::Full };
            let fitted = Gaussian::fit(rows.view(), &config).unwrap();
            let amount = fixture.number(&format!("{sample}_{name}_amount"));
            assert!((fitted.shrinkage() - amount).abs() < 1e-12, "{sample} {name} {amount}");
            let expected = fixture.matrix(&format!("{sample}_{name}"));
            assert!(furthest(&fitted.covariance(), &expected) < 1e-12, "{sample} {name}");
        }
    }
}

#[test]
fn the_map_is_the_one_that_matrix_roots_give() {
    let mut fixture = Fixture::open();
    let means = fixture.matrix("map_means");
    let a = Gaussian::new(means.row(0), fixture.matrix("map_from").view()).unwrap();
    let b = Gaussian::new(means.row(1), fixture.matrix("map_to").view()).unwrap();
    let map = GaussianMap::between(&a, &b).unwrap();
    assert!(furthest(&matrix(&map, &a), &fixture.matrix("map_matrix")) < 1e-10);
    assert!((map.squared_distance() - fixture.number("map_squared_distance")).abs() < 1e-10);
    let back = GaussianMap::between(&b, &a).unwrap();
    assert!((map.squared_distance() - back.squared_distance()).abs() < 1e-10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_map_pushes_one_gaussian_to_the_other_and_back(d in 1_usize..12, seed in 0_u64..1000) {
        let means = normal(2, d, seed);
        let a = Gaussian::new(means.row(0), covariance(d, seed + 1).view()).unwrap();
        let b = Gaussian::new(means.row(1), covariance(d, seed + 2).view()).unwrap();
        let map = GaussianMap::between(&a, &b).unwrap();
        let m = matrix(&map, &a);
        prop_assert!(furthest(&m.dot(&a.covariance()).dot(&m.t()), &b.covariance()) < 1e-10);
        prop_assert!(furthest(&m, &m.t().to_owned()) < 1e-10);
        prop_assert!(map.gains().0.iter().all(|&g| g > 0.0));
        let x = normal(7, d, seed + 3);
        let there = map.apply(x.view()).unwrap();
        prop_assert!(furthest(&map.invert(there.view()).unwrap(), &x) < 1e-8);
        // The cost of the map is the distance: E |T(x) - x|^2 = |m_B - m_A|^2 + tr (G - I) S_A (G - I).
        let excess = &m - &Array2::<f64>::eye(d);
        let apart = &b.mean() - &a.mean();
        let cost = apart.dot(&apart) + excess.dot(&a.covariance()).dot(&excess).diag().sum();
        prop_assert!((cost - map.squared_distance()).abs() < 1e-9);
        // From a population to itself nothing moves.
        let same = GaussianMap::between(&a, &a).unwrap();
        prop_assert!(furthest(&same.apply(x.view()).unwrap(), &x) < 1e-9);
        prop_assert!(same.squared_distance() < 1e-9);
    }

    #[test]
    fn few_directions_give_the_same_map_as_the_whole_matrix(rows in 3_usize..9, seed in 0_u64..1000) {
        // Fewer rows than features: the low-rank form is exact.
        let d = 20;
        let (x, y) = (normal(rows, d, seed), normal(rows + 2, d, seed + 1) * 2.0 + 1.0);
        let fit = |z: &Array2<f64>, rank| {
            Gaussian::fit(z.view(), &GaussianConfig { shrinkage: Shrinkage::Fixed { amount: 0.1 }, rank }).unwrap()
        };
        let low = Rank::AtMost { directions: 12 };
        let (a, b) = (fit(&x, low), fit(&y, low));
        prop_assert_eq!(a.directions(), rows - 1);
        let (whole_a, whole_b) = (fit(&x, Rank::Full), fit(&y, Rank::Full));
        prop_assert!(furthest(&a.covariance(), &whole_a.covariance()) < 1e-12);
        let map = GaussianMap::between(&a, &b).unwrap();
        let whole = GaussianMap::between(&whole_a, &whole_b).unwrap();
        prop_assert!(map.gains().1.is_some());
        let z = normal(5, d, seed + 2);
        prop_assert!(furthest(&map.apply(z.view()).unwrap(), &whole.apply(z.view()).unwrap()) < 1e-9);
        prop_assert!(furthest(&map.invert(z.view()).unwrap(), &whole.invert(z.view()).unwrap()) < 1e-9);
        prop_assert!((map.squared_distance() - whole.squared_distance()).abs() < 1e-9);
        let mixed = GaussianMap::between(&a, &whole_b).unwrap();
        prop_assert!(furthest(&mixed.apply(z.view()).unwrap(), &whole.apply(z.view()).unwrap()) < 1e-9);
    }
}

#[test]
fn commuting_covariances_are_stretched_along_common_axes() {
    let turn = {
        let (c, s) = (0.6, 0.8);
        array![[c, -s], [s, c]]
    };
    let with = |a: f64, b: f64| turn.dot(&array![[a, 0.0], [0.0, b]]).dot(&turn.t());
    let a = Gaussian::new(array![0.0, 0.0].view(), with(1.0, 4.0).view()).unwrap();
    let b = Gaussian::new(array![1.0, -1.0].view(), with(9.0, 1.0).view()).unwrap();
    let map = GaussianMap::between(&a, &b).unwrap();
    assert!(furthest(&matrix(&map, &a), &with(3.0, 0.5)) < 1e-12);
    assert!((map.squared_distance() - (2.0 + 4.0 + 1.0)).abs() < 1e-12);
}

#[test]
fn the_velocity_field_moves_rows_along_the_geodesic() {
    let d = 5;
    let a = Gaussian::new(normal(1, d, 1).row(0), covariance(d, 2).view()).unwrap();
    let b = Gaussian::new(normal(1, d, 3).row(0), covariance(d, 4).view()).unwrap();
    let map = GaussianMap::between(&a, &b).unwrap();
    let x = normal(4, d, 5);
    let step = 1e-5;
    for t in [0.0 + step, 0.3, 0.9, 1.0 - step] {
        let here = map.geodesic(x.view(), t).unwrap();
        let ahead = map.geodesic(x.view(), t + step).unwrap();
        let behind = map.geodesic(x.view(), t - step).unwrap();
        let velocity = map.velocity(here.view(), &[t; 4]).unwrap();
        assert!(furthest(&velocity, &((ahead - behind) / (2.0 * step))) < 1e-7, "{t}");
        // Straight: the velocity is the whole way, at all times.
        assert!(furthest(&velocity, &(&x - &map.invert(x.view()).unwrap())) < 1e-9);
    }
    assert!(map.normal_coordinates(x.view()).is_none());
}

#[test]
fn units_change_what_is_far_and_a_feature_without_one_keeps_its_value() {
    let unit = array![2.0, 0.0, 0.5];
    let (x, y) = (normal(40, 3, 1), normal(40, 3, 2) * 1.5 + 1.0);
    let per_unit = |z: &Array2<f64>| z * &unit.mapv(|u: f64| if u > 0.0 { 1.0 / u } else { 0.0 });
    let config = GaussianConfig { shrinkage: Shrinkage::Fixed { amount: 0.01 }, rank: Rank::Full };
    let (a, b) = (per_unit(&x), per_unit(&y));
    let fit = |z: &Array2<f64>| Gaussian::fit(z.view(), &config).unwrap();
    let plain = GaussianMap::between(&fit(&a), &fit(&b)).unwrap();
    let map = plain.clone().with_units(unit.view()).unwrap();
    let (there, plainly) = (map.apply(x.view()).unwrap(), plain.apply(a.view()).unwrap());
    for (i, u) in unit.iter().enumerate() {
        for row in 0..40 {
            let expected = if *u > 0.0 { u * plainly[[row, i]] } else { x[[row, i]] };
            assert!((there[[row, i]] - expected).abs() < 1e-12);
        }
    }
    assert!(furthest(&map.invert(there.view()).unwrap(), &x) < 1e-10);
    let velocity = map.velocity(map.geodesic(there.view(), 0.4).unwrap().view(), &[0.4; 40]).unwrap();
    assert!(furthest(&velocity, &(&there - &x)) < 1e-10);
    assert!(plain.with_units(array![1.0, -1.0, 1.0].view()).is_err());
}

#[test]
fn many_features_are_fitted_by_their_leading_directions() {
    // Variances 1/j^2 in a turned basis: the first directions carry nearly all.
    let (d, rows) = (60, 400);
    let turn = normal(d, d, 1);
    let scale = Array1::from_shape_fn(d, |j| 1.0 / (1.0 + j as f64).powi(2));
    let x = (normal(rows, d, 2) * &scale).dot(&turn);
    let y = (normal(rows, d, 3) * &scale).dot(&turn) + 0.3;
    let fit = |z: &Array2<f64>, rank| {
        Gaussian::fit(z.view(), &GaussianConfig { shrinkage: Shrinkage::LedoitWolf, rank }).unwrap()
    };
    let low = |z| fit(z, Rank::AtMost { directions: 12 });
    let (a, b) = (low(&x), low(&y));
    assert_eq!(a.directions(), 12);
    assert!((a.variances().sum() - fit(&x, Rank::Full).variances().sum()).abs() < 1e-9);
    let map = GaussianMap::between(&a, &b).unwrap();
    let whole = GaussianMap::between(&fit(&x, Rank::Full), &fit(&y, Rank::Full)).unwrap();
    let (found, exact) = (map.apply(x.view()).unwrap(), whole.apply(x.view()).unwrap());
    let moved = (&exact - &x).mapv(|v| v * v).sum();
    let missed = (&exact - &found).mapv(|v| v * v).sum();
    assert!(missed < 0.01 * moved, "{missed} {moved}");
    assert!(furthest(&map.invert(found.view()).unwrap(), &x) < 1e-9);
}

#[test]
fn populations_that_cannot_be_fitted_are_refused() {
    let config = GaussianConfig::default();
    let message = |rows: ArrayView2<f64>, config: &GaussianConfig| {
        let a = Gaussian::fit(rows, config);
        a.and_then(|a| GaussianMap::between(&a, &a)).unwrap_err().to_string()
    };
    assert!(message(normal(1, 3, 0).view(), &config).contains("two rows"));
    assert!(message(Array2::ones((5, 3)).view(), &config).contains("all the same"));
    let mut bad = normal(5, 3, 0);
    bad[[3, 1]] = f64::NAN;
    assert!(message(bad.view(), &config).contains("example 3"));
    let none = GaussianConfig { shrinkage: Shrinkage::Fixed { amount: 0.0 }, rank: Rank::Full };
    assert!(message(normal(3, 5, 0).view(), &none).contains("positive definite"));
    let none = GaussianConfig { rank: Rank::AtMost { directions: 4 }, ..none };
    assert!(message(normal(3, 5, 0).view(), &none).contains("positive definite"));
    let beyond = GaussianConfig { shrinkage: Shrinkage::Fixed { amount: 1.5 }, rank: Rank::Full };
    assert!(message(normal(3, 5, 0).view(), &beyond).contains("between 0 and 1"));
}

#[test]
fn assignments_and_plans_cost_what_scipy_says() {
    let mut fixture = Fixture::open();
    for name in ["distances", "whole"] {
        let cost = fixture.matrix(&format!("assign_{name}"));
        let found = solve_assignment(cost.view()).unwrap();
        let proof = found.optimality(cost.view());
        assert!((proof.cost - fixture.number(&format!("assign_{name}_total"))).abs() < 1e-9, "{name}");
        assert!(proof.relative_gap() < 1e-13, "{name} {proof:?}");
    }
    for name in ["wide", "tall"] {
        let cost = fixture.matrix(&format!("plan_{name}"));
        let (n, k) = cost.dim();
        let found = plan(cost.view(), &vec![k as u64; n], &vec![n as u64; k]).unwrap();
        let proof = found.optimality(cost.view());
        assert!((proof.cost - fixture.number(&format!("plan_{name}_mean"))).abs() < 1e-9, "{name}");
        assert!(proof.relative_gap() < 1e-12, "{name} {proof:?}");
    }
}

#[test]
fn rows_find_their_images_under_a_monotone_map_of_each_column() {
    // Each column by its own increasing map: the plan is optimal, whatever the dependence of columns.
    let x = normal(300, 4, 1).dot(&covariance(4, 2));
    let y = Array2::from_shape_fn(x.raw_dim(), |(i, j)| match j {
        0 => x[[i, 0]] + 3.0,
        1 => x[[i, 1]].exp(),
        2 => x[[i, 2]].max(0.5 * x[[i, 2]]),
        _ => x[[i, 3]],
    });
    let order: Vec<usize> = (0..300).map(|i| i * 7 % 300).collect();
    let shuffled = y.select(Axis(0), &order);
    let matching = match_rows(x.view(), shuffled.view(), &MatchConfig::default()).unwrap();
    assert_eq!(matching.blocks, 1);
    assert!(matching.pairs.iter().all(|pair| order[pair.to] == pair.from));
    assert!(matching.optimality.relative_gap() < 1e-12);
}

#[test]
fn weights_of_a_matching_sum_to_those_of_the_rows_whatever_the_sizes() {
    let config = MatchConfig { exact: 40, block: 15, seed: 3 };
    for (n, k, blocks) in [(30, 30, 1), (20, 33, 1), (61, 61, 5), (50, 23, 4), (47, 100, 7)] {
        let (x, y) = (normal(n, 3, 1), normal(k, 3, 2) + 0.5);
        let matching = match_rows(x.view(), y.view(), &config).unwrap();
        assert_eq!(matching.blocks, blocks, "{n} {k}");
        let (mut of_x, mut of_y) = (vec![0.0; n], vec![0.0; k]);
        for pair in &matching.pairs {
            of_x[pair.from] += pair.weight;
            of_y[pair.to] += pair.weight;
        }
        assert!(of_x.iter().all(|w| (w * n as f64 - 1.0).abs() < 1e-12), "{n} {k} {of_x:?}");
        assert!(of_y.iter().all(|w| (w * k as f64 - 1.0).abs() < 1e-12), "{n} {k}");
        let cost: f64 = matching
            .pairs
            .iter()
            .map(|p| p.weight * (&x.row(p.from) - &y.row(p.to)).mapv(|v| v * v).sum())
            .sum();
        assert!((cost - matching.optimality.cost).abs() < 1e-12);
        assert!(matching.optimality.relative_gap() < 1e-11);
        let again = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let again = again.install(|| match_rows(x.view(), y.view(), &config).unwrap());
        assert_eq!(again, matching);
    }
    let none = Array2::zeros((0, 3));
    assert!(match_rows(none.view(), normal(3, 3, 1).view(), &config).is_err());
}
