//! Mapping of StableHLO's operations to HLO's opcodes, and of their attributes to HLO's names.
use super::attribute_values::{AttrCollector, AttrResult, dict, entry, flag, int, int_or, ints, ints_or, size, word};
use super::tree::{MlirAttr, Operation};
use super::{collectives, custom_call};
use crate::hlo::attrs::{PadDim, SliceDim, WindowDim};
use crate::hlo::op;
use crate::hlo::schema::table::{self, FieldSyntax, without_prefix};
use crate::hlo::schema::{Attrs, FieldValue};
use crate::hlo::text::print_dim_labels;
use crate::hlo::{CompId, Shape};
use crate::scalar::ScalarOp;

/// Opcodes of the table in `op.rs` that exist as StableHLO operations, by HLO's names. Others are rejected in both directions.
pub(super) const OPERATIONS: &[&str] = &[
    "iota",
    "broadcast",
    "reshape",
    "bitcast-convert",
    "opt-barrier",
    "transpose",
    "reverse",
    "slice",
    "pad",
    "concatenate",
    "dynamic-slice",
    "dynamic-update-slice",
    "gather",
    "scatter",
    "reduce",
    "reduce-window",
    "select-and-scatter",
    "sort",
    "dot",
    "convolution",
    "map",
    "get-tuple-element",
    "fft",
    "cholesky",
    "triangular-solve",
    "batch-norm-training",
    "batch-norm-inference",
    "batch-norm-grad",
    "rng",
    "rng-bit-generator",
    "get-dimension-size",
    "set-dimension-size",
    "after-all",
    "partition-id",
    "replica-id",
];

/// HLO opcode of an operation; `None` if the operation is not supported.
pub(super) fn opcode(name: &str) -> Option<String> {
    // XLA writes opcodes that StableHLO lacks in the older dialect.
    let dialects = ["stablehlo.", "chlo.", "mhlo."];
    let short = dialects.iter().find_map(|d| name.strip_prefix(d)).unwrap_or(name);
    let dashed = short.replace('_', "-");
    let known = match dashed.as_str() {
        "dot-general" => "dot",
        "create-token" => "after-all",
        "optimization-barrier" => "opt-barrier",
        "call" | "func.call" | "composite" => "call",
        "dynamic-reshape" => "reshape",
        "dynamic-iota" => "iota",
        "top-k" | "topk" => "topk",
        "square" => "multiply",
        "compare"
        | "convert"
        | "reduce-precision"
        | "all-reduce"
        | "all-gather"
        | "reduce-scatter"
        | "collective-permute"
        | "collective-broadcast"
        | "custom-call"
        | "acos"
        | "acosh"
        | "asin"
        | "asinh"
        | "atanh"
        | "cosh"
        | "sinh" => &dashed,
        "opt-barrier" => return None,
        other if OPERATIONS.contains(&other) => &dashed,
        other => ScalarOp::parse(other)?.name(),
    };
    Some(known.to_string())
}

