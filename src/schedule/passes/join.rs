//! Small kernels that follow one another in a loop become one: a call, and the addresses that it is told, take as long as some
//! dozen operations, and a step of a recurrent net has a dozen kernels, most of less than a hundred.
//!
//! Nothing is computed otherwise or in another order: the bodies stand one behind the other. Kernels that are worth several
//! threads stay alone, and so do two of which each has a choice of loops.
use crate::kernel::{Kernel, KernelId, Program, Step};
use crate::util::id_vec::Id;

/// Most statements and expressions of what is joined: what is too long is read from far away.
const MOST_EXPRESSIONS: usize = 4_000;

/// Joins the kernels in loops of `program`.
pub fn join(program: &mut Program) {
    let kernels = std::mem::take(&mut program.kernels);
    let mut joined = Joined { kernels: kernels.into_iter().map(Some).collect() };
    joined.steps(&mut program.steps, false);
    set(program, joined.kernels);
}

/// Leaves out kernels, which no step runs.
pub fn keep(program: &mut Program, is_kept: impl Fn(KernelId) -> bool) {
    let kernels = std::mem::take(&mut program.kernels);
    let kept = kernels.into_iter().enumerate();
    let kept = kept.map(|(i, kernel)| is_kept(KernelId::from_index(i)).then_some(kernel)).collect();
    set(program, kept);
}

/// Gives `program` these kernels, each where it had the number that it has in the list.
fn set(program: &mut Program, kernels: Vec<Option<Kernel>>) {
    let numbers: Vec<Option<KernelId>> =
        kernels.into_iter().map(|kernel| kernel.map(|k| program.kernels.push(k))).collect();
    renumber(&mut program.steps, &numbers);
}

/// All kernels; those that are part of another are gone.
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

    /// Makes kernel `next` part of kernel `last` where that is better; says whether it did.
    fn one_of(&mut self, last: KernelId, next: KernelId) -> bool {
        let (Some(Some(a)), Some(Some(b))) = (self.kernels.get(last.index()), self.kernels.get(next.index())) else {
            return false;
        };
        let small = |k: &Kernel| k.range.is_none() && !k.is_shared_in_loops();
        let choices = [a, b].iter().filter(|k| k.product().is_some() || k.convolution().is_some()).count();
        let fits = small(a) && small(b) && choices < 2 && a.exprs.len() + b.exprs.len() <= MOST_EXPRESSIONS;
        let second = if fits { self.kernels[next.index()].take() } else { None };
        if let (Some(first), Some(second)) = (&mut self.kernels[last.index()], &second) {
            first.append(second);
        }
        second.is_some()
    }
}

fn renumber(steps: &mut [Step], numbers: &[Option<KernelId>]) {
    for step in steps {
        match step {
            Step::Launch(id) => *id = numbers[id.index()].unwrap_or(*id),
            Step::Call(_) => {}
            Step::While { cond, body, .. } => {
                renumber(cond, numbers);
                renumber(body, numbers);
            }
            Step::Branch { branches: lists, .. } | Step::Together(lists) => {
                lists.iter_mut().for_each(|list| renumber(list, numbers));
            }
        }
    }
}
