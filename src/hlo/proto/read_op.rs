//! Conversion of an instruction message to an op: fields become attribute values, from which [`schema::op`] builds the op.
use std::collections::HashMap;

use super::messages::hlo::HloInstructionProto;
use super::read::encoding_error;
use super::{dims, literal, opaque_attrs};
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::{PadDim, SliceDim};
use crate::hlo::schema::{self, Attrs, FieldValue, table};
use crate::hlo::text;
use crate::hlo::{CompId, Op, Shape};
use crate::tensor::DType;

type Extra = Vec<(String, String)>;

/// Op of the message `p`, and its opaque attributes.
pub(super) fn read(
    p: &HloInstructionProto,
    shape: &Option<Shape>,
    operands: &[&Shape],
    calls: &[CompId],
    names: &HashMap<i64, &str>,
) -> Result<(Op, Extra)> {
    let opcode = p.opcode.as_str();
    let Some(own) = table::attributes(opcode) else {
        return Err(Error::user(Code::HloUnsupported, format!("`{opcode}` is no opcode")));
    };
    let mut attrs = Attrs::default();
    let selector = operands.first().and_then(|s| s.as_array());
    let by_pred = selector.is_some_and(|a| a.dtype == DType::Pred);
    let mut calls = UnclaimedComputations { rest: calls, by_pred };
    for name in own.iter().map(|n| table::without_prefix(n)).chain(table::COMMON.iter().copied()) {
        match value(name, p, &mut calls)? {
            Some(value) => {
                let source = opaque_attrs::read(name, p, names)?.unwrap_or_default();
                attrs.push(name, value, source);
            }
            None => {
                if let Some(source) = opaque_attrs::read(name, p, names)? {
                    attrs.push(name, FieldValue::Text, source);
                }
            }
        }
    }
    if !calls.rest.is_empty() {
        return Err(encoding_error(format!("{opcode} calls {} computations too many", calls.rest.len())));
    }
    let op = match opcode {
        "parameter" => {
            let number = usize::try_from(p.parameter_number);
            Op::Parameter(number.map_err(|_| encoding_error(format!("the parameter number {}", p.parameter_number)))?)
        }
        "constant" => constant(p, shape)?,
        _ => schema::op(opcode, shape, operands, &mut attrs).map_err(encoding_error)?,
    };
    Ok((op, attrs.into_extra()))
}

fn constant(p: &HloInstructionProto, shape: &Option<Shape>) -> Result<Op> {
    let message = p.literal.as_ref().ok_or_else(|| encoding_error("a constant has no literal"))?;
    let written = message.shape.as_ref().map(super::shape::read).transpose()?;
    match (written, shape) {
        (Some(a), Some(b)) if a.same_type_and_dims(b) => Ok(Op::Constant(literal::read(message)?)),
        _ => Err(encoding_error("a constant's literal has another shape")),
    }
}

/// Called computations that no attribute has claimed yet.
struct UnclaimedComputations<'a> {
    rest: &'a [CompId],
    /// Whether a conditional has branches for true and false, as opposed to numbered ones.
    by_pred: bool,
}

impl UnclaimedComputations<'_> {
    fn next(&mut self) -> Option<CompId> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
}

