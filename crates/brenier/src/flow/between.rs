//! One flow between all classes: the network is told from which class to which, so that ten classes need one training.
//!
//! ```text
//! dx/dt = v(x, t, c),    c_a = -1 for the class that the flow comes from,  c_b = 1 for the one that it goes to,  0 elsewhere
//! ```
//!
//! Where nothing is -1 it comes from all other classes together. Pairs are rows of two classes, coupled optimally, as for a
//! flow between these two alone. With `c` filled in, the graph is that of an ordinary flow ([`ClassFlows::between`]): whatever
//! takes a flow takes it.

use std::sync::{Arc, Mutex, PoisonError};

use ndarray::{Array2, Axis, concatenate, s};
use onnx_grad::{Model, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::metadata::FlowMetadata;
use super::onnx::{OnnxFlow, signature};
use super::pairs::{Coupling, Pairs, Rows, couple};
use crate::engine::EngineConfig;
use crate::error::{Error, Result};
use crate::net::CLASSES;
use crate::train::{Stream, step_rng};

/// Pairs of classes that are mixed in the batches of a round.
const MIXED: usize = 8;

/// Rows of labelled data, coupled class with class.
pub struct ClassPairs<'a> {
    rows: &'a dyn Rows,
    /// The rows of each class.
    members: Vec<Vec<usize>>,
    coupling: Coupling,
    seed: u64,
    /// The round asked for last; a memory, not a state: it follows from the seed and its number.
    last: Mutex<Option<(u64, Arc<Round>)>>,
}

/// Some groups of pairs, in one random order: references, data, and between which classes each pair is.
struct Round {
    references: Array2<f32>,
    data: Array2<f32>,
    classes: Array2<f32>,
}

impl<'a> ClassPairs<'a> {
    /// Couples the classes of data; `labels` has the class of each row.
    ///
    /// # Errors
    /// Fewer than two classes, a class without rows, labels of other data.
    pub fn new(
        rows: &'a dyn Rows,
        labels: &[usize],
        classes: usize,
        coupling: Coupling,
        seed: u64,
    ) -> Result<Self> {
        crate::error::expect_shape("the labels of the pairs", &[rows.len()], &[labels.len()])?;
        let mut members = vec![Vec::new(); classes];
        for (row, &label) in labels.iter().enumerate() {
            if let Some(class) = members.get_mut(label) {
                class.push(row);
            }
        }
        let empty = members.iter().position(Vec::is_empty);
        if classes < 2 || empty.is_some() {
            return Err(Error::Setting {
                name: "the classes",
                value: match empty {
                    Some(class) => format!("{classes}, and class {class} has no rows"),
                    None => format!("{classes} in number"),
                },
                needs: "a flow between classes needs two of them, and rows of each",
                hint: "train a flow from noise or from another data set, or give data with all classes"
                    .into(),
            });
        }
        Ok(Self { rows, members, coupling, seed, last: Mutex::new(None) })
    }

    /// Rows of a group, and of a round.
    fn sizes(&self) -> (usize, usize) {
        let group = match self.coupling {
            Coupling::Independent => 64,
            Coupling::OptimalTransport { group } => group.max(1),
        };
        let pairs = self.members.len() * (self.members.len() - 1);
        (group, group * pairs.min(MIXED))
    }

