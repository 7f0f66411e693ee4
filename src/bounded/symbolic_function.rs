//! A function with symbolic sizes, lowered once and proved for every size.
//!
//! Lowering records the outcome of each comparison of sizes that it relies on, and each size that it reads as a number
//! (`symbolic::trace`). If the outcomes are the same for all sizes, the module with its size expressions is right for all of them. If a few
//! sizes give other outcomes (counterexamples), the function is lowered for these too, and the modules are compared; a counterexample at
//! the smallest value of a size may be a function of its own, a specialization.
use super::constraints::{SizeConstraint, SizeConstraints};
use super::equality::computes_same_at;
use super::extent::Extent;
use super::open_size_error;
use super::size_exprs::{ComputationExprs, InstExprs, SizeObstacle, attribute_numbers, instruction_order};
use super::steps::SizeSteps;
use crate::hlo::{ArrayShape, CompId, InstId, Literal, Op, Shape, SizeMapping, symbolic};
use crate::lower::{Lowered, SizeLoweringFailure, SizeRecordingLowering, SymbolicLowering};
use crate::symbolic::trace::{Guard, Relation, SizeIndex, SizeTrace, TraceId};
use crate::symbolic::{Dim, Interval};
use crate::tensor::{Size, Tensor};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Upper bound on the combinations of sizes for which one comparison is evaluated.
const MAX_POINTS: u64 = 1 << 17;
/// Largest number of sizes that are kept as counterexamples of one assumed comparison.
const MAX_COUNTEREXAMPLES: usize = 32;
/// Largest number of counterexamples at which the function is lowered again.
const MAX_RELOWERED: usize = 128;
/// Number of concrete sizes at which lowering is tried, since the first may happen to be a special one.
const MAX_SAMPLES: u64 = 3;

/// A function that was lowered once with symbolic sizes.
pub struct SymbolicFunction {
    /// Sizes that the caller passes, counted in steps.
    pub given: Vec<Size>,
    /// Indices of the sizes of `given` at whose smallest value the function needs a lowering of its own.
    pub specialized_sizes: Vec<usize>,
    /// Size expressions of each computation.
    pub forms: Vec<ComputationExprs>,
    /// Range of each size: of the caller's sizes, then of the data-dependent ones.
    pub ranges: Vec<Interval>,
    open: SymbolicLowering,
    expressions: Expressions,
    /// Concrete sizes for which the function was lowered.
    base: Vec<u64>,
}

/// Size expressions of one lowering. Variables of the trace are replaced by the indices of the function's sizes.
struct Expressions {
    record: SizeTrace,
    /// Index of the function's size for each variable of the trace.
    places: BTreeMap<SizeIndex, usize>,
    known: Mutex<HashMap<TraceId, Option<Extent>>>,
}

/// Values of some sizes, by the index of the size.
type Point = BTreeMap<usize, u64>;

/// A comparison of sizes that lowering made, with its outcome.
#[derive(Clone)]
struct Comparison {
    /// Left side minus right side; `None` if the expression is too long.
    difference: Option<Extent>,
    /// Relation between the difference and 0 that was tested.
    relation: Relation,
    /// Outcome of the test.
    holds: bool,
    /// Name and op of the node that was being lowered.
    node: (String, String),
    /// Difference of the compared sizes as text for messages.
    spelled: String,
}

impl Comparison {
    /// The comparison as the reason of an error.
    fn obstacle_at(&self) -> SizeObstacle {
        let asked = match self.relation {
            Relation::Equal => "is 0",
            Relation::Less => "is below 0",
        };
        let spelled = &self.spelled;
        let what =
            format!("what is computed depends on whether `{spelled}` {asked}, which is not the same for every size");
        SizeObstacle { node: self.node.clone(), what }
    }
}

impl Expressions {
    /// Size expressions of the lowering `open`, where the first `given` sizes are the caller's; `None` where a data-dependent size has no
    /// variable.
    fn of_lowering(open: &SymbolicLowering, record: SizeTrace, given: usize) -> Option<Expressions> {
        let data_dependent = |(i, size): (usize, &crate::hlo::DataDependentSize)| {
            record.expr(size.assumed).as_var().map(|&number| (number, given + i))
        };
        let own = (0..given).map(|i| Some((i, i)));
        let places = own.chain(open.sizes.iter().enumerate().map(data_dependent)).collect::<Option<_>>()?;
        Some(Expressions { record, places, known: Mutex::default() })
    }

