//! Sinks values without operands to their first reader: the zeros that the list of a second layer starts as take no memory while the first
//! layer runs, and each layer starts with zeros of its own, which become its list.
use crate::hlo::{Computation, InstId, Module, Op};
use crate::util::id_vec::IdVec;

/// Gives each part of a tuple that is a broadcast constant a broadcast of its own; `None` if none is shared. Memory that nothing else
/// reads becomes a loop's state, while the shared initial value of several loops would be copied for each.
pub fn unshare_broadcasts(module: &Module) -> Option<Module> {
    let mut out = None;
    for (id, comp) in module.comps.iter() {
        let users = comp.users();
        let mut taken: IdVec<InstId, bool> = comp.insts.ids().map(|_| false).collect();
        for tuple in comp.post_order().into_iter().filter(|&t| comp[t].op == Op::Tuple) {
            for (number, &o) in comp[tuple].operands.iter().enumerate() {
                let given = matches!(comp[o].op, Op::Broadcast(_))
                    && matches!(comp[comp[o].operands[0]].op, Op::Constant(_))
                    && users[o].iter().all(|&u| comp[u].op == Op::Tuple);
                if given && std::mem::replace(&mut taken[o], true) {
                    let comp = &mut out.get_or_insert_with(|| module.clone()).comps[id];
                    let own = comp.insts.push(comp.insts[o].clone());
                    comp.insts[tuple].operands[number] = own;
                }
            }
        }
    }
    out
}

/// Sinks values without parameters: the execution order `plain`, except that such a value comes right before its first reader.
pub fn sink_order(comp: &Computation, plain: Vec<InstId>) -> Vec<InstId> {
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
            add_sunk(comp, o, &free, &mut done, &mut out);
        }
        out.push(id);
    }
    out
}

/// Adds `id` to the order, after the constants and broadcasts that it needs and that are not there yet.
fn add_sunk(
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
