//! Where a flow starts: noise, a second data set, or a class of labelled data. Shared by every verb that trains flows.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use brenier::data::{Dataset, OpenOptions, Population};
use brenier::flow::FlowMetadata;
use brenier::runs::ReferenceKind;
use clap::Args;

/// The reference
#[derive(Debug, Clone, Args)]
pub(crate) struct ReferenceArgs {
    /// The distribution at time 0: normal, uniform, or a second data set; default: normal
    #[arg(long, value_name = "normal|uniform|DATA")]
    reference: Option<String>,
    /// Start from the rows of this class of DATA
    #[arg(long, value_name = "CLASS", requires = "to_class", conflicts_with = "reference")]
    from_class: Option<String>,
    /// Go to the rows of this class of DATA only
    #[arg(long, value_name = "CLASS")]
    to_class: Option<String>,
}

/// The distribution at time 0, with its rows where it is data.
pub(crate) struct Reference {
    pub(crate) kind: ReferenceKind,
    pub(crate) rows: Option<Dataset>,
}

impl ReferenceArgs {
    /// What is not said, as a flow says it of itself.
    pub(crate) fn or_like(&self, flow: &FlowMetadata) -> Self {
        let mut like = self.clone();
        if like.to_class.is_none() {
            like.to_class = flow.to_class.clone();
        }
        if like.reference.is_none() && like.from_class.is_none() {
            like.from_class = flow.from_class.clone();
        }
        if like.reference.is_none() && like.from_class.is_none() {
            like.reference = flow.reference.clone().map(|name| match name.as_str() {
                "standard-normal" => "normal".to_string(),
                _ => name,
            });
        }
        like
    }

    /// Whether anything was said.
    pub(crate) fn is_given(&self) -> bool {
        self.reference.is_some() || self.from_class.is_some() || self.to_class.is_some()
    }

    /// What was said, as it is typed.
    pub(crate) fn flags(&self) -> String {
        let given = [
            ("--reference", self.reference.is_some()),
            ("--from-class", self.from_class.is_some()),
            ("--to-class", self.to_class.is_some()),
        ];
        given.iter().filter(|(_, given)| *given).map(|(flag, _)| *flag).collect::<Vec<_>>().join(" and ")
    }

    /// The class to start from and the class to go to.
    pub(crate) fn classes(&self) -> (Option<String>, Option<String>) {
        (self.from_class.clone(), self.to_class.clone())
    }

    /// The rows to train on, those held out, and where the flow starts.
    pub(crate) fn open(
        &self,
        data: Dataset,
        held_out: Dataset,
        options: &OpenOptions,
    ) -> Result<(Dataset, Dataset, Reference)> {
        let class = |data: &Dataset, name: &str| {
            Ok::<_, anyhow::Error>(Population::of_class(data, name)?.rows().clone())
        };
        let reference = match (&self.reference, &self.from_class) {
            (_, Some(from)) => {
                if self.to_class.as_deref() == Some(from) {
                    bail!(
                        "'{from}' is both the class to start from and the class to go to\nhint: name two classes"
                    );
                }
                Reference { kind: ReferenceKind::Data, rows: Some(class(&data, from)?) }
            }
            (Some(name), None) => named(name, options, &data)?,
            (None, None) => Reference { kind: ReferenceKind::StandardNormal, rows: None },
        };
        match &self.to_class {
            None => Ok((data, held_out, reference)),
            Some(to) => Ok((class(&data, to)?, class(&held_out, to)?, reference)),
        }
    }
}

fn named(name: &str, options: &OpenOptions, data: &Dataset) -> Result<Reference> {
    match name {
        "normal" => Ok(Reference { kind: ReferenceKind::StandardNormal, rows: None }),
        "uniform" => Ok(Reference { kind: ReferenceKind::Uniform, rows: None }),
        // A flow names the file that it starts from, and not where it lay.
        path if !Path::new(path).exists() => bail!(
            "the reference '{path}' is not here\nhint: say normal or uniform, or give its file with --reference"
        ),
        path => {
            let rows = Dataset::open(Path::new(path), &options.clone().like(data))
                .with_context(|| format!("cannot use '{path}' as the reference"))?;
            Ok(Reference { kind: ReferenceKind::Data, rows: Some(rows) })
        }
    }
}

impl fmt::Display for ReferenceArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.reference, &self.from_class) {
            (_, Some(class)) => write!(f, "class '{class}'"),
            (Some(name), None) => write!(f, "'{name}'"),
            (None, None) => write!(f, "'normal'"),
        }
    }
}
