//! Winograd's method along one axis in two kernels, where there is little room and there are few tiles: the inputs are transformed,
//! then a panel of channels at a time has its weights transformed, a point after the other, is multiplied with all tiles, and is
//! transformed back. The sums of a panel are on the stack. Panels are the chunks.
use super::Winograd1d;
use crate::schedule::plan::MOST_STACK;
use crate::schedule::plan::points::apart;
use crate::target::Target;

/// Most vectors of a panel, so that threads have several.
const NARROW: u64 = 2;

/// The channels of a panel, where its sums fit on the stack and there is less room than all sums take.
pub fn choose(w: &Winograd1d, room: Option<u64>, target: &Target) -> Option<u64> {
    let widths = (1..=NARROW).rev().map(|vectors| w.outputs.min(vectors * target.lanes(4)));
    let fits = |columns: &u64| 4 * w.points.count() * apart(w.rows() * columns) <= MOST_STACK;
    widths.into_iter().find(fits).filter(|_| w.is_bounded(room))
}
