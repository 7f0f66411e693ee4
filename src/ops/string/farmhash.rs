//! FarmHash's `Fingerprint64` (Geoff Pike, farmhash 1.1, `farmhashna`), the basis of TensorFlow's fingerprints and hash
//! buckets.
use super::text::{Text, TextExpr, text_formulas};
use crate::diag::{Error, Result};
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::math::expr::ArrayExpr;

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
/// Seed of the hash of long strings.
const SEED: u64 = 81;
/// Bytes per round of the hash of long strings.
const BLOCK: u64 = 64;

/// Fingerprint of each string, `u64[dims]`.
///
/// # Errors
/// None for valid text.
pub fn fingerprint(b: &mut Builder, text: &Text) -> Result<InstId> {
    let made = text_formulas(b, &[text], |texts| Ok(texts.iter().map(hash).collect()))?;
    made.into_iter().next().ok_or_else(|| Error::internal("lower", "no fingerprint"))
}

type Hash = for<'a, 's, 'b> fn(&'a TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b>;

/// Hash functions by string length, each with the largest length it applies to.
const BY_LENGTH: [(u64, Hash); 7] =
    [(0, empty), (3, up_to_3), (7, up_to_7), (16, up_to_16), (32, up_to_32), (64, up_to_64), (u64::MAX, longer)];

fn hash<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    if let Some(length) = s.fixed {
        let [.., (_, last)] = BY_LENGTH;
        return BY_LENGTH.iter().find(|(most, _)| length <= *most).map_or(last, |f| f.1)(s);
    }
    let mut result = empty(s);
    for pair in BY_LENGTH.windows(2) {
        let ((before, _), (_, formula)) = (pair[0], pair[1]);
        if s.most > before {
            result = formula(s).select_where(s.length.gt(before), result);
        }
    }
    result
}

fn empty<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    s.length.constant_u64(K2)
}

fn up_to_3<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let byte = |at: ArrayExpr<'s, 'b>| {
        let bits = at.shift_left(3).and(at.constant_u64(63));
        s.words[0].shift_right(bits).and(at.constant_u64(0xff))
    };
    let n = s.length;
    let (first, middle, last) = (byte(n.constant_u64(0)), byte(n.shift_right(1)), byte(n - 1));
    let (y, z) = (first + middle.shift_left(8), n + last.shift_left(2));
    shift_mix((y * K2).xor(z * K0)) * K2
}

fn up_to_7<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let low = |word: ArrayExpr<'s, 'b>| word.and(word.constant_u64(0xffff_ffff));
    let n = s.length;
    mixed(n + low(s.word(0)).shift_left(3), low(s.word_before_end(4)), factor(n))
}

fn up_to_16<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let mul = factor(s.length);
    let (a, b) = (s.word(0) + K2, s.word_before_end(8));
    let c = rotated(b, 37) * mul + a;
    let d = (rotated(a, 25) + b) * mul;
    mixed(c, d, mul)
}

fn up_to_32<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let mul = factor(s.length);
    let (a, b) = (s.word(0) * K1, s.word(8));
    let (c, d) = (s.word_before_end(8) * mul, s.word_before_end(16) * K2);
    mixed(rotated(a + b, 43) + rotated(c, 30) + d, a + rotated(b + K2, 18) + c, mul)
}

fn up_to_64<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let mul = factor(s.length);
    let (a, b) = (s.word(0) * K2, s.word(8));
    let (c, d) = (s.word_before_end(8) * mul, s.word_before_end(16) * K2);
    let y = rotated(a + b, 43) + rotated(c, 30) + d;
    let z = mixed(y, a + rotated(b + K2, 18) + c, mul);
    let (e, f) = (s.word(16) * mul, s.word(24));
    let g = (y + s.word_before_end(32)) * mul;
    let h = (z + s.word_before_end(24)) * mul;
    mixed(rotated(e + f, 43) + rotated(g, 30) + h, e + rotated(f + a, 18) + g, mul)
}

/// State of the hash of long strings.
#[derive(Clone, Copy)]
struct State<'s, 'b> {
    x: ArrayExpr<'s, 'b>,
    y: ArrayExpr<'s, 'b>,
    z: ArrayExpr<'s, 'b>,
    v: [ArrayExpr<'s, 'b>; 2],
    w: [ArrayExpr<'s, 'b>; 2],
}

