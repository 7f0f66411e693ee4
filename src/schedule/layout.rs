//! Where values lie in their buffers: dense, with a margin of zeros for the padded windows that read them, or inside the
//! concatenation that they are a part of, so that padding and concatenating copy nothing.
use super::fuse::{Fate, Plan};
use super::phases::Phase;
use super::{nest, phases, winograd, winograd1d};
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::Index;
use crate::target::Target;
use crate::util::id_vec::IdVec;
use std::collections::HashSet;
use std::ops::Range;

/// The place of each element of an array in its buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The first element.
    pub origin: i64,
    /// How far a step along each axis goes, in elements.
    pub strides: Vec<i64>,
    /// Zeros before the first element along each axis, in elements of that axis.
    pub low: Vec<u64>,
    /// Zeros after the last element.
    pub high: Vec<u64>,
}

impl Layout {
    /// Row-major, without gaps.
    pub fn dense(dims: &[u64]) -> Layout {
        Layout::with_margin(dims, &vec![0; dims.len()], &vec![0; dims.len()])
    }

    /// Row-major, with `low` and `high` elements around along each axis. What is after a row is also what is before the next one.
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

    /// The elements of an array of `dims` and its margins.
    pub fn elements(&self, dims: &[u64]) -> u64 {
        let whole: Vec<u64> = (0..dims.len()).map(|d| self.low[d] + dims[d] + self.high[d]).collect();
        self.extent(0, &whole)
    }

    /// Where the zeros around an array of `dims` are.
    pub fn gaps(&self, dims: &[u64]) -> Gaps {
        let (first, all) = (self.origin as u64, self.elements(dims));
        if dims.contains(&0) {
            return Gaps { around: [0..all, all..all], between: vec![] };
        }
        let between = (0..dims.len()).filter(|&d| dims[d] > 1).map(|d| {
            let own = self.extent(d + 1, dims);
            (d, own..self.strides[d] as u64)
        });
        Gaps {
            around: [0..first, first + self.extent(0, dims)..all],
            between: between.filter(|(_, r)| !r.is_empty()).collect(),
        }
    }

    /// From the first to the last of `dims` elements along the axes from one on.
    fn extent(&self, from: usize, dims: &[u64]) -> u64 {
        let all = || dims.iter().zip(&self.strides).skip(from);
        match all().any(|(&n, _)| n == 0) {
            true => 0,
            false => all().fold(1, |sum, (&n, &stride)| (n - 1).saturating_mul(stride as u64).saturating_add(sum)),
        }
    }

    /// The part that starts at element `before` of `axis`; what lies around it is not zero.
    pub fn part(&self, axis: usize, before: u64) -> Layout {
        let none = vec![0; self.strides.len()];
        Layout {
            origin: self.origin + before as i64 * self.strides[axis],
            strides: self.strides.clone(),
            low: none.clone(),
            high: none,
        }
    }

    /// The place of element `at`.
    pub fn at(&self, at: &[Index]) -> Index {
        let zero = Index::constant(self.origin);
        at.iter().zip(&self.strides).fold(zero, |sum, (x, &stride)| sum.add(&x.scale(stride)))
    }
}

/// The zeros around an array.
#[derive(Debug, PartialEq)]
pub struct Gaps {
    /// Those before its first and behind its last element.
    pub around: [Range<u64>; 2],
    /// Those behind each element along an axis but the last, as seen from it.
    pub between: Vec<(usize, Range<u64>)>,
}

/// Where a value of a computation goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Spot {
    /// Into a buffer of its own, dense.
    Dense,
    /// Into a buffer of its own, with zeros around.
    Margin {
        /// Before the first element, along each axis.
        low: Vec<u64>,
        /// After the last.
        high: Vec<u64>,
        /// Whether the loops that make it write it there; if not, windows read a copy.
        made: bool,
    },
    /// Into the value of this concatenation.
    Part {
        /// The concatenation.
        whole: InstId,
        /// Its axis.
        axis: usize,
        /// The part's first element along that axis.
        before: u64,
    },
}

/// Whether convolution `id` is done by Winograd's method, whose tiles need no margins.
fn by_winograd(comp: &Computation, id: InstId, target: &Target) -> bool {
    winograd::choose(comp, id, target).is_some() || winograd1d::choose(comp, id, target).is_some()
}

