//! The words with which nearly every file of this room writes kernels.
pub(in crate::schedule) use super::element::Elements;
pub(in crate::schedule) use super::family::{Family, Root};
pub(in crate::schedule) use super::heaviest::label;
pub(in crate::schedule) use super::pieces::{
    assigned, both, convert, each, element_at, looped, not, number, over, over_several, require, select,
};
pub(in crate::schedule) use super::{Emitter, value::Value, view::View};
pub(in crate::schedule) use crate::diag::Result;
pub(in crate::schedule) use crate::hlo::{InstId, Op};
pub(in crate::schedule) use crate::kernel::index::{linear, reshape};
pub(in crate::schedule) use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, RegId, Stmt, VarId};
pub(in crate::schedule) use crate::scalar::ScalarOp;

pub(in crate::schedule) use crate::schedule::plan::recipe::Setup;
pub(in crate::schedule) use crate::schedule::refuse;
pub(in crate::schedule) use crate::tensor::DType;
