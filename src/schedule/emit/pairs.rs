//! Numbers of 16 bits two at a time: terms that one instruction multiplies, and vectors that lie in the halves of words.
use super::contraction::{Contraction, Right};
use super::element::Elements;
use super::sums::term_loops;
use super::tile::Part;
use super::{convert, each};
use crate::kernel::{Expr, Index, LoopKind, RegId, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::emit::Emitter;
use crate::schedule::plan::axis::Axis;
use crate::target::{MathType, PairSums};
use crate::tensor::DType;

/// How the numbers of a panel of columns lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Term after term, column after column.
    #[default]
    Plain,
    /// Two terms of a column side by side, for an instruction that adds both.
    Terms(PairSums),
    /// The same, for one that multiplies tiles.
    Tiles,
    /// The columns of two vectors of so many lanes by turns: each word holds one of both, and a shift and a mask make f32 of
    /// them, which is half of what widening each vector takes. A last vector without a partner is as it was.
    Vectors(u64),
    /// Column after column, so far apart, the terms of each side by side.
    Turned(u64),
}

impl Order {
    /// Where column `column` of `panel` columns has its number in term `term`.
    pub fn place(self, term: u64, column: u64, panel: u64) -> u64 {
        match self {
            Order::Plain => term * panel + column,
            Order::Terms(_) | Order::Tiles => (term / 2 * panel + column) * 2 + term % 2,
            Order::Vectors(lanes) => {
                let (vector, lane) = (column / lanes, column % lanes);
                let even = vector / 2 * 2;
                let inside = if even + 1 < panel / lanes { even * lanes + 2 * lane + vector % 2 } else { column };
                term * panel + inside
            }
            Order::Turned(apart) => column * apart + term,
        }
    }
}

impl Emitter<'_> {
    /// Whether two terms of each sum are multiplied at once: where factors are bf16 on request, and neighbours on the left.
    pub(super) fn pairs(&self, c: &Contraction, sum: &[Axis]) -> Option<PairSums> {
        let side_by_side = sum.last().is_some_and(|last| last.a == 1 && last.extent.is_multiple_of(2));
        let asked = self.target.precision.math == MathType::Bf16
            && is_bf16(&c.right)
            && side_by_side
            && self.program.buffers[c.left].dtype == DType::BF16
            && c.dtype == DType::F32;
        self.target.bf16_pairs.filter(|_| asked)
    }
}

/// Whether the right side is a constant of bf16 without scales.
pub(super) fn is_bf16(right: &Right) -> bool {
    match right {
        Right::Constant(t) => t.dtype == DType::BF16,
        Right::Stored(s) => s.numbers.dtype == DType::BF16 && s.scales.is_none(),
        Right::Scaled(..) | Right::Buffer(_) => false,
    }
}

/// The vectors of a term of the right side, which begins at `first`, in registers as another type.
pub fn load_right(
    e: &mut Elements,
    part: &Part,
    first: &Index,
    (stored, dtype): (DType, DType),
    (right, lane): (RegId, VarId),
) -> Vec<Stmt> {
    let lanes = part.lanes;
    let constant = |i: u64| Index::constant(i as i64);
    let paired = |v: u64| matches!(part.order, Order::Vectors(_)) && v / 2 * 2 + 1 < part.term / lanes;
    let mut out = Vec::new();
    let mut word = None;
    for v in 0..part.columns.div_ceil(lanes) {
        let from = first.offset((v * lanes) as i64);
        let value = if !paired(v) {
            let value = e.k.expr(Expr::Load(part.packed, from.add(&Index::var(lane))));
            convert(&mut e.k, value, stored, dtype)
        } else {
            if v % 2 == 0 {
                let reg = e.k.reg(DType::U32, lanes, 1);
                let value = e.k.expr(Expr::Pair(part.packed, from.add(&Index::var(lane).scale(2))));
                out.push(Stmt::Set { reg, at: constant(0), value });
                word = Some(reg);
            }
            let Some(word) = word else { continue };
            let word = e.k.expr(Expr::Reg(word, constant(0)));
            let (op, bits) = if v % 2 == 0 { (ScalarOp::ShiftLeft, 16) } else { (ScalarOp::And, 0xffff_0000) };
            let other = e.k.expr(Expr::Const(DType::U32, bits));
            let wide = e.k.op(op, &[word, other], DType::U32);
            e.k.op(ScalarOp::BitcastConvert(dtype), &[wide], dtype)
        };
        out.push(Stmt::Set { reg: right, at: constant(v), value });
    }
    out
}

/// The contracted loops over pairs of terms: half as many steps of the innermost one, whose extent is even as every part of
/// it is.
pub fn pair_loops(
    e: &mut Elements,
    sums: PairSums,
    c: &Contraction,
    sum: &[Axis],
    (start, count): (Index, u64),
    part: &Part,
    (acc, lane): (RegId, VarId),
) -> Vec<Stmt> {
    let (vectors, lanes) = (part.columns.div_ceil(part.lanes), part.lanes);
    let (right, left) = (e.k.reg(DType::U32, lanes, vectors), e.k.reg(DType::U32, 1, 1));
    let constant = |i: u64| Index::constant(i as i64);
    let (loops, a, position) = term_loops(&mut e.k, sum, (&start, count), &part.a, 2);
    let first = part.b.add(&position.scale(part.term as i64)).add(&Index::var(lane).scale(2));
    let mut inside = Vec::new();
    for v in 0..vectors {
        let value = e.k.expr(Expr::Pair(part.packed, first.offset(2 * (v * lanes) as i64)));
        inside.push(Stmt::Set { reg: right, at: constant(v), value });
    }
    for (r, (away, _)) in part.rows.iter().enumerate() {
        let value = e.k.expr(Expr::Pair(c.left, a.offset(*away)));
        inside.push(Stmt::Set { reg: left, at: constant(0), value });
        let x = e.k.expr(Expr::Reg(left, constant(0)));
        for v in 0..vectors {
            let at = constant(r as u64 * vectors + v);
            let (y, z) = (e.k.expr(Expr::Reg(right, constant(v))), e.k.expr(Expr::Reg(acc, at.clone())));
            let value = e.k.expr(Expr::PairSum { sums, x, y, z });
            inside.push(Stmt::Set { reg: acc, at, value });
        }
    }
    for &v in loops.iter().rev() {
        inside = vec![each(v, LoopKind::Seq, inside)];
    }
    inside
}
