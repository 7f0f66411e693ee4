//! The remainder of truncated division, exact.
use super::super::arith::{abs, add, binary_instruction, copysign, div, fcmp, float_constant, fma, neg, select};
use super::super::convert::convert;
use super::super::float::round;
use super::super::function::FunctionEmitter;
use super::super::portable::fuses_multiply_add;
use super::super::value::Val;
use super::slow::SlowPathFunction;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Emits the remainder with the dividend's sign: |x| - ⌊|x/y|⌋·|y| while that is exact, else by long division.
pub fn remainder(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    // Without multiply-add the product of two f32 is exact up to a quotient of 2^29, that of two f64 never.
    let most = match (fuses_multiply_add(f, DType::F64), x.dtype == DType::F32) {
        (true, _) => 4_503_599_627_370_496.0,
        (false, true) => 536_870_912.0,
        (false, false) => 1.0,
    };
    if x.dtype == DType::F32 {
        let (a, b) = (convert(f, x, DType::F64), convert(f, y, DType::F64));
        let r = in_f64(f, &a, &b, most);
        return convert(f, &r, DType::F32);
    }
    in_f64(f, x, y, most)
}

fn in_f64(f: &mut FunctionEmitter, x: &Val, y: &Val, most: f64) -> Val {
    let (ax, ay) = (abs(f, x), abs(f, y));
    let q = div(f, &ax, &ay);
    let whole = round(f, ScalarOp::Floor, &q);
    let minus = neg(f, &whole);
    let r = fma(f, &minus, &ay, &ax);
    // The quotient may have been rounded up to a whole number.
    let below = fcmp(f, "olt", &r, &float_constant(x, 0.0));
    let more = add(f, &r, &ay);
    let r = select(f, &below, &more, &r);
    let infinite = float_constant(x, f64::INFINITY);
    let finite = fcmp(f, "olt", &ax, &infinite);
    let endless = fcmp(f, "oeq", &ay, &infinite);
    let both = binary_instruction(f, "and", &finite, &endless);
    let r = select(f, &both, &ax, &r);
    let far = fcmp(f, "oge", &q, &float_constant(x, most));
    let divides = fcmp(f, "one", &ay, &float_constant(x, 0.0));
    let far = binary_instruction(f, "and", &far, &divides);
    let far = binary_instruction(f, "and", &far, &finite);
    let r = f.replace_lanes_where(&far, &[r], |f| {
        // All lanes are divided, so those that need it not get operands that can be.
        let (ax, ay) = (select(f, &far, &ax, &float_constant(x, 0.0)), select(f, &far, &ay, &float_constant(x, 1.0)));
        let lanes: Vec<Val> = (0..x.lanes)
            .map(|l| {
                let (a, b) = (f.extract_lane(&ax, l), f.extract_lane(&ay, l));
                SlowPathFunction::Remainder.call(f, &[&a, &b])
            })
            .collect();
        vec![f.build_vector(&lanes)]
    });
    copysign(f, &r[0], x)
}
