//! Variables: what handles stand for.
use super::{Attr, Graph, Node, PartialShape, Program, TfType};
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// A variable of a model.
#[derive(Clone, Debug)]
pub struct Variable {
    /// TensorFlow's name; no two variables have the same.
    pub name: String,
    /// The name of the variable's member of the state struct in C, where the user gives one.
    pub called: Option<String>,
    /// The nodes of the top-level graph that give its handle. Keras 3 writes several for one variable.
    pub handles: Vec<Box<str>>,
    /// The name by which nodes inside of functions ask for it; often empty.
    pub shared_name: String,
    /// Whether its handle is a reference of TensorFlow 1, which stands for the value where one is wanted.
    pub by_reference: bool,
    /// The element type.
    pub dtype: TfType,
    /// The static shape, as far as the graph tells.
    pub shape: PartialShape,
    /// The value that is saved with the model.
    pub value: Option<Tensor>,
    /// The role of the variable.
    pub role: VariableRole,
}

/// Roles that distinguish the model's own variables from hidden state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableRole {
    /// A variable of the model.
    Model,
    /// The state of the generator behind ops that draw random numbers without one of their own: TensorFlow keeps it out of sight.
    Random,
    /// An array of a lookup table that calls change. The table's handle stands for [`TABLE_PARTS`] of them, one behind the other.
    Table,
    /// A variable whose declared shape leaves axes open and whose values are of several sizes: its value has room for the largest of them,
    /// and the variable behind it holds the sizes of these axes.
    Growing,
    /// The sizes of the variable in front.
    Sizes,
}

impl Variable {
    /// The axes whose size the declared shape leaves open; none where even their number is open.
    pub fn open_axes(&self) -> Vec<usize> {
        let dims = self.shape.0.as_deref().unwrap_or_default();
        (0..dims.len()).filter(|&axis| dims[axis].is_none()).collect()
    }
    /// The type and the sizes of its values, if both are settled.
    pub fn array(&self) -> Option<(DType, Vec<u64>)> {
        match &self.value {
            Some(value) => Some((value.dtype, value.dims.clone())),
            None => Some((self.dtype.dtype()?, self.shape.fixed()?)),
        }
    }
}

/// The variables of a table that calls change: its keys, a value for each of them, and its size.
pub const TABLE_PARTS: usize = 3;

/// Whether a node gives the handle of a variable.
pub fn is_handle(node: &Node) -> bool {
    matches!(&*node.op, "VarHandleOp" | "VariableV2" | "Variable")
}

impl Program {
    /// Makes constants of the variables that `keep` does not want and whose value is known. A handle becomes its value; where no
    /// variable is left, reading one becomes an `Identity`, so that nothing tells that there were any.
    pub fn freeze(&mut self, keep: impl Fn(&Variable) -> bool) {
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
            self.read_as_values();
        }
    }

    /// Replaces reads through handles by ops on the values, in every graph, once the handles hold the values themselves.
    pub fn read_as_values(&mut self) {
        let bodies = self.functions.values_mut().map(|f| &mut f.graph);
        std::iter::once(&mut self.graph).chain(bodies).for_each(read_as_values);
    }
}

/// Replaces reads through handles by ops on the values, once the handles hold the values themselves.
fn read_as_values(graph: &mut Graph) {
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
