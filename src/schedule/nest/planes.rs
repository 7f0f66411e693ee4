//! Sums over planes of pixels that threads made in bands of rows: the sums of each band, by the thread that has it near, then
//! those of the bands together. A thread that takes some of the channels instead reads half of them from another core, and takes
//! them from the core where the next kernel wants them. The bands are the same whatever the number of threads.
use super::contraction::{BANDS, chunked, numbered};
use super::cut::Cut;
use super::element::Elements;
use super::{each, label, number};
use crate::diag::Result;
use crate::hlo::attrs::WindowDim;
use crate::hlo::{InstId, Op};
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::fuse::Fate;
use crate::schedule::{Scheduler, Scope};
use crate::tensor::DType;

/// Most vectors of channels that are summed side by side.
const SIDE_BY_SIDE: u64 = 4;
/// Fewest elements of planes whose sums are worth another kernel.
const FEWEST: u64 = 4096;
/// Kernels that are looked through for the one that made a plane.
const RECENT: usize = 16;

/// A sum over all axes but the channels.
pub(super) struct Planes {
    input: InstId,
    init: InstId,
    /// The outermost axis of which there is more than one.
    axis: usize,
}

impl<'a> Scheduler<'a> {
    /// How far the second half of what threads share of `buf` begins behind the first, if a kernel made it of late.
    pub(super) fn shared_at(&self, buf: BufId) -> Option<i64> {
        self.program.kernels.values().rev().take(RECENT).find_map(|k| k.middle_of(buf))
    }

    /// The sum `anchor`, where it is one over planes whose rows were shared.
    pub(super) fn as_planes(&mut self, scope: &mut Scope<'a>, anchor: InstId, sums: bool) -> Result<Option<Planes>> {
        let comp = scope.comp;
        let [input, init] = &comp[anchor].operands[..] else { return Ok(None) };
        let array = comp.array(*input);
        let dims = &array.dims;
        let axes: Vec<usize> = match &comp[anchor].op {
            Op::Reduce { dims, .. } => dims.clone(),
            // one window over all
            Op::ReduceWindow { window, .. } if comp.array(anchor).elements() == dims.last().copied().unwrap_or(1) => {
                (0..dims.len()).filter(|&d| dims[d] > 1 && is_whole(&window[d], dims[d])).collect()
            }
            _ => return Ok(None),
        };
        let Some(last) = dims.len().checked_sub(1) else { return Ok(None) };
        let Some(axis) = dims.iter().position(|&n| n != 1) else { return Ok(None) };
        let all = (0..last).all(|d| dims[d] == 1 || axes.contains(&d)) && !axes.contains(&last) && axis < last;
        let made = scope.plan.fate[*input] == Fate::Materialised && array.dtype == DType::F32;
        if !sums || !all || !made || array.elements() < FEWEST {
            return Ok(None);
        }
        let value = self.value(scope, *input)?;
        let rows = self.shared_at(value.buffer()?).is_some_and(|m| m >= dims[last] as i64);
        Ok(rows.then_some(Planes { input: *input, init: *init, axis }))
    }

    /// The kernels of sum `anchor` with the epilogue `id`.
    pub(super) fn plane_sums(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        p: &Planes,
        finish: &mut Finish<'_, 'a>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let channels = scope.comp.array(p.input).dims.last().copied().unwrap_or(1);
        let partial = self.buffer(DType::F32, BANDS * channels);
        let cuts = self.width(DType::F32).cut(channels);
        for cut in &cuts {
            let kernel = self.bands(scope, id, p, cut, (partial, channels))?;
            self.launch(kernel, steps);
        }
        for cut in &cuts {
            let mut e = Elements::new(id, label(scope.comp, id));
            let (tile, lane) = (e.k.var(cut.blocks), e.k.var(cut.lanes));
            let channel = cut.at(&Index::var(tile), lane);
            let mut sum = self.element(scope, &mut e, p.init, &[])?;
            for band in 0..BANDS {
                let part = e.k.expr(Expr::Load(partial, channel.offset((band * channels) as i64)));
                sum = e.k.op(ScalarOp::Add, &[sum, part], DType::F32);
            }
            e.fixed.insert(anchor, sum);
            let store = finish(self, scope, &mut e, &channel)?;
            e.k.body = vec![each(lane, cut.kind, vec![store])];
            e.k.chunks = Some(tile);
            e.k.flops = BANDS * cut.elements();
            self.launch(e.k, steps);
        }
        Ok(())
    }

    /// The kernel that sums each band of the channels of `cut`.
    fn bands(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        p: &Planes,
        cut: &Cut,
        (partial, channels): (BufId, u64),
    ) -> Result<Kernel> {
        let mut e = Elements::new(id, format!("bands of {}", label(scope.comp, id)));
        let dims = scope.comp.array(p.input).dims.clone();
        let side = (1..=SIDE_BY_SIDE).rev().find(|n| cut.blocks.is_multiple_of(*n)).unwrap_or(1);
        let rows = dims[p.axis];
        let own = rows.div_ceil(BANDS);
        let (band, group, lane) = (e.k.var(BANDS), e.k.var(cut.blocks / side), e.k.var(cut.lanes));
        let loops: Vec<VarId> =
            (p.axis..dims.len() - 1).map(|d| e.k.var(if d == p.axis { own } else { dims[d] })).collect();
        let row = e.k.var(rows);
        let channel = |i: u64| cut.at(&Index::var(group).scale(side as i64).offset(i as i64), lane);
        let sums = e.k.reg(DType::F32, cut.lanes, side);
        let (mut start, mut add, mut store) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..side {
            let (at, reg) = (Index::constant(i as i64), sums);
            start.push(Stmt::Set { reg, at: at.clone(), value: number(&mut e.k, DType::F32, 0.0) });
            let mut from = vec![Index::constant(0); p.axis];
            from.push(Index::var(row));
            from.extend(loops[1..].iter().map(|&v| Index::var(v)));
            from.push(channel(i));
            let x = self.element(scope, &mut e, p.input, &from)?;
            let sum: ExprId = e.k.expr(Expr::Reg(reg, at.clone()));
            let value = e.k.op(ScalarOp::Add, &[sum, x], DType::F32);
            add.push(Stmt::Set { reg, at: at.clone(), value });
            let index = Index::var(band).scale(channels as i64).add(&channel(i));
            store.push(Stmt::Store { buf: partial, index, value: sum });
        }
        for &v in loops[1..].iter().rev() {
            add = vec![each(v, LoopKind::Seq, add)];
        }
        let at = Index::var(band).scale(own as i64).add(&Index::var(loops[0]));
        let add = numbered(&mut e.k, row, at, add);
        start.push(each(loops[0], LoopKind::Seq, add));
        start.extend(store);
        e.k.flops = dims[p.axis..dims.len() - 1].iter().product::<u64>() * cut.elements();
        chunked(&mut e.k, &[band, group], vec![each(lane, cut.kind, start)]);
        Ok(e.k)
    }
}

/// Whether a window is as long as its axis and not padded.
fn is_whole(w: &WindowDim, n: u64) -> bool {
    w.size == n && w.rhs_dilate == 1 && w.lhs_dilate == 1 && w.pad_low == 0 && w.pad_high == 0
}

/// What stores the sum of a channel, by its number.
pub(super) type Finish<'f, 'a> =
    dyn FnMut(&mut Scheduler<'a>, &mut Scope<'a>, &mut Elements, &Index) -> Result<Stmt> + 'f;
