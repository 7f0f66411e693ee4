//! Where values lie in their buffers: dense, with a margin of zeros for the padded windows that read them, or inside the
//! concatenation that they are a part of, so that padding and concatenating copy nothing.
use super::fuse::{Fate, Plan};
use super::{nest, phases, winograd, winograd1d};
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::Index;
use crate::target::Target;
use crate::util::id_vec::IdVec;

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

    /// Row-major, with `low` and `high` elements around along each axis.
    pub fn with_margin(dims: &[u64], low: &[u64], high: &[u64]) -> Layout {
        let mut strides = vec![0; dims.len()];
        let (mut stride, mut origin) = (1i64, 0);
        for d in (0..dims.len()).rev() {
            strides[d] = stride;
            origin += low[d] as i64 * stride;
            stride *= (low[d] + dims[d] + high[d]) as i64;
        }
        Layout { origin, strides, low: low.to_vec(), high: high.to_vec() }
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

/// The margins that the operand of convolution `id` needs along each spatial axis, before and after; `None` where it must be
/// written out with holes.
pub fn margins(comp: &Computation, id: InstId, d: &ConvDims, target: &Target) -> Option<Vec<(u64, u64)>> {
    let phases = phases::split(comp, id, d)?;
    let by_winograd = || winograd::choose(comp, id, target).is_some() || winograd1d::choose(comp, id, target).is_some();
    if nest::without_margin(comp, id, d) || by_winograd() {
        return Some(vec![(0, 0); d.window.len()]);
    }
    let input = comp.array(comp[id].operands[0]);
    let margin = |(i, w): (usize, &WindowDim)| match w.lhs_dilate {
        1 => (w.pad_low.max(0) as u64, w.pad_high.max(0) as u64),
        _ => phases::margin(&phases[i], input.dims[d.input_spatial[i]]),
    };
    Some(d.window.iter().enumerate().map(margin).collect())
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
            if alone && spots[operand] == Spot::Dense && is_placeable(comp, plan, &users[operand], operand) {
                spots[operand] = Spot::Part { whole: id, axis, before };
            }
            before += comp.array(operand).dims[axis];
        }
    }
    spots
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
fn is_loops(op: &Op) -> bool {
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
    let made = is_loops(&comp[anchor].op) || matches!(comp[anchor].op, Op::Convolution(_) | Op::ReduceWindow { .. });
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
