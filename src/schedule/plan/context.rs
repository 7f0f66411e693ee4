//! Inputs of the planner for one computation.
use crate::hlo::{Computation, Module, Users};
use crate::schedule::families::convolution::recipe::algorithm::Convolutions;
use crate::schedule::target::KernelTarget;

/// Read-only inputs of the planner for one computation.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The module that holds the computation.
    pub module: &'a Module,
    /// The computation to plan.
    pub comp: &'a Computation,
    /// The readers of each instruction of the computation.
    pub users: &'a Users,
    /// The algorithm of each convolution of the computation.
    pub convolutions: &'a Convolutions,
    /// The target of the kernels.
    pub target: &'a KernelTarget<'a>,
}
