//! Inputs beside their counterparts in one picture: what an input is, what it would have been, and which credit that gives.

use std::path::Path;

use super::heat_map::shown_range;
use super::page::{Report, ReportExample};
use super::picture_grid::{PictureCell, picture_grid};
use crate::attribute::Explanation;
use crate::error::Result;
use crate::whole_file::write_whole;

/// Inputs that are drawn at most.
const MOST: usize = 8;
/// The share of pixels whose credit is below the full colour.
const PERCENTILE: f64 = 0.995;

impl Report {
    /// Writes [`Report::comparison_picture`] to a file, whole or not at all. False where there is nothing to draw.
    ///
    /// # Errors
    /// As there, and if the file cannot be written.
    pub fn save_comparison_picture(&self, path: &Path) -> Result<bool> {
        let Some(svg) = self.comparison_picture()? else { return Ok(false) };
        write_whole(path, svg.as_bytes())?;
        Ok(true)
    }

    /// A column for each input that was compared with a population: the input, its counterpart, the difference, and the credit
    /// by every method. Nothing where nothing was compared, or the inputs are no images.
    ///
    /// # Errors
    /// If explanations of one input have different shapes.
    pub fn comparison_picture(&self) -> Result<Option<String>> {
        let [channels, height, width] = self.shape[..] else { return Ok(None) };
        let compared = |e: &Explanation| e.certificate.comparison.is_some() && e.reference.is_some();
        let columns: Vec<(&ReportExample, &Explanation)> = self
            .examples
            .iter()
            .filter_map(|example| {
                let (first, _) = example.explanations.iter().find(|(e, _)| compared(e))?;
                Some((example, first))
            })
            .take(MOST)
            .collect();
        let Some((first, _)) = columns.first() else { return Ok(None) };
        let methods: Vec<String> =
            first.explanations.iter().map(|(e, _)| e.certificate.method.clone()).collect();
        let mut rows: Vec<(String, Vec<PictureCell>)> = Vec::new();
        let image = |pick: &dyn Fn(&Explanation) -> Vec<f64>| -> Vec<PictureCell> {
            let cell = |(_, e): &(&ReportExample, &Explanation)| {
                let (low, high) = shown_range(e.input.view());
                let shade = |v: f64| ((v - low) / (high - low)).clamp(0.0, 1.0);
                PictureCell::Image { channels, values: pick(e).into_iter().map(shade).collect() }
            };
            columns.iter().map(cell).collect()
        };
        let reference = |e: &Explanation| e.reference.as_ref().map_or_else(Vec::new, |r| r.to_vec());
        rows.push(("input".into(), image(&|e| e.input.to_vec())));
        rows.push(("counterpart".into(), image(&reference)));
        let difference = columns.iter().map(|(_, e)| {
            let way = e.input.iter().zip(reference(e)).map(|(x, r)| x - r).collect();
            signed(summed(way, height * width))
        });
        rows.push(("difference".into(), difference.collect()));
        for method in &methods {
            let credit = columns.iter().map(|(example, compared)| {
                let same = |e: &&(Explanation, _)| {
                    e.0.certificate.method == *method && e.0.certificate.target == compared.certificate.target
                };
                let found =
                    example.explanations.iter().find(same).map_or(compared as &Explanation, |(e, _)| e);
                signed(summed(found.values.to_vec(), height * width))
            });
            rows.push((format!("credit, {method}"), credit.collect()));
        }
        let name = |target: usize| self.classes.get(target).cloned().unwrap_or_else(|| target.to_string());
        let heads: Vec<String> = columns.iter().map(|(_, e)| name(e.certificate.target)).collect();
        let against = columns[0].1.certificate.comparison.as_ref().map_or("", |c| c.against.as_str());
        let title = format!("Compared with '{against}'");
        let (names, cells): (Vec<String>, Vec<Vec<PictureCell>>) = rows.into_iter().unzip();
        picture_grid(&title, &heads, &names, &cells.concat(), [height, width]).map(Some)
    }
}

/// Channels added up.
fn summed(values: Vec<f64>, pixels: usize) -> Vec<f64> {
    (0..pixels).map(|i| values.iter().skip(i).step_by(pixels).sum()).collect()
}

/// A map on a scale of its own, so that a few large pixels do not make all others pale.
fn signed(values: Vec<f64>) -> PictureCell {
    let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let place = ((sizes.len() as f64 * PERCENTILE) as usize).min(sizes.len().saturating_sub(1));
    let scale = sizes.get(place).copied().unwrap_or(0.0);
    PictureCell::Signed { values, scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_added_and_the_scale_leaves_the_largest_pixels_out() {
        assert_eq!(summed(vec![1.0, 2.0, 10.0, 20.0], 2), [11.0, 22.0]);
        let mut values = vec![1.0; 999];
        values.push(-50.0);
        let PictureCell::Signed { scale, .. } = signed(values) else { unreachable!() };
        assert_eq!(scale, 1.0);
    }

    #[test]
    fn nothing_is_drawn_where_nothing_was_compared() {
        let report = Report { shape: vec![1, 2, 2], ..Report::default() };
        assert_eq!(report.comparison_picture().unwrap(), None);
    }
}
