//! Which elements of buffers are needed, where that is less than all of them: what `plan/needed.rs` knows of arrays, where they lie.
use super::value::Value;
use crate::hlo::Shape;
use crate::kernel::BufId;
use crate::schedule::layout::Layout;
use crate::schedule::plan::needed::{Bound, Need};
use std::collections::HashMap;

/// Elements of a buffer that are needed: those whose distance from `origin`, modulo `period`, is below `times * size + more`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first element.
    pub origin: i64,
    /// After how many elements it begins anew; `i64::MAX` where it does not.
    pub period: i64,
    /// The argument that is the size.
    pub size: usize,
    /// Elements for each of the size.
    pub times: i64,
    /// Elements besides.
    pub more: i64,
}

/// What is needed of buffers, as far as it is less than all of them.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// `None`: all of it.
    all: HashMap<BufId, Option<Region>>,
}

impl Regions {
    /// Notes what is needed of a value: all of it where that is not known.
    pub fn note(&mut self, shape: &Shape, value: &Value, needs: Option<&[Need]>) {
        for (i, (leaf, &buf)) in shape.leaves().iter().zip(&value.leaves).enumerate() {
            match needs.and_then(|needs| needs.get(i)) {
                Some(Some(need)) => self.join(buf, Region::of(&leaf.dims, &value.layout(&leaf.dims), need)),
                Some(None) => {}
                None => self.join(buf, None),
            }
        }
    }

    /// Notes that a buffer is needed as far as another is.
    pub fn same(&mut self, buf: BufId, other: BufId) {
        if let Some(&region) = self.all.get(&other) {
            self.join(buf, region);
        }
    }

    fn join(&mut self, buf: BufId, region: Option<Region>) {
        let slot = self.all.entry(buf).or_insert(region);
        *slot = slot.and_then(|have| have.join(region?));
    }

    /// Whether nothing is left out.
    pub fn are_whole(&self) -> bool {
        self.all.values().all(Option::is_none)
    }

    /// What is needed of a buffer; `None`: all of it.
    pub fn get(&self, buf: BufId) -> Option<Region> {
        self.all.get(&buf).copied().flatten()
    }
}

impl Region {
    /// That of an array of `dims`; `None` where all of it is needed.
    fn of(dims: &[u64], layout: &Layout, need: &[Option<Bound>]) -> Option<Region> {
        let axis = (0..dims.len()).find(|&a| dims[a] > 1 && need.get(a).is_some_and(Option::is_some))?;
        let bound = need[axis]?;
        let stride = layout.strides[axis];
        let outer: Vec<i64> = (0..axis).filter(|&a| dims[a] > 1).map(|a| layout.strides[a]).collect();
        let period = outer.last().copied().unwrap_or(i64::MAX);
        let fits = stride > 0 && stride.checked_mul(i64::try_from(dims[axis]).ok()?)? <= period;
        if !fits || !outer.iter().all(|s| s % period == 0) {
            return None;
        }
        Some(Region {
            origin: layout.origin % period,
            period,
            size: bound.size,
            times: stride.checked_mul(i64::try_from(bound.times).ok()?)?,
            more: stride.checked_mul(i64::try_from(bound.more).ok()?)?,
        })
    }

    /// What is in either of both, and perhaps more.
    fn join(self, other: Region) -> Option<Region> {
        let origin = self.origin.min(other.origin);
        let end = |r: &Region| r.more + r.origin - origin;
        (self.period == other.period && self.size == other.size).then(|| Region {
            origin,
            times: self.times.max(other.times),
            more: end(&self).max(end(&other)),
            ..self
        })
    }
}
