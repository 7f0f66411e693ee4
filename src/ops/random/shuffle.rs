//! Random permutations as functions of a seed, like those of TensorFlow's CPU kernels.
//!
//! Sources: the Fisher-Yates shuffle; for single positions of a permutation that is never materialized, Beaulieu et al., "The
//! Simon and Speck families of lightweight block ciphers" (2013), with words of any width, and cycle walking by Black and
//! Rogaway, "Ciphers with arbitrary finite domains" (2002).
use super::{Draw, bits, counted, from_key, streams};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::array::gather;
use crate::ops::counted_loop::counted_loop;
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::expr::{ArrayExpr, build_formula, build_formulas, iterate_elementwise_all};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("StatelessShuffle", "value key counter alg -> output", shuffle).shape(like_first_input).constant_inputs(&[3]),
    op("RandomIndexShuffle", "index seed max_index -> output", index_shuffle).shape(places).dtypes("s32, s64, u32, u64"),
];

/// Lowers `StatelessShuffle`, a Fisher-Yates shuffle of the rows of input 0: each row, from the first on, is exchanged with a
/// random one not before it.
fn shuffle(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let Some(&rows) = dims.first().filter(|&&n| n > 1) else { return cx.one_output(x) };
    let generator = from_key(cx)?;
    streams::require_philox(cx, &generator)?;
    let draw = Draw { dtype: DType::U32, dims: vec![rows - 1], count: counted(&[rows - 1])?, bounds: 0 };
    let words = bits(cx.b, &generator, false, &draw);
    let order = random_permutation(cx.b, words, rows);
    cx.args = vec![Value::Array(x), Value::Array(order)];
    gather(cx)
}

/// Fisher-Yates permutation of `0..rows`: each position, from the first on, is exchanged with one not before it, chosen by a
/// word of `words`, `u32[rows - 1]`.
pub(super) fn random_permutation(b: &mut Builder, words: InstId, rows: Dim) -> InstId {
    let place = b.iota(DType::U32, &[rows - 1], 0);
    let end = b.full_like(place, rows);
    let partners = build_formula(b, [words, place, end], |[word, place, end]| place + word.rem(end - place));
    let partners = b.convert(partners, DType::S32);
    let order = b.iota(DType::S32, &[rows], 0);
    let parts = counted_loop(b, "exchange", rows - 1, &[order, partners], |b, place, parts| {
        let (order, partners) = (parts[0], parts[1]);
        let at = |b: &mut Builder, x: InstId, i: InstId| b.add_inst(Op::DynamicSlice(vec![Dim::from(1)]), &[x, i]);
        let partner = at(b, partners, place);
        let partner = b.reshape(partner, &[]);
        let (here, there) = (at(b, order, place), at(b, order, partner));
        let order = b.add_inst(Op::DynamicUpdateSlice, &[order, here, partner]);
        vec![b.add_inst(Op::DynamicUpdateSlice, &[order, there, place]), partners]
    });
    parts[0]
}

/// Shape function of `RandomIndexShuffle`: a scalar for scalar inputs and a single seed, else a vector.
fn places(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut of = Vec::with_capacity(3);
    for i in 0..3 {
        match cx.dims(i)? {
            Dims::Ranked(dims) => of.push(dims),
            Dims::Unranked(id) => {
                let unknown = cx.unranked(UnknownReason::From(id));
                return cx.one_output_like(0, unknown);
            }
        }
    }
    let (index, seed, last) = (&of[0], &of[1], &of[2]);
    let seeds = &seed[..seed.len().saturating_sub(1)];
    let lengths = [&index[..], seeds, &last[..]].concat();
    let length = lengths.iter().find(|d| **d != InferredDim::Known(1)).or(lengths.first());
    let dims: Vec<InferredDim> = length.copied().into_iter().collect();
    cx.one_output_like(0, dims)
}

/// Lowers `RandomIndexShuffle`: positions of the indices in input 0 in a random permutation of 0 to input 2.
fn index_shuffle(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dtype, rounds) = (cx.dtype(0)?, cx.node.int("rounds").unwrap_or(4));
    if !matches!(rounds, 4..=256) || rounds % 2 != 0 {
        return Err(cx.unsupported_case(format!("{rounds} rounds; even numbers from 4 to 256 are supported")));
    }
    let (of_index, of_seed, of_last) = (cx.dims(0)?, cx.dims(1)?, cx.dims(2)?);
    let seeds = &of_seed[..of_seed.len().saturating_sub(1)];
    let outer = [&of_index[..], seeds, &of_last[..]];
    let length = outer.iter().flat_map(|d| d.first()).max().copied();
    let fits = |d: &&[Dim]| d.is_empty() || d.len() == 1 && d.first() == length.as_ref();
    if of_seed.last() != Some(&Dim::from(3)) || !outer.iter().all(fits) {
        let told = format!("places {of_index:?}, seeds {of_seed:?} and last places {of_last:?}");
        return Err(cx.shape_mismatch(told));
    }
    let dims: Vec<Dim> = length.into_iter().collect();
    let [index, seed, last] = [cx.arg(0)?, cx.arg(1)?, cx.arg(2)?];
    let b = &mut *cx.b;
    let [value, last] = [index, last].map(|x| {
        let x = b.convert(x, DType::U64);
        b.broadcast_to(x, &dims)
    });
    let seeds = keys(b, seed, &dims);
    let given = [&[last][..], &seeds].concat();
    let fixed = build_formulas(b, &given, |x| {
        let cipher = Cipher::of(x[0]);
        let keys = cipher.schedule([x[1], x[2], x[3]], rounds as usize);
        Ok([vec![cipher.width, cipher.mask], keys].concat())
    })?;
    let going = build_formula(b, [last], |[last]| last.not_equals(0.0));
    let state = [&[value, last][..], &fixed].concat();
    let end = iterate_elementwise_all(b, going, &state, f64::from(i32::MAX), |x, _| {
        let y = Cipher { width: x[2], mask: x[3] }.encrypted(x[0], &x[4..]);
        (y.gt(x[1]), vec![y])
    });
    let y = end[0];
    let y = build_formula(b, [y, last], |[y, last]| y.replace_where(last.equals(0.0), 0.0));
    let y = b.convert(y, dtype);
    cx.one_output(y)
}

