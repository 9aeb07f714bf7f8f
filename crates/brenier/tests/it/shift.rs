//! Why the mean score moved: against closed forms and planted shifts.

use brenier::ScoreFn;
use brenier::attribute::{Remark, Shift, ShiftConfig, Subgroups, shift, shift_by};
use brenier::data::{Dataset, OpenOptions, Population};
use brenier::transport::MatchConfig;
use ndarray::{Array1, Array2, ArrayView1, Axis, array};

use crate::planted_shift::{COLUMNS, PlantedShift, score};
use crate::shared::normal;

fn population(name: &str, rows: &Array2<f64>) -> Population {
    let rows = rows.mapv(|v| v as f32);
    Population::new(name, Dataset::from_rows(name, &[rows.ncols()], rows.view()).unwrap()).unwrap()
}

fn means(population: &Population) -> Array1<f64> {
    let rows = population.rows();
    rows.rows_f64(&(0..rows.len()).collect::<Vec<_>>()).unwrap().mean_axis(Axis(0)).unwrap()
}

fn linear(weights: Array1<f64>) -> ScoreFn<impl Fn(ArrayView1<f64>, usize) -> (f64, Array1<f64>)> {
    ScoreFn::new(&[weights.len()], move |x, _| (weights.dot(&x), weights.clone()))
}

#[test]
fn a_linear_score_credits_each_column_with_the_difference_of_its_means() {
    let weights = array![2.0, -1.0, 0.5, 0.0];
    let mixing = normal(4, 4, 9);
    for (n, k, config) in [
        (150, 150, MatchConfig::default()),
        (90, 133, MatchConfig::default()),
        (230, 170, MatchConfig { exact: 100, block: 50, seed: 1 }),
    ] {
        let a = population("last year", &normal(n, 4, 1).dot(&mixing));
        let b = population("this year", &(normal(k, 4, 2).dot(&mixing) * 1.3 + 0.7));
        let config = ShiftConfig { matching: config, ..ShiftConfig::default() };
        let found = shift(&linear(weights.clone()), 0, &a, &b, &config).unwrap();
        let expected = (means(&b) - means(&a)) * &weights;
        for (column, truth) in found.columns.iter().zip(&expected) {
            assert!((column.credit.value - truth).abs() < 1e-9, "{n} {k} {}", column.name);
        }
        assert!((found.change.value - expected.sum()).abs() < 1e-9 && found.residual < 1e-9);
        assert_eq!(found.blocks, if config.matching.exact == 100 { 5 } else { 1 });
        assert_eq!((found.from.rows, found.to.rows), (n, k));
        assert!(found.columns.iter().all(|c| c.credit.interval.unwrap().covers(c.credit.value)));
        // Credit of a column that the score does not use is exactly 0, and never significant.
        assert!(found.columns[3].credit.value == 0.0 && !found.columns[3].significant);
    }
}

#[test]
fn a_column_that_stays_gets_nothing_though_it_acts_together_with_one_that_moves() {
    let x = normal(200, 3, 4).dot(&normal(3, 3, 5));
    let mut y = x.clone();
    y.column_mut(0).mapv_inplace(|v| v + 2.0);
    let order: Vec<usize> = (0..200).map(|i| i * 7 % 200).collect();
    let (a, b) = (population("a", &x), population("b", &y.select(Axis(0), &order)));
    let product = ScoreFn::new(&[3], |x, _| (x[0] * x[1], array![x[1], x[0], 0.0]));
    let found = shift(&product, 0, &a, &b, &ShiftConfig::default()).unwrap();
    let expected = 2.0 * means(&a)[1];
    assert!((found.columns[0].credit.value - expected).abs() < 1e-6, "{:?} {expected}", found.columns[0]);
    assert!(found.columns[1].credit.value.abs() < 1e-6 && found.columns[2].credit.value == 0.0);
    let moved: Vec<bool> = found.columns.iter().map(|c| c.moved > c.moved_by_chance).collect();
    assert_eq!(moved, [true, false, false]);
    assert!((found.columns[0].mean_difference.unwrap() - 2.0).abs() < 1e-6);
    // 200 rows: fewer than were tested.
    assert!(found.remarks.contains(&Remark::FewRows { rows: 200 }), "{:?}", found.remarks);
}

#[test]
fn the_same_population_twice_has_no_credit_and_says_so() {
    let a = population("a", &normal(60, COLUMNS, 1));
    let found = shift(&score(), 0, &a, &a, &ShiftConfig::default()).unwrap();
    assert_eq!(found.remarks, [Remark::Same]);
    assert!(found.columns.iter().all(|c| c.credit.value == 0.0 && !c.significant && c.moved == 0.0));
    assert!(found.ranking().is_none() && found.change.value == 0.0);
    assert!(found.remarks[0].to_string().contains("same rows"));
}

