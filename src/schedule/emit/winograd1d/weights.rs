//! The weights of Winograd's method along one axis, in panels of columns: transformed by a kernel, a panel at a time or all of
//! them, or now where those would stand at the peak of memory.
use super::super::grid::{chunked, guarded, shares};
use super::super::transform::Transform;
use super::super::{each, label};
use super::Conv;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope};
use crate::schedule::layout::Layout;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::winograd1d::Winograd1d;
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

impl<'a> Emitter<'a> {
    /// The weights as they are, and what each tap is multiplied by at each point.
    pub(super) fn plain_weights_1d(&mut self, w: &Winograd1d) -> [BufId; 2] {
        let factors: Vec<u8> = w.points.factors(w.taps).iter().flat_map(|&x| (x as f32).to_le_bytes()).collect();
        let factors = Tensor::new(DType::F32, vec![w.points.count(), w.taps], Bytes::from(factors));
        [&w.weights, &factors].map(|numbers| self.constant(numbers))
    }

    /// The weights of all points, in panels of so many columns, transformed by a kernel of their own, or now where that was asked
    /// for.
    pub(super) fn weights_of_panels(
        &mut self,
        scope: &Scope<'a>,
        conv: &Conv<'_>,
        (panel, lanes): (u64, u64),
        steps: &mut Vec<Step>,
    ) -> BufId {
        let Conv { ids, key, d, w, is_known, .. } = *conv;
        let (points, panels, of_panel) = (w.points.count(), w.outputs.div_ceil(panel), apart(w.terms() * panel));
        if is_known {
            return self.constant(&known(d, w, panel, of_panel));
        }
        let weights = self.plain_weights_1d(w);
        let packed = self.buffer(DType::F32, points * panels * of_panel);
        self.found.transformed.insert(packed, key);
        let mut k = Kernel { label: format!("weights of {}", label(scope.comp, ids.0)), ..Kernel::default() };
        let (point, p) = (k.var(points), k.var(panels));
        let begin = Index::var(point).scale(panels as i64).add(&Index::var(p)).scale(of_panel as i64);
        let mut body = Vec::new();
        for columns in shares(&mut k, p, w.outputs, panel) {
            let first = columns.at.scale(panel as i64);
            let to = (packed, &begin, panel);
            let of = weights_of_panel(&mut k, conv, (weights, &first, columns.count), point, to, lanes);
            body.extend(guarded(&mut k, &[&columns], of));
        }
        (k.flops, k.direct_flops) = (2 * points * w.taps * w.terms() * w.outputs, Some(0));
        chunked(&mut k, &[point, p], body);
        self.launch(k, steps);
        packed
    }
}

/// The weights of one point and panel, `[taps along other axes][group][channel read][column]`.
pub(super) fn weights_of_panel(
    k: &mut Kernel,
    &Conv { d, w, .. }: &Conv<'_>,
    ([from, factors], first, columns): ([BufId; 2], &Index, u64),
    point: VarId,
    (to, begin, panel): (BufId, &Index, u64),
    lanes: u64,
) -> Vec<Stmt> {
    let strides = Layout::dense(&w.weights.dims).strides;
    let (channel, vector, lane) = (k.var(w.inputs), k.var(columns / lanes), k.var(lanes));
    let column = Index::var(vector).scale(lanes as i64).add(&Index::var(lane));
    let mut read = first.add(&column).add(&Index::var(channel).scale(strides[d.kernel_input_feature]));
    let mut term = Index::default();
    let mut loops = Vec::new();
    for i in (0..d.window.len()).filter(|&i| i != w.axis) {
        let tap = k.var(d.window[i].size);
        read = read.add(&Index::var(tap).scale(strides[d.kernel_spatial[i]]));
        term = term.scale(d.window[i].size as i64).add(&Index::var(tap));
        loops.push(tap);
    }
    let (group, step) = (k.var(w.groups), strides[d.kernel_spatial[w.axis]]);
    loops.push(group);
    let mut inside = Vec::new();
    for share in shares(k, group, d.window[w.axis].size, w.taps) {
        let term = term.scale(w.groups as i64).add(&share.at).scale(w.inputs as i64).add(&Index::var(channel));
        let read = read.add(&share.at.scale(w.taps as i64 * step));
        let mut t = Transform::new(k, lanes);
        let mut sum = None;
        for l in 0..share.count as i64 {
            let tap = t.expr(Expr::Load(from, read.offset(l * step)));
            let factor = t.expr(Expr::Load(factors, Index::var(point).scale(w.taps as i64).offset(l)));
            sum = Some(t.add_product(tap, factor, sum));
        }
        let Some(value) = sum else { continue };
        let index = begin.add(&term.scale(panel as i64)).add(&column);
        t.body.push(Stmt::Store { buf: to, index, value });
        let body = vec![each(vector, LoopKind::Seq, vec![each(lane, LoopKind::Vector, t.body)])];
        inside.extend(guarded(k, &[&share], vec![each(channel, LoopKind::Seq, body)]));
    }
    for &v in loops.iter().rev() {
        inside = vec![each(v, LoopKind::Seq, inside)];
    }
    inside
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
