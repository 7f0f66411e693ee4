//! `math_ops.cc` and `bitwise_ops.cc`.
use super::OpRow;

pub(in crate::ops) mod binary;
mod bincount;
mod cast;
mod complex;
mod bessel;
pub(in crate::ops) mod expr;
pub(in crate::ops) mod gamma;
mod histogram;
pub(in crate::ops) mod inverse_error;
mod neighbour;
mod normal;
mod search;
pub(in crate::ops) mod matmul;
pub(in crate::ops) mod reduce;
pub(in crate::ops) mod scan;
mod segment;
pub(in crate::ops) mod special;
pub(in crate::ops) mod unary;

/// The rows of this family.
pub const ROWS: &[&[OpRow]] = &[
    unary::ROWS,
    unary::GRADIENTS,
    binary::ROWS,
    binary::COMPARISONS,
    reduce::ROWS,
    matmul::ROWS,
    cast::ROWS,
    scan::ROWS,
    segment::ROWS,
    bincount::ROWS,
    gamma::ROWS,
    bessel::ROWS,
    inverse_error::ROWS,
    neighbour::ROWS,
    search::ROWS,
    histogram::ROWS,
];