    /// Comparisons of sizes that the lowering recorded.
    fn comparisons(&self) -> Vec<Comparison> {
        let one = |guard: &Guard| Comparison {
            difference: self.renumber(&guard.difference),
            relation: guard.relation,
            holds: guard.holds,
            node: guard.node.clone(),
            spelled: self.record.expr_text(&guard.difference),
        };
        self.record.guards().iter().map(one).collect()
    }

    fn expression(&self, dim: Dim) -> Option<Extent> {
        let Some(id) = dim.expr() else { return Some(Extent::constant(dim.concrete_value())) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(id).or_insert_with(|| self.renumber(&self.record.expr(dim))).clone()
    }
    fn renumber(&self, expr: &Extent) -> Option<Extent> {
        expr.substitute(&|v| self.places.get(v).copied().map(Extent::var))
    }
}

impl SymbolicFunction {
    /// Lowers a function with symbolic sizes, counted in steps.
    ///
    /// # Errors
    /// Errors of lowering; `Code::OpenSize` where no single module serves every size.
    pub fn lower(given: &[Size], lowering: ConstrainedLowering) -> Result<SymbolicFunction, SizeLoweringFailure> {
        let at = |turn| SymbolicFunction::lower_at(given, &sample_sizes(given, turn), lowering);
        let mut last = at(0);
        for turn in 1..MAX_SAMPLES {
            if last.is_err() {
                last = at(turn).or(last);
            }
        }
        last
    }

    fn lower_at(
        given: &[Size],
        base: &[u64],
        lowering: ConstrainedLowering,
    ) -> Result<SymbolicFunction, SizeLoweringFailure> {
        let (open, record) = lowering.lower_at(given, base)?;
        let expressions = Expressions::of_lowering(&open, record, given.len())
            .ok_or_else(|| crate::diag::Error::internal("bounded", "a size that values say has no variable"))?;
        let mut ranges = vec![Interval::single(0); given.len() + open.sizes.len()];
        for (&number, &place) in &expressions.places {
            ranges[place] = expressions.record.ranges()[number];
        }
        let long =
            || SizeObstacle { node: Default::default(), what: "an expression of the sizes is too long".to_string() };
        let forms = computation_exprs(&open.module, &expressions).ok_or_else(|| open_size_error(&long(), given))?;
        let given = given.to_vec();
        let mut once = SymbolicFunction {
            given,
            specialized_sizes: Vec::new(),
            forms,
            ranges,
            open,
            expressions,
            base: base.to_vec(),
        };
        once.find_specialized_sizes(lowering)?;
        Ok(once)
    }

    /// Finds the sizes at which the function needs a lowering of its own.
    ///
    /// The counterexamples of each comparison are lowered by themselves. Such a lowering records comparisons again, whose counterexamples
    /// are lowered in turn. In the end each combination of sizes is covered by a lowering all of whose comparisons have their recorded
    /// outcomes.
    ///
    /// # Errors
    /// `Code::OpenSize` at the node of the comparison, if the function differs at other sizes than the smallest value of one size, or if there
    /// are too many counterexamples to lower; a failure at a counterexample that needs a constraint.
    fn find_specialized_sizes(&mut self, lowering: ConstrainedLowering) -> Result<(), SizeLoweringFailure> {
        let mut obstacles: Vec<(Point, Comparison)> = Vec::new();
        let mut lowered: BTreeSet<Point> = BTreeSet::new();
        let mut todo = vec![(Point::new(), self.expressions.comparisons())];
        while let Some((at, comparisons)) = todo.pop() {
            for comparison in comparisons {
                let refused = || open_size_error(&comparison.obstacle_at(), &self.given);
                let (counterexamples, are_all) = self.counterexamples(&comparison, &at).ok_or_else(refused)?;
                if let Some(first) = counterexamples.first().filter(|_| !are_all) {
                    self.comparisons_if_equal(first, lowering)?;
                    return Err(refused().into());
                }
                for other in counterexamples {
                    let is_known_obstacle =
                        obstacles.iter().any(|(known, _)| known.iter().all(|(size, n)| other.get(size) == Some(n)));
                    if is_known_obstacle || !lowered.insert(other.clone()) {
                        continue;
                    }
                    if lowered.len() > MAX_RELOWERED {
                        return Err(refused().into());
                    }
                    match self.comparisons_if_equal(&other, lowering)? {
                        Some(own) => todo.push((other, own)),
                        None => obstacles.push((other, comparison.clone())),
                    }
                }
            }
        }
        // what differs at the smallest value of one size alone tells which one it is
        obstacles.sort_by_key(|obstacle| obstacle.0.len());
        for (obstacle, comparison) in obstacles {
            let smallest: Vec<usize> =
                obstacle.iter().filter(|(size, n)| **n == self.given[**size].least).map(|(&size, _)| size).collect();
            match smallest.first() {
                Some(_) if smallest.iter().any(|s| self.specialized_sizes.contains(s)) => {}
                Some(&first) if self.given[first].least < self.given[first].most => self.specialized_sizes.push(first),
                _ => return Err(open_size_error(&comparison.obstacle_at(), &self.given).into()),
            }
        }
        Ok(())
    }

