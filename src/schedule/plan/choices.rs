//! Choices of a plan that do not follow from the module and the machine.
use crate::hlo::{CompId, InstId};
use std::collections::{HashMap, HashSet};

/// An instruction of a module.
pub type Key = (CompId, InstId);

/// The choices of one plan, which a search makes or a file gives.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// An order of the entry, but for what comes late, instead of post order.
    pub order: Option<Vec<InstId>>,
    /// The convolutions by Winograd's method whose weights are transformed at compile time and not at each call.
    pub known: HashSet<Key>,
    /// Bounds in bytes for the scratch memory of some convolutions.
    pub rooms: HashMap<Key, u64>,
    /// Concatenations of the entry whose parts have memory of their own and are copied.
    pub apart: HashSet<InstId>,
    /// Arrays of the entry that windows read with margins, but are made without, and copied when the windows come.
    pub copied: HashSet<InstId>,
    /// Arrays of the entry without margins, which windows read in parts: the results at edges with fewer taps.
    pub in_parts: HashSet<InstId>,
    /// Whether the memory of results may hold other values before.
    pub in_results: bool,
}
