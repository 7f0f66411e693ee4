//! The sums of a register tile: the contracted loops, in the parts in which TensorFlow adds them.
use crate::scalar::sums::SumParts;
use crate::schedule::families::contraction::loops::operands::Contraction;
use crate::schedule::families::contraction::loops::register_block::{
    EqualWidthVectors, RegisterBlock, vectorize_bands,
};
use crate::schedule::families::contraction::loops::words::load_right;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product};
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::loops::prelude::*;

/// Divides sums over the contracted loops `sum` into partial sums, as TensorFlow adds them; the unit is a step of the outermost loop.
pub(in crate::schedule) fn sum_parts(dtype: DType, sum: &[ContractionAxis], outputs: u64) -> SumParts {
    let steps = sum.first().map_or(1, |x| x.extent);
    match dtype {
        DType::F32 => SumParts::of_floats(steps, extent_product(sum) / steps.max(1), outputs),
        _ => SumParts::in_order(steps),
    }
}

/// Emits sums as the partial sums of `parts`; also returns the registers of the totals of each band. `loops` emits the loops that add a
/// range of steps to the accumulators.
pub(in crate::schedule) fn emit_sums_in_parts(
    e: &mut KernelBuilder,
    parts: &SumParts,
    bands: &[EqualWidthVectors],
    rows: u64,
    dtype: DType,
    loops: &mut dyn FnMut(&mut KernelBuilder, Index, u64) -> Vec<Stmt>,
) -> (Vec<Stmt>, Vec<RegId>) {
    let at = |i: u64| Index::constant(i as i64);
    let zero = constant_of_number(&mut e.k, dtype, 0.0);
    let acc: Vec<RegId> = bands.iter().map(|b| b.acc).collect();
    let fresh = |e: &mut KernelBuilder| -> Vec<RegId> {
        bands.iter().map(|b| e.k.add_reg(dtype, b.lanes, rows * b.count)).collect()
    };
    let vectors = |regs: &[RegId], set: &mut dyn FnMut(usize, RegId, u64) -> Stmt| -> Vec<Stmt> {
        let band = |(i, (b, &reg)): (usize, (&EqualWidthVectors, &RegId))| {
            let body = (0..rows * b.count).map(|slot| set(i, reg, slot)).collect();
            for_loop(b.lane, LoopKind::Vector, body)
        };
        bands.iter().zip(regs).enumerate().map(band).collect()
    };
    let clear = |regs: &[RegId]| vectors(regs, &mut |_, reg, slot| Stmt::set(reg, slot, zero));
    let add = |e: &mut KernelBuilder, total: &[RegId], more: &[RegId]| {
        vectors(total, &mut |band, reg, slot| {
            let (x, y) = (e.k.read_reg(reg, slot), e.k.read_reg(more[band], slot));
            Stmt::set(reg, slot, e.k.add_op(ScalarOp::Add, &[x, y], dtype))
        })
    };
    let mut body = Vec::new();
    let mut whole: Option<Vec<RegId>> = None;
    for group in &parts.groups {
        let (start, steps) = (group.start, group.end - group.start);
        let mut total = acc.clone();
        if steps <= parts.most {
            body.extend(clear(&acc));
            body.extend(loops(e, at(start), steps));
        } else {
            total = fresh(e);
            body.extend(clear(&total));
            let mut part = |e: &mut KernelBuilder, start: Index, count: u64| {
                let mut part = clear(&acc);
                part.extend(loops(e, start, count));
                part.extend(add(e, &total, &acc));
                part
            };
            let number = e.k.add_var(steps / parts.most);
            let inside = part(e, Index::var(number).scale(parts.most as i64).offset(start as i64), parts.most);
            body.push(for_loop(number, LoopKind::Seq, inside));
            if !steps.is_multiple_of(parts.most) {
                body.extend(part(e, at(start + steps / parts.most * parts.most), steps % parts.most));
            }
        }
        match &whole {
            Some(whole) => body.extend(add(e, whole, &total)),
            None if parts.groups.len() == 1 => whole = Some(total),
            None => {
                let first = fresh(e);
                body.extend(clear(&first));
                body.extend(add(e, &first, &total));
                whole = Some(first);
            }
        }
    }
    (body, whole.unwrap_or(acc))
}

/// The loops over the terms of a sum, and the indices that a step of them reads.
pub struct TermLoops {
    /// The loop variables, outermost first.
    pub loops: Vec<VarId>,
    /// Index of the left side's element.
    pub left: Index,
    /// Offset of the right side's element from its first, if it is read in place.
    pub right: Index,
    /// Row-major number of the term over all contracted loops.
    pub position: Index,
}

/// A range of terms of the outermost contracted loop.
#[derive(Clone, Debug)]
pub struct TermRange {
    /// The first term.
    pub start: Index,
    /// The number of terms.
    pub count: u64,
}

