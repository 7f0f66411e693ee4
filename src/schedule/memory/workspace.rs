//! Where intermediate buffers of a program lie in the workspace: when its launches touch them, the places that `memory/allocate.rs` gives
//! them, and an independent check.
use crate::diag::{Code, Error, Result};
use crate::kernel::{BufId, Buffer, BufferLocation, Program, Step};
use crate::schedule::memory::allocate::{BufferRequest, best, most_at_once};
use crate::schedule::memory::liveness::LiveRange;
use crate::schedule::memory::timeline::{Disjoint, Stabbed, Timeline};
use crate::tensor::DType;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Bytes to which every buffer is aligned that has as many; smaller ones to the next power of two.
const ALIGN: u64 = 64;
/// Bytes of the largest workspace.
const MOST_BYTES: u64 = 1 << 46;

/// The interval of launches that touch each buffer, in the order of the steps.
#[derive(Clone, Debug, Default)]
struct Uses {
    /// The launches of each buffer.
    intervals: BTreeMap<BufId, LiveRange>,
    /// The buffers that launches touched, in order; those of a loop or of branches that are over once for all of it.
    touched: Vec<BufId>,
    /// Number of launches so far.
    clock: usize,
}

impl Uses {
    /// Collects the uses in all steps of a program.
    fn of(program: &Program) -> Uses {
        let mut uses = Uses::default();
        uses.steps(program, &program.steps);
        uses
    }

    fn steps(&mut self, program: &Program, all: &[Step]) {
        for step in all {
            let start = Start { clock: self.clock, touched: self.touched.len() };
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
            self.intervals.entry(b).or_insert(LiveRange { first: self.clock, last: self.clock }).last = self.clock;
            self.touched.push(b);
        }
        self.clock += 1;
    }

    /// Extends to the end of a loop the lifetimes of buffers that its steps, from `start` on, read from before it.
    fn close(&mut self, start: Start) {
        let end = self.clock;
        self.touched_since(start, |span| {
            if span.first < start.clock {
                span.last = end;
            }
        });
    }

    /// Extends the lifetimes of buffers that steps from `start` on touch to the whole range: these steps run at the same time.
    fn widen(&mut self, start: Start) {
        let end = self.clock;
        self.touched_since(start, |span| *span = LiveRange { first: span.first.min(start.clock), last: end });
    }

    /// Changes the spans of the buffers that steps from `start` on touched, and goes on to the next moment.
    fn touched_since(&mut self, start: Start, change: impl Fn(&mut LiveRange)) {
        let mut since = self.touched.split_off(start.touched);
        since.sort_unstable();
        since.dedup();
        for b in &since {
            self.intervals.get_mut(b).into_iter().for_each(&change);
        }
        self.touched.extend(since);
        self.clock += 1;
    }
}

/// The moment at which a loop, branches or parts begin.
#[derive(Clone, Copy)]
struct Start {
    clock: usize,
    /// How many buffers were touched before, those that were touched again counting again.
    touched: usize,
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
        program.buffers[w.buf].place = BufferLocation::Workspace(at);
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
    place: BufferLocation,
    dtype: DType,
    bytes: u64,
    /// From the first launch that touches it on, and when its guests live.
    taken: Disjoint,
}

/// How often at most a buffer is offered to the memory of a result.
const MOST_OFFERS: usize = 10_000_000;

/// Gives buffers of the peak, the largest first, the memory of results of their type that nothing has touched by then.
fn lodge(program: &mut Program, uses: &Uses, wanted: &mut Vec<BufferRequest>) {
    let result = |(b, buffer): (BufId, &Buffer)| match (buffer.place, uses.intervals.get(&b)) {
        (place @ BufferLocation::Result(_), Some(span)) => {
            let mut taken = Disjoint::default();
            taken.add(LiveRange { last: usize::MAX, ..*span });
            Some(Host { place, dtype: buffer.dtype, bytes: buffer.bytes(), taken })
        }
        _ => None,
    };
    let mut hosts: Vec<Host> = program.buffers.iter().filter_map(result).collect();
    // the largest last, and of equal ones the last
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted[i].bytes);
    let mut candidates = Stabbed::of(uses.clock, order.iter().map(|&i| wanted[i].span));
    let mut timeline = Timeline::new(uses.clock);
    wanted.iter().for_each(|w| timeline.add(w.bytes, w.span));
    let mut is_guest = vec![false; wanted.len()];
    let mut offers = 0;
    while let Some((_, peak)) = timeline.peak().filter(|_| offers < MOST_OFFERS) {
        // what found no memory will find none later
        let Some(candidate) = candidates.last_at(peak) else { break };
        candidates.remove(candidate);
        let w = wanted[order[candidate]];
        let buffer = &mut program.buffers[w.buf];
        let bytes = buffer.bytes();
        let mut offered = hosts.iter_mut().inspect(|_| offers += 1);
        let fits = |h: &&mut Host| h.dtype == buffer.dtype && bytes <= h.bytes && h.taken.is_free(w.span);
        if let Some(host) = offered.find(fits) {
            buffer.place = host.place;
            host.taken.add(w.span);
            timeline.remove(w.bytes, w.span);
            is_guest[order[candidate]] = true;
        }
    }
    let mut guests = is_guest.iter();
    wanted.retain(|_| guests.next() != Some(&true));
}

