//! Normal numbers within two deviations of the mean.
//!
//! TensorFlow's CPU kernels draw again and again until a number is inside, so that how many words a number takes depends on the
//! words; its XLA kernels map one uniform number through the inverse distribution, and so does this: the distribution is the same,
//! the numbers are XLA's.
use super::{Draw, Generator, uniform};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::ops::LowerCtx;
use crate::ops::math::expr::formula;
use crate::ops::math::inverse_error::erfinv;
use crate::tensor::DType;

/// The probability of a number below -2.
const BELOW: f64 = 0.022_750_131_948_179_212;

/// Normal with mean 0 and deviation 1, cut off at -2 and 2.
pub(super) fn truncated(cx: &mut LowerCtx, generator: &Generator, draw: &Draw) -> Result<InstId> {
    let work = if draw.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let wide = Draw { dtype: work, dims: draw.dims.clone(), count: draw.count, bounds: draw.bounds };
    let x = uniform(cx, generator, &wide)?;
    let y = formula(cx.b, [x], |[x]| {
        let inner = (x * (1.0 - 2.0 * BELOW) + BELOW) * 2.0 - 1.0;
        let y = erfinv(inner) * std::f64::consts::SQRT_2;
        y.except(y.lt(-2.0), -2.0).except(y.gt(2.0), 2.0)
    });
    Ok(cx.b.convert(y, draw.dtype))
}
