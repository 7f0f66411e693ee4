//! Winograd's method along one axis in two kernels, where there is little room and there are few tiles: the inputs are transformed,
//! then a panel of channels at a time has its weights transformed, a point after the other, is multiplied with all tiles, and is
//! transformed back. The sums of a panel are on the stack. Panels are the chunks.
use super::super::MOST_STACK;
use super::super::contraction::{Axis, Contraction, chunked, guarded, shares};
use super::super::element::Elements;
use super::super::tile::{Part, Tile};
use super::super::transform::apart;
use super::super::{each, label};
use super::{Lines, Tiles, products, weights_1d};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{Index, LoopKind, Step};
use crate::schedule::winograd1d::Winograd1d;
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, LoopOrder};
use crate::tensor::DType;

/// Most vectors of a panel, so that threads have several.
const NARROW: u64 = 2;

impl<'a> Scheduler<'a> {
    /// The channels of a panel, where its sums fit on the stack and there is less room than all sums take.
    pub(super) fn panel_1d(&self, w: &Winograd1d, room: Option<u64>) -> Option<u64> {
        let points = w.points.count();
        let whole = 4 * points * (w.lines_read() * w.reads() * w.inputs + w.rows() * w.outputs);
        room.filter(|&room| whole > room)?;
        let widths = (1..=NARROW).rev().map(|vectors| w.outputs.min(vectors * self.lanes(DType::F32)));
        widths.into_iter().find(|columns| 4 * points * apart(w.rows() * columns) <= MOST_STACK)
    }

    /// The second kernel.
    pub(super) fn winograd_1d_panels(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        d: &ConvDims,
        (w, columns): (&Winograd1d, u64),
        tiles: &Tiles,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let weights = self.constant(&w.weights);
        let of_panel = w.with_outputs(columns);
        let (rows, tile, form) = self.tile_1d(&of_panel, &products(d, &of_panel, tiles, weights, 0));
        let (panel, points, factors) = (tile.vectors * tile.lanes, w.points.count(), self.factors_1d(w));
        let (of_sums, of_weights) = (apart(w.rows() * panel), w.terms() * panel);
        let c = Contraction {
            columns: vec![Axis { extent: panel, a: 0, b: 1 }],
            ..products(d, w, tiles, weights, of_sums)
        };
        let sums = Value { leaves: vec![self.on_stack(DType::F32, points * of_sums)], layout: None };
        let panels = w.outputs.div_ceil(panel);
        let near = 4 * (points * of_sums + of_weights) <= MOST_STACK;
        let packed = match near {
            true => self.on_stack(DType::F32, of_weights),
            false => self.buffer(DType::F32, panels * of_weights),
        };

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let p = e.k.var(panels);
        let b = if near { Index::default() } else { Index::var(p).scale(of_weights as i64) };
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(points);
            let first = columns.at.scale(panel as i64);
            let from = (weights, &first, columns.count);
            let mut made = weights_1d(&mut e.k, (d, w), from, (factors, point), (packed, &b, panel), tile.lanes);
            let right = Part { b: b.clone(), packed, panel, columns: columns.count, ..Part::default() };
            made.extend(self.sums_1d(scope, &mut e, ids, &c, (&rows, tile), point, &right, &sums)?);
            let mut inside = vec![each(point, LoopKind::Seq, made)];
            let lines = Lines::new(&mut e.k, d, w, scope.comp.array(ids.1).rank());
            let from = (sums.buffer()?, lines.row(&e.k).scale(panel as i64), of_sums);
            let line = (w, &lines.at[..], lines.phase, lines.tile);
            let back = self.results_of_line(scope, &mut e, ids, d, line, (first, columns.count), from, out)?;
            inside.extend(lines.loops.iter().rev().fold(back, |body, &v| vec![each(v, LoopKind::Seq, body)]));
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        let Tile { high, wide, vectors, lanes } = tile;
        e.k.chosen = Some((form, Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }));
        e.k.flops = points * w.rows() * w.outputs * (2 * w.terms() + 3);
        e.k.direct_flops = Some(w.direct_flops());
        chunked(&mut e.k, &[p], body);
        self.launch(e.k, steps);
        Ok(())
    }
}
