//! Number of right-hand sides of a triangular system that are solved at once: those that lie side by side are vectors.
use crate::hlo::Op;
use crate::schedule::plan::request::RecipeRequest;
use crate::schedule::target::KernelTarget;
use std::fmt;

/// Fewest vectorized tiles of right-hand sides, for threads to share them.
const FEWEST_TILES: u64 = 2;
/// Upper limit of vectors of right-hand sides that are solved at once, as a sum can take its next term only every four cycles.
pub const MOST_VECTORS: u64 = 4;
/// Fewest vector registers for [`MOST_VECTORS`] vectors at once; with fewer registers half as many vectors are the limit.
const MANY_REGISTERS: u64 = 32;

/// Blocking of the right-hand sides of a triangular system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolveBlocking {
    /// Vectors of right-hand sides that are solved at once.
    pub vectors: u64,
    /// Lanes per vector.
    pub lanes: u64,
}

impl SolveBlocking {
    /// The blocking for the anchor, if it is a triangular solve.
    pub fn choose(request: &RecipeRequest<'_>, target: &KernelTarget<'_>) -> Option<SolveBlocking> {
        let Op::TriangularSolve { left_side, .. } = *request.op() else { return None };
        let array = request.context.comp.array_shape(request.anchor);
        let [ref batch @ .., _, columns] = array.dims[..] else { return None };
        if !left_side {
            return Some(SolveBlocking { vectors: 1, lanes: 1 });
        }
        let lanes = target.machine().lanes(array.dtype.compute_type().bytes() as u64);
        let batch: u64 = batch.iter().product();
        let are_enough = |vectors: &u64| batch * (columns / (vectors * lanes)) >= FEWEST_TILES;
        let vectors = (1..=most_vectors(target)).rev().find(are_enough).unwrap_or(1);
        Some(SolveBlocking { vectors, lanes })
    }
}

/// Upper limit of vectors of columns whose sums of several rows stay in registers.
pub fn most_vectors(target: &KernelTarget<'_>) -> u64 {
    if target.machine().vector_registers < MANY_REGISTERS { MOST_VECTORS / 2 } else { MOST_VECTORS }
}

impl fmt::Display for SolveBlocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vectors of {}", self.vectors, self.lanes)
    }
}
