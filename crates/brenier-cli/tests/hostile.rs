//! Nothing brings it down: files and flags that ask for far too much are answered in one sentence, within seconds and
//! without taking memory. The program runs with 3 GB of address space.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

#[path = "shared/place.rs"]
mod place;

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ndarray::{Array1, Array2, Array4};
use ndarray_npy::NpzWriter;
use onnx_grad::{Attribute, Builder, DType, Dim, Graph, Model, Node, TensorData, ValueInfo};
use place::{Place, linear};

/// Kilobytes of address space.
const SPACE: usize = 3_000_000;
/// What an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// Runs a command with little memory and little time.
fn run(place: &Place, line: &str) -> Output {
    let script = format!("ulimit -v {SPACE}; exec {} {line}", env!("CARGO_BIN_EXE_brenier"));
    let start = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.file("."))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{line} is not answered after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// A line that is refused in one sentence with these words.
fn refused(place: &Place, line: &str, words: &str) {
    let done = run(place, line);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(done.status.code(), Some(1 | 2)), "{line}: {:?}\n{told}", done.status);
    assert!(told.contains(words), "{line}\n{told}");
    assert!(!told.contains("panicked") && !told.contains("memory allocation"), "{line}\n{told}");
    let sentences = told.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(sentences, 1, "{line}\n{told}");
}

/// A line that goes through.
fn answered(place: &Place, line: &str) {
    let done = run(place, line);
    assert!(done.status.success(), "{line}: {:?}\n{}", done.status, String::from_utf8_lossy(&done.stderr));
}

fn save(place: &Place, name: &str, graph: Graph) {
    let model = Model { graph, ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file(name)).unwrap();
}

/// A model of rows of two numbers, and rows.
fn simple() -> Place {
    let place = Place::new();
    linear(&[1.0, 2.0], 2).save(place.file("model.onnx")).unwrap();
    ndarray_npy::write_npy(place.file("rows.npy"), &Array2::<f32>::ones((3, 2))).unwrap();
    place
}

/// The header of an npy file with this text, and nothing behind it.
fn npy(text: &str) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[test]
fn a_batch_of_two_to_the_sixty() {
    let place = simple();
    let mut b = Builder::new("huge");
    let x = b.input("x", DType::F32, &[Dim::Known(1 << 60), Dim::Known(2)]);
    let y = b.op("Tanh", &[&x]);
    b.output("y", &y);
    save(&place, "huge.onnx", b.finish().unwrap());
    refused(&place, "explain -m huge.onnx rows.npy", "the model has a value of 9223372036854775808 bytes");
    answered(&place, "inspect huge.onnx");
}

#[test]
fn traces_with_wrong_offsets() {
    let place = simple();
    for (name, offsets) in [("far", [0, u64::MAX]), ("back", [9, 3]), ("beyond", [0, 5])] {
        let mut npz = NpzWriter::new(std::fs::File::create(place.file("traces.npz")).unwrap());
        npz.add_array("offsets", &Array1::from(offsets.to_vec())).unwrap();
        npz.add_array("times", &Array1::from(vec![0.0, 1.0])).unwrap();
        for array in ["states", "velocities", "quartics"] {
            npz.add_array(array, &Array2::<f64>::ones((2, 2))).unwrap();
        }
        let evidence = br#"[[{"kind":"trace"},3]]"#.to_vec();
        npz.add_array("evidence", &Array1::from(evidence)).unwrap();
        npz.finish().unwrap();
        let done = run(&place, "explain -m model.onnx rows.npy --limit 1 --traces traces.npz");
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains("traces.npz") && !told.contains("panicked"), "{name}: {told}");
    }
}

