//! Byte strings of bounded length, represented during lowering by arrays of numbers, as compiled code has no strings.
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::math::expr::{ArrayExpr, build_formulas};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::symbolic::{constant_dims, guarded_counts};
use crate::tensor::{DType, Tensor, saturating_element_count};
use bytes::Bytes;
use std::sync::Arc;

/// Largest length of a string; the code size of a hash is proportional to it.
pub const MOST_BYTES: u64 = 1 << 10;

/// Largest total size of a string constant for computations. Larger ones, such as vocabularies and file names, are opaque.
const MOST_CONSTANT_BYTES: u64 = 1 << 20;

/// Number of bytes of a word.
const WORD: u64 = 8;

/// A string tensor as arrays of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Bytes `8 * i` to `8 * i + 7` of every string, the first one in the lowest bits, `u64[dims]` each; zeros behind the end.
    pub words: Vec<InstId>,
    /// Length of each string in bytes, `s32[dims]`.
    pub length: InstId,
    /// Upper bound of the length in bytes.
    pub most: u64,
}

/// A constant string tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct StringConstant {
    /// Sizes of the tensor.
    pub dims: Vec<u64>,
    /// Strings of the tensor, in row-major order.
    pub all: Vec<Bytes>,
}

impl StringConstant {
    /// Value of a string constant; an opaque value if it is too large for computations.
    pub fn to_value(dims: &[u64], all: &[Bytes]) -> Value {
        let longest = all.iter().map(|s| s.len() as u64).max().unwrap_or(0);
        if longest > MOST_BYTES || longest * all.len() as u64 > MOST_CONSTANT_BYTES {
            return Value::Unavailable(TfType::String);
        }
        Value::Strings(Arc::new(StringConstant { dims: dims.to_vec(), all: all.to_vec() }))
    }

    /// Length of the longest element in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.all.iter().map(|s| s.len() as u64).max().unwrap_or(0)
    }

    /// Arrays of the current computation that hold the constant strings.
    pub fn to_text(&self, b: &mut Builder) -> Text {
        let most = self.max_bytes();
        let word = |s: &Bytes, i: u64| {
            let mut word = [0; WORD as usize];
            let from = s.get((i * WORD) as usize..).unwrap_or(&[]);
            word.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
            u64::from_le_bytes(word)
        };
        let words = (0..most.div_ceil(WORD)).map(|i| {
            let all: Vec<u64> = self.all.iter().map(|s| word(s, i)).collect();
            b.constant(Tensor::of(&self.dims, &all))
        });
        let words = words.collect();
        let lengths: Vec<i32> = self.all.iter().map(|s| s.len() as i32).collect();
        let length = b.constant(Tensor::of(&self.dims, &lengths));
        Text { words, length, most }
    }
}

impl Text {
    /// Number of words of strings of up to `most` bytes.
    pub fn word_count(most: u64) -> usize {
        most.div_ceil(WORD) as usize
    }

    /// Pads the strings with zero words, to room for `most` bytes each.
    pub fn padded_to(mut self, b: &mut Builder, most: u64) -> Text {
        while self.words.len() < Text::word_count(most) {
            let dims = b.dims(self.length).to_vec();
            self.words.push(b.full(DType::U64, &dims, 0.0));
        }
        Text { most: self.most.max(most), ..self }
    }

    /// Arrays of the representation: the words, then the length.
    pub fn arrays(&self) -> Vec<InstId> {
        self.words.iter().copied().chain([self.length]).collect()
    }

    /// Strings from these arrays, in the order of [`Text::arrays`].
    pub fn from_arrays(mut parts: Vec<InstId>, most: u64) -> Option<Text> {
        let length = parts.pop()?;
        Some(Text { words: parts, length, most })
    }
}

/// String tensor in input `i`.
///
/// # Errors
/// `Code::UnsupportedType` if the input is not a string tensor, or its contents are unknown during lowering.
pub fn text_input(cx: &mut LowerCtx, i: usize) -> Result<Text> {
    match cx.args.get(i) {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(Value::Strings(constant)) => Ok(constant.clone().to_text(cx.b)),
        Some(Value::Unavailable(TfType::String)) => {
            let told = format!("input {i} is a string that does not follow from numbers, or a long one");
            let d = Diagnostic::new(Code::UnsupportedType, told);
            Err(d.help("compiled code computes strings that are made of integers and short constants alone; feed what is computed from others").into())
        }
        None => Err(Error::user(Code::BadGraph, format!("input {i} is missing"))),
        Some(_) => Err(Error::user(Code::TypeMismatch, format!("input {i} must be a string tensor"))),
    }
}

