//! How the elements of an instruction become those of another that reads it through others: reshapes and transposes.
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::Index;
use crate::kernel::index::{Extents, reshape_coordinates};

/// One transformation of coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinateChange {
    /// Reshape: row-major order is kept; sizes before and after.
    Reshape(Vec<u64>, Vec<u64>),
    /// Transpose: axis `i` of the result is axis `perm[i]` of the operand.
    Transpose(Vec<usize>),
}

/// Whether the op permutes elements.
pub fn permutes_elements(op: &Op) -> bool {
    matches!(op, Op::Transpose(_))
}

/// The path of `id` through its reader `user`, whose own path to the root is `above`; `None` if elements are dropped, repeated or mixed.
pub fn path_through_reader(
    comp: &Computation,
    id: InstId,
    user: InstId,
    above: &[CoordinateChange],
) -> Option<Vec<CoordinateChange>> {
    let (from, to) = (comp[id].shape.as_array()?, comp[user].shape.as_array()?);
    let step = match &comp[user].op {
        Op::Elementwise(_) | Op::Copy | Op::OptimizationBarrier => (from.dims == to.dims).then_some(None)?,
        Op::Reshape | Op::Bitcast => Some(CoordinateChange::Reshape(from.dims.clone(), to.dims.clone())),
        Op::Transpose(perm) => Some(CoordinateChange::Transpose(perm.clone())),
        _ => return None,
    };
    let mut path: Vec<CoordinateChange> = step.into_iter().chain(above.iter().cloned()).collect();
    // two reshapes are one, and one that changes nothing is none
    if let [CoordinateChange::Reshape(a, _), CoordinateChange::Reshape(_, b), ..] = &path[..] {
        let one = CoordinateChange::Reshape(a.clone(), b.clone());
        path.splice(0..2, [one]);
    }
    if matches!(&path[..], [CoordinateChange::Reshape(a, b), ..] if a == b) {
        path.remove(0);
    }
    Some(path)
}

/// The coordinates of a root's element, from those of the anchor's.
pub fn root_coordinates(path: &[CoordinateChange], at: &[Index], extents: &Extents) -> Vec<Index> {
    let mut at = at.to_vec();
    for step in path {
        at = match step {
            CoordinateChange::Reshape(from, to) => reshape_coordinates(&at, from, to, extents),
            CoordinateChange::Transpose(perm) => perm.iter().map(|&p| at[p].clone()).collect(),
        };
    }
    at
}
