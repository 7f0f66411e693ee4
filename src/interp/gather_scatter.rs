//! Gather and scatter.
use super::machine::{Machine, unsupported};
use crate::diag::Result;
use crate::hlo::{ArrayShape, CompId, Literal, Shape};
use crate::hlo::attrs::*;
use crate::tensor::Tensor;
pub(super) fn gather(_x: &Tensor, _i: &Tensor, _d: &GatherDims, _s: &ArrayShape) -> Result<Tensor> { Err(unsupported("gather")) }
pub(super) fn scatter(_m: &Machine, _o: &[&Tensor], _d: &ScatterDims, _c: CompId) -> Result<Literal> { Err(unsupported("scatter")) }
