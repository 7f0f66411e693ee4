//! Arrays that need not be whole: where what is between a convolution and the pool behind it, or between loops and a 1x1
//! convolution that reads what they make, sets the peak of memory, both are done in halves, one after the other, and the results
//! are the parts of a concatenation. Pools are cut by channels, 1x1 convolutions by rows; no element is computed twice, and each
//! as before.
//!
//! ```text
//! pool(f(conv(x, w)))  ->  concatenate(pool(f(conv(x, w₀))), pool(f(conv(x, w₁))))
//! conv(f(x), w)        ->  concatenate(conv(f(slice(x)), w), conv(f(slice(x)), w))
//! ```
//!
//! That is done while the peak becomes lower. Where a program needs more than dense arrays would, which is for the margins of
//! windows, larger windows are cut by rows too; the few rows that both halves read are made twice.
use crate::hlo::attrs::{ConvDims, SliceDim, WindowDim};
use crate::hlo::{ArrayShape, Computation, Inst, InstId, Literal, Module, Op, Shape, Users};
use crate::schedule::families::convolution::recipe::algorithm::{Convolutions, choose_algorithms};
use crate::schedule::memory::liveness::{ArraySharing, MemoryDemand};
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::{self, Fusion};
use crate::schedule::plan::split_level::SplitScope;
use crate::schedule::plan::{MemoryForecast, placement};
use crate::schedule::target::KernelTarget;
use crate::tensor::{DType, Tensor};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;

/// Upper limit of pairs that are split: each takes a walk of the whole computation.
const MOST_CUTS: usize = 6;
/// Upper limit of instructions in the chain between the two kernels of a pair.
const MOST_DEPTH: usize = 64;
/// Least size in bytes of an array between two kernels that are split: smaller ones are not worth the code of two halves.
const SMALL_BYTES: u64 = 64 << 10;
/// Least ratio of all rows to rows that both halves compute, for a window to be split.
const LEAST_ROWS_PER_REPEATED_ROW: u64 = 8;

/// Splits pairs of kernels of the entry into halves to lower the peak of memory; `None` if nothing is gained.
pub fn split_pairs(module: &Module, cuts: SplitScope, target: &KernelTarget<'_>) -> Option<Module> {
    let mut peak = Peak::measure(module, module.entry(), target);
    let mut done = None;
    for _ in 0..MOST_CUTS {
        let module = done.as_ref().unwrap_or(module);
        let Some(comp) = pair_at(module.entry(), &peak, cuts, target)
            .and_then(|pair| pair.split_in_halves(module.entry(), &peak.fusion))
        else {
            break;
        };
        let mut next = module.clone();
        next.comps[module.entry] = comp;
        let then = Peak::measure(&next, next.entry(), target);
        if then.bytes >= peak.bytes {
            break;
        }
        (peak, done) = (then, Some(next));
    }
    done
}

/// The peak of live bytes if all arrays of the entry were dense, concatenations separate from their parts, and kernels needed no scratch
/// memory.
pub fn dense_peak_bytes(module: &Module, target: &KernelTarget<'_>) -> u64 {
    let comp = module.entry();
    let order = comp.post_order();
    let fusion = fuse::fuse(module, comp, &order);
    let placements = placement::plan_placements(comp, &fusion, &choose_algorithms(comp, target));
    MemoryDemand::compute(comp, &fusion, &placements, &order, ArraySharing::Views).bytes
}

/// The peak of memory, as far as it is known before there are kernels.
struct Peak {
    fusion: Fusion,
    convolutions: Convolutions,
    /// Most bytes that live at one time, with the margins that windows want and parts of concatenations in place.
    bytes: u64,
    /// The instruction that runs at the peak.
    at: Option<InstId>,
}

impl Peak {
    fn measure(module: &Module, comp: &Computation, target: &KernelTarget<'_>) -> Peak {
        let convolutions = choose_algorithms(comp, target);
        let context = PlanContext { module, comp, users: &comp.users(), convolutions: &convolutions, target };
        let MemoryForecast { fusion, order, need } =
            crate::schedule::plan::forecast_memory(&context, comp.post_order());
        Peak { bytes: need.bytes, at: need.at.map(|i| order[i]), fusion, convolutions }
    }
}

/// Two kernels, the second of which reads the value that the first makes, and the position at which both are split.
struct SplitPair {
    /// The root of the second kernel.
    last: InstId,
    /// The value that the first kernel makes.
    between: InstId,
    /// The axis of the result along which both are split.
    axis: usize,
    /// The first element of the second half.
    at: u64,
}

