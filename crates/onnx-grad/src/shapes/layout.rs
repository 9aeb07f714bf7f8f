//! Shapes of the operators that move elements: reshaping, slicing, joining, indexing.

use super::dims::{self, Product};
use super::einsum::einsum_terms;
use super::infer::{axis_of, count, malformed, normalise_axis, show, typed};
use super::{Fact, MAX_CONTENT};
use crate::error::Result;
use crate::graph::{Dim, Node};
use crate::resample::scaled;
use crate::tensor::DType;

pub(super) fn infer(node: &Node, inputs: &[&Fact]) -> Result<Vec<Fact>> {
    let nothing = Fact::default();
    let input = |i: usize| inputs.get(i).copied().unwrap_or(&nothing);
    let x = input(0);
    let mut fact = typed(x.dtype, None);
    match node.op.as_str() {
        "Shape" => {
            fact.dtype = Some(DType::I64);
            if let Some(shape) = &x.shape {
                let (start, end) = shape_range(node, shape.len());
                fact.shape = Some(vec![(end - start).into()]);
                fact.content = Some(shape[start..end].to_vec()).filter(|c| c.len() <= MAX_CONTENT);
            } else {
                fact.shape = Some(vec![Dim::Unknown]);
            }
        }
        "Size" => {
            fact = typed(Some(DType::I64), Some(vec![]));
            fact.content = x.shape.as_ref().map(|s| vec![count(s)]);
        }
        "Reshape" => fact.shape = reshape(node, x, input(1))?,
        "Flatten" => {
            if let Some(shape) = &x.shape {
                let axis = node.int("axis", 1);
                let axis =
                    if axis == shape.len() as i64 { shape.len() } else { axis_of(node, axis, shape.len())? };
                fact.shape = Some(vec![count(&shape[..axis]), count(&shape[axis..])]);
            } else {
                fact.shape = Some(vec![Dim::Unknown, Dim::Unknown]);
            }
        }
        "Squeeze" | "Unsqueeze" => {
            fact.shape = squeeze(node, x, input(1))?;
            fact.content = x
                .content
                .clone()
                .filter(|c| fact.shape.as_ref().is_some_and(|s| s.len() <= 1) && c.len() <= MAX_CONTENT);
        }
        "Transpose" => {
            if let Some(shape) = &x.shape {
                let reversed: Vec<i64> = (0..shape.len() as i64).rev().collect();
                let perm = node.ints("perm").unwrap_or(&reversed);
                let axes = perm.iter().map(|&p| axis_of(node, p, shape.len())).collect::<Result<Vec<_>>>()?;
                if axes.len() != shape.len() || (0..shape.len()).any(|a| !axes.contains(&a)) {
                    return Err(malformed(node, format!("perm {perm:?} does not permute {}", show(shape))));
                }
                fact.shape = Some(axes.iter().map(|&a| shape[a].clone()).collect());
            }
        }
        "Concat" => return concat(node, inputs),
        "Split" => return split(node, x, input(1)),
        "Slice" => slice(node, inputs, &mut fact)?,
        "Gather" => gather(node, x, input(1), &mut fact)?,
        "GatherElements" => fact.shape = input(1).shape.clone(),
        "GatherND" => {
            if let (Some(data), Some(indices)) = (&x.shape, &input(1).shape) {
                let batch = node.int("batch_dims", 0).max(0) as usize;
                let depth = indices.last().and_then(Dim::known).and_then(|n| usize::try_from(n).ok());
                if let Some(depth) = depth.filter(|d| batch + d <= data.len()) {
                    let mut shape = indices[..indices.len() - 1].to_vec();
                    shape.extend_from_slice(&data[batch + depth..]);
                    fact.shape = Some(shape);
                }
            }
        }
        "Expand" => {
            if let (Some(shape), Some(to)) = (&x.shape, &input(1).content) {
                fact.shape = Some(dims::broadcast_shapes(shape, to).ok_or_else(|| {
                    malformed(node, format!("{} does not broadcast to {}", show(shape), show(to)))
                })?);
            }
        }
        "Tile" => {
            if let Some(shape) = &x.shape {
                fact.shape = Some(match &input(1).content {
                    Some(repeats) if repeats.len() == shape.len() => {
                        shape.iter().zip(repeats).map(|(d, r)| dims::mul(d, r)).collect()
                    }
                    _ => vec![Dim::Unknown; shape.len()],
                });
            }
        }
        "Pad" => fact.shape = pad(node, x, inputs)?,
        "Resize" => fact.shape = resize(node, x, inputs)?,
        "DepthToSpace" | "SpaceToDepth" => {
            if let Some([n, c, h, w]) = x.shape.as_deref() {
                let b = Dim::Known(node.int("blocksize", 1));
                let area = dims::mul(&b, &b);
                fact.shape = Some(if node.op == "DepthToSpace" {
                    vec![n.clone(), dims::div_exact(c, &area), dims::mul(h, &b), dims::mul(w, &b)]
                } else {
                    vec![n.clone(), dims::mul(c, &area), dims::div_exact(h, &b), dims::div_exact(w, &b)]
                });
            }
        }
        "ConstantOfShape" => {
            fact.dtype = match node.attributes.get("value") {
                Some(crate::graph::Attribute::Tensor(t)) => Some(t.dtype()),
                _ => Some(DType::F32),
            };
            fact.shape = x.content.clone();
        }
        "Range" => {
            let bounds = [x, input(1), input(2)].map(|f| f.content.as_ref().and_then(|c| c.first().cloned()));
            if let [Some(Dim::Known(from)), Some(to), Some(Dim::Known(step))] = bounds {
                fact.shape = Some(vec![match to {
                    Dim::Known(to) if step != 0 => {
                        let count =
                            (to as i128 - from as i128 + step as i128 - step.signum() as i128) / step as i128;
                        Dim::Known(count.clamp(0, i64::MAX as i128) as i64)
                    }
                    symbol if from == 0 && step == 1 => symbol,
                    _ => Dim::Unknown,
                }]);
            } else {
                fact.shape = Some(vec![Dim::Unknown]);
            }
        }
        "NonZero" => {
            fact = typed(Some(DType::I64), Some(vec![x.rank().map_or(Dim::Unknown, Dim::from), Dim::Unknown]))
        }
        "TopK" => {
            if let Some(shape) = &x.shape {
                let axis = axis_of(node, node.int("axis", -1), shape.len())?;
                let mut shape = shape.clone();
                shape[axis] =
                    input(1).content.as_ref().and_then(|c| c.first().cloned()).unwrap_or(Dim::Unknown);
                return Ok(vec![typed(x.dtype, Some(shape.clone())), typed(Some(DType::I64), Some(shape))]);
            }
        }
        "OneHot" => {
            fact.dtype = input(2).dtype;
            if let Some(shape) = &x.shape {
                let mut shape = shape.clone();
                let axis = axis_of(node, node.int("axis", -1), shape.len() + 1)?;
                let depth = input(1).content.as_ref().and_then(|c| c.first().cloned());
                shape.insert(axis, depth.unwrap_or(Dim::Unknown));
                fact.shape = Some(shape);
            }
        }
        "EyeLike" => fact.shape = x.shape.clone(),
        "Einsum" => fact.shape = einsum(node, inputs),
        _ => return Ok(Vec::new()),
    }
    Ok(vec![fact])
}

