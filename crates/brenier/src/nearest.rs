//! The name that was probably meant.

/// The known name that begins with this one, or else is spelled most like it: fewest letters changed, added, removed
/// or exchanged with their neighbour, capitals aside. Four letters or more that both have in a row count double.
///
/// ```
/// assert_eq!(brenier::nearest_name("smothgrad", &["ig", "smoothgrad"]), Some("smoothgrad"));
/// assert_eq!(brenier::nearest_name("SNEAKER", &["Sandal", "Sneaker"]), Some("Sneaker"));
/// assert_eq!(brenier::nearest_name("shapp", &["lrp", "kernel-shap"]), Some("kernel-shap"));
/// assert_eq!(brenier::nearest_name("ig", &[]), None);
/// ```
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    known.iter().copied().min_by_key(|known| {
        let known = known.to_lowercase();
        let (shared, changed) = (shared(&name, &known), strsim::osa_distance(&name, &known));
        (!known.starts_with(&name), changed as isize - if shared < WORD { 0 } else { 2 * shared as isize })
    })
}

/// Letters in a row that make a word.
const WORD: usize = 4;

/// The most letters in a row that both names have.
fn shared(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let at = |i: usize, j: usize| a[i..].iter().zip(&b[j..]).take_while(|(a, b)| a == b).count();
    (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j))).map(|(i, j)| at(i, j)).max().unwrap_or(0)
}
