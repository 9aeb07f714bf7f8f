//! Does the certificate tell good from bad? Faults put in on purpose, and how many explanations pass all the same.
//!
//!     cargo run --release --example certificate_faults -- FLOW DATA [OTHER] [inputs] [good inputs]
//!
//! FLOW is calibrated; DATA are held-out images like those that it was trained on, OTHER are images of another kind with
//! the same shape. An input passes where its round trip closes, its trace is ordinary for the flow, and the flow itself
//! is good. A flow that was changed after its calibration is told by its fingerprint before any of this; what is printed
//! for changed flows is what would pass without that. The last table asks whether flows would be found good by a
//! calibration of their own.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::ops::ControlFlow;

use brenier::calibrate::{CalibrateConfig, calibrate};
use brenier::calibration::{Calibration, Ordinary, Standard};
use brenier::data::{Dataset, OpenOptions, Part, Scaling};
use brenier::engine::EngineConfig;
use brenier::flow::{FlowMetadata, OnnxFlow};
use brenier::{Limits, Path, Result, Scheme, Solver, TraceConfig, VelocityField, trace};
use ndarray::{Array1, Array2, ArrayView2};
use onnx_grad::{Model, TensorData};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

type Change<'a> = Box<dyn Fn(&OnnxFlow, ArrayView2<f64>, &[f64]) -> Result<Array2<f64>> + Sync + 'a>;

/// A flow with a fault, judged by the calibration of the sound one.
struct Spoilt<'a> {
    flow: OnnxFlow,
    change: Change<'a>,
    calibration: &'a Calibration,
}

impl VelocityField for Spoilt<'_> {
    fn shape(&self) -> &[usize] {
        self.flow.shape()
    }
    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        (self.change)(&self.flow, x, times)
    }
    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.flow.own_units(x)
    }
    fn standard(&self) -> Standard<'_> {
        Standard::Calibrated(self.calibration)
    }
}

struct Bench {
    model: Model,
    calibration: Calibration,
    shape: Vec<usize>,
    inputs: Array2<f64>,
}

fn opened(model: Model) -> OnnxFlow {
    OnnxFlow::new(model, &EngineConfig { unchecked: true, ..EngineConfig::default() }).unwrap()
}

fn as_it_is() -> Change<'static> {
    Box::new(|flow, x, t| flow.velocity(x, t))
}

