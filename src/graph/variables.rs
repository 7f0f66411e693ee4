//! Variables of a model, and the nodes that create handles to them.
use super::{Attr, Graph, Node, PartialShape, Program, TfType};
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// A variable of a model.
#[derive(Clone, Debug)]
pub struct Variable {
    /// TensorFlow's name of the variable, unique in the model.
    pub name: String,
    /// Name of the variable's member in the C state struct, if the user gives one.
    pub called: Option<String>,
    /// Nodes of the top-level graph that create handles to the variable. Keras 3 writes several for one variable.
    pub handles: Vec<Box<str>>,
    /// The shared name by which nodes in functions refer to the variable; often empty.
    pub shared_name: String,
    /// Whether the handle is a TensorFlow 1 reference, which can be used as the value itself.
    pub by_reference: bool,
    /// The element type.
    pub dtype: TfType,
    /// The static shape, as far as the graph states it.
    pub shape: PartialShape,
    /// The value saved with the model.
    pub value: Option<Tensor>,
    /// Role of the variable.
    pub role: VariableRole,
}

/// Roles that distinguish the model's own variables from hidden state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableRole {
    /// A variable of the model.
    Model,
    /// State of the generator behind ops that draw random numbers without a generator of their own; TensorFlow hides it.
    Random,
    /// An array of a lookup table that calls change. A table has [`TABLE_PARTS`] consecutive variables of this role.
    Table,
    /// A variable with open axes in its declared shape and values of several sizes. It has room for the largest value, and the next
    /// variable holds the sizes of these axes.
    Growing,
    /// The sizes of the preceding variable, whose role is `Growing`.
    Sizes,
}

impl Variable {
    /// The axes whose size the declared shape leaves open; empty if the rank is open.
    pub fn open_axes(&self) -> Vec<usize> {
        let dims = self.shape.0.as_deref().unwrap_or_default();
        (0..dims.len()).filter(|&axis| dims[axis].is_none()).collect()
    }
    /// The type and dimensions of the values, if both are known.
    pub fn array_type(&self) -> Option<(DType, Vec<u64>)> {
        match &self.value {
            Some(value) => Some((value.dtype, value.dims.clone())),
            None => Some((self.dtype.dtype()?, self.shape.fixed()?)),
        }
    }
}

/// Number of variables of a lookup table that calls change: keys, values, and size.
pub const TABLE_PARTS: usize = 3;

/// Whether a node creates a handle to a variable.
pub fn is_handle(node: &Node) -> bool {
    matches!(&*node.op, "VarHandleOp" | "VariableV2" | "Variable")
}

impl Program {
    /// Turns the variables with a value into constants, except those for which `keep` holds. A handle is replaced by the value; if no
    /// variable is left, reads become `Identity`, as in a graph that never had variables.
    pub fn freeze_variables(&mut self, keep: impl Fn(&Variable) -> bool) {
        let (kept, frozen): (Vec<Variable>, Vec<Variable>) =
            std::mem::take(&mut self.variables).into_iter().partition(|v| keep(v) || v.value.is_none());
        self.variables = kept;
        let mut values: HashMap<&str, &Tensor> = HashMap::new();
        for variable in &frozen {
            values.extend(variable.handles.iter().filter_map(|h| Some((&**h, variable.value.as_ref()?))));
        }
        for node in self.graph.nodes.values_mut().filter(|n| is_handle(n)) {
            let Some(&value) = values.get(&*node.name) else { continue };
            let dtype = Attr::Type(TfType::Data(value.dtype));
            node.op = "Const".into();
            node.attrs =
                [(Arc::from("dtype"), dtype), (Arc::from("value"), Attr::Tensor(Box::new(value.clone())))].into();
        }
        self.variables.retain(&keep);
        if self.variables.is_empty() && !frozen.is_empty() {
            self.replace_reads_by_values();
        }
    }

    /// Replaces reads through handles by ops on the values, in every graph, after the handles were replaced by the values.
    pub fn replace_reads_by_values(&mut self) {
        let bodies = self.functions.values_mut().map(|f| &mut f.graph);
        std::iter::once(&mut self.graph).chain(bodies).for_each(replace_reads_by_values);
    }
}

/// Replaces reads through handles by ops on the values, after the handles were replaced by the values.
fn replace_reads_by_values(graph: &mut Graph) {
    for node in graph.nodes.values_mut() {
        let to = match &*node.op {
            "ReadVariableOp" => "Identity",
            "ResourceGather" if node.int("batch_dims").unwrap_or(0) == 0 => "Gather",
            "VariableShape" => "Shape",
            _ => continue,
        };
        node.op = to.into();
    }
}
