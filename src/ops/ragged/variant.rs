//! RaggedTensors in variants, as `tf.map_fn` passes rows to a loop.
//!
//! A vector of variants, one per row, and a list of them have the same representation: the splits and values of all rows.
use crate::diag::Result;
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::shape::dims_constant;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::value::RaggedValue;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("RaggedTensorToVariant",   "rt_nested_splits* rt_dense_values -> encoded_ragged", to_variant).shape(to_variant_shape),
    op("RaggedTensorFromVariant", "encoded_ragged -> output_nested_splits* output_dense_values", from_variant).shape(from_variant_shape),
];

fn to_variant(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let levels = cx.args.len().saturating_sub(1);
    let splits = (0..levels).map(|level| cx.arg(level)).collect::<Result<Vec<_>>>()?;
    let (values, is_rows) = (cx.arg(levels)?, cx.bool_attr("batched_input"));
    if let Some(&no_vector) = splits.iter().find(|&&splits| super::row_count(cx, splits).is_none()) {
        return Err(cx.shape_mismatch(format!("splits of {}", cx.b.shape(no_vector))));
    }
    if (is_rows || levels > 0) && cx.b.rank(values) == 0 {
        return Err(cx.shape_mismatch("a scalar has no rows"));
    }
    Ok(vec![Value::Ragged(RaggedValue { splits, values, is_rows })])
}

fn from_variant(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let Some(Value::Ragged(ragged)) = cx.args.first().cloned() else {
        return Err(cx.unsupported_case("a variant that holds no RaggedTensor of one node"));
    };
    let levels = cx.node.int("output_ragged_rank").unwrap_or(0);
    if usize::try_from(levels).ok() != Some(ragged.splits.len()) {
        let told = format!("{levels} levels of rows are asked of {}", ragged.splits.len());
        return Err(cx.shape_mismatch(told));
    }
    let dtype = match cx.node.tf_type("Tsplits") {
        Some(TfType::Data(dtype)) => dtype,
        _ => DType::S64,
    };
    let mut out: Vec<Value> = ragged.splits.iter().map(|&s| Value::Array(cx.b.convert(s, dtype))).collect();
    out.push(Value::Array(ragged.values));
    Ok(out)
}

impl RaggedValue {
    /// Number of rows, if the value is a vector of rows.
    pub fn row_count(&self, cx: &LowerCtx) -> Option<Dim> {
        let rows = match self.splits.first() {
            Some(&splits) => super::row_count(cx, splits),
            None => cx.b.dims(self.values).first().copied(),
        };
        rows.filter(|_| self.is_rows)
    }

    /// Row `index`, a scalar: its inner levels and its values, whose number is data-dependent.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::bounded_size`].
    pub fn row(&self, cx: &mut LowerCtx, index: InstId) -> Result<RaggedValue> {
        let index = cx.b.convert(index, DType::S32);
        let index = cx.b.reshape(index, &dims![1]);
        let one = cx.b.full(DType::S32, &dims![1], 1.0);
        let behind = cx.b.add(index, one);
        let (mut begin, mut end) = (index, behind);
        let mut splits = Vec::with_capacity(self.splits.len());
        for (level, &all) in self.splits.iter().enumerate() {
            let all = cx.b.convert(all, DType::S32);
            if level > 0 {
                let rows = cx.b.dims(all)[0].saturating_sub(1);
                let places = between(cx, begin, end, rows, Dim::from(1))?;
                let own = gather_along_axis(cx, all, places, 0, 0)?;
                let first = gather_along_axis(cx, all, begin, 0, 0)?;
                let dims = cx.b.dims(own).to_vec();
                let first = cx.b.broadcast_to(first, &dims);
                splits.push(cx.b.sub(own, first));
            }
            begin = gather_along_axis(cx, all, begin, 0, 0)?;
            end = gather_along_axis(cx, all, end, 0, 0)?;
        }
        let count = cx.b.dims(self.values).first().copied().unwrap_or(Dim::from(0));
        let values = if self.splits.is_empty() {
            let row = gather_along_axis(cx, self.values, index, 0, 0)?;
            let dims = cx.b.dims(row)[1..].to_vec();
            cx.b.reshape(row, &dims)
        } else {
            let places = between(cx, begin, end, count, Dim::from(0))?;
            gather_along_axis(cx, self.values, places, 0, 0)?
        };
        Ok(RaggedValue { splits, values, is_rows: false })
    }

