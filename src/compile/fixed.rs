//! Sizes that values say and that other shapes fix.
//!
//! TensorFlow adds two arrays, or folds rows by their numbers, only where sizes agree. Where one of them follows from values and the
//! other is an argument's, the first can only be the second, and a call in which it is not fails. Shapes alone do not say which size
//! that is, so it is found by trying: a size of an argument with which the node that refused takes its inputs.
use crate::diag::{Code, Diagnostic};
use crate::lower::{Failure, Feed, Lowered};
use crate::prepare::Prepared;

/// A function has no more such sizes.
const MOST_FIXED: usize = 8;
/// No more of the sizes that values say, the last ones that were met, are tried for one node.
const MOST_TRIED: usize = 8;

/// A size that values say and that is the size of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Its number, in the order in which sizes are met.
    pub number: usize,
    feed: usize,
    axis: usize,
}

impl Fixed {
    /// What it is for arguments of these sizes.
    pub fn size(&self, feeds: &[Feed]) -> u64 {
        feeds.get(self.feed).and_then(|f| f.info.dims.get(self.axis)).copied().unwrap_or(0)
    }
}

type Try<'a> = &'a dyn Fn(&[u64], &[Fixed]) -> Result<Lowered, Failure>;

/// The function for the sizes `most` that the caller says, and what is fixed in it.
///
/// # Errors
/// The blockers that are left whatever is fixed.
pub fn search(prepared: &Prepared, most: &[u64], lower: Try) -> Result<(Lowered, Vec<Fixed>), Vec<Diagnostic>> {
    let mut fixed = Vec::new();
    loop {
        let failure = match lower(most, &fixed) {
            Ok(lowered) => return Ok((lowered, fixed)),
            Err(failure) => failure,
        };
        let is_by_shape = failure.told.iter().all(|d| d.code == Code::ShapeMismatch);
        if failure.found.is_empty() || !is_by_shape || fixed.len() == MOST_FIXED {
            return Err(failure.told);
        }
        match next(prepared, most, lower, &fixed, &failure) {
            Some(one) => fixed.push(one),
            None => return Err(failure.told),
        }
    }
}

/// A size that gets the first node that refused to take its inputs, also where the caller says other sizes.
fn next(prepared: &Prepared, most: &[u64], lower: Try, fixed: &[Fixed], failure: &Failure) -> Option<Fixed> {
    let smaller = smaller(prepared, most);
    let helps = |one: Fixed, sizes: &[u64], before: &Failure| match lower(sizes, &[fixed, &[one]].concat()) {
        Ok(_) => true,
        Err(after) => {
            let first = before.told.first().map(|d| &d.place);
            after.told.iter().all(|d| d.code == Code::ShapeMismatch && Some(&d.place) != first)
        }
    };
    let free = (0..failure.found.len()).rev().filter(|n| !failure.found[*n].is_fixed);
    for number in free.take(MOST_TRIED) {
        for one in candidates(prepared, most, number, failure.found[number].most) {
            let elsewhere = || lower(&smaller, fixed).err().is_some_and(|before| helps(one, &smaller, &before));
            if helps(one, most, failure) && (smaller == most || elsewhere()) {
                return Some(one);
            }
        }
    }
    None
}

/// Sizes of arguments that the size `number`, which is at most `room`, may be; each that is a number once.
fn candidates(prepared: &Prepared, most: &[u64], number: usize, room: u64) -> Vec<Fixed> {
    let feeds = prepared.at(most).feeds;
    let mut out: Vec<Fixed> = Vec::new();
    for (feed, info) in feeds.iter().enumerate() {
        for (axis, &size) in info.info.dims.iter().enumerate() {
            let one = Fixed { number, feed, axis };
            let varies = |f: &Fixed| prepared.axes.get(f.feed).and_then(|a| a.get(f.axis)).copied().flatten();
            let is_known = out.iter().any(|o| varies(o) == varies(&one) && o.size(&feeds) == size);
            if !is_known && (2..=room).contains(&size) {
                out.push(one);
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
