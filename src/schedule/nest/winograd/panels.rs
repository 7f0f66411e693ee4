//! Winograd's method in two kernels, where there is little room and there are few tiles: the inputs are transformed, then a panel
//! of channels at a time has its weights transformed, a row of points after the other, is multiplied with all tiles, and is
//! transformed back. Panels are the chunks, or groups of them that share memory for weights and sums, where those are not on the
//! stack.
use super::super::contraction::{Axis, Contraction, Right, chunked, guarded, numbered, shares};
use super::super::element::Elements;
use super::super::tile::{Cover, Part, Tile};
use super::super::transform::apart;
use super::super::{MOST_STACK, each, label};
use super::{Conv, FEW_GROUPS, NARROW, Products, by_panels, products, tile_loops, tile_number};
use crate::diag::Result;
use crate::kernel::{Index, LoopKind, Step};
use crate::schedule::winograd::{POINTS, READS, Winograd};
use crate::schedule::{Scheduler, Scope, Value};
use crate::tensor::DType;

/// What weights may have that are read a vector of columns at a time: 2.4 MB take a net a fifth more time, 0.6 MB none.
const NEAR_BYTES: u64 = 1 << 20;
/// Fewest groups, so that threads share them.
const FEWEST_GROUPS: u64 = 2;

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub(super) struct PanelByPanel {
    tile: Tile,
    form: String,
    /// Groups of panels, each of which has memory for one: for its sums, and for the weights of a row of points.
    groups: u64,
    /// Whether the one and the other are on the stack.
    on_stack: [bool; 2],
}

impl PanelByPanel {
    fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
    /// What it takes in the workspace.
    pub(super) fn bytes(&self, w: &Winograd) -> u64 {
        let of_group = of_panel(w, self.panel()).into_iter().zip(self.on_stack);
        let own: u64 = of_group.filter(|(_, on_stack)| !on_stack).map(|(bytes, _)| bytes).sum();
        4 * POINTS * apart(w.count() * w.inputs) + self.groups * own
    }
}

/// Bytes of the sums and of the weights of a row of points, of a panel of so many channels.
fn of_panel(w: &Winograd, panel: u64) -> [u64; 2] {
    [4 * POINTS * apart(w.count() * panel), 4 * READS * apart(w.inputs * panel)]
}

impl<'a> Scheduler<'a> {
    /// Of panels that are wide or narrow, in more or fewer groups, those that leave more room.
    pub(super) fn winograd_in_panels(&self, w: &Winograd, room: u64) -> Option<PanelByPanel> {
        let tiles = w.count();
        let cut = |(vectors, most_groups): (u64, u64)| {
            let columns = w.outputs.min(vectors * self.lanes(DType::F32));
            let cover = Cover { height: 1, width: tiles, columns, sum: w.inputs, stride: 4 * w.inputs };
            let form = self.form(DType::F32, cover, tiles, POINTS);
            let tile = self.tile(DType::F32, cover, &form);
            let panel = tile.vectors * tile.lanes;
            let [sums, weights] = of_panel(w, panel);
            let on_stack = [sums <= MOST_STACK, sums + weights <= MOST_STACK];
            let panels = w.outputs.div_ceil(panel);
            let groups = if on_stack[1] { panels } else { panels.min(most_groups) };
            let is_near = vectors > 1 || 36 * w.inputs * w.outputs <= NEAR_BYTES;
            is_near.then_some(PanelByPanel { tile, form, groups, on_stack })
        };
        let all = (1..=NARROW).rev().flat_map(|vectors| (FEWEST_GROUPS..=FEW_GROUPS).rev().map(move |n| (vectors, n)));
        all.filter_map(cut).min_by_key(|panels| panels.bytes(w).saturating_sub(room))
    }

    /// The kernels.
    pub(super) fn winograd_panels(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        panels: &PanelByPanel,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (w, panel) = (conv.w, panels.panel());
        let of_group = w.outputs.div_ceil(panel).div_ceil(panels.groups);
        let inputs = self.winograd_inputs(scope, conv, steps);
        let (of_sums, of_row) = (apart(w.count() * panel), READS * apart(w.inputs * panel));
        let weights = self.plain_weights(w);
        let [sums_near, weights_near] = panels.on_stack;
        let packed = match weights_near {
            true => self.on_stack(DType::F32, of_row),
            false => self.for_weights(w, panels.groups * of_row),
        };
        let sums = match sums_near {
            true => self.on_stack(DType::F32, POINTS * of_sums),
            false => self.buffer(DType::F32, panels.groups * POINTS * of_sums),
        };
        let sink = Value { leaves: vec![sums], layout: None };
        let c = products(w, w.count(), Right::Buffer(packed), inputs, of_sums);
        // only one panel of the sums is there at a time
        let c = Contraction { columns: vec![Axis { extent: panel, a: 0, b: 1 }], ..c };
        let products = Products { c: &c, tile: panels.tile, sums: &sink };

        let mut e = Elements::new(conv.ids.0, label(scope.comp, conv.ids.0));
        let (group, of_it) = (e.k.var(panels.groups), e.k.var(of_group));
        let p = e.k.var(w.outputs.div_ceil(panel));
        let apart_in_groups = |near: bool, elements: u64| match near {
            true => Index::default(),
            false => Index::var(group).scale(elements as i64),
        };
        let (b, batch) = (apart_in_groups(weights_near, of_row), apart_in_groups(sums_near, POINTS));
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let (first, count) = (columns.at.scale(panel as i64), columns.count);
            let i = e.k.var(READS);
            let right =
                Part { b: b.clone(), packed, term: panel, columns: count, batch: batch.clone(), ..Part::default() };
            let from = (weights, first.clone());
            let row = self.products_of_row(scope, &mut e, conv, &products, from, &Index::var(i), &right)?;
            let mut inside = vec![each(i, LoopKind::Seq, row)];
            let loops = tile_loops(&mut e.k, w);
            let at = tile_number(w, loops).scale(panel as i64).add(&batch.scale(of_sums as i64));
            let back = self.results_of_tile(scope, &mut e, conv, loops, (first, count), (sums, at, of_sums))?;
            inside.extend(loops.into_iter().rev().fold(back, |body, v| vec![each(v, LoopKind::Seq, body)]));
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        let number = Index::var(group).scale(of_group as i64).add(&Index::var(of_it));
        let body = numbered(&mut e.k, p, number, body);
        e.k.chosen = Some((panels.form.clone(), by_panels(panels.tile)));
        e.k.flops = w.outputs * w.count() * (2 * POINTS * w.inputs + 130);
        e.k.direct_flops = Some(w.direct_flops());
        chunked(&mut e.k, &[group], vec![each(of_it, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }
}
