//! Decimal representation of integers, as `printf` prints them, and ops on strings.
use super::text::{MOST_BYTES, StringConstant, Text, TextExpr, text_input, text_output};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::symbolic::InstId;
use crate::ops::math::expr::{ArrayExpr, build_formulas};
use crate::ops::{LowerCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

/// Flags and width of a `printf` integer format.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintfFormat {
    /// Character in front of non-negative numbers.
    plus: Option<u8>,
    /// Whether the number is padded with zeros behind the sign.
    zeros: bool,
    /// Whether the number is left-aligned and padded with spaces.
    left: bool,
    /// Minimum width in bytes.
    width: u64,
}

/// Lowers `AsString`: the text of each number.
///
/// # Errors
/// `UnsupportedType` for floats, `BadAttr` for attributes that TensorFlow rejects.
pub fn as_string(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let node = cx.node;
    let width = node.int("width").unwrap_or(-1);
    if matches!(cx.args.first(), Some(Value::Text(_) | Value::Strings(_) | Value::Unavailable(_))) {
        let text = text_input(cx, 0)?;
        if width > 0 {
            return Err(cx.unsupported_case("strings of a width; integers of a width are supported"));
        }
        return text_output(cx, text);
    }
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    if dtype.is_float() || dtype.is_complex() {
        let told = format!("the text of {dtype}; that of integers and truth values is supported");
        let d = Diagnostic::new(Code::UnsupportedType, told);
        return Err(d.help("round the numbers and cast them to int64 before they are written").into());
    }
    if cx.bool_attr("scientific") || cx.bool_attr("shortest") || node.int("precision").unwrap_or(-1) >= 0 {
        return Err(Error::user(Code::BadAttr, format!("{dtype} has no precision and no scientific or shortest text")));
    }
    let mut format = PrintfFormat { width: u64::try_from(width).unwrap_or(0), ..PrintfFormat::default() };
    match node.str("fill").unwrap_or("") {
        "" | "#" => {}
        // Unsigned numbers get no sign character.
        " " | "+" if !dtype.is_signed() => {}
        " " => format.plus = Some(b' '),
        "+" => format.plus = Some(b'+'),
        "-" => format.left = true,
        "0" => format.zeros = true,
        other => return Err(Error::user(Code::BadAttr, format!("`fill` is `{other}`"))),
    }
    if format.width > MOST_BYTES {
        let told = format!("a width of {}; up to {MOST_BYTES} bytes are supported", format.width);
        return Err(cx.unsupported_case(told));
    }
    let text = if dtype == DType::Pred { truth(cx, x) } else { decimal_text(cx, x, format)? };
    text_output(cx, text)
}

/// Text `true` or `false`.
fn truth(cx: &mut LowerCtx, x: InstId) -> Text {
    let dims = cx.b.dims(x).to_vec();
    let words = [&b"true"[..], b"false"].map(|word| {
        let constant = StringConstant { dims: Vec::new(), all: vec![Bytes::from_static(word)] };
        let text = constant.to_text(cx.b);
        text.arrays().into_iter().map(|part| cx.b.broadcast(part, &dims, &[])).collect::<Vec<_>>()
    });
    let [yes, no] = words;
    let mut parts: Vec<InstId> = yes.into_iter().zip(no).map(|(yes, no)| cx.b.select(x, yes, no)).collect();
    let length = parts.pop().unwrap_or(x);
    Text { words: parts, length, most: 5 }
}

