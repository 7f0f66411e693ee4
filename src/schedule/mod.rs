//! HLO to kernels: which instructions share a kernel, which loops and tiles, which memory.
mod ahead;
mod choices;
mod fuse;
mod halves;
mod heaviest;
mod in_place;
mod joined;
mod late;
mod layout;
mod live;
mod memory_plan;
mod nest;
mod order;
mod phases;
mod points;
mod scaled;
mod states;
mod stored;
mod together;
mod weights;
mod winograd;
mod winograd1d;

use crate::diag::{Code, Error, Result};
use crate::hlo::{ArrayShape, CompId, Computation, InstId, Literal, Module, Op, Shape};
use crate::kernel::{BufId, Buffer, Kernel, KernelId, Place, Program, Step};
use crate::lower::Lowered;
use crate::target::Target;
use crate::tensor::{DType, Tensor, TensorInfo};
use crate::util::id_vec::IdVec;
use choices::{Aims, Choices, Found};
use fuse::{Fate, Plan};
use halves::Cuts;
use in_place::Lifetimes;
use layout::{Layout, Spot};
use std::collections::{HashMap, HashSet};
use weights::Weights;

/// By how much constants may grow for speed, at most, beside a twenty-fourth.
const MOST_SPARE: u64 = 128 << 10;
/// Bytes by which code may be larger than tfcompile's, which has constants twice, so that no object is.
const MOST_CODE: u64 = 48 << 10;
/// The part of what is beyond that by which constants may grow where the workspace shrinks.
const MOST_GROWN: (u64, u64) = (3, 4);

/// Schedules an optimised module.
pub fn build(lowered: &Lowered, name: &str, source: &str, target: &Target) -> Result<Program> {
    let apart = late::apart(&lowered.module);
    let module = apart.as_ref().unwrap_or(&lowered.module);
    let scaled = scaled::into_weights(module);
    let module = scaled.as_ref().unwrap_or(module);
    let results: u64 = lowered.results.iter().map(TensorInfo::bytes).sum();
    let workspace = halves::dense(module, target).saturating_sub(results);
    let program = Program {
        name: name.to_string(),
        source: source.to_string(),
        args: lowered.args.clone(),
        results: lowered.results.clone(),
        ..Program::default()
    };
    let least = |module: &Module| {
        let all = constant_bytes(module);
        let grown = all / 24 + all.saturating_sub(MOST_CODE) * MOST_GROWN.0 / MOST_GROWN.1;
        let aims = Aims { workspace, constants: all + grown };
        choices::least(&aims, |choices| scheduled(module, lowered, program.clone(), target, choices))
    };
    let halved = halves::cut(module, Cuts::Once, target);
    let module = halved.as_ref().unwrap_or(module);
    let once = least(module)?;
    if once.workspace_bytes > workspace
        && let Some(module) = halves::cut(module, Cuts::Twice, target)
    {
        let twice = least(&module)?;
        return Ok(if choices::spares_much(&once, &twice) { twice } else { once });
    }
    Ok(once)
}

/// The program of `module`, and what may take less memory.
fn scheduled(
    module: &Module,
    lowered: &Lowered,
    program: Program,
    target: &Target,
    choices: &Choices,
) -> Result<(Program, Found)> {
    let mut s = Scheduler {
        module,
        target,
        program,
        weights: Weights::default(),
        depth: 0,
        spare_bytes: spare_bytes(module),
        choices: choices.clone(),
        found: Found::default(),
    };
    let mut args = Vec::new();
    for (i, t) in lowered.args.iter().enumerate() {
        let elements = crate::tensor::element_count(&t.dims).unwrap_or(0);
        args.push(Value {
            leaves: vec![s.program.buffers.push(Buffer { dtype: t.dtype, elements, place: Place::Arg(i) })],
            layout: None,
        });
    }
    let mut steps = Vec::new();
    let root = s.computation(module.entry, args, Params::Borrowed, &mut steps)?;
    s.results(&root, &mut steps)?;
    s.program.steps = steps;
    s.program.weights_bytes = s.weights.bytes();
    s.program.weights = std::mem::take(&mut s.weights).finish();
    together::gather(&mut s.program);
    joined::join(&mut s.program);
    ahead::ask(&mut s.program);
    memory_plan::plan(&mut s.program, choices.in_results)?;
    s.program.flops = s.program.kernels.values().map(|k| k.flops).sum();
    crate::kernel::verify(&s.program)?;
    Ok((s.program, s.found))
}

