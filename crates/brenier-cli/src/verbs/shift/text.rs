//! A shift for people: what moved, a table of columns, and what must be said of it.

use std::fmt::Write;

use anyhow::Result;
use brenier::attribute::{ColumnShift, Estimate, GroupedShift, Shift};
use brenier::report::{ShiftReport, ShiftResult};

/// Columns that are printed; all are in the files.
const LINES: usize = 30;

pub(super) fn text(report: &ShiftReport) -> Result<String> {
    let mut out = String::new();
    let shift = report.result.whole();
    let of = match &report.target_name {
        Some(name) => format!("mean score of '{name}'"),
        None => format!("mean score of output {}", shift.target),
    };
    let wide = shift.from.name.chars().count().max(shift.to.name.chars().count());
    writeln!(out, "{of}")?;
    for side in [&shift.from, &shift.to] {
        let rows = format!("{} rows", side.rows);
        writeln!(out, "  {:wide$}  {rows:>12}  {:>12.5}", side.name, side.mean_score)?;
    }
    writeln!(
        out,
        "  {:wide$}  {:>12}  {:>12.5}  {}",
        "change",
        "",
        shift.change.value,
        interval(&shift.change)
    )?;
    match &report.result {
        ShiftResult::Whole(_) => {}
        ShiftResult::Grouped(grouped) => groups(&mut out, grouped)?,
    }
    let among = shift.columns.len();
    writeln!(out)?;
    if report.result.grouped().is_some() {
        writeln!(out, "within groups, all together")?;
    }
    table(&mut out, shift)?;
    for group in report.result.grouped().into_iter().flat_map(|grouped| &grouped.groups) {
        if let Some(shift) = &group.shift {
            writeln!(out)?;
            let (from, to) = (&shift.from, &shift.to);
            writeln!(
                out,
                "{}: {:.5} ({} rows) to {:.5} ({} rows), change {:.5}  {}",
                group.name,
                from.mean_score,
                from.rows,
                to.mean_score,
                to.rows,
                shift.change.value,
                interval(&shift.change)
            )?;
            table(&mut out, shift)?;
            for remark in &shift.remarks {
                writeln!(out, "- {remark}")?;
            }
        }
    }
    writeln!(out)?;
    let level = 100.0 * shift.config.confidence;
    writeln!(out, "interval: {level:.0} %; *: differs from 0 at a level shared among {among} columns")?;
    writeln!(
        out,
        "moved: how far the column itself moved, in standard deviations (categories: share of rows)"
    )?;
    for remark in &shift.remarks {
        writeln!(out, "- {remark}")?;
    }
    writeln!(out, "- {}", Shift::CAVEAT)?;
    Ok(out)
}

fn interval(estimate: &Estimate) -> String {
    estimate.interval.map_or(String::new(), |i| format!("{:.5} to {:.5}", i.low, i.high))
}

/// What comes from within groups, and what from their sizes.
fn groups(out: &mut String, grouped: &GroupedShift) -> Result<()> {
    let name = |group: &str| group.chars().count();
    let wide =
        grouped.groups.iter().map(|group| name(&group.name)).max().unwrap_or(0).max(name("all groups"));
    writeln!(out)?;
    writeln!(
        out,
        "{:wide$}  {:>8}  {:>8}  {:>12}  {:>12}",
        format!("by {}", grouped.by),
        "share",
        "then",
        "from within",
        "from size"
    )?;
    for group in &grouped.groups {
        writeln!(
            out,
            "{:wide$}  {:>7.1}%  {:>7.1}%  {:>12.5}  {:>12.5}",
            group.name,
            100.0 * group.share_from,
            100.0 * group.share_to,
            group.within.value,
            group.sizes.value
        )?;
    }
    for (what, estimate) in [("all within groups", &grouped.within), ("all by sizes", &grouped.sizes)] {
        writeln!(out, "{what}: {:.5}  {}", estimate.value, interval(estimate))?;
    }
    Ok(())
}

/// Columns by the size of their credit, or in their order where there is nothing to rank.
fn table(out: &mut String, shift: &Shift) -> Result<()> {
    let order = shift.ranking().unwrap_or_else(|| (0..shift.columns.len()).collect());
    let shown: Vec<&ColumnShift> = order.iter().take(LINES).map(|&j| &shift.columns[j]).collect();
    let wide = shown.iter().map(|column| column.name.chars().count()).max().unwrap_or(0).max("column".len());
    writeln!(
        out,
        "{:wide$}  {:>12}    {:>24}  {:>9}  {:>9}",
        "column", "credit", "interval", "moved", "by chance"
    )?;
    for column in &shown {
        writeln!(
            out,
            "{:wide$}  {:>12.5} {}  {:>24}  {:>9.3}  {:>9.3}",
            column.name,
            column.credit.value,
            if column.significant { "*" } else { " " },
            interval(&column.credit),
            column.moved,
            column.moved_by_chance
        )?;
    }
    let left: f64 = order.iter().skip(LINES).map(|&j| shift.columns[j].credit.value).sum();
    if order.len() > LINES {
        writeln!(
            out,
            "{} more columns have {left:.5} together: --format json and -o DIR have all",
            order.len() - LINES
        )?;
    }
    Ok(())
}
