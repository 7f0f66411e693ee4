//! A 1x1 convolution whose operand, a depthwise window, is made in its kernel: of each row of pixels all channels on the stack,
//! where the product reads them while they are near. So what is between the two has no memory of its own, at the peak of nets
//! with separable layers a third of all; the time is that of two kernels, but where they are the first to write to their memory.
//! Rows are the chunks.
//!
//! Each element is added up as the two kernels alone do it: the bits are the same.
use super::chain::is_window;
use super::contraction::{Coordinates, Held, Strip, chunked, guarded};
use super::depthwise::Place;
use super::element::Elements;
use super::tile::{Cover, Tile};
use super::{MOST_STACK, each, label, narrow};
use crate::diag::{Error, Result};
use crate::hlo::attrs::ConvDims;
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::{BufId, Index, LoopKind, Step, Stmt, VarId};
use crate::schedule::fuse::{Fate, Plan};
use crate::schedule::layout::Layout;
use crate::schedule::phases::Phase;
use crate::schedule::{Scheduler, Scope, Value, refuse};
use crate::target::{LINE, LoopOrder};
use crate::tensor::DType;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// Bytes of an operand that stay in a second-level cache of a megabyte until they are read.
const NEAR_BYTES: u64 = 512 << 10;
/// Cycles that an element takes on its way to a cache farther away and back.
const FAR: f64 = 0.33;
/// Bytes of weights that come from the second-level cache in a cycle.
const A_CYCLE: f64 = 26.0;

/// A product that makes its left side, a depthwise window, itself.
#[derive(Clone, Debug)]
pub struct Separable {
    /// The instruction that is its operand.
    producer: InstId,
    /// The tile of the product.
    tile: Tile,
    /// What the tuned choices call it.
    form: String,
    /// Elements from a pixel in memory to the next.
    stride: u64,
}

impl<'a> Scheduler<'a> {
    /// The separable convolutions of `comp`; what they take in has no buffer any more.
    pub(in crate::schedule) fn separables(
        &self,
        comp: &Computation,
        plan: &mut Plan,
        is_chain: impl Fn(InstId) -> bool,
    ) -> HashMap<InstId, Separable> {
        let users = comp.users();
        let mut separables = HashMap::new();
        for id in comp.post_order() {
            let separable = self.separable_of(comp, plan, &users, id).filter(|s| !is_chain(s.producer));
            if let Some(separable) = separable {
                plan.fate[separable.producer] = Fate::Inlined(Some(id));
                separables.insert(id, separable);
            }
        }
        separables
    }

    /// The separable convolution that ends in `id`, where it takes less memory, and what goes through far caches takes more time
    /// than weights that are read again for each row and tiles that end with it.
    fn separable_of(
        &self,
        comp: &Computation,
        plan: &Plan,
        users: &IdVec<InstId, Vec<InstId>>,
        id: InstId,
    ) -> Option<Separable> {
        let anchor = plan.anchor[id].unwrap_or(id);
        let Op::Convolution(p) = &comp[anchor].op else { return None };
        let producer = comp[anchor].operands[0];
        let window = plan.anchor[producer].unwrap_or(producer);
        let Op::Convolution(d) = &comp[window].op else { return None };
        let kernels = [id, producer].iter().all(|&i| plan.fate[i] == Fate::Materialised && plan.rows[i].is_none());
        let alone = users[producer] == [anchor] && producer != comp.root && plan.path[window].is_empty();
        let operand = comp.array(producer);
        let fits = operand.dtype == DType::F32 && is_window(comp, window, d) && self.is_product(comp, anchor, p);
        let one_by_one = p.window.iter().all(|w| (w.size, w.stride, w.pad_low, w.pad_high) == (1, 1, 0, 0));
        let alike = d.output_spatial == p.input_spatial
            && d.output_batch == p.input_batch
            && d.output_feature == p.input_feature;
        if !kernels || !alone || !fits || !one_by_one || !alike || operand.elements() * 4 <= NEAR_BYTES {
            return None;
        }
        let (sum, width) = (operand.dims[d.output_feature], operand.dims[d.output_spatial[1]]);
        let columns = comp.array(anchor).dims[p.output_feature];
        // an odd number of lines, so that pixels do not meet in the sets of a cache, where that takes little more
        let lines = (sum * 4).div_ceil(LINE);
        let stride = if lines >= 8 { (lines | 1) * LINE / 4 } else { sum };
        if columns <= narrow::MOST_COLUMNS || width * stride * 4 > MOST_STACK {
            return None;
        }
        // What the window reads lives until the product is done: that takes less memory where it lives on anyway, or where the
        // window is larger than it or the product.
        let source = comp[window].operands[0];
        let (read, made) = (comp.array(source).elements(), comp.array(anchor).elements());
        if users[source].len() == 1 && operand.elements() <= read.min(made) {
            return None;
        }
        let pixels = operand.elements() / sum;
        let cover = Cover { height: 1, width, columns, sum, stride: stride * 4 };
        let form = self.form(DType::F32, cover, pixels, 1);
        let tile = self.tile(DType::F32, cover, &form);
        let rows = (pixels / width) as f64;
        let by_row = rows * (self.predicted(DType::F32, cover) + (sum * columns * 4) as f64 / A_CYCLE);
        let apart = self.predicted(DType::F32, Cover { width: pixels, stride: sum * 4, ..cover });
        (by_row < apart + operand.elements() as f64 * FAR).then_some(Separable { producer, tile, form, stride })
    }

    /// The kernel of `id`, whose anchor is the 1x1 convolution `anchor`.
    pub(super) fn separable(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        separable: &Separable,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let (Op::Convolution(p), producer) = (&comp[anchor].op, separable.producer) else {
            return Err(refuse(comp, id, ""));
        };
        let window = scope.plan.anchor[producer].unwrap_or(producer);
        let Op::Convolution(d) = &comp[window].op else { return Err(refuse(comp, window, "")) };
        let operand = comp.array(producer).clone();
        let elements = operand.dims[d.output_spatial[1]] * separable.stride;
        let row = self.on_stack(DType::F32, elements);
        let layout = layout_of_row(operand.rank(), d, separable.stride);
        let mut e = Elements::new(id, label(comp, id));
        let (left, at) = self.padded(scope, (producer, window), comp[window].operands[0], d, steps)?;
        let right = self.right(scope, comp[anchor].operands[1])?;
        let phases: Vec<Phase> = p.output_spatial.iter().map(|&axis| Phase::only(operand.dims[axis], 1)).collect();
        let strip = Strip { held: Held::Row, stride: 0, tile: separable.tile, form: Some(separable.form.clone()) };
        let mut made = None;
        self.as_contraction(
            scope,
            anchor,
            p,
            (row, &layout),
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
        let mut body = self.window_row(scope, &mut e, (producer, window), d, (left, &at), (batch, line), &sink)?;
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
        d: &ConvDims,
        (left, input): (BufId, &Layout),
        (batch, line): (VarId, VarId),
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let result = scope.comp.array(anchor).clone();
        let c = self.depthwise_at(scope, anchor, d, (left, input), None)?;
        e.k.add_flops(c.flops(result.dims[d.output_batch], result.dims[d.output_feature]));
        let (tile, width) = (c.tile(), result.dims[d.output_spatial[1]]);
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
