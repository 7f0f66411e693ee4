//! `string_ops.cc`: strings computed from integers and constants, and hashes of strings.
//!
//! Compiled code has no strings. During lowering a string tensor is represented by arrays of numbers ([`mod@text`]), and only
//! numbers leave the graph: hashes, lengths, comparisons. Ops that only move elements are applied to each of these arrays
//! ([`text::move_strings`]).
mod column;
mod cross;
mod farmhash;
mod hash;
mod number;
pub mod text;

use super::fact::Fact;
use super::op_lowering::op;
use super::shape::{S32, S64, like_first_input};
use super::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::InstId;
use crate::ops::math::expr::build_formula;
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};
pub use number::compare_strings;
use text::{Text, join_strings, text_input, text_output};

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[STRINGS, HASHES, cross::ROWS];

const OF_INTEGERS: &str = "strings that are made of integers and short constants";

const STRINGS: &[OpLowering] = &[
    op("AsString", "input -> output", number::as_string)
        .shape(|cx| cx.one_output(TfType::String, cx.dims(0)?))
        .dtypes("integers, pred"),
    op("StringJoin", "inputs* -> output", string_join).shape(string_join_shape).dtypes(OF_INTEGERS),
    op("StringFormat", "inputs* -> output", number::string_format)
        .shape(|cx| cx.one_output(TfType::String, vec![]))
        .dtypes("scalar integers"),
    op("StringLower", "input -> output", |cx| number::change_case(cx, b'A'))
        .shape(like_first_input)
        .dtypes(OF_INTEGERS),
    op("StringUpper", "input -> output", |cx| number::change_case(cx, b'a'))
        .shape(like_first_input)
        .dtypes(OF_INTEGERS),
    op("StringLength", "input -> output", number::string_length)
        .shape(|cx| cx.one_output(S32, cx.dims(0)?))
        .dtypes(OF_INTEGERS),
];

const HASHES: &[OpLowering] = &[
    op("StringToHashBucketFast", "input -> output", |cx| bucket(cx, farmhash::fingerprint))
        .shape(bucket_shape)
        .dtypes(OF_INTEGERS),
    op("StringToHashBucketStrong", "input -> output", strong_bucket).shape(bucket_shape).dtypes(OF_INTEGERS),
    op("StringToHashBucket", "string_tensor -> output", |cx| bucket(cx, hash::hash_64))
        .shape(bucket_shape)
        .dtypes(OF_INTEGERS),
    op("Fingerprint", "data method -> fingerprint", fingerprint)
        .shape(fingerprint_shape)
        .dtypes("numbers, and strings that are made of integers and short constants"),
];

/// Largest number of bytes of a row for a fingerprint, as the size of its code is proportional to them.
const MOST_ROW_BYTES: u64 = 1 << 12;

fn string_join(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut parts = Vec::with_capacity(cx.args.len());
    for i in 0..cx.args.len() {
        parts.push(text_input(cx, i)?);
    }
    let separator = cx.node.str("separator").unwrap_or("").as_bytes().to_vec();
    let text = join_strings(cx, parts, &separator)?;
    text_output(cx, text)
}

/// Lowers a hash bucket op: a hash of each string modulo the number of buckets.
fn bucket(
    cx: &mut LowerCtx,
    hash: impl Fn(&mut crate::hlo::symbolic::Builder, &Text) -> Result<InstId>,
) -> Result<Vec<Value>> {
    let text = text_input(cx, 0)?;
    let buckets = cx.node.int("num_buckets").and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
    let buckets = cx.require_attr(buckets, "num_buckets")?;
    let hash = hash(cx.b, &text)?;
    let number = remainder(cx, hash, buckets);
    cx.one_output(number)
}

/// Remainder of unsigned integers, as s64.
fn remainder(cx: &mut LowerCtx, hash: InstId, by: u64) -> InstId {
    let rest = build_formula(cx.b, [hash], |[x]| x.apply_binary(ScalarOp::Remainder, by));
    cx.b.convert(rest, DType::S64)
}

fn strong_bucket(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let key = match cx.node.ints("key") {
        Some(&[first, second]) => [first as u64, second as u64],
        _ => return Err(Error::user(Code::BadAttr, "`key` must be two integers")),
    };
    bucket(cx, |b, text| hash::sip_hash(b, text, key))
}

/// Lowers `Fingerprint`: `u8[n, 8]`, the fingerprint of the bytes of each row. For a row of several strings it is that of their
/// fingerprints.
fn fingerprint(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    match cx.args.get(1) {
        Some(Value::Strings(method)) if method.all.first().is_some_and(|m| &m[..] == b"farmhash64") => {}
        _ => return Err(cx.unsupported_case("a fingerprint by a method that is not the constant `farmhash64`")),
    }
    let hash = if text::is_text(&cx.args[0]) {
        let text = text_input(cx, 0)?;
        let (rows, columns) = rows_of(cx, text.length)?;
        let parts: Vec<InstId> = text.arrays().into_iter().map(|x| cx.b.reshape(x, &dims![rows, columns])).collect();
        let flat = Text::from_arrays(parts, text.most).ok_or_else(|| Error::internal("lower", "no text"))?;
        let hashes = farmhash::fingerprint(cx.b, &flat)?;
        if columns == 1 { cx.b.reshape(hashes, &dims![rows]) } else { of_rows(cx, hashes)? }
    } else {
        let x = cx.arg(0)?;
        of_rows(cx, x)?
    };
    let rows = cx.b.dims(hash)[0];
    let bytes = (0..8).map(|i| {
        let byte = build_formula(cx.b, [hash], |[x]| x.shift_right(8 * i).and(x.constant_u64(0xff)));
        let byte = cx.b.convert(byte, DType::U8);
        cx.b.reshape(byte, &dims![rows, 1])
    });
    let bytes: Vec<InstId> = bytes.collect();
    let y = cx.b.concatenate(&bytes, 1);
    cx.one_output(y)
}

