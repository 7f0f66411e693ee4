//! Row kernels: an array seen as rows of equal length, reductions of whole rows, and what is computed from them.
//!
//! Inside, an instruction is *full* (one element for each of the row's, in row-major order), *row* (one for each row), or
//! *free*: read at coordinates of its own, as a bias is that every row shares.
use super::{FusionDecision, FusionPlanner, LARGEST_GROUP, OperandUse, is_inlineable, linear, operand_use};
use crate::hlo::{Computation, InstId, Module, Op};
use crate::schedule::plan::fold::associative_op;
use crate::util::id_vec::Id;
use std::collections::HashMap;

/// Upper limit of columns for which an expensive function (`exp`, `pow`) of one value per row is computed outside the row kernel: inside, a
/// scalar takes as long as a vector; outside, one vector serves several rows.
pub const FEW_COLUMNS: u64 = 8;

/// The division of an array into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// The number of rows.
    pub rows: u64,
    /// Elements of a row, at least 2.
    pub columns: u64,
}

/// The role of an instruction inside a row kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRole {
    /// One value for each element of the row.
    Full,
    /// One value for each row.
    Row,
    /// Not divided into rows: a value that is read at coordinates of its own.
    Free,
}

/// The rows that `id` reduces, if it is a reduction of whole rows of one array by an associative op.
pub fn reduced_rows(module: &Module, comp: &Computation, id: InstId) -> Option<RowShape> {
    let Op::Reduce { dims: axes, comp: folder } = &comp[id].op else { return None };
    let [input, _] = comp[id].operands[..] else { return None };
    associative_op(&module.comps[*folder])?;
    let array = comp[input].shape.as_array().filter(|a| !a.dtype.is_complex())?;
    let dims = &array.dims;
    let folded = |d: &usize| axes.contains(d);
    let wide: Vec<usize> = (0..dims.len()).filter(|&d| dims[d] != 1).collect();
    let kept = wide.iter().take_while(|d| !folded(d)).count();
    if wide[kept..].iter().any(|d| !folded(d)) {
        return None;
    }
    let product = |part: &[usize]| part.iter().map(|&d| dims[d]).product::<u64>();
    let (rows, columns) = (product(&wide[..kept]), product(&wide[kept..]));
    (columns >= 2 && rows >= 1).then_some(RowShape { rows, columns })
}

/// Whether `broadcast` gives each row of `user` one element of `operand`, in order.
fn by_row(comp: &Computation, user: InstId, operand: InstId, map: &[usize], r: RowShape) -> bool {
    let (Some(to), Some(from)) = (comp[user].shape.as_array(), comp[operand].shape.as_array()) else { return false };
    let mut before = 1u64;
    let mut cut = 0;
    while cut < to.dims.len() && before < r.rows {
        before *= to.dims[cut];
        cut += 1;
    }
    let mapped: Vec<usize> = map.iter().zip(&from.dims).filter(|(_, n)| **n != 1).map(|(&d, _)| d).collect();
    let wanted: Vec<usize> = (0..cut).filter(|&d| to.dims[d] != 1).collect();
    before == r.rows && mapped == wanted && from.elements() == r.rows
}

/// The role that `user`, itself in `role`, requires of its operand `i`.
pub fn operand_role(comp: &Computation, user: InstId, i: usize, role: RowRole, r: RowShape) -> RowRole {
    let inst = &comp[user];
    let operand = inst.operands[i];
    let count = |id: InstId| comp[id].shape.as_array().map(|a| a.elements());
    match (role, &inst.op) {
        (RowRole::Free, _) => RowRole::Free,
        (_, op) if linear(op) => {
            if count(operand) == count(user) {
                role
            } else {
                RowRole::Free
            }
        }
        (RowRole::Full, Op::Broadcast(map)) if by_row(comp, user, operand, map, r) => RowRole::Row,
        (RowRole::Row, Op::Reduce { .. }) if i == 0 => RowRole::Full,
        (RowRole::Full | RowRole::Row, _) => RowRole::Free,
    }
}