#[test]
fn a_chain_of_very_many_nodes() {
    let place = simple();
    for length in [5_000, 100_000] {
        let name = |i: usize| if i == 0 { "x".to_string() } else { format!("v{i}") };
        let nodes = (0..length).map(|i| Node::new("Neg", &[&name(i)], &[&name(i + 1)])).collect();
        let graph = Graph {
            inputs: vec![ValueInfo::new("x", DType::F32, &[Dim::symbol("N"), Dim::Known(2)])],
            outputs: vec![ValueInfo { name: name(length), dtype: DType::F32, shape: None }],
            nodes,
            ..Graph::default()
        };
        save(&place, "chain.onnx", graph);
        answered(&place, "inspect chain.onnx");
        if length == 5_000 {
            answered(&place, "explain -m chain.onnx rows.npy --method gradient --no-engine-check");
        }
    }
}

#[test]
fn arrays_that_declare_far_more_than_they_hold() {
    let place = simple();
    for (name, kind, fortran) in [
        ("floats", "<f4", "False"),
        ("fortran", "<f8", "True"),
        ("integers", "<i8", "False"),
        ("bytes", "|u1", "False"),
    ] {
        let text =
            format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': (4398046511104, 2), }}\n");
        std::fs::write(place.file(&format!("{name}.npy")), npy(&text)).unwrap();
        for flags in ["", "--limit 2"] {
            refused(
                &place,
                &format!("explain -m model.onnx {name}.npy {flags}"),
                "declares shape [4398046511104, 2]",
            );
        }
    }
    for line in [
        "explain -m model.onnx rows.npy --baseline fortran.npy",
        "explain -m model.onnx rows.npy --method kernel-shap --groups integers.npy",
        "explain -m model.onnx rows.npy --limit 1 --path fortran.npy",
        "explain -m model.onnx rows.npy --method expected-gradients --background floats.npy",
        "evaluate -m model.onnx rows.npy --truth bytes.npy --metrics mass-accuracy",
        "train integers.npy -o run",
    ] {
        refused(&place, line, "declares shape [4398046511104, 2]");
    }
    // A header of 4 GB in 13 bytes.
    std::fs::write(place.file("header.npy"), b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").unwrap();
    refused(&place, "explain -m model.onnx header.npy", "declares a text of 4294967295 bytes");
    refused(&place, "train header.npy -o run", "declares a text of 4294967295 bytes");
    refused(&place, "explain -m model.onnx rows.npy --baseline header.npy", "declares a text");
}

#[test]
fn archives_that_unpack_to_far_more_than_they_are() {
    let place = simple();
    // An array that declares more than its member holds.
    let text = "{'descr': '<i8', 'fortran_order': False, 'shape': (4398046511104, 2), }\n";
    let file = std::fs::File::create(place.file("lies.npz")).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    zip.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(&npy(text)).unwrap();
    zip.finish().unwrap();
    // Zeros that unpack to 6 GB.
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (750000000, 2), }\n";
    let file = std::fs::File::create(place.file("zeros.npz")).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(1))
        .large_file(true);
    zip.start_file("x.npy", options).unwrap();
    zip.write_all(&npy(text)).unwrap();
    let zeros = vec![0; 10_000_000];
    (0..600).for_each(|_| zip.write_all(&zeros).unwrap());
    zip.finish().unwrap();
    for flags in ["", "--limit 2"] {
        refused(
            &place,
            &format!("explain -m model.onnx lies.npz {flags}"),
            "declares shape [4398046511104, 2]",
        );
        refused(&place, &format!("explain -m model.onnx zeros.npz {flags}"), "would take 6000000");
    }
}