/// The part of the shape that a `Shape` node returns.
fn shape_range(node: &Node, rank: usize) -> (usize, usize) {
    let clamp = |v: i64| if v < 0 { v.saturating_add(rank as i64) } else { v }.clamp(0, rank as i64) as usize;
    let (start, end) = (clamp(node.int("start", 0)), clamp(node.int("end", rank as i64)));
    (start, end.max(start))
}

fn reshape(node: &Node, x: &Fact, to: &Fact) -> Result<Option<Vec<Dim>>> {
    let Some(target) = &to.content else {
        // At least the rank, where the target's length is known.
        let rank = to.shape.as_ref().and_then(|s| s.first()).and_then(Dim::known);
        return Ok(rank.filter(|r| (0..64).contains(r)).map(|r| vec![Dim::Unknown; r as usize]));
    };
    let allow_zero = node.int("allowzero", 0) != 0;
    let mut shape = Vec::with_capacity(target.len());
    let mut free = None;
    for (i, dim) in target.iter().enumerate() {
        shape.push(match dim {
            Dim::Known(0) if !allow_zero => {
                x.shape.as_ref().and_then(|s| s.get(i).cloned()).unwrap_or(Dim::Unknown)
            }
            Dim::Known(-1) => {
                free = Some(i);
                Dim::Known(1)
            }
            Dim::Known(n) if *n < 0 => {
                return Err(malformed(node, format!("it reshapes to {}", show(target))));
            }
            other => other.clone(),
        });
    }
    let total = x.shape.as_ref().and_then(|s| Product::of(s));
    if let (Some(total), Some(rest)) = (total, Product::of(&shape)) {
        let quotient = total.over(&rest);
        match (free, &quotient) {
            (Some(i), _) => shape[i] = quotient,
            (None, Dim::Known(q)) if *q != 1 && !shape.contains(&Dim::Known(0)) => {
                let from = x.shape.as_deref().map(show).unwrap_or_default();
                return Err(malformed(node, format!("{from} cannot be reshaped to {}", show(&shape))));
            }
            _ => {}
        }
    } else if let Some(i) = free {
        shape[i] = Dim::Unknown;
    }
    Ok(Some(shape))
}

