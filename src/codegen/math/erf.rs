//! The error function: an odd polynomial near 0, one minus erfc beyond; in f32 by pieces, and its complement, where there are
//! tables.
use super::super::arith::{abs, add, copysign, div, fcmp, float_constant, fma, mul, neg, reinterpret, select, sub};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::exp::{exp_f32_in_range, exp_finite};
use super::pieces::{self, octave_polynomial};
use super::sixteenths::{WHOLE, exp_of_nonpositive};
use super::table::uses_tables;
use super::{at_most, in_pairs, keep_nan, limit, polynomial};
use crate::tensor::DType;
use std::f32::consts::FRAC_2_SQRT_PI;

/// Coefficients of erf(x)/x for |x| < 0.93, in powers of x².
const NEAR_F32: [f64; 6] = [
    1.128_379_147_712_974_3,
    -0.376_124_811_493_191_44,
    0.112_816_828_504_445_2,
    -0.026_761_727_831_016_487,
    0.004_985_949_589_427_17,
    -0.000_595_377_868_410_388_3,
];
/// Coefficients of ln(erfc(x)) from 0.92 to 4.
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
/// Coefficients of erf(x)/x for |x| ≤ 1, in powers of x²: Chebyshev interpolation, relative error 8.2e-18.
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

/// erfc(x)·e^(x²) around the middle of each [piece](pieces::octave_polynomial), rising powers: Chebyshev interpolation, relative error
/// below 6.7e-9 before coefficients are rounded.
#[rustfmt::skip]
const ERFC_PIECES: [[f32; 16]; 7] = [
    [
        0.367_822_92, 0.284_972_22, 0.231_087_25, 0.193_662_09, 0.155_293_66, 0.122_484_8,
        0.100_962_22, 0.085_805_67, 0.069_985_166, 0.056_140_993, 0.046_854_22, 0.040_197_227,
        0.873_221_9, 0.685_857_24, 0.556_813_9, 0.464_311_57,
    ],
    [
        -0.208_821_91, -0.130_976_35, -0.088_486_51, -0.063_237_64, -0.041_323_59, -0.026_015_932,
        -0.017_794_766, -0.012_905_456, -0.008_616_511, -0.005_559_312_6, -0.003_877_862_8, -0.002_856_765,
        -0.910_073_76, -0.613_986_25, -0.432_361_8, -0.315_833_9,
    ],
    [
        0.106_795_59, 0.055_763_632, 0.031_992_63, 0.019_758_593, 0.010_661_136, 0.005_413_125_7,
        0.003_091_012_6, 0.001_920_207_9, 0.001_053_103_5, 0.000_547_870_6, 0.000_319_868_18, 0.000_202_520_2,
        0.759_462_65, 0.455_612_4, 0.286_587_74, 0.187_956_93,
    ],
    [
        -0.050_213_687, -0.022_258_809, -0.011_001_707, -0.005_934_218_4, -0.002_672_614_8, -0.001_104_487_1,
        -0.000_529_441_7, -0.000_282_729_83, -0.000_127_765_32, -5.373_357_3e-05, -2.629_553_3e-05, -1.432_109_7e-05,
        -0.543_415_8, -0.295_416_44, -0.168_827_7, -0.100_913_52,
    ],
    [
        0.022_009_725, 0.008_403_941, 0.003_618_894_1, 0.001_719_551_2, 0.000_652_583_9, 0.000_221_249_76,
        8.947_724_6e-05, 4.120_942_7e-05, 1.539_503_5e-05, 5.245_916e-06, 2.154_634_8e-06, 1.010_240_9e-06,
        0.345_761_75, 0.172_412_71, 0.090_533_79, 0.049_828_075,
    ],
    [
        -0.009_228_038, -0.003_058_839, -0.001_155_033_6, -0.000_486_009_52, -0.000_159_128_66, -4.426_091_3e-05,
        -1.510_430_4e-05, -6.000_657e-06, -1.888_628_7e-06, -5.182_441e-07, -1.780_294e-07, -7.170_755e-08,
        -0.201_547_25, -0.092_894_91, -0.045_148_097, -0.023_037_406,
    ],
    [
        0.003_605_415_6, 0.001_051_268_3, 0.000_351_764_84, 0.000_132_164_36, 3.699_740_4e-05, 8.562_383e-06,
        2.487_785_2e-06, 8.576_296e-07, 2.244_097_9e-07, 5.012_722_3e-08, 1.449_170_4e-08, 5.033_628_6e-09,
        0.107_606_77, 0.046_193_168, 0.020_928_148, 0.009_966_381,
    ],
];
/// Argument from which erfc(x) is less than a tenth of the smallest normal f32.
const MOST: f64 = 9.3;
/// erf(x) around whole numbers of [`STEP`], rising powers: Chebyshev interpolation, relative error below 4.1e-8, around 0 of odd
/// powers alone.
#[rustfmt::skip]
const ERF_PIECES: [[f32; 16]; 6] = [
    [
        0.0, 0.292_823_23, 0.547_528_45, 0.740_237, 0.867_058_3, 0.939_653_34,
        0.975_797_7, 0.991_450_3, 0.997_346, 0.999_277_4, 0.999_827_7, 0.999_964_06,
        0.999_993_44, 0.999_999, 0.999_999_9, 1.0,
    ],
    [
        FRAC_2_SQRT_PI, 1.051_508_3, 0.850_913_9, 0.597_962_3, 0.364_902_88, 0.193_373_1,
        0.088_987_72, 0.035_561_446, 0.012_340_82, 0.003_718_980_8, 0.000_973_238_2, 0.000_221_171_77,
        4.364_712_4e-05, 7.479_921e-06, 1.113_150_5e-06, 1.438_554_4e-07,
    ],
    [
        0.0, -0.279_299_53, -0.452_039_54, -0.476_497_6, -0.387_711_17, -0.256_827_53,
        -0.141_826_94, -0.066_122_89, -0.026_223_931, -0.008_890_149, -0.002_584_796_6, -0.000_646_064_76,
        -0.000_139_063_86, -2.581_153_2e-05, -4.135_405_6e-06, -5.723_703_7e-07,
    ],
    [
        -0.376_121_7, -0.301_039_58, -0.123_538_99, 0.053_817_198, 0.152_990_95, 0.162_938_18,
        0.121_026_665, 0.070_110_89, 0.033_037_733, 0.012_929_842, 0.004_253_362, 0.001_185_006_6,
        0.000_281_054_12, 5.695_460_6e-05, 9.888_095e-06, 1.473_794e-06,
    ],
    [
        0.0, 0.131_972_27, 0.182_216_61, 0.136_841_86, 0.048_238_616, -0.022_004_463,
        -0.048_751_41, -0.043_015_845, -0.026_408_296, -0.012_573_323, -0.004_842_928, -0.001_541_803,
        -0.000_410_856_6, -9.239_129_6e-05, -1.763_161_5e-05, -2.867_076_3e-06,
    ],
    [
        0.112_129_81, 0.075_778_58, -0.001_725_961_2, -0.059_438_698, -0.065_949_306, -0.036_870_148,
        -0.005_121_039_7, 0.010_917_334, 0.012_445_874, 0.008_071_18, 0.003_828_644_5, 0.001_428_831_7,
        0.000_433_421_26, 0.000_108_796_674, 2.285_199_3e-05, 4.046_486e-06,
    ],
];
/// Distance between the centres of neighboring pieces of erf, with few digits so that multiples of it are subtracted exactly.
const STEP: f64 = 17.0 / 64.0;

