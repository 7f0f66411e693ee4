//! The sizes of a module under construction that only a call determines: data-dependent sizes with their assumed values, constants that
//! are computed from sizes, and the run-time checks that calls must pass.
use super::Builder;
use crate::hlo::data_sizes::{
    AssumedSizes, BoundCheck, DataDependentSize, OwningComputation, RuntimeChecks, SizeAssumptions, SizeEquality,
};
use crate::hlo::size::SignedSize;
use crate::hlo::{InstId, Literal, Op, SizeRepr, decision};
use crate::symbolic::{Dim, trace};
use crate::tensor::{DType, Tensor};

impl<D: SizeRepr> Builder<D> {
    /// The varying data-dependent sizes that values of a computation determine, with their numbers.
    pub(super) fn sizes(&self, place: OwningComputation) -> Vec<(usize, InstId)> {
        let varying = self.found.iter().filter(|f| !f.is_fixed).enumerate();
        varying.filter(|(_, f)| f.place == place).map(|(number, f)| (number, f.count)).collect()
    }
    /// The constants of the innermost open computation whose elements vary with sizes, in order.
    pub(super) fn size_constants(&self) -> Vec<(InstId, Vec<D::SignedSize>)> {
        let varies = |elements: &[D::SignedSize]| elements.iter().any(|&e| e.into().varies());
        let told = self.recorded_constants.last().into_iter().flatten().filter(|(_, elements)| varies(elements));
        let mut all: Vec<_> = told.map(|(&id, elements)| (id, elements.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
    /// Sets the assumptions about data-dependent sizes.
    pub fn set_size_assumptions(&mut self, assumed: SizeAssumptions) {
        self.assumed = assumed;
    }
    /// Whether run-time checks are compiled in.
    pub fn has_runtime_checks(&self) -> bool {
        self.assumed.checks != RuntimeChecks::Off
    }
    /// Whether run-time checks that are known to hold are left out.
    pub fn omits_proven_checks(&self) -> bool {
        self.assumed.checks == RuntimeChecks::Unproven && self.found.is_empty()
    }
    /// The data-dependent sizes in the order in which they were met.
    pub fn data_dependent_sizes(&self) -> &[DataDependentSize] {
        &self.found
    }
    /// Data-dependent sizes that values of the innermost open computation determine.
    pub fn local_data_dependent_sizes(&self) -> impl Iterator<Item = &DataDependentSize> {
        let here = OwningComputation::Open(self.open.len());
        self.found.iter().filter(move |f| f.place == here)
    }
    /// Assumes that data-dependent sizes from `first` on differ from their assumed values, to find what depends on them; `None` ends
    /// that. Returns the previous `first`.
    pub fn perturb_sizes_from(&mut self, first: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.perturbed_from, first)
    }
    /// Assumes that data-dependent sizes from `first` on equal their upper bounds, to find how much room is needed; `None` ends that.
    /// Returns the previous `first`.
    pub fn maximize_sizes_from(&mut self, first: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.maximal_from, first)
    }
    /// Records that a constant of the innermost open computation has elements computed from sizes, and their expressions.
    pub fn record_size_constant(&mut self, constant: InstId, elements: Vec<D::SignedSize>) {
        if let Some(told) = self.recorded_constants.last_mut() {
            told.insert(constant, elements);
        }
    }
    /// Records that a constant of the innermost open computation has elements computed from sizes that do not vary.
    pub fn record_fixed_constant(&mut self, constant: InstId) {
        let Op::Constant(Literal::Array(t)) = &self.current_computation().insts[constant].op else { return };
        let fixed = t.to_i64s().unwrap_or_default().into_iter().map(D::SignedSize::from).collect();
        if self.size_constant_elements(constant).is_none() {
            self.record_size_constant(constant, fixed);
        }
    }
    /// The expressions of a constant's elements in row-major order, if they were recorded in the innermost open computation.
    pub fn size_constant_elements(&self, constant: InstId) -> Option<&[D::SignedSize]> {
        self.recorded_constants.last()?.get(&constant).map(Vec::as_slice)
    }
    /// A constant of type `dtype` whose elements are expressions of sizes.
    pub fn size_constant(&mut self, dtype: DType, dims: &[u64], elements: Vec<D::SignedSize>) -> InstId {
        let bytes = elements.iter().flat_map(|n| Tensor::scalar_from_i64(dtype, n.at_current_sizes()).bytes.to_vec());
        let constant = self.constant(Tensor::new(dtype, dims.to_vec(), bytes.collect::<Vec<u8>>()));
        self.record_size_constant(constant, elements);
        constant
    }
    /// A vector of integers, some of which may be expressions of sizes.
    pub fn numbers(&mut self, dtype: DType, numbers: &[Dim]) -> InstId
    where
        D: SizeRepr<SignedSize = Dim>,
    {
        let count = numbers.len() as u64;
        if numbers.iter().any(|n| n.varies()) {
            return self.size_constant(dtype, &[count], numbers.to_vec());
        }
        let bytes = numbers.iter().flat_map(|n| Tensor::scalar_from_i64(dtype, n.concrete_value()).bytes.to_vec());
        self.constant(Tensor::new(dtype, vec![count], bytes.collect::<Vec<u8>>()))
    }
    /// Whether a value of the innermost open computation is computed from sizes.
    pub fn depends_on_sizes(&self, id: InstId) -> bool {
        self.recorded_constants
            .last()
            .is_some_and(|sizes| !decision::sizes_determining(self.current_computation(), sizes, id).is_empty())
    }
    /// The upper bound that the caller allows for a data-dependent size at a node, if nothing else bounds it.
    pub fn bound(&self, node: &str) -> u64 {
        self.assumed.bounds.node_bound(node)
    }
    /// Records a run-time check: calls fail whose value exceeds the bound. Only checks of the entry take effect; those of an
    /// inner computation must be carried out of it by whoever opened it.
    pub fn add_bound_check(&mut self, bound_check: BoundCheck) {
        if let Some(bound_checks) = self.bound_checks.last_mut() {
            bound_checks.push(bound_check);
        }
    }
    /// Run-time checks and requested capacities of the innermost open computation, in the order in which they were recorded.
    pub fn bound_checks(&self) -> &[BoundCheck] {
        self.bound_checks.last().map_or(&[], Vec::as_slice)
    }
    /// Removes the checks that the innermost open computation recorded after its first `before` ones, and returns them.
    pub fn take_bound_checks(&mut self, before: usize) -> Vec<BoundCheck> {
        self.bound_checks.last_mut().map_or_else(Vec::new, |own| own.split_off(before.min(own.len())))
    }
    /// Whether checks of the innermost open computation reach the entry, so that it may have data-dependent sizes.
    pub fn carries_checks(&self) -> bool {
        self.carried_depth == self.open.len()
    }
    /// Sets the number of open computations whose checks are carried to the entry, and returns the previous number.
    pub fn set_carried_depth(&mut self, count: usize) -> usize {
        std::mem::replace(&mut self.carried_depth, count)
    }
}

impl Builder<Dim> {
    /// A data-dependent size that is `count` at run time and at most `most`, as its assumed value. `None` in a computation
    /// whose sizes are fixed.
    pub fn add_data_dependent_size(&mut self, count: InstId, most: Dim) -> Option<Dim> {
        if !self.carries_checks() {
            return None;
        }
        let number = self.found.len();
        let fixed = self.assumed.equalities.iter().find(|e| e.number == number).and_then(|e| self.equal_size(e));
        let assumed =
            fixed.unwrap_or_else(|| trace::data_dependent_size(self.assumed_size(number, most.concrete_value()), most));
        let place = OwningComputation::Open(self.open.len());
        self.found.push(DataDependentSize { count, place, assumed, most, is_fixed: fixed.is_some() });
        Some(assumed)
    }
    /// Size that an equality requires of a data-dependent size of the innermost open computation; `None` if it depends on sizes of other
    /// computations, whose values are out of reach.
    fn equal_size(&self, equality: &SizeEquality) -> Option<Dim> {
        let here = OwningComputation::Open(self.open.len());
        let own = |number: usize| self.found.get(number).filter(|f| f.place == here).map(|f| f.assumed);
        let size = |v: usize| match v.checked_sub(self.assumed.counts.len()) {
            None => self.assumed.counts.get(v).copied(),
            Some(number) => own(number),
        };
        trace::evaluate(&equality.equal_to, &size)
    }
    /// Size assumed for the data-dependent size `number`, which is at most `most` and has no equality.
    fn assumed_size(&self, number: usize, most: i64) -> i64 {
        let assumed = match &self.assumed.sizes {
            AssumedSizes::Bounds => most,
            // 0 and 1 are special to ops that broadcast
            AssumedSizes::Distinct if most < 3 => most,
            AssumedSizes::Distinct => most - (number as i64 + 1) % (most - 1),
            AssumedSizes::Values(values) => {
                let varying = self.found.iter().filter(|f| !f.is_fixed).count();
                values.get(varying).and_then(|&n| i64::try_from(n).ok()).map_or(most, |n| n.min(most))
            }
        };
        let astray = self.perturbed_from.filter(|first| number >= *first).map(|first| 1 + (number - first) as i64 % 3);
        match astray {
            _ if self.maximal_from.is_some_and(|first| number >= first) => most,
            Some(by) if assumed > by => assumed - by,
            Some(by) if assumed + by <= most => assumed + by,
            Some(_) => 0,
            None => assumed,
        }
    }
}
