//! Where the elements of an array lie in its buffer.
use crate::kernel::Index;
use std::ops::Range;

/// Layout of an array: maps coordinates to offsets in a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Offset of the first element.
    pub origin: i64,
    /// Stride of each axis, in elements.
    pub strides: Vec<i64>,
    /// Number of zero elements before the first element along each axis.
    pub low: Vec<u64>,
    /// Number of zero elements after the last element along each axis.
    pub high: Vec<u64>,
}

impl Layout {
    /// The row-major layout without gaps.
    pub fn dense(dims: &[u64]) -> Layout {
        Layout::with_margin(dims, &vec![0; dims.len()], &vec![0; dims.len()])
    }

    /// The row-major layout with `low` and `high` margin elements along each axis. The margin after a row is also the margin before the
    /// next one.
    pub fn with_margin(dims: &[u64], low: &[u64], high: &[u64]) -> Layout {
        let mut strides = vec![0; dims.len()];
        let (mut stride, mut origin) = (1i64, 0);
        for d in (0..dims.len()).rev() {
            strides[d] = stride;
            origin = stride.saturating_mul(low[d] as i64).saturating_add(origin);
            stride = stride.saturating_mul((dims[d] + low[d].max(high[d])) as i64);
        }
        Layout { origin, strides, low: low.to_vec(), high: high.to_vec() }
    }

    /// Number of elements of an array of `dims` with its margins.
    pub fn element_count(&self, dims: &[u64]) -> u64 {
        let whole: Vec<u64> = (0..dims.len()).map(|d| self.low[d] + dims[d] + self.high[d]).collect();
        self.extent(0, &whole)
    }

    /// The offsets of the margin zeros of an array of `dims`.
    pub fn margin_gaps(&self, dims: &[u64]) -> MarginGaps {
        let (first, all) = (self.origin as u64, self.element_count(dims));
        if dims.contains(&0) {
            return MarginGaps { around: [0..all, all..all], between: vec![] };
        }
        let between = (0..dims.len()).filter(|&d| dims[d] > 1).map(|d| {
            let own = self.extent(d + 1, dims);
            (d, own..self.strides[d] as u64)
        });
        MarginGaps {
            around: [0..first, first + self.extent(0, dims)..all],
            between: between.filter(|(_, r)| !r.is_empty()).collect(),
        }
    }

    /// Distance from the first to the last element along the axes from `from` on.
    fn extent(&self, from: usize, dims: &[u64]) -> u64 {
        let all = || dims.iter().zip(&self.strides).skip(from);
        match all().any(|(&n, _)| n == 0) {
            true => 0,
            false => all().fold(1, |sum, (&n, &stride)| (n - 1).saturating_mul(stride as u64).saturating_add(sum)),
        }
    }

    /// The layout of the subarray that starts at element `before` of `axis`. It has no margins, as neighboring elements are not zeros.
    pub fn subarray(&self, axis: usize, before: u64) -> Layout {
        let none = vec![0; self.strides.len()];
        Layout {
            origin: self.origin + before as i64 * self.strides[axis],
            strides: self.strides.clone(),
            low: none.clone(),
            high: none,
        }
    }

    /// The offset of element `at`.
    pub fn offset_of(&self, at: &[Index]) -> Index {
        let zero = Index::constant(self.origin);
        at.iter().zip(&self.strides).fold(zero, |sum, (x, &stride)| sum.add(&x.scale(stride)))
    }
}

/// Offsets of the margin zeros of an array.
#[derive(Debug, PartialEq)]
pub struct MarginGaps {
    /// Ranges of offsets before the first element of the array and after the last.
    pub around: [Range<u64>; 2],
    /// Gaps between consecutive subarrays along an axis: the axis, and the offsets of the gap relative to the start of the subarray before
    /// the gap.
    pub between: Vec<(usize, Range<u64>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All indices of an array of `dims`.
    fn indices(dims: &[u64]) -> Vec<Vec<i64>> {
        let with = |all: Vec<Vec<i64>>, &n: &u64| -> Vec<Vec<i64>> {
            all.iter().flat_map(|at| (0..n as i64).map(move |i| [&at[..], &[i]].concat())).collect()
        };
        dims.iter().fold(vec![vec![]], with)
    }

    #[test]
    fn margins_are_all_that_is_not_an_element() {
        let cases: [([u64; 4], [u64; 4], [u64; 4]); 6] = [
            ([1, 3, 4, 2], [0, 1, 1, 0], [0, 1, 1, 0]),
            ([2, 3, 4, 2], [0, 2, 0, 0], [0, 1, 3, 0]),
            ([2, 1, 1, 1], [0, 0, 2, 0], [0, 0, 1, 0]),
            ([3, 2, 2, 1], [0, 0, 0, 0], [0, 0, 0, 0]),
            ([2, 2, 3, 1], [0, 1, 0, 0], [0, 0, 0, 0]),
            ([1, 0, 3, 1], [0, 1, 1, 0], [0, 1, 1, 0]),
        ];
        for (dims, low, high) in cases {
            let layout = Layout::with_margin(&dims, &low, &high);
            let mut seen = vec![' '; layout.element_count(&dims) as usize];
            let place = |at: &[i64]| at.iter().zip(&layout.strides).fold(layout.origin, |sum, (x, s)| sum + x * s);
            for at in indices(&dims) {
                assert_eq!(std::mem::replace(&mut seen[place(&at) as usize], 'x'), ' ');
            }
            let gaps = layout.margin_gaps(&dims);
            let mut clear = |at: u64| assert_eq!(std::mem::replace(&mut seen[at as usize], '0'), ' ');
            gaps.around.into_iter().flatten().for_each(&mut clear);
            for (axis, gap) in gaps.between {
                let mut outer = dims[..=axis].to_vec();
                outer[axis] -= 1;
                for at in indices(&outer) {
                    gap.clone().for_each(|i| clear(place(&at) as u64 + i));
                }
            }
            // what windows may read is an element or zero
            let whole: Vec<u64> = (0..4).map(|d| low[d] + dims[d] + high[d]).collect();
            for at in indices(&whole) {
                let at: Vec<i64> = at.iter().zip(&low).map(|(x, &l)| x - l as i64).collect();
                let inside = at.iter().zip(&dims).all(|(x, &n)| (0..n as i64).contains(x));
                assert_eq!(seen[place(&at) as usize], if inside { 'x' } else { '0' }, "{at:?} of {dims:?}");
            }
            assert!(!seen.contains(&' '));
        }
    }
}
