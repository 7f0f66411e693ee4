//! The gamma function and related ones: incomplete gamma and beta functions, polygamma, Hurwitz's zeta.
//!
//! Source: the methods are those of XLA's own versions (`xla/hlo/builder/lib/math.cc`): Lanczos's series with g = 7 and nine
//! coefficients, Cephes's power series and continued fraction for the incomplete gamma function, Lentz's method as given by
//! Thompson and Barnett for the incomplete beta function, Johansson's form of the Euler-Maclaurin sum for zeta.
use super::expr::{ArrayExpr, build_formula, formula_in_f32, iterate_elementwise};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;
use std::f64::consts::PI;

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Lgamma",          "x -> y",        |cx| one(cx, |[x]| lgamma(x))).pointwise().dtypes(FLOATS),
    op("Digamma",         "x -> y",        |cx| one(cx, |[x]| digamma(x))).pointwise().dtypes(FLOATS),
    op("Igamma",          "a x -> z",      |cx| incomplete(cx, igamma)).pointwise().dtypes(FLOATS),
    op("Igammac",         "a x -> z",      |cx| incomplete(cx, igammac)).pointwise().dtypes(FLOATS),
    op("IgammaGradA",     "a x -> z",      |cx| incomplete(cx, |b, a, x| by_range(b, a, x, Mode::Derivative))).pointwise().dtypes(FLOATS),
    op("RandomGammaGrad", "alpha sample -> output", |cx| incomplete(cx, |b, a, x| by_range(b, a, x, Mode::SampleDerivative))).pointwise().dtypes(FLOATS),
    op("Polygamma",       "a x -> z",      |cx| two(cx, |[n, x]| polygamma(n, x))).pointwise().dtypes(FLOATS),
    op("Zeta",            "x q -> z",      |cx| two(cx, |[x, q]| zeta(x, q))).pointwise().dtypes(FLOATS),
    op("Betainc",         "a b x -> z",    betainc).pointwise().dtypes(FLOATS),
];

/// Rejects an input that is not of a float type.
fn floats(cx: &LowerCtx) -> Result<()> {
    match cx.dtype(0)? {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Ok(()),
        other => Err(cx.unsupported_case(format!("{} of {other}; {FLOATS} are supported", cx.node.op))),
    }
}

fn one(
    cx: &mut LowerCtx,
    f: impl for<'s, 'b> FnOnce([ArrayExpr<'s, 'b>; 1]) -> ArrayExpr<'s, 'b>,
) -> Result<Vec<Value>> {
    floats(cx)?;
    let x = cx.arg(0)?;
    let y = formula_in_f32(cx.b, [x], f);
    cx.one_output(y)
}

fn two(
    cx: &mut LowerCtx,
    f: impl for<'s, 'b> FnOnce([ArrayExpr<'s, 'b>; 2]) -> ArrayExpr<'s, 'b>,
) -> Result<Vec<Value>> {
    floats(cx)?;
    let (x, y) = (cx.arg(0)?, cx.arg(1)?);
    let z = formula_in_f32(cx.b, [x, y], f);
    cx.one_output(z)
}

const LANCZOS_G: f64 = 7.0;
const LANCZOS_BASE: f64 = 0.999_999_999_999_809_9;
const LANCZOS: [f64; 8] = [
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// ln(z + 7.5).
fn ln_t<'s, 'b>(z: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let base = LANCZOS_G + 0.5;
    base.ln() + (z / base).ln_1p()
}

/// ln |gamma(x)|: infinite at 0, -1, -2 … and at both infinities, exactly 0 at 1 and 2.
///
/// ln gamma(z + 1) = ln(2 pi)/2 + (z + 1/2) ln t - t + ln A(z) with t = z + 7.5; below 1/2 gamma(x) gamma(1 - x) = pi / sin(pi x).
pub fn lgamma<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let reflect = x.lt(0.5);
    let z = (-x).select_where(reflect, x - 1.0);
    let mut series = x.constant(LANCZOS_BASE);
    for (i, &c) in LANCZOS.iter().enumerate() {
        series = series + c / (z + (i as f64 + 1.0));
    }
    let log_t = ln_t(z);
    let t = z + (LANCZOS_G + 0.5);
    // (z + 1/2) ln t - t in a form that does not overflow early.
    let log_y = (z + 0.5 - t / log_t) * log_t + (2.0 * PI).ln() / 2.0 + series.ln();
    // |sin(pi x)| has the period 1 and is even; near an integer its argument must be small to be exact.
    let a = x.abs();
    let fraction = a - a.floor();
    let fraction = (1.0 - fraction).select_where(fraction.gt(0.5), fraction);
    let below = (fraction * PI).sin().ln();
    let finite = below.apply_unary(ScalarOp::IsFinite);
    let reflected = (PI.ln() - below - log_y).select_where(finite, -below);
    let y = reflected.select_where(reflect, log_y).replace_where(a.equals(f64::INFINITY), f64::INFINITY);
    y.replace_where(x.equals(1.0).or(x.equals(2.0)), 0.0)
}

