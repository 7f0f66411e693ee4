//! Ops that are never compiled but have useful output shapes: feeds, variables, control flow of TensorFlow 1, and ops whose
//! output sizes depend on the data.
use super::fact::{Dims, Fact};
use super::join::Join;
use super::shape::{PRED, S32, S64, forward_first_input, no_outputs};
use super::shape_ctx::{ShapeCtx, ShapeFn};
use super::symbols::{InferredDim, UnknownReason};
use crate::diag::Result;
use crate::graph::{Attr, TfType};
use std::collections::HashSet;

/// Definition of an op that has no lowering.
pub struct HostOp {
    /// Name of the op in TensorFlow.
    pub name: &'static str,
    /// Names of inputs and outputs, as in [`super::OpLowering`].
    pub signature: &'static str,
    /// Reason why the op has no lowering.
    pub role: HostOpRole,
    /// Shape function of the op.
    pub shape: ShapeFn,
}

/// Kind of an op without a lowering, by its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOpRole {
    /// Receives its value from outside: a feed or a function argument.
    Fed,
    /// Marks a result of a function.
    Returned,
    /// Control flow of TensorFlow 1, which `prepare` turns into functions.
    Flow,
    /// Saves variables to a checkpoint or restores them.
    Saves,
    /// Sends a value to another device, receives one, or stages values for later.
    Sends,
    /// Handles strings, prints, or ends the program.
    Host,
}

impl HostOpRole {
    /// Whether the op is at the boundary of a graph: it computes nothing and carries no value from one op to another.
    pub fn is_boundary(self) -> bool {
        match self {
            HostOpRole::Fed | HostOpRole::Returned | HostOpRole::Saves => true,
            HostOpRole::Flow | HostOpRole::Sends | HostOpRole::Host => false,
        }
    }
    /// Whether the op marks where values enter or leave the graph.
    pub fn is_structural(self) -> bool {
        matches!(self, HostOpRole::Fed | HostOpRole::Returned)
    }
}

const fn host(name: &'static str, signature: &'static str, role: HostOpRole, shape: ShapeFn) -> HostOp {
    HostOp { name, signature, role, shape }
}

/// Ops that are never compiled, sorted by name.
pub const ROWS: &[HostOp] = &[
    host("Abort", "->", HostOpRole::Host, no_outputs),
    host("Enter", "data -> output", HostOpRole::Flow, forward_first_input),
    host("Exit", "data -> output", HostOpRole::Flow, forward_first_input),
    host("InitializeTableFromTextFileV2", "table_handle filename ->", HostOpRole::Host, no_outputs),
    host("LoopCond", "input -> output", HostOpRole::Flow, |cx| cx.one_output(PRED, vec![])),
    host("Merge", "inputs* -> output value_index", HostOpRole::Flow, merge),
    host("MergeV2Checkpoints", "checkpoint_prefixes destination_prefix ->", HostOpRole::Saves, no_outputs),
    host("NextIteration", "data -> output", HostOpRole::Flow, forward_first_input),
    host("Placeholder", "-> output", HostOpRole::Fed, placeholder),
    host("PlaceholderV2", "-> output", HostOpRole::Fed, placeholder),
    host("PrintV2", "input ->", HostOpRole::Host, no_outputs),
    host("RefEnter", "data -> output", HostOpRole::Flow, forward_first_input),
    host("RefExit", "data -> output", HostOpRole::Flow, forward_first_input),
    host("RefMerge", "inputs* -> output value_index", HostOpRole::Flow, merge),
    host("RefNextIteration", "data -> output", HostOpRole::Flow, forward_first_input),
    host("RefSwitch", "data pred -> output_false output_true", HostOpRole::Flow, switch),
    host("RestoreV2", "prefix tensor_names shape_and_slices -> tensors*", HostOpRole::Saves, restore),
    host("Save", "filename tensor_names data* ->", HostOpRole::Saves, no_outputs),
    host("SaveV2", "prefix tensor_names shape_and_slices tensors* ->", HostOpRole::Saves, no_outputs),
    host("ShardedFilename", "basename shard num_shards -> filename", HostOpRole::Saves, |cx| {
        cx.one_output(TfType::String, vec![])
    }),
    host("Stage", "values* ->", HostOpRole::Sends, no_outputs),
    host("Switch", "data pred -> output_false output_true", HostOpRole::Flow, switch),
    host("Unstage", "-> values*", HostOpRole::Sends, restore),
    host("_Arg", "-> output", HostOpRole::Fed, argument),
    host("_HostRecv", "-> tensor", HostOpRole::Sends, received),
    host("_HostSend", "tensor ->", HostOpRole::Sends, no_outputs),
    host("_Recv", "-> tensor", HostOpRole::Sends, received),
    host("_Retval", "input ->", HostOpRole::Returned, no_outputs),
    host("_Send", "tensor ->", HostOpRole::Sends, no_outputs),
];

/// Definition of an op that is never compiled.
pub fn find_host_op(op: &str) -> Option<&'static HostOp> {
    ROWS.binary_search_by_key(&op, |r| r.name).ok().map(|i| &ROWS[i])
}

