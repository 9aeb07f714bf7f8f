//! What the node tests cannot see: malformed nodes, bodies, and that nothing is rounded.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use super::*;
use crate::error::Error;
use crate::graph::{Attribute, ValueInfo};

const OPS: &str = "Neg Sqrt Sign Not IsNaN IsInf Add Sub Mul Div Pow Mod And Equal Less Min Max Sum Mean \
    Clip Where Cast CastLike Tanh Gelu Selu Celu Shrink PRelu Softmax LogSoftmax Hardmax MatMul Gemm \
    Einsum Conv ConvTranspose MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool \
    BatchNormalization InstanceNormalization LayerNormalization RMSNormalization GroupNormalization \
    LpNormalization LRN MeanVarianceNormalization ReduceSum ReduceMean ReduceMax ReduceMin \
    ReduceLogSumExp ArgMax ArgMin CumSum Identity Dropout Reshape Flatten Squeeze Unsqueeze Transpose \
    Concat Split Slice Expand Tile Pad DepthToSpace SpaceToDepth Trilu Resize Gather GatherElements \
    GatherND ScatterElements ScatterND OneHot TopK NonZero Shape Size Range Constant ConstantOfShape \
    EyeLike Attention If Unheard";

const INTS: &str = "axis axes kernel_shape strides pads dilations output_padding output_shape group \
    ceil_mode storage_order count_include_pad keepdims noop_with_empty_axes allowzero perm num_outputs \
    blocksize batch_dims largest k p size num_groups to dtype start end upper q_num_heads kv_num_heads \
    is_causal fmod transA transB reverse exclusive training_mode exclude_outside \
    qk_matmul_output_mode left_window_size";

const STRINGS: [(&str, &str); 15] = [
    ("auto_pad", "SAME_UPPER"),
    ("auto_pad", "SAME_LOWER"),
    ("auto_pad", "VALID"),
    ("mode", "reflect"),
    ("mode", "wrap"),
    ("mode", "edge"),
    ("mode", "linear"),
    ("mode", "cubic"),
    ("mode", "CRD"),
    ("equation", "ij,jk->ik"),
    ("equation", "...i,...i"),
    ("equation", "ii->i"),
    ("equation", "é..->"),
    ("reduction", "add"),
    ("coordinate_transformation_mode", "align_corners"),
];

/// A small linear congruential generator: the same nodes on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    fn number(&mut self) -> i64 {
        match self.roll(24) {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => 1 << 40,
            n => n as i64 % 6 - 2,
        }
    }

    fn array(&mut self) -> Array {
        let dtype = *self.pick(&[DType::F32, DType::F32, DType::I64, DType::I64, DType::U8, DType::Bool]);
        let shape: Vec<usize> = (0..self.roll(6)).map(|_| *self.pick(&[0, 1, 2, 2, 3, 4])).collect();
        let count = shape.iter().product();
        let value = |dice: &mut Dice| match dtype {
            DType::F32 => *dice.pick(&[0.5, -1.5, 2.0, f64::NAN, f64::INFINITY, 0.0]),
            _ => elementwise::fit(dtype, dice.number() as f64),
        };
        Array::new(dtype, &shape, (0..count).map(|_| value(self)).collect())
    }

    fn node(&mut self, op: &str) -> Node {
        let mut node = Node::new(op, &[], &["y", "z"]);
        let names: Vec<&str> = INTS.split_whitespace().collect();
        for _ in 0..self.roll(8) {
            let name = self.pick(&names).to_string();
            let value = match self.roll(2) {
                0 => Attribute::Int(self.number()),
                _ => Attribute::Ints((0..self.roll(5)).map(|_| self.number()).collect()),
            };
            node.attributes.insert(name, value);
        }
        if self.roll(2) == 0 {
            let (name, value) = *self.pick(&STRINGS);
            node.attributes.insert(name.to_string(), Attribute::from(value));
        }
        node
    }
}

