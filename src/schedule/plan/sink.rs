//! Sinks values without operands to their first reader: the zeros that the list of a second layer starts as take no memory while the first
//! layer runs, and each layer starts with zeros of its own, which become its list.
use crate::hlo::{Computation, InstId, Module, Op};
use crate::util::id_vec::IdVec;

/// The module with a broadcast of its own for each part of a tuple that is one of a constant: memory that nothing else reads
/// becomes that of a loop, and what several loops start as would be copied for each. `None` where none is shared.
pub fn apart(module: &Module) -> Option<Module> {
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

/// An order of execution: `plain`, which has operands before their readers, but what needs no parameter comes right before its
/// first reader.
pub fn order(comp: &Computation, plain: Vec<InstId>) -> Vec<InstId> {
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
