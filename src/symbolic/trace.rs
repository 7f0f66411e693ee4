//! Tracing of symbolic sizes: the record of one lowering holds the expressions of its sizes and the outcomes of comparisons (guards).
//!
//! Lowering runs on one thread from the first to the last instruction, so that the record is thread-local. Outside of [`trace_size_uses`] every size
//! is a constant, and nothing is recorded.
use super::{Dim, Interval, SizeExpr};
use std::cell::RefCell;
use std::collections::HashMap;

/// Index of a dynamic size in a record.
pub type SizeIndex = usize;

/// Id of an expression in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(u32);

/// Operand of an operation or comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SizeOperand {
    /// A constant.
    Constant(i64),
    /// Number of an expression in the trace.
    Expr(TraceId),
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `a == b`.
    Equal,
    /// `a < b`.
    Less,
}

impl Relation {
    /// Whether the relation holds between two numbers.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Relation::Equal => a == b,
            Relation::Less => a < b,
        }
    }
}

/// Binary operation on two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOp {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient rounded towards zero.
    Divide,
    /// Quotient rounded down.
    FloorDivide,
    /// Remainder with the sign of the dividend.
    Remainder,
    /// Larger operand.
    Maximum,
    /// Smaller operand.
    Minimum,
}

impl SizeOp {
    /// Result for two numbers; `None` on overflow of 64 bits and for division by 0.
    pub fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            SizeOp::Add => a.checked_add(b),
            SizeOp::Subtract => a.checked_sub(b),
            SizeOp::Multiply => a.checked_mul(b),
            SizeOp::Divide => a.checked_div(b),
            SizeOp::FloorDivide => super::interval::floor_div(a, b),
            SizeOp::Remainder => a.checked_rem(b),
            SizeOp::Maximum => Some(a.max(b)),
            SizeOp::Minimum => Some(a.min(b)),
        }
    }
}

/// Recorded outcome of a comparison: the lowered module is valid only for sizes that give the same outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Left side minus right side.
    pub difference: SizeExpr<SizeIndex>,
    /// Relation between the difference and 0 that was tested.
    pub relation: Relation,
    /// Outcome of the test.
    pub holds: bool,
    /// Name and op of the node that was being lowered.
    pub node: (String, String),
    /// Whether lowering read a size as a number, instead of comparing it.
    pub is_pin: bool,
}

impl Guard {
    /// Whether `sizes` give the recorded outcome; `None` where the difference overflows 64 bits.
    pub fn is_met(&self, sizes: &impl Fn(&SizeIndex) -> Option<i64>) -> Option<bool> {
        Some(self.relation.holds(self.difference.eval(sizes)?, 0) == self.holds)
    }
}

/// A comparison of sizes that lowering made and that ranges do not decide, with its outcome at the concrete sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeComparison {
    /// Left side minus right side.
    pub difference: SizeExpr<SizeIndex>,
    /// Relation between the difference and 0 that was tested.
    pub relation: Relation,
    /// Outcome of the test.
    pub holds: bool,
    /// Whether it was made within a branch of a conditional, which a call may not take.
    pub is_in_branch: bool,
}

/// Upper bound on the comparisons that are kept of one node; later ones are dropped.
const MAX_COMPARISONS: usize = 256;
/// Upper bound on the failed nodes whose comparisons are kept.
const MAX_FAILED_NODES: usize = 64;

/// Upper limit of a data-dependent size, an expression of earlier sizes.
#[derive(Clone, Debug)]
struct UpperLimit {
    size: SizeIndex,
    /// Upper limit of the size minus the size, which is never negative.
    room: SizeExpr<SizeIndex>,
}

/// Upper bound on the limits that are combined to show that an expression is never negative.
const MAX_LIMITS: usize = 4;