impl FusionPlanner<'_> {
    /// Starts a row kernel at a root that is itself a row reduction.
    pub(super) fn start_row_kernel(&mut self, id: InstId) {
        if let Some(rows) = reduced_rows(self.module, self.comp, id) {
            self.fusion.rows[id] = Some(rows);
            self.fusion.role[id] = RowRole::Row;
        }
    }

    /// Whether a row kernel computes an instruction for whole rows: its role is not `RowRole::Free`.
    pub(super) fn is_rowwise(&self, id: InstId) -> bool {
        self.fusion.role[id] != RowRole::Free
    }

    /// The role that all readers of `id` require of it, if they agree.
    fn required_role(&self, id: InstId, r: RowShape, role: &dyn Fn(InstId) -> RowRole) -> Option<RowRole> {
        let mut all = self.uses(id).map(|(u, i)| operand_role(self.comp, u, i, role(u), r));
        let first = all.next()?;
        all.all(|x| x == first).then_some(first)
    }

    /// Makes `root` a row kernel if `id` is, or is computed from, a row reduction and everything fused into `root` fits the rows; returns
    /// whether it did.
    pub(super) fn start_row_kernel_at(&mut self, id: InstId, root: InstId) -> bool {
        let Some(r) = self.rows_of_reduction(id) else { return false };
        if self.fusion.anchor[root].is_some() || !linear(&self.comp[root].op) {
            return false;
        }
        let role = match self.elements(root) {
            Some(n) if Some(n) == r.rows.checked_mul(r.columns) => RowRole::Full,
            Some(n) if n == r.rows => RowRole::Row,
            _ => return false,
        };
        let mut roles = HashMap::from([(root, role)]);
        for &m in self.members[root.index()].iter().chain([&id]) {
            let Some(role) = self.required_role(m, r, &|u| roles.get(&u).copied().unwrap_or(RowRole::Free)) else {
                return false;
            };
            roles.insert(m, role);
        }
        if roles.get(&id) != Some(&RowRole::Row) {
            return false;
        }
        let of = |m: &InstId| roles.get(m).copied().unwrap_or(RowRole::Free);
        let all: Vec<InstId> = self.members[root.index()].iter().copied().chain([root, id]).collect();
        if all.iter().any(|&m| self.is_alone_at_length(m, of(&m), r)) {
            return false;
        }
        for m in all {
            self.fusion.role[m] = of(&m);
        }
        self.fusion.rows[root] = Some(r);
        true
    }

    /// Whether `id` would apply an expensive function to one value per row in rows of at most `FEW_COLUMNS` columns.
    fn is_alone_at_length(&self, id: InstId, role: RowRole, r: RowShape) -> bool {
        let is_long = matches!(self.comp[id].op, Op::Elementwise(op) if op.is_long());
        role == RowRole::Row && is_long && r.rows > 1 && r.columns <= FEW_COLUMNS
    }

    /// Decides whether `id` becomes part of the row kernel `root`; `None` if the ordinary rules decide.
    pub(super) fn join_row_kernel(&mut self, id: InstId, root: InstId) -> Option<FusionDecision> {
        let r = self.fusion.rows[root]?;
        let role = self.required_role(id, r, &|u| self.fusion.role[u])?;
        let op = &self.comp[id].op;
        if role == RowRole::Free || self.members[root.index()].len() >= LARGEST_GROUP {
            return None;
        }
        let reduction = role == RowRole::Row && reduced_rows(self.module, self.comp, id) == Some(r);
        let memory = self.uses(id).any(|(u, i)| operand_use(&self.comp[u].op, i) == OperandUse::Memory);
        if !reduction && (!is_inlineable(op) || memory) {
            return None;
        }
        if role == RowRole::Full && linear(op) && self.is_epilogue(id) || self.is_alone_at_length(id, role, r) {
            return Some(FusionDecision::Materialised);
        }
        self.fusion.role[id] = role;
        Some(FusionDecision::Inlined(Some(root)))
    }

    /// Whether a value with this path to `root` keeps its row-major order there.
    pub(super) fn keeps_order_at_root(&self, root: InstId, path: Option<&[super::CoordinateChange]>) -> bool {
        let kept = |p: &[super::CoordinateChange]| p.iter().all(|m| matches!(m, super::CoordinateChange::Reshape(..)));
        linear(&self.comp[root].op) && path.is_some_and(kept)
    }
}
