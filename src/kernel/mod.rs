//! The noun `kernel`: perfectly typed loops over buffers.
//!
//! A [`Program`] is a list of [`Kernel`]s and the [`Step`]s that launch them. A kernel is one function of a range of chunks
//! (its outermost loop, which an executor may split); inside are loops of constant extent, stores, and registers.
//! Expressions live in an arena of the kernel and are shared; indices are sums of [`Atom`]s (see [`index`]).
mod access;
mod append;
mod bundle;
mod call;
mod eval;
mod exchange;
pub mod index;
mod merge;
mod padded_arrays;
mod provenance;
pub mod self_test;
mod write_partition;
mod sized_work;
pub mod state;
mod text;
mod tiles;
mod memory_traffic;
mod verify;
mod weights_file;
mod work;

pub use access::BufferAccess;
pub use bundle::{Bundle, EntryPoint, ModelInterface, StateInitializer};
pub use call::{Call, CallTarget, Callee, HOST_CALL_SYMBOL, HostFunction, callees, most_host_arrays};
pub use eval::{evaluate, evaluate_with_state};
pub use exchange::{Collective, Exchange, rank_count};
pub use index::{Atom, Index};
pub use memory_traffic::MemoryTraffic;
pub use padded_arrays::PaddedOffsets;
pub use provenance::{ProductChoice, Provenance};
pub use state::VariableSlot;
pub use text::{print_program, statement_lines};
pub use tiles::{ElementSpan, TileRows, TileSums, tile_product, tile_sum_type};
pub use verify::{for_each_operand, for_each_run_time_value, verify};
pub use weights_file::{HEADER_BYTES, KEY_BYTES, WeightsFile, WeightsLayout};
pub use work::parallel_kernels;

use crate::scalar::ScalarOp;
use crate::target::tiles::TileProduct;
use crate::target::{DotInstruction, QuantizedProducts, RoundingCounts};
use crate::tensor::{DType, TensorInfo};
use crate::util::id_vec::IdVec;
use bytes::Bytes;
use std::sync::Arc;

crate::ids! {
    /// A loop variable of one kernel.
    pub struct VarId;
    /// An array of registers of one kernel.
    pub struct RegId;
    /// A buffer of the program.
    pub struct BufId;
    /// An expression of one kernel.
    pub struct ExprId;
    /// A kernel of the program.
    pub struct KernelId;
}

/// Memory in which a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferLocation {
    /// The caller's argument.
    Arg(usize),
    /// The caller's result.
    Result(usize),
    /// At this byte of the model's constants.
    Weights(u64),
    /// At this byte of the caller's state: one variable, its old value before the call and its next value at the end.
    State(u64),
    /// At this byte of the caller's workspace.
    Workspace(u64),
    /// On the stack of the one kernel that uses it: every range of chunks has its own, empty at first.
    Stack,
}

/// Memory of one array.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The element type.
    pub dtype: DType,
    /// The number of elements.
    pub elements: u64,
    /// The memory in which the buffer lies.
    pub place: BufferLocation,
}

impl Buffer {
    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.dtype.bytes() as u64)
    }
}

/// Execution of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// One iteration after another.
    Seq,
    /// Unrolled: the variable is a constant in each copy of the body.
    Unroll,
    /// All iterations at once, one a vector lane; holds no other `Vector` loop.
    Vector,
    /// Vectorized with so many active lanes, the first ones: the others touch no memory, and their values do not matter.
    Masked(u64),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A loop over `0..extent` of its variable.
    For {
        /// The variable.
        var: VarId,
        /// The execution of the iterations.
        kind: LoopKind,
        /// The statements of one iteration.
        body: Vec<Stmt>,
    },
    /// Writes one element (or one a lane).
    Store {
        /// The buffer that is written.
        buf: BufId,
        /// The element that is written.
        index: Index,
        /// The value that is stored.
        value: ExprId,
    },
    /// Prefetches the cache line of an element; reads nothing, and the index may lie outside the buffer.
    Prefetch {
        /// The buffer to prefetch from.
        buf: BufId,
        /// The element; it may lie outside of the buffer.
        index: Index,
    },
    /// Writes a block of sums, outside of vector loops.
    Tiles(Box<TileSums>),
    /// Ends the live ranges of vector constants in registers: later code materializes its constants again, so that these take no registers
    /// from earlier loops.
    Release,
    /// Writes a register; `at` is a constant once loops are unrolled.
    Set {
        /// The register array.
        reg: RegId,
        /// The register's number in the array.
        at: Index,
        /// The value.
        value: ExprId,
    },
    /// Gives a loop variable a value in its range, uniform across lanes, for the body.
    Let {
        /// The variable.
        var: VarId,
        /// The variable's value.
        value: Index,
        /// The statements that are executed.
        body: Vec<Stmt>,
    },
    /// Runs the body where a uniform `pred` holds.
    If {
        /// The condition.
        cond: ExprId,
        /// The statements that are executed.
        body: Vec<Stmt>,
    },
    /// Repeats the body while a uniform `pred`, computed before each iteration, holds.
    While {
        /// The condition.
        cond: ExprId,
        /// The statements that are executed.
        body: Vec<Stmt>,
    },
}