    fn round(&self, number: u64) -> Result<Arc<Round>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, round)) = last.as_ref().filter(|(known, _)| *known == number) {
            return Ok(round.clone());
        }
        let round = Arc::new(self.make(number)?);
        *last = Some((number, round.clone()));
        Ok(round)
    }

    fn make(&self, number: u64) -> Result<Round> {
        let (group, size) = self.sizes();
        let mut rng = step_rng(self.seed, Stream::Pairs, number);
        let mut groups = Vec::new();
        for _ in 0..size / group {
            let (from, to) = self.two(&mut rng);
            let z1 = self.drawn(&self.members[to], group, &mut rng)?;
            let z0 = match from {
                Some(from) => self.drawn(&self.members[from], group, &mut rng)?,
                None => {
                    let others = self.members.iter().enumerate().filter(|(class, _)| *class != to);
                    let others: Vec<usize> = others.flat_map(|(_, rows)| rows).copied().collect();
                    self.drawn(&others, group, &mut rng)?
                }
            };
            groups.push((told(self.members.len(), from, to), z0, z1));
        }
        let coupled: Vec<_> = groups
            .into_par_iter()
            .map(|(told, z0, z1)| couple(self.coupling, z0, z1).map(|(z0, z1)| (told, z0, z1)))
            .collect::<Result<_>>()?;
        let mut order: Vec<usize> = (0..size).collect();
        for i in (1..size).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let together = |parts: Vec<Array2<f32>>| {
            let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
            let whole =
                concatenate(Axis(0), &views).map_err(|_| Error::Zero { what: "the number of pairs" })?;
            Ok::<_, Error>(whole.select(Axis(0), &order))
        };
        let (mut references, mut data, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        for (told, z0, z1) in coupled {
            references.push(z0);
            data.push(z1);
            classes.push(Array2::from_shape_fn((group, told.len()), |(_, k)| told[k]));
        }
        Ok(Round { references: together(references)?, data: together(data)?, classes: together(classes)? })
    }

    /// A class to come from, or all others, and one to go to.
    fn two(&self, rng: &mut ChaCha8Rng) -> (Option<usize>, usize) {
        let count = self.members.len();
        let to = rng.random_range(0..count);
        // Between two classes, the others are the other one.
        if count > 2 && rng.random_range(0..count) == 0 {
            return (None, to);
        }
        (Some((to + rng.random_range(1..count)) % count), to)
    }

    /// So many of these rows: each at most once where there are enough.
    fn drawn(&self, of: &[usize], count: usize, rng: &mut ChaCha8Rng) -> Result<Array2<f32>> {
        let mut pool = of.to_vec();
        let features: usize = self.rows.shape().iter().product();
        let mut rows = Array2::zeros((count, features));
        let mut example = vec![0.0; features];
        for (k, mut row) in rows.rows_mut().into_iter().enumerate() {
            let chosen = if of.len() >= count {
                let other = rng.random_range(k..pool.len());
                pool.swap(k, other);
                pool[k]
            } else {
                of[rng.random_range(0..of.len())]
            };
            self.rows.copy(chosen, &mut example)?;
            row.iter_mut().zip(&example).for_each(|(to, from)| *to = *from);
        }
        Ok(rows)
    }

    /// A part of the line of all rounds: that of a step.
    fn taken(&self, step: u64, rows: usize, part: impl Fn(&Round) -> &Array2<f32>) -> Result<Array2<f32>> {
        let (_, size) = self.sizes();
        let mut parts = Vec::new();
        let mut done = 0;
        while done < rows {
            let place = step * rows as u64 + done as u64;
            let (number, first) = (place / size as u64, (place % size as u64) as usize);
            let round = self.round(number)?;
            let count = (size - first).min(rows - done);
            parts.push(part(&round).slice(s![first..first + count, ..]).to_owned());
            done += count;
        }
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        concatenate(Axis(0), &views).map_err(|_| Error::Zero { what: "the number of pairs of a step" })
    }
}

impl Pairs for ClassPairs<'_> {
    fn shape(&self) -> &[usize] {
        self.rows.shape()
    }

    fn draw(&self, step: u64, rows: usize) -> Result<(Array2<f32>, Array2<f32>)> {
        Ok((self.taken(step, rows, |r| &r.references)?, self.taken(step, rows, |r| &r.data)?))
    }

    fn classes(&self, step: u64, rows: usize) -> Result<Option<Array2<f32>>> {
        self.taken(step, rows, |r| &r.classes).map(Some)
    }
}

/// What the network is told.
fn told(classes: usize, from: Option<usize>, to: usize) -> Vec<f32> {
    (0..classes)
        .map(|class| f32::from(u8::from(class == to)) - f32::from(u8::from(Some(class) == from)))
        .collect()
}

/// A flow between all classes of its training data, from which that between any two is taken.
#[derive(Debug, Clone)]
pub struct ClassFlows {
    model: Model,
    shape: Vec<usize>,
    classes: Vec<String>,
    metadata: FlowMetadata,
}

