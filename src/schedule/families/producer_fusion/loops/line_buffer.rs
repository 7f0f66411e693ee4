//! The loops around the rows of a chain (`depthwise_chain.rs`): which are made when, and where they lie.
use crate::hlo::attrs::ConvDims;
use crate::kernel::Atom;
use crate::schedule::loops::grid::{counted, guarded, shares, within};
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::Width;
use crate::schedule::memory::layout::Layout;

/// The rows of a band: of the result, and those that its windows read. Step `t` makes a row, and from the last row of the first
/// window on every `stride`th is followed by a result.
pub(in crate::schedule) struct RowBand {
    /// Rows of the result.
    pub own: u64,
    /// Rows of a window.
    pub span: u64,
    /// From a window to the next.
    pub stride: u64,
}

impl RowBand {
    pub(in crate::schedule) fn rows(&self) -> u64 {
        (self.own - 1) * self.stride + self.span
    }

    /// `make`, but for rows that the band before has made, unless this one is `fresh`.
    pub(in crate::schedule) fn new_rows(&self, k: &mut Kernel, t: VarId, fresh: ExprId, make: Vec<Stmt>) -> Vec<Stmt> {
        let mine = Index::var(t).offset(self.stride as i64 - self.span as i64);
        let most = mine.range(&k.vars).1;
        let mine = k.expr(Expr::Within(mine, 0, most + 1));
        let cond = k.op(ScalarOp::Or, &[mine, fresh], DType::Pred);
        vec![Stmt::If { cond, body: make }]
    }

    /// `read`, which makes row `reader` of the result, where all that it reads is there.
    pub(in crate::schedule) fn results(
        &self,
        k: &mut Kernel,
        t: VarId,
        band: VarId,
        reader: VarId,
        read: Vec<Stmt>,
    ) -> Vec<Stmt> {
        let (last, stride) = (self.span - 1, self.stride as i64);
        let since = Index::var(t).offset(-(last as i64));
        let number = since.limit(0, (self.own as i64 - 1) * stride, &k.vars).div(stride, &k.vars);
        let value = Index::var(band).scale(self.own as i64).add(&number);
        let read = vec![Stmt::Let { var: reader, value, body: read }];
        let phase = Index::var(t).offset((stride - last as i64 % stride) % stride).rem(stride, &k.vars);
        let read = within(k, &phase, 0, 1, read);
        let most = since.range(&k.vars).1;
        within(k, &since, 0, most + 1, read)
    }
}

/// The loops that chunks stand for: bands of one panel follow one another. Threads that share them have the upper bands of all
/// panels or the lower ones, which come even and are what kernels of rows read behind this one.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Chunks {
    pub batch: VarId,
    pub panel: VarId,
    pub band: VarId,
    /// The number of the chunk.
    pub all: VarId,
    /// The first and the last one of a range.
    pub range: [VarId; 2],
}

impl Chunks {
    pub(in crate::schedule) fn new(k: &mut Kernel, batch: VarId, panel: VarId, bands: u64) -> Chunks {
        let all = k.vars[batch] * k.vars[panel] * bands;
        Chunks { batch, panel, band: k.var(bands), all: k.var(all), range: [k.var(all), k.var(all)] }
    }

    /// Bands of half a panel, where there are halves.
    fn of_half(&self, k: &Kernel) -> Option<i64> {
        let bands = k.vars[self.band] as i64;
        (bands % 2 == 0).then_some(bands / 2)
    }

    /// Whether the range has as many chunks as there are, or fewer.
    fn range_has(&self, k: &mut Kernel, whole: bool) -> ExprId {
        let more = k.vars[self.all] as i64 - 1;
        let range = Index::var(self.range[1]).add(&Index::var(self.range[0]).scale(-1));
        k.expr(if whole { Expr::Within(range, more, more + 1) } else { Expr::Within(range, 0, more) })
    }

    /// Whether the rows in memory are none of this band's.
    pub(in crate::schedule) fn is_fresh(&self, k: &mut Kernel) -> ExprId {
        let top = k.expr(Expr::Within(Index::var(self.band), 0, 1));
        let since = Index::var(self.all).add(&Index::var(self.range[0]).scale(-1));
        let first = k.expr(Expr::Within(since, 0, 1));
        let fresh = k.op(ScalarOp::Or, &[top, first], DType::Pred);
        let Some(half) = self.of_half(k) else { return fresh };
        let middle = k.expr(Expr::Within(Index::var(self.band), half, half + 1));
        let shared = self.range_has(k, false);
        let middle = k.op(ScalarOp::And, &[middle, shared], DType::Pred);
        k.op(ScalarOp::Or, &[fresh, middle], DType::Pred)
    }

