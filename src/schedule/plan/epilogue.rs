//! How long an epilogue is: what is computed of each element of an anchor before it is stored.
//!
//! A long one (gelu) stands once in a loop over the sums of a tile, which it reads from the stack: written out for each of two dozen
//! vectors, its instructions would come from farther away than they take. `Stmt::Release` before it tells LLVM that no vector stays in a
//! register from there on: it would keep the epilogue's constants in registers through the product's loop, and the sums on the stack.
use super::fuse::Fusion;
use crate::hlo::{Computation, InstId, Module, Op};
use std::collections::HashSet;

/// Least cycles per element for which an epilogue counts as long.
const LONG: u64 = 48;

/// Whether the operations inlined between `anchor` and `root` take at least `LONG` cycles per element.
pub fn is_long_epilogue(module: &Module, comp: &Computation, fusion: &Fusion, root: InstId, anchor: InstId) -> bool {
    let (mut open, mut seen, mut sum) = (vec![root], HashSet::from([anchor]), 0);
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let is_inlined = id == root || !fusion.is_materialised(id);
        sum += if is_inlined { cycles_per_element(module, comp, id) } else { 1 };
        if is_inlined {
            open.extend(&comp[id].operands);
        }
    }
    sum >= LONG
}

/// Estimated cycles of an instruction per element.
fn cycles_per_element(module: &Module, comp: &Computation, id: InstId) -> u64 {
    match &comp[id].op {
        Op::Elementwise(op) => op.cycles(),
        Op::Map { comp: applied, .. } => {
            let applied = &module.comps[*applied];
            applied.insts.ids().map(|id| cycles_per_element(module, applied, id)).sum()
        }
        // a number, the choice between an element and the fill
        Op::Iota(_) | Op::Pad(_) => 1,
        _ => 0,
    }
}
