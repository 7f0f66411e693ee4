//! Values in LLVM's text: which LLVM type holds an element, and how constants are written.
//!
//! `pred` is `i1`, integers are as wide as they are (`s4` is `i4`), floats below 32 bits are their bits (`f16` is `i16`) as
//! arithmetic on them is f32's, and a complex number is a pair `{ re, im }` whose lanes lie apart.
use crate::tensor::{DType, DTypeClass};

/// An LLVM value: a name or a constant, and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Val {
    /// The LLVM text: `%t3`, `0x3FF0000000000000`, `splat (float 1.0)` …
    pub text: String,
    /// The element type.
    pub dtype: DType,
    /// Lanes; 1 is a scalar.
    pub lanes: u64,
}

impl Val {
    /// LLVM's type of this value.
    pub fn ty(&self) -> String {
        value_type(self.dtype, self.lanes)
    }
    /// Whether the text is a constant rather than a name.
    pub fn is_constant(&self) -> bool {
        !self.text.starts_with('%')
    }
}

/// LLVM's type of an element, or of a part of a complex element.
pub fn scalar_type(dtype: DType) -> String {
    match dtype.real_part() {
        DType::Pred => "i1".to_string(),
        DType::F32 => "float".to_string(),
        DType::F64 => "double".to_string(),
        t => format!("i{}", t.bits()),
    }
}

/// LLVM's type of a value.
pub fn value_type(dtype: DType, lanes: u64) -> String {
    let scalar = scalar_type(dtype);
    let part = if lanes == 1 { scalar } else { format!("<{lanes} x {scalar}>") };
    if dtype.is_complex() { format!("{{ {part}, {part} }}") } else { part }
}

/// A constant vector with the same element in every lane; `bits` are the element's, with the imaginary part of a c64 in the upper half.
pub fn constant(dtype: DType, bits: u64, lanes: u64) -> Val {
    if dtype.is_complex() {
        let half = dtype.real_part().bits();
        let part = |bits: u64| {
            let part = constant(dtype.real_part(), bits, lanes);
            format!("{} {}", part.ty(), part.text)
        };
        let imaginary = bits.checked_shr(half).unwrap_or(0);
        return Val { text: format!("{{ {}, {} }}", part(bits), part(imaginary)), dtype, lanes };
    }
    let one = scalar_text(dtype, bits);
    let text = if lanes == 1 { one } else { format!("splat ({} {one})", scalar_type(dtype)) };
    Val { text, dtype, lanes }
}

/// The LLVM text of a scalar constant of a type that is not complex.
fn scalar_text(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Pred => if bits & 1 == 1 { "true" } else { "false" }.to_string(),
        DType::F32 => format!("0x{:016X}", f64::from(f32::from_bits(bits as u32)).to_bits()),
        DType::F64 => format!("0x{bits:016X}"),
        t if t.class() == DTypeClass::Signed => {
            let shift = 64 - t.bits();
            format!("{}", (bits as i64) << shift >> shift)
        }
        t => format!("{}", bits & (u64::MAX >> (64 - t.bits()))),
    }
}

/// The bits of an element of this type, all set.
pub fn all_ones(dtype: DType) -> u64 {
    if dtype == DType::Pred { 1 } else { u64::MAX >> (64 - dtype.bits().min(64)) }
}
