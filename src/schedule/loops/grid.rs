//! The loops around tiles: whole tiles and what is left of an axis in one nest, guarded, and the outermost loops as chunks, which
//! threads share.
use crate::schedule::families::contraction::recipe::ENOUGH_CHUNKS;
use crate::schedule::loops::prelude::*;
use crate::target::LoopOrder;
use std::ops::Range;

/// Number of bands that the rows of a contraction are divided into, for threads to share, if each band passes through all panels.
pub const BANDS: u64 = 2;

/// The loops around a tile of a contraction.
pub struct TileGrid {
    /// The loop over batches.
    pub batch: VarId,
    /// Loops over the row axes that the tile does not cover.
    pub outer: Vec<VarId>,
    /// The loop over tiles of rows; the last tile may be smaller.
    pub tile: VarId,
    /// The loop over panels of columns; the last panel may be narrower.
    pub panel: VarId,
}

/// The part of an axis that a tile covers: its first element, its extent, and the condition under which it runs.
#[derive(Clone)]
pub struct AxisTile {
    pub at: Index,
    pub count: u64,
    guard: Option<(VarId, u64, u64)>,
    held: Option<(VarId, Index)>,
}

impl AxisTile {
    /// The tile that covers a whole axis, without a loop.
    pub fn whole_axis(count: u64) -> AxisTile {
        AxisTile { at: Index::default(), count, guard: None, held: None }
    }
}

impl TileGrid {
    /// The loops, outermost first.
    pub fn loops(&self, order: LoopOrder) -> Vec<VarId> {
        let rows = self.row_loops().into_iter();
        match order {
            LoopOrder::Panels => [self.batch, self.panel].into_iter().chain(rows).collect(),
            LoopOrder::Rows => std::iter::once(self.batch).chain(rows).chain([self.panel]).collect(),
        }
    }

    /// The loops over rows.
    pub fn row_loops(&self) -> Vec<VarId> {
        self.outer.iter().copied().chain([self.tile]).collect()
    }

    /// Divides the rows into bands, whose loop becomes the outermost of `loops`.
    pub fn split_into_bands(&self, k: &mut Kernel, loops: &mut Vec<VarId>, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut rows = self.outer.iter().copied().chain([self.tile]);
        let Some(rows) = rows.find(|&v| k.vars[v] >= BANDS) else { return body };
        let each_band = k.vars[rows].div_ceil(BANDS);
        let (band, inner) = (k.add_var(BANDS), k.add_var(each_band));
        for v in loops.iter_mut().filter(|v| **v == rows) {
            *v = inner;
        }
        loops.insert(0, band);
        let at = Index::var(band).scale(each_band as i64).add(&Index::var(inner));
        bind_variable(k, rows, at, body)
    }
}

/// Wraps `body` in the condition `low <= at < high`; returns nothing if that never holds.
pub fn guard_in_range(k: &mut Kernel, at: &Index, low: i64, high: i64, body: Vec<Stmt>) -> Vec<Stmt> {
    let (least, most) = at.range(&k.vars);
    if most < low || least >= high {
        return Vec::new();
    }
    if least >= low && most < high {
        return body;
    }
    let cond = k.add_expr(Expr::Within(at.clone(), low, high));
    vec![Stmt::If { cond, body }]
}

/// Wraps `body` so that variable `var` has the value `number`, under the condition that it is in the variable's range.
pub fn bind_variable(k: &mut Kernel, var: VarId, number: Index, body: Vec<Stmt>) -> Vec<Stmt> {
    let all = k.vars[var];
    let value = number.clamp_to(0, all as i64 - 1, &k.vars);
    guard_in_range(k, &number, 0, all as i64, vec![Stmt::Let { var, value, body }])
}

/// Splits a grid loop into full tiles of `most` elements and a tile for the remainder of `total`.
pub fn split_into_tiles(k: &mut Kernel, var: VarId, total: u64, most: u64) -> Vec<AxisTile> {
    let (whole, rest) = (total / most, total % most);
    let parts = [(0..whole, most), (whole..whole + rest.min(1), rest)];
    parts.into_iter().filter(|(rounds, _)| !rounds.is_empty()).map(|(r, count)| axis_tile(k, var, r, count)).collect()
}

/// The tile of an axis in the iterations `rounds` of the grid loop over `var`, with `count` elements.
pub fn axis_tile(k: &mut Kernel, var: VarId, rounds: Range<u64>, count: u64) -> AxisTile {
    let (first, n) = (rounds.start as i64, rounds.end - rounds.start);
    let part = n < k.vars[var];
    let guard = part.then_some((var, rounds.start, rounds.end));
    let (at, held) = match (part, n) {
        (_, 1) => (Index::constant(first), None),
        (false, _) => (Index::var(var), None),
        (true, _) => {
            let own = k.add_var(n);
            let held = Index::var(var).offset(-first).clamp_to(0, n as i64 - 1, &k.vars);
            (Index::var(own).offset(first), Some((own, held)))
        }
    };
    AxisTile { at, count, guard, held }
}

/// Wraps `body` in the conditions of its tiles.
pub fn guard_by_tiles(k: &mut Kernel, shares: &[&AxisTile], mut body: Vec<Stmt>) -> Vec<Stmt> {
    for share in shares {
        if let Some((var, value)) = &share.held {
            body = vec![Stmt::Let { var: *var, value: value.clone(), body }];
        }
        if let Some((var, low, high)) = share.guard {
            let cond = k.add_expr(Expr::Within(Index::var(var), low as i64, high as i64));
            body = vec![Stmt::If { cond, body }];
        }
    }
    body
}

/// Wraps `body` so that `vars` get their values in a row-major loop nest from `all`, the linear index of the iteration.
pub fn bind_linear_index(k: &Kernel, all: VarId, vars: &[VarId], mut body: Vec<Stmt>) -> Vec<Stmt> {
    let mut stride = 1;
    for &var in vars.iter().rev() {
        let n = k.vars[var] as i64;
        let value = Index::var(all).div(stride, &k.vars).rem(n, &k.vars);
        body = vec![Stmt::Let { var, value, body }];
        stride *= n;
    }
    body
}

/// Makes `body` the body of the kernel inside `loops`; as many of the outermost as give enough chunks are fused into the chunk loop.
pub fn set_body_in_chunks(k: &mut Kernel, loops: &[VarId], mut body: Vec<Stmt>) {
    let loops: Vec<VarId> = loops.iter().copied().filter(|&v| k.vars[v] != 1).collect();
    let (mut taken, mut chunks) = (0, 1);
    while taken < loops.len() && chunks < ENOUGH_CHUNKS {
        chunks *= k.vars[loops[taken]];
        taken += 1;
    }
    body = nest_loops(&loops[taken..], body);
    if taken > 1 {
        let all = k.add_var(chunks);
        body = bind_linear_index(k, all, &loops[..taken], body);
        k.chunks = Some(all);
    } else {
        k.chunks = loops.first().copied();
    }
    k.body = body;
}