impl Bench {
    fn sound(&self) -> Spoilt<'_> {
        self.spoilt(self.model.clone(), as_it_is())
    }

    fn spoilt<'a>(&'a self, model: Model, change: Change<'a>) -> Spoilt<'a> {
        Spoilt { flow: opened(model), change, calibration: &self.calibration }
    }

    /// The inputs that pass.
    fn passed(&self, field: &Spoilt, inputs: &Array2<f64>, solver: Option<Solver>) -> usize {
        let config = TraceConfig { consistency_steps: 0, ..TraceConfig::default() };
        let config = TraceConfig { solver: solver.unwrap_or(config.solver), ..config };
        let mut passed = 0;
        for part in inputs.axis_chunks_iter(ndarray::Axis(0), 20) {
            // What cannot be traced does not pass.
            let Ok(traces) = trace(field, part, &config) else { continue };
            for evidence in traces.iter().map(Path::evidence) {
                let closes = evidence.relative_round_trip_error.unwrap() <= Limits::default().round_trip;
                let Some(Ordinary::Calibrated { standing, quality }) = evidence.ordinary else {
                    unreachable!()
                };
                passed += usize::from(closes && !standing.is_rare() && quality.objection().is_none());
            }
        }
        passed
    }

    fn tell(&self, name: &str, passed: usize, of: usize) {
        println!("{name:44} {passed:4} of {of}");
    }

    fn flow_faults(&self) {
        let times = |c: f64| -> Change { Box::new(move |flow, x, t| Ok(c * flow.velocity(x, t)?)) };
        let faults: Vec<(&str, Change)> = vec![
            ("output negated", times(-1.0)),
            ("velocity x 0.5", times(0.5)),
            ("velocity x 0.9", times(0.9)),
            ("velocity x 1.1", times(1.1)),
            ("velocity x 50", times(50.0)),
            ("velocity 0", times(0.0)),
            ("velocity not a number", times(f64::NAN)),
            ("only rescales contrast", Box::new(|_, x, _| Ok(&x * -0.9))),
            (
                "time reversed",
                Box::new(|flow, x, t| flow.velocity(x, &t.iter().map(|t| 1.0 - t).collect::<Vec<_>>())),
            ),
        ];
        for (name, change) in faults {
            let field = self.spoilt(self.model.clone(), change);
            self.tell(name, self.passed(&field, &self.inputs, None), self.inputs.nrows());
        }
        for (name, model) in self.models() {
            let field = self.spoilt(model, as_it_is());
            self.tell(&name, self.passed(&field, &self.inputs, None), self.inputs.nrows());
        }
        for steps in [20, 100] {
            let solver = Some(Solver::fixed(Scheme::Euler, steps));
            let name = format!("solved by {steps} Euler steps");
            self.tell(&name, self.passed(&self.sound(), &self.inputs, solver), self.inputs.nrows());
        }
    }

    /// Networks with faults.
    fn models(&self) -> Vec<(String, Model)> {
        let mut all = Vec::new();
        for part in [0.01, 0.05, 0.1, 0.5] {
            all.push((format!("weights with {:.0} % noise", 100.0 * part), noisy(&self.model, part)));
        }
        let metadata = FlowMetadata::of(&self.model).unwrap();
        if let Some(network) = &metadata.network {
            let mut untrained = network.build(&self.shape, 99).unwrap();
            FlowMetadata { calibration: None, ..metadata.clone() }.write(&mut untrained).unwrap();
            all.push(("never trained".into(), untrained));
        }
        if let Some(scaling) = &metadata.scaling {
            let count = self.shape.iter().product();
            let (shift, scale): (Vec<f64>, Vec<f64>) = (0..count).map(|i| scaling.of(i)).unzip();
            let with = |scaling: Scaling| {
                let mut model = self.model.clone();
                FlowMetadata { scaling: Some(scaling), calibration: None, ..metadata.clone() }
                    .write(&mut model)
                    .unwrap();
                model
            };
            let wider = Scaling::new(&self.shape, shift, scale.iter().map(|s| 1.1 * s).collect());
            all.push(("scaling removed".into(), with(Scaling::identity(&self.shape).unwrap())));
            all.push(("scaling 10 % off".into(), with(wider.unwrap())));
        }
        all
    }

    fn input_faults(&self, other: Option<&Array2<f64>>) {
        let [channels, height, width] = self.shape[..] else { panic!("images have three sizes") };
        let at = |c: usize, i: usize, j: usize| (c * height + i) * width + j;
        let moved = |place: &dyn Fn(usize, usize, usize) -> usize| {
            let mut out = self.inputs.clone();
            for c in 0..channels {
                for i in 0..height {
                    for j in 0..width {
                        out.column_mut(at(c, i, j)).assign(&self.inputs.column(place(c, i, j)));
                    }
                }
            }
            out
        };
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut noise = |size: f64| {
            self.inputs.mapv(|v| {
                let e: f64 = StandardNormal.sample(&mut rng);
                (v + size * e).clamp(0.0, 1.0)
            })
        };
        let (soft, loud) = (noise(0.05), noise(0.3));
        let mut order: Vec<usize> = (0..height * width).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(6));
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut faults: Vec<(&str, Array2<f64>)> = vec![
            ("half brightness", &self.inputs * 0.5),
            ("0.8 brightness", &self.inputs * 0.8),
            ("contrast 0.7", (&self.inputs - 0.5) * 0.7 + 0.5),
            ("inverted", 1.0 - &self.inputs),
            ("0 to 255", &self.inputs * 255.0),
            ("noise 0.05", soft),
            ("noise 0.3", loud),
            ("nothing but noise", self.inputs.mapv(|_| rng.random::<f64>())),
            ("grey everywhere", self.inputs.mapv(|_| 0.5)),
            ("pixels permuted", moved(&|c, i, j| c * height * width + order[i * width + j])),
            ("blurred", blurred(&self.inputs, [channels, height, width])),
            ("upside down", moved(&|c, i, j| at(c, height - 1 - i, j))),
            ("mirrored", moved(&|c, i, j| at(c, i, width - 1 - j))),
            ("moved by 4 pixels", moved(&|c, i, j| at(c, (i + 4) % height, (j + 4) % width))),
        ];
        if channels == 3 {
            faults.push(("colours exchanged", moved(&|c, i, j| at((c + 1) % 3, i, j))));
        }
        faults.extend(other.map(|rows| ("another data set", rows.clone())));
        let field = self.sound();
        for (name, inputs) in faults {
            self.tell(name, self.passed(&field, &inputs, None), inputs.nrows());
        }
    }
}