/// Digamma, the derivative of ln gamma; NaN at 0, -1, -2 …
pub fn digamma<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let reflect = x.lt(0.5);
    let z = (-x).select_where(reflect, x - 1.0);
    let (mut above, mut below) = (x.constant(0.0), x.constant(LANCZOS_BASE));
    for (i, &c) in LANCZOS.iter().enumerate() {
        let place = z + (i as f64 + 1.0);
        above = above - c / (place * place);
        below = below + c / place;
    }
    let y = ln_t(z) + above / below - LANCZOS_G / (z + (LANCZOS_G + 0.5));
    let near = x + (x + 0.5).floor().abs();
    let angle = near * PI;
    let reflected = y - angle.cos() * PI / angle.sin();
    let pole = x.le(0.0).and(x.equals(x.floor()));
    reflected.select_where(reflect, y).replace_where(pole, f64::NAN)
}

/// Quantity to compute for the incomplete gamma functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The incomplete gamma function itself.
    Value,
    /// Derivative of the incomplete gamma function with respect to its first argument.
    Derivative,
    /// Derivative of a sample of a gamma distribution with respect to its parameter.
    SampleDerivative,
}

/// Intermediate values shared by all incomplete gamma functions.
struct Incomplete {
    a: InstId,
    x: InstId,
    /// x^a e^-x / gamma(a).
    factor: InstId,
    /// Mask of the elements whose factor does not underflow.
    representable: InstId,
}

impl Incomplete {
    fn new(b: &mut Builder, a: InstId, x: InstId) -> Incomplete {
        let log = build_formula(b, [a, x], |[a, x]| a * x.ln() - x - lgamma(a));
        let limit = if b.dtype(a) == DType::F64 { f64::MAX.ln() } else { f64::from(f32::MAX).ln() };
        let representable = build_formula(b, [log], |[log]| log.lt(-limit).not());
        let factor = build_formula(b, [log], |[log]| log.exp());
        Incomplete { a, x, factor, representable }
    }

    /// Lower incomplete gamma function by the power series, for small x.
    fn series(&self, b: &mut Builder, going: InstId, mode: Mode) -> InstId {
        let (one, zero) = (b.full_like(self.a, 1.0), b.full_like(self.a, 0.0));
        let start = [self.a, one, one, self.x, zero, zero];
        let end = iterate_elementwise(b, going, start, f64::from(i32::MAX), |[r, c, sum, x, slope, slopes], _| {
            let r = r + 1.0;
            let next = c * (x / r);
            let sum = sum + next;
            if mode == Mode::Value {
                return ((next / sum).gt(r.epsilon()), [r, next, sum, x, slope, slopes]);
            }
            let slope = slope * (x / r) - c * x / (r * r);
            let slopes = slopes + slope;
            ((slope / slopes).abs().gt(r.epsilon()), [r, next, sum, x, slope, slopes])
        });
        let (sum, slopes) = (end[2], end[5]);
        build_formula(b, [sum, slopes, self.factor, self.a, self.x], |[sum, slopes, factor, a, x]| {
            let log_slope = || x.ln() - digamma(a + 1.0);
            match mode {
                Mode::Value => sum * factor / a,
                Mode::Derivative => factor * (sum * log_slope() + slopes) / a,
                Mode::SampleDerivative => -(slopes + sum * log_slope()) * x / a,
            }
        })
    }

