//! Evaluation of a computation: the state of one evaluation, and the instructions one after another.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::operands::{Operands, invalid_hlo, unsupported_hlo};
use super::rank::Rank;
use crate::diag::{Code, Error, Result};
use crate::hlo::{CompId, Computation, ElementMapping, Inst, InstId, Literal, Module, Op, Shape, infer, valid_sizes};
use crate::tensor::element_count;

/// Largest nesting depth of calls, so that the stack suffices.
const MAX_DEPTH: u32 = 64;
/// Largest size of an array in bytes.
const MAX_BYTES: u64 = 1 << 34;

/// Instructions to evaluate, and the number of reads of each value.
pub(super) struct EvaluationPlan {
    order: Vec<InstId>,
    uses: Vec<u32>,
    root: InstId,
}

impl EvaluationPlan {
    /// Plan of the instructions that `root` needs, in `order`.
    pub(super) fn new(comp: &Computation, order: Vec<InstId>, root: InstId) -> EvaluationPlan {
        let mut uses = vec![0u32; comp.insts.len()];
        for &id in &order {
            for operand in &comp[id].operands {
                uses[operand.0 as usize] += 1;
            }
        }
        uses[root.0 as usize] += 1;
        EvaluationPlan { order, uses, root }
    }
}

/// Evaluator of opcodes: computes an instruction of a computation from its operands and the arguments of the computation.
pub(super) type Evaluator = fn(&Machine<'_>, &Computation, &Inst, Operands, &[Literal]) -> Result<Literal>;

/// Lowers the function again for other data-dependent sizes, given by number; returns the module and the sizes it was lowered
/// for.
pub type LowerForSizes<'a> = &'a dyn Fn(&[u64]) -> Result<(Rc<Module>, Vec<u64>)>;

/// Data-dependent sizes of a module under evaluation.
pub(super) struct EvaluatedSizes<'a> {
    /// Values that the sizes were assumed to have when the module was lowered.
    pub(super) found: Vec<u64>,
    /// Lowers the function again for other values of these sizes.
    pub(super) lower: LowerForSizes<'a>,
}

/// State of one evaluation: the module, the work budget, and the plans made so far.
pub(super) struct Machine<'a> {
    pub(super) module: &'a Module,
    budget: Cell<u64>,
    steps: Cell<u64>,
    depth: Cell<u32>,
    /// Device that is evaluated, for a module that runs on several.
    pub(super) rank: Option<Rank<'a>>,
    /// Data-dependent sizes, if there are any.
    pub(super) sizes: Option<EvaluatedSizes<'a>>,
    /// Plans by computation and root instruction.
    plans: RefCell<HashMap<(CompId, InstId), Rc<EvaluationPlan>>>,
    /// Evaluator of all opcodes.
    value: Evaluator,
    /// State of the random generator for perturbed rounding.
    pub(super) random: Cell<u64>,
}