/// Decimal text of each integer of `x`.
///
/// # Errors
/// None for integers.
pub fn decimal_text(cx: &mut LowerCtx, x: InstId, format: PrintfFormat) -> Result<Text> {
    let dtype = cx.b.dtype(x);
    let digits = digit_count(dtype);
    let signed = u64::from(dtype.is_signed() || format.plus.is_some());
    let most = (digits + signed).max(format.width);
    let zero = cx.b.full_like(x, 0.0);
    let negative = cx.b.compare(Direction::Lt, x, zero);
    let magnitude = if dtype.is_signed() {
        let wide = cx.b.convert(x, DType::S64);
        let opposite = cx.b.unary(ScalarOp::Negate, wide);
        let magnitude = cx.b.select(negative, opposite, wide);
        cx.b.unary(ScalarOp::BitcastConvert(DType::U64), magnitude)
    } else {
        cx.b.convert(x, DType::U64)
    };
    let parts = build_formulas(cx.b, &[magnitude, negative], |arrays| {
        let [magnitude, negative] = arrays[..] else { return Err(Error::internal("lower", "two operands")) };
        Ok(written(magnitude, negative, &Extent { digits, most }, format))
    })?;
    let (length, words) = parts.split_last().ok_or_else(|| Error::internal("lower", "no text"))?;
    let length = cx.b.convert(*length, DType::S32);
    Ok(Text { words: words.to_vec(), length, most })
}

/// Number of digits of the largest magnitude of a type.
fn digit_count(dtype: DType) -> u64 {
    let bits = if dtype.is_signed() { dtype.bits() - 1 } else { dtype.bits() };
    // The magnitude of the most negative number is 2^bits.
    let largest = if dtype.is_signed() { 1u128 << bits } else { (1u128 << bits) - 1 };
    u64::from(largest.ilog10()) + 1
}

/// Size bounds of the texts of a type.
struct Extent {
    /// Digits of the largest magnitude.
    digits: u64,
    /// Bytes of the longest text.
    most: u64,
}

/// Words of the text of a number with these bounds, followed by its length.
fn written<'s, 'b>(
    magnitude: ArrayExpr<'s, 'b>,
    negative: ArrayExpr<'s, 'b>,
    extent: &Extent,
    format: PrintfFormat,
) -> Vec<ArrayExpr<'s, 'b>> {
    let Extent { digits, most } = *extent;
    let number = |n: u64| magnitude.constant_u64(n);
    let minus = number(1).select_where(negative, 0);
    let has_sign = if format.plus.is_some() { number(1) } else { minus };
    let sign = number(u64::from(b'-')).select_where(negative, u64::from(format.plus.unwrap_or(b'-')));
    let mut count = number(1);
    for i in 1..digits {
        count = count + number(1).select_where(magnitude.ge(10u64.pow(i as u32)), 0);
    }
    let own = count + has_sign;
    let length = own.max(format.width);
    // Bytes are placed from the right: the text ends where the words end.
    let room = most.div_ceil(8) * 8;
    // Bytes of the digits, including padding zeros.
    let filled = if format.zeros { length - has_sign } else { count };
    let mut rest = magnitude;
    let mut words = vec![number(0); (room / 8) as usize];
    for i in 0..room {
        let mut byte = number(u64::from(b'0'));
        if i < digits {
            let next = rest / 10;
            byte = byte + (rest - next * 10);
            rest = next;
        }
        let is_sign = filled.equals(i).and(has_sign.equals(1));
        let other = sign.select_where(is_sign, u64::from(b' '));
        byte = byte.select_where(filled.gt(i), other);
        let at = room - 1 - i;
        let word = &mut words[(at / 8) as usize];
        *word = word.or(byte.shift_left(at % 8 * 8));
    }
    let ending = TextExpr { words, length, most: room, fixed: None };
    let shown = if format.left { own } else { length };
    let start = number(room) - shown;
    let mut out: Vec<ArrayExpr> = (0..most.div_ceil(8)).map(|k| ending.word_at(start + 8 * k)).collect();
    if format.left {
        for i in 0..format.width {
            let space = number(u64::from(b' ')).select_where(own.le(i), 0);
            let word = &mut out[(i / 8) as usize];
            *word = word.or(space.shift_left(i % 8 * 8));
        }
    }
    out.push(length);
    out
}

/// String constant, such as the text of a known integer in `StringFormat`.
pub fn string_constant(text: &str) -> StringConstant {
    StringConstant { dims: Vec::new(), all: vec![Bytes::copy_from_slice(text.as_bytes())] }
}

