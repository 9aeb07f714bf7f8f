//! Files in the real formats, written here byte by byte or by the libraries that others use, read back.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use brenier::data::{Color, ColumnKind, Dataset, Layout, Missing, OpenOptions, Part, Transform};
use image::{GrayImage, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use ndarray::{Array1, Array2, Array3, Array4, array};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

pub(crate) fn idx(axes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, axes.len() as u8];
    axes.iter().for_each(|axis| bytes.extend(axis.to_be_bytes()));
    bytes.extend(values);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A record of CIFAR-10: its label and planes filled with one value each.
pub(crate) fn record(label: u8, planes: [u8; 3]) -> Vec<u8> {
    let mut bytes = vec![label];
    planes.iter().for_each(|&value| bytes.extend([value; 1024]));
    bytes
}

fn read(path: impl AsRef<Path>) -> Dataset {
    Dataset::open(path, &OpenOptions::default()).unwrap()
}

fn part(part: Part) -> OpenOptions {
    OpenOptions { part, ..OpenOptions::default() }
}

#[test]
fn idx_with_labels_raw_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("train-images-idx3-ubyte"), idx(&[3, 1, 2], &[0, 255, 51, 102, 1, 2])).unwrap();
    fs::write(at("train-labels-idx1-ubyte"), idx(&[3], &[2, 0, 1])).unwrap();
    fs::write(at("t10k-images-idx3-ubyte.gz"), gzip(&idx(&[1, 1, 2], &[7, 9]))).unwrap();
    fs::write(at("t10k-labels-idx1-ubyte.gz"), gzip(&idx(&[1], &[1]))).unwrap();
    let train = read(folder.path());
    assert_eq!((train.len(), train.shape()), (3, [1, 1, 2].as_slice()));
    assert_eq!(train.rows_f32(&[1, 0]).unwrap(), array![[0.2, 0.4], [0.0, 1.0]]);
    assert_eq!(train.labels().unwrap(), [2, 0, 1]);
    assert_eq!(train.classes(), ["0", "1", "2"]);
    fs::write(at("classes.txt"), "shirt\nbag\n\nankle boot\n").unwrap();
    assert_eq!(read(folder.path()).classes(), ["shirt", "bag", "ankle boot"]);
    fs::remove_file(at("classes.txt")).unwrap();
    assert_eq!(train.name(2), "train-images-idx3-ubyte#2");
    let all = Dataset::open(folder.path(), &part(Part::All)).unwrap();
    assert_eq!(all.labels().unwrap(), [2, 0, 1, 1]);
    assert_eq!(all.name(3), "t10k-images-idx3-ubyte.gz#0");
    // One file, and its labels beside it; both parts at once.
    assert_eq!(read(at("t10k-images-idx3-ubyte.gz")).labels().unwrap(), [1]);
    let (one, other) = Dataset::open_split(folder.path(), &OpenOptions::default(), 0.5, 0).unwrap();
    assert_eq!((one.len(), other.len(), other.classes().len()), (3, 1, 3));
    // Packed and unpacked beside each other are the same set.
    fs::write(at("train-images-idx3-ubyte.gz"), gzip(&idx(&[3, 1, 2], &[0, 255, 51, 102, 1, 2]))).unwrap();
    assert_eq!(read(folder.path()).fingerprint(), train.fingerprint());
}

#[test]
fn cifar_records() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("data_batch_1.bin"), [record(9, [1, 2, 3]), record(0, [4, 5, 6])].concat()).unwrap();
    fs::write(at("data_batch_2.bin"), record(3, [7, 8, 9])).unwrap();
    fs::write(at("test_batch.bin"), record(5, [10, 11, 12])).unwrap();
    let train = read(folder.path());
    assert_eq!((train.len(), train.shape()), (3, [3, 32, 32].as_slice()));
    assert_eq!(train.labels().unwrap(), [9, 0, 3]);
    assert_eq!(train.classes()[3], "cat");
    assert_eq!(train.rows_f32(&[2]).unwrap()[[0, 1024]], 8.0 / 255.0);
    assert_eq!(train.name(2), "data_batch_2.bin#0");
    assert_eq!(Dataset::open(folder.path(), &part(Part::Test)).unwrap().labels().unwrap(), [5]);
    assert_eq!(read(at("test_batch.bin")).len(), 1);
    // CIFAR-100: two labels, of which the second counts.
    let hundred = tempfile::tempdir().unwrap();
    let fine = [vec![4], record(77, [1, 2, 3])].concat();
    fs::write(hundred.path().join("train.bin"), fine).unwrap();
    assert_eq!(read(hundred.path()).labels().unwrap(), [77]);
    assert_eq!(read(hundred.path()).classes().len(), 100);
}

