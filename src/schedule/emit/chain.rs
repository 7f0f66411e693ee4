//! The kernel of a chain (`plan/within/chain.rs`): a depthwise convolution and the one that makes its operand, row by row.
use super::contraction::Coordinates;
use super::depthwise::Place;
use super::element::Elements;
use super::grid::{guarded, shares};
use super::held::{Held, Strip};
use super::planes::Sum;
use super::strip::{Band, Chunks, Made, Rows};
use super::{each, label};
use crate::diag::{Error, Result};
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, Index, LoopKind, Step, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope, Value, View};
use crate::schedule::family::{Family, Root};
use crate::schedule::plan::depthwise::Window;
use crate::schedule::plan::phases::Phase;
use crate::schedule::plan::recipe::Setup;
use crate::schedule::plan::within::{Chain, Within, span};
use crate::tensor::DType;

/// A depthwise window that makes what it reads.
pub const FAMILY: Family = Family {
    name: "chain",
    recipe: |_, asked| {
        Ok(asked.within(|within| match within {
            Within::Chain(chain) => Some(Setup::Chain(chain.clone())),
            _ => None,
        }))
    },
    emit: |s, root, setup| match setup {
        Setup::Chain(chain) => s.chain(root, chain),
        other => other.unfit(),
    },
};