/// Record of one lowering: its dynamic sizes, the expressions made of them, and the guards.
#[derive(Clone, Debug, Default)]
pub struct SizeTrace {
    /// Range of each size.
    ranges: Vec<Interval>,
    exprs: Vec<SizeExpr<SizeIndex>>,
    ids: HashMap<SizeExpr<SizeIndex>, TraceId>,
    /// Guards, in the order of the comparisons, without repetitions.
    guards: Vec<Guard>,
    /// Comparisons made so far, each with whether ranges and limits decide it.
    known: HashMap<(SizeExpr<SizeIndex>, bool, bool), bool>,
    /// Comparisons of the node being lowered, oldest first.
    comparisons: Vec<SizeComparison>,
    /// Name and comparisons of each node that could not be lowered.
    failed_nodes: Vec<(String, Vec<SizeComparison>)>,
    /// Number of nested branches of conditionals that are being lowered.
    branch_depth: usize,
    /// Number of the caller's sizes; the sizes behind them are data-dependent.
    said: usize,
    /// Names of the sizes in messages.
    names: Vec<String>,
    /// Symbolic upper limits of data-dependent sizes, in addition to their ranges.
    limits: Vec<UpperLimit>,
    node: (String, String),
}

impl SizeTrace {
    /// Range of each size: the caller's sizes, then the data-dependent ones in the order of their creation.
    pub fn ranges(&self) -> &[Interval] {
        &self.ranges
    }
    /// Text of an expression for messages, with the names of its sizes.
    pub fn expr_text(&self, expr: &SizeExpr<SizeIndex>) -> String {
        expr.spelled(&|v| self.names.get(*v).cloned().unwrap_or_default())
    }
    /// Outcomes of comparisons that the ranges of the sizes do not decide.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }
    /// Comparisons of the last failed node with this name, oldest first; without a name, or if no such node failed, those of the node that
    /// was lowered last.
    pub fn comparisons_of_node(&self, node: Option<&str>) -> &[SizeComparison] {
        let failed = self.failed_nodes.iter().rev().find(|(name, _)| Some(name.as_str()) == node);
        failed.map_or(&self.comparisons, |(_, comparisons)| comparisons)
    }
    /// Expression of `dim`, a constant if it does not vary.
    pub fn expr(&self, dim: Dim) -> SizeExpr<SizeIndex> {
        dim.expr().map_or_else(|| SizeExpr::constant(dim.concrete_value()), |id| self.exprs[id.0 as usize].clone())
    }
    fn operand_expr(&self, side: SizeOperand) -> SizeExpr<SizeIndex> {
        match side {
            SizeOperand::Constant(n) => SizeExpr::constant(n),
            SizeOperand::Expr(id) => self.exprs[id.0 as usize].clone(),
        }
    }
    fn intern(&mut self, expr: SizeExpr<SizeIndex>) -> SizeOperand {
        if let Some(n) = expr.known() {
            return SizeOperand::Constant(n);
        }
        if let Some(&id) = self.ids.get(&expr) {
            return SizeOperand::Expr(id);
        }
        let id = TraceId(u32::try_from(self.exprs.len()).unwrap_or(u32::MAX));
        self.exprs.push(expr.clone());
        self.ids.insert(expr, id);
        SizeOperand::Expr(id)
    }
    fn interval(&self, expr: &SizeExpr<SizeIndex>) -> Interval {
        expr.interval(&Interval::lookup_by_index(&self.ranges))
    }

    /// Range of an expression over all sizes; `None` where it has no value for some sizes.
    fn extremes(&self, expr: &SizeExpr<SizeIndex>) -> Option<Interval> {
        expr.extremes(&Interval::lookup_by_index(&self.ranges))
    }

    /// Whether `a` is known to be at least `b` for all sizes.
    fn is_at_least(&self, a: &SizeExpr<SizeIndex>, b: &SizeExpr<SizeIndex>) -> bool {
        a.sub(b).is_some_and(|more| self.interval(&more).least >= 0 || self.is_nonnegative_by_limits(&more))
    }

    /// Whether the limits of data-dependent sizes show that an expression is never negative.
    fn is_nonnegative_by_limits(&self, expr: &SizeExpr<SizeIndex>) -> bool {
        self.is_nonnegative_by(expr, MAX_LIMITS)
    }