/// Value of attribute `name` if the op or the verifier reads it; `None` if it is opaque or missing.
fn value(name: &str, p: &HloInstructionProto, calls: &mut UnclaimedComputations) -> Result<Option<FieldValue>> {
    let opcode = p.opcode.as_str();
    let word = |w: &str| Some(FieldValue::Word(w.to_string()));
    let ints = |v: &[i64]| Some(FieldValue::Ints(v.to_vec()));
    Ok(match name {
        // The message has the body of a loop first, the text the condition.
        "condition" => calls.rest.get(1).map(|&c| FieldValue::Comp(c)),
        "body" => {
            let body = calls.next();
            calls.next();
            body.map(FieldValue::Comp)
        }
        "to_apply" if opcode == "custom-call" => None,
        "to_apply" | "calls" | "select" | "scatter" => calls.next().map(FieldValue::Comp),
        "true_computation" | "false_computation" if !calls.by_pred => None,
        "true_computation" | "false_computation" => calls.next().map(FieldValue::Comp),
        "branch_computations" | "called_computations" if !calls.rest.is_empty() => {
            Some(FieldValue::Comps(std::mem::take(&mut calls.rest).to_vec()))
        }
        "direction" => word(&p.comparison_direction),
        "type" => word(&p.comparison_type),
        "exponent_bits" => Some(FieldValue::Int(p.exponent_bits.into())),
        "mantissa_bits" => Some(FieldValue::Int(p.mantissa_bits.into())),
        "iota_dimension" => {
            Some(FieldValue::Int(*p.dimensions.first().ok_or_else(|| encoding_error("iota has no dimension"))?))
        }
        "dimensions" if carries_dimensions(opcode) => None,
        "dimensions" => ints(&p.dimensions),
        "slice" => Some(FieldValue::Slices(slices(p)?)),
        "padding" => Some(FieldValue::Pads(pads(p)?)),
        "dynamic_slice_sizes" => ints(&p.dynamic_slice_sizes),
        "slice_sizes" if opcode == "gather" => ints(&p.gather_slice_sizes),
        "indices_are_sorted" => Some(FieldValue::Bool(p.indices_are_sorted)),
        "unique_indices" => Some(FieldValue::Bool(p.unique_indices)),
        "is_stable" => Some(FieldValue::Bool(p.is_stable)),
        "k" => Some(FieldValue::Int(p.k)),
        "largest" => Some(FieldValue::Bool(p.largest)),
        "index" => Some(FieldValue::Int(p.tuple_index)),
        "window" if opcode != "custom-call" => {
            p.window.as_ref().map(dims::read_window).transpose()?.map(FieldValue::Window)
        }
        "dim_labels" if opcode == "convolution" => {
            let labels = p.convolution_dimension_numbers.as_ref().map(dims::read_convolution).transpose()?;
            labels.map(|d| FieldValue::Labels(text::print_dim_labels(&d)))
        }
        // Files of old versions omit a count of one.
        "feature_group_count" if opcode == "convolution" => Some(FieldValue::Int(p.feature_group_count.max(1))),
        "batch_group_count" if opcode == "convolution" => Some(FieldValue::Int(p.batch_group_count.max(1))),
        "fft_type" => {
            let words = ["FFT", "IFFT", "RFFT", "IRFFT"];
            let found = usize::try_from(p.fft_type).ok().and_then(|i| words.get(i));
            word(found.ok_or_else(|| encoding_error(format!("the fft type {}", p.fft_type)))?)
        }
        "fft_length" => ints(&p.fft_length),
        "lower" if opcode == "cholesky" => Some(FieldValue::Bool(p.cholesky_options.as_ref().is_some_and(|o| o.lower))),
        "lower" => Some(FieldValue::Bool(p.triangular_solve_options.as_ref().is_some_and(|o| o.lower))),
        "left_side" => Some(FieldValue::Bool(p.triangular_solve_options.as_ref().is_some_and(|o| o.left_side))),
        "unit_diagonal" => Some(FieldValue::Bool(p.triangular_solve_options.as_ref().is_some_and(|o| o.unit_diagonal))),
        "transpose_a" => match p.triangular_solve_options.as_ref().map_or(1, |o| o.transpose_a) {
            2 => word("TRANSPOSE"),
            3 => word("ADJOINT"),
            _ => word("NO_TRANSPOSE"),
        },
        "epsilon" => Some(FieldValue::Float(p.epsilon.into())),
        "feature_index" => Some(FieldValue::Int(p.feature_index)),
        "distribution" => match p.distribution {
            1 => word("rng_uniform"),
            2 => word("rng_normal"),
            other => return Err(encoding_error(format!("the distribution {other}"))),
        },
        "algorithm" if opcode == "rng-bit-generator" => match p.rng_algorithm {
            0 => word("rng_default"),
            1 => word("rng_three_fry"),
            2 => word("rng_philox"),
            other => return Err(encoding_error(format!("the algorithm {other}"))),
        },
        "kind" => word(&p.fusion_kind),
        _ => axes(name, p),
    })
}

