//! Credit against brute force: by the definition of jumps along a line, and over all coalitions.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use brenier_trees::{Description, Ensemble, Error, Link};
use common::{FEATURES, Kinds, NUMBERS, ensemble, rows, shapley};

const PLAIN: Kinds = Kinds { categories: false, missing: false, ties: false };
const TIED: Kinds = Kinds { categories: false, missing: false, ties: true };
const ALL: Kinds = Kinds { categories: true, missing: true, ties: false };
const ALL_TIED: Kinds = Kinds { categories: true, missing: true, ties: true };

/// Thresholds of the random ensembles with ties, and all of them for those without: read off the scores instead.
fn passing_times(from: &[f64], to: &[f64], thresholds: &[f64]) -> Vec<f64> {
    let mut times = vec![0.5];
    for feature in 0..NUMBERS {
        let (a, b) = (from[feature], to[feature]);
        for &threshold in thresholds {
            let time = (threshold - a) / (b - a);
            if time.is_finite() && (0.0..=1.0).contains(&time) {
                times.push((time * 2.0_f64.powi(40)).round() / 2.0_f64.powi(40));
            }
        }
    }
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// Where a feature is a little before and after a time. Categories and missing values change half way.
fn place(from: f64, to: f64, feature: usize, time: f64) -> f64 {
    let jumps = feature >= NUMBERS || from.is_nan() || to.is_nan();
    let half = if time < 0.5 { from } else { to };
    if jumps { half } else { from + time * (to - from) }
}

/// The credit of a line by its definition: at every time at which anything passes a threshold, the Shapley value of the
/// jump among all features, from a little before to a little after.
fn by_jumps(from: &[f64], to: &[f64], times: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut credit = vec![0.0; FEATURES];
    for (k, &time) in times.iter().enumerate() {
        let early = if k == 0 { -1.0 } else { 0.5 * (times[k - 1] + time) };
        let late = if k + 1 == times.len() { 2.0 } else { 0.5 * (times[k + 1] + time) };
        let at = |feature: usize, t: f64| match t {
            t if t < 0.0 => from[feature],
            t if t > 1.0 => to[feature],
            t => place(from[feature], to[feature], feature, t),
        };
        let part = shapley(FEATURES, |coalition| {
            let point: Vec<f64> =
                (0..FEATURES).map(|i| at(i, if coalition & (1 << i) != 0 { late } else { early })).collect();
            f(&point)
        });
        credit.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    credit
}

/// A grid of times that separates all passing times of an ensemble with random thresholds.
fn fine_times() -> Vec<f64> {
    let mut times: Vec<f64> = (0..4000).map(|k| (f64::from(k) + 0.37) / 4000.0).collect();
    times.push(0.5);
    times.sort_by(f64::total_cmp);
    times
}

fn near(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

#[test]
fn lines_have_the_credit_of_their_jumps_ties_categories_and_missing_values_included() {
    for seed in 0..60 {
        let kinds = [TIED, ALL_TIED][seed as usize % 2];
        // Zeros that are missing change half way as well, which `place` does not know: NaN alone here.
        let kinds_of_trees = Kinds { missing: false, ..kinds };
        let model = ensemble(seed, 6, 4, 2, kinds_of_trees, Link::Identity);
        let ends = rows(1000 + seed, 2, kinds);
        let (from, to) = ends.split_at(FEATURES);
        let times = passing_times(from, to, &[-1.0, -0.5, 0.0, 0.5, 1.0]);
        for output in 0..2 {
            let expected = by_jumps(from, to, &times, |x| model.scores(x).unwrap()[output]);
            let found = model.line_credit(from, to, &[output]).unwrap();
            assert!(near(&found, &expected, 1e-12), "{seed}\n{from:?}\n{to:?}\n{found:?}\n{expected:?}");
        }
    }
}

#[test]
fn lines_with_any_thresholds_agree_with_fine_steps() {
    for seed in 0..6 {
        let model = ensemble(seed, 3, 4, 1, PLAIN, Link::Identity);
        let ends = rows(2000 + seed, 2, PLAIN);
        let (from, to) = ends.split_at(FEATURES);
        let expected = by_jumps(from, to, &fine_times(), |x| model.scores(x).unwrap()[0]);
        let found = model.line_credit(from, to, &[0]).unwrap();
        assert!(near(&found, &expected, 1e-9), "{seed} {found:?} {expected:?}");
        assert!(found.iter().any(|v| *v != 0.0));
    }
}

#[test]
fn credit_sums_to_the_change_whatever_the_questions_and_the_way() {
    for seed in 0..40 {
        let kinds = [PLAIN, TIED, ALL, ALL_TIED][seed as usize % 4];
        let link = [Link::Identity, Link::Softmax, Link::Logistic { slope: 1.0 }][seed as usize % 3];
        let model = ensemble(seed, 20, 6, 3, kinds, link);
        let points = rows(3000 + seed, 5, kinds);
        let ends = [&points[..FEATURES], &points[4 * FEATURES..]].concat();
        let (scores, outputs) = (model.scores(&ends).unwrap(), model.predictions(&ends).unwrap());
        for output in 0..3 {
            let credit = model.path_credit(&points, output).unwrap();
            let change = scores[3 + output] - scores[output];
            assert!((credit.iter().sum::<f64>() - change).abs() < 1e-12, "{seed}");
            let credit = model.activated_path_credit(&points, output).unwrap();
            let change = outputs[3 + output] - outputs[output];
            assert!((credit.iter().sum::<f64>() - change).abs() < 1e-12, "{seed}");
        }
        // A polyline is its lines, one after another.
        let lines: Vec<f64> =
            points.chunks(FEATURES).collect::<Vec<_>>().windows(2).fold(vec![0.0; FEATURES], |sum, ends| {
                let part = model.line_credit(ends[0], ends[1], &[0]).unwrap();
                sum.iter().zip(part).map(|(a, b)| a + b).collect()
            });
        assert!(near(&model.path_credit(&points, 0).unwrap(), &lines, 1e-12));
    }
}

#[test]
fn probabilities_are_credited_jump_by_jump() {
    for seed in 0..4 {
        for link in [Link::Softmax, Link::Logistic { slope: 2.0 }, Link::Exp] {
            let model = ensemble(seed, 3, 3, 3, PLAIN, link);
            let ends = rows(4000 + seed, 2, PLAIN);
            let (from, to) = ends.split_at(FEATURES);
            let expected = by_jumps(from, to, &fine_times(), |x| model.predictions(x).unwrap()[1]);
            let found = model.activated_path_credit(&ends, 1).unwrap();
            assert!(near(&found, &expected, 1e-9), "{seed} {found:?} {expected:?}");
        }
    }
}

#[test]
fn features_that_pass_together_share_a_probability_as_they_share_its_logit() {
    use brenier_trees::{Branch, Tree};
    // Two stumps of different height that are passed at the same time.
    let stump = |feature, high| Tree {
        nodes: vec![Branch::at_most(feature, 0.5, 1, 2), Branch::leaf(0.0), Branch::leaf(high)],
        cover: vec![],
    };
    let link = Link::Logistic { slope: 1.0 };
    let trees = vec![stump(0, 1.0), stump(1, 3.0)];
    let model =
        Ensemble::new(Description { features: 2, raw: 1, trees, link, ..Description::default() }).unwrap();
    let credit = model.activated_path_credit(&[0.0, 0.0, 1.0, 1.0], 0).unwrap();
    let change = 1.0 / (1.0 + (-4.0_f64).exp()) - 0.5;
    assert!(near(&credit, &[change / 4.0, change * 3.0 / 4.0], 1e-7), "{credit:?}");
    assert!((credit[0] + credit[1] - change).abs() < 1e-15);
}

#[test]
fn interventional_values_are_those_of_all_coalitions() {
    for seed in 0..40 {
        let kinds = [PLAIN, ALL, ALL_TIED][seed as usize % 3];
        let model = ensemble(seed, 5, 5, 2, kinds, Link::Identity);
        let (inputs, background) = (rows(5000 + seed, 3, kinds), rows(6000 + seed, 4, kinds));
        let outputs = [0, 1, 1];
        let found = model.shapley_values(&inputs, &background, &outputs).unwrap();
        for (k, (row, found)) in inputs.chunks(FEATURES).zip(found.chunks(FEATURES)).enumerate() {
            let expected = shapley(FEATURES, |coalition| {
                let mean = |sum: f64, other: &[f64]| {
                    let mixed: Vec<f64> = (0..FEATURES)
                        .map(|i| if coalition & (1 << i) != 0 { row[i] } else { other[i] })
                        .collect();
                    sum + model.scores(&mixed).unwrap()[outputs[k]] / 4.0
                };
                background.chunks(FEATURES).fold(0.0, mean)
            });
            assert!(near(found, &expected, 1e-12), "{seed} {k}\n{found:?}\n{expected:?}");
        }
    }
}

#[test]
fn deep_trees_without_tables_have_the_same_values() {
    // With 20 features a way is longer than a table can be; the same trees over the first features alone have tables.
    use brenier_trees::{Branch, Tree};
    let features = 24;
    let mut nodes = Vec::new();
    for feature in 0..features {
        nodes.push(Branch::at_most(feature, 0.0, 2 * feature + 1, 2 * feature + 2));
        nodes.push(Branch::leaf(feature as f64 * 0.1));
    }
    nodes.push(Branch::leaf(5.0));
    // The cover halves on the way down.
    let mut cover = vec![0.0; nodes.len()];
    for feature in 0..features {
        cover[2 * feature] = 0.5_f64.powi(feature as i32);
        cover[2 * feature + 1] = 0.5_f64.powi(feature as i32 + 1);
    }
    cover[2 * features] = 0.5_f64.powi(features as i32);
    let trees = vec![Tree { nodes, cover }];
    let model = Ensemble::new(Description { features, raw: 1, trees, ..Description::default() }).unwrap();
    let row: Vec<f64> = (0..features).map(|i| if i < 6 || i % 5 == 0 { 1.0 } else { -1.0 }).collect();
    let background: Vec<f64> = (0..3 * features).map(|i| if (i * 7) % 11 < 6 { 1.0 } else { -1.0 }).collect();
    let found = model.shapley_values(&row, &background, &[0]).unwrap();
    let mean = model.scores(&background).unwrap().iter().sum::<f64>() / 3.0;
    let change = model.scores(&row).unwrap()[0] - mean;
    assert!((found.iter().sum::<f64>() - change).abs() < 1e-12);
    // Features beyond the first ten change nothing that this row or the background reaches, or little: brute force over
    // the ten alone, the others held at the row, agrees with a background that differs in those alone.
    let near_by: Vec<f64> = (0..features).map(|i| if i < 10 { background[i] } else { row[i] }).collect();
    let found = model.shapley_values(&row, &near_by, &[0]).unwrap();
    let expected = shapley(10, |coalition| {
        let mixed: Vec<f64> = (0..features)
            .map(|i| if i >= 10 || coalition & (1 << i) != 0 { row[i] } else { near_by[i] })
            .collect();
        model.scores(&mixed).unwrap()[0]
    });
    assert!(near(&found[..10], &expected, 1e-12), "{found:?} {expected:?}");
    let conditional = model.conditional_shapley_values(&row, &[0]).unwrap();
    let change = model.scores(&row).unwrap()[0] - model.conditional_mean(0).unwrap();
    assert!((conditional.iter().sum::<f64>() - change).abs() < 1e-12);
}

#[test]
fn conditional_values_are_those_of_all_coalitions_down_the_tree() {
    for seed in 0..30 {
        let kinds = [PLAIN, ALL][seed as usize % 2];
        let model = ensemble(seed, 1, 5, 1, kinds, Link::Identity);
        let row = rows(7000 + seed, 1, kinds);
        let found = model.conditional_shapley_values(&row, &[0]).unwrap();
        // The game at its simplest: the mean over the row's own values and none is asked of the model itself.
        let whole = model.scores(&row).unwrap()[0];
        let none = model.conditional_mean(0).unwrap();
        assert!((found.iter().sum::<f64>() - (whole - none)).abs() < 1e-12, "{seed}");
        let expected = shapley(FEATURES, |coalition| common_mean(seed, kinds, &row, coalition));
        assert!(near(&found, &expected, 1e-12), "{seed}\n{found:?}\n{expected:?}");
    }
}

/// The expectation of the random tree of this seed with only some features known, by its definition.
fn common_mean(seed: u64, kinds: Kinds, row: &[f64], coalition: u32) -> f64 {
    let tree = common::tree(seed, 5, 1, kinds);
    common::expectation(&tree, 0, row, coalition)
}

#[test]
fn results_are_the_same_bits_for_any_part() {
    let model = ensemble(3, 30, 6, 2, ALL, Link::Identity);
    let (inputs, background) = (rows(11, 150, ALL), rows(12, 20, ALL));
    let outputs: Vec<usize> = (0..150).map(|i| i % 2).collect();
    let scores = model.scores(&inputs).unwrap();
    let shap = model.shapley_values(&inputs, &background, &outputs).unwrap();
    let from = inputs[..FEATURES].repeat(150);
    let lines = model.line_credit(&from, &inputs, &outputs).unwrap();
    for i in [0, 7, 64, 149] {
        let row = &inputs[i * FEATURES..][..FEATURES];
        assert_eq!(model.scores(row).unwrap(), scores[2 * i..2 * i + 2]);
        let same = |found: Vec<f64>, all: &[f64]| assert_eq!(found, all[i * FEATURES..][..FEATURES]);
        same(model.shapley_values(row, &background, &[outputs[i]]).unwrap(), &shap);
        same(model.line_credit(&inputs[..FEATURES], row, &[outputs[i]]).unwrap(), &lines);
    }
}

#[test]
fn what_cannot_be_asked_is_said_in_one_sentence() {
    use brenier_trees::{Aggregate, Branch, Tree};
    let trees = vec![Tree { nodes: vec![Branch::leaf(1.0)], cover: vec![] }; 2];
    let description =
        Description { features: 2, raw: 1, trees, aggregate: Aggregate::Max, ..Description::default() };
    let model = Ensemble::new(description).unwrap();
    let message = |error: Error| error.to_string();
    let found = message(model.line_credit(&[0.0; 2], &[1.0; 2], &[0]).unwrap_err());
    assert!(
        found.contains("path credit is not defined for trees that are put together by MIN or MAX"),
        "{found}"
    );
    assert!(
        message(model.conditional_shapley_values(&[0.0; 2], &[0]).unwrap_err()).contains("give a background")
    );
    assert!(
        message(model.shapley_values(&[0.0; 2], &[], &[0]).unwrap_err()).contains("background without rows")
    );
    assert!(message(model.scores(&[0.0; 3]).unwrap_err()).contains("is 3"));
    assert!(message(model.path_credit(&[0.0; 2], 4).unwrap_err()).contains("at most should be 0, but is 4"));
}
