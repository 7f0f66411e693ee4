//! Winograd's method strip by strip: some rows of tiles are transformed, multiplied and transformed back before the next ones
//! begin, so that what is between stays in the second-level cache. Bands of strips, each with memory of its own, are the chunks.
use super::super::contraction::{Axis, Contraction, Right, chunked, guarded, shares};
use super::super::element::Elements;
use super::super::pairs::Order;
use super::super::tile::{Cover, Part, Tile};
use super::super::{each, label};
use super::{apart, inputs_of_tile, products};
use crate::diag::{Error, Result};
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::layout::Layout;
use crate::schedule::winograd::{POINTS, Winograd};
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, LoopOrder};
use crate::tensor::{DType, Tensor};

/// What is less stays in a second-level cache of a megabyte between three kernels too.
const FAR_BYTES: u64 = 1 << 20;
/// What a strip may have of that, and what the weights may have, which every strip reads: with 590 KB of them (64 channels of
/// 64) strips take 0.85 of the time, with 2.2 MB (80 to 192) 1.1.
const NEAR_BYTES: u64 = 640 << 10;
/// Fewest bands, so that threads share them.
const FEW_BANDS: u64 = 8;

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub struct Strips {
    /// Rows of tiles of a strip.
    rows: u64,
    /// Strips of all images.
    count: u64,
    /// Strips of a band; the last may have fewer.
    own: u64,
    tile: Tile,
    form: String,
}

impl Strips {
    fn bands(&self) -> u64 {
        self.count.div_ceil(self.own)
    }

    fn of_an_image(&self, w: &Winograd) -> i64 {
        (w.tiles[0] / self.rows) as i64
    }
}

/// How many of `count` strips make a band: as many as leave enough bands that two threads can share evenly.
fn of_a_band(count: u64) -> u64 {
    let longest = |own: u64| count.div_ceil(own).div_ceil(2) * own * 2;
    let enough = |own: &u64| count.div_ceil(*own) >= FEW_BANDS.min(count);
    let even = |own: &u64| longest(*own) * 10 <= count * 11;
    (1..=count).rev().filter(enough).find(even).unwrap_or(1)
}

impl<'a> Scheduler<'a> {
    /// The strips, where what is between the transforms and the products would go to a cache farther away.
    pub(super) fn winograd_in_strips(&self, w: &Winograd) -> Option<Strips> {
        let bytes = |tiles: u64, columns: u64| 4 * POINTS * tiles * (w.inputs + columns);
        let weights = 4 * POINTS * w.inputs * w.outputs;
        if bytes(w.count(), w.outputs) <= FAR_BYTES || weights > NEAR_BYTES {
            return None;
        }
        let cut = |rows: u64| {
            let tiles = rows * w.tiles[1];
            let cover = Cover { height: 1, width: tiles, columns: w.outputs, sum: w.inputs, stride: 4 * w.inputs };
            let form = self.form(DType::F32, cover, tiles, POINTS);
            let tile = self.tile(DType::F32, cover, &form);
            let count = w.images * (w.tiles[0] / rows);
            (bytes(tiles, tile.vectors * tile.lanes), Strips { rows, count, own: of_a_band(count), tile, form })
        };
        let divisors = (1..=w.tiles[0]).rev().filter(|&rows| w.tiles[0].is_multiple_of(rows));
        let all: Vec<(u64, Strips)> = divisors.map(cut).collect();
        let fitting = all.iter().find(|(bytes, s)| *bytes <= NEAR_BYTES && s.count >= FEW_BANDS);
        let (_, strips) = fitting.or(all.last().filter(|(bytes, s)| *bytes <= FAR_BYTES && s.count >= FEW_BANDS))?;
        Some(strips.clone())
    }

