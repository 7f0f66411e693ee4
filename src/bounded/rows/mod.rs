//! Analysis of whether a function computes each row of its results from the same row of its arguments, so that a call may be split.
//!
//! Rows are counted by the only dynamic size. An array of rows has one axis whose extent is `inner` times the size: row `r` is elements
//! `r·inner` to `(r + 1)·inner - 1` along this axis. The analysis goes from arguments to results, and fails at an instruction that mixes
//! rows (a sum over all of them) or depends on a row's index or on the size itself.
mod row_dependence;

use super::size_exprs::ComputationExprs;
use crate::hlo::{CompId, Module, Op, Shape};
use crate::lower::Lowered;
use row_dependence::{AnalyzedInst, RowAxis, RowDependence};
use std::collections::HashMap;

/// Iterations after which the fixed point of a loop's state is given up; each iteration turns at least one array into rows.
const MAX_ITERATIONS: usize = 32;
/// Depth of nested computations at which the analysis gives up.
const MAX_DEPTH: usize = 16;

/// Whether the results of `lowered` consist of rows along their first axes, one element per row of the only dynamic size, and so do the
/// arguments with that size. `forms` holds the size expressions of `lowered`.
pub fn is_rowwise(lowered: &Lowered, forms: &[ComputationExprs], args: &[Vec<Option<usize>>]) -> bool {
    let module = &lowered.module;
    let forms = module.reachable().into_iter().zip(forms).collect();
    let leading = |axes: &Vec<Option<usize>>| axes.iter().skip(1).all(Option::is_none);
    let first = RowDependence::Rows(RowAxis { axis: 0, inner: 1 });
    let part = |axes: &Vec<Option<usize>>| {
        vec![if axes.iter().any(Option::is_some) { first } else { RowDependence::Invariant }]
    };
    let search = RowAnalysis { module, forms };
    let results = search.computation(module.entry, &args.iter().map(part).collect::<Vec<_>>(), 0);
    args.iter().all(leading) && results.is_some_and(|all| all.iter().all(|part| *part == first))
}

struct RowAnalysis<'a> {
    module: &'a Module,
    forms: HashMap<CompId, &'a ComputationExprs>,
}

impl RowAnalysis<'_> {
    /// Dependence of each array of a computation's root, depth first; `None` where an array is neither invariant nor made of rows.
    fn computation(&self, id: CompId, args: &[Vec<RowDependence>], depth: usize) -> Option<Vec<RowDependence>> {
        let (comp, form) = (&self.module.comps[id], *self.forms.get(&id)?);
        let mut parts: HashMap<_, Vec<RowDependence>> = HashMap::new();
        for (&id, varying) in form.order.iter().zip(form.varying.iter()) {
            let step = AnalyzedInst::new(comp, &comp.insts[id], varying, &parts)?;
            let made = self.instruction(&step, args, depth)?;
            parts.insert(id, made);
        }
        parts.remove(&comp.root)
    }

    fn instruction(
        &self,
        step: &AnalyzedInst,
        args: &[Vec<RowDependence>],
        depth: usize,
    ) -> Option<Vec<RowDependence>> {
        let inner = || depth.checked_add(1).filter(|&d| d < MAX_DEPTH);
        let of = |operands: &[&[RowDependence]]| operands.iter().map(|parts| parts.to_vec()).collect::<Vec<_>>();
        match &step.inst.op {
            Op::Parameter(n) => args.get(*n).cloned(),
            Op::Tuple => Some(step.parts.concat()),
            Op::GetTupleElement(n) => {
                let Shape::Tuple(all) = &step.operands.first()?.shape else { return None };
                let before: usize = all.iter().take(*n).map(|s| s.leaves().len()).sum();
                let own = step.inst.shape.leaves().len();
                Some(step.parts.first()?.get(before..before + own)?.to_vec())
            }
            Op::Call(comp) | Op::Fusion { comp, .. } => self.computation(*comp, &of(&step.parts), inner()?),
            Op::While { cond, body } => {
                let mut state = step.parts.first()?.to_vec();
                for _ in 0..MAX_ITERATIONS {
                    let next = self.computation(*body, &[state.clone()], inner()?)?;
                    if next == state {
                        let goes_on = self.computation(*cond, &[state.clone()], inner()?)?;
                        return (goes_on == [RowDependence::Invariant]).then_some(state);
                    }
                    state = state.iter().zip(&next).map(|(a, b)| join_rows(*a, *b)).collect::<Option<_>>()?;
                }
                None
            }
            Op::Conditional(branches) => {
                let (choice, args) = step.parts.split_first()?;
                let run =
                    |(comp, arg): (&CompId, &&[RowDependence])| self.computation(*comp, &[arg.to_vec()], inner()?);
                let mut all = branches.iter().zip(args).map(run);
                let first = all.next()??;
                let join = |a: Vec<RowDependence>, b: Option<Vec<RowDependence>>| -> Option<Vec<RowDependence>> {
                    a.iter().zip(&b?).map(|(a, b)| join_rows(*a, *b)).collect()
                };
                (*choice == [RowDependence::Invariant]).then(|| all.try_fold(first, join))?
            }
            _ => step.result_dependence(),
        }
    }
}

/// Join of the analysis: an invariant array also consists of rows, all of them equal.
fn join_rows(a: RowDependence, b: RowDependence) -> Option<RowDependence> {
    match (a, b) {
        (a, b) if a == b => Some(a),
        (RowDependence::Invariant, rows) | (rows, RowDependence::Invariant) => Some(rows),
        (RowDependence::Rows(_), RowDependence::Rows(_)) => None,
    }
}
