//! Winograd's method in two kernels, where there is little room and there are few tiles: the inputs are transformed, then a panel
//! of channels at a time has its weights transformed, a row of points after the other, is multiplied with all tiles, and is
//! transformed back. Panels are the chunks, or groups of them that share memory for weights and sums, where those are not on the
//! stack.
use super::{FEW_GROUPS, NARROW, POINTS, READS, Winograd};
use crate::schedule::plan::MOST_STACK;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::tile::{self, Cover, Tile};
use crate::target::Target;
use crate::tensor::DType;

/// Fewest groups, so that threads share them.
const FEWEST_GROUPS: u64 = 2;

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub struct PanelByPanel {
    pub tile: Tile,
    pub form: String,
    /// Groups of panels, each of which has memory for one: for its sums, and for the weights of a row of points.
    pub groups: u64,
    /// Whether the one and the other are on the stack.
    pub on_stack: [bool; 2],
}

impl PanelByPanel {
    pub fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
    /// What it takes in the workspace.
    pub fn bytes(&self, w: &Winograd) -> u64 {
        let of_group = of_panel(w, self.panel()).into_iter().zip(self.on_stack);
        let own: u64 = of_group.filter(|(_, on_stack)| !on_stack).map(|(bytes, _)| bytes).sum();
        4 * POINTS * apart(w.count() * w.inputs) + self.groups * own
    }
}

/// Bytes of the sums and of the weights of a row of points, of a panel of so many channels.
fn of_panel(w: &Winograd, panel: u64) -> [u64; 2] {
    [4 * POINTS * apart(w.count() * panel), 4 * READS * apart(w.inputs * panel)]
}

/// Of panels that are wide or narrow, in more or fewer groups, those that leave more room.
pub fn choose(w: &Winograd, room: u64, target: &Target) -> Option<PanelByPanel> {
    let tiles = w.count();
    let cut = |(vectors, most_groups): (u64, u64)| {
        let columns = w.outputs.min(vectors * target.lanes(4));
        let cover = Cover { height: 1, width: tiles, columns, sum: w.inputs, stride: 4 * w.inputs };
        let form = tile::form(target, DType::F32, cover, tiles, POINTS);
        let tile = tile::best(target, DType::F32, cover, &form);
        let panel = tile.vectors * tile.lanes;
        let [sums, weights] = of_panel(w, panel);
        let on_stack = [sums <= MOST_STACK, sums + weights <= MOST_STACK];
        let panels = w.outputs.div_ceil(panel);
        let groups = if on_stack[1] { panels } else { panels.min(most_groups) };
        // weights that are read a vector of columns at a time: 2.4 MB take a net a fifth more time, 0.6 MB none
        let is_near = vectors > 1 || 36 * w.inputs * w.outputs <= target.caches.l2;
        is_near.then_some(PanelByPanel { tile, form, groups, on_stack })
    };
    let all = (1..=NARROW).rev().flat_map(|vectors| (FEWEST_GROUPS..=FEW_GROUPS).rev().map(move |n| (vectors, n)));
    all.filter_map(cut).min_by_key(|panels| panels.bytes(w).saturating_sub(room))
}
