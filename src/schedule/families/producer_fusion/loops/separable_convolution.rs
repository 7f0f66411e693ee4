//! The kernel of a separable convolution (`families/producer_fusion/recipe/separable_convolution.rs`): a depthwise window and the 1x1 convolution that reads it.
use crate::hlo::attrs::ConvDims;
use crate::schedule::families::contraction::loops::rows_in_local_memory::{LocalOperand, RowsInLocalMemory};
use crate::schedule::families::producer_fusion::loops::WindowRow;
use crate::schedule::families::producer_fusion::recipe::SeparableConvolution;
use crate::schedule::loops::grid::set_body_in_chunks;
use crate::schedule::loops::prelude::*;
use crate::schedule::memory::layout::Layout;
use crate::target::LoopOrder;

impl<'a> Emitter<'a> {
    /// Emits the kernel of `id`, whose anchor is the 1x1 convolution `anchor`, with its operand computed row by row.
    pub(in crate::schedule) fn emit_separable_convolution(
        &mut self,
        root: KernelRoot<'_>,
        separable: &SeparableConvolution,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let producer = separable.producer;
        let window = self.scope.fusion.anchor[producer].unwrap_or(producer);
        let (_, d) = self.planned_convolution(window)?;
        let operand = comp.array_shape(producer).clone();
        let elements = operand.dims[d.output_spatial[1]] * separable.stride;
        let row = self.allocate_on_stack(DType::F32, elements);
        let layout = layout_of_row(operand.rank(), d, separable.stride);
        let mut e = self.start_kernel(root.id);
        let input = self.padded_view(producer, window, comp[window].operands[0])?;
        let strip = RowsInLocalMemory {
            held: LocalOperand::Row,
            stride: 0,
            tile: separable.tile,
            form: Some(separable.form.clone()),
        };
        let left = ArrayView::new(row, layout.clone());
        let ([batch, line], nest) = self.emit_product_rows(&mut e, root, &left, &strip)?;
        e.forget_elements();
        let sink = ValueBuffers { leaves: vec![row], layout: Some(layout) };
        let of_window = WindowRow { batch, row: line, panel: None, sums: None };
        let made = KernelRoot { id: producer, anchor: window, out: &sink };
        let mut body = self.emit_window_row(&mut e, made, &input, &separable.window, &of_window)?;
        let loops = match nest.order {
            LoopOrder::Panels => [nest.grid.tile, nest.grid.panel],
            LoopOrder::Rows => [nest.grid.panel, nest.grid.tile],
        };
        body.extend(loops.into_iter().fold(nest.body, |body, v| vec![for_loop(v, LoopKind::Seq, body)]));
        set_body_in_chunks(&mut e.k, &[batch, line], body);
        self.launch(e.k);
        Ok(())
    }
}

/// Layout of any one row of pixels on the stack, with `stride` elements per pixel; strides along images and rows are 0.
fn layout_of_row(rank: usize, d: &ConvDims, stride: u64) -> Layout {
    let mut strides = vec![0; rank];
    strides[d.output_spatial[1]] = stride as i64;
    strides[d.output_feature] = 1;
    Layout { origin: 0, strides, low: vec![0; rank], high: vec![0; rank] }
}
