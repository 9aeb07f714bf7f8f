//! Convolutions, pools and resizing, over one to three spatial axes.

use onnx_grad::eval::Array;
use onnx_grad::{Attribute, DType};

use super::sample::{Sample, ints, numbers, sample};

pub(crate) fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for axes in 1..=3 {
        convolutions(&mut all, axes);
        transposed(&mut all, axes);
        pools(&mut all, axes);
    }
    resizes(&mut all);
    grids(&mut all);
    all
}

/// Batch, channels, and this many spatial axes of different sizes.
fn shape(channels: usize, axes: usize) -> Vec<usize> {
    [2, channels].into_iter().chain([7, 6, 5].into_iter().take(axes)).collect()
}

fn f32s(shape: &[usize], seed: u64) -> Option<Array> {
    Some(numbers(DType::F32, shape, seed))
}

type Named = Vec<(&'static str, Attribute)>;

/// Strides, dilations, paddings: each alone, all at once, and not at all.
fn windows(axes: usize, dilated: bool) -> Vec<Named> {
    let all = |n: i64| -> Attribute { vec![n; axes].into() };
    let uneven: Attribute = (0..2 * axes as i64).map(|i| i % 2).collect::<Vec<_>>().into();
    let text = |s: &str| Attribute::String(s.to_string());
    let mut list: Vec<Named> = vec![
        vec![],
        vec![("strides", all(2))],
        vec![("pads", all(1).clone()), ("strides", all(1))],
        vec![("pads", uneven.clone())],
        vec![("auto_pad", text("SAME_UPPER"))],
        vec![("auto_pad", text("SAME_LOWER"))],
        vec![("auto_pad", text("SAME_UPPER")), ("strides", all(2))],
        vec![("auto_pad", text("SAME_LOWER")), ("strides", all(2))],
        vec![("auto_pad", text("VALID")), ("strides", all(2))],
        vec![("strides", all(3)), ("pads", uneven)],
    ];
    list[2][0].1 = vec![1i64; 2 * axes].into();
    if dilated {
        list.push(vec![("dilations", all(2))]);
        list.push(vec![("dilations", all(2)), ("strides", all(2)), ("pads", vec![2i64; 2 * axes].into())]);
        list.push(vec![("dilations", all(2)), ("auto_pad", text("SAME_UPPER"))]);
    }
    list
}

fn convolutions(all: &mut Vec<Sample>, axes: usize) {
    for (channels, features, groups) in [(3usize, 4usize, 1i64), (4, 6, 2), (4, 4, 4), (4, 8, 4)] {
        for kernel in [1usize, 2, 3] {
            let mut filter = vec![features, channels / groups as usize];
            filter.extend(vec![kernel; axes]);
            for mut attributes in windows(axes, true) {
                attributes.push(("group", groups.into()));
                let inputs = [f32s(&shape(channels, axes), 1), f32s(&filter, 2), f32s(&[features], 3)];
                all.push(sample("Conv", &attributes, &inputs[..2], &[DType::F32]));
                attributes.push(("kernel_shape", vec![kernel as i64; axes].into()));
                all.push(sample("Conv", &attributes, &inputs, &[DType::F32]));
            }
        }
    }
}

fn transposed(all: &mut Vec<Sample>, axes: usize) {
    for (channels, features, groups) in [(3usize, 4usize, 1i64), (4, 6, 2), (4, 4, 4)] {
        let mut filter = vec![channels, features / groups as usize];
        filter.extend(vec![3; axes]);
        let inputs = [f32s(&shape(channels, axes), 1), f32s(&filter, 2), f32s(&[features], 3)];
        for mut attributes in windows(axes, true) {
            attributes.push(("group", groups.into()));
            all.push(sample("ConvTranspose", &attributes, &inputs[..2], &[DType::F32]));
            attributes.push(("kernel_shape", vec![3i64; axes].into()));
            all.push(sample("ConvTranspose", &attributes, &inputs, &[DType::F32]));
        }
        let strides = ("strides", Attribute::from(vec![2i64; axes]));
        let extra = ("output_padding", Attribute::from(vec![1i64; axes]));
        let group = ("group", Attribute::from(groups));
        let wanted: Vec<i64> = shape(1, axes)[2..].iter().map(|&n| 2 * n as i64).collect();
        let wanted = ("output_shape", Attribute::from(wanted));
        all.push(sample("ConvTranspose", &[strides.clone(), extra, group.clone()], &inputs, &[DType::F32]));
        all.push(sample("ConvTranspose", &[strides, wanted, group], &inputs, &[DType::F32]));
    }
}

fn pools(all: &mut Vec<Sample>, axes: usize) {
    let x = || f32s(&shape(3, axes), 1);
    for op in ["MaxPool", "AveragePool", "LpPool"] {
        for kernel in [2i64, 3] {
            for ceil in [0i64, 1] {
                for include in [0i64, 1] {
                    if op != "AveragePool" && include == 1 {
                        continue;
                    }
                    for mut attributes in windows(axes, true) {
                        // A window must not lie in padding altogether.
                        attributes.push(("kernel_shape", vec![kernel; axes].into()));
                        attributes.push(("ceil_mode", ceil.into()));
                        if op == "AveragePool" {
                            attributes.push(("count_include_pad", include.into()));
                        }
                        all.push(sample(op, &attributes, &[x()], &[DType::F32]));
                    }
                }
            }
        }
    }
    let kernel = ("kernel_shape", Attribute::from(vec![2i64; axes]));
    for p in [1i64, 2, 3] {
        all.push(sample("LpPool", &[kernel.clone(), ("p", p.into())], &[x()], &[DType::F32]));
        all.push(sample("GlobalLpPool", &[("p", p.into())], &[x()], &[DType::F32]));
    }
    all.push(sample("MaxPool", &[kernel], &[x()], &[DType::F32, DType::I64]));
    for op in ["GlobalAveragePool", "GlobalMaxPool"] {
        all.push(sample(op, &[], &[x()], &[DType::F32]));
    }
}

const COORDINATES: [&str; 7] = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
];

