//! Whether a function computes each row of its results from the same row of its arguments, so that a call may be done in pieces.
//!
//! Rows are counted by the one size that varies. An array of rows has one axis whose extent is `inner` times the size: row `r` is its
//! elements `r·inner` to `(r + 1)·inner - 1`. What an instruction makes of rows is looked at from arguments to results; a sum over all
//! rows, a row's own number or the size itself as a value end the search.
mod step;

use super::form::Form;
use crate::hlo::{CompId, Module, Op, Shape};
use crate::lower::Lowered;
use std::collections::HashMap;
use step::{Part, Place, VaryingInst};

/// A loop whose carried arrays do not settle in as many rounds is given up; each round makes rows of at least one of them.
const MOST_ROUNDS: usize = 32;
/// Computations nested deeper than this are not looked at.
const MAX_DEPTH: usize = 16;

/// Whether results of `lowered`, whose forms are `forms`, are rows of the only size that varies, and so are the arguments that vary:
/// along their first axes, one element a row.
pub fn are_rows(lowered: &Lowered, forms: &[Form], args: &[Vec<Option<usize>>]) -> bool {
    let module = &lowered.module;
    let forms = module.reachable().into_iter().zip(forms).collect();
    let leading = |axes: &Vec<Option<usize>>| axes.iter().skip(1).all(Option::is_none);
    let first = Part::Rows(Place { axis: 0, inner: 1 });
    let part = |axes: &Vec<Option<usize>>| vec![if axes.iter().any(Option::is_some) { first } else { Part::Same }];
    let search = Search { module, forms };
    let results = search.computation(module.entry, &args.iter().map(part).collect::<Vec<_>>(), 0);
    args.iter().all(leading) && results.is_some_and(|all| all.iter().all(|part| *part == first))
}

struct Search<'a> {
    module: &'a Module,
    forms: HashMap<CompId, &'a Form>,
}

impl Search<'_> {
    /// The arrays of the root of a computation, depth first; `None` where they are neither the same nor rows.
    fn computation(&self, id: CompId, args: &[Vec<Part>], depth: usize) -> Option<Vec<Part>> {
        let (comp, form) = (&self.module.comps[id], *self.forms.get(&id)?);
        let mut parts: HashMap<_, Vec<Part>> = HashMap::new();
        for (&id, varying) in form.order.iter().zip(form.varying.iter()) {
            let step = VaryingInst::of(comp, &comp.insts[id], varying, &parts)?;
            let made = self.step(&step, args, depth)?;
            parts.insert(id, made);
        }
        parts.remove(&comp.root)
    }

    fn step(&self, step: &VaryingInst, args: &[Vec<Part>], depth: usize) -> Option<Vec<Part>> {
        let inner = || depth.checked_add(1).filter(|&d| d < MAX_DEPTH);
        let of = |operands: &[&[Part]]| operands.iter().map(|parts| parts.to_vec()).collect::<Vec<_>>();
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
                for _ in 0..MOST_ROUNDS {
                    let next = self.computation(*body, &[state.clone()], inner()?)?;
                    if next == state {
                        let goes_on = self.computation(*cond, &[state.clone()], inner()?)?;
                        return (goes_on == [Part::Same]).then_some(state);
                    }
                    state = state.iter().zip(&next).map(|(a, b)| joined(*a, *b)).collect::<Option<_>>()?;
                }
                None
            }
            Op::Conditional(branches) => {
                let (choice, args) = step.parts.split_first()?;
                let run = |(comp, arg): (&CompId, &&[Part])| self.computation(*comp, &[arg.to_vec()], inner()?);
                let mut all = branches.iter().zip(args).map(run);
                let first = all.next()??;
                let join = |a: Vec<Part>, b: Option<Vec<Part>>| -> Option<Vec<Part>> {
                    a.iter().zip(&b?).map(|(a, b)| joined(*a, *b)).collect()
                };
                (*choice == [Part::Same]).then(|| all.try_fold(first, join))?
            }
            _ => step.made(),
        }
    }
}

/// The common part of two values: rows that are all the same are rows.
fn joined(a: Part, b: Part) -> Option<Part> {
    match (a, b) {
        (a, b) if a == b => Some(a),
        (Part::Same, rows) | (rows, Part::Same) => Some(rows),
        (Part::Rows(_), Part::Rows(_)) => None,
    }
}
