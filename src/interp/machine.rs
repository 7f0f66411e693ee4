//! The walk over a computation, and the dispatch on the opcode.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::ranks::Rank;
use super::{apply, control, conv, dot, foreign, gather_scatter, linalg, ranks, reduce, rng, shape_ops, sort, window};
use crate::diag::{Code, Error, Result};
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Literal, Module, Op, Shape, infer};
use crate::scalar::{ScalarOp, eval};
use crate::tensor::{Tensor, element_count};

/// Calls nest at most this deep, so that the stack holds.
const MAX_DEPTH: u32 = 64;
/// No array may have more bytes.
const MAX_BYTES: u64 = 1 << 34;

/// Instructions to run, and how often each value is read.
pub(super) struct Plan {
    order: Vec<InstId>,
    uses: Vec<u32>,
    root: InstId,
}

impl Plan {
    /// The plan of what `root` needs, in `order`.
    pub(super) fn new(comp: &Computation, order: Vec<InstId>, root: InstId) -> Plan {
        let mut uses = vec![0u32; comp.insts.len()];
        for &id in &order {
            for operand in &comp[id].operands {
                uses[operand.0 as usize] += 1;
            }
        }
        uses[root.0 as usize] += 1;
        Plan { order, uses, root }
    }
}

/// What one evaluation shares: the module, the budget of work, plans made so far.
pub(super) struct Machine<'a> {
    pub(super) module: &'a Module,
    budget: Cell<u64>,
    steps: Cell<u64>,
    depth: Cell<u32>,
    /// Which device it is, where there are several.
    pub(super) rank: Option<Rank<'a>>,
    plans: RefCell<HashMap<CompId, Rc<Plan>>>,
}

/// "The module breaks a rule."
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::user(Code::HloInvalid, message)
}

/// "The interpreter lacks this."
pub(super) fn unsupported(message: impl Into<String>) -> Error {
    Error::user(Code::HloUnsupported, message)
}

/// What an instruction reads.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a>(pub(super) &'a [&'a Literal]);

impl<'a> Operands<'a> {
    /// Operand `i`.
    pub(super) fn get(self, i: usize) -> Result<&'a Literal> {
        self.0.get(i).copied().ok_or_else(|| invalid(format!("operand {i} is missing")))
    }
    /// Operand `i`, an array.
    pub(super) fn array(self, i: usize) -> Result<&'a Tensor> {
        match self.get(i)? {
            Literal::Array(t) => Ok(t),
            Literal::Tuple(_) | Literal::Token => Err(invalid(format!("operand {i} is not an array"))),
        }
    }
    /// All operands, arrays.
    pub(super) fn arrays(self) -> Result<Vec<&'a Tensor>> {
        (0..self.0.len()).map(|i| self.array(i)).collect()
    }
    /// Scalar operand `i` as an integer.
    pub(super) fn integer(self, i: usize) -> Result<i64> {
        self.array(i)?.get_i64(0).ok_or_else(|| invalid(format!("operand {i} is not an integer")))
    }
}

/// One array, or a tuple of several.
pub(super) fn one_or_tuple(mut parts: Vec<Tensor>) -> Literal {
    if parts.len() == 1 {
        Literal::Array(parts.remove(0))
    } else {
        Literal::Tuple(parts.into_iter().map(Literal::Array).collect())
    }
}