    /// Upper incomplete gamma function by the continued fraction, for large x. Numerator and denominator of each approximant
    /// follow from the previous two, and are scaled down when they grow too large.
    fn fraction(&self, b: &mut Builder, going: InstId, mode: Mode) -> InstId {
        let (one, zero) = (b.full_like(self.x, 1.0), b.full_like(self.x, 0.0));
        let (a, x) = (self.a, self.x);
        let y = build_formula(b, [a], |[a]| 1.0 - a);
        let z = build_formula(b, [x, y], |[x, y]| x + y + 1.0);
        let p1 = build_formula(b, [x], |[x]| x + 1.0);
        let q1 = build_formula(b, [z, x], |[z, x]| z * x);
        let value = build_formula(b, [p1, q1], |[p, q]| p / q);
        let dq1 = build_formula(b, [x], |[x]| -x);
        let slope = build_formula(b, [value, dq1, q1], |[v, dq, q]| (0.0 - v * dq) / q);
        let start = [value, y, z, p1, q1, one, x, zero, zero, zero, dq1, slope];
        let end = iterate_elementwise(
            b,
            going,
            start,
            2000.0,
            |[value, y, z, p1, q1, p2, q2, dp2, dq2, dp1, dq1, slope], c| {
                let (y, z) = (y + 1.0, z + 2.0);
                let yc = y * c;
                let (p, q) = (p1 * z - p2 * yc, q1 * z - q2 * yc);
                let regular = q.not_equals(0.0);
                let r = p / q;
                let change = ((value - r) / r).abs().select_where(regular, 1.0);
                let value = r.select_where(regular, value);
                let epsilon = p.epsilon();
                let large = p.abs().gt(1.0 / epsilon);
                let [s1, t1, s2, t2] = [p, q, p1, q1].map(|v| (v * epsilon).select_where(large, v));
                if mode == Mode::Value {
                    return (change.gt(epsilon), [value, y, z, s1, t1, s2, t2, dp2, dq2, dp1, dq1, slope]);
                }
                let dp = dp1 * z - p1 - dp2 * yc + p2 * c;
                let dq = dq1 * z - q1 - dq2 * yc + q2 * c;
                let new_slope = ((dp - value * dq) / q).select_where(regular, slope);
                let slope_change = (new_slope - slope).abs().select_where(regular, 1.0);
                let [dp2, dq2, dp1, dq1] = [dp1, dq1, dp, dq].map(|v| (v * epsilon).select_where(large, v));
                (slope_change.gt(epsilon), [value, y, z, s1, t1, s2, t2, dp2, dq2, dp1, dq1, new_slope])
            },
        );
        let (value, slope) = (end[0], end[11]);
        build_formula(b, [value, slope, self.factor, self.a, self.x], |[value, slope, factor, a, x]| {
            let log_slope = || x.ln() - digamma(a);
            match mode {
                Mode::Value => value * factor,
                Mode::Derivative => factor * (value * log_slope() + slope),
                Mode::SampleDerivative => -(slope + value * log_slope()) * x,
            }
        })
    }
}

/// Lowers `f` of two floats, broadcast together and computed in f32 at least.
fn incomplete(cx: &mut LowerCtx, f: impl FnOnce(&mut Builder, InstId, InstId) -> InstId) -> Result<Vec<Value>> {
    floats(cx)?;
    let (a, x) = (cx.arg(0)?, cx.arg(1)?);
    let (a, x) = cx.b.broadcast_together(a, x);
    let z = super::special::compute_binary_in_f32(cx.b, a, x, f);
    cx.one_output(z)
}

/// Lower incomplete gamma function, regularized.
fn igamma(b: &mut Builder, a: InstId, x: InstId) -> InstId {
    by_range(b, a, x, Mode::Value)
}

/// Regularized lower incomplete gamma function or a derivative of it: by the series if x is at most 1 or a, else 1 minus the
/// continued fraction. 0 where x is 0 or a infinite; else NaN where a is not positive or x negative.
fn by_range(b: &mut Builder, a: InstId, x: InstId, mode: Mode) -> InstId {
    let parts = Incomplete::new(b, a, x);
    let error = build_formula(b, [a, x], |[a, x]| x.lt(0.0).or(a.le(0.0)).or(a.is_nan()).or(x.is_nan()));
    let far = build_formula(b, [a, x], |[a, x]| x.gt(1.0).and(x.gt(a)));
    let enabled = build_formula(b, [error, x, parts.representable], |[error, x, representable]| {
        x.equals(0.0).or(error).not().and(representable)
    });
    let by_fraction = build_formula(b, [enabled, far], |[enabled, far]| enabled.and(far));
    let by_series = build_formula(b, [enabled, far], |[enabled, far]| enabled.and(far.not()));
    let fraction = parts.fraction(b, by_fraction, mode);
    let series = parts.series(b, by_series, mode);
    build_formula(b, [fraction, series, far, error, a, x], |[fraction, series, far, error, a, x]| {
        let (rest, end) = if mode == Mode::Value { (1.0 - fraction, 1.0) } else { (-fraction, 0.0) };
        let y = rest.select_where(far, series).replace_where(x.equals(f64::INFINITY), end);
        y.replace_where(a.equals(f64::INFINITY), 0.0).replace_where(error, f64::NAN).replace_where(x.equals(0.0), 0.0)
    })
}

