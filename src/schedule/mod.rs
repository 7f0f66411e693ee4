//! Schedules HLO: decides which instructions become which kernels, and writes these.
//!
//! | folder | contents |
//! |---|---|
//! | `plan/` | decisions about whole computations, as data, before there is any kernel: fusion, placement of arrays, order; `text.rs` prints a plan |
//! | `families/` | a folder for each family of kernels: `recipe` chooses the parameters of a root's kernels, `loops` writes them; the first family of `FAMILIES` that takes a root makes it |
//! | `loops/` | the vocabulary of loops that families share |
//! | `emit/` | the walk over a plan that hands each root to its family and gives values their buffers |
//! | `passes/` | passes over the finished kernels of a program, listed as `PIPELINE` |
//! | `memory/` | layouts of arrays, lifetimes of buffers, offsets in the workspace |
//! | `search.rs` | the search over plans (`plan/choices.rs`) for less workspace memory |
//!
//! # Decisions that span several files
//! - **Convolutions**: `families/convolution/recipe/algorithm.rs` chooses the algorithm of each before anything else; margins, fusion and
//!   loops follow from it.
//! - **Fusion**: `plan/fuse/` decides what shares a kernel, `plan/rematerialize.rs` what each reader computes again,
//!   `families/producer_fusion/` which producers are computed inside the loops of their consumer.
//! - **Placement**: `plan/placement.rs` gives arrays margins of zeros for padded windows, or places in concatenations. Who reads or writes an
//!   array sees a `loops::view::ArrayView` of it, and not who made it.
//! - **Order**: `plan/sink.rs` delays values without operands, `plan/loop_state.rs` lets readers of a loop's state come before its next value,
//!   `plan/branch_order.rs` swaps branches and `plan/split.rs` splits pairs of kernels to lower the peak of memory.
//! - **Reuse of memory**: `emit/operand_reuse.rs` writes results over operands, `emit/variables.rs` gives variables their next values.
//! - **Open sizes**: `plan/demand/` knows which elements a call needs, `passes/limits/` ends loops behind them.
//! - **Narrow constants**: `optimize/precision.rs` rounds weights on HLO, so that the interpreter sees the rounded numbers;
//!   `plan/compressed_constants.rs` finds them, and panels keep the narrow type, which register tiles widen.
//! - **Prefetches** (`Stmt::Prefetch`, without bounds and effects): tiles fetch their share of the next panel
//!   (`families/contraction/loops/prefetch_panel.rs`), products fetch the weights that a later product streams (`passes/prefetch_weights.rs`).
//! - **Squeeze-excite**: windows add up the pixels that they make (`families/plane_sums/`), and a factor per channel goes into the weights of
//!   the convolution that reads the channels (`plan/channel_scales.rs`).
//!
//! `kernel::verify` checks every program before it becomes code; `kernel/eval.rs` runs it on tensors, which `tests/suite/kernels.rs` compares with
//! the interpreter of HLO.
mod emit;
mod families;
mod loops;
mod memory;
mod passes;
mod plan;
mod search;
mod target;

use crate::diag::{Code, Error, Result};
use crate::hlo::{Computation, InstId, Literal, Module, Op, sizes};
use crate::kernel::Program;
use crate::lower::Lowered;
pub use crate::schedule::target::KernelTarget;
use crate::target::{CodeRequest, PanelSizes};
use crate::tensor::TensorInfo;
pub use emit::PackedConstants;
use emit::{Detail, EmitInputs, SearchFacts};
use families::convolution::recipe::algorithm::ModuleConvolutions;
use plan::choices::PlanChoices;
use plan::demand::ElementDemand;
use plan::loop_state::EntryVariables;
use plan::split_level::{SplitLevel, SplitScope};
use plan::text::{self, PlanText};
use plan::{Plan, channel_scales, rematerialize, short_operands, sink, split};
use search::{Candidate, MemoryTargets};

/// Upper limit of the growth of constants for speed, in bytes; the other limit is a twenty-fourth of the constants.
const MOST_SPARE: u64 = 128 << 10;
/// Bytes by which code may be larger than tfcompile's without the object being larger, as tfcompile stores constants twice.
const MOST_CODE: u64 = 48 << 10;
/// Growth of constants that the search for little memory may aim at, as a fraction (numerator, denominator) of the bytes by which constants
/// exceed `MOST_CODE`.
const MOST_GROWN: (u64, u64) = (3, 4);