/// The buffers that are to be placed.
fn wanted(program: &Program, uses: &Uses) -> Vec<BufferRequest> {
    let in_workspace = |b: &BufId| matches!(program.buffers[*b].place, BufferLocation::Workspace(_));
    let one = |(&buf, &span): (&BufId, &LiveRange)| {
        let buffer = &program.buffers[buf];
        let bytes = buffer.bytes().max(1);
        let align = bytes.next_power_of_two().min(ALIGN);
        BufferRequest { buf, bytes: bytes.next_multiple_of(align), align, span }
    };
    uses.intervals.iter().filter(|(b, _)| in_workspace(b)).map(one).collect()
}

/// The buffers of the workspace that live at the launch where most bytes do.
pub fn at_peak(program: &Program) -> Vec<BufId> {
    let wanted = wanted(program, &Uses::of(program));
    let (_, at) = most_at_once(&wanted);
    wanted.iter().filter(|w| at.is_some_and(|at| w.span.has(at))).map(|w| w.buf).collect()
}

/// The memory of groups of buffers in the workspace: the group's own bytes, and the most that all others take while it lives.
pub fn beside<T: Copy + Ord>(program: &Program, groups: &HashMap<BufId, T>) -> BTreeMap<T, (u64, u64)> {
    let uses = Uses::of(program);
    let wanted = wanted(program, &uses);
    let mut spans: BTreeMap<T, (u64, LiveRange)> = BTreeMap::new();
    let mut members: BTreeMap<T, Vec<&BufferRequest>> = BTreeMap::new();
    for w in &wanted {
        if let Some(&group) = groups.get(&w.buf) {
            members.entry(group).or_default().push(w);
            let (bytes, span) = spans.get(&group).copied().unwrap_or((0, w.span));
            spans.insert(group, (bytes + w.bytes, span.with(w.span)));
        }
    }
    let mut timeline = Timeline::new(uses.clock);
    wanted.iter().for_each(|w| timeline.add(w.bytes, w.span));
    let others = |(group, (own, span)): (T, (u64, LiveRange))| {
        let members = &members[&group];
        members.iter().for_each(|w| timeline.remove(w.bytes, w.span));
        let others = timeline.most_within(span);
        members.iter().for_each(|w| timeline.add(w.bytes, w.span));
        (group, (own, others))
    };
    spans.into_iter().map(others).collect()
}

/// No two buffers that live at the same launch share a byte.
fn check(program: &Program, uses: &Uses) -> Result<()> {
    let mut events: Vec<(usize, BufId, u64, u64, usize)> = Vec::new();
    for (&b, &LiveRange { first, last }) in &uses.intervals {
        let buffer = &program.buffers[b];
        if let BufferLocation::Workspace(at) = buffer.place {
            events.push((first, b, at, at + buffer.bytes(), last));
        }
    }
    events.sort_unstable();
    // what lives, by its first byte, and in the order in which it dies
    let mut live: BTreeMap<u64, (BufId, u64)> = BTreeMap::new();
    let mut ends: BinaryHeap<Reverse<(usize, u64)>> = BinaryHeap::new();
    for (first, b, from, to, last) in events.into_iter().filter(|(_, _, from, to, _)| from < to) {
        while let Some(&Reverse((end, at))) = ends.peek()
            && end < first
        {
            ends.pop();
            live.remove(&at);
        }
        if let Some((_, (l, _))) = live.range(..to).next_back().filter(|(_, (_, end))| from < *end) {
            return Err(Error::internal("memory plan", format!("b{} and b{} overlap", b.0, l.0)));
        }
        live.insert(from, (b, to));
        ends.push(Reverse((last, from)));
    }
    Ok(())
}
