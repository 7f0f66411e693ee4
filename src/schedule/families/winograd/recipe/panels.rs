//! Panels of channels whose weights are transformed on the way, a row of points after the other, and multiplied with all tiles.
//! Where there is little room and there are few tiles they are transformed back at once: then the sums of one panel are there at a
//! time, of each of some groups of panels, or on the stack.
use super::{InputLayout, ProductRows, Winograd, point_stride};
use crate::hlo::attrs::ConvDims;
use crate::schedule::plan::MOST_STACK;
use crate::schedule::target::KernelTarget;

/// Upper limit of groups of panels that are in progress at once along both axes, each with memory for the weights of a panel.
const FEW_GROUPS: u64 = 4;
/// Fewest groups, for threads to share them.
const FEWEST_GROUPS: u64 = 2;
/// Vectors per narrow panel.
pub const NARROW: u64 = 2;
/// Number of parts into which the rows of points in Winograd's domain are divided among threads.
const HALVES: u64 = 2;
/// Fewest panels with which threads need no division of the points into parts, each of which takes memory for weights.
const ENOUGH_PANELS: u64 = 4;
/// Sixteenths of the second-level cache that weights transformed on the way may take with wide panels.
const WEIGHTS_SIXTEENTHS: u64 = 4;

/// Division of the products at all points into panels.
#[derive(Clone, Debug)]
pub struct ProductPanels {
    /// The rows of products and their register tile.
    pub rows: ProductRows,
    /// Number of panel buffers: the panels of a group share one.
    pub groups: u64,
    /// Number of parts of the rows of points per group, each with memory for its own weights.
    pub parts: u64,
    /// Whether the sums of a panel are on the stack, and whether the weights of a row of points are.
    pub on_stack: [bool; 2],
}

impl ProductPanels {
    /// Bytes of workspace that the panels take if they are transformed back at once.
    pub fn bytes(&self, w: &Winograd) -> u64 {
        let of_group = of_panel(w, self.rows.panel_columns()).into_iter().zip(self.on_stack);
        let own: u64 = of_group.filter(|(_, on_stack)| !on_stack).map(|(bytes, _)| bytes).sum();
        w.types.point_bytes() * w.point_count() * InputLayout::new(w).point + self.groups * own
    }
}

/// Bytes of a panel of `panel` channels: of the sums at all points, and of the weights at a row of points.
fn of_panel(w: &Winograd, panel: u64) -> [u64; 2] {
    [
        w.types.sum_bytes() * w.point_count() * point_stride(w.result_tiles() * panel),
        w.types.point_bytes() * w.row_points() * w.row_point_stride(panel),
    ]
}

/// Panels for the products of the three-kernel scheme: one kernel for all tiles and panels, which stores all sums.
pub fn fused_kernel_panels(w: &Winograd, d: &ConvDims, target: &KernelTarget<'_>) -> ProductPanels {
    let all = InputLayout::new(w).product_rows(d, w);
    let mut rows = ProductRows::new(w, &all, w.outputs, target);
    let mut groups = w.outputs.div_ceil(rows.panel_columns());
    if !w.is_one_dimensional() {
        groups = groups.min(FEW_GROUPS);
        if groups * HALVES * w.row_points() * w.types.point_bytes() * w.term_count() * rows.panel_columns()
            > target.machine().caches.l2_sixteenths(WEIGHTS_SIXTEENTHS)
        {
            rows = ProductRows::new(w, &all, w.outputs.min(NARROW * rows.tile.lanes), target);
        }
    }
    let on_stack = of_panel(w, rows.panel_columns())[1] <= MOST_STACK;
    // threads come out even by points rather than by panels, of which the last may be narrow
    let parts = match groups {
        _ if !w.is_one_dimensional() => HALVES,
        _ if on_stack => w.point_count(),
        ENOUGH_PANELS.. => 1,
        _ => HALVES,
    };
    ProductPanels { rows, groups, parts, on_stack: [false, on_stack] }
}

/// Panels for the method along both axes: wide or narrow ones in more or fewer groups, whichever leave most of the memory bound `room`.
pub fn two_axis_panels(w: &Winograd, d: &ConvDims, room: u64, target: &KernelTarget<'_>) -> Option<ProductPanels> {
    let all = InputLayout::new(w).product_rows(d, w);
    let cut = |(vectors, most_groups): (u64, u64)| {
        let rows = ProductRows::new(w, &all, w.outputs.min(vectors * target.machine().lanes(4)), target);
        let [sums, weights] = of_panel(w, rows.panel_columns());
        let on_stack = [sums <= MOST_STACK, sums + weights <= MOST_STACK];
        let panels = w.outputs.div_ceil(rows.panel_columns());
        let groups = if on_stack[1] { panels } else { panels.min(most_groups) };
        // weights that are read a vector of columns at a time: 2.4 MB take a net a fifth more time, 0.6 MB none
        let is_near = vectors > 1 || 36 * w.inputs * w.outputs <= target.machine().caches.l2;
        is_near.then_some(ProductPanels { rows, groups, parts: 1, on_stack })
    };
    let all = (1..=NARROW).rev().flat_map(|vectors| (FEWEST_GROUPS..=FEW_GROUPS).rev().map(move |n| (vectors, n)));
    all.filter_map(cut).min_by_key(|panels| panels.bytes(w).saturating_sub(room))
}

/// Panels for the method along one axis whose sums fit on the stack, if memory is bounded by less than all sums take.
pub fn panels_along_one_axis(
    w: &Winograd,
    d: &ConvDims,
    room: Option<u64>,
    target: &KernelTarget<'_>,
) -> Option<ProductPanels> {
    let widths = (1..=NARROW).rev().map(|vectors| w.outputs.min(vectors * target.machine().lanes(4)));
    let fits = |columns: &u64| 4 * w.point_count() * point_stride(w.result_tiles() * columns) <= MOST_STACK;
    let columns = widths.into_iter().find(fits).filter(|_| w.is_bounded(room))?;
    let rows = ProductRows::new(w, &InputLayout::new(w).product_rows(d, w), columns, target);
    let [sums, weights] = of_panel(w, rows.panel_columns());
    let groups = w.outputs.div_ceil(rows.panel_columns());
    Some(ProductPanels { rows, groups, parts: 1, on_stack: [true, sums + weights <= MOST_STACK] })
}
