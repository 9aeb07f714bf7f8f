//! `brenier demo`: the whole way from images to a report, with what is inside the binary.
//!
//! The demo types commands. Each is shown before it runs, is an ordinary verb, and works on ordinary files in the
//! demo's folder, so whoever wants to know what happens can repeat any of them with files of their own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use brenier::data::{Dataset, OpenOptions, Part, Population};
use clap::Args;

use crate::assets::{self, Asset};
use crate::output::print_progress;
use crate::progress::StopKey;

/// See it work: explain embedded images with embedded models and flows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier demo                      with the flows that are in the program; less than a minute
  brenier demo --from-scratch       trains everything first, on 2,600 embedded images; about 10 minutes
  brenier demo -o somewhere")]
pub(crate) struct Demo {
    /// The folder that everything is written to
    #[arg(short, long, value_name = "DIR", default_value = "brenier-demo")]
    output: PathBuf,
    /// How many held-out images are explained; twice as many are evaluated
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=50))]
    images: u32,
    /// Train the classifier, the flows and the diffusion model instead of taking those in the program
    #[arg(long)]
    from_scratch: bool,
}

/// What runs a line that was typed: given by whoever knows all verbs.
type Typed<'a> = &'a dyn Fn(&[OsString]) -> Result<()>;

/// What is compared with transport.
const METHODS: &str = "transport,ig,blur-ig,smoothgrad,gradient-input,grad-cam,ddim";

/// How they are compared.
const METRICS: &str = "relative-residual,fce,gps,deletion-zero,insertion-zero";

pub(crate) fn run(demo: &Demo, typed: Typed) -> Result<()> {
    let began = Instant::now();
    let folder = &demo.output;
    let at = |name: &str| folder.join(name);
    unpack(&at("images"), &assets::IMAGES)?;
    let [classifier, flow, diffusion] = if demo.from_scratch {
        train(folder, typed)?
    } else {
        unpack(folder, &assets::MODELS)?;
        assets::MODELS.map(|(name, _)| folder.join(name))
    };
    let models = |line: Line| line.flag("-m", &classifier).flag("-f", &flow).flag("-f", &diffusion);
    let images = || at("images");
    why_a_pullover(demo, &classifier, typed)?;
    let results = at(if demo.from_scratch { "report-from-scratch" } else { "report" });
    let [shown, measured] = [demo.images, 2 * demo.images].map(|count| count.to_string());
    models(Line::new("evaluate").file(&images()).words("--part test").flag("-n", measured))
        .flag("--methods", METHODS)
        .flag("--metrics", METRICS)
        .flag("-o", &results)
        .words("--force")
        .run(typed)?;
    models(Line::new("explain").file(&images()).words("--part test").flag("--limit", shown))
        .flag("--method", METHODS)
        .flag("-o", &results)
        .words("--force")
        .run(typed)?;
    print_progress(
        "\nWhere transport warns, it is of the reference: black pixels of these images never vary, so nothing tells which \
         noise they came from, and the flow leads them back to less of it than it started from. A certificate says such \
         things; docs/certificates.md says what follows from them.",
    );
    print_progress(&format!(
        "\n{:.0} seconds. Open {} and {} in a browser.",
        began.elapsed().as_secs_f64(),
        at(if demo.from_scratch { "why-from-scratch" } else { "why" }).join("report.html").display(),
        results.join("report.html").display()
    ));
    Ok(())
}