#[test]
fn cifar_sprites() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sprite =
        |first: u8| RgbImage::from_fn(1024, 2, |x, y| Rgb([first + y as u8, (x / 32) as u8, (x % 32) as u8]));
    sprite(10).save(at("data_batch_1.png")).unwrap();
    sprite(20).save(at("data_batch_2.png")).unwrap();
    fs::write(at("train_lables.json"), "[1,2,3,4]").unwrap();
    let train = read(folder.path());
    assert_eq!((train.len(), train.shape()), (4, [3, 32, 32].as_slice()));
    assert_eq!(train.labels().unwrap(), [1, 2, 3, 4]);
    let last = train.rows_f32(&[3]).unwrap().mapv(|value| (value * 255.0).round() as u8);
    // Red is the image's number, green the line of the pixel, blue its column.
    assert_eq!(last[[0, 0]], 21);
    assert_eq!((last[[0, 1024 + 5 * 32 + 7]], last[[0, 2048 + 5 * 32 + 7]]), (5, 7));
    assert_eq!(read(at("data_batch_2.png")).labels().unwrap(), [3, 4]);
    fs::remove_file(at("train_lables.json")).unwrap();
    assert!(read(folder.path()).labels().is_none());
}

#[test]
fn folders_of_images() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("dog/deep")).unwrap();
    fs::create_dir_all(at("cat")).unwrap();
    let colored = |value: u8| RgbImage::from_pixel(6, 4, Rgb([value, 2, 3]));
    colored(1).save(at("dog/deep/b.png")).unwrap();
    colored(5).save(at("cat/a.png")).unwrap();
    fs::write(at("cat/notes.txt"), "not an image").unwrap();
    fs::write(at("cat/.hidden.png"), "not an image").unwrap();
    let data = read(folder.path());
    assert_eq!((data.len(), data.shape()), (2, [3, 4, 6].as_slice()));
    assert_eq!(
        (data.classes(), data.labels().unwrap()),
        (["cat", "dog"].map(String::from).as_slice(), vec![0, 1])
    );
    assert_eq!((data.name(0), data.name(1)), ("cat/a.png".into(), "dog/deep/b.png".into()));
    assert_eq!(data.rows_f32(&[0]).unwrap()[[0, 0]], 5.0 / 255.0);

    // A gray file among coloured ones becomes like them when asked to.
    GrayImage::from_pixel(6, 4, Luma([9])).save(at("dog/c.pgm")).unwrap();
    let rgb = OpenOptions { color: Color::Rgb, ..OpenOptions::default() };
    assert_eq!(Dataset::open(folder.path(), &rgb).unwrap().shape(), [3, 4, 6]);
    let gray = OpenOptions { color: Color::Gray, ..OpenOptions::default() };
    assert_eq!(Dataset::open(folder.path(), &gray).unwrap().shape(), [1, 4, 6]);
    let only = OpenOptions { extension: Some("pgm".into()), ..OpenOptions::default() };
    assert_eq!(Dataset::open(folder.path(), &only).unwrap().labels().unwrap(), [0]);
    // Sizes: shorter side to 8, then the middle.
    let transforms =
        vec![Transform::ResizeShorter { side: 8 }, Transform::CenterCrop { height: 8, width: 10 }];
    let sized = OpenOptions { transforms, color: Color::Rgb, ..OpenOptions::default() };
    assert_eq!(Dataset::open(folder.path(), &sized).unwrap().shape(), [3, 8, 10]);
    // One file is a data set of one row.
    let one = read(at("dog/c.pgm"));
    assert_eq!((one.len(), one.shape(), one.name(0)), (1, [1, 4, 6].as_slice(), "c.pgm".into()));
    // The first rows only.
    let first = OpenOptions { limit: Some(1), ..OpenOptions::default() };
    let first = Dataset::open(folder.path(), &first).unwrap();
    assert_eq!((first.len(), first.classes().len()), (1, 2));
}