/// An HLO value in memory: one buffer an array, tuples flattened.
#[derive(Clone, Debug, Default)]
struct Value {
    leaves: Vec<BufId>,
    /// Where an array's elements lie when it is not dense.
    layout: Option<Layout>,
}

impl Value {
    /// The buffer of a dense array.
    fn only(&self) -> Result<BufId> {
        match self.layout {
            None => self.buffer(),
            Some(_) => Err(Error::internal("schedule", "an array is read as if it were dense")),
        }
    }
    /// The buffer of an array.
    fn buffer(&self) -> Result<BufId> {
        self.leaves.first().copied().ok_or_else(|| Error::internal("schedule", "an array has no buffer"))
    }
    /// Where an array of `dims` has its elements.
    fn layout(&self, dims: &[u64]) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::dense(dims))
    }
}

/// What the kernels of a computation are to be.
struct Kernels {
    plan: Plan,
    scaled: HashMap<InstId, scaled::Scaled>,
    chains: HashMap<InstId, nest::Chain>,
    blocks: HashMap<InstId, nest::Block>,
    separables: HashMap<InstId, nest::Separable>,
    summed: HashSet<InstId>,
    pools: HashMap<InstId, nest::Pooled>,
    spots: IdVec<InstId, Spot>,
}

/// One computation while its kernels are made.
struct Scope<'a> {
    comp: &'a Computation,
    plan: Plan,
    /// Depthwise convolutions whose kernel makes their operand too, row by row, by the instruction that the kernel ends in.
    chains: HashMap<InstId, nest::Chain>,
    /// Products whose kernel makes their left side too, a block of rows at a time, by the same.
    blocks: HashMap<InstId, nest::Block>,
    /// 1x1 convolutions whose kernel makes the depthwise window that they read too, row by row, by the same.
    separables: HashMap<InstId, nest::Separable>,
    /// Windows of maxima whose kernels make their operand too, a convolution's results, by the instruction that those end in.
    pools: HashMap<InstId, nest::Pooled>,
    spots: IdVec<InstId, Spot>,
    values: HashMap<InstId, Value>,
    /// Concatenations that have memory before their turn comes, because a part is written into it.
    placed: HashMap<InstId, Value>,
    /// Copies with margins of values that have none.
    padded: HashMap<InstId, Value>,
    lifetimes: Lifetimes,
    /// In the body of a loop: the memory of the state that a next value may be written to.
    states: HashMap<InstId, BufId>,
    /// Memory that belongs to the caller.
    borrowed: HashSet<BufId>,
    /// Constants in fewer bits that their readers widen: they have no array of their own.
    stored: HashSet<InstId>,
    /// Weights times one factor a feature, which their convolutions scale themselves.
    scaled: HashMap<InstId, scaled::Scaled>,
    /// What depthwise windows make that is summed over all its pixels, and the sums that they left.
    summed: HashSet<InstId>,
    parts: HashMap<InstId, nest::Parts>,
}

/// Whose memory the parameters of a computation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Params {
    /// The computation's: nobody reads it again.
    Owned,
    /// The caller's.
    Borrowed,
}

struct Scheduler<'a> {
    module: &'a Module,
    target: &'a Target,
    program: Program,
    weights: Weights,
    depth: usize,
    /// By how much constants may still grow for speed.
    spare_bytes: u64,
    choices: Choices,
    found: Found,
}

/// By how much the constants of a module may grow for speed: a twenty-fourth, and what they have beyond the bytes by which code
/// may be larger, at most an eighth of a mebibyte, so that no object becomes larger than tfcompile's; what fills up the last
/// panels takes about as much again.
fn spare_bytes(module: &Module) -> u64 {
    let all = constant_bytes(module);
    all / 24 + all.saturating_sub(MOST_CODE).min(MOST_SPARE)
}

/// Bytes of all constants of a module.
fn constant_bytes(module: &Module) -> u64 {
    let insts = module.comps.values().flat_map(|c| c.insts.values());
    let constants = insts.map(|i| match &i.op {
        Op::Constant(Literal::Array(t)) => t.bytes.len() as u64,
        _ => 0,
    });
    constants.sum()
}

