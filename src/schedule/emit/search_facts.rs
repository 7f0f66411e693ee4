//! Facts about a program's buffers that the search over plans reads.
use crate::hlo::InstId;
use crate::kernel::BufId;
use crate::schedule::plan::choices::Key;
use std::collections::HashMap;

/// The purposes of buffers of a program, from which the search makes its next plan.
#[derive(Clone, Debug, Default)]
pub struct SearchFacts {
    /// Scratch memory of convolutions by Winograd's method.
    pub scratch: HashMap<BufId, Key>,
    /// Scratch memory with weights that might be transformed at compile time.
    pub transformed: HashMap<BufId, Key>,
    /// Concatenations of the entry that parts are written into.
    pub wholes: HashMap<BufId, InstId>,
    /// Arrays of the entry that are made with margins.
    pub margins: HashMap<BufId, InstId>,
    /// Arrays of the entry with margins, as they are made or as copies, that windows might read in parts.
    pub in_parts: HashMap<BufId, InstId>,
}
