//! Operator overloading for arrays, so that long formulas read as such.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, CompId, InstId, Op, Shape};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::guarded_counts;
use crate::tensor::{DType, Tensor, saturating_element_count};
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Builder that receives the instructions of expressions.
type Scope<'b> = RefCell<&'b mut Builder>;

/// An array of the current computation as an expression. Operators broadcast; a number stands for an array filled with it.
#[derive(Clone, Copy)]
pub struct ArrayExpr<'s, 'b> {
    scope: &'s Scope<'b>,
    /// Instruction that computes the array.
    pub id: InstId,
}

/// Second operand of an expression's arithmetic: an array or a number.
pub trait BinaryOperand<'s, 'b> {
    /// Array of the type and sizes of `like` that holds the operand.
    fn like(self, like: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b>;
}

impl<'s, 'b> BinaryOperand<'s, 'b> for ArrayExpr<'s, 'b> {
    fn like(self, _: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        self
    }
}

impl<'s, 'b> BinaryOperand<'s, 'b> for f64 {
    fn like(self, like: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        like.build(|b| b.full_like(like.id, self))
    }
}

impl<'s, 'b> BinaryOperand<'s, 'b> for u64 {
    fn like(self, like: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        like.build(|b| {
            let number = b.constant(Tensor::scalar(self));
            let (number, dims) = (b.convert(number, b.dtype(like.id)), b.dims(like.id).to_vec());
            b.broadcast(number, &dims, &[])
        })
    }
}

impl<'s, 'b> ArrayExpr<'s, 'b> {
    /// Array that `f` computes from this one with builder calls.
    pub fn build(self, f: impl FnOnce(&mut Builder) -> InstId) -> Self {
        let id = f(&mut self.scope.borrow_mut());
        ArrayExpr { scope: self.scope, id }
    }
    /// Several arrays that `f` computes from this one with builder calls.
    pub fn build_all<const N: usize>(self, f: impl FnOnce(&mut Builder) -> [InstId; N]) -> [Self; N] {
        let ids = f(&mut self.scope.borrow_mut());
        ids.map(|id| ArrayExpr { scope: self.scope, id })
    }
    /// The array converted to another element type.
    pub fn convert(self, dtype: DType) -> Self {
        self.build(|b| b.convert(self.id, dtype))
    }
    /// Element type.
    pub fn dtype(self) -> DType {
        self.scope.borrow().dtype(self.id)
    }
    /// Applies a pointwise op of one operand.
    pub fn apply_unary(self, op: ScalarOp) -> Self {
        self.build(|b| b.unary(op, self.id))
    }
    /// Applies a pointwise op of two operands.
    pub fn apply_binary(self, op: ScalarOp, other: impl BinaryOperand<'s, 'b>) -> Self {
        let other = other.like(self);
        self.build(|b| b.binary(op, self.id, other.id))
    }
    fn compare(self, direction: Direction, other: impl BinaryOperand<'s, 'b>) -> Self {
        let other = other.like(self);
        self.build(|b| b.compare(direction, self.id, other.id))
    }
    /// `self > other`.
    pub fn gt(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.compare(Direction::Gt, other)
    }
    /// `self >= other`.
    pub fn ge(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.compare(Direction::Ge, other)
    }
    /// `self < other`.
    pub fn lt(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.compare(Direction::Lt, other)
    }
    /// `self <= other`.
    pub fn le(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.compare(Direction::Le, other)
    }
    /// `self == other`.
    pub fn equals(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.compare(Direction::Eq, other)
    }
    /// `self != other`.
    pub fn not_equals(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.compare(Direction::Ne, other)
    }
    /// Whether elements are NaN.
    pub fn is_nan(self) -> Self {
        self.not_equals(self)
    }
    /// Logical or bitwise and.
    pub fn and(self, other: Self) -> Self {
        self.apply_binary(ScalarOp::And, other)
    }
    /// Logical or bitwise or.
    pub fn or(self, other: Self) -> Self {
        self.apply_binary(ScalarOp::Or, other)
    }
    /// Bitwise exclusive or.
    pub fn xor(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.apply_binary(ScalarOp::Xor, other)
    }
    /// `self << bits`.
    pub fn shift_left(self, bits: impl BinaryOperand<'s, 'b>) -> Self {
        self.apply_binary(ScalarOp::ShiftLeft, bits)
    }
    /// `self >> bits`, shifting in zeros.
    pub fn shift_right(self, bits: impl BinaryOperand<'s, 'b>) -> Self {
        self.apply_binary(ScalarOp::ShiftRightLogical, bits)
    }
    /// Array of this array's type and sizes, filled with an unsigned 64-bit number.
    pub fn constant_u64(self, value: u64) -> Self {
        value.like(self)
    }
    /// Logical or bitwise negation.
    pub fn not(self) -> Self {
        self.apply_unary(ScalarOp::Not)
    }
    /// Selects this array where `condition` is true, else `other`.
    pub fn select_where(self, condition: Self, other: impl BinaryOperand<'s, 'b>) -> Self {
        let other = other.like(self);
        self.build(|b| b.select(condition.id, self.id, other.id))
    }
    /// Replaces elements where `condition` is true by `value`.
    pub fn replace_where(self, condition: Self, value: f64) -> Self {
        value.like(self).select_where(condition, self)
    }
    /// e^x.
    pub fn exp(self) -> Self {
        self.apply_unary(ScalarOp::Exp)
    }
    /// Natural logarithm.
    pub fn ln(self) -> Self {
        self.apply_unary(ScalarOp::Log)
    }
    /// ln(1 + x).
    pub fn ln_1p(self) -> Self {
        self.apply_unary(ScalarOp::Log1p)
    }
    /// Sign: -1, 0 or 1.
    pub fn sign(self) -> Self {
        self.apply_unary(ScalarOp::Sign)
    }
    /// Square.
    pub fn square(self) -> Self {
        self.apply_binary(ScalarOp::Multiply, self)
    }
    /// Larger of both elements.
    pub fn max(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.apply_binary(ScalarOp::Maximum, other)
    }
    /// 1 / sqrt(x).
    pub fn rsqrt(self) -> Self {
        self.apply_unary(ScalarOp::Rsqrt)
    }
    /// Square root.
    pub fn sqrt(self) -> Self {
        self.apply_unary(ScalarOp::Sqrt)
    }
    /// Absolute value.
    pub fn abs(self) -> Self {
        self.apply_unary(ScalarOp::Abs)
    }
    /// Rounds towards -inf.
    pub fn floor(self) -> Self {
        self.apply_unary(ScalarOp::Floor)
    }
    /// Sine.
    pub fn sin(self) -> Self {
        self.apply_unary(ScalarOp::Sin)
    }
    /// Cosine.
    pub fn cos(self) -> Self {
        self.apply_unary(ScalarOp::Cos)
    }
    /// `self ^ other`.
    pub fn pow(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.apply_binary(ScalarOp::Power, other)
    }
    /// Remainder with the sign of `self`.
    pub fn rem(self, other: impl BinaryOperand<'s, 'b>) -> Self {
        self.apply_binary(ScalarOp::Remainder, other)
    }
    /// Array of this array's type and sizes, filled with a number.
    pub fn constant(self, value: f64) -> Self {
        value.like(self)
    }
    /// Polynomial with these coefficients, highest first, by Horner's rule.
    pub fn polynomial(self, coefficients: &[f64]) -> Self {
        self.build(|b| super::special::polynomial(b, self.id, coefficients))
    }
    /// Distance from 1 to the next number of the element type.
    pub fn epsilon(self) -> f64 {
        if self.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl<'s, 'b> $trait for ArrayExpr<'s, 'b> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.apply_binary(ScalarOp::$op, other)
            }
        }
        impl<'s, 'b> $trait<f64> for ArrayExpr<'s, 'b> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                self.apply_binary(ScalarOp::$op, other)
            }
        }
        impl<'s, 'b> $trait<u64> for ArrayExpr<'s, 'b> {
            type Output = Self;
            fn $method(self, other: u64) -> Self {
                self.apply_binary(ScalarOp::$op, other)
            }
        }
        impl<'s, 'b> $trait<ArrayExpr<'s, 'b>> for f64 {
            type Output = ArrayExpr<'s, 'b>;
            fn $method(self, other: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
                self.like(other).apply_binary(ScalarOp::$op, other)
            }
        }
    )*};
}
operators! { Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide }

