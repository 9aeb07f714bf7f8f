//! What the specs of methods and metrics say is what these do, and what the pages say comes out of the specs.

use std::collections::BTreeSet;
use std::path::Path as FilePath;

use brenier::attribute::{
    Absence, Baseline, Context, Grouping, LrpRule, Method, MethodSpec, Need, Setting, Settings, method_tables,
};
use brenier::data::Dataset;
use brenier::evaluate::{
    Cases, Channels, Metric, MetricNeed, MetricSetting, MetricSettings, Units, explain_with, metric_tables,
};
use brenier::{FieldFn, Line, Path, Rule, Score, ScoreFn, ValueFn};
use ndarray::Array2;
use serde_json::Value;

use crate::metrics::{SHAPE, convnet};
use crate::shared::{gaussian_noise_predictor, normal};

const FEATURES: usize = SHAPE[0] * SHAPE[1] * SHAPE[2];

/// Other names lead to the same method, and no two methods share one.
#[test]
fn every_name_and_alias_is_that_of_one_method_or_metric() {
    let mut seen = BTreeSet::new();
    let folded = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    for spec in Method::specs() {
        for name in [spec.name].iter().chain(spec.aliases) {
            assert_eq!(name.parse::<Method>().unwrap().spec().name, spec.name, "{name}");
            assert!(seen.insert(folded(name)), "{name} is there twice");
        }
        assert!(spec.help.len() <= 80 && !spec.help.ends_with('.'), "{}: {}", spec.name, spec.help);
    }
    seen.clear();
    for spec in Metric::specs() {
        for name in [spec.name].iter().chain(spec.aliases) {
            assert_eq!(name.parse::<Metric>().unwrap().name(), spec.name, "{name}");
            assert!(seen.insert(folded(name)), "{name} is there twice");
        }
        assert!(spec.help.len() <= 80 && !spec.help.ends_with('.'), "{}: {}", spec.name, spec.help);
    }
}

#[test]
fn classes_of_captum_and_shap_are_known() {
    let known = [
        ("IntegratedGradients", "ig"),
        ("integrated-gradients", "ig"),
        ("integrated_gradients+idgi", "ig+idgi"),
        ("Saliency", "gradient"),
        ("InputXGradient", "gradient-input"),
        ("GuidedBackprop", "guided-backprop"),
        ("Deconvolution", "deconvnet"),
        ("LayerGradCam", "grad-cam"),
        ("GradCAM", "grad-cam"),
        ("SmoothGrad", "smoothgrad"),
        ("smoothgrad_sq", "smoothgrad-squared"),
        ("GradientShap", "gradient-shap"),
        ("GradientExplainer", "expected-gradients"),
        ("GuidedIG", "guided-ig"),
        ("KernelShap", "kernel-shap"),
        ("KernelExplainer", "kernel-shap"),
        ("ShapleyValues", "shapley-values"),
        ("ExactExplainer", "shapley-values"),
        ("TreeExplainer", "tree-shap"),
        ("Occlusion", "occlusion"),
        ("Lime", "lime"),
        ("LRP", "lrp"),
        ("DeepLift", "deeplift"),
        ("DeepLiftShap", "deep-shap"),
        ("DeepExplainer", "deep-shap"),
    ];
    for (typed, name) in known {
        assert_eq!(typed.parse::<Method>().unwrap().name(), name, "{typed}");
    }
    let refusal = "IntegratedGradient".parse::<Method>().unwrap_err().to_string();
    assert!(refusal.contains("did you mean 'ig'"), "{refusal}");
}

/// The settings with this one given, where it is one.
fn given(setting: Setting) -> Option<Settings> {
    let default = Settings::default();
    Some(match setting {
        Setting::Samples => Settings { samples: Some(77), ..default },
        Setting::Noise => Settings { noise: Some(0.7), ..default },
        Setting::Baseline => Settings { baseline: Some(Baseline::Mean), ..default },
        Setting::Rule => Settings { rule: Some(Rule::Left { steps: 7 }), ..default },
        Setting::Steps => Settings { steps: Some(7), ..default },
        Setting::Layer => Settings { layer: Some("here".into()), ..default },
        Setting::LrpRule => Settings { lrp_rule: Some(LrpRule::ZPlus), ..default },
        Setting::Neighbours => Settings { neighbours: Some(7), ..default },
        Setting::SolverTolerance => Settings { solver_tolerance: Some(0.1), ..default },
        Setting::InversionSteps => Settings { inversion_steps: Some(7), ..default },
        Setting::Absence => Settings { absence: Some(Absence::Background { rows: 7 }), ..default },
        Setting::Groups => Settings { groups: Some(Grouping::Given { labels: vec![0] }), ..default },
        Setting::Window => Settings { window: Some(vec![7]), ..default },
        Setting::Stride => Settings { stride: Some(vec![7]), ..default },
        Setting::Seed => Settings { seed: 7, ..default },
        Setting::Data | Setting::Flow => return None,
    })
}

