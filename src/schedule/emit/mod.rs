//! Emits the program of a plan: goes through a computation in the plan's order, gives values their buffers, and hands each root to the family
//! of its recipe ([`Emitter::emit_root`]).
pub(in crate::schedule) mod label;
pub(in crate::schedule) mod operand_reuse;
pub(in crate::schedule) mod search_facts;
pub(in crate::schedule) mod variables;

pub(in crate::schedule) mod control;
pub(in crate::schedule) mod family;
pub(in crate::schedule) mod memory;
pub(in crate::schedule) mod value;
pub(in crate::schedule) mod values;
pub(in crate::schedule) mod weights;

pub use crate::schedule::families::contraction::loops::packings::PackedConstants;
pub use family::{Family, KernelRoot};
pub use search_facts::SearchFacts;

use crate::diag::{Error, Result};
use crate::hlo::{CompId, Computation, InstId, Module, Op, Users};
use crate::kernel::{BufId, Buffer, BufferLocation, Call, CallTarget, Program, Step};
use crate::schedule::families::plane_sums::loops::PartialSums;
use crate::schedule::memory::workspace;
use crate::schedule::passes::limits::regions;
use crate::schedule::passes::{self, PassContext};
use crate::schedule::plan::fuse::Fusion;
use crate::schedule::plan::placement::Placement;
use crate::schedule::plan::{ComputationPlan, ParameterOwnership, Plan};
use crate::schedule::target::KernelTarget;
use crate::schedule::unsupported_error;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
pub use value::ValueBuffers;
use values::ValueMap;
use weights::ConstantPool;

/// Whether kernels are emitted in full or as a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Complete kernels.
    Whole,
    /// Dry run, which emits only the first of each set of equal tiles, as that touches the same memory as all of them. Layouts, lifetimes
    /// and constants are those of the complete program; the kernels are never run.
    Sketch,
}

impl Detail {
    /// Number of kernel pieces to emit out of `all` equal ones: one in a dry run.
    pub(in crate::schedule) fn emitted_count(self, all: u64) -> u64 {
        match self {
            Detail::Whole => all,
            Detail::Sketch => all.min(1),
        }
    }
}

/// Inputs of the emitter besides the module, its plan and the target.
pub struct EmitInputs<'p> {
    /// A program without kernels, with its name, arguments and results.
    pub empty: Program,
    /// Constants that were packed for other programs.
    pub packings: &'p PackedConstants,
    /// Whether kernels are emitted in full or as a dry run.
    pub detail: Detail,
    /// Whether the memory of results may hold intermediates before the results are computed.
    pub in_results: bool,
}

/// Emits the program of a plan: adds kernels to `empty`, which has names, arguments and results. With `in_results`, the memory of results
/// may hold intermediates first. Also returns the purpose of each buffer. The program is not verified yet.
///
/// Errors: `Code::HloUnsupported` for an op without a kernel, `Code::TooLarge`.
pub fn emit(
    module: &Module,
    plan: &Plan<'_>,
    target: &KernelTarget<'_>,
    start: EmitInputs<'_>,
    families: &'static [&'static Family],
) -> Result<(Program, SearchFacts)> {
    let EmitInputs { empty, packings, detail, in_results } = start;
    let mut s = Emitter {
        module,
        plan,
        target,
        families,
        program: empty,
        weights: ConstantPool::new(module.replaceable),
        packings,
        detail,
        found: SearchFacts::default(),
        regions: regions::NeededRegions::default(),
        depth: 0,
        scope: EmitScope::new(module, module.entry, plan.computation_plan(module.entry, ParameterOwnership::Borrowed)?),
        steps: Vec::new(),
    };
    let mut args = Vec::new();
    for (i, t) in s.program.args.iter().enumerate() {
        let buffer = Buffer { dtype: t.dtype, elements: t.elements(), place: BufferLocation::Arg(i) };
        args.push(ValueBuffers { leaves: vec![s.program.buffers.push(buffer)], layout: None });
    }
    let state = s.variable_buffers();
    args.extend(state.iter().map(|&buf| ValueBuffers { leaves: vec![buf], layout: None }));
    let mut root = s.emit_computation(module.entry, args, ParameterOwnership::Borrowed)?;
    let next = s.split_next_values(&mut root, &state)?;
    s.bind_results(&root)?;
    s.copy_buffers(&next.0, &next.1);
    s.program.steps = std::mem::take(&mut s.steps);
    s.mark_unchanged_variables(&next.0, &next.1);
    s.program.weights_bytes = s.weights.bytes();
    s.program.weights = std::mem::take(&mut s.weights).finish();
    let context = PassContext {
        first_level: target.machine().caches.l1d,
        regions: &s.regions,
        amounts: &s.plan.demand().amounts,
        quantized: target.request.precision.quantized,
    };
    passes::run(&mut s.program, detail, &context);
    workspace::assign_offsets(&mut s.program, in_results)?;
    s.program.flops = s.program.kernels.values().map(|k| k.flops).sum();
    Ok((s.program, s.found))
}

