//! Sines, cosines and the angle of a point.
use super::super::arith::{
    add, bits, call, div, fcmp, fma, icmp, magnitude, mul, negated, number, reinterpret, select, signed_as, sub, two,
};
use super::super::float::round;
use super::super::function::FunctionEmitter;
use super::super::portable::is_fused;
use super::super::value::Val;
use super::slow::{MOST_F32, SlowPathFunction, sines};
use super::{integer, polynomial};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// π/2 in three parts: 33, 33 and 53 bits.
const QUARTERS: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];

/// sin x.
pub fn sin_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let y = trig(f, x, 0);
    let nothing = fcmp(f, "oeq", x, &number(x, 0.0));
    select(f, &nothing, x, &y)
}

/// cos x.
pub fn cos_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    trig(f, x, 1)
}

/// x = n·π/2 + r. The parts of π/2 are exact enough up to 2^27 (2^20 where products are rounded); beyond, and that is
/// rare, each lane asks [`SlowPathFunction::Quadrant`].
fn reduce(f: &mut FunctionEmitter, x: &Val) -> (Val, Val) {
    let n = mul(f, x, &number(x, std::f64::consts::FRAC_2_PI));
    let n = round(f, ScalarOp::RoundNearestEven, &n);
    let mut r = x.clone();
    for part in QUARTERS {
        r = fma(f, &n, &number(x, -part), &r);
    }
    let size = magnitude(f, x);
    let far = fcmp(f, "ogt", &size, &number(x, if is_fused(f, x.dtype) { 134_217_728.0 } else { 1_048_576.0 }));
    let finite = fcmp(f, "olt", &size, &number(x, f64::INFINITY));
    let far = two(f, "and", &far, &finite);
    let both = f.rarely(&far, &[n, r], |f| {
        // All lanes are reduced, so those that need it not get an angle that can be.
        let x = select(f, &far, x, &number(x, 1_073_741_824.0));
        let lanes: Vec<(Val, Val)> = (0..x.lanes)
            .map(|l| {
                let one = f.lane_of(&x, l);
                let n = SlowPathFunction::Quadrant.call(f, &[&one]);
                let r = SlowPathFunction::Rest.call(f, &[&one]);
                (n, r)
            })
            .collect();
        let (n, r): (Vec<Val>, Vec<Val>) = lanes.into_iter().unzip();
        vec![f.gather(&n), f.gather(&r)]
    });
    let [n, r] = [0, 1].map(|i| both[i].clone());
    (n, r)
}

/// π in three f32, the sum of which is 2e-23 off.
const HALF_TURN: [f64; 3] = [3.141_592_741_012_573_2, -8.742_277_657_347_586e-8, -3.430_249_020_011_763_7e-15];
/// (sin r / r - 1)/r² for |r| <= π/2, rising powers of r²: Chebyshev interpolation, by which sin r is wrong by at most 3.8e-8 of
/// it.
const SINE_F32: [f64; 4] = [-0.166_666_66, 0.008_333_242, -0.000_198_226_67, 2.634_519_7e-6];

/// sin x of f32.
pub fn sin_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let y = trig_f32(f, x, 0);
    let nothing = fcmp(f, "oeq", x, &number(x, 0.0));
    select(f, &nothing, x, &y)
}

/// cos x of f32.
pub fn cos_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    trig_f32(f, x, 1)
}

/// sin (phase 0) or cos (phase 1) of an f32: of x = (n - phase/2)·π + r it is sin r, turned round where n is odd. Large angles,
/// which are rare, and infinite ones are done as doubles: up to [`MOST_F32`] n·π is exact enough where products are not rounded.
fn trig_f32(f: &mut FunctionEmitter, x: &Val, phase: u64) -> Val {
    // a whole number plus this has its low bits in the f32's
    let whole = number(x, 12_582_912.0);
    let ahead = number(x, phase as f64 / 2.0);
    let turns = number(x, std::f64::consts::FRAC_1_PI);
    let near = fma(f, x, &turns, if phase == 0 { &whole } else { &ahead });
    let near = if phase == 0 { near } else { add(f, &near, &whole) };
    let mut n = sub(f, &near, &whole);
    if phase != 0 {
        n = sub(f, &n, &ahead);
    }
    let mut r = x.clone();
    for part in HALF_TURN {
        r = fma(f, &n, &number(x, -part), &r);
    }
    let (square, word) = (mul(f, &r, &r), reinterpret(f, &near, DType::U32));
    let (bent, cube) = (polynomial(f, &square, &SINE_F32), mul(f, &r, &square));
    let sine = fma(f, &cube, &bent, &r);
    let odd = two(f, "shl", &word, &bits(&word, 31));
    let sine = reinterpret(f, &sine, DType::U32);
    let y = two(f, "xor", &sine, &odd);
    let y = reinterpret(f, &y, DType::F32);
    let size = magnitude(f, x);
    let far = fcmp(f, "ogt", &size, &number(x, MOST_F32));
    let all = f.rarely(&far, std::slice::from_ref(&y), |f| vec![sines(f, x, &y, phase)]);
    all[0].clone()
}

