//! Memory for values: where they are wanted, with zeros around, constants, results.
use crate::diag::{Code, Error, Result};
use crate::hlo::{ArrayShape, InstId, Literal, Shape};
use crate::kernel::{BufId, Buffer, BufferLocation, Kernel, KernelId, Step};
use crate::schedule::emit::{Emitter, ValueBuffers};
use crate::schedule::loops::copies;
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::placement::{Placement, windows_can_omit_margins};
use crate::tensor::{DType, Tensor};

impl<'a> Emitter<'a> {
    /// Allocates a buffer in the workspace.
    pub(in crate::schedule) fn allocate_buffer(&mut self, dtype: DType, elements: u64) -> BufId {
        self.program.buffers.push(Buffer { dtype, elements, place: BufferLocation::Workspace(0) })
    }

    /// Allocates a buffer on the stack, for use by one kernel.
    pub(in crate::schedule) fn allocate_on_stack(&mut self, dtype: DType, elements: u64) -> BufId {
        self.program.buffers.push(Buffer { dtype, elements, place: BufferLocation::Stack })
    }

    pub(in crate::schedule) fn allocate(&mut self, shape: &Shape) -> ValueBuffers {
        let leaves = shape.leaves().iter().map(|a| self.allocate_buffer(a.dtype, a.elements())).collect();
        ValueBuffers { leaves, layout: None }
    }

    /// Allocates the buffers of an instruction that has kernels, with the margins or the place in a concatenation that the plan gives the
    /// result.
    pub(in crate::schedule) fn allocate_result(&mut self, id: InstId) -> Result<ValueBuffers> {
        if let Some(value) = self.scope.placed.remove(&id) {
            return Ok(value);
        }
        let comp = self.scope.comp;
        match self.scope.stages.placements[id].clone() {
            Placement::Margin { low, high, made: true } => {
                let value = self.allocate_with_margin(comp.array_shape(id), &low, &high)?;
                if self.is_entry(comp) {
                    self.found.margins.insert(value.buffer()?, id);
                }
                self.record_margin(id, value.buffer()?);
                Ok(value)
            }
            Placement::Dense | Placement::Margin { .. } => Ok(self.allocate(&comp[id].shape)),
            Placement::Part { whole, axis, before } => {
                let value = self.allocate_result(whole)?;
                if self.is_entry(comp) {
                    // where one lies in another, that is the outermost
                    self.found.wholes.entry(value.buffer()?).or_insert(whole);
                }
                let layout = value.layout(&comp.array_shape(whole).dims).subarray(axis, before);
                self.scope.placed.insert(whole, value.clone());
                Ok(ValueBuffers { layout: Some(layout), ..value })
            }
        }
    }

    /// Records `buf`, which holds `plane` with margins, if the windows that read `plane` could be split so as to need no margins.
    pub(in crate::schedule) fn record_margin(&mut self, plane: InstId, buf: BufId) {
        let comp = self.scope.comp;
        if self.is_entry(comp)
            && windows_can_omit_margins(comp, self.plan.convolutions(self.scope.id), plane, self.scope.users(plane))
        {
            self.found.in_parts.insert(buf, plane);
        }
    }

    /// Allocates memory for an array with margins and emits the kernel that zeroes the margins.
    pub(in crate::schedule) fn allocate_with_margin(
        &mut self,
        shape: &ArrayShape,
        low: &[u64],
        high: &[u64],
    ) -> Result<ValueBuffers> {
        let whole: Vec<u64> = shape.dims.iter().zip(low).zip(high).map(|((n, a), b)| n + a + b).collect();
        crate::tensor::element_count(&whole)
            .ok_or_else(|| Error::user(Code::TooLarge, "an array with its padding has too many elements"))?;
        let layout = Layout::with_margin(&shape.dims, low, high);
        let buf = self.allocate_buffer(shape.dtype, layout.element_count(&shape.dims));
        let kernel = copies::clear_margin_kernel(buf, shape, &layout, self.vector_lanes(shape.dtype));
        self.launch(kernel);
        Ok(ValueBuffers { leaves: vec![buf], layout: Some(layout) })
    }

    pub(in crate::schedule) fn add_literal(&mut self, literal: &Literal) -> ValueBuffers {
        ValueBuffers { leaves: literal.leaves().into_iter().map(|t| self.add_constant(t)).collect(), layout: None }
    }

    pub(in crate::schedule) fn add_constant(&mut self, t: &Tensor) -> BufId {
        let place = BufferLocation::Weights(self.weights.add(&t.bytes));
        self.program.buffers.push(Buffer { dtype: t.dtype, elements: t.len() as u64, place })
    }

    /// Adds a kernel and its launch.
    pub(in crate::schedule) fn launch(&mut self, mut kernel: Kernel) {
        kernel.shrink_to_fit();
        let id: KernelId = self.program.kernels.push(kernel);
        self.steps.push(Step::Launch(id));
    }

    pub(in crate::schedule) fn emit_copy(&mut self, from: BufId, to: BufId) {
        let elements = self.program.buffers[from].elements;
        let kernel = copies::copy_kernel(from, to, elements, self.vector_lanes(self.program.buffers[from].dtype));
        self.launch(kernel);
    }

    /// Allocates a buffer and emits the kernel that copies `from` into it.
    pub(in crate::schedule) fn allocate_copy(&mut self, from: BufId) -> BufId {
        let Buffer { dtype, elements, .. } = self.program.buffers[from];
        let to = self.allocate_buffer(dtype, elements);
        self.emit_copy(from, to);
        to
    }

    /// Number of lanes of the vectors of `KernelTarget::machine`: for sums that are spread over lanes, and for loops that are divided into
    /// chunks.
    pub(in crate::schedule) fn vector_lanes(&self, dtype: DType) -> u64 {
        self.target.machine().lanes(dtype.bytes() as u64)
    }

    /// Number of lanes of the processor's own vectors: for loops inside a chunk over elements that are computed independently of each
    /// other.
    pub(in crate::schedule) fn processor_lanes(&self, dtype: DType) -> u64 {
        self.target.processor_lanes(dtype.bytes() as u64)
    }

    /// Makes the leaves of the root the caller's results: in place if they are intermediate buffers, by a copy otherwise.
    pub(in crate::schedule) fn bind_results(&mut self, root: &ValueBuffers) -> Result<()> {
        if root.leaves.len() != self.program.results.len() {
            return Err(Error::internal("schedule", "the root does not fit the results"));
        }
        for (i, &leaf) in root.leaves.iter().enumerate() {
            if matches!(self.program.buffers[leaf].place, BufferLocation::Workspace(_)) {
                self.program.buffers[leaf].place = BufferLocation::Result(i);
                continue;
            }
            let (dtype, elements) = (self.program.buffers[leaf].dtype, self.program.buffers[leaf].elements);
            let out = self.program.buffers.push(Buffer { dtype, elements, place: BufferLocation::Result(i) });
            self.regions.copy_regions(out, leaf);
            self.emit_copy(leaf, out);
        }
        Ok(())
    }
}
