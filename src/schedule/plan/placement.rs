//! Where the values of a computation lie: dense, with a margin of zeros for the padded windows that read them, or inside the
//! concatenation that they are a part of, so that padding and concatenating copy nothing.
use crate::hlo::{Computation, InstId, Op};
use crate::schedule::families::convolution::recipe::algorithm::{ConvolutionAlgorithm, Convolutions};
use crate::schedule::plan::choices::PlanChoices;
use crate::schedule::plan::fuse::{Fusion, FusionDecision, is_inlineable};
use crate::schedule::target::KernelTarget;
use crate::util::id_vec::IdVec;

/// Placement of a value of a computation.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// In a buffer of its own, dense.
    Dense,
    /// In a buffer of its own, with zero margins.
    Margin {
        /// Zeros before the first element along each axis.
        low: Vec<u64>,
        /// Zeros after the last element along each axis.
        high: Vec<u64>,
        /// Whether the kernel of the value writes it with margins; otherwise windows read a copy.
        made: bool,
    },
    /// Inside a concatenation, which has the buffer.
    Part {
        /// The concatenation.
        whole: InstId,
        /// The axis of the concatenation.
        axis: usize,
        /// Index along `axis` at which the part begins.
        before: u64,
    },
}

/// Whether no window needs margins of `plane` if results at edges are computed separately.
pub fn windows_can_omit_margins(
    comp: &Computation,
    convolutions: &Convolutions,
    plane: InstId,
    users: &[InstId],
) -> bool {
    users.iter().all(|user| {
        let Some(convolution) = convolutions.get(user) else { return true };
        let needs = comp[*user].operands[0] == plane && convolution.needs_margins();
        convolution.at_edges.is_some() || convolution.margins.is_some() && !needs
    })
}

/// Decides on the placement of every instruction of `comp`. A margin is as wide as the widest window needs; a value that no kernel of
/// this computation makes (a parameter) is copied with margins before its first window.
pub fn plan_placements(comp: &Computation, fusion: &Fusion, convolutions: &Convolutions) -> IdVec<InstId, Placement> {
    let users = comp.users();
    let mut placements: IdVec<InstId, Placement> = comp.insts.ids().map(|_| Placement::Dense).collect();
    for &id in &comp.post_order() {
        if let Op::Convolution(d) = &comp[id].op {
            let operand = comp[id].operands[0];
            let planes = match (fusion.decision[operand], &comp[operand].op) {
                (FusionDecision::Inlined(_), Op::Concatenate(_)) => &comp[operand].operands,
                _ => std::slice::from_ref(&operand),
            };
            let Some(margins) = convolutions.get(&id).filter(|c| c.needs_margins()).and_then(|c| c.margins.as_ref())
            else {
                continue;
            };
            let rank = comp.array_shape(operand).rank();
            for &plane in planes {
                let (mut low, mut high) = match &placements[plane] {
                    Placement::Margin { low, high, .. } => (low.clone(), high.clone()),
                    Placement::Dense | Placement::Part { .. } => (vec![0; rank], vec![0; rank]),
                };
                for (&(before, after), &axis) in margins.iter().zip(&d.input_spatial) {
                    low[axis] = low[axis].max(before);
                    high[axis] = high[axis].max(after);
                }
                let made = is_placeable(comp, fusion, &users[plane], plane);
                placements[plane] = Placement::Margin { low, high, made };
            }
        }
    }
    for &id in comp.post_order().iter().rev() {
        let Op::Concatenate(axis) = comp[id].op else { continue };
        if !fusion.is_materialised(id) {
            continue;
        }
        let mut before = 0;
        for &operand in &comp[id].operands {
            let alone = comp[id].operands.iter().filter(|o| **o == operand).count() == 1;
            // a product's result is copied in no time, and held the whole while its other parts are made
            let product = matches!(comp[fusion.anchor[operand].unwrap_or(operand)].op, Op::Dot(_));
            let fits = alone && !product && placements[operand] == Placement::Dense;
            if fits && is_placeable(comp, fusion, &users[operand], operand) {
                placements[operand] = Placement::Part { whole: id, axis, before };
            }
            before += comp.array_shape(operand).dims[axis];
        }
    }
    placements
}

