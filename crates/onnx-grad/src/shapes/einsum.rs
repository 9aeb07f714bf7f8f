//! The equation of an `Einsum`, one label for every axis.

/// The terms of all operands and of the output: ellipses spelled out, and the output where it is left out.
/// `None` where the equation does not fit operands of these ranks.
pub(crate) fn einsum_terms(equation: &str, ranks: &[usize]) -> Option<(Vec<String>, String)> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != ranks.len() {
        return None;
    }
    let free: Vec<char> = ('A'..='Z').rev().filter(|c| !inputs.contains(*c)).collect();
    let mut widest = 0;
    let mut spelled = Vec::new();
    for (term, &rank) in terms.iter().zip(ranks) {
        let hidden = rank.checked_sub(term.chars().filter(|c| *c != '.').count())?;
        if term.contains("...") {
            widest = widest.max(hidden);
            // The last hidden axes of all operands belong together.
            spelled.push(term.replace("...", &free.get(..hidden)?.iter().rev().collect::<String>()));
        } else if hidden == 0 && !term.contains('.') {
            spelled.push(term.to_string());
        } else {
            return None;
        }
    }
    let hidden: String = free[..widest].iter().rev().collect();
    let output = output.map(|o| o.replace("...", &hidden)).unwrap_or_else(|| {
        let all: String = terms.concat().replace('.', "");
        let mut once: Vec<char> = all.chars().filter(|c| all.matches(*c).count() == 1).collect();
        once.sort_unstable();
        hidden.chars().chain(once).collect()
    });
    Some((spelled, output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ellipses_align_at_their_ends() {
        let (terms, output) = einsum_terms("...ij, ...jk -> ...ik", &[4, 3]).unwrap();
        assert_eq!(terms, ["YZij", "Zjk"]);
        assert_eq!(output, "YZik");
    }

    #[test]
    fn an_output_left_out_has_the_labels_that_stand_once() {
        assert_eq!(einsum_terms("ij,jk", &[2, 2]).unwrap().1, "ik");
        assert_eq!(einsum_terms("ij,jk", &[2, 3]), None);
    }
}
