//! Attributes that represent a field of an op, by the type of the field.
use super::table::{self, FieldSyntax, without_prefix};
use super::words::NamedValues;
use super::{Attrs, FieldValue, Result, comp, index};
use crate::hlo::attrs::*;
use crate::hlo::text::print_dim_labels;
use crate::hlo::{CompId, Literal};
use crate::scalar::CompareKind;

/// Frontend attributes of a `topk` whose elements are compared by `<`; XLA carries them and compares by total order.
const BY_COMPARISON: &str = "{top_k_order=\"comparison\"}";

/// Type of an op's field, with the attributes that represent it. `name` is its attribute in the table of opcodes, with the
/// prefix, or empty.
pub(in crate::hlo) trait Field: Sized {
    /// Takes the value from the attributes; a default if it is missing.
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self>;
    /// Adds the attributes that represent the value.
    fn write(&self, name: &'static str, out: &mut Attrs);
}

fn ints(attrs: &mut Attrs, name: &str) -> Vec<i64> {
    match attrs.take(name) {
        Some(FieldValue::Ints(v)) => v,
        _ => Vec::new(),
    }
}

fn axes(attrs: &mut Attrs, name: &str) -> Result<Vec<usize>> {
    ints(attrs, name).into_iter().map(index).collect()
}

fn flag(attrs: &mut Attrs, name: &str, default: bool) -> bool {
    match attrs.take(name) {
        Some(FieldValue::Bool(b)) => b,
        _ => default,
    }
}

fn put(out: &mut Attrs, name: &'static str, value: FieldValue) {
    if !name.is_empty() {
        out.push(without_prefix(name), value, "");
    }
}

fn put_axes(out: &mut Attrs, name: &'static str, axes: &[usize]) {
    put(out, name, FieldValue::Ints(axes.iter().map(|&axis| axis as i64).collect()));
}

/// Axis or number; the syntax of the attribute tells whether it is written in braces.
impl Field for usize {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        let name = without_prefix(name);
        if table::attribute_syntax(name) != Some(FieldSyntax::Ints) {
            return index(attrs.int(name, 0));
        }
        match ints(attrs, name)[..] {
            [one] => index(one),
            _ => Err(format!("expects one dimension in {name}")),
        }
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        let number = *self as i64;
        let is_list = table::attribute_syntax(without_prefix(name)) == Some(FieldSyntax::Ints);
        put(out, name, if is_list { FieldValue::Ints(vec![number]) } else { FieldValue::Int(number) });
    }
}

impl Field for u64 {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        Ok(index(attrs.int(without_prefix(name), 0))? as u64)
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        put(out, name, FieldValue::Int(*self as i64));
    }
}

/// Bits of an f32, which is written as a number.
impl Field for u32 {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        Ok(match attrs.take(without_prefix(name)) {
            Some(FieldValue::Float(v)) => (v as f32).to_bits(),
            _ => 0,
        })
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        put(out, name, FieldValue::Float(f64::from(f32::from_bits(*self))));
    }
}

impl Field for bool {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        Ok(flag(attrs, without_prefix(name), name.starts_with('+')))
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        if *self || !name.starts_with('?') {
            put(out, name, FieldValue::Bool(*self));
        }
    }
}

impl Field for String {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        Ok(attrs.word(without_prefix(name)))
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        put(out, name, FieldValue::Word(self.clone()));
    }
}

/// Implements [`Field`] for types of [`NamedValues`], which are represented by one attribute.
macro_rules! word_fields {
    ($($t:ty),*) => { $(impl Field for $t {
        fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
            Ok(Self::of_word(&attrs.word(without_prefix(name))))
        }
        fn write(&self, name: &'static str, out: &mut Attrs) {
            put(out, name, FieldValue::Word(self.word().to_string()));
        }
    })* };
}
word_fields!(FftKind, FusionKind, Transpose);

impl Field for CompId {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        comp(attrs, without_prefix(name))
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        put(out, name, FieldValue::Comp(*self));
    }
}

