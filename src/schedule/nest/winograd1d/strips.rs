//! Winograd's method along one axis strip by strip: some tiles of a line, or of a few short lines, are transformed, multiplied
//! and transformed back before the next ones begin, all of it on the stack. Strips are the chunks. For windows that lie along one
//! line, and weights that stay near when they are transformed by a kernel before, or at compile time where those would stand at
//! the peak of memory.
use super::super::MOST_STACK;
use super::super::contraction::{Axis, Contraction, Right, chunked, guarded, shares};
use super::super::element::Elements;
use super::super::tile::Tile;
use super::super::transform::apart;
use super::super::{each, label};
use super::{Piece, first_of_tile, inputs_of_tile, weights_1d};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::layout::Layout;
use crate::schedule::winograd1d::Winograd1d;
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, LoopOrder};
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

/// What is less stays near between three kernels too.
pub(super) const FAR_BYTES: u64 = 256 << 10;
/// What weights may have, which every strip reads, so that they and a strip stay in a second-level cache of a megabyte.
pub(super) const NEAR_BYTES: u64 = 640 << 10;
/// Fewest strips, so that threads share them.
pub(super) const FEW_STRIPS: u64 = 8;
/// Fewest where there is little room.
pub(super) const FEWEST_STRIPS: u64 = 2;
/// Most tiles of a strip, and fewest.
const TILES: [u64; 2] = [16, 6];

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub(super) struct Strips {
    /// Lines of a strip: of one image, position along the other axes and phase each.
    lines: u64,
    /// Tiles of each.
    tiles: u64,
    /// Strips of the tiles of a line.
    of_line: u64,
    /// All strips.
    count: u64,
    tile: Tile,
    form: String,
}

impl Strips {
    /// Tiles that the strip reads of each line.
    fn reads(&self, w: &Winograd1d) -> u64 {
        self.tiles + w.groups - 1
    }
    fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
    /// How far points are apart: inputs, sums.
    fn apart(&self, w: &Winograd1d) -> [u64; 2] {
        [self.lines * self.reads(w) * w.inputs, self.lines * self.tiles * self.panel()].map(apart)
    }
    fn bytes(&self, w: &Winograd1d) -> u64 {
        4 * w.points.count() * self.apart(w).iter().sum::<u64>()
    }
}

/// The products of a strip.
fn products(w: &Winograd1d, strips: &Strips, (left, of_inputs): (BufId, u64), of_sums: u64) -> Contraction {
    let of = |extent: u64, a: u64| Axis { extent, a: a as i64, b: 0 };
    Contraction {
        dtype: DType::F32,
        left,
        right: Right::Buffer(left),
        a0: 0,
        b0: 0,
        batch: vec![of(w.points.count(), of_inputs)],
        rows: vec![of(strips.lines, strips.reads(w) * w.inputs), of(strips.tiles, w.inputs)],
        columns: vec![Axis { extent: strips.panel(), a: 0, b: 1 }],
        sum: vec![Axis { extent: w.terms(), a: 1, b: 1 }],
        first_column: 0,
        sums_apart: Some(of_sums),
        direct_flops: Some(w.direct_flops()),
    }
}

