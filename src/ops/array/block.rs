//! Rearrangement of spatial blocks into the batch or the features, and back.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::hlo::symbolic::PadDim;
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};

/// Supported values of the attribute `data_format`, for messages.
const FORMATS: &str = "data_format NHWC, NCHW or NCHW_VECT_C";

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("SpaceToBatchND", "input block_shape paddings -> output", |cx| {
        let block = cx.constant_ints(1)?;
        space_to_batch(cx, &block, 2)
    })
    .shape(|cx| space_to_batch_shape(cx, 2))
    .constant_inputs(&[1, 2]),
    op("SpaceToBatch", "input paddings -> output", |cx| {
        let block = block_size(cx)?;
        space_to_batch(cx, &block, 1)
    })
    .shape(|cx| space_to_batch_shape(cx, 1))
    .constant_inputs(&[1]),
    op("BatchToSpaceND", "input block_shape crops -> output", |cx| {
        let block = cx.constant_ints(1)?;
        batch_to_space(cx, &block, 2)
    })
    .shape(|cx| batch_to_space_shape(cx, 2))
    .constant_inputs(&[1, 2]),
    op("BatchToSpace", "input crops -> output", |cx| {
        let block = block_size(cx)?;
        batch_to_space(cx, &block, 1)
    })
    .shape(|cx| batch_to_space_shape(cx, 1))
    .constant_inputs(&[1]),
    op("SpaceToDepth", "input -> output", |cx| depth(cx, true)).shape(|cx| depth_shape(cx, true)).dtypes(FORMATS),
    op("DepthToSpace", "input -> output", |cx| depth(cx, false)).shape(|cx| depth_shape(cx, false)).dtypes(FORMATS),
];

fn block_size(cx: &LowerCtx) -> Result<Vec<i64>> {
    let n = cx.require_attr(cx.node.int("block_size"), "block_size")?;
    Ok(vec![n, n])
}

/// Block sizes, and the pairs that input `at` lists; one of each per spatial dimension.
fn blocks(cx: &LowerCtx, block: &[i64], at: usize) -> Result<(Vec<Dim>, Vec<(Dim, Dim)>)> {
    let pairs = cx.constant_dims(at)?;
    let fits = pairs.len() == 2 * block.len()
        && cx.dims(0)?.len() > block.len()
        && block.iter().all(|&n| (1..=1 << 30).contains(&n))
        && pairs.iter().all(|&n| n >= 0 && n <= 1i64 << 34);
    if !fits {
        return Err(cx.shape_mismatch(format!("blocks {block:?} with {pairs:?} do not fit the rank of the input")));
    }
    Ok((block.iter().map(|&n| Dim::from(n)).collect(), pairs.chunks_exact(2).map(|p| (p[0], p[1])).collect()))
}

fn space_to_batch(cx: &mut LowerCtx, block: &[i64], at: usize) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let (block, pads) = blocks(cx, block, at)?;
    let m = block.len();
    let mut padding = vec![PadDim::default(); cx.b.rank(x)];
    for (i, &(low, high)) in pads.iter().enumerate() {
        padding[i + 1] = PadDim { low, high, interior: Dim::from(0) };
    }
    let zero = cx.b.scalar(cx.b.dtype(x), 0.0);
    let x = cx.b.pad(x, zero, &padding);
    let dims = cx.b.dims(x).to_vec();
    let mut split = vec![dims[0]];
    for i in 0..m {
        if !dims[i + 1].is_multiple_of(block[i]) {
            return Err(cx.shape_mismatch(format!(
                "{} elements do not divide into blocks of {}",
                dims[i + 1],
                block[i]
            )));
        }
        split.extend([dims[i + 1] / block[i], block[i]]);
    }
    split.extend(&dims[m + 1..]);
    let x = cx.b.reshape(x, &split);
    let perm: Vec<usize> =
        (0..m).map(|i| 2 * i + 2).chain([0]).chain((0..m).map(|i| 2 * i + 1)).chain(2 * m + 1..split.len()).collect();
    let x = cx.b.transpose(x, &perm);
    let batch = block.iter().try_fold(dims[0], |n, &b| n.checked_mul(b));
    let batch = batch.ok_or_else(|| cx.shape_mismatch("the batch overflows"))?;
    let mut out = vec![batch];
    out.extend((0..m).map(|i| dims[i + 1] / block[i]));
    out.extend(&dims[m + 1..]);
    let y = cx.b.reshape(x, &out);
    cx.one_output(y)
}

