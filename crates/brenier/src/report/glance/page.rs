//! The page of a table at a glance: one file, which asks for nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Gathering, Glance, Point, SHOWN_COLUMNS};
use crate::error::{Error, Result};
use crate::report::page::{STYLE, escaped};

const TEMPLATE: &str = include_str!("glance.html");
const SCRIPT: &str = include_str!("glance.js");

/// What the script draws.
#[derive(Serialize)]
struct PageData<'a> {
    glance: &'a Glance,
    /// How many columns are drawn.
    shown: usize,
    scores: Vec<f64>,
    /// For each drawn column the credit of the drawn rows.
    credit: Vec<Vec<f64>>,
    /// For each drawn column what the rows have there.
    values: Vec<Vec<f64>>,
}

impl Gathering<'_> {
    /// The page.
    pub(super) fn html(&self, glance: &Glance, title: &str) -> Result<String> {
        let order: Vec<usize> = self.order().into_iter().take(SHOWN_COLUMNS).collect();
        let of = |pick: &dyn Fn(&Point, usize) -> f64| -> Vec<Vec<f64>> {
            order.iter().map(|&j| self.points.iter().map(|point| short(pick(point, j))).collect()).collect()
        };
        let data = PageData {
            glance,
            shown: order.len(),
            scores: self.points.iter().map(|point| short(point.score)).collect(),
            credit: of(&|point, j| point.credit[j]),
            values: of(&|point, j| point.values[j]),
        };
        let json = serde_json::to_string(&data)
            .map_err(|e| Error::Write { path: "glance.html".into(), source: e.into() })?;
        // Inside a string, JSON may spell this character so; then no name can end the block.
        let json = json.replace('<', "\\u003c");
        let hash = STANDARD.encode(Sha256::digest(format!("\n{SCRIPT}\n")));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
        );
        let fill = |half: &str| {
            half.replace("{{style}}", STYLE)
                .replace("{{script}}", SCRIPT)
                .replace("{{policy}}", &policy)
                .replace("{{title}}", &escaped(title))
        };
        let (before, after) = TEMPLATE.split_once("{{data}}").unwrap_or((TEMPLATE, ""));
        Ok(format!("{}{json}{}", fill(before), fill(after)))
    }
}

/// Five digits: more than a screen shows.
fn short(number: f64) -> f64 {
    format!("{number:.4e}").parse().unwrap_or(number)
}
