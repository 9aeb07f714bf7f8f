//! Superpixels by simple linear iterative clustering (SLIC): k-means in colour and place.
//!
//! ```text
//! D^2 = |colour - colour_k|^2 + compactness^2 |place - place_k|^2 / S^2,     S = sqrt(H W / segments)
//! ```
//!
//! Every pixel joins the nearest centre within a window of 2 S, centres move to the mean of their pixels, and
//! what is left in pieces is put together at the end. (Achanta et al., "SLIC Superpixels Compared to
//! State-of-the-art Superpixel Methods", 2012.) The crates that offer SLIC take 8-bit RGB images, while a model's
//! input has any number of channels in any scale. So colours here are the input's own channels, scaled together
//! to the range from 0 to 1. There is nothing random in it.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Settings of the superpixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Slic {
    /// About how many superpixels.
    pub segments: usize,
    /// What the distance of one superpixel's width counts for, in units of the image's colour range. Large
    /// values give squares, small ones follow edges.
    pub compactness: f64,
    /// How often centres move.
    pub iterations: usize,
}

impl Default for Slic {
    /// 50 superpixels, compactness 0.1, 10 iterations.
    fn default() -> Self {
        Self { segments: 50, compactness: 0.1, iterations: 10 }
    }
}

/// A centre: its place in rows and columns, and its colour.
struct Centre {
    row: f64,
    column: f64,
    colour: Vec<f64>,
}

impl Slic {
    /// The superpixel of every pixel of an image `[C, H, W]`, numbered from 0 from left to right and top to
    /// bottom by their first pixels.
    pub(super) fn labels(&self, image: ArrayView1<f64>, shape: [usize; 3]) -> Result<Vec<usize>> {
        let [channels, rows, columns] = shape;
        if self.segments == 0 || self.iterations == 0 {
            return Err(Error::Zero { what: "the number of superpixels and of their iterations" });
        }
        if !(self.compactness > 0.0 && self.compactness.is_finite()) {
            return Err(Error::Setting {
                name: "the compactness of superpixels",
                value: self.compactness.to_string(),
                needs: "it is a positive number",
                hint: "0.1 is the default".into(),
            });
        }
        let (low, high) = image.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
        let scale = if high > low { 1.0 / (high - low) } else { 0.0 };
        let plane = rows * columns;
        let colour =
            |pixel: usize| (0..channels).map(move |c| (image[c * plane + pixel] - low) * scale).collect();
        let colours: Vec<Vec<f64>> = (0..plane).map(colour).collect();

        let step = (plane as f64 / self.segments as f64).sqrt().max(1.0);
        let mut centres = grid(&colours, rows, columns, step);
        let mut labels = vec![0; plane];
        for _ in 0..self.iterations {
            self.assign(&centres, &colours, columns, step, &mut labels);
            move_centres(&mut centres, &colours, columns, &labels);
        }
        Ok(connect(&labels, rows, columns, (step * step / 4.0) as usize))
    }

    fn assign(
        &self,
        centres: &[Centre],
        colours: &[Vec<f64>],
        columns: usize,
        step: f64,
        labels: &mut [usize],
    ) {
        let rows = labels.len() / columns;
        let place_weight = (self.compactness / step).powi(2);
        let mut nearest = vec![f64::MAX; labels.len()];
        let window = |place: f64, size: usize| {
            let low = (place - 2.0 * step).floor().max(0.0) as usize;
            low..((place + 2.0 * step).ceil() as usize + 1).min(size)
        };
        for (k, centre) in centres.iter().enumerate() {
            for row in window(centre.row, rows) {
                for column in window(centre.column, columns) {
                    let pixel = row * columns + column;
                    let place = (row as f64 - centre.row).powi(2) + (column as f64 - centre.column).powi(2);
                    let pairs = colours[pixel].iter().zip(&centre.colour);
                    let distance = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() + place_weight * place;
                    if distance < nearest[pixel] {
                        nearest[pixel] = distance;
                        labels[pixel] = k;
                    }
                }
            }
        }
    }
}

/// Centres on a grid of about `step` pixels.
fn grid(colours: &[Vec<f64>], rows: usize, columns: usize, step: f64) -> Vec<Centre> {
    let count = |size: usize| ((size as f64 / step).round() as usize).clamp(1, size);
    let (down, across) = (count(rows), count(columns));
    let place = |i: usize, count: usize, size: usize| (i as f64 + 0.5) * size as f64 / count as f64 - 0.5;
    let centre = |k: usize| {
        let (row, column) = (place(k / across, down, rows), place(k % across, across, columns));
        let pixel = row.round() as usize * columns + column.round() as usize;
        Centre { row, column, colour: colours[pixel].clone() }
    };
    (0..down * across).map(centre).collect()
}

