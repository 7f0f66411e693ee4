//! The weights of Winograd's method, in panels of columns: transformed now, by a kernel before, or on the way into a panel.
use super::WinogradConvolution;
use super::transform::TransformEmitter;
use crate::diag::Error;
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::winograd::recipe::numbers::weights_in_words;
use crate::schedule::families::winograd::recipe::{ProductRows, TAPS_OF_SEVERAL, Winograd, WinogradWeights};
use crate::schedule::loops::grid::{AxisTile, guard_by_tiles, set_body_in_chunks, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::compressed_constants::CompressedConstant;
use crate::tensor::Tensor;
use bytes::Bytes;

/// Weights before their transform, with the factors of the transform.
pub(super) struct UntransformedWeights {
    from: BufId,
    layout: Layout,
    dtype: DType,
    /// A scale for each output channel, if the weights are 8-bit.
    scales: Option<BufId>,
    /// The factor of each tap at each point of the first axis.
    factors: BufId,
}

/// A range of columns of weights before their transform.
pub(super) struct WeightColumns<'p> {
    /// The weights.
    pub weights: &'p UntransformedWeights,
    /// The first column.
    pub first: &'p Index,
    /// The number of columns.
    pub count: u64,
}

/// The memory of one row of points of a panel.
pub(super) struct PanelRow<'p> {
    /// The buffer that holds the panels.
    pub buf: BufId,
    /// The first element of the row.
    pub first: &'p Index,
    /// Columns of the panel.
    pub columns: u64,
    /// Distance of points in elements.
    pub point: u64,
}

impl<'a> Emitter<'a> {
    /// Allocates memory for weights that are transformed at each call.
    pub(super) fn allocate_weights(&mut self, conv: &WinogradConvolution<'_>, elements: u64) -> BufId {
        let buf = self.allocate_buffer(conv.w.types.points, elements);
        if conv.may_be_known {
            self.found.transformed.insert(buf, conv.key);
        }
        buf
    }

    /// The weights as they are stored or were computed, and the factors of the transform.
    pub(super) fn untransformed_weights(&mut self, conv: &WinogradConvolution<'_>) -> Result<UntransformedWeights> {
        let (along, types) = (&conv.w.along[0], conv.w.types);
        let layout = Layout::dense(conv.w.weights.dims());
        let (from, layout, dtype, scales) = match &conv.w.weights {
            WinogradWeights::Known(stored) if types.is_integer() => {
                let (bytes, layout) = weights_in_words(&stored.numbers, conv.d, types.terms_per_word());
                (self.add_constant(&bytes), layout, types.stored, None)
            }
            WinogradWeights::Known(stored) => {
                let scales = stored.scales.as_ref().map(|(scales, _)| self.add_constant(scales));
                (self.add_constant(&stored.numbers), layout, stored.numbers.dtype, scales)
            }
            WinogradWeights::Computed(dims) => {
                let value = self.value_buffers(self.scope.comp[conv.ids.1].operands[1])?;
                (value.buffer()?, value.layout(dims), DType::F32, None)
            }
        };
        let factors = along.points.tap_factors(along.taps);
        let mut bytes = vec![0u8; factors.len() * types.points.bytes()];
        for (to, factor) in bytes.chunks_exact_mut(types.points.bytes()).zip(factors) {
            write_number(to, types.points, factor);
        }
        let dims = vec![along.points.count(), along.taps];
        let factors = self.add_constant(&Tensor::new(types.points, dims, Bytes::from(bytes)));
        Ok(UntransformedWeights { from, layout, dtype, scales, factors })
    }