/// The pair one of whose kernels runs at the peak.
fn pair_at(comp: &Computation, peak: &Peak, cuts: SplitScope, target: &KernelTarget<'_>) -> Option<SplitPair> {
    let now = peak.at?;
    let users = comp.users();
    let fusion = &peak.fusion;
    let found =
        |last: InstId| pair(comp, peak, &users, last, cuts, target).filter(|p| p.last == now || p.between == now);
    let readers = users[now].iter().filter_map(|&u| fusion.root_of(u));
    std::iter::once(now).chain(readers).find_map(found)
}

/// The pair that ends in `last`, if it can be split.
fn pair(
    comp: &Computation,
    Peak { fusion, convolutions, .. }: &Peak,
    users: &Users,
    last: InstId,
    cuts: SplitScope,
    target: &KernelTarget<'_>,
) -> Option<SplitPair> {
    let anchor = fusion.anchor[last].unwrap_or(last);
    let between = *comp[anchor].operands.first()?;
    let first = fusion.anchor[between].unwrap_or(between);
    let whole = |id: InstId| fusion.is_materialised(id) && fusion.rows[id].is_none();
    let array = |id: InstId| comp[id].shape.as_array();
    let same = |x: InstId, y: InstId| {
        fusion.path[y].is_empty() && array(x).zip(array(y)).is_some_and(|(x, y)| x.dims == y.dims)
    };
    let fits = whole(last)
        && whole(between)
        && last != comp.root
        && users[between] == [anchor]
        && array(between)?.bytes() >= if cuts == SplitScope::Twice { SMALL_BYTES } else { target.machine().caches.l2 }
        && same(last, anchor)
        && same(between, first);
    if !fits {
        return None;
    }
    let lanes = target.machine().lanes(4);
    match (&comp[first].op, &comp[anchor].op) {
        (Op::Convolution(d), Op::ReduceWindow { window, .. }) => {
            let axis = d.output_feature;
            let at = (array(last)?.dims[axis] / 2).next_multiple_of(lanes);
            let cuts = d.feature_group_count == 1 && is_single(&window[axis]) && at < array(last)?.dims[axis];
            cuts.then_some(SplitPair { last, between, axis, at })
        }
        (Op::Elementwise(_), Op::Convolution(d)) if first == between => {
            let axis = *d.output_spatial.first()?;
            let at = array(last)?.dims[axis] / 2;
            let cuts = d.feature_group_count == 1 && d.window.iter().all(is_single) && at > 0;
            cuts.then_some(SplitPair { last, between, axis, at })
        }
        (_, Op::Convolution(d)) if cuts == SplitScope::Twice => {
            let axis = *d.output_spatial.first()?;
            let at = array(last)?.dims[axis] / 2;
            let cuts = at > 0 && is_cut_by_rows(comp, d, [first, between, anchor], convolutions);
            cuts.then_some(SplitPair { last, between, axis, at })
        }
        _ => None,
    }
}

/// Whether `anchor`, the convolution `d` of the value that `first` and its epilogue `between` make, can be computed in two bands of rows,
/// each with its own part of the operand: few rows are computed twice, and none by Winograd's method, which wants whole tiles.
fn is_cut_by_rows(
    comp: &Computation,
    d: &ConvDims,
    [first, between, anchor]: [InstId; 3],
    convolutions: &Convolutions,
) -> bool {
    let w = &d.window[0];
    let twice = ((w.size - 1) * w.rhs_dilate + 1).saturating_sub(w.stride);
    let rows = comp.array_shape(between).dims[d.input_spatial[0]];
    let is_direct = |id: InstId, d: &ConvDims| d.feature_group_count == 1 && !convolutions[&id].is_winograd();
    let is_made_so = match &comp[first].op {
        Op::Convolution(d) => is_direct(first, d),
        op => placement::stores_anywhere(op) && first == between,
    };
    is_made_so && w.lhs_dilate == 1 && is_direct(anchor, d) && twice * LEAST_ROWS_PER_REPEATED_ROW <= rows
}

/// Whether the windows along a dimension are single elements without strides, padding or dilation.
fn is_single(w: &WindowDim) -> bool {
    *w == WindowDim { size: 1, ..WindowDim::default() }
}

