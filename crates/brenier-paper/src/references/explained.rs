//! Examples of a model, and what a way of explaining them has on a planted truth.

use brenier::evaluate::{Comparable, Direction, Lead, Metric};
use brenier::problems::Planted;
use brenier::{Error, OnnxPredictor, Result, VelocityField};
use ndarray::{Array2, ArrayView2, Axis};

use super::super::Row;
use super::super::compare::{Ways, along_lines, truth_scores};

const METRICS: [(&str, &str); 3] =
    [("mass-accuracy", "mass"), ("rank-accuracy", "rank"), ("pointing-game", "point")];

/// What one way of comparing has on the examples: a method, a metric and a value for each example.
pub(super) type Scores = Vec<(String, String, Vec<Option<f64>>)>;

/// A model and the examples on which it is explained.
pub(super) struct Explained {
    pub(super) model: OnnxPredictor,
    pub(super) inputs: Array2<f64>,
    pub(super) targets: Vec<usize>,
    pub(super) truth: Array2<bool>,
    pub(super) others: Array2<bool>,
}

/// The first examples that the model gets right.
pub(super) fn explained(model: OnnxPredictor, test: &Planted, count: usize) -> Result<Explained> {
    let labels = test.data.require_labels()?;
    let all: Vec<usize> = (0..labels.len()).collect();
    let predicted = model.values_only().predicted(test.data.rows_f64(&all)?.view())?;
    let chosen: Vec<usize> =
        all.into_iter().filter(|&row| predicted[row] == labels[row]).take(count).collect();
    if chosen.is_empty() {
        return Err(Error::Training {
            reason: "the classifier of the planted data gets no example right".to_string(),
            remedy: "train it longer".into(),
        });
    }
    Ok(Explained {
        model,
        inputs: test.data.rows_f64(&chosen)?,
        targets: chosen.iter().map(|&row| labels[row]).collect(),
        truth: test.truth.select(Axis(0), &chosen),
        others: test.others.select(Axis(0), &chosen),
    })
}

impl Explained {
    fn part(&self) -> Part<'_> {
        Part {
            model: &self.model,
            inputs: self.inputs.clone(),
            targets: self.targets.clone(),
            truth: self.truth.clone(),
            others: self.others.clone(),
        }
    }

    /// The examples of a class.
    pub(super) fn rows_of(&self, label: usize) -> Vec<usize> {
        (0..self.targets.len()).filter(|&row| self.targets[row] == label).collect()
    }

    pub(super) fn of_class(&self, label: usize) -> Part<'_> {
        let rows = self.rows_of(label);
        Part {
            model: &self.model,
            inputs: self.inputs.select(Axis(0), &rows),
            targets: vec![label; rows.len()],
            truth: self.truth.select(Axis(0), &rows),
            others: self.others.select(Axis(0), &rows),
        }
    }

    pub(super) fn scores(&self, name: &str, credit: &Array2<f64>) -> Result<Scores> {
        self.part().scores(name, credit)
    }

    pub(super) fn along(&self, name: &str, flow: &dyn VelocityField) -> Result<Scores> {
        self.part().along(name, flow)
    }
}

/// Some of the examples of a model.
pub(super) struct Part<'a> {
    pub(super) model: &'a OnnxPredictor,
    pub(super) inputs: Array2<f64>,
    pub(super) targets: Vec<usize>,
    truth: Array2<bool>,
    others: Array2<bool>,
}

impl Part<'_> {
    /// Trace, line and displacement of a flow, and what its references are.
    pub(super) fn along(&self, name: &str, flow: &dyn VelocityField) -> Result<Scores> {
        let ways = Ways::back(flow, self.inputs.view())?;
        let mut scores = self.scores(&format!("{name}: trace"), &ways.credit(self.model, &self.targets)?)?;
        let line = along_lines(self.model, ways.references.view(), self.inputs.view(), &self.targets)?;
        scores.extend(self.scores(&format!("{name}: line"), &line)?);
        let moved = &self.inputs - &ways.references;
        scores.extend(self.scores(&format!("{name}: displacement, no model"), &moved)?);
        let of_patch = |values: ArrayView2<f64>| -> Vec<Option<f64>> {
            let each = values.rows().into_iter().zip(self.truth.rows()).zip(self.others.rows());
            each.map(|((row, truth), others)| {
                let total: f64 = row.iter().map(|v| v * v).sum();
                let inside = row.iter().zip(truth).zip(others).filter(|((_, t), o)| **t || **o);
                let inside: f64 = inside.map(|((v, _), _)| v * v).sum();
                (total > 0.0).then_some(inside / total)
            })
            .collect()
        };
        scores.push((name.to_string(), "squared change inside both patches".into(), of_patch(moved.view())));
        let change = brenier::Score::values(self.model, self.inputs.view(), &self.targets)?
            - brenier::Score::values(self.model, ways.references.view(), &self.targets)?;
        scores.push((
            name.to_string(),
            "change of the margin".into(),
            change.iter().map(|v| Some(*v)).collect(),
        ));
        Ok(scores)
    }

    pub(super) fn scores(&self, name: &str, credit: &Array2<f64>) -> Result<Scores> {
        let mut scores = Vec::new();
        for (metric, called) in METRICS {
            let metric: Metric = metric.parse()?;
            let values = truth_scores(&metric, self.model, self.inputs.view(), credit, self.truth.view())?;
            scores.push((name.to_string(), called.to_string(), values));
        }
        let mass: Metric = "mass-accuracy".parse()?;
        let other = truth_scores(&mass, self.model, self.inputs.view(), credit, self.others.view())?;
        scores.push((name.to_string(), "mass on the other patch".into(), other));
        Ok(scores)
    }
}

/// By how much one way leads each of the others, example by example, and whether it is better than all of them.
pub(super) fn leads(scores: &Scores, first: &str, others: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (_, metric) in METRICS {
        let of = |name: &str| scores.iter().find(|(method, m, _)| method == name && m == metric);
        let Some((_, _, own)) = of(first) else { continue };
        let mut all = vec![(first.to_string(), own.as_slice())];
        for other in others {
            let Some((_, _, values)) = of(other) else { continue };
            let paired = own.iter().zip(values).filter_map(|(a, b)| Some((*a)? - (*b)?));
            let differences: Vec<f64> = paired.collect();
            rows.push(Row::of(&format!("lead of {first} over {other}"), metric, &differences, None));
            all.push((other.to_string(), values.as_slice()));
        }
        let best = Lead::of(Direction::Higher, Comparable::Methods, &all);
        let said = f64::from(u8::from(best.best() == Some(first)));
        rows.push(Row::of(&format!("{first} is better than all of these"), metric, &[said], None));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_taken_example_by_example_and_a_tie_is_no_win() {
        let one =
            |name: &str, values: [f64; 4]| (name.to_string(), "mass".to_string(), values.map(Some).to_vec());
        let ours = one("ours", [0.9, 0.5, 0.8, 0.6]);
        // Below by a tenth each time, although the spread over examples is larger than that.
        let near = one("near", [0.81, 0.4, 0.7, 0.49]);
        let tied = one("tied", [0.8, 0.6, 0.9, 0.45]);
        let scores = vec![ours, near, tied];
        let rows = leads(&scores, "ours", &["near"]);
        assert!((rows[0].mean - 0.1).abs() < 1e-12 && rows[0].half_width.unwrap() < 0.02, "{rows:?}");
        assert_eq!(rows[1].mean, 1.0);
        assert_eq!(leads(&scores, "ours", &["near", "tied"])[2].mean, 0.0);
        assert!(leads(&scores, "nobody", &["near"]).is_empty());
    }
}