fn resizes(all: &mut Vec<Sample>) {
    let text = |s: &str| Attribute::String(s.to_string());
    let floats = |v: &[f64]| {
        Some(Array::new(DType::F32, &[v.len()], v.iter().map(|&s| f64::from(s as f32)).collect()))
    };
    for mode in ["nearest", "linear", "cubic"] {
        let roundings: &[&str] = match mode {
            "nearest" => &["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
            _ => &["round_prefer_floor"],
        };
        for coordinates in COORDINATES {
            for rounding in roundings {
                let attributes: Named = vec![
                    ("mode", text(mode)),
                    ("coordinate_transformation_mode", text(coordinates)),
                    ("nearest_mode", text(rounding)),
                ];
                let image = || f32s(&[2, 3, 5, 6], 1);
                for scales in [
                    [1.0, 1.0, 2.0, 2.0],
                    [1.0, 1.0, 0.5, 0.6],
                    [1.0, 1.0, 1.6, 0.34],
                    [1.0, 1.0, 3.0, 1.0],
                    [1.0, 1.0, 1.0 / 3.0, 7.0 / 3.0],
                ] {
                    all.push(sample("Resize", &attributes, &[image(), None, floats(&scales)], &[DType::F32]));
                }
                for sizes in
                    [[2i64, 3, 10, 12], [2, 3, 3, 4], [2, 3, 7, 1], [2, 3, 1, 9], [2, 3, 5, 6], [2, 3, 8, 13]]
                {
                    all.push(sample(
                        "Resize",
                        &attributes,
                        &[image(), None, None, Some(ints(&sizes))],
                        &[DType::F32],
                    ));
                }
                let named = |axes: Vec<i64>| {
                    let mut named = attributes.clone();
                    named.push(("axes", axes.into()));
                    named
                };
                all.push(sample(
                    "Resize",
                    &named(vec![2, 3]),
                    &[image(), None, None, Some(ints(&[8, 3]))],
                    &[DType::F32],
                ));
                all.push(sample(
                    "Resize",
                    &named(vec![3, 2]),
                    &[image(), None, floats(&[2.0, 1.5])],
                    &[DType::F32],
                ));
                // Lines, volumes, channels last, and images without a batch.
                all.push(sample(
                    "Resize",
                    &attributes,
                    &[f32s(&[2, 3, 6], 1), None, floats(&[1.0, 1.0, 2.5])],
                    &[DType::F32],
                ));
                all.push(sample(
                    "Resize",
                    &attributes,
                    &[f32s(&[1, 2, 3, 4, 5], 1), None, floats(&[1.0, 1.0, 2.0, 1.5, 2.0])],
                    &[DType::F32],
                ));
                all.push(sample(
                    "Resize",
                    &attributes,
                    &[f32s(&[1, 4, 5, 2], 1), None, floats(&[1.0, 2.0, 1.5, 1.0])],
                    &[DType::F32],
                ));
                all.push(sample(
                    "Resize",
                    &attributes,
                    &[
                        f32s(&[4, 5], 1),
                        None,
                        Some(Array::new(DType::F32, &[0], vec![])),
                        Some(ints(&[6, 9])),
                    ],
                    &[DType::F32],
                ));
                all.push(sample(
                    "Resize",
                    &attributes,
                    &[
                        f32s(&[2, 4, 5], 1),
                        None,
                        Some(Array::new(DType::F32, &[0], vec![])),
                        Some(ints(&[2, 6, 9])),
                    ],
                    &[DType::F32],
                ));
            }
        }
        for extra in [
            ("exclude_outside", Attribute::from(1i64)),
            ("cubic_coeff_a", (-0.5f32).into()),
            ("antialias", 1i64.into()),
            ("keep_aspect_ratio_policy", text("not_larger")),
            ("keep_aspect_ratio_policy", text("not_smaller")),
        ] {
            let attributes: Named = vec![("mode", text(mode)), extra];
            let x = f32s(&[1, 2, 5, 6], 1);
            all.push(sample(
                "Resize",
                &attributes,
                &[x.clone(), None, floats(&[1.0, 1.0, 0.6, 1.7])],
                &[DType::F32],
            ));
            all.push(sample(
                "Resize",
                &attributes,
                &[x, None, None, Some(ints(&[1, 2, 3, 9]))],
                &[DType::F32],
            ));
        }
    }
    for dtype in [DType::I32, DType::U8, DType::I8] {
        let x = Some(numbers(dtype, &[1, 1, 3, 4], 1));
        all.push(sample("Resize", &[], &[x, None, floats(&[1.0, 1.0, 2.0, 2.0])], &[dtype]));
    }
}

fn grids(all: &mut Vec<Sample>) {
    for mode in ["linear", "nearest", "cubic"] {
        for padding in ["zeros", "border", "reflection"] {
            for corners in [0i64, 1] {
                let attributes = [
                    ("mode", Attribute::String(mode.to_string())),
                    ("padding_mode", Attribute::String(padding.to_string())),
                    ("align_corners", corners.into()),
                ];
                let mut grid = numbers(DType::F32, &[2, 3, 4, 2], 2);
                grid.data.mapv_inplace(|v| 0.7 * v);
                all.push(sample(
                    "GridSample",
                    &attributes,
                    &[f32s(&[2, 3, 5, 6], 1), Some(grid)],
                    &[DType::F32],
                ));
            }
        }
    }
}