#[test]
fn pictures_of_gigapixels() {
    let place = simple();
    place.image_model("images.onnx");
    place.write("wide.ppm", "P6 60000 60000 255\n");
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = b"IHDR".to_vec();
    header.extend(60_000u32.to_be_bytes());
    header.extend(60_000u32.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    png.extend(13u32.to_be_bytes());
    png.extend(&header);
    png.extend(crc(&header).to_be_bytes());
    std::fs::write(place.file("wide.png"), png).unwrap();
    // Start of image, a baseline frame of 60000x60000 with three components, a scan without data.
    let mut jpeg = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8];
    jpeg.extend(60_000u16.to_be_bytes());
    jpeg.extend(60_000u16.to_be_bytes());
    jpeg.extend([3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    jpeg.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0, 0xff, 0xd9]);
    std::fs::write(place.file("wide.jpg"), jpeg).unwrap();
    for name in ["wide.ppm", "wide.png", "wide.jpg"] {
        for flags in ["", "--resize 8x8"] {
            refused(&place, &format!("explain -m images.onnx {name} {flags}"), name);
        }
    }
    place.write("small.ppm", "P3 1 1 255\n1 2 3\n");
    refused(&place, "explain -m images.onnx small.ppm --resize 100000x100000", "100000x100000");
    refused(&place, "explain -m images.onnx small.ppm --resize 0x8", "0x8");
}

/// The checksum of a part of a PNG file.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
    })
}

#[test]
fn constants_of_absurd_sizes() {
    let place = simple();
    let huge = TensorData::ints(&[1 << 40, 1 << 20]);
    let scalar =
        |value: i64| TensorData::from_bytes(DType::I64, vec![], value.to_le_bytes().to_vec()).unwrap();
    let cases = [
        ("fill", Node::new("ConstantOfShape", &["a"], &["c"]), vec![("a", huge.clone())]),
        (
            "range",
            Node::new("Range", &["a", "b", "d"], &["c"]),
            vec![("a", scalar(0)), ("b", scalar(1 << 60)), ("d", scalar(1))],
        ),
        (
            "onehot",
            Node::new("OneHot", &["a", "b", "d"], &["c"]),
            vec![("a", TensorData::ints(&[1, 2])), ("b", scalar(1 << 60)), ("d", TensorData::ints(&[0, 1]))],
        ),
        ("expand", Node::new("Expand", &["b", "a"], &["c"]), vec![("a", huge), ("b", scalar(1))]),
    ];
    for (name, node, values) in cases {
        let mut cast = Node::new("Cast", &["c"], &["f"]);
        cast.attributes.insert("to".to_string(), Attribute::Int(1));
        let mut sum = Node::new("ReduceSum", &["f"], &["s"]);
        sum.attributes.insert("keepdims".to_string(), Attribute::Int(0));
        let graph = Graph {
            inputs: vec![ValueInfo::new("x", DType::F32, &[Dim::symbol("N"), Dim::Known(2)])],
            outputs: vec![ValueInfo { name: "y".to_string(), dtype: DType::F32, shape: None }],
            nodes: vec![node, cast, sum, Node::new("Mul", &["x", "s"], &["y"])],
            initializers: values.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..Graph::default()
        };
        save(&place, "constant.onnx", graph);
        let done = run(&place, "explain -m constant.onnx rows.npy");
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{name}: {:?} {told}", done.status);
        assert!(!told.contains("panicked") && !told.contains("memory allocation"), "{name}: {told}");
    }
}

#[test]
fn flags_of_absurd_sizes() {
    let place = simple();
    for (flags, words) in [
        ("--steps 18446744073709551615", "18446744073709551615"),
        ("--steps 18446744073709551615 --rule left", "18446744073709551615"),
        ("--steps 18446744073709551615 --rule simpson", "18446744073709551615"),
        ("--method smoothgrad --samples 18446744073709551615", "18446744073709551615"),
        ("--method kernel-shap --samples 18446744073709551615", "18446744073709551615"),
        ("--limit 0", "--limit"),
        ("--workers 1000000", "the number of workers is 1000000, but at most 1024 is allowed"),
    ] {
        refused(&place, &format!("explain -m model.onnx rows.npy {flags}"), words);
    }
    ndarray_npy::write_npy(place.file("many.npy"), &Array2::from_shape_fn((64, 2), |(i, j)| (i + j) as f32))
        .unwrap();
    for flags in ["--width 1000000000", "--blocks 1000000000"] {
        let words = "weights, gradients and moments must fit into memory";
        refused(&place, &format!("train many.npy -o run --steps 2 {flags}"), words);
    }
}