/// Schedules an optimized module.
///
/// # Errors
/// `Code::TooLarge` for sizes that no code can compute with, `Code::HloUnsupported` for an op without a kernel, an internal error if the
/// program breaks a rule of `kernel::verify`.
pub fn build(lowered: &Lowered, name: &str, source: &str, request: &CodeRequest) -> Result<Program> {
    let target = KernelTarget { request, panels: &PanelSizes::default() };
    build_with_packings(lowered, name, source, target, &PackedConstants::default())
}

/// Schedules an optimized module as [`build`] does, and shares constants packed into panels with programs of the same function for other
/// targets or sizes. Panels in `packings` are used again, so that they are in memory once; new ones are added to `packings`.
///
/// # Errors
/// Errors of [`build`].
pub fn build_with_packings(
    lowered: &Lowered,
    name: &str,
    source: &str,
    target: KernelTarget<'_>,
    packings: &PackedConstants,
) -> Result<Program> {
    let target = &target;
    sizes::check(&lowered.module)?;
    let apart = sink::unshare_broadcasts(&lowered.module);
    let module = apart.as_ref().unwrap_or(&lowered.module);
    let scaled = channel_scales::move_scales_to_weights(module);
    let module = scaled.as_ref().unwrap_or(module);
    let again = rematerialize::rematerialize_in_readers(module);
    let module = again.as_ref().unwrap_or(module);
    let widened = short_operands::widen_byte_products(module, target.machine());
    let module = widened.as_ref().unwrap_or(module);
    let state = lowered.state.iter().map(|v| (v.info.clone(), v.changed));
    let state = crate::kernel::state::lay_out_variables(state);
    let changed = state.iter().filter(|v| v.changed).map(|v| v.info.bytes());
    let given: u64 = lowered.results.iter().map(TensorInfo::bytes).chain(changed).sum();
    let workspace = split::dense_peak_bytes(module, target).saturating_sub(given);
    let variables = EntryVariables {
        args: lowered.args.len(),
        results: lowered.results.len(),
        changed: state.iter().map(|v| v.changed).collect(),
    };
    let empty = Program {
        name: name.to_string(),
        source: source.to_string(),
        args: lowered.args.clone(),
        results: lowered.results.clone(),
        state,
        ..Program::default()
    };
    // how loops run side by side, and what they do in one kernel, is read off kernels
    let detail = if has_loops(module) { Detail::Whole } else { Detail::Sketch };
    let maker = ProgramBuilder { lowered, target, variables, empty, packings, workspace, detail };
    let given = target.request.plans.as_deref().map(|text| PlanText::find_program(text, name)).transpose()?;
    let wanted = given.as_ref().map_or(Ok(SplitLevel::Once), PlanText::split_level)?;
    let halved = if wanted == SplitLevel::None { None } else { split::split_pairs(module, SplitScope::Once, target) };
    let halves = if halved.is_some() { SplitLevel::Once } else { SplitLevel::None };
    let module = halved.as_ref().unwrap_or(module);
    let once = maker.plan_input(module, halves);
    let twice = || split::split_pairs(module, SplitScope::Twice, target);
    let program = match given {
        Some(given) => {
            let more = twice().filter(|_| wanted == SplitLevel::Twice);
            let base = more.as_ref().map_or(once, |module| maker.plan_input(module, SplitLevel::Twice));
            let choices = given.choices(base.module)?;
            let program = maker.complete_program(
                &base,
                &choices,
                maker.build_candidate(&base, &choices, Detail::Whole)?,
                Detail::Whole,
            )?;
            given.check_matches_plan(&program.plan)?;
            program
        }
        None => {
            let found = maker.search_choices(&once)?;
            let more = if found.1.program.workspace_bytes > workspace { twice() } else { None };
            let more = more.as_ref().map(|module| maker.plan_input(module, SplitLevel::Twice));
            let other = more.as_ref().map(|base| Ok::<_, Error>((base, maker.search_choices(base)?))).transpose()?;
            let other = other.filter(|(_, other)| search::saves_much_memory(&found.1.program, &other.1.program));
            let (base, (choices, made)) = other.unwrap_or((&once, found));
            maker.complete_program(base, &choices, made, detail)?
        }
    };
    crate::kernel::verify(&program)?;
    Ok(program)
}

/// Inputs of a plan: a module and the decisions about it that precede all plans.
struct PlanInput<'m> {
    module: &'m Module,
    halves: SplitLevel,
    methods: ModuleConvolutions,
    needed: ElementDemand,
}

