//! Tokens as arrays without elements.
use crate::hlo::{Literal, Module, Op, Shape};
use crate::tensor::{DType, Tensor};

/// The array that stands for a token: JAX passes and takes such arrays for the tokens of a program's entry.
fn token_shape() -> Shape {
    Shape::array(DType::Pred, [0])
}

/// Replaces all tokens of a module by arrays `pred[0]`.
pub fn replace_tokens(module: &mut Module) {
    for comp in module.comps.values_mut() {
        for inst in comp.insts.values_mut() {
            replace(&mut inst.shape);
            if inst.op == Op::AfterAll {
                let none = Literal::Array(Tensor::from_bools(&[0], &[]));
                (inst.op, inst.operands) = (Op::Constant(none), Vec::new());
            }
        }
    }
}

fn replace(shape: &mut Shape) {
    match shape {
        Shape::Token => *shape = token_shape(),
        Shape::Tuple(parts) => parts.iter_mut().for_each(replace),
        Shape::Array(_) | Shape::Opaque | Shape::Buffer(_) => {}
    }
}