/// Upper incomplete gamma function, regularized; NaN where a is not positive or x negative.
fn igammac(b: &mut Builder, a: InstId, x: InstId) -> InstId {
    let parts = Incomplete::new(b, a, x);
    let outside = build_formula(b, [a, x], |[a, x]| x.lt(0.0).or(a.le(0.0)).or(a.is_nan()).or(x.is_nan()));
    let near = build_formula(b, [a, x], |[a, x]| x.lt(1.0).or(x.lt(a)));
    let enabled = build_formula(b, [outside, x, parts.representable], |[outside, x, representable]| {
        outside.or(x.equals(0.0)).not().and(representable)
    });
    let by_series = build_formula(b, [enabled, near], |[enabled, near]| enabled.and(near));
    let by_fraction = build_formula(b, [enabled, near], |[enabled, near]| enabled.and(near.not()));
    let series = parts.series(b, by_series, Mode::Value);
    let fraction = parts.fraction(b, by_fraction, Mode::Value);
    build_formula(b, [series, fraction, near, outside, a, x], |[series, fraction, near, outside, a, x]| {
        let y =
            (1.0 - series).select_where(near, fraction).replace_where(x.equals(0.0).or(a.equals(f64::INFINITY)), 1.0);
        y.replace_where(x.equals(f64::INFINITY), 0.0).replace_where(outside, f64::NAN)
    })
}

/// Polygamma: the n-th derivative of digamma, n a natural number.
fn polygamma<'s, 'b>(n: ArrayExpr<'s, 'b>, x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let next = n + 1.0;
    let sign = n.rem(2.0) * 2.0 - 1.0;
    let y = digamma(x).select_where(n.equals(0.0), sign * lgamma(next).exp() * zeta(next, x));
    y.replace_where(n.not_equals(n.floor()).or(n.lt(0.0)), f64::NAN)
}

/// (2k)! / B(2k) for k from 12 down to 1, with Bernoulli numbers B.
const ZETA: [f64; 12] = [
    -7.166_165_256_175_667e18,
    1.815_210_540_194_354_7e17,
    -4.597_978_722_407_473e15,
    1.164_678_281_435_006_7e14,
    -2.950_130_727_918_164e12,
    7.472_424_96e10,
    -1.892_437_580_318_379_2e9,
    47_900_160.0,
    -1_209_600.0,
    30_240.0,
    -720.0,
    12.0,
];

/// Hurwitz's zeta function, the sum of (q + k)^-x: ten terms, then the Euler-Maclaurin formula.
fn zeta<'s, 'b>(x: ArrayExpr<'s, 'b>, q: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let minus_x = -x;
    let mut place = q;
    let mut sum = q.pow(minus_x);
    for _ in 0..9 {
        place = place + 1.0;
        sum = sum + place.pow(minus_x);
    }
    place = place + 1.0;
    let last = place.pow(minus_x);
    let integral = last * place / (x - 1.0);
    let square = 1.0 / (place * place);
    let mut tail = x.constant(0.0);
    for (i, &c) in ZETA[..ZETA.len() - 1].iter().enumerate() {
        let k = (2 * (ZETA.len() - 1 - i)) as f64;
        tail = (x + k) * (x + (k - 1.0)) * square * (tail + 1.0 / c);
    }
    let correction = last * (x / place * (tail + 1.0 / ZETA[ZETA.len() - 1]) + 0.5);
    let enough = last.abs().lt(sum.abs() * sum.epsilon());
    let y = sum.select_where(enough, sum + integral + correction);
    let y = y.replace_where(x.equals(1.0), f64::INFINITY).replace_where(x.lt(1.0), f64::NAN);
    let whole = x.equals(x.floor());
    let y = y.replace_where(q.le(0.0).and(whole.not()), f64::NAN);
    let pole = q.le(0.0).and(q.equals(q.floor()));
    let even = x.rem(2.0).equals(0.0).and(whole);
    let at_pole = x.constant(f64::INFINITY).select_where(even, f64::NAN);
    at_pole.select_where(pole, y)
}