/// Builds the programs of one function from alternative plans.
struct ProgramBuilder<'l> {
    lowered: &'l Lowered,
    target: &'l KernelTarget<'l>,
    variables: EntryVariables,
    /// The program's name, arguments and results, without kernels.
    empty: Program,
    packings: &'l PackedConstants,
    /// Target size of the workspace in bytes.
    workspace: u64,
    /// Detail in which the search emits candidate programs.
    detail: Detail,
}

impl ProgramBuilder<'_> {
    fn plan_input<'m>(&self, module: &'m Module, halves: SplitLevel) -> PlanInput<'m> {
        let methods = ModuleConvolutions::choose(module, self.target);
        let needed = ElementDemand::compute(module, &methods, &self.lowered.result_counts);
        PlanInput { module, halves, methods, needed }
    }

    /// Plans `base` with the given choices and emits the program.
    fn build_candidate<'b>(
        &'b self,
        base: &'b PlanInput<'_>,
        choices: &PlanChoices,
        detail: Detail,
    ) -> Result<Candidate<'b>> {
        let plan = Plan::build(
            base.module,
            &self.variables,
            self.target,
            &base.methods,
            &base.needed,
            choices,
            families::choose_recipe,
        )?;
        let (program, found) = self.emit_program(base, &plan, choices, detail)?;
        Ok(Candidate { plan, program, found })
    }

    fn emit_program(
        &self,
        base: &PlanInput<'_>,
        plan: &Plan<'_>,
        choices: &PlanChoices,
        detail: Detail,
    ) -> Result<(Program, SearchFacts)> {
        let (empty, in_results) = (self.empty.clone(), choices.in_results);
        let start = EmitInputs { empty, packings: self.packings, detail, in_results };
        emit::emit(base.module, plan, self.target, start, families::FAMILIES)
    }

    /// Runs the search for a plan with little memory; returns its choices and the program they lead to.
    fn search_choices<'b>(&'b self, base: &'b PlanInput<'_>) -> Result<(PlanChoices, Candidate<'b>)> {
        let aims = MemoryTargets { workspace: self.workspace, constants: most_constants(base.module) };
        let order = plan::low_memory_order(base.module, self.target, &base.methods);
        search::minimize_memory(&aims, order, |choices| self.build_candidate(base, choices, self.detail))
    }

    /// Completes a candidate: emits its program in full if only a dry run of it was emitted.
    fn complete_program(
        &self,
        base: &PlanInput<'_>,
        choices: &PlanChoices,
        made: Candidate<'_>,
        detail: Detail,
    ) -> Result<Program> {
        let Candidate { plan, program, .. } = made;
        let drawn = program.workspace_bytes;
        let program = match detail {
            Detail::Whole => program,
            Detail::Sketch => {
                // two programs of a large graph are the most memory that compiling it takes
                drop(program);
                self.emit_program(base, &plan, choices, Detail::Whole)?.0
            }
        };
        debug_assert!(drawn == program.workspace_bytes || !base.needed.is_empty(), "a sketch takes what it is one of");
        let text = text::print(base.module, &plan, choices, base.halves, &program, self.target);
        Ok(Program { plan: text, ..program })
    }
}

fn has_loops(module: &Module) -> bool {
    let mut all = module.comps.values().flat_map(|comp| comp.insts.values());
    all.any(|inst| matches!(inst.op, Op::While { .. }))
}

/// Target size in bytes of all constants, for the search for little memory.
fn most_constants(module: &Module) -> u64 {
    let all = constant_bytes(module);
    all + all / 24 + all.saturating_sub(MOST_CODE) * MOST_GROWN.0 / MOST_GROWN.1
}

/// Upper limit in bytes of the growth of a module's constants for speed: a twenty-fourth of them, at most what they exceed [`MOST_CODE`] by
/// and at most [`MOST_SPARE`], so that no object becomes larger than tfcompile's. Padding of the last panels takes about as much again.
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

fn unsupported_error(comp: &Computation, id: InstId, why: &str) -> Error {
    let inst = &comp[id];
    let error =
        Error::user(Code::HloUnsupported, format!("native code has no `{}` of {}{why}", inst.op.name(), inst.shape));
    if inst.metadata.op_name.is_empty() {
        return error;
    }
    error.map(|d| d.at_node(&inst.metadata.op_name, &inst.metadata.op_type))
}
