//! Scores that are not one vector, as typed: places along axes, ranges that are put together, differences.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::{Along, Minus, ModelFile, Reduce, Scoring, Within, score_axes};
use clap::{Args, ValueEnum};
use ndarray::ArrayD;

use super::model::ModelArgs;
use super::targets::class_index;
use crate::engine_args::EngineArgs;

/// What is taken from a score to make a margin of it.
const HIGHEST_OTHER: &str = "highest-other";

/// Scores that are not one number of a vector
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ScoringArgs {
    /// How the places of a target such as 5,:,: become one score
    #[arg(long, value_name = "HOW", conflicts_with = "targets")]
    reduce: Option<How>,
    /// Weights of the places that --reduce puts together, such as the mask of a segment: an .npy file
    #[arg(long, value_name = "FILE", requires = "reduce")]
    pub(crate) within: Option<PathBuf>,
    /// Explain the target's score minus another: a class, places such as 3,:,:, or highest-other for the margin
    #[arg(long, value_name = "CLASS|highest-other", conflicts_with_all = ["contrast", "targets"])]
    minus: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    Mean,
    Sum,
    Max,
}

impl From<How> for Reduce {
    fn from(how: How) -> Reduce {
        match how {
            How::Mean => Reduce::Mean,
            How::Sum => Reduce::Sum,
            How::Max => Reduce::Max,
        }
    }
}

impl ScoringArgs {
    /// What these flags and the target say; nothing where the scores are those of a vector.
    pub(crate) fn scoring(
        &self,
        target: &str,
        model: &ModelArgs,
        engine: &EngineArgs,
    ) -> Result<Option<Scoring>> {
        let plain = self.reduce.is_none() && self.minus.is_none();
        if plain && target == "predicted" {
            return Ok(None);
        }
        let file = ModelFile::open(&model.model)?;
        let config = model.config(engine)?;
        // Trees and what cannot be read have no axes: whoever loads the model says why.
        let axes = file.model().ok().and_then(|model| score_axes(model, &config));
        let sizes = axes.unwrap_or_default();
        let several = sizes.iter().filter(|size| **size != Some(1)).count() > 1;
        let along = target.contains(':') || self.reduce.is_some() || (several && target != "predicted");
        let names = model.names_beside(&file)?;
        let picked = |text: &str| places(text, &sizes, &names);
        let target = if along { picked(target)? } else { Vec::new() };
        let minus = match self.minus.as_deref() {
            None => None,
            Some(HIGHEST_OTHER) => Some(Minus::HighestOther),
            Some(other) if !target.is_empty() => Some(Minus::Score(picked(other)?)),
            Some(other) => {
                let outputs = sizes.first().copied().flatten().unwrap_or(usize::MAX);
                Some(Minus::Score(vec![Along::Place(class_index(other, outputs, &names)?)]))
            }
        };
        if target.is_empty() && minus.is_none() {
            return Ok(None);
        }
        let within = self.within.as_deref().map(weights).transpose()?;
        Ok(Some(Scoring { target, reduce: self.reduce.map(Reduce::from), within, minus }))
    }
}

/// What is said of each axis: a number or a name, `:`, `3:8`, or `predicted`.
fn places(text: &str, sizes: &[Option<usize>], classes: &[String]) -> Result<Vec<Along>> {
    let part = |(axis, part): (usize, &str)| -> Result<Along> {
        let part = part.trim();
        let number = |text: &str, open: Option<usize>| -> Result<usize> {
            match (text.is_empty(), text.parse::<usize>(), open) {
                (false, Ok(number), _) => Ok(number),
                (true, _, Some(open)) => Ok(open),
                _ => bail!(
                    "'{part}' is no range of places\nhint: say 3:8 for places 3 to 7, or ':' for all of an axis"
                ),
            }
        };
        Ok(match part {
            "predicted" => Along::Each,
            ":" => Along::All,
            _ if part.contains(':') => {
                let (from, to) = part.split_once(':').unwrap_or((part, ""));
                Along::Range(number(from, Some(0))?, number(to, sizes.get(axis).copied().flatten())?)
            }
            _ => match (part.parse::<usize>(), classes.iter().position(|class| class == part)) {
                (Ok(place), _) | (_, Some(place)) => Along::Place(place),
                _ => bail!(
                    "'{part}' is no place along an axis\nhint: say a number from 0 on, a class by name, a range such as 3:8, \
                     ':' for all, or 'predicted'"
                ),
            },
        })
    };
    text.split(',').enumerate().map(part).collect()
}

/// An array of weights, or of true and false.
fn weights(file: &Path) -> Result<Within> {
    brenier::data::expect_honest_npy(file)?;
    let shown = file.display();
    let numbers: Result<ArrayD<f32>, _> = ndarray_npy::read_npy(file);
    let array = numbers
        .or_else(|_| ndarray_npy::read_npy::<_, ArrayD<f64>>(file).map(|array| array.mapv(|v| v as f32)))
        .or_else(|_| ndarray_npy::read_npy::<_, ArrayD<u8>>(file).map(|array| array.mapv(f32::from)))
        .or_else(|_| {
            ndarray_npy::read_npy::<_, ArrayD<bool>>(file).map(|array| array.mapv(|v| f32::from(u8::from(v))))
        })
        .with_context(|| {
            format!("cannot read {shown} as weights: it takes booleans, uint8, float32 or float64")
        })?;
    Ok(Within { shape: array.shape().to_vec(), weights: array.iter().copied().collect() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_each_axis() {
        let classes = vec!["cat".to_string(), "dog".to_string()];
        let found = places("dog, :,2:4,3:,predicted", &[Some(2), Some(9), Some(9), Some(9), None], &classes);
        let expected = [Along::Place(1), Along::All, Along::Range(2, 4), Along::Range(3, 9), Along::Each];
        assert_eq!(found.unwrap(), expected);
        let told = |text: &str| places(text, &[None], &classes).unwrap_err().to_string();
        assert!(told("cow").contains("'cow' is no place along an axis"));
        assert!(told("3:").contains("is no range of places"));
        assert!(told("-1").contains("from 0 on"));
    }
}
