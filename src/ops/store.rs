//! The variables of a program while it is lowered.
use crate::diag::{Code, Error, Result};
use crate::graph::{Node, TABLE_PARTS, Variable, VariableRole};
use crate::hlo::open::InstId;
use crate::symbolic::Dim;
use crate::tensor::DType;
use std::collections::HashMap;

/// The values that variables have at one point of the walk, as instructions of the computation that is open.
#[derive(Clone, Debug, Default)]
pub struct Store {
    slots: Vec<Slot>,
    /// Variables by the nodes that give their handles, and by the names that nodes inside of functions use.
    handles: HashMap<String, usize>,
    /// The keys that mark places of dense tables, by the number of the table's first variable.
    marks: HashMap<usize, Vec<u64>>,
    /// The variable that holds the state of the generator which no handle names.
    pub random: Option<usize>,
}

/// A variable.
#[derive(Clone, Debug)]
struct Slot {
    name: String,
    dtype: DType,
    dims: Vec<Dim>,
    /// Whether its handle is a reference, which stands for its value where that is wanted.
    reference: bool,
    /// Role of the variable.
    role: VariableRole,
    /// The axes along which it grows, whose sizes the next variable holds.
    axes: Vec<usize>,
    /// `None` in a computation that it was not handed to.
    now: Option<InstId>,
}

impl Store {
    /// Adds a variable of this type and these sizes whose value is `now`; its number.
    pub fn add(&mut self, variable: &Variable, dtype: DType, dims: &[Dim], now: InstId) -> usize {
        let (name, reference, role) = (variable.name.clone(), variable.by_reference, variable.role);
        let axes = if role == VariableRole::Growing { variable.open_axes() } else { Vec::new() };
        let number = self.slots.len();
        self.slots.push(Slot { name, dtype, dims: dims.to_vec(), reference, role, axes, now: Some(now) });
        for node in &variable.handles {
            // that of several variables is the first of them
            self.handles.entry(node.to_string()).or_insert(number);
        }
        if !variable.shared_name.is_empty() {
            self.handles.entry(variable.shared_name.clone()).or_insert(number);
        }
        number
    }
    /// The variable whose handle a node gives.
    pub fn handle(&self, node: &Node) -> Option<usize> {
        self.named(&node.name).or_else(|| self.named(node.variable()))
    }
    /// The variable that a node asks for by this name.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.handles.get(name).copied()
    }
    /// The numbers of all variables.
    pub fn ids(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }
    /// The variables that the handle of variable `id` stands for: several for a table, and for a variable that grows.
    pub fn parts(&self, id: usize) -> std::ops::Range<usize> {
        let count = match self.slots.get(id).map(|s| s.role) {
            Some(VariableRole::Table) => TABLE_PARTS,
            Some(VariableRole::Growing) => 2,
            Some(VariableRole::Model | VariableRole::Random | VariableRole::Sizes) | None => 1,
        };
        id..id + count
    }
    /// The axes along which a variable grows.
    pub fn axes(&self, id: usize) -> &[usize] {
        self.slots.get(id).map_or(&[], |s| &s.axes)
    }
    /// The node that gives the handle of a variable, or of the table whose first variable it is.
    pub fn name(&self, id: usize) -> &str {
        let name = self.slots.get(id).map_or("", |s| &s.name);
        if self.is_table(id) { name.rsplit_once('/').map_or(name, |(node, _)| node) } else { name }
    }
    /// Whether a variable is an array of a table.
    pub fn is_table(&self, id: usize) -> bool {
        self.slots.get(id).is_some_and(|s| s.role == VariableRole::Table)
    }
    /// Says which keys mark empty and deleted places of a dense table, by the number of its first variable.
    pub fn mark(&mut self, id: usize, marks: Vec<u64>) {
        self.marks.insert(id, marks);
    }
    /// The keys that mark places of a table; none where it is not dense.
    pub fn marks(&self, id: usize) -> &[u64] {
        self.marks.get(&id).map_or(&[], Vec::as_slice)
    }
    /// The type and the sizes of a variable.
    pub fn array(&self, id: usize) -> Option<(DType, &[Dim])> {
        self.slots.get(id).map(|s| (s.dtype, &s.dims[..]))
    }
    /// Whether the handle of a variable is a reference.
    pub fn is_reference(&self, id: usize) -> bool {
        self.slots.get(id).is_some_and(|s| s.reference)
    }
    /// The value of a variable.
    ///
    /// # Errors
    /// `Code::UnsupportedCase` in scalar functions.
    pub fn read(&self, id: usize) -> Result<InstId> {
        let slot = self.slots.get(id).ok_or_else(|| Error::internal("lower", "a handle of no variable"))?;
        slot.now.ok_or_else(|| {
            Error::user(Code::UnsupportedCase, format!("the variable `{}` is used in a scalar function", slot.name))
        })
    }
    /// Gives a variable the value `now`, which has these sizes.
    ///
    /// # Errors
    /// `DynamicShape` where they are not the variable's.
    pub fn write(&mut self, id: usize, now: InstId, dtype: DType, dims: &[Dim]) -> Result<()> {
        let slot = self.slots.get_mut(id).ok_or_else(|| Error::internal("lower", "a handle of no variable"))?;
        if slot.dims != dims {
            let told = format!("the variable `{}` has the sizes {:?}, and is given {dims:?}", slot.name, slot.dims);
            return Err(Error::user(Code::DynamicShape, told));
        }
        if slot.dtype != dtype {
            let told = format!("the variable `{}` is {}, and is given {dtype}", slot.name, slot.dtype);
            return Err(Error::user(Code::TypeMismatch, told));
        }
        slot.now = Some(now);
        Ok(())
    }
    /// Makes only these variables known, with these values: those of a computation that was opened.
    pub fn enter(&mut self, inside: &[(usize, InstId)]) {
        self.slots.iter_mut().for_each(|slot| slot.now = None);
        for (id, now) in inside {
            if let Some(slot) = self.slots.get_mut(*id) {
                slot.now = Some(*now);
            }
        }
    }
}
