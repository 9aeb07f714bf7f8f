//! Which methods were asked for, with what settings.

use anyhow::{Result, bail};
use brenier::Rule;
use brenier::attribute::{Absence, Baseline, Method, Settings};

use super::Explain;
use super::groups::grouping;

/// Background rows over which an expectation is taken.
const BACKGROUND_ROWS: usize = 100;

/// The methods that were asked for, with the settings that were given.
pub(super) fn methods(args: &Explain) -> Result<Vec<Method>> {
    let given_rule = args.rule.is_some() || args.steps.is_some() || args.tolerance.is_some();
    let background_named = args.baseline.as_deref() == Some(BACKGROUND);
    let averaged = background_named || (args.baseline.is_none() && args.background.is_some());
    let settings = Settings {
        samples: args.samples,
        noise: args.noise,
        baseline: args.baseline.as_deref().and_then(baseline),
        rule: given_rule.then(|| rule(args)).transpose()?,
        steps: args.steps,
        layer: args.layer.clone(),
        neighbours: args.neighbours,
        absence: averaged.then_some(Absence::Background { rows: BACKGROUND_ROWS }),
        groups: args.groups.as_deref().map(grouping).transpose()?,
        window: args.window.clone(),
        stride: args.stride.clone(),
        seed: args.seed,
    };
    let followed = !args.flow.is_empty() || args.traces.is_some();
    let default = [if followed { "transport" } else { "ig" }.to_string()];
    let names = if args.method.is_empty() { &default[..] } else { &args.method };
    let methods =
        names.iter().map(|name| Method::new(name.trim(), &settings)).collect::<brenier::Result<Vec<_>>>()?;
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            bail!("the method '{name}' is given twice");
        }
    }
    // Whoever gives an option expects something of it.
    let given = [
        ("--samples", "samples", args.samples.is_some()),
        ("--noise", "noise", args.noise.is_some()),
        ("--baseline", "baseline", args.baseline.is_some() && !background_named),
        ("--baseline background", "absence", background_named),
        ("--groups", "groups", args.groups.is_some()),
        ("--window", "window", args.window.is_some()),
        ("--stride", "window", args.stride.is_some()),
        ("--layer", "layer", args.layer.is_some()),
        ("--neighbours", "neighbours", args.neighbours.is_some()),
        ("--background", "data", args.background.is_some()),
        ("--flow", "flows", !args.flow.is_empty()),
        ("--traces", "flows", args.traces.is_some()),
    ];
    for (option, setting, given) in given {
        if given && !methods.iter().any(|method| method.takes().contains(&setting)) {
            bail!(
                "{option} makes no difference to {}\nhint: leave it out, or choose another method",
                names.join(", ")
            );
        }
    }
    Ok(methods)
}

/// What is said instead of a baseline to average over the background.
const BACKGROUND: &str = "background";

/// What a baseline's name stands for; anything else is a file. The background is no baseline.
pub(super) fn baseline(name: &str) -> Option<Baseline> {
    match name {
        BACKGROUND => None,
        "zero" => Some(Baseline::Zero),
        "mean" => Some(Baseline::Mean),
        "blur" => Some(Baseline::Blur { sigma: None }),
        "noise" => Some(Baseline::Noise),
        _ => Some(Baseline::Given),
    }
}

/// `--tolerance` is what a user says; `--rule` and `--steps` are for those who know.
pub(super) fn rule(args: &Explain) -> Result<Rule> {
    let name =
        args.rule.as_deref().unwrap_or(if args.steps.is_some() { "gauss-legendre" } else { "adaptive" });
    let steps = args.steps.unwrap_or(50);
    Ok(match name {
        "left" => Rule::Left { steps },
        "right" => Rule::Right { steps },
        "midpoint" => Rule::Midpoint { steps },
        "trapezoid" => Rule::Trapezoid { steps },
        "simpson" => Rule::Simpson { steps },
        "gauss-legendre" => Rule::GaussLegendre { nodes: steps },
        "adaptive" => match (args.steps, Rule::adaptive(args.tolerance.unwrap_or(1e-3))) {
            (Some(max_gradients), Rule::Adaptive { tolerance, .. }) => {
                Rule::Adaptive { tolerance, max_gradients }
            }
            (_, rule) => rule,
        },
        other => bail!(
            "there is no rule '{other}'\nhint: choose left, right, midpoint, trapezoid, simpson, gauss-legendre or adaptive"
        ),
    })
}
