//! How far a module is cut in halves (`split.rs`): what a plan says of it.

/// The pairs of kernels that may be split.
#[derive(Clone, Copy, PartialEq)]
pub enum SplitScope {
    /// Large arrays, of which no element is made twice.
    Once,
    /// Small ones and some rows of larger windows too.
    Twice,
}

/// The splits that a module has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitLevel {
    /// None.
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
