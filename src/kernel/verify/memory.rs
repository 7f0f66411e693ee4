//! Buffers that share memory, and the set of those that hold values.
use super::bytes;
use crate::kernel::{BufId, BufferLocation, Program};
use crate::util::id_vec::Id;
use std::collections::BTreeMap;

/// A range of bytes of an address space. Buffers share memory if their ranges overlap in one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemoryRange {
    space: u64,
    from: u64,
    to: u64,
}

impl MemoryRange {
    /// The range of memory that a buffer takes. All buffers of the workspace share one space, as do those of one result; every other
    /// buffer has a space of its own, as has one without elements.
    fn of_buffer(program: &Program, b: BufId) -> MemoryRange {
        let first_of_buffers = 1 + program.results.len() as u64;
        match program.buffers[b].place {
            BufferLocation::Workspace(at) if bytes(program, b) > 0 => {
                MemoryRange { space: 0, from: at, to: at.saturating_add(bytes(program, b)) }
            }
            BufferLocation::Result(i) => MemoryRange { space: 1 + i as u64, from: 0, to: 1 },
            _ => MemoryRange { space: first_of_buffers + u64::from(b.0), from: 0, to: 1 },
        }
    }
}

/// A set of buffers that finds those that share memory with a given buffer.
pub struct BufferOverlaps<'p> {
    program: &'p Program,
    /// The buffers in the order of memory.
    all: Vec<(MemoryRange, BufId)>,
    /// By position in `all`: the largest last byte, in its space, of the ranges up to there.
    ends: Vec<u64>,
}

impl<'p> BufferOverlaps<'p> {
    /// The set with the members `buffers`.
    pub fn new(program: &'p Program, buffers: impl Iterator<Item = BufId>) -> BufferOverlaps<'p> {
        let mut all: Vec<(MemoryRange, BufId)> = buffers.map(|b| (MemoryRange::of_buffer(program, b), b)).collect();
        all.sort_unstable();
        let mut last = (0, 0);
        let farthest = |(range, _): &(MemoryRange, BufId)| {
            let before = if last.0 == range.space { last.1 } else { 0 };
            last = (range.space, range.to.max(before));
            last.1
        };
        let ends = all.iter().map(farthest).collect();
        BufferOverlaps { program, all, ends }
    }

    /// The members that share memory with `b`, which may be `b` itself.
    pub fn overlapping(&self, b: BufId) -> impl Iterator<Item = BufId> + '_ {
        let own = MemoryRange::of_buffer(self.program, b);
        let end = self.all.partition_point(|(r, _)| (r.space, r.from) < (own.space, own.to));
        let reach = move |&i: &usize| self.all[i].0.space == own.space && self.ends[i] > own.from;
        (0..end).rev().take_while(reach).filter(move |&i| self.all[i].0.to > own.from).map(|i| self.all[i].1)
    }
}

/// The buffers that hold values at a step, no two of which share memory, with a journal for undoing changes.
pub struct DefinedBuffers<'p> {
    program: &'p Program,
    /// Whether each buffer holds a value.
    holds: Vec<bool>,
    /// Buffers whose contents are defined, by space and first byte, with their last byte.
    at: BTreeMap<(u64, u64), (u64, BufId)>,
    /// Every change since the beginning: the buffer that began or ceased to hold a value.
    journal: Vec<BufId>,
}

/// A moment to which [`DefinedBuffers`] can go back.
#[derive(Clone, Copy)]
pub struct DefinedCheckpoint(usize);

impl<'p> DefinedBuffers<'p> {
    /// Creates a state in which only the buffers `given` hold values.
    pub fn new(program: &'p Program, given: impl Iterator<Item = BufId>) -> DefinedBuffers<'p> {
        let holds = vec![false; program.buffers.len()];
        let mut defined = DefinedBuffers { program, holds, at: BTreeMap::new(), journal: Vec::new() };
        given.for_each(|b| defined.define(b));
        defined
    }

    /// Whether a buffer holds a value.
    pub fn is_defined(&self, b: BufId) -> bool {
        self.holds[b.index()]
    }

    /// Records that a buffer gets a value, which overwrites those in its memory.
    pub fn define(&mut self, b: BufId) {
        if self.is_defined(b) {
            return;
        }
        let own = MemoryRange::of_buffer(self.program, b);
        let below = |d: &Self| d.at.range(..(own.space, own.to)).next_back().map(|(key, value)| (*key, *value));
        while let Some(((space, _), (to, other))) = below(self)
            && space == own.space
            && to > own.from
        {
            self.undefine(other);
        }
        self.toggle(b);
        self.journal.push(b);
    }

    /// Records that a buffer holds no value any more.
    pub fn undefine(&mut self, b: BufId) {
        if self.is_defined(b) {
            self.toggle(b);
            self.journal.push(b);
        }
    }

    /// A mark of the journal's current end, for [`DefinedBuffers::changed_since`].
    pub fn checkpoint(&self) -> DefinedCheckpoint {
        DefinedCheckpoint(self.journal.len())
    }

    /// The buffers that began or ceased to hold a value since `checkpoint`.
    pub fn changed_since(&self, checkpoint: DefinedCheckpoint) -> Vec<BufId> {
        let mut changes = self.journal[checkpoint.0..].to_vec();
        changes.sort_unstable();
        let odd = |same: &[BufId]| (same.len() % 2 == 1).then(|| same[0]);
        changes.chunk_by(|a, b| a == b).filter_map(odd).collect()
    }

    /// Undoes all changes since `checkpoint`.
    pub fn roll_back(&mut self, checkpoint: DefinedCheckpoint) {
        while self.journal.len() > checkpoint.0
            && let Some(b) = self.journal.pop()
        {
            self.toggle(b);
        }
    }

    fn toggle(&mut self, b: BufId) {
        let MemoryRange { space, from, to } = MemoryRange::of_buffer(self.program, b);
        let held = &mut self.holds[b.index()];
        *held = !*held;
        if *held {
            self.at.insert((space, from), (to, b));
        } else {
            self.at.remove(&(space, from));
        }
    }
}
