//! Fusion: which instructions share a kernel.
//!
//! One walk from the result backwards. Each instruction is either *materialised* (it has a buffer; a kernel ends in it) or
//! *inlined* into the kernels that read it. Index-only instructions are inlined everywhere; pointwise ones where every
//! element is still computed once. Two things more may be inlined:
//!
//! - one contraction, window or reduction (the *anchor*) into the kernel that alone reads it, element for element, through
//!   pointwise instructions, reshapes and transposes: its epilogue;
//! - any number of reductions along the rows that the kernel's arrays consist of, with all that lies between: softmax, norms
//!   (see [`rows`]).
mod cone;
mod path;
mod rows;

use crate::hlo::{Computation, ElementMapping, InstId, Module, Op, OperandUses};
use crate::util::id_vec::{Id, IdVec};
pub use path::{Move, forward};
pub use rows::{FEW_COLUMNS, RowRole, Rows, demand};
use std::collections::HashSet;

/// Most instructions that one kernel takes in.
pub const LARGEST_GROUP: usize = 96;

/// The fusion decision for an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionDecision {
    /// The instruction has a buffer of its own.
    Materialised,
    /// The instruction is computed inside the kernel of this root, or (`None`) of each reader.
    Inlined(Option<InstId>),
}

/// The cut of one computation into kernels.
#[derive(Clone, Debug)]
pub struct Fusion {
    /// By instruction.
    pub decision: IdVec<InstId, FusionDecision>,
    /// The anchor of a root, where it has one.
    pub anchor: IdVec<InstId, Option<InstId>>,
    /// How an anchor's elements become its root's: what is applied to coordinates, the anchor's end first.
    pub path: IdVec<InstId, Vec<Move>>,
    /// The rows of a root that is a row kernel.
    pub rows: IdVec<InstId, Option<Rows>>,
    /// The role of an instruction inside a row kernel.
    pub role: IdVec<InstId, RowRole>,
    /// The position of each instruction in post order.
    position: IdVec<InstId, usize>,
}

impl Fusion {
    /// Whether an instruction has a buffer of its own: a kernel ends in it.
    pub fn is_made(&self, id: InstId) -> bool {
        self.decision[id] == FusionDecision::Materialised
    }

    /// The root of the kernel that computes it, where there is one alone.
    pub fn root_of(&self, id: InstId) -> Option<InstId> {
        match self.decision[id] {
            FusionDecision::Materialised => Some(id),
            FusionDecision::Inlined(root) => root,
        }
    }

    /// Whether an instruction is a value of each row in the row kernel `root`.
    pub fn is_in_rows(&self, id: InstId, root: InstId) -> bool {
        id == root || self.decision[id] == FusionDecision::Inlined(Some(root)) && self.role[id] != RowRole::Free
    }

    /// The instructions of row kernel `root` that are values of each row, in post order.
    pub fn members_of_rows(&self, comp: &Computation, root: InstId) -> Vec<InstId> {
        let mut members = self.computed(comp, root);
        members.retain(|&id| self.is_in_rows(id, root));
        members.sort_unstable_by_key(|&id| self.position[id]);
        members
    }

    /// The instructions that the kernel of `root` computes: the root and all that is fused into it, each once.
    pub fn computed(&self, comp: &Computation, root: InstId) -> Vec<InstId> {
        let (mut open, mut seen, mut all) = (vec![root], HashSet::new(), Vec::new());
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                all.push(id);
                open.extend(comp[id].operands.iter().filter(|&&o| !self.is_made(o)));
            }
        }
        all
    }
}

/// How a reader uses an operand.
#[derive(Clone, Copy, PartialEq)]
pub enum Use {
    /// The reader takes each element once.
    Once,
    /// The reader takes elements several times.
    Often,
    /// The reader takes elements from memory only.
    Memory,
}

/// How `op` uses an operand.
pub fn use_of(op: &Op, operand: usize) -> Use {
    match op {
        Op::Broadcast(_) => Use::Often,
        Op::ReduceWindow { .. } if operand > 0 => Use::Often,
        Op::Concatenate(_) | Op::Reduce { .. } | Op::Sort { .. } | Op::TopK { .. } => Use::Once,
        _ => match op.elements() {
            ElementMapping::Pointwise | ElementMapping::SameOrder | ElementMapping::Rearranged => Use::Once,
            ElementMapping::Selected if operand > 0 => Use::Often,
            ElementMapping::Selected => Use::Once,
            ElementMapping::Folded | ElementMapping::Opaque => Use::Memory,
        },
    }
}