fn batch_to_space(cx: &mut LowerCtx, block: &[i64], at: usize) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let (block, crops) = blocks(cx, block, at)?;
    let (m, dims) = (block.len(), cx.b.dims(x).to_vec());
    let all = block.iter().try_fold(1u64, |n, &b| n.checked_mul(b.guarded_count())).filter(|&all| dims[0] % all == 0);
    let Some(all) = all else { return Err(cx.shape_mismatch(format!("a batch of {} for blocks {block:?}", dims[0]))) };
    let split = [&block[..], &[dims[0] / all], &dims[1..]].concat();
    let x = cx.b.reshape(x, &split);
    let perm: Vec<usize> =
        [m].into_iter().chain((0..m).flat_map(|i| [m + 1 + i, i])).chain(2 * m + 1..split.len()).collect();
    let x = cx.b.transpose(x, &perm);
    let mut out = vec![dims[0] / all];
    for i in 0..m {
        let n = dims[i + 1].checked_mul(block[i]).ok_or_else(|| cx.shape_mismatch("a size overflows"))?;
        out.push(n);
    }
    out.extend(&dims[m + 1..]);
    let x = cx.b.reshape(x, &out);
    let y = cropped(cx, x, &crops)?;
    cx.one_output(y)
}

/// `x` without the given numbers of elements at both ends of its spatial dimensions.
fn cropped(cx: &mut LowerCtx, mut x: InstId, crops: &[(Dim, Dim)]) -> Result<InstId> {
    for (i, &(low, high)) in crops.iter().enumerate() {
        let n = cx.b.dims(x)[i + 1];
        let limit = n.checked_sub(high).filter(|&l| l >= low);
        let Some(limit) = limit else {
            return Err(cx.shape_mismatch(format!("crops {low} and {high} of {n} elements")));
        };
        x = cx.b.slice_axis(x, i + 1, low, limit);
    }
    Ok(x)
}

/// Lowers `SpaceToDepth` (`to_depth`) or `DepthToSpace`: spatial blocks become features or the reverse. The position in a block
/// varies more slowly than the original features.
fn depth(cx: &mut LowerCtx, to_depth: bool) -> Result<Vec<Value>> {
    let (x, n) = (cx.arg(0)?, block_size(cx)?[0]);
    let Some(n) = Dim::size(n).ok().filter(|n| (2..=1 << 20).contains(n)) else {
        return Err(cx.shape_mismatch(format!("a block of {n}, where at least 2 is needed")));
    };
    let format = Format::of(cx)?;
    let x = format.features_last(cx, x)?;
    let [b, h, w, c] = cx.b.dims(x)[..] else { return Err(cx.shape_mismatch("four dimensions are needed")) };
    let (split, perm, out) = if to_depth {
        if h % n != 0 || w % n != 0 {
            return Err(cx.shape_mismatch(format!("{h} by {w} does not divide into blocks of {n}")));
        }
        (vec![b, h / n, n, w / n, n, c], [0, 1, 3, 2, 4, 5], [b, h / n, w / n, n * n * c])
    } else {
        if c % (n * n) != 0 {
            return Err(cx.shape_mismatch(format!("{c} features do not divide into blocks of {n} by {n}")));
        }
        (vec![b, h, w, n, n, c / (n * n)], [0, 1, 3, 2, 4, 5], [b, h * n, w * n, c / (n * n)])
    };
    let x = cx.b.reshape(x, &split);
    let x = cx.b.transpose(x, &perm);
    let x = cx.b.reshape(x, &out);
    let y = format.back(cx, x);
    cx.one_output(y)
}

/// Position of the feature dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Features in the last dimension.
    Nhwc,
    /// Features in the second dimension.
    Nchw,
    /// Features in the second dimension, in groups of four that are the last dimension.
    NchwVectC,
}

impl Format {
    fn of(cx: &LowerCtx) -> Result<Format> {
        match cx.node.str("data_format").unwrap_or("NHWC") {
            "NHWC" => Ok(Format::Nhwc),
            "NCHW" => Ok(Format::Nchw),
            "NCHW_VECT_C" => Ok(Format::NchwVectC),
            other => Err(cx.unsupported_case(format!("data_format {other}; {FORMATS} are supported"))),
        }
    }

    /// Array rearranged to `[batch, rows, columns, features]`.
    fn features_last(self, cx: &mut LowerCtx, x: InstId) -> Result<InstId> {
        match (self, cx.b.dims(x)) {
            (Format::Nhwc, [_, _, _, _]) => Ok(x),
            (Format::Nchw, [_, _, _, _]) => Ok(cx.b.transpose(x, &[0, 2, 3, 1])),
            (Format::NchwVectC, &[b, c, h, w, four]) if four == 4 => {
                let x = cx.b.transpose(x, &[0, 2, 3, 1, 4]);
                Ok(cx.b.reshape(x, &[b, h, w, 4 * c]))
            }
            (_, dims) => Err(cx.shape_mismatch(format!("an array {dims:?} is not of this data_format"))),
        }
    }

    /// Array rearranged from `[batch, rows, columns, features]` to this format; `NchwVectC` needs a multiple of four features.
    fn back(self, cx: &mut LowerCtx, x: InstId) -> InstId {
        match (self, cx.b.dims(x)) {
            (Format::Nhwc, _) => x,
            (Format::NchwVectC, &[b, h, w, c]) => {
                let x = cx.b.reshape(x, &dims![b, h, w, c / 4, 4]);
                cx.b.transpose(x, &[0, 3, 1, 2, 4])
            }
            (Format::Nchw | Format::NchwVectC, _) => cx.b.transpose(x, &[0, 3, 1, 2]),
        }
    }
}

