//! Where the sizes of a call say how many elements of an array are needed (`plan/demand/`), loops end behind the last of them.
//!
//! What a kernel stores shows how far it must go: the rounds of a loop that store nothing that is needed are left out, and where
//! nothing else can be left out, the chunks of the kernel. What they would have made is never read. One small kernel computes all
//! limits at the start of a call.
pub(in crate::schedule) mod regions;
pub(in crate::schedule) mod iterations;
pub(in crate::schedule) mod growth;
mod scratch;

use crate::kernel::{Atom, BufId, Buffer, BufferLocation, Expr, ExprId, Index, Kernel, LoopKind, Program, Step, Stmt};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::schedule::passes::limits::iterations::{KernelContext, MOST_ELEMENTS, PeriodicRows, TripCount};
use crate::schedule::passes::limits::regions::{NeededRegion, NeededRegions};
use crate::schedule::passes::live_out;
use crate::schedule::plan::demand::{DynamicSize, DynamicSizes};
use crate::tensor::DType;
use std::collections::{BTreeMap, HashMap};

/// Ends loops of `program` after the last iteration that stores a needed element.
pub fn set_loop_limits(program: &mut Program, regions: &NeededRegions, amounts: &DynamicSizes) {
    if regions.are_all_whole() {
        return;
    }
    let buf = program.buffers.push(Buffer { dtype: DType::S32, elements: 0, place: BufferLocation::Workspace(0) });
    let mut limits = RequestedLimits {
        buf,
        sizes: argument_buffers(program),
        amounts,
        slots: BTreeMap::new(),
        values: HashMap::new(),
        kernel: Kernel::default(),
    };
    let mut kernels = std::mem::take(&mut program.kernels);
    for kernel in kernels.values_mut() {
        let mut body = std::mem::take(&mut kernel.body);
        let context = KernelContext { program, regions, kernel };
        let of_chunks = kernel.chunks.and_then(|v| context.needed_iterations(&body, Some(v), true));
        let fine = of_chunks.as_ref().is_some_and(|forms| forms.are_fine_grained(kernel.chunk_count()));
        let slot = of_chunks.and_then(|forms| limits.limit_slot(&forms.to_vec(), kernel.chunk_count(), 1));
        kernel.limit = slot.map(|slot| (buf, slot));
        if slot.is_none() || !fine {
            let all = body.clone();
            limit_inner_loops(&mut limits, program, regions, kernel, &mut body, &all, true);
        }
        kernel.body = body;
    }
    program.kernels = kernels;
    if limits.slots.is_empty() {
        return;
    }
    program.buffers[buf].elements = limits.slots.len() as u64;
    limits.kernel.label = "limits".to_string();
    let id = program.kernels.push(limits.kernel);
    program.steps.insert(0, Step::Launch(id));
}

/// The argument buffers by argument number.
fn argument_buffers(program: &Program) -> HashMap<usize, BufId> {
    let args = program.buffers.iter().filter_map(|(id, b)| match b.place {
        BufferLocation::Arg(i) if b.dtype == DType::S32 && b.elements == 1 => Some((i, id)),
        _ => None,
    });
    args.collect()
}

/// The loop limits of a program, and the kernel that computes them.
struct RequestedLimits<'a> {
    buf: BufId,
    /// The argument buffers that may hold sizes.
    sizes: HashMap<usize, BufId>,
    amounts: &'a DynamicSizes,
    slots: BTreeMap<(Vec<TripCount>, u64, i64), u64>,
    /// Expressions of dynamic sizes already computed, by their numbers.
    values: HashMap<usize, ExprId>,
    /// The kernel that computes the limits.
    kernel: Kernel,
}

