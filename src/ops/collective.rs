//! `collective_ops.cc`: communication between replicas of one graph, as collective instructions of HLO.
//!
//! In TensorFlow each member of a group runs a node with the group's size and a key that identifies the group. Here all members
//! run the same code, and a group of `n` is the ranks `0..n`. `CollectiveAssignGroupV2` makes several groups. A node's position
//! in the code identifies the instance of a collective, so that `instance_key` is ignored.
use super::op_lowering::op;
use super::shape::{S32, like_first_input};
use super::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::diag::{Code, Error, Result};
use crate::hlo::groups::{format_groups, parse_groups};
use crate::hlo::symbolic::ForeignOp;
use crate::hlo::symbolic::{CompId, Dim, InstId, Op, Shape};
use crate::ops::fact::{Dims, Fact};
use crate::scalar::ScalarOp;
use crate::tensor::Tensor;

const NUMBERS: &str = "f16, bf16, f32, f64, s32, s64";

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[&[
    op("CollectiveReduceV2", "input group_size group_key instance_key ordering_token* -> data", reduce)
        .constant_inputs(&[1, 2])
        .shape(like_first_input)
        .dtypes(NUMBERS),
    op("CollectiveReduce", "input -> data", reduce).shape(like_first_input).dtypes(NUMBERS),
    op("CollectiveGatherV2", "input group_size group_key instance_key ordering_token* -> data", gather)
        .constant_inputs(&[1, 2])
        .dtypes(NUMBERS),
    op("CollectiveGather", "input -> data", gather).dtypes(NUMBERS),
    op("CollectiveAllToAllV2", "input group_size group_key instance_key ordering_token* -> data", all_to_all)
        .constant_inputs(&[1, 2])
        .shape(like_first_input)
        .dtypes(NUMBERS),
    op("CollectiveAssignGroupV2", "group_assignment device_index base_key -> group_size group_key", assign)
        .constant_inputs(&[0])
        .shape(two_numbers),
]];

/// Attribute that marks a constant made by `CollectiveAssignGroupV2`; its text lists the groups.
const ASSIGNED: &str = "frontend_attributes";

fn two_numbers(_cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    Ok(vec![Fact::new(S32, Dims::from_sizes(&[])), Fact::new(S32, Dims::from_sizes(&[]))])
}

/// Replica groups of equal size; each replica is in exactly one of them.
pub struct ReplicaGroups {
    /// Replica ids of each group, in the order in which their parts are concatenated.
    members: Vec<Vec<i64>>,
    /// Number of replicas in each group.
    pub size: Dim,
}

impl ReplicaGroups {
    /// Groups with these members; the module becomes one for all of their replicas. Errors: `ShapeMismatch` if a replica is
    /// missing or named twice, `UnsupportedCase` if another collective of the module has another number of replicas.
    fn of(cx: &mut LowerCtx, members: Vec<Vec<i64>>) -> Result<ReplicaGroups> {
        let mut all: Vec<i64> = members.iter().flatten().copied().collect();
        all.sort_unstable();
        let size = members.first().map_or(0, Vec::len);
        if size == 0 || members.iter().any(|g| g.len() != size) || !all.iter().copied().eq(0..all.len() as i64) {
            return Err(
                cx.shape_mismatch(format!("groups in which each replica stands once, not {}", format_groups(&members)))
            );
        }
        let count = Dim::from(all.len());
        cx.b.set_replica_count(count.guarded_count()).map_err(|had| {
            cx.unsupported_case(format!(
                "a collective of {count} replicas beside one of {had}; all must stand in a group"
            ))
        })?;
        Ok(ReplicaGroups { members, size: Dim::from(size) })
    }
    /// Groups whose members the rows of input `i` list.
    ///
    /// # Errors
    /// Errors of [`ReplicaGroups::of`], and `NotConstant`.
    pub fn from_input(cx: &mut LowerCtx, i: usize) -> Result<ReplicaGroups> {
        let members = rows(cx, i)?;
        ReplicaGroups::of(cx, members)
    }
    /// The group described by inputs `group_size` and `group_key`, or by the attributes of that name on older ops.
    fn keyed(cx: &mut LowerCtx) -> Result<ReplicaGroups> {
        let size = match cx.node.int("group_size") {
            Some(size) => size,
            None => {
                let [size, key] = [1, 2].map(|i| assigned(cx, i));
                match (size?, key?) {
                    (None, None) => {
                        cx.constant_int(2)?;
                        cx.constant_int(1)?
                    }
                    (Some(size), Some(key)) if size == key => return ReplicaGroups::of(cx, size),
                    _ => return Err(cx.shape_mismatch("size and key are of two groups")),
                }
            }
        };
        let most = i64::from(u16::MAX);
        if !(1..=most).contains(&size) {
            return Err(cx.unsupported_case(format!("a group of {size} replicas")));
        }
        ReplicaGroups::of(cx, vec![(0..size).collect()])
    }
}

/// Members of the groups if input `i` comes from a `CollectiveAssignGroupV2`.
fn assigned(cx: &LowerCtx, i: usize) -> Result<Option<Vec<Vec<i64>>>> {
    let extra = &cx.b.current_computation().insts[cx.arg(i)?].extra;
    let text = extra.iter().find(|(name, _)| name == ASSIGNED).and_then(|(_, value)| value.split('"').nth(1));
    Ok(text.and_then(parse_groups))
}

