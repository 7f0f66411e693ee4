//! Loops that need nothing of one another run at once, each on one thread: the two directions of a recurrent net, whose
//! kernels are too small to be shared by threads.
//!
//! A loop is taken as a part where its rounds do enough to be worth a thread, most of it in kernels that are not shared. What
//! stands between two such loops moves before the first where that needs nothing of it, and else behind both. The order in
//! which anything is added does not change, so that results have the same bits on any number of threads.
use crate::kernel::{BufferAccess, Program, Step};
use std::collections::VecDeque;

/// Least number of operations per iteration for which a loop gets a thread of its own: twenty such iterations take as long as handing the
/// loop over and waiting for it.
const WORTH_A_THREAD: u64 = 500;

/// Upper limit of steps between two loops that may run at the same time.
const FARTHEST: usize = 256;

/// A step with the buffers that it reads and writes.
struct Touching {
    step: Step,
    access: BufferAccess,
}

/// Groups the loops of `program` that can run at the same time.
pub fn group_concurrent_loops(program: &mut Program) {
    let steps = std::mem::take(&mut program.steps);
    let touching = |step| Touching { access: BufferAccess::of_steps(program, std::slice::from_ref(&step)), step };
    let steps = steps.into_iter().map(touching).collect();
    program.steps = group_independent_loops(program, steps);
}

/// Reorders `steps` so that independent loops are parts of one parallel step.
fn group_independent_loops(program: &Program, mut steps: VecDeque<Touching>) -> Vec<Step> {
    let mut out = Vec::with_capacity(steps.len());
    while let Some(first) = steps.pop_front() {
        let members = match is_part(program, &first.step) {
            true => independent_loops(program, &first, steps.iter().take(FARTHEST)),
            false => Vec::new(),
        };
        let Some(&last) = members.last() else {
            out.push(first.step);
            continue;
        };
        // what needs nothing of a part goes before all of them, the rest behind
        let mut blocked = first.access;
        let (mut parts, mut after) = (vec![vec![first.step]], Vec::new());
        for (i, next) in steps.drain(..=last).enumerate() {
            if members.contains(&i) {
                blocked.merge(next.access);
                parts.push(vec![next.step]);
            } else if next.access.conflicts(&blocked) {
                blocked.merge(next.access.clone());
                after.push(next);
            } else {
                out.push(next.step);
            }
        }
        out.push(Step::Together(parts));
        after.into_iter().rev().for_each(|next| steps.push_front(next));
    }
    out
}

/// The indices in `rest` of the loops that can run at the same time as `first`.
fn independent_loops<'a>(program: &Program, first: &Touching, rest: impl Iterator<Item = &'a Touching>) -> Vec<usize> {
    let mut blocked = first.access.clone();
    let mut members = Vec::new();
    for (i, next) in rest.enumerate() {
        let free = !next.access.conflicts(&blocked);
        if free && is_part(program, &next.step) {
            members.push(i);
        } else if free {
            continue;
        }
        blocked.merge(next.access.clone());
    }
    members
}

/// Whether `step` is a loop that is worth a thread of its own.
fn is_part(program: &Program, step: &Step) -> bool {
    let Step::While { cond, body, .. } = step else { return false };
    let work = WorkEstimate::measure(program, body);
    let calls = work.calls || WorkEstimate::measure(program, cond).calls;
    !calls && work.alone >= WORTH_A_THREAD && work.alone >= work.shared
}

/// Estimated number of operations of some steps: the sum over all branches of a conditional, one iteration of a loop.
#[derive(Clone, Copy, Debug, Default)]
struct WorkEstimate {
    /// Operations in kernels that offer their chunks to other threads.
    shared: u64,
    /// Operations in kernels that run on one thread.
    alone: u64,
    /// Whether the steps call a function of the user, which can end the program's call and may not be able to run concurrently.
    calls: bool,
}

impl WorkEstimate {
    fn measure(program: &Program, steps: &[Step]) -> WorkEstimate {
        let mut work = WorkEstimate::default();
        steps.iter().for_each(|step| work.add(program, step));
        work
    }

    fn add(&mut self, program: &Program, step: &Step) {
        let mut all = |steps: &[Step]| steps.iter().for_each(|step| self.add(program, step));
        match step {
            Step::Launch(kernel) => {
                let kernel = &program.kernels[*kernel];
                let sum = if kernel.is_parallel_in_loops() { &mut self.shared } else { &mut self.alone };
                *sum = sum.saturating_add(kernel.work());
            }
            Step::Call(_) => self.calls = true,
            // how often it runs is not known; of a round of the loop that it is in it may be a small part
            Step::While { cond, body, .. } => {
                let mut inner = WorkEstimate::default();
                cond.iter().chain(body).for_each(|step| inner.add(program, step));
                self.alone = self.alone.saturating_add(inner.alone);
                self.calls |= inner.calls;
            }
            Step::Branch { branches: lists, .. } | Step::Together(lists) => lists.iter().for_each(|steps| all(steps)),
        }
    }
}