fn refuse(comp: &Computation, id: InstId, why: &str) -> Error {
    let inst = &comp[id];
    let error =
        Error::user(Code::HloUnsupported, format!("native code has no `{}` of {}{why}", inst.op.name(), inst.shape));
    if inst.metadata.op_name.is_empty() {
        return error;
    }
    error.map(|d| d.at_node(&inst.metadata.op_name, &inst.metadata.op_type))
}

impl<'a> Scheduler<'a> {
    fn buffer(&mut self, dtype: DType, elements: u64) -> BufId {
        self.program.buffers.push(Buffer { dtype, elements, place: Place::Workspace(0) })
    }

    /// Memory on the stack of the one kernel that uses it.
    fn on_stack(&mut self, dtype: DType, elements: u64) -> BufId {
        self.program.buffers.push(Buffer { dtype, elements, place: Place::Stack })
    }

    fn fresh(&mut self, shape: &Shape) -> Value {
        let leaves = shape.leaves().iter().map(|a| self.buffer(a.dtype, a.elements())).collect();
        Value { leaves, layout: None }
    }

    /// Memory for the array that loops of this computation make, where its readers want it.
    fn place(&mut self, scope: &mut Scope<'a>, id: InstId, steps: &mut Vec<Step>) -> Result<Value> {
        if let Some(value) = scope.placed.remove(&id) {
            return Ok(value);
        }
        let comp = scope.comp;
        match scope.spots[id].clone() {
            Spot::Margin { low, high, made: true } => {
                let value = self.with_margin(comp.array(id), &low, &high, steps)?;
                if self.is_entry(comp) {
                    self.found.margins.insert(value.buffer()?, id);
                }
                self.note_margin(scope, id, value.buffer()?);
                Ok(value)
            }
            Spot::Dense | Spot::Margin { .. } => Ok(self.fresh(&comp[id].shape)),
            Spot::Part { whole, axis, before } => {
                let value = self.place(scope, whole, steps)?;
                if self.is_entry(comp) {
                    // where one lies in another, that is the outermost
                    self.found.wholes.entry(value.buffer()?).or_insert(whole);
                }
                let layout = value.layout(&comp.array(whole).dims).part(axis, before);
                scope.placed.insert(whole, value.clone());
                Ok(Value { layout: Some(layout), ..value })
            }
        }
    }

    /// Notes that `plane` has margins in `buf`, if windows might do without.
    fn note_margin(&mut self, scope: &Scope<'a>, plane: InstId, buf: BufId) {
        let comp = scope.comp;
        if self.is_entry(comp) && layout::is_read_in_parts(comp, plane, &comp.users()[plane], self.target) {
            self.found.in_parts.insert(buf, plane);
        }
    }

    /// Memory for an array with zeros around it, which are written at once.
    fn with_margin(&mut self, shape: &ArrayShape, low: &[u64], high: &[u64], steps: &mut Vec<Step>) -> Result<Value> {
        let whole: Vec<u64> = shape.dims.iter().zip(low).zip(high).map(|((n, a), b)| n + a + b).collect();
        crate::tensor::element_count(&whole)
            .ok_or_else(|| Error::user(Code::TooLarge, "an array with its padding has too many elements"))?;
        let layout = Layout::with_margin(&shape.dims, low, high);
        let buf = self.buffer(shape.dtype, layout.elements(&shape.dims));
        let kernel = nest::margin(buf, shape, &layout, self.lanes(shape.dtype));
        self.launch(kernel, steps);
        Ok(Value { leaves: vec![buf], layout: Some(layout) })
    }

    fn literal(&mut self, literal: &Literal) -> Value {
        Value { leaves: literal.leaves().into_iter().map(|t| self.constant(t)).collect(), layout: None }
    }

    fn constant(&mut self, t: &Tensor) -> BufId {
        let place = Place::Weights(self.weights.add(&t.bytes));
        self.program.buffers.push(Buffer { dtype: t.dtype, elements: t.len() as u64, place })
    }

    /// Adds a kernel and its launch.
    fn launch(&mut self, kernel: Kernel, steps: &mut Vec<Step>) {
        let id: KernelId = self.program.kernels.push(kernel);
        steps.push(Step::Launch(id));
    }