#[test]
fn train_and_test_folders_are_parts_not_classes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [("train/a/1", 1), ("train/b/2", 2), ("test/b/3", 3)] {
        let path = folder.path().join(format!("{name}.png"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        GrayImage::from_pixel(2, 2, Luma([value])).save(path).unwrap();
    }
    let (train, test) = Dataset::open_split(folder.path(), &OpenOptions::default(), 0.5, 0).unwrap();
    assert_eq!((train.labels().unwrap(), test.labels().unwrap()), (vec![0, 1], vec![1]));
    assert_eq!(test.classes(), ["a", "b"]);
    assert_eq!(test.name(0), "test/b/3.png");
}

#[test]
fn transparent_pixels_are_seen_on_white() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("glass.png");
    RgbaImage::from_fn(3, 1, |x, _| Rgba([10, 20, 30, [0, 255, 51][x as usize]])).save(&path).unwrap();
    let row = read(&path).to_f32().unwrap().mapv(|value| (value * 255.0).round());
    assert_eq!(row, array![[255., 10., 206., 255., 20., 208., 255., 30., 210.]]);
}

#[test]
fn sixteen_bits_and_jpeg_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let deep = image::ImageBuffer::<Luma<u16>, Vec<u16>>::from_pixel(2, 2, Luma([65535]));
    deep.save(folder.path().join("deep.png")).unwrap();
    assert_eq!(read(folder.path().join("deep.png")).to_f32().unwrap(), array![[1., 1., 1., 1.]]);
    RgbImage::from_pixel(16, 8, Rgb([200, 100, 50])).save(folder.path().join("photo.jpg")).unwrap();
    let photo = read(folder.path().join("photo.jpg"));
    assert_eq!(photo.shape(), [3, 8, 16]);
    assert!((photo.to_f32().unwrap()[[0, 0]] * 255.0 - 200.0).abs() < 4.0);
}

#[test]
fn other_image_formats_are_resized_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train-images-idx3-ubyte");
    fs::write(&path, idx(&[2, 2, 2], &[7, 7, 7, 7, 9, 9, 9, 9])).unwrap();
    let transforms = vec![Transform::Resize { height: 4, width: 6 }];
    let data =
        Dataset::open(&path, &OpenOptions { transforms, color: Color::Rgb, ..Default::default() }).unwrap();
    assert_eq!(data.shape(), [3, 4, 6]);
    assert!(data.rows_f32(&[1]).unwrap().iter().all(|&value| value == 9.0 / 255.0));
    assert_eq!(data.name(1), "train-images-idx3-ubyte#1");
}

#[test]
fn numpy_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    ndarray_npy::write_npy(at("t.npy"), &array![[1.5_f64, 2.0], [3.0, 4.0]]).unwrap();
    assert_eq!(read(at("t.npy")).to_f32().unwrap(), array![[1.5, 2.0], [3.0, 4.0]]);
    // Fortran order is an order of storage, not of meaning.
    let transposed: Array2<f32> = array![[1.0_f32, 3.0], [2.0, 4.0]].reversed_axes();
    ndarray_npy::write_npy(at("f.npy"), &transposed).unwrap();
    assert_eq!(read(at("f.npy")).to_f32().unwrap(), transposed);
    // Labels beside the examples.
    ndarray_npy::write_npy(at("images.npy"), &Array3::<u8>::from_elem((2, 4, 5), 51)).unwrap();
    ndarray_npy::write_npy(at("labels.npy"), &array![1_i64, 0]).unwrap();
    let images = read(at("images.npy"));
    assert_eq!((images.shape(), images.labels().unwrap()), ([1, 4, 5].as_slice(), vec![1, 0]));
    assert_eq!(images.rows_f32(&[0]).unwrap()[[0, 0]], 0.2);
    // Channels last, seen and told.
    let last = Array4::from_shape_fn((1, 4, 5, 3), |(_, y, x, c)| (c * 100 + y * 10 + x) as u8);
    ndarray_npy::write_npy(at("last.npy"), &last).unwrap();
    let last = read(at("last.npy"));
    assert_eq!(last.shape(), [3, 4, 5]);
    assert_eq!(last.rows_f32(&[0]).unwrap()[[0, 20 + 5 + 2]], 112.0 / 255.0);
    let told = OpenOptions { layout: Layout::ChannelsFirst, ..Default::default() };
    assert_eq!(Dataset::open(at("last.npy"), &told).unwrap().shape(), [4, 5, 3]);
    // Rows of 6 that are images of 2x3 with values to 10.
    ndarray_npy::write_npy(at("flat.npy"), &Array2::<i64>::from_elem((1, 6), 5)).unwrap();
    let shaped = OpenOptions { shape: Some(vec![1, 2, 3]), maximum: Some(10.0), ..Default::default() };
    let shaped = Dataset::open(at("flat.npy"), &shaped).unwrap();
    assert_eq!((shaped.shape(), shaped.to_f32().unwrap()[[0, 3]]), ([1, 2, 3].as_slice(), 0.5));
}

