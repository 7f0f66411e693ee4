//! Sums over planes of pixels, in parts. A depthwise window adds up what it writes itself: each tile of pixels, or each band of a
//! chain, is a part. Of other planes that threads made in bands of rows the sums of each band are a part, by the thread that has
//! it near: one that takes some of the channels instead reads half of them from another core, and takes them from the core where
//! the next kernel wants them. The parts are the same whatever the number of threads, and another kernel adds them up.
use crate::schedule::families::plane_sums::recipe::PlaneSum;
use crate::schedule::families::reduce::recipe::{PartialSumSource, Reduction};
use crate::schedule::loops::grid::{BANDS, bind_variable, set_body_in_chunks};
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{SIDE_BY_SIDE, VectorRun};

/// Number of most recent kernels among which the one that made a plane is searched for.
const RECENT: usize = 16;

/// Upper limit of partial sums that are added without a loop.
const FEW_PARTS: u64 = 4;

/// Partial sums of an array's channels: `[part][channel]`.
#[derive(Clone, Copy, Debug)]
pub struct PartialSums {
    pub(in crate::schedule) buf: BufId,
    pub(in crate::schedule) count: u64,
    pub(in crate::schedule) channels: u64,
}

/// Destination of the sums that a tile of pixels makes of a vector of channels.
pub(in crate::schedule) struct SumTarget {
    pub buf: BufId,
    /// Index of a channel's sum.
    pub at: Index,
    /// Whether the sum is added to the one in memory.
    pub adds: bool,
}

/// The sum of a tile's pixels while it is computed.
pub(in crate::schedule) struct TileSum<'s> {
    to: &'s SumTarget,
    /// Registers of the sum and of the next summand.
    regs: [RegId; 2],
    /// Whether a value was added yet.
    begun: bool,
}

impl<'s> TileSum<'s> {
    pub(in crate::schedule) fn new(to: &'s SumTarget, k: &mut Kernel, lanes: u64) -> TileSum<'s> {
        TileSum { to, regs: [(); 2].map(|()| k.add_reg(DType::F32, lanes, 1)), begun: false }
    }

    /// Appends the addition of `value` to the sum to `body`; also returns `value` as read from a register.
    pub(in crate::schedule) fn add(
        &mut self,
        k: &mut Kernel,
        value: ExprId,
        mut body: Vec<Stmt>,
    ) -> (ExprId, Vec<Stmt>) {
        let [sum, kept] = self.regs;
        let at = Index::constant(0);
        body.push(Stmt::Set { reg: kept, at: at.clone(), value });
        let value = k.add_expr(Expr::Reg(kept, at.clone()));
        let before = match (std::mem::replace(&mut self.begun, true), self.to.adds) {
            (false, false) => None,
            (false, true) => Some(k.add_load(self.to.buf, self.to.at.clone())),
            (true, _) => Some(k.add_expr(Expr::Reg(sum, at.clone()))),
        };
        let added = before.map_or(value, |before| k.add_op(ScalarOp::Add, &[before, value], DType::F32));
        body.push(Stmt::Set { reg: sum, at, value: added });
        (value, body)
    }

    /// Emits the store of the sum.
    pub(in crate::schedule) fn store(self, k: &mut Kernel) -> Stmt {
        let value = k.read_reg(self.regs[0], 0);
        Stmt::Store { buf: self.to.buf, index: self.to.at.clone(), value }
    }
}

impl<'a> Emitter<'a> {
    /// Offset in `buf` at which the second half of the work of the kernel that made it begins; `None` if no recent kernel made it.
    pub(in crate::schedule) fn second_half_offset(&self, buf: BufId) -> Option<i64> {
        self.program.kernels.values().rev().take(RECENT).find_map(|k| k.middle_chunk_offset(buf))
    }

    /// Allocates memory for the partial sums of `count` parts of the result of `id`, if they are wanted.
    pub(in crate::schedule) fn allocate_partial_sums(&mut self, id: InstId, count: u64) -> Option<PartialSums> {
        if !self.scope.stages.summed.contains(&id) {
            return None;
        }
        let channels = self.scope.comp.array_shape(id).dims.last().copied()?;
        let parts = PartialSums { buf: self.allocate_buffer(DType::F32, count * channels), count, channels };
        self.scope.parts.insert(id, parts);
        Some(parts)
    }

