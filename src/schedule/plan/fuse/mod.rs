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
pub use path::{CoordinateChange, root_coordinates};
pub use rows::{FEW_COLUMNS, RowRole, RowShape, operand_role};
use std::collections::HashSet;

/// Upper limit of instructions fused into one kernel.
pub const LARGEST_GROUP: usize = 96;

/// The fusion decision for an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionDecision {
    /// The instruction has a buffer of its own.
    Materialised,
    /// The instruction is computed inside the kernel of this root, or (`None`) of each reader.
    Inlined(Option<InstId>),
}

/// The division of one computation into kernels.
#[derive(Clone, Debug)]
pub struct Fusion {
    /// The decision for each instruction.
    pub decision: IdVec<InstId, FusionDecision>,
    /// The anchor of each root: the instruction that decides the method of its kernel.
    pub anchor: IdVec<InstId, Option<InstId>>,
    /// The path from an anchor's elements to its root's: transformations of coordinates, the anchor's first.
    pub path: IdVec<InstId, Vec<CoordinateChange>>,
    /// The rows of a root whose kernel works by rows.
    pub rows: IdVec<InstId, Option<RowShape>>,
    /// The role of an instruction inside a row kernel.
    pub role: IdVec<InstId, RowRole>,
    /// The position of each instruction in post order.
    position: IdVec<InstId, usize>,
}

impl Fusion {
    /// Whether an instruction has a buffer of its own: a kernel ends in it.
    pub fn is_materialised(&self, id: InstId) -> bool {
        self.decision[id] == FusionDecision::Materialised
    }

    /// The root of the only kernel that computes an instruction.
    pub fn root_of(&self, id: InstId) -> Option<InstId> {
        match self.decision[id] {
            FusionDecision::Materialised => Some(id),
            FusionDecision::Inlined(root) => root,
        }
    }

    /// Whether an instruction has one value for each row in the row kernel `root`.
    pub fn is_row_value(&self, id: InstId, root: InstId) -> bool {
        id == root || self.decision[id] == FusionDecision::Inlined(Some(root)) && self.role[id] != RowRole::Free
    }

    /// The instructions of row kernel `root` with one value for each row, in post order.
    pub fn row_kernel_members(&self, comp: &Computation, root: InstId) -> Vec<InstId> {
        let mut members = self.computed_instructions(comp, root);
        members.retain(|&id| self.is_row_value(id, root));
        members.sort_unstable_by_key(|&id| self.position[id]);
        members
    }

    /// The instructions that the kernel of `root` computes: the root and all instructions fused into it, each once.
    pub fn computed_instructions(&self, comp: &Computation, root: InstId) -> Vec<InstId> {
        let (mut open, mut seen, mut all) = (vec![root], HashSet::new(), Vec::new());
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                all.push(id);
                open.extend(comp[id].operands.iter().filter(|&&o| !self.is_materialised(o)));
            }
        }
        all
    }
}

/// How often a reader uses each element of an operand, or that it needs the operand in memory.
#[derive(Clone, Copy, PartialEq)]
pub enum OperandUse {
    /// The reader uses each element once.
    Once,
    /// The reader uses elements several times.
    Often,
    /// The reader needs the operand in memory.
    Memory,
}

/// How often `op` uses each element of operand number `operand`, or that it needs the operand in memory.
pub fn operand_use(op: &Op, operand: usize) -> OperandUse {
    match op {
        Op::Broadcast(_) => OperandUse::Often,
        Op::ReduceWindow { .. } if operand > 0 => OperandUse::Often,
        Op::Concatenate(_) | Op::Reduce { .. } | Op::Sort { .. } | Op::TopK { .. } => OperandUse::Once,
        _ => match op.element_mapping() {
            ElementMapping::Pointwise | ElementMapping::SameOrder | ElementMapping::Rearranged => OperandUse::Once,
            ElementMapping::Selected if operand > 0 => OperandUse::Often,
            ElementMapping::Selected => OperandUse::Once,
            ElementMapping::Folded | ElementMapping::Opaque => OperandUse::Memory,
        },
    }
}

/// Whether an op only moves elements, by a change of indices alone.
pub fn only_moves_elements(op: &Op) -> bool {
    matches!(op.element_mapping(), ElementMapping::SameOrder | ElementMapping::Rearranged)
}

/// Whether each element depends on a few elements of the operands, so that it may be computed where it is read.
pub fn is_inlineable(op: &Op) -> bool {
    match op.element_mapping() {
        ElementMapping::Pointwise | ElementMapping::SameOrder | ElementMapping::Rearranged => true,
        // one that writes into an array, or joins several, has loops of its own
        ElementMapping::Selected => !matches!(op, Op::Concatenate(_) | Op::DynamicUpdateSlice),
        ElementMapping::Folded | ElementMapping::Opaque => false,
    }
}

fn can_anchor(op: &Op) -> bool {
    matches!(op, Op::Dot(_) | Op::Convolution(_) | Op::Reduce { .. } | Op::ReduceWindow { .. })
}

/// Whether an op preserves the row-major order of elements.
fn linear(op: &Op) -> bool {
    op.element_mapping() == ElementMapping::SameOrder || matches!(op, Op::Elementwise(_))
}

/// Decides on the fusion of every instruction of `comp`. Of several possible anchors of a kernel, the last in `order` (a topological
/// order) is chosen.
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
    let mut p = FusionPlanner {
        module,
        comp,
        uses: comp.operand_uses(),
        fusion,
        align: vec![None; n],
        members: vec![Vec::new(); n],
        again: vec![false; n],
        above_rows: vec![false; n],
    };
    p.mark_row_reductions(order);
    for &id in order.iter().rev() {
        p.visit(id);
    }
    p.fusion
}

