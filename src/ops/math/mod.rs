//! `math_ops.cc` and `bitwise_ops.cc`.
use super::OpLowering;

pub(in crate::ops) mod binary;
mod bincount;
pub mod cast;
mod complex;
mod bessel;
mod bessel_jy;
mod bessel_k;
mod bessel_tables;
pub(in crate::ops) mod expr;
pub(in crate::ops) mod gamma;
mod histogram;
mod integrals;
pub(in crate::ops) mod inverse_error;
mod neighbor;
mod normal;
mod order;
mod search;
pub(in crate::ops) mod matmul;
pub(in crate::ops) mod reduce;
pub(in crate::ops) mod scan;
pub mod segment;
pub(in crate::ops) mod special;
pub(in crate::ops) mod unary;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[
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
    bessel_jy::ROWS,
    bessel_k::ROWS,
    integrals::ROWS,
    order::ROWS,
    inverse_error::ROWS,
    neighbor::ROWS,
    search::ROWS,
    histogram::ROWS,
];
