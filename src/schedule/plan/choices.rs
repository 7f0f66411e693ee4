//! Choices of a plan that do not follow from the module and the machine.
use crate::hlo::{CompId, InstId};
use std::collections::{HashMap, HashSet};

/// An instruction of a module.
pub type InstKey = (CompId, InstId);

/// The choices of one plan, made by the search or read from a file.
#[derive(Clone, Debug, Default)]
pub struct PlanChoices {
    /// Execution order of the entry in place of post order, except for values that are computed late.
    pub order: Option<Vec<InstId>>,
    /// Winograd convolutions whose weights are transformed at compile time instead of at each call.
    pub known: HashSet<InstKey>,
    /// Upper limits in bytes of the scratch memory of some convolutions.
    pub rooms: HashMap<InstKey, u64>,
    /// Concatenations of the entry whose parts have memory of their own and are copied into it.
    pub apart: HashSet<InstId>,
    /// Arrays of the entry that are made without the margins that windows need, and copied with margins before the windows.
    pub copied: HashSet<InstId>,
    /// Arrays of the entry without margins whose windows are split: results at edges are computed separately with fewer taps.
    pub in_parts: HashSet<InstId>,
    /// Whether the memory of results may hold intermediates before the results are computed.
    pub in_results: bool,
}
