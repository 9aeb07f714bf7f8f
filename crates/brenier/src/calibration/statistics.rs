//! The numbers by which a trace is known.
//!
//! | of | numbers |
//! |---|---|
//! | the reference | its energy; for images the energy in nine bands of frequency for each colour, the mean of each colour, how alike neighbouring pixels are; the weight of its tails |
//! | the way | the speed at eleven times; how much longer than the straight line it is |
//! | the input | means, least, greatest, the weight of its tails |
//!
//! All of them in the flow's own units. Colours are rotated first: brightness, and two differences. Short rows of a table
//! have each column of the reference and of the input by itself in place of the bands.

use ndarray::{Array2, ArrayView1, ArrayView2, s};

/// Times at which the speed is taken: 0, 0.1, ... 1.
pub const SPEEDS: usize = 11;
/// The edges of the bands, as parts of the highest frequency.
const EDGES: [f64; 10] = [0.0, 0.02, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 1.5];
/// Columns up to which each is looked at by itself.
const COLUMNS: usize = 24;
/// What is added before a logarithm is taken.
const TINY: f64 = 1e-6;

/// What there is to see of a trace, in the flow's own units.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Where the trace ends at time 0.
    pub reference: ArrayView1<'a, f64>,
    /// The input.
    pub input: ArrayView1<'a, f64>,
    /// The squared speed per feature at [`SPEEDS`] times.
    pub speeds: &'a [f64],
    /// Length over distance.
    pub straightness: f64,
}

/// The statistics of a trace, each with its name.
pub fn trace_statistics(shape: &[usize], seen: &Seen) -> (Vec<f64>, Vec<String>) {
    let mut list = List::default();
    let (reference, input) = (seen.reference, seen.input);
    list.push("the reference's energy", (mean_square(reference) + TINY).ln());
    let image = planes(shape);
    match image {
        Some(sizes) => of_image(&mut list, sizes, seen),
        None if reference.len() <= COLUMNS => {
            for (j, value) in reference.iter().enumerate() {
                list.push(&format!("feature {j} of the reference"), *value);
            }
            for (j, value) in input.iter().enumerate() {
                list.push(&format!("feature {j} of the input"), *value);
            }
        }
        None => {
            list.push("the reference's mean", mean(reference));
            list.push("the input's mean", mean(input));
            list.push("the input's energy", (mean_square(input) + TINY).ln());
        }
    }
    list.push("the tails of the reference", log_kurtosis(reference));
    for (k, speed) in seen.speeds.iter().enumerate() {
        list.push(&format!("the speed at time {:.1}", k as f64 / (SPEEDS - 1) as f64), (speed + TINY).ln());
    }
    list.push("the bend of the way", ((seen.straightness - 1.0).max(0.0) + TINY).ln());
    if image.is_some() || reference.len() > COLUMNS {
        list.push("the input's least value", input.iter().copied().fold(f64::INFINITY, f64::min));
        list.push("the input's greatest value", input.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        list.push("the tails of the input", log_kurtosis(input));
    }
    (list.values, list.names)
}

/// The names of the statistics of inputs of this shape.
pub fn statistic_names(shape: &[usize]) -> Vec<String> {
    let zeros = ndarray::Array1::zeros(shape.iter().product::<usize>());
    let seen =
        Seen { reference: zeros.view(), input: zeros.view(), speeds: &[0.0; SPEEDS], straightness: 1.0 };
    trace_statistics(shape, &seen).1
}

#[derive(Default)]
struct List {
    values: Vec<f64>,
    names: Vec<String>,
}

impl List {
    fn push(&mut self, name: &str, value: f64) {
        self.values.push(value);
        self.names.push(name.to_owned());
    }
}

/// Channels, height and width of a shape that is an image's.
fn planes(shape: &[usize]) -> Option<[usize; 3]> {
    match *shape {
        [height, width] if height >= 4 && width >= 4 => Some([1, height, width]),
        [channels @ (1 | 3), height, width] if height >= 4 && width >= 4 => Some([channels, height, width]),
        _ => None,
    }
}

fn of_image(list: &mut List, [channels, height, width]: [usize; 3], seen: &Seen) {
    let reference = rotated(seen.reference, channels);
    let (down, across) = (cosines(height), cosines(width));
    for (c, plane) in reference.rows().into_iter().enumerate() {
        let Ok(plane) = plane.into_shape_with_order((height, width)) else { continue };
        let spectrum = down.dot(&plane).dot(&across.t());
        for (band, energy) in in_bands(spectrum.view()).into_iter().enumerate() {
            list.push(
                &format!("band {band} of the reference's {}", colour(c, channels)),
                (energy + TINY).ln(),
            );
        }
        list.push(
            &format!("the mean of the reference's {}", colour(c, channels)),
            mean(plane.flatten().view()),
        );
    }
    let folded = reference.into_shape_with_order((channels, height, width));
    if let Ok(folded) = folded {
        let energy: f64 = folded.iter().map(|v| v * v).sum::<f64>() + TINY;
        let below = (&folded.slice(s![.., 1.., ..]) * &folded.slice(s![.., ..height - 1, ..])).sum() / energy;
        let beside = (&folded.slice(s![.., .., 1..]) * &folded.slice(s![.., .., ..width - 1])).sum() / energy;
        list.push("likeness of pixels below each other", below);
        list.push("likeness of pixels beside each other", beside);
    }
    for (c, plane) in rotated(seen.input, channels).rows().into_iter().enumerate() {
        list.push(&format!("the mean of the input's {}", colour(c, channels)), mean(plane));
    }
}

fn colour(channel: usize, channels: usize) -> &'static str {
    match (channels, channel) {
        (1, _) => "pixels",
        (_, 0) => "brightness",
        (_, 1) => "first colour",
        _ => "second colour",
    }
}

