//! Runs the methods one after another, shows how far they are, and remembers what is to be printed.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, anyhow};
use brenier::data::Column;
use brenier::report::{ExplanationReader, REASONS_CAVEAT, Reasons, ReasonsConfig};
use brenier::runs::explain::{Failure, Finished, Folder, Question, Way};
use brenier::{Certificate, Explanation};

use super::pulse::Pulse;
use super::{Explain, LINES, table, together};
use crate::output::Format;
use crate::output::print_progress;
use crate::progress::{StopKey, Stopped};

pub(super) struct Work<'a, 'q> {
    args: &'a Explain,
    pulse: &'a Pulse,
    question: &'a Question<'q>,
    made_from: Vec<(String, String)>,
    stop: StopKey,
    summaries: Vec<table::Summary>,
    /// Certificates as they are printed.
    json: Vec<String>,
    /// The columns of a table, and the credit of the first explanations by them.
    columns: Vec<Column>,
    credit: Vec<String>,
    /// Explanations that are kept to say their reasons: all, or a few where files have all.
    kept: Vec<Explanation>,
    failures: Vec<Failure>,
}

impl<'a, 'q> Work<'a, 'q> {
    /// `made_from` says by name what results depend on besides inputs, targets and methods.
    pub(super) fn new(
        args: &'a Explain,
        pulse: &'a Pulse,
        question: &'a Question<'q>,
        made_from: Vec<(String, String)>,
    ) -> Result<Work<'a, 'q>> {
        let (summaries, json, columns, credit, kept, failures) = Default::default();
        Ok(Work {
            args,
            pulse,
            question,
            made_from,
            stop: StopKey::listen()?,
            summaries,
            json,
            columns,
            credit,
            kept,
            failures,
        })
    }

    /// The same, for rows of a table with these columns.
    pub(super) fn with_columns(self, columns: Vec<Column>) -> Work<'a, 'q> {
        Work { columns, ..self }
    }

    /// Remembers what an explanation says of its columns, of a few.
    fn remember(&mut self, explanation: &Explanation) {
        if self.credit.len() >= LINES {
            return;
        }
        match self.question.score.inputs() {
            Some(inputs) => self.credit.push(table::by_input(inputs, explanation)),
            None if !self.columns.is_empty() => {
                self.credit.extend(table::by_column(&self.columns, explanation));
            }
            None => {}
        }
    }

    /// Whether there is more to say of an explanation than its certificate.
    fn is_told(&self) -> bool {
        !self.columns.is_empty() || self.question.score.inputs().is_some()
    }

    fn folder(&self, folder: &Path) -> Folder {
        let folder = Folder::new(folder).in_format(self.args.output_format.format());
        let folder = if self.args.force { folder.replacing() } else { folder };
        let folder = if self.args.keep_going { folder.keeping_going() } else { folder };
        match self.args.shard {
            Some(shard) => folder.for_shard(shard),
            None => folder,
        }
    }

    /// The inputs that could not be explained, by any of the methods.
    pub(super) fn failures(&self) -> Vec<Failure> {
        self.failures.clone()
    }

    /// Refuses a folder that holds something else.
    pub(super) fn check(&self, way: &Way, folder: &Path) -> Result<()> {
        Ok(self.folder(folder).check(self.question, way, &self.made_from)?)
    }

