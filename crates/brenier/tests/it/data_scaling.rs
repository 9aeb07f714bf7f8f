//! Scaling there and back, and the order of rows.

use brenier::data::{Constants, Dataset, OpenOptions, Scaling, ScalingConfig, ScalingMethod, ScalingUnit};
use ndarray::{Array2, array};
use proptest::prelude::*;

fn table(rows: usize, values: &[f32]) -> Dataset {
    let columns = values.len() / rows;
    let rows = Array2::from_shape_vec((rows, columns), values.to_vec()).unwrap();
    Dataset::from_rows("table", &[columns], rows.view()).unwrap()
}

fn numbered(rows: usize) -> Dataset {
    table(rows, &(0..rows).map(|row| row as f32).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn there_and_back(
        rows in prop::collection::vec(prop::array::uniform3(-1e4_f32..1e4), 2..20),
        method in prop::sample::select(vec![
            ScalingMethod::Identity, ScalingMethod::Symmetric, ScalingMethod::Standardise,
        ]),
    ) {
        let data = table(rows.len(), rows.as_flattened());
        let config = ScalingConfig { method, constants: Constants::Keep, ..Default::default() };
        let scaling = Scaling::fit(&data, &config).unwrap();
        let values = data.to_f32().unwrap();
        let back = scaling.invert(scaling.apply(values.view()).unwrap().view()).unwrap();
        for (value, back) in values.iter().zip(&back) {
            prop_assert!((value - back).abs() <= 1e-6 * 1e4, "{value} {back}");
        }
        let values = values.mapv(f64::from);
        let back = scaling.invert(scaling.apply(values.view()).unwrap().view()).unwrap();
        prop_assert!(values.iter().zip(&back).all(|(value, back)| (value - back).abs() <= 1e-10));
        let text = serde_json::to_string(&scaling).unwrap();
        prop_assert_eq!(serde_json::from_str::<Scaling>(&text).unwrap(), scaling);
    }

    #[test]
    fn a_split_has_every_row_once(rows in 2_usize..200, fraction in 0.01..0.99, seed: u64) {
        let (train, test) = numbered(rows).split(fraction, seed).unwrap();
        prop_assert!(!train.is_empty() && !test.is_empty());
        let mut seen: Vec<f32> = train.to_f32().unwrap().iter().chain(&test.to_f32().unwrap()).copied().collect();
        seen.sort_by(f32::total_cmp);
        prop_assert_eq!(seen, (0..rows).map(|row| row as f32).collect::<Vec<_>>());
    }
}

#[test]
fn standardised_columns_have_mean_zero_and_variance_one() {
    let data = table(4, &[1e4, 1.0, 1e4 + 1.0, 3.0, 1e4 + 2.0, 5.0, 1e4 + 3.0, 7.0]);
    let scaling = Scaling::fit(&data, &ScalingConfig::default()).unwrap();
    let scaled = scaling.apply(data.rows_f64(&[0, 1, 2, 3]).unwrap().view()).unwrap();
    for column in scaled.columns() {
        assert!(column.mean().unwrap().abs() < 1e-12);
        assert!((column.mapv(|value| value * value).mean().unwrap() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn images_run_from_minus_one_to_one_or_by_channel() {
    let data = Dataset::from_pixels("images", &[3, 1, 2], vec![0, 255, 10, 20, 30, 40]).unwrap();
    let scaling = Scaling::fit(&data, &ScalingConfig::default()).unwrap();
    let scaled = scaling.apply(data.to_f32().unwrap().view()).unwrap();
    assert_eq!((scaled[[0, 0]], scaled[[0, 1]]), (-1.0, 1.0));
    let config = ScalingConfig { method: ScalingMethod::Standardise, ..Default::default() };
    let scaling = Scaling::fit(&data, &config).unwrap();
    assert_eq!(scaling.apply(data.rows_f64(&[0]).unwrap().view()).unwrap()[[0, 3]].round(), 1.0);
    assert_eq!(scaling.of(2), scaling.of(3));
    // Pixel by pixel a single image is constant.
    let config = ScalingConfig { unit: ScalingUnit::Feature, ..config };
    let message = Scaling::fit(&data, &config).unwrap_err().to_string();
    assert!(message.contains("channel 0, row 0, column 0 is 0 in all 1 rows"), "{message}");
    let kept = ScalingConfig { constants: Constants::Keep, ..config };
    let scaling = Scaling::fit(&data, &kept).unwrap();
    assert!(scaling.apply(data.to_f32().unwrap().view()).unwrap().iter().all(|&value| value == 0.0));
}

#[test]
fn categories_become_minus_one_and_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "size,color\n1,red\n3,blue\n5,green\n").unwrap();
    let data = Dataset::open(&path, &OpenOptions::default()).unwrap();
    // Green is in no training row, and that is no reason to refuse.
    let scaling = Scaling::fit(&data.rows(0..2).unwrap(), &ScalingConfig::default()).unwrap();
    let scaled = scaling.apply(data.to_f32().unwrap().view()).unwrap();
    assert_eq!(scaled, array![[-1., -1., -1., 1.], [1., 1., -1., -1.], [3., -1., 1., -1.]]);
}

#[test]
fn a_scaling_that_cannot_be_used_is_not_read() {
    assert!(serde_json::from_str::<Scaling>(r#"{"shape":[2],"shift":[0,0],"scale":[1,0]}"#).is_err());
    assert!(serde_json::from_str::<Scaling>(r#"{"shape":[3],"shift":[0,0],"scale":[1,1]}"#).is_err());
    assert!(serde_json::from_str::<Scaling>(r#"{"shape":[],"shift":[],"scale":[]}"#).is_err());
    let scaling = Scaling::identity(&[2]).unwrap();
    assert!(scaling.apply(array![[1.0, 2.0, 3.0]].view()).is_err());
}

#[test]
fn an_order_depends_on_its_seed_alone() {
    // Written down: a run resumed after an upgrade must meet the same rows.
    assert_eq!(numbered(10).shuffled_order(42), ORDER_OF_SEED_42);
    let data = numbered(1000);
    assert_eq!(data.shuffled_order(7), data.shuffled_order(7));
    assert_ne!(data.shuffled_order(7), data.shuffled_order(8));
    let (train, test) = data.split(0.8, 3).unwrap();
    assert_eq!((train.len(), test.len()), (800, 200));
    let again = data.split(0.8, 3).unwrap();
    assert_eq!((train.fingerprint(), test.fingerprint()), (again.0.fingerprint(), again.1.fingerprint()));
    assert_ne!(train.fingerprint(), data.split(0.8, 4).unwrap().0.fingerprint());
    assert_eq!(data.shuffled(5).fingerprint(), data.select(&data.shuffled_order(5)).unwrap().fingerprint());
}

const ORDER_OF_SEED_42: [usize; 10] = [7, 1, 5, 4, 6, 9, 3, 8, 2, 0];

#[test]
fn selections_keep_names_and_labels() {
    let classes = vec!["even".to_owned(), "odd".to_owned()];
    let data = numbered(6).with_labels(vec![0, 1, 0, 1, 0, 1], classes).unwrap();
    let some = data.rows(1..5).unwrap().select(&[3, 0, 0]).unwrap();
    assert_eq!(some.to_f32().unwrap(), array![[4.], [1.], [1.]]);
    assert_eq!(some.labels().unwrap(), [0, 1, 1]);
    assert_eq!((some.name(0), some.name(1)), ("table#4".into(), "table#1".into()));
}

#[test]
fn a_fingerprint_is_what_sha256sum_says() {
    // printf 'u8 1 1 2\n\001\002\003\004' | sha256sum
    let data = Dataset::from_pixels("images", &[1, 1, 2], vec![1, 2, 3, 4]).unwrap();
    assert_eq!(data.fingerprint(), "089e00ebe4cdefd5891b5f30824446079d9796846e626ace16a5c0e812c2b506");
    assert_ne!(data.fingerprint(), data.select(&[1, 0]).unwrap().fingerprint());
}
