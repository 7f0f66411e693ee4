//! The interface between scheduled programs and code: a back end, of which there are two, LLVM and C.
use super::Launches;
use crate::diag::Result;
use crate::kernel::Bundle;
use crate::util::pieces::Pieces;

/// A code generator, which turns verified programs with their constants and memory plan into one file of code.
///
/// `docs/backends.md` has the rules: what a bundle holds, which functions the code must define, and how a back end is tested.
pub trait Backend {
    /// The code of all functions of a model, with its constants and metadata.
    ///
    /// # Errors
    /// A program that the back end has no code for is refused with a coded diagnostic before anything is written.
    fn code(&self, bundle: &Bundle, launches: Launches) -> Result<Pieces>;
}
