//! What cannot be explained is refused, with the place and the value; what can be doubted is warned of.

use brenier::problems::SineSum;
use brenier::{Error, FieldFn, Line, PathIntegral, Polyline, Rule, ScoreFn, TraceConfig, Verdict, trace};
use ndarray::array;

fn lines() -> Vec<Line> {
    vec![
        Line::new(array![0.0, 0.0].view(), array![0.1, 0.2].view()).unwrap(),
        Line::new(array![0.0, 0.0].view(), array![1.0, 2.0].view()).unwrap(),
    ]
}

#[test]
fn the_first_value_that_is_not_finite_stops_with_its_place() {
    // ln(1 - x1) is not defined beyond x1 = 1, which the second line reaches at time 0.5.
    let score = ScoreFn::new(&[2], |x, _| ((1.0 - x[1]).ln(), array![0.0, -1.0 / (1.0 - x[1])]));
    for rule in [Rule::Left { steps: 20 }, Rule::GaussLegendre { nodes: 20 }] {
        match PathIntegral::new(rule).explain_batch(&score, &lines(), &[0, 0]) {
            Err(Error::NonFinite { what: "score", example: 1, time, place, .. }) => {
                assert!((0.5..0.6).contains(&time), "{time}");
                assert_eq!(place, "output 0");
            }
            other => panic!("{other:?}"),
        }
    }
    let gradient =
        ScoreFn::new(&[2], |x, _| (x[0], array![1.0, if x[1] > 1.5 { f64::INFINITY } else { 0.0 }]));
    for rule in [Rule::Midpoint { steps: 20 }, Rule::adaptive(1e-3)] {
        match PathIntegral::new(rule).explain_batch(&gradient, &lines(), &[0, 0]) {
            Err(Error::NonFinite { what: "gradient", example: 1, time, place, value }) => {
                assert!(time > 0.75);
                assert_eq!((place.as_str(), value), ("feature 1", f64::INFINITY));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn shapes_and_settings_that_do_not_fit_are_refused() {
    let score = SineSum::new(3);
    let refused = |result: brenier::Result<_>| -> String {
        let outcome: brenier::Result<Vec<brenier::Explanation>> = result;
        outcome.unwrap_err().to_string()
    };
    let integral = PathIntegral::new(Rule::Left { steps: 5 });
    assert!(refused(integral.explain_batch(&score, &lines(), &[0, 0])).contains("[3]"));
    let score = SineSum::new(2);
    assert!(refused(integral.explain_batch(&score, &lines(), &[0])).contains("targets"));
    let empty = PathIntegral { micro_batch: 0, ..integral };
    assert!(refused(empty.explain_batch(&score, &lines(), &[0, 0])).contains("micro-batch"));
    let zero = PathIntegral::new(Rule::Left { steps: 0 });
    assert!(refused(zero.explain_batch(&score, &lines(), &[0, 0])).contains("at least one"));
    let exact = PathIntegral::new(Rule::adaptive(0.0));
    assert!(refused(exact.explain_batch(&score, &lines(), &[0, 0])).contains("tolerance"));
    assert!(Line::new(array![0.0].view(), array![1.0, 2.0].view()).is_err());
    assert!(Line::new(array![f64::NAN].view(), array![1.0].view()).is_err());
    let backwards = Polyline::with_times(array![[0.0], [1.0], [2.0]], vec![0.0, 0.7, 0.6]);
    assert!(backwards.unwrap_err().to_string().contains("ascend"));
}

#[test]
fn a_field_that_blows_up_on_the_way_back_names_the_example_and_the_time() {
    // Backward from t = 1, x' = -x^2 grows without bound: x(1) = 2 has its pole at t = 0.5.
    let field = FieldFn::new(&[1], |x, _| array![-x[0] * x[0]]);
    match trace(&field, array![[0.3], [2.0]].view(), &TraceConfig::default()) {
        Err(Error::StepUnderflow { example: 1, time, .. }) => assert!((time - 0.5).abs() < 1e-6),
        other => panic!("{other:?}"),
    }
}

#[test]
fn doubtful_explanations_are_warned_of_in_words() {
    let score = SineSum::new(2);
    let line = Line::new(array![0.0, 0.0].view(), array![1.5, 2.5].view()).unwrap();
    let crude = PathIntegral::new(Rule::Left { steps: 2 }).explain(&score, &line, 0).unwrap();
    match crude.certificate.verdict {
        Verdict::Warn { reasons } => assert!(reasons[0].to_string().contains("more steps"), "{reasons:?}"),
        other => panic!("two left steps are not enough: {other:?}"),
    }
    let fine = PathIntegral::new(Rule::adaptive(1e-3)).explain(&score, &line, 0).unwrap();
    assert_eq!(fine.certificate.verdict, Verdict::Pass);
    // Too few gradients allowed: the tolerance is not reached, and the certificate says so.
    let starved =
        PathIntegral::new(Rule::Adaptive { tolerance: 1e-12, max_gradients: 12, map_tolerance: None });
    let rough = ScoreFn::new(&[2], |x, _| ((x[0] - 0.7_f64).abs(), array![(x[0] - 0.7_f64).signum(), 0.0]));
    let starved = starved.explain(&rough, &line, 0).unwrap();
    assert!(matches!(starved.certificate.verdict, Verdict::Warn { .. }));
    assert!(starved.certificate.gradient_evaluations <= 12);
    // A reference far outside p0.
    let still = FieldFn::new(&[2], |x, _| 0.0 * &x);
    let far = &trace(&still, array![[30.0, 40.0]].view(), &TraceConfig::default()).unwrap()[0];
    let verdict =
        PathIntegral::new(Rule::Left { steps: 2 }).explain(&score, far, 0).unwrap().certificate.verdict;
    match verdict {
        Verdict::Warn { reasons } => {
            assert!(reasons.iter().any(|r| r.what.contains("standard deviations")), "{reasons:?}")
        }
        other => panic!("50 standard deviations out: {other:?}"),
    }
}
