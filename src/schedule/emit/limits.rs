//! Where the sizes of a call say how many elements of an array are needed (`plan/needed.rs`), loops end behind the last of them.
//!
//! What a kernel stores shows how far it must go: the rounds of a loop that store nothing that is needed are left out, and where
//! nothing else can be left out, the chunks of the kernel. What they would have made is never read. One small kernel computes all
//! limits at the start of a call.
use super::value::Value;
use crate::diag::Result;
use crate::hlo::Shape;
use crate::kernel::index::Extents;
use crate::kernel::{
    Atom, BufId, Buffer, Expr, ExprId, Index, Kernel, LoopKind, Place, Program, RegId, Step, Stmt, VarId,
};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::schedule::layout::Layout;
use crate::schedule::plan::needed::Need;
use crate::tensor::DType;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most different limits of which a loop takes the largest.
const MOST_FORMS: usize = 4;
/// Sums in limits stay below this, which no size of an array is above.
const MOST_ELEMENTS: i64 = 1 << 46;

/// Elements of a buffer that are needed: those whose distance from `origin`, modulo `period`, is below `times * size + more`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    origin: i64,
    period: i64,
    size: usize,
    times: i64,
    more: i64,
}

/// What is needed of buffers, as far as it is less than all of them.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// `None`: all of it.
    all: HashMap<BufId, Option<Region>>,
}

impl Regions {
    /// Notes what is needed of a value: all of it where that is not known.
    pub fn note(&mut self, shape: &Shape, value: &Value, needs: Option<&[Need]>) {
        for (i, (leaf, &buf)) in shape.leaves().iter().zip(&value.leaves).enumerate() {
            match needs.and_then(|needs| needs.get(i)) {
                Some(Some(need)) => self.join(buf, Region::of(&leaf.dims, &value.layout(&leaf.dims), need)),
                Some(None) => {}
                None => self.join(buf, None),
            }
        }
    }

    /// Notes that a buffer is needed as far as another is.
    pub fn same(&mut self, buf: BufId, other: BufId) {
        if let Some(&region) = self.all.get(&other) {
            self.join(buf, region);
        }
    }

    fn join(&mut self, buf: BufId, region: Option<Region>) {
        let slot = self.all.entry(buf).or_insert(region);
        *slot = slot.and_then(|have| have.join(region?));
    }

    fn get(&self, buf: BufId) -> Option<Region> {
        self.all.get(&buf).copied().flatten()
    }
}

impl Region {
    /// That of an array of `dims`; `None` where all of it is needed.
    fn of(dims: &[u64], layout: &Layout, need: &[Option<crate::schedule::plan::needed::Bound>]) -> Option<Region> {
        let axis = (0..dims.len()).find(|&a| dims[a] > 1 && need.get(a).is_some_and(Option::is_some))?;
        let bound = need[axis]?;
        let stride = layout.strides[axis];
        let outer: Vec<i64> = (0..axis).filter(|&a| dims[a] > 1).map(|a| layout.strides[a]).collect();
        let period = outer.last().copied().unwrap_or(i64::MAX);
        let fits = stride > 0 && stride.checked_mul(i64::try_from(dims[axis]).ok()?)? <= period;
        if !fits || !outer.iter().all(|s| s % period == 0) {
            return None;
        }
        Some(Region {
            origin: layout.origin % period,
            period,
            size: bound.size,
            times: stride.checked_mul(i64::try_from(bound.times).ok()?)?,
            more: stride.checked_mul(i64::try_from(bound.more).ok()?)?,
        })
    }

    /// What is in either of both, and perhaps more.
    fn join(self, other: Region) -> Option<Region> {
        let origin = self.origin.min(other.origin);
        let end = |r: &Region| r.more + r.origin - origin;
        (self.period == other.period && self.size == other.size).then(|| Region {
            origin,
            times: self.times.max(other.times),
            more: end(&self).max(end(&other)),
            ..self
        })
    }
}

/// A number of rounds: `⌈(d·⌈(times·size + more) / c⌉ - k₀) / k⌉`, where what is inside is at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    size: usize,
    times: i64,
    c: i64,
    d: i64,
    k0: i64,
    k: i64,
    more: i64,
}

