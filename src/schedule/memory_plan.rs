//! Where intermediate buffers lie in the workspace: intervals of launches, largest first, first fit; and an independent check.
use crate::diag::{Error, Result};
use crate::kernel::{BufId, Place, Program, Step};
use crate::util::id_vec::Id;
use std::collections::BTreeMap;

/// Bytes to which every buffer is aligned.
const ALIGN: u64 = 64;

/// Which launches touch which buffers, in the order of the steps.
#[derive(Clone, Debug, Default)]
struct Uses {
    /// First and last launch of each buffer.
    intervals: BTreeMap<BufId, (usize, usize)>,
    /// Number of launches so far.
    clock: usize,
}

impl Uses {
    /// Of all steps.
    fn of(program: &Program) -> Uses {
        let mut uses = Uses::default();
        uses.steps(program, &program.steps);
        uses
    }

    fn steps(&mut self, program: &Program, all: &[Step]) {
        for step in all {
            let start = self.clock;
            match step {
                Step::Launch(kernel) => self.touch(program.kernels[*kernel].buffers()),
                Step::While { cond, pred, body } => {
                    self.steps(program, cond);
                    self.touch([*pred]);
                    self.steps(program, body);
                    self.close(start);
                }
                Step::Branch { selector, branches } => {
                    self.touch([*selector]);
                    branches.iter().for_each(|branch| self.steps(program, branch));
                    self.close(start);
                }
                Step::Together(parts) => {
                    parts.iter().for_each(|part| self.steps(program, part));
                    self.widen(start);
                }
            }
        }
    }

    /// The next launch touches these.
    fn touch(&mut self, buffers: impl IntoIterator<Item = BufId>) {
        for b in buffers {
            let slot = self.intervals.entry(b).or_insert((self.clock, self.clock));
            slot.1 = self.clock;
        }
        self.clock += 1;
    }

    /// What steps from `start` on read from before them lives until their end.
    fn close(&mut self, start: usize) {
        let end = self.clock;
        for (first, last) in self.intervals.values_mut() {
            if *first < start && *last >= start {
                *last = end;
            }
        }
        self.clock += 1;
    }

    /// What steps from `start` on touch lives from the first of them to the last: they run at once.
    fn widen(&mut self, start: usize) {
        let end = self.clock;
        for (first, last) in self.intervals.values_mut().filter(|i| i.1 >= start) {
            (*first, *last) = ((*first).min(start), end);
        }
        self.clock += 1;
    }
}

/// Gives each workspace buffer its offset.
pub fn plan(program: &mut Program) -> Result<()> {
    let uses = Uses::of(program);
    let mut todo: Vec<(BufId, u64, (usize, usize))> = uses
        .intervals
        .iter()
        .filter(|(b, _)| matches!(program.buffers[**b].place, Place::Workspace(_)))
        .map(|(&b, &interval)| {
            let buffer = &program.buffers[b];
            (b, (buffer.elements * buffer.dtype.bytes() as u64).max(1).next_multiple_of(ALIGN), interval)
        })
        .collect();
    todo.sort_by_key(|&(b, size, _)| (std::cmp::Reverse(size), b.index()));
    let mut placed: Vec<(u64, u64, (usize, usize))> = Vec::new();
    let mut top = 0;
    for (b, size, interval) in todo {
        let mut taken: Vec<(u64, u64)> =
            placed.iter().filter(|p| p.2.0 <= interval.1 && interval.0 <= p.2.1).map(|p| (p.0, p.1)).collect();
        taken.sort_unstable();
        let mut at = 0;
        for (from, to) in taken {
            if from >= at + size {
                break;
            }
            at = at.max(to);
        }
        placed.push((at, at + size, interval));
        program.buffers[b].place = Place::Workspace(at);
        top = top.max(at + size);
    }
    program.workspace_bytes = top;
    check(program, &uses)
}

/// No two buffers that live at the same launch share a byte.
fn check(program: &Program, uses: &Uses) -> Result<()> {
    let mut events: Vec<(usize, BufId, u64, u64, usize)> = Vec::new();
    for (&b, &(first, last)) in &uses.intervals {
        let buffer = &program.buffers[b];
        if let Place::Workspace(at) = buffer.place {
            events.push((first, b, at, at + buffer.elements * buffer.dtype.bytes() as u64, last));
        }
    }
    events.sort_unstable();
    let mut live: Vec<(BufId, u64, u64, usize)> = Vec::new();
    for (first, b, from, to, last) in events {
        live.retain(|l| l.3 >= first);
        if let Some(l) = live.iter().find(|l| l.1 < to && from < l.2) {
            return Err(Error::internal("memory plan", format!("b{} and b{} overlap", b.0, l.0.0)));
        }
        live.push((b, from, to, last));
    }
    Ok(())
}
