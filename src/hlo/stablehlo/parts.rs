//! A gather at one place, which is how JAX slices arrays of open sizes: a part of its operand.
use super::converter::Converter;
use crate::hlo::attrs::GatherDims;
use crate::hlo::open::{self, SliceDim};
use crate::hlo::{InstId, Op, Shape};

impl Converter<'_, '_> {
    /// The part of the operand that a gather takes at one place; `None` for one that takes several parts, or joins indices in another way.
    pub(super) fn part(&mut self, dims: &GatherDims, operands: &[InstId], shape: &Shape) -> Option<InstId> {
        let &[x, indices] = operands else { return None };
        let array = self.b().shape(x).pinned().as_array()?.clone();
        let places = self.b().shape(indices).pinned().as_array()?.clone();
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
        let own = Shape::array(array.dtype, dims.slice_sizes.clone());
        let part = match self.host.constant(indices).and_then(|t| t.to_i64s()) {
            Some(known) => {
                let mut starts = vec![0; array.rank()];
                for (&axis, &start) in dims.start_index_map.iter().zip(&known) {
                    let last = array.dims[axis] - dims.slice_sizes[axis];
                    starts[axis] = u64::try_from(start).unwrap_or(0).min(last);
                }
                let slices = starts.iter().zip(&dims.slice_sizes);
                let slices = slices.map(|(&start, &size)| SliceDim::new(start, start + size)).collect();
                self.b().push(open::Op::Slice(slices), &[x], own.fixed())
            }
            None => {
                let zero = self.b().scalar(places.dtype, 0.0);
                let mut operands = vec![x];
                operands.resize(array.rank() + 1, zero);
                for (i, &axis) in (0..).zip(&dims.start_index_map) {
                    let slice = vec![SliceDim::new(i, i + 1)];
                    let start =
                        self.b().push(open::Op::Slice(slice), &[indices], Shape::array(places.dtype, [1]).fixed());
                    operands[axis + 1] =
                        self.b().push(open::Op::Reshape, &[start], open::Shape::array(places.dtype, []));
                }
                self.b().push(Op::DynamicSlice(dims.slice_sizes.clone()).fixed(), &operands, own.fixed())
            }
        };
        Some(self.b().push(open::Op::Reshape, &[part], shape.fixed()))
    }
}
