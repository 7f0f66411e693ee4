//! Room for arrays that are larger for smaller sizes than for the bound: `max(8 - n, 0)` elements that fill up a list of 8.
//!
//! They get the most elements that any size asks for. That is known of what is repeated, counted and computed element for element, of
//! what is folded, and of lists that are joined (`pad/join.rs`); where another op makes or reads such an array, it is refused.
use super::extent::Extent;
use super::instance::{Departure, Form, departure};
use crate::hlo::{ArrayShape, Inst, InstId, Module, Op, Shape};
use crate::symbolic::Interval;
use std::collections::{HashMap, HashSet};

/// The module for the sizes `bound` in which arrays have room for all sizes within `ranges`; `None` where they have it.
///
/// Errors: at the first array that can't be given room.
pub fn given(module: &Module, forms: &[Form], ranges: &[Interval], bound: &[u64]) -> Result<Option<Module>, Departure> {
    let mut known: HashMap<&Extent, Option<u64>> = HashMap::new();
    let mut out = None;
    for (id, form) in module.reachable().into_iter().zip(forms) {
        let comp = &module.comps[id];
        let mut grown: HashSet<InstId> = HashSet::new();
        for (&at, varying) in form.order.iter().zip(form.varying.iter()) {
            let inst = &comp.insts[at];
            let refused = || departure(inst, "an array is larger for smaller sizes");
            if inst.operands.iter().any(|o| grown.contains(o)) && !reads_any(&inst.op) {
                return Err(refused());
            }
            let mut more = |extent| *known.entry(extent).or_insert_with(|| more(extent, ranges, bound));
            let needs: Vec<Vec<Option<u64>>> = varying
                .dims
                .iter()
                .map(|dims| dims.iter().map(|e| e.varies().then(|| more(e)).flatten()).collect())
                .collect();
            if needs.iter().flatten().all(Option::is_none) {
                continue;
            }
            let shape = with_room(inst, &needs).ok_or_else(refused)?;
            grown.insert(at);
            out.get_or_insert_with(|| module.clone()).comps[id].insts[at].shape = shape;
        }
    }
    Ok(out)
}

/// The most that a size is, where that is more than for `bound`.
fn more(extent: &Extent, ranges: &[Interval], bound: &[u64]) -> Option<u64> {
    let most = extent.extremes(&Interval::of_each(ranges))?.most;
    (most > extent.at(bound)?.into()).then(|| u64::try_from(most).ok()).flatten()
}

/// The shape of `inst` with sizes that are needed, where it makes as many elements as its shape has.
fn with_room(inst: &Inst, needs: &[Vec<Option<u64>>]) -> Option<Shape> {
    let (array, [needs]) = (inst.shape.as_array()?, needs) else { return None };
    let dims = array.dims.iter().zip(needs).map(|(&n, need)| need.unwrap_or(n)).collect();
    let makes = matches!(inst.op, Op::Iota(_)) || reads_any(&inst.op);
    makes.then(|| Shape::Array(ArrayShape { dims, ..array.clone() }))
}

/// Whether an operand may have any number of elements, as long as the shape of the result says how many that has.
fn reads_any(op: &Op) -> bool {
    matches!(op, Op::Broadcast(_) | Op::Elementwise(_) | Op::Transpose(_) | Op::Reduce { .. } | Op::Concatenate(_))
}
