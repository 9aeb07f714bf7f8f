//! Where ONNX Runtime runs: its execution providers, as a closed choice.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The device, and the library that drives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// The processor.
    #[default]
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
    /// NVIDIA GPUs, compiled by TensorRT.
    TensorRt,
    /// AMD GPUs (ONNX Runtime up to 1.22).
    Rocm,
    /// AMD GPUs, compiled by MIGraphX.
    MiGraphX,
    /// Apple devices.
    CoreMl,
    /// Any DirectX 12 GPU on Windows.
    DirectMl,
    /// Intel devices.
    OpenVino,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Provider; 8] = [
        Provider::Cpu,
        Provider::Cuda,
        Provider::TensorRt,
        Provider::Rocm,
        Provider::MiGraphX,
        Provider::CoreMl,
        Provider::DirectMl,
        Provider::OpenVino,
    ];

    /// The name, as in configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Cpu => "cpu",
            Provider::Cuda => "cuda",
            Provider::TensorRt => "tensorrt",
            Provider::Rocm => "rocm",
            Provider::MiGraphX => "migraphx",
            Provider::CoreMl => "coreml",
            Provider::DirectMl => "directml",
            Provider::OpenVino => "openvino",
        }
    }
}

impl std::fmt::Display for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = Error;

    fn from_str(name: &str) -> Result<Provider> {
        Provider::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| Error::UnknownChoice {
            what: "execution provider",
            found: name.to_string(),
            known: Provider::ALL.map(Provider::name).to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for provider in Provider::ALL {
            assert_eq!(provider.name().parse::<Provider>().unwrap(), provider);
            assert_eq!(serde_json::to_string(&provider).unwrap(), format!("\"{provider}\""));
        }
        assert!("gpu".parse::<Provider>().unwrap_err().to_string().contains("cpu, cuda, tensorrt"));
    }
}