impl Form {
    /// As an index, of the size as a number.
    fn rounds(&self, size: &Index) -> Index {
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

    /// The value for one size.
    fn at(&self, size: i64) -> i64 {
        let up = |x: i64, n: i64| (x.max(0) + n - 1) / n;
        up(up(self.times * size + self.more, self.c) * self.d - self.k0, self.k)
    }
}

/// Ends loops of `program` behind what is needed.
///
/// Errors: internal, where a size is no argument.
pub fn set(program: &mut Program, regions: &Regions) -> Result<()> {
    if regions.all.values().all(Option::is_none) {
        return Ok(());
    }
    let buf = program.buffers.push(Buffer { dtype: DType::S32, elements: 0, place: Place::Workspace(0) });
    let mut limits = Limits { buf, sizes: sizes(program), slots: BTreeMap::new(), kernel: Kernel::default() };
    let mut kernels = std::mem::take(&mut program.kernels);
    for kernel in kernels.values_mut() {
        let mut body = std::mem::take(&mut kernel.body);
        let look = Look { program, regions, kernel };
        let of_chunks = kernel.chunks.and_then(|v| look.forms(&body, Some(v), &mut Known::default(), true));
        match of_chunks.and_then(|forms| limits.slot(&forms, kernel.count(), 1)) {
            Some(slot) => kernel.limit = Some((buf, slot)),
            None => {
                let all = body.clone();
                inside(&mut limits, (program, regions, kernel), &mut body, &all);
            }
        }
        kernel.body = body;
    }
    program.kernels = kernels;
    if limits.slots.is_empty() {
        return Ok(());
    }
    program.buffers[buf].elements = limits.slots.len() as u64;
    limits.kernel.label = "limits".to_string();
    let id = program.kernels.push(limits.kernel);
    program.steps.insert(0, Step::Launch(id));
    Ok(())
}

/// The buffers of arguments, by number.
fn sizes(program: &Program) -> HashMap<usize, BufId> {
    let args = program.buffers.iter().filter_map(|(id, b)| match b.place {
        Place::Arg(i) if b.dtype == DType::S32 && b.elements == 1 => Some((i, id)),
        _ => None,
    });
    args.collect()
}

/// The limits that have been asked for.
struct Limits {
    buf: BufId,
    sizes: HashMap<usize, BufId>,
    slots: BTreeMap<(Vec<Form>, u64, i64), u64>,
    /// Computes them.
    kernel: Kernel,
}

impl Limits {
    /// Where the largest of some numbers of rounds is, from `least` to `extent`; `None` where it would leave nothing out.
    fn slot(&mut self, forms: &[Form], extent: u64, least: i64) -> Option<u64> {
        let most = i32::try_from(extent).ok()?;
        if forms.is_empty() || forms.iter().any(|f| f.at(1) >= extent as i64) {
            return None;
        }
        let key = (forms.to_vec(), extent, least);
        if let Some(&slot) = self.slots.get(&key) {
            return Some(slot);
        }
        let mut value: Option<ExprId> = None;
        for form in forms {
            let size = *self.sizes.get(&form.size)?;
            let size = self.kernel.expr(Expr::Load(size, Index::default()));
            let rounds = form.rounds(&Index::atom(Atom::Value(size)));
            let rounds = Index::atom(Atom::Clamp(Box::new(rounds), least, most.into()));
            let rounds = self.kernel.expr(Expr::Number(rounds, DType::S32));
            value = Some(match value {
                Some(other) => self.kernel.op(ScalarOp::Maximum, &[other, rounds], DType::S32),
                None => rounds,
            });
        }
        let slot = self.slots.len() as u64;
        self.kernel.body.push(Stmt::Store { buf: self.buf, index: Index::constant(slot as i64), value: value? });
        self.slots.insert(key, slot);
        Some(slot)
    }
}

impl Limits {
    /// Whether a number is below the limit in `slot`.
    fn above(&self, kernel: &mut Kernel, x: Index, slot: u64) -> ExprId {
        let limit = kernel.expr(Expr::Load(self.buf, Index::constant(slot as i64)));
        let now = kernel.expr(Expr::Number(x, DType::S32));
        kernel.op(ScalarOp::Compare(Direction::Lt, CompareKind::Partial), &[now, limit], DType::Pred)
    }
}

/// Rows of an array that lies in periods which some statements write: each `stride` elements, the first at `first`.
struct Rows {
    region: Region,
    stride: i64,
    first: Index,
    /// How many rows there are after the first.
    others: i64,
}

impl Rows {
    /// Whether one of them is needed.
    fn needed(&self, limits: &mut Limits, kernel: &mut Kernel) -> Option<ExprId> {
        let Region { size, times, more, period, .. } = self.region;
        let form = Form { size, times, c: 1, d: 1, k0: 0, k: 1, more };
        let slot = limits.slot(&[form], u64::try_from(period).ok()?, 0)?;
        let first = self.first.rem(period, &kernel.vars);
        let needed = limits.above(kernel, first.clone(), slot);
        if self.others == 0 {
            return Some(needed);
        }
        // the last rows may be the first ones of the next period
        let wraps = kernel.expr(Expr::Within(first, period - self.others * self.stride, period));
        Some(kernel.op(ScalarOp::Or, &[needed, wraps], DType::Pred))
    }
}

/// What grows with a variable as `⌊(k·var + k₀) / d⌋` at least.
#[derive(Clone, Copy)]
struct Growth {
    d: i64,
    k0: i64,
    k: i64,
}

/// What is known at a statement.
#[derive(Clone, Default)]
struct Known {
    /// Values of variables.
    values: HashMap<VarId, Index>,
    /// Sums that lie in a range.
    within: Vec<(Index, i64, i64)>,
}

struct Look<'a> {
    program: &'a Program,
    regions: &'a Regions,
    kernel: &'a Kernel,
}

