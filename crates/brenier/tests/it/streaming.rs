//! Nodes stream: results do not depend on the size of the micro-batches, and neither does what is held.

use brenier::problems::{Activation, RandomMlp};
use brenier::{Line, PathIntegral, Rule, ScoreFn};
use ndarray::array;
use rand::SeedableRng;

use crate::shared::{Counting, Curve, smooth_score};

fn rules() -> Vec<Rule> {
    vec![
        Rule::Left { steps: 37 },
        Rule::Right { steps: 37 },
        Rule::Midpoint { steps: 37 },
        Rule::Trapezoid { steps: 37 },
        Rule::Simpson { steps: 38 },
        Rule::GaussLegendre { nodes: 37 },
        Rule::adaptive(1e-3),
    ]
}

#[test]
fn the_score_never_sees_more_rows_than_a_micro_batch_whatever_the_steps() {
    let curves: Vec<_> = (0..3).map(|seed| Curve::random(4, seed)).collect();
    for steps in [10, 100, 10_000] {
        let score = Counting::new(smooth_score(4, 9));
        let integral = PathIntegral { micro_batch: 16, ..PathIntegral::new(Rule::Left { steps }) };
        let explanations = integral.explain_batch(&score, &curves, &[0, 0, 0]).unwrap();
        assert_eq!(score.largest_batch.get(), 16);
        assert_eq!(score.gradients.get(), 3 * steps);
        assert_eq!(score.values.get(), 3, "only the score at the input is not there yet");
        let counted = &explanations[1].certificate;
        assert_eq!((counted.gradient_evaluations, counted.score_evaluations), (steps, 1));
    }
}

#[test]
fn certificates_count_every_evaluation() {
    for rule in rules() {
        let score = Counting::new(smooth_score(4, 9));
        let certificate =
            PathIntegral::new(rule).explain(&score, &Curve::random(4, 5), 0).unwrap().certificate;
        assert_eq!(score.gradients.get(), certificate.gradient_evaluations, "{rule:?}");
        assert_eq!(score.values.get(), certificate.score_evaluations, "{rule:?}");
    }
}

#[test]
fn credit_is_the_same_to_the_bit_for_every_micro_batch_and_company() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let network = RandomMlp::new(4, 16, Activation::Relu, &mut rng);
    let curves: Vec<_> = (0..5).map(|seed| Curve::random(4, seed)).collect();
    for rule in rules() {
        let run = |micro_batch| {
            PathIntegral { micro_batch, ..PathIntegral::new(rule) }
                .explain_batch(&network, &curves, &[0; 5])
                .unwrap()
        };
        let whole = run(1000);
        for micro_batch in [1, 7, 32] {
            assert_eq!(run(micro_batch), whole, "{rule:?}, micro-batch {micro_batch}");
        }
        let alone = PathIntegral::new(rule).explain(&network, &curves[3], 0).unwrap();
        assert_eq!(alone.values, whole[3].values, "{rule:?}");
    }
}

#[test]
fn many_segments_of_a_rough_model_are_closed_on_the_way() {
    // Far more segments than are kept open: credit must still be right, and the count within its limit.
    let kinks = ScoreFn::new(&[1], |x, _| {
        let (mut value, mut slope) = (0.0, 0.0);
        for k in 0..200 {
            let kink = (f64::from(k) * 0.618_034).fract();
            let sign = if k % 3 == 0 { 1.0 } else { -0.4 };
            if x[0] > kink {
                value += sign * (x[0] - kink);
                slope += sign;
            }
        }
        (value, array![slope])
    });
    let line = Line::new(array![0.0].view(), array![1.0].view()).unwrap();
    let explanation = PathIntegral::new(Rule::adaptive(1e-5)).explain(&kinks, &line, 0).unwrap();
    let certificate = &explanation.certificate;
    assert!(certificate.gradient_evaluations > 200, "{certificate:?}");
    assert!(certificate.gradient_evaluations <= 2000);
    assert!(certificate.completeness.unwrap().relative_residual.unwrap() <= 1e-5, "{certificate:?}");
}

#[test]
fn several_targets_share_one_path_and_agree_with_single_calls() {
    let scores = [smooth_score(4, 1), smooth_score(4, 2), smooth_score(4, 3)];
    let score = Counting::new(ScoreFn::new(&[4], |x, target| {
        use brenier::Score;
        let (value, gradient) = scores[target].gradients(x.insert_axis(ndarray::Axis(0)), &[0]).unwrap();
        (value[0], gradient.row(0).to_owned())
    }));
    let curve = Curve::random(4, 7);
    let integral = PathIntegral::new(Rule::Midpoint { steps: 12 });
    let together = integral.explain_targets(&score, &curve, &[2, 0, 1]).unwrap();
    for (explanation, target) in together.iter().zip([2, 0, 1]) {
        assert_eq!(explanation.certificate.target, target);
        let single = integral.explain(&scores[target], &curve, 0).unwrap();
        assert_eq!(single.values, explanation.values);
    }
    assert!(score.targets.borrow().contains(&2));
}