/// Number of rows of an array, and number of elements of each.
fn rows_of(cx: &LowerCtx, x: InstId) -> Result<(Dim, u64)> {
    match cx.b.dims(x) {
        [] => Err(cx.shape_mismatch("a fingerprint of a scalar")),
        [rows, rest @ ..] => Ok((*rows, rest.iter().product::<Dim>().guarded_count())),
    }
}

/// Fingerprint of the bytes of each row of numbers: `u64[n]`.
fn of_rows(cx: &mut LowerCtx, x: InstId) -> Result<InstId> {
    let ((rows, columns), dtype) = (rows_of(cx, x)?, cx.b.dtype(x));
    let size = columns * dtype.bytes() as u64;
    if size > MOST_ROW_BYTES {
        let told = format!("the fingerprint of rows of {size} bytes; up to {MOST_ROW_BYTES} are supported");
        return Err(cx.unsupported_case(told));
    }
    let flat = cx.b.reshape(x, &dims![rows, columns]);
    let units = units(cx, flat)?;
    let width = cx.b.dtype(units).bytes() as u64;
    let in_word = 8 / width;
    let (count, words) = (cx.b.dims(units)[1], size.div_ceil(8));
    let wide = cx.b.convert(units, DType::U64);
    let zeros = cx.b.full(DType::U64, &dims![rows, words * in_word - count], 0.0);
    let padded = cx.b.concatenate(&[wide, zeros], 1);
    let padded = cx.b.reshape(padded, &dims![rows, words, in_word]);
    let places: Vec<u64> = (0..in_word).map(|i| i * width * 8).collect();
    let places = cx.b.constant(Tensor::of(&[in_word], &places));
    let places = cx.b.broadcast(places, &dims![rows, words, in_word], &[2]);
    let shifted = cx.b.binary(ScalarOp::ShiftLeft, padded, places);
    let zero = cx.b.scalar(DType::U64, 0.0);
    let packed = cx.b.reduce(shifted, zero, ScalarOp::Or, &[2]);
    let words = (0..words).map(|i| {
        let word = cx.b.slice_axis(packed, 1, Dim::from(i), Dim::from(i + 1));
        cx.b.reshape(word, &dims![rows])
    });
    let words = words.collect();
    let length = cx.b.full(DType::S32, &dims![rows], size as f64);
    farmhash::fingerprint(cx.b, &Text { words, length, most: size })
}

/// Bits of a matrix of numbers as unsigned integers; a complex number becomes two.
fn units(cx: &mut LowerCtx, x: InstId) -> Result<InstId> {
    let dtype = cx.b.dtype(x);
    if dtype.is_complex() {
        let (rows, columns) = (cx.b.dims(x)[0], cx.b.dims(x)[1]);
        let mut parts = Vec::new();
        for part in [ScalarOp::Real, ScalarOp::Imag] {
            let part = cx.b.unary(part, x);
            let bits = units(cx, part)?;
            parts.push(cx.b.reshape(bits, &dims![rows, columns, 1]));
        }
        let pairs = cx.b.concatenate(&parts, 2);
        return Ok(cx.b.reshape(pairs, &[rows, columns * 2]));
    }
    let unsigned = match dtype.bits() {
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        64 => DType::U64,
        _ => return Err(cx.unsupported_case(format!("the fingerprint of {dtype}"))),
    };
    if dtype == DType::Pred {
        return Ok(cx.b.convert(x, unsigned));
    }
    Ok(if dtype == unsigned { x } else { cx.b.unary(ScalarOp::BitcastConvert(unsigned), x) })
}

fn bucket_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(S64, cx.dims(0)?)
}

fn fingerprint_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    use super::symbols::{InferredDim, UnknownReason};
    let rows = match cx.ranked_dims(0)? {
        Some(dims) => dims.first().copied(),
        None => None,
    };
    let rows = rows.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Data));
    cx.one_output(TfType::Data(DType::U8), vec![rows, InferredDim::Known(8)])
}

/// Shape function of `StringJoin`: the inputs' shape; scalars are broadcast.
fn string_join_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut dims = super::fact::Dims::from_sizes(&[]);
    for arg in cx.args {
        dims = match (dims.as_ranked(), arg.dims.as_ranked()) {
            (_, Some([])) => dims,
            (Some([]), _) => arg.dims.clone(),
            _ => cx.merge_shapes(&dims, &arg.dims)?,
        };
    }
    cx.one_output(TfType::String, dims)
}
