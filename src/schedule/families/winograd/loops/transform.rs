//! The transforms of Winograd's F(4, r) along one axis, as statements on registers.
use crate::schedule::families::winograd::recipe::numbers::exact_division;
use crate::schedule::families::winograd::recipe::points::EvaluationPoints;
use crate::schedule::loops::prelude::*;

/// The values of a tile at all points, in memory.
#[derive(Clone, Debug)]
pub struct PointMemory {
    /// The buffer of the values.
    pub buf: BufId,
    /// The element of the first point.
    pub first: Index,
    /// Distance of points in elements.
    pub apart: u64,
}

/// Emitter of the transforms of one row or column, on registers.
pub struct TransformEmitter<'k> {
    /// The kernel that gets the expressions.
    pub k: &'k mut Kernel,
    dtype: DType,
    lanes: u64,
    /// The statements so far, to be put into a vector loop.
    pub body: Vec<Stmt>,
}

impl<'k> TransformEmitter<'k> {
    /// Starts a transform on vectors of `lanes` numbers of type `dtype`.
    pub fn new(k: &'k mut Kernel, dtype: DType, lanes: u64) -> Self {
        TransformEmitter { k, dtype, lanes, body: Vec::new() }
    }
    /// Declares a register array.
    pub fn new_registers(&mut self, count: u64) -> RegId {
        self.k.add_reg(self.dtype, self.lanes, count)
    }
    /// Puts `value` into a register.
    pub fn set(&mut self, reg: RegId, at: u64, value: ExprId) {
        self.body.push(Stmt::set(reg, at, value));
    }
    /// Puts `value` into a register, so that it is computed once.
    pub fn hold_in_register(&mut self, value: ExprId) -> ExprId {
        let reg = self.new_registers(1);
        self.set(reg, 0, value);
        self.k.read_reg(reg, 0)
    }
    fn add(&mut self, x: ExprId, y: ExprId) -> ExprId {
        self.k.add_op(ScalarOp::Add, &[x, y], self.dtype)
    }
    fn subtract(&mut self, x: ExprId, y: ExprId) -> ExprId {
        self.k.add_op(ScalarOp::Subtract, &[x, y], self.dtype)
    }
    /// Emits `x·factor`.
    fn scale(&mut self, x: ExprId, factor: f64) -> ExprId {
        let factor = constant_of_number(self.k, self.dtype, factor);
        self.k.add_op(ScalarOp::Multiply, &[x, factor], self.dtype)
    }
    /// Emits `x·factor + y`, rounded once.
    fn fma(&mut self, x: ExprId, factor: f64, y: ExprId) -> ExprId {
        let factor = constant_of_number(self.k, self.dtype, factor);
        self.k.add_op(ScalarOp::Fma, &[x, factor, y], self.dtype)
    }
    /// Emits `x·factor`, or `x` if the factor is 1.
    fn scale_unless_one(&mut self, x: ExprId, factor: f64) -> ExprId {
        if factor as f32 == 1.0 { x } else { self.scale(x, factor) }
    }
    /// Puts all values into registers.
    fn all_held(&mut self, values: &[ExprId]) -> Vec<ExprId> {
        values.iter().map(|&v| self.hold_in_register(v)).collect()
    }

    /// Emits the transform `G·g` of the taps `g` to all points.
    pub fn transform_weights(&mut self, points: &EvaluationPoints, g: &[ExprId]) -> Vec<ExprId> {
        let g = self.all_held(g);
        let factors = points.tap_factors(3);
        let mut out = vec![self.scale_unless_one(g[0], factors[0])];
        for of_point in factors.chunks(3).skip(1).step_by(2).take(points.pairs.len()) {
            let last = self.scale(g[2], of_point[2]);
            let even = self.fma(g[0], of_point[0], last);
            let even = self.hold_in_register(even);
            out.extend([self.fma(g[1], of_point[1], even), self.fma(g[1], -of_point[1], even)]);
        }
        out.push(self.scale_unless_one(g[2], points.scale_at_infinity));
        out
    }

    /// Sum `at` of a tile, from registers after a transform along some axes, or else from memory.
    pub fn transformed_sum(&mut self, half: Option<RegId>, memory: &PointMemory, at: u64) -> ExprId {
        match half {
            Some(half) => self.k.read_reg(half, at),
            None => self.k.add_load(memory.buf, memory.first.offset((at * memory.apart) as i64)),
        }
    }

