//! A module as text that [`super::parse`] reads back to an equal module.
use std::collections::HashSet;
use std::fmt::Write;

use super::lexer::is_reserved;
use crate::hlo::attrs::*;
use crate::hlo::{CompId, Computation, Inst, InstId, Literal, Module, Op};
use crate::scalar::{CompareKind, ScalarOp, small_float};
use crate::tensor::{DType, DTypeClass, Tensor};
use crate::util::id_vec::{Id, IdVec};

/// How much of a module is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Constants of more than ten elements are written out; `{...}` stands for them otherwise.
    pub large_constants: bool,
    /// Where instructions came from.
    pub metadata: bool,
}

/// A constant of more elements is large.
const SMALL_CONSTANT: usize = 10;

/// See [`super::print_with`].
pub(super) fn print(module: &Module, style: Style) -> String {
    let names = unique_names(module.comps.values().map(|c| c.name.as_str()));
    let names: IdVec<CompId, String> = names.into_iter().collect();
    let mut out = format!("HloModule {}", sanitised(&module.name));
    if is_reserved(&sanitised(&module.name)) {
        out.push('_');
    }
    for (name, value) in &module.extra {
        let _ = write!(out, ", {name}={value}");
    }
    out.push('\n');
    for id in callees_first(module) {
        computation(module, id, &names, style, &mut out);
    }
    out
}

/// All computations, each behind those that it calls.
pub(in crate::hlo) fn callees_first(module: &Module) -> Vec<CompId> {
    depth_first(module.comps.len(), |i| {
        module.comps[CompId::from_index(i)].insts.values().flat_map(|inst| inst.op.called()).map(Id::index).collect()
    })
    .into_iter()
    .map(CompId::from_index)
    .collect()
}

/// All instructions, dead ones too, each behind its operands.
pub(in crate::hlo) fn operands_first(comp: &Computation) -> Vec<InstId> {
    let operands = |i: usize| comp.insts[InstId::from_index(i)].operands.iter().map(|o| o.index()).collect();
    depth_first(comp.insts.len(), operands).into_iter().map(InstId::from_index).collect()
}

fn depth_first(n: usize, children: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let (mut seen, mut out) = (vec![false; n], Vec::with_capacity(n));
    for start in 0..n {
        let mut stack = vec![(start, None::<Vec<usize>>)];
        while let Some((node, rest)) = stack.pop() {
            let mut rest = match rest {
                Some(rest) => rest,
                None if std::mem::replace(&mut seen[node], true) => continue,
                None => {
                    let mut all = children(node);
                    all.reverse();
                    all
                }
            };
            match rest.pop() {
                Some(child) => {
                    stack.push((node, Some(rest)));
                    if child < n && !seen[child] {
                        stack.push((child, None));
                    }
                }
                None => out.push(node),
            }
        }
    }
    out
}

/// A name of letters, digits, `_`, `-` and `.` that begins with a letter or `_`.
fn sanitised(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let mut out: String = name.chars().map(keep).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

/// The names of a computation's instructions, or of a module's computations, as texts have them: equal ones are numbered.
pub fn unique_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let one = |name: &str| {
        let stem = sanitised(name);
        let mut unique = stem.clone();
        let mut n = 1;
        while !taken.insert(unique.clone()) {
            unique = format!("{stem}.{n}");
            n += 1;
        }
        unique
    };
    names.map(one).collect()
}

fn computation(module: &Module, id: CompId, comp_names: &IdVec<CompId, String>, style: Style, out: &mut String) {
    let comp = &module.comps[id];
    let names = unique_names(comp.insts.values().map(|i| i.name.as_str()));
    let params: Vec<String> =
        comp.params.iter().map(|&p| format!("{}: {}", names[p.index()], comp.insts[p].shape)).collect();
    let entry = if id == module.entry { "ENTRY " } else { "" };
    let result = comp.insts.get(comp.root).map_or(String::new(), |r| r.shape.to_string());
    let _ = writeln!(out, "\n{entry}%{} ({}) -> {result} {{", comp_names[id], params.join(", "));
    for i in operands_first(comp) {
        let root = if i == comp.root { "ROOT " } else { "" };
        let inst = &comp.insts[i];
        let _ = write!(out, "  {root}%{} = {} {}(", names[i.index()], inst.shape, inst.op.name());
        operands(inst, &names, style, out);
        out.push(')');
        if let Op::Conditional(branches) = &inst.op {
            branch_attributes(comp, inst, branches, comp_names, out);
        }
        attributes(inst, comp_names, style, out);
        out.push('\n');
    }
    out.push_str("}\n");
}

fn operands(inst: &Inst, names: &[String], style: Style, out: &mut String) {
    match &inst.op {
        Op::Parameter(n) => {
            let _ = write!(out, "{n}");
        }
        Op::Constant(value) if style.large_constants => literal(value, out),
        Op::Constant(value) => elided(value, out),
        _ => {
            for (i, operand) in inst.operands.iter().enumerate() {
                let _ = write!(out, "{}%{}", if i > 0 { ", " } else { "" }, names[operand.index()]);
            }
        }
    }
}

fn attributes(inst: &Inst, comps: &IdVec<CompId, String>, style: Style, out: &mut String) {
    for (name, value) in own_attributes(&inst.op, comps) {
        let _ = write!(out, ", {name}={value}");
    }
    for (name, value) in &inst.extra {
        let _ = write!(out, ", {name}={value}");
    }
    let m = &inst.metadata;
    if *m != Default::default() && style.metadata {
        out.push_str(", metadata={");
        let parts = [("op_type", &m.op_type), ("op_name", &m.op_name)];
        let parts: Vec<String> =
            parts.iter().filter(|p| !p.1.is_empty()).map(|p| format!("{}=\"{}\"", p.0, escaped(p.1))).collect();
        out.push_str(&parts.join(" "));
        out.push('}');
    }
}