#[test]
fn settings_that_a_spec_uses_make_a_difference_and_no_others_do() {
    use Setting::*;
    let all = [
        Samples,
        Noise,
        Baseline,
        Rule,
        Steps,
        Layer,
        LrpRule,
        Neighbours,
        SolverTolerance,
        InversionSteps,
        Absence,
        Groups,
        Window,
        Stride,
        Seed,
        Data,
        Flow,
    ];
    for spec in Method::specs() {
        let plain = (spec.build)(&Settings::default());
        assert_eq!(plain.spec().name, spec.name);
        for setting in all {
            let differs = match given(setting) {
                Some(settings) => (spec.build)(&settings) != plain,
                // What is drawn or taken from data: what a need says, and a mean as a baseline.
                None if setting == Data => {
                    [Need::Data, Need::Trees].iter().any(|n| spec.needs(*n)) || spec.uses(Baseline)
                }
                None => spec.needs(Need::Flow) || spec.needs(Need::Diffusion),
            };
            assert_eq!(differs, spec.uses(setting), "{} {setting:?}", spec.name);
        }
    }
}

#[test]
fn settings_that_a_metric_uses_make_a_difference_and_no_others_do() {
    use MetricSetting::*;
    let given = |setting: MetricSetting| {
        let default = MetricSettings::default();
        match setting {
            Channels => MetricSettings { channels: Some(self::Channels::Maximum), ..default },
            Steps => MetricSettings { steps: Some(7), ..default },
            Samples => MetricSettings { samples: Some(7), ..default },
            Units => MetricSettings { units: Some(self::Units::Features), ..default },
            Sigma => MetricSettings { sigma: Some(7.0), ..default },
            Seed => MetricSettings { seed: 7, ..default },
        }
    };
    for spec in Metric::specs() {
        let plain = (spec.build)(&MetricSettings::default());
        assert_eq!((plain.spec().name, plain.name()), (spec.name, spec.name));
        for setting in [Channels, Steps, Samples, Units, Sigma, Seed] {
            let differs = (spec.build)(&given(setting)) != plain;
            assert_eq!(differs, spec.uses(setting), "{} {setting:?}", spec.name);
        }
    }
}

/// With everything there a method works; without one of the things it refuses exactly where its spec says so.
#[test]
fn what_a_spec_needs_is_what_the_method_refuses_to_go_without() {
    let predictor = convnet(1);
    let rows = normal(12, FEATURES, 1).mapv(|v| v as f32);
    let inputs = normal(1, FEATURES, 2);
    let labels = (0..FEATURES).map(|feature| feature / 48).collect();
    let settings = Settings {
        samples: Some(40),
        steps: Some(3),
        rule: Some(Rule::Left { steps: 2 }),
        neighbours: Some(4),
        inversion_steps: Some(4),
        groups: Some(Grouping::Given { labels }),
        ..Settings::default()
    };
    let works = |spec: &MethodSpec, without: Option<Need>| {
        let shape: &[usize] = if without == Some(Need::Image) { &[FEATURES] } else { &SHAPE };
        let data = Dataset::from_rows("rows", shape, rows.view()).unwrap();
        let flow = FieldFn::new(shape, |x, _| 0.5 * &x);
        let diffusion = gaussian_noise_predictor(shape, 1.5);
        let there = |need: Need| without != Some(need);
        let context = Context {
            data: there(Need::Data).then_some(&data),
            flows: if there(Need::Flow) { vec![&flow] } else { Vec::new() },
            diffusion: there(Need::Diffusion).then_some(&diffusion),
            model: (there(Need::Model) && there(Need::Image)).then_some(&predictor),
            ..Context::default()
        };
        let sines = ScoreFn::new(shape, |x, _| (x.mapv(f64::sin).sum(), x.mapv(f64::cos)));
        let values = ValueFn::new(shape, |x, _| x.mapv(f64::sin).sum());
        let score: &dyn Score = if there(Need::Gradients) { &sines } else { &values };
        (spec.build)(&settings).explain(score, inputs.view(), &[0], &context)
    };
    for spec in Method::specs() {
        let found = works(spec, None);
        // What is there is no tree; `trees.rs` has some.
        if spec.needs(Need::Trees) {
            assert!(found.unwrap_err().to_string().contains("no ensemble of trees"));
            continue;
        }
        assert!(found.is_ok(), "{}: {:?}", spec.name, found.err());
        for need in [Need::Gradients, Need::Model, Need::Data, Need::Flow, Need::Diffusion, Need::Image] {
            // A graph has its own gradients and its own shape.
            if spec.needs(Need::Model) && matches!(need, Need::Gradients | Need::Image) {
                continue;
            }
            assert_eq!(works(spec, Some(need)).is_err(), spec.needs(need), "{} {need:?}", spec.name);
        }
    }
}