/// sin (phase 0) or cos (phase 1) of x = n·π/2 + r.
fn trig(f: &mut FunctionEmitter, x: &Val, phase: u64) -> Val {
    let (n, r) = reduce(f, x);
    let square = mul(f, &r, &r);
    let mut sine = vec![1.0];
    let mut cosine = vec![1.0];
    for k in 1..=9 {
        let k = f64::from(2 * k);
        sine.push(-sine[sine.len() - 1] / (k * (k + 1.0)));
        cosine.push(-cosine[cosine.len() - 1] / (k * (k - 1.0)));
    }
    let s = polynomial(f, &square, &sine);
    let s = mul(f, &r, &s);
    let c = polynomial(f, &square, &cosine);
    let quadrant = integer(f, &n);
    let quadrant = two(f, "add", &quadrant, &bits(&quadrant, phase));
    let zero = bits(&quadrant, 0);
    let odd = two(f, "and", &quadrant, &bits(&quadrant, 1));
    let odd = icmp(f, "ne", &odd, &zero);
    let y = select(f, &odd, &c, &s);
    let far = two(f, "and", &quadrant, &bits(&quadrant, 2));
    let far = icmp(f, "ne", &far, &zero);
    let minus = negated(f, &y);
    select(f, &far, &minus, &y)
}

/// The angle of (y, x): the argument is halved twice by tan(a/2) = t/(1+√(1+t²)), then the odd series to t²⁷.
pub fn atan2_f64(f: &mut FunctionEmitter, y: &Val, x: &Val) -> Val {
    let (zero, one) = (number(x, 0.0), number(x, 1.0));
    let (ay, ax) = (magnitude(f, y), magnitude(f, x));
    let steep = fcmp(f, "ogt", &ay, &ax);
    let (top, bottom) = (select(f, &steep, &ax, &ay), select(f, &steep, &ay, &ax));
    let ratio = div(f, &top, &bottom);
    // 0/0 counts as 0, inf/inf as 1; NaN stays.
    let equal = fcmp(f, "oeq", &ay, &ax);
    let nothing = fcmp(f, "oeq", &bottom, &zero);
    let unit = select(f, &nothing, &zero, &one);
    let ratio = select(f, &equal, &unit, &ratio);
    let mut t = ratio.clone();
    for _ in 0..2 {
        let square = fma(f, &t, &t, &one);
        let root = call(f, "sqrt", &[&square]);
        let below = add(f, &one, &root);
        t = div(f, &t, &below);
    }
    let square = mul(f, &t, &t);
    let series: Vec<f64> = (0..14).map(|k| 4.0 * if k % 2 == 0 { 1.0 } else { -1.0 } / f64::from(2 * k + 1)).collect();
    let p = polynomial(f, &square, &series);
    let angle = mul(f, &t, &p);
    // Halving would lose a denormal ratio; a small one is its own angle.
    let tiny = fcmp(f, "olt", &ratio, &number(x, 1e-9));
    let angle = select(f, &tiny, &ratio, &angle);
    // The diagonals are exact, as of two infinities.
    let diagonal = fcmp(f, "oeq", &ratio, &one);
    let angle = select(f, &diagonal, &number(x, std::f64::consts::FRAC_PI_4), &angle);
    let other = sub(f, &number(x, std::f64::consts::FRAC_PI_2), &angle);
    let angle = select(f, &steep, &other, &angle);
    let sign = signed_as(f, &one, x);
    let left = fcmp(f, "olt", &sign, &zero);
    let other = sub(f, &number(x, std::f64::consts::PI), &angle);
    let angle = select(f, &left, &other, &angle);
    signed_as(f, &angle, y)
}
