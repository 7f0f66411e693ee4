//! Operands whose memory a result may take. A result that is computed from an operand element for element, or that updates it, is written
//! over the operand where the operand is memory of this computation's own that nothing reads afterwards. A loop that fills a list element
//! by element then copies no list, and the sum of a skip connection moves two arrays and not three. Margins of zeros stay where they are.
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::{BufId, BufferLocation};
use crate::schedule::emit::{Emitter, ValueBuffers};
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::fuse::{RowRole, operand_role};
use crate::schedule::plan::loop_state;
use crate::schedule::plan::placement::Placement;
use std::collections::{HashMap, HashSet};

/// The state buffer that each next value of a loop may be written to.
pub fn next_value_buffers(comp: &Computation, state: &ValueBuffers) -> HashMap<InstId, BufId> {
    let Some(parts) = comp.params.first().and_then(|&p| comp[p].shape.as_tuple()) else { return HashMap::new() };
    let first = |part: usize| parts[..part].iter().map(|p| p.leaves().len()).sum::<usize>();
    let leaf = |(id, part): (InstId, usize)| Some((id, *state.leaves.get(first(part))?));
    loop_state::next_values(comp).into_iter().filter_map(leaf).collect()
}

impl<'a> Emitter<'a> {
    /// Whether `id` is the last reader of `buf`, and this computation may write to that memory.
    pub(in crate::schedule) fn is_last_use(&self, buf: BufId, id: InstId) -> bool {
        let now = self.scope.stages.lifetimes.live_range(id).first;
        (matches!(self.program.buffers[buf].place, BufferLocation::Workspace(_)) || self.is_changed_variable(buf))
            && !self.scope.borrowed.contains(&buf)
            && self.scope.values.last_read(buf) <= now
    }

    /// Memory in use whose contents the result of `id` may overwrite; none if a part of `id` already has memory elsewhere.
    pub(in crate::schedule) fn reusable_memory(&self, id: InstId) -> Option<ValueBuffers> {
        if self.scope.placed.contains_key(&id) {
            return None;
        }
        self.operand_memory(id).or_else(|| self.next_in_place(id)).or_else(|| self.over_operand(id))
    }

    /// The memory of the operand of an update, if the result may be written over it.
    fn operand_memory(&self, id: InstId) -> Option<ValueBuffers> {
        let inst = &self.scope.comp[id];
        let count = match inst.op {
            Op::DynamicUpdateSlice => 1,
            Op::Scatter { .. } => inst.operands.len() / 2,
            _ => return None,
        };
        let mut leaves = Vec::new();
        for operand in &inst.operands[..count] {
            let value = self.scope.values.get(*operand).filter(|v| v.layout.is_none())?;
            let buf = value.leaves.first().copied()?;
            if leaves.contains(&buf) || !self.is_last_use(buf, id) {
                return None;
            }
            leaves.push(buf);
        }
        // What else the update reads must lie elsewhere: it reads while it writes.
        let others = self.source_buffers(&inst.operands[count..]);
        (!others.iter().any(|b| leaves.contains(b))).then_some(ValueBuffers { leaves, layout: None })
    }

    /// The memory of an operand that the kernel of `id`, pointwise or a product, may overwrite.
    fn over_operand(&self, id: InstId) -> Option<ValueBuffers> {
        let comp = self.scope.comp;
        let shape = comp[id].shape.as_array()?;
        let anchor = self.scope.fusion.anchor[id].map(|a| &comp[a].op);
        let in_order = matches!(comp[id].op, Op::Elementwise(_))
            && matches!(anchor, None | Some(Op::Dot(_) | Op::Convolution(_)))
            && shape.elements() > 0;
        if !in_order {
            return None;
        }
        // where elements lie must suit those who read the result: dense, or with margins as wide as they need
        let suits = |layout: Option<&Layout>| match (&self.scope.stages.placements[id], layout) {
            (Placement::Dense | Placement::Margin { made: false, .. }, None) => true,
            (Placement::Margin { low, high, made: true }, Some(l)) => {
                let wide = low.iter().zip(&l.low).chain(high.iter().zip(&l.high)).all(|(least, n)| least <= n);
                wide && *l == Layout::with_margin(&shape.dims, &l.low, &l.high)
            }
            (Placement::Dense | Placement::Margin { .. } | Placement::Part { .. }, _) => false,
        };
        let free = |buf: &BufId| {
            let buffer = &self.program.buffers[*buf];
            let dense = |l: Option<&Layout>| l.is_some() || buffer.elements == shape.elements();
            buffer.dtype == shape.dtype
                // a variable gets its next value, and no other
                && matches!(buffer.place, BufferLocation::Workspace(_))
                && self.scope.values.layout(*buf).is_some_and(|l| dense(l) && suits(l))
                // the state of a loop is its next value's
                && !self.scope.state_buffers.contains(buf)
                && self.is_last_use(*buf, id)
                && self.reads_elementwise(id, *buf)
                && self.is_needed_alike(id, *buf)
        };
        let buf = self.source_buffers(&comp[id].operands).into_iter().find(free)?;
        Some(ValueBuffers { leaves: vec![buf], layout: self.scope.values.layout(buf)?.cloned() })
    }