impl<'a> Machine<'a> {
    /// State of a new evaluation with a budget of element operations, whose loops run at most `steps` instructions.
    pub(super) fn new(module: &'a Module, budget: u64, steps: u64, value: Evaluator) -> Self {
        let (budget, steps) = (Cell::new(budget), Cell::new(steps));
        Machine {
            module,
            budget,
            steps,
            depth: Cell::new(0),
            rank: None,
            sizes: None,
            plans: RefCell::default(),
            value,
            random: Cell::new(1),
        }
    }
    /// Makes the machine evaluate as one device of several.
    pub(super) fn with_rank(self, rank: Rank<'a>) -> Self {
        Machine { rank: Some(rank), ..self }
    }
    /// Charges the instructions of one more loop iteration to the step limit.
    pub(super) fn charge_iteration(&self, cond: CompId, body: CompId) -> Result<()> {
        let work = (self.computation(cond)?.insts.len() + self.computation(body)?.insts.len()) as u64;
        match self.steps.get().checked_sub(work) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(Error::user(Code::StepLimit, "the loop takes more steps than are allowed")),
        }
    }
    /// Charges `work` to the budget.
    pub(super) fn charge_work(&self, work: u64) -> Result<()> {
        let left = self.budget.get();
        if left == u64::MAX {
            return Ok(());
        }
        self.budget.set(left.saturating_sub(work));
        if work > left {
            Err(Error::user(Code::TooLarge, "the value takes too much work to compute here"))
        } else {
            Ok(())
        }
    }
    /// Computation `id` of the module.
    pub(super) fn computation(&self, id: CompId) -> Result<&'a Computation> {
        self.module.comps.get(id).ok_or_else(|| invalid_hlo("a called computation is missing"))
    }
    /// Checks that arguments have the shapes that the parameters declare.
    pub(super) fn check_args(&self, id: CompId, args: &[Literal]) -> Result<()> {
        let comp = self.computation(id)?;
        for (&p, arg) in comp.params.iter().zip(args) {
            let shape = &comp[p].shape;
            let bounded = shape.leaves().iter().any(|a| a.dynamic.contains(&true));
            if !fits(arg, shape, bounded) {
                let got: Shape = infer::literal_shape(arg);
                return Err(Error::user(
                    Code::BadInputs,
                    format!("`{}` is {shape}, and its argument {got}", comp[p].name),
                ));
            }
        }
        Ok(())
    }
    /// Runs a computation of the module.
    pub(super) fn call(&self, id: CompId, args: &[Literal]) -> Result<Literal> {
        let comp = self.computation(id)?;
        let plan = self.plan(id, comp.root)?;
        if self.depth.get() >= MAX_DEPTH {
            return Err(unsupported_hlo(format!("calls nest deeper than {MAX_DEPTH}")));
        }
        self.depth.set(self.depth.get() + 1);
        let result = match self.at_sizes(id, args) {
            Ok(None) => self.run_plan(comp, &plan, args),
            Ok(Some(result)) => Ok(result),
            Err(error) => Err(error),
        };
        self.depth.set(self.depth.get() - 1);
        result
    }
    /// Plan of the instructions that `root` needs, cached.
    fn plan(&self, id: CompId, root: InstId) -> Result<Rc<EvaluationPlan>> {
        if let Some(known) = self.plans.borrow().get(&(id, root)) {
            return Ok(known.clone());
        }
        let comp = self.computation(id)?;
        let order = comp.post_order_to(root);
        check_shapes(comp, &order, self.module)?;
        let plan = Rc::new(EvaluationPlan::new(comp, order, root));
        self.plans.borrow_mut().insert((id, root), plan.clone());
        Ok(plan)
    }
    /// Result of a called computation whose values give other data-dependent sizes than the module was lowered for: the result
    /// of the same computation, lowered for these sizes. `None` if the sizes agree.
    fn at_sizes(&self, id: CompId, args: &[Literal]) -> Result<Option<Literal>> {
        let comp = self.computation(id)?;
        let Some(sizes) = self.sizes.as_ref().filter(|_| id != self.module.entry) else { return Ok(None) };
        for &(number, count) in &comp.sizes {
            let plan = self.plan(id, count)?;
            let count = self.run_plan(comp, &plan, args)?;
            let said = match &count {
                Literal::Array(t) => t.get_i64(0).and_then(|n| u64::try_from(n).ok()),
                Literal::Tuple(_) | Literal::Token => None,
            };
            let said = said.ok_or_else(|| invalid_hlo("a size is no number of elements"))?;
            if sizes.found.get(number) == Some(&said) {
                continue;
            }
            let mut found = sizes.found.clone();
            *found.get_mut(number).ok_or_else(|| invalid_hlo("a size without a number"))? = said;
            let (module, found) = (sizes.lower)(&found)?;
            let has_size = |c: &CompId| module.comps.get(*c).is_some_and(|c| c.sizes.iter().any(|s| s.0 == number));
            let same = module.reachable().into_iter().find(has_size);
            let same = same.ok_or_else(|| invalid_hlo("other computations are called for other sizes"))?;
            let mut other = Machine::new(&module, u64::MAX, self.steps.get(), self.value);
            other.depth.set(self.depth.get());
            other.sizes = Some(EvaluatedSizes { found, lower: sizes.lower });
            let result = other.call(same, args);
            self.steps.set(other.steps.get());
            return result.map(Some);
        }
        Ok(None)
    }
    /// Runs a plan of `comp`.
    pub(super) fn run_plan(&self, comp: &Computation, plan: &EvaluationPlan, args: &[Literal]) -> Result<Literal> {
        if args.len() < comp.params.len() {
            return Err(invalid_hlo(format!(
                "`{}` takes {} arguments, not {}",
                comp.name,
                comp.params.len(),
                args.len()
            )));
        }
        let mut left = plan.uses.clone();
        let mut values: Vec<Option<Literal>> = vec![None; comp.insts.len()];
        for &id in &plan.order {
            let inst = &comp[id];
            let operands = inst.operands.iter().map(|o| values[o.0 as usize].as_ref());
            let operands: Option<Vec<&Literal>> = operands.collect();
            let operands = operands.ok_or_else(|| invalid_hlo(format!("`{}` reads a value of its own", inst.name)))?;
            let value = self.run_instruction(comp, inst, Operands(&operands), args).map_err(|e| at(e, inst))?;
            if left[id.0 as usize] > 0 {
                values[id.0 as usize] = Some(value);
            }
            for operand in &inst.operands {
                let slot = operand.0 as usize;
                left[slot] -= 1;
                if left[slot] == 0 {
                    values[slot] = None;
                }
            }
        }
        values[plan.root.0 as usize].take().ok_or_else(|| invalid_hlo("the root has no value"))
    }
    /// Instruction adapted to operands with fewer elements than declared, if its attributes name sizes.
    fn resized(&self, comp: &Computation, inst: &Inst, operands: Operands) -> Option<Inst> {
        let declared: Vec<&Shape> = inst.operands.iter().map(|&o| &comp[o].shape).collect();
        let actual: Vec<Shape> = operands.0.iter().map(|&value| infer::literal_shape(value)).collect();
        let actual: Vec<&Shape> = actual.iter().collect();
        let (op, shape) = valid_sizes::with_actual_sizes(inst, &declared, &actual, self.module)?;
        Some(Inst { op, shape, ..inst.clone() })
    }
    /// Runs one instruction, and checks that its value has the declared shape.
    pub(super) fn run_instruction(
        &self,
        comp: &Computation,
        inst: &Inst,
        operands: Operands,
        args: &[Literal],
    ) -> Result<Literal> {
        let mut work = 16;
        for leaf in inst.shape.leaves() {
            work += leaf.elements();
            if leaf.bytes() > MAX_BYTES {
                return Err(Error::user(Code::TooLarge, format!("{leaf} is beyond {MAX_BYTES} bytes")));
            }
        }
        self.charge_work(work)?;
        let short = inst.operands.iter().zip(operands.0).any(|(&o, value)| !fits(value, &comp[o].shape, false));
        let resized = if short { self.resized(comp, inst, operands) } else { None };
        if short && resized.is_none() && !takes_short(&inst.op) {
            return Err(unsupported_hlo("an operand of less than its bound"));
        }
        let value = (self.value)(self, comp, resized.as_ref().unwrap_or(inst), operands, args)?;
        let may_be_short =
            short || matches!(inst.op, Op::SetDimensionSize(_) | Op::Parameter(_)) || has_calls(&inst.op);
        if fits(&value, &inst.shape, may_be_short) {
            return Ok(value);
        }
        let got: Shape = infer::literal_shape(&value);
        Err(invalid_hlo(format!("the value is {got} where {} is declared", inst.shape)))
    }
}