impl Stmt {
    /// Writes register number `at` of an array.
    pub fn set(reg: RegId, at: u64, value: ExprId) -> Stmt {
        Stmt::Set { reg, at: Index::constant(at as i64), value }
    }
}

/// An expression. In a `Vector` loop it has a value for each lane, or one for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A number, its bits in the low end.
    Const(DType, u64),
    /// Loads an element of a buffer.
    Load(BufId, Index),
    /// Neighbouring elements of a buffer of elements of 8 or 16 bits as one u32, the first in the low end.
    Word(BufId, Index),
    /// The products of the elements of two words, and a sum that they are added to.
    DotProduct {
        /// The dot-product instruction that defines the rounding.
        instruction: DotInstruction,
        /// A word of factors.
        x: ExprId,
        /// A word of the other factors.
        y: ExprId,
        /// The sum that the products are added to.
        z: ExprId,
    },
    /// A scalar op; the result's type is given.
    Op(ScalarOp, Vec<ExprId>, DType),
    /// An index converted to a number.
    Number(Index, DType),
    /// The condition `low <= index < high`.
    Within(Index, i64, i64),
    /// A register.
    Reg(RegId, Index),
    /// Some lanes of a register, from the first number on as many as the second: one, or those of the open `Vector` loop.
    Lanes(RegId, Index, u64, u64),
    /// All lanes of a register combined by an associative op in a fixed tree.
    Fold(ScalarOp, RegId, Index),
}

/// The element type of the sums of a dot-product instruction.
pub fn dot_sum_type(instruction: DotInstruction) -> DType {
    if instruction.is_integer() { DType::S32 } else { DType::F32 }
}

impl Expr {
    /// The index that the expression contains.
    pub fn index(&self) -> Option<&Index> {
        match self {
            Expr::Load(_, x) | Expr::Word(_, x) | Expr::Number(x, _) | Expr::Within(x, _, _) => Some(x),
            Expr::Reg(_, x) | Expr::Lanes(_, x, _, _) | Expr::Fold(_, _, x) => Some(x),
            Expr::Const(..) | Expr::Op(..) | Expr::DotProduct { .. } => None,
        }
    }

    /// The index that the expression contains, to be changed.
    pub fn index_mut(&mut self) -> Option<&mut Index> {
        match self {
            Expr::Load(_, x) | Expr::Word(_, x) | Expr::Number(x, _) | Expr::Within(x, _, _) => Some(x),
            Expr::Reg(_, x) | Expr::Lanes(_, x, _, _) | Expr::Fold(_, _, x) => Some(x),
            Expr::Const(..) | Expr::Op(..) | Expr::DotProduct { .. } => None,
        }
    }
}

/// An array of registers.
#[derive(Clone, Copy, Debug)]
pub struct Reg {
    /// The element type.
    pub dtype: DType,
    /// Lanes of each register; 1 for scalars.
    pub lanes: u64,
    /// Number of registers.
    pub count: u64,
}

/// A loop nest that becomes one function of the object.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// TensorFlow's names of the computation, for people.
    pub label: String,
    /// The names of the HLO instructions that the kernel computes, for people.
    pub insts: Vec<String>,
    /// The extents of the loop variables.
    pub vars: IdVec<VarId, u64>,
    /// The register arrays.
    pub regs: IdVec<RegId, Reg>,
    /// The expressions.
    pub exprs: IdVec<ExprId, Expr>,
    /// The outermost loop, whose iterations are the chunks.
    pub chunks: Option<VarId>,
    /// Variables for the first and the last chunk of the current range, for kernels whose chunks reuse what the chunk before left on the
    /// stack.
    pub range: Option<[VarId; 2]>,
    /// Element of an `s32` buffer with the number of chunks that a call needs; at most the extent of the chunk loop.
    pub limit: Option<(BufId, u64)>,
    /// The body of the outermost loop.
    pub body: Vec<Stmt>,
    /// Floating-point operations of one launch.
    pub flops: u64,
    /// Constants that the kernel streams once from first to last, from far memory unless they were prefetched.
    pub streamed: Option<BufId>,
    /// Decisions that led to the kernel, where there were any. No code depends on them.
    pub provenance: Option<Box<Provenance>>,
}