/// Strings as the single output of a node.
///
/// # Errors
/// `Code::UnsupportedCase` for strings that may be too long.
pub fn text_output(cx: &LowerCtx, text: Text) -> Result<Vec<Value>> {
    if text.most > MOST_BYTES {
        let told = format!("strings of up to {} bytes; up to {MOST_BYTES} are supported", text.most);
        return Err(cx.unsupported_case(told));
    }
    Ok(vec![Value::Text(text)])
}

/// Whether a value is a string tensor whose contents are known during lowering, as constants or arrays.
pub fn is_text(value: &Value) -> bool {
    matches!(value, Value::Text(_) | Value::Strings(_))
}

/// Sizes of a string tensor with known contents; `None` for other values.
pub fn text_dims(b: &Builder, value: &Value) -> Option<Vec<Dim>> {
    match value {
        Value::Text(text) => Some(b.dims(text.length).to_vec()),
        Value::Strings(constant) => Some(constant_dims(&constant.dims)),
        _ => None,
    }
}

/// Lowers an op that only moves elements for string inputs, by applying it to each array of their representation.
///
/// # Errors
/// Errors of the op.
pub fn move_strings(row: &OpLowering, cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut texts = Vec::with_capacity(cx.args.len());
    for i in 0..cx.args.len() {
        texts.push(if is_text(&cx.args[i]) { Some(text_input(cx, i)?) } else { None });
    }
    // At least one word, as lengths have another element type.
    let most = texts.iter().flatten().map(|t| t.most).max().unwrap_or(0).max(1);
    let mut parts = Vec::with_capacity(texts.len());
    for text in texts {
        parts.push(text.map(|text| text.padded_to(cx.b, most).arrays()));
    }
    let mut outputs: Vec<Vec<InstId>> = Vec::new();
    for part in 0..=Text::word_count(most) {
        let args = cx.args.iter().zip(&parts).map(|(arg, parts)| match parts {
            Some(parts) => Value::Array(parts[part]),
            None => arg.clone(),
        });
        let args = args.collect();
        let made = row.lower_node(&mut cx.with_args(args))?;
        outputs.resize(made.len(), Vec::new());
        for (output, value) in outputs.iter_mut().zip(made) {
            let Value::Array(id) = value else {
                return Err(Error::internal("lower", format!("{} makes no array of a string", cx.node.op)));
            };
            output.push(id);
        }
    }
    // Outputs that are not strings have the same type for words and lengths.
    let value = |parts: Vec<InstId>| {
        let (first, last) = (*parts.first()?, *parts.last()?);
        let is_string = cx.b.dtype(first) != cx.b.dtype(last);
        if is_string { Text::from_arrays(parts, most).map(Value::Text) } else { Some(Value::Array(first)) }
    };
    let values: Option<Vec<Value>> = outputs.into_iter().map(value).collect();
    values.ok_or_else(|| Error::internal("lower", "an output without parts"))
}

/// Strings as operands of formulas.
pub struct TextExpr<'s, 'b> {
    /// Words that hold the bytes of the strings, at least one.
    pub words: Vec<ArrayExpr<'s, 'b>>,
    /// Length of each string, `u64`.
    pub length: ArrayExpr<'s, 'b>,
    /// Upper bound of the length in bytes.
    pub most: u64,
    /// Length of all strings, if they share one that is known.
    pub fixed: Option<u64>,
}

impl<'s, 'b> TextExpr<'s, 'b> {
    /// Eight bytes of each string from byte `position` on.
    pub fn word(&self, position: u64) -> ArrayExpr<'s, 'b> {
        let (i, bits) = ((position / WORD) as usize, position % WORD * 8);
        let word = |i: usize| self.words.get(i).copied().unwrap_or(self.length.constant_u64(0));
        if bits == 0 { word(i) } else { word(i).shift_right(bits).or(word(i + 1).shift_left(64 - bits)) }
    }

    /// Eight bytes of each string from a position that may differ between strings.
    pub fn word_at(&self, position: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        let (i, bits) = (position.shift_right(3), position.and(position.constant_u64(7)).shift_left(3));
        let zero = self.length.constant_u64(0);
        let (mut low, mut high) = (zero, zero);
        for (k, &word) in self.words.iter().enumerate() {
            low = word.select_where(i.equals(k as u64), low);
            high = word.select_where((i + 1).equals(k as u64), high);
        }
        // The shift is split in two, as a shift by 64 bits would have no effect.
        low.shift_right(bits).or(high.shift_left(1).shift_left(bits.constant_u64(63) - bits))
    }

    /// Eight bytes of each string starting `back` bytes before its end; arbitrary for shorter strings.
    pub fn word_before_end(&self, back: u64) -> ArrayExpr<'s, 'b> {
        match self.fixed {
            Some(length) => self.word(length.saturating_sub(back)),
            None => self.word_at(self.length - back),
        }
    }
}

