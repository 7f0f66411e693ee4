//! Integer indices: sums of loop variables and of the few non-linear forms that shapes need.
use super::{ExprId, VarId};
use crate::util::id_vec::IdVec;

/// A term that is not itself a sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A loop variable.
    Var(VarId),
    /// A sum divided by a positive constant, rounded down; the sum is never negative.
    Div(Box<Index>, i64),
    /// The remainder of a sum by a positive constant; the sum is never negative.
    Rem(Box<Index>, i64),
    /// A sum limited to `low..=high`.
    Clamp(Box<Index>, i64, i64),
    /// A number known at run time.
    Value(ExprId),
}

/// An affine expression `Σ atom·coefficient + constant`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Index {
    /// Distinct atoms with nonzero coefficients, sorted.
    pub terms: Vec<(Atom, i64)>,
    /// The constant term.
    pub constant: i64,
}

/// The extents of variables, for simplification.
pub type Extents = IdVec<VarId, u64>;

impl Index {
    /// A constant index.
    pub fn constant(value: i64) -> Index {
        Index { terms: Vec::new(), constant: value }
    }
    /// The index that is a loop variable.
    pub fn var(var: VarId) -> Index {
        Index::atom(Atom::Var(var))
    }
    /// The index that is one atom.
    pub fn atom(atom: Atom) -> Index {
        Index { terms: vec![(atom, 1)], constant: 0 }
    }
    /// The value if it is constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
    /// The sum of two indices.
    pub fn add(&self, other: &Index) -> Index {
        let mut terms: std::collections::BTreeMap<Atom, i64> = self.terms.iter().cloned().collect();
        for (atom, c) in &other.terms {
            *terms.entry(atom.clone()).or_insert(0) += c;
        }
        Index { terms: terms.into_iter().filter(|t| t.1 != 0).collect(), constant: self.constant + other.constant }
            .merge_div_rem()
    }
    /// Simplifies `(x / n)·c·n + (x % n)·c` to `x·c`.
    fn merge_div_rem(self) -> Index {
        for (atom, c) in &self.terms {
            let Atom::Rem(x, n) = atom else { continue };
            let whole = Atom::Div(x.clone(), *n);
            if self.terms.iter().any(|(a, d)| *a == whole && *d == c * n) {
                let rest: Vec<_> = self.terms.iter().filter(|(a, _)| a != atom && *a != whole).cloned().collect();
                return Index { terms: rest, constant: self.constant }.add(&x.scale(*c));
            }
        }
        self
    }
    /// The index plus a constant.
    pub fn offset(&self, by: i64) -> Index {
        Index { terms: self.terms.clone(), constant: self.constant + by }
    }
    /// The index times a constant.
    pub fn scale(&self, by: i64) -> Index {
        if by == 0 {
            return Index::constant(0);
        }
        Index { terms: self.terms.iter().map(|(a, c)| (a.clone(), c * by)).collect(), constant: self.constant * by }
    }
    /// Bounds of the index, both included; wide if run-time numbers take part.
    pub fn range(&self, extents: &Extents) -> (i64, i64) {
        let (mut low, mut high) = (self.constant, self.constant);
        for (atom, c) in &self.terms {
            let (a, b) = match atom {
                Atom::Var(v) => (0, extents[*v].max(1) as i64 - 1),
                Atom::Div(x, n) => {
                    let (a, b) = x.range(extents);
                    (a.div_euclid(*n), b.div_euclid(*n))
                }
                Atom::Rem(_, n) => (0, n - 1),
                Atom::Clamp(_, a, b) => (*a, *b),
                Atom::Value(_) => (i64::MIN / 4, i64::MAX / 4),
            };
            let (a, b) = (a.saturating_mul(*c), b.saturating_mul(*c));
            low = low.saturating_add(a.min(b));
            high = high.saturating_add(a.max(b));
        }
        (low, high)
    }
    /// Splits into the terms that `n` divides, divided by it, and the other terms.
    fn split(&self, n: i64) -> (Index, Index) {
        let (whole, rest): (Vec<_>, Vec<_>) = self.terms.iter().cloned().partition(|t| t.1 % n == 0);
        let quotient = Index {
            terms: whole.into_iter().map(|(a, c)| (a, c / n)).collect(),
            constant: self.constant.div_euclid(n),
        };
        (quotient, Index { terms: rest, constant: self.constant.rem_euclid(n) })
    }
    /// The index divided by `n > 0`, rounded down; it must not be negative.
    pub fn div(&self, n: i64, extents: &Extents) -> Index {
        if n == 1 {
            return self.clone();
        }
        let (quotient, rest) = self.split(n);
        let (low, high) = rest.range(extents);
        if low >= 0 && high < n {
            return quotient;
        }
        if low >= 0 {
            let (coarse, step) = rest.drop_low_part(n, extents);
            return quotient.add(&Index::atom(Atom::Div(Box::new(coarse), n / step)));
        }
        Index::atom(Atom::Div(Box::new(self.clone()), n))
    }
    /// Drops the low part of a sum that is not negative: returns `(x, step)` such that `self = x·step + small`, `0 <= small < step` and
    /// `step` divides `n`, for the largest such step. Then `self / n` is `x / (n / step)`, without the small part, such as vector lanes.
    fn drop_low_part(&self, n: i64, extents: &Extents) -> (Index, i64) {
        let mut steps: Vec<i64> = self.terms.iter().map(|t| gcd(t.1, n)).filter(|&g| g > 1).collect();
        steps.sort_unstable();
        steps.dedup();
        for &step in steps.iter().rev() {
            let (whole, small) = self.split(step);
            let (low, high) = small.range(extents);
            if low >= 0 && high < step {
                return (whole, step);
            }
        }
        (self.clone(), 1)
    }
    /// The remainder of the index by `n > 0`; it must not be negative.
    pub fn rem(&self, n: i64, extents: &Extents) -> Index {
        if n == 1 {
            return Index::constant(0);
        }
        let (_, rest) = self.split(n);
        let (low, high) = rest.range(extents);
        if low >= 0 && high < n {
            return rest;
        }
        if low < 0 {
            return Index::atom(Atom::Rem(Box::new(self.clone()), n));
        }
        let (coarse, step) = rest.drop_low_part(n, extents);
        if step == 1 {
            return Index::atom(Atom::Rem(Box::new(rest), n));
        }
        let (_, small) = rest.split(step);
        Index::atom(Atom::Rem(Box::new(coarse), n / step)).scale(step).add(&small)
    }
    /// The index clamped to `low..=high`.
    pub fn clamp_to(&self, low: i64, high: i64, extents: &Extents) -> Index {
        let (a, b) = self.range(extents);
        if a >= low && b <= high {
            return self.clone();
        }
        if low == high {
            return Index::constant(low);
        }
        Index::atom(Atom::Clamp(Box::new(self.clone()), low, high))
    }
    /// The coefficient of `var` if the index is linear in it; `None` if it occurs inside another atom. `varies` tells whether a run-time
    /// number depends on `var`.
    pub fn coefficient(&self, var: VarId, varies: &dyn Fn(ExprId) -> bool) -> Option<i64> {
        let mut coefficient = 0;
        for (atom, c) in &self.terms {
            match atom {
                Atom::Var(v) if *v == var => coefficient = *c,
                Atom::Var(_) => {}
                Atom::Div(x, _) | Atom::Rem(x, _) | Atom::Clamp(x, _, _) => {
                    if x.depends_on(var, varies) {
                        return None;
                    }
                }
                Atom::Value(e) => {
                    if varies(*e) {
                        return None;
                    }
                }
            }
        }
        Some(coefficient)
    }
    /// Whether the index changes with `var`.
    pub fn depends_on(&self, var: VarId, varies: &dyn Fn(ExprId) -> bool) -> bool {
        self.terms.iter().any(|(atom, _)| match atom {
            Atom::Var(v) => *v == var,
            Atom::Div(x, _) | Atom::Rem(x, _) | Atom::Clamp(x, _, _) => x.depends_on(var, varies),
            Atom::Value(e) => varies(*e),
        })
    }
}

