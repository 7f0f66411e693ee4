//! Random numbers.
use super::machine::{Machine, unsupported};
use crate::diag::Result;
use crate::hlo::{ArrayShape, CompId, Literal, Shape};
use crate::hlo::attrs::*;
use crate::tensor::Tensor;
pub(super) fn rng(_a: &Tensor, _b: &Tensor, _n: bool, _s: &ArrayShape) -> Result<Tensor> { Err(unsupported("rng")) }
pub(super) fn bit_generator(_x: &Tensor, _a: &str, _s: &Shape) -> Result<Literal> { Err(unsupported("rng-bit-generator")) }
