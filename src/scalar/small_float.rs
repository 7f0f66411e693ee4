//! Floats of one byte or less: decoding is exact, encoding rounds to nearest even.
use super::ScalarOp;
use crate::tensor::DType;

/// Field widths and special values of a float type below 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct FloatFormat {
    /// Exponent bits.
    pub exponent_bits: u32,
    /// Mantissa bits that are stored.
    pub mantissa_bits: u32,
    /// The bias added to the exponent before it is stored.
    pub bias: i32,
    /// Whether there is a sign bit.
    pub signed: bool,
    /// The encoding of infinities and NaN.
    pub special: Special,
}

/// Encodings of infinities and NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The top exponent holds infinities and NaN.
    Ieee,
    /// No infinities; all ones is NaN (of either sign).
    AllOnes,
    /// No infinities, no negative zero; the sign bit alone is NaN.
    NegativeZero,
    /// Every code is a number.
    None,
}

/// The format of `dtype`; `None` for what is no float below 32 bits.
pub fn format(dtype: DType) -> Option<FloatFormat> {
    let f = |exponent_bits, mantissa_bits, bias, special| {
        Some(FloatFormat { exponent_bits, mantissa_bits, bias, signed: true, special })
    };
    match dtype {
        DType::F16 => f(5, 10, 15, Special::Ieee),
        DType::BF16 => f(8, 7, 127, Special::Ieee),
        DType::F8E5M2 => f(5, 2, 15, Special::Ieee),
        DType::F8E4M3 => f(4, 3, 7, Special::Ieee),
        DType::F8E3M4 => f(3, 4, 3, Special::Ieee),
        DType::F8E4M3FN => f(4, 3, 7, Special::AllOnes),
        DType::F8E4M3B11FNUZ => f(4, 3, 11, Special::NegativeZero),
        DType::F8E5M2FNUZ => f(5, 2, 16, Special::NegativeZero),
        DType::F8E4M3FNUZ => f(4, 3, 8, Special::NegativeZero),
        DType::F8E8M0FNU => Some(FloatFormat {
            exponent_bits: 8,
            mantissa_bits: 0,
            bias: 127,
            signed: false,
            special: Special::AllOnes,
        }),
        DType::F4E2M1FN => f(2, 1, 1, Special::None),
        DType::Pred
        | DType::S1
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::U1
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64
        | DType::C64
        | DType::C128 => None,
    }
}

/// Whether `op` on `dtype`, an IEEE float below 32 bits, changes the sign bit alone. Then nothing is rounded, and a NaN keeps its payload.
pub fn is_sign_bit_alone(op: ScalarOp, dtype: DType) -> bool {
    matches!(op, ScalarOp::Negate | ScalarOp::Abs) && is_ieee(dtype)
}

/// Whether a type below 32 bits has the layout of IEEE 754: its codes, as integers of sign and magnitude, are in its total order.
pub fn is_ieee(dtype: DType) -> bool {
    format(dtype).is_some_and(|f| f.special == Special::Ieee)
}

/// The format of a type that [`decode`] and [`encode`] are for.
fn byte_format(dtype: DType) -> FloatFormat {
    match format(dtype) {
        Some(f) if dtype.bits() <= 8 => f,
        _ => unreachable!("{dtype} is no float of a byte"),
    }
}

/// The value of `code`.
pub fn decode(dtype: DType, code: u8) -> f64 {
    let f = byte_format(dtype);
    let width = f.exponent_bits + f.mantissa_bits;
    let magnitude = u32::from(code) & ((1 << width) - 1);
    let negative = f.signed && code >> width & 1 == 1;
    let sign = if negative { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (magnitude >> f.mantissa_bits, magnitude & ((1 << f.mantissa_bits) - 1));
    let top = (1 << f.exponent_bits) - 1;
    match f.special {
        Special::Ieee if exponent == top => return if mantissa == 0 { sign * f64::INFINITY } else { sign * f64::NAN },
        Special::AllOnes if magnitude == (1 << width) - 1 => return sign * f64::NAN,
        Special::NegativeZero if negative && magnitude == 0 => return f64::NAN,
        _ => {}
    }
    let scale = 2f64.powi(-(f.mantissa_bits as i32));
    if exponent == 0 && f.signed {
        return sign * f64::from(mantissa) * scale * 2f64.powi(1 - f.bias);
    }
    sign * (1.0 + f64::from(mantissa) * scale) * 2f64.powi(exponent as i32 - f.bias)
}

/// The code nearest to `value`: ties to even, overflow to infinity, or to NaN or the largest where there is none.
pub fn encode(dtype: DType, value: f64) -> u8 {
    let f = byte_format(dtype);
    let width = f.exponent_bits + f.mantissa_bits;
    let sign = if value.is_sign_negative() && f.signed { 1u8 << width } else { 0 };
    let all_ones = ((1u32 << width) - 1) as u8;
    let nan = match f.special {
        Special::Ieee => {
            sign | (((1u32 << f.exponent_bits) - 1) << f.mantissa_bits) as u8 | 1 << (f.mantissa_bits.max(1) - 1)
        }
        Special::AllOnes => sign | all_ones,
        Special::NegativeZero => 1 << width,
        Special::None => 0,
    };
    if value.is_nan() || (!f.signed && value < 0.0) {
        return nan;
    }
    let magnitude = value.abs();
    // The codes of one sign are in the order of their values: find the two neighbours, then round.
    let (mut low, mut high) = (0u32, u32::from(all_ones));
    let finite = |c: u32| {
        let v = decode(dtype, c as u8);
        if v.is_finite() { Some(v) } else { None }
    };
    while finite(high).is_none() {
        high -= 1;
    }
    let largest = high;
    while low < high {
        let middle = (low + high).div_ceil(2);
        if finite(middle).is_some_and(|v| v <= magnitude) { low = middle } else { high = middle - 1 }
    }
    let below = finite(low).unwrap_or(0.0);
    if low == largest {
        let step = below - finite(low - 1).unwrap_or(0.0);
        let halfway = below + step / 2.0;
        let over = magnitude > halfway || (magnitude == halfway && low & 1 == 1);
        if over || magnitude.is_infinite() {
            return match f.special {
                Special::Ieee => sign | (low + 1) as u8,
                Special::AllOnes | Special::NegativeZero => nan,
                Special::None => sign | low as u8,
            };
        }
        return sign | low as u8;
    }
    let above = finite(low + 1).unwrap_or(below);
    let (down, up) = (magnitude - below, above - magnitude);
    let code = if up < down || (up == down && low & 1 == 1) { low + 1 } else { low };
    if code == 0 && f.special == Special::NegativeZero { 0 } else { sign | code as u8 }
}
