//! The loops of pointwise kernels, concatenations and updates of slices.
use crate::schedule::loops::nest;
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::placement::Placement;

/// The family of pointwise results: loops over the elements.
pub const FAMILY: Family = Family {
    name: "pointwise",
    recipe: |_, request| Ok(request.is_pointwise().then_some(RecipeSetup::Plain)),
    emit: |s, KernelRoot { id, out, .. }, _| s.emit_pointwise(id, out),
};

/// The family of concatenations: loops for each operand that was not written in place.
pub const CONCATENATE: Family = Family {
    name: "concatenate",
    recipe: |_, request| match request.op() {
        Op::Concatenate(axis) => Ok(Some(RecipeSetup::Concatenate(*axis))),
        _ => Ok(None),
    },
    emit: |s, root, setup| match setup {
        RecipeSetup::Concatenate(axis) => s.emit_concatenate(root, *axis),
        other => other.wrong_family_error(),
    },
};

/// The family of `dynamic-update-slice`: a copy of the operand, unless it may be overwritten, and loops over the update.
pub const UPDATE: Family = Family {
    name: "update",
    recipe: |_, request| Ok(matches!(request.op(), Op::DynamicUpdateSlice).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_dynamic_update_slice(root),
};

/// A kernel that stores each element of an array, without its loops.
pub(in crate::schedule) struct ElementStores {
    /// The kernel.
    pub(in crate::schedule) e: KernelBuilder,
    /// The loop variable of each dimension; the store does not depend on those of size 1.
    pub(in crate::schedule) vars: Vec<VarId>,
    /// The store of one element.
    pub(in crate::schedule) store: Stmt,
    /// Lanes of a vector of elements.
    pub(in crate::schedule) lanes: u64,
}

impl<'a> Emitter<'a> {
    /// Emits one loop nest over the elements of `id`.
    pub(in crate::schedule) fn emit_pointwise(&mut self, id: InstId, out: &ValueBuffers) -> Result<()> {
        let dims = self.scope.comp.array_shape(id).dims.clone();
        let layout = out.layout(&dims);
        self.emit_element_stores(id, id, &dims, |at| layout.offset_of(at), out)
    }

    /// Emits a kernel that stores the scalar `from` in every element of an array of `dims`.
    pub(in crate::schedule) fn emit_splat(
        &mut self,
        root: InstId,
        from: InstId,
        dims: &[u64],
        out: &ValueBuffers,
    ) -> Result<()> {
        if dims.contains(&0) {
            return Ok(());
        }
        let mut e = self.start_kernel(root);
        let buf = out.dense_buffer()?;
        let all = e.k.add_var(dims.iter().product());
        let value = self.emit_element(&mut e, from, &[])?;
        let lanes = self.vector_lanes(self.program.buffers[buf].dtype);
        nest::set_vectorized_body(&mut e.k, &[all], &[Stmt::Store { buf, index: Index::var(all), value }], lanes);
        self.launch(e.k);
        Ok(())
    }

    /// Emits loops over `dims` that store element `at` of `from` at `place(at)`.
    pub(in crate::schedule) fn emit_element_stores(
        &mut self,
        root: InstId,
        from: InstId,
        dims: &[u64],
        place: impl Fn(&[Index]) -> Index,
        out: &ValueBuffers,
    ) -> Result<()> {
        if dims.contains(&0) {
            return Ok(());
        }
        let ElementStores { mut e, vars, store, lanes } = self.element_stores(root, from, dims, place, out)?;
        nest::set_vectorized_body(&mut e.k, &vars, &[store], lanes);
        self.launch(e.k);
        Ok(())
    }

    /// The store of element `at` of `from` at `place(at)`, for loops over `dims` that are not written yet; no size is zero.
    pub(in crate::schedule) fn element_stores(
        &mut self,
        root: InstId,
        from: InstId,
        dims: &[u64],
        place: impl Fn(&[Index]) -> Index,
        out: &ValueBuffers,
    ) -> Result<ElementStores> {
        let mut e = self.start_kernel(root);
        let (vars, at) = nonunit_loop_variables(&mut e.k, dims);
        let value = self.emit_element(&mut e, from, &at)?;
        let buf = out.buffer()?;
        let lanes = self.vector_lanes(self.program.buffers[buf].dtype);
        e.k.flops = dims.iter().product();
        Ok(ElementStores { e, vars, store: Stmt::Store { buf, index: place(&at), value }, lanes })
    }

    /// Emits copies of the operands of a concatenation into their parts of the result, except for those that were written in place.
    pub(in crate::schedule) fn emit_concatenate(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
        axis: usize,
    ) -> Result<()> {
        let layout = out.layout(&self.scope.comp.array_shape(id).dims);
        let mut before = 0;
        for &o in &self.scope.comp[id].operands {
            let dims = self.scope.comp.array_shape(o).dims.clone();
            let part = layout.subarray(axis, before);
            before += dims[axis];
            if matches!(self.scope.stages.placements[o], Placement::Part { whole, .. } if whole == id) {
                continue;
            }
            self.emit_element_stores(id, o, &dims, |at| part.offset_of(at), out)?;
        }
        Ok(())
    }

    /// Emits a copy of the operand of an update into the result, unless both share their buffers.
    pub(in crate::schedule) fn copy_operand_to_result(
        &mut self,
        id: InstId,
        operand: InstId,
        out: &ValueBuffers,
    ) -> Result<()> {
        if self.scope.values.get(operand).is_some_and(|v| v.leaves == out.leaves) {
            return Ok(());
        }
        let dims = self.scope.comp.array_shape(operand).dims.clone();
        self.emit_element_stores(id, operand, &dims.clone(), |at| linear_index(at, &dims), out)
    }

    /// Emits a `dynamic-update-slice`: copies the operand, or overwrites it if nothing reads it again, and writes the update over it.
    pub(in crate::schedule) fn emit_dynamic_update_slice(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
    ) -> Result<()> {
        let operands = self.scope.comp[id].operands.clone();
        let (whole, part) =
            (self.scope.comp.array_shape(id).dims.clone(), self.scope.comp.array_shape(operands[1]).dims.clone());
        self.copy_operand_to_result(id, operands[0], out)?;
        if part.contains(&0) {
            return Ok(());
        }
        let mut e = self.start_kernel(id);
        let (vars, at) = loop_variables(&mut e.k, &part);
        let value = self.emit_element(&mut e, operands[1], &at)?;
        let mut to = Vec::new();
        for (d, x) in at.iter().enumerate() {
            let start = self.window_start(&mut e, &operands[2..], d)?;
            let start = self.clamp_window_start(&mut e, start, whole[d] as i64 - part[d] as i64);
            to.push(x.add(&start));
        }
        let buf = out.dense_buffer()?;
        let lanes = self.vector_lanes(self.program.buffers[buf].dtype);
        nest::set_vectorized_body(
            &mut e.k,
            &vars,
            &[Stmt::Store { buf, index: linear_index(&to, &whole), value }],
            lanes,
        );
        self.launch(e.k);
        Ok(())
    }
}