/// Why these are pullovers and no T-shirts: each beside the T-shirt that it would most easily have been.
fn why_a_pullover(demo: &Demo, classifier: &Path, typed: Typed) -> Result<()> {
    let at = |name: &str| demo.output.join(name);
    let inputs = at("pullovers.npy");
    let held_out = OpenOptions { part: Part::Test, ..OpenOptions::default() };
    let pullovers = Population::of_class(&Dataset::open(at("images"), &held_out)?, PULLOVER)?;
    let shown = demo.images.min(u32::try_from(pullovers.rows().len()).unwrap_or(u32::MAX)) as usize;
    let rows = pullovers.rows().rows(0..shown)?.to_f32()?;
    let shape: Vec<usize> = std::iter::once(shown).chain(pullovers.rows().shape().iter().copied()).collect();
    let rows = rows.into_shape_with_order(shape).context("cannot fold the pullovers into images")?;
    ndarray_npy::write_npy(&inputs, &rows).with_context(|| format!("cannot write {}", inputs.display()))?;
    let flow = if demo.from_scratch {
        let run = at("flow-t-shirt-pullover");
        Line::new("train")
            .file(&at("images"))
            .words("--from-class T-shirt --to-class Pullover --patch 2 --levels 1,2 --width 16 --batch 32 --steps 1500")
            .run_in(&run, typed)?;
        run.join("flow.onnx")
    } else {
        unpack(&demo.output, &[assets::PULLOVERS])?;
        at(assets::PULLOVERS.0)
    };
    let results = at(if demo.from_scratch { "why-from-scratch" } else { "why" });
    Line::new("explain")
        .file(&inputs)
        .flag("-m", classifier)
        .flag("-f", flow)
        .flag("--background", at("images"))
        .words("--against T-shirt --contrast --target Pullover --method transport,ig")
        .flag("-o", &results)
        .words("--force")
        .run(typed)?;
    print_progress(&format!(
        "\nWhy pullovers and no T-shirts: {} shows each beside the T-shirt that it would most easily have been. What the two \
         share gets no credit.",
        results.join("report.html").display()
    ));
    Ok(())
}

/// The class whose images are compared with T-shirts.
const PULLOVER: &str = "Pullover";

/// Trains everything, in runs that go on where they were stopped.
fn train(folder: &Path, typed: Typed) -> Result<[PathBuf; 3]> {
    print_progress(
        "Training on 2,600 images takes about 10 minutes on two cores. Expect a classifier that is right three times \
         in four, and samples that are clothes, if blurred ones. Ctrl-C stops; the same command goes on.",
    );
    let images = folder.join("images");
    Line::new("train")
        .file(&images)
        .words("--objective classify --patch 2 --width 32 --levels 1,2 --batch 64 --steps 1000 --learning-rate 3e-3 --shift 1")
        .run_in(&folder.join("classifier"), typed)?;
    let network = "--patch 2 --levels 1,2 --width 16 --batch 32";
    Line::new("train")
        .file(&images)
        .words(network)
        .words("--steps 2000")
        .run_in(&folder.join("flow-1"), typed)?;
    Line::new("reflow")
        .file(&folder.join("flow-1"))
        .file(&images)
        .words("--generated 1000 --inverted 1000 --steps 800 --batch 32 --learning-rate 5e-4")
        .run_in(&folder.join("flow-2"), typed)?;
    Line::new("train")
        .file(&images)
        .words("--objective ddpm --steps 1200")
        .words(network)
        .run_in(&folder.join("diffusion"), typed)?;
    Ok(["classifier/classifier.onnx", "flow-2/flow.onnx", "diffusion/ddpm.onnx"]
        .map(|name| folder.join(name)))
}

/// Writes files into a folder, which is made where it is missing.
fn unpack(folder: &Path, files: &[Asset]) -> Result<()> {
    let hint = "hint: name a folder that can be written to with -o";
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}\n{hint}", folder.display()))?;
    for (name, bytes) in files {
        let file = folder.join(name);
        std::fs::write(&file, bytes).with_context(|| format!("cannot write {}\n{hint}", file.display()))?;
    }
    Ok(())
}

/// A line as a user would type it.
struct Line(Vec<OsString>);

impl Line {
    fn new(verb: &str) -> Line {
        Line(vec!["brenier".into(), verb.into()])
    }

    /// Words that need no quotes.
    fn words(mut self, words: &str) -> Line {
        self.0.extend(words.split(' ').map(OsString::from));
        self
    }

    fn file(mut self, file: &Path) -> Line {
        self.0.push(file.into());
        self
    }

    fn flag(mut self, flag: &str, value: impl Into<OsString>) -> Line {
        self.0.extend([flag.into(), value.into()]);
        self
    }

    /// Trains into a folder; goes on with the run that is there.
    fn run_in(self, folder: &Path, typed: Typed) -> Result<()> {
        let begun = folder.join("run.json").exists();
        let line = self.flag("-o", folder);
        if begun { line.words("--resume").run(typed) } else { line.run(typed) }
    }

    /// Shows the line, and does what it says.
    fn run(self, typed: Typed) -> Result<()> {
        let shown: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        print_progress(&format!("\n$ {}", shown.join(" ")));
        typed(&self.0)?;
        if StopKey::listen()?.pressed() {
            bail!("stopped\nhint: the same command goes on from here");
        }
        Ok(())
    }
}
