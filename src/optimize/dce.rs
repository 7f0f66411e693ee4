//! Drops what no result needs: instructions, then computations.
use super::rewrite::{Changed, compact_computation};
use crate::diag::Result;
use crate::hlo::{CompId, Module};
use crate::util::id_vec::Id;

/// Drops unreachable instructions and computations and numbers the others anew; order is kept.
pub fn dce(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for id in module.reachable() {
        changed = changed.or(compact_computation(&mut module.comps[id]));
    }
    Ok(changed.or(drop_computations(module)))
}

fn drop_computations(module: &mut Module) -> Changed {
    let mut kept = module.reachable();
    if kept.len() == module.comps.len() {
        return Changed::No;
    }
    kept.sort();
    let mut new_ids = vec![None; module.comps.len()];
    for (i, id) in kept.iter().enumerate() {
        new_ids[id.index()] = Some(CompId::from_index(i));
    }
    let old = std::mem::take(&mut module.comps);
    module.comps = old.into_iter().zip(&new_ids).filter(|(_, new)| new.is_some()).map(|(comp, _)| comp).collect();
    for comp in module.comps.values_mut() {
        for inst in comp.insts.values_mut() {
            for callee in inst.op.called_computations_mut() {
                *callee = new_ids[callee.index()].unwrap_or(*callee);
            }
        }
    }
    module.entry = new_ids[module.entry.index()].unwrap_or(module.entry);
    Changed::Yes
}
