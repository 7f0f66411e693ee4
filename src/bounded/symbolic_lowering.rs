//! A function for every size of one lowering, in which sizes are expressions.
//!
//! Lowering records each answer that it takes to a comparison of sizes, and each size that it reads as a number (`symbolic::trace`).
//! Where every answer is the same for all sizes, the module is right for all of them: its numbers are the expressions. Where a few sizes
//! answer otherwise, the function is lowered for these too, and compared; those at the smallest value of a size may be a function of
//! their own.
use super::equality::equal_at;
use super::extent::Extent;
use super::form::{Departure, Form, Varying, numbers, order};
use super::refusal;
use super::steps::Steps;
use crate::diag::Result;
use crate::hlo::{ArrayShape, CompId, InstId, Literal, Op, Shape, SizeMapping, open};
use crate::lower::{Lowered, SizeTracedLowering, SymbolicLowering};
use crate::symbolic::trace::{Guard, Record, Relation, SizeNumber, TraceId};
use crate::symbolic::{Dim, Interval};
use crate::tensor::{Size, Tensor};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// A comparison is answered for so many combinations of sizes at most.
const MOST_POINTS: u64 = 1 << 17;
/// Sizes that answer a comparison otherwise are looked at one by one where they are no more than these.
const MOST_OTHERS: usize = 32;
/// No more combinations of such sizes are lowered.
const MOST_LOWERED: usize = 128;
/// Sizes at which lowering is tried: one that is special by itself may be met.
const TRIES: u64 = 3;

/// A function that was lowered once.
pub struct Once {
    /// The sizes that the caller says, counted in steps.
    pub given: Vec<Size>,
    /// The sizes of `given`, by their numbers, at whose smallest value the function is another one.
    pub apart: Vec<usize>,
    /// The expressions of its numbers, computation by computation.
    pub forms: Vec<Form>,
    /// The range of each size: those that the caller says, and behind them the data-dependent ones.
    pub ranges: Vec<Interval>,
    open: SymbolicLowering,
    expressions: Expressions,
    /// The sizes for which it was lowered.
    base: Vec<u64>,
}

/// The expressions of recorded sizes, whose variables are the numbers of the sizes of the function.
struct Expressions {
    record: Record,
    /// The numbers of the record's variables among the sizes of the function.
    places: BTreeMap<SizeNumber, usize>,
    known: Mutex<HashMap<TraceId, Option<Extent>>>,
}

/// Values of some sizes, by the numbers of the sizes.
type Point = BTreeMap<usize, u64>;

/// A comparison that lowering made, and the answer that it took.
#[derive(Clone)]
struct Comparison {
    /// The left side less the right one; `None`: too long an expression, or one of what has no variable.
    difference: Option<Extent>,
    /// How the difference compares with 0.
    relation: Relation,
    /// Whether it does so.
    holds: bool,
    /// The name and the op of the node that was lowered.
    node: (String, String),
    /// The difference as text.
    spelled: String,
}

impl Comparison {
    /// The comparison in words.
    fn departure(&self) -> Departure {
        let asked = match self.relation {
            Relation::Equal => "is 0",
            Relation::Less => "is below 0",
        };
        let spelled = &self.spelled;
        let what =
            format!("what is computed depends on whether `{spelled}` {asked}, which is not the same for every size");
        Departure { node: self.node.clone(), what }
    }
}

impl Expressions {
    /// Expressions of one lowering for `given` sizes that the caller says; `None` where a data-dependent size has no variable.
    fn of_lowering(open: &SymbolicLowering, record: Record, given: usize) -> Option<Expressions> {
        let data_dependent = |(i, size): (usize, &crate::hlo::DataSize)| {
            record.expr(size.assumed).as_var().map(|&number| (number, given + i))
        };
        let own = (0..given).map(|i| Some((i, i)));
        let places = own.chain(open.sizes.iter().enumerate().map(data_dependent)).collect::<Option<_>>()?;
        Some(Expressions { record, places, known: Mutex::default() })
    }

    /// The comparisons that were recorded.
    fn comparisons(&self) -> Vec<Comparison> {
        let one = |guard: &Guard| Comparison {
            difference: self.renumbered(&guard.difference),
            relation: guard.relation,
            holds: guard.holds,
            node: guard.node.clone(),
            spelled: self.record.spelled(&guard.difference),
        };
        self.record.guards().iter().map(one).collect()
    }

