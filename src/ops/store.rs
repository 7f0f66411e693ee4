//! Values of a program's variables during lowering.
use crate::diag::{Code, Error, Result};
use crate::graph::{Node, TABLE_PARTS, Variable, VariableRole};
use crate::hlo::symbolic::InstId;
use crate::symbolic::Dim;
use crate::tensor::DType;
use std::collections::HashMap;

/// Current value of each variable at one point of the walk, as an instruction of the current computation.
#[derive(Clone, Debug, Default)]
pub struct VariableStore {
    slots: Vec<VariableState>,
    /// Variable indices by the names of the nodes that give their handles, and by the names that nodes inside functions use.
    handles: HashMap<String, usize>,
    /// Keys that mark empty and deleted buckets of dense hash tables, by the index of the table's first variable.
    marks: HashMap<usize, Vec<u64>>,
    /// Index of the variable with the state of the global random generator, which no handle names.
    pub random: Option<usize>,
}

/// State of a variable.
#[derive(Clone, Debug)]
struct VariableState {
    name: String,
    dtype: DType,
    dims: Vec<Dim>,
    /// Whether the variable's handle is a TensorFlow 1 reference, which stands for the value where an array is needed.
    reference: bool,
    role: VariableRole,
    /// Axes along which the variable grows; the next variable holds its sizes along them.
    axes: Vec<usize>,
    /// Current value; `None` in a computation that does not receive the variable.
    now: Option<InstId>,
}

impl VariableStore {
    /// Adds a variable of this type and these sizes with the value `now`; returns its index.
    pub fn add(&mut self, variable: &Variable, dtype: DType, dims: &[Dim], now: InstId) -> usize {
        let (name, reference, role) = (variable.name.clone(), variable.by_reference, variable.role);
        let axes = if role == VariableRole::Growing { variable.open_axes() } else { Vec::new() };
        let number = self.slots.len();
        self.slots.push(VariableState { name, dtype, dims: dims.to_vec(), reference, role, axes, now: Some(now) });
        for node in &variable.handles {
            // Several variables can share a handle, which stands for the first of them.
            self.handles.entry(node.to_string()).or_insert(number);
        }
        if !variable.shared_name.is_empty() {
            self.handles.entry(variable.shared_name.clone()).or_insert(number);
        }
        number
    }
    /// Index of the variable whose handle a node gives.
    pub fn variable_of_node(&self, node: &Node) -> Option<usize> {
        self.variable_named(&node.name).or_else(|| self.variable_named(node.variable_name()))
    }
    /// Index of the variable with this name.
    pub fn variable_named(&self, name: &str) -> Option<usize> {
        self.handles.get(name).copied()
    }
    /// Indices of all variables.
    pub fn ids(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }
    /// Indices of the variables behind the handle of variable `id`: several for a table, and for a variable that grows.
    pub fn handle_variables(&self, id: usize) -> std::ops::Range<usize> {
        let count = match self.slots.get(id).map(|s| s.role) {
            Some(VariableRole::Table) => TABLE_PARTS,
            Some(VariableRole::Growing) => 2,
            Some(VariableRole::Model | VariableRole::Random | VariableRole::Sizes) | None => 1,
        };
        id..id + count
    }
    /// Axes along which a variable grows.
    pub fn growth_axes(&self, id: usize) -> &[usize] {
        self.slots.get(id).map_or(&[], |s| &s.axes)
    }
    /// Name of the node that gives the handle of a variable, or of the table to which the variable belongs.
    pub fn name(&self, id: usize) -> &str {
        let name = self.slots.get(id).map_or("", |s| &s.name);
        if self.is_table(id) { name.rsplit_once('/').map_or(name, |(node, _)| node) } else { name }
    }
    /// Whether a variable is an array of a hash table.
    pub fn is_table(&self, id: usize) -> bool {
        self.slots.get(id).is_some_and(|s| s.role == VariableRole::Table)
    }
    /// Sets the keys that mark empty and deleted buckets of a dense hash table; `id` is its first variable.
    pub fn set_marker_keys(&mut self, id: usize, marks: Vec<u64>) {
        self.marks.insert(id, marks);
    }
    /// Keys that mark empty and deleted buckets of a table; none if it is not a dense hash table.
    pub fn marker_keys(&self, id: usize) -> &[u64] {
        self.marks.get(&id).map_or(&[], Vec::as_slice)
    }
    /// Element type and sizes of a variable.
    pub fn dtype_and_dims(&self, id: usize) -> Option<(DType, &[Dim])> {
        self.slots.get(id).map(|s| (s.dtype, &s.dims[..]))
    }
    /// Whether the handle of a variable is a TensorFlow 1 reference.
    pub fn is_reference(&self, id: usize) -> bool {
        self.slots.get(id).is_some_and(|s| s.reference)
    }
    /// Current value of a variable.
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
    /// Restricts the store to the variables that a just opened computation receives, with their values in it.
    pub fn enter_computation(&mut self, inside: &[(usize, InstId)]) {
        self.slots.iter_mut().for_each(|slot| slot.now = None);
        for (id, now) in inside {
            if let Some(slot) = self.slots.get_mut(*id) {
                slot.now = Some(*now);
            }
        }
    }
}
