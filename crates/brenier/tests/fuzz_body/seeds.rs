//! The corpus: small sound files of every kind, written by what writes them in earnest.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brenier::report::{Report, ReportTable, save_explanations, save_stills};
use brenier::{FieldFn, Line, PathIntegral, Rule, ScoreFn, TraceConfig, save_traces, trace};
use image::{ImageFormat, Rgb, RgbImage};
use ndarray::{Array1, Array2, Array4, array};
use ndarray_npy::{NpzWriter, write_npy};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::Reader;

/// Writes the sound files into a folder, and gives those of each kind: the one in the folder first.
pub(crate) fn seeds(folder: &Path) -> Vec<(Reader, Vec<Vec<u8>>)> {
    write_all(folder);
    let of = |reader: Reader| {
        let mut all = vec![fs::read(folder.join(reader.file())).unwrap()];
        all.extend(more(reader, folder));
        (reader, all)
    };
    Reader::ALL.into_iter().map(of).collect()
}

/// The fixtures, as seen from the crate or from `fuzz/`.
fn trees() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let near = here.join("../fixtures/trees");
    if near.is_dir() { near } else { here.join("../../fixtures/trees") }
}

/// Further files of a kind.
fn more(reader: Reader, folder: &Path) -> Vec<Vec<u8>> {
    let trees = trees();
    let read = |name: &str| fs::read(trees.join(name)).unwrap();
    match reader {
        Reader::Npy => {
            let path = folder.join("more.npy");
            let write = |array: &Array2<f64>| {
                write_npy(&path, array).unwrap();
                fs::read(&path).unwrap()
            };
            vec![write(&Array2::ones((2, 5))), write(&Array2::zeros((0, 3)))]
        }
        Reader::Csv => vec![
            b"a;b;class\n1,5;red;yes\n;blue;no\n".to_vec(),
            b"1,2,3\n4,5,6\n".to_vec(),
            "\u{feff}\"na\"\"me\",x\r\n\"1\",NA\r\n".as_bytes().to_vec(),
        ],
        Reader::Ppm => {
            vec![b"P3 2 2 255\n1 2 3 4 5 6 7 8 9 10 11 12\n".to_vec(), b"P5\n2 2\n255\nabcd".to_vec()]
        }
        Reader::Trees => vec![read("lgb_forest.txt"), read("xgb_binary.ubj"), read("xgb_categories.json")],
        Reader::Toml => {
            vec![b"[preprocessing]\nlayout = \"nhwc\"\n".to_vec(), b"classes = [\"a\", \"b\"]\n".to_vec()]
        }
        _ => Vec::new(),
    }
}

fn write_all(folder: &Path) {
    let at = |reader: Reader| folder.join(reader.file());
    let images = Array4::from_shape_fn((3, 1, 4, 4), |(n, _, i, j)| (n + i * j) as f32 / 12.0);
    write_npy(at(Reader::Npy), &images).unwrap();
    let mut npz = NpzWriter::new_compressed(fs::File::create(at(Reader::Npz)).unwrap());
    npz.add_array("x_train", &images).unwrap();
    npz.add_array("y_train", &array![0_i64, 1, 0]).unwrap();
    npz.finish().unwrap();
    fs::write(at(Reader::Idx), [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2][..], &[7; 8]].concat())
        .unwrap();
    fs::write(folder.join("train-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 1, 0]).unwrap();
    fs::write(at(Reader::Cifar), [vec![3], vec![9; 3072], vec![1], vec![200; 3072]].concat()).unwrap();
    let picture = RgbImage::from_fn(6, 5, |x, y| Rgb([x as u8 * 40, y as u8 * 50, 9]));
    picture.save_with_format(at(Reader::Png), ImageFormat::Png).unwrap();
    picture.save_with_format(at(Reader::Ppm), ImageFormat::Pnm).unwrap();
    picture.save_with_format(at(Reader::Jpeg), ImageFormat::Jpeg).unwrap();
    fs::write(at(Reader::Csv), "height,colour,class\n1.5,red,yes\n2,blue,no\n-3e2,red,yes\n").unwrap();
    table(&at(Reader::Parquet));
    let sidecar = "classes = [\"cat\", \"dog\"]\n[preprocessing]\nscale = 255\nmean = [0.5, 0.4, 0.3]\n";
    fs::write(at(Reader::Toml), sidecar).unwrap();
    checkpoint(&at(Reader::Checkpoint));
    results(folder);
    let trees = trees();
    fs::copy(trees.join("xgb_outputs.json"), at(Reader::Trees)).unwrap();
}

fn table(path: &Path) {
    let schema = "message table { required int64 count; optional double price; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(parquet::basic::Compression::SNAPPY).build();
    let mut writer =
        SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2, 3], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[0.5, 1.5, 2.5], Some(&[1, 1, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

fn checkpoint(path: &Path) {
    let header = r#"{"step":7,"first_loss":0,"rest_loss":0,"smooth_loss":0,"window_sum":0,"window_count":1,"settings":"{}","network":"w [3]"}"#;
    let mut npz = NpzWriter::new(fs::File::create(path).unwrap());
    npz.add_array("header", &Array1::from(header.as_bytes().to_vec())).unwrap();
    for name in ["parameters", "average", "first_moment", "second_moment"] {
        npz.add_array(name, &array![0.5_f32, -1.0, 2.0]).unwrap();
    }
    npz.finish().unwrap();
}

fn results(folder: &Path) {
    let score = ScoreFn::new(&[1, 2, 2], |x, _| (x.dot(&x), 2.0 * &x));
    let line = Line::new(Array1::zeros(4).view(), array![1.0, 0.5, -0.5, 2.0].view()).unwrap();
    let explanation = PathIntegral::new(Rule::Midpoint { steps: 4 }).explain(&score, &line, 0).unwrap();
    let stills = brenier::attribute::frames(&score, &line, 0, 3).unwrap();
    save_explanations(folder, &[explanation]).unwrap();
    save_stills(folder, 0, &[Some(stills)]).unwrap();
    let metrics = ReportTable {
        columns: vec!["method".into(), "deletion".into()],
        rows: vec![("ig".into(), vec![Some(0.5)])],
        notes: vec![],
    };
    let report = Report { title: "A".into(), metrics: Some(metrics), ..Report::default() };
    report.save_description(folder).unwrap();
    let field = FieldFn::new(&[1, 2, 2], |x, _| -0.5 * &x);
    let traces = trace(&field, array![[1.0, 0.5, -0.5, 2.0]].view(), &TraceConfig::default()).unwrap();
    save_traces(&folder.join(Reader::Traces.file()), &traces).unwrap();
}
