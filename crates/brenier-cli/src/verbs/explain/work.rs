//! Runs the methods one after another, shows how far they are, and remembers what is to be printed.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, anyhow};
use brenier::data::Column;
use brenier::report::ExplanationReader;
use brenier::runs::explain::{Finished, Folder, Question, Way};
use brenier::{Certificate, Explanation};

use super::{Explain, LINES, table};
use crate::output::Format;
use crate::output::print_progress;
use crate::progress::{Gauge, PATIENCE, StopKey, Stopped};

pub(super) struct Work<'a, 'q> {
    args: &'a Explain,
    question: &'a Question<'q>,
    made_from: Vec<(String, String)>,
    stop: StopKey,
    summaries: Vec<table::Summary>,
    /// Certificates as they are printed.
    json: Vec<String>,
    /// The columns of a table, and the credit of the first explanations by them.
    columns: Vec<Column>,
    credit: Vec<String>,
}

impl<'a, 'q> Work<'a, 'q> {
    /// `made_from` says by name what results depend on besides inputs, targets and methods.
    pub(super) fn new(
        args: &'a Explain,
        question: &'a Question<'q>,
        made_from: Vec<(String, String)>,
    ) -> Result<Work<'a, 'q>> {
        let (summaries, json, columns, credit) = Default::default();
        Ok(Work { args, question, made_from, stop: StopKey::listen()?, summaries, json, columns, credit })
    }

    /// The same, for rows of a table with these columns.
    pub(super) fn with_columns(self, columns: Vec<Column>) -> Work<'a, 'q> {
        Work { columns, ..self }
    }

    /// Remembers what an explanation says of its columns, of a few.
    fn remember(&mut self, explanation: &Explanation) {
        if self.credit.len() < LINES && !self.columns.is_empty() {
            self.credit.extend(table::by_column(&self.columns, explanation));
        }
    }

    fn folder(&self, folder: &Path) -> Folder {
        let folder = Folder::new(folder);
        if self.args.force { folder.replacing() } else { folder }
    }

    /// Refuses a folder that holds something else.
    pub(super) fn check(&self, way: &Way, folder: &Path) -> Result<()> {
        Ok(self.folder(folder).check(self.question, way, &self.made_from)?)
    }

    /// Explains all inputs one way, into a folder where there is one.
    pub(super) fn explain(&mut self, way: &Way, folder: Option<&Path>) -> Result<()> {
        let (question, stop) = (self.question, self.stop);
        let of = question.inputs.count();
        let name = way.name();
        let most_lines = if folder.is_some() { LINES + 1 } else { usize::MAX };
        let mut summary = table::Summary::new(name.clone(), most_lines);
        let wanted = self.args.format == Format::Json;
        let json = &mut self.json;
        let (table_of, mut first) = (&self.columns, Vec::new());
        let mut gauge = Gauge::new("explaining", of as u64, 0, PATIENCE);
        let mut took = |certificates: &[Certificate], done: usize| -> ControlFlow<()> {
            summary.add(certificates);
            if wanted {
                json.extend(certificates.iter().filter_map(|c| serde_json::to_string(c).ok()));
            }
            gauge.set(done as u64, &name);
            if stop.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let whole = match folder {
            Some(path) => {
                let folder = Folder::new(path);
                let folder = if self.args.force { folder.replacing() } else { folder };
                let mut kept = 0;
                let finished = folder.explain(question, way, &self.made_from, &mut |done| {
                    kept = if done.kept { done.inputs } else { kept };
                    took(done.certificates, done.inputs)
                })?;
                if finished == Finished::Stopped {
                    return Err(anyhow!(Stopped(format!(
                        "stopped before all inputs were explained\nhint: what is finished is in {}; the same command \
                         goes on",
                        folder.parts().display()
                    ))));
                }
                if kept > 0 {
                    print_progress(&format!("{kept} of {of} inputs were explained by an earlier run"));
                }
                for file in [folder.arrays(), folder.certificates(), folder.traces()] {
                    if file.exists() {
                        print_progress(&format!("wrote {}", file.display()));
                    }
                }
                true
            }
            None => question.explain(way, 0, &mut |part| {
                let few = part.explanations.iter().take(LINES.saturating_sub(first.len()));
                first.extend(few.filter(|_| !table_of.is_empty()).cloned());
                let certificates: Vec<Certificate> =
                    part.explanations.into_iter().map(|explanation| explanation.certificate).collect();
                Ok(took(&certificates, part.inputs.end))
            })?,
        };
        if !whole {
            return Err(anyhow!(Stopped(
                "stopped before all inputs were explained, and nothing is kept\nhint: with -o DIR a run can be continued"
                    .to_string()
            )));
        }
        drop(gauge);
        self.summaries.push(summary);
        if let Some(folder) = folder.filter(|_| !self.columns.is_empty()) {
            first = ExplanationReader::open(folder)?.take(LINES).collect::<brenier::Result<_>>()?;
        }
        first.iter().for_each(|explanation| self.remember(explanation));
        Ok(())
    }

    /// What the verb prints.
    pub(super) fn printed(&self, classes: &[String]) -> Result<String> {
        let lines: usize = self.summaries.iter().map(|summary| summary.explanations).sum();
        Ok(match self.args.format {
            Format::Text if self.args.output.is_some() && lines > LINES => format!(
                "{}\na certificate for each explanation is in explanations.jsonl, and in the report\n",
                table::by_method(&self.summaries)?
            ),
            Format::Text => table::text(&self.summaries, classes)? + &table::credit(&self.credit),
            Format::Json => format!("[{}]\n", self.json.join(",")),
        })
    }
}