    fn of(&self, dim: Dim) -> Option<Extent> {
        let Some(id) = dim.expr() else { return Some(Extent::constant(dim.at_hand())) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(id).or_insert_with(|| self.renumbered(&self.record.expr(dim))).clone()
    }
    fn renumbered(&self, expr: &Extent) -> Option<Extent> {
        expr.substituted(&|v| self.places.get(v).copied().map(Extent::var))
    }
}

impl Once {
    /// Lowers a function for sizes counted in steps.
    ///
    /// # Errors
    /// Those of lowering; `Code::OpenSize` where it can't be one function for every size.
    pub fn new(given: &[Size], traced: &SizeTracedLowering, steps: &Steps) -> Result<Once> {
        let at = |turn| Once::at(given, &base(given, turn), traced, steps);
        let mut last = at(0);
        for turn in 1..TRIES {
            if last.is_err() {
                last = at(turn).or(last);
            }
        }
        last
    }

    fn at(given: &[Size], base: &[u64], traced: &SizeTracedLowering, steps: &Steps) -> Result<Once> {
        let (open, record) = (traced.0)(&steps.traced(given, base))?;
        let expressions = Expressions::of_lowering(&open, record, given.len())
            .ok_or_else(|| crate::diag::Error::internal("bounded", "a size that values say has no variable"))?;
        let mut ranges = vec![Interval::one(0); given.len() + open.sizes.len()];
        for (&number, &place) in &expressions.places {
            ranges[place] = expressions.record.ranges()[number];
        }
        let long =
            || Departure { node: Default::default(), what: "an expression of the sizes is too long".to_string() };
        let forms = forms(&open.module, &expressions).ok_or_else(|| refusal(&long(), given))?;
        let given = given.to_vec();
        let mut once = Once { given, apart: Vec::new(), forms, ranges, open, expressions, base: base.to_vec() };
        once.settle(traced, steps)?;
        Ok(once)
    }

    /// Finds at which sizes the function is another one.
    ///
    /// Sizes that answer a comparison otherwise are lowered by themselves, which records comparisons again: these hold for all other sizes
    /// too, or the sizes that answer them otherwise are lowered in turn. So each combination of sizes is covered by a lowering whose
    /// comparisons all have the answers that it took.
    ///
    /// # Errors
    /// `Code::OpenSize` at the node that compared, where these are others than the smallest of one size, or too many to lower.
    fn settle(&mut self, traced: &SizeTracedLowering, steps: &Steps) -> Result<()> {
        let mut departures: Vec<(Point, Comparison)> = Vec::new();
        let mut lowered: BTreeSet<Point> = BTreeSet::new();
        let mut todo = vec![(Point::new(), self.expressions.comparisons())];
        while let Some((at, comparisons)) = todo.pop() {
            for comparison in comparisons {
                let refused = || refusal(&comparison.departure(), &self.given);
                for other in self.others(&comparison, &at).ok_or_else(refused)? {
                    let is_departure =
                        departures.iter().any(|(known, _)| known.iter().all(|(size, n)| other.get(size) == Some(n)));
                    if is_departure || !lowered.insert(other.clone()) {
                        continue;
                    }
                    if lowered.len() > MOST_LOWERED {
                        return Err(refused());
                    }
                    match self.comparisons_at(&other, traced, steps) {
                        Some(own) => todo.push((other, own)),
                        None => departures.push((other, comparison.clone())),
                    }
                }
            }
        }
        // what differs at the smallest value of one size alone tells which one it is
        departures.sort_by_key(|departure| departure.0.len());
        for (departure, comparison) in departures {
            let smallest: Vec<usize> =
                departure.iter().filter(|(size, n)| **n == self.given[**size].least).map(|(&size, _)| size).collect();
            match smallest.first() {
                Some(_) if smallest.iter().any(|s| self.apart.contains(s)) => {}
                Some(&first) if self.given[first].least < self.given[first].most => self.apart.push(first),
                _ => return Err(refusal(&comparison.departure(), &self.given)),
            }
        }
        Ok(())
    }

