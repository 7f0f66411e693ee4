//! TensorArrays and stacks during lowering. Ops change their elements through handles.
use super::Value;
use crate::diag::{Code, Error, Result};
use crate::util::id_vec::{Id, IdVec};

crate::ids! {
    /// A TensorArray or a stack.
    pub struct MutableListId;
}

/// Kind of a mutable list: TensorArray or stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutableListKind {
    /// A TensorArray.
    Array {
        /// Whether writes beyond the end extend the TensorArray.
        dynamic: bool,
        /// Whether a write adds to the element instead of replacing it, as in a TensorArray of gradients.
        adds: bool,
    },
    /// A stack.
    Stack,
}

/// The state of one TensorArray or stack.
#[derive(Clone, Debug)]
pub struct MutableList {
    /// Name of the node that created the list.
    pub name: String,
    /// Kind of the mutable list.
    pub kind: MutableListKind,
    /// Elements, as a `Value::List` or `Value::UnshapedList`.
    pub elements: Value,
    /// Ids of the TensorArrays that hold its gradients, each with the name of its gradient source.
    pub gradients: Vec<(String, MutableListId)>,
}

/// All TensorArrays and stacks of a program.
#[derive(Clone, Debug, Default)]
pub struct MutableLists {
    all: IdVec<MutableListId, MutableList>,
}

impl MutableLists {
    /// Adds a TensorArray or stack; returns its id.
    pub fn add(&mut self, list: MutableList) -> MutableListId {
        self.all.push(list)
    }
    /// The TensorArray or stack with this id.
    ///
    /// # Errors
    /// `Code::TypeMismatch` if it was made by a loop or branch and is used outside of it.
    pub fn get(&self, id: MutableListId) -> Result<&MutableList> {
        self.all.get(id).ok_or_else(gone)
    }
    /// The TensorArray or stack with this id, mutable.
    ///
    /// # Errors
    /// Errors of [`Self::get`].
    pub fn get_mut(&mut self, id: MutableListId) -> Result<&mut MutableList> {
        if id.index() < self.all.len() { Ok(&mut self.all[id]) } else { Err(gone()) }
    }
    /// Number of TensorArrays and stacks.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Whether there are no TensorArrays and stacks.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// Drops all lists but the first `len`, as those created inside a loop or branch end with it.
    pub fn truncate(&mut self, len: usize) {
        if len < self.all.len() {
            self.all = std::mem::take(&mut self.all).into_iter().take(len).collect();
            for list in self.all.values_mut() {
                list.gradients.retain(|(_, id)| id.index() < len);
            }
        }
    }
    /// The TensorArray of gradients of `of` with this gradient source; one whose elements are `zeros` is made if there is none.
    ///
    /// # Errors
    /// Errors of [`Self::get`], and `Code::TypeMismatch` for a stack.
    pub fn gradient_array(&mut self, of: MutableListId, source: &str, zeros: Value) -> Result<MutableListId> {
        let list = self.get(of)?;
        if let Some((_, found)) = list.gradients.iter().find(|(name, _)| name == source) {
            return Ok(*found);
        }
        let kind = match list.kind {
            MutableListKind::Array { dynamic, .. } => MutableListKind::Array { dynamic, adds: true },
            MutableListKind::Stack => return Err(Error::user(Code::TypeMismatch, "a stack has no gradients")),
        };
        let new = MutableList { name: list.name.clone(), kind, elements: zeros, gradients: Vec::new() };
        let id = self.add(new);
        self.get_mut(of)?.gradients.push((source.to_string(), id));
        Ok(id)
    }
}

fn gone() -> Error {
    Error::user(Code::TypeMismatch, "a TensorArray or stack that a loop or a branch made is used outside of it")
}
