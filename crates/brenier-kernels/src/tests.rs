//! Kernels against the sums that define them, in f64.

use onnx_grad::{Attribute, Node, fused};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Arithmetic, Input, Kernel, Misfit};

/// An array with its shape.
struct Array {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Array {
    fn random(shape: &[usize], rng: &mut ChaCha8Rng) -> Array {
        let count = shape.iter().product();
        Array { shape: shape.to_vec(), data: (0..count).map(|_| StandardNormal.sample(rng)).collect() }
    }

    fn at(&self, index: &[usize]) -> f64 {
        let place = index.iter().zip(&self.shape).fold(0, |place, (i, size)| place * size + i);
        f64::from(self.data[place])
    }

    fn input(&self) -> Input<'_> {
        Input { shape: &self.shape, data: &self.data }
    }
}

fn run(kernel: &mut Kernel, inputs: &[&Array]) -> Result<Vec<Array>, Misfit> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|array| array.shape.as_slice()).collect();
    let shapes = kernel.shapes(&shapes)?;
    // What stands in the memory of outputs must not matter.
    let mut results: Vec<Array> = shapes
        .into_iter()
        .map(|shape| Array { data: vec![f32::NAN; shape.iter().product()], shape })
        .collect();
    let inputs: Vec<Input> = inputs.iter().map(|array| array.input()).collect();
    let mut outputs: Vec<&mut [f32]> = results.iter_mut().map(|array| array.data.as_mut_slice()).collect();
    kernel.run(&inputs, &mut outputs)?;
    Ok(results)
}

fn assert_close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
    let gap = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum::<f64>().sqrt();
    assert!(gap < 2e-5 * size, "{what}: off by {gap} of {size}");
}

/// The sizes of one convolution.
#[derive(Debug, Clone)]
struct Case {
    rows: usize,
    inner: usize,
    out: usize,
    size: [usize; 2],
    kernel: [usize; 2],
    dilations: [usize; 2],
    pads: [usize; 4],
}

impl Case {
    fn random(rng: &mut ChaCha8Rng) -> Case {
        let mut pick = |from: usize, to: usize| rng.random_range(from..=to);
        let (kernel, dilations) = ([pick(1, 4), pick(1, 4)], [pick(1, 2), pick(1, 3)]);
        let reach = |i: usize| dilations[i] * (kernel[i] - 1);
        let pads = [pick(0, reach(0)), pick(0, reach(1)), pick(0, reach(0)), pick(0, reach(1))];
        let least = |i: usize| (reach(i) + 1).saturating_sub(pads[i] + pads[2 + i]).max(1);
        let size = [pick(least(0), 20), pick(least(1), 40)];
        Case { rows: pick(1, 7), inner: pick(1, 9), out: pick(1, 17), size, kernel, dilations, pads }
    }

    fn node(&self, op: &str, pads: [usize; 4]) -> Node {
        let ints = |values: &[usize]| Attribute::Ints(values.iter().map(|&v| v as i64).collect());
        let node = Node { domain: fused::DOMAIN.to_string(), ..Node::new(op, &[], &[]) };
        node.with("kernel_shape", ints(&self.kernel))
            .with("dilations", ints(&self.dilations))
            .with("pads", ints(&pads))
    }

    /// The padding of the way back.
    fn back(&self) -> [usize; 4] {
        std::array::from_fn(|i| self.dilations[i % 2] * (self.kernel[i % 2] - 1) - self.pads[i])
    }

    fn places(&self) -> [usize; 2] {
        std::array::from_fn(|i| {
            self.size[i] + self.pads[i] + self.pads[2 + i] - self.dilations[i] * (self.kernel[i] - 1)
        })
    }

    /// Calls with every product of the sum: `[n, o, i]`, a place of the result, one of the image, and the tap.
    fn products(&self, mut with: impl FnMut([usize; 3], [usize; 2], [usize; 2], [usize; 2])) {
        let [tall, wide] = self.places();
        let input = |place: usize, tap: usize, i: usize| {
            (place + tap * self.dilations[i]).checked_sub(self.pads[i]).filter(|&p| p < self.size[i])
        };
        for (n, o) in (0..self.rows).flat_map(|n| (0..self.out).map(move |o| (n, o))) {
            for (r, c) in (0..tall).flat_map(|r| (0..wide).map(move |c| (r, c))) {
                for (a, b) in (0..self.kernel[0]).flat_map(|a| (0..self.kernel[1]).map(move |b| (a, b))) {
                    if let (Some(y), Some(x)) = (input(r, a, 0), input(c, b, 1)) {
                        (0..self.inner).for_each(|i| with([n, o, i], [r, c], [y, x], [a, b]));
                    }
                }
            }
        }
    }

