//! Why this and not that: against closed forms, and every warning where it belongs.

use std::ops::ControlFlow;

use brenier::attribute::{Context, ExpectedGradients, Method, NearestIg, Transport, TransportLine};
use brenier::compare::{Against, Comparison, Route};
use brenier::data::{Dataset, Population};
use brenier::runs::explain::{Outputs, Provenance, Question, Targets, Way};
use brenier::transport::{GaussianConfig, GaussianMap, Shrinkage};
use brenier::{Explanation, Result, Score, ScoreFn};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, array};

use crate::shared::normal;

fn population(name: &str, rows: &Array2<f64>) -> Population {
    let rows = rows.mapv(|v| v as f32);
    Population::new(name, Dataset::from_rows(name, &[rows.ncols()], rows.view()).unwrap()).unwrap()
}

/// Two classes by the sign of `w x`, one score each.
struct TwoClasses(Array1<f64>);

impl Score for TwoClasses {
    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        Ok(self.gradients(x, targets)?.0)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let sign: Array1<f64> = targets.iter().map(|&target| if target == 0 { -1.0 } else { 1.0 }).collect();
        let gradients = Array2::from_shape_fn(x.raw_dim(), |(i, j)| sign[i] * self.0[j]);
        Ok((x.dot(&self.0) * &sign, gradients))
    }
}

impl Outputs for TwoClasses {
    fn outputs(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        let score = x.dot(&self.0);
        Ok(Array2::from_shape_fn((x.nrows(), 2), |(i, c)| if c == 0 { -score[i] } else { score[i] }))
    }
}

fn explained(
    score: &dyn Score,
    comparison: &Comparison,
    method: &Method,
    inputs: &Array2<f64>,
    target: usize,
) -> Vec<Explanation> {
    let view = inputs.view();
    let question = Question {
        score,
        inputs: &view,
        targets: Targets::Same(vec![target]),
        context: Context::default(),
        stills: 0,
        provenance: Provenance::default(),
        comparison: Some(comparison),
    };
    let mut all = Vec::new();
    let way = Way::Method(method);
    let take = &mut |part: brenier::runs::explain::Part| {
        all.extend(part.explanations);
        Ok(ControlFlow::Continue(()))
    };
    assert!(question.explain(&way, 0, take).unwrap());
    all
}

