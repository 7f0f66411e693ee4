//! Where intermediate buffers of a program lie in the workspace: when its launches touch them, the places that `plan/places.rs` gives
//! them, and an independent check.
use crate::diag::{Code, Error, Result};
use crate::kernel::{BufId, Buffer, Place, Program, Step};
use crate::schedule::plan::live::Span;
use crate::schedule::plan::places::{Wanted, best, most_at_once, most_within};
use crate::tensor::DType;
use std::collections::{BTreeMap, HashMap};

/// Bytes to which every buffer is aligned that has as many; smaller ones to the next power of two.
const ALIGN: u64 = 64;
/// Bytes of the largest workspace.
const MOST_BYTES: u64 = 1 << 46;

/// Which launches touch which buffers, in the order of the steps.
#[derive(Clone, Debug, Default)]
struct Uses {
    /// The launches of each buffer.
    intervals: BTreeMap<BufId, Span>,
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
                Step::Call(call) => self.touch(call.buffers()),
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
            self.intervals.entry(b).or_insert(Span { first: self.clock, last: self.clock }).last = self.clock;
        }
        self.clock += 1;
    }

    /// What steps from `start` on read from before them lives until their end.
    fn close(&mut self, start: usize) {
        let end = self.clock;
        for span in self.intervals.values_mut().filter(|s| s.first < start && s.last >= start) {
            span.last = end;
        }
        self.clock += 1;
    }

    /// What steps from `start` on touch lives from the first of them to the last: they run at once.
    fn widen(&mut self, start: usize) {
        let end = self.clock;
        for span in self.intervals.values_mut().filter(|s| s.last >= start) {
            *span = Span { first: span.first.min(start), last: end };
        }
        self.clock += 1;
    }
}

/// Gives each workspace buffer its offset.
///
/// Where that is wanted, results that are not there yet take in what lives at the peak.
pub fn plan(program: &mut Program, in_results: bool) -> Result<()> {
    let uses = Uses::of(program);
    let mut wanted = wanted(program, &uses);
    if in_results {
        lodge(program, &uses, &mut wanted);
    }
    let (top, offsets) = best(&wanted);
    for (w, at) in wanted.iter().zip(offsets) {
        program.buffers[w.buf].place = Place::Workspace(at);
    }
    // `hlo::sizes` holds arrays far below this; what a plan makes of them is held to it here.
    if top > MOST_BYTES {
        return Err(Error::user(Code::TooLarge, format!("a call would need a workspace of {top} bytes")));
    }
    program.workspace_bytes = top.next_multiple_of(ALIGN);
    check(program, &uses)
}

/// Memory of the caller's that a result will be written to.
struct Host {
    place: Place,
    dtype: DType,
    bytes: u64,
    /// From the first launch that touches it on, and when its guests live.
    taken: Vec<Span>,
}

/// Gives buffers of the peak, the largest first, the memory of results of their type that nothing has touched by then.
fn lodge(program: &mut Program, uses: &Uses, wanted: &mut Vec<Wanted>) {
    let result = |(b, buffer): (BufId, &Buffer)| match (buffer.place, uses.intervals.get(&b)) {
        (place @ Place::Result(_), Some(span)) => {
            let own = Span { last: usize::MAX, ..*span };
            Some(Host { place, dtype: buffer.dtype, bytes: buffer.bytes(), taken: vec![own] })
        }
        _ => None,
    };
    let mut hosts: Vec<Host> = program.buffers.iter().filter_map(result).collect();
    while let Some(peak) = most_at_once(wanted).1 {
        let fits = |w: &Wanted| {
            let buffer = &program.buffers[w.buf];
            let bytes = buffer.bytes();
            let free = |h: &Host| h.taken.iter().all(|&other| !w.span.meets(other));
            hosts.iter().position(|h| h.dtype == buffer.dtype && bytes <= h.bytes && free(h))
        };
        let at_peak = wanted.iter().enumerate().filter(|(_, w)| w.span.has(peak));
        let found = at_peak.filter_map(|(i, w)| fits(w).map(|host| (w.bytes, i, host))).max();
        let Some((_, i, host)) = found else { break };
        let guest = wanted.remove(i);
        program.buffers[guest.buf].place = hosts[host].place;
        hosts[host].taken.push(guest.span);
    }
}

/// The buffers that are to be placed.
fn wanted(program: &Program, uses: &Uses) -> Vec<Wanted> {
    let in_workspace = |b: &BufId| matches!(program.buffers[*b].place, Place::Workspace(_));
    let one = |(&buf, &span): (&BufId, &Span)| {
        let buffer = &program.buffers[buf];
        let bytes = buffer.bytes().max(1);
        let align = bytes.next_power_of_two().min(ALIGN);
        Wanted { buf, bytes: bytes.next_multiple_of(align), align, span }
    };
    uses.intervals.iter().filter(|(b, _)| in_workspace(b)).map(one).collect()
}

/// The buffers of the workspace that live at the launch where most bytes do.
pub fn at_peak(program: &Program) -> Vec<BufId> {
    let wanted = wanted(program, &Uses::of(program));
    let (_, at) = most_at_once(&wanted);
    wanted.iter().filter(|w| at.is_some_and(|at| w.span.has(at))).map(|w| w.buf).collect()
}

/// What groups of buffers take in the workspace: the group's own bytes, and the most that all others take while it lives.
pub fn beside<T: Copy + Ord>(program: &Program, groups: &HashMap<BufId, T>) -> BTreeMap<T, (u64, u64)> {
    let wanted = wanted(program, &Uses::of(program));
    let mut spans: BTreeMap<T, (u64, Span)> = BTreeMap::new();
    for w in &wanted {
        if let Some(&group) = groups.get(&w.buf) {
            let (bytes, span) = spans.get(&group).copied().unwrap_or((0, w.span));
            spans.insert(group, (bytes + w.bytes, span.with(w.span)));
        }
    }
    let others = |group: T, (own, span): (u64, Span)| {
        let beside = wanted.iter().filter(|w| groups.get(&w.buf) != Some(&group));
        (group, (own, most_within(beside, span)))
    };
    spans.into_iter().map(|(group, span)| others(group, span)).collect()
}

/// No two buffers that live at the same launch share a byte.
fn check(program: &Program, uses: &Uses) -> Result<()> {
    let mut events: Vec<(usize, BufId, u64, u64, usize)> = Vec::new();
    for (&b, &Span { first, last }) in &uses.intervals {
        let buffer = &program.buffers[b];
        if let Place::Workspace(at) = buffer.place {
            events.push((first, b, at, at + buffer.bytes(), last));
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
