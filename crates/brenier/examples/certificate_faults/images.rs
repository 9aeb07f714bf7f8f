//! Faults of the input: what is done to images before they are explained.

use brenier::{OnnxPredictor, Score};
use ndarray::Array2;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::bench::Bench;

pub(crate) fn faults(bench: &Bench, classifier: Option<&OnnxPredictor>, others: Vec<(String, Array2<f64>)>) {
    let mut all = others;
    if let Some(classifier) = classifier {
        for size in [2.0, 8.0] {
            all.push((format!("FGSM {size}/255"), attacked(bench, classifier, size / 255.0)));
        }
    }
    all.extend(changed(bench).into_iter().map(|(name, rows)| (name.to_string(), rows)));
    let field = bench.sound();
    for (name, inputs) in all {
        bench.tell(&name, &bench.judged(&field, &inputs, None), inputs.nrows());
    }
}

/// A step against the label along the sign of the gradient (Goodfellow, Shlens, Szegedy, 2015).
fn attacked(bench: &Bench, classifier: &OnnxPredictor, size: f64) -> Array2<f64> {
    let (_, gradients) = Score::gradients(classifier, bench.inputs.view(), &bench.labels).unwrap();
    let mut moved = &bench.inputs - &(size * gradients.mapv(f64::signum));
    moved.mapv_inplace(|v| v.clamp(0.0, 1.0));
    moved
}

fn changed(bench: &Bench) -> Vec<(&'static str, Array2<f64>)> {
    let inputs = &bench.inputs;
    let [channels, height, width] = bench.shape[..] else { panic!("images have three sizes") };
    let at = |c: usize, i: usize, j: usize| (c * height + i) * width + j;
    let moved = |place: &dyn Fn(usize, usize, usize) -> usize| {
        let mut out = inputs.clone();
        for c in 0..channels {
            for i in 0..height {
                for j in 0..width {
                    out.column_mut(at(c, i, j)).assign(&inputs.column(place(c, i, j)));
                }
            }
        }
        out
    };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut noise = |size: f64| {
        inputs.mapv(|v| {
            let e: f64 = StandardNormal.sample(&mut rng);
            (v + size * e).clamp(0.0, 1.0)
        })
    };
    let (soft, loud) = (noise(0.05), noise(0.3));
    let mut order: Vec<usize> = (0..height * width).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(6));
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut all: Vec<(&'static str, Array2<f64>)> = vec![
        ("half brightness", inputs * 0.5),
        ("0.8 brightness", inputs * 0.8),
        ("contrast 0.7", (inputs - 0.5) * 0.7 + 0.5),
        ("inverted", 1.0 - inputs),
        ("0 to 255", inputs * 255.0),
        ("noise 0.05", soft),
        ("noise 0.3", loud),
        ("nothing but noise", inputs.mapv(|_| rng.random::<f64>())),
        ("grey everywhere", inputs.mapv(|_| 0.5)),
        ("pixels permuted", moved(&|c, i, j| c * height * width + order[i * width + j])),
        ("blurred", blurred(inputs, [channels, height, width])),
        ("16 levels", inputs.mapv(|v| (v * 15.0).round() / 15.0)),
        ("upside down", moved(&|c, i, j| at(c, height - 1 - i, j))),
        ("mirrored", moved(&|c, i, j| at(c, i, width - 1 - j))),
        ("moved by 4 pixels", moved(&|c, i, j| at(c, (i + 4) % height, (j + 4) % width))),
    ];
    if channels == 3 {
        all.push(("channels shuffled", moved(&|c, i, j| at((c + 1) % 3, i, j))));
    }
    all
}

/// Each pixel the mean of itself and its eight neighbours.
fn blurred(inputs: &Array2<f64>, [channels, height, width]: [usize; 3]) -> Array2<f64> {
    let mut out = Array2::zeros(inputs.raw_dim());
    for (mut to, from) in out.rows_mut().into_iter().zip(inputs.rows()) {
        for c in 0..channels {
            for i in 0..height {
                for j in 0..width {
                    let (mut sum, mut count) = (0.0, 0.0);
                    for y in i.saturating_sub(1)..(i + 2).min(height) {
                        for x in j.saturating_sub(1)..(j + 2).min(width) {
                            sum += from[(c * height + y) * width + x];
                            count += 1.0;
                        }
                    }
                    to[(c * height + i) * width + j] = sum / count;
                }
            }
        }
    }
    out
}
