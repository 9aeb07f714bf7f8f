//! Equal values under a maximum: the gradient goes where `MaxPool` itself says that the maximum lies.
#![allow(clippy::unwrap_used)]

mod cases;

use std::collections::BTreeMap;

use cases::Rng;
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{Attribute, Builder, DType, Dim, grad, seed_name};
use proptest::prelude::*;

/// A pool of 1 to 3 spatial axes over whole numbers, and whether its indices name other elements than the last of equals.
fn complaint(seed: u64) -> Option<String> {
    let mut rng = Rng(seed);
    let rank = rng.size(1, 3);
    // One axis may have a window of many taps, which is differentiated in another form.
    let kernel: Vec<i64> =
        (0..rank).map(|i| if i == 0 && rng.int(0, 4) == 0 { 30 } else { rng.int(1, 3) }).collect();
    let dilations: Vec<i64> = kernel.iter().map(|&k| if k > 3 { 1 } else { rng.int(1, 2) }).collect();
    let tiled = rng.int(0, 2) == 0 && dilations.iter().all(|&d| d == 1);
    let strides = if tiled { kernel.clone() } else { (0..rank).map(|_| rng.int(1, 3)).collect() };
    let pads: Vec<i64> = (0..2 * rank)
        .map(|i| if tiled { 0 } else { rng.int(0, ((kernel[i % rank] - 1) * dilations[i % rank]).min(2)) })
        .collect();
    let mut shape = vec![rng.size(1, 2), rng.size(1, 3)];
    shape.extend((0..rank).map(|i| {
        let extent = dilations[i] * (kernel[i] - 1) + 1;
        if tiled { (kernel[i] * rng.int(1, 3)) as usize } else { rng.int(extent, extent + 4) as usize }
    }));
    let ceil = rng.coin() && !tiled;
    let symbolic = rng.coin();

    let mut b = Builder::new("ties");
    let mut dims: Vec<Dim> = shape.iter().map(|&n| n.into()).collect();
    if symbolic {
        dims[0] = Dim::symbol("N");
    }
    let x = b.input("x", DType::F32, &dims);
    let attributes: [(&str, Attribute); 5] = [
        ("kernel_shape", kernel.into()),
        ("strides", strides.into()),
        ("dilations", dilations.into()),
        ("pads", pads.into()),
        ("ceil_mode", i64::from(ceil).into()),
    ];
    let y = b.op_many("MaxPool", &[&x], &attributes, 2);
    b.output("y", &y[0]);
    b.output("places", &y[1]);
    let graph = b.finish().unwrap();

    let count: usize = shape.iter().product();
    let values = (0..count).map(|_| rng.int(-1, 1) as f64).collect();
    let mut inputs = BTreeMap::from([("x".to_string(), Array::new(DType::F32, &shape, values))]);
    let forward = evaluate(&graph, &inputs).unwrap();
    let dy: Vec<f64> = forward[0].data.iter().map(|_| rng.int(1, 9) as f64 / 4.0).collect();
    inputs.insert(seed_name("y"), Array::new(DType::F32, forward[0].data.shape(), dy.clone()));
    let gradient = grad(&graph, &["y"], &["x"]).unwrap();
    let ours = evaluate(&gradient, &inputs).unwrap().pop().unwrap();

    let mut expected = vec![0.0; count];
    for (&place, dy) in forward[1].data.iter().zip(&dy) {
        expected[place as usize] += dy;
    }
    let ours: Vec<f64> = ours.data.iter().copied().collect();
    (ours != expected).then(|| format!("seed {seed}: {:?} over {shape:?}", graph.nodes[0]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_pool_sends_its_gradient_to_the_first_of_equals(seed in any::<u64>()) {
        prop_assert!(complaint(seed).is_none(), "{:?}", complaint(seed));
    }
}

/// All of a plane is equal: the first element gets everything.
#[test]
fn a_global_pool_credits_the_first_of_equals() {
    let mut b = Builder::new("global");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), 2usize.into(), 2usize.into(), 3usize.into()]);
    let y = b.op("GlobalMaxPool", &[&x]);
    b.output("y", &y);
    let graph = grad(&b.finish().unwrap(), &["y"], &["x"]).unwrap();
    let values = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 2.0, 1.0];
    let inputs = BTreeMap::from([
        ("x".to_string(), Array::new(DType::F32, &[1, 2, 2, 3], values)),
        (seed_name("y"), Array::new(DType::F32, &[1, 2, 1, 1], vec![3.0, 5.0])),
    ]);
    let gradient = evaluate(&graph, &inputs).unwrap().pop().unwrap();
    let mut expected = [0.0; 12];
    (expected[0], expected[7]) = (3.0, 5.0);
    assert_eq!(gradient.data.iter().copied().collect::<Vec<f64>>(), expected);
}

/// 0 and -0 are equal, so the order of positions decides.
#[test]
fn top_k_takes_zeros_of_either_sign_in_order() {
    let mut b = Builder::new("zeros");
    let x = b.input("x", DType::F32, &[3usize.into()]);
    let k = b.ints(&[2]);
    let top = b.op_many("TopK", &[&x, &k], &[], 2);
    b.output("places", &top[1]);
    let inputs = BTreeMap::from([("x".to_string(), Array::new(DType::F32, &[3], vec![-0.0, 0.0, 0.0]))]);
    let places = evaluate(&b.finish().unwrap(), &inputs).unwrap();
    assert_eq!(places[0].data.iter().copied().collect::<Vec<f64>>(), [0.0, 1.0]);
}