/// Emits the kernels of a module according to its plan.
pub struct Emitter<'a> {
    pub(in crate::schedule) module: &'a Module,
    pub(in crate::schedule) plan: &'a Plan<'a>,
    pub(in crate::schedule) target: &'a KernelTarget<'a>,
    pub(in crate::schedule) families: &'static [&'static Family],
    pub(in crate::schedule) program: Program,
    pub(in crate::schedule) weights: ConstantPool,
    pub(in crate::schedule) packings: &'a PackedConstants,
    pub(in crate::schedule) detail: Detail,
    pub(in crate::schedule) found: SearchFacts,
    pub(in crate::schedule) regions: regions::NeededRegions,
    /// Nesting depth of calls of scalar computations.
    pub(in crate::schedule) depth: usize,
    /// The computation whose kernels are being emitted.
    pub(in crate::schedule) scope: EmitScope<'a>,
    /// The launches of the computation so far.
    pub(in crate::schedule) steps: Vec<Step>,
}

/// State of emitting one computation.
pub struct EmitScope<'a> {
    pub(in crate::schedule) id: CompId,
    pub(in crate::schedule) comp: &'a Computation,
    pub(in crate::schedule) stages: &'a ComputationPlan,
    /// The plan's fusion decisions, except for anchors that were given a buffer of their own during emission.
    pub(in crate::schedule) fusion: Fusion,
    pub(in crate::schedule) values: ValueMap,
    /// Concatenations whose memory was allocated early because a part is written into it.
    pub(in crate::schedule) placed: HashMap<InstId, ValueBuffers>,
    /// Copies, with margins, of values that are stored without margins.
    pub(in crate::schedule) padded: HashMap<InstId, ValueBuffers>,
    /// In the body of a loop: the state buffer that each next value may be written to.
    pub(in crate::schedule) states: HashMap<InstId, BufId>,
    /// All state buffers of the loop.
    pub(in crate::schedule) state_buffers: HashSet<BufId>,
    /// Buffers that belong to the caller.
    pub(in crate::schedule) borrowed: HashSet<BufId>,
    /// Partial sums that depthwise convolutions left for a following reduction.
    pub(in crate::schedule) parts: HashMap<InstId, PartialSums>,
    users: OnceCell<Users>,
}

impl<'a> EmitScope<'a> {
    /// Starts the scope of a computation, before its first instruction.
    pub(in crate::schedule) fn new(module: &'a Module, id: CompId, stages: &'a ComputationPlan) -> EmitScope<'a> {
        EmitScope {
            id,
            comp: &module.comps[id],
            stages,
            fusion: stages.fusion.clone(),
            values: ValueMap::default(),
            placed: HashMap::new(),
            padded: HashMap::new(),
            states: HashMap::new(),
            state_buffers: HashSet::new(),
            borrowed: HashSet::new(),
            parts: HashMap::new(),
            users: OnceCell::new(),
        }
    }

    /// The instructions that read an instruction.
    pub(in crate::schedule) fn users(&self, id: InstId) -> &[InstId] {
        &self.users.get_or_init(|| self.comp.users())[id]
    }

    /// Records the buffers of an instruction's value.
    pub(in crate::schedule) fn set_value(&mut self, id: InstId, value: ValueBuffers) {
        self.values.set(id, value, self.stages.lifetimes.last_read(id));
    }
}

