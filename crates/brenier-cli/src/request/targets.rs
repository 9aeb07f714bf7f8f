//! Which scores are explained, as typed: words, numbers and names of classes.

use anyhow::{Result, bail};
use brenier::runs::explain::Targets;
use brenier::{ValuePredictor, nearest_name};

/// One target for each of so many inputs: `predicted`, a class for all, or one each.
pub(crate) fn targets<'a>(
    text: &str,
    predictor: &'a ValuePredictor,
    classes: &[String],
    count: usize,
) -> Result<Targets<'a>> {
    if text == "predicted" {
        return Ok(Targets::Highest { model: predictor, count: 1 });
    }
    let listed = listed(text, predictor, classes)?;
    match listed.as_slice() {
        [_] => Ok(Targets::Same(listed)),
        many if many.len() == count => Ok(Targets::Each(listed)),
        many => bail!(
            "{} targets are given for {count} inputs\nhint: give one, or one for each; --targets explains several \
             for every input",
            many.len()
        ),
    }
}

/// The one score of a whole population: the class that is named, or the only output there is.
pub(crate) fn one_target(
    text: Option<&str>,
    predictor: &ValuePredictor,
    classes: &[String],
) -> Result<usize> {
    match (text, predictor.outputs()) {
        (Some(text), outputs) => match classes.iter().position(|class| class == text) {
            Some(place) => Ok(place),
            None => class_index(text, outputs, classes),
        },
        (None, 1) => Ok(0),
        (None, outputs) if classes.is_empty() => bail!(
            "the model has {outputs} outputs\nhint: say whose mean score is meant with --target, a number from 0 to {}",
            outputs.saturating_sub(1)
        ),
        (None, outputs) => bail!(
            "the model has {outputs} outputs\nhint: say whose mean score is meant with --target: {}",
            classes.join(", ")
        ),
    }
}

/// Several targets for every input: `all`, the highest so many (`top3`), or these classes.
pub(crate) fn several_targets<'a>(
    text: &str,
    predictor: &'a ValuePredictor,
    classes: &[String],
) -> Result<Targets<'a>> {
    if text == "all" {
        return Ok(Targets::Same((0..predictor.outputs()).collect()));
    }
    if let Some(best) = text.strip_prefix("top").and_then(|number| number.parse::<usize>().ok()) {
        if best == 0 || best > predictor.outputs() {
            bail!(
                "the highest {best} scores are asked for, but the model has {} outputs\nhint: ask for 1 to {0}",
                predictor.outputs()
            );
        }
        return Ok(Targets::Highest { model: predictor, count: best });
    }
    let listed = listed(text, predictor, classes)?;
    for (i, target) in listed.iter().enumerate() {
        if listed[..i].contains(target) {
            bail!("target {target} is given twice");
        }
    }
    Ok(Targets::Same(listed))
}

/// Classes with commas between; a name may hold commas itself where it stands alone.
fn listed(text: &str, predictor: &ValuePredictor, classes: &[String]) -> Result<Vec<usize>> {
    if let Some(one) = classes.iter().position(|class| class == text) {
        return Ok(vec![class_index(&classes[one], predictor.outputs(), classes)?]);
    }
    text.split(',').map(|part| class_index(part.trim(), predictor.outputs(), classes)).collect()
}

/// The output that a number or a name stands for.
pub(super) fn class_index(part: &str, outputs: usize, classes: &[String]) -> Result<usize> {
    let named = classes.iter().position(|class| class == part).or_else(|| {
        // In another case, where that leaves no doubt.
        let mut alike = (0..classes.len()).filter(|&i| classes[i].eq_ignore_ascii_case(part));
        alike.next().filter(|_| alike.next().is_none())
    });
    match (part.parse::<usize>(), named) {
        (Ok(number), Some(place)) if number != place => bail!(
            "'{part}' is the name of class {place}, and also the number of '{}'\nhint: give the number {place} or \
             rename the classes with --classes",
            classes.get(number).map_or("no class", String::as_str)
        ),
        (_, Some(place)) => Ok(place),
        (Ok(number), None) if number < outputs => Ok(number),
        // Below zero.
        (Err(_), None) if part.parse::<i64>().is_ok() => bail!(
            "target {part} is out of range: the model has {outputs} outputs, numbered from 0\nhint: give a number \
             from 0 to {}, or 'predicted'",
            outputs.saturating_sub(1)
        ),
        (Ok(number), None) => bail!(
            "target {number} is out of range: the model has {outputs} outputs, numbered from 0\nhint: give a number \
             from 0 to {}, or 'predicted'",
            outputs.saturating_sub(1)
        ),
        (Err(_), None) if classes.is_empty() => bail!(
            "'{part}' is not a target, and the model does not name its classes\nhint: say 'predicted' or a class index, \
             or name the classes with --classes"
        ),
        (Err(_), None) => {
            let known: Vec<&str> = classes.iter().map(String::as_str).collect();
            let nearest = nearest_name(part, &known).unwrap_or_default();
            bail!(
                "there is no class '{part}'\nhint: did you mean '{nearest}'? The classes are {}",
                known.join(", ")
            )
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        let classes: Vec<String> = ["Shirt", "Coat", "Ankle boot", "0"].map(String::from).to_vec();
        let found = |part: &str| class_index(part, 4, &classes);
        assert_eq!(found("Coat").ok(), Some(1));
        assert_eq!(found("Ankle boot").ok(), Some(2));
        assert_eq!(found("2").ok(), Some(2));
        let told = |part: &str| found(part).unwrap_err().to_string();
        assert_eq!(found("coat").ok(), Some(1));
        assert!(told("caot").contains("did you mean 'Coat'"), "{}", told("caot"));
        assert!(told("4").contains("out of range"));
        assert!(told("-1").contains("target -1 is out of range"));
        assert!(told("0").contains("is the name of class 3, and also the number of 'Shirt'"));
        assert!(class_index("cat", 4, &[]).unwrap_err().to_string().contains("--classes"));
    }
}
