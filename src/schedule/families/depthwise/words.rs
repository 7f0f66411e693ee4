//! Depthwise convolutions of bytes, whose taps of up to four rows an instruction multiplies at once.
//!
//! The elements of a channel under one another lie in different rows of the operand. Rows are interleaved as they are read: a word of 32 bits has one
//! element of each row, and a word of the weights the taps beside them, so that a window of 3 x 3 takes three instructions a pixel in
//! the place of nine. Words of an operand are read once for all pixels of a tile. Where a row of the window lies on the padding, each row has words of
//! its own.
use crate::schedule::families::depthwise::loops::{DepthwiseStrides, WindowStart, weight_index};
use crate::schedule::families::depthwise::recipe::DepthwiseTiling;
use crate::schedule::families::depthwise::recipe::axis::{TileRun, WindowAxis};
use crate::schedule::loops::prelude::*;
use crate::target::DotInstruction;
use std::collections::BTreeSet;
use std::ops::Range;

/// Whether a window's taps can be multiplied by an instruction for words of four bytes: unsigned elements by signed taps, of one row above another.
pub fn can_multiply(instruction: DotInstruction, left: DType, right: DType, window: &DepthwiseTiling) -> bool {
    let is_plane = window.outer.len() == 1 && window.unrolled_axis().size == window.wide.size;
    let are_bytes = left == DType::U8 && right == DType::S8;
    instruction == DotInstruction::Vpdpbusd && are_bytes && is_plane && window.outer[0].size > 1
}

/// Whether the instruction exists for vectors of so many words.
pub fn has_instruction_for(lanes: u64) -> bool {
    matches!(lanes, 4 | 8 | 16)
}

/// The first elements of one row of taps in both operands.
#[derive(Clone)]
struct TapRow {
    x: Index,
    k: Index,
}

/// A row of the operand that a tap reads.
struct RowRead {
    /// The row's number in memory.
    row: Index,
    /// A variable that `row` contains, with the value to bind it to.
    bound: Option<(VarId, Index)>,
}

impl DepthwiseStrides<'_> {
    /// Emits the sums of a tile by words.
    pub(super) fn word_sums(
        &self,
        e: &mut KernelBuilder,
        run: &TileRun,
        instruction: DotInstruction,
        start: WindowStart<'_>,
        acc: RegId,
        lanes: u64,
    ) -> Vec<Stmt> {
        let Some(side) = self.window.outer.first().copied() else { return Vec::new() };
        let at_once = instruction.terms_per_word();
        let sums = WordSums { strides: self, side, run, instruction, acc, lanes };
        let groups = (0..side.size.div_ceil(at_once)).map(|g| g * at_once..((g + 1) * at_once).min(side.size));
        groups.flat_map(|taps| sums.group(e, &start, taps)).collect()
    }
}

/// The sums of a tile.
struct WordSums<'s, 'd> {
    strides: &'s DepthwiseStrides<'d>,
    /// The axis of the rows.
    side: WindowAxis,
    run: &'s TileRun,
    instruction: DotInstruction,
    acc: RegId,
    lanes: u64,
}

impl WordSums<'_, '_> {
    /// Adds the products of some rows of taps.
    fn group(&self, e: &mut KernelBuilder, start: &WindowStart<'_>, taps: Range<u64>) -> Vec<Stmt> {
        let count = (taps.end - taps.start) as i64;
        let place = start.places.first().map_or_else(Index::default, |&v| Index::var(v).scale(self.side.stride as i64));
        let position = |tap: u64| place.offset((tap * self.side.dilation) as i64);
        let together = self.rows(e, start, taps.clone().map(|tap| (tap, position(tap))).collect());
        let Some((before, n)) = self.side.edges else { return together };
        let first = position(taps.start).offset(-before);
        let inside = e.k.add_expr(Expr::Within(first, 0, n - (count - 1) * self.side.dilation as i64));
        let outside = e.k.add_op(ScalarOp::Not, &[inside], DType::Pred);
        let mut apart = Vec::new();
        for tap in taps {
            let body = self.rows(e, start, vec![(tap, position(tap))]);
            let cond = e.k.add_expr(Expr::Within(position(tap).offset(-before), 0, n));
            apart.push(Stmt::If { cond, body });
        }
        vec![Stmt::If { cond: inside, body: together }, Stmt::If { cond: outside, body: apart }]
    }

