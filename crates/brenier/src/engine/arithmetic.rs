//! How the built-in engine computes convolutions.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How the built-in engine computes convolutions of 3x3 with constant weights and single steps: a trade of rounding errors
/// for time. All others, and ONNX Runtime's, are the plain sum in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// Winograd's F(4x4, 3x3) (F(2x2, 3x3) where weights are very many): rounding errors of a gradient about three times those
    /// of the plain sum.
    #[default]
    Fast,
    /// Winograd's F(2x2, 3x3): rounding errors about those of the plain sum.
    Accurate,
}

impl Arithmetic {
    /// The name, as in configurations, on the command line and in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Fast => "fast",
            Arithmetic::Accurate => "accurate",
        }
    }

    /// What kernels call it.
    pub(crate) fn of_kernels(self) -> brenier_kernels::Arithmetic {
        match self {
            Arithmetic::Fast => brenier_kernels::Arithmetic::Fast,
            Arithmetic::Accurate => brenier_kernels::Arithmetic::Accurate,
        }
    }
}

impl std::fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arithmetic {
    type Err = Error;

    fn from_str(name: &str) -> Result<Arithmetic> {
        let all = [Arithmetic::Fast, Arithmetic::Accurate];
        all.into_iter().find(|arithmetic| arithmetic.name() == name).ok_or_else(|| Error::UnknownChoice {
            what: "arithmetic",
            found: name.to_string(),
            known: all.map(Arithmetic::name).to_vec(),
        })
    }
}
