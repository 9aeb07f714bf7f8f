//! Bars on the terminal, and the key that stops a run.
//!
//! On a terminal a bar with the time that is left; elsewhere (a log, a pipe) a line now and then, so that a long
//! run in the background says where it is without filling the disk.

use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use brenier::runs::Event;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::print_progress;

/// Seconds between lines where there is no terminal.
const LINE_SECONDS: u64 = 15;

/// Whether the user asked to stop. There is one Ctrl-C for the whole process.
static STOP: AtomicBool = AtomicBool::new(false);
static LISTENING: Once = Once::new();

/// The key that asks a run to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopKey(());

impl StopKey {
    /// Listens for Ctrl-C from now on: the first asks to stop, the second ends the process.
    pub(crate) fn listen() -> Result<StopKey> {
        let mut listening = Ok(());
        LISTENING.call_once(|| {
            listening = ctrlc::set_handler(|| {
                if STOP.swap(true, Ordering::SeqCst) {
                    std::process::exit(130);
                }
                eprintln!("\nstopping after this step; press Ctrl-C again to leave at once");
            });
        });
        listening.context("cannot listen for Ctrl-C")?;
        Ok(StopKey(()))
    }

    pub(crate) fn pressed(self) -> bool {
        STOP.load(Ordering::SeqCst)
    }
}

/// Shows what a run is doing.
pub(crate) struct RunProgress {
    stop: StopKey,
    bar: ProgressBar,
    stage: Option<&'static str>,
    line: Option<Instant>,
    began: Instant,
    first: u64,
    quiet: bool,
}

impl RunProgress {
    pub(crate) fn new(stop: StopKey, quiet: bool) -> RunProgress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let now = Instant::now();
        RunProgress { stop, bar, stage: None, line: None, began: now, first: 0, quiet }
    }

    /// Shows an event; says to stop where the user asked for it.
    pub(crate) fn show(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Training(p, total) => {
                let message = format!("loss {:.5}, rate {:.1e}", p.loss, p.learning_rate);
                self.advance("training", p.step, total, &message);
            }
            Event::Pairs(done, total) => self.advance("pairs", done as u64, total as u64, ""),
            Event::Measuring => {
                self.bar.finish_and_clear();
                if !self.quiet {
                    print_progress("measuring on held-out data");
                }
            }
        }
        self.go_on()
    }

    /// Says to stop where the user asked for it.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.stop.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Shows how much of a stage is done.
    pub(crate) fn advance(&mut self, stage: &'static str, done: u64, total: u64, message: &str) {
        if self.stage != Some(stage) {
            self.stage = Some(stage);
            self.bar.reset();
            self.bar.set_length(total);
            self.bar.set_prefix(stage);
            let style = "{prefix} [{bar:30}] {pos}/{len}  {msg}  {eta} left";
            if let Ok(style) = ProgressStyle::with_template(style) {
                self.bar.set_style(style.progress_chars("=> "));
            }
            (self.began, self.first) = (Instant::now(), done);
            // What an earlier session did is no measure of this one's speed.
            self.bar.set_position(done);
            self.bar.reset_eta();
        }
        self.bar.set_position(done);
        self.bar.set_message(message.to_string());
        let due = self.line.is_none_or(|last| last.elapsed() >= Duration::from_secs(LINE_SECONDS));
        if self.bar.is_hidden() && !self.quiet && (due || done == total) {
            self.line = Some(Instant::now());
            let comma = if message.is_empty() { "" } else { ", " };
            let left = match done - self.first {
                // The first event comes before anything can be said of the speed.
                0 => String::new(),
                made => {
                    let left = self.began.elapsed().as_secs_f64() / made as f64 * (total - done) as f64;
                    format!(", {} left", indicatif::HumanDuration(Duration::from_secs(left as u64)))
                }
            };
            print_progress(&format!("{stage} {done}/{total}{comma}{message}{left}"));
        }
    }
}
