//! `CTCBeamSearchDecoder`: the most likely label sequences, by beam search over prefixes.
//!
//! Source: TensorFlow's `ctc_beam_search.h`, where prefixes are nodes of a tree, and the best `beam_width` of them its leaves.
//! Two properties of that implementation are kept: a leaf receives probability from its parent only while the parent is a leaf
//! too, and a child that falls out of the leaves within a step does not grow in that step if its parent, which grows before it,
//! leads to it. Here a leaf stores the numbers of all nodes on its path, so that leaves through the same node recognize it.
//! Nodes that are on no leaf's path are forgotten, as they are never needed.
use super::ctc::{compact_rows, input_dims};
use super::ctc_step::beam_search_step;
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::counted_loop::counted_loop;
use crate::ops::fact::Fact;
use crate::ops::math::special::compare_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::S64;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op(
    "CTCBeamSearchDecoder",
    "inputs sequence_length -> decoded_indices* decoded_values* decoded_shape* log_probability",
    decode,
)
.shape(decode_shape)
.dtypes("f32, f64")];

/// Sizes of a beam search.
#[derive(Clone, Copy)]
pub(super) struct BeamSizes {
    pub(super) batch: Dim,
    pub(super) time: Dim,
    pub(super) classes: Dim,
    /// Number of leaves, the beam width.
    pub(super) width: Dim,
}

/// Leaves of the beam search, best first: arrays `[batch, width]`, except for the last two.
#[derive(Clone, Copy)]
pub(super) struct BeamLeaves {
    /// Log-probability of the prefix; -inf where there are fewer leaves.
    pub(super) total: InstId,
    /// Log-probability of the paths that end in a blank.
    pub(super) blank: InstId,
    /// Log-probability of the paths that end in the last label.
    pub(super) label: InstId,
    /// `s32`: last label, -1 for the root.
    pub(super) last: InstId,
    /// `s32`: number of labels.
    pub(super) length: InstId,
    /// `s32`: number of the tree node.
    pub(super) node: InstId,
    /// `s32`: number of the parent node, -2 for the root.
    pub(super) parent: InstId,
    /// `s32[batch, time, width]`: labels, followed by -1.
    pub(super) labels: InstId,
    /// `s32[batch, time + 1, width]`: nodes on the path from the root, followed by -1.
    pub(super) way: InstId,
}

impl BeamLeaves {
    const PARTS: usize = 9;
    fn parts(&self) -> [InstId; Self::PARTS] {
        let BeamLeaves { total, blank, label, last, length, node, parent, labels, way } = *self;
        [total, blank, label, last, length, node, parent, labels, way]
    }
    fn from_parts(parts: &[InstId]) -> Option<BeamLeaves> {
        let &[total, blank, label, last, length, node, parent, labels, way] = parts else { return None };
        Some(BeamLeaves { total, blank, label, last, length, node, parent, labels, way })
    }
}

fn decode(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, lengths) = (cx.arg(0)?, cx.arg(1)?);
    let [time, batch, classes] = input_dims(cx, x, lengths)?;
    let number = |name: &str| cx.require_attr(cx.node.int(name), name);
    let (width, paths) = (number("beam_width")?, number("top_paths")?);
    if !(1..=1 << 16).contains(&width) || !(1..=width).contains(&paths) {
        return Err(Error::user(Code::BadAttr, format!("top_paths is {paths} and beam_width {width}")));
    }
    let size = BeamSizes { batch, time, classes, width: Dim::from(width) };
    let start = root(cx.b, size, cx.b.dtype(x));
    let state = [&[x, lengths], &start.parts()[..]].concat();
    let end = counted_loop(cx.b, "ctc_beam_search", time, &state, |b, t, parts| {
        let Some(leaves) = BeamLeaves::from_parts(&parts[2..]) else { return parts };
        let next = beam_search_step(b, size, &leaves, parts[0], t);
        let is_within = b.compare(Direction::Lt, t, parts[1]);
        let mut all = vec![parts[0], parts[1]];
        for (before, now) in leaves.parts().into_iter().zip(next.parts()) {
            let dims = b.dims(now).to_vec();
            let is_within = b.broadcast(is_within, &dims, &[0]);
            all.push(b.select(is_within, now, before));
        }
        all
    });
    let Some(leaves) = BeamLeaves::from_parts(&end[2..]) else {
        return Err(Error::internal("lower", "parts of a search"));
    };
    results(cx, size, &leaves, Dim::from(paths))
}

