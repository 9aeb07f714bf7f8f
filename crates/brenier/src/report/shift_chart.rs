//! Why a mean score moved, as a picture: the credit of each column with its interval, and beside it how far the column
//! itself moved.
//!
//! ```text
//!             credit                         moved
//! income *         |=====├──●──┤             |      ●
//! age        ├─●─┤=|                         |▏●
//! ```

use std::fmt::Write;

use super::chart::{Axis, Scale, escape, picture};
use crate::attribute::{Estimate, GroupedShift, Shift};

const WIDTH: f64 = 330.0;
const MOVED: f64 = 190.0;
const GAP: f64 = 40.0;
const TOP: f64 = 92.0;
const ROW: f64 = 22.0;
const UP: &str = "#b2182b";
const DOWN: &str = "#2166ac";
/// Columns that are drawn, those with the most credit.
const MOST: usize = 30;
/// The width of a letter, about.
const LETTER: f64 = 7.2;

/// A row of the picture.
struct Bar {
    name: String,
    credit: Estimate,
    /// How far it moved, and how far by chance.
    moved: Option<(f64, f64)>,
}

/// The credit of each column with its interval, and how far the column moved; the most credit on top. Of a shift within
/// subgroups, the part of the groups' sizes is a row of its own.
pub fn shift_chart(shift: &Shift, groups: Option<&GroupedShift>) -> String {
    let mut bars: Vec<Bar> = shift
        .columns
        .iter()
        .map(|column| Bar {
            name: format!("{}{}", column.name, if column.significant { " *" } else { "" }),
            credit: column.credit,
            moved: Some((column.moved, column.moved_by_chance)),
        })
        .collect();
    let sizes = groups.map(|groups| (format!("sizes of groups by {}", groups.by), groups.sizes));
    bars.extend(sizes.map(|(name, credit)| Bar { name, credit, moved: None }));
    bars.sort_by(|x, y| y.credit.value.abs().total_cmp(&x.credit.value.abs()));
    let left_out = bars.len().saturating_sub(MOST);
    bars.truncate(MOST);
    draw(shift, &bars, left_out)
}

fn draw(shift: &Shift, bars: &[Bar], left_out: usize) -> String {
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let names = (LETTER * longest as f64 + 24.0).clamp(90.0, 320.0);
    let bottom = TOP + ROW * bars.len() as f64;
    let middle = |row: usize| TOP + ROW * (row as f64 + 0.5);
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let mut text = |line: String| _ = writeln!(svg, "{line}");
    text(format!(
        "<text x=\"16\" y=\"28\" font-size=\"16\">Why the mean score moved from {} to {}</text>",
        escape(&shift.from.name),
        escape(&shift.to.name)
    ));
    text(format!(
        "<text x=\"16\" y=\"50\" fill=\"#555\">{:.4} to {:.4}, a change of {}</text>",
        shift.from.mean_score,
        shift.to.mean_score,
        in_words(&shift.change)
    ));
    for (k, bar) in bars.iter().enumerate() {
        text(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            names - 10.0,
            middle(k) + 4.0,
            escape(&bar.name)
        ));
    }
    let ends = |bar: &Bar| match bar.credit.interval {
        Some(interval) => [interval.low, interval.high],
        None => [bar.credit.value; 2],
    };
    let axis = Axis::new(Scale::Linear, bars.iter().flat_map(ends).chain([0.0]));
    let across = |value: f64| names + WIDTH * axis.place(value);
    frame(&mut text, (names, WIDTH, bottom), &axis, "credit, with its interval");
    for (k, bar) in bars.iter().enumerate() {
        let (y, value) = (middle(k), bar.credit.value);
        let colour = if value > 0.0 { UP } else { DOWN };
        let (from, to) = (across(value.min(0.0)), across(value.max(0.0)));
        text(format!(
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" fill=\"{colour}\" fill-opacity=\"0.75\"/>",
            y - 6.0,
            to - from
        ));
        if let Some(interval) = bar.credit.interval {
            let (low, high) = (across(interval.low), across(interval.high));
            text(format!(
                "<path d=\"M{low:.1} {:.1}V{:.1}M{low:.1} {y:.1}H{high:.1}M{high:.1} {:.1}V{:.1}\" stroke=\"black\"/>",
                y - 4.0,
                y + 4.0,
                y - 4.0,
                y + 4.0
            ));
        }
    }
    let zero = across(0.0);
    text(format!("<line x1=\"{zero:.1}\" y1=\"{TOP}\" x2=\"{zero:.1}\" y2=\"{bottom}\" stroke=\"#555\"/>"));
    let left = names + WIDTH + GAP;
    let far = bars.iter().filter_map(|bar| bar.moved).flat_map(|(moved, chance)| [moved, chance]);
    let axis = Axis::new(Scale::Linear, far.chain([0.0]));
    let across = |value: f64| left + MOVED * axis.place(value);
    frame(&mut text, (left, MOVED, bottom), &axis, "moved (grey: by chance)");
    for (k, (moved, chance)) in bars.iter().enumerate().filter_map(|(k, bar)| Some((k, bar.moved?))) {
        let y = middle(k);
        let (from, to) = (across(0.0), across(chance));
        text(format!(
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" fill=\"#bbb\"/>",
            y - 6.0,
            to - from
        ));
        let colour = if moved > chance { "#000" } else { "#888" };
        text(format!("<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>", across(moved)));
    }
    let mut note = "* differs from 0. Credit is association under the model, not cause.".to_string();
    if left_out > 0 {
        _ = write!(note, " {left_out} more columns have less credit.");
    }
    text(format!("<text x=\"16\" y=\"{:.1}\" font-size=\"11\" fill=\"#555\">{note}</text>", bottom + 44.0));
    picture((left + MOVED + 24.0).max(560.0), bottom + 58.0, &svg)
}

/// The frame of a panel with its heading and ticks.
fn frame(text: &mut impl FnMut(String), (left, width, bottom): (f64, f64, f64), axis: &Axis, heading: &str) {
    text(format!("<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{heading}</text>", TOP - 12.0));
    let ticks = axis.ticks();
    // Labels need their width.
    let every = ticks.iter().map(|(_, label)| label.len()).max().unwrap_or(1) as f64 * LETTER * 1.3;
    let every = (every * ticks.len() as f64 / width).ceil().max(1.0) as usize;
    for (value, label) in ticks.iter().step_by(every) {
        let at = left + width * axis.place(*value);
        text(format!(
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#e4e4e4\"/>"
        ));
        text(format!(
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{label}</text>",
            bottom + 18.0
        ));
    }
    text(format!(
        "<rect x=\"{left}\" y=\"{TOP}\" width=\"{width}\" height=\"{}\" fill=\"none\" stroke=\"#555\"/>",
        bottom - TOP
    ));
}

fn in_words(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(interval) => format!("{:.4} ({:.4} to {:.4})", estimate.value, interval.low, interval.high),
        None => format!("{:.4}", estimate.value),
    }
}