    /// The plane sum of a reduction that adds partial sums: those that the kernels of the planes left, or those of bands of rows if threads
    /// shared rows. `None` if it is reduced without partial sums.
    pub(in crate::schedule) fn planes_with_partial_sums<'w>(
        &mut self,
        algorithm: &'w Reduction,
    ) -> Result<Option<&'w PlaneSum>> {
        let Some((planes, parts)) = &algorithm.planes else { return Ok(None) };
        let is_so = match parts {
            PartialSumSource::Left => true,
            PartialSumSource::Bands => {
                let value = self.value_buffers(planes.input)?;
                let channels = self.scope.comp.array_shape(planes.input).dims.last().copied().unwrap_or(1);
                self.second_half_offset(value.buffer()?).is_some_and(|middle| middle >= channels as i64)
            }
        };
        Ok(is_so.then_some(planes))
    }

    /// Emits the kernels of sum `anchor` with the epilogue `id`.
    pub(in crate::schedule) fn emit_plane_sums(&mut self, root: KernelRoot<'_>, p: &PlaneSum) -> Result<()> {
        let channels = self.scope.comp.array_shape(p.input).dims.last().copied().unwrap_or(1);
        let cuts = self.vector_width(DType::F32).split(channels);
        let parts = match self.scope.parts.get(&p.input) {
            Some(&parts) => parts,
            None => {
                let partial = self.allocate_buffer(DType::F32, BANDS * channels);
                for cut in &cuts {
                    let kernel = self.bands(root.id, p, cut, partial, channels)?;
                    self.launch(kernel);
                }
                PartialSums { buf: partial, count: BANDS, channels }
            }
        };
        for cut in &cuts {
            let kernel = self.parts_together(root, p, cut, &parts)?;
            self.launch(kernel);
        }
        Ok(())
    }

    /// Emits the kernel that adds up the partial sums of the channels of `cut`.
    fn parts_together(
        &mut self,
        root @ KernelRoot { id, anchor, .. }: KernelRoot<'_>,
        p: &PlaneSum,
        cut: &VectorRun,
        parts: &PartialSums,
    ) -> Result<Kernel> {
        let mut e = self.start_kernel(id);
        // those side by side wait for one another's sums no longer than for their own
        let most = if parts.count > FEW_PARTS { SIDE_BY_SIDE } else { 1 };
        let side = cut.interleave_factor(most);
        let (group, lane, part) = (e.k.add_var(cut.blocks / side), e.k.add_var(cut.lanes), e.k.add_var(parts.count));
        let channel = |i: u64| cut.element_index(&Index::var(group).scale(side as i64).offset(i as i64), lane);
        let sums = e.k.add_reg(DType::F32, cut.lanes, side);
        let (mut body, mut add) = (Vec::new(), Vec::new());
        for i in 0..side {
            let at = Index::constant(i as i64);
            let value = self.emit_element(&mut e, p.init, &[])?;
            body.push(Stmt::Set { reg: sums, at: at.clone(), value });
            let sum = e.k.add_expr(Expr::Reg(sums, at.clone()));
            let from = Index::var(part).scale(parts.channels as i64).add(&channel(i));
            let one = e.k.add_load(parts.buf, from);
            let value = e.k.add_op(ScalarOp::Add, &[sum, one], DType::F32);
            add.push(Stmt::Set { reg: sums, at, value });
        }
        body.push(for_loop(part, if parts.count > FEW_PARTS { LoopKind::Seq } else { LoopKind::Unroll }, add));
        for i in 0..side {
            e.forget_elements();
            let sum = e.k.read_reg(sums, i);
            e.fixed.insert(anchor, sum);
            let rank = self.scope.comp.array_shape(anchor).rank();
            let place = |d: usize| if d + 1 == rank { channel(i) } else { Index::constant(0) };
            let at: Vec<Index> = (0..rank).map(place).collect();
            body.push(self.store_epilogue(&mut e, root, &at)?);
        }
        e.k.body = vec![for_loop(lane, cut.kind, body)];
        e.k.chunks = Some(group);
        e.k.flops = parts.count * cut.element_count();
        Ok(e.k)
    }

    /// Emits the kernel that sums the rows of each band for the channels of `cut`, into `partial`.
    fn bands(&mut self, id: InstId, p: &PlaneSum, cut: &VectorRun, partial: BufId, channels: u64) -> Result<Kernel> {
        let mut e = KernelBuilder::new(id, format!("bands of {}", instruction_label(self.scope.comp, id)));
        let dims = self.scope.comp.array_shape(p.input).dims.clone();
        let side = cut.interleave_factor(SIDE_BY_SIDE);
        let rows = dims[p.axis];
        let own = rows.div_ceil(BANDS);
        let (band, group, lane) = (e.k.add_var(BANDS), e.k.add_var(cut.blocks / side), e.k.add_var(cut.lanes));
        let loops: Vec<VarId> =
            (p.axis..dims.len() - 1).map(|d| e.k.add_var(if d == p.axis { own } else { dims[d] })).collect();
        let row = e.k.add_var(rows);
        let channel = |i: u64| cut.element_index(&Index::var(group).scale(side as i64).offset(i as i64), lane);
        let sums = e.k.add_reg(DType::F32, cut.lanes, side);
        let (mut start, mut add, mut store) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..side {
            let (at, reg) = (Index::constant(i as i64), sums);
            start.push(Stmt::Set { reg, at: at.clone(), value: constant_of_number(&mut e.k, DType::F32, 0.0) });
            let mut from = vec![Index::constant(0); p.axis];
            from.push(Index::var(row));
            from.extend(loops[1..].iter().map(|&v| Index::var(v)));
            from.push(channel(i));
            let x = self.emit_element(&mut e, p.input, &from)?;
            let sum: ExprId = e.k.add_expr(Expr::Reg(reg, at.clone()));
            let value = e.k.add_op(ScalarOp::Add, &[sum, x], DType::F32);
            add.push(Stmt::Set { reg, at: at.clone(), value });
            let index = Index::var(band).scale(channels as i64).add(&channel(i));
            store.push(Stmt::Store { buf: partial, index, value: sum });
        }
        add = nest_loops(&loops[1..], add);
        let at = Index::var(band).scale(own as i64).add(&Index::var(loops[0]));
        let add = bind_variable(&mut e.k, row, at, add);
        start.push(for_loop(loops[0], LoopKind::Seq, add));
        start.extend(store);
        e.k.flops = dims[p.axis..dims.len() - 1].iter().product::<u64>() * cut.element_count();
        set_body_in_chunks(&mut e.k, &[band, group], vec![for_loop(lane, cut.kind, start)]);
        Ok(e.k)
    }
}
