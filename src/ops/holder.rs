//! State of TensorArrays and stacks while a graph is lowered: ops change it by way of a handle.
use super::Value;
use crate::diag::{Code, Error, Result};
use crate::util::id_vec::{Id, IdVec};

crate::ids! {
    /// A TensorArray or a stack.
    pub struct HolderId;
}

/// Kind of a holder: a TensorArray or a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderKind {
    /// A TensorArray.
    Array {
        /// Whether it may grow.
        dynamic: bool,
        /// Whether what is written is added to what is there: it holds gradients.
        adds: bool,
    },
    /// A stack.
    Stack,
}

/// The state of one TensorArray or stack.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The name of the node that made it.
    pub name: String,
    /// Kind of the holder.
    pub kind: HolderKind,
    /// Elements of the holder, a `List` or an `UnshapedList`.
    pub elements: Value,
    /// The TensorArrays of its gradients, by the name of their source.
    pub gradients: Vec<(String, HolderId)>,
}

/// All holders of a program.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    all: IdVec<HolderId, Holder>,
}

impl Holders {
    /// Adds a holder.
    pub fn add(&mut self, holder: Holder) -> HolderId {
        self.all.push(holder)
    }
    /// A holder.
    ///
    /// # Errors
    /// `Code::TypeMismatch` for one that a loop or a branch made, outside of it.
    pub fn get(&self, id: HolderId) -> Result<&Holder> {
        self.all.get(id).ok_or_else(gone)
    }
    /// A holder, to be changed.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn get_mut(&mut self, id: HolderId) -> Result<&mut Holder> {
        if id.index() < self.all.len() { Ok(&mut self.all[id]) } else { Err(gone()) }
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// Forgets all but the first holders: those that a loop or a branch made for itself.
    pub fn truncate(&mut self, len: usize) {
        if len < self.all.len() {
            self.all = std::mem::take(&mut self.all).into_iter().take(len).collect();
            for holder in self.all.values_mut() {
                holder.gradients.retain(|(_, id)| id.index() < len);
            }
        }
    }
    /// The TensorArray for the gradients of another one with this source; made where there is none. It begins with zeros.
    ///
    /// # Errors
    /// Those of [`Self::get`], and `Code::TypeMismatch` for a stack.
    pub fn gradient(&mut self, of: HolderId, source: &str, zeros: Value) -> Result<HolderId> {
        let holder = self.get(of)?;
        if let Some((_, found)) = holder.gradients.iter().find(|(name, _)| name == source) {
            return Ok(*found);
        }
        let kind = match holder.kind {
            HolderKind::Array { dynamic, .. } => HolderKind::Array { dynamic, adds: true },
            HolderKind::Stack => return Err(Error::user(Code::TypeMismatch, "a stack has no gradients")),
        };
        let new = Holder { name: holder.name.clone(), kind, elements: zeros, gradients: Vec::new() };
        let id = self.add(new);
        self.get_mut(of)?.gradients.push((source.to_string(), id));
        Ok(id)
    }
}

fn gone() -> Error {
    Error::user(Code::TypeMismatch, "a TensorArray or stack that a loop or a branch made is used outside of it")
}