impl<'a> Emitter<'a> {
    /// Emits the steps of a computation, which may write to the memory of its parameters if they are `ParameterOwnership::Owned`.
    pub(in crate::schedule) fn emit_computation(
        &mut self,
        id: CompId,
        params: Vec<ValueBuffers>,
        owner: ParameterOwnership,
    ) -> Result<ValueBuffers> {
        let (comp, stages) = (&self.module.comps[id], self.plan.computation_plan(id, owner)?);
        let states = match (owner, &params[..]) {
            (ParameterOwnership::Owned, [state]) => operand_reuse::next_value_buffers(comp, state),
            _ => self.update_targets(comp, stages, &params),
        };
        let borrowed = match owner {
            ParameterOwnership::Owned => HashSet::new(),
            ParameterOwnership::Borrowed => {
                let all = params.iter().flat_map(|p| p.leaves.iter().copied());
                all.filter(|&buf| !self.is_entry(comp) || !self.is_changed_variable(buf)).collect()
            }
        };
        let state_buffers = states.values().copied().collect();
        let scope = EmitScope { states, state_buffers, borrowed, ..EmitScope::new(self.module, id, stages) };
        let caller = std::mem::replace(&mut self.scope, scope);
        for (&param, value) in comp.params.iter().zip(params) {
            self.record_demand(param, &value);
            self.scope.set_value(param, value);
        }
        for &inst in &stages.order {
            self.emit_instruction(inst)?;
        }
        let made = std::mem::replace(&mut self.scope, caller);
        made.values.remove(comp.root).ok_or_else(|| Error::internal("schedule", "the root has no value"))
    }

