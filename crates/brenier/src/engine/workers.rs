//! One program per core, fed with micro-batches of a fixed size.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use onnx_grad::Model;

use super::{Engine, Program, Tensor, TensorView, Weights};
use crate::error::{EngineError, Error, Result};

/// Long-lived single-threaded workers, each with a program of the same model.
///
/// A batch `[N, ...]` is cut into micro-batches of a fixed number of rows, which stream to whichever worker
/// is free. At most two micro-batches per worker are under way, so memory does not grow with the batch.
/// Several threads may use the same workers at once.
#[derive(Debug)]
pub struct Workers {
    /// Dropped first, which ends the threads.
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    outputs: Vec<String>,
    micro_batch: usize,
}

/// A micro-batch to run, and where its outputs go.
struct Job {
    index: usize,
    names: Arc<[String]>,
    rows: Vec<Tensor>,
    shared: Arc<[(String, Tensor)]>,
    reply: Sender<(usize, Result<Vec<Tensor>>)>,
}

impl Workers {
    /// As many workers as suit the engine, with as many rows at a time as suit engine and model: see
    /// [`Plan`](super::Plan).
    pub fn planned(engine: &dyn Engine, model: &Model) -> Result<Workers> {
        Workers::new(engine, model, engine.plan(Weights::Constants).rows(&model.graph)?)
    }

    /// As many workers as suit the engine. A program always sees `micro_batch` rows.
    pub fn new(engine: &dyn Engine, model: &Model, micro_batch: usize) -> Result<Workers> {
        Workers::with_count(engine, model, micro_batch, engine.workers())
    }

    /// This many workers. Their number does not change results.
    pub fn with_count(
        engine: &dyn Engine,
        model: &Model,
        micro_batch: usize,
        count: usize,
    ) -> Result<Workers> {
        if count == 0 {
            return Err(Error::Zero { what: "the number of workers" });
        }
        let outputs = model.graph.outputs.iter().map(|output| output.name.clone()).collect();
        Workers::with_programs(engine.name(), engine.load_many(model, count)?, outputs, micro_batch)
    }