impl<'a> Scheduler<'a> {
    /// The strips, where what is between the transforms and the products would go to a cache farther away, or there is less room.
    pub(super) fn strips_1d(&self, w: &Winograd1d, room: Option<u64>) -> Option<Strips> {
        let lines = w.rows() / w.tiles;
        let weights = 4 * w.points.count() * w.terms() * w.outputs;
        let whole = 4 * w.points.count() * lines * (w.reads() * w.inputs + w.tiles * w.outputs);
        let is_bounded = room.is_some_and(|room| whole > room);
        let is_far = whole > FAR_BYTES && weights <= NEAR_BYTES;
        if w.terms() != w.groups * w.inputs || !(is_bounded || is_far) {
            return None;
        }
        let cut = |most: u64| {
            let of_line = w.tiles.div_ceil(most);
            let tiles = w.tiles.div_ceil(of_line);
            let together = if of_line == 1 { (most / tiles).clamp(1, lines) } else { 1 };
            let count = lines.div_ceil(together) * of_line;
            let tile = Tile { high: 1, wide: 1, vectors: 1, lanes: 1 };
            let mut strips = Strips { lines: together, tiles, of_line, count, tile, form: String::new() };
            let none = BufId(0);
            let c = products(w, &strips, (none, 0), 0);
            (_, strips.tile, strips.form) = self.tile_1d(w, &c);
            strips
        };
        let few = if is_bounded { FEWEST_STRIPS } else { FEW_STRIPS };
        let fits = |s: &Strips| s.count >= few && s.bytes(w) <= MOST_STACK && weights < whole;
        (TILES[1]..=TILES[0]).rev().map(cut).find(fits)
    }

    /// The kernel of the weights and that of all else.
    pub(super) fn winograd_1d_strips(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        d: &ConvDims,
        (w, strips): (&Winograd1d, &Strips),
        (left, input): (BufId, &Layout),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let points = w.points.count();
        let (panel, [of_inputs, of_sums]) = (strips.panel(), strips.apart(w));
        let packed = self.weights_of_panels(d, w, (panel, strips.tile.lanes), &label(scope.comp, ids.0), steps);
        let inputs = self.on_stack(DType::F32, points * of_inputs);
        let sums = Value { leaves: vec![self.on_stack(DType::F32, points * of_sums)], layout: None };
        let c = products(w, strips, (inputs, of_inputs), of_sums);
        let (rows, _, _) = self.tile_1d(w, &c);

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let number = k.var(strips.count);
        let place = Place::new(k, w, strips, number, [strips.reads(w), w.reads()]);
        let first = place.at(strips.reads(w)).scale(w.inputs as i64);
        let from = (left, input, place.loops[0], &place.read(d, w)[..]);
        let tile = inputs_of_tile(k, self.lanes(DType::F32), (d, w), from, (inputs, first, of_inputs));
        let mut body = vec![place.around(k, (w, strips), tile)];
        let piece = Piece { c: &c, rows: &rows, tile: strips.tile, packed, sums: &sums };
        body.push(self.panels_of_piece(scope, &mut e, ids, w, &piece, &mut |s, scope, e, columns| {
            let place = Place::new(&mut e.k, w, strips, number, [strips.tiles, w.tiles]);
            let from = (sums.buffer()?, place.at(strips.tiles).scale(panel as i64), of_sums);
            let at = place.write(d, w, scope.comp.array(ids.1).rank());
            let line = (w, &at[..], place.phase(), place.tile);
            let tile = s.results_of_line(scope, e, ids, d, line, columns, from, out)?;
            let tile = place.where_it_is(&mut e.k, (w, strips), tile);
            Ok(vec![place.around(&mut e.k, (w, strips), tile)])
        })?);
        let k = &mut e.k;
        let Tile { high, wide, vectors, lanes } = strips.tile;
        k.chosen = Some((strips.form.clone(), Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }));
        let products = 2 * w.terms() * w.outputs;
        k.flops = points * w.rows() * (3 * w.inputs + products + 3 * w.outputs);
        k.direct_flops = Some(w.direct_flops());
        chunked(k, &[number], body);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The weights of all points, in panels of so many columns, transformed by a kernel of their own, or now where that was asked
    /// for.
    pub(super) fn weights_of_panels(
        &mut self,
        d: &ConvDims,
        w: &Winograd1d,
        (panel, lanes): (u64, u64),
        name: &str,
        steps: &mut Vec<Step>,
    ) -> BufId {
        let points = w.points.count();
        let panels = w.outputs.div_ceil(panel);
        let of_panel = apart(w.terms() * panel);
        let number = self.found.convolutions;
        if self.choices.known.contains(&number) {
            return self.constant(&known(d, w, panel, of_panel));
        }
        let (weights, factors) = (self.constant(&w.weights), self.factors_1d(w));
        let packed = self.buffer(DType::F32, points * panels * of_panel);
        self.found.transformed.insert(packed, number);
        let mut k = Kernel { label: format!("weights of {name}"), ..Kernel::default() };
        let (point, p) = (k.var(points), k.var(panels));
        let begin = Index::var(point).scale(panels as i64).add(&Index::var(p)).scale(of_panel as i64);
        let mut body = Vec::new();
        for columns in shares(&mut k, p, w.outputs, panel) {
            let first = columns.at.scale(panel as i64);
            let to = (packed, &begin, panel);
            let of = weights_1d(&mut k, (d, w), (weights, &first, columns.count), (factors, point), to, lanes);
            body.extend(guarded(&mut k, &[&columns], of));
        }
        (k.flops, k.direct_flops) = (2 * points * w.taps * w.terms() * w.outputs, Some(0));
        chunked(&mut k, &[point, p], body);
        self.launch(k, steps);
        packed
    }
}

