//! Kernels that go through the same large arrays element by element become one, which goes through memory once: the updates of a
//! variable and of the moments that its optimizer keeps of it.
//!
//! The first is moved behind what stands between both, or the second before it, where nothing between touches what it writes or
//! writes what it touches, and no array has to live longer for it.
use crate::kernel::{BufId, BufferAccess, BufferLocation, Kernel, KernelId, Program, Step};
use crate::schedule::passes::join::retain_kernels;
use crate::util::id_vec::IdVec;
use std::collections::BTreeSet;

/// Upper limit of steps between two kernels that are merged.
const FARTHEST: usize = 64;
/// Upper limit of arrays that one kernel streams through: a processor's prefetcher follows about so many.
const MOST_ARRAYS: usize = 12;

/// Merges kernels of `program` that share an array of at least `least` bytes.
pub fn merge_kernels(program: &mut Program, least: u64) {
    let mut steps: Vec<Step> = std::mem::take(&mut program.steps);
    let mut gone = BTreeSet::new();
    let touched = |kernel: &Kernel| -> BTreeSet<BufId> { kernel.buffers().into_iter().collect() };
    let mut arrays = IdVec::new();
    program.kernels.values().for_each(|kernel| {
        arrays.push(touched(kernel));
    });
    let mut at = 1;
    while at < steps.len() {
        let mut before = (at.saturating_sub(FARTHEST)..at).rev();
        match before.find_map(|first| pair(program, &arrays, &steps, first, at, least)) {
            Some(found) => {
                arrays[found.kept] = touched(&found.merged);
                program.kernels[found.kept] = found.merged;
                gone.insert(found.gone);
                steps.remove(if found.is_early { at } else { found.first });
            }
            None => at += 1,
        }
    }
    program.steps = steps;
    if !gone.is_empty() {
        retain_kernels(program, |id| !gone.contains(&id));
    }
}

/// Two kernels that may be merged.
struct MergeCandidate {
    /// The step number of the first kernel.
    first: usize,
    /// Whether the merged kernel runs at the position of the first one, and not of the second.
    is_early: bool,
    /// The kernel that absorbs the other.
    kept: KernelId,
    /// The kernel that is appended to `kept` and removed.
    gone: KernelId,
    merged: Kernel,
}

/// The arrays that each kernel reads or writes.
type KernelArrays = IdVec<KernelId, BTreeSet<BufId>>;

/// Decides whether the kernels of steps `first` and `second` can be merged.
fn pair(
    program: &Program,
    arrays: &KernelArrays,
    steps: &[Step],
    first: usize,
    second: usize,
    least: u64,
) -> Option<MergeCandidate> {
    let (Step::Launch(a), Step::Launch(b)) = (&steps[first], &steps[second]) else { return None };
    let (x, y) = (&arrays[*a], &arrays[*b]);
    let is_large = |buf: &&BufId| program.buffers[**buf].bytes() >= least;
    if !x.intersection(y).any(|buf| is_large(&buf)) || x.union(y).count() > MOST_ARRAYS {
        return None;
    }
    let between = BufferAccess::of_steps(program, &steps[first + 1..second]);
    let of = |step: &Step| BufferAccess::of_steps(program, std::slice::from_ref(step));
    let (first_access, second_access) = (of(&steps[first]), of(&steps[second]));
    let is_workspace = |buf: &BufId| matches!(program.buffers[*buf].place, BufferLocation::Workspace(_));
    let writes_none = |access: &BufferAccess| !access.written.iter().any(is_workspace);
    let goes_up = !second_access.conflicts(&between) && writes_none(&second_access);
    // what the first reads is read until the second in any case
    let lives = |buf: &BufId| !is_workspace(buf) || second_access.read.contains(buf);
    let goes_down =
        !first_access.conflicts(&between) && writes_none(&first_access) && first_access.read.iter().all(lives);
    if !goes_up && !goes_down {
        return None;
    }
    let merged = program.kernels[*a].merge_with(&program.kernels[*b])?;
    // late, where what follows the second may be merged too
    let (kept, gone) = if goes_down { (*b, *a) } else { (*a, *b) };
    Some(MergeCandidate { first, is_early: !goes_down, kept, gone, merged })
}
