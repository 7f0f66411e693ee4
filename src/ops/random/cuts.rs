//! Random division of axes into windows of two consecutive sizes, for fractional pooling.
//!
//! Source: Graham, "Fractional max-pooling" (2014). Numbers are drawn as in TensorFlow's CPU kernels, rows before columns.
use super::shuffle::random_permutation;
use super::stateful::global_generator;
use super::truncated_normal::add_to_counter;
use super::{Algorithm, Draw, Generator, bits, uniform};
use crate::diag::Result;
use crate::dims;
use crate::graph::Node;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::LowerCtx;
use crate::ops::math::expr::build_formula;
use crate::ops::math::scan::prefix_reduction;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Length of an axis, and the number of windows into which it is divided.
#[derive(Clone, Copy)]
pub(in crate::ops) struct AxisWindows {
    pub size: u64,
    pub parts: u64,
}

impl AxisWindows {
    /// Size of the smaller windows; the others have one element more.
    pub fn min_size(self) -> u64 {
        self.size / self.parts
    }
}

/// Seeds of a node whose attribute `deterministic` fixes its numbers; `None` otherwise.
pub(in crate::ops) fn fixed_seeds(node: &Node) -> Option<[i64; 2]> {
    let seeds = ["seed", "seed2"].map(|name| node.int(name).unwrap_or(0));
    (node.bool("deterministic").unwrap_or(false) && seeds != [0, 0]).then_some(seeds)
}

/// Window boundaries `s64[parts + 1]` along each axis, from 0 to the size of the axis.
pub(in crate::ops) fn window_boundaries(cx: &mut LowerCtx, cuts: [AxisWindows; 2]) -> Result<[InstId; 2]> {
    let mut generator = match fixed_seeds(cx.node) {
        Some(seeds) => seeded(cx.b, seeds),
        None => global_generator(cx)?,
    };
    let pseudo_random = cx.bool_attr("pseudo_random");
    let rows = one(cx, &generator, cuts[0], pseudo_random)?;
    let words = if pseudo_random { 2 } else { cuts[0].parts };
    let taken = cx.b.scalar(DType::U64, words.div_ceil(4) as f64);
    generator.counter = add_to_counter(cx.b, generator.counter, taken);
    Ok([rows, one(cx, &generator, cuts[1], pseudo_random)?])
}

/// Generator from two unscrambled seeds: the key, and the high word of the counter.
fn seeded(b: &mut Builder, [key, counter]: [i64; 2]) -> Generator {
    let mut word = |seed: i64| b.constant(crate::tensor::Tensor::scalar(seed as u64));
    Generator { key: word(key), counter: [word(0), word(counter)], algorithm: Algorithm::Philox }
}

fn one(cx: &mut LowerCtx, generator: &Generator, cut: AxisWindows, pseudo_random: bool) -> Result<InstId> {
    let zero = cx.b.full(DType::S64, &dims![1], 0.0);
    match pseudo_random {
        true => {
            let inner = evenly(cx, generator, cut)?;
            let size = cx.b.full(DType::S64, &dims![1], cut.size as f64);
            Ok(cx.b.concatenate(&[zero, inner, size], 0))
        }
        false => {
            let sizes = shuffled(cx, generator, cut)?;
            let add = cx.b.scalar_computation(ScalarOp::Add, DType::S64);
            let ends = prefix_reduction(cx, sizes, 0, add, 0.0);
            Ok(cx.b.concatenate(&[zero, ends], 0))
        }
    }
}

/// Boundaries at equal distances from a random start, rounded up.
fn evenly(cx: &mut LowerCtx, generator: &Generator, cut: AxisWindows) -> Result<InstId> {
    let (size, parts, least) = (cut.size as f64, cut.parts as f64, cut.min_size() as f64);
    let distance = size / parts;
    // A larger start would give the first or the last window a third size.
    let most = ((least + 2.0) / distance - 1.0).min((size + 1.0 - least) / distance - (parts - 1.0));
    let draw = Draw { dtype: DType::F64, dims: dims![1].to_vec(), count: Dim::from(1), bounds: 0 };
    let start = uniform(cx, generator, &draw)?;
    let b = &mut *cx.b;
    let inner = dims![cut.parts - 1];
    let start = b.reshape(start, &[]);
    let start = b.broadcast(start, &inner, &[]);
    let number = b.iota(DType::F64, &inner, 0);
    Ok(build_formula(b, [number, start], |[number, start]| {
        let place = (number + 1.0 + start * most) * distance;
        (place.apply_unary(ScalarOp::Ceil) - 1.0).convert(DType::S64)
    }))
}

/// Window sizes, larger ones first, then shuffled.
fn shuffled(cx: &mut LowerCtx, generator: &Generator, cut: AxisWindows) -> Result<InstId> {
    let (parts, larger) = (Dim::from(cut.parts), cut.size % cut.parts);
    let order = match cut.parts {
        1 => cx.b.iota(DType::S32, &[parts], 0),
        _ => {
            let draw = Draw { dtype: DType::U32, dims: vec![parts - 1], count: parts - 1, bounds: 0 };
            let words = bits(cx.b, generator, false, &draw);
            random_permutation(cx.b, words, parts)
        }
    };
    Ok(build_formula(cx.b, [order], |[order]| order.lt(larger).convert(DType::S64) + cut.min_size()))
}