impl Neg for ArrayExpr<'_, '_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.apply_unary(ScalarOp::Negate)
    }
}

/// Evaluates a formula over arrays: adds its instructions, and returns the result.
pub fn build_formula<'b, const N: usize>(
    b: &'b mut Builder,
    arrays: [InstId; N],
    f: impl for<'s> FnOnce([ArrayExpr<'s, 'b>; N]) -> ArrayExpr<'s, 'b>,
) -> InstId {
    let scope = RefCell::new(b);
    f(arrays.map(|id| ArrayExpr { scope: &scope, id })).id
}

/// Evaluates several formulas over the same arrays.
pub fn build_formulas<'b>(
    b: &'b mut Builder,
    arrays: &[InstId],
    f: impl for<'s> FnOnce(Vec<ArrayExpr<'s, 'b>>) -> Result<Vec<ArrayExpr<'s, 'b>>>,
) -> Result<Vec<InstId>> {
    let scope = RefCell::new(b);
    let results = f(arrays.iter().map(|&id| ArrayExpr { scope: &scope, id }).collect())?;
    Ok(results.into_iter().map(|y| y.id).collect())
}

/// Evaluates a formula over floats in f32 at least, and rounds once, at the end; the arrays are broadcast together.
pub fn formula_in_f32<const N: usize>(
    b: &mut Builder,
    arrays: [InstId; N],
    f: impl for<'s, 'b> FnOnce([ArrayExpr<'s, 'b>; N]) -> ArrayExpr<'s, 'b>,
) -> InstId {
    let mut arrays = arrays;
    for i in 1..N {
        (arrays[0], arrays[i]) = b.broadcast_together(arrays[0], arrays[i]);
    }
    let dims = arrays.first().map(|&x| b.dims(x).to_vec()).unwrap_or_default();
    let dtype = arrays.first().map_or(DType::F32, |&x| b.dtype(x));
    let narrow = dtype.is_float() && dtype.bits() < 32;
    let arrays = arrays.map(|x| {
        let x = b.broadcast_to(x, &dims);
        if narrow { b.convert(x, DType::F32) } else { x }
    });
    let y = build_formula(b, arrays, f);
    b.convert(y, dtype)
}

