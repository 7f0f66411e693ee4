//! Loops whose number of iterations is known before they start.
use crate::dims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::tensor::DType;

/// Loop of `count` iterations over `state`. `body` gets the iteration number from 0 as s32 and the state, and returns the next
/// state. The computations are called `name` (body) and `name_left` (condition).
pub fn counted_loop(
    b: &mut Builder,
    name: &str,
    count: Dim,
    state: &[InstId],
    body: impl FnOnce(&mut Builder, InstId, Vec<InstId>) -> Vec<InstId>,
) -> Vec<InstId> {
    if count == 0 {
        return state.to_vec();
    }
    let zero = b.scalar(DType::S32, 0.0);
    let start = b.tuple(&[&[zero], state].concat());
    let shape = b.shape(start).clone();
    let cond = b.counter_below(&format!("{name}_left"), &shape, count);
    b.begin_computation(name);
    let param = b.parameter(shape);
    let round = b.get_tuple_element(param, 0);
    let parts = (1..=state.len()).map(|i| b.get_tuple_element(param, i)).collect();
    let parts = body(b, round, parts);
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(round, one);
    let root = b.tuple(&[&[next], &parts[..]].concat());
    let body = b.end_computation(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (1..=state.len()).map(|i| b.get_tuple_element(end, i)).collect()
}

/// Slice `t` of an array along its first axis, without that axis.
pub fn slice_at(b: &mut Builder, x: InstId, t: InstId) -> InstId {
    let (mut dims, zero) = (b.dims(x).to_vec(), b.scalar(DType::S32, 0.0));
    let starts: Vec<InstId> = (0..dims.len()).map(|axis| if axis == 0 { t } else { zero }).collect();
    dims[0] = Dim::from(1);
    let one = b.add_inst(Op::DynamicSlice(dims.clone()), &[&[x], &starts[..]].concat());
    b.reshape(one, &dims[1..])
}

/// Array with slice `t` along its first axis replaced by `part`.
pub fn replace_slice_at(b: &mut Builder, x: InstId, t: InstId, part: InstId) -> InstId {
    let (dims, zero) = ([&dims![1][..], b.dims(part)].concat(), b.scalar(DType::S32, 0.0));
    let starts: Vec<InstId> = (0..dims.len()).map(|axis| if axis == 0 { t } else { zero }).collect();
    let one = b.reshape(part, &dims);
    b.add_inst(Op::DynamicUpdateSlice, &[&[x, one], &starts[..]].concat())
}