/// Branches, whose attributes also depend on the operands, so that `conditional` in the parent module reads them.
impl Field for Vec<CompId> {
    fn read(_: &mut Attrs, _: &'static str) -> Result<Self> {
        Ok(Vec::new())
    }
    fn write(&self, _: &'static str, _: &mut Attrs) {}
}

/// Value of a constant, which is not an attribute.
impl Field for Literal {
    fn read(_: &mut Attrs, _: &'static str) -> Result<Self> {
        Err("a constant has a literal".to_string())
    }
    fn write(&self, _: &'static str, _: &mut Attrs) {}
}

/// Comparison of `topk`.
impl Field for CompareKind {
    fn read(attrs: &mut Attrs, _: &'static str) -> Result<Self> {
        let is_partial = attrs.take_text("frontend_attributes", BY_COMPARISON);
        Ok(if is_partial { CompareKind::Partial } else { CompareKind::Total })
    }
    fn write(&self, _: &'static str, out: &mut Attrs) {
        if *self == CompareKind::Partial {
            out.push("frontend_attributes", FieldValue::Text, BY_COMPARISON);
        }
    }
}

impl Field for Vec<usize> {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        axes(attrs, without_prefix(name))
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        put_axes(out, name, self);
    }
}

impl Field for Vec<u64> {
    fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
        ints(attrs, without_prefix(name)).into_iter().map(|v| index(v).map(|v| v as u64)).collect()
    }
    fn write(&self, name: &'static str, out: &mut Attrs) {
        put(out, name, FieldValue::Ints(self.iter().map(|&n| n as i64).collect()));
    }
}

/// Implements [`Field`] for lists of a type, which are represented by one attribute with a value of this variant.
macro_rules! list_fields {
    ($($t:ty: $variant:ident),*) => { $(impl Field for Vec<$t> {
        fn read(attrs: &mut Attrs, name: &'static str) -> Result<Self> {
            Ok(match attrs.take(without_prefix(name)) {
                Some(FieldValue::$variant(all)) => all,
                _ => Vec::new(),
            })
        }
        fn write(&self, name: &'static str, out: &mut Attrs) {
            put(out, name, FieldValue::$variant(self.clone()));
        }
    })* };
}
list_fields!(SliceDim: Slices, PadDim: Pads, WindowDim: Window);

impl Field for Box<DotDims> {
    fn read(attrs: &mut Attrs, _: &'static str) -> Result<Self> {
        Ok(Box::new(DotDims {
            lhs_batch: axes(attrs, "lhs_batch_dims")?,
            rhs_batch: axes(attrs, "rhs_batch_dims")?,
            lhs_contracting: axes(attrs, "lhs_contracting_dims")?,
            rhs_contracting: axes(attrs, "rhs_contracting_dims")?,
        }))
    }
    fn write(&self, _: &'static str, out: &mut Attrs) {
        let parts = [
            ("lhs_batch_dims", &self.lhs_batch),
            ("lhs_contracting_dims", &self.lhs_contracting),
            ("rhs_batch_dims", &self.rhs_batch),
            ("rhs_contracting_dims", &self.rhs_contracting),
        ];
        parts.into_iter().filter(|part| !part.1.is_empty()).for_each(|(name, dims)| put_axes(out, name, dims));
    }
}

impl Field for Box<GatherDims> {
    fn read(attrs: &mut Attrs, _: &'static str) -> Result<Self> {
        Ok(Box::new(GatherDims {
            offset_dims: axes(attrs, "offset_dims")?,
            collapsed_slice_dims: axes(attrs, "collapsed_slice_dims")?,
            start_index_map: axes(attrs, "start_index_map")?,
            index_vector_dim: index(attrs.int("index_vector_dim", 0))?,
            operand_batching_dims: axes(attrs, "operand_batching_dims")?,
            start_indices_batching_dims: axes(attrs, "start_indices_batching_dims")?,
            slice_sizes: Field::read(attrs, "slice_sizes")?,
            indices_are_sorted: flag(attrs, "indices_are_sorted", false),
        }))
    }
    fn write(&self, _: &'static str, out: &mut Attrs) {
        put_axes(out, "offset_dims", &self.offset_dims);
        put_axes(out, "collapsed_slice_dims", &self.collapsed_slice_dims);
        put_axes(out, "start_index_map", &self.start_index_map);
        if !self.operand_batching_dims.is_empty() || !self.start_indices_batching_dims.is_empty() {
            put_axes(out, "operand_batching_dims", &self.operand_batching_dims);
            put_axes(out, "start_indices_batching_dims", &self.start_indices_batching_dims);
        }
        put(out, "index_vector_dim", FieldValue::Int(self.index_vector_dim as i64));
        self.slice_sizes.write("slice_sizes", out);
        self.indices_are_sorted.write("?indices_are_sorted", out);
    }
}

