//! What the search over plans wants to know of a program.
use crate::hlo::InstId;
use crate::kernel::BufId;
use crate::schedule::plan::choices::Key;
use std::collections::HashMap;

/// What is known of buffers once a plan has become a program, for the next plan.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Of which convolution by Winograd's method that memory is which it takes for itself.
    pub scratch: HashMap<BufId, Key>,
    /// What of it has weights that might be transformed at compile time.
    pub transformed: HashMap<BufId, Key>,
    /// Concatenations of the entry that parts are written into.
    pub wholes: HashMap<BufId, InstId>,
    /// Arrays of the entry that are made with margins.
    pub margins: HashMap<BufId, InstId>,
    /// Arrays of the entry with margins, as they are made or as copies, that windows might read in parts.
    pub in_parts: HashMap<BufId, InstId>,
}
