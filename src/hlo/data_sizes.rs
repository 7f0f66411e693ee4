//! Data-dependent sizes (known only from values at run time), and run-time checks of what a call may ask for.
use super::{Builder, CompId, InstId};
use crate::scalar::Direction;
use crate::symbolic::{Dim, SizeExpr, trace};
use crate::tensor::{Bounds, DType};

/// A data-dependent size: known only from values at run time, such as the number of nonzero elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataDependentSize {
    /// The size, an integer scalar of a computation.
    pub count: InstId,
    /// Computation that contains `count`.
    pub place: OwningComputation,
    /// Size that arrays are given while the function is lowered.
    pub assumed: Dim,
    /// Upper bound of the size.
    pub most: Dim,
    /// Whether another shape requires the size to equal its assumed value.
    pub is_fixed: bool,
}

/// The computation that determines a data-dependent size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwningComputation {
    /// An open computation, by the depth of open computations including it.
    Open(usize),
    /// A closed computation.
    Closed(CompId),
}

/// Constraint that a data-dependent size equals an expression of other sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeEquality {
    /// Index of the data-dependent size, in the order of [`super::Builder::add_data_dependent_size`].
    pub number: usize,
    /// Expression over the counts of the caller's sizes, by their indices, and over earlier data-dependent sizes, whose indices follow
    /// behind those.
    pub equal_to: SizeExpr<usize>,
}

/// Run-time check of a number against an upper bound: a call in which the number exceeds it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundCheck {
    /// The TensorFlow node that the check is for.
    pub node: String,
    /// Quantity that the checked number counts.
    pub quantity: CheckedQuantity,
    /// The checked number, `s32[]`; negative if the code can't do what the call requires.
    pub value: InstId,
    /// Upper bound of the number; a call that exceeds it fails.
    pub most: u64,
    /// Whether the caller allowed the bound, which does not follow from the program.
    pub is_allowed: bool,
}

/// Quantity that a run-time check ([`BoundCheck`]) limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedQuantity {
    /// Elements along an axis.
    Size,
    /// Iterations of a loop, for which lists have room.
    Rounds,
    /// Nothing: the value is 1 if a run-time check fails.
    Check(RuntimeCheck),
}

/// Run-time check of `--checked`, named after the error that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeCheck {
    /// An index is out of range.
    Index,
    /// Segment numbers are negative, too large or not sorted.
    Segment,
    /// A slice leads out of the array.
    Slice,
    /// The condition of an assertion is false.
    Assertion,
    /// An element is NaN or infinite.
    NotFinite,
    /// An integer is divided by zero.
    DivisionByZero,
    /// An integer is raised to a negative power.
    NegativePower,
    /// A vector is not a permutation.
    Permutation,
    /// A label is out of range.
    Label,
    /// A length is out of range.
    Length,
    /// An element is taken from a list or stack without elements.
    EmptyList,
    /// Parameters of a distribution are out of range.
    Parameters,
    /// A key is a marker of empty or deleted buckets of the table.
    Key,
}

impl RuntimeCheck {
    /// The text of the error where this check fails.
    pub fn failure_text(self) -> &'static str {
        match self {
            RuntimeCheck::Index => "an index is out of range",
            RuntimeCheck::Segment => "a segment number is out of range or out of order",
            RuntimeCheck::Slice => "the slice leads out of the array",
            RuntimeCheck::Assertion => "the assertion failed",
            RuntimeCheck::NotFinite => "an element is NaN or infinite",
            RuntimeCheck::DivisionByZero => "an integer is divided by zero",
            RuntimeCheck::NegativePower => "an integer is raised to a negative power",
            RuntimeCheck::Permutation => "the numbers are no permutation",
            RuntimeCheck::Label => "a label is out of range",
            RuntimeCheck::Length => "a length is out of range",
            RuntimeCheck::EmptyList => "the list is empty",
            RuntimeCheck::Parameters => "the parameters are out of range",
            RuntimeCheck::Key => "a key marks empty or deleted places of the table",
        }
    }
}

/// Selection of the run-time checks that are compiled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeChecks {
    /// No checks.
    #[default]
    Off,
    /// All checks.
    On,
    /// Checks that the compiler cannot prove. All sizes must be fixed, so that a proof for one call holds for all.
    Unproven,
}

/// Assumed values of data-dependent sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AssumedSizes {
    /// Each size has its upper bound.
    #[default]
    Bounds,
    /// Sizes of at least 2 that differ from one another, as far as their bounds allow.
    Distinct,
    /// Values in the order of [`super::Builder::add_data_dependent_size`], clamped to the bounds; further sizes have their bounds.
    Values(Vec<u64>),
}

/// Assumptions about data-dependent sizes under which a function is lowered.
#[derive(Clone, Debug, Default)]
pub struct SizeAssumptions {
    /// Assumed values of the data-dependent sizes without an equality.
    pub sizes: AssumedSizes,
    /// Bounds that the caller allows for sizes and numbers of rounds whose bounds do not follow from the program.
    pub bounds: Bounds,
    /// Constraints on data-dependent sizes.
    pub equalities: Vec<SizeEquality>,
    /// Counts of the caller's sizes, by their indices in `equalities`.
    pub counts: Vec<Dim>,
    /// Selection of the run-time checks that are compiled in.
    pub checks: RuntimeChecks,
    /// The sizes of each feed, if they are recorded; otherwise the feeds determine them.
    pub feeds: Vec<Vec<Dim>>,
}

impl Builder<Dim> {
    /// Records a run-time check against a bound that may vary: calls fail in which the value of `bound_check` is above `most`.
    pub fn check_at_most(&mut self, most: Dim, bound_check: BoundCheck) {
        if !most.varies() {
            return self.add_bound_check(BoundCheck { most: most.guarded_count(), ..bound_check });
        }
        let room = u64::try_from(trace::range_of(most).most).unwrap_or(u64::MAX).min(i32::MAX as u64 - 1);
        let (limit, beyond) = (self.scalar(DType::S32, most), self.scalar(DType::S32, Dim::from(room + 1)));
        let is_more = self.compare(Direction::Gt, bound_check.value, limit);
        let value = self.select(is_more, beyond, bound_check.value);
        self.add_bound_check(BoundCheck { value, most: room, ..bound_check });
    }
    /// The largest value of `size` for any data: an expression of the sizes that the caller gives.
    pub fn size_upper_bound(&self, size: Dim) -> Dim {
        match self.data_dependent_sizes().iter().find(|found| size.varies() && found.assumed.is_same(size)) {
            Some(found) => self.size_upper_bound(found.most),
            None if trace::depends_on_data(size) => {
                Dim::from(u64::try_from(trace::range_of(size).most).unwrap_or(u64::MAX))
            }
            None => size,
        }
    }
    /// Whether `a` is less than `b` in every call that does not fail; if data-dependent sizes decide, a run-time check is recorded.
    pub fn require_less(&mut self, a: Dim, b: Dim) -> bool {
        if !trace::comparison_depends_on_data(a, trace::Relation::Less, b) {
            return a < b;
        }
        let value = self.scalar(DType::S32, b - a - 1);
        let node = self.metadata.op_name.clone();
        self.add_bound_check(BoundCheck {
            node,
            quantity: CheckedQuantity::Size,
            value,
            most: i32::MAX as u64,
            is_allowed: false,
        });
        true
    }
}
