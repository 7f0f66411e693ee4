//! Data-dependent sizes and that other shapes fix.
//!
//! TensorFlow adds two arrays, or folds rows by their numbers, only where sizes agree. Where one of them follows from values and the
//! other is an argument's, the first can only be the second, and a call in which it is not fails. The same holds of two that follow from
//! values: how many elements a mask keeps, and how many row numbers the lengths of the rows make. Shapes alone do not say which size
//! that is, so it is found by trying: a size of an argument, or one that was met before, with which the node that refused takes its
//! inputs.
use crate::diag::{Code, Diagnostic};
use crate::hlo::Anchor;
use crate::lower::{Lowered, LoweringFailure};
use crate::prepare::Prepared;
use crate::symbolic::Dim;

/// A function has no more such sizes.
const MOST_FIXED: usize = 8;
/// No more of the data-dependent sizes, the last ones that were met, are tried for one node.
const MOST_TRIED: usize = 8;

/// A data-dependent size and that is another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Index of the size in the order in which data-dependent sizes are met.
    pub number: usize,
    by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A size of an argument.
    Argument { feed: usize, axis: usize },
    /// A data-dependent size, by its number.
    Found(usize),
}

impl Fixed {
    /// Size that this one must equal, for arguments of the sizes `feeds`.
    pub fn anchor(&self, feeds: &[Vec<Dim>]) -> Anchor {
        match self.by {
            By::Argument { feed, axis } => {
                Anchor::Size(feeds.get(feed).and_then(|dims| dims.get(axis)).copied().unwrap_or_default())
            }
            By::Found(other) => Anchor::Found(other),
        }
    }
}

/// Lowers the function for sizes that the caller says and data-dependent sizes.
type Try<'a> = &'a dyn Fn(&[u64], &[u64], &[Fixed]) -> Result<Lowered, LoweringFailure>;

/// The function for the sizes `most` that the caller says, and what is fixed in it.
///
/// # Errors
/// The blockers that are left whatever is fixed.
pub fn search(prepared: &Prepared, most: &[u64], lower: Try) -> Result<(Lowered, Vec<Fixed>), Vec<Diagnostic>> {
    let mut fixed = Vec::new();
    loop {
        let one = match lower(most, &[], &fixed) {
            Ok(lowered) => match equal(most, lower, &fixed, &lowered) {
                Some(one) => one,
                None => return Ok((lowered, fixed)),
            },
            Err(failure) => match next(prepared, most, lower, &fixed, &failure) {
                Some(one) => one,
                None => return Err(failure.diagnostics),
            },
        };
        fixed.push(one);
    }
}

/// Whether nothing but shapes is in the way, and there is something to fix.
fn is_by_shape(failure: &LoweringFailure, fixed: &[Fixed]) -> bool {
    let is_by_shape = failure.diagnostics.iter().all(|d| d.code == Code::ShapeMismatch);
    is_by_shape && !failure.data_sizes.is_empty() && fixed.len() < MOST_FIXED
}

/// Whether `one` gets the first node that refused to take its inputs, at these sizes.
fn helps(lower: Try, said: &[u64], found: &[u64], fixed: &[Fixed], one: Fixed, before: &LoweringFailure) -> bool {
    match lower(said, found, &[fixed, &[one]].concat()) {
        Ok(_) => true,
        Err(after) => {
            let first = before.diagnostics.first().map(|d| &d.place);
            after.diagnostics.iter().all(|d| d.code == Code::ShapeMismatch && Some(&d.place) != first)
        }
    }
}

/// The numbers of the sizes that are not fixed yet, the last one first.
fn free(failure: &LoweringFailure) -> impl Iterator<Item = usize> {
    (0..failure.data_sizes.len()).rev().filter(|n| !failure.data_sizes[*n].is_fixed).take(MOST_TRIED)
}

/// A size of an argument, or one that values said before, that gets the first node that refused to take its inputs, also where the caller
/// says other sizes.
fn next(prepared: &Prepared, most: &[u64], lower: Try, fixed: &[Fixed], failure: &LoweringFailure) -> Option<Fixed> {
    if !is_by_shape(failure, fixed) {
        return None;
    }
    let smaller = smaller(prepared, most);
    for number in free(failure) {
        let arguments = candidates(prepared, most, number, failure.data_sizes[number].most.known());
        for one in arguments.into_iter().chain(earlier(failure, number)) {
            let before = || lower(&smaller, &[], fixed).err();
            let elsewhere = || before().is_some_and(|before| helps(lower, &smaller, &[], fixed, one, &before));
            if helps(lower, most, &[], fixed, one, failure) && (smaller == most || elsewhere()) {
                return Some(one);
            }
        }
    }
    None
}

/// The sizes of the same computation that were met before the size `number`, and are never larger.
fn earlier(failure: &LoweringFailure, number: usize) -> impl Iterator<Item = Fixed> {
    let (found, this) = (&failure.data_sizes, failure.data_sizes[number]);
    let is_one = move |n: &usize| !found[*n].is_fixed && found[*n].place == this.place && found[*n].most <= this.most;
    (0..number).rev().filter(is_one).map(move |other| Fixed { number, by: By::Found(other) })
}

/// Sizes of arguments that the size `number`, which is at most `room`, may be; each that is a number once.
fn candidates(prepared: &Prepared, most: &[u64], number: usize, room: u64) -> Vec<Fixed> {
    let feeds = prepared.at(most).feeds;
    let mut known: Vec<(Option<usize>, u64)> = Vec::new();
    let mut out: Vec<Fixed> = Vec::new();
    for (feed, info) in feeds.iter().enumerate() {
        for (axis, &size) in info.info.dims.iter().enumerate() {
            let varies = prepared.axes.get(feed).and_then(|a| a.get(axis)).copied().flatten();
            if !known.contains(&(varies, size)) && (2..=room).contains(&size) {
                known.push((varies, size));
                out.push(Fixed { number, by: By::Argument { feed, axis } });
            }
        }
    }
    out
}

/// Sizes below the largest, so that no two that were equal stay equal where that is possible.
fn smaller(prepared: &Prepared, most: &[u64]) -> Vec<u64> {
    let less = |(i, (&n, size)): (usize, (&u64, &crate::tensor::Size))| n.saturating_sub(i as u64 + 1).max(size.least);
    most.iter().zip(&prepared.sizes).enumerate().map(less).collect()
}

/// A data-dependent size and that can only be another one: where no two are equal, whichever is the larger one, a node refuses to take
/// its inputs, and takes them where these two are equal.
fn equal(most: &[u64], lower: Try, fixed: &[Fixed], largest: &Lowered) -> Option<Fixed> {
    let count = largest.data_sizes.len() as u64;
    let apart = |less: &dyn Fn(u64) -> u64| -> Option<(Vec<u64>, LoweringFailure)> {
        let each = largest.data_sizes.iter().zip(0..).map(|(&(_, most), i)| most.saturating_sub(less(i)).max(1));
        let found: Vec<u64> = each.collect();
        let failure = lower(most, &found, fixed).err().filter(|failure| is_by_shape(failure, fixed))?;
        Some((found, failure))
    };
    if count < 2 {
        return None;
    }
    let (falling, first) = apart(&|i| i)?;
    let (rising, second) = apart(&|i| count - 1 - i)?;
    let helps = |found: &[u64], one: Fixed, before: &LoweringFailure| helps(lower, most, found, fixed, one, before);
    let mut ties = free(&first).flat_map(|number| earlier(&first, number));
    ties.find(|&one| helps(&falling, one, &first) && helps(&rising, one, &second))
}
