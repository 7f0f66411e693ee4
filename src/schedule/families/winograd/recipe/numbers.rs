//! The numbers of Winograd's method: floats, or for products of bytes whole numbers, with exact results.
//!
//! # Why whole numbers are exact
//! With the points 0, ±1, ±2 and ∞ ([`EvaluationPoints::INTEGER_SQUARE`](super::points::EvaluationPoints::INTEGER_SQUARE)) no transform has a fraction:
//!
//! | | largest coefficients along one axis | along both | bound |
//! |---|---|---|---|
//! | inputs of -128 to 127 | magnitudes that add up to 10 | 100 | 12,800 |
//! | inputs of 0 to 255 | +2 and -8 in all | +68 and -32 | 17,340 |
//! | weights of -128 to 127 | 12 in all, of 4, 4 and 4 or at ∞ | 144 | 18,432 |
//!
//! All of them fit in 16 bits, and two products of such numbers in 32. Everything behind that is computed modulo 2^32: the sums over the channels, which
//! may wrap around, and the transform of the sums, which only adds and multiplies by whole numbers. What comes out is 24·24 = 9·2^6 times the result,
//! modulo 2^32. The product with the inverse of 9 modulo 2^32 is 2^6 times the result modulo 2^32, and an arithmetic shift by 6 is the result, if
//! that is at least -2^25 and below 2^25. [`has_small_results`] holds the weights of each output feature to these bounds: with weights of -128 to 127
//! up to 113 channels fit whatever the weights are, and some 500 of the weights that are usual.
use crate::hlo::attrs::ConvDims;
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::scalar::ScalarOp;
use crate::schedule::families::contraction::recipe::word_products::WordProducts;
use crate::schedule::memory::layout::Layout;
use crate::target::Target;
use crate::tensor::{DType, Tensor};
use bytes::Bytes;
use std::ops::RangeInclusive;

/// Bits of a result that the scale of both axes takes, and the factor that remains of it.
const SHIFT: u32 = 6;
/// The odd part of the scale of both axes.
const ODD_SCALE: u32 = 9;
/// Results that are exact behind the shift.
const EXACT_RESULTS: RangeInclusive<i64> = -(1 << (31 - SHIFT))..=(1 << (31 - SHIFT)) - 1;
/// Weights whose transform fits in 16 bits.
const WEIGHTS: RangeInclusive<i64> = -128..=127;

/// The element types of Winograd's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformTypes {
    /// The type of inputs and weights at the points.
    pub points: DType,
    /// The type of the sums and the results.
    pub sums: DType,
    /// The type of weights that are transformed at each call.
    pub stored: DType,
    /// The instruction that multiplies the terms of a word; `None` if terms are multiplied one by one.
    pub words: Option<WordProducts>,
}

impl TransformTypes {
    /// The method on floats.
    pub const FLOATS: TransformTypes =
        TransformTypes { points: DType::F32, sums: DType::F32, stored: DType::F32, words: None };

    /// The method on whole numbers, for a processor that multiplies pairs of 16 bits.
    fn integers(machine: &Target) -> Option<TransformTypes> {
        let words = Some(WordProducts::of_pairs(machine.short_dot?));
        Some(TransformTypes { points: DType::S16, sums: DType::S32, stored: DType::S8, words })
    }

    /// Whether numbers are whole.
    pub fn is_integer(self) -> bool {
        self.points.is_integer()
    }

    /// Number of terms of a product that lie side by side in a word.
    pub fn terms_per_word(self) -> u64 {
        self.words.map_or(1, WordProducts::terms_per_word)
    }

    /// Size in bytes of an input or a weight at a point.
    pub fn point_bytes(self) -> u64 {
        self.points.bytes() as u64
    }

    /// Size in bytes of a sum.
    pub fn sum_bytes(self) -> u64 {
        self.sums.bytes() as u64
    }
}

/// The types of the method for convolution `id`, whose window is square if `is_square`: those of floats, or of integers where the left side is made
/// of bytes and the weights are bytes with small enough results. `None` for other types.
pub fn types_of_convolution(
    comp: &Computation,
    id: InstId,
    d: &ConvDims,
    is_square: bool,
    machine: &Target,
) -> Option<TransformTypes> {
    let [x, w] = comp[id].operands[..] else { return None };
    let dtypes = [x, w, id].map(|id| comp.array_shape(id).dtype);
    match dtypes {
        [DType::F32, DType::F32, DType::F32] => Some(TransformTypes::FLOATS),
        [DType::S16, DType::S16, DType::S32] if is_square => {
            let Op::Constant(Literal::Array(weights)) = &comp[w].op else { return None };
            let inputs = range_of_bytes(comp, x)?;
            has_small_results(weights, d, &inputs).then(|| TransformTypes::integers(machine)).flatten()
        }
        _ => None,
    }
}

