//! Opaque attributes of each opcode, and the syntax of each attribute.

use crate::hlo::op;
use crate::scalar::ScalarOp;

/// Syntax of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hlo) enum FieldSyntax {
    /// Boolean: `true`, `false`, `0`, `1`.
    Bool,
    /// Integer.
    Int,
    /// Floating-point number.
    Float,
    /// List of integers: `{1,2}`.
    Ints,
    /// Computation: its name, or its instructions in braces.
    Comp,
    /// List of computations: `{f, g}`.
    Comps,
    /// Window: `{size=3x3 pad=1_1x1_1}`.
    Window,
    /// Dimension labels of a convolution: `b01f_01io->b01f`.
    DimLabels,
    /// Slices: `{[0:2:1], [1:3]}`.
    Slices,
    /// Padding: `0_1x2_3_1`.
    Padding,
    /// Unquoted word.
    Word,
    /// Quoted string: `"text"`.
    Str,
    /// Shape, such as `f32[2,3]`.
    Shape,
    /// Shape followed by a literal.
    Literal,
    /// Braces with any content: `{...}`.
    Braces,
    /// Sharding: `{...}` or an unquoted word.
    Sharding,
    /// Backend configuration: `"text"` or a JSON dictionary.
    Config,
    /// Device groups: `{{0,1},{2,3}}` or `[2,2]<=[4]T(1,0)`.
    Groups,
}

/// Attributes that are lists of integers.
const INTEGER_LISTS: &[&str] = &[
    "dimensions",
    "dynamic_slice_sizes",
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "slice_sizes",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "lhs_batch_dims",
    "rhs_batch_dims",
    "lhs_contracting_dims",
    "rhs_contracting_dims",
    "fft_length",
    "lhs_ragged_dims",
    "rhs_group_dims",
];

/// Attributes in braces whose content is kept as text.
const BRACES: &[&str] = &[
    "frontend_attributes",
    "statistics",
    "parameter_replication",
    "control-predecessors",
    "origin",
    "metadata",
    "source_target_pairs",
    "operand_layout_constraints",
    "output_to_operand_aliasing",
    "domain",
    "result_accuracy",
    "operand_precision",
    "sparsity",
    "resource",
];

/// The syntax of the attribute `name` in HLO text; `None` for names that no opcode has.
pub(in crate::hlo) fn attribute_syntax(name: &str) -> Option<FieldSyntax> {
    Some(match name {
        "is_stable"
        | "largest"
        | "lower"
        | "left_side"
        | "unit_diagonal"
        | "indices_are_sorted"
        | "unique_indices"
        | "is_host_transfer"
        | "use_global_device_ids"
        | "constrain_layout"
        | "custom_call_has_side_effect"
        | "is_composite"
        | "is_reverse"
        | "is_associative" => FieldSyntax::Bool,
        "index"
        | "k"
        | "channel_id"
        | "iota_dimension"
        | "index_vector_dim"
        | "feature_index"
        | "feature_group_count"
        | "batch_group_count"
        | "exponent_bits"
        | "mantissa_bits"
        | "delta"
        | "inferred_dimension"
        | "num_carries"
        | "cross_program_prefetch_index"
        | "all_gather_dimension"
        | "raw_backend_config_size" => FieldSyntax::Int,
        "epsilon" => FieldSyntax::Float,
        name if INTEGER_LISTS.contains(&name) => FieldSyntax::Ints,
        "to_apply" | "calls" | "condition" | "body" | "true_computation" | "false_computation" | "select"
        | "scatter" => FieldSyntax::Comp,
        "branch_computations" | "called_computations" => FieldSyntax::Comps,
        "window" => FieldSyntax::Window,
        "dim_labels" => FieldSyntax::DimLabels,
        "slice" => FieldSyntax::Slices,
        "padding" => FieldSyntax::Padding,
        "direction" | "type" | "kind" | "fft_type" | "transpose_a" | "distribution" | "algorithm" | "mode"
        | "api_version" | "schedule" | "padding_type" => FieldSyntax::Word,
        "custom_call_target" | "infeed_config" | "outfeed_config" | "async_execution_thread" => FieldSyntax::Str,
        "outfeed_shape" => FieldSyntax::Shape,
        "literal" => FieldSyntax::Literal,
        name if BRACES.contains(&name) => FieldSyntax::Braces,
        "sharding" => FieldSyntax::Sharding,
        "backend_config" => FieldSyntax::Config,
        "replica_groups" => FieldSyntax::Groups,
        _ => return None,
    })
}

/// Attributes that every instruction may have.
pub(in crate::hlo) const COMMON: &[&str] = &[
    "sharding",
    "frontend_attributes",
    "statistics",
    "parameter_replication",
    "control-predecessors",
    "origin",
    "metadata",
    "backend_config",
];