/// One step of a call.
#[derive(Clone, Debug)]
pub enum Step {
    /// Runs a kernel over all its chunks.
    Launch(KernelId),
    /// Calls a function of the user or other ranks, whose failure ends the call of the program.
    Call(Box<Call>),
    /// Runs `cond`, and while its `pred` is true `body` and `cond` again.
    While {
        /// The steps that compute `pred`.
        cond: Vec<Step>,
        /// A buffer with one boolean: whether the loop continues.
        pred: BufId,
        /// The steps of one iteration.
        body: Vec<Step>,
        /// An upper bound on the number of iterations, if the loop has one whatever the arguments of a call are.
        most_rounds: Option<u64>,
    },
    /// Runs one branch: for a `pred` selector branch 0 if it is true; for `s32` branch `selector`, the last if it is out of range.
    Branch {
        /// A buffer of one element: the branch to run.
        selector: BufId,
        /// The branches.
        branches: Vec<Vec<Step>>,
    },
    /// Runs independent lists of steps, none of which writes a buffer that another accesses: at the same time, if the executor has
    /// several threads. Each list runs on one thread.
    Together(Vec<Vec<Step>>),
}

/// A scheduled function, from which code is generated: buffers, kernels and the steps of a call.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The model's C name, the prefix of every symbol.
    pub name: String,
    /// The file that the model came from, for `NAME_info()->source`.
    pub source: String,
    /// The arguments.
    pub args: Vec<TensorInfo>,
    /// The results.
    pub results: Vec<TensorInfo>,
    /// The variables that keep their values between calls.
    pub state: Vec<VariableSlot>,
    /// The buffers.
    pub buffers: IdVec<BufId, Buffer>,
    /// The kernels.
    pub kernels: IdVec<KernelId, Kernel>,
    /// The steps of a call, in order.
    pub steps: Vec<Step>,
    /// Constants by byte offset, in order, not overlapping.
    pub weights: Vec<(u64, Bytes)>,
    /// Bytes of all constants.
    pub weights_bytes: u64,
    /// Bytes of workspace that a call needs.
    pub workspace_bytes: u64,
    /// Floating-point operations of a call, with one iteration of each loop.
    pub flops: u64,
    /// Counts of constants and products that were rounded to fewer bits on request.
    pub reduced: RoundingCounts,
    /// The products of quantised activations in the whole model.
    pub quantized: Arc<QuantizedProducts>,
    /// The plan of the program, as text.
    pub plan: String,
}

impl Program {
    /// Moves the constants, in their order, to the offsets `to`.
    fn move_weights(&mut self, to: &[u64]) {
        for buffer in self.buffers.values_mut() {
            if let BufferLocation::Weights(at) = &mut buffer.place {
                // the constant that it is, or is a part of
                let part = self.weights.partition_point(|(from, _)| from <= at).checked_sub(1);
                *at = part.map_or(0, |part| to[part] + (*at - self.weights[part].0));
            }
        }
        self.weights.clear();
    }

    /// A copy of the program without code and constants: names, arguments, results, variables, sizes.
    pub fn without_code(&self) -> Program {
        Program {
            name: self.name.clone(),
            source: self.source.clone(),
            args: self.args.clone(),
            results: self.results.clone(),
            state: self.state.clone(),
            workspace_bytes: self.workspace_bytes,
            flops: self.flops,
            weights_bytes: self.weights_bytes,
            reduced: self.reduced,
            quantized: self.quantized.clone(),
            ..Program::default()
        }
    }
}