    /// The weights at all points in panels for `products`: transformed at compile time, or by a kernel of their own.
    pub(super) fn panel_weights(&mut self, conv: &WinogradConvolution<'_>, products: &ProductRows) -> Result<BufId> {
        let (w, panel) = (conv.w, products.panel_columns());
        let (panels, of_panel) = (w.outputs.div_ceil(panel), w.panel_stride(panel));
        let (rows, of_point) = (w.point_rows(), panels * of_panel);
        if conv.is_known {
            return Ok(self.add_constant(&in_panels(w, &conv.transform_constant_weights()?, panel, of_panel)));
        }
        let weights = self.untransformed_weights(conv)?;
        let packed = self.allocate_weights(conv, w.point_count() * of_point);
        let lanes = self.weight_lanes(w, products);
        let mut k = Kernel {
            label: format!("weights of {}", instruction_label(self.scope.comp, conv.ids.0)),
            ..Kernel::default()
        };
        let (row, p) = (k.add_var(rows), k.add_var(panels));
        let begin = Index::var(row).scale((w.row_points() * of_point) as i64);
        let mut body = Vec::new();
        for columns in split_into_tiles(&mut k, p, w.outputs, panel) {
            let first = &begin.add(&columns.at.scale(of_panel as i64));
            let to = PanelRow { buf: packed, first, columns: panel, point: of_point };
            let first = columns.at.scale(panel as i64);
            let source = WeightColumns { weights: &weights, first: &first, count: columns.count };
            let of = conv.emit_row_weights(&mut k, &source, &Index::var(row), &to, lanes);
            body.extend(guard_by_tiles(&mut k, &[&columns], of));
        }
        k.flops = w.weight_flops();
        k.set_direct_flops(Some(0));
        set_body_in_chunks(&mut k, &[row, p], body);
        self.launch(k);
        Ok(packed)
    }
}

