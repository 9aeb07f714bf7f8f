//! Other ways for gradients through a ReLU: sharp pictures, and no gradient of anything.
//!
//! ```text
//! derivative   R_in = [input > 0]             R_out
//! guided       R_in = [input > 0] [R_out > 0] R_out     (Springenberg et al., 2015)
//! deconvnet    R_in =             [R_out > 0] R_out     (Zeiler and Fergus, 2014)
//! ```

use super::BackwardRules;

/// Guided Backpropagation.
pub fn guided() -> BackwardRules {
    BackwardRules::new("guided").on(&["Relu"], |step| {
        let dy = step.dy()?;
        let rectified = step.b.op("Relu", &[&dy]);
        step.derivative_of(step.node, &rectified)
    })
}

/// The deconvolutional network.
pub fn deconvnet() -> BackwardRules {
    BackwardRules::new("deconvnet").on(&["Relu"], |step| {
        let dy = step.dy()?;
        Ok(vec![Some(step.b.op("Relu", &[&dy]))])
    })
}