/// Lowers `StringFormat`: each placeholder of the template is replaced by the next input, a scalar integer.
///
/// # Errors
/// `UnsupportedCase` for other inputs.
pub fn string_format(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let template = cx.node.str("template").unwrap_or("%s").to_string();
    let placeholder = cx.node.str("placeholder").unwrap_or("%s").to_string();
    let pieces: Vec<&str> =
        if placeholder.is_empty() { vec![&template] } else { template.split(placeholder.as_str()).collect() };
    if pieces.len() != cx.args.len() + 1 {
        let told = format!("a template of {} placeholders for {} inputs", pieces.len() - 1, cx.args.len());
        return Err(Error::user(Code::BadAttr, told));
    }
    let mut parts = vec![string_constant(pieces[0]).to_text(cx.b)];
    for (i, piece) in pieces[1..].iter().enumerate() {
        let (x, dims) = (cx.arg(i)?, cx.dims(i)?);
        if !dims.is_empty() || !cx.b.dtype(x).is_integer() {
            let told = format!("the text of {}; that of one integer is supported", cx.b.shape(x));
            return Err(cx.unsupported_case(told));
        }
        parts.push(decimal_text(cx, x, PrintfFormat::default())?);
        parts.push(string_constant(piece).to_text(cx.b));
    }
    let text = super::text::join_strings(cx, parts, b"")?;
    text_output(cx, text)
}

/// Lowers `StringLength`: the number of bytes or UTF-8 code points of each string.
///
/// # Errors
/// Errors of [`text_input`].
pub fn string_length(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let text = text_input(cx, 0)?;
    if cx.node.str("unit").unwrap_or("BYTE") == "BYTE" {
        return cx.one_output(text.length);
    }
    let mut behind = cx.b.full_like(text.length, 0.0);
    for &word in &text.words {
        let inside = build_formulas(cx.b, &[word], |x| {
            // Bytes 10xxxxxx continue a code point.
            let marks = x[0].and(x[0].shift_left(1).not()).and(x[0].constant_u64(0x8080_8080_8080_8080));
            Ok(vec![marks.apply_unary(ScalarOp::Popcnt)])
        })?;
        let inside = cx.b.convert(inside[0], DType::S32);
        behind = cx.b.add(behind, inside);
    }
    let points = cx.b.sub(text.length, behind);
    cx.one_output(points)
}

/// Lowers `StringLower` and `StringUpper`: changes the case of the ASCII letters from `first` on.
///
/// # Errors
/// Errors of [`text_input`], and `UnsupportedCase` for Unicode letters.
pub fn change_case(cx: &mut LowerCtx, first: u8) -> Result<Vec<Value>> {
    let text = text_input(cx, 0)?;
    if !cx.node.str("encoding").unwrap_or("").is_empty() {
        return Err(cx.unsupported_case("letters of Unicode; those of ASCII are supported (encoding='')"));
    }
    let mut words = Vec::with_capacity(text.words.len());
    for &word in &text.words {
        words.extend(build_formulas(cx.b, &[word], |x| {
            let all = |byte: u8| x[0].constant_u64(u64::from_le_bytes([byte; 8]));
            let low = x[0].and(all(0x7f));
            let (from, behind) = (low + all(0x80 - first), low + all(0x80 - first - 26));
            let letter = from.and(behind.not()).and(x[0].not()).and(all(0x80));
            Ok(vec![x[0].xor(letter.shift_right(2))])
        })?);
    }
    text_output(cx, Text { words, ..text })
}

/// Lowers comparison of strings for (in)equality; scalars are broadcast.
///
/// # Errors
/// Errors of [`text_input`].
pub fn compare_strings(cx: &mut LowerCtx, direction: Direction) -> Result<Vec<Value>> {
    let (x, y) = (text_input(cx, 0)?, text_input(cx, 1)?);
    let most = x.most.max(y.most);
    let (x, y) = (x.padded_to(cx.b, most).arrays(), y.padded_to(cx.b, most).arrays());
    let mut same = cx.b.constant(Tensor::from_bools(&[], &[true]));
    for (x, y) in x.into_iter().zip(y) {
        let part = cx.b.compare(Direction::Eq, x, y);
        same = cx.b.binary(ScalarOp::And, same, part);
    }
    if direction == Direction::Ne {
        same = cx.b.unary(ScalarOp::Not, same);
    }
    cx.one_output(same)
}
