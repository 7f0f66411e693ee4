//! The weights of Winograd's method along two axes: transformed now, by a kernel before, or on the way into a panel.
use super::super::grid::{chunked, guarded, shares};
use super::super::pack::Panels;
use super::super::transform::Transform;
use super::super::{convert, each, label};
use super::Conv;
use crate::kernel::{BufId, Expr, Index, Kernel, LoopKind, Step, Stmt};
use crate::scalar::ScalarOp;
use crate::schedule::emit::{Emitter, Scope};
use crate::schedule::plan::points::Points;
use crate::schedule::plan::winograd::{POINTS, READS, Winograd};
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

impl<'a> Emitter<'a> {
    /// Memory for weights that are transformed at each call.
    pub(super) fn for_weights(&mut self, conv: &Conv<'_>, elements: u64) -> BufId {
        let buf = self.buffer(DType::F32, elements);
        if conv.w.weights.numbers.dtype == DType::F32 {
            self.found.transformed.insert(buf, conv.key);
        }
        buf
    }

    /// The weights as they are stored, and the values of the polynomials.
    pub(super) fn plain_weights(&mut self, w: &Winograd) -> (Plain, BufId) {
        let from = self.constant(&w.weights.numbers);
        let scales = w.weights.scales.as_ref().map(|(scales, _)| self.constant(scales));
        let factors: Vec<u8> = Points::SQUARE.factors(3).iter().flat_map(|&x| (x as f32).to_le_bytes()).collect();
        let factors = self.constant(&Tensor::new(DType::F32, vec![READS, 3], Bytes::from(factors)));
        ((from, w.weights.numbers.dtype, scales), factors)
    }

    /// The kernel that transforms all weights, to panels of so many columns.
    pub(super) fn winograd_weights(
        &mut self,
        scope: &Scope<'a>,
        conv: &Conv<'_>,
        (panel, lanes): (u64, u64),
        steps: &mut Vec<Step>,
    ) -> Panels {
        let Conv { ids, w, window, .. } = *conv;
        let (weights, factors) = self.plain_weights(w);
        let panels = w.outputs.div_ceil(panel);
        let of_point = panels * w.inputs * panel;
        let packed = self.for_weights(conv, POINTS * of_point);
        let mut k = Kernel { label: format!("weights of {}", label(scope.comp, ids.0)), ..Kernel::default() };
        let (i, p) = (k.var(READS), k.var(panels));
        let mut body = Vec::new();
        for columns in shares(&mut k, p, w.outputs, panel) {
            let to = Index::var(i).scale((READS * of_point) as i64).add(&columns.at.scale((w.inputs * panel) as i64));
            let from = (weights, columns.at.scale(panel as i64), window);
            let (row, sizes) = (Index::var(i), (w.inputs, columns.count, lanes));
            let made = weights_of_row(&mut k, from, (factors, &row), (packed, (to, panel), of_point), sizes);
            body.extend(guarded(&mut k, &[&columns], vec![made]));
        }
        (k.flops, k.direct_flops) = (90 * w.inputs * w.outputs, Some(0));
        chunked(&mut k, &[i, p], body);
        self.launch(k, steps);
        Panels { buf: packed, term: panel, batch: of_point, panel: w.inputs * panel, scales: None }
    }
}

/// Weights that are not transformed: where they are, their type, and where that is bytes a scale for each channel made.
pub(super) type Plain = (BufId, DType, Option<BufId>);

/// How far the weights of a window are apart, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub rows: u64,
    pub columns: u64,
    pub inputs: u64,
}

/// The weights `G·g·Gᵀ` as `[point][channel read][channel made]`, computed in doubles and rounded once.
pub(super) fn transformed(w: &Winograd, window: Window) -> Tensor {
    let factors = Points::SQUARE.factors(3);
    let (c, o) = (w.inputs, w.outputs);
    let at = |index: u64| {
        let index = index as usize * 4;
        let raw = &w.weights.numbers.bytes[index..index + 4];
        f64::from(f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]))
    };
    let mut bytes = vec![0u8; (POINTS * c * o) as usize * 4];
    for channel in 0..c {
        for made in 0..o {
            let first = channel * window.inputs + made;
            let g = [0, 1, 2].map(|i| [0, 1, 2].map(|j| at(first + i * window.rows + j * window.columns)));
            for (i, of_rows) in factors.chunks(3).enumerate() {
                let row = [0, 1, 2].map(|j| (0..3).map(|l| of_rows[l] * g[l][j]).sum::<f64>());
                for (j, of_columns) in factors.chunks(3).enumerate() {
                    let value: f64 = (0..3).map(|l| row[l] * of_columns[l]).sum();
                    let to = (((i * 6 + j) as u64 * c + channel) * o + made) as usize * 4;
                    bytes[to..to + 4].copy_from_slice(&(value as f32).to_le_bytes());
                }
            }
        }
    }
    Tensor::new(DType::F32, vec![POINTS, c, o], Bytes::from(bytes))
}

/// Row `row` of the points of the weights from `first` on, for all channels read and `columns` of those made.
pub(super) fn weights_of_row(
    k: &mut Kernel,
    ((from, dtype, scales), first, window): (Plain, Index, Window),
    (factors, row): (BufId, &Index),
    (to, panel, of_point): (BufId, (Index, u64), u64),
    (channels, columns, lanes): (u64, u64, u64),
) -> Stmt {
    let (channel, vector, lane) = (k.var(channels), k.var(columns / lanes), k.var(lanes));
    let column = Index::var(vector).scale(lanes as i64).add(&Index::var(lane));
    let read = first.add(&column).add(&Index::var(channel).scale(window.inputs as i64));
    let write = panel.0.add(&Index::var(channel).scale(panel.1 as i64)).add(&column);
    let mut t = Transform::new(k, lanes);
    let factor = [0, 1, 2].map(|l| {
        let value = t.expr(Expr::Load(factors, row.scale(3).offset(l)));
        t.held(value)
    });
    let scale = scales.map(|scales| {
        let value = t.expr(Expr::Load(scales, first.add(&column)));
        t.held(value)
    });
    let sums = [0, 1, 2].map(|j| {
        let at = |l: u64| read.offset((l * window.rows + j * window.columns) as i64);
        let g = [0, 1, 2].map(|l| {
            let stored = t.expr(Expr::Load(from, at(l)));
            let wide = convert(t.k, stored, dtype, DType::F32);
            scale.map_or(wide, |scale| t.k.op(ScalarOp::Multiply, &[wide, scale], DType::F32))
        });
        let sum = t.k.op(ScalarOp::Multiply, &[g[0], factor[0]], DType::F32);
        let sum = t.k.op(ScalarOp::Fma, &[g[1], factor[1], sum], DType::F32);
        t.k.op(ScalarOp::Fma, &[g[2], factor[2], sum], DType::F32)
    });
    for (j, value) in t.weights(&Points::SQUARE, sums).into_iter().enumerate() {
        t.body.push(Stmt::Store { buf: to, index: write.offset((j as u64 * of_point) as i64), value });
    }
    let inside = each(vector, LoopKind::Seq, vec![each(lane, LoopKind::Vector, t.body)]);
    each(channel, LoopKind::Seq, vec![inside])
}
