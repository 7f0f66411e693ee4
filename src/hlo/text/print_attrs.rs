//! Text of instructions' attributes.
use super::print_literal::float_text;
use crate::hlo::attrs::*;
use crate::hlo::schema::{self, FieldValue};
use crate::hlo::{CompId, Op};
use crate::util::id_vec::IdVec;
use std::fmt::Write;

pub(super) fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("{{{}}}", items.join(","))
}

type Pairs = Vec<(String, String)>;

/// Attributes of an op as text; the printer itself handles the branches of a conditional.
pub(super) fn op_attributes(op: &Op, comps: &IdVec<CompId, String>) -> Pairs {
    match op {
        Op::Foreign(f) => foreign(f, comps),
        op => schema::attributes_of(op)
            .iter()
            .map(|(name, value, source)| (name.to_string(), text(value, source, comps)))
            .collect(),
    }
}

/// Text of an attribute value; `source` is the text of an opaque one.
fn text(value: &FieldValue, source: &str, comps: &IdVec<CompId, String>) -> String {
    let comp = |id: &CompId| format!("%{}", comps[*id]);
    match value {
        FieldValue::Bool(b) => b.to_string(),
        FieldValue::Int(n) => n.to_string(),
        FieldValue::Float(v) => float_text(*v, (*v as f32).to_string()),
        FieldValue::Ints(all) => list(all),
        FieldValue::Comp(id) => comp(id),
        FieldValue::Comps(ids) => format!("{{{}}}", ids.iter().map(comp).collect::<Vec<_>>().join(", ")),
        FieldValue::Window(window) => window_text(window),
        FieldValue::Labels(text) | FieldValue::Word(text) => text.clone(),
        FieldValue::Slices(dims) => list(&dims.iter().map(slice_dim).collect::<Vec<_>>()),
        FieldValue::Pads(dims) if dims.is_empty() => "\"\"".to_string(),
        FieldValue::Pads(dims) => dims.iter().map(pad_dim).collect::<Vec<_>>().join("x"),
        FieldValue::Text | FieldValue::Metadata(_) => source.to_string(),
    }
}

fn foreign(f: &ForeignOp, comps: &IdVec<CompId, String>) -> Pairs {
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

/// Dimension labels of a convolution: `b01f_01io->b01f`.
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