    /// Whether up to `limits` limits of data-dependent sizes together show that an expression is never negative.
    fn is_nonnegative_by(&self, expr: &SizeExpr<SizeIndex>, limits: usize) -> bool {
        let shows = |fact: &UpperLimit| {
            let Some(rest) = expr.sub(&fact.room) else { return false };
            self.interval(&rest).least >= 0 || (limits > 1 && self.is_nonnegative_by(&rest, limits - 1))
        };
        let vars = expr.vars();
        self.limits.iter().filter(|fact| vars.contains(&fact.size)).any(shows)
    }

    /// Outcome of comparing an expression with 0, if ranges and limits decide it for all sizes.
    fn decide(&self, expr: &SizeExpr<SizeIndex>, relation: Relation) -> Option<bool> {
        let within = self.extremes(expr).unwrap_or(Interval::ALL);
        let is_positive = || within.least > 0 || expr.offset_by(-1).is_some_and(|e| self.is_nonnegative_by_limits(&e));
        let is_negative = || {
            within.most < 0
                || expr.scale(-1).and_then(|e| e.offset_by(-1)).is_some_and(|e| self.is_nonnegative_by_limits(&e))
        };
        match relation {
            Relation::Equal if within == Interval::single(0) => Some(true),
            Relation::Equal => (is_positive() || is_negative()).then_some(false),
            Relation::Less if within.least >= 0 || self.is_nonnegative_by_limits(expr) => Some(false),
            Relation::Less => is_negative().then_some(true),
        }
    }

    fn apply_op_to_operands(
        &mut self,
        a: SizeOperand,
        op: SizeOp,
        b: SizeOperand,
    ) -> Result<SizeOperand, NoExpression> {
        let (a, b) = (self.operand_expr(a), self.operand_expr(b));
        let (ours, theirs) = (self.interval(&a), self.interval(&b));
        let out = match op {
            SizeOp::Add => a.add(&b),
            SizeOp::Subtract => a.sub(&b),
            SizeOp::Multiply => a.mul(&b),
            SizeOp::Maximum | SizeOp::Minimum => match (self.is_at_least(&a, &b), self.is_at_least(&b, &a), op) {
                (true, _, SizeOp::Maximum) | (_, true, SizeOp::Minimum) => Some(a),
                (true, _, _) | (_, true, _) => Some(b),
                (_, _, SizeOp::Maximum) => a.maximum(&b),
                _ => a.minimum(&b),
            },
            SizeOp::Divide | SizeOp::FloorDivide | SizeOp::Remainder if theirs.least < 1 => None,
            SizeOp::FloorDivide => a.floor_div(&b),
            // for non-negative numbers, rounding down is rounding towards zero
            SizeOp::Divide if ours.least >= 0 => a.floor_div(&b),
            SizeOp::Remainder if ours.least >= 0 => a.rem(&b),
            SizeOp::Divide if ours.most <= 0 => a.ceil_div(&b),
            SizeOp::Remainder if ours.most <= 0 => a.scale(-1).and_then(|a| a.rem(&b)?.scale(-1)),
            SizeOp::Divide => truncating_quotient(&a, &b),
            SizeOp::Remainder => truncating_quotient(&a, &b).and_then(|quotient| a.sub(&b.mul(&quotient)?)),
        };
        let out = out.ok_or(NoExpression)?;
        let within = self.interval(&out);
        // the result must not overflow 64 bits for any sizes
        let fits = within.least >= i64::MIN.into() && within.most <= i64::MAX.into();
        match (fits, within.least == within.most) {
            (true, false) => {
                let short = out.share_if_long(&Interval::lookup_by_index(&self.ranges)).ok_or(NoExpression)?;
                Ok(self.intern(short))
            }
            (true, true) => i64::try_from(within.least).map(SizeOperand::Constant).map_err(|_| NoExpression),
            (false, _) => Err(NoExpression),
        }
    }

