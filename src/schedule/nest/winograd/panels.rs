//! Winograd's method in two kernels, where there is little room and there are few tiles: the inputs are transformed, then a panel
//! of channels at a time has its weights transformed, a row of points after the other, is multiplied with all tiles, and is
//! transformed back. Panels are the chunks, or groups of them that share memory for weights and sums, where those are not on the
//! stack.
use super::super::contraction::{Axis, Contraction, Right, chunked, guarded, numbered, shares};
use super::super::element::Elements;
use super::super::pairs::Order;
use super::super::tile::{Cover, Part, Tile};
use super::super::transform::apart;
use super::super::{MOST_STACK, each, label};
use super::{FEW_GROUPS, NARROW, Plane, Window, products, tile_number, weights_of_row};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::winograd::{POINTS, READS, Winograd};
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, LoopOrder};
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
        ids: (InstId, InstId),
        d: &ConvDims,
        (w, panels, window): (&Winograd, &PanelByPanel, Window),
        input: &[Plane],
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (tiles, channels, panel) = (w.count(), w.inputs, panels.panel());
        let of_group = w.outputs.div_ceil(panel).div_ceil(panels.groups);
        let (of_inputs, of_sums, of_point) = (apart(tiles * channels), apart(tiles * panel), apart(channels * panel));
        let inputs = self.buffer(DType::F32, POINTS * of_inputs);
        let name = label(scope.comp, ids.0);
        let kernel = self.winograd_inputs(d, w, input, (inputs, of_inputs), &name);
        self.launch(kernel, steps);
        let (weights, factors) = self.plain_weights(w);
        let [sums_near, weights_near] = panels.on_stack;
        let packed = match weights_near {
            true => self.on_stack(DType::F32, READS * of_point),
            false => self.for_weights(w, panels.groups * READS * of_point),
        };
        let sums = match sums_near {
            true => self.on_stack(DType::F32, POINTS * of_sums),
            false => self.buffer(DType::F32, panels.groups * POINTS * of_sums),
        };
        let c = products(w, tiles, Right::Buffer(packed), (inputs, of_inputs), of_sums);
        // only one panel of the sums is there at a time
        let c = Contraction { columns: vec![Axis { extent: panel, a: 0, b: 1 }], ..c };

        let mut e = Elements::new(ids.0, name);
        let (group, of_it) = (e.k.var(panels.groups), e.k.var(of_group));
        let p = e.k.var(w.outputs.div_ceil(panel));
        let apart_in_groups = |near: bool, elements: u64| match near {
            true => Index::default(),
            false => Index::var(group).scale(elements as i64),
        };
        let (memory, own_sums) = (apart_in_groups(weights_near, READS * of_point), apart_in_groups(sums_near, POINTS));
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let first = columns.at.scale(panel as i64);
            let i = e.k.var(READS);
            let to = (packed, (memory.clone(), panel), of_point);
            let sizes = (channels, columns.count, panels.tile.lanes);
            let of_row = (factors, &Index::var(i));
            let mut row = vec![weights_of_row(&mut e.k, (weights, first.clone(), window), of_row, to, sizes)];
            let batch = own_sums.clone();
            let part = Part { b: memory.clone(), packed, panel, batch, columns: columns.count, ..Part::default() };
            let sink = Value { leaves: vec![sums], layout: None };
            row.push(self.products_of_row(scope, &mut e, ids, &c, (panels.tile, of_point), i, &part, &sink)?);
            let mut inside = vec![each(i, LoopKind::Seq, row)];
            let loops: Vec<VarId> = [w.images, w.tiles[0], w.tiles[1]].iter().map(|&n| e.k.var(n)).collect();
            let at = tile_number(w, &loops).scale(panel as i64).add(&own_sums.scale(of_sums as i64));
            let from = (sums, at, of_sums);
            let mut back =
                self.results_of_tile(scope, &mut e, ids, d, (w, &loops), (first, columns.count), from, out)?;
            for &v in loops.iter().rev() {
                back = vec![each(v, LoopKind::Seq, back)];
            }
            inside.extend(back);
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        let number = Index::var(group).scale(of_group as i64).add(&Index::var(of_it));
        let body = numbered(&mut e.k, p, number, body);
        let Tile { high, wide, vectors, lanes } = panels.tile;
        e.k.chosen = Some((panels.form.clone(), Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }));
        e.k.flops = w.outputs * tiles * (2 * POINTS * channels + 130);
        e.k.direct_flops = Some(w.direct_flops());
        chunked(&mut e.k, &[group], vec![each(of_it, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The products of a row of points with the panel whose weights are there.
    #[expect(clippy::too_many_arguments, reason = "private, called once")]
    fn products_of_row(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        ids: (InstId, InstId),
        c: &Contraction,
        (tile, of_point): (Tile, u64),
        i: VarId,
        right: &Part,
        sink: &Value,
    ) -> Result<Stmt> {
        let (rows, channels) = (c.rows[0].extent, c.rows[0].a);
        let (j, row) = (e.k.var(READS), e.k.var(rows.div_ceil(tile.wide)));
        let point = Index::var(i).scale(READS as i64).add(&Index::var(j));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        let mut body = Vec::new();
        for share in shares(&mut e.k, row, rows, tile.wide) {
            let at = share.at.scale(tile.wide as i64);
            let part = Part {
                a: point.scale(c.batch[0].a).add(&at.scale(channels)),
                rows: (0..share.count as i64).map(|r| (r * channels, at.offset(r))).collect(),
                b: right.b.add(&Index::var(j).scale(of_point as i64)),
                order: Order::Plain,
                batch: right.batch.add(&point),
                lanes: tile.lanes,
                ..right.clone()
            };
            let product = self.tile_body(scope, e, ids, c, &c.sum, part, &nowhere, sink)?;
            body.extend(guarded(&mut e.k, &[&share], product));
        }
        Ok(each(j, LoopKind::Seq, vec![each(row, LoopKind::Seq, body)]))
    }
}
