//! The fields of a message that an op has.
use std::collections::HashMap;

use protobuf::MessageField;

use super::generated::hlo::HloInstructionProto;
use super::generated::hlo::hlo_instruction_proto::SliceDimensions;
use super::generated::xla_data::padding_config::PaddingConfigDimension;
use super::generated::xla_data::{
    CholeskyOptions, DotDimensionNumbers, GatherDimensionNumbers, PaddingConfig, ScatterDimensionNumbers,
    TriangularSolveOptions,
};
use super::write::comp_id;
use super::{carried, dims, literal};
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::*;
use crate::hlo::text::op_from_attrs::BY_COMPARISON;
use crate::hlo::{Inst, Op, Shape, text};
use crate::scalar::{CompareKind, ScalarOp};
use crate::tensor::DTypeClass;

fn axes(dims: &[usize]) -> Vec<i64> {
    dims.iter().map(|&d| d as i64).collect()
}

fn sizes(dims: &[u64]) -> Vec<i64> {
    dims.iter().map(|&d| d as i64).collect()
}

/// Fills in what `inst.op` says.
pub(super) fn write(
    inst: &Inst,
    operands: &[&Shape],
    ids: &HashMap<&str, i64>,
    p: &mut HloInstructionProto,
) -> Result<()> {
    p.called_computation_ids = inst.op.called().into_iter().map(comp_id).collect();
    match &inst.op {
        Op::Parameter(n) => p.parameter_number = *n as i64,
        Op::Constant(value) => p.literal = MessageField::some(literal::write(value, &inst.shape)?),
        Op::Elementwise(op) => scalar(*op, operands, p),
        Op::Iota(d) | Op::Concatenate(d) | Op::GetDimensionSize(d) | Op::SetDimensionSize(d) => {
            p.dimensions = vec![*d as i64]
        }
        Op::Broadcast(d) | Op::Transpose(d) | Op::Reverse(d) => p.dimensions = axes(d),
        Op::Reduce { dims: d, .. } | Op::Map { dims: d, .. } => p.dimensions = axes(d),
        Op::Slice(all) => {
            let one = |d: &SliceDim| {
                let (start, limit, stride) = (d.start as i64, d.limit as i64, d.stride as i64);
                SliceDimensions { start, limit, stride, ..Default::default() }
            };
            p.slice_dimensions = all.iter().map(one).collect();
        }
        Op::Pad(all) => p.padding_config = MessageField::some(padding(all)),
        Op::DynamicSlice(all) => p.dynamic_slice_sizes = sizes(all),
        Op::Gather(d) => gather(d, p),
        Op::Scatter { dims: d, .. } => scatter(d, p),
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => {
            p.window = MessageField::some(dims::write_window(window));
        }
        Op::Sort { dim, is_stable, .. } => {
            p.dimensions = vec![*dim as i64];
            p.is_stable = *is_stable;
        }
        Op::TopK { k, largest, kind } => {
            p.k = *k as i64;
            p.largest = *largest;
            if *kind == CompareKind::Partial {
                p.frontend_attributes = MessageField::some(carried::frontend(BY_COMPARISON)?);
            }
        }
        Op::Dot(d) => {
            p.dot_dimension_numbers = MessageField::some(DotDimensionNumbers {
                lhs_contracting_dimensions: axes(&d.lhs_contracting),
                rhs_contracting_dimensions: axes(&d.rhs_contracting),
                lhs_batch_dimensions: axes(&d.lhs_batch),
                rhs_batch_dimensions: axes(&d.rhs_batch),
                ..Default::default()
            });
            p.precision_config.mut_or_insert_default().operand_precision = vec![0; 2];
        }
        Op::Convolution(d) => {
            p.window = MessageField::some(dims::write_window(&d.window));
            p.convolution_dimension_numbers = MessageField::some(dims::write_convolution(d));
            p.feature_group_count = d.feature_group_count as i64;
            p.batch_group_count = d.batch_group_count as i64;
            p.precision_config.mut_or_insert_default().operand_precision = vec![0; 2];
        }
        Op::GetTupleElement(i) => p.tuple_index = *i as i64,
        // XLA names the body first.
        Op::While { cond, body } => p.called_computation_ids = vec![comp_id(*body), comp_id(*cond)],
        Op::Fusion { kind, .. } => p.fusion_kind = fusion_kind(*kind).to_string(),
        Op::Fft { kind, length } => {
            p.fft_type = match kind {
                FftKind::Fft => 0,
                FftKind::Ifft => 1,
                FftKind::Rfft => 2,
                FftKind::Irfft => 3,
            };
            p.fft_length = sizes(length);
        }
        Op::Cholesky { lower } => {
            p.cholesky_options = MessageField::some(CholeskyOptions { lower: *lower, ..Default::default() });
        }
        Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
            let transpose_a = match transpose_a {
                Transpose::No => 1,
                Transpose::Yes => 2,
                Transpose::Adjoint => 3,
            };
            let (left_side, lower, unit_diagonal) = (*left_side, *lower, *unit_diagonal);
            let options = TriangularSolveOptions { left_side, lower, unit_diagonal, transpose_a, ..Default::default() };
            p.triangular_solve_options = MessageField::some(options);
        }
        Op::BatchNormTraining { epsilon_bits, feature_index }
        | Op::BatchNormInference { epsilon_bits, feature_index }
        | Op::BatchNormGrad { epsilon_bits, feature_index } => {
            p.epsilon = f32::from_bits(*epsilon_bits);
            p.feature_index = *feature_index as i64;
        }
        Op::Rng { normal } => p.distribution = if *normal { 2 } else { 1 },
        Op::RngBitGenerator { algorithm } => {
            p.rng_algorithm = match algorithm.as_str() {
                "rng_three_fry" => 1,
                "rng_philox" => 2,
                _ => 0,
            };
        }
        Op::Reshape
        | Op::Bitcast
        | Op::Copy
        | Op::OptimizationBarrier
        | Op::BitcastConvertWidth
        | Op::DynamicUpdateSlice
        | Op::Tuple
        | Op::Conditional(_)
        | Op::Call(_)
        | Op::AfterAll
        | Op::AddDependency
        | Op::PartitionId
        | Op::ReplicaId => {}
        Op::Foreign(f) => foreign(f, ids, p)?,
    }
    Ok(())
}

