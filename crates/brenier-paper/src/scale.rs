//! How large an experiment is run.

use serde::{Deserialize, Serialize};

/// How much is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// One seed and short trainings: to see that it works.
    Quick,
    /// Five seeds, as in the paper.
    #[default]
    Full,
}

impl Scale {
    /// The scale in a word.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Full => "full",
        }
    }

    /// The number of seeds: the paper has 5.
    pub(crate) fn seeds(self) -> u64 {
        match self {
            Scale::Quick => 1,
            Scale::Full => 5,
        }
    }
}
