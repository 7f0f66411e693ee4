//! Sines, cosines and the angle of a point.
use super::super::arith::{
    abs, add, binary_instruction, call_intrinsic, constant_bits, copysign, div, fcmp, float_constant, fma, icmp, mul,
    neg, reinterpret, select, sub,
};
use super::super::float::round;
use super::super::function::FunctionEmitter;
use super::super::portable::fuses_multiply_add;
use super::super::value::Val;
use super::slow::{MOST_F32, SlowPathFunction, large_angle_sines};
use super::{integer, polynomial};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// π/2 in three parts: 33, 33 and 53 bits.
const QUARTERS: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];

/// Emits sin x of f64.
pub fn sin_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let y = trig(f, x, 0);
    let nothing = fcmp(f, "oeq", x, &float_constant(x, 0.0));
    select(f, &nothing, x, &y)
}

/// Emits cos x of f64.
pub fn cos_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    trig(f, x, 1)
}

/// Emits the reduction of an f64 angle: n and r with x = n·π/2 + r. The parts of π/2 are exact enough up to 2^27 (2^20 without fused
/// multiply-add); for larger angles, which are rare, each lane calls [`SlowPathFunction::Quadrant`].
fn reduce(f: &mut FunctionEmitter, x: &Val) -> (Val, Val) {
    let n = mul(f, x, &float_constant(x, std::f64::consts::FRAC_2_PI));
    let n = round(f, ScalarOp::RoundNearestEven, &n);
    let mut r = x.clone();
    for part in QUARTERS {
        r = fma(f, &n, &float_constant(x, -part), &r);
    }
    let size = abs(f, x);
    let far = fcmp(
        f,
        "ogt",
        &size,
        &float_constant(x, if fuses_multiply_add(f, x.dtype) { 134_217_728.0 } else { 1_048_576.0 }),
    );
    let finite = fcmp(f, "olt", &size, &float_constant(x, f64::INFINITY));
    let far = binary_instruction(f, "and", &far, &finite);
    let both = f.replace_lanes_where(&far, &[n, r], |f| {
        // All lanes are reduced, so those that need it not get an angle that can be.
        let x = select(f, &far, x, &float_constant(x, 1_073_741_824.0));
        let lanes: Vec<(Val, Val)> = (0..x.lanes)
            .map(|l| {
                let one = f.extract_lane(&x, l);
                let n = SlowPathFunction::Quadrant.call(f, &[&one]);
                let r = SlowPathFunction::Rest.call(f, &[&one]);
                (n, r)
            })
            .collect();
        let (n, r): (Vec<Val>, Vec<Val>) = lanes.into_iter().unzip();
        vec![f.build_vector(&n), f.build_vector(&r)]
    });
    let [n, r] = [0, 1].map(|i| both[i].clone());
    (n, r)
}

/// π as the sum of three f32 constants, with an error of 2e-23.
const HALF_TURN: [f64; 3] = [3.141_592_741_012_573_2, -8.742_277_657_347_586e-8, -3.430_249_020_011_763_7e-15];
/// (sin r / r - 1)/r² for |r| <= π/2, rising powers of r²: Chebyshev interpolation, by which sin r is wrong by at most 3.8e-8 of
/// it.
const SINE_F32: [f64; 4] = [-0.166_666_66, 0.008_333_242, -0.000_198_226_67, 2.634_519_7e-6];

/// Emits sin x of f32.
pub fn sin_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let y = trig_f32(f, x, 0);
    let nothing = fcmp(f, "oeq", x, &float_constant(x, 0.0));
    select(f, &nothing, x, &y)
}

/// Emits cos x of f32.
pub fn cos_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    trig_f32(f, x, 1)
}

