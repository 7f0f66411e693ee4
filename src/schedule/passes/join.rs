//! Small kernels that follow one another in a loop become one: a call, and the addresses that it is told, take as long as some
//! dozen operations, and a step of a recurrent net has a dozen kernels, most of less than a hundred.
//!
//! Nothing is computed otherwise or in another order: the bodies stand one behind the other. Kernels that are worth several
//! threads stay alone, and so do two of which each has a choice of loops.
use crate::kernel::{Kernel, KernelId, Program, Step};
use crate::util::id_vec::Id;

/// Upper limit of statements and expressions of joined kernels: code that is too long does not stay in the instruction cache.
const MOST_EXPRESSIONS: usize = 4_000;

/// Joins consecutive kernels in loops of `program` into one.
pub fn join_kernels(program: &mut Program) {
    let kernels = std::mem::take(&mut program.kernels);
    let mut joined = Joined { kernels: kernels.into_iter().map(Some).collect() };
    joined.steps(&mut program.steps, false);
    set(program, joined.kernels);
}

/// Removes kernels that no step runs.
pub fn retain_kernels(program: &mut Program, is_kept: impl Fn(KernelId) -> bool) {
    let kernels = std::mem::take(&mut program.kernels);
    let kept = kernels.into_iter().enumerate();
    let kept = kept.map(|(i, kernel)| is_kept(KernelId::from_index(i)).then_some(kernel)).collect();
    set(program, kept);
}

/// Replaces the kernels of `program` and renumbers its steps: `kernels[i]` is the new kernel number `i`, `None` if it is gone.
fn set(program: &mut Program, kernels: Vec<Option<Kernel>>) {
    let numbers: Vec<Option<KernelId>> =
        kernels.into_iter().map(|kernel| kernel.map(|k| program.kernels.push(k))).collect();
    renumber_kernels(&mut program.steps, &numbers);
}

/// The kernels of a program; those that were joined into another are gone.
struct Joined {
    kernels: Vec<Option<Kernel>>,
}

impl Joined {
    fn steps(&mut self, steps: &mut Vec<Step>, looped: bool) {
        let mut out: Vec<Step> = Vec::with_capacity(steps.len());
        for mut step in steps.drain(..) {
            match &mut step {
                Step::Launch(next) => {
                    if let (true, Some(Step::Launch(last))) = (looped, out.last())
                        && self.one_of(*last, *next)
                    {
                        continue;
                    }
                }
                Step::Call(_) => {}
                Step::While { cond, body, .. } => {
                    self.steps(cond, true);
                    self.steps(body, true);
                }
                Step::Branch { branches: lists, .. } | Step::Together(lists) => {
                    lists.iter_mut().for_each(|list| self.steps(list, looped));
                }
            }
            out.push(step);
        }
        *steps = out;
    }

    /// Appends kernel `next` to kernel `last` if neither is shared among threads and the joined code is short enough; returns whether it
    /// did.
    fn one_of(&mut self, last: KernelId, next: KernelId) -> bool {
        let (Some(Some(a)), Some(Some(b))) = (self.kernels.get(last.index()), self.kernels.get(next.index())) else {
            return false;
        };
        let small = |k: &Kernel| k.range.is_none() && !k.is_parallel_in_loops();
        let choices =
            [a, b].iter().filter(|k| k.product_choice().is_some() || k.convolution_choice().is_some()).count();
        let fits = small(a) && small(b) && choices < 2 && a.exprs.len() + b.exprs.len() <= MOST_EXPRESSIONS;
        let second = if fits { self.kernels[next.index()].take() } else { None };
        if let (Some(first), Some(second)) = (&mut self.kernels[last.index()], &second) {
            first.append(second);
        }
        second.is_some()
    }
}

fn renumber_kernels(steps: &mut [Step], numbers: &[Option<KernelId>]) {
    for step in steps {
        match step {
            Step::Launch(id) => *id = numbers[id.index()].unwrap_or(*id),
            Step::Call(_) => {}
            Step::While { cond, body, .. } => {
                renumber_kernels(cond, numbers);
                renumber_kernels(body, numbers);
            }
            Step::Branch { branches: lists, .. } | Step::Together(lists) => {
                lists.iter_mut().for_each(|list| renumber_kernels(list, numbers));
            }
        }
    }
}
