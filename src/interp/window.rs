//! Windows.
use super::machine::{Machine, unsupported};
use crate::diag::Result;
use crate::hlo::{ArrayShape, CompId, Literal, Shape};
use crate::hlo::attrs::*;
use crate::tensor::Tensor;
pub(super) fn reduce_window(_m: &Machine, _o: &[&Tensor], _w: &[WindowDim], _c: CompId) -> Result<Literal> { Err(unsupported("reduce-window")) }
pub(super) fn select_and_scatter(_m: &Machine, _o: &[&Tensor], _w: &[WindowDim], _s: CompId, _c: CompId) -> Result<Tensor> { Err(unsupported("select-and-scatter")) }