    /// The steps of a computation. It may write to the memory of its parameters where they are `Params::Owned`.
    fn computation(&mut self, id: CompId, params: Vec<Value>, owner: Params, steps: &mut Vec<Step>) -> Result<Value> {
        self.depth += 1;
        if self.depth > 64 {
            return Err(Error::user(Code::TooLarge, "computations are nested more than 64 deep"));
        }
        let comp = &self.module.comps[id];
        let plain = match owner {
            Params::Owned => comp.post_order(),
            Params::Borrowed => self.turn(id),
        };
        let Kernels { plan, scaled, chains, blocks, separables, pools, summed, spots } = self.planned(comp, &plain);
        let (values, placed, padded) = (HashMap::new(), HashMap::new(), HashMap::new());
        let order = match owner {
            Params::Owned => states::order(comp, &plan),
            Params::Borrowed => late::order(comp, plain),
        };
        let lifetimes = Lifetimes::new(comp, &plan, &order);
        let states = match (owner, &params[..]) {
            (Params::Owned, [state]) => states::targets(comp, state),
            _ => HashMap::new(),
        };
        let borrowed = match owner {
            Params::Owned => HashSet::new(),
            Params::Borrowed => params.iter().flat_map(|p| p.leaves.iter().copied()).collect(),
        };
        let stored = stored::widened_by_readers(comp);
        let mut scope = Scope {
            comp,
            plan,
            chains,
            blocks,
            separables,
            pools,
            spots,
            lifetimes,
            states,
            borrowed,
            stored,
            scaled,
            summed,
            parts: HashMap::new(),
            values,
            placed,
            padded,
        };
        for (&p, value) in comp.params.iter().zip(params) {
            scope.values.insert(p, value);
        }
        for inst in order {
            if comp[inst].shape.leaves().iter().any(|a| a.dynamic.contains(&true)) {
                return Err(refuse(comp, inst, ": sizes must be known at compile time"));
            }
            self.instruction(&mut scope, inst, steps)?;
        }
        self.depth -= 1;
        scope.values.remove(&comp.root).ok_or_else(|| Error::internal("schedule", "the root has no value"))
    }

    fn is_entry(&self, comp: &Computation) -> bool {
        std::ptr::eq(comp, &self.module.comps[self.module.entry])
    }

    /// Which instructions of `comp` share a kernel, and where arrays lie.
    fn planned(&self, comp: &Computation, plain: &[InstId]) -> Kernels {
        let mut plan = fuse::plan(self.module, comp, plain);
        let scaled = scaled::take_in(comp, &mut plan);
        let chains = self.chains(comp, &mut plan);
        let blocks = self.blocks(comp, &mut plan);
        let separables = self.separables(comp, &mut plan, |id| chains.contains_key(&id));
        let pools = self.pools(comp, &mut plan);
        layout::leave_apart(comp, &mut plan, self.target);
        let summed = self.summed(comp, &plan);
        let mut spots = layout::spots(comp, &plan, self.target);
        if self.is_entry(comp) {
            layout::copy_parts(&mut spots, &self.choices.apart);
            layout::copy_planes(&mut spots, &self.choices.copied);
            layout::leave_dense(&mut spots, &self.choices.in_parts);
        }
        Kernels { plan, scaled, chains, blocks, separables, pools, summed, spots }
    }

    /// The order in which a computation runs but for [`late::order`].
    fn turn(&mut self, id: CompId) -> Vec<InstId> {
        let comp = &self.module.comps[id];
        if id != self.module.entry {
            return comp.post_order();
        }
        if let Some(order) = &self.choices.order {
            return order.clone();
        }
        let planned = |order: &[InstId]| {
            let Kernels { plan, spots, .. } = self.planned(comp, order);
            (plan, spots)
        };
        self.found.order = order::lower(comp, planned);
        comp.post_order()
    }

    fn value(&mut self, scope: &mut Scope<'a>, id: InstId) -> Result<Value> {
        if let Some(v) = scope.values.get(&id) {
            return Ok(v.clone());
        }
        if let Op::Constant(literal) = &scope.comp[id].op {
            let value = self.literal(literal);
            scope.values.insert(id, value.clone());
            return Ok(value);
        }
        Err(Error::internal("schedule", format!("{} is read and has no buffer", scope.comp[id].name)))
    }

