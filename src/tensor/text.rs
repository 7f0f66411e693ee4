//! Text of tensor elements.
use super::{DType, DTypeClass, Tensor};

impl Tensor {
    /// Element `i` with as many digits as are needed to read back the same value: `-3`, `true`, `0.1`, `(1.0, -2.0)`.
    ///
    /// The text is empty beyond the last element.
    pub fn element_text(&self, i: usize) -> String {
        let integer = self.get_i64(i);
        let text = match self.dtype.class() {
            DTypeClass::Pred => integer.map(|v| (v != 0).to_string()),
            DTypeClass::Signed => integer.map(|v| v.to_string()),
            DTypeClass::Unsigned => integer.map(|v| (v as u64).to_string()),
            DTypeClass::Float => self.float_text(i),
            DTypeClass::Complex => {
                let (parts, at) = (self.interleaved_parts(), 2 * i);
                let both = parts.float_text(at).zip(parts.float_text(at + 1));
                both.map(|(real, imaginary)| format!("({real}, {imaginary})"))
            }
        };
        text.unwrap_or_default()
    }
    /// A float with a point or an exponent, so that it is recognized as one; single precision does not need the digits of a double.
    fn float_text(&self, i: usize) -> Option<String> {
        let value = self.get_f64(i)?;
        Some(if self.dtype == DType::F64 { format!("{value:?}") } else { format!("{:?}", value as f32) })
    }
    /// The real and imaginary parts of a complex array, interleaved, as twice as many floats; other arrays as a vector.
    pub fn interleaved_parts(&self) -> Tensor {
        let real = self.dtype.real_part();
        let count = (self.bytes.len() / real.bytes()) as u64;
        Tensor::new(real, vec![count], self.bytes.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_keeps_its_value() {
        let text = |t: Tensor| t.element_text(0);
        assert_eq!(text(Tensor::scalar(9_007_199_254_740_993i64)), "9007199254740993");
        assert_eq!(text(Tensor::scalar(i64::MIN)), "-9223372036854775808");
        assert_eq!(text(Tensor::scalar(u64::MAX)), "18446744073709551615");
        assert_eq!(text(Tensor::scalar(-3i8)), "-3");
        assert_eq!(text(Tensor::from_bools(&[1], &[true])), "true");
        assert_eq!(text(Tensor::scalar(0.1f32)), "0.1");
        assert_eq!(text(Tensor::scalar(0.1f64)), "0.1");
        assert_eq!(text(Tensor::scalar(1.0f64 / 3.0)), "0.3333333333333333");
        assert_eq!(text(Tensor::scalar(-0.0f32)), "-0.0");
        assert_eq!(text(Tensor::scalar(f32::NEG_INFINITY)), "-inf");
        assert_eq!(text(Tensor::scalar(half::f16::from_f32(2.5))), "2.5");
        assert_eq!(text(Tensor::scalar(half::bf16::from_f32(2.5))), "2.5");
        let numbers = [1.5f64, -0.1].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(text(Tensor::new(DType::C128, vec![1], numbers)), "(1.5, -0.1)");
        let numbers = [1f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(text(Tensor::new(DType::C64, vec![1], numbers)), "(1.0, -2.0)");
        assert_eq!(Tensor::scalar(1i32).element_text(1), "");
    }
}
