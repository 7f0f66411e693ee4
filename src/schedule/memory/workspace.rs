//! Where intermediate buffers of a program lie in the workspace: when its launches touch them, the places that `memory/allocate.rs` gives
//! them, and an independent check.
use crate::diag::{Code, Error, Result};
use crate::kernel::{BufId, Buffer, BufferLocation, Program, Step};
use crate::schedule::memory::allocate::{BufferRequest, peak_live_bytes, plan_offsets};
use crate::schedule::memory::liveness::LiveRange;
use crate::schedule::memory::timeline::{DisjointRanges, StabbingQuery, Timeline};
use crate::tensor::DType;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Alignment of buffers in bytes; smaller buffers are aligned to the next power of two of their size.
const ALIGN: u64 = 64;
/// Largest allowed workspace in bytes.
const MOST_BYTES: u64 = 1 << 46;

/// Live range of each buffer, in launches, in the order of the steps.
#[derive(Clone, Debug, Default)]
struct BufferLifetimes {
    /// The live range of each buffer.
    intervals: BTreeMap<BufId, LiveRange>,
    /// The buffers that launches touched, in order; after a loop or branches end, their buffers stand once for the whole.
    touched: Vec<BufId>,
    /// Number of launches so far.
    clock: usize,
}

impl BufferLifetimes {
    /// Collects the live ranges over all steps of a program.
    fn collect(program: &Program) -> BufferLifetimes {
        let mut uses = BufferLifetimes::default();
        uses.steps(program, &program.steps);
        uses
    }

    fn steps(&mut self, program: &Program, all: &[Step]) {
        for step in all {
            let start = RegionStart { clock: self.clock, touched: self.touched.len() };
            match step {
                Step::Launch(kernel) => self.touch_buffers(program.kernels[*kernel].buffers()),
                Step::Call(call) => self.touch_buffers(call.buffers()),
                Step::While { cond, pred, body, .. } => {
                    self.steps(program, cond);
                    self.touch_buffers([*pred]);
                    self.steps(program, body);
                    self.close(start);
                }
                Step::Branch { selector, branches } => {
                    self.touch_buffers([*selector]);
                    branches.iter().for_each(|branch| self.steps(program, branch));
                    self.close(start);
                }
                Step::Together(parts) => {
                    parts.iter().for_each(|part| self.steps(program, part));
                    self.extend_from(start);
                }
            }
        }
    }

    /// Records that the next launch touches `buffers`.
    fn touch_buffers(&mut self, buffers: impl IntoIterator<Item = BufId>) {
        for b in buffers {
            self.intervals.entry(b).or_insert(LiveRange { first: self.clock, last: self.clock }).last = self.clock;
            self.touched.push(b);
        }
        self.clock += 1;
    }

    /// Extends to the end of a loop the live ranges of buffers that its steps, from `start` on, read from before it.
    fn close(&mut self, start: RegionStart) {
        let end = self.clock;
        self.touched_since(start, |span| {
            if span.first < start.clock {
                span.last = end;
            }
        });
    }

    /// Extends the live ranges of buffers that steps from `start` on touch to the whole range, as these steps run at the same time.
    fn extend_from(&mut self, start: RegionStart) {
        let end = self.clock;
        self.touched_since(start, |span| *span = LiveRange { first: span.first.min(start.clock), last: end });
    }