/// Dimension numbers of dots, gathers and scatters; `None` for other attributes.
fn axes(name: &str, p: &HloInstructionProto) -> Option<FieldValue> {
    let ints = |v: &[i64]| Some(FieldValue::Ints(v.to_vec()));
    let gather = p.gather_dimension_numbers.as_ref();
    let scatter = p.scatter_dimension_numbers.as_ref();
    let dot = p.dot_dimension_numbers.as_ref().filter(|_| p.opcode == "dot");
    match name {
        "offset_dims" => gather.and_then(|d| ints(&d.offset_dims)),
        "collapsed_slice_dims" => gather.and_then(|d| ints(&d.collapsed_slice_dims)),
        "start_index_map" => gather.and_then(|d| ints(&d.start_index_map)),
        "operand_batching_dims" => gather.and_then(|d| ints(&d.operand_batching_dims)),
        "start_indices_batching_dims" => gather.and_then(|d| ints(&d.start_indices_batching_dims)),
        "index_vector_dim" => {
            let from_scatter = scatter.map(|d| d.index_vector_dim);
            gather.map(|d| d.index_vector_dim).or(from_scatter).map(FieldValue::Int)
        }
        "update_window_dims" => scatter.and_then(|d| ints(&d.update_window_dims)),
        "inserted_window_dims" => scatter.and_then(|d| ints(&d.inserted_window_dims)),
        "scatter_dims_to_operand_dims" => scatter.and_then(|d| ints(&d.scatter_dims_to_operand_dims)),
        "input_batching_dims" => scatter.and_then(|d| ints(&d.input_batching_dims)),
        "scatter_indices_batching_dims" => scatter.and_then(|d| ints(&d.scatter_indices_batching_dims)),
        "lhs_batch_dims" => dot.and_then(|d| ints(&d.lhs_batch_dimensions)),
        "rhs_batch_dims" => dot.and_then(|d| ints(&d.rhs_batch_dimensions)),
        "lhs_contracting_dims" => dot.and_then(|d| ints(&d.lhs_contracting_dimensions)),
        "rhs_contracting_dims" => dot.and_then(|d| ints(&d.rhs_contracting_dimensions)),
        _ => None,
    }
}

/// Whether the `dimensions` of this opcode are kept as text.
fn carries_dimensions(opcode: &str) -> bool {
    matches!(opcode, "all-to-all" | "all-gather" | "all-gather-start" | "reduce-scatter" | "scan")
}

fn slices(p: &HloInstructionProto) -> Result<Vec<SliceDim>> {
    let size = |v: i64| u64::try_from(v).map_err(|_| encoding_error(format!("a slice from or to {v}")));
    let all = p.slice_dimensions.iter();
    all.map(|d| Ok(SliceDim { start: size(d.start)?, limit: size(d.limit)?, stride: size(d.stride)? })).collect()
}

fn pads(p: &HloInstructionProto) -> Result<Vec<PadDim>> {
    let all = p.padding_config.as_ref().map_or(&[][..], |c| &c.dimensions);
    let one = |d: &super::messages::xla_data::padding_config::PaddingConfigDimension| {
        let interior =
            u64::try_from(d.interior_padding).map_err(|_| encoding_error("an interior padding is negative"))?;
        Ok(PadDim { low: d.edge_padding_low, high: d.edge_padding_high, interior })
    };
    all.iter().map(one).collect()
}