/// The greatest common divisor of two numbers; 0 for two zeros, and 1 if it exceeds 63 bits.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// The row-major position of `at` in an array of `dims`.
pub fn linear_index(at: &[Index], dims: &[u64]) -> Index {
    let mut sum = Index::constant(0);
    let mut stride = 1i64;
    for (i, &n) in at.iter().zip(dims).rev() {
        sum = sum.add(&i.scale(stride));
        stride *= n as i64;
    }
    sum
}

/// The coordinates in an array of `dims` of the element whose coordinates in an array of `from` are `at`: groups of
/// dimensions that hold equally many elements are rewritten alone, so that untouched dimensions stay as they are.
pub fn reshape_coordinates(at: &[Index], from: &[u64], dims: &[u64], extents: &Extents) -> Vec<Index> {
    let mut out = Vec::with_capacity(dims.len());
    let (mut i, mut j) = (0, 0);
    while j < dims.len() {
        let (i0, j0) = (i, j);
        let (mut a, mut b) = (1u64, 1u64);
        if i < from.len() {
            a = from[i];
            i += 1;
        }
        b *= dims[j];
        j += 1;
        while a != b {
            if a < b && i < from.len() {
                a *= from[i];
                i += 1;
            } else if j < dims.len() {
                b *= dims[j];
                j += 1;
            } else {
                break;
            }
        }
        if i - i0 == 1 && j - j0 == 1 {
            out.push(at[i0].clone());
            continue;
        }
        let flat = linear_index(&at[i0..i], &from[i0..i]);
        let mut stride: u64 = dims[j0..j].iter().product();
        for &n in &dims[j0..j] {
            stride = stride.checked_div(n).unwrap_or(0).max(1);
            let quotient = flat.div(stride as i64, extents);
            out.push(if n == 1 { Index::constant(0) } else { quotient.rem(n.max(1) as i64, extents) });
        }
    }
    out
}
