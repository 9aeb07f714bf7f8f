//! Each part is judged by its own evidence, and the verdict is the worst of them.

use super::*;
use crate::calibration::{FlowQuality, Standing};
use crate::path::PathEvidence;

fn path(evidence: PathEvidence) -> PathCertificate {
    PathCertificate {
        rule: Rule::adaptive(1e-3),
        rule_used: "bisection".into(),
        relative_disagreement: None,
        relative_map_error: None,
        kinetic_action: 1.0,
        geometric_path_straightness: None,
        evidence,
    }
}

#[test]
fn a_round_trip_that_does_not_close_names_the_setting_that_closes_it() {
    for (kind, remedy) in [("trace", Remedy::SmallerSolverTolerance), ("ddim", Remedy::MoreInversionSteps)] {
        let trip = |error| {
            let error = Some(error);
            path(PathEvidence {
                kind: kind.into(),
                relative_round_trip_error: error,
                ..PathEvidence::default()
            })
            .round_trip(&Limits::default())
        };
        assert_eq!(trip(0.003), Check::Pass);
        let Check::Warn { reasons } = trip(0.03) else { panic!("3 % pass") };
        assert!(reasons[0].what.contains("3.00 %") && reasons[0].remedy == Some(remedy), "{reasons:?}");
    }
}

#[test]
fn the_reference_is_judged_by_the_calibration_or_not_at_all() {
    let judged = |share, gain| {
        let furthest = vec![("the speed at time 0.5".into(), -7.25)];
        let standing = Standing { share, furthest, statistics: vec![] };
        let quality = FlowQuality { gain: Some(gain), ..FlowQuality::default() };
        let ordinary = Some(Ordinary::Calibrated { standing, quality });
        // The norm alone would warn.
        let far = Some(-30.0);
        let kind = "trace".into();
        path(PathEvidence { kind, ordinary, reference_deviation: far, ..PathEvidence::default() })
            .reference(&Limits::default(), None)
    };
    assert_eq!(judged(0.5, 0.4), Check::Pass);
    let Check::Warn { reasons } = judged(0.001, 0.4) else { panic!("a rare trace passes") };
    assert!(reasons[0].what.contains("the speed at time 0.5: 7.2 standard deviations below"), "{reasons:?}");
    assert!(matches!(judged(0.5, -2.0), Check::Warn { .. }));
    let ordinary = Some(Ordinary::NotCalibrated { reason: "the flow was never calibrated".into() });
    let open = path(PathEvidence { kind: "trace".into(), ordinary, ..PathEvidence::default() });
    assert!(matches!(open.reference(&Limits::default(), None), Check::NotCalibrated { .. }));
    let line = path(PathEvidence { kind: "line".into(), ..PathEvidence::default() });
    assert_eq!(line.reference(&Limits::default(), Some("higher".into())), Check::NotApplicable);
}

#[test]
fn the_verdict_is_the_worst_of_its_parts() {
    let warn = || Check::Warn { reasons: vec!["wrong".into()] };
    let open = || Check::NotCalibrated { reasons: vec!["unknown".into()] };
    let verdict =
        |accounting, reference| Checks { accounting, reference, ..Checks::default() }.verdict().in_words();
    assert_eq!(Checks::default().verdict(), Verdict::NoCheck);
    assert_eq!(verdict(Check::Pass, Check::NotApplicable), "pass");
    assert_eq!(verdict(Check::Pass, open()), "not calibrated");
    assert_eq!(verdict(warn(), open()), "warn");
    let members = [
        Checks { accounting: Check::Pass, reference: open(), ..Checks::default() },
        Checks { accounting: warn(), reference: Check::Pass, ..Checks::default() },
    ];
    let all = Checks::of_several(members.iter(), "flow");
    assert_eq!(all.accounting, Check::Warn { reasons: vec!["flow 1: wrong".into()] });
    assert_eq!(all.reference, open());
}
