//! Builder of computations, instruction by instruction, with shape inference.
//!
//! A call with invalid shapes does not fail immediately: the builder records the first error and returns a placeholder, and
//! [`Builder::take_error`] or [`Builder::finish`] reports the error, so that lowerings read as formulas. `instructions` has a
//! function for each instruction, `size_environment` the knowledge and assumptions about sizes.
mod instructions;
mod size_environment;

use super::data_sizes::{BoundCheck, DataDependentSize, OwningComputation, SizeAssumptions};
use super::{CompId, Computation, Inst, InstId, Metadata, Module, Op, Shape, SizeRepr, infer};
use crate::diag::{Error, Result};
use crate::tensor::DType;
use crate::util::id_vec::IdVec;
pub use instructions::Number;
use std::collections::HashMap;
use std::sync::Arc;

/// A point in the construction of a module, to which it can be rolled back.
#[derive(Clone, Copy, Debug)]
pub struct BuilderCheckpoint {
    /// Number of open computations.
    pub depth: usize,
    /// Number of data-dependent sizes.
    pub found: usize,
    insts: usize,
    comps: usize,
    bound_checks: usize,
}

/// A module under construction: a stack of open computations.
#[derive(Debug)]
pub struct Builder<D: SizeRepr = u64> {
    module: Module<D>,
    open: Vec<Computation<D>>,
    error: Option<String>,
    assumed: SizeAssumptions,
    found: Vec<DataDependentSize>,
    /// Data-dependent sizes from this one on are assumed to differ from `assumed`, to find what depends on them.
    perturbed_from: Option<usize>,
    /// Data-dependent sizes from this one on are assumed to equal their upper bounds.
    maximal_from: Option<usize>,
    /// Checkpoint taken when each open computation was opened, outermost first.
    before: Vec<BuilderCheckpoint>,
    /// Constants of each open computation that are computed from sizes, with the expressions of their elements, outermost first.
    recorded_constants: Vec<HashMap<InstId, Vec<D::SignedSize>>>,
    /// Run-time checks recorded in each open computation, outermost first.
    bound_checks: Vec<Vec<BoundCheck>>,
    /// Number of open computations, from the entry on, that may have data-dependent sizes, and whose run-time checks are carried to the
    /// entry.
    carried_depth: usize,
    /// Number of replicas that the collectives so far require.
    replicas: Option<u64>,
    /// Metadata that every new instruction gets.
    pub metadata: Arc<Metadata>,
}

