//! The one table of tolerances, by element type.
//!
//! A result of `n` steps carries about `sqrt(n)` roundings of half an ulp each way; the nets here accumulate over at most some
//! hundred terms a layer and a dozen layers, and either side may order the sum its own way. Elementwise functions are good to
//! a few ulp on both sides. Integers and truth values are exact.
use tfaot::tensor::{DType, Tensor};

/// Relative to the element, and to the largest magnitude of the whole array (for values that cancel to near zero).
fn bounds(dtype: DType) -> (f64, f64) {
    match dtype {
        // eps = 1.2e-7: 16 ulp of the element, or 2 ulp of the largest
        DType::F32 | DType::C64 => (2e-6, 2.5e-7),
        DType::F64 | DType::C128 => (4e-15, 5e-16),
        // eps = 9.8e-4 and 7.8e-3: computed in f32 and rounded once, which may go the other way
        DType::F16 => (1e-3, 1e-3),
        DType::BF16 => (8e-3, 8e-3),
        _ => (0.0, 0.0),
    }
}

/// The smallest normal magnitude: below it an ulp stays what it is there.
fn least_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => f64::MIN_POSITIVE,
        DType::F32 | DType::C64 | DType::BF16 => f32::MIN_POSITIVE.into(),
        DType::F16 => 6.103515625e-5,
        _ => 0.0,
    }
}

/// The first element that departs by more than the bound, in words.
pub fn departure(got: &Tensor, want: &Tensor) -> Option<String> {
    departure_beyond(got, want, 0.0)
}

/// The first element that departs by more than the bound and `slack`, in words.
pub fn departure_beyond(got: &Tensor, want: &Tensor, slack: f64) -> Option<String> {
    if got.dtype != want.dtype || got.dims != want.dims {
        return Some(format!("{}{:?} instead of {}{:?}", got.dtype, got.dims, want.dtype, want.dims));
    }
    let (relative, of_largest) = bounds(want.dtype);
    let least_normal = least_normal(want.dtype);
    let (got, want) = (&got.interleaved_parts(), &want.interleaved_parts());
    let value = |t: &Tensor, i| t.get_f64(i).unwrap_or(f64::NAN);
    let largest = (0..want.len()).map(|i| value(want, i).abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    (0..want.len()).find_map(|i| {
        let (g, w) = (value(got, i), value(want, i));
        let bound = relative * w.abs().max(least_normal) + of_largest * largest + slack;
        // Integers of 64 bits are more than doubles can tell apart.
        let exact = want.get_i64(i).is_none_or(|w| got.get_i64(i) == Some(w));
        let close = exact && g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= bound;
        (!close).then(|| format!("element {i}: {g:e} instead of {w:e}, bound {bound:.1e}"))
    })
}
