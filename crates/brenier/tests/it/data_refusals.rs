//! Bad data: the message names the file, row or column, and what to try.

use std::fs;
use std::path::{Path, PathBuf};

use brenier::data::{Dataset, OpenOptions, Part, Scaling, ScalingConfig, Transform};
use image::{GrayImage, Luma, Rgb, RgbImage};
use ndarray::{Array3, array};
use tempfile::TempDir;

use crate::data_formats::{gzip, idx, record, write_parquet};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }
}

/// The message of a refusal has all of these words, and a hint.
#[track_caller]
fn refused(path: impl AsRef<Path>, options: &OpenOptions, words: &[&str]) {
    let message = Dataset::open(path, options).unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
}

fn plain() -> OpenOptions {
    OpenOptions::default()
}

fn label(name: &str) -> OpenOptions {
    OpenOptions { label: Some(name.into()), ..plain() }
}

#[test]
fn nothing_there() {
    let folder = Folder::new();
    refused(folder.at("absent"), &plain(), &["absent"]);
    refused(folder.at(""), &plain(), &["no examples", "png", "hint:"]);
    refused(folder.write("notes.doc", "text"), &plain(), &["notes.doc", "'doc'", "hint:"]);
    refused(folder.write("empty.csv", ""), &plain(), &["empty.csv", "hint:"]);
    refused(folder.write("names.csv", "a,b\n"), &plain(), &["names.csv", "rows", "hint:"]);
    folder.write("data_batch_1", "pickle");
    refused(folder.at(""), &plain(), &["Python version", "binary version"]);
}

#[test]
fn images_that_do_not_belong_together() {
    let folder = Folder::new();
    let gray = |width, height| GrayImage::from_pixel(width, height, Luma([1]));
    gray(4, 3).save(folder.at("a.png")).unwrap();
    gray(4, 3).save(folder.at("b.png")).unwrap();
    gray(5, 3).save(folder.at("c.png")).unwrap();
    gray(6, 3).save(folder.at("d.png")).unwrap();
    refused(folder.at(""), &plain(), &["a.png is [1, 3, 4]", "c.png is [1, 3, 5]", "resize", "hint:"]);
    fs::remove_file(folder.at("c.png")).unwrap();
    RgbImage::from_pixel(4, 3, Rgb([1, 2, 3])).save(folder.at("d.png")).unwrap();
    refused(folder.at(""), &plain(), &["d.png is [3, 3, 4]", "gray or RGB"]);
    let crop = OpenOptions { transforms: vec![Transform::CenterCrop { height: 4, width: 4 }], ..plain() };
    refused(folder.at(""), &crop, &["a.png", "3x4", "4x4", "hint:"]);
    fs::create_dir(folder.at("dog")).unwrap();
    gray(4, 3).save(folder.at("dog/e.png")).unwrap();
    refused(folder.at(""), &plain(), &["a.png", "no class", "hint:"]);
}

#[test]
fn damaged_images() {
    let folder = Folder::new();
    let noise = RgbImage::from_fn(64, 64, |x, y| Rgb([(x * y) as u8, (x + 7 * y) as u8, (x ^ y) as u8]));
    for name in ["half.png", "half.jpg", "half.ppm"] {
        noise.save(folder.at(name)).unwrap();
        let bytes = fs::read(folder.at(name)).unwrap();
        let path = folder.write(name, &bytes[..bytes.len() / 2]);
        refused(path, &plain(), &["cannot decode", name, "hint:"]);
    }
    refused(folder.write("text.png", "not an image"), &plain(), &["text.png", "cannot decode", "hint:"]);
}

#[test]
fn damaged_idx() {
    let folder = Folder::new();
    let name = "train-images-idx3-ubyte";
    refused(
        folder.write(name, idx(&[2, 2, 2], &[0; 7])),
        &plain(),
        &[name, "holds 7 bytes", "of 8", "hint:"],
    );
    refused(folder.write(name, idx(&[2, 2, 2], &[0; 9])), &plain(), &[name, "holds 9 bytes", "of 8"]);
    refused(folder.write(name, [0, 0, 8, 3, 0]), &plain(), &[name, "holds 5 bytes"]);
    refused(folder.write(name, "<html>"), &plain(), &[name, "3c 68 74 6d", "hint:"]);
    refused(folder.write(name, ""), &plain(), &[name, "nothing"]);
    refused(folder.write(name, idx(&[8], &[0; 8])), &plain(), &[name, "1 axes", "hint:"]);
    let huge = idx(&[u32::MAX, u32::MAX, u32::MAX], &[]);
    refused(folder.write(name, huge), &plain(), &[name, "holds 0 bytes"]);
    let packed = gzip(&idx(&[2, 2, 2], &[3; 8]));
    refused(folder.write(name, &packed[..packed.len() - 9]), &plain(), &["cannot read", name]);

    folder.write(name, idx(&[2, 2, 2], &[0; 8]));
    folder.write("train-labels-idx1-ubyte", idx(&[3], &[0, 1, 2]));
    refused(folder.at(""), &plain(), &["has 2 examples", "train-labels-idx1-ubyte has 3 labels", "hint:"]);
    folder.write("train-labels-idx1-ubyte", idx(&[2], &[0, 9]));
    let classes = vec!["zero".to_owned(), "one".to_owned()];
    refused(folder.at(""), &OpenOptions { classes, ..plain() }, &["label 9 of row 1", "2 classes", "hint:"]);
    let test = OpenOptions { part: Part::Test, ..plain() };
    refused(folder.at(""), &test, &["no test part", "hint:"]);
}