#[test]
fn external_data_stay_in_the_folder_and_are_files() {
    let place = simple();
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch");
    std::fs::create_dir(place.file("model")).unwrap();
    std::fs::copy(fixtures.join("mlp.external.onnx"), place.file("model/mlp.external.onnx")).unwrap();
    let data = place.file("model/mlp.external.onnx.data");
    std::fs::copy(fixtures.join("mlp.external.onnx.data"), place.file("outside.data")).unwrap();
    std::os::unix::fs::symlink(place.file("outside.data"), &data).unwrap();
    refused(&place, "inspect model/mlp.external.onnx", "a link that leads out of the model's folder");
    std::fs::remove_file(&data).unwrap();
    assert!(Command::new("mkfifo").arg(&data).status().unwrap().success());
    refused(&place, "inspect model/mlp.external.onnx", "not an ordinary file");
    std::fs::remove_file(&data).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &data).unwrap();
    refused(&place, "inspect model/mlp.external.onnx", "a link that leads out of the model's folder");
}

/// A pipe that nobody writes into would keep the program waiting, and a device would fill its memory.
#[test]
fn pipes_and_devices_are_refused() {
    let place = simple();
    let said = "it is a pipe or a device, not an ordinary file";
    for name in ["pipe.npy", "pipe.npz", "pipe.csv", "pipe.parquet", "pipe.png", "pipe.onnx", "pipe.toml"] {
        assert!(Command::new("mkfifo").arg(place.file(name)).status().unwrap().success());
    }
    for name in ["pipe.npy", "pipe.npz", "pipe.csv", "pipe.parquet", "pipe.png"] {
        refused(&place, &format!("explain -m model.onnx {name}"), said);
    }
    for line in [
        "inspect pipe.onnx",
        "inspect /dev/zero",
        "explain -m pipe.onnx rows.npy",
        "explain -m /dev/zero rows.npy",
        "explain -m model.onnx rows.npy -f pipe.onnx",
        "explain -m model.onnx rows.npy --baseline pipe.npy",
        "explain -m model.onnx rows.npy --method expected-gradients --background pipe.npy",
        "explain -m model.onnx rows.npy --traces pipe.npz",
        "explain -m model.onnx rows.npy --config pipe.toml",
        "train pipe.npy -o run",
    ] {
        refused(&place, line, said);
    }
}

#[test]
fn no_library_is_loaded_from_the_current_folder() {
    let place = simple();
    let capi = place.file(".venv/lib/python3/site-packages/onnxruntime/capi");
    std::fs::create_dir_all(&capi).unwrap();
    std::fs::write(capi.join("libonnxruntime.so.1.99.0"), "not a library").unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_brenier"))
        .args(["explain", "-m", "model.onnx", "rows.npy", "--engine", "ort"])
        .current_dir(place.file("."))
        .env_remove("ORT_DYLIB_PATH")
        .env_remove("VIRTUAL_ENV")
        .env("PATH", "")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("ONNX Runtime was not found") && !told.contains("1.99.0"), "{told}");
}

#[test]
fn names_do_not_reach_a_terminal_raw() {
    let place = Place::new();
    linear(&[1.0, 2.0], 2).save(place.file("model.onnx")).unwrap();
    place.write("rows.csv", "a\u{1b}[31mred,b\u{202e}turned\n1,2\n");
    let done = run(&place, "explain -m model.onnx rows.csv --classes 'one\u{1b}]0;title\u{7},two\u{2066}'");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let all = [done.stdout, done.stderr].concat();
    let all = String::from_utf8_lossy(&all).into_owned();
    for raw in ['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}'] {
        assert!(!all.contains(raw), "{raw:?} in {all:?}");
    }
    assert!(all.contains("red") && all.contains("turned") && all.contains("title"), "{all}");
}