/// Initial state: a single leaf, the root, of probability 1.
fn root(b: &mut Builder, s: BeamSizes, dtype: DType) -> BeamLeaves {
    let dims = [s.batch, s.width];
    let number = b.iota(DType::S32, &dims, 1);
    let is_root = compare_scalar(b, Direction::Eq, number, 0.0);
    let (one, none) = (b.full(dtype, &dims, 0.0), b.full(dtype, &dims, f64::NEG_INFINITY));
    let certain = b.select(is_root, one, none);
    let [zeros, minus_one, minus_two] = [0.0, -1.0, -2.0].map(|v| b.full(DType::S32, &dims, v));
    let node = b.select(is_root, zeros, minus_one);
    let labels = b.full(DType::S32, &[s.batch, s.time, s.width], -1.0);
    let behind = b.full(DType::S32, &[s.batch, s.time, s.width], -1.0);
    let first = b.reshape(node, &dims![s.batch, 1, s.width]);
    let way = b.concatenate(&[first, behind], 1);
    BeamLeaves {
        total: certain,
        blank: certain,
        label: none,
        last: minus_one,
        length: zeros,
        node,
        parent: minus_two,
        labels,
        way,
    }
}

/// Outputs: the labels of the best paths as sparse tensors, and their log-probabilities.
fn results(cx: &mut LowerCtx, s: BeamSizes, leaves: &BeamLeaves, paths: Dim) -> Result<Vec<Value>> {
    let merges = cx.bool_attr("merge_repeated");
    let (mut indices, mut values, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    for path in 0..paths.guarded_count() {
        let labels = cx.b.slice_axis(leaves.labels, 2, Dim::from(path), Dim::from(path + 1));
        let labels = cx.b.reshape(labels, &[s.batch, s.time]);
        let mut kept = compare_scalar(cx.b, Direction::Ge, labels, 0.0);
        if merges {
            let none = cx.b.full(DType::S32, &dims![s.batch, 1], -1.0);
            let before = cx.b.slice_axis(labels, 1, Dim::from(0), s.time - 1);
            let before = cx.b.concatenate(&[none, before], 1);
            let is_other = cx.b.compare(Direction::Ne, labels, before);
            kept = cx.b.binary(ScalarOp::And, kept, is_other);
        }
        let [at, value, shape] = compact_rows(cx, kept, labels)?;
        indices.push(at);
        values.push(value);
        shapes.push(shape);
    }
    let total = cx.b.slice_axis(leaves.total, 1, Dim::from(0), paths);
    let all = indices.into_iter().chain(values).chain(shapes).chain([total]);
    Ok(all.map(Value::Array).collect())
}

fn decode_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims_of_rank(0, 3)?;
    let paths = u64::try_from(cx.node.int("top_paths").unwrap_or(0)).unwrap_or(0).min(1 << 16);
    let sizes: Vec<InferredDim> = (0..paths).map(|_| cx.fresh_dim(UnknownReason::Data)).collect();
    let two = InferredDim::Known(2);
    let mut out: Vec<Fact> = sizes.iter().map(|&n| Fact::new(S64, vec![n, two].into())).collect();
    out.extend(sizes.iter().map(|&n| Fact::new(S64, vec![n].into())));
    out.extend(sizes.iter().map(|_| Fact::new(S64, vec![two].into())));
    out.push(Fact::new(cx.dtype(0), vec![dims[1], InferredDim::Known(paths)].into()));
    Ok(out)
}
