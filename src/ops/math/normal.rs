//! Quantile function of the normal distribution.
//!
//! Source: Moshier's Cephes library, `ndtri.c`, whose method TensorFlow's kernel uses: a rational function around 1/2, and two
//! in 1 / sqrt(-2 ln p) for the tails, so that a probability keeps all its digits down to the smallest normal number.
use super::expr::ArrayExpr;
use std::f64::consts::PI;

/// Quantile of the standard normal distribution for probability `p`: infinite at 0 and 1, NaN beyond.
pub fn normal_quantile<'s, 'b>(p: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let tail = (-2.0_f64).exp();
    let upper = p.gt(1.0 - tail);
    // Tail probability on the side of the quantile.
    let beyond = (1.0 - p).select_where(upper, p);
    let far = in_tail(beyond);
    let y = around_half(beyond - 0.5).select_where(beyond.gt(tail), -far);
    let y = y.select_where(upper.not(), far);
    let outside = p.lt(0.0).or(p.gt(1.0)).or(p.is_nan());
    y.replace_where(p.equals(0.0), f64::NEG_INFINITY)
        .replace_where(p.equals(1.0), f64::INFINITY)
        .replace_where(outside, f64::NAN)
}

/// Quantile for the probability 1/2 + `d`, for |d| at most 1/2 - e^-2.
fn around_half<'s, 'b>(d: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let square = d * d;
    let ratio = square.polynomial(&MIDDLE_ABOVE) / square.polynomial(&MIDDLE_BELOW);
    (d + d * (square * ratio)) * (2.0 * PI).sqrt()
}

/// Magnitude of the quantile for a tail probability `p` of at most e^-2.
fn in_tail<'s, 'b>(p: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let root = (p.ln() * -2.0).sqrt();
    let first = root - root.ln() / root;
    let z = 1.0 / root;
    let near = z * z.polynomial(&TAIL_ABOVE) / z.polynomial(&TAIL_BELOW);
    let far = z * z.polynomial(&FAR_ABOVE) / z.polynomial(&FAR_BELOW);
    first - near.select_where(root.lt(8.0), far)
}

/// Numerator for probabilities between e^-2 and 1 - e^-2, in the square of p - 1/2.
const MIDDLE_ABOVE: [f64; 5] = [
    -59.963_350_101_410_79,
    98.001_075_418_599_97,
    -56.676_285_746_907_03,
    13.931_260_938_727_968,
    -1.239_165_838_673_812_5,
];

/// Denominator of [`MIDDLE_ABOVE`].
const MIDDLE_BELOW: [f64; 9] = [
    1.0,
    1.954_488_583_381_417_6,
    4.676_279_128_988_815,
    86.360_242_139_089_05,
    -225.462_687_854_119_37,
    200.260_212_380_060_66,
    -82.037_225_616_833_34,
    15.905_622_512_621_17,
    -1.183_316_211_213_3,
];

/// Numerator for tail probabilities down to e^-32, in 1 / sqrt(-2 ln p).
const TAIL_ABOVE: [f64; 9] = [
    4.055_448_923_059_624_5,
    31.525_109_459_989_388,
    57.162_819_224_642_13,
    44.080_507_389_320_08,
    14.684_956_192_885_803,
    2.186_633_068_507_902_5,
    -0.140_256_079_171_354_5,
    -0.035_042_462_682_784_82,
    -0.000_857_456_785_154_685_4,
];

/// Denominator of [`TAIL_ABOVE`].
const TAIL_BELOW: [f64; 9] = [
    1.0,
    15.779_988_325_646_675,
    45.390_763_512_887_92,
    41.317_203_825_467_2,
    15.042_538_569_290_75,
    2.504_649_462_083_094,
    -0.142_182_922_854_787_79,
    -0.038_080_640_769_157_83,
    -0.000_933_259_480_895_457_4,
];

/// Numerator for tail probabilities below e^-32, in 1 / sqrt(-2 ln p).
const FAR_ABOVE: [f64; 9] = [
    3.237_748_917_769_460_3,
    6.915_228_890_689_842,
    3.938_810_252_924_744_4,
    1.333_034_608_158_075_5,
    0.201_485_389_549_179_08,
    0.012_371_663_481_782_003,
    0.000_301_581_553_508_235_43,
    2.658_069_746_867_375_5e-6,
    6.239_745_391_849_833e-9,
];

/// Denominator of [`FAR_ABOVE`].
const FAR_BELOW: [f64; 9] = [
    1.0,
    6.024_270_393_647_42,
    3.679_835_638_561_608_7,
    1.377_020_994_890_813_2,
    0.216_236_993_594_496_63,
    0.013_420_400_608_854_318,
    0.000_328_014_464_682_127_74,
    2.892_478_647_453_806_8e-6,
    6.790_194_080_099_813e-9,
];