    /// Against the sums; with weights that are fixed as well, in both arithmetics.
    fn check(&self, rng: &mut ChaCha8Rng) {
        let what = format!("{self:?}");
        let ([height, width], [tall, wide]) = (self.size, self.places());
        let x = Array::random(&[self.rows, self.inner, height, width], rng);
        let w = Array::random(&[self.out, self.inner, self.kernel[0], self.kernel[1]], rng);
        let bias = Array::random(&[self.out], rng);
        let dy = Array::random(&[self.rows, self.out, tall, wide], rng);
        let place = |[n, c]: [usize; 2], [r, q]: [usize; 2], channels: usize, [h, w]: [usize; 2]| {
            ((n * channels + c) * h + r) * w + q
        };
        let mut y: Vec<f64> =
            (0..dy.data.len()).map(|i| f64::from(bias.data[i / (tall * wide) % self.out])).collect();
        let mut dx = vec![0.0; x.data.len()];
        let mut dw = vec![0.0; w.data.len()];
        self.products(|[n, o, i], [r, c], [h, v], [a, b]| {
            let (image, weight) = (x.at(&[n, i, h, v]), w.at(&[o, i, a, b]));
            let gradient = dy.at(&[n, o, r, c]);
            y[place([n, o], [r, c], self.out, [tall, wide])] += weight * image;
            dx[place([n, i], [h, v], self.inner, self.size)] += weight * gradient;
            dw[place([o, i], [a, b], self.inner, self.kernel)] += gradient * image;
        });
        let mut db = vec![0.0; self.out];
        dy.data.iter().enumerate().for_each(|(i, g)| db[i / (tall * wide) % self.out] += f64::from(*g));

        let mut forward = Kernel::of(&self.node(fused::CONV, self.pads)).unwrap();
        let mut back = Kernel::of(&self.node(fused::CONV_INPUT_GRADIENT, self.back())).unwrap();
        let mut weights = Kernel::of(&self.node(fused::CONV_WEIGHT_GRADIENT, self.pads)).unwrap();
        // The second time in memory that has been used.
        for _ in 0..2 {
            let found = run(&mut forward, &[&x, &w, &bias]).unwrap();
            assert_eq!(found[0].shape, [self.rows, self.out, tall, wide]);
            assert_close(&found[0].data, &y, &what);
            let found = run(&mut back, &[&dy, &w]).unwrap();
            assert_eq!(found[0].shape, x.shape);
            assert_close(&found[0].data, &dx, &what);
            let found = run(&mut weights, &[&x, &dy]).unwrap();
            assert_eq!(found[0].shape, w.shape);
            assert_close(&found[0].data, &dw, &what);
            assert_close(&found[1].data, &db, &what);
        }
        for arithmetic in [Arithmetic::Fast, Arithmetic::Accurate] {
            let what = format!("{what}, {arithmetic:?}");
            let gone = Array { data: Vec::new(), shape: w.shape.clone() };
            assert!(forward.fix(1, w.input(), arithmetic) && back.fix(1, w.input(), arithmetic));
            assert_close(&run(&mut forward, &[&x, &gone, &bias]).unwrap()[0].data, &y, &what);
            assert_close(&run(&mut back, &[&dy, &gone]).unwrap()[0].data, &dx, &what);
        }
    }
}

#[test]
fn convolutions_and_their_gradients_are_the_sums_that_define_them() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for _ in 0..150 {
        Case::random(&mut rng).check(&mut rng);
    }
    // More images than a plane holds, not a multiple of it; an image larger than a plane.
    let same =
        |rows, size| Case { rows, inner: 5, out: 9, size, kernel: [3, 3], dilations: [1, 1], pads: [1; 4] };
    for case in [same(39, [8, 8]), same(7, [16, 16]), same(2, [40, 50])] {
        case.check(&mut rng);
    }
    // More channels on either side than a block has.
    let many = Case { inner: 70, out: 37, ..same(3, [5, 7]) };
    many.check(&mut rng);
}

