//! Buffers that share memory, and the set of those that hold values.
use super::bytes;
use crate::kernel::{BufId, BufferLocation, Program};
use crate::util::id_vec::Id;
use std::collections::BTreeMap;

/// Bytes of an address space. Buffers share memory if their ranges meet in one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    space: u64,
    from: u64,
    to: u64,
}

impl Range {
    /// The range of memory that a buffer takes. The workspace is one space and each result is one, all of whose buffers share memory; every other buffer
    /// has a space of its own, as has one without elements.
    fn of(program: &Program, b: BufId) -> Range {
        let first_of_buffers = 1 + program.results.len() as u64;
        match program.buffers[b].place {
            BufferLocation::Workspace(at) if bytes(program, b) > 0 => {
                Range { space: 0, from: at, to: at.saturating_add(bytes(program, b)) }
            }
            BufferLocation::Result(i) => Range { space: 1 + i as u64, from: 0, to: 1 },
            _ => Range { space: first_of_buffers + u64::from(b.0), from: 0, to: 1 },
        }
    }
}

/// A set of buffers that is asked which of them share memory with another buffer.
pub struct Overlaps<'p> {
    program: &'p Program,
    /// In order of memory.
    all: Vec<(Range, BufId)>,
    /// By position in `all`: the last byte of the range up to here that ends farthest in its space.
    ends: Vec<u64>,
}

impl<'p> Overlaps<'p> {
    /// The set of these buffers.
    pub fn of(program: &'p Program, buffers: impl Iterator<Item = BufId>) -> Overlaps<'p> {
        let mut all: Vec<(Range, BufId)> = buffers.map(|b| (Range::of(program, b), b)).collect();
        all.sort_unstable();
        let mut last = (0, 0);
        let farthest = |(range, _): &(Range, BufId)| {
            let before = if last.0 == range.space { last.1 } else { 0 };
            last = (range.space, range.to.max(before));
            last.1
        };
        let ends = all.iter().map(farthest).collect();
        Overlaps { program, all, ends }
    }

    /// The members that share memory with `b`, which may be `b` itself.
    pub fn with(&self, b: BufId) -> impl Iterator<Item = BufId> + '_ {
        let own = Range::of(self.program, b);
        let end = self.all.partition_point(|(r, _)| (r.space, r.from) < (own.space, own.to));
        let reach = move |&i: &usize| self.all[i].0.space == own.space && self.ends[i] > own.from;
        (0..end).rev().take_while(reach).filter(move |&i| self.all[i].0.to > own.from).map(|i| self.all[i].1)
    }
}

/// The buffers that hold values at a step, none of which share memory, with a journal by which changes are undone.
pub struct Defined<'p> {
    program: &'p Program,
    /// By buffer.
    holds: Vec<bool>,
    /// Buffers whose contents are defined, by space and first byte, with their last byte.
    at: BTreeMap<(u64, u64), (u64, BufId)>,
    /// Each change since the beginning: the buffer that held a value then and did not before, or the other way round.
    journal: Vec<BufId>,
}

/// A moment to which [`Defined`] can go back.
#[derive(Clone, Copy)]
pub struct DefinedCheckpoint(usize);

impl<'p> Defined<'p> {
    /// Only these buffers hold values.
    pub fn new(program: &'p Program, given: impl Iterator<Item = BufId>) -> Defined<'p> {
        let holds = vec![false; program.buffers.len()];
        let mut defined = Defined { program, holds, at: BTreeMap::new(), journal: Vec::new() };
        given.for_each(|b| defined.define(b));
        defined
    }

    /// Whether a buffer holds a value.
    pub fn holds(&self, b: BufId) -> bool {
        self.holds[b.index()]
    }

    /// Notes that a buffer gets a value, which overwrites those in its memory.
    pub fn define(&mut self, b: BufId) {
        if self.holds(b) {
            return;
        }
        let own = Range::of(self.program, b);
        let below = |d: &Self| d.at.range(..(own.space, own.to)).next_back().map(|(key, value)| (*key, *value));
        while let Some(((space, _), (to, other))) = below(self)
            && space == own.space
            && to > own.from
        {
            self.undefine(other);
        }
        self.flip(b);
        self.journal.push(b);
    }

    /// Notes that a buffer holds nothing any more.
    pub fn undefine(&mut self, b: BufId) {
        if self.holds(b) {
            self.flip(b);
            self.journal.push(b);
        }
    }

    /// A mark of the journal's current end, for [`Defined::changed_since`].
    pub fn mark(&self) -> DefinedCheckpoint {
        DefinedCheckpoint(self.journal.len())
    }

    /// The buffers that held a value at `mark` and do not now, or the other way round.
    pub fn changed_since(&self, mark: DefinedCheckpoint) -> Vec<BufId> {
        let mut changes = self.journal[mark.0..].to_vec();
        changes.sort_unstable();
        let odd = |same: &[BufId]| (same.len() % 2 == 1).then(|| same[0]);
        changes.chunk_by(|a, b| a == b).filter_map(odd).collect()
    }

    /// Undoes all changes since `mark`.
    pub fn roll_back(&mut self, mark: DefinedCheckpoint) {
        while self.journal.len() > mark.0
            && let Some(b) = self.journal.pop()
        {
            self.flip(b);
        }
    }

    fn flip(&mut self, b: BufId) {
        let Range { space, from, to } = Range::of(self.program, b);
        let held = &mut self.holds[b.index()];
        *held = !*held;
        if *held {
            self.at.insert((space, from), (to, b));
        } else {
            self.at.remove(&(space, from));
        }
    }
}