/// Every centre to the mean of its pixels; one without pixels stays.
fn move_centres(centres: &mut [Centre], colours: &[Vec<f64>], columns: usize, labels: &[usize]) {
    let channels = colours.first().map_or(0, Vec::len);
    let mut sums = vec![vec![0.0; channels + 2]; centres.len()];
    let mut counts = vec![0.0; centres.len()];
    for (pixel, &k) in labels.iter().enumerate() {
        counts[k] += 1.0;
        sums[k][0] += (pixel / columns) as f64;
        sums[k][1] += (pixel % columns) as f64;
        sums[k][2..].iter_mut().zip(&colours[pixel]).for_each(|(sum, value)| *sum += value);
    }
    for ((centre, sum), count) in centres.iter_mut().zip(&sums).zip(counts) {
        if count > 0.0 {
            (centre.row, centre.column) = (sum[0] / count, sum[1] / count);
            centre.colour = sum[2..].iter().map(|s| s / count).collect();
        }
    }
}

/// Superpixels in one piece each: a piece smaller than `smallest` joins the superpixel beside it.
fn connect(labels: &[usize], rows: usize, columns: usize, smallest: usize) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut connected = vec![NONE; labels.len()];
    let mut count = 0;
    for start in 0..labels.len() {
        if connected[start] != NONE {
            continue;
        }
        // The piece around `start`, and a superpixel beside it that is done already.
        let mut beside = NONE;
        let mut piece = vec![start];
        connected[start] = count;
        let mut next = 0;
        while let Some(&pixel) = piece.get(next) {
            next += 1;
            for neighbour in neighbours(pixel, rows, columns) {
                if connected[neighbour] == NONE && labels[neighbour] == labels[start] {
                    connected[neighbour] = count;
                    piece.push(neighbour);
                } else if connected[neighbour] != NONE && connected[neighbour] != count && beside == NONE {
                    beside = connected[neighbour];
                }
            }
        }
        if piece.len() < smallest && beside != NONE {
            piece.iter().for_each(|&pixel| connected[pixel] = beside);
        } else {
            count += 1;
        }
    }
    connected
}

fn neighbours(pixel: usize, rows: usize, columns: usize) -> impl Iterator<Item = usize> {
    let (row, column) = (pixel / columns, pixel % columns);
    let up = (row > 0).then(|| pixel - columns);
    let left = (column > 0).then(|| pixel - 1);
    let right = (column + 1 < columns).then(|| pixel + 1);
    let down = (row + 1 < rows).then(|| pixel + columns);
    [up, left, right, down].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;

    use super::*;

    fn pixels(shape: [usize; 3], value: impl Fn(usize, usize, usize) -> f64) -> Array1<f64> {
        let [_, rows, columns] = shape;
        let of = |i: usize| value(i / (rows * columns), i / columns % rows, i % columns);
        (0..shape.iter().product()).map(of).collect()
    }

    fn pieces(labels: &[usize], rows: usize, columns: usize) -> usize {
        connect(labels, rows, columns, 0).into_iter().max().unwrap() + 1
    }

    #[test]
    fn a_flat_image_gives_squares() {
        let shape = [3, 24, 32];
        let labels =
            Slic { segments: 12, ..Slic::default() }.labels(pixels(shape, |_, _, _| 0.7).view(), shape);
        let expected: Vec<usize> = (0..24 * 32).map(|p| p / 32 / 8 * 4 + p % 32 / 8).collect();
        assert_eq!(labels.unwrap(), expected);
    }

    #[test]
    fn superpixels_follow_the_edges_of_a_disc_and_are_in_one_piece_each() {
        let shape = [1, 40, 40];
        let inside = |row: usize, column: usize| {
            (row as f64 - 19.3).powi(2) + (column as f64 - 20.1).powi(2) < 11.0 * 11.0
        };
        // Any scale will do: colours are taken relative to the image's own range.
        let image = pixels(shape, |_, row, column| if inside(row, column) { 900.0 } else { 100.0 });
        let labels = Slic { segments: 25, ..Slic::default() }.labels(image.view(), shape).unwrap();
        let count = labels.iter().max().unwrap() + 1;
        assert!((12..=40).contains(&count), "{count}");
        assert_eq!(pieces(&labels, 40, 40), count);
        let mut mixed = 0;
        for label in 0..count {
            let members: Vec<bool> =
                (0..1600).filter(|&p| labels[p] == label).map(|p| inside(p / 40, p % 40)).collect();
            let disc = members.iter().filter(|&&inside| inside).count();
            mixed += disc.min(members.len() - disc);
        }
        assert!(mixed <= 16, "{mixed} pixels of 1600 lie on the wrong side of the disc's edge");
    }

    #[test]
    fn colour_beats_place_only_where_compactness_allows_it() {
        // Stripes of one pixel: followed by loose superpixels, ignored by compact ones.
        let shape = [1, 16, 16];
        let image = pixels(shape, |_, row, _| (row % 2) as f64);
        let compact = Slic { segments: 4, compactness: 100.0, iterations: 10 };
        let labels = compact.labels(image.view(), shape).unwrap();
        assert_eq!(labels, (0..256).map(|p| p / 16 / 8 * 2 + p % 16 / 8).collect::<Vec<usize>>());
    }

    #[test]
    fn refuses_what_gives_no_superpixels() {
        let image = pixels([1, 4, 4], |_, _, _| 0.0);
        for slic in [
            Slic { segments: 0, ..Slic::default() },
            Slic { compactness: 0.0, ..Slic::default() },
            Slic { iterations: 0, ..Slic::default() },
        ] {
            assert!(slic.labels(image.view(), [1, 4, 4]).is_err());
        }
    }
}
