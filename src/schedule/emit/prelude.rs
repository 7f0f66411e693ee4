//! The words with which nearly every file of this room writes kernels.
pub(super) use super::element::Elements;
pub(super) use super::family::{Family, Root};
pub(super) use super::heaviest::label;
pub(super) use super::pieces::{
    assigned, both, convert, each, element_at, looped, not, number, over, over_several, require, select,
};
pub(super) use super::{Emitter, Value, view::View};
pub(super) use crate::diag::Result;
pub(super) use crate::hlo::{InstId, Op};
pub(super) use crate::kernel::index::{linear, reshape};
pub(super) use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, RegId, Stmt, VarId};
pub(super) use crate::scalar::ScalarOp;

pub(super) use crate::schedule::plan::recipe::Setup;
pub(super) use crate::schedule::refuse;
pub(super) use crate::tensor::DType;