/// The margins that the operand of convolution `id` needs along each spatial axis, before and after; `None` where it must be
/// written out with holes.
pub fn margins(comp: &Computation, id: InstId, d: &ConvDims, target: &Target) -> Option<Vec<(u64, u64)>> {
    let phases = phases::split(comp, id, d)?;
    if nest::without_margin(comp, id, d) || by_winograd(comp, id, target) {
        return Some(vec![(0, 0); d.window.len()]);
    }
    let input = comp.array(comp[id].operands[0]);
    let margin = |(i, w): (usize, &WindowDim)| match w.lhs_dilate {
        1 => (w.pad_low.max(0) as u64, w.pad_high.max(0) as u64),
        _ => phases::margin(&phases[i], input.dims[d.input_spatial[i]]),
    };
    let mut margins: Vec<(u64, u64)> = d.window.iter().enumerate().map(margin).collect();
    if nest::inside(comp, id, d, target).is_some() {
        margins[0] = (0, 0);
    }
    Some(margins)
}

/// Most kernels that a convolution becomes for want of margins.
const MOST_PARTS: u64 = 16;

/// The parts of convolution `id`, a contraction each, that need no margins of its operand.
pub fn at_edges(comp: &Computation, id: InstId, d: &ConvDims, target: &Target) -> Option<Vec<Vec<Phase>>> {
    let is_contraction =
        !nest::by_channel(comp, id, d) && nest::inside(comp, id, d, target).is_none() && !by_winograd(comp, id, target);
    let parts = is_contraction.then(|| phases::at_edges(comp, id, d)).flatten()?;
    let kernels: u64 = parts.iter().map(|along| along.len() as u64).product();
    (kernels.saturating_mul(d.feature_group_count) <= MOST_PARTS).then_some(parts)
}

/// Whether no window needs margins of `plane` where the results at edges are made apart.
pub fn is_read_in_parts(comp: &Computation, plane: InstId, users: &[InstId], target: &Target) -> bool {
    users.iter().all(|&user| {
        let Op::Convolution(d) = &comp[user].op else { return true };
        let needs = |m: Vec<(u64, u64)>| comp[user].operands[0] == plane && m.iter().any(|m| *m != (0, 0));
        at_edges(comp, user, d, target).is_some() || !margins(comp, user, d, target).is_none_or(needs)
    })
}

/// Decides for every instruction of `comp`. A margin is as wide as the widest window needs; a value that is not made by
/// loops of this computation (a parameter) may have one too: it is copied when the window comes.
pub fn spots(comp: &Computation, plan: &Plan, target: &Target) -> IdVec<InstId, Spot> {
    let users = comp.users();
    let mut spots: IdVec<InstId, Spot> = comp.insts.ids().map(|_| Spot::Dense).collect();
    for &id in &comp.post_order() {
        if let Op::Convolution(d) = &comp[id].op {
            let operand = comp[id].operands[0];
            let planes = match (plan.fate[operand], &comp[operand].op) {
                (Fate::Inlined(_), Op::Concatenate(_)) => &comp[operand].operands,
                _ => std::slice::from_ref(&operand),
            };
            let Some(margins) = margins(comp, id, d, target).filter(|m| m.iter().any(|m| *m != (0, 0))) else {
                continue;
            };
            let rank = comp.array(operand).rank();
            for &plane in planes {
                let (mut low, mut high) = match &spots[plane] {
                    Spot::Margin { low, high, .. } => (low.clone(), high.clone()),
                    Spot::Dense | Spot::Part { .. } => (vec![0; rank], vec![0; rank]),
                };
                for (&(before, after), &axis) in margins.iter().zip(&d.input_spatial) {
                    low[axis] = low[axis].max(before);
                    high[axis] = high[axis].max(after);
                }
                let made = is_placeable(comp, plan, &users[plane], plane);
                spots[plane] = Spot::Margin { low, high, made };
            }
        }
    }
    for &id in comp.post_order().iter().rev() {
        let Op::Concatenate(axis) = comp[id].op else { continue };
        if plan.fate[id] != Fate::Materialised {
            continue;
        }
        let mut before = 0;
        for &operand in &comp[id].operands {
            let alone = comp[id].operands.iter().filter(|o| **o == operand).count() == 1;
            // a product's result is copied in no time, and held the whole while its other parts are made
            let product = matches!(comp[plan.anchor[operand].unwrap_or(operand)].op, Op::Dot(_));
            let fits = alone && !product && spots[operand] == Spot::Dense;
            if fits && is_placeable(comp, plan, &users[operand], operand) {
                spots[operand] = Spot::Part { whole: id, axis, before };
            }
            before += comp.array(operand).dims[axis];
        }
    }
    spots
}

/// Gives the parts of some concatenations memory of their own.
pub fn copy_parts(spots: &mut IdVec<InstId, Spot>, apart: &HashSet<InstId>) {
    for id in spots.ids() {
        if matches!(spots[id], Spot::Part { whole, .. } if apart.contains(&whole)) {
            spots[id] = Spot::Dense;
        }
    }
}

