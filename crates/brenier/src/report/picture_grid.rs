//! Images and signed maps in rows and columns with names, as one SVG file.
//!
//! All pictures are pixels of one PNG inside the SVG, so the file needs nothing else; names stay text. Signed maps go
//! from blue over white to red, and the colour of 1 is that of the scale.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ndarray::Array2;

use super::chart::{escape, picture};
use super::grid::image_grid;
use crate::error::{Result, expect_shape};

/// What one cell shows.
#[derive(Debug, Clone, PartialEq)]
pub enum PictureCell {
    /// An image, `[channels, height, width]`, from 0 to 1.
    Image {
        /// 1 or 3.
        channels: usize,
        /// Its values.
        values: Vec<f64>,
    },
    /// A map `[height, width]` with a sign.
    Signed {
        /// Its values.
        values: Vec<f64>,
        /// What has the full colour.
        scale: f64,
    },
}

/// Where the pictures begin.
const LEFT: f64 = 150.0;
const TOP: f64 = 76.0;

/// A grid of cells, row after row, with the names of columns and rows.
///
/// # Errors
/// If there are not as many cells as rows times columns, or one has another size than `[height, width]`.
pub fn picture_grid(
    title: &str,
    columns: &[String],
    rows: &[String],
    cells: &[PictureCell],
    [height, width]: [usize; 2],
) -> Result<String> {
    expect_shape("the cells of a picture", &[rows.len() * columns.len()], &[cells.len()])?;
    let pixels = height * width;
    let mut images = Array2::zeros((cells.len(), 3 * pixels));
    for (mut image, cell) in images.rows_mut().into_iter().zip(cells) {
        let values = match cell {
            PictureCell::Image { channels, values } => {
                expect_shape("an image", &[channels * pixels], &[values.len()])?;
                let plane = |c: usize| c.min(channels.saturating_sub(1)) * pixels;
                (0..3).flat_map(|c| values[plane(c)..plane(c) + pixels].to_vec()).collect::<Vec<_>>()
            }
            PictureCell::Signed { values, scale } => {
                expect_shape("a map", &[pixels], &[values.len()])?;
                let colours: Vec<[f64; 3]> = values.iter().map(|v| signed_colour(*v, *scale)).collect();
                (0..3).flat_map(|c| colours.iter().map(move |colour| colour[c])).collect()
            }
        };
        image.iter_mut().zip(values).for_each(|(to, value)| *to = value);
    }
    let png = image_grid(images.view(), [3, height, width], columns.len().max(1))?;
    // The size of the picture is in its file: that of a cell follows.
    let size = |offset: usize| {
        png.get(offset..offset + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    let (across, down) = (f64::from(size(16)), f64::from(size(20)));
    let (cell_width, cell_height) = (across / columns.len().max(1) as f64, down / rows.len().max(1) as f64);
    let mut body = format!("<text x=\"16\" y=\"30\" font-size=\"18\">{}</text>\n", escape(title));
    for (k, name) in columns.iter().enumerate() {
        let x = LEFT + (k as f64 + 0.5) * cell_width;
        // Writing to a string cannot fail.
        _ = writeln!(
            body,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{}</text>",
            TOP - 8.0,
            escape(name)
        );
    }
    for (k, name) in rows.iter().enumerate() {
        let y = TOP + (k as f64 + 0.5) * cell_height + 4.0;
        _ = writeln!(
            body,
            "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\" font-size=\"12\">{}</text>",
            LEFT - 8.0,
            escape(name)
        );
    }
    _ = writeln!(
        body,
        "<image x=\"{LEFT}\" y=\"{TOP}\" width=\"{across}\" height=\"{down}\" href=\"data:image/png;base64,{}\"/>",
        STANDARD.encode(&png)
    );
    Ok(picture(LEFT + across + 16.0, TOP + down + 16.0, &body))
}

/// Blue for -scale, white for 0, red for scale.
fn signed_colour(value: f64, scale: f64) -> [f64; 3] {
    let share = if scale > 0.0 { (value / scale).clamp(-1.0, 1.0) } else { 0.0 };
    let end = if share > 0.0 { [0.70, 0.09, 0.17] } else { [0.13, 0.40, 0.67] };
    end.map(|c| 1.0 + (c - 1.0) * share.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_where_their_names_say() {
        let cells = [
            PictureCell::Image { channels: 1, values: vec![0.0, 1.0] },
            PictureCell::Signed { values: vec![2.0, -2.0], scale: 2.0 },
        ];
        let names = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        let (columns, rows) = (names(&["input", "ig"]), names(&["#3: <cat>"]));
        let svg = picture_grid("two", &columns, &rows, &cells, [1, 2]).unwrap();
        assert!(svg.contains("#3: &lt;cat&gt;"));
        let data = svg.split("base64,").nth(1).unwrap().split('"').next().unwrap();
        let picture = image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap().to_rgb8();
        // A gap of 2, then pixels of 4: two of the image, a gap, two of the map.
        assert_eq!(picture.get_pixel(3, 3).0, [0, 0, 0]);
        assert_eq!(picture.get_pixel(8, 3).0, [255, 255, 255]);
        let (red, blue) = (picture.get_pixel(13, 3).0, picture.get_pixel(18, 3).0);
        assert!(red[0] > 2 * red[2] && blue[2] > 2 * blue[0], "{red:?} {blue:?}");
        assert_eq!(signed_colour(0.0, 2.0), [1.0; 3]);
        assert!(picture_grid("", &columns, &rows, &cells[..1], [1, 2]).is_err());
    }
}
