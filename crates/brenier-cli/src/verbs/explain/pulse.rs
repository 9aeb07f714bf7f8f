//! How far an explanation of a single input is: a method that asks thousands of scores for it shows that it lives, and can
//! be stopped between two batches.

use std::cell::RefCell;
use std::ops::ControlFlow;

use brenier::Score;
use brenier::runs::explain::Way;

use crate::progress::{Gauge, PATIENCE, StopKey};

/// Counts what a score is asked, and shows it. At rest it lets everything pass.
#[derive(Default)]
pub(crate) struct Pulse(RefCell<Option<Beat>>);

/// One method at work.
struct Beat {
    gauge: Gauge,
    stop: StopKey,
    name: String,
    /// Rows of scores or gradients that an input takes, where the method knows.
    each: Option<usize>,
    /// Inputs that are explained.
    done: usize,
    /// Rows since.
    rows: usize,
}

impl Pulse {
    /// A method begins with so many inputs, of so many targets each.
    pub(super) fn begin(&self, way: &Way, score: &dyn Score, targets: usize, inputs: usize, stop: StopKey) {
        let each = match way {
            Way::Method(method) => method.evaluations(score.shape()),
            Way::Along { .. } => None,
        };
        let each = each.map(|each| each.saturating_mul(targets));
        let gauge = Gauge::new("explaining", inputs as u64, 0, PATIENCE);
        *self.0.borrow_mut() = Some(Beat { gauge, stop, name: way.name(), each, done: 0, rows: 0 });
    }

    /// So many inputs are explained.
    pub(super) fn reach(&self, done: usize) -> ControlFlow<()> {
        let mut beat = self.0.borrow_mut();
        let Some(beat) = beat.as_mut() else { return ControlFlow::Continue(()) };
        (beat.done, beat.rows) = (done, 0);
        beat.gauge.set(done as u64, &beat.name);
        beat.go_on()
    }

    /// The score had so many rows.
    pub(super) fn tell(&self, rows: usize) -> ControlFlow<()> {
        let mut beat = self.0.borrow_mut();
        let Some(beat) = beat.as_mut() else { return ControlFlow::Continue(()) };
        beat.rows += rows;
        let (rows, next) = (beat.rows, beat.done + 1);
        let (more, said) = match beat.each {
            // Rows of several inputs may be under way together.
            Some(each) if each > 0 => {
                (rows as f64 / each as f64, format!("{}, {rows} rows of {each} an input", beat.name))
            }
            _ => (0.0, format!("{}, {rows} rows from input {next} on", beat.name)),
        };
        beat.gauge.set_within(beat.done as u64, more, &said);
        beat.go_on()
    }

    /// The method is done.
    pub(super) fn rest(&self) {
        *self.0.borrow_mut() = None;
    }
}

impl Beat {
    fn go_on(&self) -> ControlFlow<()> {
        if self.stop.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
