//! Conversion of an op to the fields of an instruction message.
use std::collections::HashMap;

use protobuf::MessageField;

use super::messages::hlo::HloInstructionProto;
use super::messages::hlo::hlo_instruction_proto::SliceDimensions;
use super::messages::xla_data::PaddingConfig;
use super::messages::xla_data::padding_config::PaddingConfigDimension;
use super::write::computation_id;
use super::{dims, literal, opaque_attrs};
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::*;
use crate::hlo::schema::{self, FieldValue, NamedValues};
use crate::hlo::{Inst, Op, Shape, text};
use crate::scalar::{CompareKind, ScalarOp};
use crate::tensor::DTypeClass;

/// Writes the fields of `inst.op` into the message `p`.
pub(super) fn write(
    inst: &Inst,
    operands: &[&Shape],
    ids: &HashMap<&str, i64>,
    p: &mut HloInstructionProto,
) -> Result<()> {
    p.called_computation_ids = inst.op.called_computations().into_iter().map(computation_id).collect();
    match &inst.op {
        Op::Parameter(n) => p.parameter_number = *n as i64,
        Op::Constant(value) => p.literal = MessageField::some(literal::write(value, &inst.shape)?),
        // XLA's message names the body first.
        Op::While { cond, body } => p.called_computation_ids = vec![computation_id(*body), computation_id(*cond)],
        Op::Dot(_) => {
            p.dot_dimension_numbers.mut_or_insert_default();
            p.precision_config.mut_or_insert_default().operand_precision = vec![0; 2];
        }
        Op::Convolution(d) => {
            p.window = MessageField::some(dims::write_window(&d.window));
            p.convolution_dimension_numbers = MessageField::some(dims::write_convolution(d));
            p.feature_group_count = d.feature_group_count as i64;
            p.batch_group_count = d.batch_group_count as i64;
            p.precision_config.mut_or_insert_default().operand_precision = vec![0; 2];
        }
        Op::Foreign(f) => foreign(f, ids, p)?,
        _ => {}
    }
    for (name, value, source) in schema::attributes_of(&inst.op).iter() {
        field(name, value, source, p)?;
    }
    if let Op::Elementwise(ScalarOp::Compare(_, kind)) = inst.op {
        p.comparison_type = comparison_type(kind, operands).to_string();
    }
    Ok(())
}

/// Writes the field of one attribute; `source` is the text of an opaque one.
fn field(name: &str, value: &FieldValue, source: &str, p: &mut HloInstructionProto) -> Result<()> {
    match value {
        FieldValue::Bool(b) => bool_field(name, *b, p),
        FieldValue::Int(n) => int_field(name, *n, p),
        FieldValue::Float(v) => p.epsilon = *v as f32,
        FieldValue::Ints(all) => ints_field(name, all, p),
        FieldValue::Window(window) => p.window = MessageField::some(dims::write_window(window)),
        FieldValue::Slices(all) => {
            let one = |d: &SliceDim| {
                let (start, limit, stride) = (d.start as i64, d.limit as i64, d.stride as i64);
                SliceDimensions { start, limit, stride, ..Default::default() }
            };
            p.slice_dimensions = all.iter().map(one).collect();
        }
        FieldValue::Pads(all) => p.padding_config = MessageField::some(padding(all)),
        FieldValue::Word(word) => word_field(name, word, p),
        FieldValue::Text if name == "frontend_attributes" => {
            p.frontend_attributes = MessageField::some(opaque_attrs::parse_frontend_attributes(source)?);
        }
        // Computations have a separate field, and a convolution's dimension numbers are written with it.
        FieldValue::Comp(_)
        | FieldValue::Comps(_)
        | FieldValue::Labels(_)
        | FieldValue::Metadata(_)
        | FieldValue::Text => {}
    }
    Ok(())
}

fn bool_field(name: &str, value: bool, p: &mut HloInstructionProto) {
    let is_cholesky = p.opcode == "cholesky";
    match name {
        "is_stable" => p.is_stable = value,
        "largest" => p.largest = value,
        "indices_are_sorted" => p.indices_are_sorted = value,
        "unique_indices" => p.unique_indices = value,
        "lower" if is_cholesky => p.cholesky_options.mut_or_insert_default().lower = value,
        "lower" => p.triangular_solve_options.mut_or_insert_default().lower = value,
        "left_side" => p.triangular_solve_options.mut_or_insert_default().left_side = value,
        "unit_diagonal" => p.triangular_solve_options.mut_or_insert_default().unit_diagonal = value,
        _ => {}
    }
}

