//! Loop nests of stores: dimensions that lie together become one, the innermost runs in vectors.
use crate::kernel::Atom;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::row_tails;
use std::collections::HashMap;

/// Makes `body`, written over `vars` (outermost first), the body of the kernel, vectorized along the innermost.
pub fn set_vectorized_body(k: &mut Kernel, vars: &[VarId], body: &[Stmt], lanes: u64) {
    let mut body = body.to_vec();
    let mut vars: Vec<VarId> = vars.iter().copied().filter(|&v| k.vars[v] != 1).collect();
    collapse_loops(k, &mut vars, &mut body);
    let Some(inner) = vars.pop() else {
        k.body = body;
        return;
    };
    let mut across = row_tails::choose_tail_loop(k, &vars, inner, &body, lanes);
    if let (Some(v), [rows]) = (across, &vars[..]) {
        // chunks of as many rows as there are lanes
        let (block, row) = (k.add_var(k.vars[*rows] / lanes), k.add_var(lanes));
        body = substitute_variable(k, &body, v, &Index::var(block).scale(lanes as i64).add(&Index::var(row)));
        (vars, across) = (vec![block, row], Some(row));
    }
    let mut parts = split_into_vector_loops(k, &body, inner, lanes);
    if vars.is_empty() {
        // The first part, the widest, is what chunks are made of; the rest runs with the last chunk.
        let mut parts = parts.into_iter();
        let Some((tile, first)) = parts.next() else { return };
        k.chunks = Some(tile);
        k.body = vec![first];
        let rest: Vec<Stmt> = parts.map(|(tile, s)| for_loop(tile, LoopKind::Seq, vec![s])).collect();
        if !rest.is_empty() {
            let count = k.vars[tile] as i64;
            let last = k.add_expr(Expr::Within(Index::var(tile), count - 1, count));
            k.body.push(Stmt::If { cond: last, body: rest });
        }
        return;
    }
    let rest = across.map_or(Vec::new(), |row| {
        parts.truncate(1);
        let first = k.vars[inner] / lanes * lanes;
        row_tails::emit_tail(k, &vars[1..], row, inner, first, &body, lanes)
    });
    let inside = parts.into_iter().map(|(tile, s)| for_loop(tile, LoopKind::Seq, vec![s])).collect();
    let mut inside = nest_loops(&vars[1..], inside);
    inside.extend(rest);
    k.chunks = vars.first().copied();
    k.body = inside;
}

/// Wraps stores in loops over all of `var`, in vectors.
pub fn vectorize_loop(k: &mut Kernel, var: VarId, body: &[Stmt], lanes: u64) -> Vec<Stmt> {
    split_into_vector_loops(k, body, var, lanes)
        .into_iter()
        .map(|(tile, s)| for_loop(tile, LoopKind::Seq, vec![s]))
        .collect()
}

/// Splits loop `inner` into vectors: returns loops with their bodies, first over full vectors, then a partial one.
pub(in crate::schedule) fn split_into_vector_loops(
    k: &mut Kernel,
    body: &[Stmt],
    inner: VarId,
    lanes: u64,
) -> Vec<(VarId, Stmt)> {
    let n = k.vars[inner];
    let lanes = lanes.max(1).min(n.next_power_of_two());
    let (whole, tail) = (n / lanes, n % lanes);
    let mut parts = Vec::new();
    if whole > 0 {
        let (tile, lane) = (k.add_var(whole), k.add_var(lanes));
        let at = Index::var(tile).scale(lanes as i64).add(&Index::var(lane));
        let inside = substitute_variable(k, body, inner, &at);
        parts.push((tile, for_loop(lane, LoopKind::Vector, inside)));
    }
    if tail > 0 {
        let (tile, lane) = (k.add_var(1), k.add_var(tail.next_power_of_two()));
        let at = Index::var(lane).offset((whole * lanes) as i64);
        let inside = substitute_variable(k, body, inner, &at);
        let kind = if tail.is_power_of_two() { LoopKind::Vector } else { LoopKind::Masked(tail) };
        parts.push((tile, for_loop(lane, kind, inside)));
    }
    parts
}