impl Look<'_> {
    /// How many rounds of `var`, which stands for rounds that follow one another, store something that is needed; of no variable:
    /// whether one does. `None` where that is not known.
    fn forms(&self, body: &[Stmt], var: Option<VarId>, known: &mut Known, private: bool) -> Option<Vec<Form>> {
        let mut all = BTreeMap::new();
        self.collect(body, var, known, private, &mut all)?;
        let forms = all.into_iter().map(|(form, more): (Form, i64)| Form { more, ..form });
        let forms: Vec<Form> = forms.collect();
        (!forms.is_empty() && forms.len() <= MOST_FORMS).then_some(forms)
    }

    /// Adds those of the stores of `body`; memory on the stack does not count where it is `private` to the rounds.
    fn collect(
        &self,
        body: &[Stmt],
        var: Option<VarId>,
        known: &mut Known,
        private: bool,
        all: &mut BTreeMap<Form, i64>,
    ) -> Option<()> {
        for stmt in body {
            match stmt {
                Stmt::Store { buf, index, .. } => self.store(*buf, (index, 0), var, known, private, all)?,
                Stmt::Tiles(sums) => {
                    let span = sums.writes();
                    self.store(span.buf, (span.first, span.last), var, known, private, all)?;
                }
                Stmt::For { body, .. } | Stmt::While { body, .. } => self.collect(body, var, known, private, all)?,
                Stmt::Let { var: own, value, body } => {
                    let mut inner = known.clone();
                    inner.values.insert(*own, known.value(value));
                    self.collect(body, var, &mut inner, private, all)?;
                }
                Stmt::If { cond, body } => {
                    let mut inner = known.clone();
                    if let Expr::Within(x, low, high) = &self.kernel.exprs[*cond] {
                        inner.within.push((known.value(x), *low, *high));
                    }
                    self.collect(body, var, &mut inner, private, all)?;
                }
                Stmt::Prefetch { .. } | Stmt::Release | Stmt::Set { .. } => {}
            }
        }
        Some(())
    }

    fn store(
        &self,
        buf: BufId,
        (index, last): (&Index, u64),
        var: Option<VarId>,
        known: &Known,
        private: bool,
        all: &mut BTreeMap<Form, i64>,
    ) -> Option<()> {
        if private && self.program.buffers[buf].place == Place::Stack {
            return Some(());
        }
        let region = self.regions.get(buf)?;
        let extents = &self.kernel.vars;
        let mut x = known.value(index).offset(-region.origin);
        if region.period != i64::MAX {
            x.terms.retain(|t| t.1 % region.period != 0);
            x.constant = x.constant.rem_euclid(region.period);
        }
        let (low, high) = x.range(extents);
        let high = high.checked_add_unsigned(last)?;
        if low < 0 || high >= region.period {
            return None;
        }
        let own = var.and_then(|v| known.growing(&x, v, extents));
        let (c, Growth { d, k0, k }, rest) = match own {
            Some((term, growth)) => {
                let (_, c) = x.terms.remove(term);
                (c, growth, x.range(extents).0)
            }
            // where a variable has one value alone, as if what is stored grew with it from 0 on
            None => match var.map(|v| known.fixed(v, extents)) {
                Some(fixed) => fixed.filter(|(at, _)| low >= *at).map(|(at, growth)| (low / at, growth, 0))?,
                None => (1, Growth { d: 1, k0: 0, k: 1 }, low),
            },
        };
        let form = Form { size: region.size, times: region.times, c, d, k0, k, more: 0 };
        let most = all.entry(form).or_insert(i64::MIN);
        *most = (*most).max(region.more - rest);
        Some(())
    }
}

