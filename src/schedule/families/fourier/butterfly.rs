//! The Fourier transforms of a few complex numbers, as statements on registers.
use crate::schedule::loops::prelude::*;
use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// A complex number as its real and its imaginary part.
pub(super) type Parts = [ExprId; 2];

/// Emitter of small transforms on vectors of real numbers.
pub(super) struct Butterfly<'k> {
    /// The kernel that gets the expressions.
    pub k: &'k mut Kernel,
    /// Type of the real and imaginary parts.
    pub dtype: DType,
    pub lanes: u64,
    /// Whether roots of unity are conjugated.
    pub inverse: bool,
    /// The statements so far.
    pub body: Vec<Stmt>,
}

impl Butterfly<'_> {
    /// Emits the value of a part into a register, so that it is computed once.
    fn hold(&mut self, value: ExprId) -> ExprId {
        let reg = self.k.add_reg(self.dtype, self.lanes, 1);
        self.body.push(Stmt::set(reg, 0, value));
        self.k.read_reg(reg, 0)
    }

    /// Emits a complex value into a register, and returns its parts.
    pub fn hold_complex(&mut self, value: ExprId, dtype: DType) -> Parts {
        let reg = self.k.add_reg(dtype, self.lanes, 1);
        self.body.push(Stmt::set(reg, 0, value));
        let whole = self.k.read_reg(reg, 0);
        [ScalarOp::Real, ScalarOp::Imag].map(|part| self.k.add_op(part, &[whole], self.dtype))
    }

    /// Emits both parts into registers.
    pub fn hold_parts(&mut self, x: Parts) -> Parts {
        x.map(|part| self.hold(part))
    }

    fn binary(&mut self, op: ScalarOp, x: Parts, y: Parts) -> Parts {
        let parts = [0, 1].map(|i| self.k.add_op(op, &[x[i], y[i]], self.dtype));
        self.hold_parts(parts)
    }

    fn add(&mut self, x: Parts, y: Parts) -> Parts {
        self.binary(ScalarOp::Add, x, y)
    }

    fn subtract(&mut self, x: Parts, y: Parts) -> Parts {
        self.binary(ScalarOp::Subtract, x, y)
    }

    fn negate(&mut self, x: ExprId) -> ExprId {
        self.k.add_op(ScalarOp::Negate, &[x], self.dtype)
    }

    /// Emits `x·factor`, for each part.
    pub fn scale(&mut self, x: Parts, factor: f64) -> Parts {
        let factor = constant_of_number(self.k, self.dtype, factor);
        x.map(|part| self.k.add_op(ScalarOp::Multiply, &[part, factor], self.dtype))
    }

    /// Emits `x·y`.
    pub fn multiply(&mut self, [re, im]: Parts, [cos, sin]: Parts) -> Parts {
        let (im_sin, im_cos) = (
            self.k.add_op(ScalarOp::Multiply, &[im, sin], self.dtype),
            self.k.add_op(ScalarOp::Multiply, &[im, cos], self.dtype),
        );
        let im_sin = self.negate(im_sin);
        [(re, cos, im_sin), (re, sin, im_cos)].map(|(x, y, z)| self.k.add_op(ScalarOp::Fma, &[x, y, z], self.dtype))
    }

    /// Emits the product with the fourth root of unity: `-i·x`, or `i·x` in an inverse transform.
    fn turn(&mut self, [re, im]: Parts) -> Parts {
        if self.inverse { [self.negate(im), re] } else { [im, self.negate(re)] }
    }

    /// Emits the transform of `x`, whose values are in registers or constants.
    pub fn transform(&mut self, x: &[Parts]) -> Vec<Parts> {
        match *x {
            [a, b] => vec![self.add(a, b), self.subtract(a, b)],
            [a, b, c, d] => self.four([a, b, c, d]),
            [a, b, c, d, e, f, g, h] => self.eight([a, c, e, g], [b, d, f, h]),
            _ => self.odd(x),
        }
    }

    fn four(&mut self, [a, b, c, d]: [Parts; 4]) -> Vec<Parts> {
        let (even, other_even, odd) = (self.add(a, c), self.subtract(a, c), self.add(b, d));
        let other_odd = self.subtract(b, d);
        let other_odd = self.turn(other_odd);
        let (first, third) = (self.add(even, odd), self.subtract(even, odd));
        vec![first, self.add(other_even, other_odd), third, self.subtract(other_even, other_odd)]
    }

    /// Emits the transform of eight numbers from those of the numbers with even and with odd indices.
    fn eight(&mut self, even: [Parts; 4], odd: [Parts; 4]) -> Vec<Parts> {
        let (even, odd) = (self.four(even), self.four(odd));
        // w(8) = (1 - i)·√½ and w(8)³ = w(8)·w(4)
        let half = |t: &mut Self, x: Parts| {
            let turned = t.turn(x);
            let sum = t.add(x, turned);
            t.scale(sum, FRAC_1_SQRT_2)
        };
        let (second, last) = (half(self, odd[1]), self.turn(odd[3]));
        let (third, last) = (self.turn(odd[2]), half(self, last));
        let turned = [odd[0], second, third, last].map(|x| self.hold_parts(x));
        let sums: Vec<Parts> = even.iter().zip(turned).map(|(&x, y)| self.add(x, y)).collect();
        let differences: Vec<Parts> = even.iter().zip(turned).map(|(&x, y)| self.subtract(x, y)).collect();
        [sums, differences].concat()
    }

    /// Emits the transform of an odd number of values: of `x[k]` and `x[r-k]` come sums, multiplied by cosines, and differences, by sines.
    fn odd(&mut self, x: &[Parts]) -> Vec<Parts> {
        let r = x.len();
        let pairs: Vec<[Parts; 2]> =
            (1..=r / 2).map(|k| [self.add(x[k], x[r - k]), self.subtract(x[k], x[r - k])]).collect();
        let first = pairs.iter().fold(x[0], |sum, [own, _]| self.add(sum, *own));
        let mut out = vec![first; r];
        for j in 1..=r / 2 {
            let (mut even, mut odd) = (x[0], None);
            for (k, [sum, difference]) in (1..).zip(&pairs) {
                let angle = TAU * (j * k % r) as f64 / r as f64;
                even = self.add_scaled(*sum, angle.cos(), Some(even));
                odd = Some(self.add_scaled(*difference, angle.sin(), odd));
            }
            let odd = self.turn(odd.unwrap_or(x[0]));
            (out[j], out[r - j]) = (self.add(even, odd), self.subtract(even, odd));
        }
        out
    }

    /// Emits `x·factor + sum`, or `x·factor` without a sum.
    fn add_scaled(&mut self, x: Parts, factor: f64, sum: Option<Parts>) -> Parts {
        let made = match sum {
            None => self.scale(x, factor),
            Some(sum) => {
                let factor = constant_of_number(self.k, self.dtype, factor);
                [0, 1].map(|i| self.k.add_op(ScalarOp::Fma, &[x[i], factor, sum[i]], self.dtype))
            }
        };
        self.hold_parts(made)
    }
}