fn squeeze(node: &Node, x: &Fact, axes: &Fact) -> Result<Option<Vec<Dim>>> {
    let Some(shape) = &x.shape else { return Ok(None) };
    let insert = node.op == "Unsqueeze";
    let Some(axes) = (match (node.input(1), insert) {
        (None, false) => {
            Some((0..shape.len() as i64).filter(|&i| shape[i as usize] == Dim::Known(1)).collect())
        }
        _ => axes.known_content(),
    }) else {
        return Ok(None);
    };
    let rank = if insert { shape.len() + axes.len() } else { shape.len() };
    let mut axes = axes.iter().map(|&a| axis_of(node, a, rank)).collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(Some(if insert {
        let mut rest = shape.iter();
        (0..rank)
            .map(
                |i| {
                    if axes.contains(&i) {
                        Dim::Known(1)
                    } else {
                        rest.next().cloned().unwrap_or(Dim::Unknown)
                    }
                },
            )
            .collect()
    } else {
        (0..rank).filter(|i| !axes.contains(i)).map(|i| shape[i].clone()).collect()
    }))
}

fn concat(node: &Node, inputs: &[&Fact]) -> Result<Vec<Fact>> {
    let mut fact = typed(inputs.first().and_then(|f| f.dtype), None);
    let contents: Option<Vec<&Vec<Dim>>> = inputs.iter().map(|f| f.content.as_ref()).collect();
    fact.content = contents.map(|c| c.into_iter().flatten().cloned().collect::<Vec<_>>());
    fact.content = fact.content.filter(|c| c.len() <= MAX_CONTENT);
    let shapes: Option<Vec<&Vec<Dim>>> = inputs.iter().map(|f| f.shape.as_ref()).collect();
    if let Some(shapes) = shapes.filter(|s| !s.is_empty()) {
        let mut shape = shapes[0].clone();
        let axis = axis_of(node, node.int("axis", 0), shape.len())?;
        for other in &shapes[1..] {
            if other.len() != shape.len() {
                return Err(malformed(node, format!("it joins {} and {}", show(&shape), show(other))));
            }
            for i in 0..shape.len() {
                if i == axis {
                    shape[i] = dims::add(&shape[i], &other[i]);
                    continue;
                }
                match (&shape[i], &other[i]) {
                    (Dim::Known(a), Dim::Known(b)) if a != b => {
                        return Err(malformed(
                            node,
                            format!("it joins {} and {}", show(&shape), show(other)),
                        ));
                    }
                    (Dim::Symbol { .. } | Dim::Unknown, Dim::Known(b)) => shape[i] = Dim::Known(*b),
                    _ => {}
                }
            }
        }
        fact.shape = Some(shape);
    }
    Ok(vec![fact])
}

fn split(node: &Node, x: &Fact, sizes: &Fact) -> Result<Vec<Fact>> {
    let Some(shape) = &x.shape else { return Ok(Vec::new()) };
    let axis = axis_of(node, node.int("axis", 0), shape.len())?;
    let parts = node.outputs.len();
    let sizes: Vec<Dim> = match &sizes.content {
        Some(sizes) if sizes.len() == parts => sizes.clone(),
        _ if node.input(1).is_some() => vec![Dim::Unknown; parts],
        _ => match &shape[axis] {
            // Where it does not go evenly, the last part is smaller.
            Dim::Known(n) if parts > 0 => {
                let chunk = (n + parts as i64 - 1) / parts as i64;
                (0..parts as i64).map(|i| Dim::Known((n - i * chunk).clamp(0, chunk))).collect()
            }
            dim => vec![dims::div_exact(dim, &Dim::Known(parts as i64)); parts],
        },
    };
    let part = |size: Dim| {
        let mut shape = shape.clone();
        shape[axis] = size;
        typed(x.dtype, Some(shape))
    };
    Ok(sizes.into_iter().map(part).collect())
}

