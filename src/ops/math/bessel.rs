//! Modified Bessel functions of the first kind, orders 0 and 1.
//!
//! Source: Cephes's Chebyshev series for `i0e` and `i1e`; f32 uses only the terms of the f64 series that it can represent.
use super::expr::{ArrayExpr, formula_in_f32};
use crate::diag::Result;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("BesselI0e", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| i0e(x))).pointwise().dtypes(FLOATS),
    op("BesselI1e", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| i1e(x))).pointwise().dtypes(FLOATS),
    op("BesselI0",  "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| i0e(x) * x.abs().exp())).pointwise().dtypes(FLOATS),
    op("BesselI1",  "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| i1e(x) * x.abs().exp())).pointwise().dtypes(FLOATS),
];

/// Lowers a function of one float array, whose type must be among those that `types` names.
pub(super) fn lower_float_function(
    cx: &mut LowerCtx,
    types: &str,
    f: impl for<'s, 'b> FnOnce([ArrayExpr<'s, 'b>; 1]) -> ArrayExpr<'s, 'b>,
) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let dtype = cx.b.dtype(x).to_string();
    if !types.split(", ").any(|name| name == dtype) {
        return Err(cx.unsupported_case(format!("{} of {dtype}; {types} are supported", cx.node.op)));
    }
    let y = formula_in_f32(cx.b, [x], f);
    cx.one_output(y)
}

/// Chebyshev series of one function, for arguments up to 8 and beyond, highest order first; f32 uses the last `singles` terms
/// of each.
struct Series {
    near: &'static [f64],
    near_singles: usize,
    far: &'static [f64],
    far_singles: usize,
}

impl Series {
    /// Near and far series at |x|: in |x|/2 - 2, and in 32/|x| - 2 over sqrt(|x|).
    fn at<'s, 'b>(&self, a: ArrayExpr<'s, 'b>) -> (ArrayExpr<'s, 'b>, ArrayExpr<'s, 'b>) {
        let cut = |all: &'static [f64], singles: usize| {
            if a.dtype() == DType::F64 { all } else { &all[all.len() - singles..] }
        };
        let near = chebyshev_series(a * 0.5 - 2.0, cut(self.near, self.near_singles));
        let far = chebyshev_series(32.0 / a - 2.0, cut(self.far, self.far_singles)) / a.sqrt();
        (near, far)
    }
}

/// Chebyshev series by Clenshaw's recurrence; the first coefficient counts half.
pub(super) fn chebyshev_series<'s, 'b>(x: ArrayExpr<'s, 'b>, coefficients: &[f64]) -> ArrayExpr<'s, 'b> {
    let zero = x.constant(0.0);
    let (mut b0, mut b1, mut b2) = (zero, zero, zero);
    for &c in coefficients {
        (b2, b1) = (b1, b0);
        b0 = x * b1 - b2 + c;
    }
    (b0 - b2) * 0.5
}

/// e^-|x| I0(x).
pub(super) fn i0e<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let a = x.abs();
    let (near, far) = I0.at(a);
    near.select_where(a.le(8.0), far)
}

/// e^-|x| I1(x).
pub(super) fn i1e<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let a = x.abs();
    let (near, far) = I1.at(a);
    (near * a).select_where(a.le(8.0), far) * x.apply_unary(ScalarOp::Sign)
}

