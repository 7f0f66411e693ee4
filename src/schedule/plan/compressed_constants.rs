//! Constants that are stored in fewer bits than they have in arithmetic: `optimize::reduce` writes them as conversions.
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};
use std::collections::HashSet;

/// A constant of f32 stored in a narrower type, with its scales.
#[derive(Clone, Debug)]
pub struct CompressedConstant {
    /// The stored elements, in the shape of the constant.
    pub numbers: Tensor,
    /// The scales of the elements, with the axis of the constant that each axis of the scales belongs to.
    pub scales: Option<(Tensor, Vec<usize>)>,
}

impl CompressedConstant {
    /// The scale of element `at` (row-major); 1 if there are no scales.
    pub fn scale(&self, at: u64) -> f32 {
        let Some((scales, axes)) = &self.scales else { return 1.0 };
        let dims = &self.numbers.dims;
        let coordinate = |axis: usize| at / dims[axis + 1..].iter().product::<u64>() % dims[axis];
        let number = axes.iter().zip(&scales.dims).fold(0, |n, (&axis, size)| n * size + coordinate(axis));
        scales.get_f64(number as usize).unwrap_or(1.0) as f32
    }
}

/// The narrow constant that `id` widens: `convert(bf16)`, or `multiply(convert(s8), broadcast(scales))`.
pub fn find_compressed(comp: &Computation, id: InstId) -> Option<CompressedConstant> {
    let constant = |id: InstId| match &comp[id].op {
        Op::Constant(Literal::Array(t)) => Some(t),
        _ => None,
    };
    let converted = |id: InstId, from: DType| match (&comp[id].op, &comp[id].operands[..]) {
        (Op::Elementwise(ScalarOp::Convert(DType::F32)), &[x]) => constant(x).filter(|t| t.dtype == from).cloned(),
        _ => None,
    };
    if let Some(numbers) = converted(id, DType::BF16) {
        return Some(CompressedConstant { numbers, scales: None });
    }
    let (Op::Elementwise(ScalarOp::Multiply), &[x, y]) = (&comp[id].op, &comp[id].operands[..]) else { return None };
    let Op::Broadcast(axes) = &comp[y].op else { return None };
    let scales = constant(*comp[y].operands.first()?)?.clone();
    Some(CompressedConstant { numbers: converted(x, DType::S8)?, scales: Some((scales, axes.clone())) })
}

/// The constants that are weights of a product and are also read in place by others, such as an embedding table that also computes the
/// scores of its words.
pub fn weights_read_in_place(comp: &Computation) -> HashSet<InstId> {
    let users = comp.users();
    let is_product =
        |id: InstId| move |user: &InstId| matches!(comp[*user].op, Op::Dot(_)) && comp[*user].operands[0] != id;
    let is_weights = |user: &InstId| matches!(comp[*user].op, Op::Dot(_) | Op::Convolution(_));
    let is_shared = |&id: &InstId| {
        matches!(comp[id].op, Op::Constant(_))
            && users[id].iter().any(is_product(id))
            && !users[id].iter().all(is_weights)
    };
    comp.insts.ids().filter(is_shared).collect()
}

/// The constants that only contractions read, as weights that they widen themselves: these need no memory of their own.
pub fn constants_widened_by_readers(comp: &Computation) -> HashSet<InstId> {
    let users = comp.users();
    let weights_of = |user: InstId, id: InstId| {
        let by_channel = match &comp[user].op {
            Op::Dot(_) => false,
            Op::Convolution(d) => d.feature_group_count > 1 && comp.array_shape(id).dims[d.kernel_input_feature] == 1,
            _ => true,
        };
        !by_channel && comp[user].operands[0] != id && comp[user].operands[1] == id
    };
    let only_weights = |&id: &InstId| {
        id != comp.root && users[id].iter().all(|&user| weights_of(user, id)) && find_compressed(comp, id).is_some()
    };
    comp.insts.ids().filter(only_weights).collect()
}