fn reasons(explanation: &Explanation) -> String {
    explanation.certificate.verdict.reasons().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn linear(weights: Array1<f64>) -> ScoreFn<impl Fn(ArrayView1<f64>, usize) -> (f64, Array1<f64>)> {
    ScoreFn::new(&[weights.len()], move |x, _| (weights.dot(&x), weights.clone()))
}

#[test]
fn gaussian_populations_and_a_linear_score_give_the_exact_answer() {
    // All corners of a box have a diagonal covariance: the map stretches each column by itself.
    let corners = |centre: [f64; 2], half: [f64; 2]| {
        Array2::from_shape_fn((4, 2), |(i, j)| centre[j] + if (i >> j) & 1 == 0 { -half[j] } else { half[j] })
    };
    let a = population("a", &corners([1.0, -2.0], [0.5, 2.0]));
    let b = population("b", &corners([4.0, 0.0], [2.0, 1.0]));
    let config = GaussianConfig { shrinkage: Shrinkage::Fixed { amount: 0.0 }, ..GaussianConfig::default() };
    let comparison = Comparison::between(a, &b, Route::Gaussian(config)).unwrap();
    let weights = array![3.0, -0.5];
    let x = array![[5.0, 0.25], [4.0, 0.0]];
    for method in [Method::from(Transport::default()), TransportLine::default().into()] {
        let found = explained(&linear(weights.clone()), &comparison, &method, &x, 0);
        for (explanation, x) in found.iter().zip(x.rows()) {
            let x0 = array![1.0 + 0.25 * (x[0] - 4.0), -2.0 + 2.0 * x[1]];
            let exact = &weights * &(&x - &x0);
            assert!(
                (&explanation.values - &exact).iter().all(|gap| gap.abs() < 1e-6),
                "{} {exact}",
                explanation.values
            );
            let reference = explanation.reference.as_ref().unwrap();
            assert!((reference - &x0).iter().all(|gap| gap.abs() < 1e-6), "{reference}");
        }
        let comparison = found[0].certificate.comparison.as_ref().unwrap();
        // The typical change is that between the means, w (m_b - m_a).
        assert!((comparison.typical_change - (3.0 * 3.0 - 0.5 * 2.0)).abs() < 1e-6);
        assert_eq!((comparison.against.as_str(), comparison.among.as_str()), ("a", "b"));
    }
}

#[test]
fn a_method_that_follows_no_flow_needs_no_map() {
    // Shrinkage of 2 is refused, so whoever fits a map fails.
    let refused = GaussianConfig { shrinkage: Shrinkage::Fixed { amount: 2.0 }, ..GaussianConfig::default() };
    let (a, b) = (population("a", &normal(9, 2, 1)), population("b", &normal(9, 2, 2)));
    let comparison = Comparison::between(a, &b, Route::Gaussian(refused)).unwrap();
    let x = array![[1.0, 2.0]];
    let nearest = NearestIg { neighbours: 3, ..NearestIg::default() };
    for method in [Method::from(nearest), ExpectedGradients::default().into()] {
        assert_eq!(explained(&linear(array![1.0, 1.0]), &comparison, &method, &x, 0).len(), 1);
    }
}

#[test]
fn a_feature_that_both_populations_share_gets_nothing_whatever_the_model() {
    let rows = normal(400, 3, 1).dot(&normal(3, 3, 2));
    let mut moved = rows.clone();
    moved.column_mut(0).mapv_inplace(|v| v + 3.0);
    let (a, b) = (population("without", &rows), population("with", &moved));
    let comparison = Comparison::between(a, &b, Route::default()).unwrap();
    let product = ScoreFn::new(&[3], |x, _| (x[0] * x[1] + x[2], array![x[1], x[0], 1.0]));
    let found = explained(&product, &comparison, &Transport::default().into(), &moved, 0);
    for explanation in found {
        assert!(explanation.values[1].abs() < 1e-4 && explanation.values[2].abs() < 1e-4);
        let c = explanation.certificate.comparison.unwrap();
        assert_eq!(c.moved_features, Some(1));
    }
}

/// Labelled rows: column 0 tells the class and decides, column 1 does neither.
fn labelled() -> (Dataset, TwoClasses) {
    let mut rows = normal(600, 2, 3);
    let labels: Vec<usize> = (0..600).map(|i| i % 2).collect();
    for (mut row, &label) in rows.rows_mut().into_iter().zip(&labels) {
        row[0] += if label == 0 { -3.0 } else { 3.0 };
    }
    let data = Dataset::from_rows("rows", &[2], rows.mapv(|v| v as f32).view()).unwrap();
    let data = data.with_labels(labels, vec!["low".into(), "high".into()]).unwrap();
    (data, TwoClasses(array![1.0, 0.0]))
}

fn by_prediction<'a>(data: &Dataset, against: Against, model: &'a TwoClasses) -> Comparison<'a> {
    let classes = ["low".to_string(), "high".to_string()];
    Comparison::by_prediction(data, &against, model, (&classes, 2), Route::default()).unwrap()
}

#[test]
fn a_good_comparison_passes_and_an_input_of_the_class_itself_is_told() {
    let (data, model) = labelled();
    let comparison = by_prediction(&data, Against::Class("low".into()), &model);
    let inputs = array![[3.5, 0.2], [-3.0, 0.0], [2.5, -1.0]];
    let found = explained(&model, &comparison, &Transport::default().into(), &inputs, 1);
    let numbers: Vec<usize> = found.iter().map(|e| e.certificate.example).collect();
    assert_eq!(numbers, [0, 1, 2]);
    for i in [0, 2] {
        assert_eq!(reasons(&found[i]), "", "{:?}", found[i].certificate);
        let c = found[i].certificate.comparison.as_ref().unwrap();
        assert_eq!((c.taken_for, c.reference_class.as_deref()), (Some(true), Some("low")));
        assert!((c.covered.unwrap() - 1.0).abs() < 0.2 && c.membership.unwrap() > 0.01);
        assert!(found[i].reference.as_ref().unwrap()[0] < 0.0);
    }
    assert!(reasons(&found[1]).contains("takes the input itself for 'low'"), "{}", reasons(&found[1]));
    assert!(found[1].values.iter().all(|v| *v == 0.0));
    // Of two classes, the others are the other one.
    let others = by_prediction(&data, Against::Others, &model);
    let again = explained(&model, &others, &Transport::default().into(), &inputs, 1);
    assert_eq!(again[0].values, found[0].values);
    let c = again[1].certificate.comparison.as_ref().unwrap();
    assert_eq!((c.against.as_str(), c.taken_for), ("others than low", Some(true)));
}

