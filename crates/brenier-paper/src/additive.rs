//! Appendix F.1: the additive sanity check.
//!
//! ```text
//! f(x) = sum_i sin(x_i),    x0 = 0,    x uniform in [-pi, pi]^10,    exact credit: sin(x_i)
//! ```
//!
//! No flow, no network: it isolates the quadrature. The paper shows the scatter of computed against exact
//! credit and says that the error falls as the grid is refined; here the error of every rule is fitted against
//! K, beside the slope that theory gives.

use brenier::problems::SineSum;
use brenier::problems::log_slope;
use brenier::report::{Chart, Mark, Scale, Series};
use brenier::{Error, Line, PathIntegral, Result, Rule};
use ndarray::{Array1, Array2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};

use super::{Figure, Row, Table};

/// The size of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdditiveConfig {
    /// The number of features; the paper has 10.
    pub dimension: usize,
    /// The number of inputs.
    pub examples: usize,
    /// The seed of the inputs.
    pub seed: u64,
}

impl Default for AdditiveConfig {
    fn default() -> Self {
        Self { dimension: 10, examples: 100, seed: 0 }
    }
}

/// The paper's number of steps.
const STEPS: usize = 50;
/// Sizes over which slopes are fitted.
const SIZES: [usize; 5] = [16, 32, 64, 128, 256];
/// Sizes that are drawn.
const DRAWN: [usize; 9] = [2, 4, 8, 16, 32, 64, 128, 256, 512];