impl ClassFlows {
    /// Takes a model, where it is such a flow; gives an ordinary one back.
    ///
    /// # Errors
    /// A network that is told of classes, and a file that does not say which.
    pub fn of(model: Model) -> Result<std::result::Result<ClassFlows, Model>> {
        let Some(told) = model.graph.input(CLASSES) else { return Ok(Err(model)) };
        let metadata = FlowMetadata::of(&model)?;
        let (shape, _) = signature(&model, metadata.shape.as_deref())?;
        let known = told.shape.as_ref().and_then(|shape| shape.get(1)?.known());
        match metadata.between.clone() {
            Some(classes) if known.is_none_or(|known| known == classes.len() as i64) => {
                Ok(Ok(ClassFlows { model, shape, classes, metadata }))
            }
            _ => Err(Error::Flow {
                reason: "its network is told of classes, and the file does not say which".to_string(),
                remedy: "train it again with this version".into(),
            }),
        }
    }

    /// The classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The shape of one example.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What the file says of itself.
    pub fn metadata(&self) -> &FlowMetadata {
        &self.metadata
    }

    /// The flow from one class, or from all others where none is named, to another one, as a graph of its own.
    ///
    /// # Errors
    /// A class that the flow does not know, and one class twice.
    pub fn between(&self, from: Option<&str>, to: &str) -> Result<Model> {
        let find = |name: &str| {
            let exact = self.classes.iter().position(|class| class == name);
            exact
                .or_else(|| self.classes.iter().position(|class| class.eq_ignore_ascii_case(name)))
                .ok_or_else(|| Error::Comparison {
                    reason: format!(
                        "the flow leads between {}, and '{name}' is none of them",
                        self.classes.join(", ")
                    ),
                    remedy: "compare with one of its classes, or leave the flow out".into(),
                })
        };
        let to = find(to)?;
        let from = match from {
            Some(name) => Some(find(name)?),
            // Of two classes the others are the other one, and that is how it was trained.
            None => (self.classes.len() == 2).then_some(1 - to.min(1)),
        };
        if from == Some(to) {
            return Err(Error::Comparison {
                reason: format!(
                    "'{}' is both the class to come from and the class to go to",
                    self.classes[to]
                ),
                remedy: "name two classes".into(),
            });
        }
        let mut model = self.model.clone();
        model.graph.inputs.retain(|input| input.name != CLASSES);
        let values = told(self.classes.len(), from, to);
        model.graph.initializers.insert(CLASSES.to_string(), TensorData::f32(&[1, values.len()], &values));
        FlowMetadata {
            from_class: Some(
                from.map_or_else(|| format!("others than {}", self.classes[to]), |k| self.classes[k].clone()),
            ),
            to_class: Some(self.classes[to].clone()),
            between: None,
            calibration: None,
            ..self.metadata.clone()
        }
        .write(&mut model)?;
        Ok(model)
    }

    /// The same, ready to be followed.
    ///
    /// # Errors
    /// What [`ClassFlows::between`] and the engine say.
    pub fn flow(&self, from: Option<&str>, to: &str, engine: &EngineConfig) -> Result<OnnxFlow> {
        OnnxFlow::new(self.between(from, to)?, engine)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::MatrixRows;
    use super::*;
    use crate::data::{Dataset, Scaling};
    use crate::field::VelocityField;
    use crate::flow::{Rectified, ScaledRows};
    use crate::net::{MlpConfig, NetworkConfig};
    use crate::path::{Path, TraceConfig, trace};
    use crate::train::{TrainConfig, fit};
    use ndarray::array;
    use std::ops::ControlFlow;

    /// Three classes around three places, a cross of equal shape each.
    fn classes() -> (Array2<f32>, Vec<usize>) {
        let places = [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]];
        let rows = Array2::from_shape_fn((300, 2), |(i, j)| {
            let angle = (i / 3) as f32 * 0.0628;
            places[i % 3][j] + 0.5 * if j == 0 { angle.cos() } else { angle.sin() }
        });
        (rows, (0..300).map(|i| i % 3).collect())
    }