/// Converts the attributes of `op` to HLO's names; `comps` are its regions. Otherwise an error message.
pub(super) fn convert_attributes(
    op: &Operation,
    opcode: &str,
    operands: &[&Shape],
    comps: &[CompId],
) -> AttrResult<Attrs<'static>> {
    let mut out = AttrCollector(Attrs::default());
    let names = if opcode == "select-and-scatter" { ["select", "scatter"] } else { ["to_apply", ""] };
    for (name, &comp) in names.into_iter().zip(comps) {
        out.put(name, FieldValue::Comp(comp));
    }
    match opcode {
        "broadcast" => {
            let sizes = ints(op, &["sizes", "broadcast_sizes"])?;
            let rank = operands.first().and_then(|s| s.as_array()).map_or(0, |a| a.rank());
            out.ints("dimensions", (sizes.len()..sizes.len() + rank).map(|d| d as i64).collect());
        }
        "slice" => out.put("slice", FieldValue::Slices(slices(op)?)),
        "pad" => out.put("padding", FieldValue::Pads(pads(op)?)),
        "compare" => {
            let direction = word(op, &["comparison_direction", "word0"]).ok_or("a comparison has a direction")?;
            out.put("direction", FieldValue::Word(direction));
            if let Some(kind) = word(op, &["compare_type", "word1"]).filter(|kind| kind != "NOTYPE") {
                out.put("type", FieldValue::Word(kind));
            }
        }
        "map" => out.ints("dimensions", ints(op, &["dimensions"])?),
        "reduce-window" | "select-and-scatter" => out.put("window", FieldValue::Window(window(op)?)),
        "sort" => {
            let rank = operands.first().and_then(|s| s.as_array()).map_or(0, |a| a.rank()) as i64;
            let dim = int_or(op, &["dimension"], -1)?;
            out.ints("dimensions", vec![if dim < 0 { dim + rank } else { dim }]);
            out.put("is_stable", FieldValue::Bool(flag(op, "is_stable")));
        }
        "dot" => dot(op, operands, &mut out)?,
        "convolution" => convolution(op, operands, &mut out)?,
        "gather" => gather(op, &mut out)?,
        "scatter" => scatter(op, &mut out)?,
        "rng" => match word(op, &["distribution", "rng_distribution"]).as_deref() {
            Some("UNIFORM") => out.put("distribution", FieldValue::Word("rng_uniform".to_string())),
            Some("NORMAL") => out.put("distribution", FieldValue::Word("rng_normal".to_string())),
            _ => return Err("the distribution is UNIFORM or NORMAL".to_string()),
        },
        "rng-bit-generator" => {
            let name = word(op, &["algorithm", "rng_algorithm"]).unwrap_or_default();
            out.put("algorithm", FieldValue::Word(format!("rng_{}", name.to_lowercase())));
        }
        "reduce-precision" => {
            let (e, m) = match word(op, &["format"]) {
                Some(format) => {
                    let parts = format.strip_prefix('e').and_then(|f| f.split_once('m'));
                    let parts = parts.and_then(|(e, m)| Some((e.parse().ok()?, m.parse().ok()?)));
                    parts.ok_or("a format is written as e5m10")?
                }
                None => (int(op, &["exponent_bits"])?, int(op, &["mantissa_bits"])?),
            };
            out.put("exponent_bits", FieldValue::Int(e));
            out.put("mantissa_bits", FieldValue::Int(m));
        }
        "custom-call" => custom_call::attributes(op, operands, comps, &mut out)?,
        "all-reduce" | "all-gather" | "reduce-scatter" | "collective-permute" | "collective-broadcast" => {
            collectives::attributes(op, opcode, &mut out)?;
        }
        _ => by_schema(op, opcode, &mut out)?,
    }
    if matches!(opcode, "dot" | "convolution") {
        precision(op, &mut out);
    }
    Ok(out.0)
}

/// Names of an HLO attribute in StableHLO's text and dialects.
fn stablehlo_names(attribute: &str) -> Vec<&str> {
    match attribute {
        "dimensions" => vec!["dims", "permutation", "dimensions", "dim", "dimension"],
        "iota_dimension" => vec!["dim", "iota_dimension"],
        "dynamic_slice_sizes" => vec!["sizes", "slice_sizes"],
        "fft_type" => vec!["type", "fft_type"],
        "fft_length" => vec!["length", "fft_length"],
        other => vec![other],
    }
}

/// Attributes that the table of opcodes lists, read by their syntax.
fn by_schema(op: &Operation, opcode: &str, out: &mut AttrCollector) -> AttrResult<()> {
    for attribute in op::attributes(opcode).unwrap_or_default() {
        let (name, names) = (without_prefix(attribute), stablehlo_names(without_prefix(attribute)));
        let Some(given) = op.attr(&names) else {
            if attribute.starts_with('!') && !out.0.has(name) {
                return Err(format!("`{}` is expected but not seen", names[0]));
            }
            continue;
        };
        match table::attribute_syntax(name) {
            Some(FieldSyntax::Ints) => out.ints(name, ints(op, &names)?),
            Some(FieldSyntax::Int) => out.put(name, FieldValue::Int(int(op, &names)?)),
            Some(FieldSyntax::Bool) => out.put(name, FieldValue::Bool(matches!(given, MlirAttr::Bool(true)))),
            Some(FieldSyntax::Word) => out.put(name, FieldValue::Word(word(op, &names).unwrap_or_default())),
            Some(FieldSyntax::Float) => match given {
                MlirAttr::Float(v, _) => out.put(name, FieldValue::Float(*v)),
                MlirAttr::Int(v, _) => out.put(name, FieldValue::Float(*v as f64)),
                _ => return Err(format!("`{name}` is a number")),
            },
            _ => {}
        }
    }
    Ok(())
}