fn foreign(f: &Foreign, ids: &HashMap<&str, i64>, p: &mut HloInstructionProto) -> Result<()> {
    if text::is_sugar(&f.opcode) {
        let told = format!("{} is only text: a message has an async-start with a computation", f.opcode);
        return Err(Error::user(Code::HloUnsupported, told));
    }
    if f.opcode == "custom-call" {
        (p.feature_group_count, p.batch_group_count, p.custom_call_api_version) = (1, 1, 1);
    }
    if f.opcode.starts_with("async-") {
        p.async_execution_thread = "main".to_string();
    }
    for (name, value) in &f.attrs {
        carried::write(name, value, ids, p)?;
    }
    Ok(())
}

pub(super) fn fusion_kind(kind: FusionKind) -> &'static str {
    match kind {
        FusionKind::Loop => "kLoop",
        FusionKind::Input => "kInput",
        FusionKind::Output => "kOutput",
        FusionKind::Custom => "kCustom",
    }
}

fn scalar(op: ScalarOp, operands: &[&Shape], p: &mut HloInstructionProto) {
    match op {
        ScalarOp::Compare(direction, kind) => {
            p.comparison_direction = direction.name().to_string();
            let class = operands.first().and_then(|s| s.as_array()).map(|a| a.dtype.class());
            let word = match (kind, class) {
                (CompareKind::Total, _) => "TOTALORDER",
                (CompareKind::Partial, Some(DTypeClass::Signed)) => "SIGNED",
                (CompareKind::Partial, Some(DTypeClass::Unsigned | DTypeClass::Pred)) => "UNSIGNED",
                (CompareKind::Partial, Some(DTypeClass::Float | DTypeClass::Complex) | None) => "FLOAT",
            };
            p.comparison_type = word.to_string();
        }
        ScalarOp::ReducePrecision { exponent_bits, mantissa_bits } => {
            p.exponent_bits = exponent_bits as i32;
            p.mantissa_bits = mantissa_bits as i32;
        }
        // Every other meaning is the opcode and the shape.
        _ => {}
    }
}

fn padding(all: &[PadDim]) -> PaddingConfig {
    let one = |d: &PadDim| PaddingConfigDimension {
        edge_padding_low: d.low,
        edge_padding_high: d.high,
        interior_padding: d.interior as i64,
        ..Default::default()
    };
    PaddingConfig { dimensions: all.iter().map(one).collect(), ..Default::default() }
}

fn gather(d: &GatherDims, p: &mut HloInstructionProto) {
    p.gather_dimension_numbers = MessageField::some(GatherDimensionNumbers {
        offset_dims: axes(&d.offset_dims),
        collapsed_slice_dims: axes(&d.collapsed_slice_dims),
        start_index_map: axes(&d.start_index_map),
        index_vector_dim: d.index_vector_dim as i64,
        operand_batching_dims: axes(&d.operand_batching_dims),
        start_indices_batching_dims: axes(&d.start_indices_batching_dims),
        ..Default::default()
    });
    p.gather_slice_sizes = sizes(&d.slice_sizes);
    p.indices_are_sorted = d.indices_are_sorted;
}

fn scatter(d: &ScatterDims, p: &mut HloInstructionProto) {
    p.scatter_dimension_numbers = MessageField::some(ScatterDimensionNumbers {
        update_window_dims: axes(&d.update_window_dims),
        inserted_window_dims: axes(&d.inserted_window_dims),
        scatter_dims_to_operand_dims: axes(&d.scatter_dims_to_operand_dims),
        index_vector_dim: d.index_vector_dim as i64,
        input_batching_dims: axes(&d.input_batching_dims),
        scatter_indices_batching_dims: axes(&d.scatter_indices_batching_dims),
        ..Default::default()
    });
    p.indices_are_sorted = d.indices_are_sorted;
    p.unique_indices = d.unique_indices;
}