impl Kernel {
    /// Whether an expression differs between lanes of the loop over `lane`.
    pub fn varies_by_lane(&self, id: ExprId, lane: VarId) -> bool {
        match &self.exprs[id] {
            Expr::Const(..) | Expr::Fold(..) => false,
            Expr::Load(_, x) | Expr::Word(_, x) | Expr::Number(x, _) | Expr::Within(x, _, _) => {
                x.depends_on(lane, &|e| self.varies_by_lane(e, lane))
            }
            Expr::Op(_, args, _) => args.iter().any(|&a| self.varies_by_lane(a, lane)),
            Expr::DotProduct { x, y, z, .. } => [*x, *y, *z].iter().any(|&a| self.varies_by_lane(a, lane)),
            Expr::Reg(r, _) => self.regs[*r].lanes > 1,
            Expr::Lanes(_, _, _, count) => *count > 1,
        }
    }
    /// Releases unused capacity of the vectors of expressions and statements.
    pub fn shrink_to_fit(&mut self) {
        self.exprs.shrink_to_fit();
        shrink_to_fit(&mut self.body);
    }
    /// The dot-product instructions that the kernel uses.
    pub fn dot_instructions(&self) -> impl Iterator<Item = DotInstruction> {
        self.exprs.values().filter_map(|e| match e {
            Expr::DotProduct { instruction, .. } => Some(*instruction),
            _ => None,
        })
    }
    /// The kinds of products that the kernel computes by tile instructions.
    pub fn tile_products(&self) -> impl Iterator<Item = TileProduct> {
        self.leaf_statements().into_iter().filter_map(|s| match s {
            Stmt::Tiles(sums) => Some(sums.product),
            _ => None,
        })
    }
    /// Number of chunks of the kernel.
    pub fn chunk_count(&self) -> u64 {
        self.chunks.map_or(1, |v| self.vars[v])
    }
    /// The elements that the kernel reads, for each load and each tile.
    fn loads(&self) -> impl Iterator<Item = ElementSpan<'_>> {
        let loads = self.exprs.values().filter_map(|e| match e {
            Expr::Load(b, index) | Expr::Word(b, index) => Some(ElementSpan::of_element(*b, index)),
            _ => None,
        });
        let tiles = self.leaf_statements().into_iter().filter_map(|s| match s {
            Stmt::Tiles(sums) => Some(sums.reads()),
            _ => None,
        });
        loads.chain(tiles.flatten())
    }
    /// The elements that the kernel's statements write.
    pub fn stores(&self) -> Vec<ElementSpan<'_>> {
        let writes = |s| match s {
            &Stmt::Store { buf, ref index, .. } => Some(ElementSpan::of_element(buf, index)),
            Stmt::Tiles(sums) => Some(sums.writes()),
            _ => None,
        };
        self.leaf_statements().into_iter().filter_map(writes).collect()
    }
    /// The statements without a body, at any depth.
    fn leaf_statements(&self) -> Vec<&Stmt> {
        let mut all = Vec::new();
        push_leaf_statements(&self.body, &mut all);
        all
    }
    /// The buffers that the kernel reads or writes, each once.
    pub fn buffers(&self) -> Vec<BufId> {
        let mut all: Vec<BufId> = self.loads().chain(self.stores()).map(|span| span.buf).collect();
        all.extend(self.limit.map(|(buf, _)| buf));
        all.sort_unstable();
        all.dedup();
        all
    }
    /// Adds a loop variable.
    pub fn add_var(&mut self, extent: u64) -> VarId {
        self.vars.push(extent)
    }
    /// Adds an expression, unless an equal one is among the last few.
    pub fn add_expr(&mut self, expr: Expr) -> ExprId {
        self.exprs.push(expr)
    }
    /// Adds a scalar op on expressions.
    pub fn add_op(&mut self, op: ScalarOp, args: &[ExprId], dtype: DType) -> ExprId {
        self.add_expr(Expr::Op(op, args.to_vec(), dtype))
    }
    /// Adds the load of an element.
    pub fn add_load(&mut self, buf: BufId, index: Index) -> ExprId {
        self.add_expr(Expr::Load(buf, index))
    }
    /// Adds the read of register `at` of an array.
    pub fn read_reg(&mut self, reg: RegId, at: u64) -> ExprId {
        self.add_expr(Expr::Reg(reg, Index::constant(at as i64)))
    }
    /// Adds a register array.
    pub fn add_reg(&mut self, dtype: DType, lanes: u64, count: u64) -> RegId {
        self.regs.push(Reg { dtype, lanes, count })
    }
}

fn shrink_to_fit(stmts: &mut Vec<Stmt>) {
    stmts.shrink_to_fit();
    for s in stmts {
        match s {
            Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                shrink_to_fit(body)
            }
            Stmt::Store { .. } | Stmt::Tiles(_) | Stmt::Set { .. } | Stmt::Prefetch { .. } | Stmt::Release => {}
        }
    }
}

fn push_leaf_statements<'k>(all: &'k [Stmt], out: &mut Vec<&'k Stmt>) {
    for s in all {
        match s {
            Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                push_leaf_statements(body, out)
            }
            Stmt::Store { .. } | Stmt::Tiles(_) | Stmt::Set { .. } | Stmt::Prefetch { .. } | Stmt::Release => {
                out.push(s)
            }
        }
    }
}
