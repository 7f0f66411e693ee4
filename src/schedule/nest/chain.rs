//! A depthwise convolution and the one that makes its operand in one kernel, row by row: of each row of pixels one panel of
//! channels is made on the stack, where the window finds it while it is near. The rows that the next window reads again stay
//! there, each new one takes the place of the oldest. So what is between the two, the largest arrays of MobileNets, has no
//! memory of its own. Bands of rows of a panel are the chunks; a band whose thread did not do the one above it makes the rows
//! that they share again.
//!
//! Each element is added up as the two kernels alone do it: the bits are the same.
use super::contraction::{Coordinates, Held, Strip, guarded, shares};
use super::depthwise::{Place, Ring, without_margin};
use super::element::Elements;
use super::planes::Sum;
use super::strip::{Band, Chunks, Made, Rows};
use super::tile::{Cover, Tile};
use super::{MOST_STACK, each, label, narrow};
use crate::diag::{Error, Result};
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::{BufId, Expr, Index, LoopKind, Step, Stmt, VarId};
use crate::schedule::fuse::{Fate, Plan};
use crate::schedule::phases::Phase;
use crate::schedule::{Scheduler, Scope, Value, refuse, winograd, winograd1d};
use crate::tensor::DType;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// Bytes of an operand that a second-level cache of a megabyte keeps until they are read, with the weights and its margin.
const NEAR_BYTES: u64 = 192 << 10;
/// Fewest chunks that threads should find.
const FEW_CHUNKS: u64 = 8;
/// Fewest vectors of a panel that is narrower than it had to be: one alone is multiplied at the speed of its loads.
const FEWEST_VECTORS: u64 = 2;
/// Cycles that an element takes on its way to a cache farther away and back: 1.2 million of them took 0.11 ms.
const FAR: f64 = 0.33;
/// Multiply-adds of a cycle.
const TERMS: f64 = 16.0;
/// What beginning, ending and storing an element costs beside its terms.
const ENDS: f64 = 4.0;

/// A depthwise convolution that makes its operand itself.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The instruction that is its operand.
    producer: InstId,
    /// The tile of the producer's convolution.
    tile: Tile,
    /// What the tuned choices call it.
    form: String,
    /// Bands of rows.
    bands: u64,
}

/// Rows or columns that a window spans.
fn span(w: &WindowDim) -> u64 {
    (w.size - 1) * w.rhs_dilate + 1
}

/// The panels of the convolution that makes the operand, in what memory there is.
struct Panels {
    tile: Tile,
    form: String,
    count: u64,
}

impl<'a> Scheduler<'a> {
    /// The chains of `comp`; what they take in has no buffer any more.
    pub(in crate::schedule) fn chains(&self, comp: &Computation, plan: &mut Plan) -> HashMap<InstId, Chain> {
        let users = comp.users();
        let mut chains = HashMap::new();
        for id in comp.post_order() {
            if let Some(chain) = self.chain_of(comp, plan, &users, id) {
                plan.fate[chain.producer] = Fate::Inlined(Some(id));
                chains.insert(id, chain);
            }
        }
        chains
    }

    /// The chain that ends in `id`, where the time of what goes through far caches is more than that of what is done twice.
    fn chain_of(
        &self,
        comp: &Computation,
        plan: &Plan,
        users: &IdVec<InstId, Vec<InstId>>,
        id: InstId,
    ) -> Option<Chain> {
        let anchor = plan.anchor[id].unwrap_or(id);
        let Op::Convolution(d) = &comp[anchor].op else { return None };
        let producer = comp[anchor].operands[0];
        let first = plan.anchor[producer].unwrap_or(producer);
        let Op::Convolution(p) = &comp[first].op else { return None };
        let kernels = [id, producer].iter().all(|&i| plan.fate[i] == Fate::Materialised && plan.rows[i].is_none());
        let alone = users[producer] == [anchor] && producer != comp.root && plan.path[first].is_empty();
        let operand = comp.array(producer);
        let fits = operand.dtype == DType::F32 && is_window(comp, anchor, d) && self.is_product(comp, first, p);
        let alike = p.output_spatial == d.input_spatial
            && p.output_batch == d.input_batch
            && p.output_feature == d.input_feature;
        if !kernels || !alone || !fits || !alike || operand.elements() * 4 <= NEAR_BYTES {
            return None;
        }
        let (rows, w) = (comp.array(anchor).dims[d.output_spatial[0]], &d.window[0]);
        let all = operand.dims[p.output_feature];
        // where wide panels are too few for threads, and bands of their rows too dear, so many that no bands are needed
        let narrow = Some(all / FEW_CHUNKS).filter(|n| n / self.lanes(DType::F32) >= FEWEST_VECTORS);
        [Some(all), narrow].into_iter().flatten().find_map(|most| {
            let panels = self.chain_panels(comp, d, (first, p), most)?;
            let chunks = operand.dims[d.input_batch] * panels.count;
            let fits = |n: &u64| rows.is_multiple_of(*n) && n * chunks >= FEW_CHUNKS;
            // an even number, of which threads have halves
            let even = (2..=rows).step_by(2).find(fits).filter(|_| chunks < FEW_CHUNKS);
            let bands = even.or_else(|| (1..=rows).find(fits)).unwrap_or(rows);
            let again = (bands - 1) * (span(w) - w.stride) * (operand.elements() / operand.dims[d.input_spatial[0]]);
            let terms = terms(comp, first, p);
            let pays = again as f64 * (terms as f64 + ENDS) / TERMS < operand.elements() as f64 * FAR;
            pays.then_some(Chain { producer, tile: panels.tile, form: panels.form, bands })
        })
    }