#[test]
fn what_cannot_be_concluded_is_said() {
    let weights = array![1.0, -1.0];
    let x = normal(400, 2, 1);
    let say = |by: ndarray::Array1<f64>, rows: usize| -> Shift {
        let y = &normal(rows, 2, 2) + &by;
        let x = x.slice(ndarray::s![..rows, ..]).to_owned();
        shift(
            &linear(weights.clone()),
            0,
            &population("a", &x),
            &population("b", &y),
            &ShiftConfig::default(),
        )
        .unwrap()
    };
    // Nothing moved.
    let found = say(array![0.0, 0.0], 400);
    assert!(matches!(found.remarks[0], Remark::NoChange { .. }), "{:?}", found.remarks);
    assert!(found.ranking().is_none());
    // Two columns moved and cancel.
    let found = say(array![3.0, 3.0], 400);
    let ratio = found
        .remarks
        .iter()
        .find_map(|r| if let Remark::Cancelling { ratio } = r { Some(*ratio) } else { None });
    assert!(ratio.unwrap() > 5.0, "{:?}", found.remarks);
    // A clear move, by more than the data's range.
    let found = say(array![20.0, 0.0], 400);
    assert_eq!(found.remarks, [Remark::Apart { column: "feature 0".into() }]);
    assert_eq!(found.ranking().unwrap()[0], 0);
    assert!(found.columns[0].significant && !found.columns[1].significant);
    let few = say(array![2.0, 0.0], 15);
    assert_eq!(few.remarks[0], Remark::NoIntervals { rows: 15, needed: 20 });
    assert!(few.columns.iter().all(|c| c.credit.interval.is_none() && !c.significant));
    for remark in found.remarks.iter().chain(&few.remarks) {
        assert!(!remark.to_string().contains('\n'));
    }
    let bad = ShiftConfig { batches: 1, ..ShiftConfig::default() };
    let a = population("a", &x);
    assert!(shift(&linear(weights), 0, &a, &a, &bad).is_err());
}

#[test]
fn categories_are_credited_as_one_column() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, header: &str, share: usize| {
        let rows: String = (0..90)
            .map(|i| {
                let colour = if i % 10 < share {
                    "red"
                } else if i % 2 == 0 {
                    "blue"
                } else {
                    "green"
                };
                let size = 0.01 * ((i * 37) % 90) as f64;
                if header.starts_with("size") {
                    format!("{size},{colour}\n")
                } else {
                    format!("{colour},{size}\n")
                }
            })
            .collect();
        let path = folder.path().join(name);
        std::fs::write(&path, format!("{header}\n{rows}")).unwrap();
        path.display().to_string()
    };
    let (before, after) = (write("a.csv", "size,colour", 2), write("b.csv", "colour,size", 5));
    let a = Population::open(&before, &OpenOptions::default(), None).unwrap();
    let b = Population::open(&after, &OpenOptions::default(), None).unwrap();
    // Columns in another order are matched by name.
    let names = a.rows().feature_names();
    let red = names.iter().position(|name| name == "colour=red").unwrap();
    let mut weights = Array1::zeros(names.len());
    (weights[0], weights[red]) = (0.1, 1.0);
    let found = shift(&linear(weights), 0, &a, &b, &ShiftConfig::default()).unwrap();
    let column = |name: &str| found.columns.iter().find(|c| c.name == name).unwrap();
    assert_eq!(found.columns.len(), 2);
    assert!((column("colour").credit.value - 0.3).abs() < 1e-6);
    assert!((column("colour").moved - 0.3).abs() < 1e-6 && column("colour").mean_difference.is_none());
    assert!(column("size").credit.value.abs() < 1e-6);
}