/// Whether an op only moves elements, and for free.
pub fn index_only(op: &Op) -> bool {
    matches!(op.elements(), ElementMapping::SameOrder | ElementMapping::Rearranged)
}

/// Whether each element is computed from a few of others, so that it may be where those are read.
pub fn inlineable(op: &Op) -> bool {
    match op.elements() {
        ElementMapping::Pointwise | ElementMapping::SameOrder | ElementMapping::Rearranged => true,
        // one that writes into an array, or joins several, has loops of its own
        ElementMapping::Selected => !matches!(op, Op::Concatenate(_) | Op::DynamicUpdateSlice),
        ElementMapping::Folded | ElementMapping::Opaque => false,
    }
}

fn can_anchor(op: &Op) -> bool {
    matches!(op, Op::Dot(_) | Op::Convolution(_) | Op::Reduce { .. } | Op::ReduceWindow { .. })
}

/// Whether an op keeps every element in row-major order.
fn linear(op: &Op) -> bool {
    op.elements() == ElementMapping::SameOrder || matches!(op, Op::Elementwise(_))
}

/// Decides for every instruction of `comp`. Of several that may be the anchor of a kernel, the last one of `order` is, which has
/// operands before their readers.
pub fn fuse(module: &Module, comp: &Computation, order: &[InstId]) -> Fusion {
    let ids = || comp.insts.ids();
    let mut position: IdVec<InstId, usize> = ids().map(|_| usize::MAX).collect();
    comp.post_order().into_iter().enumerate().for_each(|(i, id)| position[id] = i);
    let fusion = Fusion {
        decision: ids().map(|_| FusionDecision::Materialised).collect(),
        anchor: ids().map(|_| None).collect(),
        path: ids().map(|_| Vec::new()).collect(),
        rows: ids().map(|_| None).collect(),
        role: ids().map(|_| RowRole::Free).collect(),
        position,
    };
    let n = comp.insts.len();
    let mut p = Planner {
        module,
        comp,
        uses: comp.uses(),
        fusion,
        align: vec![None; n],
        members: vec![Vec::new(); n],
        again: vec![false; n],
        above_rows: vec![false; n],
    };
    p.note_rows(order);
    for &id in order.iter().rev() {
        p.visit(id);
    }
    p.fusion
}

struct Planner<'a> {
    module: &'a Module,
    comp: &'a Computation,
    /// The readers of each instruction, and which of their operands it is.
    uses: OperandUses,
    fusion: Fusion,
    /// How an instruction's elements become those of its root, where each becomes one.
    align: Vec<Option<Vec<Move>>>,
    /// The instructions that are fused into each root, readers before their operands.
    members: Vec<Vec<InstId>>,
    /// Inlined and computed again and again for one element of the root.
    again: Vec<bool>,
    /// Whether an instruction is a reduction of rows, or may be computed from one through what is pointwise or repeats elements.
    above_rows: Vec<bool>,
}