    /// Sizes for which a comparison has another outcome than the recorded one, with the sizes in `at` fixed, and whether these are all: there
    /// may be more than [`MAX_COUNTEREXAMPLES`]. `None` if there are too many combinations of sizes to evaluate.
    fn counterexamples(&self, comparison: &Comparison, at: &Point) -> Option<(Vec<Point>, bool)> {
        let difference = comparison.difference.as_ref()?;
        let vars: Vec<usize> = difference.vars().into_iter().filter(|v| !at.contains_key(v)).collect();
        let range = |v: usize| self.given.get(v).map(|size| (size.least, size.most));
        let ranges: Vec<(u64, u64)> = vars.iter().map(|&v| range(v)).collect::<Option<_>>()?;
        let points = ranges.iter().try_fold(1u64, |n, (least, most)| n.checked_mul(most - least + 1));
        let points = points.filter(|&n| n <= MAX_POINTS)?;
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
            let is_met =
                difference.value_at(&values).is_some_and(|n| comparison.relation.holds(n, 0) == comparison.holds);
            if !is_met {
                out.push(at.iter().map(|(&v, &n)| (v, n)).chain(vars.iter().map(|&v| (v, values[v]))).collect());
            }
            if out.len() > MAX_COUNTEREXAMPLES {
                return Some((out, false));
            }
        }
        Some((out, true))
    }

    /// Lowers the function again with the sizes `other`, the remaining ones at their concrete values, and returns the comparisons recorded
    /// there. `None` where the module differs from this one, or can't be lowered.
    ///
    /// # Errors
    /// A failure that needs a constraint.
    fn comparisons_if_equal(
        &self,
        other: &Point,
        lowering: ConstrainedLowering,
    ) -> Result<Option<Vec<Comparison>>, SizeLoweringFailure> {
        let mut point = self.base.clone();
        for (&size, &n) in other {
            point[size] = n;
        }
        let (open, record) = match lowering.lower_at(&self.given, &point) {
            Ok(lowered) => lowered,
            Err(failure) if SizeConstraint::from_failure(&failure, &self.given).is_some() => return Err(failure),
            Err(_) => return Ok(None),
        };
        point.extend(open.lowered.data_sizes.iter().map(|f| f.0));
        if !computes_same_at(&self.open.lowered.module, &self.forms, &point, &open.lowered.module) {
            return Ok(None);
        }
        let expressions = Expressions::of_lowering(&open, record, self.given.len());
        Ok(expressions.map(|expressions| expressions.comparisons()))
    }

