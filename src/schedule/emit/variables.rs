//! Variables that keep their values between calls: read where they lie in the state, and changed there. The entry is to them what
//! the body of a loop is to what it carries: the next value is written over the old one where nothing reads that afterwards
//! (`operand_reuse.rs`), and else copied in the end, behind all results.
use crate::diag::{Error, Result};
use crate::hlo::{Computation, InstId};
use crate::kernel::{BufId, Buffer, BufferAccess, BufferLocation};
use crate::schedule::emit::Emitter;
use crate::schedule::emit::value::ValueBuffers;
use crate::schedule::plan::ComputationPlan;
use std::collections::HashMap;

impl<'a> Emitter<'a> {
    /// A buffer for each variable.
    pub(in crate::schedule) fn variable_buffers(&mut self) -> Vec<BufId> {
        let all = self.program.state.iter().map(|v| Buffer {
            dtype: v.info.dtype,
            elements: v.info.elements(),
            place: BufferLocation::State(v.offset),
        });
        let all: Vec<Buffer> = all.collect();
        all.into_iter().map(|buffer| self.program.buffers.push(buffer)).collect()
    }

    /// Whether `buf` is a variable that a call changes.
    pub(in crate::schedule) fn is_changed_variable(&self, buf: BufId) -> bool {
        let BufferLocation::State(at) = self.program.buffers[buf].place else { return false };
        // variables lie in order, and those without elements where others begin
        let from = self.program.state.partition_point(|v| v.offset < at);
        let mut there = self.program.state[from..].iter().take_while(|v| v.offset == at);
        there.any(|v| v.changed && v.info.bytes() > 0)
    }

    /// The variables' buffers that next values may be written to; empty except in the entry.
    pub(in crate::schedule) fn update_targets(
        &self,
        comp: &Computation,
        stages: &ComputationPlan,
        params: &[ValueBuffers],
    ) -> HashMap<InstId, BufId> {
        let values: HashMap<InstId, &ValueBuffers> = comp.params.iter().copied().zip(params).collect();
        let target = |&(next, old): &(InstId, InstId)| Some((next, *values.get(&old)?.leaves.first()?));
        stages.updates.iter().filter_map(target).collect()
    }

    /// Removes the next values of variables from the root's value. Returns their buffers and, at the same index, the buffer of the variable
    /// that each belongs to.
    pub(in crate::schedule) fn split_next_values(
        &self,
        root: &mut ValueBuffers,
        state: &[BufId],
    ) -> Result<(Vec<BufId>, Vec<BufId>)> {
        let changed = self.program.state.iter().zip(state).filter(|(v, _)| v.changed);
        let to: Vec<BufId> = changed.map(|(_, &buf)| buf).collect();
        if root.leaves.len() != self.program.results.len() + to.len() {
            return Err(Error::internal("schedule", "the root does not fit the results and the variables"));
        }
        Ok((root.leaves.split_off(self.program.results.len()), to))
    }

    /// Marks variables whose next value is their old one as unchanged, so that they may lie in read-only memory.
    pub(in crate::schedule) fn mark_unchanged_variables(&mut self, from: &[BufId], to: &[BufId]) {
        let stored = BufferAccess::of_steps(&self.program, &self.program.steps).written;
        let same = from.iter().zip(to).filter(|(from, to)| from == to && !stored.contains(to));
        let places: Vec<BufferLocation> = same.map(|(_, &to)| self.program.buffers[to].place).collect();
        for v in &mut self.program.state {
            v.changed &= !places.contains(&BufferLocation::State(v.offset)) || v.info.bytes() == 0;
        }
    }

    /// Emits copies of each buffer of `from` to the buffer of `to` at the same index. A source that is also a destination is saved first.
    pub(in crate::schedule) fn copy_buffers(&mut self, from: &[BufId], to: &[BufId]) {
        let mut from = from.to_vec();
        for (i, source) in from.iter_mut().enumerate() {
            if *source != to[i] && to.contains(source) {
                *source = self.allocate_copy(*source);
            }
        }
        for (&from, &to) in from.iter().zip(to) {
            if from != to {
                self.emit_copy(from, to);
            }
        }
    }
}
