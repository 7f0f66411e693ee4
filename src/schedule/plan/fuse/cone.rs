//! Decides from the operands below an instruction whether it is better off in a kernel of its own.
use super::rows::{RowShape, reduced_rows};
use super::{FusionPlanner, linear, path};
use crate::hlo::{InstId, Op};
use crate::util::id_vec::Id;

/// Upper limit of instructions in a cone: the operands, direct and indirect, from which one instruction is computed element by element.
const MOST_CONE_INSTRUCTIONS: usize = 64;

impl FusionPlanner<'_> {
    /// Whether a contraction would absorb `id` into its epilogue: everything computed from the contraction leads, element by element, to
    /// `id`.
    pub(super) fn is_epilogue(&self, id: InstId) -> bool {
        let mut cone = vec![id];
        let mut next = 0;
        while next < cone.len() && cone.len() < MOST_CONE_INSTRUCTIONS {
            let inst = &self.comp[cone[next]];
            next += 1;
            if !linear(&inst.op) && !path::permutes_elements(&inst.op) {
                continue;
            }
            for &o in &inst.operands {
                let inside = self.uses(o).all(|(user, _)| cone.contains(&user));
                if !inside || cone.contains(&o) || self.elements(o) != self.elements(id) {
                    continue;
                }
                if self.is_contraction(o) || matches!(self.comp[o].op, Op::ReduceWindow { .. }) {
                    return true;
                }
                cone.push(o);
            }
        }
        false
    }

    /// Whether `id` is a contraction: it multiplies and adds.
    pub(super) fn is_contraction(&self, id: InstId) -> bool {
        matches!(self.comp[id].op, Op::Dot(_) | Op::Convolution(_))
    }

    /// Marks the instructions that may be computed from row reductions; `order` is topological.
    pub(super) fn mark_row_reductions(&mut self, order: &[InstId]) {
        for &id in order {
            let inst = &self.comp[id];
            let passes = linear(&inst.op) || matches!(inst.op, Op::Broadcast(_));
            let below = passes && inst.operands.iter().any(|o| self.above_rows[o.index()]);
            self.above_rows[id.index()] = below || reduced_rows(self.module, self.comp, id).is_some();
        }
    }

    /// The division into rows of the row reduction from which `id` is computed element by element, or which is `id` itself.
    pub(super) fn rows_of_reduction(&self, id: InstId) -> Option<RowShape> {
        if !self.above_rows[id.index()] {
            return None;
        }
        let mut cone = vec![id];
        let mut next = 0;
        while next < cone.len() && cone.len() < MOST_CONE_INSTRUCTIONS {
            let at = cone[next];
            next += 1;
            let form = reduced_rows(self.module, self.comp, at);
            if form.is_some_and(|r| self.elements(id) == Some(r.rows)) {
                return form;
            }
            if !linear(&self.comp[at].op) {
                continue;
            }
            for &o in &self.comp[at].operands {
                if self.elements(o) == self.elements(id) && !cone.contains(&o) {
                    cone.push(o);
                }
            }
        }
        None
    }

    /// Whether `id` is computed from reductions of its own rows: the end of a softmax or a norm.
    pub(super) fn follows_row_reduction(&self, id: InstId) -> bool {
        if !matches!(self.comp[id].op, Op::Elementwise(_)) || !self.above_rows[id.index()] {
            return false;
        }
        let Some(elements) = self.elements(id) else { return false };
        let mut cone = vec![(id, false)];
        let mut next = 0;
        while next < cone.len() && cone.len() < MOST_CONE_INSTRUCTIONS {
            let (at, below) = cone[next];
            next += 1;
            let inst = &self.comp[at];
            let broadcast = matches!(inst.op, Op::Broadcast(_));
            if let Some(RowShape { rows, columns }) = reduced_rows(self.module, self.comp, at) {
                if below && rows.checked_mul(columns) == Some(elements) {
                    return true;
                }
                continue;
            }
            if linear(&inst.op) || broadcast {
                for &o in &inst.operands {
                    if !cone.iter().any(|c| c.0 == o) {
                        cone.push((o, below || broadcast));
                    }
                }
            }
        }
        false
    }
}
