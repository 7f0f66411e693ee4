//! The attributes of instructions as text.
use super::op_from_attrs::BY_COMPARISON;
use super::print_literal::float_text;
use crate::hlo::attrs::*;
use crate::hlo::{CompId, Op};
use crate::scalar::{CompareKind, ScalarOp};
use crate::util::id_vec::IdVec;
use std::fmt::Write;

pub(super) fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("{{{}}}", items.join(","))
}

type Pairs = Vec<(String, String)>;

pub(super) fn own_attributes(op: &Op, comps: &IdVec<CompId, String>) -> Pairs {
    let comp = |id: &CompId| format!("%{}", comps[*id]);
    let mut out = Vec::new();
    let mut put = |name: &str, value: String| out.push((name.to_string(), value));
    match op {
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Reshape
        | Op::Bitcast
        | Op::Copy
        | Op::OptimizationBarrier
        | Op::BitcastConvertWidth
        | Op::DynamicUpdateSlice
        | Op::Tuple
        | Op::AfterAll
        | Op::AddDependency
        | Op::PartitionId
        | Op::ReplicaId
        | Op::Conditional(_) => {}
        Op::Elementwise(op) => return scalar_attributes(*op),
        Op::Iota(d) => put("iota_dimension", d.to_string()),
        Op::Broadcast(dims) | Op::Transpose(dims) | Op::Reverse(dims) => put("dimensions", list(dims)),
        Op::Slice(dims) => put("slice", list(&dims.iter().map(slice_dim).collect::<Vec<_>>())),
        Op::Pad(dims) if dims.is_empty() => put("padding", "\"\"".to_string()),
        Op::Pad(dims) => put("padding", dims.iter().map(pad_dim).collect::<Vec<_>>().join("x")),
        Op::Concatenate(d) | Op::GetDimensionSize(d) | Op::SetDimensionSize(d) => put("dimensions", list(&[d])),
        Op::DynamicSlice(sizes) => put("dynamic_slice_sizes", list(sizes)),
        Op::Gather(d) => return gather(d),
        Op::Scatter { dims, comp: c } => return scatter(dims, comp(c)),
        Op::Reduce { dims, comp: c } => {
            put("dimensions", list(dims));
            put("to_apply", comp(c));
        }
        Op::ReduceWindow { window, comp: c } => {
            put("window", window_text(window));
            put("to_apply", comp(c));
        }
        Op::SelectAndScatter { window, select, scatter } => {
            put("window", window_text(window));
            put("select", comp(select));
            put("scatter", comp(scatter));
        }
        Op::Sort { dim, is_stable, comp: c } => {
            put("dimensions", list(&[dim]));
            if *is_stable {
                put("is_stable", "true".to_string());
            }
            put("to_apply", comp(c));
        }
        Op::TopK { k, largest, kind } => {
            put("k", k.to_string());
            put("largest", largest.to_string());
            if *kind == CompareKind::Partial {
                put("frontend_attributes", BY_COMPARISON.to_string());
            }
        }
        Op::Dot(d) => {
            let parts = [
                ("lhs_batch_dims", &d.lhs_batch),
                ("lhs_contracting_dims", &d.lhs_contracting),
                ("rhs_batch_dims", &d.rhs_batch),
                ("rhs_contracting_dims", &d.rhs_contracting),
            ];
            for (name, dims) in parts.into_iter().filter(|p| !p.1.is_empty()) {
                put(name, list(dims));
            }
        }
        Op::Convolution(d) => return convolution(d),
        Op::Map { comp: c, dims } => {
            put("dimensions", list(dims));
            put("to_apply", comp(c));
        }
        Op::GetTupleElement(i) => put("index", i.to_string()),
        Op::While { cond, body } => {
            put("condition", comp(cond));
            put("body", comp(body));
        }
        Op::Call(c) => put("to_apply", comp(c)),
        Op::Fusion { comp: c, kind } => {
            let kind = match kind {
                FusionKind::Loop => "kLoop",
                FusionKind::Input => "kInput",
                FusionKind::Output => "kOutput",
                FusionKind::Custom => "kCustom",
            };
            put("kind", kind.to_string());
            put("calls", comp(c));
        }
        Op::Fft { kind, length } => {
            let kind = match kind {
                FftKind::Fft => "FFT",
                FftKind::Ifft => "IFFT",
                FftKind::Rfft => "RFFT",
                FftKind::Irfft => "IRFFT",
            };
            put("fft_type", kind.to_string());
            put("fft_length", list(length));
        }
        Op::Cholesky { lower } => put("lower", lower.to_string()),
        Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
            put("left_side", left_side.to_string());
            put("lower", lower.to_string());
            put("unit_diagonal", unit_diagonal.to_string());
            let word = match transpose_a {
                Transpose::No => "NO_TRANSPOSE",
                Transpose::Yes => "TRANSPOSE",
                Transpose::Adjoint => "ADJOINT",
            };
            put("transpose_a", word.to_string());
        }
        Op::BatchNormTraining { epsilon_bits, feature_index }
        | Op::BatchNormInference { epsilon_bits, feature_index }
        | Op::BatchNormGrad { epsilon_bits, feature_index } => {
            put(
                "epsilon",
                float_text(f64::from(f32::from_bits(*epsilon_bits)), f32::from_bits(*epsilon_bits).to_string()),
            );
            put("feature_index", feature_index.to_string());
        }
        Op::Rng { normal } => put("distribution", if *normal { "rng_normal" } else { "rng_uniform" }.to_string()),
        Op::RngBitGenerator { algorithm } => put("algorithm", algorithm.clone()),
        Op::Foreign(f) => return foreign(f, comps),
    }
    out
}

