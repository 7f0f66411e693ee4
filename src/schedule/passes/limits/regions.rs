//! Regions of buffers that are needed, where that is less than all of them: the elements of arrays that `plan/demand/` knows, at the places
//! where they lie.
use crate::hlo::Shape;
use crate::kernel::BufId;
use crate::schedule::emit::value::ValueBuffers;
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::demand::{ArrayDemand, PrefixBound};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A superset of the needed elements of a buffer: those whose distance from `origin`, modulo `period`, is below `times * size + more`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededRegion {
    /// Offset of the first needed element in the buffer.
    pub origin: i64,
    /// Distance after which the region repeats; `i64::MAX` if it does not.
    pub period: i64,
    /// Number of the dynamic size (`plan/demand/amount.rs`).
    pub size: usize,
    /// Factor of the dynamic size.
    pub times: i64,
    /// Constant added to `times * size`, in elements.
    pub more: i64,
}

/// The needed regions of buffers that are not needed whole.
#[derive(Clone, Debug, Default)]
pub struct NeededRegions {
    /// Regions of a buffer, one for each axis, that each contain all needed elements; with none, the whole buffer is needed.
    all: HashMap<BufId, Vec<NeededRegion>>,
}

impl NeededRegions {
    /// Adds the demand on a value: all of it if that is unknown.
    pub fn add_demand(&mut self, shape: &Shape, value: &ValueBuffers, needs: Option<&[ArrayDemand]>) {
        for (i, (leaf, &buf)) in shape.leaves().iter().zip(&value.leaves).enumerate() {
            match needs.and_then(|needs| needs.get(i)) {
                Some(Some(need)) => {
                    self.add_regions(buf, NeededRegion::of_array(&leaf.dims, &value.layout(&leaf.dims), need))
                }
                Some(None) => {}
                None => self.add_regions(buf, Vec::new()),
            }
        }
    }

    /// Whether adding the demand on an array of `dims` would leave the regions of its buffer unchanged.
    pub fn already_covers(&self, buf: BufId, dims: &[u64], layout: &Layout, needs: Option<&[ArrayDemand]>) -> bool {
        match needs {
            Some([Some(need)]) => self.get(buf) == NeededRegion::of_array(dims, layout, need),
            Some([None]) => true,
            _ => self.get(buf).is_empty(),
        }
    }

    /// Declares that a buffer needs the same regions as another.
    pub fn copy_regions(&mut self, buf: BufId, other: BufId) {
        if let Some(regions) = self.all.get(&other).cloned() {
            self.add_regions(buf, regions);
        }
    }

    fn add_regions(&mut self, buf: BufId, regions: Vec<NeededRegion>) {
        match self.all.entry(buf) {
            Entry::Vacant(slot) => {
                slot.insert(regions);
            }
            Entry::Occupied(mut slot) => {
                let both = |have: &NeededRegion| regions.iter().find_map(|other| have.hull(*other));
                let joined = slot.get().iter().filter_map(both).collect();
                slot.insert(joined);
            }
        }
    }

    /// Whether all buffers are needed whole.
    pub fn are_all_whole(&self) -> bool {
        self.all.values().all(Vec::is_empty)
    }

    /// The regions that each contain all needed elements of a buffer; empty if it is needed whole.
    pub fn get(&self, buf: BufId) -> &[NeededRegion] {
        self.all.get(&buf).map_or(&[], Vec::as_slice)
    }
}

impl NeededRegion {
    /// The regions of an array of `dims`, one for each axis along which part is needed.
    fn of_array(dims: &[u64], layout: &Layout, need: &[Option<PrefixBound>]) -> Vec<NeededRegion> {
        let bounded = (0..dims.len()).filter(|&axis| dims[axis] > 1);
        bounded.filter_map(|axis| NeededRegion::of_axis(axis, dims, layout, need.get(axis).copied()??)).collect()
    }

    /// The region along one axis; `None` where the array has no period along it.
    fn of_axis(axis: usize, dims: &[u64], layout: &Layout, bound: PrefixBound) -> Option<NeededRegion> {
        let stride = layout.strides[axis];
        let others = (0..dims.len()).filter(|&a| a != axis && dims[a] > 1).map(|a| layout.strides[a]);
        let outer: Vec<i64> = others.filter(|&s| s >= stride).collect();
        let period = outer.iter().copied().min().unwrap_or(i64::MAX);
        let fits = stride > 0 && stride.checked_mul(i64::try_from(dims[axis]).ok()?)? <= period;
        if !fits || !outer.iter().all(|s| s % period == 0) {
            return None;
        }
        let inner = (0..dims.len()).filter(|&a| a != axis && dims[a] > 1 && layout.strides[a] < stride);
        let mut reach: i64 = 1;
        for a in inner {
            let steps = i64::try_from(dims[a] - 1).ok()?;
            reach = reach.checked_add(steps.checked_mul(layout.strides[a])?)?;
        }
        (reach <= stride).then_some(())?;
        // the zeros before the first element are behind the last one of the period before
        let before = stride.checked_mul(i64::try_from(*layout.low.get(axis)?).ok()?)?;
        // behind the last element along this axis may be elements of another array, or zeros, which are needed
        let has_zeros = layout.low.iter().chain(&layout.high).any(|&n| n > 0);
        let behind = if period == i64::MAX && !has_zeros { stride - reach } else { 0 };
        Some(NeededRegion {
            origin: layout.origin.checked_sub(before)? % period,
            period,
            size: bound.size,
            times: stride.checked_mul(i64::try_from(bound.times).ok()?)?,
            more: stride.checked_mul(i64::try_from(bound.more).ok()?)?.checked_add(before)?.checked_sub(behind)?,
        })
    }

    /// A region that contains both.
    fn hull(self, other: NeededRegion) -> Option<NeededRegion> {
        let origin = self.origin.min(other.origin);
        let end = |r: &NeededRegion| r.more + r.origin - origin;
        (self.period == other.period && self.size == other.size).then(|| NeededRegion {
            origin,
            times: self.times.max(other.times),
            more: end(&self).max(end(&other)),
            ..self
        })
    }
}
