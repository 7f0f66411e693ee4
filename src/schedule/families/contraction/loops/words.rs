//! Several numbers of a word at a time: terms that one instruction multiplies, and vectors of bf16 that lie in the halves of words.
use crate::schedule::families::contraction::loops::operands::Contraction;
use crate::schedule::families::contraction::loops::register_block::{EqualWidthVectors, RegisterBlock};
use crate::schedule::families::contraction::loops::sums::{TermLoops, TermRange, term_loops};
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::contraction::recipe::word_products::WordProducts;
use crate::schedule::loops::prelude::*;

/// Loads the vectors of one term of the right side, which begins at `first`, and converts them.
pub fn load_right(
    e: &mut KernelBuilder,
    part: &RegisterBlock,
    first: &Index,
    stored: DType,
    dtype: DType,
    right: RegId,
    lane: VarId,
) -> Vec<Stmt> {
    let lanes = part.lanes;
    let paired = |v: u64| matches!(part.order, PanelOrder::Vectors(_)) && v / 2 * 2 + 1 < part.term / lanes;
    let mut out = Vec::new();
    let mut word = None;
    for v in 0..part.columns.div_ceil(lanes) {
        let from = first.offset((v * lanes) as i64);
        let value = if !paired(v) {
            let value = e.k.add_load(part.packed, from.add(&Index::var(lane)));
            convert(&mut e.k, value, stored, dtype)
        } else {
            if v % 2 == 0 {
                let reg = e.k.add_reg(DType::U32, lanes, 1);
                let value = e.k.add_expr(Expr::Word(part.packed, from.add(&Index::var(lane).scale(2))));
                out.push(Stmt::set(reg, 0, value));
                word = Some(reg);
            }
            let Some(word) = word else { continue };
            let word = e.k.read_reg(word, 0);
            let (op, bits) = if v % 2 == 0 { (ScalarOp::ShiftLeft, 16) } else { (ScalarOp::And, 0xffff_0000) };
            let other = e.k.add_expr(Expr::Const(DType::U32, bits));
            let wide = e.k.add_op(op, &[word, other], DType::U32);
            e.k.add_op(ScalarOp::BitcastConvert(dtype), &[wide], dtype)
        };
        out.push(Stmt::set(right, v, value));
    }
    out
}

/// Emits the contracted loops word by word: the trip count of the innermost loop is its number of terms over the terms of a word, which
/// divide the extent of every part of it.
pub fn emit_word_loops(
    e: &mut KernelBuilder,
    products: WordProducts,
    c: &Contraction,
    sum: &[ContractionAxis],
    range: &TermRange,
    part: &RegisterBlock,
    &EqualWidthVectors { acc, lane, .. }: &EqualWidthVectors,
) -> Vec<Stmt> {
    let (vectors, lanes) = (part.columns.div_ceil(part.lanes), part.lanes);
    let (right, left) = (e.k.add_reg(DType::U32, lanes, vectors), e.k.add_reg(DType::U32, 1, 1));
    let constant = |i: u64| Index::constant(i as i64);
    let at_once = products.terms_per_word();
    let TermLoops { loops, left: a, position, .. } = term_loops(&mut e.k, sum, range, &part.a, at_once);
    let first = part.b.add(&position.scale(part.term as i64)).add(&Index::var(lane).scale(at_once as i64));
    let mut inside = Vec::new();
    for v in 0..vectors {
        let value = e.k.add_expr(Expr::Word(part.packed, first.offset((at_once * v * lanes) as i64)));
        inside.push(Stmt::set(right, v, value));
    }
    for (r, (away, _)) in part.rows.iter().enumerate() {
        let mut value = e.k.add_expr(Expr::Word(c.left, a.offset(*away)));
        if products.is_left_flipped() {
            let top_bits = e.k.add_expr(Expr::Const(DType::U32, 0x8080_8080));
            value = e.k.add_op(ScalarOp::Xor, &[value, top_bits], DType::U32);
        }
        inside.push(Stmt::set(left, 0, value));
        let word = e.k.read_reg(left, 0);
        for v in 0..vectors {
            let at = constant(r as u64 * vectors + v);
            let (other, z) = (e.k.read_reg(right, v), e.k.add_expr(Expr::Reg(acc, at.clone())));
            let (x, y) = products.operands(word, other);
            let value = e.k.add_expr(Expr::DotProduct { instruction: products.instruction, x, y, z });
            inside.push(Stmt::Set { reg: acc, at, value });
        }
    }
    nest_loops(&loops, inside)
}
