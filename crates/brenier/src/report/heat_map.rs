//! Credit as a picture: red for the score, blue against it, white for none, and a bar that says how much.
//!
//! ```text
//! m_p = credit of pixel p, or of its superpixel        colour(m_p / scale),  scale = 99.5th percentile of |m_p|
//! ```
//!
//! Beyond the scale the colour stays full: a few pixels with extreme credit do not make all others pale. Each map has its
//! own scale, so that each shows where its credit is. Methods whose credit sums to the score's change give credit in the
//! same unit: where it is asked for, they share the largest scale on one input and can be compared by eye. The page and the
//! pictures follow the same rule.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::{ImageFormat, Rgb, RgbImage};
use ndarray::ArrayView1;

use super::ShownMap;
use super::lettering::{LINE, fill, short_number, text_width, write_number};
use crate::attribute::Explanation;
use crate::error::{Error, Result};
use crate::whole_file::{make_folder, write_whole};

/// What lies under the credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeatMapGround {
    /// White paper: the colour alone says how much.
    #[default]
    Paper,
    /// The input in light grey: where the credit is.
    Input,
}

/// Pixels that the longer side of a small map is enlarged to, about; and the largest factor.
const SIDE: usize = 256;
const LARGEST_FACTOR: usize = 16;
/// Pixels around everything and between picture, bar and numbers, and the width of the bar.
const GAP: u32 = 8;
const BAR: u32 = 14;

/// What a map shows, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeatMapStyle {
    /// What lies under the credit.
    pub ground: HeatMapGround,
    /// Credit summed over about so many superpixels; by pixels where not given.
    pub superpixels: Option<usize>,
    /// Whose scale is whose.
    pub scales: Scales,
}

/// The value of the full colour, among the maps of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scales {
    /// Each map has its own.
    #[default]
    Own,
    /// Explanations that claim completeness share the largest among them, others have their own.
    Shared,
}

/// The value that has the full colour, for each explanation of one input.
///
/// # Errors
/// Superpixels of what is no image.
pub fn credit_scales(explanations: &[&Explanation], style: &HeatMapStyle) -> Result<Vec<f64>> {
    let maps = explanations.iter().map(|e| ShownMap::of(e, style.superpixels)).collect::<Result<Vec<_>>>()?;
    Ok(scales_of(explanations, &maps, style.scales))
}

/// The same for maps that are there already.
pub(super) fn scales_of(explanations: &[&Explanation], maps: &[ShownMap], scales: Scales) -> Vec<f64> {
    let own: Vec<f64> = maps.iter().map(ShownMap::scale).collect();
    let complete = |e: &Explanation| e.certificate.completeness.is_some() && scales == Scales::Shared;
    let claimed = explanations.iter().zip(&own).filter(|(e, _)| complete(e));
    let shared = claimed.fold(0.0, |most: f64, (_, scale)| most.max(*scale));
    explanations.iter().zip(own).map(|(e, own)| if complete(e) { shared } else { own }).collect()
}

/// The values shown as black and as white: 0 and 1 where an image lies between them, else its own extremes.
pub(super) fn shown_range(image: ArrayView1<f64>) -> (f64, f64) {
    let low = image.iter().copied().fold(f64::INFINITY, f64::min);
    let high = image.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low >= 0.0 && high <= 1.0 || low >= high { (0.0, 1.0) } else { (low, high) }
}

/// The explanation of an image `[C, H, W]` as a PNG with a colour bar, alone. Small images are enlarged.
///
/// # Errors
/// If the input is no image.
pub fn heat_map(explanation: &Explanation, style: &HeatMapStyle) -> Result<Vec<u8>> {
    expect_image(explanation)?;
    let map = ShownMap::of(explanation, style.superpixels)?;
    picture(explanation, &map, map.scale(), style.ground)
}

fn expect_image(explanation: &Explanation) -> Result<()> {
    match explanation.shape[..] {
        [_, _, _] => Ok(()),
        _ => Err(Error::NotAnImage { what: "a heat map", shape: explanation.shape.clone() }),
    }
}