/// Has windows read copies of some arrays, which are made without margins.
pub fn copy_planes(spots: &mut IdVec<InstId, Spot>, copied: &HashSet<InstId>) {
    for id in spots.ids() {
        if let (true, Spot::Margin { made, .. }) = (copied.contains(&id), &mut spots[id]) {
            *made = false;
        }
    }
}

/// Has some arrays without margins; windows that need them all the same read copies.
pub fn leave_dense(spots: &mut IdVec<InstId, Spot>, in_parts: &HashSet<InstId>) {
    for id in spots.ids() {
        if in_parts.contains(&id) && matches!(spots[id], Spot::Margin { .. }) {
            spots[id] = Spot::Dense;
        }
    }
}

/// Takes the memory of concatenations whose parts a convolution reads where they are: of whole vectors of channels, read by
/// Winograd's method alone. A part that was made long before, such as what a U-Net skips to, holds no memory for the others.
/// Loops that would have been those of the concatenation (a part that is resized) become those of their part.
pub fn leave_apart(comp: &Computation, plan: &mut Plan, target: &Target) {
    let users = comp.users();
    for id in comp.post_order() {
        let Op::Convolution(d) = &comp[id].op else { continue };
        let whole = comp[id].operands[0];
        let parts = &comp[whole].operands;
        let joins = comp[whole].op == Op::Concatenate(d.input_feature)
            && users[whole] == [id]
            && whole != comp.root
            && plan.fate[whole] == Fate::Materialised
            && plan.rows[whole].is_none();
        let fits = |&part: &InstId| {
            let vectors = comp.array(part).dims[d.input_feature].is_multiple_of(target.lanes(4));
            let once = parts.iter().filter(|o| **o == part).count() == 1;
            let own = is_placeable(comp, plan, &users[part], part);
            vectors && once && (own || (users[part] == [whole] && is_loops(&comp[part].op)))
        };
        if joins && winograd::choose(comp, id, target).is_some() && parts.iter().all(fits) {
            let root = match plan.fate[id] {
                Fate::Materialised => Some(id),
                Fate::Inlined(root) => root,
            };
            plan.fate[whole] = Fate::Inlined(root);
            for &part in parts {
                if std::mem::replace(&mut plan.fate[part], Fate::Materialised) == Fate::Materialised {
                    continue;
                }
                let mut open = comp[part].operands.clone();
                while let Some(id) = open.pop() {
                    if plan.fate[id] == Fate::Inlined(Some(whole)) {
                        plan.fate[id] = Fate::Inlined(Some(part));
                        open.extend(&comp[id].operands);
                    }
                }
            }
        }
    }
}

/// Whether it becomes loops over its result that can write it anywhere.
pub(super) fn is_loops(op: &Op) -> bool {
    matches!(
        op,
        Op::Elementwise(_)
            | Op::Broadcast(_)
            | Op::Reshape
            | Op::Bitcast
            | Op::Copy
            | Op::Transpose(_)
            | Op::Slice(_)
            | Op::Reverse(_)
            | Op::Pad(_)
            | Op::DynamicSlice(_)
            | Op::Gather(_)
            | Op::Concatenate(_)
    )
}

/// Whether the loops that make `id` can write it anywhere, and everything that reads it can read it there.
fn is_placeable(comp: &Computation, plan: &Plan, users: &[InstId], id: InstId) -> bool {
    let anchor = plan.anchor[id].unwrap_or(id);
    let made = is_loops(&comp[anchor].op)
        || matches!(comp[anchor].op, Op::Dot(_) | Op::Convolution(_) | Op::ReduceWindow { .. });
    made && id != comp.root
        && plan.fate[id] == Fate::Materialised
        && comp[id].shape.as_array().is_some_and(|a| a.elements() > 0)
        && users.iter().all(|&u| {
            let op = &comp[u].op;
            let first = comp[u].operands.first() == Some(&id) && comp[u].operands[1..].iter().all(|o| *o != id);
            matches!(op, Op::Reduce { .. } | Op::ReduceWindow { .. })
                || is_loops(op)
                || (first && matches!(op, Op::Convolution(_)))
        })
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
            let mut seen = vec![' '; layout.elements(&dims) as usize];
            let place = |at: &[i64]| at.iter().zip(&layout.strides).fold(layout.origin, |sum, (x, s)| sum + x * s);
            for at in indices(&dims) {
                assert_eq!(std::mem::replace(&mut seen[place(&at) as usize], 'x'), ' ');
            }
            let gaps = layout.gaps(&dims);
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