/// Applies the choices of a plan to the memory of arrays. Parts of some concatenations get memory of their own. Some arrays are made without
/// margins, and windows read copies of them that have margins.
pub fn apply_placement_choices(placements: &mut IdVec<InstId, Placement>, choices: &PlanChoices) {
    for id in placements.ids() {
        match &mut placements[id] {
            Placement::Part { whole, .. } if choices.apart.contains(whole) => placements[id] = Placement::Dense,
            Placement::Margin { .. } if choices.in_parts.contains(&id) => placements[id] = Placement::Dense,
            Placement::Margin { made, .. } => *made &= !choices.copied.contains(&id),
            Placement::Dense | Placement::Part { .. } => {}
        }
    }
}

/// Removes the buffer of concatenations whose parts a convolution can read separately: parts of whole vectors of channels, read by
/// Winograd's method alone. A part that was made long before, such as the skip connection of a U-Net, then keeps no memory for the others
/// alive. Kernels that would have filled the concatenation (such as a resize of a part) fill their part instead.
pub fn split_concatenations(
    comp: &Computation,
    fusion: &mut Fusion,
    convolutions: &Convolutions,
    target: &KernelTarget<'_>,
) {
    let users = comp.users();
    for id in comp.post_order() {
        let Op::Convolution(d) = &comp[id].op else { continue };
        let whole = comp[id].operands[0];
        let parts = &comp[whole].operands;
        let joins = comp[whole].op == Op::Concatenate(d.input_feature)
            && users[whole] == [id]
            && whole != comp.root
            && fusion.is_materialised(whole)
            && fusion.rows[whole].is_none();
        let fits = |&part: &InstId| {
            let vectors = comp.array_shape(part).dims[d.input_feature].is_multiple_of(target.machine().lanes(4));
            let once = parts.iter().filter(|o| **o == part).count() == 1;
            let own = is_placeable(comp, fusion, &users[part], part);
            vectors && once && (own || (users[part] == [whole] && stores_anywhere(&comp[part].op)))
        };
        let reads_parts =
            matches!(&convolutions[&id].algorithm, ConvolutionAlgorithm::Winograd(w) if !w.is_one_dimensional());
        if joins && reads_parts && parts.iter().all(fits) {
            fusion.decision[whole] = FusionDecision::Inlined(fusion.root_of(id));
            for &part in parts {
                if std::mem::replace(&mut fusion.decision[part], FusionDecision::Materialised)
                    == FusionDecision::Materialised
                {
                    continue;
                }
                let mut open = comp[part].operands.clone();
                while let Some(id) = open.pop() {
                    if fusion.decision[id] == FusionDecision::Inlined(Some(whole)) {
                        fusion.decision[id] = FusionDecision::Inlined(Some(part));
                        open.extend(&comp[id].operands);
                    }
                }
            }
        }
    }
}

/// Whether an operation is computed by loops over its result, which can be stored in any layout.
pub fn stores_anywhere(op: &Op) -> bool {
    let elsewhere = matches!(op, Op::Map { .. } | Op::OptimizationBarrier | Op::Iota(_));
    matches!(op, Op::Concatenate(_)) || is_inlineable(op) && !elsewhere
}

/// Whether the kernel of `id` can store it in any layout and all readers can read it in any layout.
fn is_placeable(comp: &Computation, fusion: &Fusion, users: &[InstId], id: InstId) -> bool {
    let anchor = fusion.anchor[id].unwrap_or(id);
    let made = stores_anywhere(&comp[anchor].op)
        || matches!(comp[anchor].op, Op::Dot(_) | Op::Convolution(_) | Op::ReduceWindow { .. });
    made && id != comp.root
        && fusion.is_materialised(id)
        && comp[id].shape.as_array().is_some_and(|a| a.elements() > 0)
        && users.iter().all(|&u| {
            let op = &comp[u].op;
            let first = comp[u].operands.first() == Some(&id) && comp[u].operands[1..].iter().all(|o| *o != id);
            matches!(op, Op::Reduce { .. } | Op::ReduceWindow { .. })
                || stores_anywhere(op)
                || (first && matches!(op, Op::Convolution(_)))
        })
}