/// Whether a value has the declared shape; with `short`, or if the shape says so, declared sizes are only bounds.
fn fits(value: &Literal, shape: &Shape, short: bool) -> bool {
    match (value, shape) {
        (Literal::Array(t), Shape::Array(a)) => {
            let bounded =
                short && t.dims.len() == a.dims.len() && t.dims.iter().zip(&a.dims).all(|(n, bound)| n <= bound);
            t.dtype == a.dtype && (t.dims == a.dims || bounded)
        }
        (Literal::Tuple(parts), Shape::Tuple(shapes)) => {
            parts.len() == shapes.len() && parts.iter().zip(shapes).all(|(p, s)| fits(p, s, short))
        }
        // The value of a buffer is its contents.
        (Literal::Array(t), Shape::Buffer(a)) => t.dtype == a.dtype && t.dims == a.dims,
        (Literal::Token, Shape::Token | Shape::Opaque) => true,
        _ => false,
    }
}

/// Whether an op computes on the actual sizes of its operands, whatever bounds their shapes declare.
fn takes_short(op: &Op) -> bool {
    matches!(
        op,
        Op::Elementwise(_)
            | Op::Broadcast(_)
            | Op::Pad(_)
            | Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Concatenate(_)
            | Op::Reduce { .. }
            | Op::Sort { .. }
            | Op::Dot(_)
            | Op::Copy
            | Op::OptimizationBarrier
            | Op::Tuple
            | Op::GetTupleElement(_)
            | Op::GetDimensionSize(_)
            | Op::SetDimensionSize(_)
    ) || has_calls(op)
}

