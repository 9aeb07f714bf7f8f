//! What becomes a fused operator, and what must not.
#![allow(clippy::unwrap_used)]

use onnx_grad::{
    Attribute, Builder, DType, Dim, GradOptions, Graph, Node, TensorData, Value, fuse, fused, grad_with,
};

/// A layer of a network under construction.
struct Net {
    b: Builder,
    x: Value,
}

impl Net {
    fn new(shape: [usize; 3]) -> Net {
        let mut b = Builder::new("net");
        let [channels, height, width] = shape.map(Dim::from);
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), channels, height, width]);
        Net { b, x }
    }

    fn parameter(&mut self, name: &str, shape: &[usize]) -> Value {
        let count = shape.iter().product();
        self.b.parameter(name, TensorData::f32(shape, &vec![0.5; count]))
    }

    /// As PyTorch exports it.
    fn group_norm(&mut self, x: &str, groups: usize, [channels, height, width]: [i64; 3]) -> Value {
        let [ones, zeros] = [1.0, 0.0].map(|v| TensorData::f32(&[groups], &vec![v; groups]));
        let (ones, zeros) = (self.b.constant(ones), self.b.constant(zeros));
        let split = self.b.reshape(x, &[0, groups as i64, -1]);
        let normal = self.b.op("InstanceNormalization", &[&split, &ones, &zeros]);
        let whole = self.b.reshape(&normal, &[0, channels, height, width]);
        let gain = self.parameter("gain", &[channels as usize, 1, 1]);
        let bias = self.parameter("bias", &[channels as usize, 1, 1]);
        let scaled = self.b.mul(&gain, &whole);
        self.b.add(&scaled, &bias)
    }

    fn silu(&mut self, u: &str) -> Value {
        let gate = self.b.op("Sigmoid", &[u]);
        self.b.mul(&gate, u)
    }

    fn finish(mut self, outputs: &[(&str, &str)]) -> Graph {
        for (name, value) in outputs {
            self.b.output(name, value);
        }
        self.b.finish().unwrap()
    }
}

fn fused_ops(graph: &Graph) -> Vec<&str> {
    let nodes = graph.nodes.iter().filter(|node| node.domain == fused::DOMAIN);
    nodes.map(|node| node.op.as_str()).collect()
}

fn find<'a>(graph: &'a Graph, op: &str) -> &'a Node {
    graph.nodes.iter().find(|node| node.op == op && node.domain == fused::DOMAIN).unwrap()
}

#[test]
fn a_normalisation_with_its_activation_is_one_node() {
    let mut net = Net::new([4, 3, 2]);
    let x = net.x.clone();
    let u = net.group_norm(&x, 2, [4, 3, 2]);
    let y = net.silu(&u);
    let graph = fuse(&net.finish(&[("y", &y)])).unwrap();
    assert_eq!(fused_ops(&graph), [fused::GROUP_NORM]);
    assert_eq!(graph.nodes.len(), 2, "the normalisation and the name of the output");
    let norm = find(&graph, fused::GROUP_NORM);
    assert_eq!(norm.inputs, ["x", "gain", "bias"]);
    assert_eq!((norm.int("groups", 0), norm.string("activation", "")), (2, fused::SILU));
    graph.validate().unwrap();
}

#[test]
fn what_others_see_stays() {
    // The value before the activation is an output as well: only what comes before it is one node.
    let mut net = Net::new([4, 3, 2]);
    let x = net.x.clone();
    let u = net.group_norm(&x, 2, [4, 3, 2]);
    let y = net.silu(&u);
    let seen = net.b.op("Neg", &[&u]);
    let graph = fuse(&net.finish(&[("y", &y), ("seen", &seen)])).unwrap();
    assert_eq!(fused_ops(&graph), [fused::GROUP_NORM]);
    assert_eq!(find(&graph, fused::GROUP_NORM).string("activation", "none"), "");
    graph.validate().unwrap();

    // The normalised value itself is an output.
    let mut net = Net::new([4, 3, 2]);
    let x = net.x.clone();
    let u = net.group_norm(&x, 2, [4, 3, 2]);
    let inner = net.b.graph().nodes.iter().find(|node| node.is("InstanceNormalization")).unwrap();
    let inner = inner.outputs[0].clone();
    let graph = fuse(&net.finish(&[("u", &u), ("inner", &inner)])).unwrap();
    assert!(fused_ops(&graph).is_empty());
}

