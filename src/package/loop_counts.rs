//! Upper bounds on the number of loop iterations in a call, for any values of its arguments.
use crate::kernel::{Kernel, KernelId, LoopKind, Program, Step, Stmt};
use crate::util::id_vec::IdVec;

/// Bounds for a call. `None` stands for loops whose number of iterations depends on values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// Maximum number of kernel launches.
    pub launches: Option<u64>,
    /// Maximum number of loop iterations in all launches, without vectorized and unrolled loops.
    pub iterations: Option<u64>,
    /// Loop counts by kernel, of the program with the most iterations.
    pub kernels: Vec<KernelLoops>,
}

/// Bounds for one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLoops {
    /// The names of its ops in the graph.
    pub label: String,
    /// Maximum number of iterations of its outermost loop, which threads may share.
    pub chunks: u64,
    /// Maximum number of iterations of all its loops in one launch.
    pub iterations: Option<u64>,
    /// Maximum number of launches in a call.
    pub launches: Option<u64>,
}

impl LoopCounts {
    /// Bounds for a function that runs one of `programs`: those of the program with the most iterations.
    pub fn worst_of<'a>(programs: impl Iterator<Item = &'a Program>) -> LoopCounts {
        let counts = programs.map(LoopCounts::of_program);
        // an unbounded program ranks above all others
        counts.max_by_key(|c| (c.iterations.is_none(), c.iterations, c.launches)).unwrap_or_default()
    }

    fn of_program(program: &Program) -> LoopCounts {
        let mut launches: IdVec<KernelId, Option<u64>> = program.kernels.values().map(|_| Some(0)).collect();
        count_launches(&program.steps, Some(1), &mut launches);
        let one = |(kernel, &launches): (&Kernel, &Option<u64>)| KernelLoops {
            label: kernel.label.clone(),
            chunks: kernel.chunk_count(),
            iterations: iterations(kernel),
            launches,
        };
        let kernels: Vec<KernelLoops> = program.kernels.values().zip(launches.values()).map(one).collect();
        let sum = |of: &dyn Fn(&KernelLoops) -> Option<u64>| {
            kernels.iter().map(of).try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
        };
        LoopCounts {
            launches: sum(&|k| k.launches),
            iterations: sum(&|k| Some(k.iterations?.saturating_mul(k.launches?))),
            kernels,
        }
    }
}

/// Adds the launches of each kernel by `steps`, which run `times` times. All branches count, as any may be taken.
fn count_launches(steps: &[Step], times: Option<u64>, launches: &mut IdVec<KernelId, Option<u64>>) {
    for step in steps {
        match step {
            Step::Launch(id) => {
                let before = launches[*id];
                launches[*id] = before.zip(times).map(|(a, b)| a.saturating_add(b));
            }
            Step::Call(_) => {}
            Step::While { cond, body, most_rounds, .. } => {
                let rounds = |more: u64| Some(times?.saturating_mul((*most_rounds)?.saturating_add(more)));
                count_launches(cond, rounds(1), launches);
                count_launches(body, rounds(0), launches);
            }
            Step::Branch { branches: lists, .. } | Step::Together(lists) => {
                lists.iter().for_each(|list| count_launches(list, times, launches));
            }
        }
    }
}

/// Maximum number of iterations of a kernel's loops in one launch; `None` if it depends on values.
fn iterations(kernel: &Kernel) -> Option<u64> {
    let inside = iterations_of(kernel, &kernel.body)?;
    Some(match kernel.chunks {
        Some(_) => kernel.chunk_count().saturating_mul(inside.saturating_add(1)),
        None => inside,
    })
}

fn iterations_of(kernel: &Kernel, stmts: &[Stmt]) -> Option<u64> {
    stmts.iter().try_fold(0u64, |sum, stmt| {
        let own = match stmt {
            Stmt::For { var, kind, body } => {
                let (extent, inside) = (kernel.vars[*var], iterations_of(kernel, body)?);
                match kind {
                    LoopKind::Seq => extent.saturating_mul(inside.saturating_add(1)),
                    LoopKind::Unroll => extent.saturating_mul(inside),
                    LoopKind::Vector | LoopKind::Masked(_) => inside,
                }
            }
            Stmt::Let { body, .. } | Stmt::If { body, .. } => iterations_of(kernel, body)?,
            Stmt::While { .. } => return None,
            Stmt::Store { .. } | Stmt::Prefetch { .. } | Stmt::Tiles(_) | Stmt::Release | Stmt::Set { .. } => 0,
        };
        Some(sum.saturating_add(own))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Ten chunks of a loop of three iterations, each with four lanes and an unrolled loop around a loop of five.
    fn kernel() -> Kernel {
        let mut kernel = Kernel { label: "k".to_string(), ..Kernel::default() };
        kernel.chunks = Some(kernel.add_var(10));
        let [rounds, lanes, copies, inner] = [3, 4, 2, 5].map(|extent| kernel.add_var(extent));
        let nested = |var, kind, body| Stmt::For { var, kind, body };
        let innermost = nested(inner, LoopKind::Seq, vec![Stmt::Release]);
        let lanes = nested(lanes, LoopKind::Vector, vec![Stmt::Release]);
        kernel.body =
            vec![nested(rounds, LoopKind::Seq, vec![lanes, nested(copies, LoopKind::Unroll, vec![innermost])])];
        kernel
    }

    fn counts(steps: impl FnOnce(KernelId) -> Vec<Step>, kernel: Kernel) -> LoopCounts {
        let mut program = Program::default();
        let id = program.kernels.push(kernel);
        program.steps = steps(id);
        LoopCounts::worst_of([&program].into_iter())
    }

    #[test]
    fn loops_multiply_and_branches_add() {
        assert_eq!(iterations(&kernel()), Some(10 * (1 + 3 * (1 + 2 * 5))));
        let all = counts(|id| vec![Step::Launch(id), Step::Together(vec![vec![Step::Launch(id)], vec![]])], kernel());
        assert_eq!((all.launches, all.iterations), (Some(2), Some(2 * 340)));
        assert_eq!(all.kernels[0].chunks, 10);
    }

    #[test]
    fn what_values_decide_has_no_bound() {
        let pred = crate::kernel::BufId(0);
        let repeated = |most_rounds: Option<u64>| {
            counts(|id| vec![Step::While { cond: vec![Step::Launch(id)], pred, body: vec![], most_rounds }], kernel())
        };
        let all = repeated(None);
        assert_eq!((all.launches, all.iterations, all.kernels[0].iterations), (None, None, Some(340)));
        // the condition is computed once more than the body
        assert_eq!((repeated(Some(4)).launches, repeated(Some(4)).iterations), (Some(5), Some(5 * 340)));
        let mut endless = kernel();
        let cond = crate::kernel::ExprId(0);
        endless.body.push(Stmt::While { cond, body: vec![] });
        let all = counts(|id| vec![Step::Launch(id)], endless);
        assert_eq!((all.launches, all.iterations), (Some(1), None));
    }
}
