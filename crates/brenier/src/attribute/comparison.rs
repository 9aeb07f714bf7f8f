//! The evidence for "why this and not that": is the reference what it is said to be, and does the way to it say anything?
//!
//! Credit that sums up says nothing of what the input was compared with. So the certificate of a comparison also asks
//! whether the reference is an ordinary member of the population, whether the model takes it for one, and whether the
//! score changes on the way as it does between the two populations: a way that does not move what the model uses hides
//! it, however well the accounts balance.

use serde::{Deserialize, Serialize};

/// The evidence for one comparison. What does not apply is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonCertificate {
    /// The population that the input is compared with.
    pub against: String,
    /// The population that the input belongs to.
    pub among: String,
    /// How the input was carried from one to the other, in words.
    pub way: String,
    /// How ordinary the reference is: the share of the population's own rows that lie as far from their neighbours, or
    /// as near to them. Members have 0.05 and less in one of twenty cases.
    pub membership: Option<f64>,
    /// Whether it is the far side or the near one.
    pub far: Option<bool>,
    /// The output with the highest score at the reference, by its name where it has one.
    pub reference_class: Option<String>,
    /// Whether that is the class that the input is compared with.
    pub taken_for: Option<bool>,
    /// The mean score of the input's population minus that of the other.
    pub typical_change: f64,
    /// The score's change on the way over the typical one.
    pub covered: Option<f64>,
    /// The sizes of all credit over the size of the score's change: 1 where nothing cancels.
    pub cancelling: Option<f64>,
    /// How far the input lies from the reference, in distances of the population's rows from their neighbours.
    pub moved: Option<f64>,
    /// The least number of features that hold nine tenths of the squared movement.
    pub moved_features: Option<usize>,
    /// By how much of the way the reference was moved to keep its values within bounds.
    pub clipped: Option<f64>,
    /// The model takes the input itself for a member of the population that it is compared with.
    pub member_itself: bool,
}

/// The limits beyond which a comparison is warned of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComparisonLimits {
    /// How rare a reference may be among the members.
    pub membership: f64,
    /// The part of the typical change that the way must cover.
    pub covered: f64,
    /// How much credit may cancel.
    pub cancelling: f64,
    /// How much of the way bounds may take.
    pub clipped: f64,
}

impl Default for ComparisonLimits {
    /// One member in a hundred, a tenth of the typical change, credit of ten times the change, a quarter of the way.
    fn default() -> Self {
        Self { membership: 0.01, covered: 0.1, cancelling: 10.0, clipped: 0.25 }
    }
}

impl ComparisonCertificate {
    /// What speaks against the comparison, each in one sentence with its numbers.
    pub fn objections(&self, limits: &ComparisonLimits) -> Vec<String> {
        let Self { against, among, .. } = self;
        let mut reasons = Vec::new();
        if self.member_itself {
            reasons.push(format!(
                "the model takes the input itself for '{against}': there is nothing to compare; say which population \
                 it belongs to"
            ));
            return reasons;
        }
        if let Some(share) = self.membership.filter(|&share| share < limits.membership) {
            let place = if self.far == Some(true) {
                "farther from the others"
            } else {
                "nearer to the others, as an average does,"
            };
            reasons.push(format!(
                "the reference is no ordinary member of '{against}': only {:.1} % of them lie {place}",
                100.0 * share / 2.0
            ));
        }
        if let (Some(false), Some(class)) = (self.taken_for, &self.reference_class) {
            reasons.push(format!("the model takes the reference for '{class}', not for '{against}'"));
        }
        if let Some(covered) = self.covered.filter(|&covered| covered < limits.covered) {
            reasons.push(format!(
                "the score changes by {:.3} on the way, where it differs by {:.3} between '{against}' and '{among}': \
                 this path does not move what the model uses",
                covered * self.typical_change,
                self.typical_change
            ));
        }
        if let Some(ratio) = self.cancelling.filter(|&ratio| ratio > limits.cancelling) {
            reasons.push(format!(
                "features cancel each other: the sizes of their credit sum to {ratio:.1} times the score's change"
            ));
        }
        if let Some(clipped) = self.clipped.filter(|&clipped| clipped > limits.clipped) {
            reasons.push(format!(
                "to keep its values within bounds the reference was moved by {:.0} % of the way",
                100.0 * clipped
            ));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> ComparisonCertificate {
        ComparisonCertificate {
            against: "T-shirt".into(),
            among: "Pullover".into(),
            way: "a map".into(),
            membership: Some(0.4),
            far: Some(true),
            reference_class: Some("T-shirt".into()),
            taken_for: Some(true),
            typical_change: 3.77,
            covered: Some(0.9),
            cancelling: Some(1.4),
            moved: Some(2.0),
            moved_features: Some(40),
            clipped: Some(0.02),
            member_itself: false,
        }
    }

    #[test]
    fn a_sound_comparison_passes_and_each_fault_is_named_with_its_number() {
        let limits = ComparisonLimits::default();
        assert!(sound().objections(&limits).is_empty());
        let told = |change: fn(&mut ComparisonCertificate)| {
            let mut certificate = sound();
            change(&mut certificate);
            let reasons = certificate.objections(&limits);
            assert_eq!(reasons.len(), 1, "{reasons:?}");
            reasons[0].clone()
        };
        assert!(told(|c| c.membership = Some(0.002)).contains("0.1 % of them lie farther"));
        let near = told(|c| (c.membership, c.far) = (Some(0.002), Some(false)));
        assert!(near.contains("as an average does"), "{near}");
        let other = told(|c| (c.taken_for, c.reference_class) = (Some(false), Some("Coat".into())));
        assert!(other.contains("takes the reference for 'Coat', not for 'T-shirt'"), "{other}");
        let hidden = told(|c| c.covered = Some(0.03 / 3.77));
        assert!(hidden.contains("by 0.030 on the way") && hidden.contains("3.770"), "{hidden}");
        assert!(told(|c| c.covered = Some(-0.5)).contains("does not move what the model uses"));
        assert!(told(|c| c.cancelling = Some(12.0)).contains("12.0 times"));
        assert!(told(|c| c.clipped = Some(0.4)).contains("40 % of the way"));
        assert!(told(|c| c.member_itself = true).contains("itself for 'T-shirt'"));
    }
}