#[test]
fn damaged_cifar() {
    let folder = Folder::new();
    let two = [record(1, [0; 3]), record(10, [0; 3])].concat();
    let name = "data_batch_1.bin";
    refused(folder.write(name, &two), &plain(), &[name, "label 10 of row 1", "10 classes", "hint:"]);
    refused(folder.write(name, &two[..4000]), &plain(), &[name, "4000", "6146", "hint:"]);
    refused(folder.write(name, ""), &plain(), &["no examples"]);
    fs::remove_file(folder.at(name)).unwrap();
    RgbImage::new(1024, 2).save(folder.at("test_batch.png")).unwrap();
    let test = OpenOptions { part: Part::Test, ..plain() };
    folder.write("test_lables.json", "[1]");
    refused(folder.at(""), &test, &["test_batch.png has 2 examples", "has 1 labels"]);
    folder.write("test_lables.json", "[1,11]");
    refused(folder.at(""), &test, &["test_lables.json", "label 11 of row 1"]);
    folder.write("test_lables.json", "[1,");
    refused(folder.at(""), &test, &["cannot read", "test_lables.json"]);
    RgbImage::new(1000, 2).save(folder.at("test_batch.png")).unwrap();
    refused(folder.at(""), &test, &["1000 pixels wide", "hint:"]);
}

#[test]
fn bad_cells() {
    let folder = Folder::new();
    let csv = |text: &str| folder.write("t.csv", text);
    refused(csv("a,b\n1,2\n3,NaN\n5,6\n"), &plain(), &["t.csv, line 3, column 'b'", "NaN", "hint:"]);
    refused(csv("a,b\n1,2\n3,\n"), &plain(), &["line 3, column 'b'", "empty", "hint:"]);
    refused(csv("a,b\n1,2\n3,4\nfive,6\n"), &plain(), &["line 4, column 'a'", "'five' is text", "hint:"]);
    refused(csv("a,b\n1,2\n3,inf\n"), &plain(), &["line 3, column 'b'", "not a finite number"]);
    refused(csv("a,b\n1,2\n3,1e39\n"), &plain(), &["line 3, column 'b'", "not a finite number"]);
    refused(csv("a,b\n1,x\n3,\n"), &plain(), &["line 3, column 'b'", "empty", "hint:"]);
    refused(csv("a,b\n1,\n3,\n"), &plain(), &["column 'b'", "empty in every row", "hint:"]);
    refused(csv("a,b\n1,2\n3,4,5\n"), &plain(), &["t.csv, line 3: 3 cells", "has 2", "hint:"]);
    refused(csv("a,a\n1,2\n"), &plain(), &["column 'a'", "twice", "hint:"]);
    let ids: String = (0..150).map(|row| format!("{row},name{row}\n")).collect();
    refused(
        csv(&format!("a,id\n{ids}")),
        &plain(),
        &["column 'id'", "more than 100", "leave the column out"],
    );
    refused(csv("a,b\n1,2\n"), &label("c"), &["no column 'c'", "a, b"]);
    refused(csv("a,b\n1,2.5\n"), &label("b"), &["line 2, column 'b'", "'2.5' is a quantity", "hint:"]);
    refused(csv("a,b\n1,x\n2,\n"), &label("b"), &["line 3, column 'b'", "label is empty"]);
    let known = Dataset::open(csv("a,b\n1,x\n2,y\n"), &plain()).unwrap();
    refused(
        csv("a,b\n1,z\n"),
        &plain().like(&known),
        &["line 2, column 'b'", "'z' is none of the values x, y"],
    );
    refused(csv("a\n1\n"), &plain().like(&known), &["no column 'b'"]);
    let few = OpenOptions { limit: Some(3), ..plain() };
    refused(csv("a\n1\n2\n"), &few, &["has 2 rows", "3 are needed", "hint:"]);
    write_parquet(&folder.at("t.parquet"), &[(1, None, "x"), (2, Some(1.0), "x")], &[]);
    refused(folder.at("t.parquet"), &plain(), &["t.parquet, row 0, column 'price'", "empty", "hint:"]);
    refused(folder.write("t.parquet", "PAR1 but no more"), &plain(), &["cannot read", "t.parquet"]);
    // A text quoted over two lines: lines are those an editor shows.
    refused(csv("a,b\n\"x\ny\",2\nz,\n"), &plain(), &["line 4, column 'b'"]);
}

