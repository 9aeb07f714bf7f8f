//! Runge-Kutta methods as data: the numbers of each method, its order, and where they come from.
//!
//! ```text
//! k_i = v(x + h sum_j a_ij k_j, t + c_i h),    x' = x + h sum_i b_i k_i
//! error = h sum_i e_i k_i                      (b minus the embedded weights)
//! ```
//!
//! Between steps the state is the cubic Hermite polynomial through both ends and both velocities. A method
//! may add a quartic term `theta^2 (1 - theta)^2 h sum_i d_i k_i`, which is how Dormand-Prince reaches its
//! fourth-order dense output (Hairer, Norsett, Wanner, Solving ODEs I, II.6). To add a method, add its numbers.

use serde::{Deserialize, Serialize};

/// The numbers of an explicit Runge-Kutta method.
#[derive(Debug)]
pub struct Tableau {
    /// The name on the command line and in certificates.
    pub name: &'static str,
    /// The order: halving the step divides the error by `2^order`.
    pub order: usize,
    /// Where the numbers come from.
    pub citation: &'static str,
    /// Row `i` has the weights of stages before `i`.
    pub a: &'static [&'static [f64]],
    /// The weights of the step.
    pub b: &'static [f64],
    /// The times of the stages, as fractions of the step.
    pub c: &'static [f64],
    /// The weights of the error estimate, for methods whose step can adapt.
    pub error: Option<&'static [f64]>,
    /// The order of the embedded method, on which the step control is built.
    pub embedded_order: usize,
    /// The weights of the quartic term of the dense output.
    pub quartic: Option<&'static [f64]>,
    /// Whether the last stage is the first of the next step ("first same as last").
    pub last_is_next_first: bool,
}

/// The methods to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Order 1, one evaluation a step.
    Euler,
    /// Order 2, two evaluations a step.
    Midpoint,
    /// Order 2 with an embedded Euler step, two evaluations a step.
    Heun,
    /// The classical method of order 4, four evaluations a step.
    Rk4,
    /// Order 5 with embedded order 4 and dense output of order 4, six evaluations a step.
    DormandPrince,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 5] =
        [Scheme::Euler, Scheme::Midpoint, Scheme::Heun, Scheme::Rk4, Scheme::DormandPrince];

    /// The numbers.
    pub fn tableau(self) -> &'static Tableau {
        match self {
            Scheme::Euler => &EULER,
            Scheme::Midpoint => &MIDPOINT,
            Scheme::Heun => &HEUN,
            Scheme::Rk4 => &RK4,
            Scheme::DormandPrince => &DORMAND_PRINCE,
        }
    }
}

static EULER: Tableau = Tableau {
    name: "euler",
    order: 1,
    citation: "L. Euler, Institutionum calculi integralis, 1768",
    a: &[&[]],
    b: &[1.0],
    c: &[0.0],
    error: None,
    embedded_order: 0,
    quartic: None,
    last_is_next_first: false,
};

static MIDPOINT: Tableau = Tableau {
    name: "midpoint",
    order: 2,
    citation: "C. Runge, Math. Ann. 46, 1895",
    a: &[&[], &[0.5]],
    b: &[0.0, 1.0],
    c: &[0.0, 0.5],
    error: None,
    embedded_order: 0,
    quartic: None,
    last_is_next_first: false,
};

static HEUN: Tableau = Tableau {
    name: "heun",
    order: 2,
    citation: "K. Heun, Z. Math. Phys. 45, 1900",
    a: &[&[], &[1.0]],
    b: &[0.5, 0.5],
    c: &[0.0, 1.0],
    error: Some(&[-0.5, 0.5]),
    embedded_order: 1,
    quartic: None,
    last_is_next_first: false,
};

static RK4: Tableau = Tableau {
    name: "rk4",
    order: 4,
    citation: "W. Kutta, Z. Math. Phys. 46, 1901",
    a: &[&[], &[0.5], &[0.0, 0.5], &[0.0, 0.0, 1.0]],
    b: &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
    c: &[0.0, 0.5, 0.5, 1.0],
    error: None,
    embedded_order: 0,
    quartic: None,
    last_is_next_first: false,
};

static DORMAND_PRINCE: Tableau = Tableau {
    name: "dormand-prince",
    order: 5,
    citation: "J. Dormand, P. Prince, J. Comput. Appl. Math. 6, 1980; dense output: Hairer et al., dopri5",
    a: &[
        &[],
        &[1.0 / 5.0],
        &[3.0 / 40.0, 9.0 / 40.0],
        &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
        &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
        &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
        &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
    ],
    b: &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0, 0.0],
    c: &[0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0],
    error: Some(&[
        71.0 / 57600.0,
        0.0,
        -71.0 / 16695.0,
        71.0 / 1920.0,
        -17253.0 / 339200.0,
        22.0 / 525.0,
        -1.0 / 40.0,
    ]),
    embedded_order: 4,
    quartic: Some(&[
        -12715105075.0 / 11282082432.0,
        0.0,
        87487479700.0 / 32700410799.0,
        -10690763975.0 / 1880347072.0,
        701980252875.0 / 199316789632.0,
        -1453857185.0 / 822651844.0,
        69997945.0 / 29380423.0,
    ]),
    last_is_next_first: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_consistent() {
        for method in Scheme::ALL {
            let tableau = method.tableau();
            assert!((tableau.b.iter().sum::<f64>() - 1.0).abs() < 1e-15, "{}: b", tableau.name);
            for (row, c) in tableau.a.iter().zip(tableau.c) {
                assert!((row.iter().sum::<f64>() - c).abs() < 4e-15, "{}: c = {c}", tableau.name);
            }
            for weights in [tableau.error, tableau.quartic].into_iter().flatten() {
                // A constant field has no error and no quartic term.
                assert!(weights.iter().sum::<f64>().abs() < 1e-14, "{}", tableau.name);
                assert_eq!(weights.len(), tableau.b.len());
            }
        }
    }
}
