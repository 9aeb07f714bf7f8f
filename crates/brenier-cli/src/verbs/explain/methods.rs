//! Which methods were asked for, with what settings.

use anyhow::{Result, bail};
use brenier::Rule;
use brenier::attribute::{Baseline, Method, Settings};

use super::Explain;

/// The methods that were asked for, with the settings that were given.
pub(super) fn methods(args: &Explain) -> Result<Vec<Method>> {
    let given_rule = args.rule.is_some() || args.steps.is_some() || args.tolerance.is_some();
    let settings = Settings {
        samples: args.samples,
        noise: args.noise,
        baseline: args.baseline.as_deref().map(baseline),
        rule: given_rule.then(|| rule(args)).transpose()?,
        steps: args.steps,
        layer: args.layer.clone(),
        neighbours: args.neighbours,
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
        ("--baseline", "baseline", args.baseline.is_some()),
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

/// What a baseline's name stands for; anything else is a file.
pub(super) fn baseline(name: &str) -> Baseline {
    match name {
        "zero" => Baseline::Zero,
        "mean" => Baseline::Mean,
        "blur" => Baseline::Blur { sigma: None },
        "noise" => Baseline::Noise,
        _ => Baseline::Given,
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