impl WinogradConvolution<'_> {
    /// Emits the transform of the weights of some columns at a row of points: `[taps along other axes][groups][input channel][column]`, or
    /// with several terms in a word `[word of input channels][column][channel of the word]`.
    pub(super) fn emit_row_weights(
        &self,
        k: &mut Kernel,
        source: &WeightColumns<'_>,
        row: &Index,
        to: &PanelRow<'_>,
        lanes: u64,
    ) -> Vec<Stmt> {
        let WinogradConvolution { d, w, .. } = *self;
        // all terms of a word lie side by side, as if each were a column
        let terms = w.types.terms_per_word();
        let WeightColumns { weights: plain, first, count } = *source;
        let (first, columns, words) = (first.scale(terms as i64), count * terms, w.inputs / terms);
        let strides = &plain.layout.strides;
        let (channel, vector, lane) = (k.add_var(words), k.add_var(columns / lanes), k.add_var(lanes));
        let column = Index::var(vector).scale(lanes as i64).add(&Index::var(lane));
        let channels = Index::var(channel).scale(strides[d.kernel_input_feature]);
        let (mut read, mut term) = (first.add(&column).add(&channels).offset(plain.layout.origin), Index::default());
        let mut loops = Vec::new();
        for i in w.other_axes() {
            let tap = k.add_var(d.window[i].size);
            read = read.add(&Index::var(tap).scale(strides[d.kernel_spatial[i]]));
            term = term.scale(d.window[i].size as i64).add(&Index::var(tap));
            loops.push(tap);
        }
        let groups: Vec<VarId> = w.along.iter().map(|a| k.add_var(a.groups)).collect();
        loops.extend(&groups);
        let mut inside = Vec::new();
        for group in split_into_tiles(k, groups[0], w.along[0].size, w.along[0].taps) {
            let read = read.add(&group.at.scale(w.along[0].taps as i64 * self.tap_stride(strides, 0)));
            let term =
                term.scale(w.along[0].groups as i64).add(&group.at).scale(words as i64).add(&Index::var(channel));
            let mut t = TransformEmitter::new(k, w.types.points, lanes);
            let of_row = self.points_of_row(&mut t, plain, &first.add(&column), &read, row, &group);
            for (j, value) in of_row.into_iter().enumerate() {
                let at = term.scale((to.columns * terms) as i64).add(&column);
                let index = to.first.add(&at).offset((j as u64 * to.point) as i64);
                t.body.push(Stmt::Store { buf: to.buf, index, value });
            }
            let body = vec![for_loop(vector, LoopKind::Seq, vec![for_loop(lane, LoopKind::Vector, t.body)])];
            inside.extend(guard_by_tiles(k, &[&group], vec![for_loop(channel, LoopKind::Seq, body)]));
        }
        let loops: Vec<VarId> = loops.into_iter().filter(|&v| k.vars[v] > 1).collect();
        loops.iter().rev().fold(inside, |inside, &v| vec![for_loop(v, LoopKind::Seq, inside)])
    }

    /// Distance of taps along an axis of the method, in elements.
    fn tap_stride(&self, strides: &[i64], axis: usize) -> i64 {
        strides[self.d.kernel_spatial[self.w.along[axis].axis]]
    }

    /// Transforms a vector of weights, whose taps begin at `read`, to the points of a row.
    fn points_of_row(
        &self,
        t: &mut TransformEmitter<'_>,
        plain: &UntransformedWeights,
        column: &Index,
        read: &Index,
        row: &Index,
        group: &AxisTile,
    ) -> Vec<ExprId> {
        let (w, strides) = (self.w, &plain.layout.strides);
        // a factor stands once for all taps along further axes
        let factor = |t: &mut TransformEmitter<'_>, l: i64| {
            let value = t.k.add_load(plain.factors, row.scale(w.along[0].taps as i64).offset(l));
            if w.is_one_dimensional() { value } else { t.hold_in_register(value) }
        };
        let factors: Vec<ExprId> = (0..group.count as i64).map(|l| factor(t, l)).collect();
        let scale = plain.scales.map(|scales| {
            let value = t.k.add_load(scales, column.clone());
            t.hold_in_register(value)
        });
        let sum = |t: &mut TransformEmitter<'_>, further: i64| {
            let add = |sum: Option<ExprId>, (l, &factor): (usize, &ExprId)| {
                let at = read.offset(l as i64 * self.tap_stride(strides, 0) + further);
                let stored = t.k.add_load(plain.from, at);
                let wide = convert(t.k, stored, plain.dtype, w.types.points);
                let tap = scale.map_or(wide, |scale| t.k.add_op(ScalarOp::Multiply, &[wide, scale], DType::F32));
                Some(t.add_product(tap, factor, sum))
            };
            factors.iter().enumerate().fold(None, add)
        };
        match &w.along[1..] {
            [] => sum(t, 0).into_iter().collect(),
            [second, ..] => {
                let sums = (0..TAPS_OF_SEVERAL as i64)
                    .filter_map(|l| sum(t, l * self.tap_stride(strides, 1)))
                    .collect::<Vec<_>>();
                t.transform_weights(&second.points, &sums)
            }
        }
    }

    /// Transforms the weights to all points at compile time, `[point][term][output channel]`, computed in doubles and rounded once; whole
    /// numbers are exact.
    pub(super) fn transform_constant_weights(&self) -> Result<Bytes> {
        let w = self.w;
        let WinogradWeights::Known(CompressedConstant { numbers, .. }) = &w.weights else {
            return Err(Error::internal("schedule", "weights that are computed are not known"));
        };
        let strides = Layout::dense(&numbers.dims).strides;
        let (terms, outputs) = (self.product_terms(&strides), w.outputs as usize);
        let factors: Vec<Vec<f64>> = w.along.iter().map(|a| a.points.tap_factors(a.taps)).collect();
        let taps: Vec<usize> = w.along.iter().map(|a| a.taps as usize).collect();
        let (mut bytes, size) = (vec![0u8; w.weight_bytes() as usize], w.types.points.bytes());
        let (mut values, mut next) = (Vec::new(), Vec::new());
        for (term, offsets) in terms.iter().enumerate() {
            for made in 0..outputs {
                values.clear();
                let number = |at: &Option<u64>| at.and_then(|at| numbers.get_f64(at as usize + made)).unwrap_or(0.0);
                values.extend(offsets.iter().map(number));
                let mut inner: usize = taps.iter().product();
                let mut outer = 1;
                for (&taps, factors) in taps.iter().zip(&factors) {
                    inner /= taps;
                    next.clear();
                    for o in 0..outer {
                        for of_point in factors.chunks(taps) {
                            for i in 0..inner {
                                let all = of_point.iter().enumerate();
                                next.push(all.map(|(l, f)| f * values[(o * taps + l) * inner + i]).sum::<f64>());
                            }
                        }
                    }
                    outer *= factors.len() / taps;
                    std::mem::swap(&mut values, &mut next);
                }
                for (point, &value) in values.iter().enumerate() {
                    let at = ((point * terms.len() + term) * outputs + made) * size;
                    write_number(&mut bytes[at..at + size], w.types.points, value);
                }
            }
        }
        Ok(Bytes::from(bytes))
    }

    /// Offsets of the taps of each term of a product, in the order of the terms. A term has taps along the axes of the method; `None` where
    /// its group has fewer.
    fn product_terms(&self, strides: &[i64]) -> Vec<Vec<Option<u64>>> {
        let WinogradConvolution { d, w, .. } = *self;
        let mut firsts = vec![0];
        for i in w.other_axes() {
            let step = strides[d.kernel_spatial[i]] as u64;
            firsts = firsts.into_iter().flat_map(|at| (0..d.window[i].size).map(move |tap| at + tap * step)).collect();
        }
        let groups: u64 = w.along.iter().map(|a| a.groups).product();
        let of_channel = strides[d.kernel_input_feature] as u64;
        let taps = |first: u64, group: u64| {
            let mut all = vec![Some(first)];
            for (n, a) in w.along.iter().enumerate() {
                let step = self.tap_stride(strides, n) as u64;
                let own = |l: u64| Some(group * a.taps + l).filter(|tap| *tap < a.size).map(|tap| tap * step);
                let more = |at: Option<u64>| (0..a.taps).map(move |l| Some(at? + own(l)?)).collect::<Vec<_>>();
                all = all.into_iter().flat_map(more).collect();
            }
            all
        };
        let of_first = |first: u64| {
            let taps = &taps;
            let of_group = move |g: u64| (0..w.inputs).map(move |c| taps(first + c * of_channel, g));
            (0..groups).flat_map(of_group)
        };
        firsts.into_iter().flat_map(of_first).collect()
    }
}

