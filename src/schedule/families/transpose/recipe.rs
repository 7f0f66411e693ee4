//! When a result is computed in blocks, and along which axis these extend beside the innermost.
use crate::hlo::{Computation, InstId, Op};
use crate::schedule::plan::fuse::Fusion;

/// Fewest bytes of a result that is computed in blocks: about half of a first-level cache, which holds less as a whole.
pub const FEWEST_BYTES: u64 = 16 << 10;
/// Bytes of a cache line, which a block is wide and high.
const LINE_BYTES: u64 = 64;

/// A result that is read along another axis than the one along which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossedAxes {
    /// The axis of the result along which an operand's elements lie side by side.
    pub read: usize,
    /// The axis of the result along which its own elements lie side by side.
    pub written: usize,
    /// Elements of a block along both axes.
    pub block: u64,
}

impl CrossedAxes {
    /// The axes of `root` if one of the arrays in memory that its kernel reads has another innermost axis, and both are at least a block
    /// long.
    pub fn find(comp: &Computation, fusion: &Fusion, root: InstId) -> Option<CrossedAxes> {
        let shape = comp[root].shape.as_array()?;
        let written = innermost_axis(&shape.dims)?;
        let block = LINE_BYTES / (shape.dtype.bytes() as u64).clamp(1, LINE_BYTES);
        if block < 2 || shape.bytes() < FEWEST_BYTES {
            return None;
        }
        let fits = |&read: &usize| read != written && shape.dims[read] >= block && shape.dims[written] >= block;
        let read = read_axes(comp, fusion, root).into_iter().find(fits)?;
        Some(CrossedAxes { read, written, block })
    }
}

/// The last axis with more than one element.
fn innermost_axis(dims: &[u64]) -> Option<usize> {
    dims.iter().rposition(|&n| n != 1)
}

/// For each array in memory that the kernel of `root` reads through elementwise ops, transposes, slices and reversals, the axis of the root
/// along which the array's elements lie side by side.
fn read_axes(comp: &Computation, fusion: &Fusion, root: InstId) -> Vec<usize> {
    let mut found = Vec::new();
    // Instructions with the axis of the root for each of their own. A reader is visited once for each path, at most `MOST_VISITS` in all.
    let mut open = vec![(root, (0..comp.array_shape(root).dims.len()).collect::<Vec<usize>>())];
    for _ in 0..MOST_VISITS {
        let Some((id, axes)) = open.pop() else { break };
        let Some(shape) = comp[id].shape.as_array().filter(|s| s.dims.len() == axes.len()) else { continue };
        if id != root && fusion.is_materialised(id) {
            found.extend(innermost_axis(&shape.dims).map(|axis| axes[axis]));
            continue;
        }
        let kept = match &comp[id].op {
            Op::Elementwise(_) | Op::Copy | Op::OptimizationBarrier | Op::Slice(_) | Op::Reverse(_) => axes,
            Op::Transpose(perm) => {
                let mut of_operand = vec![0; axes.len()];
                perm.iter().zip(axes).for_each(|(&axis, of_root)| of_operand[axis] = of_root);
                of_operand
            }
            _ => continue,
        };
        open.extend(comp[id].operands.iter().map(|&operand| (operand, kept.clone())));
    }
    found
}

/// Most instructions that are looked at for one root.
const MOST_VISITS: usize = 64;
