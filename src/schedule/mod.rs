//! HLO to kernels.
//!
//! `plan/` decides as data, before there is any kernel; `emit/` has the loops, and each folder of `families/` the decisions and the
//! loops of one family of kernels. `search.rs` looks at the memory of a plan and asks for other plans (`plan/choices.rs`, keyed by
//! computation and instruction). The `//!` of a file has its method and when it pays.
//!
//! # Where a question is answered
//! - *How is this convolution done, which margins does its operand need*: `families/convolution/recipe/algorithm.rs`: `Way` and `margins`, asked
//!   once for each before anything else; everyone else reads `Convolutions`.
//! - *How are the kernels of this root made, with which parameters*: `families/mod.rs` has the families in order: the first that takes a
//!   root makes it (`families/scan/` is a small one). Its parameters are the root's `Recipe` (`plan/recipe.rs`).
//! - *What is inlined into what*: `plan/fuse/`: walks a computation backwards: *materialised*, or *inlined* into a root; one
//!   contraction, reduction or window may be the *anchor* of a kernel that reads it element for element (its epilogue),
//!   reductions of whole rows and all between them are one row kernel.
//! - *What is computed again by each reader instead of being kept*: `plan/rematerialize.rs`, on HLO.
//! - *What is made inside its reader, on the stack*: `families/producer_fusion/recipe/`: `chain` (a depthwise window's operand), `separable` (the
//!   window that a 1x1 convolution reads), `block` (attention), `pooled` (what a pool takes); their loops have `families/producer_fusion/loops/mod.rs` in
//!   common.
//! - *How is a contraction done*: `families/contraction/recipe/mod.rs`: lanes along its sums or a tile, where its right side is read and how that
//!   lies (`families/contraction/recipe/panel_order.rs`), which loop is outside, of sizes, types and strides alone.
//! - *Which register tile*: `families/contraction/recipe/register_tile.rs`: all of them with predicted times, or what was measured; `families/contraction/recipe/amx.rs` with AMX.
//! - *Which epilogues stand in a loop*: `plan/epilogue.rs`.
//! - *How many sums go along lanes at once*: `families/contraction/recipe/inner_product.rs`.
//! - *What do caches hold, what does a cycle take in, what does it cost to go to a cache farther away*: `target/machine.rs`:
//!   the sizes by processor with a stated default, the costs with unit and source; a plan has thresholds in sixteenths of the
//!   second level.
//! - *Where does an array lie*: `plan/placement.rs`: dense, with a margin of zeros that its producer leaves free (what is after a
//!   row is what is before the next), or as a part of a concatenation; `layout.rs`.
//! - *How does an operand or a result lie, for who reads or writes it*: `loops/view.rs`: `View`, of the whole array, of one with
//!   a margin, of a part, or of a few rows in a ring; who reads it does not know who made it.
//! - *Where do loops end when a call needs fewer elements than arrays have*: `plan/demand/` goes from the results and from masks backwards;
//!   `passes/limits/mod.rs` sees in what kernels store which rounds and chunks are left out.
//! - *In which order*: `plan/sink.rs` (what needs nothing comes late), `plan/loop_state.rs` (who reads an old state comes before
//!   who makes the next), `plan/branch_order.rs` (which of two branches comes first).
//! - *When does a value live*: `memory/liveness.rs` before there are kernels, `memory/workspace.rs` after. *Where does it lie in the
//!   workspace*: `memory/allocate.rs`.
//! - *What is written over what*: `emit/operand_reuse.rs`; how variables get their next values: `emit/variables.rs`.
//! - *What is done in halves, so that less lives at once*: `plan/split.rs`, on HLO.
//! - *What does a plan look like as text, and how is one read back*: `plan/text.rs`, for `--emit plan` and `--plan`.
//! - *What is tried where memory is short*: `search.rs`: order, weights known at compile time, bounds for Winograd's method,
//!   concatenations, margins, results. Of each try a sketch is written (`emit::Detail`): the memory is that of the program, by the
//!   same liveness and the same plan of memory, and of a tile of results there is one alone. The last one is written whole.
//!
//! # What goes through several files
//! - Constants are asked for before they are used (`Stmt::Prefetch`, which has no bounds and no effect). While the tiles of a
//!   product pass one after another over a panel of the right side, each asks for its share of the next
//!   (`families/contraction/loops/prefetch_panel.rs`); what a product of one row reads once, from far away, is asked for by the products before it,
//!   byte for byte beside their own panels, each for up to three later ones (`passes/prefetch_weights.rs`).
//! - Squeeze-excite: a depthwise window that makes a plane also adds it up, in parts that do not depend on threads, and a small
//!   kernel adds those (`families/plane_sums/loops.rs`). A factor per feature of what a 1x1 convolution reads goes into its weights where
//!   there are few of them (`plan/channel_scales.rs`), which then are scaled on their way into panels.
//! - A long epilogue (gelu) stands once in a loop over the sums of the tile, which it reads from the stack: written out for two
//!   dozen vectors, its instructions would come from farther away than they take.
//! - `optimize/space_to_batch.rs` gives depthwise windows between `SpaceToBatchND` and `BatchToSpaceND` a dilation instead of
//!   those; `pad_into_window.rs` and `scale_into_weights.rs` take pads and factors into windows.
//! - A contraction (`families/contraction/loops/mod.rs`, for products and convolutions alike) has its loops around the register tile over
//!   panels (`families/contraction/loops/pack.rs`: packed at compile time where the right side is constant; a computed one that is read once, or
//!   stays near, is read where it lies). Where columns are few it sums along lanes (`families/contraction/loops/inner_product.rs`), where rows are few and
//!   the terms of a column lie side by side, along those (`families/contraction/loops/transposed_right.rs`); with AMX it has blocks (`families/contraction/loops/amx.rs`).
//! - What Winograd's tiles read outside of an array is zero (`families/winograd/loops/positions.rs`), so that none needs a margin for them; an
//!   infinity or a NaN in the input spoils the tiles that read it. Transposed convolutions are taken apart into phases that
//!   multiply no zeros, and padded ones into results at the edges and all others, where memory for margins is short
//!   (`families/convolution/recipe/phases.rs`). Sorting, scans, scatters and linear algebra are written with `loops/scalar_loops.rs`: scalar variables
//!   and loops whose bounds are known at run time.
//! - Indices (`kernel/index.rs`) are sums of loop variables, quotients and remainders that simplify themselves; a load is a
//!   vector load where the lane variable's coefficient is 1.
//! - `bench --profile` compiles with `Launches::Observed`: every kernel goes through the executor, which times it and counts
//!   its launches; a table in the object says which is which. The roofline of a kernel (`measure/roofline.rs`) is the longer of
//!   its multiply-adds at the measured peak and of the elements that its indices name (`kernel/touched.rs`) at the measured
//!   speed of the memory that holds them; Winograd's kernels also say what direct sums would take. `bench --machine`
//!   (`measure/`) measures what the machine can do with kernels written by hand.
//! - `kernel/verify/` holds thirteen numbered rules (bounds of every index, types, registers, memory defined before it is read
//!   and not overwritten between) against every program before it becomes code; `kernel/eval.rs` runs a program on tensors, and
//!   `tests/kernels.rs` compares that with the interpreter of the HLO.
//! - `passes/concurrent_loops.rs` puts loops side by side that need nothing of one another (the two directions of a recurrent net): where
//!   the executor has threads, each runs on one. `passes/join.rs` makes small kernels that follow one another in a loop one
//!   kernel, `passes/merge.rs` those that go through the same large arrays in the same loops.
//! - The inputs of a recurrent layer are multiplied before its loop (`optimize/hoist_products.rs`), those of 16 steps or more
//!   in blocks of 4 to 6 by a loop inside (`hoist_products/blocks.rs`), which gathers, turns round or puts together only the
//!   rows that it multiplies (`hoist_products/rows.rs`); a sequence whose steps are all the same is multiplied once.
//! - `--weights` and `--math` are a last rule on HLO (`optimize/precision.rs`), so that the interpreter sees the rounded
//!   numbers. `plan/compressed_constants.rs` finds what it wrote; panels keep the narrow type and the tile widens it, scales following the
//!   sum. With bf16 factors the tile takes pairs of terms (`kernel::Expr::PairSum`), whose rounding is that of the target's
//!   instruction (`target/pairs.rs`). Where the target has AMX and rows are four or more, blocks of 32 rows by 32 columns take
//!   the place of the register tile (`families/contraction/loops/amx.rs`, `kernel::TileSums`, `target/tiles.rs`): one statement makes the sums of all
//!   terms on the stack, from where the epilogue takes them. `tests/objects/tiles.c` plays such a processor. The request is
//!   part of the `Target`, so that nothing compiles without it.
//! - What is left of a run of elements behind whole vectors (`loops/vectors.rs`) is narrower vectors, with AVX-512 one whose last
//!   lanes touch no memory; products keep narrower ones, because an epilogue in place would wait for masked stores that reach
//!   into its next row. Where an element takes long to compute, what is left of short rows is taken across them
//!   (`loops/row_tails.rs`).
//! - An epilogue of many operations stands in a loop over the tile's sums, which lie on the stack. `Stmt::Release` before it
//!   tells LLVM that no vector stays in a register from there on: it would keep the epilogue's constants in registers through
//!   the product's loop, and the sums on the stack.
mod emit;
mod families;
mod loops;
mod memory;
mod passes;
mod plan;
mod search;