#[test]
fn numpy_archives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mnist.npz");
    let mut npz = ndarray_npy::NpzWriter::new_compressed(fs::File::create(&path).unwrap());
    npz.add_array("x_train", &Array3::<u8>::zeros((3, 2, 2))).unwrap();
    npz.add_array("y_train", &array![0_u8, 1, 2]).unwrap();
    npz.add_array("x_test", &Array3::<u8>::ones((1, 2, 2))).unwrap();
    npz.add_array("y_test", &array![1_u8]).unwrap();
    npz.finish().unwrap();
    let (train, test) = Dataset::open_split(&path, &OpenOptions::default(), 0.5, 0).unwrap();
    assert_eq!((train.len(), test.len(), test.classes().len()), (3, 1, 3));
    assert_eq!(test.name(0), "mnist.npz#0");
    let all = Dataset::open(&path, &part(Part::All)).unwrap();
    assert_eq!((all.len(), all.name(3)), (4, "mnist.npz/x_test#0".into()));
    let path = folder.path().join("small.npz");
    let mut npz = ndarray_npy::NpzWriter::new(fs::File::create(&path).unwrap());
    npz.add_array("X", &array![[1.0_f32], [2.0]]).unwrap();
    npz.add_array("y", &Array1::from(vec![1_i64, 0]).insert_axis(ndarray::Axis(1))).unwrap();
    npz.finish().unwrap();
    assert_eq!(read(&path).labels().unwrap(), [1, 0]);
}

const PEOPLE: &str =
    "age; job; income; month; class\n31;nurse;10.5;10;yes\n40;cook;3e3;2;no\n25;nurse;-1;2;no\n";

#[test]
fn csv_with_categories() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    fs::write(&path, PEOPLE).unwrap();
    let options = OpenOptions {
        label: Some("class".into()),
        categorical: vec!["month".into()],
        ..OpenOptions::default()
    };
    let data = Dataset::open(&path, &options).unwrap();
    assert_eq!(data.feature_names(), ["age", "job=cook", "job=nurse", "income", "month=2", "month=10"]);
    assert_eq!(
        data.to_f32().unwrap(),
        array![[31., 0., 1., 10.5, 0., 1.], [40., 1., 0., 3000., 1., 0.], [25., 0., 1., -1., 1., 0.]]
    );
    assert_eq!(
        (data.classes(), data.labels().unwrap()),
        (["no", "yes"].map(String::from).as_slice(), vec![1, 0, 0])
    );
    assert_eq!(
        data.columns()[1].kind,
        ColumnKind::Categorical { values: vec!["cook".into(), "nurse".into()] }
    );
    // Another file, coded alike although it has neither a cook nor a label column nor the same order.
    let other = folder.path().join("other.tsv.gz");
    fs::write(&other, gzip(b"\xef\xbb\xbfjob\tage\tmonth\tincome\nnurse\t1\t10\t2\n")).unwrap();
    let other = Dataset::open(other, &OpenOptions::default().like(&data)).unwrap();
    assert_eq!(other.to_f32().unwrap(), array![[1., 0., 1., 2., 0., 1.]]);
    // A limit takes rows away, not the values of categories.
    let first = Dataset::open(&path, &OpenOptions { limit: Some(1), ..options }).unwrap();
    assert_eq!((first.len(), first.feature_names()), (1, data.feature_names()));
}

