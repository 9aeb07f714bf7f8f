//! Arithmetic on axis sizes, as far as it stays a number or a multiple of one symbol.

use std::sync::Arc;

use crate::graph::Dim;

/// Symbols that inference makes up start with this; they are never written to a file.
pub(crate) const FRESH: char = '~';

pub(crate) fn add(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) => a.checked_add(*b).map_or(Dim::Unknown, Dim::Known),
        (Dim::Known(0), other) | (other, Dim::Known(0)) => other.clone(),
        (Dim::Symbol { symbol: s, factor: f }, Dim::Symbol { symbol: t, factor: g }) if s == t => {
            scaled(s, f.checked_add(*g))
        }
        _ => Dim::Unknown,
    }
}

pub(crate) fn sub(a: &Dim, b: &Dim) -> Dim {
    match b {
        Dim::Known(b) => add(a, &b.checked_neg().map_or(Dim::Unknown, Dim::Known)),
        Dim::Symbol { symbol, factor } => add(a, &scaled(symbol, factor.checked_neg())),
        Dim::Unknown => Dim::Unknown,
    }
}

pub(crate) fn mul(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) => a.checked_mul(*b).map_or(Dim::Unknown, Dim::Known),
        (Dim::Known(k), Dim::Symbol { symbol, factor }) | (Dim::Symbol { symbol, factor }, Dim::Known(k)) => {
            scaled(symbol, factor.checked_mul(*k))
        }
        _ => Dim::Unknown,
    }
}

/// The quotient where it is certain that nothing remains.
pub(crate) fn div_exact(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) if *b != 0 && a.checked_rem(*b) == Some(0) => Dim::Known(a / b),
        (Dim::Symbol { symbol, factor }, Dim::Known(b)) if *b != 0 && factor.checked_rem(*b) == Some(0) => {
            scaled(symbol, Some(factor / b))
        }
        (Dim::Symbol { symbol: s, factor: f }, Dim::Symbol { symbol: t, factor: g })
            if s == t && *g != 0 && f.checked_rem(*g) == Some(0) =>
        {
            Dim::Known(f / g)
        }
        _ => Dim::Unknown,
    }
}

fn scaled(symbol: &Arc<str>, factor: Option<i64>) -> Dim {
    match factor {
        None => Dim::Unknown,
        Some(0) => Dim::Known(0),
        Some(factor) => Dim::Symbol { symbol: symbol.clone(), factor },
    }
}

/// A product of sizes: a number times symbols. Unlike [`Dim`], it can hold several symbols.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Product {
    number: i64,
    symbols: Vec<Arc<str>>,
}

impl Product {
    /// The number of elements of a shape; `None` where a size is unknown.
    pub(crate) fn of(shape: &[Dim]) -> Option<Product> {
        let mut product = Product { number: 1, symbols: Vec::new() };
        for dim in shape {
            match dim {
                Dim::Known(n) => product.number = product.number.checked_mul(*n)?,
                Dim::Symbol { symbol, factor } => {
                    product.number = product.number.checked_mul(*factor)?;
                    product.symbols.push(symbol.clone());
                }
                Dim::Unknown => return None,
            }
        }
        product.symbols.sort();
        Some(product)
    }

    /// `self / other`, where it is a size.
    pub(crate) fn over(mut self, other: &Product) -> Dim {
        for symbol in &other.symbols {
            match self.symbols.iter().position(|s| s == symbol) {
                Some(i) => drop(self.symbols.remove(i)),
                None => return Dim::Unknown,
            }
        }
        if other.number == 0 || self.number.checked_rem(other.number) != Some(0) {
            return Dim::Unknown;
        }
        let number = self.number / other.number;
        match self.symbols.as_slice() {
            [] => Dim::Known(number),
            [symbol] => scaled(symbol, Some(number)),
            _ => Dim::Unknown,
        }
    }

    /// The product as a size.
    pub(crate) fn into_dim(self) -> Dim {
        self.over(&Product { number: 1, symbols: Vec::new() })
    }
}

/// The size of an axis after broadcasting; `None` where the two cannot be broadcast.
pub(crate) fn broadcast(a: &Dim, b: &Dim) -> Option<Dim> {
    Some(match (a, b) {
        (Dim::Known(1), other) | (other, Dim::Known(1)) => other.clone(),
        (Dim::Known(a), Dim::Known(b)) => {
            if a != b {
                return None;
            }
            Dim::Known(*a)
        }
        // The other is 1 or n when the graph runs.
        (Dim::Known(n), _) | (_, Dim::Known(n)) => Dim::Known(*n),
        (a, b) if a.same(b) => a.clone(),
        _ => Dim::Unknown,
    })
}

/// The shape after broadcasting; `None` where the two cannot be broadcast.
pub(crate) fn broadcast_shapes(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let rank = a.len().max(b.len());
    let one = Dim::Known(1);
    let at = |shape: &[Dim], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(one.clone(), |i| shape[i].clone())
    };
    (0..rank).map(|axis| broadcast(&at(a, axis), &at(b, axis))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_survives_a_reshape_and_back() {
        let n = Dim::symbol("N");
        let windows = Product::of(&[n.clone(), 8usize.into(), 8usize.into()]).unwrap();
        let by_16 = windows.over(&Product::of(&[16usize.into()]).unwrap());
        assert_eq!(by_16, Dim::Symbol { symbol: "N".into(), factor: 4 });
        assert_eq!(div_exact(&by_16, &4usize.into()), n);
        assert_eq!(div_exact(&by_16, &3usize.into()), Dim::Unknown);
    }

    #[test]
    fn symbols_cancel() {
        let (n, t) = (Dim::symbol("N"), Dim::symbol("T"));
        let all = Product::of(&[n.clone(), t.clone(), 6usize.into()]).unwrap();
        assert_eq!(all.clone().into_dim(), Dim::Unknown);
        assert_eq!(all.over(&Product::of(&[n, 3usize.into()]).unwrap()), mul(&t, &2usize.into()));
    }

    #[test]
    fn broadcasting() {
        let n = Dim::symbol("N");
        let (a, b) = ([n.clone(), 1usize.into()], [5usize.into()]);
        assert_eq!(broadcast_shapes(&a, &b), Some(vec![n, 5usize.into()]));
        assert_eq!(broadcast_shapes(&[2usize.into()], &[3usize.into()]), None);
    }
}
