//! Facts about a program's buffers that the search over plans reads.
use crate::hlo::InstId;
use crate::kernel::BufId;
use crate::schedule::plan::choices::InstKey;
use std::collections::HashMap;

/// Purposes of the buffers of a program, from which the search makes its next plan.
#[derive(Clone, Debug, Default)]
pub struct SearchFacts {
    /// Scratch memory of Winograd convolutions.
    pub scratch: HashMap<BufId, InstKey>,
    /// Scratch memory for weights that might be transformed at compile time instead.
    pub transformed: HashMap<BufId, InstKey>,
    /// Concatenations of the entry whose parts are written in place.
    pub wholes: HashMap<BufId, InstId>,
    /// Arrays of the entry that their kernels write with margins, by their buffers.
    pub margins: HashMap<BufId, InstId>,
    /// Arrays of the entry, by their buffers, that are written or copied with margins but would need none if the windows that read them
    /// were split into interior and edge.
    pub in_parts: HashMap<BufId, InstId>,
}