fn precision(op: &Operation, out: &mut AttrCollector) {
    let Some(MlirAttr::List(all)) = op.attr(&["precision", "precision_config"]) else { return };
    let words: Vec<String> = all
        .iter()
        .filter_map(|w| match w {
            MlirAttr::Text(word) => Some(word.to_lowercase()),
            _ => None,
        })
        .collect();
    if words.iter().any(|w| w != "default") {
        out.add_opaque("operand_precision", format!("{{{}}}", words.join(",")));
    }
}

fn slices(op: &Operation) -> AttrResult<Vec<SliceDim>> {
    let (starts, limits) = (ints(op, &["start_indices"])?, ints(op, &["limit_indices"])?);
    let strides = ints_or(op, &["strides"], vec![1; starts.len()])?;
    if limits.len() != starts.len() || strides.len() != starts.len() {
        return Err("a slice has a start, a limit and a stride for each dimension".to_string());
    }
    let one = |i: usize| Ok(SliceDim { start: size(starts[i])?, limit: size(limits[i])?, stride: size(strides[i])? });
    (0..starts.len()).map(one).collect()
}

fn pads(op: &Operation) -> AttrResult<Vec<PadDim>> {
    let low = ints(op, &["low", "edge_padding_low"])?;
    let high = ints(op, &["high", "edge_padding_high"])?;
    let interior = ints(op, &["interior", "interior_padding"])?;
    if high.len() != low.len() || interior.len() != low.len() {
        return Err("a pad has low, high and interior padding for each dimension".to_string());
    }
    let one = |i: usize| Ok(PadDim { low: low[i], high: high[i], interior: size(interior[i])? });
    (0..low.len()).map(one).collect()
}

/// Window of a reduction or selection.
fn window(op: &Operation) -> AttrResult<Vec<WindowDim>> {
    let sizes = ints(op, &["window_dimensions"])?;
    windows(op, &sizes, &["window_strides"], &["base_dilations"], &["window_dilations"], &["padding"])
}

fn windows(
    op: &Operation,
    sizes: &[i64],
    strides: &[&str],
    lhs_dilate: &[&str],
    rhs_dilate: &[&str],
    padding: &[&str],
) -> AttrResult<Vec<WindowDim>> {
    let n = sizes.len();
    let strides = ints_or(op, strides, vec![1; n])?;
    let lhs_dilate = ints_or(op, lhs_dilate, vec![1; n])?;
    let rhs_dilate = ints_or(op, rhs_dilate, vec![1; n])?;
    let mut padding = ints_or(op, padding, vec![0; 2 * n])?;
    // A single number may apply to all dimensions.
    if let [one] = padding[..] {
        padding = vec![one; 2 * n];
    }
    let reversal = ints_or(op, &["reverse", "window_reversal"], vec![0; n])?;
    let lengths = [strides.len(), lhs_dilate.len(), rhs_dilate.len(), reversal.len()];
    if lengths.iter().any(|&l| l != n) || padding.len() != 2 * n {
        return Err(format!("a window of {n} dimensions has {n} of everything"));
    }
    let one = |i: usize| {
        Ok(WindowDim {
            size: size(sizes[i])?,
            stride: size(strides[i])?,
            pad_low: padding[2 * i],
            pad_high: padding[2 * i + 1],
            lhs_dilate: size(lhs_dilate[i])?,
            rhs_dilate: size(rhs_dilate[i])?,
            reversal: reversal[i] != 0,
        })
    };
    (0..n).map(one).collect()
}