#[test]
fn csv_without_names_and_with_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.csv");
    fs::write(&path, "0,4,8,2,7\n1,1,1,1,3\n").unwrap();
    let options = OpenOptions {
        label: Some("4".into()),
        shape: Some(vec![1, 2, 2]),
        maximum: Some(8.0),
        ..Default::default()
    };
    let data = Dataset::open(&path, &options).unwrap();
    assert_eq!(
        (data.shape(), data.labels().unwrap(), data.classes().len()),
        ([1, 2, 2].as_slice(), vec![7, 3], 8)
    );
    assert_eq!(data.rows_f32(&[0]).unwrap(), array![[0., 0.5, 1., 0.25]]);

    fs::write(&path, "a,b\n1,red\n,blue\n3,\n\"4\",\"red\"\n").unwrap();
    let drop = OpenOptions { missing: Missing::DropRow, ..Default::default() };
    let data = Dataset::open(&path, &drop).unwrap();
    assert_eq!(data.to_f32().unwrap(), array![[1., 1.], [4., 1.]]);
    assert_eq!(data.name(1), "digits.csv#3");
    fs::write(&path, "a,b\n1,red\n3,\n").unwrap();
    let count = OpenOptions { missing: Missing::Category, ..Default::default() };
    assert_eq!(Dataset::open(&path, &count).unwrap().feature_names(), ["a", "b=missing", "b=red"]);
}

/// A table in two row groups: a number, a number that may be empty, text, bytes.
pub(crate) fn write_parquet(path: &Path, rows: &[(i64, Option<f64>, &str)], images: &[Vec<u8>]) {
    let bytes = if images.is_empty() { "" } else { "required binary image;" };
    let schema = format!(
        "message table {{ required int64 count; optional double price; required binary kind (UTF8); {bytes} }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = WriterProperties::builder().set_compression(parquet::basic::Compression::SNAPPY).build();
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let half = rows.len().div_ceil(2);
    for (index, rows) in rows.chunks(half).enumerate() {
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let counts: Vec<i64> = rows.iter().map(|row| row.0).collect();
        column.typed::<Int64Type>().write_batch(&counts, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let prices: Vec<f64> = rows.iter().filter_map(|row| row.1).collect();
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.1.is_some())).collect();
        column.typed::<DoubleType>().write_batch(&prices, Some(&levels), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let kinds: Vec<ByteArray> = rows.iter().map(|row| row.2.into()).collect();
        column.typed::<ByteArrayType>().write_batch(&kinds, None, None).unwrap();
        column.close().unwrap();
        if !images.is_empty() {
            let mut column = group.next_column().unwrap().unwrap();
            let images = &images[index * half..index * half + rows.len()];
            let images: Vec<ByteArray> = images.iter().map(|image| image.clone().into()).collect();
            column.typed::<ByteArrayType>().write_batch(&images, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn parquet_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.parquet");
    write_parquet(&path, &[(1, Some(0.5), "tea"), (2, Some(1.5), "milk"), (3, Some(2.5), "tea")], &[]);
    let data = read(&path);
    assert_eq!(data.feature_names(), ["count", "price", "kind=milk", "kind=tea"]);
    assert_eq!(data.to_f32().unwrap(), array![[1., 0.5, 0., 1.], [2., 1.5, 1., 0.], [3., 2.5, 0., 1.]]);
    let options =
        OpenOptions { label: Some("kind".into()), drop: vec!["count".into()], ..Default::default() };
    let data = Dataset::open(&path, &options).unwrap();
    assert_eq!((data.shape(), data.labels().unwrap()), ([1].as_slice(), vec![1, 0, 1]));
    write_parquet(&path, &[(1, Some(0.5), "tea"), (2, None, "milk"), (3, Some(2.5), "tea")], &[]);
    let drop = OpenOptions { missing: Missing::DropRow, ..Default::default() };
    assert_eq!(Dataset::open(&path, &drop).unwrap().rows_f32(&[1]).unwrap(), array![[3., 2.5, 1.]]);
}

#[test]
fn parquet_with_images() {
    let folder = tempfile::tempdir().unwrap();
    let png = |value: u8| {
        let path = folder.path().join("one.png");
        GrayImage::from_pixel(3, 2, Luma([value])).save(&path).unwrap();
        fs::read(path).unwrap()
    };
    let path = folder.path().join("shop.parquet");
    write_parquet(
        &path,
        &[(1, None, "tea"), (2, None, "milk"), (3, None, "tea")],
        &[png(0), png(51), png(255)],
    );
    let options = OpenOptions { label: Some("kind".into()), ..Default::default() };
    let data = Dataset::open(&path, &options).unwrap();
    assert_eq!((data.shape(), data.labels().unwrap()), ([1, 2, 3].as_slice(), vec![1, 0, 1]));
    assert_eq!(data.rows_f32(&[1]).unwrap()[[0, 5]], 0.2);
    assert_eq!(data.classes(), ["milk", "tea"]);
}
