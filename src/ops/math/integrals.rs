//! Integrals without a closed form: Dawson's, the exponential integral, Fresnel's and Spence's.
//!
//! Source: Cephes's rational approximations.
use super::bessel::lower_float_function;
use super::expr::ArrayExpr;
use crate::ops::OpLowering;
use crate::ops::op_lowering::op;
use std::f64::consts::{FRAC_PI_2, PI};

const FLOATS: &str = "f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Dawsn",      "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| dawson(x))).pointwise().dtypes(FLOATS),
    op("Expint",     "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| exponential(x))).pointwise().dtypes(FLOATS),
    op("FresnelCos", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| fresnel(x, Part::Cosine))).pointwise().dtypes(FLOATS),
    op("FresnelSin", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| fresnel(x, Part::Sine))).pointwise().dtypes(FLOATS),
    op("Spence",     "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| spence(x))).pointwise().dtypes(FLOATS),
];

/// Rational function: numerator and denominator, highest powers first.
type Quotient = [&'static [f64]; 2];

fn quotient<'s, 'b>(x: ArrayExpr<'s, 'b>, [over, under]: Quotient) -> ArrayExpr<'s, 'b> {
    x.polynomial(over) / x.polynomial(under)
}

/// Odd function of `x`, given its values at |x|.
fn odd<'s, 'b>(x: ArrayExpr<'s, 'b>, of_magnitude: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    (-of_magnitude).select_where(x.lt(0.0), of_magnitude)
}

/// Dawson's integral: e^(-x²) times the integral of e^(t²) from 0 to x.
fn dawson<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let y = x.abs();
    let square = y * y;
    let near = y * square.polynomial(DAWSON_NEAR[0]) / square.polynomial(DAWSON_NEAR[1]);
    let inverse = 1.0 / y;
    let u = inverse * inverse;
    let [middle, far] = [DAWSON_MIDDLE, DAWSON_FAR]
        .map(|[over, under]| (u * (u.polynomial(over) / (y * u.polynomial(under))) + inverse) * 0.5);
    // Beyond, the value already has the sign of x, and gets it once more, as in TensorFlow.
    let last = 0.5 / x;
    let value = near.select_where(y.lt(3.25), middle.select_where(y.lt(6.25), far.select_where(y.lt(1e9), last)));
    odd(x, value)
}

/// Exponential integral: the integral of e^t / t from -∞ to x; NaN below 0.
fn exponential<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    const EULER: f64 = 0.577_215_664_901_532_9;
    let near = x * quotient(x, EXPONENTIAL_NEAR) + EULER + x.ln();
    let inverse = 1.0 / x;
    let scale = x.exp() * inverse;
    let [last, rest @ ..] =
        EXPONENTIAL_FAR.map(|(end, table)| (end, scale * (inverse * quotient(inverse, table) + 1.0)));
    let far = rest.into_iter().fold(last.1, |far, (end, value)| value.select_where(x.lt(end), far));
    near.select_where(x.lt(2.0), far).replace_where(x.lt(0.0), f64::NAN)
}

/// Kind of Fresnel integral.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Cosine,
    Sine,
}

/// Fresnel integral: of cos(πt²/2) or sin(πt²/2) from 0 to x.
fn fresnel<'s, 'b>(x: ArrayExpr<'s, 'b>, part: Part) -> ArrayExpr<'s, 'b> {
    let y = x.abs();
    let square = y * y;
    let fourth = square * square;
    let near = match part {
        Part::Cosine => y * fourth.polynomial(COSINE_NEAR[0]) / fourth.polynomial(COSINE_NEAR[1]),
        Part::Sine => y * square * fourth.polynomial(SINE_NEAR[0]) / fourth.polynomial(SINE_NEAR[1]),
    };
    let t = 1.0 / (square * PI);
    let u = t * t;
    let f = 1.0 - u * quotient(u, FRESNEL_F);
    let g = t * u.polynomial(FRESNEL_G[0]) / u.polynomial(FRESNEL_G[1]);
    let angle = square * FRAC_PI_2;
    let (c, s) = (angle.cos(), angle.sin());
    let scale = 1.0 / (y * PI);
    let far = match part {
        Part::Cosine => (f * s - g * c) * scale + 0.5,
        Part::Sine => 0.5 - (f * c + g * s) * scale,
    };
    odd(x, near.select_where((x * x).lt(2.5625), far).replace_where(y.gt(36974.0), 0.5))
}