fn int_field(name: &str, value: i64, p: &mut HloInstructionProto) {
    match name {
        "iota_dimension" => p.dimensions = vec![value],
        "index_vector_dim" if p.opcode == "gather" => {
            p.gather_dimension_numbers.mut_or_insert_default().index_vector_dim = value;
        }
        "index_vector_dim" => p.scatter_dimension_numbers.mut_or_insert_default().index_vector_dim = value,
        "exponent_bits" => p.exponent_bits = value as i32,
        "mantissa_bits" => p.mantissa_bits = value as i32,
        "k" => p.k = value,
        "index" => p.tuple_index = value,
        "feature_index" => p.feature_index = value,
        _ => {}
    }
}

fn ints_field(name: &str, value: &[i64], p: &mut HloInstructionProto) {
    let gather = &mut p.gather_dimension_numbers;
    let scatter = &mut p.scatter_dimension_numbers;
    let dot = &mut p.dot_dimension_numbers;
    let field = match name {
        "dimensions" => &mut p.dimensions,
        "dynamic_slice_sizes" => &mut p.dynamic_slice_sizes,
        "fft_length" => &mut p.fft_length,
        "offset_dims" => &mut gather.mut_or_insert_default().offset_dims,
        "collapsed_slice_dims" => &mut gather.mut_or_insert_default().collapsed_slice_dims,
        "start_index_map" => &mut gather.mut_or_insert_default().start_index_map,
        "operand_batching_dims" => &mut gather.mut_or_insert_default().operand_batching_dims,
        "start_indices_batching_dims" => &mut gather.mut_or_insert_default().start_indices_batching_dims,
        "slice_sizes" => &mut p.gather_slice_sizes,
        "update_window_dims" => &mut scatter.mut_or_insert_default().update_window_dims,
        "inserted_window_dims" => &mut scatter.mut_or_insert_default().inserted_window_dims,
        "scatter_dims_to_operand_dims" => &mut scatter.mut_or_insert_default().scatter_dims_to_operand_dims,
        "input_batching_dims" => &mut scatter.mut_or_insert_default().input_batching_dims,
        "scatter_indices_batching_dims" => &mut scatter.mut_or_insert_default().scatter_indices_batching_dims,
        "lhs_batch_dims" => &mut dot.mut_or_insert_default().lhs_batch_dimensions,
        "rhs_batch_dims" => &mut dot.mut_or_insert_default().rhs_batch_dimensions,
        "lhs_contracting_dims" => &mut dot.mut_or_insert_default().lhs_contracting_dimensions,
        "rhs_contracting_dims" => &mut dot.mut_or_insert_default().rhs_contracting_dimensions,
        _ => return,
    };
    *field = value.to_vec();
}

fn word_field(name: &str, word: &str, p: &mut HloInstructionProto) {
    match name {
        "direction" => p.comparison_direction = word.to_string(),
        "kind" => p.fusion_kind = word.to_string(),
        "fft_type" => p.fft_type = position::<FftKind>(word),
        // This enumeration and the next start with an invalid value.
        "transpose_a" => {
            p.triangular_solve_options.mut_or_insert_default().transpose_a = 1 + position::<Transpose>(word);
        }
        "distribution" => p.distribution = if word == "rng_normal" { 2 } else { 1 },
        "algorithm" => {
            p.rng_algorithm = match word {
                "rng_three_fry" => 1,
                "rng_philox" => 2,
                _ => 0,
            };
        }
        _ => {}
    }
}

/// Number of a name in its enumeration.
fn position<T: NamedValues>(word: &str) -> i32 {
    T::WORDS.iter().position(|(known, _)| *known == word).unwrap_or(0) as i32
}

fn foreign(f: &ForeignOp, ids: &HashMap<&str, i64>, p: &mut HloInstructionProto) -> Result<()> {
    if text::is_async_shorthand(&f.opcode) {
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
        opaque_attrs::write(name, value, ids, p)?;
    }
    Ok(())
}

/// Type of a comparison, which text omits if the element type implies it.
fn comparison_type(kind: CompareKind, operands: &[&Shape]) -> &'static str {
    let class = operands.first().and_then(|s| s.as_array()).map(|a| a.dtype.class());
    match (kind, class) {
        (CompareKind::Total, _) => "TOTALORDER",
        (CompareKind::Partial, Some(DTypeClass::Signed)) => "SIGNED",
        (CompareKind::Partial, Some(DTypeClass::Unsigned | DTypeClass::Pred)) => "UNSIGNED",
        (CompareKind::Partial, Some(DTypeClass::Float | DTypeClass::Complex) | None) => "FLOAT",
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