    /// Adds the products of rows of taps, each with its position in the padded operand, that all lie in the operand.
    fn rows(&self, e: &mut KernelBuilder, start: &WindowStart<'_>, taps: Vec<(u64, Index)>) -> Vec<Stmt> {
        let step = self.strides.steps.first().copied().unwrap_or_default();
        let mut rows = Vec::with_capacity(taps.len());
        let mut bound = Vec::new();
        for (tap, position) in taps {
            let read = self.row_read(&mut e.k, position);
            let weight = weight_index(&self.side, &Index::constant(tap as i64));
            rows.push(TapRow { x: start.x.add(&read.row.scale(step.0)), k: start.k.add(&weight.scale(step.1)) });
            bound.extend(read.bound);
        }
        let body = self.row_of_words(e, &rows);
        bound.into_iter().rev().fold(body, |body, (var, value)| vec![Stmt::Let { var, value, body }])
    }

    /// The row in memory at a position of the padded operand.
    fn row_read(&self, k: &mut Kernel, position: Index) -> RowRead {
        match (self.strides.ring, self.side.edges) {
            (Some(rows), _) => {
                let slot = k.add_var(rows);
                let value = position.rem(rows as i64, &k.vars);
                RowRead { row: Index::var(slot), bound: Some((slot, value)) }
            }
            (None, Some((before, n))) => {
                let element = k.add_var(n as u64);
                let value = position.offset(-before).clamp_to(0, n - 1, &k.vars);
                RowRead { row: Index::var(element).offset(before), bound: Some((element, value)) }
            }
            (None, None) => RowRead { row: position, bound: None },
        }
    }

    /// Adds the products of words, which have an element of each row.
    fn row_of_words(&self, e: &mut KernelBuilder, rows: &[TapRow]) -> Vec<Stmt> {
        let (wide, step) = (self.strides.window.wide, self.strides.wide_step());
        let (held, term) = (e.k.add_reg(DType::U32, self.lanes, wide.size), e.k.add_reg(DType::U32, self.lanes, 1));
        let uses = wide.tap_uses(self.run);
        let taps: BTreeSet<u64> = uses.values().flatten().map(|&(_, tap)| tap).collect();
        let mut row = Vec::new();
        for tap in taps {
            let away = weight_index(&wide, &Index::constant(tap as i64)).scale(step.1);
            let weights: Vec<ExprId> =
                rows.iter().map(|r| e.k.add_load(self.strides.weights, r.k.add(&away))).collect();
            let bytes: Vec<ExprId> =
                weights.iter().map(|&w| e.k.add_op(ScalarOp::BitcastConvert(DType::U8), &[w], DType::U8)).collect();
            row.push(Stmt::set(held, tap, word_of_bytes(&mut e.k, &bytes)));
        }
        for (element, uses) in uses {
            let away = element as i64 * step.0;
            let bytes: Vec<ExprId> = rows.iter().map(|r| e.k.add_load(self.strides.left, r.x.offset(away))).collect();
            row.push(Stmt::set(term, 0, word_of_bytes(&mut e.k, &bytes)));
            for (pixel, tap) in uses {
                let (x, y, z) = (e.k.read_reg(term, 0), e.k.read_reg(held, tap), e.k.read_reg(self.acc, pixel));
                let value = e.k.add_expr(Expr::DotProduct { instruction: self.instruction, x, y, z });
                row.push(Stmt::set(self.acc, pixel, value));
            }
        }
        row
    }
}

/// The word of up to four unsigned bytes, the first in the low end.
fn word_of_bytes(k: &mut Kernel, bytes: &[ExprId]) -> ExprId {
    let mut word = None;
    for (i, &byte) in bytes.iter().enumerate() {
        let mut wide = k.add_op(ScalarOp::Convert(DType::U32), &[byte], DType::U32);
        if i > 0 {
            let bits = k.add_expr(Expr::Const(DType::U32, 8 * i as u64));
            wide = k.add_op(ScalarOp::ShiftLeft, &[wide, bits], DType::U32);
        }
        word = Some(match word {
            Some(word) => k.add_op(ScalarOp::Or, &[word, wide], DType::U32),
            None => wide,
        });
    }
    word.unwrap_or_else(|| k.add_expr(Expr::Const(DType::U32, 0)))
}