impl<'a> Emitter<'a> {
    /// The kernel of `id`, whose anchor is the depthwise convolution `anchor`.
    pub(super) fn chain(&mut self, Root { scope, id, anchor, out, steps }: Root<'_, 'a>, chain: &Chain) -> Result<()> {
        let comp = scope.comp;
        let (_, d) = self.convolution(scope, anchor)?;
        let (operand, result) = (comp.array(chain.producer).clone(), comp.array(anchor).clone());
        let (w, panel) = (&d.window[0], chain.tile.vectors * chain.tile.lanes);
        let (held, stride) = (span(w), operand.dims[d.input_spatial[1]] * panel);
        let buf = self.on_stack(DType::F32, held * stride);
        let rows = Rows { buf, held, stride, width: self.width(DType::F32) };
        let mut e = Elements::new(id, label(comp, id));
        let made = self.strip(scope, &mut e, chain, (&rows, d), steps)?;
        let extent = result.dims[d.output_spatial[0]];
        let reader = e.k.var(extent);
        let (count, pixels) = (e.k.vars[made.batch] * chain.bands, result.dims[d.output_spatial[1]]);
        let parts = self.parts(scope, id, count, pixels);
        let sums = parts.map(|_| self.on_stack(DType::F32, panel));
        let read =
            self.reader(scope, &mut e, (id, anchor), (d, &chain.window), (&rows, reader, panel), (&made, sums), out)?;
        let band = Band { own: extent / chain.bands, span: span(w), stride: w.stride };
        let chunks = Chunks::new(&mut e.k, (made.batch, made.panel), chain.bands);
        let fresh = chunks.is_fresh(&mut e.k);
        let t = e.k.var(band.rows());
        let padded = Index::var(chunks.band).scale((band.own * band.stride) as i64).add(&Index::var(t));
        let new = rows.one(&mut e.k, made, &padded, (w.pad_low, operand.dims[d.input_spatial[0]] as i64));
        let mut inside = band.new_rows(&mut e.k, t, fresh, new);
        inside.extend(band.results(&mut e.k, (t, chunks.band), reader, read));
        let mut body = vec![each(t, LoopKind::Seq, inside)];
        if let (Some(sums), Some(parts)) = (sums, parts) {
            let zero = super::number(&mut e.k, DType::F32, 0.0);
            let all = result.dims[d.output_feature];
            let start = rows.panel(&mut e.k, (chunks.panel, all, panel), |_, from, _| (sums, from.clone(), zero));
            let part = Index::var(chunks.batch).scale(chain.bands as i64).add(&Index::var(chunks.band));
            let end = rows.panel(&mut e.k, (chunks.panel, all, panel), |k, from, channel| {
                let sum = k.expr(Expr::Load(sums, from.clone()));
                (parts.buf, part.scale(parts.channels as i64).add(channel), sum)
            });
            body.splice(0..0, start);
            body.extend(end);
        }
        chunks.close(&mut e.k, body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// One row of one panel of the producer.
    fn strip(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        chain: &Chain,
        (rows, d): (&Rows, &ConvDims),
        steps: &mut Vec<Step>,
    ) -> Result<Made> {
        let comp = scope.comp;
        let producer = chain.producer;
        let first = scope.fusion.anchor[producer].unwrap_or(producer);
        let (_, p) = self.convolution(scope, first)?;
        let result = comp.array(first).clone();
        let input = self.padded(scope, (producer, first), comp[first].operands[0], steps)?;
        let right = self.right(scope, comp[first].operands[1])?;
        let phases: Vec<Phase> =
            p.output_spatial.iter().zip(&p.window).map(|(&axis, w)| Phase::only(result.dims[axis], w.size)).collect();
        let slot = e.k.var(rows.held);
        let form = Some(chain.form.clone());
        let strip = Strip { held: Held::Pixels(slot), stride: rows.stride, tile: chain.tile, form };
        let sink =
            Value { leaves: vec![rows.buf], layout: Some(rows.layout(d, chain.tile.vectors * chain.tile.lanes, 0)) };
        let mut made = None;
        self.as_contraction(scope, first, &input, &right, (&phases, 0), &mut |s, scope, c, place: Coordinates<'_>| {
            made = Some(s.nest(scope, e, (producer, first), c, Some(&strip), place, &sink, steps)?);
            Ok(())
        })?;
        let nest = made.ok_or_else(|| Error::internal("schedule", "a chain has no rows"))?;
        let [batch, row] = nest.grid.outer[..] else {
            return Err(Error::internal("schedule", "a chain's rows are not apart"));
        };
        let body = vec![each(nest.grid.tile, LoopKind::Seq, nest.body)];
        Ok(Made { batch, row, slot, panel: nest.grid.panel, body })
    }

    /// One row of one panel of the result; what it adds to the sums of the panel's channels lies in `sums`.
    fn reader(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, anchor): (InstId, InstId),
        (d, window): (&ConvDims, &Window),
        (rows, reader, panel): (&Rows, VarId, u64),
        (made, sums): (&Made, Option<BufId>),
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let result = scope.comp.array(anchor).clone();
        let mut layout = rows.layout(d, panel, d.window[1].pad_low);
        layout.strides[d.input_spatial[0]] = rows.stride as i64;
        let input = View { buf: rows.buf, layout, ring: Some(rows.held) };
        let c = self.depthwise_at(scope, anchor, &input, window)?;
        e.k.add_flops(window.flops(result.dims[d.output_batch], result.dims[d.output_feature]));
        let (tile, width) = (window.tile, result.dims[d.output_spatial[1]]);
        let tiles = e.k.var(width.div_ceil(tile));
        let mut body = Vec::new();
        for column in shares(&mut e.k, made.panel, result.dims[d.output_feature], panel) {
            for part in rows.width.cut(column.count) {
                for (pixels, run) in c.shares(&mut e.k, tiles, tile) {
                    let (block, lane) = (e.k.var(part.blocks), e.k.var(part.lanes));
                    let from = part.at(&Index::var(block), lane);
                    let channel = column.at.scale(panel as i64).add(&from);
                    let (first, lanes) = (pixels.at.scale(tile as i64), part.lanes);
                    let sum = sums.map(|buf| Sum { buf, at: from.clone(), adds: true });
                    let place = Place { batch: made.batch, outer: &[reader], first, channel, from, lanes, sum };
                    let inside = self.depthwise_tile(scope, e, (id, anchor), &c, &place, &input, &run, out)?;
                    let inside = vec![part.loops(block, lane, inside)];
                    body.extend(guarded(&mut e.k, &[&column, &pixels], inside));
                }
            }
        }
        Ok(vec![each(tiles, LoopKind::Seq, body)])
    }
}
