//! The loops around the rows of a chain (`depthwise_chain.rs`): which are made when, and where they lie.
use crate::hlo::attrs::ConvDims;
use crate::kernel::Atom;
use crate::schedule::loops::grid::{bind_linear_index, guard_by_tiles, guard_in_range, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::VectorWidth;
use crate::schedule::memory::layout::Layout;

/// A band of rows of the result with the rows that its windows read. Step `t` makes a row of the operand, and from the last row of the
/// first window on every `stride`th step is followed by a row of the result.
pub(in crate::schedule) struct RowBand {
    /// Rows of the result.
    pub own: u64,
    /// Rows per window.
    pub span: u64,
    /// Distance of windows in rows.
    pub stride: u64,
}

impl RowBand {
    pub(in crate::schedule) fn row_count(&self) -> u64 {
        (self.own - 1) * self.stride + self.span
    }

    /// Wraps `make`, which makes a row of the operand, in the condition that the band before has not left that row in the line buffer, or
    /// that this band is `fresh` and found nothing there.
    pub(in crate::schedule) fn guard_new_rows(
        &self,
        k: &mut Kernel,
        t: VarId,
        fresh: ExprId,
        make: Vec<Stmt>,
    ) -> Vec<Stmt> {
        let mine = Index::var(t).offset(self.stride as i64 - self.span as i64);
        let most = mine.range(&k.vars).1;
        let mine = k.add_expr(Expr::Within(mine, 0, most + 1));
        let cond = k.add_op(ScalarOp::Or, &[mine, fresh], DType::Pred);
        vec![Stmt::If { cond, body: make }]
    }

    /// Wraps `read`, which makes row `reader` of the result, in the condition that all rows that it reads are in the line buffer.
    pub(in crate::schedule) fn guard_complete_windows(
        &self,
        k: &mut Kernel,
        t: VarId,
        band: VarId,
        reader: VarId,
        read: Vec<Stmt>,
    ) -> Vec<Stmt> {
        let (last, stride) = (self.span - 1, self.stride as i64);
        let since = Index::var(t).offset(-(last as i64));
        let number = since.clamp_to(0, (self.own as i64 - 1) * stride, &k.vars).div(stride, &k.vars);
        let value = Index::var(band).scale(self.own as i64).add(&number);
        let read = vec![Stmt::Let { var: reader, value, body: read }];
        let phase = Index::var(t).offset((stride - last as i64 % stride) % stride).rem(stride, &k.vars);
        let read = guard_in_range(k, &phase, 0, 1, read);
        let most = since.range(&k.vars).1;
        guard_in_range(k, &since, 0, most + 1, read)
    }
}

/// The loops over images, panels and bands that are flattened into the kernel's chunks, the bands of one panel one after another. Threads
/// that share them get either the upper or the lower bands of all panels, which balances and matches how kernels over rows read the result.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct ChunkLoops {
    pub batch: VarId,
    pub panel: VarId,
    pub band: VarId,
    /// Number of the chunk.
    pub all: VarId,
    /// First and last chunk of the range that a thread executes.
    pub range: [VarId; 2],
}

impl ChunkLoops {
    pub(in crate::schedule) fn new(k: &mut Kernel, batch: VarId, panel: VarId, bands: u64) -> ChunkLoops {
        let all = k.vars[batch] * k.vars[panel] * bands;
        ChunkLoops {
            batch,
            panel,
            band: k.add_var(bands),
            all: k.add_var(all),
            range: [k.add_var(all), k.add_var(all)],
        }
    }

    /// Number of bands of rows in each half of a panel of channels, if panels are divided in halves.
    fn of_half(&self, k: &Kernel) -> Option<i64> {
        let bands = k.vars[self.band] as i64;
        (bands % 2 == 0).then_some(bands / 2)
    }

    /// Emits the condition that a thread's range of chunks has all of them, or with `whole` false that it has fewer.
    fn range_has(&self, k: &mut Kernel, whole: bool) -> ExprId {
        let more = k.vars[self.all] as i64 - 1;
        let range = Index::var(self.range[1]).add(&Index::var(self.range[0]).scale(-1));
        k.add_expr(if whole { Expr::Within(range, more, more + 1) } else { Expr::Within(range, 0, more) })
    }

    /// Emits the condition that the line buffer has no rows that the current band reads.
    pub(in crate::schedule) fn emit_is_line_buffer_empty(&self, k: &mut Kernel) -> ExprId {
        let top = k.add_expr(Expr::Within(Index::var(self.band), 0, 1));
        let since = Index::var(self.all).add(&Index::var(self.range[0]).scale(-1));
        let first = k.add_expr(Expr::Within(since, 0, 1));
        let fresh = k.add_op(ScalarOp::Or, &[top, first], DType::Pred);
        let Some(half) = self.of_half(k) else { return fresh };
        let middle = k.add_expr(Expr::Within(Index::var(self.band), half, half + 1));
        let shared = self.range_has(k, false);
        let middle = k.add_op(ScalarOp::And, &[middle, shared], DType::Pred);
        k.add_op(ScalarOp::Or, &[fresh, middle], DType::Pred)
    }