#[test]
fn kernels_of_3x3_are_the_same_with_fewer_products() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let case = |rows, inner, out, size, pads| Case {
        rows,
        inner,
        out,
        size,
        kernel: [3, 3],
        dilations: [1, 1],
        pads,
    };
    // Sizes that tiles divide and do not, down to less than a tile; few tiles and more than are computed at once; channels
    // that fill blocks and do not; padding on some sides only.
    for case in [
        case(1, 16, 16, [8, 8], [1; 4]),
        case(3, 12, 45, [7, 9], [1; 4]),
        case(2, 37, 17, [3, 3], [0; 4]),
        case(5, 20, 33, [1, 2], [2, 1, 0, 1]),
        case(2, 17, 12, [14, 5], [0, 2, 1, 0]),
        case(1, 64, 16, [61, 50], [1; 4]),
        case(11, 16, 48, [12, 12], [1; 4]),
    ] {
        case.check(&mut rng);
    }
}

#[test]
fn fewer_products_cost_little_accuracy() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let case =
        Case { rows: 1, inner: 64, out: 16, size: [16, 16], kernel: [3, 3], dilations: [1, 1], pads: [1; 4] };
    let (x, w) = (Array::random(&[1, 64, 16, 16], &mut rng), Array::random(&[16, 64, 3, 3], &mut rng));
    let mut exact = vec![0.0; 16 * 256];
    case.products(|[n, o, i], [r, c], [h, v], [a, b]| {
        exact[(o * 16 + r) * 16 + c] += x.at(&[n, i, h, v]) * w.at(&[o, i, a, b]);
    });
    let size = exact.iter().map(|v| v * v).sum::<f64>().sqrt();
    let error = |arithmetic: Option<Arithmetic>| {
        let mut kernel = Kernel::of(&case.node(fused::CONV, case.pads)).unwrap();
        arithmetic.map(|arithmetic| kernel.fix(1, w.input(), arithmetic));
        let found = run(&mut kernel, &[&x, &w]).unwrap();
        let gaps = found[0].data.iter().zip(&exact).map(|(a, b)| (f64::from(*a) - b).powi(2));
        gaps.sum::<f64>().sqrt() / size
    };
    let (plain, accurate, fast) =
        (error(None), error(Some(Arithmetic::Accurate)), error(Some(Arithmetic::Fast)));
    assert!(plain < 5e-7 && accurate < 5e-7 && fast < 1.5e-6, "{plain} {accurate} {fast}");
    assert!(fast > accurate, "{fast} {accurate}: two arithmetics");
}

#[test]
fn an_example_is_computed_to_the_same_bits_in_any_company() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let case =
        Case { rows: 37, inner: 3, out: 4, size: [8, 8], kernel: [3, 3], dilations: [1, 1], pads: [1; 4] };
    let (x, w) = (Array::random(&[37, 3, 8, 8], &mut rng), Array::random(&[4, 3, 3, 3], &mut rng));
    let mut kernel = Kernel::of(&case.node(fused::CONV, case.pads)).unwrap();
    let all = run(&mut kernel, &[&x, &w]).unwrap();
    for n in 0..37 {
        let one = Array { shape: vec![1, 3, 8, 8], data: x.data[n * 192..][..192].to_vec() };
        let alone = run(&mut kernel, &[&one, &w]).unwrap();
        assert_eq!(alone[0].data, all[0].data[n * 256..][..256]);
    }
}

#[test]
fn fewer_products_do_not_depend_on_the_company_either() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let case =
        Case { rows: 23, inner: 19, out: 21, size: [9, 7], kernel: [3, 3], dilations: [1, 1], pads: [1; 4] };
    let (x, w) = (Array::random(&[23, 19, 9, 7], &mut rng), Array::random(&[21, 19, 3, 3], &mut rng));
    for arithmetic in [Arithmetic::Fast, Arithmetic::Accurate] {
        let mut kernel = Kernel::of(&case.node(fused::CONV, case.pads)).unwrap();
        assert!(kernel.fix(1, w.input(), arithmetic));
        let all = run(&mut kernel, &[&x, &w]).unwrap();
        for (rows, n) in [(1, 0), (1, 11), (2, 21), (7, 5)] {
            let (pixels, results) = (19 * 63, 21 * 63);
            let some =
                Array { shape: vec![rows, 19, 9, 7], data: x.data[n * pixels..][..rows * pixels].to_vec() };
            let found = run(&mut kernel, &[&some, &w]).unwrap();
            assert_eq!(found[0].data, all[0].data[n * results..][..rows * results]);
        }
    }
}

/// A node of a group normalisation.
fn norm(op: &str, groups: i64, activation: &str) -> Node {
    let node = Node { domain: fused::DOMAIN.to_string(), ..Node::new(op, &[], &[]) };
    node.with("groups", groups).with("epsilon", 1e-3f32).with("activation", activation)
}