/// Channels as rows; three of them as brightness, red against blue, and green against both.
fn rotated(flat: ArrayView1<f64>, channels: usize) -> Array2<f64> {
    let planes = flat.to_shape((channels, flat.len() / channels)).map(|planes| planes.to_owned());
    let planes = planes.unwrap_or_else(|_| Array2::zeros((channels, 0)));
    if channels != 3 {
        return planes;
    }
    let (a, b, c) = (1.0 / 3f64.sqrt(), 1.0 / 2f64.sqrt(), 1.0 / 6f64.sqrt());
    ndarray::arr2(&[[a, a, a], [b, 0.0, -b], [c, -2.0 * c, c]]).dot(&planes)
}

/// The orthonormal cosine transform of this length as a matrix.
fn cosines(length: usize) -> Array2<f64> {
    let n = length as f64;
    Array2::from_shape_fn((length, length), |(k, i)| {
        let size = if k == 0 { (1.0 / n).sqrt() } else { (2.0 / n).sqrt() };
        size * (std::f64::consts::PI * (i as f64 + 0.5) * k as f64 / n).cos()
    })
}

/// The mean energy in each band.
fn in_bands(spectrum: ArrayView2<f64>) -> Vec<f64> {
    let (height, width) = spectrum.dim();
    let mut sums = vec![(0.0, 0.0_f64); EDGES.len() - 1];
    for ((i, j), value) in spectrum.indexed_iter() {
        let place = (i as f64 / height as f64).hypot(j as f64 / width as f64);
        let band = EDGES[1..].iter().position(|&edge| place < edge).unwrap_or(EDGES.len() - 2);
        sums[band].0 += value * value;
        sums[band].1 += 1.0;
    }
    sums.into_iter().map(|(sum, count)| sum / count.max(1.0)).collect()
}

fn mean(values: ArrayView1<f64>) -> f64 {
    values.mean().unwrap_or(0.0)
}

fn mean_square(values: ArrayView1<f64>) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64
}

fn log_kurtosis(values: ArrayView1<f64>) -> f64 {
    let centred = values.to_owned() - mean(values);
    let square = mean_square(centred.view());
    let fourth = mean_square(centred.mapv(|v| v * v).view());
    ((fourth + TINY) / (square * square + TINY)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array1;

    fn seen<'a>(reference: &'a Array1<f64>, input: &'a Array1<f64>, speeds: &'a [f64]) -> Seen<'a> {
        Seen { reference: reference.view(), input: input.view(), speeds, straightness: 1.02 }
    }

    #[test]
    fn images_have_as_many_statistics_as_the_page_says() {
        let speeds = [1.0; SPEEDS];
        for (shape, count) in [(vec![1, 8, 8], 30), (vec![3, 8, 8], 52), (vec![5], 1 + 10 + 1 + 11 + 1)] {
            let x = Array1::from_shape_fn(shape.iter().product::<usize>(), |i| (i as f64 * 0.7).sin());
            let (values, names) = trace_statistics(&shape, &seen(&x, &x, &speeds));
            assert_eq!((values.len(), names.len()), (count, count), "{shape:?}");
            let mut unique = names.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), names.len());
        }
    }

    #[test]
    fn the_cosine_transform_keeps_lengths_and_a_wave_is_in_one_band() {
        let t = cosines(12);
        assert!((t.dot(&t.t()) - Array2::<f64>::eye(12)).iter().all(|v| v.abs() < 1e-12));
        let wave = Array2::from_shape_fn((12, 12), |(i, _)| t[[6, i]]);
        let bands = in_bands(t.dot(&wave).dot(&t.t()).view());
        // Frequency 6 of 12 down, none across: 0.5, between 0.45 and 0.6.
        assert!(bands.iter().enumerate().all(|(band, energy)| (band == 5) == (*energy > 1e-9)), "{bands:?}");
    }

    #[test]
    fn normal_tails_weigh_three() {
        let two_points = Array1::from_shape_fn(64, |i| if i % 2 == 0 { 1.0 } else { -1.0 });
        assert!(log_kurtosis(two_points.view()).abs() < 1e-5);
    }
}