impl<D: SizeRepr> Builder<D> {
    /// Starts a module whose entry computation is under construction.
    pub fn new(name: &str) -> Self {
        let module = Module {
            name: name.to_string(),
            comps: IdVec::new(),
            entry: CompId(0),
            extra: Vec::new(),
            replaceable: false,
        };
        let mut b = Builder {
            module,
            open: Vec::new(),
            error: None,
            assumed: SizeAssumptions::default(),
            found: Vec::new(),
            perturbed_from: None,
            maximal_from: None,
            before: Vec::new(),
            recorded_constants: Vec::new(),
            bound_checks: Vec::new(),
            carried_depth: 1,
            replicas: None,
            metadata: Arc::default(),
        };
        b.begin_computation("main");
        b
    }
    /// Opens a nested computation; instruction ids of the outer one cannot be used until [`Builder::end_computation`].
    pub fn begin_computation(&mut self, name: &str) {
        self.before.push(self.checkpoint());
        self.bound_checks.push(Vec::new());
        self.recorded_constants.push(HashMap::new());
        self.open.push(Computation {
            name: name.to_string(),
            insts: IdVec::new(),
            params: Vec::new(),
            root: InstId(0),
            sizes: Vec::new(),
            size_constants: Vec::new(),
        });
    }
    /// Closes the innermost computation with result `root`, and returns its id.
    pub fn end_computation(&mut self, root: InstId) -> CompId {
        let place = OwningComputation::Open(self.open.len());
        let mut comp = self.open.pop().expect("begin and end come in pairs");
        self.bound_checks.pop();
        self.before.pop();
        comp.size_constants = self.size_constants();
        self.recorded_constants.pop();
        comp.root = root;
        comp.name = format!("{}.{}", comp.name, self.module.comps.len());
        comp.sizes = self.sizes(place);
        let id = self.module.comps.push(comp);
        self.found.iter_mut().filter(|f| f.place == place).for_each(|f| f.place = OwningComputation::Closed(id));
        id
    }
    /// Closes the innermost computation and discards it, with the computations and data-dependent sizes that were made for it.
    pub fn discard_computation(&mut self) {
        self.open.pop();
        self.bound_checks.pop();
        self.recorded_constants.pop();
        if let Some(before) = self.before.pop() {
            self.found.truncate(before.found);
            self.module.comps.truncate(before.comps);
        }
    }
    /// Number of open computations, to which the builder can be unwound after an error.
    pub fn nesting_depth(&self) -> usize {
        self.open.len()
    }
    /// Closes the entry computation, and returns the module.
    ///
    /// # Errors
    /// The first error of a call, as an internal error.
    pub fn finish(mut self, root: InstId) -> Result<Module<D>> {
        if let Some(message) = self.error {
            return Err(Error::internal("hlo builder", message));
        }
        let sizes = self.sizes(OwningComputation::Open(1));
        let size_constants = self.size_constants();
        let mut comp = self.open.pop().expect("the entry is open");
        (comp.root, comp.sizes, comp.size_constants) = (root, sizes, size_constants);
        self.module.entry = self.module.comps.push(comp);
        Ok(self.module)
    }
    /// Declares that the module runs on `count` replicas.
    ///
    /// # Errors
    /// The number of replicas declared before, if it differs.
    pub fn set_replica_count(&mut self, count: u64) -> Result<(), u64> {
        match self.replicas {
            None => self.replicas = Some(count),
            Some(had) if had != count => return Err(had),
            Some(_) => return Ok(()),
        }
        if count != 1 {
            self.module.extra.push(("replica_count".to_string(), count.to_string()));
        }
        Ok(())
    }
    /// Checkpoint of the module, to which it can be rolled back.
    pub fn checkpoint(&self) -> BuilderCheckpoint {
        let (insts, comps) = (self.open.last().map_or(0, |comp| comp.insts.len()), self.module.comps.len());
        let (found, bound_checks) = (self.found.len(), self.bound_checks().len());
        BuilderCheckpoint { depth: self.nesting_depth(), insts, comps, found, bound_checks }
    }
    /// Rolls back to a checkpoint.
    pub fn roll_back_to(&mut self, mark: &BuilderCheckpoint) {
        while self.nesting_depth() > mark.depth {
            self.discard_computation();
        }
        if let Some(comp) = self.open.last_mut() {
            comp.insts.truncate(mark.insts);
        }
        if let Some(own) = self.bound_checks.last_mut() {
            own.truncate(mark.bound_checks);
        }
        if let Some(told) = self.recorded_constants.last_mut() {
            told.retain(|id, _| (id.0 as usize) < mark.insts);
        }
        self.module.comps.truncate(mark.comps);
        self.found.truncate(mark.found);
        self.error = None;
    }
    /// The first error since the last call, if any.
    pub fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
    /// Innermost open computation.
    pub fn current_computation(&self) -> &Computation<D> {
        self.open.last().expect("a computation is open")
    }
    /// Module so far, with the closed computations only.
    pub fn module(&self) -> &Module<D> {
        &self.module
    }
    /// The shape of an instruction.
    pub fn shape(&self, id: InstId) -> &Shape<D> {
        &self.current_computation().insts[id].shape
    }
    /// The sizes of an array; none for what is not an array.
    pub fn dims(&self, id: InstId) -> &[D] {
        self.shape(id).as_array().map_or(&[], |a| &a.dims)
    }
    /// Number of dimensions of an array.
    pub fn rank(&self, id: InstId) -> usize {
        self.dims(id).len()
    }
    /// Element type of an array.
    pub fn dtype(&self, id: InstId) -> DType {
        self.shape(id).as_array().map_or(DType::Pred, |a| a.dtype)
    }
    fn fail(&mut self, message: String) {
        self.error.get_or_insert(message);
    }
    /// Adds an instruction with a given shape, without checks.
    pub fn push(&mut self, op: Op<D>, operands: &[InstId], shape: Shape<D>) -> InstId {
        let metadata = self.metadata.clone();
        let comp = self.open.last_mut().expect("a computation is open");
        let name = format!("{}.{}", op.name(), comp.insts.len());
        let id = comp.insts.push(Inst { name, op, operands: operands.to_vec(), shape, metadata, extra: Vec::new() });
        if let Op::Parameter(_) = comp.insts[id].op {
            comp.params.push(id);
        }
        id
    }
    /// Renames an instruction of the open computation.
    pub fn rename(&mut self, id: InstId, name: String) {
        let comp = self.open.last_mut().expect("a computation is open");
        comp.insts[id].name = name;
    }
    /// Sets the opaque attributes of an instruction of the open computation.
    pub fn set_opaque_attributes(&mut self, id: InstId, extra: Vec<(String, String)>) {
        let comp = self.open.last_mut().expect("a computation is open");
        comp.insts[id].extra = extra;
    }
    /// Adds an instruction and infers its shape.
    pub fn add_inst(&mut self, op: Op<D>, operands: &[InstId]) -> InstId {
        let shapes: Vec<&Shape<D>> = operands.iter().map(|&id| self.shape(id)).collect();
        match infer::infer(&op, &shapes, &self.module) {
            Ok(shape) => self.push(op, operands, shape),
            Err(message) => {
                let shape = operands.last().map_or(Shape::array(DType::F32, []), |&id| self.shape(id).clone());
                self.fail(format!("{}: {message}", op.name()));
                self.push(op, operands, shape)
            }
        }
    }
    /// Adds the next parameter of the open computation.
    pub fn parameter(&mut self, shape: Shape<D>) -> InstId {
        let number = self.current_computation().params.len();
        self.push(Op::Parameter(number), &[], shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discarded_computation_leaves_nothing_behind() {
        let mut b = Builder::<u64>::new("m");
        b.begin_computation("kept");
        let x = b.parameter(Shape::array(DType::F32, []));
        let kept = b.end_computation(x);
        b.begin_computation("discarded");
        b.begin_computation("called by it");
        let y = b.parameter(Shape::array(DType::F32, []));
        b.end_computation(y);
        b.discard_computation();
        assert_eq!(b.module().comps.ids().collect::<Vec<_>>(), [kept]);
        assert_eq!(b.nesting_depth(), 1);
    }
}