#[test]
fn what_a_metric_needs_is_what_it_misses() {
    let predictor = convnet(1);
    let inputs = normal(2, FEATURES, 2);
    let field = FieldFn::new(&SHAPE, |x, _| 0.5 * &x);
    let method: Method = "ig".parse().unwrap();
    let context = Context { model: Some(&predictor), flows: vec![&field], ..Context::default() };
    let again = explain_with(&method, &context);
    let explanations = method.explain(&predictor, inputs.view(), &[0, 1], &context).unwrap();
    let zero = Array2::zeros((1, FEATURES));
    let lines: Vec<Line> =
        inputs.rows().into_iter().map(|input| Line::new(zero.row(0), input).unwrap()).collect();
    let truth = inputs.mapv(|v| v > 1.0);
    let missing = |metric: &Metric, without: Option<MetricNeed>| {
        let there = |need: MetricNeed| without != Some(need);
        let cases = Cases::of(&predictor, &explanations).unwrap();
        let values = cases.values.clone();
        let completeness =
            if there(MetricNeed::Account) { cases.completeness.clone() } else { vec![None; 2] };
        let cases = Cases {
            completeness,
            paths: lines.iter().filter(|_| there(MetricNeed::Path)).map(|line| line as &dyn Path).collect(),
            reference_field: there(MetricNeed::TwoFlows).then_some(&field),
            reference_values: there(MetricNeed::References).then_some(values.view()),
            repeats: if there(MetricNeed::Seeds) { vec![values.view()] } else { Vec::new() },
            truth: there(MetricNeed::Truth).then_some(truth.view()),
            explain: there(MetricNeed::Method).then_some(&*again),
            context: Context {
                flows: if there(MetricNeed::Flow) { vec![&field] } else { Vec::new() },
                model: there(MetricNeed::Model).then_some(&predictor),
                ..Context::default()
            },
            ..cases
        };
        metric.missing(&cases)
    };
    let needs = [
        MetricNeed::Account,
        MetricNeed::Path,
        MetricNeed::TwoFlows,
        MetricNeed::References,
        MetricNeed::Seeds,
        MetricNeed::Method,
        MetricNeed::Model,
        MetricNeed::Truth,
    ];
    for spec in Metric::specs() {
        let metric = (spec.build)(&MetricSettings::default());
        assert_eq!(missing(&metric, None), None, "{}", spec.name);
        for need in needs {
            assert_eq!(missing(&metric, Some(need)).is_some(), spec.needs(need), "{} {need:?}", spec.name);
        }
        // One flow is half of two.
        let flow = spec.needs(MetricNeed::Flow) || spec.needs(MetricNeed::TwoFlows);
        assert_eq!(missing(&metric, Some(MetricNeed::Flow)).is_some(), flow, "{}", spec.name);
    }
}

/// Settings that files hold: each line was written by the version that had parallel lists in place of specs.
#[test]
fn what_was_saved_before_is_read_and_written_as_before() {
    let read = |name: &str| -> Vec<Value> {
        let file = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/saved").join(name);
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut names = BTreeSet::new();
    for saved in read("methods.jsonl") {
        let method: Method = serde_json::from_value(saved.clone()).unwrap();
        assert!(keeps(&serde_json::to_value(&method).unwrap(), &saved), "{method:?}");
        assert!(names.insert(method.name()), "{saved}");
    }
    for saved in read("metrics.jsonl") {
        let metric: Metric = serde_json::from_value(saved.clone()).unwrap();
        assert!(keeps(&serde_json::to_value(&metric).unwrap(), &saved), "{metric:?}");
        assert!(names.insert(metric.name().to_string()), "{saved}");
    }
    assert_eq!(names.len(), 27 + 24);
}

/// Whether everything that was saved is written again. A later version may say more.
fn keeps(now: &Value, saved: &Value) -> bool {
    match (now, saved) {
        (Value::Object(now), Value::Object(saved)) => {
            saved.iter().all(|(key, value)| now.get(key).is_some_and(|now| keeps(now, value)))
        }
        _ => now == saved,
    }
}

/// The tables of the pages are those that the specs print: `BLESS=1 cargo test -p brenier --test it pages`.
#[test]
fn the_pages_have_the_tables_of_the_registry() {
    for (page, tables) in [("methods.md", method_tables()), ("metrics.md", metric_tables())] {
        let file = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let written = std::fs::read_to_string(&file).unwrap();
        let mut text = String::new();
        let mut rest = written.as_str();
        for table in tables {
            let (above, below) = rest.split_once("<!-- generated -->\n").unwrap();
            let (_, after) = below.split_once("<!-- end -->").unwrap();
            text += &format!("{above}<!-- generated -->\n{table}<!-- end -->");
            rest = after;
        }
        text += rest;
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let now = std::fs::read_to_string(&file).unwrap();
        assert!(now == text, "docs/{page} is out of date: run with BLESS=1");
    }
}
