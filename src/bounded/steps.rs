//! Dynamic sizes that come in steps: a network that halves an image three times and concatenates the halves upsampled again, as U-Net does,
//! takes heights that are multiples of 8.
use super::extent::Extent;
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::{BoundCheck, CheckedQuantity, InstId};
use crate::lower::SteppedSize;
use crate::tensor::Size;

/// Sizes of the form `stride · count + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// Difference between consecutive sizes, at least 1.
    pub stride: u64,
    /// Size modulo `stride`.
    pub offset: u64,
}

impl Progression {
    /// Progression that contains the ascending numbers `all`; `None` unless they are evenly spaced with a stride of at least 2.
    pub fn from_sorted(all: &[u64]) -> Option<Progression> {
        let [first, second, ..] = *all else { return None };
        let stride = second - first;
        let is_regular = stride > 1 && all.windows(2).all(|pair| pair[1] - pair[0] == stride);
        is_regular.then_some(Progression { stride, offset: first % stride })
    }
    /// Composition of two progressions: the sizes of this one at the counts that lie in `counts`; `None` on overflow.
    pub fn compose(self, counts: Progression) -> Option<Progression> {
        let offset = self.stride.checked_mul(counts.offset)?.checked_add(self.offset)?;
        Some(Progression { stride: self.stride.checked_mul(counts.stride)?, offset })
    }
    /// Size at a symbolic count, `stride · count + offset`; `None` if the expression is too long.
    pub fn size_expr_of_count(self, count: &Extent) -> Option<Extent> {
        count.scale(i64::try_from(self.stride).ok()?)?.offset_by(i64::try_from(self.offset).ok()?)
    }
    /// Whether every size is allowed, that is the stride is 1.
    pub fn is_every_size(self) -> bool {
        self.stride == 1
    }
    /// The size after `number` steps: `stride · number + offset`.
    pub fn size_of_count(self, number: u64) -> u64 {
        self.stride.saturating_mul(number).saturating_add(self.offset)
    }
    /// Smallest and largest count of the sizes from `least` to `most`.
    fn count_range(self, least: u64, most: u64) -> (u64, u64) {
        let above_offset = |size: u64| size.saturating_sub(self.offset);
        (above_offset(least).div_ceil(self.stride), above_offset(most) / self.stride)
    }
}

/// Strides and offsets of the caller's sizes.
#[derive(Clone, Debug)]
pub struct SizeSteps {
    /// Progression of each size.
    pub all: Vec<Progression>,
}

impl SizeSteps {
    /// Stride 1 and offset 0 for `count` sizes: every size is allowed.
    pub fn unit(count: usize) -> SizeSteps {
        SizeSteps { all: vec![Progression { stride: 1, offset: 0 }; count] }
    }
    /// The caller's sizes with their strides and offsets, as [`crate::lower::SizeRecordingLowering`] takes them; `counted` holds the
    /// ranges of the step counts, `counts` the count of each size at which the function is lowered.
    pub fn stepped_sizes(&self, counted: &[Size], counts: &[u64]) -> Vec<SteppedSize> {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let one = |((size, &n), step): ((&Size, &u64), &Progression)| SteppedSize {
            stride: count(step.stride),
            offset: count(step.offset),
            ..SteppedSize::from_size(size, n)
        };
        counted.iter().zip(counts).zip(&self.all).map(one).collect()
    }
    /// Sizes counted in steps, with the ranges of the counts.
    pub fn step_count_ranges(&self, given: &[Size]) -> Vec<Size> {
        let one = |(size, step): (&Size, &Progression)| match step.is_every_size() {
            true => size.clone(),
            false => {
                let (least, most) = step.count_range(size.least, size.most);
                Size { name: format!("{}/{}", size.name, step.stride), least, most, is_result: false, is_check: false }
            }
        };
        given.iter().zip(&self.all).map(one).collect()
    }
    /// Converts counts to sizes, `stride · count + offset`; numbers behind those of the caller's sizes are returned unchanged.
    pub fn sizes_from_counts(&self, numbers: &[u64]) -> Vec<u64> {
        let step = |i: usize| self.all.get(i).copied().unwrap_or(Progression { stride: 1, offset: 0 });
        numbers.iter().enumerate().map(|(i, &n)| step(i).size_of_count(n)).collect()
    }
    /// Converts sizes to counts; numbers behind those of the caller's sizes are returned unchanged.
    ///
    /// # Errors
    /// `Code::BadInputs` for a size that is no multiple of the stride plus the offset.
    pub fn counts_of_sizes(&self, sizes: &[u64]) -> Result<Vec<u64>> {
        let one = |(i, &n): (usize, &u64)| {
            let Progression { stride: by, offset: rest } =
                self.all.get(i).copied().unwrap_or(Progression { stride: 1, offset: 0 });
            let told = || format!("a size of {n}, where it must be a multiple of {by} and {rest}");
            let count = n.checked_sub(rest).filter(|n| n % by == 0).map(|n| n / by);
            count.ok_or_else(|| Diagnostic::new(Code::BadInputs, told()).into())
        };
        sizes.iter().enumerate().map(one).collect()
    }
    /// Run-time checks that each size of a call, less its offset, is a multiple of its stride.
    pub fn stride_checks(&self, given: &[Size]) -> Vec<BoundCheck> {
        let one = |(size, step): (&Size, &Progression)| BoundCheck {
            node: format!("{}_beyond_multiple_of_{}", size.name, step.stride),
            quantity: CheckedQuantity::Size,
            value: InstId(0),
            most: 0,
            is_allowed: false,
        };
        given.iter().zip(&self.all).filter(|(_, step)| !step.is_every_size()).map(one).collect()
    }
    /// The caller's size with the index `size`, as an expression over the step counts.
    pub fn caller_size_expr(&self, size: usize) -> Extent {
        self.all[size].size_expr_of_count(&Extent::var(size)).unwrap_or_default()
    }
    /// Index of the caller's size that equals `extent`, an expression over the counts of steps; `None` for any other expression.
    pub fn index_of_caller_size(&self, extent: &Extent) -> Option<usize> {
        (0..self.all.len()).find(|&i| self.caller_size_expr(i) == *extent)
    }
}
