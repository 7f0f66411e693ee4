//! Padding rule of reshape: elements of a padded array move if a dynamic axis is merged or split that is not the outermost one.
use super::mask::EmittedSizes;
use crate::bounded::extent::Extent;
use crate::hlo::{Builder, InstId};
use crate::scalar::ScalarOp;
use crate::symbolic::Interval;
use crate::tensor::DType;

/// Consecutive axes of the operand that become consecutive axes of the result.
pub struct AxisGroup {
    /// Axes of the operand.
    pub from: std::ops::Range<usize>,
    /// Axes of the result.
    pub to: std::ops::Range<usize>,
}

impl AxisGroup {
    /// Whether elements of the group have other positions in the padded result than in the padded operand. Each side is given by its actual
    /// sizes and those at the bound.
    pub fn moves_elements(&self, (from, old): (&[Extent], &[u64]), (to, new): (&[Extent], &[u64])) -> bool {
        let count = |dims: &[u64]| dims.iter().product::<u64>();
        let is_apart = self.from.len() + self.to.len() > 2
            && !(varies_only_outermost(&from[self.from.clone()]) && varies_only_outermost(&to[self.to.clone()]));
        is_apart || count(&old[self.from.clone()]) != count(&new[self.to.clone()])
    }
}

/// Range of each size, by its index.
pub type SizeRanges<'a> = &'a dyn Fn(&usize) -> Interval;

/// Whether two expressions are equal for all sizes.
fn are_equal(a: &Extent, b: &Extent, ranges: SizeRanges) -> bool {
    a == b || a.sub(b).and_then(|apart| apart.extremes(&ranges)) == Some(Interval::single(0))
}

/// Splits a reshape into the smallest groups of axes with equal products of sizes. `from` and `to` are actual sizes, `old` and `new` those at
/// the bound. `None` where the products can't be compared.
pub fn axis_groups(
    (from, old): (&[Extent], &[u64]),
    (to, new): (&[Extent], &[u64]),
    ranges: SizeRanges,
) -> Option<Vec<AxisGroup>> {
    let product = |dims: &[Extent]| dims.iter().try_fold(Extent::constant(1), |n, e| n.mul(e)?.share_if_long(&ranges));
    let instantiate_at_bound = |dims: &[u64]| dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
    let (mut out, mut i, mut j) = (Vec::new(), 0, 0);
    while i < from.len() || j < to.len() {
        let (start_i, start_j) = (i, j);
        loop {
            let (ours, theirs) = (product(&from[start_i..i])?, product(&to[start_j..j])?);
            if (i > start_i || j > start_j) && are_equal(&ours, &theirs, ranges) {
                break;
            }
            // the side with the smaller product takes its next axis
            let behind = instantiate_at_bound(&old[start_i..i]) <= instantiate_at_bound(&new[start_j..j]);
            match (behind && i < from.len(), j < to.len()) {
                (true, _) => i += 1,
                (false, true) => j += 1,
                (false, false) if i < from.len() => i += 1,
                (false, false) => return None,
            }
        }
        out.push(AxisGroup { from: start_i..i, to: start_j..j });
    }
    Some(out)
}

/// Whether no axis but the outermost one (axes of size 1 aside) varies, so that valid elements come first in row-major order.
fn varies_only_outermost(dims: &[Extent]) -> bool {
    let mut rest = dims.iter().skip_while(|e| e.known() == Some(1));
    rest.next();
    rest.all(|e| !e.varies())
}

/// Emits a reshape of `x` from the actual sizes `from` to `to`; `dims` are the dimensions of the result at the bound. `None` where a size has
/// not been computed yet or is too large.
pub fn reshape_padded(
    b: &mut Builder,
    scope: &mut EmittedSizes,
    x: InstId,
    (from, to): (&[Extent], &[Extent]),
    dims: &[u64],
    ranges: SizeRanges,
) -> Option<InstId> {
    let old = b.dims(x).to_vec();
    if old.contains(&0) || dims.contains(&0) {
        // there is no valid element
        return Some(b.full(b.dtype(x), dims, 0.0));
    }
    let groups = axis_groups((from, &old), (to, dims), ranges)?;
    let moves = |g: &AxisGroup| g.moves_elements((from, &old), (to, dims));
    if !groups.iter().any(moves) {
        return Some(b.reshape(x, dims));
    }
    let flat: Vec<u64> = groups.iter().map(|g| old[g.from.clone()].iter().product()).collect();
    let mut x = b.reshape(x, &flat);
    for (axis, group) in groups.iter().enumerate().filter(|(_, g)| moves(g)) {
        let to = (&to[group.to.clone()], &dims[group.to.clone()]);
        let indices = source_indices(b, scope, (&from[group.from.clone()], &old[group.from.clone()]), to)?;
        x = b.gather_along_axis(x, axis, indices, false);
    }
    Some(b.reshape(x, dims))
}

/// Emits the index in the padded operand of each element of the padded result: `s32[product of the result's bounds]`.
fn source_indices(
    b: &mut Builder,
    scope: &mut EmittedSizes,
    (from, old): (&[Extent], &[u64]),
    (to, new): (&[Extent], &[u64]),
) -> Option<InstId> {
    let count: u64 = new.iter().product();
    let shape = [count];
    let constant = |b: &mut Builder, v: u64| b.full(DType::S32, &shape, v as f64);
    // index of the element among the valid ones
    let mut rest = b.iota(DType::S32, &shape, 0);
    let (mut number, mut step) = (constant(b, 0), constant(b, 1));
    for (extent, &bound) in to.iter().zip(new).rev() {
        let by = constant(b, bound.max(1));
        let at = b.elementwise(ScalarOp::Remainder, &[rest, by]);
        rest = b.div(rest, by);
        let shifted = b.mul(at, step);
        number = b.add(number, shifted);
        let size = scope.value(b, extent)?;
        step = b.mul(step, size);
    }
    let (mut place, mut stride) = (constant(b, 0), 1u64);
    let one = constant(b, 1);
    for (extent, &bound) in from.iter().zip(old).rev() {
        let size = scope.value(b, extent)?;
        // avoids a division by 0 for arrays without elements
        let size = b.max(size, one);
        let at = b.elementwise(ScalarOp::Remainder, &[number, size]);
        number = b.div(number, size);
        let by = constant(b, stride);
        let shifted = b.mul(at, by);
        place = b.add(place, shifted);
        stride = stride.checked_mul(bound)?;
    }
    Some(place)
}