use crate::diag::{Code, Error, Result};
use crate::hlo::{Computation, InstId, Literal, Module, Op, sizes};
use crate::kernel::Program;
use crate::lower::Lowered;
use crate::target::Target;
use crate::tensor::TensorInfo;
pub use emit::Packings;
use emit::{Detail, Found};
use families::convolution::recipe::algorithm::Methods;
use plan::choices::Choices;
use plan::demand::Needed;
use plan::loop_state::Variables;
use plan::split_level::{Cuts, Halves};
use plan::text::{self, Given};
use plan::{Plan, channel_scales, rematerialize, sink, split};
use search::{Aims, Made};

/// By how much constants may grow for speed, at most, beside a twenty-fourth.
const MOST_SPARE: u64 = 128 << 10;
/// Bytes by which code may be larger than tfcompile's, which has constants twice, so that no object is.
const MOST_CODE: u64 = 48 << 10;
/// The part of what is beyond that by which constants may grow where the workspace shrinks.
const MOST_GROWN: (u64, u64) = (3, 4);

/// Schedules an optimised module.
///
/// # Errors
/// `Code::TooLarge` for sizes that no code can compute with, `Code::HloUnsupported` for what no kernel does, an internal
/// error where the program breaks a rule of `kernel::verify`.
pub fn build(lowered: &Lowered, name: &str, source: &str, target: &Target) -> Result<Program> {
    build_with(lowered, name, source, target, &Packings::default())
}