impl SplitPair {
    /// The computation with both halves, one after the other; `None` if an instruction between the two kernels can't be split.
    fn split_in_halves(&self, comp: &Computation, fusion: &Fusion) -> Option<Computation> {
        let mut cut = SplitComputation { comp: comp.clone(), fusion, pair: self, made: HashMap::new() };
        let all = comp.array_shape(self.last).dims[self.axis];
        let mut halves = Vec::new();
        for range in [0..self.at, self.at..all] {
            cut.made.clear();
            halves.push(cut.array_part(self.last, self.axis, &range, 0)?);
        }
        let old = &comp[self.last];
        let inst = Inst { op: Op::Concatenate(self.axis), operands: halves, ..old.clone() };
        let mut comp = cut.comp;
        let whole = comp.insts.push(inst);
        for id in comp.insts.ids().collect::<Vec<_>>() {
            if id != whole {
                comp.insts[id].operands.iter_mut().filter(|o| **o == self.last).for_each(|o| *o = whole);
            }
        }
        Some(comp)
    }
}

/// A copy of a computation under construction, in which the kernels of a pair are computed in halves.
struct SplitComputation<'a> {
    comp: Computation,
    fusion: &'a Fusion,
    pair: &'a SplitPair,
    /// The instructions added for the current half, by the instruction, axis and range that they are a part of.
    made: HashMap<(InstId, usize, Range<u64>), InstId>,
}

impl SplitComputation<'_> {
    /// Adds the elements of `id` in `range` along `axis`, or returns them if they were added before.
    fn array_part(&mut self, id: InstId, axis: usize, range: &Range<u64>, depth: usize) -> Option<InstId> {
        if let Some(&part) = self.made.get(&(id, axis, range.clone())) {
            return Some(part);
        }
        if depth > MOST_DEPTH {
            return None;
        }
        let inst = self.comp[id].clone();
        let shape = inst.shape.as_array()?;
        let own = id == self.pair.last || id == self.pair.between || !self.fusion.is_materialised(id);
        let mut operands = inst.operands.clone();
        let mut recut = |s: &mut Self, number: usize, axis: usize, range: &Range<u64>| -> Option<()> {
            let operand = operands.get_mut(number)?;
            *operand = s.array_part(*operand, axis, range, depth + 1)?;
            Some(())
        };
        let below = match inst.op {
            Op::Reshape if own => same_axis(self.comp.array_shape(inst.operands[0]), &shape.dims, axis),
            _ => None,
        };
        let op = match &inst.op {
            Op::Constant(Literal::Array(t)) => Op::Constant(Literal::Array(constant_part(t, axis, range)?)),
            Op::Broadcast(map) => {
                if let Some(own) = map.iter().position(|&a| a == axis) {
                    recut(self, 0, own, range)?;
                }
                inst.op.clone()
            }
            Op::Reshape if below.is_some() => {
                recut(self, 0, below?, range)?;
                inst.op.clone()
            }
            Op::Elementwise(_) if own => {
                for number in 0..inst.operands.len() {
                    recut(self, number, axis, range)?;
                }
                inst.op.clone()
            }
            Op::Convolution(d) if own && axis == d.output_feature => {
                // weights that are not known now would be copied
                matches!(self.comp[inst.operands[1]].op, Op::Constant(_)).then_some(())?;
                recut(self, 1, d.kernel_output_feature, range)?;
                inst.op.clone()
            }
            Op::Convolution(d) if own => {
                let number = d.output_spatial.iter().position(|&a| a == axis)?;
                let (axis, mut d) = (d.input_spatial[number], d.clone());
                let w = &mut d.window[number];
                let rows = self.comp.array_shape(inst.operands[0]).dims[axis];
                // what another kernel made is read where it is
                let is_last = self.fusion.anchor[self.pair.last].unwrap_or(self.pair.last) == id;
                let read = if is_last || is_single(w) { read_by(w, range, rows)? } else { 0..rows };
                *w = window_of(w, range, &read);
                if read != (0..rows) {
                    recut(self, 0, axis, &read)?;
                }
                Op::Convolution(d)
            }
            Op::ReduceWindow { window, .. } if own && is_single(window.get(axis)?) && inst.operands.len() == 2 => {
                recut(self, 0, axis, range)?;
                inst.op.clone()
            }
            _ => {
                operands = vec![id];
                let along = |(i, &n): (usize, &u64)| match i == axis {
                    true => SliceDim { start: range.start, limit: range.end, stride: 1 },
                    false => SliceDim { start: 0, limit: n, stride: 1 },
                };
                Op::Slice(shape.dims.iter().enumerate().map(along).collect())
            }
        };
        let mut dims = shape.dims.clone();
        dims[axis] = range.end - range.start;
        let shape = Shape::Array(ArrayShape { dims, ..shape.clone() });
        let name = format!("{}.{}", inst.name, range.start);
        let part = self.comp.insts.push(Inst { name, op, operands, shape, ..inst });
        self.made.insert((id, axis, range.clone()), part);
        Some(part)
    }
}

