//! Sizes that are taken in steps: an image that is halved three times and joined with its halves has a height that is a multiple of 8.
use super::extent::Extent;
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::{Claim, ClaimQuantity, InstId};
use crate::lower::{SizeTracedLowering, TracedSize};
use crate::tensor::Size;

/// Steps that are looked for are no longer than this.
const LONGEST: u64 = 64;

/// A size is `by` times a number, and `rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// 1 or more.
    pub stride: u64,
    /// Less than `by`.
    pub offset: u64,
}

impl Progression {
    /// Whether every size can be taken.
    pub fn is_one(self) -> bool {
        self.stride == 1
    }
    /// The size of `number` steps.
    pub fn size(self, number: u64) -> u64 {
        self.stride.saturating_mul(number).saturating_add(self.offset)
    }
    fn steps_up_to(self, size: u64) -> u64 {
        size.saturating_sub(self.offset).div_ceil(self.stride)
    }
}

/// The steps of the sizes that the caller says.
#[derive(Clone, Debug)]
pub struct Steps {
    /// One a size.
    pub all: Vec<Progression>,
}

impl Steps {
    /// The distances from the bounds at which a function can be lowered.
    ///
    /// # Errors
    /// Those of lowering at the bounds.
    pub fn of(given: &[Size], traced: &SizeTracedLowering) -> Result<Steps> {
        let single = Steps { all: vec![Progression { stride: 1, offset: 0 }; given.len()] };
        let most: Vec<u64> = given.iter().map(|s| s.most).collect();
        (traced.0)(&single.traced(given, &most))?;
        let step = |i: usize| {
            let can = |less: u64| {
                let mut sizes = most.clone();
                sizes[i] -= less;
                (traced.0)(&single.traced(given, &sizes)).is_ok()
            };
            let room = most[i] - given[i].least.min(most[i]);
            let by =
                (1..=LONGEST.min(room)).find(|&less| can(less)).filter(|&by| by == 1 || 2 * by <= room && can(2 * by));
            let by = by.unwrap_or(1);
            Progression { stride: by, offset: most[i] % by }
        };
        Ok(Steps { all: (0..given.len()).map(step).collect() })
    }
    /// The sizes from the smallest on, each alone, for which a function can be lowered: windows may not fit over fewer elements.
    pub fn sound(&self, counted: &[Size], traced: &SizeTracedLowering) -> Vec<Size> {
        let mut sound = counted.to_vec();
        for size in 0..counted.len() {
            let mut point: Vec<u64> = counted.iter().map(|s| s.most).collect();
            let mut holds = |n: u64| {
                point[size] = n;
                (traced.0)(&self.traced(counted, &point)).is_ok()
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
    /// Sizes to lower a function for, with `at_hand` counts of steps.
    pub fn traced(&self, counted: &[Size], at_hand: &[u64]) -> Vec<TracedSize> {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let one = |((size, &n), step): ((&Size, &u64), &Progression)| TracedSize {
            stride: count(step.stride),
            offset: count(step.offset),
            ..TracedSize::from_size(size, n)
        };
        counted.iter().zip(at_hand).zip(&self.all).map(one).collect()
    }
    /// How many steps each size is.
    pub fn counted(&self, given: &[Size]) -> Vec<Size> {
        let one = |(size, step): (&Size, &Progression)| match step.is_one() {
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
    /// The sizes that are so many steps; what is behind those that the caller says stays.
    pub fn sizes(&self, numbers: &[u64]) -> Vec<u64> {
        let step = |i: usize| self.all.get(i).copied().unwrap_or(Progression { stride: 1, offset: 0 });
        numbers.iter().enumerate().map(|(i, &n)| step(i).size(n)).collect()
    }
    /// How many steps these sizes are; what is behind those that the caller says stays.
    ///
    /// # Errors
    /// `Code::BadInputs` for a size between two steps.
    pub fn counts(&self, sizes: &[u64]) -> Result<Vec<u64>> {
        let one = |(i, &n): (usize, &u64)| {
            let Progression { stride: by, offset: rest } =
                self.all.get(i).copied().unwrap_or(Progression { stride: 1, offset: 0 });
            let told = || format!("a size of {n}, where it must be a multiple of {by} and {rest}");
            let count = n.checked_sub(rest).filter(|n| n % by == 0).map(|n| n / by);
            count.ok_or_else(|| Diagnostic::new(Code::BadInputs, told()).into())
        };
        sizes.iter().enumerate().map(one).collect()
    }
    /// Checks that each size is a whole number of steps: the remainder may be nothing but 0.
    pub fn claims(&self, given: &[Size]) -> Vec<Claim> {
        let one = |(size, step): (&Size, &Progression)| Claim {
            node: format!("{}_beyond_multiple_of_{}", size.name, step.stride),
            quantity: ClaimQuantity::Size,
            value: InstId(0),
            most: 0,
            is_allowed: false,
        };
        given.iter().zip(&self.all).filter(|(_, step)| !step.is_one()).map(one).collect()
    }
    /// The size of this number, as a formula of steps.
    pub fn extent(&self, size: usize) -> Extent {
        let Progression { stride: by, offset: rest } = self.all[size];
        Extent::var(size).scale(by as i64).and_then(|e| e.offset_by(rest as i64)).unwrap_or_default()
    }
    /// The number of the size that `extent`, a formula of steps, is.
    pub fn size_of(&self, extent: &Extent) -> Option<usize> {
        (0..self.all.len()).find(|&i| self.extent(i) == *extent)
    }
}