struct FusionPlanner<'a> {
    module: &'a Module,
    comp: &'a Computation,
    /// The readers of each instruction, with the index of the operand.
    uses: OperandUses,
    fusion: Fusion,
    /// The path from an instruction's elements to its root's, if it is one to one.
    align: Vec<Option<Vec<CoordinateChange>>>,
    /// The instructions that are fused into each root, readers before their operands.
    members: Vec<Vec<InstId>>,
    /// Whether an inlined instruction is computed several times for one element of the root.
    again: Vec<bool>,
    /// Whether an instruction is a row reduction, or may be computed from one by pointwise ops and broadcasts.
    above_rows: Vec<bool>,
}

impl FusionPlanner<'_> {
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
                if self.fusion.rows[root].is_some() && self.is_rowwise(id) {
                    return;
                }
                self.align[id.index()] =
                    self.common_path(id).filter(|_| linear(&inst.op) || path::permutes_elements(&inst.op));
                if can_anchor(&inst.op) {
                    self.fusion.path[id] = self.common_path(id).unwrap_or_default();
                    self.fusion.anchor[root] = Some(id);
                }
            }
            FusionDecision::Inlined(None) => {}
            FusionDecision::Materialised => {
                let each = linear(&inst.op) || path::permutes_elements(&inst.op);
                self.align[id.index()] = (each && inst.shape.as_array().is_some()).then(Vec::new);
                self.start_row_kernel(id);
            }
        }
    }

    /// The readers of `id`, with the index of the operand.
    fn uses(&self, id: InstId) -> impl Iterator<Item = (InstId, usize)> + '_ {
        self.uses[id].iter().copied()
    }

    /// The root of the kernel that computes all readers of `id`, if it is the same for all.
    fn common_root(&self, id: InstId) -> Option<InstId> {
        let mut roots = self.uses(id).map(|(user, _)| self.fusion.root_of(user));
        let root = roots.next()??;
        roots.all(|other| other == Some(root)).then_some(root)
    }

    /// The path from elements of `id` to the root's, if it is one to one and the same through every reader.
    fn common_path(&self, id: InstId) -> Option<Vec<CoordinateChange>> {
        let mut common: Option<Vec<CoordinateChange>> = None;
        for (u, _) in self.uses(id) {
            let above = self.align[u.index()].as_ref()?;
            let through = path::path_through_reader(self.comp, id, u, above)?;
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
                if let Some(decision) = self.join_row_kernel(id, r) {
                    return decision;
                }
            } else if self.start_row_kernel_at(id, r) {
                return FusionDecision::Inlined(Some(r));
            }
        }
        if can_anchor(op) {
            let free = |r: &InstId| self.fusion.anchor[*r].is_none() && self.fusion.rows[*r].is_none();
            let fits = root.filter(free).filter(|_| self.common_path(id).is_some());
            return fits.map_or(FusionDecision::Materialised, |r| FusionDecision::Inlined(Some(r)));
        }
        if !is_inlineable(op) || self.uses(id).any(|(u, i)| operand_use(&self.comp[u].op, i) == OperandUse::Memory) {
            return FusionDecision::Materialised;
        }
        // Loops of its own write it right into the concatenation, and may follow a contraction.
        let joined = |(user, _)| matches!(self.comp[user].op, Op::Concatenate(_));
        if matches!(op, Op::Elementwise(_)) && self.uses(id).any(joined) {
            return FusionDecision::Materialised;
        }
        // The kernel has its contraction: this one's result is better finished where it is made.
        let taken = root.is_some_and(|r| self.fusion.anchor[r].is_some_and(|a| self.is_contraction(a)));
        if taken && matches!(op, Op::Elementwise(_)) && self.is_epilogue(id) {
            return FusionDecision::Materialised;
        }
        let once = self.is_read_once(id) && !self.is_read_often(id);
        let path = self.common_path(id);
        match root {
            // A value made of rows ends a kernel where its readers cannot be of it.
            Some(r) if self.follows_row_reduction(id) && !self.keeps_order_at_root(r, path.as_deref()) => {
                FusionDecision::Materialised
            }
            Some(r) if once || path.is_some() || only_moves_elements(op) => FusionDecision::Inlined(Some(r)),
            _ if only_moves_elements(op) && self.comp[id].operands.iter().all(|&o| self.is_kept_for(o, id)) => {
                FusionDecision::Inlined(None)
            }
            _ => FusionDecision::Materialised,
        }
    }

    /// Whether an instruction has one reader, which uses each element at one place. A pointwise reader may have it as several operands, as in
    /// `x * x`.
    fn is_read_once(&self, id: InstId) -> bool {
        let mut uses = self.uses(id);
        let Some((first, _)) = uses.next() else { return false };
        let is_pointwise = matches!(self.comp[first].op, Op::Elementwise(_));
        uses.all(|(user, _)| user == first && is_pointwise)
    }

    /// Whether a reader uses elements several times, itself or through ops that only move them.
    fn is_read_often(&self, id: InstId) -> bool {
        self.uses(id).any(|(u, i)| self.again[u.index()] || operand_use(&self.comp[u].op, i) == OperandUse::Often)
    }

    /// Whether storing `id` is cheaper than storing the result of `reader`: `id` is in memory anyway, or is smaller.
    fn is_kept_for(&self, id: InstId, reader: InstId) -> bool {
        let op = &self.comp[id].op;
        !is_inlineable(op) || only_moves_elements(op) || self.elements(id) < self.elements(reader)
    }

    fn elements(&self, id: InstId) -> Option<u64> {
        self.comp[id].shape.as_array().map(|a| a.elements())
    }
}