    /// The sizes, by their numbers, for which a comparison has another answer than it was taken to have, where those of `at` have these
    /// values; `None` where they are many, or there are too many sizes to tell.
    fn others(&self, comparison: &Comparison, at: &Point) -> Option<Vec<Point>> {
        let difference = comparison.difference.as_ref()?;
        let vars: Vec<usize> = difference.vars().into_iter().filter(|v| !at.contains_key(v)).collect();
        let range = |v: usize| self.given.get(v).map(|size| (size.least, size.most));
        let ranges: Vec<(u64, u64)> = vars.iter().map(|&v| range(v)).collect::<Option<_>>()?;
        let points = ranges.iter().try_fold(1u64, |n, (least, most)| n.checked_mul(most - least + 1));
        let points = points.filter(|&n| n <= MOST_POINTS)?;
        let mut values = vec![0; self.given.len()];
        for (&v, &n) in at {
            values[v] = n;
        }
        let mut out = Vec::new();
        for point in 0..points {
            let mut left = point;
            for (&v, &(least, most)) in vars.iter().zip(&ranges) {
                values[v] = least + left % (most - least + 1);
                left /= most - least + 1;
            }
            let is_met = difference.at(&values).is_some_and(|n| comparison.relation.holds(n, 0) == comparison.holds);
            if !is_met {
                out.push(at.iter().map(|(&v, &n)| (v, n)).chain(vars.iter().map(|&v| (v, values[v]))).collect());
            }
            if out.len() > MOST_OTHERS {
                return None;
            }
        }
        Some(out)
    }

    /// The comparisons of lowering where some sizes have these values, and the others are those for which the function was lowered;
    /// `None` where it is another function there.
    fn comparisons_at(&self, other: &Point, traced: &SizeTracedLowering, steps: &Steps) -> Option<Vec<Comparison>> {
        let mut point = self.base.clone();
        for (&size, &n) in other {
            point[size] = n;
        }
        let (open, record) = (traced.0)(&steps.traced(&self.given, &point)).ok()?;
        point.extend(open.lowered.data_sizes.iter().map(|f| f.0));
        if !equal_at(&self.open.lowered.module, &self.forms, &point, &open.lowered.module) {
            return None;
        }
        Some(Expressions::of_lowering(&open, record, self.given.len())?.comparisons())
    }

    /// The function up to a bound of the sizes that the caller says, each array as large as it is for any of them. `steps` give
    /// the sizes of counts, and `args` say which axes of the arguments have them.
    pub fn bound(&self, most: &[u64], steps: &Steps, args: &[Vec<Option<usize>>]) -> Option<Lowered> {
        let (all, capacities) = self.all_sizes(most)?;
        if capacities.iter().any(|&n| n < 0) {
            return None;
        }
        let least = self.given.iter().map(|s| s.least).chain(self.open.sizes.iter().map(|_| 0));
        let ranges: Vec<Interval> = least.zip(&all).map(|(a, &b)| Interval::new(a.min(b).into(), b.into())).collect();
        let within = Interval::of_each(&ranges);
        let largest = |d: Dim| self.expressions.of(d).and_then(|e| i64::try_from(e.extremes(&within)?.most).ok());
        let mut lowered = self.resized(&largest, &steps.sizes(most), args)?;
        for (found, &most) in lowered.data_sizes.iter_mut().zip(&all[self.given.len()..]) {
            *found = (most, most);
        }
        Some(lowered)
    }

    /// The function for exactly some sizes: those that the caller says, counted in steps, and behind them the first of those that values
    /// say; further ones are taken to be the largest that they may be.
    pub fn exact(&self, counts: &[u64], steps: &Steps, args: &[Vec<Option<usize>>]) -> Option<Lowered> {
        let (all, most) = self.all_sizes(counts)?;
        let value = |d: Dim| self.expressions.of(d).and_then(|e| e.at(&all));
        let mut lowered = self.resized(&value, &steps.sizes(&counts[..self.given.len()]), args)?;
        for (id, comp) in self.open.module.comps.iter() {
            for (constant, elements) in &comp.size_constants {
                let elements = elements.iter().map(|&e| value(e)).collect::<Option<Vec<i64>>>()?;
                let inst = &mut lowered.module.comps[id].insts[*constant];
                let shape = inst.shape.as_array()?;
                let bytes = elements.iter().flat_map(|&n| Tensor::scalar_of_int(shape.dtype, n).bytes.to_vec());
                let value = Tensor::new(shape.dtype, shape.dims.clone(), bytes.collect::<Vec<u8>>());
                inst.op = Op::Constant(Literal::Array(value));
            }
        }
        let most = most.into_iter().map(|n| u64::try_from(n).unwrap_or(0));
        lowered.data_sizes = all[self.given.len()..].iter().copied().zip(most).collect();
        Some(lowered)
    }

