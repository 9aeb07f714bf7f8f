//! Many small images in one picture.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};
use ndarray::ArrayView2;

use crate::error::{Error, Result, expect_shape};

/// Pixels between images.
const GAP: u32 = 2;

/// Rows of pixels `[images, C H W]`, 0 to 1, as a PNG with so many images a line. Small images are enlarged; what
/// is outside 0 to 1 is cut off.
pub fn image_grid(images: ArrayView2<f64>, shape: [usize; 3], columns: usize) -> Result<Vec<u8>> {
    let [channels, height, width] = shape;
    expect_shape("an image", &[channels * height * width], &[images.ncols()])?;
    if columns == 0 || !matches!(channels, 1 | 3) {
        return Err(Error::Setting {
            name: "the picture",
            value: format!("{channels} channels, {columns} images a line"),
            needs: "images have 1 or 3 channels, and a line at least one image",
            hint: "8 images a line".into(),
        });
    }
    let scale = (96 / height.max(width)).clamp(1, 4) as u32;
    let (w, h) = (width as u32 * scale, height as u32 * scale);
    let lines = images.nrows().div_ceil(columns) as u32;
    let across = columns as u32;
    let size = (across * (w + GAP) + GAP, lines * (h + GAP) + GAP);
    let mut picture = RgbImage::from_pixel(size.0, size.1, Rgb([255, 255, 255]));
    for (k, image) in images.rows().into_iter().enumerate() {
        let (left, top) = (GAP + (k % columns) as u32 * (w + GAP), GAP + (k / columns) as u32 * (h + GAP));
        for y in 0..h {
            for x in 0..w {
                let (i, j) = ((y / scale) as usize, (x / scale) as usize);
                let value = |c: usize| {
                    let value = image[(c.min(channels - 1) * height + i) * width + j];
                    (value.clamp(0.0, 1.0) * 255.0).round() as u8
                };
                picture.put_pixel(left + x, top + y, Rgb([value(0), value(1), value(2)]));
            }
        }
    }
    let mut bytes = Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, ImageFormat::Png)
        .map_err(|e| Error::Write { path: "the picture".into(), source: e.into() })?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn a_grid_has_its_images_where_they_belong() {
        let mut images = Array2::zeros((3, 4));
        images.row_mut(1).fill(1.0);
        images.row_mut(2).fill(0.5);
        let png = image_grid(images.view(), [1, 2, 2], 2).unwrap();
        let picture = image::load_from_memory(&png).unwrap().to_rgb8();
        assert_eq!(picture.dimensions(), (2 * 10 + 2, 2 * 10 + 2));
        assert_eq!(picture.get_pixel(5, 5).0, [0, 0, 0]);
        assert_eq!(picture.get_pixel(15, 5).0, [255, 255, 255]);
        assert_eq!(picture.get_pixel(5, 15).0, [128, 128, 128]);
        assert!(image_grid(images.view(), [2, 2, 1], 2).is_err());
    }
}
