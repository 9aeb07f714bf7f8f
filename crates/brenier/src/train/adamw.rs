//! AdamW (Loshchilov and Hutter, 2019).
//!
//! ```text
//! m = b1 m + (1 - b1) g          s = b2 s + (1 - b2) g^2
//! theta = theta - rate ( (m / (1 - b1^k)) / (sqrt(s / (1 - b2^k)) + eps) + decay theta )
//! ```
//!
//! with `k` counted from 1. The decay is of weights only, not of biases and gains.

use super::checkpoint::Checkpoint;

/// The settings of the optimiser.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdamW {
    pub(super) beta1: f64,
    pub(super) beta2: f64,
    pub(super) epsilon: f64,
    pub(super) weight_decay: f64,
}

impl AdamW {
    /// One step with gradients times `shorten`; `decayed` says which parameters decay.
    pub(super) fn step(
        &self,
        step: u64,
        rate: f64,
        shorten: f64,
        gradients: &[f32],
        decayed: &[bool],
        state: &mut Checkpoint,
    ) {
        let count = i32::try_from(step + 1).unwrap_or(i32::MAX);
        let first_scale = 1.0 / (1.0 - self.beta1.powi(count));
        let second_scale = 1.0 / (1.0 - self.beta2.powi(count));
        let (b1, b2, shorten) = (self.beta1 as f32, self.beta2 as f32, shorten as f32);
        let (size, epsilon) = ((rate * first_scale) as f32, self.epsilon as f32);
        let second_scale = second_scale as f32;
        let decay = (rate * self.weight_decay) as f32;
        let moments = state.first.iter_mut().zip(state.second.iter_mut());
        let rest = gradients.iter().zip(decayed);
        for ((theta, (m, s)), (g, decayed)) in state.parameters.iter_mut().zip(moments).zip(rest) {
            let g = g * shorten;
            *m = b1 * *m + (1.0 - b1) * g;
            *s = b2 * *s + (1.0 - b2) * g * g;
            let kept = if *decayed { *theta - decay * *theta } else { *theta };
            *theta = kept - size * *m / ((*s * second_scale).sqrt() + epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_steps_computed_by_hand() {
        let optimiser = AdamW { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.1 };
        let mut state = Checkpoint::new(vec![1.0, -2.0]);
        // First step: m / (1 - b1) = g and s / (1 - b2) = g^2, so the step is rate * sign(g).
        optimiser.step(0, 0.01, 1.0, &[3.0, -0.5], &[true, false], &mut state);
        assert!((state.parameters[0] - (1.0 - 0.01 * 0.1 - 0.01)).abs() < 1e-6);
        assert!((state.parameters[1] - (-2.0 + 0.01)).abs() < 1e-6);
        // Second, with g = 1 for the first: m = 0.27 + 0.1 = 0.37, s = 0.0891 + 0.01 = 0.0991;
        // m / 0.19 = 1.947368, s / 0.0199 = 4.979899, root 2.231569, ratio 0.872646.
        optimiser.step(1, 0.02, 1.0, &[1.0, 0.0], &[true, false], &mut state);
        let expected = 0.989 - 0.02 * 0.1 * 0.989 - 0.02 * 0.872_646;
        assert!((state.parameters[0] - expected).abs() < 1e-6, "{}", state.parameters[0]);
        // A shortened gradient is a smaller gradient.
        let (mut a, mut b) = (Checkpoint::new(vec![0.5]), Checkpoint::new(vec![0.5]));
        optimiser.step(0, 0.01, 0.5, &[4.0], &[true], &mut a);
        optimiser.step(0, 0.01, 1.0, &[2.0], &[true], &mut b);
        assert_eq!((a.parameters, a.second), (b.parameters, b.second));
    }
}
