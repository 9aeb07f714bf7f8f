//! Quantiles of Student's distribution with a whole number of degrees of freedom.
//!
//! With `theta = atan(x / sqrt(n))` its distribution function is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4),
//!
//! ```text
//! P(|T| < x) = sin(theta) (1 + cos^2/2 + 1*3/(2*4) cos^4 + ... to cos^(n-2))                              n even
//!            = 2/pi (theta + sin(theta) (cos + 2/3 cos^3 + 2*4/(3*5) cos^5 + ... to cos^(n-2)))           n odd
//! ```
//!
//! and the quantile is where it has the value asked for, found by halving.

use std::f64::consts::PI;

/// `P(|T| < x)` for `x >= 0`.
fn within(x: f64, degrees: usize) -> f64 {
    let theta = (x / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = theta.sin_cos();
    let odd = degrees % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    let mut power = if odd { 1 } else { 0 };
    while power + 2 <= degrees {
        sum += term;
        let next = power as f64;
        term *= cosine * cosine * (next + 1.0) / (next + 2.0);
        power += 2;
    }
    if odd { 2.0 / PI * (theta + sine * sum) } else { sine * sum }
}

/// The number that a variable with so many degrees of freedom stays below with this probability, 0.5 at the least.
pub(crate) fn quantile(probability: f64, degrees: usize) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    let wanted = 2.0 * probability - 1.0;
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, degrees) < wanted && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if within(middle, degrees) < wanted { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // scipy.stats.t.ppf, 1.17.1
        for (probability, degrees, expected) in [
            (0.975, 1, 12.706204736174694),
            (0.975, 2, 4.302652729749462),
            (0.975, 9, 2.262157162798205),
            (0.995, 9, 3.249835541592126),
            (0.975, 10, 2.228138851986274),
            (0.9, 3, 1.637744353696209),
            (0.5, 4, 0.0),
            (0.99975, 19, 4.186935258796953),
        ] {
            let found = quantile(probability, degrees);
            assert!((found - expected).abs() < 1e-9, "{probability} {degrees}: {found}");
        }
        assert_eq!(quantile(0.9, 0), f64::INFINITY);
    }
}