fn placeholder(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("shape") {
        Some(Attr::Shape(shape)) => cx.attr_shape(&shape.clone()),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    cx.one_output_typed_by("dtype", dims)
}

fn argument(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("_output_shapes") {
        Some(Attr::Shapes(shapes)) if shapes.len() == 1 => cx.attr_shape(&shapes[0].clone()),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    cx.one_output_typed_by("T", dims)
}

fn switch(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let data = cx.arg(0)?.clone();
    let taken = cx.args.get(1).and_then(Fact::as_tensor).filter(|t| t.dims.is_empty()).and_then(|t| t.get_i64(0));
    let side = |is_true: bool| Fact { dead: data.dead || taken.is_some_and(|t| (t != 0) != is_true), ..data.clone() };
    Ok(vec![side(false), side(true)])
}

/// Shape function of `Merge`: facts that hold for every input that is computed.
fn merge(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let first = cx.args.iter().position(|arg| !arg.dead).unwrap_or(0);
    let mut fact = cx.arg(first)?.clone();
    let mut made = HashSet::new();
    for arg in cx.args.iter().skip(first + 1).filter(|arg| !arg.dead) {
        let mut join = Join { symbols: cx.symbols, site: cx.site, made: &mut made };
        fact = Fact { dtype: fact.dtype.or(arg.dtype), ..join.join_facts(&fact, arg) };
    }
    fact.dtype = fact.dtype.or(cx.attr_type("T"));
    Ok(vec![fact, Fact::new(S32, Dims::from_sizes(&[]))])
}

/// Shape function of restore ops: tensors of the types in attribute `dtypes`, of unknown shape.
fn restore(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let Some(Attr::Types(types)) = cx.node.attr("dtypes") else { return Ok(vec![]) };
    let open = |cx: &mut ShapeCtx, t: &TfType| Fact::new(Some(t.storage_type()), cx.unranked(UnknownReason::Data));
    Ok(types.to_vec().iter().map(|t| open(cx, t)).collect())
}

/// Shape function of ops that receive from another device: the declared type, of any shape.
fn received(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.unranked(UnknownReason::Data);
    cx.one_output_typed_by("tensor_type", dims)
}

/// Shape function of ops that fill empty rows of a sparse matrix: the entries of the input, and one for each empty row.
///
/// # Errors
/// Errors of [`ShapeCtx`].
pub fn sparse_fill_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (indices, n) = (cx.dims_of_rank(0, 2)?, cx.fresh_dim(UnknownReason::Data));
    let rows = match cx.partial_ints(2).as_deref() {
        Some([rows, ..]) => rows.as_dim(),
        _ => None,
    };
    let rows = rows.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(2)));
    Ok(vec![
        Fact::new(S64, vec![n, indices[1]].into()),
        Fact::new(cx.dtype(1), vec![n].into()),
        Fact::new(PRED, vec![rows].into()),
        Fact::new(S64, vec![indices[0]].into()),
    ])
}

/// Shape function of `SparseReshape`: indices of the new rank, and the new shape.
///
/// # Errors
/// Errors of [`ShapeCtx`].
pub fn sparse_reshape_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (indices, rank) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(2, 1)?);
    Ok(vec![Fact::new(S64, vec![indices[0], rank[0]].into()), Fact::new(S64, rank.into())])
}

/// Shape function of `Unique`: the distinct values, for each element the position of its value among them, and with `counts`
/// the number of occurrences of each.
///
/// # Errors
/// Errors of [`ShapeCtx`].
pub fn unique_shape(cx: &mut ShapeCtx, counts: bool) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let index = cx.attr_type("out_idx");
    let flat = cx.args.len() == 1 || cx.constant_ints(1).is_some_and(|axes| axes.is_empty());
    let x = cx.ranked_dims(0)?;
    let (values, length) = match (x, cx.constant_ints(1).as_deref()) {
        (Some(dims), _) if flat && dims.len() == 1 => (vec![n].into(), dims[0]),
        (Some(mut dims), Some(&[axis])) => {
            let axis = cx.normalize_axis(axis, dims.len())?;
            let length = std::mem::replace(&mut dims[axis], n);
            (dims.into(), length)
        }
        _ => (cx.unranked_from(0), cx.fresh_dim(UnknownReason::Data)),
    };
    let mut out = vec![Fact::new(cx.dtype(0), values), Fact::new(index, vec![length].into())];
    if counts {
        out.push(Fact::new(index, vec![n].into()));
    }
    Ok(out)
}

/// Shape function of `Where`: positions of the nonzero elements, one index per dimension; their number depends on the data.
///
/// # Errors
/// Errors of [`ShapeCtx`].
pub fn where_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let rank = match cx.ranked_dims(0)? {
        Some(dims) => InferredDim::Known(dims.len() as u64),
        None => {
            let why = cx.unknown_cause(0);
            cx.fresh_dim(why)
        }
    };
    cx.one_output(S64, vec![n, rank])
}

/// Shape function of `DynamicPartition`: `num_partitions` outputs, each with a data-dependent number of rows of `data`.
///
/// # Errors
/// Errors of [`ShapeCtx`].
pub fn dynamic_partition_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let groups = usize::try_from(cx.node.int("num_partitions").unwrap_or(0)).unwrap_or(0).min(1 << 16);
    let (data, partitions) = (cx.ranked_dims(0)?, cx.ranked_dims(1)?);
    let mut out = Vec::with_capacity(groups);
    for _ in 0..groups {
        let dims = match (&data, &partitions) {
            (Some(data), Some(places)) if places.len() <= data.len() => {
                let n = cx.fresh_dim(UnknownReason::Data);
                [&[n], &data[places.len()..]].concat().into()
            }
            _ => cx.unranked_from(0),
        };
        out.push(Fact::new(cx.dtype(0), dims));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn rows_are_sorted_and_have_no_lowering() {
        assert!(ROWS.windows(2).all(|w| w[0].name < w[1].name));
        let twice: Vec<&str> = ROWS.iter().map(|r| r.name).filter(|n| crate::ops::find_op(n).is_some()).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert!(ROWS.iter().all(|r| r.signature.contains("->")));
    }
}
