//! The transforms of Winograd's F(4, 3) along one axis, as statements on registers; its points are 0, ±1/√2, ±√2 and ∞.
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, RegId, Stmt};
use crate::scalar::ScalarOp;
use crate::schedule::winograd::{READS, RESULTS};
use crate::schedule::winograd1d::Points;
use crate::tensor::DType;
use std::f64::consts::{FRAC_1_SQRT_2 as A, SQRT_2 as B};

/// The values of the polynomials 1, x, x² at each point, divided by the product of its distances from the others.
pub const POLYNOMIALS: [[f64; 3]; 6] = [
    [1.0, 0.0, 0.0],
    [-2.0 / 3.0, -2.0 / 3.0 * A, -1.0 / 3.0],
    [-2.0 / 3.0, 2.0 / 3.0 * A, -1.0 / 3.0],
    [1.0 / 6.0, B / 6.0, 1.0 / 3.0],
    [1.0 / 6.0, -B / 6.0, 1.0 / 3.0],
    [0.0, 0.0, 1.0],
];

/// The transforms of one row or column, as statements on registers.
pub struct Transform<'k> {
    /// The kernel that they are part of.
    pub k: &'k mut Kernel,
    lanes: u64,
    /// The statements so far, for a vector loop.
    pub body: Vec<Stmt>,
}

impl<'k> Transform<'k> {
    /// Nothing yet, on vectors of `lanes`.
    pub fn new(k: &'k mut Kernel, lanes: u64) -> Self {
        Transform { k, lanes, body: Vec::new() }
    }
    /// New registers.
    pub fn registers(&mut self, count: u64) -> RegId {
        self.k.reg(DType::F32, self.lanes, count)
    }
    /// A new expression.
    pub fn expr(&mut self, expr: Expr) -> ExprId {
        self.k.expr(expr)
    }
    /// What is in a register.
    pub fn get(&mut self, reg: RegId, at: u64) -> ExprId {
        self.k.expr(Expr::Reg(reg, Index::constant(at as i64)))
    }
    /// Puts `value` into a register.
    pub fn set(&mut self, reg: RegId, at: u64, value: ExprId) {
        self.body.push(Stmt::Set { reg, at: Index::constant(at as i64), value });
    }
    /// `value` in a register, so that it is computed once.
    pub fn held(&mut self, value: ExprId) -> ExprId {
        let reg = self.registers(1);
        self.set(reg, 0, value);
        self.get(reg, 0)
    }
    fn add(&mut self, x: ExprId, y: ExprId) -> ExprId {
        self.k.op(ScalarOp::Add, &[x, y], DType::F32)
    }
    fn subtract(&mut self, x: ExprId, y: ExprId) -> ExprId {
        self.k.op(ScalarOp::Subtract, &[x, y], DType::F32)
    }
    /// `x·factor`.
    fn times(&mut self, x: ExprId, factor: f64) -> ExprId {
        let factor = super::number(self.k, DType::F32, factor);
        self.k.op(ScalarOp::Multiply, &[x, factor], DType::F32)
    }
    /// `x·factor + y`, rounded once.
    fn fma(&mut self, x: ExprId, factor: f64, y: ExprId) -> ExprId {
        let factor = super::number(self.k, DType::F32, factor);
        self.k.op(ScalarOp::Fma, &[x, factor, y], DType::F32)
    }
    /// Values in registers.
    fn all_held(&mut self, values: &[ExprId]) -> Vec<ExprId> {
        values.iter().map(|&v| self.held(v)).collect()
    }

    /// `Bᵀ·d`.
    pub fn inputs(&mut self, d: &[ExprId]) -> Vec<ExprId> {
        let d = self.all_held(d);
        let ends = |t: &mut Self, i: usize| {
            let x = t.fma(d[i + 2], -2.5, d[i]);
            t.add(x, d[i + 4])
        };
        let pair = |t: &mut Self, other: f64, point: f64| {
            let (even, odd) = (t.fma(d[2], -other * other, d[4]), t.fma(d[1], -other * other, d[3]));
            let (even, odd) = (t.held(even), t.held(odd));
            [t.fma(odd, point, even), t.fma(odd, -point, even)]
        };
        let (first, last) = (ends(self, 0), ends(self, 1));
        let (a, b) = (pair(self, B, A), pair(self, A, B));
        vec![first, a[0], a[1], b[0], b[1], last]
    }

    /// `G·g`.
    pub fn weights(&mut self, g: [ExprId; 3]) -> Vec<ExprId> {
        let g = self.all_held(&g);
        let pair = |t: &mut Self, scale: f64, point: f64| {
            let last = t.times(g[2], scale * point * point);
            let even = t.fma(g[0], scale, last);
            let even = t.held(even);
            [t.fma(g[1], scale * point, even), t.fma(g[1], -scale * point, even)]
        };
        let (a, b) = (pair(self, -2.0 / 3.0, A), pair(self, 1.0 / 6.0, B));
        vec![g[0], a[0], a[1], b[0], b[1], g[2]]
    }

