//! Window attributes of XLA's TensorFlow ops, given as lists of numbers.
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::WindowDim;

/// Sizes, strides or dilations of `rank` windows; `None` unless each is at least 1 and below 2^32.
pub fn positive_dims(list: &[i64], rank: usize) -> Option<Vec<Dim>> {
    let all: Option<Vec<Dim>> = list.iter().map(|&v| Dim::size(v).ok().filter(|&v| v >= 1 && v < 1u64 << 32)).collect();
    all.filter(|all| all.len() == rank)
}

/// Windows for each dimension, from equally long lists of sizes, strides, base dilations and window dilations; paddings come in
/// pairs of less than 2^32.
pub fn window_dims([sizes, strides, base, dilations]: [&[Dim]; 4], padding: &[i64]) -> Option<Vec<WindowDim>> {
    if padding.len() != 2 * sizes.len() || padding.iter().any(|p| p.unsigned_abs() >= 1 << 32) {
        return None;
    }
    let dim = |i: usize| WindowDim {
        size: sizes[i],
        stride: strides[i],
        pad_low: Dim::from(padding[2 * i]),
        pad_high: Dim::from(padding[2 * i + 1]),
        lhs_dilate: base[i],
        rhs_dilate: dilations[i],
        reversal: false,
    };
    Some((0..sizes.len()).map(dim).collect())
}
