//! Functions piece by piece: of each piece a polynomial around its middle, whose coefficients are looked up. Few of its steps wait
//! for one another, and nothing is divided.
use super::super::arith::{add, binary_instruction, constant_bits, float_constant, reinterpret, sub};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::joined_in_pairs;
use super::table::{ENTRIES, look_up};
use crate::tensor::DType;

/// Number of f32 mantissa bits below the two that number the quarters of an octave (a range of a factor of two).
const BELOW: u64 = 21;

/// Coefficients of piecewise polynomials: for each power, rising, those of all pieces.
type Coefficients<const N: usize> = [[f32; ENTRIES as usize]; N];

/// Emits the polynomial of piece `number` modulo 16 at distance `t` from the piece's centre.
pub fn polynomial<const N: usize>(
    f: &mut FunctionEmitter,
    number: &Val,
    t: &Val,
    coefficients: &Coefficients<N>,
) -> Val {
    let look = |of_pieces: &[f32; ENTRIES as usize]| {
        let found = look_up(f, number, &|j| of_pieces[j as usize].to_bits());
        reinterpret(f, &found, DType::F32)
    };
    let terms = coefficients.iter().map(look).collect();
    joined_in_pairs(f, t, terms)
}

/// Emits a piecewise polynomial of an f32 x from 0 to 15: each quarter of an octave of x + 1 is a piece; the first has number 12, which
/// follows from f32's exponents.
pub fn octave_polynomial<const N: usize>(f: &mut FunctionEmitter, x: &Val, coefficients: &Coefficients<N>) -> Val {
    let one = float_constant(x, 1.0);
    let moved = add(f, x, &one);
    let word = reinterpret(f, &moved, DType::U32);
    let quarter = binary_instruction(f, "lshr", &word, &constant_bits(&word, BELOW));
    let first = binary_instruction(f, "and", &word, &constant_bits(&word, u64::from(u32::MAX << BELOW)));
    let middle = binary_instruction(f, "or", &first, &constant_bits(&word, 1 << (BELOW - 1)));
    let middle = reinterpret(f, &middle, DType::F32);
    // from x, not from x + 1, of which rounding took something
    let middle = sub(f, &middle, &one);
    let t = sub(f, x, &middle);
    polynomial(f, &quarter, &t, coefficients)
}