    /// The number of a chunk in the order of panels: its own where one thread does all.
    fn place(&self, k: &mut Kernel) -> Index {
        let own = Index::var(self.all);
        let Some(half) = self.of_half(k) else { return own };
        let all = k.vars[self.all] as i64;
        let (lower, number) = (own.div(all / 2, &k.vars), own.rem(all / 2, &k.vars));
        let (panel, band) = (number.div(half, &k.vars), number.rem(half, &k.vars));
        let shared = panel.scale(2 * half).add(&lower.scale(half)).add(&band);
        let whole = self.range_has(k, true);
        let [own, shared] = [own, shared].map(|x| k.expr(Expr::Number(x, DType::S64)));
        let place = k.op(ScalarOp::Select, &[whole, own, shared], DType::S64);
        Index::atom(Atom::Clamp(Box::new(Index::atom(Atom::Value(place))), 0, all - 1))
    }

    /// Makes `body` that of the kernel.
    pub(in crate::schedule) fn close(self, k: &mut Kernel, body: Vec<Stmt>) {
        let place = k.var(k.vars[self.all]);
        let body = counted(k, place, &[self.batch, self.panel, self.band], body);
        let value = self.place(k);
        let body = vec![Stmt::Let { var: place, value, body }];
        (k.chunks, k.range, k.body) = (Some(self.all), Some(self.range), body);
    }
}

/// Statements that make one row of pixels, and the variables that they depend on.
pub(in crate::schedule) struct RowStatements {
    pub batch: VarId,
    pub panel: VarId,
    /// The row.
    pub row: VarId,
    /// The place of the row in the line buffer.
    pub slot: VarId,
    pub body: Vec<Stmt>,
}

/// Rows of one panel of channels in memory, in elements.
pub(in crate::schedule) struct PanelRows {
    pub buf: BufId,
    /// The number of rows that the memory holds.
    pub held: u64,
    /// From one to the next.
    pub stride: u64,
    /// The widths of vectors of channels.
    pub width: Width,
}

impl PanelRows {
    /// Where the pixels of a row lie behind so many that are not there. Rows and the channels of other panels are added by those
    /// that know them.
    pub(in crate::schedule) fn layout(&self, d: &ConvDims, panel: u64, before: i64) -> Layout {
        let rank = 2 + d.input_spatial.len();
        let mut strides = vec![0; rank];
        strides[d.input_spatial[1]] = panel as i64;
        strides[d.input_feature] = 1;
        Layout { origin: -before * panel as i64, strides, low: vec![0; rank], high: vec![0; rank] }
    }

    /// Row `padded` of the operand with its padding, unless it is padding: of `height` rows between `before` others and those
    /// behind.
    pub(in crate::schedule) fn one(
        &self,
        k: &mut Kernel,
        made: RowStatements,
        padded: &Index,
        before: i64,
        height: i64,
    ) -> Vec<Stmt> {
        let at = padded.offset(-before);
        let held = at.limit(0, height - 1, &k.vars);
        let body = within(k, &at, 0, height, vec![Stmt::Let { var: made.row, value: held, body: made.body }]);
        vec![Stmt::Let { var: made.slot, value: padded.rem(self.held as i64, &k.vars), body }]
    }

    /// Stores what `store` says for the channels of panel number `panel` of `all` in panels of `most`, a vector at a time: from
    /// their numbers in the panel and of all.
    pub(in crate::schedule) fn panel(
        &self,
        k: &mut Kernel,
        panel: VarId,
        all: u64,
        most: u64,
        store: impl Fn(&mut Kernel, &Index, &Index) -> (BufId, Index, ExprId),
    ) -> Vec<Stmt> {
        let mut body = Vec::new();
        for column in shares(k, panel, all, most) {
            for part in self.width.cut(column.count) {
                let (block, lane) = (k.var(part.blocks), k.var(part.lanes));
                let from = part.at(&Index::var(block), lane);
                let (buf, index, value) = store(k, &from, &column.at.scale(most as i64).add(&from));
                let inside = vec![part.loops(block, lane, vec![Stmt::Store { buf, index, value }])];
                body.extend(guarded(k, &[&column], inside));
            }
        }
        body
    }
}
