//! The path of Blur IG: the image comes out of a blur.
//!
//! ```text
//! gamma(t) = L(sigma) x = K(sigma) x K(sigma)^T,   sigma = sigma_max (1 - t)      (Xu et al., 2020)
//! K(sigma)_ij = w(i - j) / sum_m w(m),   w(m) = exp(-m^2 / (2 sigma^2))
//! ```
//!
//! Each channel is blurred along rows and columns. The kernel is not cut off at some multiple of sigma: a cut
//! would make the path jump wherever the kernel grows by a pixel, and those jumps would be missing from the
//! credit. So the path is smooth in t, its tangent is exact, and any quadrature rule keeps its order.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::{Path, PathEvidence};
use crate::{Error, Result, error};

/// What lies beyond the border of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Border {
    /// Zeros: a strong blur fades to nothing. What the authors' implementation does.
    #[default]
    Zero,
    /// The image mirrored at its edge: a strong blur leaves the mean of each channel.
    Mirror,
}

/// The path from a blurred image to the image.
#[derive(Debug, Clone)]
pub struct BlurPath {
    image: Array1<f64>,
    shape: [usize; 3],
    max_sigma: f64,
    border: Border,
}

impl BlurPath {
    /// The path that ends at `image`, of shape `[channels, height, width]`, and begins at its blur with
    /// standard deviation `max_sigma` in pixels.
    pub fn new(image: ArrayView1<f64>, shape: &[usize], max_sigma: f64, border: Border) -> Result<Self> {
        let &[channels, height, width] = shape else {
            return Err(Error::Method {
                method: "a blur".to_string(),
                reason: format!("inputs of shape {shape:?} are not images"),
                remedy: "use a method that needs no image, such as 'ig'".into(),
            });
        };
        if !(max_sigma > 0.0 && max_sigma.is_finite()) {
            return Err(Error::Setting {
                name: "the width of the blur",
                value: max_sigma.to_string(),
                needs: "it is a standard deviation in pixels, above 0",
                hint: "a quarter of the image's side".into(),
            });
        }
        error::expect_shape("the image", &[channels * height * width], image.shape())?;
        error::expect_finite("input", 0, 1.0, image)?;
        Ok(Self { image: image.to_owned(), shape: [channels, height, width], max_sigma, border })
    }

    /// Each channel between two matrices, `left X right^T`, summed over the pairs.
    fn between(&self, pairs: &[(&Array2<f64>, &Array2<f64>)]) -> Array1<f64> {
        let [channels, height, width] = self.shape;
        let mut blurred = Array1::zeros(self.image.len());
        for channel in 0..channels {
            let range = channel * height * width..(channel + 1) * height * width;
            let plane = self.image.slice(ndarray::s![range.clone()]);
            let Ok(plane) = ArrayView2::from_shape((height, width), plane.to_slice().unwrap_or(&[])) else {
                continue;
            };
            let mut target = blurred.slice_mut(ndarray::s![range]);
            for (left, right) in pairs {
                let product = left.dot(&plane).dot(&right.t());
                target.zip_mut_with(&product.flatten(), |sum, part| *sum += part);
            }
        }
        blurred
    }
}

impl Path for BlurPath {
    fn at(&self, t: f64) -> Array1<f64> {
        let sigma = self.max_sigma * (1.0 - t);
        if sigma <= 0.0 {
            return self.image.clone();
        }
        let [_, height, width] = self.shape;
        let (rows, columns) = (kernel(height, sigma, self.border).0, kernel(width, sigma, self.border).0);
        self.between(&[(&rows, &columns)])
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        let sigma = (self.max_sigma * (1.0 - t)).max(0.0);
        let [_, height, width] = self.shape;
        let (rows, rows_slope) = kernel(height, sigma, self.border);
        let (columns, columns_slope) = kernel(width, sigma, self.border);
        self.between(&[(&rows_slope, &columns), (&rows, &columns_slope)]) * -self.max_sigma
    }

    fn evidence(&self) -> PathEvidence {
        PathEvidence { kind: "blur".into(), ..PathEvidence::default() }
    }
}

/// The blur along one axis as a matrix, and its derivative by sigma.
fn kernel(size: usize, sigma: f64, border: Border) -> (Array2<f64>, Array2<f64>) {
    // Below this no neighbour has a weight that a double can hold.
    if sigma < 0.02 {
        return (Array2::eye(size), Array2::zeros((size, size)));
    }
    // Beyond 9 sigma a weight is below 3e-18: nothing in a double.
    let reach = (9.0 * sigma).ceil() as i64;
    let weight = |m: i64| {
        let square = (m * m) as f64;
        let w = (-square / (2.0 * sigma * sigma)).exp();
        (w, w * square / sigma.powi(3))
    };
    let (total, slope) = (-reach..=reach).map(weight).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let (mut matrix, mut derivative) = (Array2::zeros((size, size)), Array2::zeros((size, size)));
    let count = size as i64;
    for i in 0..count {
        for m in -reach..=reach {
            let place = match border {
                Border::Zero if (0..count).contains(&(i + m)) => i + m,
                Border::Zero => continue,
                Border::Mirror => {
                    let folded = (i + m).rem_euclid(2 * count);
                    folded.min(2 * count - 1 - folded)
                }
            };
            let (w, dw) = weight(m);
            let at = (i as usize, place as usize);
            matrix[at] += w / total;
            derivative[at] += (dw * total - w * slope) / (total * total);
        }
    }
    (matrix, derivative)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Array1<f64> {
        Array1::from_shape_fn(2 * 5 * 7, |i| ((i * i + 3 * i) as f64 * 0.37).sin())
    }

    #[test]
    fn the_tangent_is_the_derivative_of_the_path() {
        for border in [Border::Zero, Border::Mirror] {
            let path = BlurPath::new(image().view(), &[2, 5, 7], 4.0, border).unwrap();
            for t in [0.0, 0.3, 0.77, 0.93] {
                let h = 1e-5;
                let difference = (path.at(t + h) - path.at(t - h)) / (2.0 * h);
                let gap = (path.derivative(t) - &difference).mapv(f64::abs).sum();
                assert!(gap < 1e-6 * difference.mapv(f64::abs).sum().max(1.0), "{border:?} {t}: {gap}");
            }
            assert_eq!(path.at(1.0), image());
        }
    }

    #[test]
    fn a_mirrored_blur_keeps_the_mean_and_ends_there() {
        let path = BlurPath::new(image().view(), &[2, 5, 7], 40.0, Border::Mirror).unwrap();
        let mean = image().slice(ndarray::s![..35]).mean().unwrap();
        assert!((path.at(0.9).slice(ndarray::s![..35]).mean().unwrap() - mean).abs() < 1e-12);
        assert!(path.at(0.0).iter().take(35).all(|v| (v - mean).abs() < 1e-9));
        // With zeros around, the image fades instead.
        let path = BlurPath::new(image().view(), &[2, 5, 7], 40.0, Border::Zero).unwrap();
        assert!(path.at(0.0).iter().all(|v| v.abs() < 0.02));
    }
}
