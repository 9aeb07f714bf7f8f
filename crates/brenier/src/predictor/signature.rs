//! Which input and which output of a file are meant, where it is run as it is.

use onnx_grad::{Dim, ValueInfo};

use crate::error::{Error, Remedy, Result};

/// The one input of floats, with open sizes fixed.
pub(super) fn only_input(mut inputs: Vec<ValueInfo>, sizes: Option<&[usize]>) -> Result<ValueInfo> {
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    if names.len() != 1 {
        return Err(Error::Predictor {
            reason: format!("the model has {} inputs ({})", names.len(), names.join(", ")),
            remedy: "a model to explain takes one input: export it with all columns in one table of floats"
                .into(),
        });
    }
    let mut input = inputs.remove(0);
    if !input.dtype.is_float() {
        return Err(Error::Predictor {
            reason: format!("input '{}' is {}", input.name, input.dtype),
            remedy: "export the model with an input of floats".into(),
        });
    }
    if let (Some(sizes), Some(shape)) = (sizes, &mut input.shape) {
        let given: Vec<Dim> =
            shape.first().cloned().into_iter().chain(sizes.iter().map(|&n| n.into())).collect();
        let fits = given.len() == shape.len()
            && shape.iter().zip(&given).skip(1).all(|(s, g)| s.known().is_none() || s == g);
        if !fits {
            return Err(Error::Predictor {
                reason: format!("input '{}' has other sizes than {sizes:?}", input.name),
                remedy: "give the shape of one input without the batch".into(),
            });
        }
        *shape = given;
    }
    Ok(input)
}

/// The sizes of an input behind the batch.
pub(super) fn known_sizes(input: &ValueInfo) -> Result<Vec<usize>> {
    let open = || Error::Predictor {
        reason: format!("the sizes of input '{}' are open", input.name),
        remedy: Remedy::InputShapeOfTable,
    };
    let shape = input.shape.as_ref().filter(|shape| !shape.is_empty()).ok_or_else(open)?;
    shape[1..].iter().map(|d| d.known().and_then(|n| usize::try_from(n).ok()).ok_or_else(open)).collect()
}

/// The output asked for, or the first of floats.
pub(super) fn choose_output(
    outputs: &[ValueInfo],
    left_out: &[(String, String)],
    asked: Option<&str>,
) -> Result<usize> {
    let found = outputs.iter().position(|output| match asked {
        Some(name) => output.name == name,
        None => output.dtype.is_float(),
    });
    match found {
        Some(place) if outputs[place].dtype.is_float() => Ok(place),
        _ => {
            let tensors = outputs.iter().map(|o| format!("'{}' is {}", o.name, o.dtype));
            let others = left_out.iter().map(|(name, kind)| format!("'{name}' is {kind}"));
            let all: Vec<String> = tensors.chain(others).collect();
            let names = || outputs.iter().map(|o| &o.name).chain(left_out.iter().map(|(name, _)| name));
            if let Some(name) = asked.filter(|asked| names().all(|name| name != *asked)) {
                return Err(Error::Predictor {
                    reason: format!("it has no output '{name}'; {}", all.join(", ")),
                    remedy: "name one of its outputs of floats".into(),
                });
            }
            let wanted = asked.map_or("no output".to_string(), |name| format!("no output '{name}'"));
            Err(Error::Predictor {
                reason: format!("{wanted} is a tensor of floats: {}", all.join(", ")),
                remedy: "name an output of floats, and export scikit-learn's classifiers with \
                         options={'zipmap': False}"
                    .into(),
            })
        }
    }
}