/// The axis of `from` that becomes `axis` when it is reshaped to `to`.
fn same_axis(from: &ArrayShape, to: &[u64], axis: usize) -> Option<usize> {
    let before = |dims: &[u64]| dims.iter().product::<u64>();
    (0..from.rank()).find(|&i| from.dims[i] == to[axis] && before(&from.dims[..i]) == before(&to[..axis]))
}

/// The range of elements, of `rows` along the axis, that the windows `results` read; `None` if it is empty.
fn read_by(w: &WindowDim, results: &Range<u64>, rows: u64) -> Option<Range<u64>> {
    let first = (results.start * w.stride) as i64 - w.pad_low;
    let end = ((results.end - 1) * w.stride + (w.size - 1) * w.rhs_dilate + 1) as i64 - w.pad_low;
    let read = u64::try_from(first).unwrap_or(0)..u64::try_from(end).unwrap_or(0).min(rows);
    (!read.is_empty()).then_some(read)
}

/// The window that computes `results` of window `w` from the elements `read`.
fn window_of(w: &WindowDim, results: &Range<u64>, read: &Range<u64>) -> WindowDim {
    let dilated = ((read.end - read.start - 1) * w.lhs_dilate + 1) as i64;
    let pad_low = w.pad_low - (results.start * w.stride) as i64 + (read.start * w.lhs_dilate) as i64;
    let reach = ((results.end - results.start - 1) * w.stride + (w.size - 1) * w.rhs_dilate + 1) as i64;
    WindowDim { pad_low, pad_high: reach - pad_low - dilated, ..*w }
}

/// A slice of a constant along one axis.
fn constant_part(t: &Tensor, axis: usize, range: &Range<u64>) -> Option<Tensor> {
    if t.dtype != DType::F32 {
        return None;
    }
    let inner = t.dims[axis + 1..].iter().product::<u64>() as usize * t.dtype.bytes();
    let row = t.dims[axis] as usize * inner;
    let [from_byte, to_byte] = [range.start, range.end].map(|at| at as usize * inner);
    let rows = t.bytes.chunks_exact(row.max(1));
    let bytes: Vec<u8> = rows.flat_map(|row| &row[from_byte..to_byte]).copied().collect();
    let mut dims = t.dims.clone();
    dims[axis] = range.end - range.start;
    Some(Tensor::new(t.dtype, dims, Bytes::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::text;
    use crate::target::{PanelSizes, Target};

    const POOLED: &str = "HloModule t
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY e {
  p = f32[1,64,64,16] parameter(0)
  x = f32[1,64,64,16] negate(p)
  w = f32[3,3,16,128] constant({...})
  c = f32[1,64,64,128] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  low = f32[] constant(-inf)
  r = f32[1,16,16,128] reduce-window(c, low), window={size=1x4x4x1 stride=1x4x4x1}, to_apply=max
  ROOT t = (f32[1,16,16,128]) tuple(r)
}
";

    #[test]
    fn a_convolution_and_its_pool_are_done_in_halves() {
        let zeros = vec!["0"; 128].join(",");
        let row = format!("{{{}}}", vec![format!("{{{zeros}}}"); 16].join(","));
        let window = format!("{{{}}}", vec![format!("{{{}}}", vec![row; 3].join(",")); 3].join(","));
        let module = text::parse(&POOLED.replace("{...}", &window)).expect("sound HLO");
        let request =
            Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a processor").into();
        let target = KernelTarget { request: &request, panels: &PanelSizes::default() };
        let halves = split_pairs(&module, SplitScope::Once, &target).expect("halves");
        let comp = halves.entry();
        let last = comp[comp.root].operands[0];
        assert_eq!(comp[last].op, Op::Concatenate(3));
        let mut reached = comp.post_order().into_iter();
        assert!(reached.all(|id| comp[id].shape.leaves().iter().all(|a| a.elements() < 64 * 64 * 128)));
        assert!(Peak::measure(&halves, comp, &target).bytes < Peak::measure(&module, module.entry(), &target).bytes);
    }
}