/// Start, end and step of a slice along one axis of a known size, clamped as the specification says.
pub(crate) fn slice_bounds(size: i64, start: i64, end: i64, step: i64) -> (i64, i64, i64) {
    let wrap = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
    let (start, end) = (wrap(start), wrap(end));
    let (start, end) = if step > 0 {
        (start.clamp(0, size), end.clamp(0, size))
    } else {
        (start.clamp(0, (size - 1).max(0)), end.clamp(-1, size - 1))
    };
    let span = if step > 0 { end - start } else { start - end };
    let count = if size == 0 || span <= 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
    (start, end, count)
}

/// Axis, start, end and step of a slice along one axis.
type AxisSlice = (usize, Dim, Dim, i64);

/// What a slice does to each axis it names: (axis, start, end, step); `None` where not constant.
pub(crate) fn slice_spec(node: &Node, inputs: &[&Fact], rank: usize) -> Result<Option<Vec<AxisSlice>>> {
    let content = |i: usize| inputs.get(i).and_then(|f| f.content.clone());
    let (Some(starts), Some(ends)) = (content(1), content(2)) else { return Ok(None) };
    let ints = |i: usize| match node.input(i) {
        None => Some(None),
        Some(_) => inputs.get(i).and_then(|f| f.known_content()).map(Some),
    };
    let (Some(axes), Some(steps)) = (ints(3), ints(4)) else { return Ok(None) };
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&n| n != starts.len()) || steps.contains(&0) {
        return Err(malformed(node, "starts, ends, axes and steps do not fit"));
    }
    let mut spec = Vec::new();
    for (i, &axis) in axes.iter().enumerate() {
        let step = steps[i].clamp(-i64::from(i32::MAX), i64::from(i32::MAX));
        spec.push((axis_of(node, axis, rank)?, starts[i].clone(), ends[i].clone(), step));
    }
    Ok(Some(spec))
}

fn slice(node: &Node, inputs: &[&Fact], fact: &mut Fact) -> Result<()> {
    let Some(x) = inputs.first() else { return Err(malformed(node, "it has no input")) };
    let Some(shape) = &x.shape else { return Ok(()) };
    let Some(spec) = slice_spec(node, inputs, shape.len())? else {
        fact.shape = Some(match inputs.get(3).and_then(|f| f.known_content()) {
            Some(axes) => {
                let touched: Vec<_> = axes.iter().filter_map(|&a| normalise_axis(a, shape.len())).collect();
                let untouched = |i: usize| !touched.contains(&i);
                (0..shape.len()).map(|i| if untouched(i) { shape[i].clone() } else { Dim::Unknown }).collect()
            }
            None => vec![Dim::Unknown; shape.len()],
        });
        return Ok(());
    };
    let mut sliced = shape.clone();
    for (axis, start, end, step) in &spec {
        sliced[*axis] = match (&shape[*axis], start, end) {
            (Dim::Known(n), Dim::Known(s), Dim::Known(e)) => Dim::Known(slice_bounds(*n, *s, *e, *step).2),
            // From the front to beyond the end: all of it.
            (dim, Dim::Known(0), Dim::Known(e)) if *step == 1 && *e >= i64::from(i32::MAX) => dim.clone(),
            (dim, Dim::Known(0), e) if *step == 1 && dim.same(e) => dim.clone(),
            // A symbol is at least 1.
            (_, Dim::Known(0), Dim::Known(1)) if *step == 1 => Dim::Known(1),
            _ => Dim::Unknown,
        };
    }
    if let (Some(content), [(0, Dim::Known(s), Dim::Known(e), step)]) = (&x.content, spec.as_slice()) {
        let (from, _, count) = slice_bounds(content.len() as i64, *s, *e, *step);
        fact.content = Some((0..count).map(|k| content[(from + k * step) as usize].clone()).collect());
    }
    fact.shape = Some(sliced);
    Ok(())
}

