//! How far a module is cut in halves (`halves.rs`): what a plan says of it.

/// What may be cut.
#[derive(Clone, Copy, PartialEq)]
pub enum Cuts {
    /// Large arrays, of which no element is made twice.
    Once,
    /// Small ones and some rows of larger windows too.
    Twice,
}

/// Which cuts a module has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// None.
    None,
    /// Those of [`Cuts::Once`].
    Once,
    /// Those of [`Cuts::Once`], then those of [`Cuts::Twice`].
    Twice,
}

impl Halves {
    /// What plans call it.
    pub fn name(self) -> &'static str {
        match self {
            Halves::None => "none",
            Halves::Once => "once",
            Halves::Twice => "twice",
        }
    }
}
