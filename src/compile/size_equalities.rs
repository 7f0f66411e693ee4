//! Equalities of data-dependent sizes that follow from the ops that use them.
//!
//! TensorFlow adds two arrays, or reduces segments of rows, only if sizes agree. If one of the sizes is data-dependent and the other that
//! of an argument, they must be equal, and a call in which they are not fails. The same holds for two data-dependent sizes: the number of
//! elements that a mask keeps, and the number of segment ids that row lengths make. Shapes alone do not tell which sizes are equal, so
//! that is found by trial: a size of an argument, or an earlier data-dependent one, with which the failing node accepts its inputs.
use crate::diag::{Code, Diagnostic};
use crate::hlo::Anchor;
use crate::lower::{Lowered, LoweringFailure};
use crate::prepare::Prepared;
use crate::symbolic::Dim;

/// Upper bound on the equalities of one function.
const MAX_EQUALITIES: usize = 8;
/// Number of data-dependent sizes, the latest ones, that are tried for one node.
const MAX_TRIED_SIZES: usize = 8;

/// A data-dependent size that equals another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeEquality {
    /// Index of the size among the data-dependent sizes, in the order of their creation.
    pub number: usize,
    by: EqualTo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EqualTo {
    /// Size of an axis of an argument.
    Argument { feed: usize, axis: usize },
    /// Another data-dependent size, by index.
    Found(usize),
}

impl SizeEquality {
    /// The other size, for arguments with the dimensions `feeds`.
    pub fn anchor(&self, feeds: &[Vec<Dim>]) -> Anchor {
        match self.by {
            EqualTo::Argument { feed, axis } => {
                Anchor::Size(feeds.get(feed).and_then(|dims| dims.get(axis)).copied().unwrap_or_default())
            }
            EqualTo::Found(other) => Anchor::Found(other),
        }
    }
}

/// Lowers the function for the caller's sizes and assumed data-dependent sizes, under some equalities.
type TryLower<'a> = &'a dyn Fn(&[u64], &[u64], &[SizeEquality]) -> Result<Lowered, LoweringFailure>;

/// Lowers a function at the caller's sizes `most`, and returns it with the equalities of sizes that it needs.
///
/// # Errors
/// The diagnostics that no equality resolves.
pub fn find_equalities(
    prepared: &Prepared,
    most: &[u64],
    lower: TryLower,
) -> Result<(Lowered, Vec<SizeEquality>), Vec<Diagnostic>> {
    let mut fixed = Vec::new();
    loop {
        let one = match lower(most, &[], &fixed) {
            Ok(lowered) => match equality_of_data_sizes(most, lower, &fixed, &lowered) {
                Some(one) => one,
                None => return Ok((lowered, fixed)),
            },
            Err(failure) => match next_equality(prepared, most, lower, &fixed, &failure) {
                Some(one) => one,
                None => return Err(failure.diagnostics),
            },
        };
        fixed.push(one);
    }
}

/// Whether a lowering failed because of shapes only, and has data-dependent sizes for which an equality can be tried.
fn is_shape_failure(failure: &LoweringFailure, fixed: &[SizeEquality]) -> bool {
    let is_shape_failure = failure.diagnostics.iter().all(|d| d.code == Code::ShapeMismatch);
    is_shape_failure && !failure.data_sizes.is_empty() && fixed.len() < MAX_EQUALITIES
}

/// Whether the equality `one` makes the first failing node accept its inputs, at these sizes.
fn resolves_first_failure(
    lower: TryLower,
    said: &[u64],
    found: &[u64],
    fixed: &[SizeEquality],
    one: SizeEquality,
    before: &LoweringFailure,
) -> bool {
    match lower(said, found, &[fixed, &[one]].concat()) {
        Ok(_) => true,
        Err(after) => {
            let first = before.diagnostics.first().map(|d| &d.place);
            after.diagnostics.iter().all(|d| d.code == Code::ShapeMismatch && Some(&d.place) != first)
        }
    }
}

/// Indices of the data-dependent sizes without an equality, the latest first.
fn unfixed_sizes(failure: &LoweringFailure) -> impl Iterator<Item = usize> {
    (0..failure.data_sizes.len()).rev().filter(|n| !failure.data_sizes[*n].is_fixed).take(MAX_TRIED_SIZES)
}