/// Rearranges weights at all points into panels of `panel` columns, `of_panel` elements apart.
fn in_panels(w: &Winograd, numbers: &Bytes, panel: u64, of_panel: u64) -> Tensor {
    let elements = w.point_count() * w.outputs.div_ceil(panel) * of_panel;
    let size = w.types.points.bytes();
    let mut bytes = vec![0u8; elements as usize * size];
    let panels = w.outputs.div_ceil(panel);
    let order = w.types.words.map_or(PanelOrder::Plain, PanelOrder::Words);
    for (point, term, p) in
        (0..w.point_count()).flat_map(|i| (0..w.term_count()).flat_map(move |j| (0..panels).map(move |p| (i, j, p))))
    {
        let columns = panel.min(w.outputs - p * panel);
        let from = ((point * w.term_count() + term) * w.outputs + p * panel) as usize * size;
        let to = (point * panels + p) * of_panel;
        let run = if order == PanelOrder::Plain { columns } else { 1 };
        for column in (0..columns).step_by(run as usize) {
            let from = from + column as usize * size;
            let to = (to + order.panel_offset(term, column, panel)) as usize * size;
            let of_run = run as usize * size;
            bytes[to..to + of_run].copy_from_slice(&numbers[from..from + of_run]);
        }
    }
    Tensor::new(w.types.points, vec![elements], Bytes::from(bytes))
}

/// Writes `x` to the bytes of an element: rounded to f32, or a whole number of 16 bits.
fn write_number(to: &mut [u8], dtype: DType, x: f64) {
    match dtype {
        DType::S16 => to.copy_from_slice(&(x as i16).to_le_bytes()),
        _ => to.copy_from_slice(&(x as f32).to_le_bytes()),
    }
}