    #[test]
    fn every_pair_is_of_the_classes_that_it_says_and_steps_can_be_drawn_in_any_order() {
        let (rows, labels) = classes();
        let rows = MatrixRows::new(rows.view(), &[2]).unwrap();
        let class = |row: ndarray::ArrayView1<f32>| match (row[0] > 2.0, row[1] > 2.0) {
            (true, _) => 1,
            (_, true) => 2,
            _ => 0,
        };
        let pairs =
            || ClassPairs::new(&rows, &labels, 3, Coupling::OptimalTransport { group: 16 }, 3).unwrap();
        let (mut seen, mut others) = (std::collections::BTreeSet::new(), 0);
        let ordered = pairs();
        for step in 0..40 {
            let (z0, z1) = ordered.draw(step, 24).unwrap();
            let told = ordered.classes(step, 24).unwrap().unwrap();
            for ((from, to), told) in z0.rows().into_iter().zip(z1.rows()).zip(told.rows()) {
                let (from, to) = (class(from), class(to));
                assert_eq!(told[to], 1.0);
                assert_ne!(from, to);
                if told.iter().all(|v| *v >= 0.0) {
                    others += 1;
                } else {
                    assert_eq!(told[from], -1.0);
                    seen.insert((from, to));
                }
            }
        }
        assert_eq!(seen.len(), 6, "all ordered pairs of three classes");
        assert!(others > 0);
        let again = pairs();
        assert_eq!(again.draw(7, 24).unwrap(), ordered.draw(7, 24).unwrap());
        assert_eq!(again.classes(3, 24).unwrap(), ordered.classes(3, 24).unwrap());
        assert!(ClassPairs::new(&rows, &labels, 1, Coupling::Independent, 0).is_err());
        assert!(ClassPairs::new(&rows, &labels, 4, Coupling::Independent, 0).is_err());
    }

    #[test]
    fn one_network_learns_the_ways_between_all_classes() {
        let (rows, labels) = classes();
        let data = Dataset::from_rows("crosses", &[2], rows.view()).unwrap();
        let scaling = Scaling::new(&[2], vec![1.5, 1.5], vec![2.0, 2.0]).unwrap();
        let scaled = ScaledRows::new(data, scaling.clone()).unwrap();
        let pairs =
            ClassPairs::new(&scaled, &labels, 3, Coupling::OptimalTransport { group: 64 }, 5).unwrap();
        let network = NetworkConfig::Mlp(MlpConfig { width: 32, ..MlpConfig::default() });
        let mut model = network.build_between(&[2], 3, 1).unwrap();
        let between = Some(["here", "right", "Up"].map(str::to_string).to_vec());
        FlowMetadata { scaling: Some(scaling), between, ..FlowMetadata::default() }
            .write(&mut model)
            .unwrap();
        let config = TrainConfig {
            steps: 600,
            batch: 64,
            learning_rate: 3e-3,
            ema_decay: 0.98,
            seed: 2,
            ..TrainConfig::default()
        };
        let task = Rectified::new(&model, &pairs, 2).unwrap();
        let trained = fit(&model, &task, &config, None, &mut |_| ControlFlow::Continue(())).unwrap();
        // As it is, it is no flow: it must be told between what.
        let engine = EngineConfig::default();
        let refusal = OnnxFlow::new(trained.model.clone(), &engine).unwrap_err().to_string();
        assert!(refusal.contains("between the classes here, right, Up"), "{refusal}");
        let flows = ClassFlows::of(trained.model).unwrap().unwrap();
        let ends = |from: Option<&str>, to: &str, x: [f64; 2]| {
            let flow = flows.flow(from, to, &engine).unwrap();
            assert_eq!(flow.metadata().to_class.as_deref(), Some(to));
            trace(&flow, array![x].view(), &TraceConfig::default()).unwrap()[0].at(0.0)
        };
        // Populations differ by a shift, and the optimal map between them is that shift.
        let near = |found: ndarray::Array1<f64>, wanted: [f64; 2]| {
            assert!((found[0] - wanted[0]).hypot(found[1] - wanted[1]) < 0.35, "{found} {wanted:?}");
        };
        near(ends(Some("here"), "right", [4.5, 0.0]), [0.5, 0.0]);
        near(ends(Some("right"), "here", [0.5, 0.0]), [4.5, 0.0]);
        near(ends(Some("up"), "right", [4.0, -0.5]), [0.0, 3.5]);
        let to_others = ends(None, "here", [0.5, 0.0]);
        assert!(to_others[0] + to_others[1] > 2.0, "{to_others}");
        for (from, to, part) in
            [(Some("left"), "here", "'left' is none of them"), (Some("here"), "here", "both")]
        {
            let message = flows.between(from, to).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let ordinary = flows.between(Some("here"), "Up").unwrap();
        assert_eq!(flows.flow(Some("here"), "Up", &engine).unwrap().features(), 2);
        assert!(ClassFlows::of(ordinary).unwrap().is_err());
    }
}