/// Low 32 bits of the three numbers of each seed, as u64, broadcast to the sizes of the result.
fn keys(b: &mut Builder, seed: InstId, dims: &[Dim]) -> [InstId; 3] {
    let wide = match b.dtype(seed) {
        DType::S32 | DType::S64 => {
            let seed = b.convert(seed, DType::S64);
            b.unary(ScalarOp::BitcastConvert(DType::U64), seed)
        }
        _ => b.convert(seed, DType::U64),
    };
    let mask = b.full_like(wide, f64::from(u32::MAX));
    let low = b.binary(ScalarOp::And, wide, mask);
    let axis = b.rank(low) - 1;
    let of_seeds = b.dims(low)[..axis].to_vec();
    [0, 1, 2].map(|i| {
        let key = b.slice_axis(low, axis, Dim::from(i), Dim::from(i + 1));
        let key = b.reshape(key, &of_seeds);
        b.broadcast_to(key, dims)
    })
}

/// Simon block cipher with words of `width` bits, stored in u64.
struct Cipher<'s, 'b> {
    width: ArrayExpr<'s, 'b>,
    mask: ArrayExpr<'s, 'b>,
}

impl<'s, 'b> Cipher<'s, 'b> {
    /// Cipher with words of half the bits that TensorFlow uses for indices up to `last`: the logarithm as f64 rounds it, at
    /// least 16.
    fn of(last: ArrayExpr<'s, 'b>) -> Self {
        let mut width = last.constant(8.0);
        for bits in (16..64).step_by(2) {
            let fits = last.build(|b| {
                let dims = b.dims(last.id).to_vec();
                let most = b.constant(Tensor::scalar(largest_within(f64::from(bits))));
                let most = b.broadcast_to(most, &dims);
                b.compare(Direction::Gt, last.id, most)
            });
            width = width + fits.convert(DType::U64);
        }
        let mask = last.constant(1.0).apply_binary(ScalarOp::ShiftLeft, width) - 1.0;
        Cipher { width, mask }
    }
    fn masked(&self, x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        x.and(self.mask)
    }
    /// Rotates left by `by` bits.
    fn left(&self, x: ArrayExpr<'s, 'b>, by: f64) -> ArrayExpr<'s, 'b> {
        let high = x.apply_binary(ScalarOp::ShiftLeft, by);
        let low = x.apply_binary(ScalarOp::ShiftRightLogical, self.width - by);
        self.masked(high.or(low))
    }
    /// Rotates right by `by` bits.
    fn right(&self, x: ArrayExpr<'s, 'b>, by: f64) -> ArrayExpr<'s, 'b> {
        let low = x.apply_binary(ScalarOp::ShiftRightLogical, by);
        let high = x.apply_binary(ScalarOp::ShiftLeft, self.width - by);
        self.masked(high.or(low))
    }
    fn mix(&self, x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        let product = self.left(x, 1.0).and(self.left(x, 8.0));
        xor(product, self.left(x, 2.0))
    }
    /// Round keys of the cipher: three are given, and each further one follows from its predecessors and a bit of a fixed sequence.
    fn schedule(&self, keys: [ArrayExpr<'s, 'b>; 3], rounds: usize) -> Vec<ArrayExpr<'s, 'b>> {
        let mut all = keys.map(|k| self.masked(k)).to_vec();
        let constant = self.masked(self.mask.constant(f64::from(0xFFFF_FFFCu32)));
        let sequence = self.masked(self.mask.constant(f64::from(0x192C_0EF5u32)));
        for i in 3..rounds {
            let bit = match i - 3 {
                // Words have at most 32 bits.
                at @ 0..32 => sequence.apply_binary(ScalarOp::ShiftRightLogical, at as f64).and(sequence.constant(1.0)),
                _ => sequence.constant(0.0),
            };
            let before = all[i - 1];
            let turned = xor(self.right(before, 3.0), self.right(before, 4.0));
            all.push(xor(xor(xor(constant, bit), all[i - 3]), turned));
        }
        all
    }
    /// Encrypts a number of two words, the high one first.
    fn encrypted(&self, value: ArrayExpr<'s, 'b>, keys: &[ArrayExpr<'s, 'b>]) -> ArrayExpr<'s, 'b> {
        let mut left = self.masked(value.apply_binary(ScalarOp::ShiftRightLogical, self.width));
        let mut right = self.masked(value);
        for pair in keys.chunks_exact(2) {
            left = xor(xor(left, self.mix(right)), pair[0]);
            right = xor(xor(right, self.mix(left)), pair[1]);
        }
        left.apply_binary(ScalarOp::ShiftLeft, self.width).or(right)
    }
}

fn xor<'s, 'b>(x: ArrayExpr<'s, 'b>, y: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    x.apply_binary(ScalarOp::Xor, y)
}

/// Largest number whose base-2 logarithm, in f64, is at most `bits`.
fn largest_within(bits: f64) -> u64 {
    let (mut within, mut beyond) = (1u64, u64::MAX);
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        *(if (middle as f64).log2() <= bits { &mut within } else { &mut beyond }) = middle;
    }
    within
}