/// The range of an operand that is converted from bytes.
fn range_of_bytes(comp: &Computation, id: InstId) -> Option<RangeInclusive<i64>> {
    let Op::Elementwise(ScalarOp::Convert(DType::S16)) = comp[id].op else { return None };
    match comp.array_shape(comp[id].operands[0]).dtype {
        DType::S8 => Some(-128..=127),
        DType::U8 => Some(0..=255),
        _ => None,
    }
}

/// Whether all weights are bytes with a sign, and all results of `inputs` within the bounds in which they are exact.
fn has_small_results(weights: &Tensor, d: &ConvDims, inputs: &RangeInclusive<i64>) -> bool {
    let numbers = weights.view::<i16>();
    let outputs = weights.dims[d.kernel_output_feature] as usize;
    let stride = Layout::dense(&weights.dims).strides[d.kernel_output_feature] as usize;
    let (mut least, mut most) = (vec![0i64; outputs], vec![0i64; outputs]);
    for (i, &weight) in numbers.iter().enumerate() {
        let (weight, output) = (i64::from(weight), i / stride % outputs);
        if !WEIGHTS.contains(&weight) {
            return false;
        }
        let ends = [weight * inputs.start(), weight * inputs.end()];
        least[output] += ends[0].min(ends[1]).min(0);
        most[output] += ends[0].max(ends[1]).max(0);
    }
    least.iter().chain(&most).all(|result| EXACT_RESULTS.contains(result))
}

/// The factor and the shift to the right that make a result of one that both axes have scaled, modulo 2^32.
pub fn exact_division() -> (u32, u32) {
    // Newton's method doubles the number of bits that are right, of which an odd number has three for itself
    let inverse = (0..4).fold(ODD_SCALE, |x, _| x.wrapping_mul(2u32.wrapping_sub(ODD_SCALE.wrapping_mul(x))));
    (inverse, SHIFT)
}

/// Weights of bytes, `[taps][pair of input channels][output channel][channel of the pair]`, so that a vector holds whole words; and their layout along
/// the axes of `weights`, with output channels as whole words.
pub fn weights_in_words(weights: &Tensor, d: &ConvDims, terms: u64) -> (Tensor, Layout) {
    let from = Layout::dense(&weights.dims).strides;
    let (outputs, inputs) = (weights.dims[d.kernel_output_feature], weights.dims[d.kernel_input_feature]);
    let numbers = weights.view::<i16>();
    let mut bytes = Vec::with_capacity(numbers.len());
    let mut to = Layout::dense(&weights.dims);
    let mut stride = (inputs * outputs) as i64;
    for &axis in d.kernel_spatial.iter().rev() {
        to.strides[axis] = stride;
        stride *= weights.dims[axis] as i64;
    }
    (to.strides[d.kernel_input_feature], to.strides[d.kernel_output_feature]) =
        ((terms * outputs) as i64, terms as i64);
    let taps = d.kernel_spatial.iter().fold(vec![0], |firsts: Vec<i64>, &axis| {
        let of_axis = |first: i64| (0..weights.dims[axis] as i64).map(move |tap| (first, tap));
        firsts.into_iter().flat_map(of_axis).map(|(first, tap)| first + tap * from[axis]).collect()
    });
    for tap in taps {
        for word in 0..inputs / terms {
            for output in 0..outputs {
                for term in 0..terms {
                    let channel = (word * terms + term) as i64 * from[d.kernel_input_feature];
                    let at = tap + channel + output as i64 * from[d.kernel_output_feature];
                    bytes.push(numbers[at as usize] as u8);
                }
            }
        }
    }
    let dims = vec![bytes.len() as u64];
    (Tensor::new(DType::S8, dims, Bytes::from(bytes)), to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_within_the_bounds_are_exact() {
        let (inverse, shift) = exact_division();
        for result in [0, 1, -1, 5, -77, 1 << 20, *EXACT_RESULTS.start() as i32, *EXACT_RESULTS.end() as i32] {
            let scaled = result.wrapping_mul(24 * 24);
            assert_eq!(scaled.wrapping_mul(inverse.cast_signed()) >> shift, result);
        }
    }
}
