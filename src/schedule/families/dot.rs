//! `dot` as a contraction: strides of both sides, any axes.
use crate::diag::Error;
use crate::hlo::Literal;
use crate::schedule::families::contraction::loops::operands::{Contraction, ContractionRight};
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::compressed_constants;

/// A `dot` as a contraction, and the sizes of the axes of its result.
pub(in crate::schedule) struct DotProduct {
    pub c: Contraction,
    batch: Vec<u64>,
    rows: Vec<u64>,
    columns: Vec<u64>,
}

impl DotProduct {
    /// The coordinates of an element of the result.
    pub(in crate::schedule) fn result_coordinates(&self, k: &Kernel, b: &Index, r: &Index, c: &Index) -> Vec<Index> {
        let mut at = Vec::new();
        for (x, dims) in [(b, &self.batch), (r, &self.rows), (c, &self.columns)] {
            at.extend(reshape_coordinates(std::slice::from_ref(x), &[dims.iter().product()], dims, &k.vars));
        }
        at
    }
}

/// The family of dots, as contractions over strides.
pub const FAMILY: Family = Family {
    name: "product",
    recipe: |_, request| Ok(matches!(request.op(), Op::Dot(_)).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_dot(root),
};

impl<'a> Emitter<'a> {
    /// Emits a dot; the root is the dot itself or its epilogue.
    pub(in crate::schedule) fn emit_dot(&mut self, root: KernelRoot<'_>) -> Result<()> {
        let anchor = root.anchor;
        if self.scope.comp.array_shape(anchor).elements() == 0 {
            return Ok(());
        }
        let left = self.value_buffers(self.scope.comp[anchor].operands[0])?.dense_buffer()?;
        let p = self.dot_contraction(anchor, left)?;
        self.emit_contraction(root, &p.c, &|k, b, r, c| p.result_coordinates(k, b, r, c))
    }

    /// The dot `id` as a contraction of the left side in buffer `left`.
    pub(in crate::schedule) fn dot_contraction(&mut self, id: InstId, left: BufId) -> Result<DotProduct> {
        let comp = self.scope.comp;
        let inst = &comp[id];
        let Op::Dot(d) = &inst.op else { return Err(unsupported_error(comp, id, "")) };
        let (x, y) = (comp.array_shape(inst.operands[0]).clone(), comp.array_shape(inst.operands[1]).clone());
        let (xs, ys) = (x.strides(), y.strides());
        let pairs = |a: &[usize], b: &[usize]| -> Vec<ContractionAxis> {
            a.iter()
                .zip(b)
                .map(|(&i, &j)| ContractionAxis { extent: x.dims[i], a: xs[i] as i64, b: ys[j] as i64 })
                .collect()
        };
        let free = |rank: usize, batch: &[usize], sum: &[usize]| {
            (0..rank).filter(|i| !batch.contains(i) && !sum.contains(i)).collect::<Vec<_>>()
        };
        let batch = pairs(&d.lhs_batch, &d.rhs_batch);
        let rows: Vec<ContractionAxis> = free(x.rank(), &d.lhs_batch, &d.lhs_contracting)
            .into_iter()
            .map(|i| ContractionAxis { extent: x.dims[i], a: xs[i] as i64, b: 0 })
            .collect();
        let columns: Vec<ContractionAxis> = free(y.rank(), &d.rhs_batch, &d.rhs_contracting)
            .into_iter()
            .map(|i| ContractionAxis { extent: y.dims[i], a: 0, b: ys[i] as i64 })
            .collect();
        let sizes = |axes: &[ContractionAxis]| axes.iter().map(|x| x.extent).collect::<Vec<u64>>();
        let dims = (sizes(&batch), sizes(&rows), sizes(&columns));
        let right = self.right_side(inst.operands[1])?;
        let mut c = Contraction {
            dtype: comp.array_shape(id).dtype,
            left,
            right,
            a0: 0,
            b0: 0,
            batch,
            rows,
            columns,
            sum: pairs(&d.lhs_contracting, &d.rhs_contracting),
            first_column: 0,
            sums_apart: None,
            direct_flops: None,
            inside: None,
        };
        let is_kept = self.scope.stages.kept.contains(&inst.operands[1]);
        if is_kept && self.product_facts(&c).reads_right_in_place(self.target) {
            c.right = ContractionRight::Buffer(self.value_buffers(inst.operands[1])?.dense_buffer()?);
        }
        Ok(DotProduct { c, batch: dims.0, rows: dims.1, columns: dims.2 })
    }

    /// Source of the elements of a right side `id`: a constant, plain, compressed or scaled, or a buffer.
    pub(in crate::schedule) fn right_side(&mut self, id: InstId) -> Result<ContractionRight> {
        if let Op::Constant(Literal::Array(t)) = &self.scope.comp[id].op {
            return Ok(ContractionRight::Constant(t.clone()));
        }
        if let Some(stored) = compressed_constants::find_compressed(self.scope.comp, id) {
            return Ok(ContractionRight::Stored(stored));
        }
        if let Some(scaled) = self.scope.stages.scaled.get(&id).cloned() {
            let by = self.value_buffers(scaled.by)?.dense_buffer()?;
            return Ok(ContractionRight::Scaled(scaled.numbers, by));
        }
        let value = self.value_buffers(id)?;
        value
            .leaves
            .first()
            .map(|&b| ContractionRight::Buffer(b))
            .ok_or_else(|| Error::internal("schedule", "no buffer"))
    }
}