    /// Panels of the producer's convolution so narrow that their rows fit, of at most `widest` columns.
    fn chain_panels(
        &self,
        comp: &Computation,
        d: &ConvDims,
        (first, p): (InstId, &ConvDims),
        widest: u64,
    ) -> Option<Panels> {
        let (operand, input) = (comp.array(first), comp.array(comp[first].operands[0]));
        let (all, width) = (operand.dims[p.output_feature], operand.dims[p.output_spatial[1]]);
        let lanes = self.lanes(DType::F32);
        let fit = MOST_STACK / (4 * span(&d.window[0]) * width);
        let most = fit.min(widest.max(lanes)) / lanes * lanes;
        // as many columns in each as come out even
        let columns = all.div_ceil(all.div_ceil(most.max(1))).next_multiple_of(lanes).min(all);
        if most == 0 || all <= narrow::MOST_COLUMNS {
            return None;
        }
        let stride = input.dims[p.input_feature] * p.window[1].stride * 4;
        let cover = Cover { height: 1, width, columns, sum: terms(comp, first, p), stride };
        let form = self.form(DType::F32, cover, operand.elements() / all, 1);
        let tile = self.tile(DType::F32, cover, &form);
        Some(Panels { count: all.div_ceil(tile.vectors * tile.lanes), tile, form })
    }

    /// Whether `id` is a contraction of floats with one phase and one group.
    pub(super) fn is_product(&self, comp: &Computation, id: InstId, p: &ConvDims) -> bool {
        let floats = comp[id].operands.iter().chain([&id]).all(|&o| comp.array(o).dtype == DType::F32);
        floats
            && p.window.len() == 2
            && p.feature_group_count == 1
            && p.batch_group_count == 1
            && p.window.iter().all(|w| w.lhs_dilate == 1)
            && p.output_feature + 1 == comp.array(id).rank()
            && winograd::choose(comp, id, self.target).is_none()
            && winograd1d::choose(comp, id, self.target).is_none()
    }

    /// The kernel of `id`, whose anchor is the depthwise convolution `anchor`.
    pub(super) fn chain(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        chain: &Chain,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let Op::Convolution(d) = &comp[anchor].op else { return Err(refuse(comp, id, "")) };
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
        let read = self.reader(scope, &mut e, (id, anchor), d, (&rows, reader, panel), (&made, sums), out)?;
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
        let first = scope.plan.anchor[producer].unwrap_or(producer);
        let Op::Convolution(p) = &comp[first].op else { return Err(refuse(comp, first, "")) };
        let result = comp.array(first).clone();
        let (left, at) = self.padded(scope, (producer, first), comp[first].operands[0], p, steps)?;
        let right = self.right(scope, comp[first].operands[1])?;
        let phases: Vec<Phase> =
            p.output_spatial.iter().zip(&p.window).map(|(&axis, w)| Phase::only(result.dims[axis], w.size)).collect();
        let slot = e.k.var(rows.held);
        let form = Some(chain.form.clone());
        let strip = Strip { held: Held::Pixels(slot), stride: rows.stride, tile: chain.tile, form };
        let sink =
            Value { leaves: vec![rows.buf], layout: Some(rows.layout(d, chain.tile.vectors * chain.tile.lanes, 0)) };
        let mut made = None;
        self.as_contraction(
            scope,
            first,
            p,
            (left, &at),
            &right,
            (&phases, 0),
            &mut |s, scope, c, place: Coordinates<'_>| {
                made = Some(s.nest(scope, e, (producer, first), c, Some(&strip), place, &sink, steps)?);
                Ok(())
            },
        )?;
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
        d: &ConvDims,
        (rows, reader, panel): (&Rows, VarId, u64),
        (made, sums): (&Made, Option<BufId>),
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let result = scope.comp.array(anchor).clone();
        let mut input = rows.layout(d, panel, d.window[1].pad_low);
        input.strides[d.input_spatial[0]] = rows.stride as i64;
        let ring = Ring { rows: rows.held };
        let c = self.depthwise_at(scope, anchor, d, (rows.buf, &input), Some(ring))?;
        e.k.add_flops(c.flops(result.dims[d.output_batch], result.dims[d.output_feature]));
        let (tile, width) = (c.tile(), result.dims[d.output_spatial[1]]);
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

/// Terms of a sum of the convolution `id`.
fn terms(comp: &Computation, id: InstId, p: &ConvDims) -> u64 {
    let kernel = comp.array(comp[id].operands[1]);
    kernel.elements() / kernel.dims[p.kernel_output_feature].max(1)
}

/// Whether `id` is a depthwise convolution whose windows leave no row out, but those of the padding.
pub(super) fn is_window(comp: &Computation, id: InstId, d: &ConvDims) -> bool {
    d.window.len() == 2
        && d.batch_group_count == 1
        && span(&d.window[0]) >= d.window[0].stride
        && comp.array(comp[id].operands[1]).dtype == DType::F32
        && comp.array(id).elements() > 0
        && comp.array(id).dims[d.output_feature] == d.feature_group_count
        && without_margin(comp, id, d)
}
