//! What Winograd's method may take for itself. It is faster than direct sums and needs memory between its transforms, which is no
//! reason for a workspace that is larger than the arrays of the program: where it is, each convolution whose memory is above
//! what the arrays leave at its launches gets that as a bound, and smaller strips.
use super::memory_plan;
use crate::kernel::{BufId, Place, Program};
use std::collections::HashMap;

/// By the numbers of convolutions, what they may take so that the workspace is what dense arrays need.
pub fn rooms(program: &Program, scratch: &HashMap<BufId, usize>, dense: u64) -> HashMap<usize, u64> {
    let of_results = |b: &crate::kernel::Buffer| match b.place {
        Place::Result(_) => b.elements * b.dtype.bytes() as u64,
        _ => 0,
    };
    let results: u64 = program.buffers.values().map(of_results).sum();
    let most = dense.saturating_sub(results);
    let all = memory_plan::beside(program, scratch).into_iter();
    all.filter(|(_, (own, others))| own + others > most)
        .map(|(number, (_, others))| (number, most.saturating_sub(others)))
        .collect()
}