#[test]
fn bad_arrays() {
    let folder = Folder::new();
    let npy = folder.at("x.npy");
    ndarray_npy::write_npy(&npy, &array![[1.0_f32, 2.0], [3.0, f32::NAN]]).unwrap();
    refused(&npy, &plain(), &["row 1", "x.npy", "NaN", "feature 1", "hint:"]);
    ndarray_npy::write_npy(&npy, &Array3::<u8>::zeros((0, 2, 2))).unwrap();
    refused(&npy, &plain(), &["x.npy", "no examples"]);
    ndarray_npy::write_npy(&npy, &array![[1.0_f32, 2.0]]).unwrap();
    let shaped = OpenOptions { shape: Some(vec![1, 2, 2]), ..plain() };
    refused(&npy, &shaped, &["x.npy", "[2]", "[4]"]);
    ndarray_npy::write_npy(folder.at("y.npy"), &array![0_i64, 1]).unwrap();
    refused(&npy, &plain(), &["has 1 examples", "y.npy has 2 labels"]);
    ndarray_npy::write_npy(folder.at("y.npy"), &array![-1_i64]).unwrap();
    refused(&npy, &plain(), &["label -1 of row 0", "hint:"]);
    let bytes = fs::read(&npy).unwrap();
    folder.write("x.npy", &bytes[..bytes.len() - 1]);
    refused(&npy, &plain(), &["cannot read", "x.npy"]);
    let mut npz = ndarray_npy::NpzWriter::new(fs::File::create(folder.at("z.npz")).unwrap());
    npz.add_array("a", &array![1.0_f32]).unwrap();
    npz.add_array("b", &array![1.0_f32]).unwrap();
    npz.finish().unwrap();
    refused(folder.at("z.npz"), &plain(), &["z.npz", "it has a, b", "hint:"]);
}

#[test]
fn options_without_a_meaning() {
    let folder = Folder::new();
    GrayImage::new(2, 2).save(folder.at("a.png")).unwrap();
    refused(folder.at(""), &label("class"), &["the label column has no meaning", "images", "hint:"]);
    let crop = OpenOptions { transforms: vec![Transform::CenterSquare], ..plain() };
    refused(folder.write("t.csv", "a\n1\n"), &crop, &["a resize or crop has no meaning", "t.csv"]);
    ndarray_npy::write_npy(folder.at("t.npy"), &array![[1.0_f32]]).unwrap();
    refused(folder.at("t.npy"), &crop, &["no meaning", "not 8-bit images"]);
}

#[test]
fn what_is_asked_of_a_data_set() {
    let data = Dataset::from_rows("points", &[1], array![[1.0], [2.0]].view()).unwrap();
    let message = data.require_labels().unwrap_err().to_string();
    assert!(message.contains("points has no labels") && message.contains("hint:"), "{message}");
    let message = data.require_rows(64, "a batch").unwrap_err().to_string();
    assert!(message.contains("has 2 rows, but 64 are needed for a batch"), "{message}");
    assert!(data.rows(1..3).is_err() && data.select(&[2]).is_err() && data.rows_f32(&[2]).is_err());
    assert!(data.split(1.0, 0).is_err() && data.split(f64::NAN, 0).is_err());
    assert!(data.rows(0..1).unwrap().split(0.5, 0).unwrap_err().to_string().contains("has 1 rows"));
    let labels = data.clone().with_labels(vec![0, 2], vec!["a".into(), "b".into()]);
    assert!(labels.unwrap_err().to_string().contains("label 2 of row 1"));
    assert!(data.with_labels(vec![0], vec!["a".into()]).is_err());
}

#[test]
fn constant_columns() {
    let folder = Folder::new();
    let fit = |text: &str| {
        let data = Dataset::open(folder.write("t.csv", text), &plain()).unwrap();
        Scaling::fit(&data, &ScalingConfig::default()).unwrap_err().to_string()
    };
    let message = fit("a,b\n1,7\n2,7\n");
    assert!(message.contains("column 'b' is 7 in all 2 rows of") && message.contains("hint:"), "{message}");
    let message = fit("a,b\n1,red\n2,red\n");
    assert!(message.contains("column 'b' is 'red' in all 2 rows"), "{message}");
}
