use super::*;
use crate::Line;
use ndarray::array;

/// A score with 200 kinks along the path, and its slope; the seed moves the kinks.
fn kinks(seed: f64, x: f64) -> (f64, f64) {
    (0..200).fold((0.0, 0.0), |(value, slope), k| {
        let (kink, sign) = (((f64::from(k) + seed) * 0.618_034).fract(), if k % 3 == 0 { 1.0 } else { -0.4 });
        if x > kink { (value + sign * (x - kink), slope + sign) } else { (value, slope) }
    })
}

/// Gives the state what it asks for, until it is done or says stop.
fn run(state: &mut Adaptive, seed: f64, mut check: impl FnMut(&Adaptive)) {
    loop {
        let found: Vec<_> =
            state.wanted().into_iter().map(|t| (kinks(seed, t).0, array![kinks(seed, t).1])).collect();
        if found.is_empty() {
            return;
        }
        state.absorb(found);
        check(state);
    }
}

#[test]
fn closing_segments_keeps_the_books_balanced() {
    // Room for 24 segments: most are closed long before the tolerance is met.
    let line = Line::new(array![0.0].view(), array![1.0].view()).unwrap();
    let ends = (kinks(0.0, 0.0).0, kinks(0.0, 1.0).0);
    let mut state = Adaptive::new(&line, ends, (1e-5, None), 300);
    state.open_limit = 24;
    run(&mut state, 0.0, |state| assert!(state.segments.len() <= 24 + HALVED_AT_ONCE));
    assert_eq!(state.gradients, 300);
    assert!(state.segments.is_empty());
    // What is missing in the sum is what the segments said was missing, and it is not much.
    let missing = ends.1 - ends.0 - state.credit.sum();
    assert!((missing - state.closed_error).abs() < 1e-9, "{missing} {}", state.closed_error);
    assert!(missing.abs() < 0.05 * (ends.1 - ends.0).abs(), "{missing}");
}

#[test]
fn fifty_gradients_do_better_at_kinks_than_two_hundred_on_a_grid() {
    let line = Line::new(array![0.0].view(), array![1.0].view()).unwrap();
    let (mut adaptive, mut grid) = (0.0, 0.0);
    for seed in 0..40 {
        let seed = 7.3 * f64::from(seed);
        let ends = (kinks(seed, 0.0).0, kinks(seed, 1.0).0);
        let mut state = Adaptive::new(&line, ends, (1e-6, None), 50);
        run(&mut state, seed, |_| ());
        assert_eq!(state.gradients, 50);
        adaptive += (ends.1 - ends.0 - state.credit.sum()).abs();
        let left: f64 = (0..200).map(|k| kinks(seed, f64::from(k) / 200.0).1 / 200.0).sum();
        grid += (ends.1 - ends.0 - left).abs();
    }
    assert!(adaptive < 0.8 * grid, "{adaptive} {grid}");
}

#[test]
fn a_gain_is_what_halving_takes_off_both_conditions() {
    let node = |time| Rc::new(Node { time, value: 0.0, gradient: array![0.0] });
    let errors = [0.3, -0.1, 0.05];
    let both =
        |errors: &[f64]| errors.iter().sum::<f64>().powi(2) + errors.iter().map(|e| e * e).sum::<f64>();
    for error in errors {
        let mut halved: Vec<f64> = errors.into_iter().filter(|e| *e != error).collect();
        halved.extend([error / 8.0; 2]);
        let gain = Segment { from: node(0.0), to: node(1.0), error, map_square: 0.0 }
            .accounting_gain(errors.iter().sum());
        assert!((gain - (both(&errors) - both(&halved))).abs() < 1e-15, "{error}: {gain}");
    }
}