/// The element types of both sides of a contraction in memory.
#[derive(Clone, Copy, Debug)]
pub struct OperandTypes {
    /// The type of the left side.
    pub left: DType,
    /// The type of the right side.
    pub right: DType,
}

/// Loops over the contracted axes, outermost first, `at_once` terms per step of the innermost; the outermost runs over `range`.
pub fn term_loops(k: &mut Kernel, sum: &[ContractionAxis], range: &TermRange, left: &Index, at_once: u64) -> TermLoops {
    let (mut loops, mut left, mut position) = (Vec::new(), left.clone(), Index::constant(0));
    let mut right = Index::constant(0);
    for (i, axis) in sum.iter().enumerate() {
        let extent = if i == 0 { range.count } else { axis.extent };
        let step = if i + 1 == sum.len() { at_once } else { 1 };
        let v = k.add_var(extent / step);
        loops.push(v);
        let mut x = Index::var(v).scale(step as i64);
        if i == 0 {
            x = x.add(&range.start);
        }
        left = left.add(&x.scale(axis.a));
        right = right.add(&x.scale(axis.b));
        position = position.scale(axis.extent as i64).add(&x);
    }
    TermLoops { loops, left, right, position }
}

/// Emits the contracted loops, the outermost over `range`; the innermost does two or three steps at once if they divide its extent.
pub(in crate::schedule) fn emit_sum_loops(
    e: &mut KernelBuilder,
    types: OperandTypes,
    c: &Contraction,
    sum: &[ContractionAxis],
    range: &TermRange,
    part: &RegisterBlock,
    bands: &[EqualWidthVectors],
) -> Vec<Stmt> {
    let (dtype, OperandTypes { left: left_type, right: right_type }) = (c.dtype.accumulator_type(), types);
    let right: Vec<RegId> = bands.iter().map(|b| e.k.add_reg(dtype, b.lanes, b.count)).collect();
    let left = e.k.add_reg(dtype, 1, 1);
    let innermost = match sum {
        [] => 1,
        [_] => range.count,
        [.., last] => last.extent,
    };
    let unroll = (2..=3).find(|u| innermost % u == 0).unwrap_or(1);
    let TermLoops { loops, left: mut a, right: lying, position } = term_loops(&mut e.k, sum, range, &part.a, unroll);
    let of_row = part.inside.as_ref().zip(loops.first());
    let read = of_row.map(|(of_row, &v)| of_row.read_condition(&e.k, &range.start.add(&Index::var(v))));
    if let Some((_, row)) = &read {
        a = a.add(row);
    }
    let last_step = sum.last().map_or(0, |x| x.a);
    let last_lying = sum.last().map_or(0, |x| x.b);
    let mut inside = Vec::new();
    for u in 0..unroll {
        let first = match part.is_in_place {
            true => part.b.add(&lying).offset(u as i64 * last_lying),
            false => part.b.add(&position.offset(u as i64).scale(part.term as i64)),
        };
        if let (PanelOrder::Vectors(_), [all]) = (part.order, bands) {
            let loads = load_right(e, part, &first, right_type, dtype, right[0], all.lane);
            inside.extend(loads.into_iter().map(|s| (0, s)));
        } else {
            for (b, band) in bands.iter().enumerate() {
                for v in 0..band.count {
                    let column = part.column_offset(band.first + v * band.lanes);
                    let at = first.add(&Index::var(band.lane)).offset(column as i64);
                    let value = e.k.add_load(part.packed, at);
                    let value = convert(&mut e.k, value, right_type, dtype);
                    inside.push((b, Stmt::set(right[b], v, value)));
                }
            }
        }
        let request = part.ahead.as_ref().and_then(|ahead| ahead.element_to_prefetch(&position, u, right_type));
        inside.extend(request.map(|index| (0, Stmt::Prefetch { buf: part.packed, index })));
        for (r, (away, _)) in part.rows.iter().enumerate() {
            let value = e.k.add_load(c.left, a.offset(u as i64 * last_step + away));
            let value = convert(&mut e.k, value, left_type, dtype);
            inside.push((0, Stmt::set(left, 0, value)));
            let x = e.k.read_reg(left, 0);
            for (b, band) in bands.iter().enumerate() {
                for v in 0..band.count {
                    let at = band.accumulator_index(r, v);
                    let (y, z) = (e.k.read_reg(right[b], v), e.k.add_expr(Expr::Reg(band.acc, at.clone())));
                    let value = e.k.add_op(ScalarOp::Fma, &[x, y, z], dtype);
                    inside.push((b, Stmt::Set { reg: band.acc, at, value }));
                }
            }
        }
    }
    let mut inside = vectorize_bands(bands, inside);
    for (number, &v) in loops.iter().enumerate().rev() {
        if let (0, Some((is_inside, _))) = (number, &read) {
            inside = vec![Stmt::If { cond: e.k.add_expr(is_inside.clone()), body: inside }];
        }
        inside = vec![for_loop(v, LoopKind::Seq, inside)];
    }
    inside
}