    /// A worker for each of these programs of the same model, whose outputs have these names.
    pub fn with_programs(
        engine: &'static str,
        programs: Vec<Box<dyn Program>>,
        outputs: Vec<String>,
        micro_batch: usize,
    ) -> Result<Workers> {
        if micro_batch == 0 {
            return Err(Error::Zero { what: "the number of rows of a micro-batch" });
        }
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut workers =
            Workers { jobs: Some(jobs), threads: Vec::with_capacity(programs.len()), outputs, micro_batch };
        for (i, program) in programs.into_iter().enumerate() {
            let queue = Arc::clone(&queue);
            let thread = Builder::new()
                .name(format!("brenier-{i}"))
                .spawn(move || work(program, &queue, engine))
                .map_err(|e| Error::Engine(EngineError::Worker { reason: e.to_string() }))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// The number of workers.
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// The number of rows that a program sees at once.
    pub fn micro_batch(&self) -> usize {
        self.micro_batch
    }

    /// Runs the model over all rows and returns its outputs, row `i` belonging to row `i` of the inputs.
    ///
    /// All inputs and all outputs have the rows as their first axis. The last micro-batch is filled up with
    /// copies of its last row, whose results are dropped, so every row is computed in company of the same
    /// size. Its place among them does not matter either to RTen. To ONNX Runtime it can, in the last bits:
    /// its `ReduceSum`, `ReduceSumSquare`, `ReduceMean` and `InstanceNormalization` over a number of elements that is not a
    /// multiple of 4 depend on the row's alignment, and its `Sin`, `Cos`, `Log`, `Elu` and `Softplus` treat
    /// the last few elements of a tensor differently. A micro-batch of 1 avoids both, one of a multiple of 4
    /// the latter.
    pub fn map(&self, inputs: &[(&str, TensorView)]) -> Result<Vec<Tensor>> {
        let rows = row_count(inputs)?;
        let mut outputs: Vec<Tensor> = Vec::new();
        let mut micro_batches = self.micro_batches(rows);
        if rows == 0 {
            // Even no rows have a shape; the engine tells it.
            micro_batches.push(0..0);
        }
        self.stream(inputs, &[], micro_batches, Padding::Rows, |range, results| {
            for (name, result) in self.outputs.iter().zip(&results) {
                if result.shape().first() != Some(&self.micro_batch) {
                    return Err(Error::Engine(EngineError::NoBatchAxis {
                        name: name.clone(),
                        shape: result.shape().to_vec(),
                        rows: self.micro_batch,
                    }));
                }
            }
            if outputs.is_empty() {
                outputs = results.iter().map(|result| result.zeros_with_rows(rows)).collect();
            }
            for (output, result) in outputs.iter_mut().zip(&results) {
                if output.shape()[1..] != result.shape()[1..] {
                    let mut expected = output.shape().to_vec();
                    expected[0] = self.micro_batch;
                    return Err(Error::Shape {
                        what: format!("an output of rows {range:?}"),
                        expected,
                        found: result.shape().to_vec(),
                    });
                }
                output.copy_rows(range.clone(), result);
            }
            Ok(())
        })?;
        Ok(outputs)
    }

    /// Runs the model on every micro-batch and hands its outputs to `consume`, in the order of the rows.
    ///
    /// For outputs without rows, such as a gradient summed over them: reduced in this order, they are
    /// bit-identical for any number of workers. `shared` inputs have no rows and are passed to every run.
    /// The last micro-batch is *not* filled up, for a sum must not count copies: it may be smaller. The
    /// rows of each micro-batch are told.
    ///
    /// Stops at the first error, from the engine or from `consume`.
    pub fn run_each(
        &self,
        inputs: &[(&str, TensorView)],
        shared: &[(&str, TensorView)],
        consume: impl FnMut(Range<usize>, Vec<Tensor>) -> Result<()>,
    ) -> Result<()> {
        let rows = row_count(inputs)?;
        self.stream(inputs, shared, self.micro_batches(rows), Padding::None, consume)
    }

    fn micro_batches(&self, rows: usize) -> Vec<Range<usize>> {
        let starts = (0..rows).step_by(self.micro_batch);
        starts.map(|start| start..(start + self.micro_batch).min(rows)).collect()
    }

    fn stream(
        &self,
        inputs: &[(&str, TensorView)],
        shared: &[(&str, TensorView)],
        micro_batches: Vec<Range<usize>>,
        padding: Padding,
        mut consume: impl FnMut(Range<usize>, Vec<Tensor>) -> Result<()>,
    ) -> Result<()> {
        let gone = || Error::Engine(EngineError::Worker { reason: "it has ended".to_string() });
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        let names: Arc<[String]> = inputs.iter().map(|(name, _)| name.to_string()).collect();
        let shared: Arc<[(String, Tensor)]> =
            shared.iter().map(|(name, tensor)| (name.to_string(), tensor.to_owned())).collect();
        let (reply, replies) = channel();
        let mut early = BTreeMap::new();
        let mut waiting = micro_batches.iter().enumerate();
        let ahead = 2 * self.threads.len();
        for (next, range) in micro_batches.iter().enumerate() {
            // At first a few at once, then one for each that is done.
            let send = if next == 0 { ahead } else { 1 };
            for (index, range) in waiting.by_ref().take(send) {
                let count = match padding {
                    Padding::Rows => self.micro_batch,
                    Padding::None => range.len(),
                };
                let rows = inputs.iter().map(|(_, t)| t.padded_rows(range.clone(), count)).collect();
                let (names, shared) = (Arc::clone(&names), Arc::clone(&shared));
                let job = Job { index, names, rows, shared, reply: reply.clone() };
                jobs.send(job).map_err(|_| gone())?;
            }
            let result = loop {
                if let Some(result) = early.remove(&next) {
                    break result;
                }
                let (index, result) = replies.recv().map_err(|_| gone())?;
                early.insert(index, result);
            };
            consume(range.clone(), result?)?;
        }
        Ok(())
    }
}

/// Whether the last micro-batch is filled up to the size of the others.
#[derive(Clone, Copy)]
enum Padding {
    Rows,
    None,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A worker catches panics, and there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// What a worker does until nobody can send it anything.
fn work(mut program: Box<dyn Program>, queue: &Mutex<Receiver<Job>>, engine: &'static str) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { index, names, rows, shared, reply }) = job else { return };
        let rows = names.iter().zip(&rows).map(|(name, tensor)| (name.as_str(), tensor.view()));
        let shared = shared.iter().map(|(name, tensor)| (name.as_str(), tensor.view()));
        let inputs: Vec<_> = rows.chain(shared).collect();
        // An engine that panics must not leave the caller waiting for ever.
        let result = catch_unwind(AssertUnwindSafe(|| program.run(&inputs))).unwrap_or_else(|panic| {
            let reason = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Err(Error::Engine(EngineError::Run {
                engine,
                inputs: super::signature::Signature::describe(&inputs),
                node: None,
                reason: format!("it panicked ({reason})"),
            }))
        });
        // Nobody listens after an error in an earlier micro-batch.
        let _ = reply.send((index, result));
    }
}

/// The number of rows that all inputs have.
fn row_count(inputs: &[(&str, TensorView)]) -> Result<usize> {
    let rows = inputs.first().and_then(|(_, tensor)| tensor.shape().first().copied()).unwrap_or_default();
    match inputs.iter().find(|(_, tensor)| tensor.shape().first() != Some(&rows)) {
        None => Ok(rows),
        Some((name, tensor)) => Err(Error::Engine(EngineError::Rows {
            name: name.to_string(),
            shape: tensor.shape().to_vec(),
            rows,
        })),
    }
}