    /// Whether the same elements of the result of `id` and of `buf` are needed: if they shared a buffer, all elements that either needs
    /// would be computed.
    fn is_needed_alike(&self, id: InstId, buf: BufId) -> bool {
        let needed = self.plan.demand();
        let Some(shape) = self.scope.comp[id].shape.as_array().filter(|_| !needed.is_empty()) else { return true };
        let layout = self.scope.values.layout(buf).flatten().cloned().unwrap_or_else(|| Layout::dense(&shape.dims));
        self.regions.already_covers(buf, &shape.dims, &layout, needed.get(self.scope.id, id))
    }

    /// The buffers that the instructions `ids` read, through inlined instructions.
    pub(in crate::schedule) fn source_buffers(&self, ids: &[InstId]) -> Vec<BufId> {
        let mut out = Vec::new();
        let mut seen = HashSet::new();
        let mut open = ids.to_vec();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.scope.values.get(id) {
                Some(value) => out.extend(&value.leaves),
                None => open.extend(&self.scope.comp[id].operands),
            }
        }
        out
    }

    /// The memory of the old value of a loop's state or variable whose next value is `id`, if it may be overwritten already.
    fn next_in_place(&self, id: InstId) -> Option<ValueBuffers> {
        let &buf = self.scope.states.get(&id)?;
        let free = self.scope.stages.placements[id] == Placement::Dense
            && self.is_last_use(buf, id)
            && self.reads_elementwise(id, buf);
        free.then(|| ValueBuffers { leaves: vec![buf], layout: None })
    }

    /// Whether the kernel of `id`, to compute an element, reads no element of `buf` but the one at the same offset. Pointwise instructions
    /// and those that keep the order of elements are followed. A row kernel reads a row to the end before it writes the row, so it may read
    /// all elements of the row.
    pub(in crate::schedule) fn reads_elementwise(&self, id: InstId, buf: BufId) -> bool {
        let comp = self.scope.comp;
        let elements = |id: InstId| comp[id].shape.as_array().map(|a| a.elements());
        let rows = self.scope.fusion.rows[id];
        let mut seen = HashSet::new();
        let mut open = vec![(id, RowRole::Full)];
        while let Some((at, role)) = open.pop() {
            if let Some(value) = self.scope.values.get(at).filter(|_| at != id) {
                if value.leaves.contains(&buf) && role != RowRole::Full {
                    return false;
                }
                continue;
            }
            if !seen.insert(at) {
                continue;
            }
            let op = &comp[at].op;
            let one_by_one =
                matches!(op, Op::Elementwise(_) | Op::Reshape | Op::Bitcast | Op::Copy | Op::OptimizationBarrier);
            for (i, &o) in comp[at].operands.iter().enumerate() {
                let request = match rows {
                    Some(rows) => operand_role(comp, at, i, role, rows),
                    None if one_by_one && elements(o) == elements(id) => RowRole::Full,
                    None => RowRole::Free,
                };
                if request != RowRole::Free {
                    open.push((o, request));
                } else if self.source_buffers(&[o]).contains(&buf) {
                    return false;
                }
            }
        }
        true
    }
}
