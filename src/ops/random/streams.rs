//! Random number streams for elements that need a varying number of draws; each element has a stream of its own.
//!
//! As in TensorFlow's CPU kernels, elements are those of `[samples, parameters]`, numbered parameter by parameter, and the
//! stream of each begins a fixed number of four-word blocks behind that of the previous one. All numbers are f64, two to a
//! block, whose second one comes first.
use super::truncated_normal::add_to_counter;
use super::{Generator, rounds, split, unit_f64};
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::expr::ArrayExpr;
use crate::ops::{LowerCtx, Value};
use crate::tensor::DType;

/// Blocks that TensorFlow reserves for an element whose number of draws is unbounded.
pub(super) const BLOCKS: f64 = 256.0;

/// Positions of the streams of a result: low and high word of each counter, and the keys, all u64.
pub(super) type StreamPositions<T> = [T; 3];

/// Sizes `[samples, parameters]` of a result of sizes `dims`, whose trailing dimensions are those of the parameters, `of`.
pub(super) fn sample_dims(cx: &LowerCtx, dims: &[Dim], of: &[Dim]) -> Result<[Dim; 2]> {
    let Some(outer) = dims.len().checked_sub(of.len()).filter(|&n| dims[n..] == *of) else {
        return Err(
            cx.shape_mismatch(format!("samples of {dims:?}, which must end with the sizes of the parameters, {of:?}"))
        );
    };
    Ok([dims[..outer].iter().product(), of.iter().product()])
}

/// Parameters as f64, repeated for each sample.
pub(super) fn repeat_parameters(b: &mut Builder, x: InstId, sizes: [Dim; 2]) -> InstId {
    let flat = b.reshape(x, &[sizes[1]]);
    let wide = b.convert(flat, DType::F64);
    b.broadcast(wide, &sizes, &[1])
}

/// Lowers a draw of one element from each stream, for a result of type `dtype` and sizes `dims`. `draw` gets the streams and
/// the parameters of input `input` as f64, and returns f64.
pub(super) fn draw_per_parameters(
    cx: &mut LowerCtx,
    generator: &Generator,
    dtype: DType,
    dims: &[Dim],
    input: usize,
    draw: impl FnOnce(&mut Builder, StreamPositions<InstId>, InstId) -> Result<InstId>,
) -> Result<Vec<Value>> {
    let sizes = sample_dims(cx, dims, &cx.dims(input)?)?;
    if crate::symbolic::has_zero(&sizes) {
        let none = cx.b.full(dtype, dims, 0.0);
        return cx.one_output(none);
    }
    let given = cx.arg(input)?;
    let given = repeat_parameters(cx.b, given, sizes);
    let blocks = cx.b.scalar(DType::U64, BLOCKS);
    let start = initial_streams(cx.b, generator, sizes, blocks);
    let y = draw(cx.b, start, given)?;
    let y = convert_result(cx.b, y, dtype);
    let y = cx.b.reshape(y, dims);
    cx.one_output(y)
}

/// Initial streams of all elements, `blocks` apart (a u64 scalar or array).
pub(super) fn initial_streams(
    b: &mut Builder,
    generator: &Generator,
    sizes: [Dim; 2],
    blocks: InstId,
) -> StreamPositions<InstId> {
    let (sample, parameter) = (b.iota(DType::U64, &sizes, 0), b.iota(DType::U64, &sizes, 1));
    let each = b.full_like(parameter, sizes[0]);
    let before = b.mul(parameter, each);
    let number = b.add(before, sample);
    let blocks = b.broadcast_to(blocks, &sizes);
    let by = b.mul(number, blocks);
    let [low, high, key] =
        [generator.counter[0], generator.counter[1], generator.key].map(|x| b.broadcast(x, &sizes, &[]));
    let [low, high] = add_to_counter(b, [low, high], by);
    [low, high, key]
}

/// StreamPositions advanced by `by` blocks.
pub(super) fn advance<'s, 'b>(
    [low, high, key]: StreamPositions<ArrayExpr<'s, 'b>>,
    by: ArrayExpr<'s, 'b>,
) -> StreamPositions<ArrayExpr<'s, 'b>> {
    let by = by.convert(DType::U64);
    let [low, high] = low.build_all(|b| add_to_counter(b, [low.id, high.id], by.id));
    [low, high, key]
}

/// Two uniform f64 numbers from the next block of each stream, in the order of its words.
pub(super) fn uniform_doubles<'s, 'b>([low, high, key]: StreamPositions<ArrayExpr<'s, 'b>>) -> [ArrayExpr<'s, 'b>; 2] {
    low.build_all(|b| {
        let ([c0, c1], [c2, c3], key) = (split(b, low.id), split(b, high.id), split(b, key.id));
        let words = rounds(b, [c0, c1, c2, c3], key);
        [unit_f64(b, words[0], words[1]), unit_f64(b, words[2], words[3])]
    })
}

/// Converts f64 to the type of the result; narrow floats are rounded from f32, as in TensorFlow.
pub(super) fn convert_result(b: &mut Builder, x: InstId, dtype: DType) -> InstId {
    let narrow = dtype.is_float() && dtype.bits() < 32;
    let x = if narrow { b.convert(x, DType::F32) } else { x };
    b.convert(x, dtype)
}

/// Rejects generators other than Philox, the only one that TensorFlow's kernels of these distributions support.
pub(super) fn require_philox(cx: &LowerCtx, generator: &Generator) -> Result<()> {
    match generator.algorithm {
        super::Algorithm::Philox => Ok(()),
        super::Algorithm::ThreeFry => {
            Err(cx.unsupported_case(format!("{} on ThreeFry; Philox is supported", cx.node.op)))
        }
    }
}

/// Largest number of a type that can be drawn.
pub(super) fn largest_drawable(dtype: DType) -> Result<f64> {
    Ok(match dtype {
        DType::F16 => 65504.0,
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        DType::S32 => f64::from(i32::MAX),
        DType::S64 => i64::MAX as f64,
        other => return Err(Error::user(Code::UnsupportedCase, format!("random numbers of {other}"))),
    })
}