    /// Applies `change` to the live range of each buffer that a step since `start` touched, and advances to the next moment.
    fn touched_since(&mut self, start: RegionStart, change: impl Fn(&mut LiveRange)) {
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

/// The moment at which a loop, branches or parallel steps begin.
#[derive(Clone, Copy)]
struct RegionStart {
    clock: usize,
    /// Length of the list of touched buffers when the loop, branches or parallel steps begin.
    touched: usize,
}

/// Assigns an offset in the workspace to each buffer.
///
/// With `in_results`, buffers that live at the peak may use the memory of results that are not computed yet.
pub fn assign_offsets(program: &mut Program, in_results: bool) -> Result<()> {
    let uses = BufferLifetimes::collect(program);
    let mut wanted = buffer_requests(program, &uses);
    if in_results {
        place_in_results(program, &uses, &mut wanted);
    }
    let (top, offsets) = plan_offsets(&wanted);
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

/// The caller's memory of a result, as room for other buffers before the result is written.
struct CallerMemory {
    place: BufferLocation,
    dtype: DType,
    bytes: u64,
    /// Live ranges during which the memory is in use: by the result itself, from its first launch on, and by buffers placed in it before.
    taken: DisjointRanges,
}

/// Upper limit of attempts to put a buffer into the memory of a result.
const MOST_OFFERS: usize = 10_000_000;

/// Puts buffers that live at the peak, the largest first, into the memory of results of the same type that nothing has touched by then.
fn place_in_results(program: &mut Program, uses: &BufferLifetimes, wanted: &mut Vec<BufferRequest>) {
    let result = |(b, buffer): (BufId, &Buffer)| match (buffer.place, uses.intervals.get(&b)) {
        (place @ BufferLocation::Result(_), Some(span)) => {
            let mut taken = DisjointRanges::default();
            taken.add(LiveRange { last: usize::MAX, ..*span });
            Some(CallerMemory { place, dtype: buffer.dtype, bytes: buffer.bytes(), taken })
        }
        _ => None,
    };
    let mut hosts: Vec<CallerMemory> = program.buffers.iter().filter_map(result).collect();
    // the largest last, and of equal ones the last
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted[i].bytes);
    let mut candidates = StabbingQuery::new(uses.clock, order.iter().map(|&i| wanted[i].span));
    let mut timeline = Timeline::new(uses.clock);
    wanted.iter().for_each(|w| timeline.add(w.bytes, w.span));
    let mut is_guest = vec![false; wanted.len()];
    let mut offers = 0;
    while let Some((_, peak)) = timeline.peak().filter(|_| offers < MOST_OFFERS) {
        // what found no memory will find none later
        let Some(candidate) = candidates.last_containing(peak) else { break };
        candidates.remove(candidate);
        let w = wanted[order[candidate]];
        let buffer = &mut program.buffers[w.buf];
        let bytes = buffer.bytes();
        let mut offered = hosts.iter_mut().inspect(|_| offers += 1);
        let fits = |h: &&mut CallerMemory| h.dtype == buffer.dtype && bytes <= h.bytes && h.taken.is_disjoint(w.span);
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

/// The buffers that need an offset in the workspace.
fn buffer_requests(program: &Program, uses: &BufferLifetimes) -> Vec<BufferRequest> {
    let in_workspace = |b: &BufId| matches!(program.buffers[*b].place, BufferLocation::Workspace(_));
    let one = |(&buf, &span): (&BufId, &LiveRange)| {
        let buffer = &program.buffers[buf];
        let bytes = buffer.bytes().max(1);
        let align = bytes.next_power_of_two().min(ALIGN);
        BufferRequest { buf, bytes: bytes.next_multiple_of(align), align, span }
    };
    uses.intervals.iter().filter(|(b, _)| in_workspace(b)).map(one).collect()
}

/// The buffers of the workspace that live at the launch with the most live bytes.
pub fn buffers_at_peak(program: &Program) -> Vec<BufId> {
    let wanted = buffer_requests(program, &BufferLifetimes::collect(program));
    let (_, at) = peak_live_bytes(&wanted);
    wanted.iter().filter(|w| at.is_some_and(|at| w.span.contains(at))).map(|w| w.buf).collect()
}

/// The bytes of each group of workspace buffers, and the peak of live bytes of all other buffers during the lifetime of the group.
pub fn group_peak_bytes<T: Copy + Ord>(program: &Program, groups: &HashMap<BufId, T>) -> BTreeMap<T, (u64, u64)> {
    let uses = BufferLifetimes::collect(program);
    let wanted = buffer_requests(program, &uses);
    let mut spans: BTreeMap<T, (u64, LiveRange)> = BTreeMap::new();
    let mut members: BTreeMap<T, Vec<&BufferRequest>> = BTreeMap::new();
    for w in &wanted {
        if let Some(&group) = groups.get(&w.buf) {
            members.entry(group).or_default().push(w);
            let (bytes, span) = spans.get(&group).copied().unwrap_or((0, w.span));
            spans.insert(group, (bytes + w.bytes, span.hull(w.span)));
        }
    }
    let mut timeline = Timeline::new(uses.clock);
    wanted.iter().for_each(|w| timeline.add(w.bytes, w.span));
    let others = |(group, (own, span)): (T, (u64, LiveRange))| {
        let members = &members[&group];
        members.iter().for_each(|w| timeline.remove(w.bytes, w.span));
        let others = timeline.max_within(span);
        members.iter().for_each(|w| timeline.add(w.bytes, w.span));
        (group, (own, others))
    };
    spans.into_iter().map(others).collect()
}

/// Checks that no two buffers that live at the same launch share a byte.
fn check(program: &Program, uses: &BufferLifetimes) -> Result<()> {
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