/// Equality that makes the first failing node accept its inputs, at the caller's sizes `most` and at smaller ones.
fn next_equality(
    prepared: &Prepared,
    most: &[u64],
    lower: TryLower,
    fixed: &[SizeEquality],
    failure: &LoweringFailure,
) -> Option<SizeEquality> {
    if !is_shape_failure(failure, fixed) {
        return None;
    }
    let smaller = smaller_sizes(prepared, most);
    for number in unfixed_sizes(failure) {
        let arguments = argument_candidates(prepared, most, number, failure.data_sizes[number].most.known());
        for one in arguments.into_iter().chain(earlier_sizes(failure, number)) {
            let before = || lower(&smaller, &[], fixed).err();
            let elsewhere =
                || before().is_some_and(|before| resolves_first_failure(lower, &smaller, &[], fixed, one, &before));
            if resolves_first_failure(lower, most, &[], fixed, one, failure) && (smaller == most || elsewhere()) {
                return Some(one);
            }
        }
    }
    None
}

/// Equalities of data-dependent size `number` with earlier ones of the same computation that are never larger.
fn earlier_sizes(failure: &LoweringFailure, number: usize) -> impl Iterator<Item = SizeEquality> {
    let (found, this) = (&failure.data_sizes, failure.data_sizes[number]);
    let is_one = move |n: &usize| !found[*n].is_fixed && found[*n].place == this.place && found[*n].most <= this.most;
    (0..number).rev().filter(is_one).map(move |other| SizeEquality { number, by: EqualTo::Found(other) })
}

/// Equalities of data-dependent size `number`, which is at most `room`, with sizes of arguments, without repetitions.
fn argument_candidates(prepared: &Prepared, most: &[u64], number: usize, room: u64) -> Vec<SizeEquality> {
    let feeds = prepared.at(most).feeds;
    let mut known: Vec<(Option<usize>, u64)> = Vec::new();
    let mut out: Vec<SizeEquality> = Vec::new();
    for (feed, info) in feeds.iter().enumerate() {
        for (axis, &size) in info.info.dims.iter().enumerate() {
            let varies = prepared.axes.get(feed).and_then(|a| a.get(axis)).copied().flatten();
            if !known.contains(&(varies, size)) && (2..=room).contains(&size) {
                known.push((varies, size));
                out.push(SizeEquality { number, by: EqualTo::Argument { feed, axis } });
            }
        }
    }
    out
}

/// Sizes slightly below the largest, different from one another where possible.
fn smaller_sizes(prepared: &Prepared, most: &[u64]) -> Vec<u64> {
    let less = |(i, (&n, size)): (usize, (&u64, &crate::tensor::Size))| n.saturating_sub(i as u64 + 1).max(size.least);
    most.iter().zip(&prepared.sizes).enumerate().map(less).collect()
}

/// Equality between two data-dependent sizes that a function needs: if all sizes are assumed to be different, in falling and in rising
/// order, a node fails, and it accepts its inputs once these two are equal.
fn equality_of_data_sizes(
    most: &[u64],
    lower: TryLower,
    fixed: &[SizeEquality],
    largest: &Lowered,
) -> Option<SizeEquality> {
    let count = largest.data_sizes.len() as u64;
    let apart = |less: &dyn Fn(u64) -> u64| -> Option<(Vec<u64>, LoweringFailure)> {
        let each = largest.data_sizes.iter().zip(0..).map(|(&(_, most), i)| most.saturating_sub(less(i)).max(1));
        let found: Vec<u64> = each.collect();
        let failure = lower(most, &found, fixed).err().filter(|failure| is_shape_failure(failure, fixed))?;
        Some((found, failure))
    };
    if count < 2 {
        return None;
    }
    let (falling, first) = apart(&|i| i)?;
    let (rising, second) = apart(&|i| count - 1 - i)?;
    let resolves = |found: &[u64], one: SizeEquality, before: &LoweringFailure| {
        resolves_first_failure(lower, most, found, fixed, one, before)
    };
    let mut ties = unfixed_sizes(&first).flat_map(|number| earlier_sizes(&first, number));
    ties.find(|&one| resolves(&falling, one, &first) && resolves(&rising, one, &second))
}
