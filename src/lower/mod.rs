//! TensorFlow graph to HLO: walks the nodes in topological order and calls the row of each.
use crate::diag::{Diagnostic, Result};
use crate::graph::{Endpoint, Program};
use crate::hlo::Module;
use crate::tensor::TensorInfo;

/// One argument of the compiled function.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The output that it replaces.
    pub at: Endpoint,
    /// Its name, type and fixed sizes.
    pub info: TensorInfo,
}

/// A lowered graph: the root of the entry is a tuple with one array a fetch.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program.
    pub module: Module,
    /// Parameter `i` is `args[i]`.
    pub args: Vec<TensorInfo>,
    /// Part `i` of the root is `results[i]`.
    pub results: Vec<TensorInfo>,
}

/// Lowers the whole graph (must-compile), or says everything that blocks it: the first problem of each node whose inputs are sound.
pub fn lower(_program: &Program, _feeds: &[Feed], _fetches: &[(String, Endpoint)]) -> Result<Lowered, Vec<Diagnostic>> {
    Err(vec![])
}
