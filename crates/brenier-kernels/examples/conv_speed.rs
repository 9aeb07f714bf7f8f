//! Times one convolution, with weights that are fixed (Winograd) and with weights that change (the plain sum).
//!
//! `conv_speed CHANNELS OUT SIZE ROWS` prints the milliseconds of each, the best of 15 runs.
#![allow(clippy::print_stdout, clippy::expect_used)]

use std::time::Instant;

use brenier_kernels::{Arithmetic, Input, Kernel};
use onnx_grad::{Attribute, Node, fused};

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let &[inner, out, size, rows] = sizes.as_slice() else { panic!("conv_speed CHANNELS OUT SIZE ROWS") };
    let node = Node { domain: fused::DOMAIN.to_string(), ..Node::new(fused::CONV, &["x", "w"], &["y"]) }
        .with("kernel_shape", Attribute::Ints(vec![3, 3]))
        .with("dilations", Attribute::Ints(vec![1, 1]))
        .with("pads", Attribute::Ints(vec![1; 4]));
    let number = |i: usize| ((i * 7919) % 1009) as f32 / 504.5 - 1.0;
    let (xs, ws) = ([rows, inner, size, size], [out, inner, 3, 3]);
    let x: Vec<f32> = (0..xs.iter().product()).map(number).collect();
    let w: Vec<f32> = (0..ws.iter().product()).map(number).collect();
    let mut y = vec![0.0; rows * out * size * size];
    let (x, w) = (Input { shape: &xs, data: &x }, Input { shape: &ws, data: &w });
    for arithmetic in [None, Some(Arithmetic::Fast), Some(Arithmetic::Accurate)] {
        let mut kernel = Kernel::of(&node).expect("a fused operator");
        if let Some(arithmetic) = arithmetic {
            kernel.fix(1, w, arithmetic);
        }
        let mut best = f64::INFINITY;
        for _ in 0..15 {
            let begin = Instant::now();
            kernel.run(&[x, w], &mut [&mut y]).expect("shapes that fit");
            best = best.min(begin.elapsed().as_secs_f64());
        }
        let flops = 18.0 * (rows * inner * out * size * size) as f64;
        println!("{arithmetic:?}: {:.3} ms, {:.0} GFLOP/s of the plain sum", best * 1e3, flops / best / 1e9);
    }
}
