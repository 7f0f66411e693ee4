//! String hashes: SipHash-2-4, which has a key, and TensorFlow's legacy `Hash64`.
use super::text::{Text, TextExpr, text_formulas};
use crate::diag::{Error, Result};
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::math::expr::ArrayExpr;

/// Initial state of SipHash, to be combined with the key.
const SIP: [u64; 4] = [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];
/// Factor of `Hash64`, a MurmurHash64A.
const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;
const MURMUR_SEED: u64 = 0x00de_cafc_affe;

/// SipHash-2-4 of each string, `u64[dims]` (Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012).
///
/// # Errors
/// None for valid text.
pub fn sip_hash(b: &mut Builder, text: &Text, key: [u64; 2]) -> Result<InstId> {
    let made = text_formulas(b, &[text], |texts| Ok(texts.iter().map(|s| sip(s, key)).collect()))?;
    made.into_iter().next().ok_or_else(|| Error::internal("lower", "no hash"))
}

/// TensorFlow's `Hash64` of each string, `u64[dims]`.
///
/// # Errors
/// None for valid text.
pub fn hash_64(b: &mut Builder, text: &Text) -> Result<InstId> {
    let made = text_formulas(b, &[text], |texts| Ok(texts.iter().map(murmur).collect()))?;
    made.into_iter().next().ok_or_else(|| Error::internal("lower", "no hash"))
}

type SipState<'s, 'b> = [ArrayExpr<'s, 'b>; 4];

fn sip<'s, 'b>(s: &TextExpr<'s, 'b>, key: [u64; 2]) -> ArrayExpr<'s, 'b> {
    let n = s.length;
    let start = [key[0] ^ SIP[0], key[1] ^ SIP[1], key[0] ^ SIP[2], key[1] ^ SIP[3]];
    let mut state = start.map(|word| n.constant_u64(word));
    let whole = n.shift_right(3);
    for i in 0..s.most / 8 {
        let next = absorbed(state, s.word(8 * i));
        state = picked(whole.gt(i), next, state);
    }
    // The final word holds the remaining bytes, and the length in its highest byte.
    let mut last = n.constant_u64(0);
    for i in 0..=s.most / 8 {
        last = s.word(8 * i).select_where(whole.equals(i), last);
    }
    let mut state = absorbed(state, last.or(n.shift_left(56)));
    state[2] = state[2].xor(0xff);
    for _ in 0..4 {
        state = round(state);
    }
    state[0].xor(state[1]).xor(state[2]).xor(state[3])
}

fn absorbed<'s, 'b>(mut state: SipState<'s, 'b>, word: ArrayExpr<'s, 'b>) -> SipState<'s, 'b> {
    state[3] = state[3].xor(word);
    state = round(round(state));
    state[0] = state[0].xor(word);
    state
}

fn picked<'s, 'b>(condition: ArrayExpr<'s, 'b>, x: SipState<'s, 'b>, y: SipState<'s, 'b>) -> SipState<'s, 'b> {
    std::array::from_fn(|i| x[i].select_where(condition, y[i]))
}

fn round<'s, 'b>([a, b, c, d]: SipState<'s, 'b>) -> SipState<'s, 'b> {
    let left = |x: ArrayExpr<'s, 'b>, bits: u64| x.shift_left(bits).or(x.shift_right(64 - bits));
    let (a, c) = (a + b, c + d);
    let (b, d) = (left(b, 13).xor(a), left(d, 16).xor(c));
    let (a, c) = (left(a, 32) + d, c + b);
    let (d, b) = (left(d, 21).xor(a), left(b, 17).xor(c));
    [a, b, left(c, 32), d]
}

fn murmur<'s, 'b>(s: &TextExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let n = s.length;
    let mut h = (n * MURMUR).xor(MURMUR_SEED);
    let whole = n.shift_right(3);
    for i in 0..s.most / 8 {
        let k = s.word(8 * i) * MURMUR;
        let k = k.xor(k.shift_right(47)) * MURMUR;
        h = (h.xor(k) * MURMUR).select_where(whole.gt(i), h);
    }
    let mut last = n.constant_u64(0);
    for i in 0..=s.most / 8 {
        last = s.word(8 * i).select_where(whole.equals(i), last);
    }
    let rest = n.and(n.constant_u64(7));
    let h = (h.xor(last) * MURMUR).select_where(rest.not_equals(0), h);
    let h = h.xor(h.shift_right(47)) * MURMUR;
    h.xor(h.shift_right(47))
}

/// Fingerprint of two concatenated fingerprints.
pub fn joined_fingerprint<'s, 'b>(first: ArrayExpr<'s, 'b>, second: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let mix = |x: ArrayExpr<'s, 'b>| x.xor(x.shift_right(47));
    let x = first.xor(MURMUR).xor(mix(second * MURMUR) * MURMUR) * MURMUR;
    mix(mix(x) * MURMUR)
}
