//! Which instructions share a kernel.
//!
//! One walk from the result backwards. Each instruction is either *materialised* (it has a buffer; a kernel ends in it) or
//! *inlined* into the kernels that read it. Index-only instructions are inlined everywhere; pointwise ones where every
//! element is still computed once; and one contraction, reduction or window (the *anchor*) may be inlined into the pointwise
//! kernel that alone reads it at the same index: its epilogue.
use crate::hlo::{Computation, InstId, Op};
use crate::util::id_vec::{Id, IdVec};

/// Most instructions that one kernel takes in.
const LARGEST_GROUP: usize = 96;

/// What becomes of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has a buffer of its own.
    Materialised,
    /// It is computed inside the kernel of this root, or (`None`) of each reader.
    Inlined(Option<InstId>),
}

/// The cut of one computation into kernels.
#[derive(Clone, Debug)]
pub struct Plan {
    /// By instruction.
    pub fate: IdVec<InstId, Fate>,
    /// The anchor of a root, where it has one.
    pub anchor: IdVec<InstId, Option<InstId>>,
}

/// How a reader uses an operand.
#[derive(PartialEq)]
enum Use {
    /// Each element once.
    Once,
    /// Elements again and again.
    Often,
    /// From memory only.
    Memory,
}

fn use_of(op: &Op, operand: usize) -> Use {
    match op {
        Op::Elementwise(_)
        | Op::Reshape
        | Op::Bitcast
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Reverse(_)
        | Op::Copy
        | Op::Map { .. }
        | Op::Sort { .. } => Use::Once,
        Op::OptimizationBarrier | Op::Concatenate(_) | Op::Reduce { .. } => Use::Once,
        Op::Pad(_) => {
            if operand == 0 {
                Use::Once
            } else {
                Use::Often
            }
        }
        Op::Broadcast(_) => Use::Often,
        Op::DynamicSlice(_) | Op::DynamicUpdateSlice | Op::Gather(_) => {
            if operand == 0 {
                Use::Once
            } else {
                Use::Often
            }
        }
        Op::ReduceWindow { .. } => {
            if operand == 0 {
                Use::Memory
            } else {
                Use::Often
            }
        }
        _ => Use::Memory,
    }
}

/// Only moves elements, and for free.
fn index_only(op: &Op) -> bool {
    matches!(
        op,
        Op::Broadcast(_)
            | Op::Reshape
            | Op::Bitcast
            | Op::Transpose(_)
            | Op::Slice(_)
            | Op::Reverse(_)
            | Op::Iota(_)
            | Op::Copy
            | Op::OptimizationBarrier
    )
}

fn inlineable(op: &Op) -> bool {
    index_only(op)
        || matches!(op, Op::Elementwise(_) | Op::Map { .. } | Op::Pad(_) | Op::DynamicSlice(_) | Op::Gather(_))
}

fn can_anchor(op: &Op) -> bool {
    matches!(op, Op::Dot(_) | Op::Convolution(_) | Op::Reduce { .. } | Op::ReduceWindow { .. })
}

/// Decides for every instruction of `comp`.
pub fn plan(comp: &Computation) -> Plan {
    let order = comp.post_order();
    let users = comp.users();
    let mut p = Plan {
        fate: comp.insts.ids().map(|_| Fate::Materialised).collect(),
        anchor: comp.insts.ids().map(|_| None).collect(),
    };
    let mut pure = vec![false; comp.insts.len()];
    let mut size = vec![0usize; comp.insts.len()];
    for &id in order.iter().rev() {
        let inst = &comp[id];
        let readers = &users[id];
        let pointwise = matches!(inst.op, Op::Elementwise(_));
        if id == comp.root || readers.is_empty() || inst.shape.as_array().is_none() {
            pure[id.index()] = pointwise;
            continue;
        }
        let fate = decide(comp, &p, &pure, &size, id, readers);
        match fate {
            Fate::Inlined(Some(root)) => {
                size[root.index()] += 1;
                pure[id.index()] = pointwise && readers.iter().all(|u| pure[u.index()]) && same_dims(comp, id, root);
                if can_anchor(&inst.op) {
                    p.anchor[root] = Some(id);
                }
            }
            Fate::Inlined(None) => {}
            Fate::Materialised => pure[id.index()] = pointwise,
        }
        p.fate[id] = fate;
    }
    p
}

fn same_dims(comp: &Computation, a: InstId, b: InstId) -> bool {
    match (comp[a].shape.as_array(), comp[b].shape.as_array()) {
        (Some(x), Some(y)) => x.dims == y.dims,
        _ => false,
    }
}

fn decide(comp: &Computation, p: &Plan, pure: &[bool], size: &[usize], id: InstId, readers: &[InstId]) -> Fate {
    let inst = &comp[id];
    let uses: Vec<Use> = readers
        .iter()
        .flat_map(|&u| comp[u].operands.iter().enumerate().filter(|(_, o)| **o == id).map(move |(i, _)| (u, i)))
        .map(|(u, i)| use_of(&comp[u].op, i))
        .collect();
    let root_of = |u: InstId| match p.fate[u] {
        Fate::Materialised => Some(u),
        Fate::Inlined(root) => root,
    };
    let root = root_of(readers[0]).filter(|&r| readers.iter().all(|&u| root_of(u) == Some(r)));
    let all_pure = readers.iter().all(|u| pure[u.index()]);
    if can_anchor(&inst.op) {
        let fits =
            |r: InstId| all_pure && p.anchor[r].is_none() && same_dims(comp, id, r) && size[r.index()] < LARGEST_GROUP;
        return match root {
            Some(r) if fits(r) => Fate::Inlined(Some(r)),
            _ => Fate::Materialised,
        };
    }
    if !inlineable(&inst.op) || uses.contains(&Use::Memory) {
        return Fate::Materialised;
    }
    // Loops of its own write it right into the concatenation, and may follow a contraction.
    if matches!(inst.op, Op::Elementwise(_)) && readers.iter().any(|&u| matches!(comp[u].op, Op::Concatenate(_))) {
        return Fate::Materialised;
    }
    let once = readers.len() == 1 && uses.iter().all(|u| *u == Use::Once);
    match root {
        Some(r) if (once || all_pure) && size[r.index()] < LARGEST_GROUP => Fate::Inlined(Some(r)),
        _ if index_only(&inst.op)
            && inst.operands.iter().all(|&o| !inlineable(&comp[o].op) || index_only(&comp[o].op)) =>
        {
            Fate::Inlined(None)
        }
        _ => Fate::Materialised,
    }
}
