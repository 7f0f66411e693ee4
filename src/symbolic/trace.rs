//! The record of one lowering of a function whose sizes vary: the expressions of its sizes, and the answers that it took to comparisons.
//!
//! Lowering runs on one thread from its first to its last instruction, so the record is the thread's. Outside of [`record`] every size
//! is a constant, and nothing is recorded.
use super::{Dim, Interval, SizeExpr};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The number of a size that varies, among those of a record.
pub type SizeNumber = usize;

/// An expression of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(u32);

/// One side of an operation or comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// A constant.
    Constant(i64),
    /// An expression of the record.
    Expr(TraceId),
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Both are equal.
    Equal,
    /// The first is less.
    Less,
}

impl Relation {
    /// Whether it holds of two numbers.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Relation::Equal => a == b,
            Relation::Less => a < b,
        }
    }
}

/// An operation on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient rounded towards zero.
    Divide,
    /// The quotient rounded down.
    FloorDivide,
    /// The remainder with the sign of the dividend.
    Remainder,
    /// The larger one.
    Maximum,
    /// The smaller one.
    Minimum,
}

impl Binary {
    /// The result for two numbers; `None` where it leaves 64 bits or divides by 0.
    pub fn of(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Binary::Add => a.checked_add(b),
            Binary::Subtract => a.checked_sub(b),
            Binary::Multiply => a.checked_mul(b),
            Binary::Divide => a.checked_div(b),
            Binary::FloorDivide => super::interval::floor(a, b),
            Binary::Remainder => a.checked_rem(b),
            Binary::Maximum => Some(a.max(b)),
            Binary::Minimum => Some(a.min(b)),
        }
    }
}

/// The answer that lowering took to a comparison: what it made holds for sizes that give the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The left side less the right one.
    pub difference: SizeExpr<SizeNumber>,
    /// How the difference compares with 0.
    pub relation: Relation,
    /// Whether it does so.
    pub holds: bool,
    /// The name and the op of the node that was lowered.
    pub node: (String, String),
    /// Whether lowering read the number rather than comparing it.
    pub is_pin: bool,
}

impl Guard {
    /// Whether sizes give the same answer; `None` where the difference leaves 64 bits for them.
    pub fn is_met(&self, sizes: &impl Fn(&SizeNumber) -> Option<i64>) -> Option<bool> {
        Some(self.relation.holds(self.difference.eval(sizes)?, 0) == self.holds)
    }
}

/// A data-dependent size is never larger than an expression.
#[derive(Clone, Debug)]
struct Fact {
    size: SizeNumber,
    /// The expression less the size, which is never negative.
    room: SizeExpr<SizeNumber>,
}

/// Facts that are taken together to show that an expression is never negative.
const MOST_FACTS: usize = 4;

/// The sizes, expressions and guards of one lowering.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The range of each size.
    ranges: Vec<Interval>,
    exprs: Vec<SizeExpr<SizeNumber>>,
    ids: HashMap<SizeExpr<SizeNumber>, TraceId>,
    /// The answers, in the order in which they were taken; each once.
    guards: Vec<Guard>,
    known: HashSet<(SizeExpr<SizeNumber>, bool, bool)>,
    /// How many sizes the caller says; those behind them values say.
    said: usize,
    /// The names of sizes in messages.
    names: Vec<String>,
    /// Upper limits of data-dependent sizes beside their ranges.
    facts: Vec<Fact>,
    node: (String, String),
}

impl Record {
    /// The range of each size: those that the caller says, and behind them those that values said, as they were met.
    pub fn ranges(&self) -> &[Interval] {
        &self.ranges
    }
    /// An expression with the names of its sizes.
    pub fn spelled(&self, expr: &SizeExpr<SizeNumber>) -> String {
        expr.spelled(&|v| self.names.get(*v).cloned().unwrap_or_default())
    }
    /// The answers that the ranges of the sizes do not decide.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }
    /// The expression that `dim` is the value of.
    pub fn expr(&self, dim: Dim) -> SizeExpr<SizeNumber> {
        dim.expr().map_or_else(|| SizeExpr::constant(dim.at_hand()), |id| self.exprs[id.0 as usize].clone())
    }
    fn side(&self, side: Side) -> SizeExpr<SizeNumber> {
        match side {
            Side::Constant(n) => SizeExpr::constant(n),
            Side::Expr(id) => self.exprs[id.0 as usize].clone(),
        }
    }
    fn interned(&mut self, expr: SizeExpr<SizeNumber>) -> Side {
        if let Some(n) = expr.known() {
            return Side::Constant(n);
        }
        if let Some(&id) = self.ids.get(&expr) {
            return Side::Expr(id);
        }
        let id = TraceId(u32::try_from(self.exprs.len()).unwrap_or(u32::MAX));
        self.exprs.push(expr.clone());
        self.ids.insert(expr, id);
        Side::Expr(id)
    }
    fn interval(&self, expr: &SizeExpr<SizeNumber>) -> Interval {
        expr.interval(&Interval::of_each(&self.ranges))
    }