    /// Vector of RaggedTensors, one per row.
    ///
    /// # Errors
    /// `ShapeMismatch` if their levels or types differ.
    pub fn from_rows(cx: &mut LowerCtx, rows: &[RaggedValue]) -> Result<RaggedValue> {
        let levels = rows.first().map_or(0, |row| row.splits.len());
        let Some(first) = rows.first().filter(|_| rows.iter().all(|row| row.splits.len() == levels)) else {
            return Err(cx.shape_mismatch("rows of different levels, or none, in one RaggedTensor"));
        };
        if rows.iter().any(|row| {
            let (own, like) = (cx.b.shape(row.values).as_array(), cx.b.shape(first.values).as_array());
            own.map(|a| (a.dtype, a.rank())) != like.map(|a| (a.dtype, a.rank())) || own.is_none_or(|a| a.rank() == 0)
        }) {
            return Err(cx.shape_mismatch("values of different types in one RaggedTensor"));
        }
        let mut splits = Vec::with_capacity(levels + 1);
        for level in 0..=levels {
            let mut at = Dim::from(0);
            let mut parts = vec![cx.b.constant(Tensor::of(&[1], &[0i64]))];
            for row in rows {
                let count = match row.splits.get(level) {
                    Some(&rows) => cx.b.dims(rows)[0].saturating_sub(1),
                    None => cx.b.dims(row.values)[0],
                };
                parts.push(match level.checked_sub(1) {
                    None => dims_constant(cx, DType::S64, &dims![1], &[at + count])?,
                    Some(outer) => ends(cx, row.splits[outer], at)?,
                });
                at += count;
            }
            splits.push(cx.b.concatenate(&parts, 0));
        }
        let values: Vec<InstId> = rows.iter().map(|row| row.values).collect();
        Ok(RaggedValue { splits, values: cx.b.concatenate(&values, 0), is_rows: true })
    }
}

/// Row ends, shifted by the number `before` of values in front.
fn ends(cx: &mut LowerCtx, splits: InstId, before: Dim) -> Result<InstId> {
    let splits = cx.b.convert(splits, DType::S64);
    let n = cx.b.dims(splits)[0];
    let ends = cx.b.slice_axis(splits, 0, Dim::from(1), n);
    let before = dims_constant(cx, DType::S64, &[], &[before])?;
    let before = cx.b.broadcast(before, &[n.saturating_sub(1)], &[]);
    Ok(cx.b.add(ends, before))
}

/// Integers `begin..end`, followed by the next `more` integers; `end - begin` is at most `most`.
fn between(cx: &mut LowerCtx, begin: InstId, end: InstId, most: Dim, more: Dim) -> Result<InstId> {
    let count = cx.b.sub(end, begin);
    let count = cx.b.reshape(count, &[]);
    let count = cx.bounded_size(count, most, "the row")? + more;
    let places = cx.b.iota(DType::S32, &[count], 0);
    let begin = cx.b.broadcast_to(begin, &[count]);
    Ok(cx.b.add(places, begin))
}

fn to_variant_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let levels = cx.args.len().saturating_sub(1);
    let dims = match cx.ranked_dims(0)?.as_deref() {
        _ if !cx.bool_attr("batched_input") => vec![],
        Some([first, ..]) if levels == 0 => vec![*first],
        Some([first]) => vec![cx.sub(*first, InferredDim::Known(1))],
        _ => vec![cx.fresh_dim(UnknownReason::Value(0))],
    };
    cx.one_output(TfType::Variant, dims)
}

/// Shape function of `RaggedTensorFromVariant`: splits and values, whose numbers depend on the rows that the variant holds.
fn from_variant_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let levels = usize::try_from(cx.node.int("output_ragged_rank").unwrap_or(0)).unwrap_or(0).min(64);
    let splits = cx.attr_type("Tsplits").or(Some(TfType::Data(DType::S64)));
    let mut out = Vec::with_capacity(levels + 1);
    for _ in 0..levels {
        let rows = cx.fresh_dim(UnknownReason::Data);
        out.push(Fact::new(splits, vec![rows].into()));
    }
    let values = cx.unranked(UnknownReason::Data);
    out.push(Fact::new(cx.attr_type("Tvalues"), values));
    Ok(out)
}