/// Emits sin (phase 0) or cos (phase 1) of an f32: for x = (n - phase/2)·π + r the result is sin r, negated if n is odd. Large angles,
/// which are rare, and infinite ones are computed in f64: up to [`MOST_F32`] n·π is exact enough with fused multiply-adds.
fn trig_f32(f: &mut FunctionEmitter, x: &Val, phase: u64) -> Val {
    // a whole number plus this has its low bits in the f32's
    let whole = float_constant(x, 12_582_912.0);
    let ahead = float_constant(x, phase as f64 / 2.0);
    let turns = float_constant(x, std::f64::consts::FRAC_1_PI);
    let near = fma(f, x, &turns, if phase == 0 { &whole } else { &ahead });
    let near = if phase == 0 { near } else { add(f, &near, &whole) };
    let mut n = sub(f, &near, &whole);
    if phase != 0 {
        n = sub(f, &n, &ahead);
    }
    let mut r = x.clone();
    for part in HALF_TURN {
        r = fma(f, &n, &float_constant(x, -part), &r);
    }
    let (square, word) = (mul(f, &r, &r), reinterpret(f, &near, DType::U32));
    let (bent, cube) = (polynomial(f, &square, &SINE_F32), mul(f, &r, &square));
    let sine = fma(f, &cube, &bent, &r);
    let odd = binary_instruction(f, "shl", &word, &constant_bits(&word, 31));
    let sine = reinterpret(f, &sine, DType::U32);
    let y = binary_instruction(f, "xor", &sine, &odd);
    let y = reinterpret(f, &y, DType::F32);
    let size = abs(f, x);
    let far = fcmp(f, "ogt", &size, &float_constant(x, MOST_F32));
    let all = f.replace_lanes_where(&far, std::slice::from_ref(&y), |f| vec![large_angle_sines(f, x, &y, phase)]);
    all[0].clone()
}

/// Emits sin (phase 0) or cos (phase 1) of an f64 x = n·π/2 + r.
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
    let quadrant = binary_instruction(f, "add", &quadrant, &constant_bits(&quadrant, phase));
    let zero = constant_bits(&quadrant, 0);
    let odd = binary_instruction(f, "and", &quadrant, &constant_bits(&quadrant, 1));
    let odd = icmp(f, "ne", &odd, &zero);
    let y = select(f, &odd, &c, &s);
    let far = binary_instruction(f, "and", &quadrant, &constant_bits(&quadrant, 2));
    let far = icmp(f, "ne", &far, &zero);
    let minus = neg(f, &y);
    select(f, &far, &minus, &y)
}

/// Emits atan2(y, x) of f64: the angle is halved twice by tan(a/2) = t/(1+√(1+t²)), then the odd series up to t²⁷ applies.
pub fn atan2_f64(f: &mut FunctionEmitter, y: &Val, x: &Val) -> Val {
    let (zero, one) = (float_constant(x, 0.0), float_constant(x, 1.0));
    let (ay, ax) = (abs(f, y), abs(f, x));
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
        let root = call_intrinsic(f, "sqrt", &[&square]);
        let below = add(f, &one, &root);
        t = div(f, &t, &below);
    }
    let square = mul(f, &t, &t);
    let series: Vec<f64> = (0..14).map(|k| 4.0 * if k % 2 == 0 { 1.0 } else { -1.0 } / f64::from(2 * k + 1)).collect();
    let p = polynomial(f, &square, &series);
    let angle = mul(f, &t, &p);
    // Halving would lose a denormal ratio; a small one is its own angle.
    let tiny = fcmp(f, "olt", &ratio, &float_constant(x, 1e-9));
    let angle = select(f, &tiny, &ratio, &angle);
    // The diagonals are exact, as of two infinities.
    let diagonal = fcmp(f, "oeq", &ratio, &one);
    let angle = select(f, &diagonal, &float_constant(x, std::f64::consts::FRAC_PI_4), &angle);
    let other = sub(f, &float_constant(x, std::f64::consts::FRAC_PI_2), &angle);
    let angle = select(f, &steep, &other, &angle);
    let sign = copysign(f, &one, x);
    let left = fcmp(f, "olt", &sign, &zero);
    let other = sub(f, &float_constant(x, std::f64::consts::PI), &angle);
    let angle = select(f, &left, &other, &angle);
    copysign(f, &angle, y)
}
