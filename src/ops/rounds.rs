//! Loops of which it is known how often they run.
use crate::dims;
use crate::hlo::open::{Builder, Dim, InstId, Op};
use crate::tensor::DType;

/// `count` rounds over `state`: `body` gets the round's number from 0, s32, and the parts of the state, and gives the latter anew. The
/// computations are called `name` and `name_left`.
pub fn rounds(
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
    b.begin(name);
    let param = b.parameter(shape);
    let round = b.get_tuple_element(param, 0);
    let parts = (1..=state.len()).map(|i| b.get_tuple_element(param, i)).collect();
    let parts = body(b, round, parts);
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(round, one);
    let root = b.tuple(&[&[next], &parts[..]].concat());
    let body = b.end(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (1..=state.len()).map(|i| b.get_tuple_element(end, i)).collect()
}

/// Part `t` of an array along its first axis, which the part does not have.
pub fn part_at(b: &mut Builder, x: InstId, t: InstId) -> InstId {
    let (mut dims, zero) = (b.dims(x).to_vec(), b.scalar(DType::S32, 0.0));
    let starts: Vec<InstId> = (0..dims.len()).map(|axis| if axis == 0 { t } else { zero }).collect();
    dims[0] = Dim::from(1);
    let one = b.add_inst(Op::DynamicSlice(dims.clone()), &[&[x], &starts[..]].concat());
    b.reshape(one, &dims[1..])
}

/// An array with part `t` along its first axis replaced.
pub fn with_part(b: &mut Builder, x: InstId, t: InstId, part: InstId) -> InstId {
    let (dims, zero) = ([&dims![1][..], b.dims(part)].concat(), b.scalar(DType::S32, 0.0));
    let starts: Vec<InstId> = (0..dims.len()).map(|axis| if axis == 0 { t } else { zero }).collect();
    let one = b.reshape(part, &dims);
    b.add_inst(Op::DynamicUpdateSlice, &[&[x, one], &starts[..]].concat())
}
