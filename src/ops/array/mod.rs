//! `array_ops.cc`.
use super::OpLowering;

mod block;
mod create;
mod diag;
mod diag_tables;
mod format;
pub(super) mod data_dependent_ops;
pub(in crate::ops) mod gather;
mod inplace;
mod join;
mod set;
pub(in crate::ops) mod scatter;
pub mod shape;
mod slice;
mod strided_slice;
mod data_dependent_slice;
mod strided_shape;
mod unravel;

pub(in crate::ops) use gather::{gather, gather_nd};
pub(in crate::ops) use join::concat_inputs_shape;
pub(in crate::ops) use scatter::{scatter, scatter_into_input as scatter_onto};
pub(in crate::ops) use strided_slice::strided_update;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[
    shape::ROWS,
    slice::ROWS,
    strided_slice::ROWS,
    join::ROWS,
    create::ROWS,
    gather::ROWS,
    scatter::ROWS,
    block::ROWS,
    diag::ROWS,
    format::ROWS,
    set::ROWS,
    data_dependent_ops::ROWS,
    unravel::ROWS,
    inplace::ROWS,
];