fn foreign(f: &Foreign, comps: &IdVec<CompId, String>) -> Pairs {
    let mut out = f.attrs.clone();
    let mut names: Vec<&str> = f.calls.iter().map(|c| c.0.as_str()).collect();
    names.dedup();
    for name in names {
        let ids: Vec<String> = f.calls.iter().filter(|c| c.0 == name).map(|c| format!("%{}", comps[c.1])).collect();
        let listed = matches!(name, "called_computations" | "branch_computations");
        out.push((name.to_string(), if listed { format!("{{{}}}", ids.join(", ")) } else { ids.join("") }));
    }
    out
}

fn scalar_attributes(op: ScalarOp) -> Pairs {
    match op {
        ScalarOp::Compare(direction, kind) => {
            let mut out = vec![("direction".to_string(), direction.name().to_string())];
            if kind == CompareKind::Total {
                out.push(("type".to_string(), "TOTALORDER".to_string()));
            }
            out
        }
        ScalarOp::ReducePrecision { exponent_bits, mantissa_bits } => vec![
            ("exponent_bits".to_string(), exponent_bits.to_string()),
            ("mantissa_bits".to_string(), mantissa_bits.to_string()),
        ],
        _ => vec![],
    }
}

fn slice_dim(d: &SliceDim) -> String {
    if d.stride == 1 { format!("[{}:{}]", d.start, d.limit) } else { format!("[{}:{}:{}]", d.start, d.limit, d.stride) }
}

fn pad_dim(d: &PadDim) -> String {
    if d.interior == 0 { format!("{}_{}", d.low, d.high) } else { format!("{}_{}_{}", d.low, d.high, d.interior) }
}

pub(in crate::hlo) fn window_text(window: &[WindowDim]) -> String {
    let each = |f: &dyn Fn(&WindowDim) -> String| window.iter().map(f).collect::<Vec<_>>().join("x");
    if window.is_empty() {
        return "{}".to_string();
    }
    let mut out = format!("{{size={}", each(&|w| w.size.to_string()));
    if window.iter().any(|w| w.stride != 1) {
        let _ = write!(out, " stride={}", each(&|w| w.stride.to_string()));
    }
    if window.iter().any(|w| w.pad_low != 0 || w.pad_high != 0) {
        let _ = write!(out, " pad={}", each(&|w| format!("{}_{}", w.pad_low, w.pad_high)));
    }
    if window.iter().any(|w| w.lhs_dilate != 1) {
        let _ = write!(out, " lhs_dilate={}", each(&|w| w.lhs_dilate.to_string()));
    }
    if window.iter().any(|w| w.rhs_dilate != 1) {
        let _ = write!(out, " rhs_dilate={}", each(&|w| w.rhs_dilate.to_string()));
    }
    if window.iter().any(|w| w.reversal) {
        let _ = write!(out, " rhs_reversal={}", each(&|w| u8::from(w.reversal).to_string()));
    }
    out + "}"
}