    fn guard(&mut self, a: SizeOperand, relation: Relation, b: SizeOperand, holds: bool, is_pin: bool) {
        let (a, b) = (self.operand_expr(a), self.operand_expr(b));
        let Some(difference) = a.sub(&b) else {
            // unreachable in practice, since the difference of two recorded expressions is short; recorded as a guard that no sizes satisfy
            self.guards.push(Guard { difference: a, relation, holds: !holds, node: self.node.clone(), is_pin });
            return;
        };
        let asked = (difference.clone(), relation == Relation::Less, is_pin);
        let known = self.known.get(&asked).copied();
        let is_decided = known.unwrap_or_else(|| self.decide(&difference, relation).is_some());
        if !is_decided && !is_pin && self.comparisons.len() < MAX_COMPARISONS {
            let (difference, is_in_branch) = (difference.clone(), self.branch_depth > 0);
            self.comparisons.push(SizeComparison { difference, relation, holds, is_in_branch });
        }
        self.known.insert(asked, is_decided);
        if is_decided || known.is_some() {
            return;
        }
        self.guards.push(Guard { difference, relation, holds, node: self.node.clone(), is_pin });
    }
}

/// Quotient rounded towards zero, for a positive divisor.
fn truncating_quotient(a: &SizeExpr<SizeIndex>, b: &SizeExpr<SizeIndex>) -> Option<SizeExpr<SizeIndex>> {
    let zero = SizeExpr::constant(0);
    let (above, below) = (a.maximum(&zero)?, a.scale(-1)?.maximum(&zero)?);
    above.floor_div(b)?.sub(&below.floor_div(b)?)
}

/// Error of an operation whose result has no expression.
#[derive(Clone, Copy, Debug)]
pub struct NoExpression;

thread_local! {
    static RECORD: RefCell<Option<SizeTrace>> = const { RefCell::new(None) };
}

/// A dynamic size of the function that is to be lowered.
#[derive(Clone, Debug)]
pub struct SizeVariable {
    /// Name in messages.
    pub name: String,
    /// Range of its values.
    pub range: Interval,
    /// Concrete value for which the function is lowered.
    pub at_hand: i64,
}

/// Runs `work` with these dynamic sizes, and returns its result with what was traced.
pub fn trace_size_uses<R>(variables: &[SizeVariable], work: impl FnOnce(&[Dim]) -> R) -> (R, SizeTrace) {
    let mut fresh = SizeTrace {
        ranges: variables.iter().map(|v| v.range).collect(),
        said: variables.len(),
        names: variables.iter().map(|v| v.name.clone()).collect(),
        ..SizeTrace::default()
    };
    let mut dims = Vec::with_capacity(variables.len());
    for (number, variable) in variables.iter().enumerate() {
        let value = variable.at_hand;
        let size = fresh.intern(SizeExpr::var(number));
        dims.push(match size {
            SizeOperand::Expr(id) => Dim::traced(value, id),
            SizeOperand::Constant(n) => Dim::constant(n),
        });
    }
    let before = RECORD.with(|r| r.borrow_mut().replace(fresh));
    let out = work(&dims);
    let record = RECORD.with(|r| std::mem::replace(&mut *r.borrow_mut(), before)).unwrap_or_default();
    (out, record)
}

/// Creates a data-dependent size in the range from 0 to `most`, with the concrete value `at_hand`; a constant outside of [`trace_size_uses`].
pub fn data_dependent_size(at_hand: i64, most: Dim) -> Dim {
    let made = with_record(|record| {
        let number = record.ranges.len();
        let most = record.expr(most);
        record.ranges.push(Interval::new(0, record.interval(&most).most));
        record.names.push(format!("size({})", record.node.0));
        let size = SizeExpr::var(number);
        record.limits.extend(most.sub(&size).map(|room| UpperLimit { size: number, room }));
        record.intern(size)
    });
    match made {
        Some(SizeOperand::Expr(id)) => Dim::traced(at_hand, id),
        Some(SizeOperand::Constant(_)) | None => Dim::constant(at_hand),
    }
}

/// Whether a lowering within [`trace_size_uses`] runs on this thread.
pub fn is_recording() -> bool {
    RECORD.with(|r| r.borrow().is_some())
}

