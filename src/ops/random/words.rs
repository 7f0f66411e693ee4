//! Stream of 32-bit random words, for algorithms that need a varying number of them.
use super::stateful::global_generator;
use super::{Generator, from_seed, rounds, split, unit_f32};
use crate::diag::Result;
use crate::hlo::symbolic::InstId;
use crate::ops::LowerCtx;
use crate::ops::math::expr::{ArrayExpr, iterate_elementwise};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Key and counter (low and high word) of a stream, u64 scalars each.
#[derive(Clone, Copy)]
pub(in crate::ops) struct StreamState<T>(pub [T; 3]);

impl StreamState<InstId> {
    /// Stream that starts with the seeds in input `i`.
    pub fn from_seeds(cx: &mut LowerCtx, i: usize) -> Result<Self> {
        let seed = cx.arg(i)?;
        from_seed(cx, seed).map(StreamState::of)
    }
    /// Stream for one draw from the global random generator, which has no handle.
    pub fn from_global_generator(cx: &mut LowerCtx) -> Result<Self> {
        global_generator(cx).map(StreamState::of)
    }
    fn of(generator: Generator) -> Self {
        StreamState([generator.key, generator.counter[0], generator.counter[1]])
    }
}

impl<'s, 'b> StreamState<ArrayExpr<'s, 'b>> {
    /// Word at position `place`, a u64, as u32.
    pub fn word_at(self, place: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        let StreamState([key, low, high]) = self;
        let block = low + place.shift_right(2.0);
        let high = high + block.lt(low).convert(DType::U64);
        let words = block.build_all(|b| {
            let ([c0, c1], [c2, c3], key) = (split(b, block.id), split(b, high.id), split(b, key.id));
            rounds(b, [c0, c1, c2, c3], key)
        });
        let lane = place.and(place.constant(3.0));
        let pair = |first: usize, odd: ArrayExpr<'s, 'b>| words[first + 1].select_where(odd, words[first]);
        let odd = lane.and(lane.constant(1.0)).not_equals(0.0);
        pair(2, odd).select_where(lane.ge(2.0), pair(0, odd))
    }
    /// f32 in [0, 1) from the word at position `place`.
    pub fn fraction_at(self, place: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
        let word = self.word_at(place);
        word.build(|b| unit_f32(b, word.id, 23))
    }
    /// Integer in `0..count`, for a positive s32 `count`, and the position behind the words it takes. Words that would bias the
    /// result towards small integers are rejected.
    pub fn integer_below(self, count: ArrayExpr<'s, 'b>, place: ArrayExpr<'s, 'b>) -> [ArrayExpr<'s, 'b>; 2] {
        let count = count.convert(DType::U32);
        let power = count.and(count - 1.0).equals(0.0);
        let rejected = count.constant_u64(u64::from(u32::MAX)).rem(count) + 1.0;
        let rejected = rejected.replace_where(power, 0.0);
        let word = self.word_at(place);
        let StreamState(stream) = self;
        let [word, place] = word.build_all(|b| {
            let going = b.compare(crate::scalar::Direction::Lt, word.id, rejected.id);
            let [key, low, high] = stream.map(|part| part.id);
            let state = [word.id, place.id, rejected.id, key, low, high];
            let end =
                iterate_elementwise(b, going, state, f64::from(i32::MAX), |[_, place, rejected, key, low, high], _| {
                    let place = place + 1.0;
                    let word = StreamState([key, low, high]).word_at(place);
                    (word.lt(rejected), [word, place, rejected, key, low, high])
                });
            [end[0], end[1]]
        });
        [word.apply_binary(ScalarOp::Remainder, count).convert(DType::S32), place + 1.0]
    }
}
