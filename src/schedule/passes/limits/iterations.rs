//! Iterations of a kernel's loops that store needed elements (`passes/limits/mod.rs`).
use crate::kernel::index::gcd;
use crate::kernel::{Atom, BufId, BufferLocation, Expr, Index, Kernel, Program, Stmt, VarId};
use crate::schedule::passes::limits::growth::{LinearGrowth, RangeFacts};
use crate::schedule::passes::limits::regions::{NeededRegion, NeededRegions};
use std::collections::{BTreeMap, BTreeSet};

/// Upper limit of different trip counts of which a loop takes the maximum.
const MOST_FORMS: usize = 4;
/// Least number of distinct values of a trip count for which only the loop itself is limited: with fewer, much of the last iterations is
/// not needed, and inner loops are limited too.
const FINE: u64 = 16;
/// Least ratio of a period to the rows that one condition skips as a group: of larger groups nearly always one row is needed.
const PARTS: i64 = 4;
/// Upper limit of sums in trip counts, above every array size.
pub const MOST_ELEMENTS: i64 = 1 << 46;

/// A trip count `⌈(d·⌈(times·size + more) / c⌉ - k₀) / k⌉`, whose numerators are at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TripCount {
    /// Number of the dynamic size (`plan/demand/amount.rs`).
    pub size: usize,
    /// Factor of the dynamic size.
    pub times: i64,
    /// Elements per iteration.
    pub c: i64,
    /// Divisor of the index that grows with the variable.
    pub d: i64,
    /// Constant term of the numerator of the index that grows with the variable.
    pub k0: i64,
    /// Growth per iteration of the numerator of the index that grows with the variable.
    pub k: i64,
    /// Constant added to `times·size`, in elements.
    pub more: i64,
}

impl TripCount {
    /// The trip count as an index, for a given size.
    pub fn as_index(&self, size: &Index) -> Index {
        let up = |x: Index, n: i64| match n {
            1 => x,
            _ => Index::atom(Atom::Div(Box::new(x.offset(n - 1)), n)),
        };
        let not_below_0 = |x: Index| Index::atom(Atom::Clamp(Box::new(x), 0, MOST_ELEMENTS));
        let steps = up(not_below_0(size.scale(self.times).offset(self.more)), self.c);
        match (self.d, self.k0, self.k) {
            (1, 0, 1) => steps,
            _ => up(not_below_0(steps.scale(self.d).offset(-self.k0)), self.k),
        }
    }

    /// The trip count for one size.
    pub fn at_size(&self, size: i64) -> i64 {
        let up = |x: i64, n: i64| (x.max(0) + n - 1) / n;
        up(up(self.times * size + self.more, self.c) * self.d - self.k0, self.k)
    }
}

/// Trip counts of a loop, whose maximum limits it.
#[derive(Default)]
pub struct TripCounts {
    /// The trip counts with `more` set to 0, each with the largest `more` of the stores that it is for.
    pub all: BTreeMap<TripCount, i64>,
    /// Number of iterations below the limit that may store no needed element, as their stores depend on other variables too.
    loose: i64,
    /// Whether stores are bounded along several axes, so that inner loops may end early too.
    several: bool,
}

impl TripCounts {
    /// The trip counts.
    pub fn to_vec(&self) -> Vec<TripCount> {
        self.all.iter().map(|(form, more)| TripCount { more: *more, ..*form }).collect()
    }

    /// Whether limiting a loop of `extent` iterations leaves few unneeded ones: each limit has many possible values, and what is stored
    /// depends on little else.
    pub fn are_fine_grained(&self, extent: u64) -> bool {
        let levels = |f: &TripCount| extent.min(extent.saturating_mul(f.k.unsigned_abs()) / f.d.unsigned_abs().max(1));
        !self.several
            && self.all.keys().all(|f| levels(f) >= FINE)
            && self.loose.unsigned_abs() <= (extent / FINE).max(1)
    }
}

/// Rows of an array at a regular distance that some statements write: each has `stride` elements, the first begins at `first`.
pub struct PeriodicRows {
    /// The needed elements of the array.
    pub region: NeededRegion,
    /// Elements of a row.
    pub stride: i64,
    /// The first element of the first row.
    pub first: Index,
    /// Number of rows after the first.
    pub others: i64,
}