/// Every weight with normal noise of a part of its tensor's deviation.
fn noisy(model: &Model, part: f64) -> Model {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut model = model.clone();
    for tensor in model.graph.initializers.values_mut() {
        if tensor.dtype().is_float() && tensor.len() > 8 {
            let values: Array1<f32> = tensor.to_f32().into();
            let size = part as f32 * values.std(0.0);
            let values = values.mapv(|v| {
                let e: f32 = StandardNormal.sample(&mut rng);
                v + size * e
            });
            *tensor = TensorData::f32(tensor.shape(), values.as_slice().unwrap());
        }
    }
    model
}

/// Each pixel the mean of itself and its eight neighbours.
fn blurred(inputs: &Array2<f64>, [channels, height, width]: [usize; 3]) -> Array2<f64> {
    let mut out = Array2::zeros(inputs.raw_dim());
    for (mut to, from) in out.rows_mut().into_iter().zip(inputs.rows()) {
        for c in 0..channels {
            for i in 0..height {
                for j in 0..width {
                    let (mut sum, mut count) = (0.0, 0.0);
                    for y in i.saturating_sub(1)..(i + 2).min(height) {
                        for x in j.saturating_sub(1)..(j + 2).min(width) {
                            sum += from[(c * height + y) * width + x];
                            count += 1.0;
                        }
                    }
                    to[(c * height + i) * width + j] = sum / count;
                }
            }
        }
    }
    out
}

/// Held-out rows that the calibration did not see: the last of the shuffled order.
fn rows(data: &Dataset, count: usize) -> Array2<f64> {
    let mut order = data.shuffled_order(0);
    order.reverse();
    data.rows_f64(&order[..count.min(order.len())]).unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual| args.get(i).map_or(usual, |text| text.parse().unwrap());
    let (count, good) = (number(3, 40), number(4, 200));
    let model = Model::load(&args[0]).unwrap();
    let metadata = FlowMetadata::of(&model).unwrap();
    let calibration = metadata.calibration.clone().expect("the flow is calibrated");
    let options = OpenOptions { part: Part::Test, ..OpenOptions::default() };
    let data = Dataset::open(&args[1], &options).unwrap();
    let bench =
        Bench { model, calibration, shape: metadata.shape.clone().unwrap(), inputs: rows(&data, count) };
    println!("{} calibrated by {} rows, {:?}\n", args[0], bench.calibration.rows, bench.calibration.quality);
    let fine = rows(&data, good);
    bench.tell("good inputs", bench.passed(&bench.sound(), &fine, None), fine.nrows());
    println!("\nfaults of the input");
    let other = args.get(2).map(|path| rows(&Dataset::open(path, &options).unwrap(), count));
    bench.input_faults(other.as_ref());
    println!("\nfaults of the flow, were it not told by its fingerprint");
    bench.flow_faults();
    println!("\nflows calibrated by themselves: gain over a Gaussian, energies, verdict");
    let config = CalibrateConfig { rows: 64, ..CalibrateConfig::default() };
    for (name, model) in bench.models() {
        let flow = opened(model);
        match calibrate(&flow, &data, &data, &config, &mut |_, _| ControlFlow::Continue(())) {
            Ok(Some(found)) => {
                let good = found.quality.objection().map_or("good", |_| "not good");
                println!(
                    "{name:44} {:+.2} {:.2?} {good}",
                    found.quality.gain.unwrap_or(f64::NAN),
                    found.quality.energies
                );
            }
            Ok(None) => {}
            Err(error) => println!("{name:44} {error}"),
        }
    }
}