fn gather(node: &Node, x: &Fact, indices: &Fact, fact: &mut Fact) -> Result<()> {
    if let (Some(content), Some(picks)) = (&x.content, indices.known_content()) {
        let pick = |i: &i64| normalise_axis(*i, content.len()).map(|i| content[i].clone());
        fact.content = picks.iter().map(pick).collect();
    }
    if let (Some(data), Some(index)) = (&x.shape, &indices.shape) {
        let axis = axis_of(node, node.int("axis", 0), data.len())?;
        let mut shape = data[..axis].to_vec();
        shape.extend_from_slice(index);
        shape.extend_from_slice(&data[axis + 1..]);
        fact.shape = Some(shape);
    }
    Ok(())
}

/// Padding before and after every axis; `None` where it is not constant.
pub(crate) fn pad_spec(node: &Node, inputs: &[&Fact], rank: usize) -> Result<Option<Vec<(i64, i64)>>> {
    let Some(pads) = inputs.get(1).and_then(|f| f.known_content()) else { return Ok(None) };
    let axes: Vec<usize> = match node.input(3) {
        None => (0..rank).collect(),
        Some(_) => match inputs.get(3).and_then(|f| f.known_content()) {
            Some(axes) => axes.iter().map(|&a| axis_of(node, a, rank)).collect::<Result<_>>()?,
            None => return Ok(None),
        },
    };
    if pads.len() != 2 * axes.len() || pads.iter().any(|p| p.unsigned_abs() > 1 << 31) {
        return Err(malformed(node, format!("pads {pads:?} do not fit a tensor of rank {rank}")));
    }
    let mut spec = vec![(0, 0); rank];
    for (i, &axis) in axes.iter().enumerate() {
        spec[axis] = (pads[i], pads[i + axes.len()]);
    }
    Ok(Some(spec))
}

fn pad(node: &Node, x: &Fact, inputs: &[&Fact]) -> Result<Option<Vec<Dim>>> {
    let Some(shape) = &x.shape else { return Ok(None) };
    Ok(Some(match pad_spec(node, inputs, shape.len())? {
        Some(spec) => shape.iter().zip(&spec).map(|(d, (a, b))| dims::add(d, &Dim::Known(a + b))).collect(),
        None => vec![Dim::Unknown; shape.len()],
    }))
}

fn resize(node: &Node, x: &Fact, inputs: &[&Fact]) -> Result<Option<Vec<Dim>>> {
    let Some(shape) = &x.shape else { return Ok(None) };
    let axes: Vec<usize> = match node.ints("axes") {
        Some(axes) => axes.iter().map(|&a| axis_of(node, a, shape.len())).collect::<Result<_>>()?,
        None => (0..shape.len()).collect(),
    };
    let stretches = node.string("keep_aspect_ratio_policy", "stretch") == "stretch";
    let mut resized = shape.clone();
    let sizes = inputs.get(3).and_then(|f| f.content.as_ref());
    let scales = inputs.get(2).and_then(|f| f.constant.as_ref()).map(|t| t.to_f64());
    for (i, &axis) in axes.iter().enumerate() {
        resized[axis] =
            match (sizes.and_then(|s| s.get(i)), scales.as_ref().and_then(|s| s.get(i)), &shape[axis]) {
                (Some(_), _, _) if !stretches => Dim::Unknown,
                (Some(size), _, _) => size.clone(),
                (None, Some(scale), Dim::Known(n)) => Dim::Known(scaled(*n, *scale)),
                (None, Some(scale), dim) if scale.fract() == 0.0 => {
                    dims::mul(dim, &Dim::Known(*scale as i64))
                }
                _ => Dim::Unknown,
            };
    }
    Ok(Some(resized))
}

fn einsum(node: &Node, inputs: &[&Fact]) -> Option<Vec<Dim>> {
    let ranks: Vec<usize> = inputs.iter().map(|f| f.rank()).collect::<Option<_>>()?;
    let (terms, output) = einsum_terms(node.string("equation", ""), &ranks)?;
    let mut sizes: Vec<(char, Dim)> = Vec::new();
    for (term, fact) in terms.iter().zip(inputs) {
        sizes.extend(term.chars().zip(fact.shape.iter().flatten().cloned()));
    }
    // An axis of size 1 may be broadcast: the largest known size counts.
    let size = |label: char| {
        let all = || sizes.iter().filter(|(l, _)| *l == label).map(|(_, d)| d);
        all().max_by_key(|d| d.known().unwrap_or(if **d == Dim::Unknown { 0 } else { 1 })).cloned()
    };
    output.chars().map(size).collect()
}