    /// The least and the most that an expression is; `None` where it is not defined for some sizes.
    fn extremes(&self, expr: &SizeExpr<SizeNumber>) -> Option<Interval> {
        expr.extremes(&Interval::of_each(&self.ranges))
    }

    /// Whether one expression is known to be never less than another.
    fn is_at_least(&self, a: &SizeExpr<SizeNumber>, b: &SizeExpr<SizeNumber>) -> bool {
        a.sub(b).is_some_and(|more| self.interval(&more).least >= 0 || self.follows(&more))
    }

    /// Whether a fact shows that an expression is never negative.
    fn follows(&self, expr: &SizeExpr<SizeNumber>) -> bool {
        self.follows_by(expr, MOST_FACTS)
    }

    /// Whether so many facts together show that an expression is never negative.
    fn follows_by(&self, expr: &SizeExpr<SizeNumber>, facts: usize) -> bool {
        let shows = |fact: &Fact| {
            let Some(rest) = expr.sub(&fact.room) else { return false };
            self.interval(&rest).least >= 0 || (facts > 1 && self.follows_by(&rest, facts - 1))
        };
        let vars = expr.vars();
        self.facts.iter().filter(|fact| vars.contains(&fact.size)).any(shows)
    }

    /// The comparison of an expression with 0, where ranges and facts decide it.
    fn decided(&self, expr: &SizeExpr<SizeNumber>, relation: Relation) -> Option<bool> {
        let within = self.extremes(expr).unwrap_or(Interval::ALL);
        let is_positive = || within.least > 0 || expr.offset_by(-1).is_some_and(|e| self.follows(&e));
        let is_negative =
            || within.most < 0 || expr.scale(-1).and_then(|e| e.offset_by(-1)).is_some_and(|e| self.follows(&e));
        match relation {
            Relation::Equal if within == Interval::one(0) => Some(true),
            Relation::Equal => (is_positive() || is_negative()).then_some(false),
            Relation::Less if within.least >= 0 || self.follows(expr) => Some(false),
            Relation::Less => is_negative().then_some(true),
        }
    }

    fn combined(&mut self, a: Side, op: Binary, b: Side) -> Result<Side, Unknown> {
        let (a, b) = (self.side(a), self.side(b));
        let (ours, theirs) = (self.interval(&a), self.interval(&b));
        let out = match op {
            Binary::Add => a.add(&b),
            Binary::Subtract => a.sub(&b),
            Binary::Multiply => a.mul(&b),
            Binary::Maximum | Binary::Minimum => match (self.is_at_least(&a, &b), self.is_at_least(&b, &a), op) {
                (true, _, Binary::Maximum) | (_, true, Binary::Minimum) => Some(a),
                (true, _, _) | (_, true, _) => Some(b),
                (_, _, Binary::Maximum) => a.maximum(&b),
                _ => a.minimum(&b),
            },
            Binary::Divide | Binary::FloorDivide | Binary::Remainder if theirs.least < 1 => None,
            Binary::FloorDivide => a.floor_div(&b),
            // rounded down and rounded towards zero are one for numbers that are not negative
            Binary::Divide if ours.least >= 0 => a.floor_div(&b),
            Binary::Remainder if ours.least >= 0 => a.rem(&b),
            Binary::Divide if ours.most <= 0 => a.ceil_div(&b),
            Binary::Remainder if ours.most <= 0 => a.scale(-1).and_then(|a| a.rem(&b)?.scale(-1)),
            Binary::Divide => truncated(&a, &b),
            Binary::Remainder => truncated(&a, &b).and_then(|quotient| a.sub(&b.mul(&quotient)?)),
        };
        let out = out.ok_or(Unknown)?;
        let within = self.interval(&out);
        // for no sizes may it leave 64 bits
        let fits = within.least >= i64::MIN.into() && within.most <= i64::MAX.into();
        match (fits, within.least == within.most) {
            (true, false) => {
                let short = out.shortened(&Interval::of_each(&self.ranges)).ok_or(Unknown)?;
                Ok(self.interned(short))
            }
            (true, true) => i64::try_from(within.least).map(Side::Constant).map_err(|_| Unknown),
            (false, _) => Err(Unknown),
        }
    }

    fn guard(&mut self, a: Side, relation: Relation, b: Side, holds: bool, is_pin: bool) {
        let (a, b) = (self.side(a), self.side(b));
        let Some(difference) = a.sub(&b) else {
            // never seen: both are expressions of a record, whose difference is short; kept as one that no sizes meet
            self.guards.push(Guard { difference: a, relation, holds: !holds, node: self.node.clone(), is_pin });
            return;
        };
        let asked = (difference.clone(), relation == Relation::Less, is_pin);
        if self.known.contains(&asked) {
            return;
        }
        let is_decided = self.decided(&difference, relation).is_some();
        self.known.insert(asked);
        if is_decided {
            return;
        }
        self.guards.push(Guard { difference, relation, holds, node: self.node.clone(), is_pin });
    }
}

