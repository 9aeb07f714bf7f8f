//! The transforms of Winograd's minimal filtering, along one axis.
//!
//! A kernel of three taps and `OUT` results side by side read `IN = OUT + 2` inputs. Both are polynomials; their product is
//! known by its values at `IN` points, one of them infinity, so that `IN` products do the work of `3 OUT`:
//!
//! ```text
//! y = A (G w * B d),    M(x) = product of (x - p),   N_p = M / (x - p)
//! B: coefficients of N_p, and of M for infinity      G: (1, p, p^2) / N_p(p)      A: (1, p, .., p^(OUT-1))
//! ```
//!
//! For four results the points are 0, ±5/8, ±3/2 in place of the usual 0, ±1, ±2: rounding errors are half as large for as
//! many operations. Points come in pairs ±p, so even and odd powers are summed apart and shared by both.

use rten_simd::ops::NumOps;

/// One choice of points.
pub(super) trait Scheme<const IN: usize, const OUT: usize> {
    /// What inputs become before the products: `B d`.
    fn input<O: NumOps<f32>>(ops: O, d: [O::Simd; IN]) -> [O::Simd; IN];
    /// What products become: `A m`.
    fn output<O: NumOps<f32>>(ops: O, m: [O::Simd; IN]) -> [O::Simd; OUT];
    /// What weights become, once: `G w`.
    fn weights(w: [f64; 3]) -> [f64; IN];
}

/// Two results at a time, points 0, ±1: the products are 2.25 times fewer in the plane.
pub(super) struct Two;

/// Four results at a time, points 0, ±5/8, ±3/2: the products are four times fewer in the plane.
pub(super) struct Four;

impl Scheme<4, 2> for Two {
    #[inline(always)]
    fn input<O: NumOps<f32>>(ops: O, d: [O::Simd; 4]) -> [O::Simd; 4] {
        [ops.sub(d[2], d[0]), ops.add(d[1], d[2]), ops.sub(d[2], d[1]), ops.sub(d[3], d[1])]
    }

    #[inline(always)]
    fn output<O: NumOps<f32>>(ops: O, m: [O::Simd; 4]) -> [O::Simd; 2] {
        [ops.add(ops.add(m[1], m[2]), m[0]), ops.add(ops.sub(m[1], m[2]), m[3])]
    }

    fn weights([a, b, c]: [f64; 3]) -> [f64; 4] {
        [-a, 0.5 * (a + b + c), 0.5 * (a - b + c), c]
    }
}

/// The points ±P and ±Q.
const P: f32 = 0.625;
const Q: f32 = 1.5;

impl Scheme<6, 4> for Four {
    #[inline(always)]
    fn input<O: NumOps<f32>>(ops: O, d: [O::Simd; 6]) -> [O::Simd; 6] {
        let [pp, qq, both, sum] = [-P * P, -Q * Q, P * P * Q * Q, -P * P - Q * Q].map(|v| ops.splat(v));
        // x (x ± P)(x^2 - Q^2) and x (x ± Q)(x^2 - P^2), even and odd powers apart.
        let (even_p, even_q) = (ops.mul_add(d[2], qq, d[4]), ops.mul_add(d[2], pp, d[4]));
        let odd_p = ops.mul(ops.mul_add(d[1], qq, d[3]), ops.splat(P));
        let odd_q = ops.mul(ops.mul_add(d[1], pp, d[3]), ops.splat(Q));
        [
            ops.mul_add(d[0], both, ops.mul_add(d[2], sum, d[4])),
            ops.add(even_p, odd_p),
            ops.sub(even_p, odd_p),
            ops.add(even_q, odd_q),
            ops.sub(even_q, odd_q),
            ops.mul_add(d[1], both, ops.mul_add(d[3], sum, d[5])),
        ]
    }

    #[inline(always)]
    fn output<O: NumOps<f32>>(ops: O, m: [O::Simd; 6]) -> [O::Simd; 4] {
        let (even_p, odd_p) = (ops.add(m[1], m[2]), ops.sub(m[1], m[2]));
        let (even_q, odd_q) = (ops.add(m[3], m[4]), ops.sub(m[3], m[4]));
        let [p, pp, ppp] = [P, P * P, P * P * P].map(|v| ops.splat(v));
        let [q, qq, qqq] = [Q, Q * Q, Q * Q * Q].map(|v| ops.splat(v));
        [
            ops.add(ops.add(even_p, even_q), m[0]),
            ops.mul_add(odd_q, q, ops.mul(odd_p, p)),
            ops.mul_add(even_q, qq, ops.mul(even_p, pp)),
            ops.add(ops.mul_add(odd_q, qqq, ops.mul(odd_p, ppp)), m[5]),
        ]
    }

    fn weights([a, b, c]: [f64; 3]) -> [f64; 6] {
        let (p, q) = (f64::from(P), f64::from(Q));
        let at = |x: f64, own: f64, other: f64| {
            (a + b * x + c * x * x) / (2.0 * own * own * (own * own - other * other))
        };
        [a / (p * p * q * q), at(p, p, q), at(-p, p, q), at(q, q, p), at(-q, q, p), c]
    }
}
