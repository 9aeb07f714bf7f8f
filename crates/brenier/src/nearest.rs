//! The name that was probably meant.

/// The known name that begins with this one, or else is spelled most like it: fewest letters changed, added, removed
/// or exchanged with their neighbour, capitals aside.
///
/// ```
/// assert_eq!(brenier::nearest_name("smothgrad", &["ig", "smoothgrad"]), Some("smoothgrad"));
/// assert_eq!(brenier::nearest_name("SNEAKER", &["Sandal", "Sneaker"]), Some("Sneaker"));
/// assert_eq!(brenier::nearest_name("ig", &[]), None);
/// ```
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    known.iter().copied().min_by_key(|known| {
        let known = known.to_lowercase();
        (!known.starts_with(&name), strsim::osa_distance(&name, &known))
    })
}