#[test]
fn malformed_nodes_are_errors_not_panics() {
    let mut dice = Dice(7);
    for op in OPS.split_whitespace() {
        for _ in 0..500 {
            let node = dice.node(op);
            let arrays: Vec<Array> = (0..dice.roll(6)).map(|_| dice.array()).collect();
            let inputs: Vec<Option<&Array>> =
                arrays.iter().map(|a| if dice.roll(12) == 0 { None } else { Some(a) }).collect();
            match catch_unwind(|| evaluate_node(&node, &inputs)) {
                Ok(Ok(_) | Err(Error::Node { .. } | Error::NotEvaluable { .. })) => {}
                Ok(Err(other)) => panic!("{other} from {node:?} on {arrays:?}"),
                Err(_) => panic!("{node:?} on {arrays:?}"),
            }
        }
    }
}

#[test]
fn floats_are_not_rounded() {
    let x = Array::scalar(DType::F32, 0.1);
    let y = evaluate_node(&Node::new("Mul", &["x", "x"], &["y"]), &[Some(&x), Some(&x)]).unwrap();
    assert_eq!(y[0], Array::scalar(DType::F32, 0.1 * 0.1));
    let half = Node::new("Cast", &["x"], &["y"]).with("to", i64::from(DType::F16.code()));
    assert_eq!(evaluate_node(&half, &[Some(&x)]).unwrap()[0], Array::scalar(DType::F16, 0.1));
}

#[test]
fn integers_truncate_and_wrap() {
    let pair = |dtype, a, b| (Array::scalar(dtype, a), Array::scalar(dtype, b));
    let value = |op: &str, (a, b): (Array, Array)| {
        evaluate_node(&Node::new(op, &["a", "b"], &["y"]), &[Some(&a), Some(&b)])
            .map(|y| y[0].data.iter().copied().collect::<Vec<_>>())
    };
    assert_eq!(value("Div", pair(DType::I64, -7.0, 2.0)).unwrap(), [-3.0]);
    assert_eq!(value("Mod", pair(DType::I64, -7.0, 2.0)).unwrap(), [1.0]);
    assert_eq!(value("Add", pair(DType::U8, 250.0, 10.0)).unwrap(), [4.0]);
    assert_eq!(value("Sub", pair(DType::I8, -128.0, 1.0)).unwrap(), [127.0]);
    assert!(value("Div", pair(DType::I32, 1.0, 0.0)).is_err());
}

#[test]
fn absurd_sizes_are_refused() {
    let shape = Array::ints([1 << 40, 1 << 20]);
    let error = evaluate_node(&Node::new("ConstantOfShape", &["s"], &["y"]), &[Some(&shape)]).unwrap_err();
    assert!(matches!(error, Error::NotEvaluable { .. }), "{error}");
}

#[test]
fn a_body_sees_the_values_around_it() {
    let body = |op: &str| {
        Attribute::Graph(Box::new(Graph {
            outputs: vec![ValueInfo::new("inner", DType::F32, &[1usize])],
            nodes: vec![Node::new(op, &["x"], &["inner"])],
            ..Graph::default()
        }))
    };
    let graph = Graph {
        inputs: vec![ValueInfo::new("x", DType::F32, &[1usize])],
        outputs: vec![ValueInfo::new("y", DType::F32, &[1usize])],
        initializers: BTreeMap::from([("c".to_string(), TensorData::bool(&[], &[false]))]),
        nodes: vec![
            Node::new("If", &["c"], &["y"]).with("then_branch", body("Abs")).with("else_branch", body("Neg")),
        ],
        ..Graph::default()
    };
    let inputs = BTreeMap::from([("x".to_string(), Array::new(DType::F32, &[1], vec![3.0]))]);
    assert_eq!(evaluate(&graph, &inputs).unwrap()[0].data[[0]], -3.0);
    assert!(evaluate(&graph, &BTreeMap::new()).unwrap_err().to_string().contains("'x'"));
}