#[test]
fn other_products_and_other_shapes_are_not_taken_for_a_normalisation() {
    // A gain for each pixel.
    let mut net = Net::new([2, 3, 3]);
    let x = net.x.clone();
    let u = net.group_norm(&x, 1, [2, 3, 3]);
    let mut graph = net.finish(&[("u", &u)]);
    graph.initializers.insert("gain".to_string(), TensorData::f32(&[2, 3, 3], &[0.5; 18]));
    assert!(fused_ops(&fuse(&graph).unwrap()).is_empty());
    // Channels in another order behind the normalisation.
    let mut net = Net::new([2, 4, 1]);
    let x = net.x.clone();
    let u = net.group_norm(&x, 1, [4, 2, 1]);
    assert!(fused_ops(&fuse(&net.finish(&[("u", &u)])).unwrap()).is_empty());
}

#[test]
fn convolutions_of_images_by_single_pixels_are_fused_and_others_are_not() {
    let conv = |weights: &[usize], attributes: &[(&str, Attribute)]| {
        let mut net = Net::new([4, 8, 8]);
        let w = net.parameter("w", weights);
        let x = net.x.clone();
        let y = net.b.op_with("Conv", &[&x, &w], attributes);
        fused_ops(&fuse(&net.finish(&[("y", &y)])).unwrap()).len()
    };
    let pads = |pad: i64| ("pads", Attribute::Ints(vec![pad; 4]));
    assert_eq!(conv(&[6, 4, 3, 3], &[pads(1)]), 1);
    assert_eq!(conv(&[6, 4, 3, 3], &[pads(2), ("dilations", vec![2i64, 2].into())]), 1);
    assert_eq!(conv(&[6, 4, 1, 1], &[]), 1);
    assert_eq!(conv(&[6, 4, 3, 3], &[("strides", vec![2i64, 2].into())]), 0);
    assert_eq!(conv(&[6, 2, 3, 3], &[("group", 2i64.into())]), 0);
    // More padding than the kernel reaches: the way back would have to cut off.
    assert_eq!(conv(&[6, 4, 3, 3], &[pads(3)]), 0);
    assert_eq!(conv(&[6, 4, 3, 3], &[("auto_pad", "SAME_UPPER".into())]), 0, "lowering works that out first");
}

#[test]
fn gradients_of_fused_operators_are_fused_and_have_shapes() {
    let mut net = Net::new([4, 6, 5]);
    let x = net.x.clone();
    let u = net.group_norm(&x, 2, [4, 6, 5]);
    let u = net.silu(&u);
    let (w, bias) = (net.parameter("w", &[3, 4, 3, 3]), net.parameter("b", &[3]));
    let y = net.b.op_with("Conv", &[&u, &w, &bias], &[("pads", vec![1i64, 0, 1, 2].into())]);
    let graph = net.finish(&[("y", &y)]);
    let options = GradOptions { fused: true, ..GradOptions::default() };
    let gradient = grad_with(&graph, &["y"], &["x", "w", "b", "gain", "bias"], options).unwrap();
    let expected = [
        fused::GROUP_NORM,
        fused::CONV,
        fused::CONV_INPUT_GRADIENT,
        fused::CONV_WEIGHT_GRADIENT,
        fused::GROUP_NORM_GRADIENT,
    ];
    assert_eq!(fused_ops(&gradient), expected);
    let back = find(&gradient, fused::CONV_INPUT_GRADIENT);
    assert_eq!(back.ints("pads"), Some(&[1, 2, 1, 0][..]));
    let shape = |name: &str| gradient.output(name).unwrap().shape.clone().unwrap();
    let known = |sizes: &[i64]| sizes.iter().map(|&n| Dim::Known(n)).collect::<Vec<_>>();
    assert_eq!(shape("grad/w"), known(&[3, 4, 3, 3]));
    assert_eq!(shape("grad/b"), known(&[3]));
    assert_eq!(shape("grad/gain"), known(&[4, 1, 1]));
    assert_eq!(shape("grad/x")[1..], known(&[4, 6, 5]));
    // Without being asked for, nothing is fused.
    let plain = grad_with(&graph, &["y"], &["x", "w"], GradOptions::default()).unwrap();
    assert!(!fused::has_any(&plain) && fused::has_any(&gradient));
}
