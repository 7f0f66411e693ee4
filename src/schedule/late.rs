//! What is computed from nothing is made where it is first read: the zeros that the list of a second layer starts as take no
//! memory while the first layer runs.
use crate::hlo::{Computation, InstId, Op};
use crate::util::id_vec::IdVec;

/// An order of execution: post order, but what needs no parameter comes right before its first reader.
pub fn order(comp: &Computation) -> Vec<InstId> {
    let plain = comp.post_order();
    let mut free: IdVec<InstId, bool> = comp.insts.ids().map(|_| false).collect();
    for &id in &plain {
        let inst = &comp[id];
        let given = matches!(inst.op, Op::Broadcast(_) | Op::Iota(_) | Op::Constant(_));
        free[id] = given && id != comp.root && inst.operands.iter().all(|&o| free[o]);
    }
    let mut done: IdVec<InstId, bool> = comp.insts.ids().map(|_| false).collect();
    let mut out = Vec::with_capacity(plain.len());
    let readers: Vec<InstId> = plain.into_iter().filter(|&id| !free[id]).collect();
    for id in readers {
        for &o in &comp[id].operands {
            made(comp, o, &free, &mut done, &mut out);
        }
        out.push(id);
    }
    out
}

/// Adds `id` and what it needs where that is free and not there yet: constants, and one broadcast or some behind one another.
fn made(
    comp: &Computation,
    id: InstId,
    free: &IdVec<InstId, bool>,
    done: &mut IdVec<InstId, bool>,
    out: &mut Vec<InstId>,
) {
    let mut open = vec![(id, false)];
    while let Some((id, ready)) = open.pop() {
        if !free[id] || done[id] {
            continue;
        }
        if ready {
            done[id] = true;
            out.push(id);
            continue;
        }
        open.push((id, true));
        open.extend(comp[id].operands.iter().map(|&o| (o, false)));
    }
}
