//! What can be said of one comparison.

use ndarray::{Array1, ArrayView2, Axis};

use super::pair::{Pair, Wanted};
use crate::attribute::{ComparisonCertificate, Explanation};
use crate::error::Result;
use crate::score::Score;
use crate::transport::in_units;

/// The part of the squared movement that is meant by "where".
const MOST: f64 = 0.9;

/// The output that a model takes a point for.
type Seen<'a> = &'a dyn Fn(ArrayView2<f64>) -> Result<Option<usize>>;

impl Pair {
    /// The evidence for an explanation of an input of this pair.
    pub(super) fn evidence(
        &self,
        way: &str,
        score: &dyn Score,
        explanation: &Explanation,
        (classes, seen): (&[String], Seen),
    ) -> Result<ComparisonCertificate> {
        let certificate = &explanation.certificate;
        let typical_change = self.typical_change(score, certificate.target)?;
        let change = certificate.completeness.map(|c| certificate.score - c.reference_score);
        let sizes: f64 = explanation.values.iter().map(|v| v.abs()).sum();
        let mut found = ComparisonCertificate {
            against: self.against().name().to_owned(),
            among: self.own().name().to_owned(),
            way: way.to_owned(),
            membership: None,
            far: None,
            reference_class: None,
            taken_for: None,
            typical_change,
            covered: change.filter(|_| typical_change != 0.0).map(|change| change / typical_change),
            cancelling: change.filter(|&change| change != 0.0).map(|change| sizes / change.abs()),
            moved: None,
            moved_features: None,
            clipped: certificate.path.as_ref().and_then(|path| path.evidence.reference_clipped),
            member_itself: self.same_class(),
        };
        if let Some(reference) = &explanation.reference {
            let members = self.membership()?;
            let standing = members.standing(reference.view())?;
            (found.membership, found.far) = (Some(standing.share), Some(standing.far));
            let way = &explanation.input - reference;
            let way = in_units(way.view().insert_axis(Axis(0)), self.unit()?).row(0).mapv(|v| v * v);
            let typical = members.typical_distance();
            found.moved = (typical > 0.0).then(|| way.sum().sqrt() / typical);
            found.moved_features = Some(holding_most(&way));
            if let Some(class) = seen(reference.view().insert_axis(Axis(0)))? {
                found.reference_class =
                    Some(classes.get(class).cloned().unwrap_or_else(|| class.to_string()));
                found.taken_for = self.class.map(|wanted| match wanted {
                    Wanted::This(this) => class == this,
                    Wanted::OtherThan(own) => class != own,
                });
            }
        }
        Ok(found)
    }
}

/// The least number of features that hold most of the sum.
fn holding_most(squares: &Array1<f64>) -> usize {
    let mut sorted = squares.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let enough = MOST * squares.sum();
    let mut sum = 0.0;
    let short = |square: &&f64| {
        let before = sum;
        sum += **square;
        before < enough
    };
    sorted.iter().take_while(short).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_features_that_hold_most_of_the_movement_are_counted() {
        assert_eq!(holding_most(&array![0.0, 9.0, 0.5, 0.5]), 1);
        assert_eq!(holding_most(&array![1.0, 1.0, 1.0, 1.0]), 4);
        assert_eq!(holding_most(&array![0.0, 0.0]), 0);
    }
}