/// The same with the panels of constants that were packed for another target or other sizes of the same function, which stay in memory
/// once, and are added to.
///
/// # Errors
/// Those of [`build`].
pub fn build_with(
    lowered: &Lowered,
    name: &str,
    source: &str,
    target: &Target,
    packings: &Packings,
) -> Result<Program> {
    sizes::check(&lowered.module)?;
    let apart = sink::apart(&lowered.module);
    let module = apart.as_ref().unwrap_or(&lowered.module);
    let scaled = channel_scales::into_weights(module);
    let module = scaled.as_ref().unwrap_or(module);
    let again = rematerialize::in_readers(module);
    let module = again.as_ref().unwrap_or(module);
    let state = lowered.state.iter().map(|v| (v.info.clone(), v.changed));
    let state = crate::kernel::state::lay_out(state);
    let changed = state.iter().filter(|v| v.changed).map(|v| v.info.bytes());
    let given: u64 = lowered.results.iter().map(TensorInfo::bytes).chain(changed).sum();
    let workspace = split::dense(module, target).saturating_sub(given);
    let variables = Variables {
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
    let maker = Maker { lowered, target, variables, empty, packings, workspace, detail };
    let given = target.plans.as_deref().map(|text| Given::find(text, name)).transpose()?;
    let wanted = given.as_ref().map_or(Ok(Halves::Once), Given::halves)?;
    let halved = if wanted == Halves::None { None } else { split::cut(module, Cuts::Once, target) };
    let halves = if halved.is_some() { Halves::Once } else { Halves::None };
    let module = halved.as_ref().unwrap_or(module);
    let once = maker.base(module, halves);
    let twice = || split::cut(module, Cuts::Twice, target);
    let program = match given {
        Some(given) => {
            let more = twice().filter(|_| wanted == Halves::Twice);
            let base = more.as_ref().map_or(once, |module| maker.base(module, Halves::Twice));
            let choices = given.choices(base.module)?;
            let program = maker.whole(&base, &choices, maker.made(&base, &choices, Detail::Whole)?, Detail::Whole)?;
            given.check(&program.plan)?;
            program
        }
        None => {
            let found = maker.searched(&once)?;
            let more = if found.1.program.workspace_bytes > workspace { twice() } else { None };
            let more = more.as_ref().map(|module| maker.base(module, Halves::Twice));
            let other = more.as_ref().map(|base| Ok::<_, Error>((base, maker.searched(base)?))).transpose()?;
            let other = other.filter(|(_, other)| search::spares_much(&found.1.program, &other.1.program));
            let (base, (choices, made)) = other.unwrap_or((&once, found));
            maker.whole(base, &choices, made, detail)?
        }
    };
    crate::kernel::verify(&program)?;
    Ok(program)
}

/// A module, and what is decided for it before any plan.
struct Base<'m> {
    module: &'m Module,
    halves: Halves,
    methods: Methods,
    needed: Needed,
}

