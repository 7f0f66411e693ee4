//! Linear algebra.
use super::machine::{Machine, unsupported};
use crate::diag::Result;
use crate::hlo::{ArrayShape, CompId, Literal, Shape};
use crate::hlo::attrs::*;
use crate::tensor::Tensor;
pub(super) struct Triangle { pub(super) left_side: bool, pub(super) lower: bool, pub(super) unit_diagonal: bool, pub(super) transpose: Transpose }
pub(super) fn fft(_x: &Tensor, _k: FftKind, _l: &[u64], _s: &ArrayShape) -> Result<Tensor> { Err(unsupported("fft")) }
pub(super) fn cholesky(_x: &Tensor, _l: bool) -> Result<Tensor> { Err(unsupported("cholesky")) }
pub(super) fn triangular_solve(_a: &Tensor, _b: &Tensor, _f: Triangle) -> Result<Tensor> { Err(unsupported("triangular-solve")) }
pub(super) fn batch_norm_training(_o: &[&Tensor], _e: f32, _f: usize) -> Result<Literal> { Err(unsupported("batch-norm-training")) }
pub(super) fn batch_norm_inference(_o: &[&Tensor], _e: f32, _f: usize) -> Result<Literal> { Err(unsupported("batch-norm-inference")) }
pub(super) fn batch_norm_grad(_o: &[&Tensor], _e: f32, _f: usize) -> Result<Literal> { Err(unsupported("batch-norm-grad")) }