    /// `Aᵀ·m`.
    pub fn results(&mut self, m: &[ExprId]) -> Vec<ExprId> {
        let m = self.all_held(m);
        let pair = |t: &mut Self, i: usize| {
            let (sum, difference) = (t.add(m[i], m[i + 1]), t.subtract(m[i], m[i + 1]));
            [t.held(sum), t.held(difference)]
        };
        let (a, b) = (pair(self, 1), pair(self, 3));
        let both = self.add(a[0], b[0]);
        let first = self.add(m[0], both);
        let second = self.times(b[1], B);
        let second = self.fma(a[1], A, second);
        let third = self.times(b[0], B * B);
        let third = self.fma(a[0], A * A, third);
        let last = self.fma(a[1], A * A * A, m[5]);
        let last = self.fma(b[1], B * B * B, last);
        vec![first, second, third, last]
    }

    /// The columns of `Aᵀ·m` for the sums of the tile at `at`: `[row of the result][column of m]`.
    pub fn back(&mut self, sums: BufId, at: &Index, apart: u64) -> RegId {
        let half = self.registers(RESULTS * READS);
        for j in 0..READS {
            let column = |i: u64| Expr::Load(sums, at.offset(((i * READS + j) * apart) as i64));
            let column: Vec<ExprId> = (0..READS).map(|i| self.expr(column(i))).collect();
            for (i, value) in self.results(&column).into_iter().enumerate() {
                self.set(half, i as u64 * READS + j, value);
            }
        }
        half
    }
}

/// The transforms of Winograd's F(4, r) at any points.
impl Transform<'_> {
    /// `x·y + z`, or `x·y`.
    pub fn add_product(&mut self, x: ExprId, y: ExprId, z: Option<ExprId>) -> ExprId {
        match z {
            Some(z) => self.k.op(ScalarOp::Fma, &[x, y, z], DType::F32),
            None => self.k.op(ScalarOp::Multiply, &[x, y], DType::F32),
        }
    }

    /// `Σ cᵢ·dᵢ`, where the last factor is 1.
    fn combined(&mut self, factors: &[f64], d: &[ExprId]) -> ExprId {
        let (rest, last) = (&factors[..factors.len() - 1], d[factors.len() - 1]);
        rest.iter().zip(d).rev().fold(last, |sum, (&factor, &x)| self.fma(x, factor, sum))
    }

    /// What a tile reads at all points: for each the polynomial that is 0 at the others, its powers being the elements.
    pub fn inputs_at(&mut self, points: &Points, d: &[ExprId]) -> Vec<ExprId> {
        let d = self.all_held(d);
        let odd = usize::from(points.has_zero);
        let every_other = |from: usize| d[from..].iter().copied().step_by(2).collect::<Vec<ExprId>>();
        let all = squares(points.pairs.iter().copied());
        let mut out = Vec::new();
        if points.has_zero {
            out.push(self.combined(&all, &every_other(0)));
        }
        for &p in points.pairs {
            let others = squares(points.pairs.iter().copied().filter(|&q| q != p));
            let (low, high) =
                (self.combined(&others, &every_other(odd)), self.combined(&others, &every_other(odd + 1)));
            let (low, high) = (self.held(low), self.held(high));
            out.extend([self.fma(low, p, high), self.fma(low, -p, high)]);
        }
        out.push(self.combined(&all, &every_other(odd)));
        out
    }

    /// The 4 results of a tile from its products at all points: sums of their powers.
    pub fn results_at(&mut self, points: &Points, m: &[ExprId]) -> Vec<ExprId> {
        let m = self.all_held(m);
        let (odd, last) = (usize::from(points.has_zero), m[m.len() - 1]);
        let both: Vec<[ExprId; 2]> = (0..points.pairs.len())
            .map(|i| {
                let (x, y) = (m[odd + 2 * i], m[odd + 2 * i + 1]);
                let (sum, difference) = (self.add(x, y), self.subtract(x, y));
                [self.held(sum), self.held(difference)]
            })
            .collect();
        let power = |t: &mut Self, power: i32, first: Option<ExprId>| {
            both.iter().zip(points.pairs).fold(first, |sum, (of_pair, p)| {
                let x = of_pair[power as usize % 2];
                Some(match (sum, power) {
                    (Some(sum), 0) => t.add(sum, x),
                    (Some(sum), _) => t.fma(x, p.powi(power), sum),
                    (None, 0) => x,
                    (None, _) => t.times(x, p.powi(power)),
                })
            })
        };
        let first = points.has_zero.then_some(m[0]);
        [(0, first), (1, None), (2, None), (3, Some(last))].into_iter().filter_map(|(n, z)| power(self, n, z)).collect()
    }
}

/// The factors of 1, x², x⁴, … in `Π (x² − p²)`.
fn squares(points: impl Iterator<Item = f64>) -> Vec<f64> {
    points.fold(vec![1.0], |all, p| {
        let mut next = vec![0.0; all.len() + 1];
        for (i, c) in all.iter().enumerate() {
            next[i + 1] += c;
            next[i] -= p * p * c;
        }
        next
    })
}