    /// The kernel.
    #[expect(clippy::too_many_arguments, reason = "private, called once")]
    pub(super) fn winograd_strips(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        d: &ConvDims,
        (w, strips): (&Winograd, &Strips),
        weights: Tensor,
        input: (BufId, &Layout),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let panel = strips.tile.vectors * strips.tile.lanes;
        let tiles = strips.rows * w.tiles[1];
        let (of_inputs, of_sums) = (apart(tiles * w.inputs), apart(tiles * panel));
        let inputs = self.buffer(DType::F32, strips.bands() * POINTS * of_inputs);
        let sums = self.buffer(DType::F32, strips.bands() * POINTS * of_sums);
        let c = products(w, tiles, weights, (inputs, of_inputs), of_sums);
        let packed = self.pack(&c, &c.sum, (panel, w.outputs.div_ceil(panel), Order::Plain), steps)?;
        // only one panel of the sums is there at a time
        let c =
            Contraction { columns: vec![Axis { extent: panel, a: 0, b: 1 }], right: Right::Buffer(packed.buf), ..c };
        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let (band, strip, image) = (k.var(strips.bands()), k.var(strips.own), k.var(w.images));
        let (number, p) = (k.var(strips.count), k.var(w.outputs.div_ceil(panel)));
        let of_band = Index::var(band).scale(POINTS as i64);
        let place = Place::new(k, w, strips, image);
        let first = place.tile(w).scale(w.inputs as i64).add(&of_band.scale(of_inputs as i64));
        let tile = inputs_of_tile(k, self.lanes(DType::F32), d, w, input, &place.loops, (inputs, first, of_inputs));
        let mut body = vec![place.around(k, w, (strips, number), tile)];
        let mut panels = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let right = (packed.batch, columns.at.scale(packed.panel as i64), columns.count);
            let mut inside = self.products_of_panel(scope, &mut e, ids, &c, (strips, &of_band), right, &sums)?;
            let place = Place::new(&mut e.k, w, strips, image);
            let at = place.tile(w).scale(panel as i64).add(&of_band.scale(of_sums as i64));
            let made = (columns.at.scale(panel as i64), columns.count);
            let back = (sums, at, of_sums);
            let tile = self.results_of_tile(scope, &mut e, ids, d, (w, &place.loops), made, back, out)?;
            inside.push(place.around(&mut e.k, w, (strips, number), tile));
            panels.extend(guarded(&mut e.k, &[&columns], inside));
        }
        body.push(each(p, LoopKind::Seq, panels));
        let k = &mut e.k;
        let flat = Index::var(band).scale(strips.own as i64).add(&Index::var(strip));
        let value = Index::var(number).div(strips.of_an_image(w), &k.vars);
        body = vec![Stmt::Let { var: image, value, body }];
        let value = flat.limit(0, strips.count as i64 - 1, &k.vars);
        body = vec![Stmt::Let { var: number, value, body }];
        if strips.bands() * strips.own > strips.count {
            let cond = k.expr(Expr::Within(flat, 0, strips.count as i64));
            body = vec![Stmt::If { cond, body }];
        }
        let Tile { high, wide, vectors, lanes } = strips.tile;
        k.chosen = Some((strips.form.clone(), Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }));
        let products = 2 * POINTS * w.inputs * w.outputs;
        k.flops = w.count() * (144 * w.inputs + products + 130 * w.outputs);
        k.direct_flops = Some(w.direct_flops());
        chunked(k, &[band], vec![each(strip, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }

    /// The 36 products of a strip with one panel: how far its points are apart, where it begins, its columns.
    fn products_of_panel(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        ids: (InstId, InstId),
        c: &Contraction,
        (strips, of_band): (&Strips, &Index),
        (of_point, panel, columns): (u64, Index, u64),
        sums: &BufId,
    ) -> Result<Vec<Stmt>> {
        let Right::Buffer(packed) = c.right else { return Err(Error::internal("schedule", "panels are not packed")) };
        let (Tile { wide, vectors, lanes, .. }, rows, channels) = (strips.tile, c.rows[0].extent, c.rows[0].a);
        let (point, row) = (e.k.var(POINTS), e.k.var(rows.div_ceil(wide)));
        let batch = of_band.add(&Index::var(point));
        let nowhere = |_: &Kernel, _: &Index, _: &Index, _: &Index| vec![];
        let sink = Value { leaves: vec![*sums], layout: None };
        let mut body = Vec::new();
        for share in shares(&mut e.k, row, rows, wide) {
            let at = share.at.scale(wide as i64);
            let part = Part {
                a: batch.scale(c.batch[0].a).add(&at.scale(channels)),
                rows: (0..share.count as i64).map(|r| (r * channels, at.offset(r))).collect(),
                b: panel.add(&Index::var(point).scale(of_point as i64)),
                packed,
                order: Order::Plain,
                panel: vectors * lanes,
                columns,
                batch: batch.clone(),
                lanes,
                ..Part::default()
            };
            let product = self.tile_body(scope, e, ids, c, &c.sum, part, &nowhere, &sink)?;
            body.extend(guarded(&mut e.k, &[&share], product));
        }
        Ok(vec![each(point, LoopKind::Seq, vec![each(row, LoopKind::Seq, body)])])
    }
}

/// The loops over the tiles of a strip.
struct Place {
    /// The row of tiles in the strip.
    row: VarId,
    /// Image, row and column of tiles.
    loops: [VarId; 3],
}

impl Place {
    fn new(k: &mut Kernel, w: &Winograd, strips: &Strips, image: VarId) -> Place {
        Place { row: k.var(strips.rows), loops: [image, k.var(w.tiles[0]), k.var(w.tiles[1])] }
    }

    /// The number of the tile in its strip.
    fn tile(&self, w: &Winograd) -> Index {
        Index::var(self.row).scale(w.tiles[1] as i64).add(&Index::var(self.loops[2]))
    }

    /// `body` for each tile of strip `number`.
    fn around(&self, k: &mut Kernel, w: &Winograd, (strips, number): (&Strips, VarId), body: Vec<Stmt>) -> Stmt {
        let value =
            Index::var(number).rem(strips.of_an_image(w), &k.vars).scale(strips.rows as i64).add(&Index::var(self.row));
        let inside = vec![each(self.loops[2], LoopKind::Seq, body)];
        each(self.row, LoopKind::Seq, vec![Stmt::Let { var: self.loops[1], value, body: inside }])
    }
}

#[cfg(test)]
mod tests {
    use super::of_a_band;

    #[test]
    fn bands_come_out_even_for_two_threads() {
        for count in 1..200u64 {
            let own = of_a_band(count);
            let bands = count.div_ceil(own);
            assert!(bands >= count.min(8), "{count}: {bands} bands");
            assert!(own == 1 || bands.div_ceil(2) * own * 2 * 10 <= count * 11, "{count}: {own} a band");
        }
        assert_eq!(of_a_band(37), 5);
    }
}
