//! Matrix products and einsum.
use super::unary::conj;
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::DotDims;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;
use std::collections::BTreeMap;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("MatMul", "a b -> product", |cx| matmul(cx, ["transpose_a", "transpose_b"], false))
        .shape(|cx| product_shape(cx, ["transpose_a", "transpose_b"]))
        .work(Work::MatrixProduct("transpose_a")),
    op("SparseMatMul", "a b -> product", |cx| matmul(cx, ["transpose_a", "transpose_b"], false))
        .shape(|cx| product_shape(cx, ["transpose_a", "transpose_b"]))
        .work(Work::MatrixProduct("transpose_a")),
    op("BatchMatMul", "x y -> output", |cx| matmul(cx, ["adj_x", "adj_y"], true))
        .shape(|cx| product_shape(cx, ["adj_x", "adj_y"]))
        .work(Work::MatrixProduct("adj_x")),
    op("BatchMatMulV2", "x y -> output", |cx| matmul(cx, ["adj_x", "adj_y"], true))
        .shape(|cx| product_shape(cx, ["adj_x", "adj_y"]))
        .work(Work::MatrixProduct("adj_x")),
    op("BatchMatMulV3", "x y -> output", |cx| matmul(cx, ["adj_x", "adj_y"], true))
        .shape(|cx| product_shape(cx, ["adj_x", "adj_y"]))
        .work(Work::MatrixProduct("adj_x")),
    op("XlaEinsum", "a b -> product", einsum).work(Work::Einsum),
    op("Einsum", "inputs* -> output", einsum).shape(einsum_shape).work(Work::Einsum),
];

/// Dot product of floats in f32 or a wider type, rounded to the operands' type at the end.
pub fn dot_in_f32(b: &mut Builder, x: InstId, y: InstId, dims: DotDims) -> InstId {
    super::special::compute_binary_in_f32(b, x, y, |b, x, y| b.dot(x, y, dims))
}

fn matmul(cx: &mut LowerCtx, flags: [&str; 2], adjoint: bool) -> Result<Vec<Value>> {
    let (mut x, mut y) = (cx.arg(0)?, cx.arg(1)?);
    let (tx, ty) = (cx.bool_attr(flags[0]), cx.bool_attr(flags[1]));
    if cx.b.rank(x) < 2 || cx.b.rank(y) < 2 {
        return Err(cx.shape_mismatch(format!("{} and {} are no matrices", cx.b.shape(x), cx.b.shape(y))));
    }
    if adjoint {
        x = if tx { conj(cx.b, x) } else { x };
        y = if ty { conj(cx.b, y) } else { y };
    }
    let out = match cx.node.tf_type("Tout").and_then(|t| t.dtype()) {
        Some(t) => t,
        None if &*cx.node.op == "SparseMatMul" => DType::F32,
        None => cx.b.dtype(x),
    };
    if out != cx.b.dtype(x) || cx.b.dtype(x) != cx.b.dtype(y) {
        (x, y) = (cx.b.convert(x, out), cx.b.convert(y, out));
    }
    let z = product(cx.b, x, y, tx, ty)
        .ok_or_else(|| Error::user(Code::ShapeMismatch, "the batch dimensions can't be broadcast together"))?;
    cx.one_output(z)
}

/// Matrix product over the last two dimensions, with the leading ones broadcast; `None` if these do not fit.
fn product(b: &mut Builder, x: InstId, y: InstId, tx: bool, ty: bool) -> Option<InstId> {
    let (xd, yd) = (b.dims(x).to_vec(), b.dims(y).to_vec());
    let (xb, yb) = (&xd[..xd.len() - 2], &yd[..yd.len() - 2]);
    let batch = Builder::broadcast_dims(xb, yb)?;
    let n = batch.len();
    let x = b.broadcast_to(x, &[&batch[..], &xd[xd.len() - 2..]].concat());
    let y = b.broadcast_to(y, &[&batch[..], &yd[yd.len() - 2..]].concat());
    let dims = DotDims {
        lhs_batch: (0..n).collect(),
        rhs_batch: (0..n).collect(),
        lhs_contracting: vec![if tx { n } else { n + 1 }],
        rhs_contracting: vec![if ty { n + 1 } else { n }],
    };
    Some(dot_in_f32(b, x, y, dims))
}