/// Whether the result of an op is the result of a computation that the op calls.
fn has_calls(op: &Op) -> bool {
    matches!(op, Op::Call(_) | Op::Fusion { .. } | Op::While { .. } | Op::Conditional(_))
}

fn at(error: Error, inst: &Inst) -> Error {
    error.map(|d| if d.place.node.is_some() { d } else { d.at_node(&inst.name, inst.op.name()) })
}

/// Checks that declared shapes follow from the operands' shapes, so that evaluators may index freely.
pub(super) fn check_shapes(comp: &Computation, order: &[InstId], module: &Module) -> Result<()> {
    for &id in order {
        let inst = &comp[id];
        if let Some(missing) = inst.operands.iter().find(|o| comp.insts.get(**o).is_none()) {
            return Err(invalid_hlo(format!("operand {missing:?} of `{}` is missing", inst.name)));
        }
        if inst.shape.leaves().iter().any(|a| element_count(&a.dims).is_none()) {
            return Err(Error::user(Code::TooLarge, format!("{} of `{}`", inst.shape, inst.name)));
        }
        if !inferable(&inst.op) {
            continue;
        }
        let shapes: Vec<&Shape> = inst.operands.iter().map(|&o| &comp[o].shape).collect();
        let shape = infer::infer(&inst.op, &shapes, module).map_err(|e| at(invalid_hlo(e), inst))?;
        if !same_sizes(&shape, &inst.shape) {
            return Err(at(invalid_hlo(format!("{} is declared where {shape} follows", inst.shape)), inst));
        }
    }
    Ok(())
}

/// Whether the payload of an op names dimensions by index, which have to be checked before the op is evaluated.
fn inferable(op: &Op) -> bool {
    let moves = matches!(op.element_mapping(), ElementMapping::Rearranged | ElementMapping::Selected);
    moves && !matches!(op, Op::Iota(_) | Op::Broadcast(_))
        || matches!(
            op,
            Op::Reduce { .. }
                | Op::ReduceWindow { .. }
                | Op::TopK { .. }
                | Op::Fft { .. }
                | Op::BatchNormTraining { .. }
                | Op::BatchNormGrad { .. }
        )
}

fn same_sizes(a: &Shape, b: &Shape) -> bool {
    let (a, b) = (a.leaves(), b.leaves());
    a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| x.dims == y.dims)
}