impl RequestedLimits<'_> {
    /// Adds the maximum of some trip counts, clamped from `least` to `extent`, and returns its slot; `None` if it would leave nothing
    /// out.
    fn limit_slot(&mut self, forms: &[TripCount], extent: u64, least: i64) -> Option<u64> {
        let most = i32::try_from(extent).ok()?;
        if forms.is_empty() || forms.iter().any(|f| f.at_size(1) >= extent as i64) {
            return None;
        }
        let key = (forms.to_vec(), extent, least);
        if let Some(&slot) = self.slots.get(&key) {
            return Some(slot);
        }
        let mut value: Option<ExprId> = None;
        for form in forms {
            let size = self.size(form.size)?;
            let rounds = form.as_index(&Index::atom(Atom::Value(size)));
            let rounds = Index::atom(Atom::Clamp(Box::new(rounds), least, most.into()));
            let rounds = self.kernel.add_expr(Expr::Number(rounds, DType::S32));
            value = Some(match value {
                Some(other) => self.kernel.add_op(ScalarOp::Maximum, &[other, rounds], DType::S32),
                None => rounds,
            });
        }
        let slot = self.slots.len() as u64;
        self.kernel.body.push(Stmt::Store { buf: self.buf, index: Index::constant(slot as i64), value: value? });
        self.slots.insert(key, slot);
        Some(slot)
    }

    /// The expression of the dynamic size with this number.
    fn size(&mut self, number: usize) -> Option<ExprId> {
        if let Some(&known) = self.values.get(&number) {
            return Some(known);
        }
        let value = self.amount_value(self.amounts.get(number)?)?;
        self.values.insert(number, value);
        Some(value)
    }

    /// The expression of a dynamic size.
    fn amount_value(&mut self, amount: &DynamicSize) -> Option<ExprId> {
        Some(match amount {
            DynamicSize::Argument(number) => self.kernel.add_load(*self.sizes.get(number)?, Index::default()),
            DynamicSize::Constant(n) => self.kernel.add_expr(Expr::Number(Index::constant(i64::from(*n)), DType::S32)),
            DynamicSize::Op(op, of, dtype) => {
                let of = of.iter().map(|a| self.amount_value(a)).collect::<Option<Vec<_>>>()?;
                self.kernel.add_op(*op, &of, *dtype)
            }
            DynamicSize::Largest(all) => {
                let mut largest = None;
                for bound in all {
                    let size = Index::atom(Atom::Value(self.size(bound.size)?));
                    let times = i64::try_from(bound.times).ok()?;
                    let below = size.scale(times).offset(i64::try_from(bound.more).ok()?);
                    let below = Index::atom(Atom::Clamp(Box::new(below), 0, i32::MAX.into()));
                    let below = self.kernel.add_expr(Expr::Number(below, DType::S32));
                    largest = Some(match largest {
                        Some(other) => self.kernel.add_op(ScalarOp::Maximum, &[other, below], DType::S32),
                        None => below,
                    });
                }
                largest?
            }
        })
    }

    /// The condition that an index is below the limit in `slot`.
    fn below_limit(&self, kernel: &mut Kernel, x: Index, slot: u64) -> ExprId {
        let limit = kernel.add_load(self.buf, Index::constant(slot as i64));
        let now = kernel.add_expr(Expr::Number(x, DType::S32));
        kernel.add_op(ScalarOp::Compare(Direction::Lt, CompareKind::Partial), &[now, limit], DType::Pred)
    }
}

impl PeriodicRows {
    /// The condition that at least one of the rows is needed.
    fn any_row_needed(&self, limits: &mut RequestedLimits, kernel: &mut Kernel) -> Option<ExprId> {
        let NeededRegion { size, times, more, period, .. } = self.region;
        let form = TripCount { size, times, c: 1, d: 1, k0: 0, k: 1, more };
        let slot = limits.limit_slot(&[form], u64::try_from(period).ok()?, 0)?;
        let first = self.first.rem(period, &kernel.vars);
        let needed = limits.below_limit(kernel, first.clone(), slot);
        if self.others == 0 {
            return Some(needed);
        }
        // the last rows may be the first ones of the next period
        let wraps = kernel.add_expr(Expr::Within(first, period - self.others * self.stride, period));
        Some(kernel.add_op(ScalarOp::Or, &[needed, wraps], DType::Pred))
    }
}

/// Limits loops inside a kernel to needed iterations: the outermost loop that can be limited finely enough. `all` is the whole body of
/// the kernel, and `once` says that no loop encloses `body`.
///
/// Stores to stack memory that nothing else names are ignored if no loop is around: the iterations left out are the last, so that no
/// later one reads what they would have written. They are also ignored if each iteration of the enclosing loop writes what it reads.
fn limit_inner_loops(
    limits: &mut RequestedLimits,
    program: &Program,
    regions: &NeededRegions,
    kernel: &mut Kernel,
    body: &mut [Stmt],
    all: &[Stmt],
    once: bool,
) {
    for stmt in body {
        let is_loop = matches!(stmt, Stmt::For { .. });
        let (var, own) = match stmt {
            Stmt::For { var, kind: LoopKind::Seq, body } | Stmt::Let { var, body, .. } => (Some(*var), body),
            Stmt::If { body, .. } => (None, body),
            _ => continue,
        };
        let inner = once && !is_loop;
        let extent = var.map_or(1, |v| kernel.vars[v]);
        let context = KernelContext { program, regions, kernel };
        if live_out::has_live_out_registers(kernel, own, all) {
            limit_inner_loops(limits, program, regions, kernel, own, all, inner);
            continue;
        }
        // where each round writes what it reads, any round may be left out; where no loop is around, the last ones
        let leaves_stack = live_out::has_live_out_stack(program, kernel, own, all);
        let is_local = !leaves_stack && scratch::is_written_before_read(program, kernel, own);
        let forms = context.needed_iterations(own, var, is_local || (once && !leaves_stack));
        let rows = context.periodic_rows(own, is_local);
        let fine = forms.as_ref().is_some_and(|forms| forms.are_fine_grained(extent));
        // without a variable: whether there is a round at all
        let each = forms.map(|forms| match var {
            Some(_) => forms.to_vec(),
            None => forms.to_vec().into_iter().map(|f| TripCount { c: MOST_ELEMENTS, ..f }).collect(),
        });
        let slot = each.and_then(|forms| limits.limit_slot(&forms, extent, 0));
        let limit = slot.map(|slot| limits.below_limit(kernel, var.map_or(Index::default(), Index::var), slot));
        // along an inner axis rows are left out by themselves, also below the limit along the outer one
        let row = rows.filter(|_| limit.is_none() || !fine).and_then(|rows| rows.any_row_needed(limits, kernel));
        let is_done = limit.is_some() && (fine || row.is_some());
        if !is_done {
            limit_inner_loops(limits, program, regions, kernel, own, all, inner);
        }
        for cond in row.into_iter().chain(limit) {
            *own = vec![Stmt::If { cond, body: std::mem::take(own) }];
        }
    }
}