fn picture(explanation: &Explanation, map: &ShownMap, scale: f64, ground: HeatMapGround) -> Result<Vec<u8>> {
    let [channels, height, width] = explanation.shape[..] else {
        return Err(Error::NotAnImage { what: "a heat map", shape: explanation.shape.clone() });
    };
    let (low, high) = shown_range(explanation.input.view());
    let grey = |pixel: usize| {
        let sum: f64 = (0..channels).map(|c| explanation.input[c * height * width + pixel]).sum();
        ((sum / channels.max(1) as f64 - low) / (high - low)).clamp(0.0, 1.0)
    };
    let factor = (SIDE / height.max(width).max(1)).clamp(1, LARGEST_FACTOR) as u32;
    let (across, down) = (width as u32 * factor, height as u32 * factor);
    let labels = [short_number(scale), "0".to_string(), short_number(-scale)];
    let letters = labels.iter().map(|label| text_width(label)).max().unwrap_or(0);
    let tall = down.max(4 * LINE);
    let size = (across + BAR + letters + 4 * GAP, tall + 2 * GAP);
    let mut picture = RgbImage::from_pixel(size.0, size.1, Rgb([255; 3]));
    for (pixel, &credit) in map.pixels.iter().enumerate() {
        let (x, y) = ((pixel % width) as u32 * factor, (pixel / width) as u32 * factor);
        let under = match ground {
            HeatMapGround::Paper => 255.0,
            // Pale, so that no colour of the map is taken for one of the image.
            HeatMapGround::Input => 255.0 * (0.35 + 0.6 * grey(pixel)),
        };
        let share = if scale > 0.0 { credit / scale } else { 0.0 };
        fill(&mut picture, GAP + x, GAP + y, factor, factor, diverging(share, under));
    }
    let bar = across + 2 * GAP;
    for y in 0..tall {
        let share = 1.0 - 2.0 * f64::from(y) / f64::from(tall - 1);
        fill(&mut picture, bar, GAP + y, BAR, 1, diverging(share, 255.0));
    }
    let rows = [GAP, GAP + (tall - LINE) / 2, GAP + tall - LINE];
    for (label, row) in labels.iter().zip(rows) {
        write_number(&mut picture, bar + BAR + GAP, row, label);
    }
    let mut bytes = Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, ImageFormat::Png)
        .map_err(|e| Error::Write { path: "the heat map".into(), source: e.into() })?;
    Ok(bytes.into_inner())
}

/// Writes the heat maps of one input, one for each explanation, into a folder, which is made where it is missing.
/// Their names say which example, method and target: `0003-transport-target7.png`.
pub fn save_heat_maps(
    folder: &Path,
    explanations: &[&Explanation],
    style: &HeatMapStyle,
) -> Result<Vec<PathBuf>> {
    make_folder(folder)?;
    explanations.iter().try_for_each(|explanation| expect_image(explanation))?;
    let maps = explanations.iter().map(|e| ShownMap::of(e, style.superpixels)).collect::<Result<Vec<_>>>()?;
    let mut files = Vec::with_capacity(explanations.len());
    let scales = scales_of(explanations, &maps, style.scales);
    for ((explanation, map), scale) in explanations.iter().zip(&maps).zip(scales) {
        let certificate = &explanation.certificate;
        let name =
            format!("{:04}-{}-target{}.png", certificate.example, certificate.method, certificate.target);
        let file = folder.join(name);
        write_whole(&file, &picture(explanation, map, scale, style.ground)?)?;
        files.push(file);
    }
    Ok(files)
}