/// Element-wise loop over several arrays of equal sizes. `step` gets the state and the iteration number, counted from 1 as an
/// array of the type of the first state array; it returns a mask of the elements that continue, and the next state. An element
/// that has stopped keeps its state. The loop ends when no element continues, or after `limit` iterations.
pub fn iterate_elementwise<const N: usize>(
    b: &mut Builder,
    going: InstId,
    state: [InstId; N],
    limit: f64,
    step: impl for<'s, 'b> Fn([ArrayExpr<'s, 'b>; N], ArrayExpr<'s, 'b>) -> (ArrayExpr<'s, 'b>, [ArrayExpr<'s, 'b>; N]),
) -> [InstId; N] {
    let end = iterate_elementwise_all(b, going, &state, limit, |state, round| {
        let (more, new) = step(std::array::from_fn(|i| state[i]), round);
        (more, new.to_vec())
    });
    std::array::from_fn(|i| end[i])
}

/// Element-wise loop like [`iterate_elementwise`] over any number of arrays; arrays for which `step` returns no next value stay unchanged.
pub fn iterate_elementwise_all(
    b: &mut Builder,
    going: InstId,
    state: &[InstId],
    limit: f64,
    step: impl for<'s, 'b> Fn(&[ArrayExpr<'s, 'b>], ArrayExpr<'s, 'b>) -> (ArrayExpr<'s, 'b>, Vec<ArrayExpr<'s, 'b>>),
) -> Vec<InstId> {
    let round = b.scalar(DType::S32, 1.0);
    let start = b.tuple(&[&[round, going], state].concat());
    let shape = b.shape(start).clone();
    let cond = loop_condition(b, &shape, limit);
    b.begin_computation("round");
    let tuple = b.parameter(shape);
    let [round, going] = [0, 1].map(|i| b.get_tuple_element(tuple, i));
    let old: Vec<InstId> = (0..state.len()).map(|i| b.get_tuple_element(tuple, i + 2)).collect();
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(round, one);
    let mut parts = vec![next];
    {
        let (dtype, dims) = (b.dtype(old[0]), b.dims(old[0]).to_vec());
        let counted = b.convert(round, dtype);
        let counted = b.broadcast(counted, &dims, &[]);
        let scope = RefCell::new(&mut *b);
        let expr = |id| ArrayExpr { scope: &scope, id };
        let arrays: Vec<ArrayExpr> = old.iter().map(|&id| expr(id)).collect();
        let (more, new) = step(&arrays, expr(counted));
        parts.push(more.and(expr(going)).id);
        for (old, new) in arrays.iter().zip(&new) {
            let kept = if old.id == new.id { *old } else { new.select_where(expr(going), *old) };
            parts.push(kept.id);
        }
        parts.extend(&old[new.len()..]);
    }
    let root = b.tuple(&parts);
    let body = b.end_computation(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    (0..state.len()).map(|i| b.get_tuple_element(end, i + 2)).collect()
}

/// Condition of an element-wise loop, whose state begins with the iteration number, s32, and the mask of elements that
/// continue: true while the limit is not exceeded and some element continues.
pub fn loop_condition(b: &mut Builder, shape: &Shape, limit: f64) -> CompId {
    b.begin_computation("go_on");
    let tuple = b.parameter(shape.clone());
    let [round, going] = [0, 1].map(|i| b.get_tuple_element(tuple, i));
    let last = b.scalar(DType::S32, limit);
    let left = b.compare(Direction::Le, round, last);
    let count = saturating_element_count(&guarded_counts(b.dims(going)));
    let flat = b.reshape(going, &dims![count]);
    let none = b.scalar(DType::Pred, 0.0);
    let any = b.reduce(flat, none, ScalarOp::Or, &[0]);
    let root = b.binary(ScalarOp::And, left, any);
    b.end_computation(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn an_element_that_stopped_keeps_its_state() {
        let mut b = Builder::new("t");
        let x = b.constant(Tensor::of(&[3], &[1.0f32, 5.0, 100.0]));
        let going = build_formula(&mut b, [x], |[x]| x.lt(50.0));
        let [y] = iterate_elementwise(&mut b, going, [x], 100.0, |[x], _| ((x * 2.0).lt(50.0), [x * 2.0]));
        let y = crate::interp::constant_value(&b, y).map(|t| t.view::<f32>().to_vec());
        assert_eq!(y, Some(vec![64.0, 80.0, 100.0]));
    }
}