/// A run of elements that a statement stores.
struct StoredSpan<'s> {
    buf: BufId,
    /// The first element.
    index: &'s Index,
    /// The offset of the last element from the first.
    last: u64,
}

/// A kernel, with the needed elements of the buffers that it writes.
pub struct KernelContext<'a> {
    /// The program.
    pub program: &'a Program,
    /// The needed elements of the program's buffers.
    pub regions: &'a NeededRegions,
    /// The kernel.
    pub kernel: &'a Kernel,
}

impl KernelContext<'_> {
    /// Trip counts of the loop over `var` (or of a single execution, without a variable) after which no iteration stores a needed
    /// element; `None` if unknown.
    pub fn needed_iterations(&self, body: &[Stmt], var: Option<VarId>, private: bool) -> Option<TripCounts> {
        let mut forms = TripCounts::default();
        self.collect_rounds(body, var, &RangeFacts::default(), private, &mut forms)?;
        (!forms.all.is_empty() && forms.all.len() <= MOST_FORMS).then_some(forms)
    }

    /// Adds the trip counts of the stores of `body`; stack memory is ignored if it is `private` to the iterations.
    fn collect_rounds(
        &self,
        body: &[Stmt],
        var: Option<VarId>,
        known: &RangeFacts,
        private: bool,
        forms: &mut TripCounts,
    ) -> Option<()> {
        for stmt in body {
            match stmt {
                Stmt::Store { buf, index, .. } => {
                    self.store(StoredSpan { buf: *buf, index, last: 0 }, var, known, private, forms)?
                }
                Stmt::Tiles(sums) => {
                    let span = sums.writes();
                    let stored = StoredSpan { buf: span.buf, index: span.first, last: span.last };
                    self.store(stored, var, known, private, forms)?;
                }
                Stmt::For { body, .. } | Stmt::While { body, .. } => {
                    self.collect_rounds(body, var, known, private, forms)?
                }
                Stmt::Let { var: own, value, body } => {
                    let mut inner = known.clone();
                    inner.values.insert(*own, known.substitute(value));
                    self.collect_rounds(body, var, &inner, private, forms)?;
                }
                Stmt::If { cond, body } => {
                    let mut inner = known.clone();
                    if let Expr::Within(x, low, high) = &self.kernel.exprs[*cond] {
                        inner.within.push((known.substitute(x), *low, *high));
                    }
                    self.collect_rounds(body, var, &inner, private, forms)?;
                }
                Stmt::Prefetch { .. } | Stmt::Release | Stmt::Set { .. } => {}
            }
        }
        Some(())
    }

    fn store(
        &self,
        StoredSpan { buf, index, last }: StoredSpan<'_>,
        var: Option<VarId>,
        known: &RangeFacts,
        private: bool,
        forms: &mut TripCounts,
    ) -> Option<()> {
        if private && self.program.buffers[buf].place == BufferLocation::Stack {
            return Some(());
        }
        let regions = self.regions.get(buf).iter();
        let all = regions.filter_map(|region| self.rounds_into_region(region, index, last, var, known));
        // the axis along which the fewest rounds are needed
        let (form, most, loose) = all.min_by_key(|(form, most, _)| TripCount { more: *most, ..*form }.at_size(1))?;
        forms.loose = forms.loose.max(loose);
        let have = forms.all.entry(form).or_insert(i64::MIN);
        *have = (*have).max(most);
        forms.several |= self.regions.get(buf).len() > 1;
        Some(())
    }

    /// The trip count of the loop over `var` after which it stores nothing into `region`, in three parts: the count with `more` set to 0,
    /// its `more`, and the number of earlier iterations that may store nothing needed either.
    fn rounds_into_region(
        &self,
        region: &NeededRegion,
        index: &Index,
        last: u64,
        var: Option<VarId>,
        known: &RangeFacts,
    ) -> Option<(TripCount, i64, i64)> {
        let extents = &self.kernel.vars;
        let mut x = known.substitute(index).offset(-region.origin);
        if region.period != i64::MAX {
            x.terms.retain(|t| t.1 % region.period != 0);
            x.constant = x.constant.rem_euclid(region.period);
        }
        let (low, high) = x.range(extents);
        let high = high.checked_add_unsigned(last)?;
        if low < 0 || high >= region.period {
            return None;
        }
        let own = var.and_then(|v| known.fastest_growing_term(&x, v, extents));
        let (c, growth, (rest, highest)) = match own {
            Some((term, growth)) => {
                let (_, c) = x.terms.remove(term);
                (c, growth, x.range(extents))
            }
            // where a variable has one value alone, as if what is stored grew with it from 0 on
            None => match var.map(|v| known.unique_growing_value(v, extents)) {
                Some(fixed) => fixed.filter(|(at, _)| low >= *at).map(|(at, growth)| (low / at, growth, (0, 0)))?,
                None => (1, LinearGrowth::ITSELF, (low, low)),
            },
        };
        let LinearGrowth { d, k0, k, loose } = growth;
        let spread = highest.saturating_sub(rest).saturating_mul(d) / c.saturating_mul(k).max(1);
        let form = TripCount { size: region.size, times: region.times, c, d, k0, k, more: 0 };
        Some((form, region.more - rest, spread.saturating_add(loose / k.max(1))))
    }

    /// The regular rows of one array that `body` writes, if it writes nothing else and their places are known outside of it. Stack memory
    /// is ignored if it is `private` to the body.
    pub fn periodic_rows(&self, body: &[Stmt], private: bool) -> Option<PeriodicRows> {
        let (mut stores, mut bound) = (Vec::new(), BTreeSet::new());
        writes(body, &mut stores, &mut bound)?;
        stores.retain(|(buf, _)| !private || self.program.buffers[*buf].place != BufferLocation::Stack);
        let all = self.regions.get(stores.first()?.0);
        all.iter().find_map(|region| self.rows_of(region, &stores, &bound))
    }

    fn rows_of(
        &self,
        region: &NeededRegion,
        stores: &[(BufId, &Index)],
        bound: &BTreeSet<VarId>,
    ) -> Option<PeriodicRows> {
        let NeededRegion { origin, period, times, more, .. } = *region;
        let stride = gcd(gcd(times, more), period);
        if period == i64::MAX || stride <= 0 {
            return None;
        }
        let (mut terms, mut rows) = (None, (i64::MAX, i64::MIN));
        for &(buf, index) in stores {
            let mut first = index.offset(-origin);
            let mut inner = Index::constant(first.constant.rem_euclid(stride));
            first.constant -= inner.constant;
            let (outer, within): (Vec<_>, Vec<_>) = first.terms.into_iter().partition(|t| t.1 % stride == 0);
            inner.terms = within;
            let (low, high) = inner.range(&self.kernel.vars);
            let of_term = |term: &(Atom, i64)| Index { terms: vec![term.clone()], constant: 0 };
            let is_bound = |term: &(Atom, i64)| bound.iter().any(|&v| of_term(term).depends_on(v, &|_| true));
            let (along, outer): (Vec<_>, Vec<_>) = outer.into_iter().partition(is_bound);
            let (least, most) = Index { terms: along, constant: first.constant }.range(&self.kernel.vars);
            let row = (least.min(rows.0), most.max(rows.1));
            let outer = Index { terms: outer, constant: 0 };
            let same = terms.get_or_insert_with(|| outer.clone()) == &outer;
            if !self.regions.get(buf).contains(region) || low < 0 || high >= stride || !same {
                return None;
            }
            rows = row;
        }
        let first = terms?.offset(rows.0);
        let others = rows.1.checked_sub(rows.0)? / stride;
        let is_part = (others + 1).checked_mul(stride)?.checked_mul(PARTS)? <= period;
        let sound = first.range(&self.kernel.vars).0 >= 0;
        (sound && is_part).then_some(PeriodicRows { region: *region, stride, first, others })
    }
}

/// Collects the single elements that statements store and the variables that they bind; `None` if they store blocks.
fn writes<'s>(all: &'s [Stmt], stores: &mut Vec<(BufId, &'s Index)>, bound: &mut BTreeSet<VarId>) -> Option<()> {
    for s in all {
        match s {
            Stmt::Store { buf, index, .. } => stores.push((*buf, index)),
            Stmt::For { var, body, .. } | Stmt::Let { var, body, .. } => {
                bound.insert(*var);
                writes(body, stores, bound)?;
            }
            Stmt::If { body, .. } | Stmt::While { body, .. } => writes(body, stores, bound)?,
            Stmt::Tiles(_) => return None,
            Stmt::Set { .. } | Stmt::Prefetch { .. } | Stmt::Release => {}
        }
    }
    Some(())
}
