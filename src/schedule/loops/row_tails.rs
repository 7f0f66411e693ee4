//! Tails of short rows, vectorized across rows: the last elements of as many rows as a vector has lanes are a vector. Where they are
//! computed at length (the exponential of a Gaussian of 17 joints), that takes less than a vector of few elements for each row, though each
//! is loaded and stored alone.
use crate::schedule::loops::nest;
use crate::schedule::loops::prelude::*;
use std::collections::BTreeSet;

/// Estimated cycles of a scalar load or store, in place of one lane of a vector access.
const ALONE: u64 = 2;
/// Required ratio of the time that vectorizing along the rows saves to the time that it costs.
const WORTH: u64 = 2;

/// The loop of `vars` along which the remainder of `inner` (less than `lanes`) is better vectorized; `None` if none is. The first loop is
/// divided into chunks, so it is chosen only if there is no other and its extent is a multiple of `lanes`.
pub(in crate::schedule) fn choose_tail_loop(
    k: &Kernel,
    vars: &[VarId],
    inner: VarId,
    body: &[Stmt],
    lanes: u64,
) -> Option<VarId> {
    let left = k.vars[inner] % lanes.max(1);
    if left == 0 || k.vars[inner] < lanes {
        return None;
    }
    let work: u64 =
        body.iter().map(|s| if let Stmt::Store { value, .. } = s { k.work_of_value(*value) } else { 0 }).sum();
    let cost = |v: &VarId| left * (work + lanes * ALONE * strided_accesses(k, body, *v));
    let fits = |v: &VarId| k.vars[*v] >= lanes && cost(v) * WORTH < work * lanes;
    match *vars {
        [rows] => Some(rows).filter(|&v| fits(&v) && k.vars[v].is_multiple_of(lanes)),
        _ => vars.iter().skip(1).copied().filter(fits).min_by_key(cost),
    }
}

/// Emits the elements of `inner` from `first` on, vectorized along `row`, inside the loops over `vars`.
pub(in crate::schedule) fn emit_tail(
    k: &mut Kernel,
    vars: &[VarId],
    row: VarId,
    inner: VarId,
    first: u64,
    body: &[Stmt],
    lanes: u64,
) -> Vec<Stmt> {
    let mut out = Vec::new();
    for element in first..k.vars[inner] {
        let one = nest::substitute_variable(k, body, inner, &Index::constant(element as i64));
        for (tile, stmt) in nest::split_into_vector_loops(k, &one, row, lanes) {
            out.push(for_loop(tile, LoopKind::Seq, vec![stmt]));
        }
    }
    vars.iter().rev().filter(|&&v| v != row).fold(out, |body, &v| vec![for_loop(v, LoopKind::Seq, body)])
}

/// Number of loads and stores of `body` whose neighbors along `v` are not adjacent in memory.
fn strided_accesses(k: &Kernel, body: &[Stmt], v: VarId) -> u64 {
    let (mut open, mut seen, mut count) = (Vec::new(), BTreeSet::new(), 0);
    let lies_apart = |index: &Index| !matches!(index.coefficient(v, &|e| k.varies_by_lane(e, v)), Some(0 | 1));
    for s in body {
        if let Stmt::Store { index, value, .. } = s {
            open.push(*value);
            count += u64::from(lies_apart(index));
        }
    }
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match &k.exprs[id] {
            Expr::Op(_, args, _) => open.extend(args),
            Expr::DotProduct { x, y, z, .. } => open.extend([x, y, z]),
            other => count += u64::from(other.index().is_some_and(lies_apart)),
        }
    }
    count
}
