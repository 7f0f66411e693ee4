//! Strided slices whose number of elements is data-dependent, such as `x[:n]`.
use super::strided_slice::{DimSlice, SliceBounds, SliceRange, clamp_index};
use crate::diag::Result;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::LowerCtx;
use crate::ops::math::special;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Elements that a slice with run-time bounds takes of a dimension.
#[derive(Clone, Copy)]
pub(super) enum DataDependentSlice {
    /// Slice of consecutive elements: position of the first, and number of elements.
    From(Dim, Dim),
    /// Slice of the elements at these indices.
    At(InstId),
}

impl SliceBounds {
    /// Slice of a dimension of size `d`, with entry `i` of begin and end known only at run time, so that the number of elements
    /// is data-dependent.
    pub(super) fn data_dependent_slice(
        &self,
        cx: &mut LowerCtx,
        i: usize,
        open_begin: bool,
        open_end: bool,
        d: Dim,
    ) -> Result<DimSlice> {
        let stride = self.strides[i];
        if stride == 0 {
            return Err(cx.shape_mismatch("a stride of 0"));
        }
        let is_wide = cx.dtype(self.at)? == DType::S64 || cx.dtype(self.at + 1)? == DType::S64;
        let dtype = if is_wide { DType::S64 } else { DType::S32 };
        let limits = if stride > 0 { [Dim::from(0), d] } else { [Dim::from(-1), d - 1] };
        let [first, last] = if stride > 0 { limits } else { [limits[1], limits[0]] };
        let begin = Some(first).filter(|_| open_begin).or(self.begin[i].as_size().map(|v| clamp_index(v, d, limits)));
        let end = Some(last).filter(|_| open_end).or(self.end[i].as_size().map(|v| clamp_index(v, d, limits)));
        let from = match begin {
            Some(known) => cx.b.scalar(dtype, known),
            None => self.end(cx, self.at, i, dtype, d, limits)?,
        };
        let to = match end {
            Some(known) => cx.b.scalar(dtype, known),
            None => self.end(cx, self.at + 1, i, dtype, d, limits)?,
        };
        let span = if stride > 0 { cx.b.sub(to, from) } else { cx.b.sub(from, to) };
        let none = cx.b.scalar(dtype, 0.0);
        let span = cx.b.max(span, none);
        let by = stride.unsigned_abs();
        let count = special::div_ceil(cx.b, span, Dim::from(by));
        let room = end.unwrap_or(last) - begin.unwrap_or(first);
        let room = if stride > 0 { room } else { -room }.max(0);
        let made = format!("the slice `{}`", cx.node.name);
        let count = cx.data_dependent_size(count, room.div_ceil(by), &made)?;
        let picked = match begin {
            Some(begin) if stride == 1 => DataDependentSlice::From(begin, count),
            _ => {
                let steps = cx.b.iota(dtype, &[count], 0);
                let by = cx.b.scalar(dtype, stride as f64);
                let steps = cx.b.mul(steps, by);
                DataDependentSlice::At(cx.b.add(steps, from))
            }
        };
        Ok(DimSlice { start: None, picked: Some(picked), taken: SliceRange { start: Dim::from(0), stride: 1, count } })
    }

    /// Run-time bound of a range over `d` elements, entry `i` of input `at`, clamped to `limits`.
    fn end(&self, cx: &mut LowerCtx, at: usize, i: usize, dtype: DType, d: Dim, limits: [Dim; 2]) -> Result<InstId> {
        let end = self.wrapped_index(cx, at, i, d)?;
        let end = cx.b.convert(end, dtype);
        let (low, high) = (cx.b.scalar(dtype, limits[0]), cx.b.scalar(dtype, limits[1]));
        Ok(cx.b.elementwise(ScalarOp::Clamp, &[low, end, high]))
    }
}
