//! HLO to kernels: which loops, which tiles, which memory.
use crate::diag::{Error, Result};
use crate::kernel::Program;
use crate::lower::Lowered;
use crate::target::Target;

/// Schedules an optimised module.
pub fn build(_lowered: &Lowered, _name: &str, _source: &str, _target: &Target) -> Result<Program> {
    Err(Error::internal("schedule", "not written"))
}
