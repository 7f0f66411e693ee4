//! Modified Bessel functions of the second kind, orders 0 and 1, and the same scaled by e^x.
//!
//! Source: Cephes's Chebyshev series; f32 uses only the terms of the f64 series that it can represent.
use super::bessel::{chebyshev_series, i0e, i1e, lower_float_function};
use super::expr::{ArrayExpr, BinaryOperand};
use crate::ops::OpLowering;
use crate::ops::op_lowering::op;
use crate::tensor::DType;

const FLOATS: &str = "f16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("BesselK0",  "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| k0(x, 1.0, (-x).exp()))).pointwise().dtypes(FLOATS),
    op("BesselK0e", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| k0(x, x.exp(), 1.0))).pointwise().dtypes(FLOATS),
    op("BesselK1",  "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| k1(x, 1.0, (-x).exp()))).pointwise().dtypes(FLOATS),
    op("BesselK1e", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| k1(x, x.exp(), 1.0))).pointwise().dtypes(FLOATS),
];

/// K0, multiplied by `near` for arguments up to 2 and by `far` beyond; infinite at 0 and below.
fn k0<'s, 'b>(
    x: ArrayExpr<'s, 'b>,
    near: impl BinaryOperand<'s, 'b>,
    far: impl BinaryOperand<'s, 'b>,
) -> ArrayExpr<'s, 'b> {
    let i0 = i0e(x) * x.abs().exp();
    let small = chebyshev_series(x * x - 2.0, digits(x, K0_NEAR, 7)) - i0 * (x * 0.5).ln();
    joined(x, small * near.like(x), large(x, digits(x, K0_FAR, 10)) * far.like(x))
}

/// K1, multiplied by `near` for arguments up to 2 and by `far` beyond; infinite at 0 and below.
fn k1<'s, 'b>(
    x: ArrayExpr<'s, 'b>,
    near: impl BinaryOperand<'s, 'b>,
    far: impl BinaryOperand<'s, 'b>,
) -> ArrayExpr<'s, 'b> {
    let i1 = i1e(x) * x.abs().exp();
    let small = chebyshev_series(x * x - 2.0, digits(x, K1_NEAR, 7)) / x + i1 * (x * 0.5).ln();
    joined(x, small * near.like(x), large(x, digits(x, K1_FAR, 10)) * far.like(x))
}

/// Terms of a series: the last `singles` for f32, all of them for f64.
fn digits(x: ArrayExpr, all: &'static [f64], singles: usize) -> &'static [f64] {
    if x.dtype() == DType::F64 { all } else { &all[all.len() - singles..] }
}

fn large<'s, 'b>(x: ArrayExpr<'s, 'b>, series: &[f64]) -> ArrayExpr<'s, 'b> {
    chebyshev_series(8.0 / x - 2.0, series) * x.rsqrt()
}

fn joined<'s, 'b>(x: ArrayExpr<'s, 'b>, small: ArrayExpr<'s, 'b>, large: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    small.replace_where(x.le(0.0), f64::INFINITY).select_where(x.le(2.0), large)
}

/// Chebyshev series of K0 up to 2 without its logarithmic term, in x² - 2, highest order first.
const K0_NEAR: &[f64] = &[
    1.374_465_435_613_523e-16,
    4.259_816_142_796_61e-14,
    1.034_969_525_763_384_2e-11,
    1.904_516_377_220_209e-9,
    2.534_791_079_026_149_4e-7,
    2.286_212_103_119_452e-5,
    0.001_264_615_411_446_926,
    0.035_979_936_515_361_5,
    0.344_289_899_924_628_5,
    -0.535_327_393_233_902_8,
];

/// Chebyshev series of K0 times e^x and √x beyond 2, in 8/x - 2.
const K0_FAR: &[f64] = &[
    5.300_433_772_686_263e-18,
    -1.647_580_430_152_421_2e-17,
    5.210_391_505_039_027_4e-17,
    -1.678_231_096_805_412e-16,
    5.512_055_978_524_319e-16,
    -1.848_593_377_343_779e-15,
    6.340_076_477_405_070_6e-15,
    -2.227_513_326_991_669_8e-14,
    8.032_890_775_363_575e-14,
    -2.980_096_923_172_730_3e-13,
    1.140_340_588_208_475e-12,
    -4.514_597_883_373_944e-12,
    1.855_949_114_954_717_7e-11,
    -7.957_489_244_477_107e-11,
    3.577_397_281_400_301e-10,
    -1.697_534_509_389_06e-9,
    8.574_034_017_414_225e-9,
    -4.660_489_897_687_948e-8,
    2.766_813_639_445_015e-7,
    -1.831_755_522_719_119_5e-6,
    1.394_981_371_887_65e-5,
    -0.000_128_495_495_816_278_02,
    0.001_569_883_885_730_053_3,
    -0.031_448_101_311_964_5,
    2.440_303_082_065_955_5,
];

/// Chebyshev series of K1 times x up to 2 without its logarithmic term, in x² - 2.
const K1_NEAR: &[f64] = &[
    -7.023_863_479_386_288e-18,
    -2.427_449_850_519_366e-15,
    -6.666_901_694_199_329e-13,
    -1.411_488_392_633_527_8e-10,
    -2.213_387_630_734_726e-8,
    -2.433_406_141_565_968_4e-6,
    -0.000_173_028_895_751_305_2,
    -0.006_975_723_859_639_864,
    -0.122_611_180_822_657_15,
    -0.353_155_960_776_544_9,
    1.525_300_227_338_947_8,
];

/// Chebyshev series of K1 times e^x and √x beyond 2, in 8/x - 2.
const K1_FAR: &[f64] = &[
    -5.756_744_483_665_017e-18,
    1.794_050_873_147_559_2e-17,
    -5.689_462_558_442_859e-17,
    1.838_093_544_366_639e-16,
    -6.057_047_248_373_319e-16,
    2.038_703_165_624_334e-15,
    -7.019_837_090_418_314e-15,
    2.477_154_424_481_304_3e-14,
    -8.976_705_182_324_994e-14,
    3.348_419_666_078_429_3e-13,
    -1.289_173_960_951_028_9e-12,
    5.139_639_673_481_73e-12,
    -2.129_967_838_427_568_3e-11,
    9.218_315_187_605_006e-11,
    -4.190_354_759_341_896_5e-10,
    2.015_049_755_197_033e-9,
    -1.034_576_246_567_809_7e-8,
    5.741_084_125_450_049_5e-8,
    -3.501_960_603_087_812_6e-7,
    2.406_484_947_837_217e-6,
    -1.936_197_974_166_083e-5,
    0.000_195_215_518_471_351_62,
    -0.002_857_816_859_622_779,
    0.103_923_736_576_817_24,
    2.720_626_190_484_442_7,
];