    /// Instantiates the function at upper bounds of the caller's sizes: each array gets its largest dimensions over all sizes up to the bound.
    /// `most` holds counts that `steps` converts to sizes, and `args` the index of the size of each argument's axes. `None` on overflow.
    pub fn instantiate_at_bound(
        &self,
        most: &[u64],
        steps: &SizeSteps,
        args: &[Vec<Option<usize>>],
    ) -> Option<Lowered> {
        let (all, capacities) = self.complete_sizes(most)?;
        if capacities.iter().any(|&n| n < 0) {
            return None;
        }
        let least = self.given.iter().map(|s| s.least).chain(self.open.sizes.iter().map(|_| 0));
        let ranges: Vec<Interval> = least.zip(&all).map(|(a, &b)| Interval::new(a.min(b).into(), b.into())).collect();
        let within = Interval::lookup_by_index(&ranges);
        let largest =
            |d: Dim| self.expressions.expression(d).and_then(|e| i64::try_from(e.extremes(&within)?.most).ok());
        let mut lowered = self.with_sizes(&largest, &steps.sizes_from_counts(most), args)?;
        for (found, &most) in lowered.data_sizes.iter_mut().zip(&all[self.given.len()..]) {
            *found = (most, most);
        }
        Some(lowered)
    }

    /// Instantiates the function at exact sizes: `counts` holds the caller's, counted in steps, then the first data-dependent ones; further
    /// data-dependent sizes get their largest values. `None` on overflow.
    pub fn instantiate_exact(&self, counts: &[u64], steps: &SizeSteps, args: &[Vec<Option<usize>>]) -> Option<Lowered> {
        let (all, most) = self.complete_sizes(counts)?;
        let value = |d: Dim| self.expressions.expression(d).and_then(|e| e.value_at(&all));
        let mut lowered = self.with_sizes(&value, &steps.sizes_from_counts(&counts[..self.given.len()]), args)?;
        for (id, comp) in self.open.module.comps.iter() {
            for (constant, elements) in &comp.size_constants {
                let elements = elements.iter().map(|&e| value(e)).collect::<Option<Vec<i64>>>()?;
                let inst = &mut lowered.module.comps[id].insts[*constant];
                let shape = inst.shape.as_array()?;
                let bytes = elements.iter().flat_map(|&n| Tensor::scalar_from_i64(shape.dtype, n).bytes.to_vec());
                let value = Tensor::new(shape.dtype, shape.dims.clone(), bytes.collect::<Vec<u8>>());
                inst.op = Op::Constant(Literal::Array(value));
            }
        }
        let most = most.into_iter().map(|n| u64::try_from(n).unwrap_or(0));
        lowered.data_sizes = all[self.given.len()..].iter().copied().zip(most).collect();
        Some(lowered)
    }

