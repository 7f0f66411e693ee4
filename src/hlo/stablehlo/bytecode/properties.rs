//! Names of the properties of VHLO's operations.
//!
//! Properties are the attributes that an operation's definition names, in the order of their names, each as the number of an
//! entry. An operation without a row has none, or only `result_accuracy`, which says nothing here.
use super::cursor::Cursor;
use super::tables::Tables;
use crate::diag::Result;
use crate::hlo::attrs::{ConvAxes, ConvDims};
use crate::hlo::stablehlo::tree::MlirAttr;

/// Operations with the version of their encoding, and the names of their properties.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("all_gather_v1", "all_gather_dim channel_id replica_groups use_global_device_ids"),
    ("all_gather_v2", "all_gather_dim channel_id replica_groups use_global_device_ids"),
    ("all_reduce_v1", "channel_id replica_groups use_global_device_ids"),
    ("all_reduce_v2", "channel_id replica_groups use_global_device_ids"),
    ("all_to_all_v1", "channel_id concat_dimension replica_groups split_count split_dimension"),
    ("all_to_all_v2", "channel_id concat_dimension replica_groups split_count split_dimension"),
    ("batch_norm_grad_v1", "epsilon feature_index"),
    ("batch_norm_inference_v1", "epsilon feature_index"),
    ("batch_norm_training_v1", "epsilon feature_index"),
    ("broadcast_in_dim_v1", "broadcast_dimensions"),
    ("broadcast_v1", "broadcast_sizes"),
    ("call_v1", "callee"),
    ("cholesky_v1", "lower"),
    ("collective_broadcast_v1", "channel_id replica_groups"),
    ("collective_broadcast_v2", "channel_id has_dynamic_root replica_groups"),
    ("collective_permute_v1", "channel_id source_target_pairs"),
    ("collective_reduce_v1", "channel_id has_dynamic_root replica_groups use_global_device_ids"),
    ("compare_v1", "compare_type comparison_direction"),
    ("composite_v1", "composite_attributes decomposition name version"),
    ("composite_v2", "composite_attributes decomposition name version"),
    ("concatenate_v1", "dimension"),
    ("constant_v1", "value"),
    ("convolution_v1", "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension output_spatial_dimensions padding precision_config rhs_dilation window_reversal window_strides"),
    ("cross-replica-sum_v1", "replica_groups"),
    ("custom_call_v1", "api_version backend_config call_target_name called_computations has_side_effect operand_layouts output_operand_aliases result_layouts"),
    ("custom_call_v2", "api_version backend_config call_target_name called_computations has_side_effect operand_layouts output_operand_aliases result_layouts result_tilings"),
    ("dot_general_v1", "lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions rhs_contracting_dimensions"),
    ("dot_general_v2", "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count lhs_contracting_dimensions lhs_precision_type num_primitive_operations precision_config rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions rhs_precision_type"),
    ("dot_v1", "precision_config"),
    ("dynamic_broadcast_in_dim_v1", "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions"),
    ("dynamic_conv_v1", "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension output_spatial_dimensions padding precision_config rhs_dilation window_reversal window_strides"),
    ("dynamic_conv_v2", "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension output_spatial_dimensions precision_config rhs_dilation window_reversal window_strides"),
    ("dynamic_gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map"),
    ("dynamic_gather_v2", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims start_index_map start_indices_batching_dims"),
    ("dynamic_iota_v1", "iota_dimension"),
    ("dynamic_slice_v1", "slice_sizes"),
    ("einsum_v1", "einsum_config"),
    ("fft_v1", "fft_length fft_type"),
    ("func_v1", "arg_attrs function_type res_attrs sym_name sym_visibility"),
    ("gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes start_index_map"),
    ("gather_v2", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims slice_sizes start_index_map start_indices_batching_dims"),
    ("get_dimension_size_v1", "dimension"),
    ("get_tuple_element_v1", "index"),
    ("infeed_v1", "infeed_config layout"),
    ("iota_v1", "iota_dimension"),
    ("map_v1", "dimensions"),
    ("outfeed_v1", "outfeed_config"),
    ("pad_v1", "edge_padding_high edge_padding_low interior_padding"),
    ("recv_v1", "channel_id channel_type is_host_transfer"),
    ("recv_v2", "channel_id channel_type is_host_transfer source_target_pairs"),
    ("reduce_precision_v1", "exponent_bits mantissa_bits"),
    ("reduce_scatter_v1", "channel_id replica_groups scatter_dimension use_global_device_ids"),
    ("reduce_v1", "dimensions"),
    ("reduce_window_v1", "base_dilations padding window_dilations window_dimensions window_strides"),
    ("reverse_v1", "dimensions"),
    ("rng_bit_generator_v1", "rng_algorithm"),
    ("rng_v1", "rng_distribution"),
    ("scatter_v1", "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims unique_indices update_window_dims"),
    ("scatter_v2", "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims"),
    ("sdy.manual_computation", "in_shardings manual_axes out_shardings"),
    ("sdy.mesh", "mesh sym_name"),
    ("sdy.reshard", "sharding"),
    ("sdy.sharding_constraint", "sharding"),
    ("select_and_scatter_v1", "padding window_dimensions window_strides"),
    ("send_v1", "channel_id channel_type is_host_transfer"),
    ("send_v2", "channel_id channel_type is_host_transfer source_target_pairs"),
    ("set_dimension_size_v1", "dimension"),
    ("slice_v1", "limit_indices start_indices strides"),
    ("sort_v1", "dimension is_stable"),
    ("torch_index_select_v1", "batch_dims dim"),
    ("transpose_v1", "permutation"),
    ("triangular_solve_v1", "left_side lower transpose_a unit_diagonal"),
    ("unary_einsum_v1", "einsum_config"),
];

/// Properties `at` of `operation`, such as `add_v1`, as attributes.
pub(super) fn read(tables: &Tables, operation: &str, mut at: Cursor) -> Result<Vec<(String, MlirAttr)>> {
    let row = NAMES.binary_search_by_key(&operation, |row| row.0).ok();
    let Some(names) = row.map(|i| NAMES[i].1) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for name in names.split(' ') {
        all.push((name.to_string(), tables.value(at.number()?, &at, 0)?));
    }
    if let Some(axes) = convolution(&all) {
        all.push(("dimension_numbers".to_string(), MlirAttr::Conv(Box::new(axes))));
    }
    Ok(all)
}

/// Dimension numbers of a convolution, if all of its axes are given.
fn convolution(attrs: &[(String, MlirAttr)]) -> Option<ConvDims> {
    let axes = |name: &str| -> Option<Vec<usize>> {
        let all = attrs.iter().find(|a| a.0 == name)?.1.ints()?;
        all.into_iter().map(|axis| usize::try_from(axis).ok()).collect()
    };
    let one = |name: &str| axes(name)?.first().copied();
    let side = |of: &str, first: &str, second: &str| -> Option<ConvAxes> {
        let spatial = axes(&format!("{of}_spatial_dimensions"))?;
        Some((one(&format!("{of}_{first}_dimension"))?, one(&format!("{of}_{second}_dimension"))?, spatial))
    };
    let input = side("input", "batch", "feature")?;
    let kernel = side("kernel", "input_feature", "output_feature")?;
    let output = side("output", "batch", "feature")?;
    Some(ConvDims::from_axes(input, kernel, output))
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn rows_are_found_by_their_names() {
        assert!(NAMES.is_sorted_by_key(|row| row.0));
        for (operation, names) in NAMES {
            assert!(names.split(' ').is_sorted(), "{operation}");
        }
    }
}
