//! `brenier verify RESULT`: explanations that were saved are computed again and compared.

use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result, bail};
use brenier::engine::EngineKind;
use brenier::report::ResultFormat;
use brenier::runs::explain::{Difference, Verification, verify};
use clap::Args;

use super::explain::record::{Places, Record};
use super::explain::{Asked, Explain, ask};
use crate::output::{Format, print_data};

/// Recompute explanations that were saved, and compare
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier verify out
  brenier verify out/ig --format json
  brenier verify out --model elsewhere/model.onnx --data elsewhere/inputs.npy
  brenier verify out --engine ort --tolerance 1e-2

Files are looked for where the run had them. The same engine, version and kind of processor give the same bits; otherwise
credit is held to the tolerance. Exit 0: verified; 1: something differs or is not there.")]
pub(crate) struct Verify {
    /// A folder that 'explain -o' has written, or a file in it
    result: PathBuf,
    /// The model, where it is elsewhere now
    #[arg(short, long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// The inputs, where they are elsewhere now; given several times for several files
    #[arg(short, long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// The flow, where it is elsewhere now; given several times for several flows
    #[arg(short, long, value_name = "FILE")]
    flow: Vec<PathBuf>,
    /// The background, where it is elsewhere now
    #[arg(long, value_name = "DATA")]
    background: Option<PathBuf>,
    /// The file of baselines, where it is elsewhere now
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Another engine than that of the run: rten or ort
    #[arg(long, value_name = "ENGINE")]
    engine: Option<EngineKind>,
    /// ONNX Runtime's shared library, where it is elsewhere now
    #[arg(long, value_name = "FILE")]
    ort_library: Option<PathBuf>,
    /// How far credit may be off where it cannot be the same to the bit, relative to the largest of its explanation
    #[arg(long, value_name = "TOLERANCE", default_value_t = 1e-3)]
    tolerance: f64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(args: &Verify, parse: &dyn Fn(&[String]) -> Result<Box<Explain>>) -> Result<()> {
    if !(args.tolerance >= 0.0 && args.tolerance.is_finite()) {
        bail!("the tolerance {} is not 0 or more\nhint: 1e-3 is the default", args.tolerance);
    }
    let results = folder_of(&args.result)?;
    let record = Record::find(&results)?;
    let places = args.places()?;
    let explain = parse(&record.command).context("the record of the run cannot be read")?;
    // Relative paths of the record start where it was typed, where that is still there.
    if record.folder.is_dir() {
        std::env::set_current_dir(&record.folder)
            .with_context(|| format!("cannot enter {}", record.folder.display()))?;
    }
    let explain = explain.with_files(places).with_engine(args.engine, args.ort_library.clone());
    let missing = explain.missing_files();
    if !missing.is_empty() {
        let list: Vec<String> =
            missing.iter().map(|(file, flag)| format!("{} (give it with {flag})", file.display())).collect();
        bail!("cannot verify, because this is not there: {}\nhint: say where it is now", list.join(", "));
    }
    let folders = explain.folders(&results);
    let found = ask(&explain, |Asked { question, ways, made_from, .. }| {
        let question = brenier::runs::explain::Question { stills: 0, ..question };
        let mut found = Vec::with_capacity(ways.len());
        for (way, (_, folder)) in ways.iter().zip(&folders) {
            // Where one method's folder is given, the others are not asked for.
            if args_name_another(&results, &way.name(), ways.len()) {
                continue;
            }
            found.push(verify(&question, way, &made_from, folder, args.tolerance)?);
        }
        Ok(found)
    })?;
    let verified = found.iter().all(Verification::is_verified);
    print_data(&match args.format {
        Format::Text => text(&args.result, &found, verified),
        Format::Json => {
            format!("{}\n", serde_json::json!({ "verified": verified, "results": found }))
        }
    })?;
    if !verified {
        bail!("the results in {} are not what is computed from these files now", args.result.display());
    }
    Ok(())
}

impl Verify {
    /// Files that were given, wherever we go.
    fn places(&self) -> Result<Places> {
        let whole =
            |file: &PathBuf| absolute(file).with_context(|| format!("cannot find {}", file.display()));
        Ok(Places {
            model: self.model.as_ref().map(whole).transpose()?,
            data: self.data.iter().map(whole).collect::<Result<_>>()?,
            flow: self.flow.iter().map(whole).collect::<Result<_>>()?,
            background: self.background.as_ref().map(whole).transpose()?,
            baseline: self.baseline.as_ref().map(whole).transpose()?,
        })
    }
}

/// Whether results lie in the folder of one of several methods, and that is another one.
fn args_name_another(results: &Path, method: &str, methods: usize) -> bool {
    methods > 1
        && ResultFormat::of(results).is_some()
        && results.file_name().is_none_or(|name| name.to_string_lossy() != method)
}

/// The folder of results that were given, or that a file is in.
fn folder_of(given: &Path) -> Result<PathBuf> {
    if !given.exists() {
        bail!("there is no {}\nhint: give a folder that 'explain -o' has written", given.display());
    }
    let whole = given.canonicalize().with_context(|| format!("cannot find {}", given.display()))?;
    Ok(if whole.is_dir() { whole } else { whole.parent().map_or(whole.clone(), Path::to_owned) })
}

fn text(result: &Path, found: &[Verification], verified: bool) -> String {
    let mut text = format!("{}: {}\n", result.display(), if verified { "verified" } else { "differs" });
    for one in found {
        text.push_str(&format!("  {}: {}\n", one.method, in_words(one)));
        for change in &one.because {
            text.push_str(&format!(
                "    {} was {}, and now it is {}\n",
                change.what, change.kept, change.found
            ));
        }
    }
    text
}

fn in_words(one: &Verification) -> String {
    if let Some(change) = one.changed.first() {
        let more = one.changed.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" ({more} more differ)") };
        return format!("{} was {}, and now it is {}{more}", change.what, change.kept, change.found);
    }
    if let Some(difference) = &one.difference {
        return difference_in_words(difference);
    }
    let count = one.explanations;
    match one.tolerance {
        None => format!("{count} explanations, the same to the bit"),
        Some(tolerance) => format!(
            "{count} explanations, credit the same within {tolerance:e} of the largest (largest difference {:.1e})",
            one.largest_difference
        ),
    }
}

fn difference_in_words(difference: &Difference) -> String {
    let Difference { example, name, target, what, feature, kept, found, by } = difference;
    let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let feature = feature.map(|feature| format!(" of feature {feature}")).unwrap_or_default();
    let by = by.map(|by| format!(", a difference of {by:.3e}")).unwrap_or_default();
    format!(
        "input {example}{name}, target {target}: the {what}{feature} was {kept}, and now it is {found}{by}"
    )
}