/// Chebyshev series of `i0e`.
const I0: Series = Series {
    near: &[
        -4.415_341_646_479_339_5e-18,
        3.330_794_518_822_238_4e-17,
        -2.431_279_846_547_955e-16,
        1.715_391_285_555_133e-15,
        -1.168_533_287_799_345_1e-14,
        7.676_185_498_604_936e-14,
        -4.856_446_783_111_929e-13,
        2.955_052_663_129_64e-12,
        -1.726_826_291_441_556e-11,
        9.675_809_035_373_237e-11,
        -5.189_795_601_635_263e-10,
        2.659_823_724_682_386_6e-9,
        -1.300_025_009_986_248e-8,
        6.046_995_022_541_919e-8,
        -2.670_793_853_940_612e-7,
        1.117_387_539_120_103_7e-6,
        -4.416_738_358_458_750_5e-6,
        1.644_844_807_072_889_6e-5,
        -5.754_195_010_082_104e-5,
        0.000_188_502_885_095_841_65,
        -0.000_576_375_574_538_582_4,
        0.001_639_475_616_941_335_7,
        -0.004_324_309_995_050_576,
        0.010_546_460_394_594_998,
        -0.023_737_414_805_899_47,
        0.049_305_284_239_670_71,
        -0.094_901_097_048_047_64,
        0.171_620_901_522_208_77,
        -0.304_682_672_343_198_4,
        0.676_795_274_409_476_1,
    ],
    near_singles: 18,
    far: &[
        -7.233_180_487_874_754e-18,
        -4.830_504_485_944_182e-18,
        4.465_621_420_296_76e-17,
        3.461_222_867_697_461e-17,
        -2.827_623_980_516_583_6e-16,
        -3.425_485_619_677_219e-16,
        1.772_560_133_056_526_3e-15,
        3.811_680_669_352_622_4e-15,
        -9.554_846_698_828_307e-15,
        -4.150_569_347_287_222e-14,
        1.540_086_217_521_41e-14,
        3.852_778_382_742_142_6e-13,
        7.180_124_451_383_666e-13,
        -1.794_178_531_506_806_2e-12,
        -1.321_581_184_044_771_3e-11,
        -3.149_916_527_963_241_6e-11,
        1.188_914_710_784_643_9e-11,
        4.940_602_388_224_97e-10,
        3.396_232_025_708_386_5e-9,
        2.266_668_990_498_178e-8,
        2.048_918_589_469_063_8e-7,
        2.891_370_520_834_756_7e-6,
        6.889_758_346_916_825e-5,
        0.003_369_116_478_255_694_3,
        0.804_490_411_014_108_8,
    ],
    far_singles: 7,
};

/// Chebyshev series of `i1e`.
const I1: Series = Series {
    near: &[
        2.777_914_112_761_046_4e-18,
        -2.111_421_214_358_166e-17,
        1.553_631_957_736_200_5e-16,
        -1.105_596_947_735_386_2e-15,
        7.600_684_294_735_408e-15,
        -5.042_185_504_727_912e-14,
        3.223_793_365_945_575e-13,
        -1.983_974_397_764_943_6e-12,
        1.173_618_629_889_090_1e-11,
        -6.663_489_723_502_027e-11,
        3.625_590_281_552_117e-10,
        -1.887_249_751_722_829_4e-9,
        9.381_537_386_495_773e-9,
        -4.445_059_128_796_328e-8,
        2.003_294_753_552_135_3e-7,
        -8.568_720_264_695_455e-7,
        3.470_251_308_137_678_5e-6,
        -1.327_316_365_603_943_6e-5,
        4.781_565_107_550_054e-5,
        -0.000_161_760_815_825_896_74,
        0.000_512_285_956_168_575_8,
        -0.001_513_572_450_631_253_2,
        0.004_156_422_944_312_888,
        -0.010_564_084_894_626_197,
        0.024_726_449_030_626_516,
        -0.052_945_981_208_094_99,
        0.102_643_658_689_847_1,
        -0.176_416_518_357_834_06,
        0.252_587_186_443_633_65,
    ],
    near_singles: 17,
    far: &[
        7.517_296_310_842_105e-18,
        4.414_348_323_071_708e-18,
        -4.650_305_368_489_358_6e-17,
        -3.209_525_921_993_424e-17,
        2.962_628_997_645_95e-16,
        3.308_202_310_920_928_5e-16,
        -1.880_354_775_510_782_5e-15,
        -3.814_403_072_437_007_5e-15,
        1.042_027_698_412_880_2e-14,
        4.272_440_016_711_951e-14,
        -2.101_541_842_772_664_3e-14,
        -4.083_551_111_092_197_4e-13,
        -7.198_551_776_245_908e-13,
        2.035_628_544_147_089_6e-12,
        1.412_580_743_661_378_2e-11,
        3.252_603_583_015_488_4e-11,
        -1.897_495_812_350_541_3e-11,
        -5.589_743_462_196_584e-10,
        -3.835_380_385_964_237e-9,
        -2.631_468_846_889_519_6e-8,
        -2.512_236_237_870_209e-7,
        -3.882_564_808_877_691e-6,
        -0.000_110_588_938_762_623_71,
        -0.009_761_097_491_361_469,
        0.778_576_235_018_280_1,
    ],
    far_singles: 7,
};