impl Known {
    /// A sum with the values of variables in it.
    fn value(&self, x: &Index) -> Index {
        let mut out = Index::constant(x.constant);
        for (atom, c) in &x.terms {
            let inner = |y: &Index| Box::new(self.value(y));
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

    /// The one value that something which grows with `var` has here, above 0, and how it grows.
    fn fixed(&self, var: VarId, extents: &Extents) -> Option<(i64, Growth)> {
        let mut alone = self.within.iter().filter(|(_, low, high)| *low > 0 && high - low == 1);
        alone.find_map(|(x, low, _)| Some((*low, self.growth(x, var, extents)?)))
    }

    /// The term of a sum that grows with `var`, the one that grows most.
    fn growing(&self, x: &Index, var: VarId, extents: &Extents) -> Option<(usize, Growth)> {
        let all = x.terms.iter().enumerate().filter(|(_, (_, c))| *c > 0);
        let all = all.filter_map(|(i, (atom, c))| Some((*c, i, self.growth_of(atom, var, extents)?)));
        all.max_by_key(|t| t.0).map(|(_, i, growth)| (i, growth))
    }

    fn growth_of(&self, atom: &Atom, var: VarId, extents: &Extents) -> Option<Growth> {
        match atom {
            Atom::Var(v) => (*v == var).then_some(Growth { d: 1, k0: 0, k: 1 }),
            Atom::Div(y, d) => self.growth(y, var, extents).filter(|g| g.d == 1).map(|g| Growth { d: *d, ..g }),
            Atom::Clamp(y, low, high) => {
                let same = |w: &(Index, i64, i64)| w.0 == **y && w.1 >= *low && w.2 <= high + 1;
                self.growth(y, var, extents).filter(|_| self.within.iter().any(same))
            }
            Atom::Rem(..) | Atom::Value(_) => None,
        }
    }

    /// How a sum of one term that grows with `var`, and others that are not negative, grows with it at least.
    fn growth(&self, x: &Index, var: VarId, extents: &Extents) -> Option<Growth> {
        let (term, growth) = self.growing(x, var, extents)?;
        let mut rest = x.clone();
        let (_, c) = rest.terms.remove(term);
        let (low, _) = rest.range(extents);
        if low < 0 {
            return None;
        }
        match growth {
            Growth { d: 1, k0, k } => {
                Some(Growth { d: 1, k0: k0.checked_mul(c)?.checked_add(low)?, k: k.checked_mul(c)? })
            }
            _ => (c == 1).then_some(growth),
        }
    }
}

/// Leaves rounds of loops inside of a kernel out, of the outermost where that can be; `all` is its whole body.
fn inside(
    limits: &mut Limits,
    (program, regions, kernel): (&Program, &Regions, &mut Kernel),
    body: &mut [Stmt],
    all: &[Stmt],
) {
    for stmt in body {
        let (var, own) = match stmt {
            Stmt::For { var, kind: LoopKind::Seq, body } | Stmt::Let { var, body, .. } => (Some(*var), body),
            Stmt::If { body, .. } => (None, body),
            _ => continue,
        };
        let extent = var.map_or(1, |v| kernel.vars[v]);
        let look = Look { program, regions, kernel };
        let forms = look.forms(own, var, &mut Known::default(), false);
        let forms = forms.filter(|_| !look.leaves_registers(own, all));
        // without a variable: whether there is a round at all
        let forms = forms.map(|f| match var {
            Some(_) => f,
            None => f.into_iter().map(|f| Form { c: MOST_ELEMENTS, ..f }).collect(),
        });
        let cond = match forms.and_then(|forms| limits.slot(&forms, extent, 0)) {
            Some(slot) => Some(limits.above(kernel, var.map_or(Index::default(), Index::var), slot)),
            None => {
                let rows = look.rows(own).filter(|_| !look.leaves_registers(own, all));
                rows.and_then(|rows| rows.needed(limits, kernel))
            }
        };
        match cond {
            Some(cond) => *own = vec![Stmt::If { cond, body: std::mem::take(own) }],
            None => inside(limits, (program, regions, kernel), own, all),
        }
    }
}

impl Look<'_> {
    /// The rows of one array in periods that `body` writes, if it writes nothing else; their places are known outside of it.
    fn rows(&self, body: &[Stmt]) -> Option<Rows> {
        let (mut stores, mut bound) = (Vec::new(), BTreeSet::new());
        writes(body, &mut stores, &mut bound)?;
        let region = self.regions.get(stores.first()?.0)?;
        let Region { origin, period, times, more, .. } = region;
        let stride = gcd(gcd(times, more), period);
        if period == i64::MAX || stride <= 0 {
            return None;
        }
        let (mut terms, mut rows) = (None, (i64::MAX, i64::MIN));
        for (buf, index) in stores {
            let mut first = index.offset(-origin);
            let mut inner = Index::constant(first.constant.rem_euclid(stride));
            first.constant -= inner.constant;
            let (outer, within): (Vec<_>, Vec<_>) = first.terms.into_iter().partition(|t| t.1 % stride == 0);
            inner.terms = within;
            let (low, high) = inner.range(&self.kernel.vars);
            let row = (first.constant.min(rows.0), first.constant.max(rows.1));
            let outer = Index { terms: outer, constant: 0 };
            let unbound = bound.iter().all(|&v| !outer.depends_on(v, &|_| true));
            let same = terms.get_or_insert_with(|| outer.clone()) == &outer;
            if self.regions.get(buf)? != region || low < 0 || high >= stride || !unbound || !same {
                return None;
            }
            rows = row;
        }
        let first = terms?.offset(rows.0);
        let others = (rows.1 - rows.0) / stride;
        let sound = first.range(&self.kernel.vars).0 >= 0 && (others + 1).checked_mul(stride)? <= period;
        sound.then_some(Rows { region, stride, first, others })
    }

    /// Whether statements outside of `body` read registers that it sets.
    fn leaves_registers(&self, body: &[Stmt], all: &[Stmt]) -> bool {
        let mut set = BTreeSet::new();
        let mut inner = Registers { kernel: self.kernel, counts: BTreeMap::new(), set: &mut set };
        inner.stmts(body);
        let inner = inner.counts;
        let mut others = BTreeSet::new();
        let mut outer = Registers { kernel: self.kernel, counts: BTreeMap::new(), set: &mut others };
        outer.stmts(all);
        let outer = outer.counts;
        set.iter().any(|r| inner.get(r) != outer.get(r))
    }
}

/// The single elements that statements store, and the variables that they bind; `None` where they store blocks.
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

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How often statements name registers.
struct Registers<'k> {
    kernel: &'k Kernel,
    counts: BTreeMap<RegId, usize>,
    set: &'k mut BTreeSet<RegId>,
}