/// The quotient rounded towards zero, by a positive number.
fn truncated(a: &SizeExpr<SizeNumber>, b: &SizeExpr<SizeNumber>) -> Option<SizeExpr<SizeNumber>> {
    let zero = SizeExpr::constant(0);
    let (above, below) = (a.maximum(&zero)?, a.scale(-1)?.maximum(&zero)?);
    above.floor_div(b)?.sub(&below.floor_div(b)?)
}

/// Of an operation whose result has no expression.
#[derive(Clone, Copy, Debug)]
pub struct Unknown;

thread_local! {
    static RECORD: RefCell<Option<Record>> = const { RefCell::new(None) };
}

/// A size that varies while a function is lowered.
#[derive(Clone, Debug)]
pub struct SizeVariable {
    /// The name in messages.
    pub name: String,
    /// The least and the largest value.
    pub range: Interval,
    /// The value for which the function is lowered.
    pub at_hand: i64,
}

/// Runs `work` with these sizes, and gives back what was recorded.
pub fn record<R>(variables: &[SizeVariable], work: impl FnOnce(&[Dim]) -> R) -> (R, Record) {
    let mut fresh = Record {
        ranges: variables.iter().map(|v| v.range).collect(),
        said: variables.len(),
        names: variables.iter().map(|v| v.name.clone()).collect(),
        ..Record::default()
    };
    let mut dims = Vec::with_capacity(variables.len());
    for (number, variable) in variables.iter().enumerate() {
        let value = variable.at_hand;
        let size = fresh.interned(SizeExpr::var(number));
        dims.push(match size {
            Side::Expr(id) => Dim::traced(value, id),
            Side::Constant(n) => Dim::constant(n),
        });
    }
    let before = RECORD.with(|r| r.borrow_mut().replace(fresh));
    let out = work(&dims);
    let record = RECORD.with(|r| std::mem::replace(&mut *r.borrow_mut(), before)).unwrap_or_default();
    (out, record)
}

/// A data-dependent size, from 0 to `most`; a constant where sizes are not recorded.
pub fn variable(at_hand: i64, most: Dim) -> Dim {
    let made = with(|record| {
        let number = record.ranges.len();
        let most = record.expr(most);
        record.ranges.push(Interval::new(0, record.interval(&most).most));
        record.names.push(format!("size({})", record.node.0));
        let size = SizeExpr::var(number);
        record.facts.extend(most.sub(&size).map(|room| Fact { size: number, room }));
        record.interned(size)
    });
    match made {
        Some(Side::Expr(id)) => Dim::traced(at_hand, id),
        Some(Side::Constant(_)) | None => Dim::constant(at_hand),
    }
}

/// Whether sizes are recorded.
pub fn is_recording() -> bool {
    RECORD.with(|r| r.borrow().is_some())
}

/// The range of a number over all sizes; nothing is recorded.
pub fn range(dim: Dim) -> Interval {
    match dim.expr() {
        Some(_) => with(|record| record.extremes(&record.expr(dim))).flatten().unwrap_or(Interval::ALL),
        None => Interval::one(dim.at_hand().into()),
    }
}

/// Whether a number lies within a range for all sizes; nothing is recorded.
pub fn is_within(dim: Dim, within: Interval) -> bool {
    let own = range(dim);
    own.least >= within.least && own.most <= within.most
}

/// Whether data-dependent sizes are in the expression of a number; nothing is recorded.
pub fn follows_values(dim: Dim) -> bool {
    with(|record| record.expr(dim).vars().into_iter().any(|size| size >= record.said)).unwrap_or(false)
}

/// Whether data-dependent sizes decide how two numbers compare; nothing is recorded.
pub fn values_decide(a: Dim, relation: Relation, b: Dim) -> bool {
    let decide = |record: &mut Record| {
        let difference = record.expr(a).sub(&record.expr(b))?;
        let is_open = record.decided(&difference, relation).is_none();
        Some(is_open && difference.vars().into_iter().any(|size| size >= record.said))
    };
    with(decide).flatten().unwrap_or(false)
}

/// Says which node is lowered from now on, for guards that are recorded.
pub fn enter_node(name: &str, op: &str) {
    with(|record| record.node = (name.to_string(), op.to_string()));
}

fn with<R>(f: impl FnOnce(&mut Record) -> R) -> Option<R> {
    RECORD.with(|r| r.borrow_mut().as_mut().map(f))
}

pub(super) fn combined(a: Side, op: Binary, b: Side) -> Result<Side, Unknown> {
    with(|record| record.combined(a, op, b)).unwrap_or(Err(Unknown))
}

pub(super) fn guard(a: Side, relation: Relation, b: Side, holds: bool) {
    with(|record| record.guard(a, relation, b, holds, false));
}

/// Records that an expression was read as the number `value`.
pub(super) fn pin(expr: TraceId, value: i64) {
    with(|record| record.guard(Side::Expr(expr), Relation::Equal, Side::Constant(value), true, true));
}

pub(super) fn spelled(expr: TraceId) -> String {
    with(|record| record.spelled(&record.exprs[expr.0 as usize])).unwrap_or_default()
}