fn gather(d: &GatherDims) -> Pairs {
    let mut out = vec![
        ("offset_dims".to_string(), list(&d.offset_dims)),
        ("collapsed_slice_dims".to_string(), list(&d.collapsed_slice_dims)),
        ("start_index_map".to_string(), list(&d.start_index_map)),
    ];
    if !d.operand_batching_dims.is_empty() || !d.start_indices_batching_dims.is_empty() {
        out.push(("operand_batching_dims".to_string(), list(&d.operand_batching_dims)));
        out.push(("start_indices_batching_dims".to_string(), list(&d.start_indices_batching_dims)));
    }
    out.push(("index_vector_dim".to_string(), d.index_vector_dim.to_string()));
    out.push(("slice_sizes".to_string(), list(&d.slice_sizes)));
    if d.indices_are_sorted {
        out.push(("indices_are_sorted".to_string(), "true".to_string()));
    }
    out
}

fn scatter(d: &ScatterDims, comp: String) -> Pairs {
    let mut out = vec![
        ("update_window_dims".to_string(), list(&d.update_window_dims)),
        ("inserted_window_dims".to_string(), list(&d.inserted_window_dims)),
        ("scatter_dims_to_operand_dims".to_string(), list(&d.scatter_dims_to_operand_dims)),
    ];
    if !d.input_batching_dims.is_empty() || !d.scatter_indices_batching_dims.is_empty() {
        out.push(("input_batching_dims".to_string(), list(&d.input_batching_dims)));
        out.push(("scatter_indices_batching_dims".to_string(), list(&d.scatter_indices_batching_dims)));
    }
    out.push(("index_vector_dim".to_string(), d.index_vector_dim.to_string()));
    if d.indices_are_sorted {
        out.push(("indices_are_sorted".to_string(), "true".to_string()));
    }
    if d.unique_indices {
        out.push(("unique_indices".to_string(), "true".to_string()));
    }
    out.push(("to_apply".to_string(), comp));
    out
}

/// `b01f_01io->b01f`.
pub(in crate::hlo) fn dim_labels(d: &ConvDims) -> String {
    let labels = |a: (usize, char), b: (usize, char), spatial: &[usize]| {
        let rank = [a.0, b.0].iter().chain(spatial).max().map_or(0, |m| m + 1);
        let mut text = vec!['?'; rank];
        text[a.0] = a.1;
        text[b.0] = b.1;
        for (i, &s) in spatial.iter().enumerate() {
            text[s] = char::from_digit(i as u32 % 10, 10).unwrap_or('?');
        }
        text.into_iter().collect::<String>()
    };
    format!(
        "{}_{}->{}",
        labels((d.input_batch, 'b'), (d.input_feature, 'f'), &d.input_spatial),
        labels((d.kernel_input_feature, 'i'), (d.kernel_output_feature, 'o'), &d.kernel_spatial),
        labels((d.output_batch, 'b'), (d.output_feature, 'f'), &d.output_spatial)
    )
}

fn convolution(d: &ConvDims) -> Pairs {
    let mut out = Vec::new();
    if !d.window.is_empty() {
        out.push(("window".to_string(), window_text(&d.window)));
    }
    out.push(("dim_labels".to_string(), dim_labels(d)));
    if d.feature_group_count != 1 {
        out.push(("feature_group_count".to_string(), d.feature_group_count.to_string()));
    }
    if d.batch_group_count != 1 {
        out.push(("batch_group_count".to_string(), d.batch_group_count.to_string()));
    }
    out
}