/// Branches by the selector's type: `pred` names two, an index any number.
fn branch_attributes(
    comp: &Computation,
    inst: &Inst,
    branches: &[CompId],
    names: &IdVec<CompId, String>,
    out: &mut String,
) {
    let selector = inst.operands.first().and_then(|&id| comp.insts.get(id)).and_then(|i| i.shape.as_array());
    let _ = match (branches, selector.is_some_and(|s| s.dtype == DType::Pred)) {
        ([yes, no], true) => {
            write!(out, ", true_computation=%{}, false_computation=%{}", names[*yes], names[*no])
        }
        _ => {
            let all: Vec<String> = branches.iter().map(|&b| format!("%{}", names[b])).collect();
            write!(out, ", branch_computations={{{}}}", all.join(", "))
        }
    };
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ => out.push(c),
        }
    }
    out
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("{{{}}}", items.join(","))
}

type Pairs = Vec<(String, String)>;

fn own_attributes(op: &Op, comps: &IdVec<CompId, String>) -> Pairs {
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
        Op::TopK { k, largest } => {
            put("k", k.to_string());
            put("largest", largest.to_string());
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

pub(super) fn literal(value: &Literal, out: &mut String) {
    match value {
        Literal::Array(t) => array(t, 0, 0, out),
        Literal::Tuple(parts) => {
            out.push('(');
            for (i, part) in parts.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                literal(part, out);
            }
            out.push(')');
        }
        Literal::Token => out.push_str("token"),
    }
}

/// The same with `{...}` for large arrays.
fn elided(value: &Literal, out: &mut String) {
    match value {
        Literal::Array(t) if t.len() > SMALL_CONSTANT => out.push_str("{...}"),
        Literal::Tuple(parts) => {
            out.push('(');
            for (i, part) in parts.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                elided(part, out);
            }
            out.push(')');
        }
        Literal::Array(_) | Literal::Token => literal(value, out),
    }
}

/// The elements from `start` on along dimension `axis`.
fn array(t: &Tensor, axis: usize, start: usize, out: &mut String) {
    let Some(&size) = t.dims.get(axis) else {
        element(t, start, out);
        return;
    };
    if t.dims.len() > 64 || (t.is_empty() && axis == 0 && t.dims.len() > 1) {
        out.push_str("{...}");
        return;
    }
    let stride: u64 = t.dims[axis + 1..].iter().product();
    out.push('{');
    for i in 0..size {
        out.push_str(if i > 0 { "," } else { "" });
        array(t, axis + 1, start + (i * stride) as usize, out);
    }
    out.push('}');
}

fn element(t: &Tensor, i: usize, out: &mut String) {
    match t.dtype.class() {
        DTypeClass::Pred => out.push_str(if t.bytes.get(i) == Some(&0) { "0" } else { "1" }),
        DTypeClass::Signed => {
            let _ = write!(out, "{}", t.get_i64(i).unwrap_or(0));
        }
        DTypeClass::Unsigned => {
            let _ = write!(out, "{}", t.get_i64(i).unwrap_or(0) as u64);
        }
        DTypeClass::Float => out.push_str(&float(t.dtype, raw(t, i * t.dtype.bytes(), t.dtype.bytes()))),
        DTypeClass::Complex => {
            let n = t.dtype.bytes() / 2;
            let part = |k: usize| float(t.dtype.real_part(), raw(t, (2 * i + k) * n, n));
            let _ = write!(out, "({}, {})", part(0), part(1));
        }
    }
}

fn raw(t: &Tensor, start: usize, n: usize) -> u64 {
    let mut word = [0u8; 8];
    if let Some(bytes) = t.bytes.get(start..start + n) {
        word[..n].copy_from_slice(bytes);
    }
    u64::from_le_bytes(word)
}

/// A float with as many digits as it takes to read the same bits back.
fn float(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::F64 => nan_or(f64::from_bits(bits), bits, 52, f64::from_bits(bits).to_string()),
        DType::F32 => {
            let v = f32::from_bits(bits as u32);
            nan_or(f64::from(v), bits, 23, format!("{v:?}"))
        }
        DType::F16 => {
            let v = half::f16::from_bits(bits as u16).to_f64();
            nan_or(v, bits, 10, (v as f32).to_string())
        }
        DType::BF16 => {
            let v = half::bf16::from_bits(bits as u16).to_f64();
            nan_or(v, bits, 7, format!("{:?}", v as f32))
        }
        _ => {
            // Multiplying by -1 need not turn a NaN's sign.
            let v = small_float::decode(dtype, bits as u8);
            let v = if v.is_nan() { f64::NAN.copysign(if bits & 0x80 != 0 { -1.0 } else { 1.0 }) } else { v };
            let mantissa = match dtype {
                DType::F8E5M2 => 2,
                DType::F8E4M3 => 3,
                DType::F8E3M4 => 4,
                _ => 0,
            };
            nan_or(v, bits, mantissa, (v as f32).to_string())
        }
    }
}

fn nan_or(value: f64, bits: u64, mantissa: u32, text: String) -> String {
    if !value.is_nan() {
        return float_text(value, text);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let payload = bits & ((1 << mantissa) - 1);
    if mantissa == 0 || payload == 1 << (mantissa - 1) {
        format!("{sign}nan")
    } else {
        format!("{sign}nan({payload:#x})")
    }
}

fn float_text(value: f64, text: String) -> String {
    if value.is_infinite() { if value > 0.0 { "inf".to_string() } else { "-inf".to_string() } } else { text }
}