fn dot(op: &Operation, operands: &[&Shape], out: &mut AttrCollector) -> AttrResult<()> {
    let pair = |names: &[&str]| match op.attr(names) {
        Some(MlirAttr::List(sides)) if sides.len() == 2 => {
            (sides[0].ints().unwrap_or_default(), sides[1].ints().unwrap_or_default())
        }
        _ => (Vec::new(), Vec::new()),
    };
    let flat = op.attr(&["lhs_contracting_dimensions"]).map(|_| &op.attrs);
    let nested = match op.attr(&["dot_dimension_numbers"]) {
        Some(MlirAttr::Dict(d)) => Some(d),
        _ => None,
    };
    let (lhs_batch, rhs_batch, lhs, rhs) = match (op.name.as_str(), nested.or(flat)) {
        ("stablehlo.dot", _) => {
            let rank = operands.first().and_then(|s| s.as_array()).map_or(0, |a| a.rank());
            (vec![], vec![], vec![rank as i64 - 1], vec![0])
        }
        (_, Some(d)) => (
            entry(d, &["lhs_batching_dimensions"]),
            entry(d, &["rhs_batching_dimensions"]),
            entry(d, &["lhs_contracting_dimensions"]),
            entry(d, &["rhs_contracting_dimensions"]),
        ),
        _ => {
            let (batch, contracting) = (pair(&["batching_dims"]), pair(&["contracting_dims"]));
            (batch.0, batch.1, contracting.0, contracting.1)
        }
    };
    out.ints("lhs_batch_dims", lhs_batch);
    out.ints("rhs_batch_dims", rhs_batch);
    out.ints("lhs_contracting_dims", lhs);
    out.ints("rhs_contracting_dims", rhs);
    Ok(())
}

fn convolution(op: &Operation, operands: &[&Shape], out: &mut AttrCollector) -> AttrResult<()> {
    let Some(MlirAttr::Conv(dims)) = op.attr(&["dim_numbers", "dimension_numbers"]) else {
        return Err("`dim_numbers` are expected but not seen".to_string());
    };
    let kernel = operands.get(1).and_then(|s| s.as_array()).ok_or("the kernel is no array")?;
    let sizes: Option<Vec<i64>> = dims.kernel_spatial.iter().map(|&a| kernel.dims.get(a).map(|&d| d as i64)).collect();
    let sizes = sizes.ok_or("the kernel has fewer dimensions than are named")?;
    let window = windows(
        op,
        &sizes,
        &["stride", "window_strides"],
        &["lhs_dilate", "lhs_dilation"],
        &["rhs_dilate", "rhs_dilation"],
        &["pad", "padding"],
    )?;
    out.put("window", FieldValue::Window(window));
    out.put("dim_labels", FieldValue::Labels(print_dim_labels(dims)));
    out.put("feature_group_count", FieldValue::Int(int_or(op, &["feature_group_count"], 1)?));
    out.put("batch_group_count", FieldValue::Int(int_or(op, &["batch_group_count"], 1)?));
    Ok(())
}

fn index_vector_dim(d: &[(String, MlirAttr)], out: &mut AttrCollector) {
    out.put("index_vector_dim", FieldValue::Int(entry(d, &["index_vector_dim"]).first().copied().unwrap_or(0)));
}

fn gather(op: &Operation, out: &mut AttrCollector) -> AttrResult<()> {
    let d = dict(op, &["dimension_numbers"])?;
    for name in ["offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims"] {
        out.ints(name, entry(d, &[name]));
    }
    out.ints("start_indices_batching_dims", entry(d, &["start_indices_batching_dims"]));
    index_vector_dim(d, out);
    out.ints("slice_sizes", ints(op, &["slice_sizes"])?);
    out.put("indices_are_sorted", FieldValue::Bool(flag(op, "indices_are_sorted")));
    Ok(())
}

fn scatter(op: &Operation, out: &mut AttrCollector) -> AttrResult<()> {
    let d = dict(op, &["scatter_dimension_numbers"])?;
    for name in ["update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims"] {
        out.ints(name, entry(d, &[name]));
    }
    out.ints("scatter_indices_batching_dims", entry(d, &["scatter_indices_batching_dims"]));
    index_vector_dim(d, out);
    out.put("indices_are_sorted", FieldValue::Bool(flag(op, "indices_are_sorted")));
    out.put("unique_indices", FieldValue::Bool(flag(op, "unique_indices")));
    Ok(())
}
