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
    /// Arrays of the entry with margins.
    pub margins: HashMap<BufId, InstId>,
    /// Arrays of the entry with margins, original or copied, whose windows might be split to do without.
    pub in_parts: HashMap<BufId, InstId>,
}
