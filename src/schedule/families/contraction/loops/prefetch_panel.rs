//! Prefetches of the next panel. While tiles pass one after another over a panel of the right side, each prefetches its share of the next
//! panel, so that this comes from far memory while they multiply, and not all in the first of its tiles.
use crate::kernel::Index;
use crate::kernel::index::linear_index;
use crate::target::LINE;
use crate::tensor::DType;

/// Least size in bytes of a right side whose panels are prefetched: a smaller one stays in a near cache after its first use.
const LEAST_BYTES: u64 = 64 << 10;

/// Upper limit of tiles that share a panel: with more, fetching the panel is a small part of their work.
const MOST_TILES: u64 = 64;

/// The part of the next panel that one tile prefetches.
#[derive(Clone, Debug)]
pub struct PanelPrefetch {
    /// The first element of the part.
    first: Index,
    /// Elements to prefetch per term of the sum.
    each: u64,
}

impl PanelPrefetch {
    /// Whether the panels of a right side of `bytes` bytes are worth prefetching; `pass` says whether tiles of rows pass over each panel
    /// one after another.
    pub fn is_profitable(bytes: u64, pass: bool) -> bool {
        pass && bytes >= LEAST_BYTES
    }

    /// The part of the next panel that the tile at `place` prefetches; `None` if one tile or too many share a panel. The panel begins at
    /// element `next` and has `terms` times `columns` elements; `place` has the position and the extent of each loop that shares a panel,
    /// column parts first.
    pub fn of_panel(place: &[(Index, u64)], next: Index, terms: u64, columns: u64) -> Option<PanelPrefetch> {
        let (place, extents): (Vec<Index>, Vec<u64>) = place.iter().cloned().unzip();
        let all: u64 = extents.iter().product();
        if all < 2 || extents[1..].iter().product::<u64>() > MOST_TILES {
            return None;
        }
        let each = columns.div_ceil(all);
        Some(PanelPrefetch { first: next.add(&linear_index(&place, &extents).scale((each * terms) as i64)), each })
    }

    /// The element to prefetch in step `u` of the unrolled steps from term `position` on; `None` if an earlier step fetched its cache
    /// line.
    pub fn element_to_prefetch(&self, position: &Index, u: u64, dtype: DType) -> Option<Index> {
        let line = |u: u64| u * self.each * dtype.bytes() as u64 / LINE;
        let is_new = u == 0 || line(u) > line(u - 1);
        is_new.then(|| self.first.add(&position.offset(u as i64).scale(self.each as i64)))
    }
}