    /// Copy of the lowering with the sizes of the module replaced by the numbers that `value` returns, and the dynamic sizes of arguments
    /// by `arg_sizes`; `None` if a size has no value.
    fn with_sizes(
        &self,
        value: &dyn Fn(Dim) -> Option<i64>,
        arg_sizes: &[u64],
        args: &[Vec<Option<usize>>],
    ) -> Option<Lowered> {
        let failed = Cell::new(false);
        let known: RefCell<HashMap<TraceId, Option<i64>>> = RefCell::default();
        let signed = |d: Dim| {
            let Some(id) = d.expr() else { return d.concrete_value() };
            let n = *known.borrow_mut().entry(id).or_insert_with(|| value(d));
            failed.set(failed.get() || n.is_none());
            n.unwrap_or(d.concrete_value())
        };
        let size = |d: Dim| u64::try_from(signed(d)).unwrap_or(0);
        let module = self.open.module.map_sizes(SizeMapping { size: &size, signed: &signed });
        if failed.get() {
            return None;
        }
        let mut lowered = Lowered { module, ..self.open.lowered.clone() };
        for (info, axes) in lowered.args.iter_mut().zip(args) {
            for (n, size) in info.dims.iter_mut().zip(axes) {
                *n = size.map_or(*n, |size| arg_sizes[size]);
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

    /// Whether these step counts of the caller's sizes lie in the ranges of step counts for which the function was lowered.
    pub fn covers(&self, counts: &[u64]) -> bool {
        self.given.iter().zip(counts).all(|(size, n)| (size.least..=size.most).contains(n))
    }

    /// Appends to the sizes `first` the largest values of the remaining data-dependent sizes. Returns all sizes, and the largest value of
    /// each data-dependent one; `None` on overflow.
    fn complete_sizes(&self, first: &[u64]) -> Option<(Vec<u64>, Vec<i64>)> {
        let mut all = first.to_vec();
        let mut most = Vec::with_capacity(self.open.sizes.len());
        for (i, found) in self.open.sizes.iter().enumerate() {
            let most_here = self.expressions.expression(found.most)?.value_at(&all)?;
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

/// Lowering of a function under constraints on its sizes.
#[derive(Clone, Copy)]
pub struct ConstrainedLowering<'a> {
    /// Lowers the function.
    pub traced: &'a SizeRecordingLowering,
    /// Constraints on the sizes.
    pub constraints: &'a SizeConstraints,
}

impl ConstrainedLowering<'_> {
    /// Lowers the function where the caller's sizes have the concrete step counts `counts`; `given` holds the ranges of the counts.
    ///
    /// # Errors
    /// Errors of lowering.
    pub fn lower_at(
        &self,
        given: &[Size],
        counts: &[u64],
    ) -> Result<(SymbolicLowering, SizeTrace), SizeLoweringFailure> {
        (self.traced.0)(&self.constraints.steps.stepped_sizes(given, counts), &self.constraints.equalities)
    }

    /// Raises the lower bound of each size, with the others at their upper bounds, until the function can be lowered: windows may not fit
    /// into fewer elements.
    ///
    /// # Errors
    /// Errors of lowering at the upper bounds; a failure at smaller sizes that needs a constraint.
    pub fn lowerable_sizes(&self, given: &[Size]) -> Result<Vec<Size>, SizeLoweringFailure> {
        let most: Vec<u64> = given.iter().map(|size| size.most).collect();
        if !given.is_empty() {
            self.lower_at(given, &most)?;
        }
        let mut lowerable = given.to_vec();
        for (i, size) in given.iter().enumerate().filter(|(_, size)| size.least < size.most) {
            let is_lowerable = |n: u64| {
                let mut counts = most.clone();
                counts[i] = n;
                match self.lower_at(given, &counts) {
                    Ok(_) => Ok(true),
                    Err(failure) if SizeConstraint::from_failure(&failure, given).is_some() => Err(failure),
                    Err(_) => Ok(false),
                }
            };
            let (mut below, mut least) = (size.least, size.most);
            if is_lowerable(below)? {
                continue;
            }
            while least - below > 1 {
                let middle = below + (least - below) / 2;
                if is_lowerable(middle)? { least = middle } else { below = middle }
            }
            lowerable[i].least = least;
        }
        Ok(lowerable)
    }
}

/// Concrete sizes to lower a function for: away from the ends of their ranges and different from one another. `turn` selects the attempt.
fn sample_sizes(given: &[Size], turn: u64) -> Vec<u64> {
    let one = |(i, size): (usize, &Size)| {
        let room = size.most - size.least;
        let part = room / 8 * (5 + turn) + (room % 8) * (5 + turn) / 8;
        size.least + part.saturating_sub(i as u64).clamp(room.min(1), room)
    };
    given.iter().enumerate().map(one).collect()
}

/// Size expressions of each computation reachable from the entry; `None` where an expression is too long.
fn computation_exprs(module: &symbolic::Module, expressions: &Expressions) -> Option<Vec<ComputationExprs>> {
    module.reachable().into_iter().map(|comp| exprs_of_computation(module, comp, expressions)).collect()
}

fn exprs_of_computation(
    module: &symbolic::Module,
    comp: CompId,
    expressions: &Expressions,
) -> Option<ComputationExprs> {
    let order = instruction_order(module, comp);
    let comp = &module.comps[comp];
    let all = |dims: &[Dim]| dims.iter().map(|&d| expressions.expression(d)).collect::<Option<Vec<Extent>>>();
    let elements: HashMap<InstId, &Vec<Dim>> = comp.size_constants.iter().map(|(id, own)| (*id, own)).collect();
    let one = |id: &InstId| {
        let inst = &comp.insts[*id];
        let dims = inst.shape.leaves().into_iter().map(|a: &ArrayShape<Dim>| all(&a.dims)).collect::<Option<_>>()?;
        let elements = match elements.get(id) {
            Some(own) => Some(all(own)?),
            None => None,
        };
        Some(InstExprs { dims, numbers: all(&attribute_numbers(&inst.op))?, elements })
    };
    let varying = order.iter().map(one).collect::<Option<Vec<InstExprs>>>()?;
    Some(ComputationExprs { order, varying: Arc::new(varying) })
}
