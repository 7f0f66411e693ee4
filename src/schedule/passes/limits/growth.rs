//! How indices grow with a variable, by what is known at a statement: values of variables, and sums that lie in a range.
use crate::kernel::index::Extents;
use crate::kernel::{Atom, Index, VarId};
use std::collections::HashMap;

/// A lower bound `⌊(k·var + k₀) / d⌋` of an index that grows with a loop variable.
#[derive(Clone, Copy)]
pub struct LinearGrowth {
    /// The divisor.
    pub d: i64,
    /// Constant term of the linear bound `k·var + k₀` on the numerator.
    pub k0: i64,
    /// Growth of the numerator per iteration.
    pub k: i64,
    /// Largest possible excess of the numerator over `k·var + k₀`, from other terms of the sum.
    pub loose: i64,
}

impl LinearGrowth {
    /// The bound of an index that is the loop variable itself.
    pub const ITSELF: LinearGrowth = LinearGrowth { d: 1, k0: 0, k: 1, loose: 0 };
}

/// Facts that hold at a statement: values of variables and ranges of sums.
#[derive(Clone, Default)]
pub struct RangeFacts {
    /// Variables whose value is known as an index expression of other variables.
    pub values: HashMap<VarId, Index>,
    /// Sums with their least and greatest values.
    pub within: Vec<(Index, i64, i64)>,
}

impl RangeFacts {
    /// Substitutes the known values of variables in a sum.
    pub fn substitute(&self, x: &Index) -> Index {
        let mut out = Index::constant(x.constant);
        for (atom, c) in &x.terms {
            let inner = |y: &Index| Box::new(self.substitute(y));
            let one = match atom {
                Atom::Var(v) => self.values.get(v).cloned().unwrap_or_else(|| Index::var(*v)),
                Atom::Div(y, n) => Index::atom(Atom::Div(inner(y), *n)),
                Atom::Rem(y, n) => Index::atom(Atom::Rem(inner(y), *n)),
                Atom::Clamp(y, low, high) => Index::atom(Atom::Clamp(inner(y), *low, *high)),
                Atom::Value(e) => Index::atom(Atom::Value(*e)),
            };
            out = out.add(&one.scale(*c));
        }
        out
    }

    /// The only positive factor of an index that grows with `var`, and its growth; `None` if there are several or none.
    pub fn unique_growing_value(&self, var: VarId, extents: &Extents) -> Option<(i64, LinearGrowth)> {
        let mut alone = self.within.iter().filter(|(_, low, high)| *low > 0 && high - low == 1);
        alone.find_map(|(x, low, _)| Some((*low, self.growth(x, var, extents)?)))
    }

    /// The term of a sum that grows fastest with `var`.
    pub fn fastest_growing_term(&self, x: &Index, var: VarId, extents: &Extents) -> Option<(usize, LinearGrowth)> {
        let all = x.terms.iter().enumerate().filter(|(_, (_, c))| *c > 0);
        let all = all.filter_map(|(i, (atom, c))| Some((*c, i, self.growth_of(atom, var, extents)?)));
        all.max_by_key(|t| t.0).map(|(_, i, growth)| (i, growth))
    }

    fn growth_of(&self, atom: &Atom, var: VarId, extents: &Extents) -> Option<LinearGrowth> {
        match atom {
            Atom::Var(v) => (*v == var).then_some(LinearGrowth::ITSELF),
            Atom::Div(y, d) => self.growth(y, var, extents).filter(|g| g.d == 1).map(|g| LinearGrowth { d: *d, ..g }),
            Atom::Clamp(y, low, high) => {
                let same = |w: &(Index, i64, i64)| w.0 == **y && w.1 >= *low && w.2 <= high + 1;
                self.growth(y, var, extents).filter(|_| self.within.iter().any(same))
            }
            Atom::Rem(..) | Atom::Value(_) => None,
        }
    }

    /// The growth with `var` of a sum of one growing term and others that are not negative.
    fn growth(&self, x: &Index, var: VarId, extents: &Extents) -> Option<LinearGrowth> {
        let (term, growth) = self.fastest_growing_term(x, var, extents)?;
        let mut rest = x.clone();
        let (_, c) = rest.terms.remove(term);
        let (low, high) = rest.range(extents);
        if low < 0 {
            return None;
        }
        match growth {
            LinearGrowth { d: 1, k0, k, loose } => Some(LinearGrowth {
                d: 1,
                k0: k0.checked_mul(c)?.checked_add(low)?,
                k: k.checked_mul(c)?,
                loose: loose.checked_mul(c)?.checked_add(high.checked_sub(low)?)?,
            }),
            _ => (c == 1).then_some(growth),
        }
    }
}
