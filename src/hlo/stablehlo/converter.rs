//! State that readers of a module's operations share: where instructions go, and the values that names stand for.
use super::tree::{ModuleTree, Operation, ValueRef};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::SymbolicArray;
use crate::hlo::attrs::Foreign;
use crate::hlo::open::{self, Builder};
use crate::hlo::{CompId, InstId};
use crate::symbolic::Dim;
use crate::tensor::Tensor;
use std::collections::{HashMap, HashSet};

/// Functions and regions nest no deeper than this.
const MOST_DEPTH: usize = 64;
/// Whether what a module asserts about the sizes of its arguments is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeAssertions {
    /// Assertions must hold.
    Sizes,
    /// Assertions are left out: the module was exported to be called without them.
    None,
}

/// Where a module's instructions go, and what surrounds it.
pub trait Host {
    /// The builder that gets them.
    fn builder(&mut self) -> &mut Builder;
    /// The value of an instruction of the open computation, if it is known, with the elements that follow from sizes.
    fn known(&mut self, id: InstId) -> Option<SymbolicArray>;
    /// The value of an instruction of the open computation, which it must have in every call, if it is known.
    fn constant(&mut self, id: InstId) -> Option<Tensor> {
        self.known(id).map(SymbolicArray::pinned)
    }
    /// Element `at` of one array of integers less that of another, where it follows from sizes although they do not.
    fn difference(&mut self, of: InstId, less: InstId, at: Dim) -> Option<Dim>;
    /// The results of function `index` of those that surround the module.
    ///
    /// # Errors
    /// `Code::HloUnsupported` where there are none.
    fn call(&mut self, index: i64, args: &[InstId]) -> Result<Vec<InstId>>;
    /// The value, of this shape, of a custom call, given with all its attributes, that is written with instructions; `None` for one that stays a call.
    ///
    /// # Errors
    /// As the host likes.
    fn custom_call(&mut self, _call: &Foreign, _operands: &[InstId], _shape: &open::Shape) -> Result<Option<InstId>> {
        Ok(None)
    }
}

/// The error of an operation.
pub(super) fn at(op: &Operation, code: Code, message: impl Into<String>) -> Error {
    let mut d = Diagnostic::new(code, message);
    d.place.op = Some(op.name.clone());
    d.place.node = op.results.first().cloned().or_else(|| Some(op.name.clone()));
    d.place.line = op.place;
    d.into()
}

/// Names and checks inside of one function or region.
#[derive(Default)]
pub(super) struct SymbolScope {
    /// The values that names stand for.
    pub values: HashMap<String, Vec<InstId>>,
    /// The operands of `check.` operations.
    pub checked: Vec<InstId>,
    /// Whether sizes are found here: small whole numbers that follow from constants are constants.
    pub open: bool,
}

impl SymbolScope {
    /// The value that an operation reads.
    pub fn get(&self, op: &Operation, value: &ValueRef) -> Result<InstId> {
        let found = self.values.get(&value.name).and_then(|all| all.get(value.index));
        found.copied().ok_or_else(|| at(op, Code::HloSyntax, format!("the value %{} does not exist here", value.name)))
    }
}

/// Makes instructions of functions.
pub(super) struct Converter<'a, 'h> {
    /// Receiver of the instructions that operations become.
    pub host: &'h mut dyn Host,
    /// The assertions that are checked.
    pub checks: ShapeAssertions,
    /// All functions of the module.
    pub functions: &'a ModuleTree,
    /// Values that are the device's parts of arrays, outside of where parts are computed with, and how deep the computation is that
    /// has them.
    pub parts_of_arrays: HashSet<(usize, InstId)>,
    /// Computations of functions whose types are fixed.
    pub done: HashMap<&'a str, CompId>,
    /// Functions that are put in place of their calls.
    pub open: HashSet<&'a str>,
    /// How deep functions and regions are nested here.
    pub depth: usize,
    /// How many operations there were.
    pub operations: usize,
}

impl Converter<'_, '_> {
    /// The builder.
    pub fn b(&mut self) -> &mut Builder {
        self.host.builder()
    }
    /// Counts a level of nesting.
    pub fn enter(&mut self, op: &Operation) -> Result<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(at(op, Code::HloUnsupported, format!("functions and regions nest deeper than {MOST_DEPTH}")));
        }
        Ok(())
    }
    /// The end of a level.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }
    /// The parts of a tuple.
    pub fn parts(&mut self, id: InstId) -> Vec<InstId> {
        let Some(n) = self.b().shape(id).as_tuple().map(<[open::Shape]>::len) else { return vec![id] };
        (0..n).map(|i| self.b().get_tuple_element(id, i)).collect()
    }
}