/// Lowers `Betainc`, the regularized incomplete beta function; shapes are equal or scalars.
fn betainc(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    floats(cx)?;
    let args = cx.arg_range(0, 3)?;
    let shapes: Vec<Vec<Dim>> = args.iter().map(|&x| cx.b.dims(x).to_vec()).filter(|d| !d.is_empty()).collect();
    if shapes.windows(2).any(|w| w[0] != w[1]) {
        return Err(
            cx.shape_mismatch(format!("the arguments have the shapes {shapes:?}; one shape or scalars are needed"))
        );
    }
    let (dims, dtype) = (shapes.first().cloned().unwrap_or_default(), cx.dtype(0)?);
    let work = if dtype == DType::F64 { dtype } else { DType::F32 };
    let mut wide = [args[0], args[1], args[2]];
    for x in &mut wide {
        *x = cx.b.broadcast_to(*x, &dims);
        *x = cx.b.convert(*x, work);
    }
    let y = beta_fraction(cx.b, wide);
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Continued fraction of DLMF 8.17.22 by Lentz's method, with a and b exchanged where it would converge slowly.
fn beta_fraction(b: &mut Builder, [a, c, x]: [InstId; 3]) -> InstId {
    let outside = build_formula(b, [a, c, x], |[a, b, x]| a.le(0.0).or(b.le(0.0)).or(x.lt(0.0)).or(x.gt(1.0)));
    let fast = build_formula(b, [a, c, x], |[a, b, x]| x.lt((a + 1.0) / (a + b + 2.0)));
    let first = build_formula(b, [fast, a, c], |[fast, a, b]| a.select_where(fast, b));
    let second = build_formula(b, [fast, a, c], |[fast, a, b]| b.select_where(fast, a));
    let at = build_formula(b, [fast, x], |[fast, x]| x.select_where(fast, 1.0 - x));
    let double = b.dtype(a) == DType::F64;
    let (limit, tiny) = if double { (600.0, f64::EPSILON / 2.0) } else { (200.0, f64::from(f32::EPSILON) / 2.0) };
    let going = build_formula(b, [outside], |[outside]| outside.not());
    let (least, zero) = (b.full_like(a, tiny), b.full_like(a, 0.0));
    let start = [least, zero, least, first, second, at];
    let end = iterate_elementwise(b, going, start, limit - 1.0, |[c, d, h, a, b, x], n| {
        // Term n of the fraction: 1, then for n = 2m + 1 and n = 2m + 2 those of the reference.
        let half = (n - 1.0) / 2.0;
        let m = half.floor();
        let even = half.not_equals(m);
        let twice = a + m * 2.0;
        let even_term = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0));
        let odd_term = m * (b - m) * x / ((twice - 1.0) * twice);
        let term = even_term.select_where(even, odd_term).replace_where(n.equals(1.0), 1.0);
        let [next_c, next_d] = [term / c + 1.0, term * d + 1.0].map(|v| v.replace_where(v.abs().lt(tiny), tiny));
        let next_d = 1.0 / next_d;
        let change = next_c * next_d;
        ((change - 1.0).abs().ge(tiny), [next_c, next_d, h * change, a, b, x])
    });
    let y = build_formula(b, [end[2], first, second, at, fast, outside], |[h, a, b, x, fast, outside]| {
        let log_beta = lgamma(a) + lgamma(b) - lgamma(a + b);
        let y = h * (x.ln() * a + (-x).ln_1p() * b - log_beta).exp() / a;
        let y = y.replace_where(outside, f64::NAN);
        y.select_where(fast, 1.0 - y)
    });
    // The values at 0 and 1 do not depend on the parameters, even if those are NaN.
    build_formula(b, [y, x, outside], |[y, x, outside]| {
        let inside = outside.not();
        y.replace_where(inside.and(x.equals(0.0)), 0.0).replace_where(inside.and(x.equals(1.0)), 1.0)
    })
}