/// Operand of an einsum: its array and the label of each dimension.
struct Labelled {
    x: InstId,
    labels: Vec<char>,
}

/// Lowers `Einsum`: sums of products by an equation; dimensions that `...` stands for get labels of their own.
fn einsum(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let equation: String = match cx.node.str("equation") {
        Some(e) => e.chars().filter(|c| !c.is_whitespace()).collect(),
        None => return Err(Error::user(Code::BadAttr, "attribute `equation` is missing")),
    };
    let Some((left, right)) = equation.split_once("->") else {
        return Err(Error::user(Code::BadAttr, format!("`{equation}` has no arrow")));
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != cx.args.len() || cx.args.is_empty() || cx.args.len() > 2 {
        return Err(
            cx.unsupported_case(format!("`{equation}` with {} inputs; one or two are supported", cx.args.len()))
        );
    }
    let mut operands = Vec::new();
    let mut hidden: Vec<Dim> = vec![];
    for (i, term) in terms.iter().enumerate() {
        let x = cx.arg(i)?;
        let rank = cx.b.rank(x);
        let named = term.chars().filter(|c| c.is_alphabetic()).count();
        if named > rank || (!term.contains("...") && named != rank) {
            return Err(cx.shape_mismatch(format!("`{term}` does not fit {}", cx.b.shape(x))));
        }
        let count = rank - named;
        let at = term.find("...").unwrap_or(term.len());
        let dims = &cx.b.dims(x)[at.min(rank)..at.min(rank) + if term.contains("...") { count } else { 0 }];
        hidden = Builder::broadcast_dims(&hidden, dims)
            .ok_or_else(|| cx.shape_mismatch("the dimensions of `...` can't be broadcast together"))?;
        operands.push((x, *term, count));
    }
    let n = hidden.len();
    let label = |i: usize| char::from_u32(0xE000 + i as u32).unwrap_or('?');
    let spell = |term: &str, count: usize| -> Vec<char> {
        let dots: String = (n - count..n).map(label).collect();
        term.replace("...", &dots).chars().collect()
    };
    let want = spell(right, n);
    let mut list = Vec::new();
    for (x, term, count) in operands {
        let operand = Labelled { x, labels: spell(term, count) };
        list.push(diagonals(cx.b, operand));
    }
    let result = contract(cx, list, &want)?;
    let x = arrange(cx, result, &want)?;
    cx.one_output(x)
}

/// Diagonal of dimensions with the same label.
fn diagonals(b: &mut Builder, mut operand: Labelled) -> Labelled {
    let mut i = 0;
    while i < operand.labels.len() {
        let Some(j) = (i + 1..operand.labels.len()).find(|&j| operand.labels[j] == operand.labels[i]) else {
            i += 1;
            continue;
        };
        let dims = b.dims(operand.x).to_vec();
        let (p, q) = (b.iota(DType::S32, &dims, i), b.iota(DType::S32, &dims, j));
        let same = b.compare(crate::scalar::Direction::Eq, p, q);
        let zero = b.full_like(operand.x, 0.0);
        let kept = b.select(same, operand.x, zero);
        operand.x = super::reduce::reduce_axes(b, kept, ScalarOp::Add, 0.0, &[j]);
        operand.labels.remove(j);
    }
    operand
}

fn contract(cx: &mut LowerCtx, mut list: Vec<Labelled>, want: &[char]) -> Result<Labelled> {
    let second = if list.len() > 1 { list.pop() } else { None };
    let Some(first) = list.pop() else { return Err(cx.shape_mismatch("einsum needs an input")) };
    let Some(second) = second else { return Ok(sum_out(cx.b, first, |l| want.contains(&l))) };
    let first = sum_out(cx.b, first, |l| want.contains(&l) || second.labels.contains(&l));
    let second = sum_out(cx.b, second, |l| want.contains(&l) || first.labels.contains(&l));
    let (first, second) = match_ones(cx.b, first, second);
    let at = |o: &Labelled, l: char| o.labels.iter().position(|&m| m == l);
    let shared: Vec<char> = first.labels.iter().copied().filter(|&l| at(&second, l).is_some()).collect();
    let (batch, inner): (Vec<char>, Vec<char>) = shared.iter().partition(|l| want.contains(l));
    let axes = |o: &Labelled, ls: &[char]| ls.iter().filter_map(|&l| at(o, l)).collect::<Vec<_>>();
    let dims = DotDims {
        lhs_batch: axes(&first, &batch),
        rhs_batch: axes(&second, &batch),
        lhs_contracting: axes(&first, &inner),
        rhs_contracting: axes(&second, &inner),
    };
    let mut labels = batch.clone();
    labels.extend(first.labels.iter().filter(|l| !shared.contains(l)));
    labels.extend(second.labels.iter().filter(|l| !shared.contains(l)));
    let x = dot_in_f32(cx.b, first.x, second.x, dims);
    Ok(Labelled { x, labels })
}

/// Sum over the dimensions whose labels `keep` rejects.
fn sum_out(b: &mut Builder, operand: Labelled, keep: impl Fn(char) -> bool) -> Labelled {
    let gone: Vec<usize> = (0..operand.labels.len()).filter(|&i| !keep(operand.labels[i])).collect();
    let x = super::reduce::reduce_axes(b, operand.x, ScalarOp::Add, 0.0, &gone);
    Labelled { x, labels: operand.labels.into_iter().filter(|&l| keep(l)).collect() }
}

/// Drops dimensions of size 1 that the other operand has in a larger size, so that they are broadcast.
fn match_ones(b: &mut Builder, mut x: Labelled, mut y: Labelled) -> (Labelled, Labelled) {
    for label in x.labels.clone() {
        let (Some(i), Some(j)) = (x.labels.iter().position(|&l| l == label), y.labels.iter().position(|&l| l == label))
        else {
            continue;
        };
        let (n, m) = (b.dims(x.x)[i], b.dims(y.x)[j]);
        let (operand, axis) = match (n, m) {
            (n, m) if n == 1 && m != 1 => (&mut x, i),
            (n, m) if m == 1 && n != 1 => (&mut y, j),
            _ => continue,
        };
        let mut dims = b.dims(operand.x).to_vec();
        dims.remove(axis);
        operand.x = b.reshape(operand.x, &dims);
        operand.labels.remove(axis);
    }
    (x, y)
}

/// Dimensions in the order `want`. If a label occurs more than once, only elements with equal indices are set.
fn arrange(cx: &mut LowerCtx, result: Labelled, want: &[char]) -> Result<InstId> {
    let (mut order, mut firsts) = (Vec::with_capacity(want.len()), Vec::new());
    for (to, &label) in want.iter().enumerate() {
        let Some(at) = result.labels.iter().position(|&l| l == label) else {
            return Err(cx.unsupported_case("an einsum whose output has a label that no input has"));
        };
        if !order.contains(&at) {
            order.push(at);
            firsts.push(to);
        }
    }
    if order.len() != result.labels.len() {
        return Err(cx.unsupported_case("an einsum whose output lacks a label that is not summed"));
    }
    let b = &mut *cx.b;
    let x = b.transpose(result.x, &order);
    if firsts.len() == want.len() {
        return Ok(x);
    }
    let first = |to: usize| want.iter().position(|&l| l == want[to]).unwrap_or(to);
    let sizes = b.dims(x).to_vec();
    let size = |to: usize| firsts.iter().position(|&f| f == first(to)).map_or(Dim::from(1), |i| sizes[i]);
    let dims: Vec<Dim> = (0..want.len()).map(size).collect();
    let mut y = b.broadcast(x, &dims, &firsts);
    for to in (0..want.len()).filter(|&to| first(to) != to) {
        let (row, column) = (b.iota(DType::S32, &dims, first(to)), b.iota(DType::S32, &dims, to));
        let (on, zero) = (b.compare(Direction::Eq, row, column), b.full_like(y, 0.0));
        y = b.select(on, y, zero);
    }
    Ok(y)
}

/// Shape function of matrix products: `[batch.., m, k] x [batch.., k, n] -> [batch.., m, n]`, either side transposed by its
/// flag.
pub fn product_shape(cx: &mut ShapeCtx, flags: [&str; 2]) -> Result<Vec<Fact>> {
    let dtype = match cx.attr_type("Tout") {
        None if &*cx.node.op == "SparseMatMul" => Some(TfType::Data(DType::F32)),
        None => cx.dtype(0),
        told => told,
    };
    let plain = cx.node.op.ends_with("MatMul") && !cx.node.op.starts_with("Batch");
    let (x, y) = match (cx.ranked_dims(0)?, cx.ranked_dims(1)?) {
        (Some(x), Some(y)) => (x, y),
        _ if plain => (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 2)?),
        (None, _) => {
            let dims = cx.unranked_from(0);
            return cx.one_output(dtype, dims);
        }
        (_, None) => {
            let dims = cx.unranked_from(1);
            return cx.one_output(dtype, dims);
        }
    };
    let ([xb @ .., a, b], [yb @ .., c, d]) = (&x[..], &y[..]) else {
        return Err(cx.shape_mismatch("an input of a matrix product is no matrix"));
    };
    let (m, k) = if cx.bool_attr(flags[0]) { (*b, *a) } else { (*a, *b) };
    let (l, n) = if cx.bool_attr(flags[1]) { (*d, *c) } else { (*c, *d) };
    if cx.merge_dim(k, l).is_none() {
        return Err(cx.shape_mismatch(format!("{} and {} can't be multiplied", cx.dims(0)?, cx.dims(1)?)));
    }
    let batch = cx.broadcast(&Dims::ranked(xb), &Dims::ranked(yb))?;
    cx.one_output(dtype, [batch.as_ranked().unwrap_or(&[]), &[m, n]].concat())
}

