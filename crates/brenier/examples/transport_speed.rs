//! How long transport between populations takes without training.
//!
//!     cargo run --release --example transport_speed [assign | gaussian | all]
//!
//! Rows stand for images of 3,072 features: smooth fields (sums of cosines whose strength falls with frequency) plus a
//! little noise, which gives covariances whose eigenvalues fall as those of photographs do. Times are wall clock.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

use brenier::transport::{
    Gaussian, GaussianConfig, GaussianMap, Rank, Shrinkage, plan, solve_assignment, squared_distances,
};
use ndarray::{Array2, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Images `[rows, 3 * 32 * 32]` (or fewer features, cut off).
fn images(rows: usize, features: usize, seed: u64) -> Array2<f64> {
    let side = 32;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = |shape| Array2::<f64>::zeros(shape).mapv(|_| StandardNormal.sample(&mut rng));
    let wave = |k: usize, x: usize| (std::f64::consts::PI * k as f64 * (x as f64 + 0.5) / side as f64).cos();
    let slope = 1.0 + 0.1 * (seed % 3) as f64;
    let patterns = Array2::from_shape_fn((side * side, side * side), |(pattern, pixel)| {
        let (k, l, y, x) = (pattern / side, pattern % side, pixel / side, pixel % side);
        wave(k, y) * wave(l, x) / (1.0 + (k * k + l * l) as f64).powf(slope) * 4.0
    });
    let mut result = Array2::zeros((rows, features));
    for first in (0..features).step_by(side * side) {
        let last = (first + side * side).min(features);
        let plane = normal((rows, side * side)).dot(&patterns.slice(s![.., ..last - first]));
        result.slice_mut(s![.., first..last]).assign(&plane);
    }
    // Channels go together.
    for first in (side * side..features).step_by(side * side) {
        let last = (first + side * side).min(features);
        let gray = result.slice(s![.., ..last - first]).to_owned();
        result.slice_mut(s![.., first..last]).zip_mut_with(&gray, |c, g| *c = 0.3 * *c + g);
    }
    let noise = 0.02 * normal((rows, features));
    result + noise
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what:58} {:8.2} s", start.elapsed().as_secs_f64());
    result
}

fn assignments() {
    for count in [256, 1024, 2048, 4096] {
        let (x, y) = (images(count, 3072, 1), images(count, 3072, 2));
        let cost = timed(&format!("{count} images, squared distances"), || {
            squared_distances(x.view(), y.view()).unwrap()
        });
        let found = timed(&format!("{count} images, assignment"), || solve_assignment(cost.view()).unwrap());
        let proof = found.optimality(cost.view());
        println!("    cost {:.4}, proved to {:.1e} of it", proof.cost / count as f64, proof.relative_gap());
        if count <= 2048 {
            let cut = count * 9 / 10;
            let cost = cost.slice(s![.., ..cut]);
            let found = timed(&format!("{count} and {cut} images, plan"), || {
                plan(cost, &vec![cut as u64; count], &vec![count as u64; cut]).unwrap()
            });
            println!(
                "    {} pairs, proved to {:.1e}",
                found.pairs.len(),
                found.optimality(cost).relative_gap()
            );
        }
    }
}

fn gaussians() {
    for (features, rows, rank) in [
        (784, 6000, Rank::Auto),
        (1024, 6000, Rank::Auto),
        (784, 6000, Rank::AtMost { directions: 256 }),
        (3072, 10_000, Rank::AtMost { directions: 128 }),
        (3072, 10_000, Rank::Auto),
        (3072, 10_000, Rank::AtMost { directions: 512 }),
    ] {
        let (x, y) = (images(rows, features, 1), images(rows, features, 2));
        let config = GaussianConfig { shrinkage: Shrinkage::LedoitWolf, rank };
        let name = format!("{features} features, {rows} rows, {rank:?}");
        let fit = |z: &Array2<f64>| Gaussian::fit(z.view(), &config).unwrap();
        let a = timed(&format!("{name}: fit"), || fit(&x));
        let b = fit(&y);
        let map = timed(&format!("{name}: map"), || GaussianMap::between(&a, &b).unwrap());
        let back =
            timed(&format!("{name}: 1,000 rows carried"), || map.invert(y.slice(s![..1000, ..])).unwrap());
        let mean = |rows: Array2<f64>| rows.mapv(|v| v * v).sum() / rows.nrows() as f64;
        println!(
            "    W2^2 {:.3}, rows moved by {:.3} (squared), {} directions, shrunk by {:.4}",
            map.squared_distance(),
            mean(&back - &y.slice(s![..1000, ..])),
            a.directions(),
            a.shrinkage()
        );
    }
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_else(|| "all".into());
    if what != "gaussian" {
        assignments();
    }
    if what != "assign" {
        gaussians();
    }
}