/// Evaluates formulas over strings: `u64[dims]` for each array that `f` returns.
///
/// # Errors
/// Errors of `f`.
pub fn text_formulas<'b>(
    b: &'b mut Builder,
    texts: &[&Text],
    f: impl for<'s> FnOnce(Vec<TextExpr<'s, 'b>>) -> Result<Vec<ArrayExpr<'s, 'b>>>,
) -> Result<Vec<InstId>> {
    let mut arrays = Vec::new();
    for text in texts {
        let room = (*text).clone().padded_to(b, 1);
        arrays.extend(room.words);
        arrays.push(b.convert(text.length, DType::U64));
    }
    let fixed: Vec<Option<u64>> = texts.iter().map(|text| fixed_length(b, text)).collect();
    build_formulas(b, &arrays, |mut rest| {
        let mut operands = Vec::with_capacity(texts.len());
        for (text, fixed) in texts.iter().zip(fixed) {
            let mut own: Vec<ArrayExpr> = rest.drain(..text.words.len().max(1) + 1).collect();
            let Some(length) = own.pop() else { continue };
            operands.push(TextExpr { words: own, length, most: text.most, fixed });
        }
        f(operands)
    })
}

/// Length of all strings, if they share one that is known.
fn fixed_length(b: &Builder, text: &Text) -> Option<u64> {
    let dims = b.dims(text.length);
    if dims.iter().any(|d| d.varies()) || saturating_element_count(&guarded_counts(dims)) > 1 << 16 {
        return None;
    }
    let lengths = crate::interp::constant_value(b, text.length)?.to_i64s()?;
    let first = *lengths.first()?;
    lengths.iter().all(|&l| l == first).then_some(first).and_then(|l| u64::try_from(l).ok())
}

/// Concatenation of the strings of `parts`, separated by `separator`; scalars are broadcast.
///
/// # Errors
/// `ShapeMismatch` for tensors of different sizes.
pub fn join_strings(cx: &mut LowerCtx, parts: Vec<Text>, separator: &[u8]) -> Result<Text> {
    let mut dims: Vec<Dim> = Vec::new();
    for part in &parts {
        let own = cx.b.dims(part.length);
        if !own.is_empty() && !dims.is_empty() && own != dims {
            return Err(cx.shape_mismatch(format!("strings of {dims:?} are joined to strings of {own:?}")));
        }
        if !own.is_empty() {
            dims = own.to_vec();
        }
    }
    let between = StringConstant { dims: Vec::new(), all: vec![Bytes::copy_from_slice(separator)] };
    let mut all: Option<Text> = None;
    for part in parts {
        all = Some(match all {
            None => part,
            Some(before) if separator.is_empty() => append(cx, &before, &part, &dims)?,
            Some(before) => {
                let between = between.to_text(cx.b);
                let before = append(cx, &before, &between, &dims)?;
                append(cx, &before, &part, &dims)?
            }
        });
    }
    match all {
        Some(all) => Ok(broadcast(cx.b, &all, &dims)),
        None => Ok(StringConstant { dims: Vec::new(), all: vec![Bytes::new()] }.to_text(cx.b)),
    }
}

/// Strings broadcast from a scalar to a tensor; other tensors unchanged.
fn broadcast(b: &mut Builder, text: &Text, dims: &[Dim]) -> Text {
    if b.dims(text.length) == dims {
        return text.clone();
    }
    let words = text.words.iter().map(|&w| b.broadcast_to(w, dims)).collect();
    Text { words, length: b.broadcast_to(text.length, dims), most: text.most }
}

/// Appends the strings `y` to the strings `x`.
fn append(cx: &mut LowerCtx, x: &Text, y: &Text, dims: &[Dim]) -> Result<Text> {
    let most = x.most + y.most;
    if most > MOST_BYTES {
        let told = format!("strings of up to {most} bytes; up to {MOST_BYTES} are supported");
        return Err(cx.unsupported_case(told));
    }
    let (x, y) = (broadcast(cx.b, x, dims), broadcast(cx.b, y, dims));
    let words = text_formulas(cx.b, &[&x, &y], |texts| {
        let [x, y] = &texts[..] else { return Err(Error::internal("lower", "two strings")) };
        let zero = x.length.constant_u64(0);
        let lead = x.words.len() as u64;
        // `y`, preceded by as many zero words as `x` has.
        let words = std::iter::repeat_n(zero, x.words.len()).chain(y.words.iter().copied()).collect();
        let shifted = TextExpr { words, length: y.length, most, fixed: None };
        let word = |k: u64| {
            let own = x.words.get(k as usize).copied().unwrap_or(zero);
            let behind = match x.fixed {
                Some(length) => shifted.word(WORD * (lead + k) - length),
                None => shifted.word_at(x.length.constant_u64(WORD * (lead + k)) - x.length),
            };
            own.or(behind)
        };
        Ok((0..most.div_ceil(WORD)).map(word).collect())
    })?;
    let length = cx.b.add(x.length, y.length);
    Ok(Text { words, length, most })
}
