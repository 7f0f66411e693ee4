//! HLO to better HLO: an ordered list of passes.
use crate::diag::Result;
use crate::hlo::Module;

/// Runs every pass in order.
pub fn run(_module: &mut Module) -> Result<()> {
    Ok(())
}
