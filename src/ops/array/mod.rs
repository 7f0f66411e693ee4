//! `array_ops.cc`.
use super::OpRow;

mod create;
mod join;
mod shape;
mod slice;

/// The rows of this family.
pub const ROWS: &[&[OpRow]] = &[shape::ROWS, slice::ROWS, join::ROWS, create::ROWS];