    /// Emits the exact quotient of a result and the scale of whole numbers along both axes.
    pub fn divide_exactly(&mut self, x: ExprId) -> ExprId {
        let (inverse, shift) = exact_division();
        let odd = self.scale(x, f64::from(inverse));
        let shift = constant_of_number(self.k, self.dtype, f64::from(shift));
        self.k.add_op(ScalarOp::ShiftRightArithmetic, &[odd, shift], self.dtype)
    }

    /// Emits `x·y + z`, or `x·y` without `z`.
    pub fn add_product(&mut self, x: ExprId, y: ExprId, z: Option<ExprId>) -> ExprId {
        match z {
            Some(z) => self.k.add_op(ScalarOp::Fma, &[x, y, z], self.dtype),
            None => self.k.add_op(ScalarOp::Multiply, &[x, y], self.dtype),
        }
    }

    /// Emits `Σ cᵢ·dᵢ`, where the last factor is 1.
    fn linear_combination(&mut self, factors: &[f64], d: &[ExprId]) -> ExprId {
        let (rest, last) = (&factors[..factors.len() - 1], d[factors.len() - 1]);
        rest.iter().zip(d).rev().fold(last, |sum, (&factor, &x)| match factor as f32 {
            1.0 => self.add(sum, x),
            _ => self.fma(x, factor, sum),
        })
    }

    /// Emits the transform of the elements that a tile reads to all points. At each point, these are summed with the coefficients of the
    /// polynomial that is 0 at the other points.
    pub fn transform_inputs(&mut self, points: &EvaluationPoints, d: &[ExprId]) -> Vec<ExprId> {
        let d = self.all_held(d);
        let odd = usize::from(points.has_zero);
        let every_other = |from: usize| d[from..].iter().copied().step_by(2).collect::<Vec<ExprId>>();
        let all = even_polynomial(points.pairs.iter().copied());
        let mut out = Vec::new();
        if points.has_zero {
            out.push(self.linear_combination(&all, &every_other(0)));
        }
        for &p in points.pairs {
            let others = even_polynomial(points.pairs.iter().copied().filter(|&q| q != p));
            let (low, high) = (
                self.linear_combination(&others, &every_other(odd)),
                self.linear_combination(&others, &every_other(odd + 1)),
            );
            let (low, high) = (self.hold_in_register(low), self.hold_in_register(high));
            out.extend([self.fma(low, p, high), self.fma(low, -p, high)]);
        }
        out.push(self.linear_combination(&all, &every_other(odd)));
        out
    }

    /// Emits the 4 results of a tile from its products at all points, times the scale of the points.
    pub fn transform_results(&mut self, points: &EvaluationPoints, m: &[ExprId]) -> Vec<ExprId> {
        let m = self.all_held(m);
        let odd = usize::from(points.has_zero);
        let last = self.scale_unless_one(m[m.len() - 1], points.scale / points.scale_at_infinity);
        let both: Vec<[ExprId; 2]> = (0..points.pairs.len())
            .map(|i| {
                let (x, y) = (m[odd + 2 * i], m[odd + 2 * i + 1]);
                let (sum, difference) = (self.add(x, y), self.subtract(x, y));
                [self.hold_in_register(sum), self.hold_in_register(difference)]
            })
            .collect();
        let power = |t: &mut Self, power: i32, first: Option<ExprId>| {
            both.iter().zip(points.pairs).fold(first, |sum, (of_pair, p)| {
                let x = of_pair[power as usize % 2];
                Some(match (sum, power) {
                    (Some(sum), 0) => t.add(sum, x),
                    (Some(sum), _) => t.fma(x, p.powi(power), sum),
                    (None, 0) => x,
                    (None, _) => t.scale(x, p.powi(power)),
                })
            })
        };
        let first = points.has_zero.then_some(m[0]);
        [(0, first), (1, None), (2, None), (3, Some(last))].into_iter().filter_map(|(n, z)| power(self, n, z)).collect()
    }
}

/// The coefficients of 1, x², x⁴, … in `Π (x² − p²)`.
fn even_polynomial(points: impl Iterator<Item = f64>) -> Vec<f64> {
    points.fold(vec![1.0], |all, p| {
        let mut next = vec![0.0; all.len() + 1];
        for (i, c) in all.iter().enumerate() {
            next[i + 1] += c;
            next[i] -= p * p * c;
        }
        next
    })
}