/// The attributes of an opcode with their prefixes (see `hlo_ops`); `None` for an unknown opcode.
pub(in crate::hlo) fn attributes(opcode: &str) -> Option<&'static [&'static str]> {
    if let Some(op) = ScalarOp::parse(opcode) {
        return Some(if op.is_approximate() { &["result_accuracy"] } else { &[] });
    }
    scalar_attributes(opcode).or_else(|| op::attributes(opcode)).or_else(|| foreign_attributes(opcode))
}

/// Name of an attribute without its prefix.
pub(in crate::hlo) fn without_prefix(attribute: &str) -> &str {
    attribute.trim_start_matches(['!', '?', '+'])
}

/// Attributes of a pointwise opcode whose op has a payload.
fn scalar_attributes(opcode: &str) -> Option<&'static [&'static str]> {
    Some(match opcode {
        "compare" => &["!direction", "type"],
        "convert" => &[],
        "reduce-precision" => &["!exponent_bits", "!mantissa_bits"],
        _ => return None,
    })
}

/// Attributes of an opcode with opaque attributes.
fn foreign_attributes(opcode: &str) -> Option<&'static [&'static str]> {
    Some(match opcode {
        // Older name of `opt-barrier`.
        "optimization-barrier" => &[],
        "stochastic-convert"
        | "dynamic-reshape"
        | "copy-done"
        | "all-reduce-done"
        | "all-gather-done"
        | "collective-permute-done" => &[],
        "async-update" | "async-done" => &["calls", "async_execution_thread"],
        "acos" | "acosh" | "asin" | "asinh" | "atanh" | "cosh" | "sinh" => &["result_accuracy"],
        "scan" => &["!dimensions", "!to_apply", "num_carries", "is_reverse", "is_associative"],
        "scaled-dot" => &[
            "lhs_batch_dims",
            "lhs_contracting_dims",
            "rhs_batch_dims",
            "rhs_contracting_dims",
            "operand_precision",
            "algorithm",
            "sparsity",
        ],
        "ragged-dot" => &[
            "lhs_batch_dims",
            "lhs_contracting_dims",
            "rhs_batch_dims",
            "rhs_contracting_dims",
            "operand_precision",
            "algorithm",
            "lhs_ragged_dims",
            "rhs_group_dims",
        ],
        "rng-get-and-update-state" => &["!delta"],
        "custom-call" => &[
            "!custom_call_target",
            "window",
            "dim_labels",
            "feature_group_count",
            "batch_group_count",
            "operand_layout_constraints",
            "custom_call_has_side_effect",
            "to_apply",
            "called_computations",
            "output_to_operand_aliasing",
            "padding_type",
            "literal",
            "operand_precision",
            "schedule",
            "api_version",
        ],
        "domain" => &["!domain"],
        "infeed" => &["infeed_config"],
        "outfeed" => &["outfeed_config", "outfeed_shape"],
        "send" | "recv" => &["channel_id", "is_host_transfer"],
        "send-done" | "recv-done" => &["channel_id", "is_host_transfer"],
        "copy-start" => &["cross_program_prefetch_index"],
        "async-start" => &["!calls", "async_execution_thread"],
        "all-gather" | "all-gather-start" => {
            &["!dimensions", "replica_groups", "channel_id", "constrain_layout", "use_global_device_ids"]
        }
        "all-reduce" | "all-reduce-start" => {
            &["!to_apply", "mode", "replica_groups", "channel_id", "constrain_layout", "use_global_device_ids"]
        }
        "reduce-scatter" => {
            &["!to_apply", "!dimensions", "replica_groups", "channel_id", "constrain_layout", "use_global_device_ids"]
        }
        "all-to-all" => &["dimensions", "replica_groups", "channel_id", "constrain_layout"],
        "ragged-all-to-all" => &["replica_groups", "channel_id"],
        "collective-broadcast" => &["replica_groups", "channel_id"],
        "collective-permute" | "collective-permute-start" => &["source_target_pairs", "channel_id", "slice_sizes"],
        _ => return None,
    })
}

/// Splits `foo-start`, `foo-update` or `foo-done` into the opcode `foo` and the suffix, unless the opcode is defined itself.
pub(in crate::hlo) fn split_async_suffix(opcode: &str) -> Option<(&str, &str)> {
    ["-start", "-update", "-done"].iter().find_map(|suffix| {
        let base = opcode.strip_suffix(suffix)?;
        attributes(base).map(|_| (base, *suffix))
    })
}

/// Whether an instruction of this opcode must have its shape written.
pub(in crate::hlo) fn shape_is_written(opcode: &str) -> bool {
    matches!(
        opcode,
        "bitcast"
            | "bitcast-convert"
            | "constant"
            | "convert"
            | "custom-call"
            | "fusion"
            | "infeed"
            | "iota"
            | "outfeed"
            | "parameter"
            | "reduce-precision"
            | "reshape"
            | "rng"
            | "rng-bit-generator"
            | "rng-get-and-update-state"
            | "stochastic-convert"
            | "slice"
            | "dynamic-slice"
    )
}
