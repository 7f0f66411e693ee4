//! Conversion of a gather at a single index to a slice: JAX slices arrays of open sizes by gathers.
use super::converter::{Converter, error_at};
use super::tree::Operation;
use crate::diag::{Code, Result};
use crate::hlo::InstId;
use crate::hlo::attrs::GatherDims;
use crate::hlo::symbolic::{self, SliceDim};
use crate::symbolic::Dim;

impl Converter<'_, '_> {
    /// Converts a gather at one index to a slice; `None` for one that takes several slices, or maps indices in another way.
    pub(super) fn gather_as_slice(
        &mut self,
        dims: &GatherDims<Dim>,
        operands: &[InstId],
        shape: &symbolic::Shape,
    ) -> Option<InstId> {
        let &[x, indices] = operands else { return None };
        let array = self.builder().shape(x).as_array()?.clone();
        let places = self.builder().shape(indices).as_array()?.clone();
        let mut axes = dims.start_index_map.clone();
        axes.sort_unstable();
        axes.dedup();
        let one = places.rank() == 1 && dims.index_vector_dim == 0 && dims.operand_batching_dims.is_empty();
        if !one || axes.len() != dims.start_index_map.len() || axes.iter().any(|&a| a >= array.rank()) {
            return None;
        }
        if dims.slice_sizes.len() != array.rank() || dims.slice_sizes.iter().zip(&array.dims).any(|(s, d)| s > d) {
            return None;
        }
        let own = symbolic::Shape::array(array.dtype, dims.slice_sizes.clone());
        let known = self.host.known(indices).and_then(|known| known.with_expressions().sizes);
        let part = match known {
            Some(known) => {
                let mut starts = vec![Dim::from(0); array.rank()];
                for (&axis, &start) in dims.start_index_map.iter().zip(&known) {
                    let last = array.dims[axis] - dims.slice_sizes[axis];
                    starts[axis] = start.max(0).min(last);
                }
                let one = |(&start, &size): (&Dim, &Dim)| SliceDim { start, limit: start + size, stride: Dim::from(1) };
                let slices = starts.iter().zip(&dims.slice_sizes).map(one).collect();
                self.builder().push(symbolic::Op::Slice(slices), &[x], own)
            }
            None => {
                let zero = self.builder().scalar(places.dtype, 0.0);
                let mut operands = vec![x];
                operands.resize(array.rank() + 1, zero);
                for (i, &axis) in (0u64..).zip(&dims.start_index_map) {
                    let start = self.builder().slice_axis(indices, 0, Dim::from(i), Dim::from(i + 1));
                    operands[axis + 1] = self.builder().reshape(start, &[]);
                }
                self.builder().push(symbolic::Op::DynamicSlice(dims.slice_sizes.clone()), &operands, own)
            }
        };
        Some(self.builder().push(symbolic::Op::Reshape, &[part], shape.clone()))
    }

    /// Converts a slice whose start is known only at run time and whose size is an expression of sizes; `None` if the start is one too,
    /// or for strides.
    pub(super) fn convert_dynamic_slice(&mut self, op: &Operation, operands: &[InstId]) -> Result<Option<InstId>> {
        let &[x, starts, limits, strides] = operands else { return Ok(None) };
        let strides = self.host.known(strides).and_then(|known| known.value.to_i64s());
        if self.host.known(starts).is_some() || strides.is_none_or(|all| all.iter().any(|&stride| stride != 1)) {
            return Ok(None);
        }
        let dims = self.builder().dims(x).to_vec();
        let mut sizes = Vec::with_capacity(dims.len());
        let mut from = vec![x];
        for (axis, &n) in dims.iter().enumerate() {
            let size = self.host.difference(limits, starts, Dim::from(axis)).and_then(Dim::into_nonnegative);
            let size = size.filter(|&size| size <= n);
            let told = format!("how many elements are taken along axis {axis} depends on values at run time");
            sizes.push(size.ok_or_else(|| error_at(op, Code::HloUnsupported, told))?);
            let start = self.builder().slice_axis(starts, 0, Dim::from(axis), Dim::from(axis + 1));
            from.push(self.builder().reshape(start, &[]));
        }
        Ok(Some(self.builder().add_inst(symbolic::Op::DynamicSlice(sizes), &from)))
    }
}
