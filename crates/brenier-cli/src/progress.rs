//! Bars on the terminal, and the key that stops a run.
//!
//! On a terminal a bar with the time that is left; elsewhere (a log, a pipe) a line now and then, so that a long
//! run in the background says where it is without filling the disk.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use brenier::runs::Event;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{is_quiet, print_progress};

/// What takes no longer than this shows no bar.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Steps of a bar for each step of the work.
const FINE: u64 = 1000;

/// Seconds between lines where there is no terminal.
const LINE_SECONDS: u64 = 15;

/// Whether the user asked to stop. There is one Ctrl-C for the whole process.
static STOP: AtomicBool = AtomicBool::new(false);
static LISTENING: Once = Once::new();
/// Whether somebody looks at [`STOP`], so that a run ends in order.
static HEARD: AtomicBool = AtomicBool::new(false);

/// The key that asks a run to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopKey(());

impl StopKey {
    /// Listens for Ctrl-C from now on: the first asks to stop, the second ends the process.
    pub(crate) fn listen() -> Result<StopKey> {
        leave_on_ctrl_c()?;
        HEARD.store(true, Ordering::SeqCst);
        Ok(StopKey(()))
    }

    pub(crate) fn pressed(self) -> bool {
        STOP.load(Ordering::SeqCst)
    }
}

/// From now on Ctrl-C ends the process with 130 and a word on how to go on; a run that listens ends in order.
pub(crate) fn leave_on_ctrl_c() -> Result<()> {
    let mut listening = Ok(());
    LISTENING.call_once(|| {
        listening = ctrlc::set_handler(|| {
            if !HEARD.load(Ordering::SeqCst) {
                eprintln!("\nstopped before anything was written; the same command starts again");
                std::process::exit(130);
            }
            if STOP.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            eprintln!("\nstopping after this step; press Ctrl-C again to leave at once");
        });
    });
    listening.context("cannot listen for Ctrl-C")
}

/// The end of a run that was asked to stop: what is left of it, and how to go on.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stopped {}

/// Shows what a run is doing.
pub(crate) struct RunProgress {
    stop: StopKey,
    stage: Option<(&'static str, Gauge)>,
    /// The first step of this session that was seen and when; nothing once it was said how long training takes.
    measured: Option<(u64, Instant)>,
    told: bool,
}

/// Seconds of training after which it can be said how long it takes.
const MEASURED_SECONDS: f64 = 3.0;
/// What is over sooner need not be announced.
const WORTH_SAYING_SECONDS: f64 = 10.0;

impl RunProgress {
    pub(crate) fn new(stop: StopKey) -> RunProgress {
        RunProgress { stop, stage: None, measured: None, told: false }
    }

    /// Shows an event; says to stop where the user asked for it.
    pub(crate) fn show(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Training(p, total) => {
                self.tell_time(p.step, total);
                let message = format!("loss {:.5}, rate {:.1e}", p.loss, p.learning_rate);
                self.advance("training", p.step, total, &message);
            }
            Event::Pairs(done, total) => self.advance("pairs", done as u64, total as u64, ""),
            Event::Calibrating(done, total) => {
                self.advance("calibrating", done as u64, total as u64, "");
            }
            Event::Measuring => {
                self.stage = None;
                print_progress("measuring on held-out data");
            }
        }
        self.go_on()
    }

    /// Says once how long training takes on this machine, after some steps.
    fn tell_time(&mut self, step: u64, total: u64) {
        let (first, since) = *self.measured.get_or_insert_with(|| (step, Instant::now()));
        let seconds = since.elapsed().as_secs_f64();
        if self.told || seconds < MEASURED_SECONDS || step >= total {
            return;
        }
        self.told = true;
        let left = seconds / (step - first).max(1) as f64 * (total - step) as f64;
        if left < WORTH_SAYING_SECONDS {
            return;
        }
        let left = indicatif::HumanDuration(Duration::from_secs_f64(left));
        print_progress(&format!(
            "{total} steps: about {left} of training left on this machine, measured over {} steps; --minutes or --steps \
             change that",
            step - first
        ));
    }

    /// Says to stop where the user asked for it.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.stop.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Shows how much of a stage is done.
    pub(crate) fn advance(&mut self, stage: &'static str, done: u64, total: u64, message: &str) {
        match &mut self.stage {
            Some((name, gauge)) if *name == stage => gauge.set(done, message),
            _ => {
                // What an earlier session did is no measure of this one's speed.
                let mut gauge = Gauge::new(stage, total, done, Duration::ZERO);
                gauge.set(done, message);
                self.stage = Some((stage, gauge));
            }
        }
    }
}

/// How far a piece of work is, with the time that is left.
pub(crate) struct Gauge {
    bar: ProgressBar,
    name: &'static str,
    total: u64,
    /// Where it began, and when.
    first: u64,
    began: Instant,
    /// What is over sooner is not spoken of.
    patience: Duration,
    /// When the last line was written, where there is no terminal.
    line: Option<Instant>,
}

impl Gauge {
    /// Work of so many steps, of which some are done; shown once it has taken longer than `patience`.
    pub(crate) fn new(name: &'static str, total: u64, done: u64, patience: Duration) -> Gauge {
        // Fine steps, so that the bar moves within one step of the work.
        let bar =
            ProgressBar::with_draw_target(Some(total.saturating_mul(FINE)), ProgressDrawTarget::hidden());
        bar.set_prefix(name);
        let style = "{prefix} [{bar:30}] {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_position(done.saturating_mul(FINE));
        let began = Instant::now();
        Gauge { bar, name, total, first: done, began, patience, line: None }
    }

    /// So many steps are done.
    pub(crate) fn set(&mut self, done: u64, message: &str) {
        self.set_within(done, 0.0, message);
    }

    /// So many steps are done, and so much of those that come next.
    pub(crate) fn set_within(&mut self, done: u64, more: f64, message: &str) {
        let reached = (done as f64 + more).min(self.total as f64);
        self.bar.set_position((reached * FINE as f64) as u64);
        if is_quiet() || self.began.elapsed() < self.patience {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let comma = if message.is_empty() { "" } else { ", " };
        let said = format!("{done}/{}{comma}{message}{}", self.total, self.left(reached));
        self.bar.set_message(said.clone());
        let due = self.line.is_none_or(|last| last.elapsed() >= Duration::from_secs(LINE_SECONDS));
        let last = done == self.total && self.line.is_some();
        // Still hidden: there is no terminal.
        if self.bar.is_hidden() && (due || last) {
            self.line = Some(Instant::now());
            print_progress(&format!("{} {said}", self.name));
        }
    }

    /// The time that is left, in words. The first event comes before anything can be said of the speed, the last after
    /// it matters.
    fn left(&self, reached: f64) -> String {
        let made = reached - self.first as f64;
        if made <= 0.0 || reached >= self.total as f64 {
            return String::new();
        }
        let left = self.began.elapsed().as_secs_f64() / made * (self.total as f64 - reached);
        format!(", {} left", indicatif::HumanDuration(Duration::from_secs(left as u64)))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