/// Shape function of `Einsum`: sizes by label; dimensions that `...` stands for are broadcast.
fn einsum_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let equation: String = cx.node.str("equation").unwrap_or("").chars().filter(|c| !c.is_whitespace()).collect();
    let Some((left, right)) = equation.split_once("->") else {
        return Err(Error::user(Code::BadAttr, format!("`{equation}` has no arrow")));
    };
    let mut sizes: BTreeMap<char, InferredDim> = BTreeMap::new();
    let mut hidden = Dims::from_sizes(&[]);
    for (i, term) in left.split(',').enumerate() {
        let (before, after) = term.split_once("...").unwrap_or((term, ""));
        let named = before.len() + after.len();
        let (dims, middle) = match cx.ranked_dims(i)? {
            Some(dims) if dims.len() == named || (dims.len() > named && term.contains("...")) => {
                let end = dims.len() - after.len();
                ([&dims[..before.len()], &dims[end..]].concat(), Dims::ranked(&dims[before.len()..end]))
            }
            Some(_) => return Err(cx.shape_mismatch(format!("`{term}` does not fit {}", cx.dims(i)?))),
            None if term.contains("...") => {
                let open = cx.unranked_from(i);
                (cx.fresh_shape(named, UnknownReason::Value(i)).as_ranked().unwrap_or(&[]).to_vec(), open)
            }
            None => (cx.dims_of_rank(i, named)?, Dims::from_sizes(&[])),
        };
        hidden = cx.broadcast(&hidden, &middle)?;
        for (label, dim) in before.chars().chain(after.chars()).zip(dims) {
            let both = sizes.get(&label).map_or(Some(dim), |&known| cx.merge_dim(known, dim));
            let both = both.ok_or_else(|| cx.shape_mismatch(format!("`{label}` has two sizes")))?;
            sizes.insert(label, both);
        }
    }
    let dims: Dims = match (right.contains("..."), hidden.as_ranked()) {
        (true, None) => hidden,
        (_, middle) => {
            let (before, after) = right.split_once("...").unwrap_or((right, ""));
            let size = |c: char| sizes.get(&c).copied().ok_or_else(|| cx.shape_mismatch(format!("`{c}` has no size")));
            let middle = if right.contains("...") { middle.unwrap_or(&[]) } else { &[] };
            let mut out = before.chars().map(size).collect::<Result<Vec<InferredDim>>>()?;
            out.extend(middle);
            for c in after.chars() {
                out.push(size(c)?);
            }
            out.into()
        }
    };
    cx.one_output_like(0, dims)
}
