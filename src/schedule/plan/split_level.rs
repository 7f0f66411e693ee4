//! How far a module is cut in halves (`split.rs`): what a plan says of it.

/// The pairs of kernels that may be split.
#[derive(Clone, Copy, PartialEq)]
pub enum SplitScope {
    /// Pairs with large arrays of which no element is computed twice.
    Once,
    /// The pairs of [`SplitScope::Once`], pairs with small arrays, and windows some of whose rows both halves compute.
    Twice,
}

/// The splits applied to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitLevel {
    /// No splits.
    None,
    /// The splits of [`SplitScope::Once`].
    Once,
    /// The splits of [`SplitScope::Once`], then those of [`SplitScope::Twice`].
    Twice,
}

impl SplitLevel {
    /// The word for the splits in the text of plans.
    pub fn name(self) -> &'static str {
        match self {
            SplitLevel::None => "none",
            SplitLevel::Once => "once",
            SplitLevel::Twice => "twice",
        }
    }
}