/// Spence's integral: of ln(t) / (1 - t) from 1 to x; NaN below 0.
fn spence<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    const AT_0: f64 = PI * PI / 6.0;
    let y = x.select_where(x.lt(2.0), 1.0 / x);
    let w = (-y).select_where(y.lt(0.5), y - 1.0);
    let w = (1.0 / y - 1.0).select_where(y.gt(1.5), w);
    let value = -w * quotient(w, SPENCE);
    let z = y.ln();
    let value = (-z * (-y).ln_1p() + AT_0 - value).select_where(y.lt(0.5), value);
    let value = (z * -0.5 * z - value).select_where(x.gt(1.5), value);
    value.replace_where(x.equals(1.0), 0.0).replace_where(x.equals(0.0), AT_0).replace_where(x.lt(0.0), f64::NAN)
}

/// Dawson's integral over x, in x², below 3.25.
#[rustfmt::skip]
const DAWSON_NEAR: Quotient = [
    &[1.136_814_989_717_559_7e-11, 8.492_622_676_674_738e-10, 1.944_342_041_755_530_6e-8, 9.531_517_412_544_844e-7,
      3.078_283_098_749_132e-6, 0.000_352_513_368_520_288_77, -0.000_850_149_846_724_410_9, 0.042_261_822_300_554_66,
      -0.091_748_037_177_345_24, 1.0],
    &[2.403_720_730_667_626e-11, 1.488_646_813_684_934e-9, 5.212_652_810_105_416e-8, 1.272_584_782_731_869_7e-6,
      2.324_902_498_207_895e-5, 0.000_325_524_741_826_057_93, 0.003_488_058_146_571_626, 0.027_944_853_119_882_897,
      0.158_874_241_960_120_57, 0.574_918_629_489_320_4, 1.0],
];
/// Dawson's integral, in 1/x², from 3.25 to 6.25.
#[rustfmt::skip]
const DAWSON_MIDDLE: Quotient = [
    &[0.508_955_156_417_900_9, -0.244_754_418_142_697_85, 0.094_151_233_530_353_44, -0.021_871_125_514_203_903,
      0.003_662_076_123_295_692, -0.000_423_209_114_460_388_8, 3.596_413_047_938_966_6e-5,
      -2.146_403_517_199_689_6e-6, 9.100_107_800_763_914e-8, -2.402_745_208_282_509_8e-9, 3.592_333_854_409_284e-11],
    &[1.0, -0.631_839_869_873_368_2, 0.236_706_788_228_248_7, -0.053_180_636_700_322_324, 0.008_480_417_185_862_954,
      -0.000_947_996_768_486_665_4, 7.810_255_929_445_524e-5, -4.558_751_532_524_426e-6, 1.891_003_581_114_218_6e-7,
      -4.913_246_913_319_206e-9, 7.184_664_032_357_345e-11],
];
/// Dawson's integral, in 1/x², from 6.25 on.
#[rustfmt::skip]
const DAWSON_FAR: Quotient = [
    &[-0.590_592_860_534_773_2, 0.629_235_242_724_368_8, -0.172_858_975_380_388_14, 0.016_483_704_782_518_965,
      -0.000_486_827_613_020_462_7],
    &[1.0, -2.698_200_571_975_449, 1.732_707_990_459_478_4, -0.393_708_582_281_939_5, 0.034_427_892_404_123_34,
      -0.000_973_655_226_040_941_2],
];
/// Exponential integral without its logarithm, over x, in x, below 2.
#[rustfmt::skip]
const EXPONENTIAL_NEAR: Quotient = [
    &[-5.350_447_357_812_543, 218.504_916_881_661_33, -4_176.572_384_826_693, 55_411.767_563_935_57,
      -331_338.133_117_814_43, 1_592_627.163_384_945_4],
    &[1.0, -52.505_479_591_128_626, 1_259.616_186_786_790_6, -17_565.495_819_735_348, 149_306.211_700_272_6,
      -729_494.923_964_052_8, 1_592_627.163_384_945_4],
];
/// Exponential integral, in 1/x, each with the end of its range, the last range first.
#[rustfmt::skip]
const EXPONENTIAL_FAR: [(f64, Quotient); 6] = [
    (f64::INFINITY, [
        &[-0.765_784_707_828_612_7, 0.688_619_241_556_670_5, -0.213_259_811_354_520_6, 0.033_461_075_523_841_935,
          -0.003_076_541_477_344_756, 0.000_174_711_931_645_490_74, -6.103_711_682_274_170_5e-6,
          1.218_032_765_428_652e-7, -1.086_076_102_793_290_3e-9],
        &[1.0, -1.888_802_868_662_308_6, 1.066_691_687_211_409, -0.275_191_598_230_638_05, 0.039_308_526_882_338_234,
          -0.003_414_684_558_602_365, 0.000_186_684_437_070_355_55, -6.345_146_083_130_515e-6,
          1.239_754_287_483_207e-7, -1.086_076_102_793_126_5e-9],
    ]),
    (64.0, [
        &[0.121_256_111_810_545_67, -0.582_313_317_904_389_4, 0.234_888_731_455_701_7, -0.030_400_343_181_132_484,
          0.001_510_082_146_865_190_6, -2.523_137_095_499_571_4e-5],
        &[1.0, -1.002_252_150_365_854, 0.292_870_969_487_222_4, -0.033_370_043_386_740_08,
          0.001_560_544_881_127_388_8, -2.523_137_093_603_234_7e-5],
    ]),
    (32.0, [
        &[-0.245_811_936_767_402_04, -0.148_338_225_332_207_78, 0.072_482_917_957_355_52, -0.013_483_156_873_809_405,
          0.001_342_775_069_788_637, -7.942_465_637_159_712e-5, 2.644_179_518_984_236e-6, -4.239_473_659_313_765e-8],
        &[1.0, -0.104_422_590_844_387_11, -0.267_645_312_810_140_26, 0.096_950_002_546_219_84,
          -0.016_017_456_927_129_91, 0.001_496_414_899_205_908, -8.462_452_563_778_485e-5, 2.728_938_403_476_726_6e-6,
          -4.239_462_431_819_542e-8],
    ]),
    (16.0, [
        &[-2.106_934_601_691_916_6, 1.732_733_869_664_688_1, -0.242_361_917_893_584_2, 0.023_227_241_809_375_66,
          0.000_237_288_044_049_317_98, -8.343_219_561_192_553e-5, 1.363_408_795_605_250_5e-5,
          -3.655_412_321_999_254e-7, 1.464_941_733_975_961_2e-8, 6.176_407_863_710_36e-10],
        &[1.0, -0.229_806_223_990_167_8, 0.110_507_704_147_403_78, -0.015_665_429_666_307_924,
          0.002_761_106_850_817_353, -0.000_208_914_801_228_404_84, 1.708_528_938_807_675_4e-5,
          -4.459_311_796_356_686_5e-7, 1.394_634_930_353_847_5e-8, 6.150_865_933_977_338e-10],
    ]),
    (8.0, [
        &[-1.373_215_375_871_208_7, -0.708_455_913_374_083_9, 1.580_806_855_547_941, -0.260_150_042_742_562_3,
          0.029_946_746_941_137_137, -0.001_038_086_040_188_744, 4.371_064_420_753_005e-5, 2.141_783_679_522_603e-6],
        &[1.0, 0.858_523_142_362_202_8, 0.448_328_582_287_399_5, 0.076_879_321_581_244_76, 0.024_498_682_410_218_877,
          0.000_883_216_594_192_779_7, 0.000_459_095_229_951_135_36, -4.729_848_351_866_523e-6,
          2.665_195_537_390_71e-6],
    ]),
    (4.0, [
        &[0.019_818_085_032_596_897, -1.271_645_625_984_917_6, -2.088_160_335_681_228_4, 2.755_544_509_187_936_7,
          -0.440_950_704_870_16, 0.046_656_238_059_358_916, -0.001_545_042_679_673_485_2, 7.059_980_605_299_618e-5],
        &[1.0, 1.476_498_670_914_921_5, 0.562_917_717_482_243_6, 0.169_901_789_787_930_72, 0.022_916_471_790_342_12,
          0.004_450_150_439_728_752_5, 0.000_172_743_961_220_652_14, 3.953_167_195_549_672e-5],
    ]),
];
/// Cosine integral over x, in x⁴.
#[rustfmt::skip]
const COSINE_NEAR: Quotient = [
    &[-4.988_431_145_735_735_4e-8, 9.504_280_628_298_596e-6, -0.000_645_191_435_683_965_1, 0.018_884_331_939_670_384,
      -0.205_525_900_955_013_88, 1.0],
    &[3.999_829_689_724_96e-12, 9.154_392_157_746_574e-10, 1.250_018_624_795_988_2e-7, 1.222_627_890_241_790_2e-5,
      0.000_868_029_542_941_784_3, 0.041_214_209_072_219_98, 1.0],
];
/// Sine integral over x³, in x⁴.
#[rustfmt::skip]
const SINE_NEAR: Quotient = [
    &[-2_991.819_194_010_198_3, 708_840.045_257_738_6, -62_974_148.620_586_25, 2_548_908_805.733_763_7,
      -44_297_951_805.969_78, 318_016_297_876.567_8],
    &[1.0, 281.376_268_889_994_3, 45_584.781_080_653_26, 5_173_438.887_700_964, 419_320_245.898_111_2,
      22_441_179_564.534_092, 607_366_389_490.084_6],
];
/// Auxiliary function f of the Fresnel integrals, in 1/(πx²)².
#[rustfmt::skip]
const FRESNEL_F: Quotient = [
    &[0.421_543_555_043_677_5, 0.143_407_919_780_758_9, 0.011_522_095_507_358_577, 0.000_345_017_939_782_574,
      4.636_137_492_878_673_5e-6, 3.055_689_837_902_576e-8, 1.023_045_141_649_072_4e-10, 1.720_107_432_681_618_3e-13,
      1.342_832_762_330_627_5e-16, 3.763_297_112_699_879e-20],
    &[1.0, 0.751_586_398_353_378_9, 0.116_888_925_859_191_38, 0.006_440_515_265_088_586_5,
      0.000_155_934_409_164_153_01, 1.846_275_673_489_305_5e-6, 1.126_992_247_639_990_3e-8,
      3.601_400_295_893_713_6e-11, 5.887_545_336_215_784e-14, 4.520_014_340_741_297_3e-17,
      1.254_432_370_900_112_7e-20],
];
/// Auxiliary function g of the Fresnel integrals, in 1/(πx²)².
#[rustfmt::skip]
const FRESNEL_G: Quotient = [
    &[0.504_442_073_643_383_2, 0.197_102_833_525_523_4, 0.018_764_858_409_257_526, 0.000_684_079_380_915_393_1,
      1.151_388_261_118_842_8e-5, 9.828_524_436_884_223e-8, 4.453_444_158_617_501_5e-10, 1.082_680_411_390_208_8e-12,
      1.375_554_606_332_618e-15, 8.363_544_356_306_774e-19, 1.869_587_101_627_832_4e-22],
    &[1.0, 1.474_957_599_251_283_3, 0.337_748_989_120_02, 0.025_360_374_142_033_88, 0.000_814_679_107_184_306_1,
      1.275_450_756_677_291_2e-5, 1.043_145_896_575_719_9e-7, 4.606_807_281_465_204_3e-10,
      1.102_732_150_662_402_8e-12, 1.387_965_312_595_788_6e-15, 8.391_588_162_831_187e-19,
      1.869_587_101_627_832_4e-22],
];
/// Spence's integral over -w, in w.
#[rustfmt::skip]
const SPENCE: Quotient = [
    &[4.651_285_860_739_900_3e-5, 0.007_315_890_452_380_947, 0.133_847_639_578_309_03, 0.879_691_311_754_530_3,
      2.711_498_511_965_534_6, 4.256_971_560_081_218, 3.297_713_409_852_251, 1.0],
    &[0.000_690_990_488_912_553_3, 0.025_404_376_393_254_44, 0.282_974_860_602_568_1, 1.411_725_977_518_310_6,
      3.638_005_333_451_370_7, 5.032_788_801_433_17, 3.547_713_409_852_251, 1.0],
];