impl<'a> Machine<'a> {
    /// A machine that does at most `budget` element operations, and whose loops run at most `steps` instructions.
    pub(super) fn new(module: &'a Module, budget: u64, steps: u64) -> Self {
        let (budget, steps) = (Cell::new(budget), Cell::new(steps));
        Machine { module, budget, steps, depth: Cell::new(0), rank: None, plans: RefCell::default() }
    }
    /// The same as one device among others.
    pub(super) fn with_rank(self, rank: Rank<'a>) -> Self {
        Machine { rank: Some(rank), ..self }
    }
    /// Its number among replicas or partitions.
    fn number(&self, of: impl Fn(Rank<'a>) -> u32) -> Result<Tensor> {
        match self.rank {
            Some(rank) => Ok(Tensor::scalar(of(rank))),
            None => self.module.for_one_device().map(|()| Tensor::scalar(0u32)),
        }
    }
    /// Takes the instructions of one more turn of a loop from the steps that are left.
    pub(super) fn turn(&self, cond: CompId, body: CompId) -> Result<()> {
        let work = (self.comp(cond)?.insts.len() + self.comp(body)?.insts.len()) as u64;
        match self.steps.get().checked_sub(work) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(Error::user(Code::StepLimit, "the loop takes more steps than are allowed")),
        }
    }
    /// Takes `work` from the budget.
    pub(super) fn charge(&self, work: u64) -> Result<()> {
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
    /// The computation of `id`.
    pub(super) fn comp(&self, id: CompId) -> Result<&'a Computation> {
        self.module.comps.get(id).ok_or_else(|| invalid("a called computation is missing"))
    }
    /// Checks that arguments have the shapes that the parameters declare.
    pub(super) fn check_args(&self, id: CompId, args: &[Literal]) -> Result<()> {
        let comp = self.comp(id)?;
        for (&p, arg) in comp.params.iter().zip(args) {
            let shape = &comp[p].shape;
            let bounded = shape.leaves().iter().any(|a| a.dynamic.contains(&true));
            if !fits(arg, shape, bounded) {
                let got = infer::literal_shape(arg);
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
        let comp = self.comp(id)?;
        let known = self.plans.borrow().get(&id).cloned();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let order = comp.post_order();
                check(comp, &order, self.module)?;
                let plan = Rc::new(Plan::new(comp, order, comp.root));
                self.plans.borrow_mut().insert(id, plan.clone());
                plan
            }
        };
        if self.depth.get() >= MAX_DEPTH {
            return Err(unsupported(format!("calls nest deeper than {MAX_DEPTH}")));
        }
        self.depth.set(self.depth.get() + 1);
        let result = self.run(comp, &plan, args);
        self.depth.set(self.depth.get() - 1);
        result
    }
    /// Runs a plan of `comp`.
    pub(super) fn run(&self, comp: &Computation, plan: &Plan, args: &[Literal]) -> Result<Literal> {
        if args.len() < comp.params.len() {
            return Err(invalid(format!("`{}` takes {} arguments, not {}", comp.name, comp.params.len(), args.len())));
        }
        let mut left = plan.uses.clone();
        let mut values: Vec<Option<Literal>> = vec![None; comp.insts.len()];
        for &id in &plan.order {
            let inst = &comp[id];
            let operands = inst.operands.iter().map(|o| values[o.0 as usize].as_ref());
            let operands: Option<Vec<&Literal>> = operands.collect();
            let operands = operands.ok_or_else(|| invalid(format!("`{}` reads a value of its own", inst.name)))?;
            let value = self.step(comp, inst, Operands(&operands), args).map_err(|e| at(e, inst))?;
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
        values[plan.root.0 as usize].take().ok_or_else(|| invalid("the root has no value"))
    }
    /// Runs one instruction and checks that its value has the shape that it declares.
    pub(super) fn step(
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
        self.charge(work)?;
        let short = inst.operands.iter().zip(operands.0).any(|(&o, value)| !fits(value, &comp[o].shape, false));
        if short && !takes_short(&inst.op) {
            return Err(unsupported("an operand of less than its bound"));
        }
        let value = self.dispatch(comp, inst, operands, args)?;
        let may_be_short =
            short || matches!(inst.op, Op::SetDimensionSize(_) | Op::Parameter(_)) || has_calls(&inst.op);
        if fits(&value, &inst.shape, may_be_short) {
            return Ok(value);
        }
        let got = infer::literal_shape(&value);
        Err(invalid(format!("the value is {got} where {} is declared", inst.shape)))
    }
    fn dispatch(&self, comp: &Computation, inst: &Inst, operands: Operands, args: &[Literal]) -> Result<Literal> {
        let of = |t: Tensor| Ok(Literal::Array(t));
        match &inst.op {
            Op::Parameter(n) => args.get(*n).cloned().ok_or_else(|| invalid(format!("argument {n} is missing"))),
            Op::Constant(literal) => Ok(literal.clone()),
            Op::Iota(axis) => of(shape_ops::iota(array_shape(inst)?, *axis)?),
            Op::Broadcast(map) => of(shape_ops::broadcast(operands.array(0)?, array_shape(inst)?, map)?),
            Op::Reshape => of(shape_ops::reshape(operands.array(0)?, array_shape(inst)?)?),
            Op::Bitcast => {
                let from = inst.operands.first().map(|&o| &comp[o].shape);
                match (operands.get(0)?, from.and_then(Shape::as_array)) {
                    (Literal::Array(x), Some(from)) => of(shape_ops::bitcast(x, from, array_shape(inst)?)?),
                    (other, _) => Ok(other.clone()),
                }
            }
            Op::Copy | Op::OptimizationBarrier | Op::AddDependency => operands.get(0).cloned(),
            Op::BitcastConvertWidth => of(shape_ops::bitcast_width(operands.array(0)?, array_shape(inst)?)?),
            Op::Transpose(perm) => of(shape_ops::transpose(operands.array(0)?, perm)),
            Op::Reverse(axes) => of(shape_ops::reverse(operands.array(0)?, axes)),
            Op::Slice(dims) => of(shape_ops::slice(operands.array(0)?, dims)),
            Op::Pad(dims) => of(shape_ops::pad(operands.array(0)?, operands.array(1)?, array_shape(inst)?, dims)?),
            Op::Concatenate(axis) => of(shape_ops::concatenate(&operands.arrays()?, array_shape(inst)?, *axis)?),
            Op::DynamicSlice(sizes) => of(shape_ops::dynamic_slice(operands, sizes)?),
            Op::DynamicUpdateSlice => of(shape_ops::dynamic_update_slice(operands)?),
            Op::Gather(dims) => {
                of(gather_scatter::gather(operands.array(0)?, operands.array(1)?, dims, array_shape(inst)?)?)
            }
            Op::Scatter { dims, comp } => gather_scatter::scatter(self, &operands.arrays()?, dims, *comp),
            Op::Reduce { dims, comp } => reduce::reduce(self, &operands.arrays()?, dims, *comp),
            Op::ReduceWindow { window, comp } => window::reduce_window(self, &operands.arrays()?, window, *comp),
            Op::SelectAndScatter { window, select, scatter } => {
                of(window::select_and_scatter(self, &operands.arrays()?, window, *select, *scatter)?)
            }
            Op::Sort { dim, is_stable: _, comp } => sort::sort(self, &operands.arrays()?, *dim, *comp),
            Op::TopK { k, largest } => sort::top_k(operands.array(0)?, *k, *largest),
            Op::Dot(dims) => of(dot::dot(self, operands.array(0)?, operands.array(1)?, dims, array_shape(inst)?)?),
            Op::Convolution(dims) => {
                of(conv::convolution(self, operands.array(0)?, operands.array(1)?, dims, array_shape(inst)?)?)
            }
            Op::Map { comp, dims: _ } => apply::map(self, &operands.arrays()?, *comp),
            Op::Tuple => Ok(Literal::Tuple(operands.0.iter().map(|&l| l.clone()).collect())),
            Op::GetTupleElement(i) => match operands.get(0)? {
                Literal::Tuple(parts) => parts.get(*i).cloned().ok_or_else(|| invalid(format!("no part {i}"))),
                Literal::Array(_) | Literal::Token => Err(invalid("operand 0 is not a tuple")),
            },
            Op::While { cond, body } => control::run_while(self, operands.get(0)?, *cond, *body),
            Op::Conditional(branches) => control::conditional(self, operands, branches),
            Op::Call(comp) | Op::Fusion { comp, kind: _ } => {
                let args: Vec<Literal> = operands.0.iter().map(|&l| l.clone()).collect();
                self.call(*comp, &args)
            }
            Op::Fft { kind, length } => of(linalg::fft(operands.array(0)?, *kind, length, array_shape(inst)?)?),
            Op::Cholesky { lower } => of(linalg::cholesky(operands.array(0)?, *lower)?),
            Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
                let form = linalg::Triangle {
                    left_side: *left_side,
                    lower: *lower,
                    unit_diagonal: *unit_diagonal,
                    transpose: *transpose_a,
                };
                of(linalg::triangular_solve(operands.array(0)?, operands.array(1)?, form)?)
            }
            Op::BatchNormTraining { epsilon_bits, feature_index } => {
                linalg::batch_norm_training(&operands.arrays()?, f32::from_bits(*epsilon_bits), *feature_index)
            }
            Op::BatchNormInference { epsilon_bits, feature_index } => {
                linalg::batch_norm_inference(&operands.arrays()?, f32::from_bits(*epsilon_bits), *feature_index)
            }
            Op::BatchNormGrad { epsilon_bits, feature_index } => {
                linalg::batch_norm_grad(&operands.arrays()?, f32::from_bits(*epsilon_bits), *feature_index)
            }
            Op::Rng { normal } => of(rng::rng(operands.array(0)?, operands.array(1)?, *normal, array_shape(inst)?)?),
            Op::RngBitGenerator { algorithm } => rng::bit_generator(operands.array(0)?, algorithm, &inst.shape),
            Op::GetDimensionSize(axis) => {
                let x = operands.array(0)?;
                let size = x.dims.get(*axis).ok_or_else(|| invalid(format!("dimension {axis} is beyond the rank")))?;
                of(Tensor::scalar(*size as i32))
            }
            Op::SetDimensionSize(axis) => of(shape_ops::set_dimension_size(operands, *axis)?),
            Op::AfterAll => Ok(Literal::Token),
            Op::PartitionId => of(self.number(Rank::partition)?),
            Op::ReplicaId => of(self.number(Rank::replica)?),
            Op::Elementwise(op) => of(elementwise(*op, &operands.arrays()?)?),
            Op::Foreign(f) => match ranks::collective(self, f, operands, &inst.shape)? {
                Some(value) => Ok(value),
                None => foreign::foreign(self, f, operands, &inst.shape),
            },
        }
    }
}