/// The weights of all points, in panels of so many columns that lie so far apart.
fn known(d: &ConvDims, w: &Winograd1d, panel: u64, of_panel: u64) -> Tensor {
    let (factors, panels) = (w.points.factors(w.taps), w.outputs.div_ceil(panel));
    let strides = Layout::dense(&w.weights.dims).strides;
    let of_tap = strides[d.kernel_spatial[w.axis]] as u64;
    let elements = w.points.count() * panels * of_panel;
    let mut bytes = vec![0u8; elements as usize * 4];
    for (point, factors) in (0..).zip(factors.chunks(w.taps as usize)) {
        for (term, (group, begin)) in (0..).zip(terms(d, w, &strides)) {
            let first = group * w.taps;
            let last = (first + w.taps).min(d.window[w.axis].size);
            for column in 0..w.outputs {
                let weight = |tap: u64| w.weights.get_f64((begin + tap * of_tap + column) as usize).unwrap_or(0.0);
                let value: f64 = (first..last).zip(factors).map(|(tap, f)| f * weight(tap)).sum();
                let at = (point * panels + column / panel) * of_panel + term * panel + column % panel;
                bytes[at as usize * 4..][..4].copy_from_slice(&(value as f32).to_le_bytes());
            }
        }
    }
    Tensor::new(DType::F32, vec![elements], Bytes::from(bytes))
}

/// The terms of a product in their order: the group of each, and where its weights begin.
fn terms(d: &ConvDims, w: &Winograd1d, strides: &[i64]) -> Vec<(u64, u64)> {
    let mut all = vec![0];
    let others = (0..d.window.len()).filter(|&i| i != w.axis);
    let steps = others.map(|i| (d.window[i].size, strides[d.kernel_spatial[i]] as u64));
    for (size, step) in steps {
        all = all.into_iter().flat_map(|at| (0..size).map(move |tap| at + tap * step)).collect();
    }
    let channels = (w.inputs, strides[d.kernel_input_feature] as u64);
    let of_tap = |at: u64| (0..w.groups).flat_map(move |g| (0..channels.0).map(move |c| (g, at + c * channels.1)));
    all.into_iter().flat_map(of_tap).collect()
}

/// The loops over the tiles of a strip.
struct Place {
    /// The strip.
    number: VarId,
    /// The line in the strip, and among all.
    line: [VarId; 2],
    /// The tile in the strip.
    step: VarId,
    /// The tile in the line.
    tile: VarId,
    /// Image, positions along the other axes, phase.
    loops: Vec<VarId>,
}

