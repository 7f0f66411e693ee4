//! State of the conversion of a module: the receiver of instructions, and the values of names.
use super::shards::Shard;
use super::tree::{ModuleTree, Operation, ValueRef};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::SymbolicArray;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::symbolic::{self, Builder};
use crate::hlo::{CompId, InstId};
use crate::symbolic::Dim;
use crate::tensor::Tensor;
use std::collections::{HashMap, HashSet};

/// Largest nesting depth of functions and regions.
const MOST_DEPTH: usize = 64;
/// Treatment of a module's assertions about the sizes of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeAssertions {
    /// Assertions are checked.
    Sizes,
    /// Assertions are left out: the module was exported to be called without them.
    None,
}

/// Receiver of a module's instructions, with access to the graph around the module.
pub trait Host {
    /// Builder that receives the instructions.
    fn builder(&mut self) -> &mut Builder;
    /// Value of an instruction of the current computation, if it is known, with elements that may be expressions of sizes.
    fn known(&mut self, id: InstId) -> Option<SymbolicArray>;
    /// Value of an instruction of the current computation that is the same in every call, if it is known.
    fn constant(&mut self, id: InstId) -> Option<Tensor> {
        self.known(id).map(SymbolicArray::pin_sizes)
    }
    /// Element `at` of the difference of two integer arrays, if it is an expression of sizes although the arrays are not.
    fn difference(&mut self, of: InstId, less: InstId, at: Dim) -> Option<Dim>;
    /// Results of a call of function `index` of the surrounding graph.
    ///
    /// # Errors
    /// `Code::HloUnsupported` if there is no such graph.
    fn call(&mut self, index: i64, args: &[InstId]) -> Result<Vec<InstId>>;
    /// Replaces a custom call, given with all its attributes, by instructions that compute its value of the given shape; `None` if it
    /// stays a call.
    ///
    /// # Errors
    /// Errors of the host.
    fn custom_call(
        &mut self,
        _call: &ForeignOp,
        _operands: &[InstId],
        _shape: &symbolic::Shape,
    ) -> Result<Option<InstId>> {
        Ok(None)
    }
}

/// Error located at an operation.
pub(super) fn error_at(op: &Operation, code: Code, message: impl Into<String>) -> Error {
    let mut d = Diagnostic::new(code, message);
    d.place.op = Some(op.name.clone());
    d.place.node = op.results.first().cloned().or_else(|| Some(op.name.clone()));
    d.place.line = op.place;
    d.into()
}

/// Names and assertions in one function or region.
#[derive(Default)]
pub(super) struct SymbolScope {
    /// Values by name.
    pub values: HashMap<String, Vec<InstId>>,
    /// Operands of `check.` operations.
    pub checked: Vec<InstId>,
    /// Whether sizes are resolved here: small integers computed from constants become constants.
    pub open: bool,
}

impl SymbolScope {
    /// Value that an operation reads.
    pub fn get(&self, op: &Operation, value: &ValueRef) -> Result<InstId> {
        let found = self.values.get(&value.name).and_then(|all| all.get(value.index));
        found
            .copied()
            .ok_or_else(|| error_at(op, Code::HloSyntax, format!("the value %{} does not exist here", value.name)))
    }
}

/// Converts functions to instructions.
pub(super) struct Converter<'a, 'h> {
    /// Receiver of the instructions.
    pub host: &'h mut dyn Host,
    /// Treatment of assertions.
    pub checks: ShapeAssertions,
    /// Functions of the module.
    pub functions: &'a ModuleTree,
    /// Values that are shards, outside of manual computations, each with the nesting depth of the computation that it belongs to.
    pub shards: HashMap<(usize, InstId), Shard>,
    /// Whole arrays that were gathered from shards for an operation that needs them, with nesting depths as in `shards`.
    pub gathered: HashSet<(usize, InstId)>,
    /// By device, the class of devices that have the same arrays where the current operations stand; empty if all are of one.
    pub device_classes: Vec<u64>,
    /// Converted computations of functions whose types are static.
    pub done: HashMap<&'a str, CompId>,
    /// Functions currently being inlined.
    pub open: HashSet<&'a str>,
    /// Current nesting depth of functions and regions.
    pub depth: usize,
    /// Number of operations converted so far.
    pub operations: usize,
}

impl Converter<'_, '_> {
    /// Builder of the host.
    pub fn builder(&mut self) -> &mut Builder {
        self.host.builder()
    }
    /// Enters a level of nesting.
    pub fn enter(&mut self, op: &Operation) -> Result<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(error_at(
                op,
                Code::HloUnsupported,
                format!("functions and regions nest deeper than {MOST_DEPTH}"),
            ));
        }
        Ok(())
    }
    /// Begins a computation, whose arguments and captured values are whole arrays.
    pub fn begin_computation(&mut self, name: &str) {
        self.builder().begin_computation(name);
        let depth = self.builder().nesting_depth();
        self.shards.retain(|(own, _), _| *own < depth);
        self.gathered.retain(|(own, _)| *own < depth);
    }
    /// Leaves a level of nesting.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }
    /// Elements of a tuple; for other values, the value itself.
    pub fn parts(&mut self, id: InstId) -> Vec<InstId> {
        let Some(n) = self.builder().shape(id).as_tuple().map(<[symbolic::Shape]>::len) else { return vec![id] };
        (0..n).map(|i| self.builder().get_tuple_element(id, i)).collect()
    }
}
