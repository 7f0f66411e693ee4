//! Collective ops of `xla_ops.cc`, and `XlaReplicaId`.
use crate::diag::Result;
use crate::hlo::symbolic::{Dim, Op, Shape};
use crate::ops::collective::{ReplicaGroups, add_collective, group_mean, reduction_computation};
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::shape::{S32, like_first_input};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("XlaAllReduce", "input group_assignment -> output", all_reduce)
        .constant_inputs(&[1])
        .shape(like_first_input)
        .dtypes(NUMBERS),
    op("XlaReduceScatter", "input group_assignment scatter_dimension -> output", reduce_scatter)
        .constant_inputs(&[1, 2])
        .dtypes(NUMBERS),
    op("XlaReplicaId", "-> id", replica_id).shape(number),
];

const NUMBERS: &str = "f16, bf16, f32, s32, u32";

fn number(_cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![Fact::new(S32, Dims::from_sizes(&[]))])
}

/// Lowers `XlaAllReduce`. Graphs have replicas but no partitions, so that both modes are the same.
fn all_reduce(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let groups = ReplicaGroups::from_input(cx, 1)?;
    let (x, comp) = (cx.arg(0)?, reduction_computation(cx, "reduce_op")?);
    let shape = cx.b.shape(x).clone();
    let mut y = add_collective(cx, "all-reduce", None, &groups, x, Some(comp), shape);
    if cx.node.str("reduce_op") == Some("Mean") {
        y = group_mean(cx, y, &groups);
    }
    cx.one_output(y)
}

fn reduce_scatter(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let groups = ReplicaGroups::from_input(cx, 1)?;
    let (x, comp) = (cx.arg(0)?, reduction_computation(cx, "reduce_op")?);
    let mut dims = cx.b.dims(x).to_vec();
    let axis = cx.normalize_axis(cx.constant_int(2)?, dims.len())?;
    if !dims[axis].is_multiple_of(groups.size) {
        return Err(cx.shape_mismatch(format!("an axis of {} elements for {} replicas", dims[axis], groups.size)));
    }
    dims[axis] /= groups.size;
    let shape = Shape::array(cx.b.dtype(x), dims);
    let mut y = add_collective(cx, "reduce-scatter", Some(Dim::from(axis)), &groups, x, Some(comp), shape);
    if cx.node.str("reduce_op") == Some("Mean") {
        y = group_mean(cx, y, &groups);
    }
    cx.one_output(y)
}

fn replica_id(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let id = cx.b.push(Op::ReplicaId, &[], Shape::array(DType::U32, []));
    let id = cx.b.convert(id, DType::S32);
    cx.one_output(id)
}
