//! Positions along an axis, of which some may be outside of the array: what Winograd's tiles read there counts as zero, so that
//! no array needs a margin for them.
use crate::schedule::loops::prelude::*;

/// Positions along one axis of an array of `extent` elements, which may lie outside.
pub(in crate::schedule) struct PaddedAxisPositions {
    /// For each position, the nearest position inside the array, and the condition that the position itself is inside; `None` if it always
    /// is.
    all: Vec<(Index, Option<ExprId>)>,
    /// Variables that the positions contain, with the values to bind them to.
    vars: Vec<(VarId, Index)>,
    flags: Vec<Stmt>,
}

impl PaddedAxisPositions {
    /// The `count` positions from `first` on, `step` apart.
    pub(in crate::schedule) fn new(
        k: &mut Kernel,
        first: &Index,
        count: u64,
        step: u64,
        extent: u64,
    ) -> PaddedAxisPositions {
        let mut made = PaddedAxisPositions { all: Vec::new(), vars: Vec::new(), flags: Vec::new() };
        for at in (0..count).map(|i| first.offset((i * step) as i64)) {
            let near = at.clamp_to(0, extent as i64 - 1, &k.vars);
            if near == at {
                made.all.push((at, None));
                continue;
            }
            let var = k.add_var(extent);
            made.vars.push((var, near));
            let (flag, value) = (k.add_reg(DType::Pred, 1, 1), k.add_expr(Expr::Within(at, 0, extent as i64)));
            made.flags.push(Stmt::set(flag, 0, value));
            let inside = k.read_reg(flag, 0);
            made.all.push((Index::var(var), Some(inside)));
        }
        made
    }

    /// Offset of position `i`, clamped to the array, along an axis of stride `stride`.
    pub(in crate::schedule) fn offset_of(&self, i: usize, stride: i64) -> Index {
        self.all[i].0.scale(stride)
    }

    /// Selects `value`, of type `dtype`, if position `i` and all `others` are inside, else zero.
    pub(in crate::schedule) fn select_or_zero(
        &self,
        k: &mut Kernel,
        i: usize,
        others: &[(&PaddedAxisPositions, usize)],
        value: ExprId,
        dtype: DType,
    ) -> ExprId {
        let flags = others.iter().filter_map(|(positions, i)| positions.all[*i].1).chain(self.all[i].1);
        let flags: Vec<ExprId> = flags.collect();
        let Some(inside) = flags.into_iter().reduce(|x, y| k.add_op(ScalarOp::And, &[x, y], DType::Pred)) else {
            return value;
        };
        let zero = constant_of_number(k, dtype, 0.0);
        k.add_op(ScalarOp::Select, &[inside, value, zero], dtype)
    }

    /// Wraps `body` in the variables that the positions need.
    pub(in crate::schedule) fn bind_variables(self, body: Vec<Stmt>) -> Vec<Stmt> {
        let inside = self.flags.into_iter().chain(body).collect();
        self.vars.into_iter().rev().fold(inside, |body, (var, value)| vec![Stmt::Let { var, value, body }])
    }
}
