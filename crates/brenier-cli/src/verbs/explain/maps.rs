//! How maps of credit over images are drawn.

use anyhow::{Result, bail};
use brenier::report::Report;
use clap::Args;

#[derive(Debug, Clone, Args)]
pub(crate) struct MapArgs {
    /// Show credit of images summed over about so many superpixels, in heat maps and first in the report
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    superpixels: Option<u32>,
    /// Show methods that sum to the score's change on one scale; each map has its own where not given
    #[arg(long)]
    shared_scale: bool,
}

impl MapArgs {
    /// Refuses what makes no difference: maps are for images, and are kept in a folder.
    pub(super) fn expect_images(&self, shape: &[usize], kept: bool) -> Result<()> {
        let flag = match (self.superpixels, self.shared_scale) {
            (Some(_), _) => "--superpixels",
            (None, true) => "--shared-scale",
            (None, false) => return Ok(()),
        };
        if !kept {
            bail!("{flag} is for the pictures in a folder\nhint: give one with -o, or leave {flag} out");
        }
        if shape.len() == 3 {
            return Ok(());
        }
        bail!(
            "{flag} makes no difference to inputs of shape {shape:?}, which are no images\nhint: leave it out"
        )
    }

    /// The report with what is given; the rest stays as it was.
    pub(crate) fn show(&self, report: Report) -> Report {
        Report {
            superpixels: self.superpixels.map(|count| count as usize).or(report.superpixels),
            shared_scale: self.shared_scale || report.shared_scale,
            ..report
        }
    }
}
