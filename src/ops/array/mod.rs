//! `array_ops.cc`.
use super::OpRow;

mod block;
mod create;
mod diag;
mod format;
pub(in crate::ops) mod gather;
mod join;
mod set;
pub(in crate::ops) mod scatter;
pub mod shape;
mod slice;
mod strided;
mod strided_shape;

/// The rows of this family.
pub const ROWS: &[&[OpRow]] = &[
    shape::ROWS,
    slice::ROWS,
    strided::ROWS,
    join::ROWS,
    create::ROWS,
    gather::ROWS,
    scatter::ROWS,
    block::ROWS,
    diag::ROWS,
    format::ROWS,
    set::ROWS,
];