impl Field for Box<ScatterDims> {
    fn read(attrs: &mut Attrs, _: &'static str) -> Result<Self> {
        Ok(Box::new(ScatterDims {
            update_window_dims: axes(attrs, "update_window_dims")?,
            inserted_window_dims: axes(attrs, "inserted_window_dims")?,
            scatter_dims_to_operand_dims: axes(attrs, "scatter_dims_to_operand_dims")?,
            index_vector_dim: index(attrs.int("index_vector_dim", 0))?,
            input_batching_dims: axes(attrs, "input_batching_dims")?,
            scatter_indices_batching_dims: axes(attrs, "scatter_indices_batching_dims")?,
            indices_are_sorted: flag(attrs, "indices_are_sorted", false),
            unique_indices: flag(attrs, "unique_indices", false),
        }))
    }
    fn write(&self, _: &'static str, out: &mut Attrs) {
        put_axes(out, "update_window_dims", &self.update_window_dims);
        put_axes(out, "inserted_window_dims", &self.inserted_window_dims);
        put_axes(out, "scatter_dims_to_operand_dims", &self.scatter_dims_to_operand_dims);
        if !self.input_batching_dims.is_empty() || !self.scatter_indices_batching_dims.is_empty() {
            put_axes(out, "input_batching_dims", &self.input_batching_dims);
            put_axes(out, "scatter_indices_batching_dims", &self.scatter_indices_batching_dims);
        }
        put(out, "index_vector_dim", FieldValue::Int(self.index_vector_dim as i64));
        self.indices_are_sorted.write("?indices_are_sorted", out);
        self.unique_indices.write("?unique_indices", out);
    }
}

impl Field for Box<ConvDims> {
    fn read(attrs: &mut Attrs, _: &'static str) -> Result<Self> {
        let Some(FieldValue::Labels(text)) = attrs.take("dim_labels") else {
            return Err("attribute dim_labels is expected but not seen".to_string());
        };
        Ok(Box::new(ConvDims {
            window: Field::read(attrs, "window")?,
            feature_group_count: index(attrs.int("feature_group_count", 1))? as u64,
            batch_group_count: index(attrs.int("batch_group_count", 1))? as u64,
            ..dim_labels(&text)?
        }))
    }
    fn write(&self, _: &'static str, out: &mut Attrs) {
        if !self.window.is_empty() {
            self.window.write("window", out);
        }
        put(out, "dim_labels", FieldValue::Labels(print_dim_labels(self)));
        let counts = [("feature_group_count", self.feature_group_count), ("batch_group_count", self.batch_group_count)];
        counts.into_iter().filter(|count| count.1 != 1).for_each(|(name, count)| count.write(name, out));
    }
}

/// Parses the dimension numbers `b01f_01io->b01f`, without a window and in one group.
pub(in crate::hlo) fn dim_labels(text: &str) -> Result<ConvDims> {
    let (lhs, rest) = text.split_once('_').unwrap_or(("", ""));
    let (rhs, out) = rest.split_once("->").unwrap_or(("", ""));
    let dims = ConvDims::from_axes(labels(lhs, 'b', 'f')?, labels(rhs, 'i', 'o')?, labels(out, 'b', 'f')?);
    if lhs.len() != rhs.len() || rhs.len() != out.len() {
        return Err("convolution lhs, rhs, and output must have same rank".to_string());
    }
    Ok(dims)
}

/// Positions of two letters, and of the digits 0, 1, 2 …, in a label text.
fn labels(text: &str, first: char, second: char) -> Result<ConvAxes> {
    let (Some(a), Some(b)) = (text.find(first), text.find(second)) else {
        return Err(format!("dim labels {text} lack {first} or {second}"));
    };
    let spatial = text.chars().filter(char::is_ascii_digit).count();
    let place = |i: usize| {
        let digit = char::from_digit(i as u32, 10).unwrap_or('x');
        text.find(digit).ok_or_else(|| format!("dim labels {text} lack dimension {i}"))
    };
    let places = (0..spatial).map(place).collect::<Result<Vec<_>>>()?;
    let unused = text.chars().filter(|&c| c == '?').count();
    if places.len() + 2 + unused != text.len() {
        return Err(format!("expects unique dim labels, sees {text}"));
    }
    Ok((a, b, places))
}