    /// Explains all inputs one way, into a folder where there is one.
    pub(super) fn explain(&mut self, way: &Way, folder: Option<&Path>) -> Result<()> {
        let (question, stop, pulse) = (self.question, self.stop, self.pulse);
        let count = question.inputs.count();
        let of = self.args.shard.map_or(count, |shard| shard.inputs(count).len());
        let name = way.name();
        let kept_in = folder.map(|path| self.folder(path));
        let most_lines = if folder.is_some() { LINES + 1 } else { usize::MAX };
        let mut summary = table::Summary::new(name.clone(), most_lines);
        let (told, wanted) = (self.is_told(), self.args.format == Format::Json);
        let mut together = together::Together::default();
        let json = &mut self.json;
        let mut first = Vec::new();
        let with_reasons = self.args.reasons.are_wanted();
        pulse.begin(way, question.score, question.targets.count(), of, stop);
        let mut took = |certificates: &[Certificate], done: usize| -> ControlFlow<()> {
            summary.add(certificates);
            together.add(certificates);
            if wanted {
                json.extend(certificates.iter().filter_map(|c| serde_json::to_string(c).ok()));
            }
            pulse.reach(done)
        };
        let whole = match &kept_in {
            Some(folder) => {
                let mut kept = 0;
                let finished = or_stopped(folder.explain(question, way, &self.made_from, &mut |done| {
                    kept = if done.kept { done.inputs } else { kept };
                    took(done.certificates, done.inputs)
                }))?;
                if finished.is_none_or(|finished| finished == Finished::Stopped) {
                    return Err(anyhow!(Stopped(format!(
                        "stopped before all inputs were explained\nhint: what is finished is in {}; the same command \
                         goes on",
                        folder.parts().display()
                    ))));
                }
                if kept > 0 {
                    print_progress(&format!("{kept} of {of} inputs were explained by an earlier run"));
                }
                self.failures.extend(folder.failures()?);
                for file in folder.results().into_iter().chain([folder.traces()]) {
                    if file.exists() {
                        print_progress(&format!("wrote {}", file.display()));
                    }
                }
                true
            }
            None => or_stopped(question.explain(way, 0, &mut |part| {
                let most = if with_reasons { usize::MAX } else { LINES };
                let few = part.explanations.iter().take(most.saturating_sub(first.len()));
                first.extend(few.filter(|_| told).cloned());
                let certificates: Vec<Certificate> =
                    part.explanations.into_iter().map(|explanation| explanation.certificate).collect();
                Ok(took(&certificates, part.inputs.end))
            }))?
            .unwrap_or(false),
        };
        if !whole {
            return Err(anyhow!(Stopped(
                "stopped before all inputs were explained, and nothing is kept\nhint: with -o DIR a run can be continued"
                    .to_string()
            )));
        }
        pulse.rest();
        if let [flow] = question.context.flows[..]
            && let Some(advice) = together.advice(flow)
        {
            print_progress(&advice);
        }
        self.summaries.push(summary);
        if let Some(folder) = folder.filter(|_| told && of > 0) {
            let most = if with_reasons && wanted { usize::MAX } else { LINES };
            first = ExplanationReader::open(folder)?.take(most).collect::<brenier::Result<_>>()?;
        }
        first.iter().for_each(|explanation| self.remember(explanation));
        if with_reasons {
            self.kept.append(&mut first);
        }
        Ok(())
    }

    /// How many explanations of one method there are.
    pub(super) fn explanations(&self) -> usize {
        self.summaries.first().map_or(0, |summary| summary.explanations)
    }

    /// The reasons that the verb prints: of all rows, or of the first where files have all.
    pub(super) fn reasons(&self, config: &ReasonsConfig, classes: &[String]) -> Result<String> {
        let found: Vec<Reasons> = self
            .kept
            .iter()
            .filter_map(|explanation| config.of(&self.columns, classes, explanation))
            .collect();
        if self.args.format == Format::Json {
            let said = serde_json::json!({ "caveat": REASONS_CAVEAT, "rows": found });
            return Ok(format!("{}\n", serde_json::to_string_pretty(&said)?));
        }
        let mut text: String = found.iter().map(|reasons| reasons.text() + "\n").collect();
        let all: usize = self.summaries.iter().map(|summary| summary.explanations).sum();
        if found.len() < all {
            text += &format!("the reasons of all {all} explanations are in reasons.csv\n\n");
        }
        Ok(text + REASONS_CAVEAT + "\n")
    }

    /// What the verb prints.
    pub(super) fn printed(&self, classes: &[String]) -> Result<String> {
        let lines: usize = self.summaries.iter().map(|summary| summary.explanations).sum();
        Ok(match self.args.format {
            Format::Text if self.args.output.is_some() && lines > LINES => format!(
                "{}\na certificate for each explanation is in {}, and in the report\n",
                table::by_method(&self.summaries)?,
                self.args.output_format.format().files().last().copied().unwrap_or_default()
            ),
            Format::Text => {
                let text = self.args.named.text.is_given();
                let by = match self.question.score.inputs() {
                    Some(_) if text => "word",
                    Some(_) => "input",
                    None => "column",
                };
                table::text(&self.summaries, classes)? + &table::credit(by, &self.credit)
            }
            Format::Json => format!("[{}]\n", self.json.join(",")),
        })
    }
}

/// What a run gave; nothing where it was stopped within an input.
fn or_stopped<T>(found: brenier::Result<T>) -> brenier::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(brenier::Error::Stopped) => Ok(None),
        Err(error) => Err(error),
    }
}