/// Blue for -1, what lies under it for 0, red for 1.
fn diverging(share: f64, under: f64) -> Rgb<u8> {
    let strength = share.abs().min(1.0).powf(0.8);
    let end = if share > 0.0 { [178.0, 24.0, 43.0] } else { [33.0, 102.0, 172.0] };
    Rgb(end.map(|c: f64| (under + (c - under) * strength).round() as u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Certificate, Completeness};
    use ndarray::{Array1, array};

    fn explanation(values: Array1<f64>, shape: &[usize], complete: bool) -> Explanation {
        let mut certificate = Certificate::new(if complete { "ig" } else { "gradient" }, 3, 7, 1.0);
        certificate.completeness = complete.then(|| Completeness::new(values.sum(), 0.0, 1.0));
        let input = Array1::from_iter((0..values.len()).map(|i| i as f64 / (values.len() - 1) as f64));
        Explanation {
            values,
            shape: shape.to_vec(),
            reference: None,
            input,
            standard_errors: None,
            certificate,
        }
    }

    fn opened(explanation: &Explanation, scale: f64, ground: HeatMapGround) -> RgbImage {
        let map = ShownMap::of(explanation, None).unwrap();
        image::load_from_memory(&picture(explanation, &map, scale, ground).unwrap()).unwrap().to_rgb8()
    }

    #[test]
    fn each_map_has_its_own_scale_unless_methods_that_sum_up_share_one() {
        let (small, large) = (array![0.5, 0.0, 0.0, -1.0], array![2.0, 0.0, 0.0, 0.0]);
        let shape = [1, 2, 2];
        let all = [
            &explanation(small.clone(), &shape, true),
            &explanation(large, &shape, true),
            &explanation(9.0 * small, &shape, false),
        ];
        let shared = HeatMapStyle { scales: Scales::Shared, ..HeatMapStyle::default() };
        assert_eq!(credit_scales(&all, &HeatMapStyle::default()).unwrap(), [1.0, 2.0, 9.0]);
        assert_eq!(credit_scales(&all, &shared).unwrap(), [2.0, 2.0, 9.0]);
        // Channels cancel before anything is compared.
        let cancelled = explanation(array![3.0, 1.0, -3.0, 1.0], &[2, 1, 2], true);
        assert_eq!(credit_scales(&[&cancelled], &shared).unwrap(), [2.0]);
    }

    #[test]
    fn pixels_have_the_colour_of_their_credit_and_the_bar_has_all() {
        let credit = explanation(array![4.0, -4.0, 0.0, 2.0], &[1, 2, 2], true);
        let picture = opened(&credit, 4.0, HeatMapGround::Paper);
        let step = LARGEST_FACTOR as u32;
        let at = |i: u32, j: u32| picture.get_pixel(GAP + j * step + 3, GAP + i * step + 3).0;
        assert_eq!(at(0, 0), [178, 24, 43]);
        assert_eq!(at(0, 1), [33, 102, 172]);
        assert_eq!(at(1, 0), [255; 3]);
        let [r, g, b] = at(1, 1);
        assert!(r > 178 && g > 24 && b > 43 && r > g, "half the credit is a paler red");
        let bar = 2 * step + 2 * GAP + 3;
        let tall = picture.height() - 2 * GAP;
        assert_eq!(picture.get_pixel(bar, GAP).0, [178, 24, 43]);
        assert_eq!(picture.get_pixel(bar, GAP + tall - 1).0, [33, 102, 172]);
        let numbers = picture.enumerate_pixels().filter(|(x, _, p)| *x > bar + BAR && p.0 == [0; 3]);
        assert!(numbers.count() > 20, "the bar has no numbers");
    }

    #[test]
    fn the_input_shows_where_there_is_no_credit() {
        let credit = explanation(array![0.0, 0.0, 0.0, 1.0], &[1, 2, 2], true);
        let picture = opened(&credit, 1.0, HeatMapGround::Input);
        let step = LARGEST_FACTOR as u32;
        let at = |i: u32, j: u32| picture.get_pixel(GAP + j * step, GAP + i * step).0;
        let (dark, bright) = (at(0, 0), at(1, 0));
        assert!(dark[0] == dark[1] && dark[0] < bright[0], "{dark:?} {bright:?}");
        assert_eq!(at(1, 1), [178, 24, 43]);
    }

    #[test]
    fn files_are_named_after_example_method_and_target() {
        let folder = tempfile::tempdir().unwrap();
        let credit = explanation(array![1.0, -1.0], &[1, 1, 2], true);
        let files = save_heat_maps(&folder.path().join("new"), &[&credit], &HeatMapStyle::default()).unwrap();
        assert!(files[0].ends_with("new/0003-ig-target7.png") && files[0].exists());
        let row = explanation(array![1.0, -1.0], &[2], true);
        assert!(heat_map(&row, &HeatMapStyle::default()).is_err());
    }
}