    /// The function with other sizes: those that `value` gives, and of the arguments those that the caller says.
    fn resized(
        &self,
        value: &dyn Fn(Dim) -> Option<i64>,
        said: &[u64],
        args: &[Vec<Option<usize>>],
    ) -> Option<Lowered> {
        let failed = Cell::new(false);
        let known: RefCell<HashMap<TraceId, Option<i64>>> = RefCell::default();
        let signed = |d: Dim| {
            let Some(id) = d.expr() else { return d.at_hand() };
            let n = *known.borrow_mut().entry(id).or_insert_with(|| value(d));
            failed.set(failed.get() || n.is_none());
            n.unwrap_or(d.at_hand())
        };
        let size = |d: Dim| u64::try_from(signed(d)).unwrap_or(0);
        let module = self.open.module.resized(SizeMapping { size: &size, signed: &signed });
        if failed.get() {
            return None;
        }
        let mut lowered = Lowered { module, ..self.open.lowered.clone() };
        for (info, axes) in lowered.args.iter_mut().zip(args) {
            for (n, size) in info.dims.iter_mut().zip(axes) {
                *n = size.map_or(*n, |size| said[size]);
            }
        }
        let root = lowered.module.entry();
        let parts = match &root.insts[root.root].shape {
            Shape::Tuple(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        for (info, part) in lowered.results.iter_mut().zip(&parts) {
            info.dims.clone_from(&part.as_array()?.dims);
        }
        Some(lowered)
    }

    /// Whether the function serves these counts of the sizes that the caller says.
    pub fn serves(&self, counts: &[u64]) -> bool {
        self.given.iter().zip(counts).all(|(size, n)| (size.least..=size.most).contains(n))
    }

    /// All sizes, of which the first are said, and the largest that each of those that values say may be; so large are those that are not
    /// said.
    fn all_sizes(&self, said: &[u64]) -> Option<(Vec<u64>, Vec<i64>)> {
        let mut all = said.to_vec();
        let mut most = Vec::with_capacity(self.open.sizes.len());
        for (i, found) in self.open.sizes.iter().enumerate() {
            let most_here = self.expressions.of(found.most)?.at(&all)?;
            let largest = u64::try_from(most_here).unwrap_or(0);
            match all.get_mut(self.given.len() + i) {
                Some(known) => *known = (*known).min(largest),
                None => all.push(largest),
            }
            most.push(most_here);
        }
        Some((all, most))
    }
}

/// Sizes to lower a function for, away from the ends of what they may be and from one another.
fn base(given: &[Size], turn: u64) -> Vec<u64> {
    let one = |(i, size): (usize, &Size)| {
        let room = size.most - size.least;
        let part = room / 8 * (5 + turn) + (room % 8) * (5 + turn) / 8;
        size.least + part.saturating_sub(i as u64).clamp(room.min(1), room)
    };
    given.iter().enumerate().map(one).collect()
}

/// The expressions of the numbers in each computation that the entry reaches; `None` where an expression is too large.
fn forms(module: &open::Module, expressions: &Expressions) -> Option<Vec<Form>> {
    module.reachable().into_iter().map(|comp| form(module, comp, expressions)).collect()
}

fn form(module: &open::Module, comp: CompId, expressions: &Expressions) -> Option<Form> {
    let order = order(module, comp);
    let comp = &module.comps[comp];
    let all = |dims: &[Dim]| dims.iter().map(|&d| expressions.of(d)).collect::<Option<Vec<Extent>>>();
    let elements: HashMap<InstId, &Vec<Dim>> = comp.size_constants.iter().map(|(id, own)| (*id, own)).collect();
    let one = |id: &InstId| {
        let inst = &comp.insts[*id];
        let dims = inst.shape.leaves().into_iter().map(|a: &ArrayShape<Dim>| all(&a.dims)).collect::<Option<_>>()?;
        let elements = match elements.get(id) {
            Some(own) => Some(all(own)?),
            None => None,
        };
        Some(Varying { dims, numbers: all(&numbers(&inst.op))?, elements })
    };
    let varying = order.iter().map(one).collect::<Option<Vec<Varying>>>()?;
    Some(Form { order, varying: Arc::new(varying) })
}
