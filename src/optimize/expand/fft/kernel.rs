//! Lengths of Fourier transforms that one kernel computes.
use crate::hlo::attrs::FftKind;
use crate::tensor::DType;

/// Upper limit of the bytes between two passes of a kernel: two arrays of a line, which lie on the stack and in the nearest caches.
const MOST_BYTES: u64 = 64 << 10;
/// Least length: a matrix transforms fewer numbers faster.
const LEAST: u64 = 17;
/// Odd prime factors that passes have.
const ODD: [u64; 5] = [3, 5, 7, 11, 13];

/// The factors of the passes by which a kernel transforms lines of complex numbers, if a kernel does.
pub fn fft_radices(kind: FftKind, length: &[u64], dtype: DType) -> Option<Vec<u64>> {
    let [n] = *length else { return None };
    let is_complex = matches!(kind, FftKind::Fft | FftKind::Ifft) && dtype.is_complex();
    if !is_complex || n < LEAST || n > MOST_BYTES / (2 * dtype.bytes() as u64) {
        return None;
    }
    let (mut radices, mut rest) = (radices_of_two(n.trailing_zeros()), n >> n.trailing_zeros());
    for factor in ODD {
        while rest.is_multiple_of(factor) {
            radices.push(factor);
            rest /= factor;
        }
    }
    (rest == 1).then_some(radices)
}

/// Factors 8, 4 and 2 of a power of two, as few as there are, largest first; 4·4 in place of 8·2.
fn radices_of_two(exponent: u32) -> Vec<u64> {
    let (eights, rest) = (exponent as usize / 3, exponent % 3);
    match (eights, rest) {
        (_, 0) => vec![8; eights],
        (_, 2) => [vec![8; eights], vec![4]].concat(),
        (0, _) => vec![2],
        _ => [vec![8; eights - 1], vec![4, 4]].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radices_multiply_to_the_length() {
        let of = |n: u64| fft_radices(FftKind::Fft, &[n], DType::C64);
        assert_eq!(of(2048), Some(vec![8, 8, 8, 4]));
        assert_eq!(of(16 * 9), Some(vec![4, 4, 3, 3]));
        assert_eq!(of(17), None);
        assert_eq!(of(8192), None);
        for n in 17..=4096 {
            assert!(of(n).is_none_or(|radices| radices.iter().product::<u64>() == n), "{n}");
        }
    }
}
