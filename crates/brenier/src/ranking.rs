//! The order of scores: the highest first, and of equals the one that comes first.
//!
//! The predicted class, the classes of `--targets topN`, the accuracy of a classifier and the ranks of deletion all
//! go by this one order, so that they agree where scores are equal. PyTorch's `argmax` decides alike.

/// The places of the values from the highest to the lowest; equal ones (also 0 and -0) in their own order.
///
/// ```
/// assert_eq!(brenier::highest_first(&[1.0, 3.0, -0.0, 3.0, 0.0]), [1, 3, 0, 2, 4]);
/// ```
pub fn highest_first(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Adding 0 makes -0 into 0; the total order has a place for what is not a number.
    order.sort_by(|&a, &b| (values[b] + 0.0).total_cmp(&(values[a] + 0.0)));
    order
}

/// The place of the highest value, of equals the first; none where there are no values.
pub(crate) fn highest(values: impl Iterator<Item = f64>) -> Option<usize> {
    highest_first(&values.collect::<Vec<f64>>()).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equals_the_first() {
        assert_eq!(highest([1.0, 2.0, 2.0, -0.0].into_iter()), Some(1));
        assert_eq!(highest([-0.0, 0.0].into_iter()), Some(0));
        assert_eq!(highest(std::iter::empty()), None);
        assert_eq!(highest_first(&[f64::NAN, 1.0, f64::INFINITY]), [0, 2, 1]);
    }
}