/// Rows of a constant integer matrix.
fn rows(cx: &LowerCtx, i: usize) -> Result<Vec<Vec<i64>>> {
    let [_, width] = cx.dims(i)?[..] else { return Err(cx.shape_mismatch("groups are the rows of a matrix")) };
    let numbers = cx.constant_ints(i)?;
    Ok(numbers.chunks(width.guarded_index().max(1)).map(<[i64]>::to_vec).collect())
}

/// Lowers `CollectiveAssignGroupV2` to the number of replicas and 0, as tf2xla does; a collective that uses this output takes
/// the groups instead.
fn assign(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    // The parts of members are in the order of their devices, whatever their order in the group.
    let mut groups = ReplicaGroups::from_input(cx, 0)?;
    groups.members.iter_mut().for_each(|members| members.sort_unstable());
    let count: i32 = groups.members.iter().map(|g| g.len() as i32).sum();
    let named = format!("{{group_assignment=\"{}\"}}", format_groups(&groups.members));
    let both = [count, 0].map(|value| {
        let id = cx.b.constant(Tensor::scalar(value));
        cx.b.set_opaque_attributes(id, vec![(ASSIGNED.to_string(), named.clone())]);
        Value::Array(id)
    });
    Ok(both.to_vec())
}

fn reduce(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let groups = ReplicaGroups::keyed(cx)?;
    let x = cx.arg(0)?;
    let comp = reduction_computation(cx, "merge_op")?;
    let shape = cx.b.shape(x).clone();
    let sum = add_collective(cx, "all-reduce", None, &groups, x, Some(comp), shape);
    let result = match cx.node.str("final_op") {
        Some("Div") => group_mean(cx, sum, &groups),
        Some("Id") => sum,
        _ => return Err(Error::user(Code::BadAttr, "`final_op` is Id or Div")),
    };
    cx.one_output(result)
}

/// Lowers an all-gather: concatenation of all members' arrays along axis 0.
fn gather(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let groups = ReplicaGroups::keyed(cx)?;
    let x = cx.arg(0)?;
    let mut dims = cx.b.dims(x).to_vec();
    let first = dims.first_mut().ok_or_else(|| cx.shape_mismatch("scalars are not gathered"))?;
    *first =
        first.checked_mul(groups.size).ok_or_else(|| cx.unsupported_case("a result of more than 2^64 elements"))?;
    let shape = Shape::array(cx.b.dtype(x), dims);
    let all = add_collective(cx, "all-gather", Some(Dim::from(0)), &groups, x, None, shape);
    cx.one_output(all)
}

/// Lowers an all-to-all: row `i` of a member's result is the row of member `i` that has the number of this member.
fn all_to_all(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let groups = ReplicaGroups::keyed(cx)?;
    let x = cx.arg(0)?;
    if cx.b.dims(x).first() != Some(&groups.size) {
        return Err(cx.shape_mismatch(format!("an array with a row for each of {} replicas", groups.size)));
    }
    let shape = cx.b.shape(x).clone();
    let all = add_collective(cx, "all-to-all", Some(Dim::from(0)), &groups, x, None, shape);
    cx.one_output(all)
}

/// Reduction computation (sum, product, minimum, maximum) that attribute `name` names.
///
/// # Errors
/// `BadAttr` for an unknown name.
pub fn reduction_computation(cx: &mut LowerCtx, name: &str) -> Result<CompId> {
    let op = match cx.node.str(name) {
        Some("Add" | "Mean") => ScalarOp::Add,
        Some("Mul") => ScalarOp::Multiply,
        Some("Min") => ScalarOp::Minimum,
        Some("Max") => ScalarOp::Maximum,
        _ => return Err(Error::user(Code::BadAttr, format!("`{name}` is Add, Mul, Min or Max"))),
    };
    let dtype = cx.dtype(0)?;
    Ok(cx.b.scalar_computation(op, dtype))
}

/// Divides a sum over the replicas of a group by their number.
pub fn group_mean(cx: &mut LowerCtx, sum: InstId, groups: &ReplicaGroups) -> InstId {
    let count = cx.b.full_like(sum, groups.size);
    cx.b.div(sum, count)
}

/// Adds a collective instruction `opcode` with the operand `x`, along `dimension`, with the reduction computation `by`.
pub fn add_collective(
    cx: &mut LowerCtx,
    opcode: &str,
    dimension: Option<Dim>,
    groups: &ReplicaGroups,
    x: InstId,
    by: Option<CompId>,
    shape: Shape,
) -> InstId {
    let mut attrs = vec![("replica_groups".to_string(), format_groups(&groups.members))];
    attrs.extend(dimension.map(|d| ("dimensions".to_string(), format!("{{{d}}}"))));
    let calls = by.map(|comp| ("to_apply".to_string(), comp)).into_iter().collect();
    let call = ForeignOp { opcode: opcode.to_string(), attrs, calls };
    cx.b.push(Op::Foreign(Box::new(call)), &[x], shape)
}