#[test]
fn subgroups_are_matched_by_themselves_and_sum_to_the_change() {
    let weights = array![2.0, -1.0];
    let (x, y) = (normal(200, 2, 3), normal(150, 2, 4) + 0.4);
    let (a, b) = (population("a", &x), population("b", &y));
    // Groups 0 and 1 change their sizes; group 2 is in the second population only, group 3 in none.
    let groups = Subgroups {
        by: "shop".into(),
        names: ["north", "south", "new", "closed"].map(String::from).to_vec(),
        from: (0..200).map(|i| usize::from(i % 4 == 0)).collect(),
        to: (0..150).map(|i| [0, 1, 1, 2, 1][i % 5]).collect(),
    };
    let mut heard = Vec::new();
    let config = ShiftConfig::default();
    let found =
        shift_by(&linear(weights.clone()), 0, (&a, &b), &groups, &config, &mut |part| heard.push(part));
    let found = found.unwrap();
    let score = |rows: &Array2<f64>, of: &[usize], g: usize| {
        let chosen: Vec<usize> = (0..of.len()).filter(|&i| of[i] == g).collect();
        let rows = rows.mapv(|v| f64::from(v as f32)).select(Axis(0), &chosen);
        (rows.mean_axis(Axis(0)).unwrap(), chosen.len() as f64 / of.len() as f64)
    };
    let change = (means(&b) - means(&a)).dot(&weights);
    assert!((found.whole.change.value - change).abs() < 1e-9);
    assert!((found.within.value + found.sizes.value - change).abs() < 1e-12);
    let columns: f64 = found.whole.columns.iter().map(|c| c.credit.value).sum();
    assert!((columns - found.within.value).abs() < 1e-9 && found.whole.residual < 1e-9);
    assert_eq!(found.groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["north", "south", "new"]);
    for (g, group) in found.groups[..2].iter().enumerate() {
        let ((m, p), (n, q)) = (score(&x, &groups.from, g), score(&y, &groups.to, g));
        let own = group.shift.as_ref().unwrap();
        for (j, column) in own.columns.iter().enumerate() {
            assert!((column.credit.value - weights[j] * (n[j] - m[j])).abs() < 1e-9, "{g} {j}");
        }
        assert!((group.within.value - 0.5 * (p + q) * (n - m).dot(&weights)).abs() < 1e-9);
        assert!(own.change.interval.is_some());
    }
    let new = &found.groups[2];
    assert!(new.shift.is_none() && new.share_from == 0.0 && (new.share_to - 0.2).abs() < 1e-12);
    let told = Remark::OneSided { group: "new".into(), population: "b".into() };
    assert!(found.whole.remarks.contains(&told), "{:?}", found.whole.remarks);
    assert!(heard.windows(2).all(|pair| pair[0] <= pair[1]) && (heard.last().unwrap() - 1.0).abs() < 1e-9);
    // All rows in one group: the shift without groups.
    let one = Subgroups { names: vec!["all".into()], from: vec![0; 200], to: vec![0; 150], ..groups };
    let whole = shift(&linear(weights.clone()), 0, &a, &b, &config).unwrap();
    let same = shift_by(&linear(weights), 0, (&a, &b), &one, &config, &mut |_| {}).unwrap();
    assert_eq!(same.whole.columns, whole.columns);
    assert_eq!((same.sizes.value, same.whole.change), (0.0, whole.change));
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_cores() {
    let planted = PlantedShift::draw(3);
    let (a, b) = planted.populations((150, 120), 8);
    let config =
        ShiftConfig { matching: MatchConfig { exact: 60, block: 40, seed: 2 }, ..ShiftConfig::default() };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| shift(&score(), 0, &a, &b, &config).unwrap())
    };
    let one = with(1);
    assert_eq!(one, with(3));
    assert!(one.residual < 1e-3 * one.change.value.abs().max(0.1), "{one:?}");
    let json = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<Shift>(&json).unwrap(), one);
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    // `examples/shift_coverage.rs` does this for 100 shifts and more rows.
    let (mut covered, mut asked, mut first) = (0, 0, 0);
    let shifts = 40;
    for seed in 0..shifts {
        let planted = PlantedShift::draw(seed);
        let truth = planted.truth(4000, 1000 + seed);
        let (a, b) = planted.populations((300, 300), seed);
        let config = ShiftConfig { exchanges: 0, ..ShiftConfig::default() };
        let found = shift(&score(), 0, &a, &b, &config).unwrap();
        for (column, expected) in found.columns.iter().zip(&truth) {
            covered += usize::from(column.credit.interval.unwrap().covers(*expected));
            asked += 1;
        }
        let largest =
            |values: Vec<f64>| (0..COLUMNS).max_by(|&i, &j| values[i].abs().total_cmp(&values[j].abs()));
        let found = largest(found.columns.iter().map(|c| c.credit.value).collect());
        first += usize::from(found == largest(truth.to_vec()));
    }
    let coverage = covered as f64 / asked as f64;
    assert!((0.90..=0.99).contains(&coverage), "{coverage}");
    assert!(first as f64 > 0.7 * shifts as f64, "{first} of {shifts}");
}
