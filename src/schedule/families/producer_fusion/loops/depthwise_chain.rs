//! The kernel of a chain (`families/producer_fusion/recipe/depthwise_chain.rs`): a depthwise convolution and the one that makes its operand, row by row.
use crate::hlo::attrs::ConvDims;
use crate::schedule::families::contraction::loops::rows_in_local_memory::{LocalOperand, RowsInLocalMemory};
use crate::schedule::families::producer_fusion::loops::WindowRow;
use crate::schedule::families::producer_fusion::loops::line_buffer::{ChunkLoops, LineBuffer, RowBand, RowStatements};
use crate::schedule::families::producer_fusion::recipe::{DepthwiseChain, window_span};
use crate::schedule::loops::prelude::*;

impl<'a> Emitter<'a> {
    /// Emits the kernel of `id`, whose anchor is the depthwise convolution `anchor`, with its operand computed row by row.
    pub(in crate::schedule) fn emit_depthwise_chain(
        &mut self,
        root @ KernelRoot { id, anchor, .. }: KernelRoot<'_>,
        chain: &DepthwiseChain,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let (_, d) = self.planned_convolution(anchor)?;
        let (operand, result) = (comp.array_shape(chain.producer).clone(), comp.array_shape(anchor).clone());
        let (w, panel) = (&d.window[0], chain.tile.vectors * chain.tile.lanes);
        let (held, stride) = (window_span(w), operand.dims[d.input_spatial[1]] * panel);
        let buf = self.allocate_on_stack(DType::F32, held * stride);
        let rows = LineBuffer { buf, held, stride, width: self.processor_width(DType::F32) };
        let mut e = self.start_kernel(id);
        let made = self.producer_row(&mut e, chain, &rows, d)?;
        let extent = result.dims[d.output_spatial[0]];
        let reader = e.k.add_var(extent);
        let parts = self.allocate_partial_sums(id, e.k.vars[made.batch] * chain.bands);
        let sums = parts.map(|_| self.allocate_on_stack(DType::F32, panel));
        let mut layout = rows.layout(d, panel, d.window[1].pad_low);
        layout.strides[d.input_spatial[0]] = rows.stride as i64;
        let input = ArrayView { buf, layout, ring: Some(held) };
        let row = WindowRow { batch: made.batch, row: reader, panel: Some((made.panel, panel)), sums };
        let read = self.emit_window_row(&mut e, root, &input, &chain.window, &row)?;
        let band = RowBand { own: extent / chain.bands, span: window_span(w), stride: w.stride };
        let chunks = ChunkLoops::new(&mut e.k, made.batch, made.panel, chain.bands);
        let fresh = chunks.emit_is_line_buffer_empty(&mut e.k);
        let t = e.k.add_var(band.row_count());
        let padded = Index::var(chunks.band).scale((band.own * band.stride) as i64).add(&Index::var(t));
        let new = rows.emit_row(&mut e.k, made, &padded, w.pad_low, operand.dims[d.input_spatial[0]] as i64);
        let mut inside = band.guard_new_rows(&mut e.k, t, fresh, new);
        inside.extend(band.guard_complete_windows(&mut e.k, t, chunks.band, reader, read));
        let mut body = vec![for_loop(t, LoopKind::Seq, inside)];
        if let (Some(sums), Some(parts)) = (sums, parts) {
            let zero = constant_of_number(&mut e.k, DType::F32, 0.0);
            let all = result.dims[d.output_feature];
            let start = rows.store_panel(&mut e.k, chunks.panel, all, panel, |_, from, _| (sums, from.clone(), zero));
            let part = Index::var(chunks.batch).scale(chain.bands as i64).add(&Index::var(chunks.band));
            let end = rows.store_panel(&mut e.k, chunks.panel, all, panel, |k, from, channel| {
                let sum = k.add_load(sums, from.clone());
                (parts.buf, part.scale(parts.channels as i64).add(channel), sum)
            });
            body.splice(0..0, start);
            body.extend(end);
        }
        chunks.set_kernel_body(&mut e.k, body);
        self.launch(e.k);
        Ok(())
    }

    /// Emits one row of one panel of the producer.
    fn producer_row(
        &mut self,
        e: &mut KernelBuilder,
        chain: &DepthwiseChain,
        rows: &LineBuffer,
        d: &ConvDims,
    ) -> Result<RowStatements> {
        let producer = chain.producer;
        let first = self.scope.fusion.anchor[producer].unwrap_or(producer);
        let input = self.padded_view(producer, first, self.scope.comp[first].operands[0])?;
        let slot = e.k.add_var(rows.held);
        let form = Some(chain.form.clone());
        let strip = RowsInLocalMemory { held: LocalOperand::Pixels(slot), stride: rows.stride, tile: chain.tile, form };
        let layout = rows.layout(d, chain.tile.vectors * chain.tile.lanes, 0);
        let sink = ValueBuffers { leaves: vec![rows.buf], layout: Some(layout) };
        let root = KernelRoot { id: producer, anchor: first, out: &sink };
        let ([batch, row], nest) = self.emit_product_rows(e, root, &input, &strip)?;
        let body = vec![for_loop(nest.grid.tile, LoopKind::Seq, nest.body)];
        Ok(RowStatements { batch, row, slot, panel: nest.grid.panel, body })
    }
}