/// The normalisation, in f64.
fn normalised(x: &[f64], shape: &[usize], groups: usize, gain: &[f64], bias: &[f64], silu: bool) -> Vec<f64> {
    let area: usize = shape[2..].iter().product();
    let group = shape[1] / groups * area;
    let mut y = Vec::with_capacity(x.len());
    for (i, x) in x.chunks(group).enumerate() {
        let mean = x.iter().sum::<f64>() / group as f64;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / group as f64;
        let r = 1.0 / (variance + f64::from(1e-3f32)).sqrt();
        for (k, v) in x.iter().enumerate() {
            let c = i % groups * (shape[1] / groups) + k / area;
            let u = gain[c] * r * (v - mean) + bias[c];
            y.push(if silu { u / (1.0 + (-u).exp()) } else { u });
        }
    }
    y
}

#[test]
fn normalisations_and_their_gradients_agree_with_the_formula_and_its_differences() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let wide = |array: &Array| -> Vec<f64> { array.data.iter().map(|&v| f64::from(v)).collect() };
    for (shape, groups) in [([3, 6, 5, 7], 3), ([2, 8, 4, 4], 2), ([1, 4, 1, 1], 1), ([2, 4, 9, 3], 4)] {
        for activation in ["", fused::SILU] {
            let what = format!("{shape:?} {groups} {activation}");
            let mut x = Array::random(&shape, &mut rng);
            // A mean that is not small beside the deviation.
            x.data.iter_mut().for_each(|v| *v += 3.0);
            let gain = Array::random(&[shape[1], 1, 1], &mut rng);
            let (bias, dy) = (Array::random(&[shape[1], 1, 1], &mut rng), Array::random(&shape, &mut rng));
            let silu = activation == fused::SILU;
            let of =
                |parts: &[Vec<f64>; 3]| normalised(&parts[0], &shape, groups, &parts[1], &parts[2], silu);
            let parts = [wide(&x), wide(&gain), wide(&bias)];
            let mut kernel = Kernel::of(&norm(fused::GROUP_NORM, groups as i64, activation)).unwrap();
            assert_close(&run(&mut kernel, &[&x, &gain, &bias]).unwrap()[0].data, &of(&parts), &what);

            let mut back = Kernel::of(&norm(fused::GROUP_NORM_GRADIENT, groups as i64, activation)).unwrap();
            let found = run(&mut back, &[&dy, &x, &gain, &bias]).unwrap();
            for (part, found) in found.iter().enumerate() {
                let slope = |i: usize| {
                    let score = |h: f64| {
                        let mut moved = parts.clone();
                        moved[part][i] += h;
                        of(&moved).iter().zip(&dy.data).map(|(y, g)| y * f64::from(*g)).sum::<f64>()
                    };
                    (score(1e-5) - score(-1e-5)) / 2e-5
                };
                let expected: Vec<f64> = (0..parts[part].len()).map(slope).collect();
                assert_close(&found.data, &expected, &format!("{what}, gradient {part}"));
            }
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let case =
        Case { rows: 1, inner: 2, out: 3, size: [4, 4], kernel: [3, 3], dilations: [1, 1], pads: [0; 4] };
    let mut conv = Kernel::of(&case.node(fused::CONV, case.pads)).unwrap();
    let mut of = |x: &[usize], w: &[usize]| {
        run(&mut conv, &[&Array::random(x, &mut rng), &Array::random(w, &mut rng)]).is_err()
    };
    assert!(!of(&[1, 2, 4, 4], &[3, 2, 3, 3]));
    assert!(of(&[1, 2, 2, 4], &[3, 2, 3, 3]), "the window does not fit");
    assert!(of(&[1, 1, 4, 4], &[3, 2, 3, 3]), "other channels");
    assert!(of(&[1, 2, 4, 4], &[3, 2, 3, 2]), "another kernel than the node says");
    assert!(of(&[1, 2, 0, 4], &[3, 2, 3, 3]), "no pixels");
    assert!(!of(&[0, 2, 4, 4], &[3, 2, 3, 3]), "no rows are rows");
    let mut norm = Kernel::of(&norm(fused::GROUP_NORM, 3, "")).unwrap();
    assert!(norm.shapes(&[&[1, 4, 2, 2], &[4], &[4]]).is_err(), "four channels make no three groups");
    assert!(norm.shapes(&[&[1, 6, 2, 2], &[6], &[4]]).is_err(), "a bias for each channel");
    assert!(Kernel::of(&Node::new("Conv", &["x", "w"], &["y"])).is_none(), "ONNX's own");
}