#[test]
fn the_report_runs_no_foreign_code() {
    let place = Place::new();
    place.image_model("model.onnx");
    ndarray_npy::write_npy(place.file("images.npy"), &Array4::<f32>::ones((1, 1, 8, 8))).unwrap();
    answered(&place, "explain -m model.onnx images.npy -o out");
    let page = place.read("out/report.html");
    assert!(page.contains("http-equiv=\"Content-Security-Policy\""), "no policy");
    assert!(page.contains("default-src 'none'"), "no policy");
}

#[test]
fn what_cannot_be_written_is_found_before_the_work() {
    let place = simple();
    place.write("file", "in the way");
    refused(&place, "explain -m model.onnx rows.npy -o file/out", "file/out");
    refused(&place, "evaluate -m model.onnx rows.npy -o file/out", "file/out");
    refused(&place, "train rows.npy -o file/out", "file/out");
    let shift = "shift -m model.onnx rows.npy rows.npy --target 1 -o file/out";
    refused(&place, shift, "cannot make the folder file/out");
}

#[test]
fn a_large_image_takes_little_memory_and_makes_a_small_page() {
    let place = simple();
    let mut b = Builder::new("large");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(3), Dim::Known(1024), Dim::Known(1024)]);
    let mean = b.op("GlobalAveragePool", &[&x]);
    let flat = b.op("Flatten", &[&mean]);
    let weights = b.constant(TensorData::f32(&[3, 2], &[1.0, -1.0, 0.5, 2.0, 0.0, 1.0]));
    let y = b.op("MatMul", &[&flat, &weights]);
    b.output("y", &y);
    save(&place, "large.onnx", b.finish().unwrap());
    let image =
        Array4::from_shape_fn((1, 3, 1024, 1024), |(_, c, i, j)| ((c + i * 3 + j) % 256) as f32 / 255.0);
    ndarray_npy::write_npy(place.file("large.npy"), &image).unwrap();
    answered(&place, "explain -m large.onnx large.npy --steps 2 --rule left -o out --max-memory 500M");
    let size = std::fs::metadata(place.file("out/report.html")).unwrap().len();
    assert!(size < 20_000_000, "the page has {size} bytes");
    assert!(place.file("out/heatmaps/0000-ig-target1.png").exists());
}

#[test]
fn memory_is_limited_and_the_number_is_said() {
    let place = simple();
    // 240 MB, of which the disk holds a line.
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (30000000, 2), }\n";
    let file = std::fs::File::create(place.file("rows240.npy")).unwrap();
    (&file).write_all(&npy(text)).unwrap();
    file.set_len(240_000_000 + npy(text).len() as u64).unwrap();
    refused(&place, "train rows240.npy -o run --max-memory 120M", "--max-memory allows for 0.12 GB");
    for size in ["much", "0", "4 elephants"] {
        refused(
            &place,
            &format!("inspect model.onnx --max-memory '{size}'"),
            "hint: write 4G, 500M, or bytes",
        );
    }
    answered(&place, "explain -m model.onnx rows.npy --max-memory 1G");
}

#[test]
fn ctrl_c_ends_with_130_and_says_how_to_go_on() {
    let place = simple();
    let rows = Array2::from_shape_fn((400, 2), |(i, j)| ((i * 7 + j * 3) % 11) as f32);
    ndarray_npy::write_npy(place.file("many.npy"), &rows).unwrap();
    for (line, words) in [
        ("train many.npy -o run --steps 1000000", "--resume"),
        ("explain -m model.onnx many.npy -o out --method smoothgrad --samples 1000000", "goes on"),
        ("evaluate -m model.onnx many.npy -o table --methods smoothgrad --samples 1000000", "hint: "),
        ("explain -m model.onnx many.npy --method smoothgrad --samples 1000000", "hint: "),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
            .args(line.split(' '))
            .current_dir(place.file("."))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(2500));
        let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(told.success(), "{line}: it is over already");
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let done = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(130), "{line}\n{told}");
        assert!(told.contains(words), "{line}\n{told}");
    }
}
