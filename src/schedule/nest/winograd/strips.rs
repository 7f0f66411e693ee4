//! Winograd's method strip by strip: some rows of tiles are transformed, multiplied and transformed back before the next ones
//! begin, so that what is between stays in the second-level cache. Bands of strips, each with memory of its own, are the chunks;
//! that of a small strip is on the stack.
use super::super::MOST_STACK;
use super::super::contraction::{Axis, Contraction, Right, chunked, guarded, shares};
use super::super::element::Elements;
use super::super::pairs::Order;
use super::super::tile::{Cover, Part, Tile};
use super::super::transform::apart;
use super::super::{each, label};
use super::{Conv, NARROW, Products, by_panels, inputs_of_tile, products, tile_loops};
use crate::diag::Result;
use crate::kernel::{Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::winograd::{FAR_BYTES, FAR_CYCLE, NEAR_WEIGHTS, POINTS, Winograd};
use crate::schedule::{Scheduler, Scope, Value};
use crate::tensor::{DType, Tensor};

/// What they may have where they come from the third level: of 2.2 MB (80 channels to 192) strips of 9 tiles take as long as
/// of 27, and a twentieth less than three kernels.
const MOST_WEIGHTS: u64 = 3 << 20;
/// What all strips may have that are under way at once.
const MOST_BYTES: u64 = 1280 << 10;
/// How many times as much as weights strips must save where those are not near, or transformed at each call: with 1.7 (96
/// channels to 96 at 35x35, known) and with 2.2 (128 to 32 at 28x28, not known) they take a tenth more time.
const FEW_WEIGHTS: u64 = 4;
/// Fewest bands, so that threads share them.
const FEW_BANDS: u64 = 8;
/// Fewest where there is little room.
const FEWEST_BANDS: u64 = 2;
/// Most tiles of a strip.
const MOST_TILES: u64 = 64;
/// By how much more time a mebibyte of memory must be worth.
const A_MEBIBYTE: f64 = 0.03;

/// Most times as long as the fastest strips that those may take which need less memory.
const MOST_LOST: f64 = 1.2;

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub struct Strips {
    /// Tiles of a strip, one after another through all rows of all images.
    tiles: u64,
    /// Whether its memory is on the stack.
    on_stack: bool,
    /// Strips of a band; the last may have fewer.
    own: u64,
    /// Bands, each with memory of its own.
    bands: u64,
    tile: Tile,
    form: String,
}

impl Strips {
    /// What they take in the workspace, with the weights where those are not known.
    pub(super) fn bytes(&self, w: &Winograd, is_known: bool) -> u64 {
        let weights = if is_known { 0 } else { w.weight_bytes() };
        weights + if self.on_stack { 0 } else { self.bands * strip_bytes(w, self.tiles, self.tile) }
    }
    fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
    /// Whether the last strips have tiles that are none.
    fn is_ragged(&self, w: &Winograd) -> bool {
        self.tiles * self.own * self.bands > w.count()
    }
}

/// Bytes of what so many tiles are transformed to, and of their sums of a panel.
fn strip_bytes(w: &Winograd, tiles: u64, tile: Tile) -> u64 {
    4 * POINTS * (apart(tiles * w.inputs) + apart(tiles * tile.vectors * tile.lanes))
}

impl<'a> Scheduler<'a> {
    /// The strips, where what is between the transforms and the products would go to a cache farther away.
    /// Weights that are not known now take memory too.
    pub(super) fn winograd_in_strips(&self, w: &Winograd, is_known: bool, room: Option<u64>) -> Option<Strips> {
        let weights = w.weight_bytes();
        let three_kernels = if is_known { 0 } else { weights / 3 };
        let whole = three_kernels + 4 * POINTS * w.count() * (w.inputs + w.outputs);
        let (is_near, most) = (is_known && weights <= NEAR_WEIGHTS, if is_known { MOST_WEIGHTS } else { NEAR_WEIGHTS });
        let least = if is_near { FAR_BYTES } else { FEW_WEIGHTS * weights };
        let room = room.filter(|&room| whole > room);
        if room.is_none() && (whole <= least || weights > most) {
            return None;
        }
        let (few_bands, most) = room.map_or((FEW_BANDS, whole - 1), |room| (FEWEST_BANDS, room));
        let mut found: Vec<(u64, f64, Strips)> = Vec::new();
        // narrow panels have small sums
        let narrow = w.outputs.min(NARROW * self.lanes(DType::F32));
        let widths = if room.is_some() && narrow < w.outputs { vec![w.outputs, narrow] } else { vec![w.outputs] };
        let cuts = (1..=MOST_TILES.min(w.count())).flat_map(|tiles| widths.iter().map(move |&width| (tiles, width)));
        for (tiles, width) in cuts {
            let (cover, form) = self.strip_form(w, tiles, width);
            let tile = self.tile(DType::F32, cover, &form);
            let read = if weights > NEAR_WEIGHTS { weights as f64 / FAR_CYCLE } else { 0.0 };
            let panels = w.outputs as f64 / width as f64;
            let products = read.max(POINTS as f64 * panels * self.predicted(DType::F32, cover));
            let cycles = products + transforms(w, self.lanes(DType::F32), tiles);
            let strips = w.count().div_ceil(tiles);
            let of_strip = strip_bytes(w, tiles, tile);
            let on_stack = of_strip <= MOST_STACK;
            for bands in few_bands..=2 * FEW_BANDS {
                let own = strips.div_ceil(bands);
                let bands = strips.div_ceil(own);
                let bytes = if on_stack { 0 } else { bands * of_strip };
                let all = if is_known { bytes } else { bytes + weights };
                let time = cycles * (bands.div_ceil(2) * own) as f64;
                let time = time * (1.0 + A_MEBIBYTE * bytes as f64 / f64::from(1 << 20));
                if bands >= few_bands && bytes <= MOST_BYTES && all < whole {
                    let strips = Strips { tiles, on_stack, own, bands, tile, form: form.clone() };
                    found.push((all.saturating_sub(most), time, strips));
                }
            }
        }
        let least = found.iter().map(|x| x.1).min_by(f64::total_cmp)?;
        let fast = found.into_iter().filter(|x| x.1 <= MOST_LOST * least);
        fast.min_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))).map(|best| best.2)
    }

    /// The products of a strip of so many tiles and columns, and what the tuned choices call them.
    fn strip_form(&self, w: &Winograd, tiles: u64, columns: u64) -> (Cover, String) {
        let cover = Cover { height: 1, width: tiles, columns, sum: w.inputs, stride: 4 * w.inputs };
        (cover, self.form(DType::F32, cover, tiles, POINTS))
    }

    /// The kernel.
    pub(super) fn winograd_strips(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        (strips, known): (&Strips, Option<Tensor>),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, input, .. } = *conv;
        let (tiles, panel) = (strips.tiles, strips.panel());
        let (of_inputs, of_sums) = (apart(tiles * w.inputs), apart(tiles * panel));
        let mut memory = |of_point: u64| match strips.on_stack {
            true => self.on_stack(DType::F32, POINTS * of_point),
            false => self.buffer(DType::F32, strips.bands * POINTS * of_point),
        };
        let (inputs, sums) = (memory(of_inputs), memory(of_sums));
        let tiles_and_sums = |right| products(w, tiles, right, (inputs, of_inputs), of_sums);
        let packed = match known {
            Some(weights) => {
                let c = tiles_and_sums(Right::Constant(weights));
                self.pack(&c, &c.sum, (panel, w.outputs.div_ceil(panel), Order::Plain), steps)?
            }
            None => self.winograd_weights(scope, conv, (panel, strips.tile.lanes), steps),
        };
        // only one panel of the sums is there at a time
        let columns = vec![Axis { extent: panel, a: 0, b: 1 }];
        let c = Contraction { columns, ..tiles_and_sums(Right::Buffer(packed.buf)) };
        let sink = Value { leaves: vec![sums], layout: None };
        let products = Products { c: &c, tile: strips.tile, sums: &sink };

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let (band, strip) = (k.var(strips.bands), k.var(strips.own));
        let (number, p) = (k.var(strips.bands * strips.own), k.var(w.outputs.div_ceil(panel)));
        let of_band = if strips.on_stack { Index::default() } else { Index::var(band).scale(POINTS as i64) };
        let place = Place::new(k, w, strips);
        let first = place.at(w.inputs).add(&of_band.scale(of_inputs as i64));
        let tile =
            inputs_of_tile(k, self.lanes(DType::F32), (d, w.reach), input, place.loops, (inputs, first, of_inputs));
        let mut body = vec![place.around(k, w, (strips, number), tile)];
        let mut panels = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(POINTS);
            let batch = of_band.add(&Index::var(point));
            let right = Part {
                a: batch.scale(of_inputs as i64),
                b: columns.at.scale(packed.panel as i64).add(&Index::var(point).scale(packed.batch as i64)),
                packed: packed.buf,
                term: panel,
                columns: columns.count,
                batch,
                ..Part::default()
            };
            let product = self.products_of_point(scope, &mut e, ids, &products, &right)?;
            let mut inside = vec![each(point, LoopKind::Seq, vec![product])];
            let place = Place::new(&mut e.k, w, strips);
            let at = place.at(panel).add(&of_band.scale(of_sums as i64));
            let made = (columns.at.scale(panel as i64), columns.count);
            let mut tile = self.results_of_tile(scope, &mut e, conv, place.loops, made, (sums, at, of_sums))?;
            if strips.is_ragged(w) {
                let cond = e.k.expr(Expr::Within(place.number(strips, number), 0, w.count() as i64));
                tile = vec![Stmt::If { cond, body: tile }];
            }
            inside.push(place.around(&mut e.k, w, (strips, number), tile));
            panels.extend(guarded(&mut e.k, &[&columns], inside));
        }
        body.push(each(p, LoopKind::Seq, panels));
        let k = &mut e.k;
        if strips.is_ragged(w) {
            let first = Index::var(number).scale(strips.tiles as i64);
            let cond = k.expr(Expr::Within(first, 0, w.count() as i64));
            body = vec![Stmt::If { cond, body }];
        }
        let value = Index::var(band).scale(strips.own as i64).add(&Index::var(strip));
        body = vec![Stmt::Let { var: number, value, body }];
        k.chosen = Some((strips.form.clone(), by_panels(strips.tile)));
        let products = 2 * POINTS * w.inputs * w.outputs;
        k.flops = w.count() * (144 * w.inputs + products + 130 * w.outputs);
        k.direct_flops = Some(w.direct_flops());
        chunked(k, &[band], vec![each(strip, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }
}

/// Vector operations that transform so many tiles there and back, two a cycle.
fn transforms(w: &Winograd, lanes: u64, tiles: u64) -> f64 {
    let (points, vectors) = (POINTS as f64, |n: u64| (tiles * n / lanes) as f64);
    ((144.0 + points) * vectors(w.inputs) + (130.0 + points) * vectors(w.outputs)) / 2.0
}

/// The loop over the tiles of a strip.
struct Place {
    /// The tile in its strip.
    at: VarId,
    /// The tile among all.
    tile: VarId,
    /// Image, row and column of tiles.
    loops: [VarId; 3],
}

impl Place {
    fn new(k: &mut Kernel, w: &Winograd, strips: &Strips) -> Place {
        let loops = tile_loops(k, w);
        Place { at: k.var(strips.tiles), tile: k.var(w.count()), loops }
    }

    /// Where the tile begins in memory that has so many elements for each of a strip.
    fn at(&self, elements: u64) -> Index {
        Index::var(self.at).scale(elements as i64)
    }

    /// The number among all tiles; that of none in the last strips.
    fn number(&self, strips: &Strips, strip: VarId) -> Index {
        Index::var(strip).scale(strips.tiles as i64).add(&Index::var(self.at))
    }

    /// `body` for each tile of strip `number`, for the last one again instead of those that are none.
    fn around(&self, k: &mut Kernel, w: &Winograd, (strips, number): (&Strips, VarId), mut body: Vec<Stmt>) -> Stmt {
        let mut stride = 1;
        for var in self.loops.into_iter().rev() {
            let n = k.vars[var] as i64;
            let value = Index::var(self.tile).div(stride, &k.vars).rem(n, &k.vars);
            body = vec![Stmt::Let { var, value, body }];
            stride *= n;
        }
        let value = self.number(strips, number).limit(0, w.count() as i64 - 1, &k.vars);
        each(self.at, LoopKind::Seq, vec![Stmt::Let { var: self.tile, value, body }])
    }
}