/// Emits erfc of f32 on targets with table lookup ([`super::table`]): erfc(x)·e^(x²) as a piecewise polynomial.
pub fn erfc_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let size = abs(f, x);
    let limited = at_most(f, &size, MOST);
    let scaled = octave_polynomial(f, &limited, &ERFC_PIECES);
    let square = mul(f, &limited, &limited);
    let minus = neg(f, &square);
    let y = exp_of_nonpositive(f, &minus, &scaled);
    let over = fcmp(f, "ogt", &size, &float_constant(x, MOST));
    let y = select(f, &over, &float_constant(x, 0.0), &y);
    let mirrored = sub(f, &float_constant(x, 2.0), &y);
    let is_negative = fcmp(f, "olt", x, &float_constant(x, 0.0));
    select(f, &is_negative, &mirrored, &y)
}

/// Emits erf of f32 as a piecewise polynomial, on targets with table lookup.
fn erf_by_pieces(f: &mut FunctionEmitter, x: &Val) -> Val {
    let size = abs(f, x);
    let limited = at_most(f, &size, 4.0);
    let whole = fma(f, &limited, &float_constant(x, 1.0 / STEP), &float_constant(x, WHOLE));
    let n = sub(f, &whole, &float_constant(x, WHOLE));
    let t = fma(f, &n, &float_constant(x, -STEP), &limited);
    let word = reinterpret(f, &whole, DType::U32);
    let y = pieces::polynomial(f, &word, &t, &ERF_PIECES);
    copysign(f, &y, x)
}

/// Emits erf of f32.
pub fn erf_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    if uses_tables(f) {
        return erf_by_pieces(f, x);
    }
    let size = abs(f, x);
    let limited = limit(f, &size, 0.0, 4.0);
    let log = in_pairs(f, &limited, &ERFC_LOG);
    let complement = exp_f32_in_range(f, &log);
    let square = mul(f, x, x);
    let near = in_pairs(f, &square, &NEAR_F32);
    select_by_magnitude(f, x, &near, 0.93, &complement)
}

/// Emits erf of f64.
pub fn erf_f64(f: &mut FunctionEmitter, x: &Val) -> Val {
    let size = abs(f, x);
    let limited = limit(f, &size, 1.0, 6.0);
    let bend = float_constant(x, 2.5);
    let (over, under) = (sub(f, &limited, &bend), add(f, &limited, &bend));
    let t = div(f, &over, &under);
    let scaled = polynomial(f, &t, &FAR_F64);
    let square = mul(f, &limited, &limited);
    let minus = neg(f, &square);
    let e = exp_finite(f, &minus, None);
    let complement = mul(f, &e, &scaled);
    let square = mul(f, x, x);
    let near = polynomial(f, &square, &NEAR_F64);
    select_by_magnitude(f, x, &near, 1.0, &complement)
}

/// Emits x·`near` for |x| below `edge`, and 1 - `complement` with the sign of x beyond.
fn select_by_magnitude(f: &mut FunctionEmitter, x: &Val, near: &Val, edge: f64, complement: &Val) -> Val {
    let size = abs(f, x);
    let near = mul(f, x, near);
    let far = sub(f, &float_constant(x, 1.0), complement);
    let far = copysign(f, &far, x);
    let small = fcmp(f, "olt", &size, &float_constant(x, edge));
    let y = select(f, &small, &near, &far);
    keep_nan(f, x, &y)
}