    /// Number of the current chunk in the order of panels. With one thread that is the variable [`ChunkLoops::all`]; if threads share the
    /// chunks, that counts the upper bands of all panels before the lower ones.
    fn chunk_number(&self, k: &mut Kernel) -> Index {
        let own = Index::var(self.all);
        let Some(half) = self.of_half(k) else { return own };
        let all = k.vars[self.all] as i64;
        let (lower, number) = (own.div(all / 2, &k.vars), own.rem(all / 2, &k.vars));
        let (panel, band) = (number.div(half, &k.vars), number.rem(half, &k.vars));
        let shared = panel.scale(2 * half).add(&lower.scale(half)).add(&band);
        let whole = self.range_has(k, true);
        let [own, shared] = [own, shared].map(|x| k.add_expr(Expr::Number(x, DType::S64)));
        let place = k.add_op(ScalarOp::Select, &[whole, own, shared], DType::S64);
        Index::atom(Atom::Clamp(Box::new(Index::atom(Atom::Value(place))), 0, all - 1))
    }

    /// Sets the kernel's body: `body`, with the variables of image, panel and band bound for each chunk.
    pub(in crate::schedule) fn set_kernel_body(self, k: &mut Kernel, body: Vec<Stmt>) {
        let place = k.add_var(k.vars[self.all]);
        let body = bind_linear_index(k, place, &[self.batch, self.panel, self.band], body);
        let value = self.chunk_number(k);
        let body = vec![Stmt::Let { var: place, value, body }];
        (k.chunks, k.range, k.body) = (Some(self.all), Some(self.range), body);
    }
}

/// Statements that compute one row of pixels, and the variables that they depend on.
pub(in crate::schedule) struct RowStatements {
    pub batch: VarId,
    pub panel: VarId,
    /// Number of the row.
    pub row: VarId,
    /// The slot of the row in the line buffer.
    pub slot: VarId,
    pub body: Vec<Stmt>,
}

/// Layout of a line buffer: rows of one panel of channels.
pub(in crate::schedule) struct LineBuffer {
    pub buf: BufId,
    /// Number of rows in the buffer.
    pub held: u64,
    /// Distance of rows in elements.
    pub stride: u64,
    /// Vector widths for channels.
    pub width: VectorWidth,
}

impl LineBuffer {
    /// The layout of the pixels of any one row in the buffer, of which the first `before` pixels, which are padding, are not stored. The
    /// offsets of the row and of other panels are not included.
    pub(in crate::schedule) fn layout(&self, d: &ConvDims, panel: u64, before: i64) -> Layout {
        let rank = 2 + d.input_spatial.len();
        let mut strides = vec![0; rank];
        strides[d.input_spatial[1]] = panel as i64;
        strides[d.input_feature] = 1;
        Layout { origin: -before * panel as i64, strides, low: vec![0; rank], high: vec![0; rank] }
    }

    /// Emits the statements of `made` for row `padded` of the padded operand, unless the row is padding; the operand has `height` rows
    /// after `before` rows of padding.
    pub(in crate::schedule) fn emit_row(
        &self,
        k: &mut Kernel,
        made: RowStatements,
        padded: &Index,
        before: i64,
        height: i64,
    ) -> Vec<Stmt> {
        let at = padded.offset(-before);
        let held = at.clamp_to(0, height - 1, &k.vars);
        let body = guard_in_range(k, &at, 0, height, vec![Stmt::Let { var: made.row, value: held, body: made.body }]);
        vec![Stmt::Let { var: made.slot, value: padded.rem(self.held as i64, &k.vars), body }]
    }

    /// Emits stores of the values that `store` returns for the channels of panel `panel`, a vector at a time. `store` gets a channel's
    /// number in the panel and its number among all channels; there are `all` channels in panels of `most`.
    pub(in crate::schedule) fn store_panel(
        &self,
        k: &mut Kernel,
        panel: VarId,
        all: u64,
        most: u64,
        store: impl Fn(&mut Kernel, &Index, &Index) -> (BufId, Index, ExprId),
    ) -> Vec<Stmt> {
        let mut body = Vec::new();
        for column in split_into_tiles(k, panel, all, most) {
            for part in self.width.split(column.count) {
                let (block, lane) = (k.add_var(part.blocks), k.add_var(part.lanes));
                let from = part.element_index(&Index::var(block), lane);
                let (buf, index, value) = store(k, &from, &column.at.scale(most as i64).add(&from));
                let inside = vec![part.loop_nest(block, lane, vec![Stmt::Store { buf, index, value }])];
                body.extend(guard_by_tiles(k, &[&column], inside));
            }
        }
        body
    }
}