impl Registers<'_> {
    fn stmts(&mut self, all: &[Stmt]) {
        for s in all {
            match s {
                Stmt::For { body, .. } | Stmt::Let { body, .. } => self.stmts(body),
                Stmt::If { cond, body } | Stmt::While { cond, body } => {
                    self.read(*cond);
                    self.stmts(body);
                }
                Stmt::Store { index, value, .. } => {
                    self.read(*value);
                    self.index(index);
                }
                Stmt::Prefetch { index, .. } => self.index(index),
                Stmt::Set { reg, value, .. } => {
                    self.set.insert(*reg);
                    *self.counts.entry(*reg).or_default() += 1;
                    self.read(*value);
                }
                Stmt::Tiles(_) | Stmt::Release => {}
            }
        }
    }

    fn index(&mut self, x: &Index) {
        for (atom, _) in &x.terms {
            match atom {
                Atom::Var(_) => {}
                Atom::Div(y, _) | Atom::Rem(y, _) | Atom::Clamp(y, _, _) => self.index(y),
                Atom::Value(e) => self.read(*e),
            }
        }
    }

    fn read(&mut self, root: ExprId) {
        let (mut open, mut seen) = (vec![root], BTreeSet::new());
        while let Some(e) = open.pop() {
            if !seen.insert(e) {
                continue;
            }
            match &self.kernel.exprs[e] {
                Expr::Const(..) => {}
                Expr::Op(_, args, _) => open.extend(args),
                Expr::PairSum { x, y, z, .. } => open.extend([x, y, z]),
                Expr::Load(_, x) | Expr::Pair(_, x) | Expr::Number(x, _) | Expr::Within(x, _, _) => self.index(x),
                Expr::Reg(r, x) | Expr::Lanes(r, x, _, _) | Expr::Fold(_, r, x) => {
                    *self.counts.entry(*r).or_default() += 1;
                    self.index(x);
                }
            }
        }
    }
}