/// The array shape that an instruction declares.
pub(super) fn array_shape(inst: &Inst) -> Result<&ArrayShape> {
    inst.shape.as_array().ok_or_else(|| invalid(format!("`{}` declares {}, not an array", inst.name, inst.shape)))
}

/// Whether a value has the declared shape; with `short`, or where the shape says so, sizes are only bounds.
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
        // A buffer's value is what it holds.
        (Literal::Array(t), Shape::Buffer(a)) => t.dtype == a.dtype && t.dims == a.dims,
        (Literal::Token, Shape::Token | Shape::Opaque) => true,
        _ => false,
    }
}

/// Ops that work on actual sizes, whatever bounds are declared.
fn takes_short(op: &Op) -> bool {
    matches!(
        op,
        Op::Elementwise(_)
            | Op::Broadcast(_)
            | Op::Reshape
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

/// Ops whose value is that of a computation.
fn has_calls(op: &Op) -> bool {
    matches!(op, Op::Call(_) | Op::Fusion { .. } | Op::While { .. } | Op::Conditional(_))
}

/// A pointwise op; where actual sizes differ below equal bounds, what all operands have is computed.
fn elementwise(op: ScalarOp, args: &[&Tensor]) -> Result<Tensor> {
    let rank = args.iter().map(|t| t.dims.len()).max().unwrap_or(0);
    let full: Vec<&Tensor> = args.iter().copied().filter(|t| t.dims.len() == rank).collect();
    if full.windows(2).all(|w| w[0].dims == w[1].dims) {
        return eval::eval(op, args);
    }
    let least: Vec<u64> = (0..rank).filter_map(|i| full.iter().map(|t| t.dims[i]).min()).collect();
    let cropped =
        args.iter().map(|&t| if t.dims.len() == rank { shape_ops::first_part(t, least.clone()) } else { t.clone() });
    let cropped: Vec<Tensor> = cropped.collect();
    eval::eval(op, &cropped.iter().collect::<Vec<_>>())
}

fn at(error: Error, inst: &Inst) -> Error {
    error.map(|d| if d.place.node.is_some() { d } else { d.at_node(&inst.name, inst.op.name()) })
}

/// Checks that declared shapes are those that follow from the operands, so that later steps may index freely.
pub(super) fn check(comp: &Computation, order: &[InstId], module: &Module) -> Result<()> {
    for &id in order {
        let inst = &comp[id];
        if let Some(missing) = inst.operands.iter().find(|o| comp.insts.get(**o).is_none()) {
            return Err(invalid(format!("operand {missing:?} of `{}` is missing", inst.name)));
        }
        if inst.shape.leaves().iter().any(|a| element_count(&a.dims).is_none()) {
            return Err(Error::user(Code::TooLarge, format!("{} of `{}`", inst.shape, inst.name)));
        }
        if !inferable(&inst.op) {
            continue;
        }
        let shapes: Vec<&Shape> = inst.operands.iter().map(|&o| &comp[o].shape).collect();
        let shape = infer::infer(&inst.op, &shapes, module).map_err(|e| at(invalid(e), inst))?;
        if !same_sizes(&shape, &inst.shape) {
            return Err(at(invalid(format!("{} is declared where {shape} follows", inst.shape)), inst));
        }
    }
    Ok(())
}

/// Ops whose payload indexes dimensions; the others check themselves.
fn inferable(op: &Op) -> bool {
    matches!(
        op,
        Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Slice(_)
            | Op::Pad(_)
            | Op::Concatenate(_)
            | Op::DynamicSlice(_)
            | Op::DynamicUpdateSlice
            | Op::Gather(_)
            | Op::Reduce { .. }
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
