//! `ArgMax` and `ArgMin` as ONNX has them, for RTen.
//!
//! ONNX takes the first of equal elements, or the last with `select_last_index`. RTen 0.27 takes the last and refuses the
//! attribute. So the first is the last of the elements in reverse,
//!
//! ```text
//! first(x) = n - 1 - last(reverse(x))
//! ```
//!
//! and where the last is asked for, the attribute is left out. A test below fails if RTen comes to take the first.

use onnx_grad::shapes::Facts;
use onnx_grad::{Attribute, Graph, Node, TensorData};

/// Below every start: a slice by -1 that ends here takes all elements.
const BEFORE_ALL: i64 = -(1 << 30);

pub(super) fn concerns(node: &Node) -> bool {
    node.is("ArgMax") || node.is("ArgMin")
}

/// The nodes that give what `node`, one of the two operators, has to give.
pub(super) fn spell_out(mut node: Node, graph: &mut Graph, facts: &Facts) -> Vec<Node> {
    let last = node.attributes.remove("select_last_index");
    let (Some(x), Some(y)) = (node.input(0).map(str::to_string), node.output(0).map(str::to_string)) else {
        return vec![node];
    };
    if matches!(last, Some(Attribute::Int(1))) {
        return vec![node];
    }
    let axis = node.int("axis", 0);
    let name = |part: &str| format!("{y}/first.{part}");
    let mut ints = |part: &str, shape: &[usize], value: i64| {
        graph.initializers.insert(name(part), TensorData::i64(shape, &[value]));
        name(part)
    };
    let [back, to, axes] = [("back", -1), ("to", BEFORE_ALL), ("axes", axis)].map(|(p, v)| ints(p, &[1], v));
    let known = facts.get(&x).shape.as_ref().and_then(|shape| {
        let at = if axis < 0 { axis + shape.len() as i64 } else { axis };
        usize::try_from(at).ok().and_then(|at| shape.get(at)).and_then(|size| size.known())
    });
    let (reversed, found) = (name("reversed"), name("found"));
    let mut nodes = vec![Node::new("Slice", &[&x, &back, &to, &axes, &back], &[&reversed])];
    let highest = match known {
        Some(size) => ints("highest", &[], size - 1),
        None => {
            // The size is known when the graph runs.
            let (all, size) = (name("shape"), name("size"));
            let [at, one] = [("axis", axis), ("one", 1)].map(|(part, value)| ints(part, &[], value));
            nodes.push(Node::new("Shape", &[&x], &[&all]));
            nodes.push(Node::new("Gather", &[&all, &at], &[&size]));
            nodes.push(Node::new("Sub", &[&size, &one], &[&name("highest")]));
            name("highest")
        }
    };
    let label = std::mem::take(&mut node.name);
    node.inputs = vec![reversed];
    node.outputs = vec![found.clone()];
    nodes.push(node);
    let mut place = Node::new("Sub", &[&highest, &found], &[&y]);
    place.name = label;
    nodes.push(place);
    nodes
}

#[cfg(test)]
mod tests {
    use onnx_grad::{Attribute, Builder, DType, Dim, Model};
    use rten_tensor::prelude::*;

    use crate::engine::{Engine, Rten, Tensor, TensorView};

    const ROWS: [[f32; 4]; 4] =
        [[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0], [5.0, 1.0, 5.0, 1.0], [0.0, 4.0, 4.0, 4.0]];

    /// `op` along an axis of `[n, 4]`, the row's number unknown.
    fn model(op: &str, axis: i64, keep: i64, last: i64) -> Model {
        let mut b = Builder::new("arg");
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), 4usize.into()]);
        let attributes = [("axis", axis), ("keepdims", keep), ("select_last_index", last)];
        let y = b.op_with(op, &[&x], &attributes.map(|(name, value)| (name, Attribute::Int(value))));
        b.output("y", &y);
        Model { graph: b.finish().unwrap(), ir_version: 10, opset: 21, ..Model::default() }
    }

    #[test]
    fn the_first_of_equals_is_found_and_the_last_where_it_is_asked_for() {
        let x = ndarray::arr2(&ROWS).into_dyn();
        for op in ["ArgMax", "ArgMin"] {
            for axis in [0, 1, -1, -2] {
                for (keep, last) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                    let mut program = Rten::new(1).load(&model(op, axis, keep, last)).unwrap();
                    let found = program.run(&[("x", TensorView::from(x.view()))]).unwrap().remove(0);
                    let along = if axis.rem_euclid(2) == 0 { 0 } else { 1 };
                    let expected = x.map_axis(ndarray::Axis(along), |lane| {
                        let sign = if op == "ArgMax" { 1.0 } else { -1.0 };
                        let best = lane.iter().map(|v| sign * v).fold(f32::MIN, f32::max);
                        let mut places = (0..lane.len()).filter(|&i| sign * lane[i] == best);
                        (if last == 1 { places.next_back() } else { places.next() }).unwrap() as i64
                    });
                    let expected =
                        if keep == 1 { expected.insert_axis(ndarray::Axis(along)) } else { expected };
                    let Tensor::I64(found) = found else { panic!("{op} gave {found:?}") };
                    assert_eq!(found, expected, "{op} along {axis}, keepdims {keep}, last {last}");
                }
            }
        }
    }

    /// What this file is for: once this fails, RTen takes the first, and nothing need be turned around.
    #[test]
    fn rten_itself_takes_the_last_of_equals() {
        for (op, expected) in [("ArgMax", [2, 3, 2, 3]), ("ArgMin", [0, 3, 3, 0])] {
            let mut plain = model(op, 1, 0, 0);
            plain.graph.nodes[0].attributes.remove("select_last_index");
            let bytes = plain.to_bytes();
            let rten = ::rten::ModelOptions::with_all_ops().load(bytes).unwrap();
            let x = rten_tensor::Tensor::from_data(&[4, 4], ROWS.concat());
            let (input, output) = (rten.input_ids()[0], rten.output_ids()[0]);
            let found = rten.run(vec![(input, x.view().into())], &[output], None).unwrap().remove(0);
            let found: rten_tensor::Tensor<i32> = found.try_into().unwrap();
            assert_eq!(found.to_vec(), expected, "{op}");
        }
    }
}