impl Planner<'_> {
    fn visit(&mut self, id: InstId) {
        let inst = &self.comp[id];
        let readers = &self.uses[id];
        let alone = id == self.comp.root || readers.is_empty() || inst.shape.as_array().is_none();
        let decision = if alone { FusionDecision::Materialised } else { self.decide(id) };
        self.fusion.decision[id] = decision;
        self.again[id.index()] = decision != FusionDecision::Materialised && self.is_read_often(id);
        match decision {
            FusionDecision::Inlined(Some(root)) => {
                self.members[root.index()].push(id);
                if self.fusion.rows[root].is_some() && self.rowwise(id) {
                    return;
                }
                self.align[id.index()] = self.common_path(id).filter(|_| linear(&inst.op) || path::moves(&inst.op));
                if can_anchor(&inst.op) {
                    self.fusion.path[id] = self.common_path(id).unwrap_or_default();
                    self.fusion.anchor[root] = Some(id);
                }
            }
            FusionDecision::Inlined(None) => {}
            FusionDecision::Materialised => {
                let each = linear(&inst.op) || path::moves(&inst.op);
                self.align[id.index()] = (each && inst.shape.as_array().is_some()).then(Vec::new);
                self.start_rows(id);
            }
        }
    }

    /// The readers of `id` with the number of the operand that it is.
    fn uses(&self, id: InstId) -> impl Iterator<Item = (InstId, usize)> + '_ {
        self.uses[id].iter().copied()
    }

    /// The kernel root that all readers of `id` are computed with, if it is the same for all.
    fn common_root(&self, id: InstId) -> Option<InstId> {
        let mut roots = self.uses(id).map(|(user, _)| self.fusion.root_of(user));
        let root = roots.next()??;
        roots.all(|other| other == Some(root)).then_some(root)
    }

    /// How elements of `id` become those of the root, if each becomes exactly one, the same by every reader.
    fn common_path(&self, id: InstId) -> Option<Vec<Move>> {
        let mut common: Option<Vec<Move>> = None;
        for (u, _) in self.uses(id) {
            let above = self.align[u.index()].as_ref()?;
            let through = path::through(self.comp, id, u, above)?;
            if common.as_ref().is_some_and(|c| *c != through) {
                return None;
            }
            common = Some(through);
        }
        common
    }

    fn decide(&mut self, id: InstId) -> FusionDecision {
        let op = &self.comp[id].op;
        let root = self.common_root(id);
        let root = root.filter(|r| self.members[r.index()].len() < LARGEST_GROUP);
        if let Some(r) = root {
            if self.fusion.rows[r].is_some() {
                if let Some(decision) = self.join_rows(id, r) {
                    return decision;
                }
            } else if self.found_rows(id, r) {
                return FusionDecision::Inlined(Some(r));
            }
        }
        if can_anchor(op) {
            let free = |r: &InstId| self.fusion.anchor[*r].is_none() && self.fusion.rows[*r].is_none();
            let fits = root.filter(free).filter(|_| self.common_path(id).is_some());
            return fits.map_or(FusionDecision::Materialised, |r| FusionDecision::Inlined(Some(r)));
        }
        if !inlineable(op) || self.uses(id).any(|(u, i)| use_of(&self.comp[u].op, i) == Use::Memory) {
            return FusionDecision::Materialised;
        }
        // Loops of its own write it right into the concatenation, and may follow a contraction.
        let joined = |(user, _)| matches!(self.comp[user].op, Op::Concatenate(_));
        if matches!(op, Op::Elementwise(_)) && self.uses(id).any(joined) {
            return FusionDecision::Materialised;
        }
        // The kernel has its contraction: this one's result is better finished where it is made.
        let taken = root.is_some_and(|r| self.fusion.anchor[r].is_some_and(|a| self.contracts(a)));
        if taken && matches!(op, Op::Elementwise(_)) && self.is_epilogue(id) {
            return FusionDecision::Materialised;
        }
        let once = self.is_read_once(id) && !self.is_read_often(id);
        let path = self.common_path(id);
        match root {
            // A value made of rows ends a kernel where its readers cannot be of it.
            Some(r) if self.ends_rows(id) && !self.in_order(r, path.as_deref()) => FusionDecision::Materialised,
            Some(r) if once || path.is_some() || index_only(op) => FusionDecision::Inlined(Some(r)),
            _ if index_only(op) && self.comp[id].operands.iter().all(|&o| self.is_kept_for(o, id)) => {
                FusionDecision::Inlined(None)
            }
            _ => FusionDecision::Materialised,
        }
    }

    /// Whether one reader alone takes each element at one place: `x * x` does.
    fn is_read_once(&self, id: InstId) -> bool {
        let mut uses = self.uses(id);
        let Some((first, _)) = uses.next() else { return false };
        let is_pointwise = matches!(self.comp[first].op, Op::Elementwise(_));
        uses.all(|(user, _)| user == first && is_pointwise)
    }

    /// Whether a reader takes elements again and again, itself or through what it only moves.
    fn is_read_often(&self, id: InstId) -> bool {
        self.uses(id).any(|(u, i)| self.again[u.index()] || use_of(&self.comp[u].op, i) == Use::Often)
    }

    /// Whether `id` had better be in memory than what `reader` makes of its elements: it is in any case, or is less.
    fn is_kept_for(&self, id: InstId, reader: InstId) -> bool {
        let op = &self.comp[id].op;
        !inlineable(op) || index_only(op) || self.elements(id) < self.elements(reader)
    }

    fn elements(&self, id: InstId) -> Option<u64> {
        self.comp[id].shape.as_array().map(|a| a.elements())
    }
}