impl Place {
    /// The first number of tiles is that of the strip in a line, the second that of a line.
    fn new(k: &mut Kernel, w: &Winograd1d, strips: &Strips, number: VarId, tiles: [u64; 2]) -> Place {
        let others = (0..w.size.len()).filter(|&i| i != w.axis).map(|i| w.size[i]);
        let extents: Vec<u64> = std::iter::once(w.images).chain(others).chain([w.phases]).collect();
        let lines = [k.var(strips.lines), k.var(extents.iter().product())];
        let loops = extents.iter().map(|&n| k.var(n)).collect();
        Place { number, line: lines, step: k.var(tiles[0]), tile: k.var(tiles[1]), loops }
    }
    fn phase(&self) -> VarId {
        self.loops[self.loops.len() - 1]
    }
    /// The number of the tile in memory that has `tiles` for each line of a strip.
    fn at(&self, tiles: u64) -> Index {
        Index::var(self.line[0]).scale(tiles as i64).add(&Index::var(self.step))
    }
    /// The position in the padded input that the tile begins at.
    fn read(&self, d: &ConvDims, w: &Winograd1d) -> Vec<Index> {
        let mut from = vec![Index::default(); w.size.len()];
        let others = (0..w.size.len()).filter(|&i| i != w.axis);
        for (i, &v) in others.zip(&self.loops[1..]) {
            from[i] = Index::var(v).scale(d.window[i].stride as i64);
        }
        from[w.axis] = first_of_tile(w, self.tile, self.phase());
        from
    }
    /// Where its results lie, but along the axis.
    fn write(&self, d: &ConvDims, w: &Winograd1d, rank: usize) -> Vec<Index> {
        let mut at = vec![Index::default(); rank];
        at[d.output_batch] = Index::var(self.loops[0]);
        let others = (0..w.size.len()).filter(|&i| i != w.axis);
        for (i, &v) in others.zip(&self.loops[1..]) {
            at[d.output_spatial[i]] = Index::var(v);
        }
        at
    }
    /// The line and the tile of a strip among all, those that are none too.
    fn numbers(&self, k: &Kernel, strips: &Strips) -> [Index; 2] {
        let (lines, tiles) = (
            Index::var(self.number).div(strips.of_line as i64, &k.vars),
            Index::var(self.number).rem(strips.of_line as i64, &k.vars),
        );
        [
            lines.scale(strips.lines as i64).add(&Index::var(self.line[0])),
            tiles.scale(strips.tiles as i64).add(&Index::var(self.step)),
        ]
    }
    /// `body` where line and tile are some.
    fn where_it_is(&self, k: &mut Kernel, (w, strips): (&Winograd1d, &Strips), mut body: Vec<Stmt>) -> Vec<Stmt> {
        let [line, tile] = self.numbers(k, strips);
        let lines = w.rows() / w.tiles;
        if !lines.is_multiple_of(strips.lines) {
            let cond = k.expr(Expr::Within(line, 0, lines as i64));
            body = vec![Stmt::If { cond, body }];
        }
        if !w.tiles.is_multiple_of(strips.tiles) {
            let cond = k.expr(Expr::Within(tile, 0, w.tiles as i64));
            body = vec![Stmt::If { cond, body }];
        }
        body
    }
    /// `body` for each tile of the strip, for the last one again instead of those that are none.
    fn around(&self, k: &mut Kernel, (w, strips): (&Winograd1d, &Strips), mut body: Vec<Stmt>) -> Stmt {
        let [line, tile] = self.numbers(k, strips);
        let mut stride = 1;
        for &var in self.loops.iter().rev() {
            let n = k.vars[var] as i64;
            let value = Index::var(self.line[1]).div(stride, &k.vars).rem(n, &k.vars);
            body = vec![Stmt::Let { var, value, body }];
            stride *= n;
        }
        let value = tile.limit(0, k.vars[self.tile] as i64 - 1, &k.vars);
        body = vec![each(self.step, LoopKind::Seq, vec![Stmt::Let { var: self.tile, value, body }])];
        let value = line.limit(0, (w.rows() / w.tiles) as i64 - 1, &k.vars);
        each(self.line[0], LoopKind::Seq, vec![Stmt::Let { var: self.line[1], value, body }])
    }
}