    /// Whether an array is in memory, without gaps.
    fn is_dense(&mut self, scope: &mut Scope<'a>, id: InstId) -> bool {
        let array = scope.plan.fate[id] == Fate::Materialised && scope.comp[id].shape.as_array().is_some();
        array && self.value(scope, id).is_ok_and(|v| v.layout.is_none())
    }

    fn instruction(&mut self, scope: &mut Scope<'a>, id: InstId, steps: &mut Vec<Step>) -> Result<()> {
        if scope.values.contains_key(&id) || scope.plan.fate[id] != Fate::Materialised {
            return Ok(());
        }
        let comp = scope.comp;
        let inst = &comp[id];
        let value = match &inst.op {
            Op::Constant(_) if id != comp.root => return Ok(()),
            _ if scope.stored.contains(&id) => return Ok(()),
            Op::Constant(literal) => self.literal(literal),
            Op::Tuple => {
                let mut leaves = Vec::new();
                for &o in &inst.operands {
                    leaves.extend(self.value(scope, o)?.leaves);
                }
                Value { leaves, layout: None }
            }
            Op::GetTupleElement(index) => {
                let parts = comp[inst.operands[0]].shape.as_tuple().ok_or_else(|| refuse(comp, id, ""))?;
                let before: usize = parts[..*index].iter().map(|p| p.leaves().len()).sum();
                let count = parts[*index].leaves().len();
                let whole = self.value(scope, inst.operands[0])?;
                Value { leaves: whole.leaves[before..before + count].to_vec(), layout: None }
            }
            Op::OptimizationBarrier | Op::Copy if inst.shape.as_tuple().is_some() => {
                self.value(scope, inst.operands[0])?
            }
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                let args = inst.operands.iter().map(|&o| self.value(scope, o)).collect::<Result<Vec<_>>>()?;
                self.computation(*callee, args, Params::Borrowed, steps)?
            }
            Op::While { cond, body } => self.while_loop(scope, id, *cond, *body, steps)?,
            Op::Conditional(branches) => self.conditional(scope, id, branches, steps)?,
            Op::AfterAll => Value::default(),
            Op::Parameter(_) => return Err(Error::internal("schedule", "a parameter has no value")),
            // The same elements in the same order: another view of the same memory.
            Op::Reshape | Op::Bitcast | Op::Copy | Op::OptimizationBarrier
                if scope.spots[id] == Spot::Dense && self.is_dense(scope, inst.operands[0]) =>
            {
                self.value(scope, inst.operands[0])?
            }
            _ => {
                let taken = self.reused(scope, id).or_else(|| self.next_in_place(scope, id));
                let mut margins = Vec::new();
                let out = match taken.or_else(|| self.over_operand(scope, id)) {
                    Some(out) => out,
                    None => self.place(scope, id, &mut margins)?,
                };
                let (first, before) = (self.program.kernels.len(), steps.len());
                self.kernels(scope, id, &out, steps)?;
                self.name_insts(scope, id, first);
                // the result needs no memory while its first kernels make something else
                let at = steps[before..].iter().position(|s| self.touches(s, &out)).unwrap_or(0);
                steps.splice(before + at..before + at, margins);
                out
            }
        };
        scope.values.insert(id, value);
        Ok(())
    }

    /// Whether a step launches a kernel that touches `value`, or other steps.
    fn touches(&self, step: &Step, value: &Value) -> bool {
        match step {
            Step::Launch(kernel) => self.program.kernels[*kernel].buffers().iter().any(|b| value.leaves.contains(b)),
            Step::While { .. } | Step::Branch { .. } | Step::Together(_) => true,
        }
    }

    /// Says of the kernels from number `first` on which instructions they compute: `id` and what is inlined into it.
    fn name_insts(&mut self, scope: &Scope<'a>, id: InstId, first: usize) {
        let (mut open, mut seen) = (vec![id], HashSet::new());
        let mut insts = Vec::new();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                let inst = &scope.comp[id];
                insts.push(id);
                open.extend(inst.operands.iter().copied().filter(|&o| scope.plan.fate[o] != Fate::Materialised));
            }
        }
        for kernel in self.program.kernels.values_mut().skip(first) {
            kernel.insts = insts.iter().map(|&id| scope.comp[id].name.clone()).collect();
            heaviest::name(kernel, scope, id, &insts);
        }
    }

    /// State lives in buffers of its own; what a round could not write there is copied at its end.
    fn while_loop(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        cond: CompId,
        body: CompId,
        steps: &mut Vec<Step>,
    ) -> Result<Value> {
        let init = self.value(scope, scope.comp[id].operands[0])?;
        let kept = states::kept(&self.module.comps[body]);
        // What no round changes is read where it is; memory that nothing reads behind the loop becomes the loop's.
        let mut state = init.clone();
        for i in 0..init.leaves.len() {
            let from = init.leaves[i];
            let taken =
                (0..init.leaves.len()).any(|j| init.leaves[j] == from && j != i && (j < i || kept.contains(&j)));
            if !kept.contains(&i) && (taken || !self.dies(scope, from, id)) {
                let (dtype, elements) = (self.program.buffers[from].dtype, self.program.buffers[from].elements);
                state.leaves[i] = self.buffer(dtype, elements);
                self.copy(from, state.leaves[i], steps);
            }
        }
        let mut cond_steps = Vec::new();
        let pred = self.computation(cond, vec![state.clone()], Params::Borrowed, &mut cond_steps)?;
        let pred = *pred.leaves.first().ok_or_else(|| refuse(scope.comp, id, ""))?;
        let mut body_steps = Vec::new();
        let next = self.computation(body, vec![state.clone()], Params::Owned, &mut body_steps)?;
        // A result that is another part of the old state is saved before anything is overwritten.
        let mut sources = next.leaves.clone();
        for (i, source) in sources.iter_mut().enumerate() {
            if *source != state.leaves[i] && state.leaves.contains(source) {
                let (dtype, elements) = (self.program.buffers[*source].dtype, self.program.buffers[*source].elements);
                let saved = self.buffer(dtype, elements);
                self.copy(*source, saved, &mut body_steps);
                *source = saved;
            }
        }
        for (&from, &to) in sources.iter().zip(&state.leaves) {
            if from != to {
                self.copy(from, to, &mut body_steps);
            }
        }
        steps.push(Step::While { cond: cond_steps, pred, body: body_steps });
        Ok(state)
    }

    fn conditional(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        branches: &[CompId],
        steps: &mut Vec<Step>,
    ) -> Result<Value> {
        let operands = scope.comp[id].operands.clone();
        let selector = self.value(scope, operands[0])?;
        let selector = *selector.leaves.first().ok_or_else(|| refuse(scope.comp, id, ""))?;
        let out = self.fresh(&scope.comp[id].shape);
        let mut all = Vec::new();
        for (i, &branch) in branches.iter().enumerate() {
            let arg = self.value(scope, operands[i + 1])?;
            let mut branch_steps = Vec::new();
            let result = self.computation(branch, vec![arg], Params::Borrowed, &mut branch_steps)?;
            for (&from, &to) in result.leaves.iter().zip(&out.leaves) {
                self.copy(from, to, &mut branch_steps);
            }
            all.push(branch_steps);
        }
        steps.push(Step::Branch { selector, branches: all });
        Ok(out)
    }

    fn copy(&mut self, from: BufId, to: BufId, steps: &mut Vec<Step>) {
        let elements = self.program.buffers[from].elements;
        let kernel = nest::copy(from, to, elements, self.lanes(self.program.buffers[from].dtype));
        self.launch(kernel, steps);
    }

    fn lanes(&self, dtype: DType) -> u64 {
        self.target.lanes(dtype.bytes() as u64)
    }

    /// The root's leaves become the caller's results: in place where they are intermediate buffers, else copied.
    fn results(&mut self, root: &Value, steps: &mut Vec<Step>) -> Result<()> {
        if root.leaves.len() != self.program.results.len() {
            return Err(Error::internal("schedule", "the root does not fit the results"));
        }
        for (i, &leaf) in root.leaves.iter().enumerate() {
            if matches!(self.program.buffers[leaf].place, Place::Workspace(_)) {
                self.program.buffers[leaf].place = Place::Result(i);
                continue;
            }
            let (dtype, elements) = (self.program.buffers[leaf].dtype, self.program.buffers[leaf].elements);
            let out = self.program.buffers.push(Buffer { dtype, elements, place: Place::Result(i) });
            self.copy(leaf, out, steps);
        }
        Ok(())
    }
}
