//! The inverse error function, and the op of the inverse normal distribution.
use super::expr::{ArrayExpr, formula_in_f32};
use super::normal;
use crate::diag::Result;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::tensor::DType;

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Erfinv", "x -> y", |cx| inverse(cx, |[x]| erfinv(x))).pointwise().dtypes(FLOATS),
    op("Ndtri",  "x -> y", |cx| inverse(cx, |[x]| normal::normal_quantile(x))).pointwise().dtypes(FLOATS),
];

fn inverse(
    cx: &mut LowerCtx,
    f: impl for<'s, 'b> FnOnce([ArrayExpr<'s, 'b>; 1]) -> ArrayExpr<'s, 'b>,
) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    match cx.b.dtype(x) {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {}
        other => return Err(cx.unsupported_case(format!("{} of {other}; {FLOATS} are supported", cx.node.op))),
    }
    let y = formula_in_f32(cx.b, [x], f);
    cx.one_output(y)
}

/// Inverse error function; infinite at 1 and -1, NaN beyond.
pub fn erfinv<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let w = -(-(x * x)).ln_1p();
    let factor = if x.dtype() == DType::F64 {
        let (root, near) = (w.sqrt(), (w - 3.125).polynomial(&DOUBLE_NEAR));
        let middle = (root - 3.25).polynomial(&DOUBLE_MIDDLE);
        let far = (root - 5.0).polynomial(&DOUBLE_FAR);
        near.select_where(w.lt(6.25), middle.select_where(w.lt(16.0), far))
    } else {
        let near = (w - 2.5).polynomial(&SINGLE_NEAR);
        near.select_where(w.lt(5.0), (w.sqrt() - 3.0).polynomial(&SINGLE_FAR))
    };
    let end = x.abs().equals(1.0);
    // For -0 the result is 0, as TensorFlow's kernel derives it from the quantile of one half.
    (x * f64::INFINITY).select_where(end, factor * x).replace_where(x.equals(0.0), 0.0)
}

/// f32, w below 5, in w - 2.5.
const SINGLE_NEAR: [f64; 9] = [
    2.810_226_36e-8,
    3.432_739_39e-7,
    -3.523_387_7e-6,
    -4.391_506_54e-6,
    0.000_218_580_87,
    -0.001_253_725_03,
    -0.004_177_681_64,
    0.246_640_727,
    1.501_409_41,
];

/// f32, w from 5 on, in sqrt(w) - 3.
const SINGLE_FAR: [f64; 9] = [
    -0.000_200_214_257,
    0.000_100_950_558,
    0.001_349_343_22,
    -0.003_673_428_44,
    0.005_739_507_73,
    -0.007_622_461_3,
    0.009_438_870_47,
    1.001_674_06,
    2.832_976_82,
];

/// f64, w below 6.25, in w - 3.125.
const DOUBLE_NEAR: [f64; 23] = [
    -3.644_412_064_017_82e-21,
    -1.685_059_138_182_016_6e-19,
    1.285_848_071_525_64e-18,
    1.115_787_767_802_518_1e-17,
    -1.333_171_662_854_621e-16,
    2.097_276_787_596_856_2e-17,
    6.637_638_134_358_324e-15,
    -4.054_566_272_975_207e-14,
    -8.151_934_197_605_472e-14,
    2.633_509_315_308_232_3e-12,
    -1.297_513_325_345_353_2e-11,
    -5.415_412_054_294_628e-11,
    1.051_212_273_321_532_3e-9,
    -4.112_633_980_346_984e-9,
    -2.907_036_995_788_200_5e-8,
    4.234_787_782_793_240_4e-7,
    -1.365_469_200_083_467_9e-6,
    -1.388_252_336_278_646_9e-5,
    0.000_186_734_208_034_057_14,
    -0.000_740_702_534_166_267,
    -0.006_033_670_871_430_149,
    0.240_158_182_425_589_62,
    1.653_654_562_683_102_7,
];

/// f64, w from 6.25 to 16, in sqrt(w) - 3.25.
const DOUBLE_MIDDLE: [f64; 19] = [
    2.213_737_692_177_578_7e-9,
    9.075_656_193_888_539e-8,
    -2.751_740_629_706_454_5e-7,
    1.823_962_921_438_922_8e-8,
    1.502_740_396_890_982_8e-6,
    -4.013_867_526_981_546e-6,
    2.923_444_908_995_544_6e-6,
    1.247_530_448_167_177_9e-5,
    -4.731_822_900_905_573_4e-5,
    6.828_485_145_957_318e-5,
    2.403_111_038_709_789_4e-5,
    -0.000_355_037_520_362_847_5,
    0.000_953_289_379_737_380_5,
    -0.001_688_275_556_023_504_7,
    0.002_491_442_096_107_851,
    -0.003_751_208_507_569_241,
    0.005_370_914_553_590_064,
    1.005_258_967_694_159_2,
    3.083_885_610_492_220_8,
];

/// f64, w from 16 on, in sqrt(w) - 5.
const DOUBLE_FAR: [f64; 17] = [
    -2.710_992_061_643_857_3e-11,
    -2.555_641_816_996_525e-10,
    1.507_657_269_350_054_8e-9,
    -3.789_465_440_126_737e-9,
    7.615_701_208_078_34e-9,
    -1.496_002_662_714_924e-8,
    2.914_795_345_090_108e-8,
    -6.771_199_775_845_234e-8,
    2.290_048_222_802_665_5e-7,
    -9.929_827_294_231_7e-7,
    4.526_062_597_223_154e-6,
    -1.968_177_810_553_167e-5,
    7.599_527_703_001_776e-5,
    -0.000_215_030_119_300_444_77,
    -0.000_138_719_318_336_231_22,
    1.010_300_464_864_534_4,
    4.849_906_401_408_584,
];
