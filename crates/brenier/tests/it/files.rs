//! What is saved comes back: traces, polylines, explanations.

use brenier::problems::{Gaussian, RectifiedTransport, SineSum};
use brenier::{
    Explanation, Path, PathIntegral, Polyline, Rule, TraceConfig, load_traces, sample, save_traces, trace,
};
use ndarray::{Array2, array};

use crate::shared::{Curve, normal, smooth_score};

#[test]
fn a_saved_trace_serves_another_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traces.npz");
    let (from, to) = (Gaussian::isotropic(4, 1.0).unwrap(), Gaussian::isotropic(4, 4.0).unwrap());
    let flow = RectifiedTransport::new(from, to).unwrap();
    let traces = trace(&flow, normal(3, 4, 5).view(), &TraceConfig::default()).unwrap();
    save_traces(&file, &traces).unwrap();
    let loaded = load_traces(&file).unwrap();
    assert_eq!(loaded, traces);
    for score in [smooth_score(4, 1), smooth_score(4, 2)] {
        let integral = PathIntegral::new(Rule::adaptive(1e-3));
        let fresh = integral.explain_batch(&score, &traces, &[0; 3]).unwrap();
        assert_eq!(integral.explain_batch(&score, &loaded, &[0; 3]).unwrap(), fresh);
        let evidence = &fresh[2].certificate.path.as_ref().unwrap().evidence;
        assert_eq!(evidence.kind, "trace");
        assert!(evidence.relative_round_trip_error.unwrap() < 1e-4);
    }
    std::fs::write(&file, b"not an archive").unwrap();
    assert!(load_traces(&file).unwrap_err().to_string().contains("traces.npz"));
}

#[test]
fn polylines_are_read_from_npy_in_both_precisions() {
    let folder = tempfile::tempdir().unwrap();
    let points = sample(&Curve::random(4, 2), 8);
    let file = folder.path().join("points.npy");
    ndarray_npy::write_npy(&file, &points).unwrap();
    let polyline = Polyline::read(&file).unwrap();
    assert_eq!(polyline.at(0.0), points.row(0));
    assert_eq!(polyline.at(1.0), points.row(8));
    let halfway = 0.5 * (&points.row(3) + &points.row(4));
    assert!((polyline.at(3.5 / 8.0) - halfway).iter().all(|gap| gap.abs() < 1e-12));
    // Images as points: further axes are flattened; f32 is read as well.
    let images = points.mapv(|v| v as f32).into_shape_with_order((9, 2, 2)).unwrap();
    ndarray_npy::write_npy(&file, &images).unwrap();
    assert_eq!(Polyline::read(&file).unwrap().at(0.0).len(), 4);
    assert!(
        Polyline::read(&folder.path().join("absent.npy")).unwrap_err().to_string().contains("absent.npy")
    );
    ndarray_npy::write_npy(&file, &array![[1.0, 2.0]]).unwrap();
    assert!(Polyline::read(&file).unwrap_err().to_string().contains("at least two"));
}

#[test]
fn adaptive_integrates_between_corners() {
    let points: Array2<f64> = normal(5, 3, 8);
    let polyline = Polyline::new(points.clone()).unwrap();
    let score = SineSum::new(3);
    let explanation = PathIntegral::new(Rule::adaptive(1e-4)).explain(&score, &polyline, 0).unwrap();
    let exact = score.exact_credit(points.row(0), points.row(4));
    assert!((explanation.values - exact).iter().all(|gap| gap.abs() < 1e-3));
}

#[test]
fn explanations_survive_json() {
    let explanation = PathIntegral::new(Rule::Left { steps: 5 })
        .explain(&SineSum::new(4), &Curve::random(4, 3), 0)
        .unwrap();
    let text = serde_json::to_string(&explanation).unwrap();
    assert!(text.contains("\"rule\":\"left\""));
    assert_eq!(serde_json::from_str::<Explanation>(&text).unwrap(), explanation);
}
