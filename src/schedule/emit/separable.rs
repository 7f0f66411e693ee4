//! The kernel of a separable convolution (`plan/within/separable.rs`): a depthwise window and the 1x1 convolution that reads it.
use super::contraction::Coordinates;
use super::depthwise::Place;
use super::element::Elements;
use super::grid::{chunked, guarded};
use super::held::{Held, Strip};
use super::{each, label};
use crate::diag::{Error, Result};
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{Index, LoopKind, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope, Value, View};
use crate::schedule::family::{Family, Root};
use crate::schedule::layout::Layout;
use crate::schedule::plan::depthwise::Window;
use crate::schedule::plan::phases::Phase;
use crate::schedule::plan::recipe::Setup;
use crate::schedule::plan::within::{Separable, Within};
use crate::target::LoopOrder;
use crate::tensor::DType;

/// A 1x1 convolution that makes what it reads.
pub const FAMILY: Family = Family {
    name: "separable",
    recipe: |_, asked| {
        Ok(asked.within(|within| match within {
            Within::Separable(separable) => Some(Setup::Separable(separable.clone())),
            _ => None,
        }))
    },
    emit: |s, root, setup| match setup {
        Setup::Separable(separable) => s.separable(root, separable),
        other => other.unfit(),
    },
};

impl<'a> Emitter<'a> {
    /// The kernel of `id`, whose anchor is the 1x1 convolution `anchor`.
    pub(super) fn separable(
        &mut self,
        Root { scope, id, anchor, out, steps }: Root<'_, 'a>,
        separable: &Separable,
    ) -> Result<()> {
        let comp = scope.comp;
        let (_, p) = self.convolution(scope, anchor)?;
        let producer = separable.producer;
        let window = scope.fusion.anchor[producer].unwrap_or(producer);
        let (_, d) = self.convolution(scope, window)?;
        let operand = comp.array(producer).clone();
        let elements = operand.dims[d.output_spatial[1]] * separable.stride;
        let row = self.on_stack(DType::F32, elements);
        let layout = layout_of_row(operand.rank(), d, separable.stride);
        let mut e = Elements::new(id, label(comp, id));
        let input = self.padded(scope, (producer, window), comp[window].operands[0], steps)?;
        let right = self.right(scope, comp[anchor].operands[1])?;
        let phases: Vec<Phase> = p.output_spatial.iter().map(|&axis| Phase::only(operand.dims[axis], 1)).collect();
        let strip = Strip { held: Held::Row, stride: 0, tile: separable.tile, form: Some(separable.form.clone()) };
        let mut made = None;
        self.as_contraction(
            scope,
            anchor,
            &View::new(row, layout.clone()),
            &right,
            (&phases, 0),
            &mut |s, scope, c, place: Coordinates<'_>| {
                made = Some(s.nest(scope, &mut e, (id, anchor), c, Some(&strip), place, out, steps)?);
                Ok(())
            },
        )?;
        let nest = made.ok_or_else(|| Error::internal("schedule", "a separable convolution has no product"))?;
        let [batch, line] = nest.grid.outer[..] else {
            return Err(Error::internal("schedule", "a separable convolution's rows are not apart"));
        };
        e.forget();
        let sink = Value { leaves: vec![row], layout: Some(layout) };
        let mut body =
            self.window_row(scope, &mut e, (producer, window), (&input, &separable.window), (batch, line), &sink)?;
        let loops = match nest.order {
            LoopOrder::Panels => [nest.grid.tile, nest.grid.panel],
            LoopOrder::Rows => [nest.grid.panel, nest.grid.tile],
        };
        body.extend(loops.into_iter().fold(nest.body, |body, v| vec![each(v, LoopKind::Seq, body)]));
        chunked(&mut e.k, &[batch, line], body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// One row of the window `anchor` with its epilogue `id`.
    fn window_row(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, anchor): (InstId, InstId),
        (input, window): (&View, &Window),
        (batch, line): (VarId, VarId),
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let result = scope.comp.array(anchor).clone();
        let (_, d) = self.convolution(scope, anchor)?;
        let c = self.depthwise_at(scope, anchor, input, window)?;
        e.k.add_flops(window.flops(result.dims[d.output_batch], result.dims[d.output_feature]));
        let (tile, width) = (window.tile, result.dims[d.output_spatial[1]]);
        let tiles = e.k.var(width.div_ceil(tile));
        let mut body = Vec::new();
        for part in self.width(DType::F32).cut(result.dims[d.output_feature]) {
            for (pixels, run) in c.shares(&mut e.k, tiles, tile) {
                let (block, lane) = (e.k.var(part.blocks), e.k.var(part.lanes));
                let channel = part.at(&Index::var(block), lane);
                let (first, from) = (pixels.at.scale(tile as i64), channel.clone());
                let place = Place { batch, outer: &[line], first, channel, from, lanes: part.lanes, sum: None };
                let inside = self.depthwise_tile(scope, e, (id, anchor), &c, &place, input, &run, out)?;
                body.extend(guarded(&mut e.k, &[&pixels], vec![part.loops(block, lane, inside)]));
            }
        }
        Ok(vec![each(tiles, LoopKind::Seq, body)])
    }
}

/// Where the elements of one row of pixels lie, whichever row it is.
fn layout_of_row(rank: usize, d: &ConvDims, stride: u64) -> Layout {
    let mut strides = vec![0; rank];
    strides[d.output_spatial[1]] = stride as i64;
    strides[d.output_feature] = 1;
    Layout { origin: 0, strides, low: vec![0; rank], high: vec![0; rank] }
}
