//! Dynamic sizes that come in steps: a network that halves an image three times and concatenates the halves upsampled again, as U-Net does,
//! takes heights that are multiples of 8.
use super::extent::Extent;
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::{Claim, ClaimQuantity, InstId};
use crate::lower::{SizeTracedLowering, TracedSize};
use crate::tensor::Size;

/// Largest stride that is searched for.
const MAX_STRIDE: u64 = 64;

/// Sizes of the form `stride · count + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// Difference between consecutive sizes, at least 1.
    pub stride: u64,
    /// Size modulo `stride`.
    pub offset: u64,
}

impl Progression {
    /// Whether every size is allowed, that is the stride is 1.
    pub fn is_every_size(self) -> bool {
        self.stride == 1
    }
    /// The size with the count `number`.
    pub fn size_of_count(self, number: u64) -> u64 {
        self.stride.saturating_mul(number).saturating_add(self.offset)
    }
    fn steps_up_to(self, size: u64) -> u64 {
        size.saturating_sub(self.offset).div_ceil(self.stride)
    }
}

/// Strides and offsets of the caller's sizes.
#[derive(Clone, Debug)]
pub struct SizeSteps {
    /// Progression of each size.
    pub all: Vec<Progression>,
}

impl SizeSteps {
    /// Finds the steps of each size: the smallest distance below its upper bound at which the function can be lowered.
    ///
    /// # Errors
    /// Those of lowering at the bounds.
    pub fn find_steps(given: &[Size], traced: &SizeTracedLowering) -> Result<SizeSteps> {
        let single = SizeSteps { all: vec![Progression { stride: 1, offset: 0 }; given.len()] };
        let most: Vec<u64> = given.iter().map(|s| s.most).collect();
        (traced.0)(&single.traced_sizes(given, &most))?;
        let step = |i: usize| {
            let can = |less: u64| {
                let mut sizes = most.clone();
                sizes[i] -= less;
                (traced.0)(&single.traced_sizes(given, &sizes)).is_ok()
            };
            let room = most[i] - given[i].least.min(most[i]);
            let by = (1..=MAX_STRIDE.min(room))
                .find(|&less| can(less))
                .filter(|&by| by == 1 || 2 * by <= room && can(2 * by));
            let by = by.unwrap_or(1);
            Progression { stride: by, offset: most[i] % by }
        };
        Ok(SizeSteps { all: (0..given.len()).map(step).collect() })
    }
    /// Raises the lower bound of each size, with the others at their upper bounds, until the function can be lowered: windows may not fit into
    /// fewer elements.
    pub fn lowerable_sizes(&self, counted: &[Size], traced: &SizeTracedLowering) -> Vec<Size> {
        let mut sound = counted.to_vec();
        for size in 0..counted.len() {
            let mut point: Vec<u64> = counted.iter().map(|s| s.most).collect();
            let mut holds = |n: u64| {
                point[size] = n;
                (traced.0)(&self.traced_sizes(counted, &point)).is_ok()
            };
            let (mut below, mut least) = (counted[size].least, counted[size].most);
            if holds(below) {
                continue;
            }
            while least - below > 1 {
                let middle = below + (least - below) / 2;
                if holds(middle) { least = middle } else { below = middle }
            }
            sound[size].least = least;
        }
        sound
    }
    /// Sizes to trace a lowering with, at the concrete counts `at_hand`.
    pub fn traced_sizes(&self, counted: &[Size], at_hand: &[u64]) -> Vec<TracedSize> {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let one = |((size, &n), step): ((&Size, &u64), &Progression)| TracedSize {
            stride: count(step.stride),
            offset: count(step.offset),
            ..TracedSize::from_size(size, n)
        };
        counted.iter().zip(at_hand).zip(&self.all).map(one).collect()
    }
    /// Sizes counted in steps, with the ranges of the counts.
    pub fn count_ranges(&self, given: &[Size]) -> Vec<Size> {
        let one = |(size, step): (&Size, &Progression)| match step.is_every_size() {
            true => size.clone(),
            false => Size {
                name: format!("{}/{}", size.name, step.stride),
                least: step.steps_up_to(size.least),
                most: step.steps_up_to(size.most),
                is_result: false,
                is_check: false,
            },
        };
        given.iter().zip(&self.all).map(one).collect()
    }
    /// Converts counts to sizes; numbers behind those of the caller's sizes are returned unchanged.
    pub fn sizes_of_counts(&self, numbers: &[u64]) -> Vec<u64> {
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
    /// Run-time checks that the sizes of a call are in steps: the capacity of the remainder is 0.
    pub fn stride_claims(&self, given: &[Size]) -> Vec<Claim> {
        let one = |(size, step): (&Size, &Progression)| Claim {
            node: format!("{}_beyond_multiple_of_{}", size.name, step.stride),
            quantity: ClaimQuantity::Size,
            value: InstId(0),
            most: 0,
            is_allowed: false,
        };
        given.iter().zip(&self.all).filter(|(_, step)| !step.is_every_size()).map(one).collect()
    }
    /// Expression of the caller's size with this index over the counts of steps.
    pub fn size_extent(&self, size: usize) -> Extent {
        let Progression { stride: by, offset: rest } = self.all[size];
        Extent::var(size).scale(by as i64).and_then(|e| e.offset_by(rest as i64)).unwrap_or_default()
    }
    /// Index of the caller's size that equals `extent`, an expression over the counts of steps; `None` for any other expression.
    pub fn size_with_extent(&self, extent: &Extent) -> Option<usize> {
        (0..self.all.len()).find(|&i| self.size_extent(i) == *extent)
    }
}