/// What makes programs of plans of a module.
struct Maker<'l> {
    lowered: &'l Lowered,
    target: &'l Target,
    variables: Variables,
    /// The program without kernels.
    empty: Program,
    packings: &'l Packings,
    /// Bytes of workspace that are aimed at.
    workspace: u64,
    /// How much a search writes of each program.
    detail: Detail,
}

impl Maker<'_> {
    fn base<'m>(&self, module: &'m Module, halves: Halves) -> Base<'m> {
        let methods = Methods::of(module, self.target);
        let needed = Needed::of(module, &methods, &self.lowered.used);
        Base { module, halves, methods, needed }
    }

    /// What comes of some choices.
    fn made<'b>(&'b self, base: &'b Base<'_>, choices: &Choices, detail: Detail) -> Result<Made<'b>> {
        let plan = Plan::of(
            base.module,
            &self.variables,
            self.target,
            (&base.methods, &base.needed),
            choices,
            families::recipe,
        )?;
        let (program, found) = self.emitted(base, (&plan, choices), detail)?;
        Ok(Made { plan, program, found })
    }

    fn emitted(
        &self,
        base: &Base<'_>,
        (plan, choices): (&Plan<'_>, &Choices),
        detail: Detail,
    ) -> Result<(Program, Found)> {
        let begun = (self.empty.clone(), self.packings);
        emit::emit(base.module, plan, self.target, begun, (detail, choices.in_results), families::FAMILIES)
    }

    /// The choices of the search, and what comes of them.
    fn searched<'b>(&'b self, base: &'b Base<'_>) -> Result<(Choices, Made<'b>)> {
        let aims = Aims { workspace: self.workspace, constants: most_constants(base.module) };
        let order = plan::lower_order(base.module, self.target, &base.methods);
        search::least(&aims, order, |choices| self.made(base, choices, self.detail))
    }

    /// The whole program of what was `made` in some detail.
    fn whole(&self, base: &Base<'_>, choices: &Choices, made: Made<'_>, detail: Detail) -> Result<Program> {
        let Made { plan, program, .. } = made;
        let drawn = program.workspace_bytes;
        let program = match detail {
            Detail::Whole => program,
            Detail::Sketch => self.emitted(base, (&plan, choices), Detail::Whole)?.0,
        };
        debug_assert!(drawn == program.workspace_bytes || !base.needed.is_empty(), "a sketch takes what it is one of");
        let text = text::print((base.module, &plan), (choices, base.halves), &program, self.target);
        Ok(Program { plan: text, ..program })
    }
}

fn has_loops(module: &Module) -> bool {
    let mut all = module.comps.values().flat_map(|comp| comp.insts.values());
    all.any(|inst| matches!(inst.op, Op::While { .. }))
}

/// How many bytes of constants a search for little memory aims at.
fn most_constants(module: &Module) -> u64 {
    let all = constant_bytes(module);
    all + all / 24 + all.saturating_sub(MOST_CODE) * MOST_GROWN.0 / MOST_GROWN.1
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
