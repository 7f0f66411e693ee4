//! The error function: an odd polynomial near 0, one minus erfc beyond.
use super::super::float::number;
use super::super::function::Function;
use super::super::scalar::{fcmp, select};
use super::super::value::Val;
use super::exp::{exp_finite, exp_one_factor};
use super::{add, div, in_pairs, keep_nan, limit, magnitude, mul, negated, polynomial, signed_as, sub};

/// erf(x)/x below 0.93, in x².
const NEAR_F32: [f64; 6] = [
    1.128_379_147_712_974_3,
    -0.376_124_811_493_191_44,
    0.112_816_828_504_445_2,
    -0.026_761_727_831_016_487,
    0.004_985_949_589_427_17,
    -0.000_595_377_868_410_388_3,
];
/// ln(erfc(x)) from 0.92 to 4.
const ERFC_LOG: [f64; 8] = [
    0.000_174_683_010_947_206_68,
    -1.129_514_923_299_452_8,
    -0.633_346_921_473_975_9,
    -0.108_280_071_960_512_4,
    0.025_119_415_544_695_947,
    -0.004_171_058_308_267_007_5,
    0.000_434_461_593_882_629_24,
    -2.109_495_746_736_957e-5,
];
/// erf(x)/x up to 1, in x²: Chebyshev interpolation, error 8.2e-18 of the value.
const NEAR_F64: [f64; 12] = [
    std::f64::consts::FRAC_2_SQRT_PI,
    -0.376_126_389_031_835_43,
    0.112_837_916_709_450_06,
    -0.026_866_170_643_237_77,
    0.005_223_977_607_116_422_5,
    -0.000_854_832_597_538_969_2,
    0.000_120_552_949_048_397_07,
    -1.492_473_690_741_966e-5,
    1.644_742_470_331_736_2e-6,
    -1.620_848_380_187_170_5e-7,
    1.372_006_454_677_768_6e-8,
    -7.795_898_827_002_142e-10,
];
/// erfc(x)·e^(x²) from 1 to 6, in (x - 2.5)/(x + 2.5): Chebyshev interpolation, error 1.2e-16 of the value.
const FAR_F64: [f64; 16] = [
    0.210_806_364_061_143_56,
    -0.371_736_733_948_973_2,
    0.251_713_193_217_456,
    -0.125_033_052_378_855_54,
    0.039_922_539_074_783_8,
    -0.003_993_701_164_146_986_5,
    -0.002_642_365_927_759_658,
    0.000_875_915_401_916_885_5,
    0.000_228_379_558_966_054_15,
    -0.000_128_876_496_153_171_98,
    -3.417_222_927_355_303_5e-5,
    1.860_971_231_461_746_4e-5,
    7.484_801_178_526_28e-6,
    -2.284_217_309_434_134_5e-6,
    -1.562_525_850_774_315_8e-6,
    8.134_380_709_229_634e-8,
];

/// erf of f32.
pub fn erf_f32(f: &mut Function, x: &Val) -> Val {
    let size = magnitude(f, x);
    let limited = limit(f, &size, 0.0, 4.0);
    let log = in_pairs(f, &limited, &ERFC_LOG);
    let complement = exp_one_factor(f, &log);
    let square = mul(f, x, x);
    let near = in_pairs(f, &square, &NEAR_F32);
    joined(f, x, &near, 0.93, &complement)
}

/// erf of f64.
pub fn erf_f64(f: &mut Function, x: &Val) -> Val {
    let size = magnitude(f, x);
    let limited = limit(f, &size, 1.0, 6.0);
    let bend = number(x, 2.5);
    let (over, under) = (sub(f, &limited, &bend), add(f, &limited, &bend));
    let t = div(f, &over, &under);
    let scaled = polynomial(f, &t, &FAR_F64);
    let square = mul(f, &limited, &limited);
    let minus = negated(f, &square);
    let e = exp_finite(f, &minus, None);
    let complement = mul(f, &e, &scaled);
    let square = mul(f, x, x);
    let near = polynomial(f, &square, &NEAR_F64);
    joined(f, x, &near, 1.0, &complement)
}

/// x·`near` below `edge`, beyond it 1 - `complement` with the sign of x.
fn joined(f: &mut Function, x: &Val, near: &Val, edge: f64, complement: &Val) -> Val {
    let size = magnitude(f, x);
    let near = mul(f, x, near);
    let far = sub(f, &number(x, 1.0), complement);
    let far = signed_as(f, &far, x);
    let small = fcmp(f, "olt", &size, &number(x, edge));
    let y = select(f, &small, &near, &far);
    keep_nan(f, x, &y)
}