/// Block sizes of a node; `None` if they are not known.
fn known_blocks(cx: &ShapeCtx, at: usize) -> Result<Option<Vec<u64>>> {
    let block = match cx.node.int("block_size") {
        Some(n) if at == 1 => Some(vec![n, n]),
        _ => cx.constant_ints(1),
    };
    let size = |&v: &i64| u64::try_from(v).ok().filter(|&v| v > 0);
    let known = block.map(|b| b.iter().map(size).collect::<Option<Vec<u64>>>());
    known.map(|b| b.ok_or_else(|| cx.shape_mismatch("a block that is not positive"))).transpose()
}

/// Sum of each of the `n` integer pairs in input `at`, where known.
fn pair_sums(cx: &mut ShapeCtx, at: usize, n: usize) -> Result<Vec<Option<InferredDim>>> {
    let pairs = cx.partial_ints(at).unwrap_or_else(|| vec![InferredInt::Unknown; 2 * n]);
    if pairs.len() != 2 * n {
        return Err(cx.shape_mismatch(format!("{} paddings for {n} blocks", pairs.len())));
    }
    let mut sums = Vec::with_capacity(n);
    for pair in pairs.chunks_exact(2) {
        sums.push(match (pair[0].as_dim(), pair[1].as_dim()) {
            (Some(low), Some(high)) => Some(cx.add(low, high)),
            _ => None,
        });
    }
    Ok(sums)
}

/// Dimensions of input 0, whose rank must exceed the number of block sizes; the inner error is an unknown shape, if the rank or
/// the blocks are not known.
fn blocked(cx: &mut ShapeCtx, block: &Option<Vec<u64>>) -> Result<Result<Vec<InferredDim>, Dims>> {
    let Some(dims) = cx.ranked_dims(0)? else { return Ok(Err(cx.unranked_from(0))) };
    match block {
        None => Ok(Err(cx.fresh_shape(dims.len(), UnknownReason::Value(1)))),
        Some(block) if dims.len() <= block.len() => {
            Err(cx.shape_mismatch(format!("{} blocks do not fit the rank", block.len())))
        }
        Some(_) => Ok(Ok(dims)),
    }
}

fn space_to_batch_shape(cx: &mut ShapeCtx, at: usize) -> Result<Vec<Fact>> {
    let block = known_blocks(cx, at)?;
    let mut dims = match blocked(cx, &block)? {
        Ok(dims) => dims,
        Err(open) => return cx.one_output_like(0, open),
    };
    let block = block.unwrap_or_default();
    for (i, pad) in pair_sums(cx, at, block.len())?.into_iter().enumerate() {
        dims[0] = cx.mul(dims[0], InferredDim::Known(block[i]));
        dims[i + 1] = match pad {
            Some(pad) => {
                let padded = cx.add(dims[i + 1], pad);
                cx.div_exact(padded, block[i])?
            }
            None => cx.fresh_dim(UnknownReason::Value(at)),
        };
    }
    cx.one_output_like(0, dims)
}

fn batch_to_space_shape(cx: &mut ShapeCtx, at: usize) -> Result<Vec<Fact>> {
    let block = known_blocks(cx, at)?;
    let mut dims = match blocked(cx, &block)? {
        Ok(dims) => dims,
        Err(open) => return cx.one_output_like(0, open),
    };
    let block = block.unwrap_or_default();
    for (i, crop) in pair_sums(cx, at, block.len())?.into_iter().enumerate() {
        dims[0] = cx.div_exact(dims[0], block[i])?;
        dims[i + 1] = match crop {
            Some(crop) => {
                let wide = cx.mul(dims[i + 1], InferredDim::Known(block[i]));
                cx.sub(wide, crop)
            }
            None => cx.fresh_dim(UnknownReason::Value(at)),
        };
    }
    cx.one_output_like(0, dims)
}

fn depth_shape(cx: &mut ShapeCtx, to_depth: bool) -> Result<Vec<Fact>> {
    let n = cx.node.int("block_size").and_then(|n| u64::try_from(n).ok()).filter(|n| (2..=1 << 20).contains(n));
    let n = n.ok_or_else(|| cx.shape_mismatch("a block of at least 2 is needed"))?;
    let (rank, rows, columns, features) = match cx.node.str("data_format").unwrap_or("NHWC") {
        "NHWC" => (4, 1, 2, 3),
        "NCHW" => (4, 2, 3, 1),
        "NCHW_VECT_C" => (5, 2, 3, 1),
        other => return Err(cx.shape_mismatch(format!("data_format {other}; {FORMATS} are supported"))),
    };
    let mut dims = cx.dims_of_rank(0, rank)?;
    for axis in [rows, columns] {
        dims[axis] = if to_depth { cx.div_exact(dims[axis], n)? } else { cx.mul(dims[axis], InferredDim::Known(n)) };
    }
    dims[features] =
        if to_depth { cx.mul(dims[features], InferredDim::Known(n * n)) } else { cx.div_exact(dims[features], n * n)? };
    cx.one_output_like(0, dims)
}