#[test]
fn a_path_that_does_not_move_what_the_model_uses_is_told() {
    // The populations differ in column 0 only; the model uses column 1, which goes along with it among all rows.
    let (data, _) = labelled();
    let (low, high) =
        (Population::of_class(&data, "low").unwrap(), Population::of_class(&data, "high").unwrap());
    let comparison = Comparison::between(low, &high, Route::default()).unwrap();
    let both = explained(
        &linear(array![1.0, 0.0]),
        &comparison,
        &Transport::default().into(),
        &array![[3.0, 0.5]],
        0,
    );
    assert_eq!(reasons(&both[0]), "");
    // A row that lies where only column 1 makes a score: the way back changes nothing of it.
    let steep = ScoreFn::new(&[2], |x, _| {
        let s = (x[0] - 8.0).max(0.0);
        (s + x[0], array![1.0 + if s > 0.0 { 1.0 } else { 0.0 }, 0.0])
    });
    let fine = explained(&steep, &comparison, &Transport::default().into(), &array![[3.0, 0.5]], 0);
    assert_eq!(reasons(&fine[0]), "");
    let blind = ScoreFn::new(&[2], |x, _| {
        // Counts the rows of the class, but not this one.
        let far = if x[1] > 4.0 { 0.0 } else { x[0] };
        (far, array![if x[1] > 4.0 { 0.0 } else { 1.0 }, 0.0])
    });
    let hidden = explained(&blind, &comparison, &Transport::default().into(), &array![[3.0, 6.0]], 0);
    assert!(reasons(&hidden[0]).contains("does not move what the model uses"), "{}", reasons(&hidden[0]));
    // And its reference is no member: nobody has such a column 1.
    assert!(reasons(&hidden[0]).contains("no ordinary member of 'low'"), "{}", reasons(&hidden[0]));
}

#[test]
fn the_same_population_twice_has_no_credit() {
    let rows = normal(50, 3, 4);
    let (a, b) = (population("a", &rows), population("b", &rows));
    let comparison = Comparison::between(a, &b, Route::default()).unwrap();
    let found =
        explained(&linear(array![1.0, 2.0, 3.0]), &comparison, &Transport::default().into(), &rows, 0);
    assert!(found.iter().all(|e| e.values.iter().all(|v| *v == 0.0)));
}

#[test]
fn methods_with_references_from_data_take_them_from_the_population() {
    let (data, model) = labelled();
    let comparison = by_prediction(&data, Against::Class("low".into()), &model);
    let inputs = array![[3.0, 0.1], [2.0, 0.5]];
    let low = Population::of_class(&data, "low").unwrap();
    let context = Context { data: Some(low.rows()), ..Context::default() };
    for method in [
        Method::from(NearestIg { neighbours: 5, ..NearestIg::default() }),
        ExpectedGradients { samples: 60, seed: 3 }.into(),
    ] {
        let found = explained(&model, &comparison, &method, &inputs, 1);
        let expected = method.explain(&model, inputs.view(), &[1, 1], &context).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            // Also where inputs are cut into parts: draws follow from the number of the input.
            assert_eq!(found.values, expected.values, "{}", method.name());
            let c = found.certificate.comparison.as_ref().unwrap();
            assert!(c.typical_change > 5.0 && c.covered.unwrap() > 0.3, "{c:?}");
        }
    }
    // A flow serves as the way where there is one.
    let map = GaussianMap::fit(
        low.rows(),
        Population::of_class(&data, "high").unwrap().rows(),
        &GaussianConfig::default(),
    )
    .unwrap();
    let along = Comparison::between(low, &Population::of_class(&data, "high").unwrap(), Route::Flow(&map));
    let found = explained(&model, &along.unwrap(), &Transport::default().into(), &inputs, 1);
    let expected = map.invert(inputs.view()).unwrap();
    for (explanation, x0) in found.iter().zip(expected.axis_iter(Axis(0))) {
        assert!((explanation.reference.as_ref().unwrap() - &x0).iter().all(|gap| gap.abs() < 1e-9));
        assert_eq!(explanation.certificate.comparison.as_ref().unwrap().way, "a flow");
    }
}

#[test]
fn what_cannot_be_compared_is_said_in_one_sentence() {
    let (data, model) = labelled();
    let told = |against: &str, classes: &[&str], outputs| {
        let classes: Vec<String> = classes.iter().map(|c| c.to_string()).collect();
        let against = Against::Class(against.to_string());
        Comparison::by_prediction(&data, &against, &model, (&classes, outputs), Route::default())
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(told("lo", &["low", "high"], 2).contains("did you mean 'low'"));
    assert!(told("low", &["yes", "no", "maybe"], 3).contains("do not tell which is which"));
    let wide = population("wide", &normal(5, 3, 1));
    let narrow = population("narrow", &normal(5, 2, 1));
    let message = Comparison::between(wide, &narrow, Route::default()).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("[3]") && message.contains("[2]"), "{message}");
}