type Maker = (&'static str, fn(usize) -> Rule);

const RULES: [Maker; 6] = [
    ("left", |steps| Rule::Left { steps }),
    ("right", |steps| Rule::Right { steps }),
    ("midpoint", |steps| Rule::Midpoint { steps }),
    ("trapezoid", |steps| Rule::Trapezoid { steps }),
    ("simpson", |steps| Rule::Simpson { steps }),
    ("gauss-legendre", |nodes| Rule::GaussLegendre { nodes }),
];

/// Runs the experiment: its table, the scatter and the convergence plot.
pub fn additive(config: &AdditiveConfig) -> Result<(Table, Vec<Figure>)> {
    if config.dimension == 0 || config.examples == 0 {
        return Err(Error::Setting {
            name: "the size of the experiment",
            value: format!("{} features, {} examples", config.dimension, config.examples),
            needs: "both are at least 1",
            hint: "the paper has 10 features".into(),
        });
    }
    let problem = Problem::draw(config)?;
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    for (colour, (name, rule)) in RULES.into_iter().enumerate() {
        let (credit, _) = problem.credit(rule(STEPS))?;
        rows.push(Row::of(
            name,
            &format!("mean absolute error, K = {STEPS}"),
            &problem.errors(&credit),
            None,
        ));
        let mut points = Vec::new();
        let mut fitted: Vec<Vec<f64>> = Vec::new();
        for size in DRAWN {
            let errors = problem.errors(&problem.credit(rule(size))?.0);
            points.push((size as f64, errors.iter().sum::<f64>() / errors.len() as f64));
            if SIZES.contains(&size) {
                fitted.push(errors);
            }
        }
        let mut label = name.to_owned();
        if let Some(order) = rule(2).order() {
            let slopes: Vec<f64> = (0..config.examples)
                .map(|i| log_slope(&SIZES, &fitted.iter().map(|errors| errors[i]).collect::<Vec<_>>()))
                .collect();
            let row = Row::of(name, "slope of log error over log K", &slopes, None);
            label = format!("{name}: {:.2}, theory {}", row.mean, -(order as f64));
            rows.push(row);
            rows.push(Row::of(name, "slope in theory", &[-(order as f64)], None));
        }
        curves.push(Series { name: label, points, mark: Mark::Line, colour });
    }
    for tolerance in [1e-2, 1e-3, 1e-6] {
        let (credit, gradients) = problem.credit(Rule::adaptive(tolerance))?;
        let name = format!("adaptive, tolerance {tolerance:e}");
        rows.push(Row::of(&name, "mean absolute error", &problem.errors(&credit), None));
        rows.push(Row::of(&name, "gradient evaluations", &gradients, None));
    }
    let table = Table {
        name: "additive".into(),
        scale: format!("d = {}, {} inputs, seed {}", config.dimension, config.examples, config.seed),
        rows,
    };
    let convergence = Chart {
        title: "Sum of sines: error of the credit against the number of steps".into(),
        x: ("steps K".into(), Scale::Log),
        y: ("mean absolute error per feature".into(), Scale::Log),
        series: curves,
    };
    let figures = vec![
        Figure { file: "additive-scatter.svg".into(), svg: problem.scatter()?.svg() },
        Figure { file: "additive-convergence.svg".into(), svg: convergence.svg() },
    ];
    Ok((table, figures))
}

struct Problem {
    score: SineSum,
    lines: Vec<Line>,
    exact: Array2<f64>,
}

impl Problem {
    fn draw(config: &AdditiveConfig) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
        let score = SineSum::new(config.dimension);
        let reference = Array1::zeros(config.dimension);
        let mut lines = Vec::with_capacity(config.examples);
        let mut exact = Array2::zeros((config.examples, config.dimension));
        let pi = std::f64::consts::PI;
        for i in 0..config.examples {
            let input = Array1::from_shape_fn(config.dimension, |_| uniform(-pi, pi, &mut rng));
            exact.row_mut(i).assign(&score.exact_credit(reference.view(), input.view()));
            lines.push(Line::new(reference.view(), input.view())?);
        }
        Ok(Self { score, lines, exact })
    }

    /// The credit of every input, `[examples, features]`, and the gradient evaluations each took.
    fn credit(&self, rule: Rule) -> Result<(Array2<f64>, Vec<f64>)> {
        let explanations =
            PathIntegral::new(rule).explain_batch(&self.score, &self.lines, &vec![0; self.lines.len()])?;
        let mut credit = Array2::zeros(self.exact.raw_dim());
        for (mut row, explanation) in credit.rows_mut().into_iter().zip(&explanations) {
            row.assign(&explanation.values);
        }
        let gradients = explanations.iter().map(|e| e.certificate.gradient_evaluations as f64).collect();
        Ok((credit, gradients))
    }

    /// The mean absolute error of each input.
    fn errors(&self, credit: &Array2<f64>) -> Vec<f64> {
        let gap = credit - &self.exact;
        gap.rows().into_iter().map(|row| row.mapv(f64::abs).sum() / row.len() as f64).collect()
    }

    fn scatter(&self) -> Result<Chart> {
        let points = |rule| -> Result<Vec<(f64, f64)>> {
            Ok(self.exact.iter().copied().zip(self.credit(rule)?.0.iter().copied()).collect())
        };
        let dots =
            |name: &str, points, colour| Series { name: name.into(), points, mark: Mark::Dots, colour };
        Ok(Chart {
            title: "Sum of sines: computed against exact credit".into(),
            x: ("exact credit, sin(x_i)".into(), Scale::Linear),
            y: ("computed credit".into(), Scale::Linear),
            series: vec![
                Series {
                    name: "identity".into(),
                    points: vec![(-1.0, -1.0), (1.0, 1.0)],
                    mark: Mark::Dashed,
                    colour: 7,
                },
                dots("left, K = 10", points(Rule::Left { steps: 10 })?, 1),
                dots("left, K = 50 (paper)", points(Rule::Left { steps: STEPS })?, 4),
                dots("adaptive, 1e-3", points(Rule::adaptive(1e-3))?, 0),
            ],
        })
    }
}

/// A number between `low` and `high`.
fn uniform(low: f64, high: f64, rng: &mut ChaCha8Rng) -> f64 {
    Uniform::new(low, high).map_or(low, |range| range.sample(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_slopes_are_the_theoretical_ones_and_the_seed_decides_everything() {
        let config = AdditiveConfig { examples: 12, ..AdditiveConfig::default() };
        let (table, figures) = additive(&config).unwrap();
        for (name, rule) in RULES.into_iter().take(5) {
            let row =
                table.rows.iter().find(|r| r.method == name && r.metric.starts_with("slope of")).unwrap();
            let order = rule(2).order().unwrap() as f64;
            assert!((row.mean + order).abs() < 0.1, "{name}: {}", row.mean);
        }
        let exact = table.rows.iter().find(|r| r.method == "gauss-legendre").unwrap();
        assert!(exact.mean < 1e-14);
        assert!(figures.iter().all(|figure| figure.svg.starts_with("<svg") && !figure.svg.contains("NaN")));
        assert_eq!(additive(&config).unwrap(), (table.clone(), figures));
        assert_ne!(additive(&AdditiveConfig { seed: 1, ..config }).unwrap().0, table);
    }
}