impl<'s, 'b> State<'s, 'b> {
    /// State after a block whose word `i` is `word(i)`. `mul` and `nines` are factors that differ for the final block.
    fn after(self, word: impl Fn(u64) -> ArrayExpr<'s, 'b>, mul: ArrayExpr<'s, 'b>, nines: u64) -> Self {
        let State { x, y, z, v, w } = self;
        let x = rotated(x + y + v[0] + word(1), 37) * mul;
        let y = rotated(y + v[1] + word(6), 42) * mul;
        let x = x.xor(w[1] * nines);
        let y = y + v[0] * nines + word(5);
        let z = rotated(z + w[0], 33) * mul;
        let v = weak([word(0), word(1), word(2), word(3)], v[1] * mul, x + w[0]);
        let w = weak([word(4), word(5), word(6), word(7)], z + w[1], y + word(2));
        State { x: z, y, z: x, v, w }
    }

    fn when(self, condition: ArrayExpr<'s, 'b>, other: Self) -> Self {
        let pick = |own: ArrayExpr<'s, 'b>, other: ArrayExpr<'s, 'b>| own.select_where(condition, other);
        State {
            x: pick(self.x, other.x),
            y: pick(self.y, other.y),
            z: pick(self.z, other.z),
            v: [pick(self.v[0], other.v[0]), pick(self.v[1], other.v[1])],
            w: [pick(self.w[0], other.w[0]), pick(self.w[1], other.w[1])],
        }
    }
}

/// Hash of strings of more than 64 bytes: a round for each 64-byte block but the last, and one for the final 64 bytes.
fn longer<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let n = s.length;
    let zero = n.constant_u64(0);
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let z = y.wrapping_mul(K2).wrapping_add(113);
    let z = (z ^ (z >> 47)).wrapping_mul(K2);
    let x = s.word(0) + SEED.wrapping_mul(K2);
    let mut state = State { x, y: n.constant_u64(y), z: n.constant_u64(z), v: [zero; 2], w: [zero; 2] };
    let k1 = n.constant_u64(K1);
    let rounds = (s.fixed.unwrap_or(s.most).saturating_sub(1)) / BLOCK;
    for i in 0..rounds {
        let next = state.after(|word| s.word(BLOCK * i + 8 * word), k1, 1);
        state = if s.fixed.is_some() { next } else { next.when(n.gt(BLOCK * (i + 1)), state) };
    }
    let mul = state.z.and(n.constant_u64(0xff)).shift_left(1) + K1;
    state.w[0] = state.w[0] + (n - 1).and(n.constant_u64(63));
    state.v[0] = state.v[0] + state.w[0];
    state.w[0] = state.w[0] + state.v[0];
    let State { x, y, z, v, w } = state.after(|word| s.word_before_end(BLOCK - 8 * word), mul, 9);
    let (first, second) = (mixed(v[0], w[0], mul), mixed(v[1], w[1], mul));
    mixed(first + shift_mix(y) * K0 + z, second + x, mul)
}

fn factor<'s, 'b>(length: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    length.shift_left(1) + K2
}

fn rotated<'s, 'b>(x: ArrayExpr<'s, 'b>, right: u64) -> ArrayExpr<'s, 'b> {
    x.shift_right(right).or(x.shift_left(64 - right))
}

fn shift_mix<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    x.xor(x.shift_right(47))
}

fn mixed<'s, 'b>(u: ArrayExpr<'s, 'b>, v: ArrayExpr<'s, 'b>, mul: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let a = shift_mix(u.xor(v) * mul);
    shift_mix(v.xor(a) * mul) * mul
}

/// Weak hash of 32 bytes with two seeds.
fn weak<'s, 'b>(words: [ArrayExpr<'s, 'b>; 4], a: ArrayExpr<'s, 'b>, b: ArrayExpr<'s, 'b>) -> [ArrayExpr<'s, 'b>; 2] {
    let [w, x, y, z] = words;
    let a = a + w;
    let b = rotated(b + a + z, 21);
    let sum = a + x + y;
    [sum + z, b + rotated(sum, 44) + a]
}