/// Fuses neighboring loops if every index steps through both without a gap.
fn collapse_loops(k: &mut Kernel, vars: &mut Vec<VarId>, body: &mut [Stmt]) {
    let mut d = vars.len();
    while d >= 2 {
        d -= 1;
        let (outer, inner) = (vars[d - 1], vars[d]);
        let n = k.vars[inner] as i64;
        let fits = |x: &Index| {
            let depends = |x: &Index, v| x.depends_on(v, &|e| k.varies_by_lane(e, v));
            let nonlinear = x.terms.iter().any(|(atom, _)| {
                let alone = Index::atom(atom.clone());
                !matches!(atom, Atom::Var(_)) && (depends(&alone, outer) || depends(&alone, inner))
            });
            let of = |v: VarId| x.terms.iter().find(|t| t.0 == Atom::Var(v)).map_or(0, |t| t.1);
            !nonlinear && of(outer) == of(inner) * n
        };
        let exprs_fit = k.exprs.values().all(|e| e.index().is_none_or(&fits));
        let body_fits = body.iter().all(|s| matches!(s, Stmt::Store { index, .. } if fits(index)));
        if !exprs_fit || !body_fits {
            continue;
        }
        let drop = |x: &mut Index| x.terms.retain(|t| t.0 != Atom::Var(outer));
        k.exprs.values_mut().filter_map(Expr::index_mut).for_each(drop);
        for s in body.iter_mut() {
            if let Stmt::Store { index, .. } = s {
                drop(index);
            }
        }
        k.vars[inner] *= k.vars[outer];
        vars.remove(d - 1);
    }
}

/// Copies statements with `var` replaced by an index.
pub(in crate::schedule) fn substitute_variable(k: &mut Kernel, body: &[Stmt], var: VarId, with: &Index) -> Vec<Stmt> {
    let mut memo = HashMap::new();
    body.iter()
        .map(|s| match s {
            Stmt::Store { buf, index, value } => Stmt::Store {
                buf: *buf,
                index: substitute_index(k, index, var, with, &mut memo),
                value: substitute(k, *value, var, with, &mut memo),
            },
            other => other.clone(),
        })
        .collect()
}

fn substitute(k: &mut Kernel, id: ExprId, var: VarId, with: &Index, memo: &mut HashMap<ExprId, ExprId>) -> ExprId {
    if let Some(&done) = memo.get(&id) {
        return done;
    }
    let new = match k.exprs[id].clone() {
        Expr::Load(b, x) => Expr::Load(b, substitute_index(k, &x, var, with, memo)),
        Expr::Word(b, x) => Expr::Word(b, substitute_index(k, &x, var, with, memo)),
        Expr::DotProduct { instruction, x, y, z } => {
            let [x, y, z] = [x, y, z].map(|a| substitute(k, a, var, with, memo));
            Expr::DotProduct { instruction, x, y, z }
        }
        Expr::Number(x, t) => Expr::Number(substitute_index(k, &x, var, with, memo), t),
        Expr::Within(x, a, b) => Expr::Within(substitute_index(k, &x, var, with, memo), a, b),
        Expr::Op(op, args, t) => Expr::Op(op, args.iter().map(|&a| substitute(k, a, var, with, memo)).collect(), t),
        same @ (Expr::Const(..) | Expr::Reg(..) | Expr::Lanes(..) | Expr::Fold(..)) => same,
    };
    let new = if new == k.exprs[id] { id } else { k.add_expr(new) };
    memo.insert(id, new);
    new
}

fn substitute_index(k: &mut Kernel, x: &Index, var: VarId, with: &Index, memo: &mut HashMap<ExprId, ExprId>) -> Index {
    let mut sum = Index::constant(x.constant);
    for (atom, c) in &x.terms {
        let term = match atom {
            Atom::Var(v) if *v == var => with.clone(),
            Atom::Var(_) => Index::atom(atom.clone()),
            Atom::Div(y, n) => {
                let y = substitute_index(k, y, var, with, memo);
                y.div(*n, &k.vars)
            }
            Atom::Rem(y, n) => {
                let y = substitute_index(k, y, var, with, memo);
                y.rem(*n, &k.vars)
            }
            Atom::Clamp(y, a, b) => Index::atom(Atom::Clamp(Box::new(substitute_index(k, y, var, with, memo)), *a, *b)),
            Atom::Value(e) => Index::atom(Atom::Value(substitute(k, *e, var, with, memo))),
        };
        sum = sum.add(&term.scale(*c));
    }
    sum
}