/// Range of a number over all sizes. Records no guard.
pub fn range_of(dim: Dim) -> Interval {
    match dim.expr() {
        Some(_) => with_record(|record| record.extremes(&record.expr(dim))).flatten().unwrap_or(Interval::ALL),
        None => Interval::single(dim.concrete_value().into()),
    }
}

/// Whether a number lies within a range for all sizes. Records no guard.
pub fn is_within(dim: Dim, within: Interval) -> bool {
    let own = range_of(dim);
    own.least >= within.least && own.most <= within.most
}

/// Whether the expression of a number contains data-dependent sizes. Records no guard.
pub fn depends_on_data(dim: Dim) -> bool {
    with_record(|record| record.expr(dim).vars().into_iter().any(|size| size >= record.said)).unwrap_or(false)
}

/// Whether the outcome of a comparison depends on data-dependent sizes. Records no guard.
pub fn comparison_depends_on_data(a: Dim, relation: Relation, b: Dim) -> bool {
    let decide = |record: &mut SizeTrace| {
        let difference = record.expr(a).sub(&record.expr(b))?;
        let is_open = record.decide(&difference, relation).is_none();
        Some(is_open && difference.vars().into_iter().any(|size| size >= record.said))
    };
    with_record(decide).flatten().unwrap_or(false)
}

/// Sets the node being lowered, which is stored in guards.
pub fn enter_node(name: &str, op: &str) {
    with_record(|record| {
        record.node = (name.to_string(), op.to_string());
        record.comparisons.clear();
    });
}

/// Records that the node being lowered, whose name this is, could not be lowered.
pub fn record_failed_node(name: &str) {
    with_record(|record| {
        if record.failed_nodes.len() < MAX_FAILED_NODES {
            record.failed_nodes.push((name.to_string(), record.comparisons.clone()));
        }
    });
}

/// Runs `work`, which lowers a branch of a conditional.
pub fn lower_branch<R>(work: impl FnOnce() -> R) -> R {
    with_record(|record| record.branch_depth += 1);
    let out = work();
    with_record(|record| record.branch_depth -= 1);
    out
}

/// Evaluates an expression with sizes for its variables. `None` if `size` has none for one of them, if the result overflows 64 bits, or if its
/// expression gets too long.
pub fn evaluate(expr: &SizeExpr<SizeIndex>, size: &impl Fn(SizeIndex) -> Option<Dim>) -> Option<Dim> {
    let at_hand = expr.eval(&|&v| Some(size(v)?.concrete_value()))?;
    let operand = with_record(|record| {
        let expr = expr.substitute(&|&v| Some(record.expr(size(v)?)))?;
        let expr = expr.share_if_long(&Interval::lookup_by_index(&record.ranges))?;
        Some(record.intern(expr))
    });
    match operand {
        Some(Some(SizeOperand::Expr(id))) => Some(Dim::traced(at_hand, id)),
        Some(Some(SizeOperand::Constant(n))) => Some(Dim::constant(n)),
        Some(None) => None,
        None => Some(Dim::constant(at_hand)),
    }
}

fn with_record<R>(f: impl FnOnce(&mut SizeTrace) -> R) -> Option<R> {
    RECORD.with(|r| r.borrow_mut().as_mut().map(f))
}

pub(super) fn apply_op_to_operands(a: SizeOperand, op: SizeOp, b: SizeOperand) -> Result<SizeOperand, NoExpression> {
    with_record(|record| record.apply_op_to_operands(a, op, b)).unwrap_or(Err(NoExpression))
}

pub(super) fn record_guard(a: SizeOperand, relation: Relation, b: SizeOperand, holds: bool) {
    with_record(|record| record.guard(a, relation, b, holds, false));
}

/// Records a guard that an expression equals `value`, since it was read as a number.
pub(super) fn record_pinned_value(expr: TraceId, value: i64) {
    with_record(|record| {
        record.guard(SizeOperand::Expr(expr), Relation::Equal, SizeOperand::Constant(value), true, true)
    });
}

pub(super) fn expr_text(expr: TraceId) -> String {
    with_record(|record| record.expr_text(&record.exprs[expr.0 as usize])).unwrap_or_default()
}
