//! Functions piece by piece: of each piece a polynomial around its middle, whose coefficients are looked up. Few of its steps wait
//! for one another, and nothing is divided.
use super::super::arith::{add, bits, number, reinterpret, sub, two};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::joined_in_pairs;
use super::table::{ENTRIES, look_up};
use crate::tensor::DType;

/// Bits of an f32 below those that number the quarters of an octave.
const BELOW: u64 = 21;

/// Coefficients of rising powers, of each those of all pieces.
type Coefficients<const N: usize> = [[f32; ENTRIES as usize]; N];

/// The polynomial of the piece `number` modulo 16, `t` from its middle.
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

/// A function of an f32 x from 0 up to 15, of whose x + 1 each quarter of an octave is a piece; the first one's number is 12, as
/// exponents of f32 go.
pub fn of_octaves<const N: usize>(f: &mut FunctionEmitter, x: &Val, coefficients: &Coefficients<N>) -> Val {
    let one = number(x, 1.0);
    let moved = add(f, x, &one);
    let word = reinterpret(f, &moved, DType::U32);
    let quarter = two(f, "lshr", &word, &bits(&word, BELOW));
    let first = two(f, "and", &word, &bits(&word, u64::from(u32::MAX << BELOW)));
    let middle = two(f, "or", &first, &bits(&word, 1 << (BELOW - 1)));
    let middle = reinterpret(f, &middle, DType::F32);
    // from x, not from x + 1, of which rounding took something
    let middle = sub(f, &middle, &one);
    let t = sub(f, x, &middle);
    polynomial(f, &quarter, &t, coefficients)
}