    /// Runs `make` and returns its result with the steps that it emitted, which are taken off the list of steps.
    pub(in crate::schedule) fn take_emitted_steps<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Step>)> {
        let others = std::mem::take(&mut self.steps);
        let made = make(self)?;
        Ok((made, std::mem::replace(&mut self.steps, others)))
    }

    /// Whether `comp` is the entry of the module, which runs once.
    pub(in crate::schedule) fn is_entry(&self, comp: &Computation) -> bool {
        std::ptr::eq(comp, &self.module.comps[self.module.entry])
    }

    /// The buffers of an instruction's value.
    pub(in crate::schedule) fn value_buffers(&mut self, id: InstId) -> Result<ValueBuffers> {
        if let Some(v) = self.scope.values.get(id) {
            return Ok(v.clone());
        }
        if let Op::Constant(literal) = &self.scope.comp[id].op {
            let value = self.add_literal(literal);
            self.scope.set_value(id, value.clone());
            return Ok(value);
        }
        Err(Error::internal("schedule", format!("{} is read and has no buffer", self.scope.comp[id].name)))
    }

    /// The concatenated leaf buffers of several values.
    pub(in crate::schedule) fn leaf_buffers(&mut self, ids: &[InstId]) -> Result<Vec<BufId>> {
        let values = ids.iter().map(|&id| self.value_buffers(id)).collect::<Result<Vec<_>>>()?;
        Ok(values.into_iter().flat_map(|value| value.leaves).collect())
    }

    /// Emits a call between kernels, with the arguments `args` and the results `out`.
    pub(in crate::schedule) fn emit_call(&mut self, to: CallTarget, args: &[InstId], out: &ValueBuffers) -> Result<()> {
        let args = self.leaf_buffers(args)?;
        self.steps.push(Step::Call(Box::new(Call { to, args, results: out.leaves.clone() })));
        Ok(())
    }

    /// Whether an array is in memory and has no gaps.
    pub(in crate::schedule) fn is_dense(&mut self, id: InstId) -> bool {
        let array = self.scope.fusion.is_materialised(id) && self.scope.comp[id].shape.as_array().is_some();
        array && self.value_buffers(id).is_ok_and(|v| v.layout.is_none())
    }

    /// Emits the steps of an instruction.
    pub(in crate::schedule) fn emit_instruction(&mut self, id: InstId) -> Result<()> {
        if self.scope.values.contains(id) || !self.scope.fusion.is_materialised(id) {
            return Ok(());
        }
        let comp = self.scope.comp;
        let inst = &comp[id];
        let value = match &inst.op {
            Op::Constant(_) if id != comp.root => return Ok(()),
            _ if self.scope.stages.stored.contains(&id) => return Ok(()),
            Op::Constant(literal) => self.add_literal(literal),
            Op::Tuple => ValueBuffers { leaves: self.leaf_buffers(&inst.operands)?, layout: None },
            Op::GetTupleElement(index) => {
                let parts = comp[inst.operands[0]].shape.as_tuple().ok_or_else(|| unsupported_error(comp, id, ""))?;
                let before: usize = parts[..*index].iter().map(|p| p.leaves().len()).sum();
                let count = parts[*index].leaves().len();
                let whole = self.value_buffers(inst.operands[0])?;
                ValueBuffers { leaves: whole.leaves[before..before + count].to_vec(), layout: None }
            }
            Op::OptimizationBarrier | Op::Copy if inst.shape.as_tuple().is_some() => {
                self.value_buffers(inst.operands[0])?
            }
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                let args = inst.operands.iter().map(|&o| self.value_buffers(o)).collect::<Result<Vec<_>>>()?;
                self.emit_computation(*callee, args, ParameterOwnership::Borrowed)?
            }
            Op::While { cond, body } => self.emit_while_loop(id, *cond, *body)?,
            Op::Conditional(branches) => self.emit_conditional(id, branches)?,
            Op::AfterAll => ValueBuffers::default(),
            Op::Parameter(_) => return Err(Error::internal("schedule", "a parameter has no value")),
            // The same elements in the same order: another view of the same memory.
            Op::Reshape | Op::Bitcast | Op::Copy | Op::OptimizationBarrier
                if self.scope.stages.placements[id] == Placement::Dense && self.is_dense(inst.operands[0]) =>
            {
                self.value_buffers(inst.operands[0])?
            }
            _ => {
                let (out, margins) = match self.reusable_memory(id) {
                    Some(out) => (out, Vec::new()),
                    None => self.take_emitted_steps(|s| s.allocate_result(id))?,
                };
                let (first, before) = (self.program.kernels.len(), self.steps.len());
                self.emit_root(id, &out)?;
                if self.detail == Detail::Whole {
                    self.record_instruction_names(id, first);
                }
                // the result needs no memory while its first kernels make something else
                let at = self.steps[before..].iter().position(|s| self.step_touches(s, &out)).unwrap_or(0);
                self.steps.splice(before + at..before + at, margins);
                out
            }
        };
        self.record_demand(id, &value);
        self.scope.set_value(id, value);
        Ok(())
    }

    /// Records which elements of a value the results need, if calls may need only some.
    pub(in crate::schedule) fn record_demand(&mut self, id: InstId, value: &ValueBuffers) {
        let needed = self.plan.demand();
        if !needed.is_empty() {
            self.regions.add_demand(&self.scope.comp[id].shape, value, needed.get(self.scope.id, id));
        }
    }

    /// Whether a step launches a kernel that touches `value`; true for steps other than launches.
    pub(in crate::schedule) fn step_touches(&self, step: &Step, value: &ValueBuffers) -> bool {
        match step {
            Step::Launch(kernel) => self.program.kernels[*kernel].buffers().iter().any(|b| value.leaves.contains(b)),
            Step::Call(call) => call.buffers().any(|b| value.leaves.contains(&b)),
            Step::While { .. } | Step::Branch { .. } | Step::Together(_) => true,
        }
    }

    /// Emits the kernels that compute root `id` into `out`.
    pub(in crate::schedule) fn emit_root(&mut self, id: InstId, out: &ValueBuffers) -> Result<()> {
        let stages = self.scope.stages;
        let recipe = stages.recipes.get(&id).ok_or_else(|| Error::internal("schedule", "a root has no recipe"))?;
        let family = self.families.iter().find(|family| family.name == recipe.family);
        let family = family.ok_or_else(|| Error::internal("schedule", format!("no family {}", recipe.family)))?;
        let anchor = self.scope.fusion.anchor[id].unwrap_or(id);
        let convolution = recipe.setup.convolution().unwrap_or(anchor);
        let (comp, first) = (self.scope.id, self.program.kernels.len());
        (family.emit)(self, KernelRoot { id, anchor, out }, &recipe.setup)?;
        if let Some(convolution) = self.plan.convolutions(comp).get(&convolution) {
            self.program
                .kernels
                .values_mut()
                .skip(first)
                .for_each(|k| k.set_convolution_choice(convolution.named.clone()));
        }
        Ok(())
    }
}
